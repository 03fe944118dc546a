"""The lists of what users hold on to: verbs, settings, tables, and the keys of JSON.

``surface.json`` has them. Whoever moves code changes nothing there; a line that is added or taken
away there is a change of what Freshet offers. After one, run ``python -m tests.test_surface``.
"""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import BaseModel
from typer.main import get_command

from freshet.config.settings import settings_model
from freshet.crawler.cli.verbs import application, lines
from tests.integration.scripted import scripted
from tests.integration.test_commands import LOCAL, Shell, links, page

LISTS = Path(__file__).with_name("surface.json")
#: Keys of objects whose keys are data: hosts, kinds and so on.
DATA = frozenset({"bounds", "by_kind", "by_outcome", "observations", "refused", "verdicts"})
RULES = """
[search]
index = "on"
queries = "made"
[[alerts.rules]]
name = "all"
match = "*"
url = "log:"
"""


def verbs() -> Iterator[str]:
    """Return each verb with its options, in the order of the help."""
    for verb, line in lines().items():
        yield f"{verb}: {line}"
        group: Any = get_command(application([verb]))
        yield from parameters(verb, group.commands[verb])


def parameters(path: str, command: Any) -> Iterator[str]:
    for each in command.params:
        yield f"{path} {'/'.join((*each.opts, *each.secondary_opts))}"
    for name, inner in getattr(command, "commands", {}).items():
        yield from parameters(f"{path} {name}", inner)


def settings(kind: type[BaseModel], path: str = "") -> Iterator[str]:
    """Return the keys of the settings, the groups in alphabetical order."""
    for name, field in sorted(kind.model_fields.items()):
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from settings(inner, f"{path}{name}.")
        else:
            yield f"{path}{name}"


def tables(store: Path) -> Iterator[str]:
    """Return tables, views, indexes and triggers, the first two with their columns."""
    with closing(sqlite3.connect(store)) as db:
        made = db.execute("SELECT type, name FROM sqlite_master ORDER BY type, name").fetchall()
        for kind, name in made:
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({name})")]
            yield f"{kind} {name}: {', '.join(columns)}" if columns else f"{kind} {name}"


def keys(value: object, path: str) -> Iterator[str]:
    """Return the paths to the values of a JSON object."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}.{key}"
            if key not in DATA:
                yield from keys(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner, f"{path}[]")


async def recorded(folder: Path) -> dict[str, list[str]]:
    """Return all lists, those of JSON and tables of a store that was crawled and kept here."""
    shell = Shell(folder)
    (folder / "freshet.toml").write_text(RULES)
    pages = {"/": page(0, links("/1", "/2")), "/1": page(1), "/2": page(2)}
    found: list[str] = []
    async with scripted({"a": pages}) as sites:
        site = f"{sites.origin('a')}/"
        crawls: tuple[tuple[str, ...], ...] = (
            ("crawl", site, *LOCAL, "--archive", "warc"),
            ("crawl", site, *LOCAL),
            ("daemon", *LOCAL, "--budget", "100000/day", "--time-limit", "1"),
        )
        for words in crawls:
            found += keys(await shell.json(*words), words[0])
            pages["/1"] = page(3)
        shows: tuple[tuple[str, ...], ...] = (
            ("status",), ("changes",), ("diff", f"{site}1"), ("history", site),
            ("search", "stone"), ("explain", site), ("signals",), ("duplicates",), ("alerts",),
            ("check", site, "--allow-private-addresses"), ("gc",), ("doctor",),
            ("archive", "warc"), ("plan", "--budget", "10/day"),
        )  # fmt: skip
        for verb, *others in shows:
            code, told, complaint = await shell(verb, *others, "--json")
            assert told.startswith("{"), (verb, code, told, complaint)
            found += keys(json.loads(told), verb)
        _, told, _ = await shell("changefeed")
        found += [each for line in told.splitlines() for each in keys(json.loads(line), "feed")]
    return {
        "verbs": list(verbs()),
        "settings": list(settings(settings_model())),
        "tables": list(tables(folder / "crawl.db")),
        "json": sorted(set(found)),
    }


async def test_verbs_settings_tables_and_json_are_those_of_before(tmp_path: Path) -> None:
    expected, found = json.loads(LISTS.read_text()), await recorded(tmp_path)
    for name, before in expected.items():
        now = found[name]
        assert (sorted({*now} - {*before}), sorted({*before} - {*now})) == ([], []), name
    assert found["verbs"] == expected["verbs"]


if __name__ == "__main__":
    with TemporaryDirectory() as chosen:
        LISTS.write_text(f"{json.dumps(asyncio.run(recorded(Path(chosen))), indent=1)}\n")
