"""Freshet without extensions: each is hidden, then all, as if its folder had been deleted."""

import asyncio
import json
import re
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import aiohttp
import pytest

from tests.integration.hubs import free_port
from tests.integration.scripted import scripted
from tests.integration.test_commands import LOCAL, Shell, links, page

ROOT = Path(__file__).parents[3]
FOLDERS = ROOT / "crawler/extensions"
NAMES = sorted(each.parent.name for each in FOLDERS.glob("*/__init__.py"))
#: Of these nobody finds the entry points, and an import fails.
HIDING = """
import sys
from freshet import entry_points
hidden = {hidden!r}
class Deleted:
    def find_spec(self, name, path=None, target=None):
        if any(f"{{name}}.".startswith(f"freshet.crawler.extensions.{{each}}.") for each in hidden):
            raise ModuleNotFoundError(f"{{name}} was deleted", name=name)
sys.meta_path.insert(0, Deleted())
declared = entry_points._declared
entry_points._declared = lambda: [
    each for each in declared()
    if not any(f".extensions.{{one}}." in f"{{each.value}}.".replace(":", ".") for one in hidden)
]
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


#: All together, and each by itself.
SETS = [
    pytest.param(tuple(NAMES), id="all"),
    *(pytest.param((each,), id=each, marks=pytest.mark.long) for each in NAMES),
]


@pytest.mark.parametrize("hidden", SETS)
async def test_a_crawl_a_recrawl_and_a_replay(shell: Shell, hidden: tuple[str, ...]) -> None:
    before = HIDING.format(hidden=hidden)
    pages = {"/": page(0, links("/1", "/2")), "/1": page(1), "/2": page(2)}
    async with scripted({"a": pages}) as sites:
        site, warc = f"{sites.origin('a')}/", ("--archive", "archive")
        first = await shell("crawl", site, *LOCAL, *warc, "--db", "a.db", before=before)
        assert (first[0], json.loads(first[1])["pages"]) == (0, 3), first
        # A store that was written with all of them goes on without, and with them again.
        for each in ("", before, ""):
            again = await shell("crawl", *LOCAL, "--db", "b.db", site, before=each)
            assert (again[0], json.loads(again[1])["pages"]) == (0, 3), again
        daemon = ("daemon", "--db", "b.db", "--budget", "100000/day", "--time-limit", "2")
        kept = await shell(*daemon, *LOCAL, before=before)
        assert kept[0] == 0, kept
        replayed = await shell("replay", "archive", "--db", "c.db", "--json", before=before)
        assert replayed[0] == 0, replayed
    for path in shell.directory.glob("?.db"):
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("PRAGMA foreign_key_check").fetchall() == []
            assert db.execute("SELECT count(*) FROM observation").fetchone()[0] >= 3


async def test_a_page_that_is_forgotten_takes_the_rows_of_hidden_extensions_along(
    shell: Shell,
) -> None:
    async with scripted({"a": {"/": page(0)}}) as sites:
        assert (await shell("crawl", f"{sites.origin('a')}/", *LOCAL, "--db", "a.db"))[0] == 0
        with closing(sqlite3.connect(shell.directory / "a.db")) as db, db:
            values = "1, 'hub', 'topic', 'token', 'secret', 'active', 9e9, 0, 9e9, 0, ''"
            db.execute(f"INSERT INTO subscription VALUES ({values})")
        words = ("forget", f"{sites.origin('a')}/", "--db", "a.db")
        forgotten = await shell(*words, before=HIDING.format(hidden=NAMES))
        assert forgotten[0] == 0, forgotten
        with closing(sqlite3.connect(shell.directory / "a.db")) as db:
            assert db.execute("SELECT count(*) FROM subscription").fetchone() == (0,)


@pytest.mark.parametrize(
    "hidden",
    [
        pytest.param(("search",), marks=pytest.mark.long),
        pytest.param(("readers",), marks=pytest.mark.long),
        ("search", "readers"),
    ],
    ids="-".join,
)
async def test_an_index_that_others_wrote_beside_is_right_when_it_is_back(
    shell: Shell, hidden: tuple[str, ...]
) -> None:
    before = HIDING.format(hidden=hidden)
    pages = {"/": page(0, links("/1", "/2", "/3")), **{f"/{n}": page(n) for n in (1, 2, 3)}}
    pages["/1"] = page(1, "<p>quartzite</p>")
    async with scripted({"a": pages}) as sites:
        site = f"{sites.origin('a')}/"
        crawl = ("crawl", site, *LOCAL, "--db", "a.db")
        assert (await shell(*crawl, "--index", "on", "--queries", "made"))[0] == 0
        indexed = await shell.json("search", "quartzite", "--db", "a.db", "--json")
        assert [it["url"] for it in indexed["results"]] == [f"{site}1"]
        pages["/2"] = page(2, "<p>quartzite</p>")
        del pages["/1"]
        assert (await shell(*crawl, before=before))[0] == 0
        forgotten = await shell(
            "forget", f"{site}3", "--keep-refusing", "--db", "a.db", before=before
        )
        assert forgotten[0] == 0, forgotten
        assert (await shell(*crawl))[0] == 0
        found = await shell.json("search", "quartzite", "--db", "a.db", "--json")
        assert [it["url"] for it in found["results"]] == [f"{site}2"]
        with closing(sqlite3.connect(shell.directory / "a.db")) as db:
            told = db.execute("SELECT url FROM search_page JOIN page ON page_id = id").fetchall()
        assert sorted(url for (url,) in told) == [site, f"{site}2"]
        assert (found["indexed"], found["not_indexed"]) == (2, 0)
    with closing(sqlite3.connect(shell.directory / "a.db")) as db, db:
        db.execute("INSERT INTO search_words (search_words) VALUES ('integrity-check')")
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []


async def test_programs_are_answered_without_the_pages_for_people(shell: Shell) -> None:
    async with scripted({"a": {"/": page(0)}}) as sites:
        assert (await shell("crawl", f"{sites.origin('a')}/", *LOCAL, "--db", "a.db"))[0] == 0
    before, port = HIDING.format(hidden=NAMES), free_port()
    serving = await shell.start(
        "serve", "--db", "a.db", "--listen", f"127.0.0.1:{port}", before=before
    )
    try:
        assert serving.stderr is not None
        assert b"listening" in await asyncio.wait_for(serving.stderr.readline(), 30)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as programs:
            codes = []
            for path in ("/v1/changefeed", "/", "/search"):
                async with programs.get(path) as answer:
                    codes.append(answer.status)
    finally:
        serving.terminate()
        await serving.communicate()
    assert codes == [200, 404, 404]


async def test_settings_of_a_hidden_extension_are_no_settings(shell: Shell) -> None:
    (shell.directory / "freshet.toml").write_text('[receiver]\nlisten = "127.0.0.1:0"\n')
    told = await shell("config", "show", before=HIDING.format(hidden=("push",)))
    assert told[0] == 2
    assert "receiver.listen is not a setting" in told[2]


def test_every_entry_point_of_ours_is_of_an_extension_or_a_policy() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    places = {
        value for name in groups.keys() - {"freshet.policies"} for value in groups[name].values()
    }
    assert {re.split(r"[.:]", value)[3] for value in places} == set(NAMES)
