"""What a running daemon takes over when it is told to read everything again."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from freshet.config.settings import Settings
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.run import daemon
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.logs import REPORTS
from freshet.crawler.run.orders import DaemonOrder
from freshet.storage.database import Database, open_store
from tests.integration.quick import quick, unwatched
from tests.integration.test_daemon import DAY_S, Stage

RELOAD_AT = 200
Change = Callable[[DaemonOrder], DaemonOrder]


@pytest.fixture(autouse=True)
def _reports(caplog: pytest.LogCaptureFixture) -> None:
    """Hear what a daemon reports, whatever level another test has left."""
    caplog.set_level("INFO")


def sites(*names: str) -> Change:
    urls = [f"http://{name}.localhost/" for name in names]
    return lambda order: replace(order, seeds=seeds_from_arguments(urls).seeds)


def asked_for(**changes: object) -> Change:
    return lambda order: replace(order, settings=quick(**changes))


async def kept(stage: Stage, names: list[str], then: Change, settings: Settings) -> list[str]:
    """The URLs asked for after a reload at the 200th of 480 requests."""
    stage.server.hang_up_at = RELOAD_AT
    urls = [f"http://{name}.localhost/" for name in names]
    order = DaemonOrder(stage.db, seeds_from_arguments(urls).seeds, 240.0, time_limit_s=2 * DAY_S)
    await keep(
        settings, order, reread=partial(then, order), watch=unwatched, fetcher=stage.server,
        clock=stage.clock, rng=Random(1),
    )  # fmt: skip
    return [url for _, url in stage.server.asked[RELOAD_AT + 1 :]]


def host(url: str) -> str:
    return url.split("/")[2].partition(".")[0]


@pytest.mark.long
async def test_a_site_that_is_taken_out_of_the_list_is_left_alone(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    later = await kept(stage, ["news", "docs"], sites("docs", "wiki"), quick())
    assert {host(url) for url in later} == {"docs", "wiki"}
    assert ", 1 seeds added, 1 removed" in caplog.text
    known = stage.rows("SELECT count(*) FROM page WHERE url LIKE '%news%' AND checked_at NOTNULL")
    assert int(str(known[0][0])) > 5


@pytest.mark.long
async def test_a_daemon_keeps_the_sites_that_it_is_given_and_without_any_all_of_the_store(
    stage: Stage,
) -> None:
    await stage.keep(400.0, 0.5, ["news", "docs"])
    before = len(stage.server.asked)
    await stage.keep(400.0, 0.25, ["docs"])
    given = {host(url) for _, url in stage.server.asked[before:]}
    before = len(stage.server.asked)
    order = DaemonOrder(stage.db, [], 400.0, time_limit_s=0.5 * DAY_S)
    await keep(
        quick(), order, watch=unwatched, fetcher=stage.server, clock=stage.clock, rng=Random(1)
    )
    assert given == {"docs"}
    assert {host(url) for _, url in stage.server.asked[before:]} == {"news", "docs"}


@pytest.mark.long
async def test_rules_and_the_share_of_audits_are_taken_over(stage: Stage) -> None:
    then = asked_for(
        sites=[{"match": "http://news.localhost/2*", "never": True}], daemon__audit_share=0.5
    )
    later = await kept(stage, ["news", "docs"], then, quick(daemon__audit_share=0.0))
    assert not [url for url in later if url.startswith("http://news.localhost/2")]
    (visits,) = stage.rows("SELECT count(*), min(observation_id) FROM audit")
    assert int(str(visits[0])) > 80


@pytest.mark.long
async def test_a_longer_delay_holds_at_once_and_what_needs_a_restart_is_named(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    then = asked_for(politeness__delay_s=3_600.0, crawl__max_depth=3, politeness__key="domain")
    await kept(stage, ["news"], then, quick())
    times = [at for at, _ in stage.server.asked[RELOAD_AT + 1 :]]
    assert min(b - a for a, b in pairwise(times)) >= 3_600.0
    assert "; restart the daemon to apply crawl.max_depth, politeness.key" in caplog.text


async def test_a_signal_before_there_is_a_daemon_is_heeded_by_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def told_meanwhile(path: Path, *, owner: str) -> Database:
        os.kill(os.getpid(), signal.SIGHUP)
        return await open_store(path, owner=owner)

    monkeypatch.setattr(daemon, "open_store", told_meanwhile)
    caplog.set_level("INFO", REPORTS)
    order = DaemonOrder(
        stage.db, seeds_from_arguments(["http://news.localhost/"]).seeds, 240.0,
        time_limit_s=DAY_S / 24,
    )  # fmt: skip
    await keep(
        quick(), order, reread=lambda: replace(order, budget=480.0), watch=unwatched,
        fetcher=stage.server, clock=stage.clock, rng=Random(1),
    )  # fmt: skip
    assert "reloaded: 480 requests a day" in caplog.text
    assert len(stage.server.asked) == pytest.approx(20, abs=1)


@pytest.mark.long
async def test_daily_upkeep_comes_although_it_is_reloaded_more_often(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_up: list[float] = []

    async def noted(
        _database: object, _run: object, since: float, now: float, _rules: object
    ) -> list[object]:
        kept_up.append((now - since) / DAY_S)
        return []

    def hang_up_again(order: DaemonOrder) -> DaemonOrder:
        stage.server.hang_up_at = len(stage.server.asked) + 100
        return order

    monkeypatch.setattr(daemon, "correct", noted)
    await kept(stage, ["news"], hang_up_again, quick())
    assert kept_up == pytest.approx([1.0, 1.0], abs=0.01)
