"""After an upgrade that reads pages otherwise only what truly changed is reported."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.cli import rereduce
from freshet.crawler.extensions.search.tables import unpacked
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.reduce import page, parser_process
from freshet.crawler.reduce.page import ParsedPage
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.crawler.run.orders import CrawlReport
from freshet.storage.database import reading
from freshet.storage.queries import columns, overview
from freshet.storage.records import FetchResult
from tests.console import as_json, freshet
from tests.integration.quick import quick, unwatched
from tests.storage.small_store import rows

ROOT = Path(__file__).parents[2]
SITE = "http://site.localhost"
START, DAY_S = 1.8e9, 86_400.0
NAMES = ("/", "/edited", "/still", "/unkept", *(f"/more-{n}" for n in range(5)))


class Site:
    """Pages whose bytes differ at each visit, and whose texts only where a test says so."""

    def __init__(self) -> None:
        self.clock = VirtualClock(START)
        self.edits: dict[str, str] = {}
        self._asked = 0

    async def fetch(self, request: Request) -> FetchResult:
        self._asked += 1
        path = request.url.removeprefix(SITE)
        found = partial(FetchResult, request.url, started_at=self.clock.now(), duration_s=0.01)
        if path not in NAMES:
            return found(outcome="gone", status=404)
        links = "".join(f"<li><a href={name}>go to {name}</a></li>" for name in NAMES)
        robots = "<meta name=robots content=noarchive>" if path == "/unkept" else ""
        rows = "".join(f"<p>Of {path} this is paragraph {n}, with words.</p>" for n in range(30))
        body = (
            f"<!-- {self._asked} --><title>{path}</title>{robots}<nav><ul>{links}</ul></nav>"
            f"<main><h1>Page {path}</h1>{rows}<p>{self.edits.get(path, 'As ever.')}</p></main>"
        )
        headers = ((b"Content-Type", b"text/html; charset=utf-8"),)
        return found(outcome="fetched", status=200, headers=headers, body=body.encode())

    async def crawl(self, db: Path) -> CrawlReport:
        self.clock.go_on_from(self.clock.now() + DAY_S)
        order = CrawlOrder(db, seeds_from_arguments([f"{SITE}/"]).seeds)
        settings = quick(sitemaps__max_entries=1, search__index="on")
        return await crawl(settings, order, watch=unwatched, fetcher=self, clock=self.clock)


def upgrade(patch: Callable[[object, str, object], None]) -> None:
    """Let the program extract another text from each page."""

    def parse(*arguments: object, **options: object) -> ParsedPage:
        parsed = page.parse(*arguments, **options)  # type: ignore[arg-type]
        texts = tuple(text.replace("paragraph", "section") for text in parsed.blocks.texts)
        return replace(parsed, blocks=replace(parsed.blocks, texts=texts), sketch=None)

    patch(parser_process, "TEXT_VERSION", "next")
    patch(parser_process, "parse", parse)


def killed_after_two_batches(db: str) -> None:
    """Read a store's bodies again, until this process is killed."""
    upgrade(setattr)
    told = 0

    def tell(_what: str, _share: float) -> None:
        nonlocal told
        told += 1
        if told == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(rereduce._rereduce(Path(db), quick(), tell))


def kinds(db: Path, at_least: float) -> dict[str, tuple[str, str | None]]:
    found = rows(
        db,
        "SELECT substr(p.url, 22), f.kind, f.reason FROM finding AS f "
        "JOIN page AS p ON p.id = f.page_id "
        f"WHERE f.at > {at_least} AND p.role = 'page' AND f.kind <> 'gone'",
    )
    return {path or "/": (kind, reason) for path, kind, reason in found}


def reread(db: Path) -> dict[str, float]:
    told: dict[str, float] = as_json("rereduce", "--db", db)
    return told


@pytest.fixture
def site(tmp_path: Path) -> tuple[Site, Path]:
    """A site that was crawled twice, before the upgrade."""
    found, db = Site(), tmp_path / "crawl.db"
    for _ in range(2):
        asyncio.run(found.crawl(db))
    return found, db


