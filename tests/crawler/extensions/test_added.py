"""An index and a path of the HTTP API that another package adds by its entry points."""

import asyncio
import json
from pathlib import Path

import aiohttp

from tests.integration.hubs import free_port
from tests.integration.scripted import scripted
from tests.integration.test_commands import LOCAL, Shell, links, page

THEIRS = '''
import sys, types
from importlib.metadata import EntryPoint
from freshet import entry_points

theirs = types.ModuleType("theirs")
sys.modules["theirs"] = theirs
source = """
import json
from freshet.crawler.run.wiring import RunIndex

class Words(RunIndex):
    exists = True
    def lines(self, title, texts, kinds):
        return f"{title}: {len(texts)} blocks"
    def record(self, db, visits, documents, now):
        with open("words.jsonl", "a") as file:
            for visit in visits:
                if visit.capture is not None and visit.due.page_id in documents:
                    print(json.dumps([visit.due.url, visit.capture.words]), file=file)
    async def keep_up(self, database, parser, settings, now):
        open("kept_up", "w").close()

def prepare(path, settings):
    open("prepared", "w").close()

async def open_index(database, settings):
    return Words()

def forget(db, page_ids):
    with open("forgotten", "w") as file:
        print(*page_ids, file=file)

def compact(db):
    pass

class Greeting:
    def __init__(self, api, settings):
        from aiohttp import web
        self.routes = [web.get("/v1/greeting", self._greet)]
    async def _greet(self, request):
        from freshet.crawler.service.http import whole
        return whole({"hello": "reader"}, name="")
"""
exec(source, vars(theirs))
theirs.Greeting.__module__ = "freshet.crawler.read.api"
declared = entry_points._declared
entry_points._declared = lambda: (
    EntryPoint("theirs", "theirs", "freshet.indexes"),
    EntryPoint("theirs", "theirs:Greeting", "freshet.routes"),
    *(each for each in declared() if each.group != "freshet.indexes"),
)
'''


async def test_an_index_of_another_package_follows_visits_and_what_is_forgotten(
    tmp_path: Path,
) -> None:
    shell = Shell(tmp_path)
    async with scripted({"a": {"/": page(0, links("/1")), "/1": page(1)}}) as sites:
        site = f"{sites.origin('a')}/"
        crawled = await shell("crawl", site, *LOCAL, "--db", "a.db", before=THEIRS)
        assert crawled[0] == 0, crawled
        told = [json.loads(line) for line in (tmp_path / "words.jsonl").read_text().splitlines()]
        assert [url for url, _ in told] == [site, f"{site}1"]
        assert all(words.startswith("Page ") for _, words in told)
        assert (tmp_path / "prepared").exists()
        assert (tmp_path / "kept_up").exists()
        forgotten = await shell("forget", f"{site}1", "--db", "a.db", before=THEIRS)
    assert forgotten[0] == 0, forgotten
    assert (tmp_path / "forgotten").read_text().split() == ["2"]


async def test_a_path_of_another_package_is_answered(tmp_path: Path) -> None:
    shell, port = Shell(tmp_path), free_port()
    async with scripted({"a": {"/": page(0)}}) as sites:
        assert (await shell("crawl", f"{sites.origin('a')}/", *LOCAL, "--db", "a.db"))[0] == 0
    serving = await shell.start(
        "serve", "--db", "a.db", "--listen", f"127.0.0.1:{port}", before=THEIRS
    )
    try:
        assert serving.stderr is not None
        assert b"listening" in await asyncio.wait_for(serving.stderr.readline(), 30)
        async with (
            aiohttp.ClientSession(f"http://127.0.0.1:{port}") as programs,
            programs.get("/v1/greeting") as answer,
        ):
            assert (answer.status, await answer.json()) == (200, {"hello": "reader"})
    finally:
        serving.terminate()
        await serving.communicate()
