"""Importers of other programs' lists: changedetection.io, urlwatch, OPML, sitemaps, plain URLs.

Of a ZIP (a backup of changedetection.io) only the members that name watches are read, each within
a bound, and nothing is written to the disk. Both layouts are read: all watches in
``url-watches.json``, or each in a ``watch.json`` in a separate folder.
"""

import csv
import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Final, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

import yaml

from freshet.crawler.admission.site_lists import (
    Header,
    ListProblem,
    XmlReader,
    csv_header,
    read_sites,
    seeds_from_arguments,
    url_column,
)
from freshet.crawler.errors import UnreadableList
from freshet.crawler.reduce.sitemaps import Sitemap, looks_like, parse_sitemap
from freshet.crawler.urls import canonical

# -- entries -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WatchedSite:
    """A watched URL.

    Attributes:
        where: the position of the entry, in words for people.
        url: as written; not checked.
        name: as written, or "".
        days: the interval between two visits that the entry wants, or None.
        lost: further wishes for which a site list has no place, in words for people.
    """

    where: str
    url: str
    name: str = ""
    days: float | None = None
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkippedEntry:
    """An entry that gives no site, and the reason."""

    where: str
    text: str
    reason: str


Entry: TypeAlias = WatchedSite | SkippedEntry


_DIVIDE: Final = "divide it"
_INTO: Final = "name a text or CSV with --into"


#: Bytes of JSON in all; ten thousand watches with their filters take some 30 MB.
MAX_BYTES: Final = 64 * 1024 * 1024
#: Members of a ZIP; a year of hourly snapshots of a hundred pages.
_MAX_MEMBERS: Final = 1_000_000
_PACKED: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_STORE: Final = "url-watches.json"
_WATCH: Final = re.compile(r"[0-9a-fA-F-]{8,64}/watch\.json")
_HISTORY: Final = re.compile(r"([0-9a-fA-F-]{8,64})/history\.txt")
_UNIT_DAYS: Final = {
    "weeks": 7.0, "days": 1.0, "hours": 1 / 24, "minutes": 1 / 1_440, "seconds": 1 / 86_400,
}  # fmt: skip
_RAW: Final = "source:"

_Watch: TypeAlias = Mapping[str, object]

#: Keys of a watch without a counterpart in a site list.
_LOST: Final[Mapping[str, Callable[[_Watch], bool]]] = {
    "filters by CSS or XPath (see include in [[sites]])": lambda w: _any(
        w, "include_filters css_filter"
    ),
    "elements left out (see ignore in [[sites]])": lambda w: _any(w, "subtractive_selectors"),
    "conditions on the text": lambda w: _any(
        w, "trigger_text ignore_text text_should_not_be_present extract_text conditions"
    ),
    "headers, method, body or proxy": lambda w: (
        _any(w, "headers body proxy") or w.get("method") not in {None, "", "GET"}
    ),
    "a browser that runs JavaScript": lambda w: (
        _any(w, "browser_steps webdriver_js_execute_code")
        or str(w.get("fetch_backend", "")).startswith(("html_webdriver", "extra_browser"))
    ),
    "prices and stock": lambda w: w.get("processor") not in {None, "", "text_json_diff"},
    "notifications": lambda w: _any(w, "notification_urls"),
    "tags": lambda w: _any(w, "tags tag"),
    "hours of the day": lambda w: bool(_mapping(w.get("time_schedule_limit")).get("enabled")),
}


