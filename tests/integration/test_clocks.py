"""A daemon on a machine whose clock is set, and which sleeps now and then."""

import asyncio
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.extensions.lab.synthetic_web.fetcher import SyntheticFetcher
from freshet.crawler.extensions.lab.synthetic_web.web import showcase
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import SteadyClock
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.storage.records import FetchResult
from tests.integration.quick import quick, unwatched
from tests.storage.small_store import rows

DAY_S = 86_400.0
HOUR_S = 3_600.0
PER_HOUR = 20.0


@dataclass(slots=True)
class Machine:
    """True time since it was started; ``events`` move the wall clock, or let it sleep."""

    begin: float
    passed: float = 0.0
    set_by: float = 0.0
    #: (true time, by how much the clock is set, how long the machine sleeps), in seconds.
    events: list[tuple[float, float, float]] = field(default_factory=list)

    def pass_until(self, passed: float) -> None:
        self.passed = max(self.passed, passed)
        while self.events and self.events[0][0] <= self.passed:
            _, step, sleep_s = self.events.pop(0)
            self.set_by += step
            self.passed += sleep_s

    def clock(self) -> "MachineClock":
        return MachineClock(self)


class MachineClock(SteadyClock):
    """The clock of a real daemon, on a machine whose time is made up."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(
            wall=lambda: machine.begin + machine.passed + machine.set_by,
            steady=lambda: machine.passed,
        )
        self._machine = machine

    async def wait(self, changed: asyncio.Event, until: float, *, idle: bool) -> bool:
        if not idle:
            return await changed.wait()
        self._machine.pass_until(self._machine.passed + max(1e-3, until - self.now()))
        await asyncio.sleep(0)
        return changed.is_set()


@dataclass(slots=True)
class Server:
    """Notes the true times of requests."""

    web: SyntheticFetcher
    machine: Machine
    times: list[float] = field(default_factory=list)

    async def fetch(self, request: Request) -> FetchResult:
        self.times.append(self.machine.passed)
        return await self.web.fetch(request)


async def kept(db: Path, machine: Machine, days: float) -> list[float]:
    """The true times of the requests of a daemon on this machine."""
    web = showcase(seed=7, traps=False)
    clock = machine.clock()
    server = Server(SyntheticFetcher(web, clock.now), machine)
    urls = ["http://news.localhost/", "http://docs.localhost/"]
    order = DaemonOrder(
        db, seeds_from_arguments(urls).seeds, 24 * PER_HOUR, time_limit_s=days * DAY_S
    )
    await keep(quick(), order, watch=unwatched, fetcher=server, clock=clock, rng=Random(1))
    return server.times


def charged(db: Path) -> int:
    """Return how many failures pages and hosts are charged with."""
    pages, hosts = (
        rows(db, sql)[0][0]
        for sql in (
            "SELECT count(*) FROM observation WHERE kind = 'failed'",
            "SELECT count(*) FROM host WHERE failures > 0 OR parked_until IS NOT NULL",
        )
    )
    return int(pages) + int(hosts)


def machine(*events: tuple[float, float, float]) -> Machine:
    web = showcase(seed=7, traps=False)
    return Machine(web.start_at + 5 * DAY_S, events=list(events))


def most_in_an_hour(times: list[float]) -> int:
    return max(sum(first <= at < first + HOUR_S for at in times) for first in times)


@pytest.mark.long
async def test_a_clock_that_is_set_and_a_machine_that_sleeps_make_no_burst(tmp_path: Path) -> None:
    it = machine(
        (5 * HOUR_S, 3 * HOUR_S, 0.0), (12 * HOUR_S, -6 * HOUR_S, 0.0),
        (20 * HOUR_S, 0.0, 2 * DAY_S), (70 * HOUR_S, 400 * DAY_S, 0.0),
    )  # fmt: skip
    times = await kept(tmp_path / "crawl.db", it, 3.5)
    assert most_in_an_hour(times) <= PER_HOUR + 1
    awake = [(a, b) for a, b in pairwise(times) if b - a < DAY_S]
    assert len(awake) == len(times) - 2
    assert max(b - a for a, b in awake) < 1.02 * HOUR_S / PER_HOUR
    assert len(times) == pytest.approx(1.5 * 24 * PER_HOUR, rel=0.01)


@pytest.mark.long
@pytest.mark.parametrize("years", [1.0, -1.0])
async def test_a_clock_that_jumps_a_year_and_back_charges_nobody(
    tmp_path: Path, years: float
) -> None:
    jump_s = years * 365 * DAY_S
    it = machine((6 * HOUR_S, jump_s, 0.0), (12 * HOUR_S, -jump_s, 0.0))
    times = await kept(tmp_path / "crawl.db", it, 0.75)
    # The budget holds and is used: requests go on at their pace, whatever the clock says.
    assert most_in_an_hour(times) <= PER_HOUR + 1
    assert max(b - a for a, b in pairwise(times)) <= HOUR_S / PER_HOUR + 60
    assert len(times) == pytest.approx(18 * PER_HOUR, rel=0.03)
    assert charged(tmp_path / "crawl.db") == 0


@pytest.mark.long
async def test_a_clock_that_was_set_back_between_two_daemons_stops_neither(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ahead = machine()
    ahead.set_by = 30 * DAY_S
    await kept(tmp_path / "crawl.db", ahead, 0.5)
    times = await kept(tmp_path / "crawl.db", machine(), 0.5)
    assert len(times) == pytest.approx(12 * PER_HOUR, rel=0.03)
    assert most_in_an_hour(times) <= PER_HOUR + 1
    told = [r.getMessage() for r in caplog.records if "was last written at" in r.getMessage()]
    assert len(told) == 1
    assert "30 d ahead of this machine's clock: that clock was wrong" in told[0]
