"""The jobs of urlwatch: its ``urls.yaml``, a document for each.

Tags are not heeded: all that is made of the YAML are texts, lists and mappings. References
(``*name``) are refused before anything is made, for a few of them can stand for any number of
texts, and so is deep nesting.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import yaml

from freshet.crawler.importing.entries import Entry, Site, Skipped, Unreadable

#: Jobs are written by hand.
URLWATCH_MAX_BYTES: Final = 4 * 1024 * 1024
_MAX_DEPTH: Final = 32
#: What says nothing that would be missed: identity, and how a request is made.
_PLAIN: Final = frozenset(
    "url navigate name kind note enabled timeout max_tries ignore_cached ignore_connection_errors "
    "ignore_timeout_errors ignore_too_many_redirects ignore_http_error_codes".split()
)
_NO: Final = frozenset({"false", "no", "off"})
_SHOWN: Final = 40
# Compiled into the wheels of PyYAML, but not where it was built without libyaml.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def read_urlwatch(data: bytes) -> list[Entry]:
    """The jobs, in their order.

    Raises:
        Unreadable: it is not YAML, too large, too deep, or has references.
    """
    if len(data) > URLWATCH_MAX_BYTES:
        raise Unreadable(f"larger than {URLWATCH_MAX_BYTES // 1024**2} MiB")
    try:
        text = data.decode("utf-8-sig")
        _vet(text)
        documents = [each for each in yaml.load_all(text, _LOADER) if each]
    except UnicodeDecodeError as error:
        raise Unreadable("not UTF-8") from error
    except yaml.YAMLError as error:
        raise Unreadable(f"not YAML: {_words(error)}") from error
    # A single document may be a list of jobs.
    jobs = documents[0] if len(documents) == 1 and isinstance(documents[0], list) else documents
    return list(_entries(jobs))


def _vet(text: str) -> None:
    """Look at the events, which come one by one, before anything is built."""
    depth = 0
    for event in yaml.parse(text, _LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise Unreadable(f"{_line(event)}a reference (*{event.anchor}) is not read")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise Unreadable(f"{_line(event)}nested too deeply")


def _line(event: yaml.Event) -> str:
    return f"line {event.start_mark.line + 1}: " if event.start_mark is not None else ""


def _words(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}: " if mark is not None else ""
    return f"{where}{getattr(error, 'problem', None) or error}"


def _entries(jobs: list[object]) -> Iterator[Entry]:
    for number, job in enumerate(jobs, 1):
        where = f"job {number}"
        if isinstance(job, dict):
            yield _entry(where, job)
        else:
            yield Skipped(where, str(job), "not a job")


def _entry(where: str, job: dict[object, object]) -> Entry:
    name = _text(job.get("name"))
    url = _text(job.get("url")) or _text(job.get("navigate"))
    if not url:
        what = "a command, which is never run" if "command" in job or "shell" in job else "no URL"
        return Skipped(where, name or _text(job.get("command")), what)
    if _text(job.get("enabled")).lower() in _NO:
        return Skipped(where, url, "not enabled")
    lost = [str(key)[:_SHOWN] for key in job if key not in _PLAIN]
    if "navigate" in job:
        lost.append("a browser that runs JavaScript")
    return Site(where, url, name, lost=tuple(lost))


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