def read_zip(file: IO[bytes]) -> list[Entry]:
    """Return the watches of a backup."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if len(names) > _MAX_MEMBERS:
                raise UnreadableList(f"a ZIP with more than {_MAX_MEMBERS:,} members", _DIVIDE)
            kept = frozenset(found[1] for name in names if (found := _HISTORY.fullmatch(name)))
            return list(_watches(_members(archive, names), kept))
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError) as error:
        raise UnreadableList(f"a damaged ZIP: {error}") from error
    except (NotImplementedError, RuntimeError) as error:
        # zipfile's errors for a member that is encrypted, or packed in an unknown way.
        raise UnreadableList(f"a ZIP that cannot be unpacked: {error}") from error


def read_json(data: bytes) -> list[Entry]:
    """Return the watches of a data store, or the one of a ``watch.json``."""
    _require_at_most(MAX_BYTES, data)
    found = _parsed(data)
    watching = found.get("watching")
    if isinstance(watching, Mapping):
        return list(_watches(watching.items(), frozenset()))
    if "url" in found:
        return list(_watches([(str(found.get("uuid", "1")), found)], frozenset()))
    raise UnreadableList('JSON without "watching": not a data store of changedetection.io')


def _require_at_most(max_bytes: int, data: bytes) -> None:
    if len(data) > max_bytes:
        raise UnreadableList(f"larger than {max_bytes // 1024**2} MiB", _DIVIDE)


def read_list(data: bytes) -> list[Entry]:
    """Return the URLs of a list, one a line; further words of a line are tags."""
    _require_at_most(MAX_BYTES, data)
    found: list[Entry] = []
    for number, line in enumerate(data.decode("utf-8-sig", "replace").splitlines(), 1):
        url, *tags = line.split(maxsplit=1)[:2] if line.strip() else [""]
        if url and not url.startswith("#"):
            found.append(WatchedSite(f"line {number}", url, lost=("tags",) if tags else ()))
    return found


def _members(archive: zipfile.ZipFile, names: Iterable[str]) -> Iterator[tuple[str, object]]:
    """Return the watches of a ZIP with their ids; the sum of their bytes is bounded."""
    left, found = MAX_BYTES, False
    for name in names:
        if name != _STORE and not _WATCH.fullmatch(name):
            continue
        found = True
        if archive.getinfo(name).compress_type not in _PACKED:
            # Other methods may demand any amount of memory.
            raise UnreadableList(f"a ZIP in which {name} is not packed with deflate")
        with archive.open(name) as member:
            # Do not trust the sizes in the header.
            data = member.read(left + 1)
        left -= len(data)
        if left < 0:
            raise UnreadableList(
                f"a ZIP whose watches unpack to more than {MAX_BYTES // 1024**2} MiB", _DIVIDE
            )
        content = _parsed(data)
        if name == _STORE:
            yield from _mapping(content.get("watching")).items()
        else:
            yield name.partition("/")[0], content
    if not found:
        raise UnreadableList(
            f"a ZIP without {_STORE} or watch.json: no backup of changedetection.io"
        )


def _parsed(data: bytes) -> Mapping[str, object]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UnreadableList(f"not JSON: {reason}") from error
    if not isinstance(found, dict):
        raise UnreadableList("JSON, but no object")
    return found


def _watches(watches: Iterable[tuple[str, object]], kept: frozenset[str]) -> Iterator[Entry]:
    for number, (uuid, watch) in enumerate(watches, 1):
        where = f"watch {number}"
        if isinstance(watch, Mapping) and isinstance(watch.get("url"), str):
            yield _watch(where, watch, has_history=uuid in kept)
        else:
            yield SkippedEntry(where, str(uuid), "it has no URL")


def _watch(where: str, watch: _Watch, *, has_history: bool) -> Entry:
    url = str(watch["url"]).strip()
    if watch.get("paused") is True:
        return SkippedEntry(where, url, "paused")
    if "{{" in url or "{%" in url:
        return SkippedEntry(where, url, "a template, not a URL")
    lost = [words for words, holds in _LOST.items() if holds(watch)]
    if url.startswith(_RAW):
        url = url.removeprefix(_RAW)
        lost.append("the source code instead of the text")
    if has_history:
        lost.append("snapshots")
    title = watch.get("title")
    name = title if isinstance(title, str) else ""
    return WatchedSite(where, url, name, _days(watch), tuple(lost))


def _days(watch: _Watch) -> float | None:
    """Return the interval that the watch itself wants."""
    if watch.get("time_between_check_use_default") is True:
        return None
    said = _mapping(watch.get("time_between_check"))
    total = sum(days * _number(said.get(unit)) for unit, days in _UNIT_DAYS.items())
    return total if 0 < total < math.inf else None


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    try:
        return max(0.0, float(value)) if math.isfinite(value) else 0.0
    except OverflowError:
        return 0.0


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _any(watch: _Watch, names: str) -> bool:
    return any(watch.get(name) for name in names.split())


# -- manifests ---------------------------------------------------------------
# The pages of a sitemap, also gzipped, and of the sitemaps that an index names. No request is made:
# the sitemaps of an index are files beside it, with the last segments of their URLs as names.

_MAX_SITEMAPS: Final = 1_000
#: A file beside the index: no folder, no hidden file, no parent folder.
_PLAIN_NAME: Final = re.compile(r"[\w-][\w.-]*")


def read_manifest(data: bytes, beside: Callable[[str], bytes | None]) -> list[Entry]:
    """Return the pages, in the order of the file; ``beside`` gives the file of a name, if any."""
    sitemap = _parsed_manifest(data)
    if sitemap.kind != "index":
        return list(_pages(sitemap, ""))
    found: list[Entry] = []
    for number, (url, _) in enumerate(sitemap.entries, 1):
        where = f"sitemap {number}"
        if number > _MAX_SITEMAPS:
            found.append(SkippedEntry(where, url, f"an index of more than {_MAX_SITEMAPS:,}"))
            break
        found.extend(_named(where, url, beside))
    return [*found, *_trouble(sitemap, "index")]


def _named(where: str, url: str, beside: Callable[[str], bytes | None]) -> Iterator[Entry]:
    """Return the pages of a sitemap that an index names."""
    name = urlsplit(url).path.rpartition("/")[2]
    data = beside(name) if _PLAIN_NAME.fullmatch(name) else None
    if data is None:
        yield SkippedEntry(where, url, "not beside the index, and nothing is fetched")
        return
    try:
        sitemap = _parsed_manifest(data)
    except UnreadableList as reason:
        yield SkippedEntry(where, url, str(reason))
        return
    if sitemap.kind == "index":
        yield SkippedEntry(where, url, "an index in an index")
    else:
        yield from _pages(sitemap, f"{name}, ")


def _parsed_manifest(data: bytes) -> Sitemap:
    sitemap = parse_sitemap(data)
    if sitemap.kind == "unknown" or (sitemap.problem and not sitemap.entries):
        raise UnreadableList(f"not a sitemap: {sitemap.problem or 'it has no entries'}")
    return sitemap


def _pages(sitemap: Sitemap, prefix: str) -> Iterator[Entry]:
    for number, (url, _) in enumerate(sitemap.entries, 1):
        yield WatchedSite(f"{prefix}entry {number}", url)
    yield from _trouble(sitemap, f"{prefix}the end")


def _trouble(sitemap: Sitemap, where: str) -> Iterator[Entry]:
    """Return a sentence on the unreadable part."""
    if sitemap.truncated:
        yield SkippedEntry(where, "", "the rest is longer than a sitemap may be")
    if sitemap.problem:
        yield SkippedEntry(where, "", f"the rest: {sitemap.problem}")
    if sitemap.rejected:
        yield SkippedEntry(where, "", f"{sitemap.rejected:,} entries without a usable URL")


# -- merging -----------------------------------------------------------------
# Invariant: the new list begins with the bytes of the old one, and reading it gives every site
# that was added. Consequence: adding the same sites again does not change the list.

_NAME_COLUMNS = ("name", "title", "note", "comment")
#: Header of a new table.
_COLUMNS = ("url", "importance", "name")
_LONGEST_NAME = 120


@dataclass(frozen=True, slots=True)
class MergedSiteList:
    """A list with further sites.

    Attributes:
        data: the whole new list.
        sites: all that the entries name, each once, in their order.
        added: the sites that were new to it.
        skipped: entries that give no site.
    """

    data: bytes
    sites: tuple[WatchedSite, ...]
    added: tuple[WatchedSite, ...]
    skipped: tuple[SkippedEntry, ...]


def merged(old: bytes, name: str, entries: Iterable[Entry]) -> MergedSiteList:
    """Add the sites of ``entries`` to a list, which may be empty; ``name`` is the list's."""
    had = _had(old, name)
    sites: dict[str, WatchedSite] = {}
    skipped: list[SkippedEntry] = []
    for entry in entries:
        refused = entry if isinstance(entry, SkippedEntry) else _refused(entry)
        if refused is not None:
            skipped.append(refused)
        elif isinstance(entry, WatchedSite):
            sites.setdefault(page(entry.url), entry)
    added = tuple(site for url, site in sites.items() if url not in had)
    data = _with(old, name, added) if added else old
    return MergedSiteList(data, tuple(sites.values()), added, tuple(skipped))


