"""The daemon over HTTP on a site that it has never seen, by the server's log and the truth."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median

import numpy as np
import pytest
from numpy.typing import NDArray

from freshet.config.settings import Settings
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.fetch.client import Fetcher, Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.network import Network
from freshet.crawler.run.orders import DaemonOrder
from freshet.scheduler.queue.audit import staleness
from freshet.storage.database import reading
from freshet.storage.queries import columns
from freshet.storage.records import FetchResult
from scripts.benchmarks.daemon_sites import Costs, Page, load_pages
from tests.integration.quick import quick, unwatched
from tests.integration.timeserver import FOLDER, NO_FOLDER, History, served

DAY_S = 86_400.0
HOUR_S = 3_600.0
DELAY_S = 900.0
#: A daemon that is told nothing else calls every other main text a change.
ANY_CHANGE = 1.0
#: A week in which politeness binds (5 requests an hour, 4 are allowed), and two of one an hour.
FAST, SLOW = 120.0, 24.0

pytestmark = [pytest.mark.long, pytest.mark.skipif(FOLDER is None, reason=NO_FOLDER)]


@dataclass(slots=True)
class Driven:
    """The network, at whose other end it is the daemon's time."""

    network: Fetcher
    history: History
    clock: VirtualClock

    async def fetch(self, request: Request) -> FetchResult:
        self.history.set_clock(self.clock.now())
        return await self.network.fetch(request)


async def kept(
    history: History, db: Path, settings: Settings, clock: VirtualClock, budget: float, days: float
) -> None:
    """Run a daemon to the end of these days."""
    network = Network(settings, clock)
    origin = next(iter(history.hosts))
    order = DaemonOrder(
        db, seeds_from_arguments([f"{origin}/"]).seeds, budget, time_limit_s=days * DAY_S
    )
    try:
        await keep(
            settings, order, watch=unwatched, fetcher=Driven(network.fetcher, history, clock),
            clock=clock, rng=Random(1),
        )  # fmt: skip
    finally:
        await network.close()


def most_in_an_hour(times: Sequence[float]) -> int:
    """The most requests in any hour."""
    first, most = 0, 0
    for last, at in enumerate(times):
        while times[first] <= at - HOUR_S:
            first += 1
        most = max(most, last - first + 1)
    return most


def truly_stale(
    pages: dict[int, Page], visits: dict[str, list[float]], begin: float, end: float
) -> float:
    """The share of time for which copies were stale; days of the recording."""
    costs, lived = Costs(), 0.0
    for page in pages.values():
        path = page.url.split("/", 3)[3]
        seen = [day for day in visits[f"/{path}"] if page.birth <= day < min(page.death, end)]
        for since, until in pairwise([*seen, min(page.death, end)]):
            if until > begin:
                # What was missed before the span is stale from its first moment on.
                before, whole = Costs(), Costs()
                whole.add(page, since, until)
                before.add(page, since, max(since, begin))
                costs.binary += whole.binary - before.binary
                lived += until - max(since, begin)
    return costs.binary / lived


def verdicts(
    pages: dict[int, Page], visits: dict[str, list[float]], begin: float
) -> dict[float, bool]:
    """Whether the visit of a second found a change since the visit before, by the history."""
    return {
        round(begin + day * DAY_S): Costs().add(page, since, day)
        for page in pages.values()
        for since, day in pairwise(visits[f"/{page.url.split('/', 3)[3]}"])
    }


def assert_unbiased(
    audits: NDArray[np.void], asked: dict[float, str], truth: dict[float, bool]
) -> None:
    """Each audit says what the history says, and each page is as likely to be drawn as the next."""
    told = zip(audits["at"].tolist(), audits["stale"].tolist(), strict=True)
    judged = [(truth[round(at)], stale) for at, stale in told if round(at) in truth]
    assert len(judged) > 0.95 * len(audits) > 250
    assert all(stale == true for true, stale in judged)
    drawn = Counter(asked[at] for at in audits["at"].tolist())
    assert len(drawn) > 45
    # Of 54 pages; the most of 291 even draws is above 17 once in 1,400 runs.
    assert max(drawn.values()) < 18


async def test_budget_and_delays_hold_by_the_servers_log_and_pages_are_as_fresh_as_claimed(
    tmp_path: Path,
) -> None:
    settings = quick(politeness__delay_s=DELAY_S, daemon__audit_share=0.3)
    db = tmp_path / "crawl.db"
    with served(["lean"], tmp_path, "--sitemap", "none") as history:
        begin = next(iter(history.begins.values()))
        clock = VirtualClock(begin)
        await kept(history, db, settings, clock, FAST, 7.0)
        await kept(history, db, settings, clock, SLOW, 14.0)
        log = history.requests()
    middle, end = begin + 7 * DAY_S, begin + 21 * DAY_S
    times = [line["vt"] for line in log]
    fast, slow = [at for at in times if at < middle], [at for at in times if at >= middle]
    assert max(line["conc"] for line in log) == 1
    assert min(b - a for a, b in pairwise(times)) >= DELAY_S - 0.001
    assert median(b - a for a, b in pairwise(fast)) == pytest.approx(DELAY_S, abs=1.0)
    assert most_in_an_hour(fast) <= FAST / 24
    assert most_in_an_hour(slow) <= SLOW / 24 + 1
    assert len(slow) == pytest.approx(14 * SLOW, abs=1)
    pages = load_pages(tmp_path / "lean.sqlite", ANY_CHANGE)
    visits: dict[str, list[float]] = defaultdict(list)
    for line in log:
        if line["page"] and line["status"] in {200, 304}:
            visits[line["page"]].append((line["vt"] - begin) / DAY_S)
    assert len([page for page in pages.values() if visits[f"/{page.url.split('/', 3)[3]}"]]) > 40
    async with reading(db) as connection:
        audits = await columns.audits(connection, begin)
    found = audits[audits["at"] >= middle]
    assert_unbiased(
        audits, {line["vt"]: line["page"] for line in log}, verdicts(pages, visits, begin)
    )
    claimed = staleness(found["importance"], found["stale"], found["hazard"])
    assert claimed is not None
    stale = truly_stale(pages, visits, 7.0, (end - begin) / DAY_S)
    assert claimed.binary.lower <= stale <= claimed.binary.upper
    assert claimed.binary.expected == pytest.approx(stale, abs=0.05)
    assert 0.005 < stale < 0.5
