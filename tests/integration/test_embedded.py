"""Crawls and daemons in another program's event loop."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import freshet
from freshet.crawler.extensions.lab.synthetic_web.web import WebSpec, mixed
from scripts.synthetic_server import WebServer, serve
from tests.console import freshet as console
from tests.integration.quick import QUICK
from tests.storage.small_store import rows

DAY_S = 86_400.0


@dataclass
class Host:
    """A program with a site of its own and a store."""

    db: Path
    server: WebServer
    visits: list[tuple[str, freshet.Observation]] = field(default_factory=list)

    @property
    def site(self) -> str:
        return self.server.url("news")

    def on_visit(self, url: str, observation: freshet.Observation) -> None:
        """Note a visit, which stands in the file already."""
        sql = "SELECT count(*) FROM observation JOIN page ON page.id = page_id WHERE url = ?"
        assert rows(self.db, f"{sql} AND at = ?", url, observation.at) == [(1,)]
        self.visits.append((url, observation))

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        return rows(self.db, sql)

    async def crawl(self, *sites: str, **options: object) -> Any:
        given = {"store": self.db, "settings": QUICK, "on_visit": self.on_visit} | options
        return await freshet.crawl(sites, **given)  # type: ignore[arg-type]

    def daemon(self, **options: object) -> freshet.Daemon:
        given = {"store": self.db, "budget": "1000000/day", "settings": QUICK} | options
        return freshet.Daemon([self.site], **given)  # type: ignore[arg-type]


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    """A program; its signals, logging, tasks and threads are in the end as they were before."""

    def state() -> tuple[object, ...]:
        for each in threading.enumerate():
            if "_connection_worker_thread" in each.name:
                # It has answered for the last time.
                each.join(60)
        # The runner of a test has its own SIGINT.
        handlers = [signal.getsignal(each) for each in signal.valid_signals() - {signal.SIGINT}]
        ours = [each.name for each in threading.enumerate() if not each.name.startswith("asyncio")]
        return handlers, logging.getLogger().handlers[:], ours, len(asyncio.all_tasks())

    async with serve(mixed(WebSpec(hosts=1, pages_per_host=8))) as server:
        before = state()
        yield Host(tmp_path / "crawl.db", server)
        assert state() == before


def handlers() -> list[object]:
    return [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]


async def test_a_crawl_calls_back_for_each_committed_visit(host: Host) -> None:
    before = handlers()

    def on_visit(url: str, observation: freshet.Observation) -> None:
        host.on_visit(url, observation)
        assert handlers() == before

    report = await host.crawl(host.site, on_visit=on_visit)
    assert report.ending == "nothing due"
    assert report.pages == len(host.visits) == len({url for url, _ in host.visits}) > 5
    assert {each.kind for _, each in host.visits} == {"new"}


async def test_an_exception_of_a_callback_is_logged_once_and_ends_nothing(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    called = []

    def fails(url: str, _observation: freshet.Observation) -> None:
        called.append(url)
        raise RuntimeError("ours")

    report = await host.crawl(host.site, on_visit=fails)
    assert report.pages == len(called) > 5
    assert [each.message for each in caplog.records if each.exc_info] == [
        "on_visit failed; the crawl goes on, and calls it again"
    ]


async def test_a_cancelled_crawl_keeps_what_is_committed_and_is_resumed(host: Host) -> None:
    def seen(url: str, observation: freshet.Observation) -> None:
        host.on_visit(url, observation)
        work.cancel()

    settings = {**QUICK, "store.batch": 1}
    work = asyncio.create_task(host.crawl(host.site, settings=settings, on_visit=seen))
    with pytest.raises(asyncio.CancelledError):
        await work
    before = len(host.visits)
    assert before
    report = await host.crawl()
    assert report.resumed
    assert len({url for url, _ in host.visits}) == len(host.visits) > before


async def test_a_wrong_setting_is_the_line_of_the_command(host: Host) -> None:
    with pytest.raises(freshet.ConfigError) as caught:
        await host.crawl(host.site, settings={"politeness.delay_s": -1})
    result = await asyncio.to_thread(console, "crawl", host.site, "--delay", "-1", "--db", host.db)
    line = str(caught.value).replace("-1:", "-1.0:").replace("settings:", "command line:")
    assert (result.exit_code, result.stderr) == (2, f"freshet: {line}\n")
    with pytest.raises(ValueError, match="did you mean politeness"):
        await host.crawl(host.site, settings={"politeness.delay": 1})


@pytest.mark.parametrize(
    ("sites", "error", "message"),
    [
        ((), ValueError, "there is nothing to crawl"),
        (("two words",), ValueError, "two words: more than a URL"),
        (("https://example.org",), freshet.CrawlError, "a crawler must say who runs it"),
    ],
)
async def test_a_crawl_that_cannot_be_done_raises(
    host: Host, sites: tuple[str, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        await host.crawl(*sites)
    assert not host.db.exists()


async def test_sites_may_come_from_a_file_and_the_scope_of_a_store_stays(
    host: Host, tmp_path: Path
) -> None:
    file = tmp_path / "sites.csv"
    file.write_text(f"url,importance\n{host.site},3\n")
    report = await freshet.crawl(file, store=host.db, settings={**QUICK, "crawl.scope": "prefix"})
    assert report.pages > 5
    assert host.rows("SELECT importance FROM seed") == [(3.0,)]
    await host.crawl()
    sql = "SELECT DISTINCT settings ->> '$.crawl.scope' FROM crawl_run"
    assert host.rows(sql) == [("prefix",)]


async def test_a_store_is_followed_beside_a_daemon_which_drains_at_the_end(host: Host) -> None:
    before = handlers()
    async with asyncio.timeout(100), host.daemon(on_visit=host.on_visit) as daemon:
        assert handlers() == before
        with freshet.Store(host.db) as store:
            async for change in store.changefeed(wait=True):
                assert change.doc is not None
                assert change.doc.url == change.id
                if store.history(change.id)[-1].kind == "new" and len(host.visits) > 2:
                    break
        told = await asyncio.to_thread(console, "status", "--db", host.db, "--json")
        assert f'"process": {os.getpid()}' in told.stdout
        refused = await asyncio.to_thread(console, "reload", "--db", host.db)
        assert refused.exit_code == 1
        assert "another program runs one inside it" in refused.stderr
        with pytest.raises(freshet.StoreError, match="a freshet embedded daemon"):
            await host.crawl()
    assert daemon.report is not None
    assert daemon.report.ending == "interrupted"
    assert host.rows("SELECT state FROM crawl_run") == [("ended",)]
    sql = "SELECT count(*) FROM observation AS o JOIN page ON page.id = page_id WHERE role = 'page'"
    assert host.rows(sql) == [(len(host.visits),)]


async def test_a_daemon_runs_until_another_task_stops_it(host: Host) -> None:
    began = asyncio.Event()
    daemon = host.daemon(on_visit=lambda *_: began.set())
    work = asyncio.create_task(daemon.run())
    async with asyncio.timeout(100):
        await began.wait()
        await daemon.stop()
    assert work.result() is daemon.report
    # One that is stopped before it begins makes no request.
    daemon = host.daemon()
    work = asyncio.create_task(daemon.run())
    await asyncio.sleep(0)
    await daemon.stop()
    assert (await work).fetches == 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"budget": "many"}, ValueError, "many: must be a number of requests above 0"),
        ({"policy": "none"}, ValueError, "none"),
        ({"settings": {"daemon.budgets": 1}}, freshet.ConfigError, "did you mean daemon"),
    ],
)
async def test_a_daemon_that_cannot_begin_says_why(
    host: Host, options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        async with host.daemon(**options):
            raise AssertionError
    with pytest.raises(error, match=message):
        await host.daemon(**options).run()


async def test_a_block_that_fails_ends_its_daemon(host: Host) -> None:
    with pytest.raises(RuntimeError, match="ours"):
        async with host.daemon():
            raise RuntimeError("ours")
    assert host.rows("SELECT state FROM crawl_run") == [("ended",)]