def page(url: str) -> str:
    """Return the canonical URL of a site that was not skipped."""
    return canonical(seeds_from_arguments([url]).seeds[0].url)


def _had(old: bytes, name: str) -> set[str]:
    """Return the canonical URLs of a list; where a line has no scheme, both."""
    if old.lstrip().startswith(b"<"):
        raise UnreadableList("XML, which gets no lines", _INTO)
    found = read_sites(old, name)
    for problem in found.problems:
        # Quote the beginning of a line that is not a site, but not of a file that is not a list.
        if not problem.text or (_is_table(name) and csv_header(old) is None):
            raise UnreadableList(problem.message, _INTO)
    urls = (url for seed in found.seeds for url in (seed.url, seed.fallback_url))
    return {canonical(url) for url in urls if url is not None}


def _refused(site: WatchedSite) -> SkippedEntry | None:
    """Return the reason why a site cannot be imported, or None."""
    lists = seeds_from_arguments([site.url]), read_sites(site.url.encode("utf-8", "replace"), "")
    problems = [problem for each in lists for problem in each.problems]
    return SkippedEntry(site.where, site.url, problems[0].message) if problems else None


def _with(old: bytes, name: str, added: Sequence[WatchedSite]) -> bytes:
    newline = "\r\n" if b"\r\n" in old else "\n"
    text = "".join(f"{line}{newline}" for line in _lines(old, name, added))
    data = old + (newline.encode() if old and not old.endswith((b"\n", b"\r")) else b"")
    data += text.encode()
    has = {canonical(seed.url) for seed in read_sites(data, name).seeds}
    if lost := [site.url for site in added if page(site.url) not in has]:
        raise UnreadableList(
            f"{lost[0][:80]} cannot be added: the last line is not a whole one", "correct that"
        )
    return data