def test_after_rereading_only_what_truly_changed_is_reported(
    site: tuple[Site, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    visited, db = site
    upgrade(monkeypatch.setattr)
    told = reread(db)
    others = len(NAMES) - 1
    assert told["pages"] == len(NAMES)
    assert (told["reread"], told["other_texts"], told["without_body"]) == (others, others, 1)
    assert reread(db)["reread"] == 0
    words = [unpacked(packed) for (packed,) in rows(db, "SELECT words FROM search_page")]
    assert sum("of still this is section" in each for each in words) == 1
    assert sum("this is section" in each for each in words) == others
    shown = freshet("rereduce", "--db", db).stdout
    assert f"0 pages of {len(NAMES)} extracted again" in shown
    assert "1 page not extracted (1 without a stored body, 0 unreadable)" in shown
    visited.edits["/edited"] = "As never before."
    at = visited.clock.now() + 1.0
    report = asyncio.run(visited.crawl(db))
    assert (report.changed, report.new, report.appeared) == (1, 0, [])
    assert [changed.url for changed in report.changed_pages] == [f"{SITE}/edited"]
    found = kinds(db, at)
    assert found.pop("/edited")[0] == "changed"
    assert found.pop("/unkept") == ("new", "text_version")
    assert set(found.values()) == {("unchanged", None)}


def test_without_rereading_each_page_is_read_again_at_its_visit(
    site: tuple[Site, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    visited, db = site
    upgrade(monkeypatch.setattr)
    visited.edits["/edited"] = "As never before."
    at = visited.clock.now() + 1.0
    report = asyncio.run(visited.crawl(db))
    assert (report.pages, report.changed, report.new) == (len(NAMES), 1, 0)
    assert report.appeared == []
    found = kinds(db, at)
    # Where the last bytes are not kept, the page takes a new baseline that teaches nothing.
    assert found.pop("/unkept") == ("new", "text_version")
    assert found.pop("/edited")[0] == "changed"
    assert set(found.values()) == {("unchanged", None)}
    assert asyncio.run(told_since(db, at)) == (len(NAMES) - 1, [f"{SITE}/edited"])
    # And from then on it is as ever.
    visited.edits["/still"] = "As never before."
    at = visited.clock.now() + 1.0
    assert asyncio.run(visited.crawl(db)).changed == 1
    assert kinds(db, at)["/still"][0] == "changed"
    assert asyncio.run(told_since(db, at)) == (len(NAMES), [f"{SITE}/still"])


async def told_since(db: Path, at: float) -> tuple[int, list[str]]:
    """Count the visits from which change rates are learnt, and list what `changes` shows."""
    async with reading(db) as connection:
        visits = await columns.visit_columns(connection)
        shown, _ = await overview.since(connection, at, 100, all_kinds=True)
    return int((visits.compared & (visits.at > at)).sum()), [
        change.url for change in shown if change.kind != "unchanged"
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="kills a process")
def test_killed_and_run_again_it_has_the_same_result(
    site: tuple[Site, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, db = site
    monkeypatch.setattr(rereduce, "_BATCH", 3)
    whole = tmp_path / "whole.db"
    with closing(sqlite3.connect(db)) as source, closing(sqlite3.connect(whole)) as target:
        source.backup(target)
    program = (
        "import sys; from freshet.crawler.cli import rereduce; rereduce._BATCH = 3; "
        "from tests.integration.test_rereduce import killed_after_two_batches as main; "
        "main(sys.argv[1])"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(db)], cwd=ROOT, check=False)
    assert ended.returncode == -signal.SIGKILL
    upgrade(monkeypatch.setattr)
    rest, all_of_it = reread(db), reread(whole)
    assert 0 < rest["reread"] < all_of_it["reread"]
    for table in (
        "version",
        "page",
        "memory",
        "search_page",
        "lsh",
        "lsh_page",
        "lsh_bucket",
        "lsh_group",
    ):
        assert rows(db, f"SELECT * FROM {table}") == rows(whole, f"SELECT * FROM {table}")
