"""Progress says how far the crawl is, and which hosts wait for what."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from freshet.crawler.cli.progress import ProgressScreen, watching
from freshet.crawler.frontier.clock import iso
from freshet.crawler.run.crawl import Live
from freshet.crawler.run.orders import DaemonSnapshot, Tally
from freshet.storage.entries import CappedQueue, Kind, Outlook, Rung
from freshet.storage.records import Acknowledged, DueUrl, Observation, Visit

DUE = DueUrl(1, "https://a.example/", "https://a.example/", 1, 0.0)


@dataclass(slots=True)
class Clock:
    at: float = 100.0

    def now(self) -> float:
        return self.at


@dataclass(slots=True)
class Hosts:
    """A frontier of which only the numbers matter."""

    working: int = 0
    waiting: dict[int, str] = field(default_factory=dict)
    wakes: float | None = None

    def active(self, _now: float) -> int:
        return self.working

    def waits(self, _now: float) -> dict[int, str]:
        return self.waiting

    def wakes_at(self) -> float | None:
        return self.wakes

    def least_s(self, due: Mapping[int, int]) -> float:
        return 2.0 * max(due.values())


def live(hosts: Hosts, clock: Clock, *, stopping: bool = False) -> tuple[Live, Tally]:
    tally = Tally()
    pool: Any = SimpleNamespace(
        active=1, requisites=None, stopping=stopping, frontier=hosts, clock=clock
    )
    return Live(pool=pool, tally=tally), tally


def committed(kind: Kind, rung: Rung | None = None) -> Acknowledged:
    visit = Visit(DUE, Observation(1, 99.0, kind, rung, status=200))
    return Acknowledged(visit)


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def shown(screen: ProgressScreen) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(screen)
    return captured.get()


def test_the_screen_shows_counts_rate_and_time() -> None:
    clock = Clock()
    parts, tally = live(Hosts(working=3), clock)
    screen = ProgressScreen(parts)
    tally.add([committed("new"), committed("changed", "blocks"), committed("failed")])
    clock.at += 2
    text = shown(screen)
    for words in ("2 pages", "1.5 fetches/s", "1 changed", "1 failed", "0:02", "3 hosts active"):
        assert words in text
    assert "0 gone" not in text
    # A line as long as the terminal would break at the ^C of Ctrl-C, and leave its first half.
    parts, _ = live(Hosts(waiting={1: "a long reason " * 20}), clock)
    assert max(map(len, shown(ProgressScreen(parts)).splitlines())) <= 196


def test_the_screen_says_which_hosts_wait_and_why() -> None:
    hosts = Hosts(waiting={1: "http_429", 2: "http_429", 3: "connect"}, wakes=117.4)
    parts, _ = live(hosts, Clock())
    text = shown(ProgressScreen(parts))
    assert "0 hosts active, the next in 17 s" in text
    assert "2 hosts wait: http_429" in text
    assert "1 host waits: connect" in text


async def test_the_screen_says_what_is_left_and_how_long_it_takes_at_least() -> None:
    async def due() -> dict[int, int]:
        return {1: 5_000, 2: 40}

    clock = Clock()
    parts, _ = live(Hosts(), clock)
    screen = ProgressScreen(replace(parts, left=due))
    assert "left" not in shown(screen)
    clock.at += 1
    screen([])
    await asyncio.sleep(0)
    assert "5,040 left, 2:46:40 or more" in shown(screen)


def test_the_screen_says_that_the_crawl_is_stopping() -> None:
    parts, _ = live(Hosts(), Clock(), stopping=True)
    assert "Ctrl-C again to cancel them" in shown(ProgressScreen(parts))


def test_the_screen_says_that_pages_are_compared_when_the_last_has_come() -> None:
    parts, _ = live(Hosts(), Clock())
    parts.comparing.placed = 4_000
    assert "looking for near-duplicates: 4,000 pages compared" in shown(ProgressScreen(parts))


VISIT = Outlook(
    at=100.0, began_at=90.0, budget=5_000.0, policy="greedy_index", flowed=3.5, forgone=0.5,
    watched=4, captured=2, waiting=30, gone=1, stale=0.25, harmonic=0.3, price=0.125,
    changing=(0, 1, 1, 0, 0), clocked=0.5, next_at=117.0, next_page_id=None,
    capped=(CappedQueue("a.example", 100.0, 150.0, 7),),
)  # fmt: skip


def test_the_screen_of_a_daemon_shows_budget_freshness_and_what_is_next() -> None:
    clock = Clock()
    parts, tally = live(Hosts(waiting={1: "http_429"}), clock)
    seen = DaemonSnapshot(
        spent=1_204, flowed=1_210.7, next_at=112.4, next_url="https://a.example/next", outlook=VISIT
    )
    screen = ProgressScreen(replace(parts, snapshot=lambda now: seen))
    tally.add([committed("changed", "blocks")])
    clock.at += 2
    lines = [line.rstrip() for line in shown(screen).splitlines()]
    assert lines[0].split("  ") == [
        "1,204 of 1,210 requests spent", "75.0 % fresh", "1 changed", "0:02"
    ]  # fmt: skip
    assert lines[1].startswith("next in 10 s: https://a.example/next  ·  30 new pages waiting")
    assert "1 host at the cap  ·  1 host out: http_429" in lines[1]
    assert max(map(len, lines[:1])) < 80


def test_a_daemon_off_a_terminal_logs_what_it_reports_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    parts, _ = live(Hosts(), clock)
    seen = DaemonSnapshot(spent=7, flowed=8.5, next_at=0.0, next_url=None, outlook=VISIT)
    parts = replace(parts, snapshot=lambda now: replace(seen, next_at=now))
    with watching(quiet=False, verbose=False) as watch:
        observer = watch(parts)
        for _ in range(20):
            clock.at += 61
            observer([])
    assert not capsys.readouterr().err


def test_verbose_logs_every_committed_page_as_a_line_of_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parts, _ = live(Hosts(), Clock())
    with watching(quiet=True, verbose=True) as watch:
        watch(parts)([committed("unchanged", "304")])
    (line,) = capsys.readouterr().err.splitlines()
    logged = json.loads(line)
    assert (logged["message"], logged["url"], logged["at"]) == ("observed", DUE.url, iso(99))
    assert (logged["kind"], logged["rung"]) == ("unchanged", "304")


def test_a_long_crawl_off_a_terminal_logs_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    parts, _ = live(Hosts(), clock)
    with watching(quiet=False, verbose=False) as watch:
        observe = watch(parts)
        observe([])
        clock.at += 11
        observe([])
        observe([])
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["message"] == "crawling"


def test_the_screen_shows_the_last_changes_as_they_are_found() -> None:
    screen = ProgressScreen(live(Hosts(), Clock())[0])
    visits = [
        Visit(
            DueUrl(n, f"https://a.example/{n}", f"https://a.example/{n}", 1, 0.0),
            Observation(n, 99.0, "changed", "blocks", blocks_added=n, blocks_removed=1),
        )
        for n in range(1, 8)
    ]
    screen([Acknowledged(visit) for visit in visits])
    screen([committed("unchanged")])
    lines = [line.rstrip() for line in shown(screen).splitlines() if line.startswith("changed")]
    assert lines == [f"changed https://a.example/{n}  +{n} −1" for n in range(3, 8)]