def _lines(old: bytes, name: str, added: Sequence[WatchedSite]) -> Iterable[str]:
    header = csv_header(old)
    if header is None and _is_table(name):
        header = "\t" if name.lower().endswith(".tsv") else ",", _COLUMNS
        yield header[0].join(_COLUMNS)
    if header is not None:
        yield from (_row(header, site) for site in added)
    else:
        for site in added:
            named = _one_line(site.name)
            yield f"{site.url}  # {named}" if named else site.url


def _is_table(name: str) -> bool:
    return name.lower().endswith((".csv", ".tsv"))


def _row(header: Header, site: WatchedSite) -> str:
    delimiter, columns = header
    cells = ["" for _ in columns]
    cells[url_column(columns)] = site.url
    for column in _NAME_COLUMNS:
        if column in columns:
            cells[columns.index(column)] = _one_line(site.name)
            break
    line = io.StringIO()
    csv.writer(line, delimiter=delimiter, lineterminator="").writerow(cells)
    return line.getvalue()


def _one_line(name: str) -> str:
    """Return a name that ends no line, begins no comment, and controls no terminal."""
    words = "".join(c if c.isprintable() else " " for c in name).split()
    return " ".join(words).lstrip("#").strip()[:_LONGEST_NAME]


# -- opml --------------------------------------------------------------------

OPML_MAX_BYTES: Final = 16 * 1024 * 1024


def read_opml(data: bytes) -> list[Entry]:
    """Return the outlines that name a page or a feed, in the order of the document."""
    _require_at_most(OPML_MAX_BYTES, data)
    found: list[Entry] = []
    reader = XmlReader(lambda line, values: found.extend(_outlined(line, values)))
    if refused := reader.read(data.lstrip()):
        problem = (
            refused[0].message if isinstance(refused[0], ListProblem) else "a sitemap, not OPML"
        )
        raise UnreadableList(f"line {refused[0].line}: {problem}")
    return found


def _outlined(line: int, values: Mapping[str, str]) -> Iterator[Entry]:
    where, name = f"line {line}", values.get("title") or values.get("text") or ""
    # The page before its feed, which a crawl of the page finds.
    url = values.get("htmlurl") or values.get("xmlurl") or values.get("url")
    if url:
        yield WatchedSite(where, url, name, lost=("categories",) if values.get("category") else ())
    elif values.get("type"):
        yield SkippedEntry(where, name, f"of type {values['type'][:40]}, without a URL")


# -- recognising -------------------------------------------------------------

#: Bytes of the beginning that are examined.
SNIFFED_BYTES = 4_096

_ZIP = b"PK\x03\x04"
_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"
_OPML = re.compile(rb"<opml[\s>]", re.IGNORECASE)
_JOB = re.compile(rb"^(?:- |  )?[\"']?(?:url|navigate|command|shell)[\"']?\s*:", re.MULTILINE)
_URL = re.compile(rb"\A(?>(?:\s|#[^\n]*\n)*)(?:source:)?https?://", re.IGNORECASE)

#: The formats of lists that can be imported.
ListFormat = Literal["auto", "changedetection", "urlwatch", "opml", "sitemap"]


def is_zip(head: bytes) -> bool:
    """Return whether a file begins like a ZIP."""
    return head.startswith(_ZIP)


def recognised(head: bytes) -> ListFormat:
    """Return the format of a file that begins like this."""
    start = head.removeprefix(_MARK).lstrip()
    if is_zip(head) or start.startswith(b"{") or _URL.match(start):
        return "changedetection"
    if looks_like(head) == "sitemap" or head.startswith(_GZIP):
        return "sitemap"
    if start.startswith(b"<") and _OPML.search(start):
        return "opml"
    if _JOB.search(start) and not start.startswith(b"<"):
        return "urlwatch"
    names = ", ".join(get_args(ListFormat)[1:])
    raise UnreadableList("unknown format", f"choose one of {names} with --format")


# -- urlwatch ----------------------------------------------------------------
# Tags are ignored: the YAML gives only texts, lists and mappings. References (``*name``) and deep
# nesting are refused before objects are made: a few can expand to any number of texts.

#: Jobs are written by hand.
URLWATCH_MAX_BYTES: Final = 4 * 1024 * 1024
_MAX_DEPTH: Final = 32
#: Keys that are dropped silently: identity, and the form of the request.
_PLAIN: Final = frozenset(
    "url navigate name kind note enabled timeout max_tries ignore_cached ignore_connection_errors "
    "ignore_timeout_errors ignore_too_many_redirects ignore_http_error_codes".split()
)
_NO: Final = frozenset({"false", "no", "off"})
_SHOWN: Final = 40
# Compiled into the wheels of PyYAML, but not where it was built without libyaml.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def read_urlwatch(data: bytes) -> list[Entry]:
    """Return the jobs, in their order."""
    _require_at_most(URLWATCH_MAX_BYTES, data)
    try:
        text = data.decode("utf-8-sig")
        _vet(text)
        documents = [each for each in yaml.load_all(text, _LOADER) if each]
    except UnicodeDecodeError as error:
        raise UnreadableList("not UTF-8") from error
    except yaml.YAMLError as error:
        raise UnreadableList(f"not YAML: {_words(error)}") from error
    # A single document may be a list of jobs.
    jobs = documents[0] if len(documents) == 1 and isinstance(documents[0], list) else documents
    return list(_entries(jobs))


def _vet(text: str) -> None:
    """Check the parser's events one by one, before anything is built."""
    depth = 0
    for event in yaml.parse(text, _LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise UnreadableList(
                f"{_line(event)}a reference (*{event.anchor}) is not supported", "write it out"
            )
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise UnreadableList(f"{_line(event)}nested too deeply")


def _line(event: yaml.Event) -> str:
    return f"line {event.start_mark.line + 1}: " if event.start_mark is not None else ""


def _words(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}: " if mark is not None else ""
    return f"{where}{getattr(error, 'problem', None) or error}"


def _entries(jobs: list[object]) -> Iterator[Entry]:
    for number, job in enumerate(jobs, 1):
        where = f"job {number}"
        yield (
            _entry(where, job)
            if isinstance(job, dict)
            else SkippedEntry(where, str(job), "not a job")
        )


def _entry(where: str, job: dict[object, object]) -> Entry:
    name = _text(job.get("name"))
    url = _text(job.get("url")) or _text(job.get("navigate"))
    if not url:
        what = "a command, which is never run" if "command" in job or "shell" in job else "no URL"
        return SkippedEntry(where, name or _text(job.get("command")), what)
    if _text(job.get("enabled")).lower() in _NO:
        return SkippedEntry(where, url, "not enabled")
    lost = [str(key)[:_SHOWN] for key in job if key not in _PLAIN]
    if "navigate" in job:
        lost.append("a browser that runs JavaScript")
    return WatchedSite(where, url, name, lost=tuple(lost))


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
