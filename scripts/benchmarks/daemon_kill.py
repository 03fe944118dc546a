"""kill -9 at random moments, from outside, to the process group of a real daemon.

The daemon keeps a synthetic web fresh whose days pass in seconds. After each kill everything that
it had logged as observed must stand in the store, and so must each page that the server had sent
completely a while before, or it must be asked for again; the store must be sound; and the next
daemon must not begin with a burst. What a daemon knows that was killed and went on must be what
one knows that is fed the same observations at once.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from scripts.benchmarks import command
from scripts.benchmarks.crawling import CrawlProcess
from scripts.benchmarks.daemon_replay import Differences, replayed
from scripts.benchmarks.kill import acknowledged_in
from scripts.benchmarks.living_web import (
    REQUESTS_PER_S,
    UNSLOWED,
    Asked,
    LivingWeb,
    Load,
    living,
    new_store,
)
from scripts.benchmarks.store_inspection import inspect

_SETTINGS = f"[change]\nprobe = false\n{UNSLOWED}"
#: Kills come so long after a daemon's first request, but for one in so many, which comes before.
_LATEST_S = 3.0
_ONE_IN = 6
#: No process asks for anything earlier.
_IMPORTS_S = 0.4
_STARTS_WITHIN_S = 30.0
#: What was sent so long before a kill has committed.
_BATCH_S = 1.0
_KILLS_PER_STORE = 10
POLICIES = ("site_clock", "greedy_index_binary", "lambda_crawl")


@dataclass(slots=True)
class Findings:
    """What went wrong, which is nothing, and how much there was to go wrong.

    ``not_stored`` were sent in time and are not in the store; of these ``waiting`` have not been
    asked for again yet, and ``lost`` will not be, as no page to be fetched has their URL.
    ``ahead`` is how many requests were ahead of the budget at most.
    """

    kills: int = 0
    kills_before_any_request: int = 0
    acknowledged: int = 0
    acknowledged_lost: int = 0
    sent: int = 0
    not_stored: int = 0
    waiting: int = 0
    lost: int = 0
    ahead: float = -1.0
    problems: list[str] = field(default_factory=list)
    differences: dict[str, list[Differences]] = field(default_factory=dict)


@dataclass(slots=True)
class _Store:
    path: Path
    acknowledged: set[tuple[str, float]] = field(default_factory=set)
    newest: int = 0
    wanting: set[str] = field(default_factory=set)


class Trials:
    """Kills daemons, and looks at what is left."""

    def __init__(self, web: LivingWeb, directory: Path, seed: int) -> None:
        self._web = web
        self._directory = directory
        self._rng = Random(seed)
        self.findings = Findings()

    def run(self, kills: int) -> None:
        """Kill so many times; a store is left alone for a while, and compared, in the end."""
        while self.findings.kills < kills:
            store = _Store(new_store(self._directory, _SETTINGS))
            for _ in range(min(_KILLS_PER_STORE, kills - self.findings.kills)):
                early = self.findings.kills % _ONE_IN == 1
                self._invoke(store, self._rng.uniform(0, _LATEST_S), early=early)
                self.findings.kills += 1
            self._invoke(store, 2 * _LATEST_S)
            lost = store.wanting - _kept(store.path)
            self.findings.lost += len(lost)
            self.findings.waiting += len(store.wanting) - len(lost)
            self._compare(store.path)
            command.say(f"{self.findings.kills} kills, {self.findings.lost} lost")

    def _invoke(self, store: _Store, moment_s: float, *, early: bool = False) -> None:
        findings, before = self.findings, len(self._web.asked())
        with self._web.daemon(store.path, "--verbose") as running:
            if not early:
                self._first_request(running)
            running.wait(moment_s)
            killed_at = monotonic()
            running.kill()
        if not running.killed:
            said = running.errors.read_text("utf-8", "replace")[-500:]
            findings.problems.append(f"ended by itself: {said}")
        # The server may come to what the daemon before had asked for after that was killed.
        since = running.started_at + _IMPORTS_S
        new = [a for a in self._web.asked()[before:] if a.started_at > since]
        asked = [a for a in new if not a.url.endswith("/robots.txt")]
        findings.kills_before_any_request += not asked
        store.wanting -= {each.url for each in asked}
        self._check_acknowledged(store, running.errors)
        self._check_sent(store, [a for a in asked if a.ended_at < killed_at - _BATCH_S])
        self._check_pace(running.started_at, new)

    def _first_request(self, running: CrawlProcess) -> None:
        size, begun_at = self._web.log.stat().st_size, monotonic()
        while self._web.log.stat().st_size == size and monotonic() < begun_at + _STARTS_WITHIN_S:
            if running.wait(0.02):
                return

    def _check_acknowledged(self, store: _Store, log: Path) -> None:
        acknowledged = acknowledged_in(log)
        store.acknowledged |= acknowledged
        state = inspect(store.path)
        lost = store.acknowledged - state.observations
        store.acknowledged -= lost
        self.findings.acknowledged += len(acknowledged)
        self.findings.acknowledged_lost += len(lost)
        self.findings.problems += state.problems

    def _check_sent(self, store: _Store, sent: list[Asked]) -> None:
        stored, store.newest = _observed(store.path, store.newest)
        missing = Counter(each.url for each in sent) - stored
        self.findings.sent += len(sent)
        self.findings.not_stored += missing.total()
        store.wanting |= missing.keys()

    def _check_pace(self, started_at: float, asked: list[Asked]) -> None:
        times = sorted(each.started_at for each in asked)
        ahead = [n - REQUESTS_PER_S * (at - started_at) for n, at in enumerate(times, 1)]
        self.findings.ahead = max([self.findings.ahead, *ahead])

    def _compare(self, path: Path) -> None:
        for policy in POLICIES:
            split = self._rng.uniform(0.1, 0.9)
            found = asyncio.run(replayed(path, policy, 86_400 * REQUESTS_PER_S, split))
            self.findings.differences.setdefault(policy, []).append(found)


def _kept(store: Path) -> set[str]:
    """The pages that are to be fetched again."""
    with closing(sqlite3.connect(store)) as connection:
        rows = connection.execute("SELECT url FROM page WHERE held_back IS NULL").fetchall()
    return {url for (url,) in rows}


def _observed(store: Path, newest: int) -> tuple[Counter[str], int]:
    """How often pages were observed since the observation ``newest``, and the newest one."""
    if not store.exists():
        return Counter(), 0
    with closing(sqlite3.connect(store)) as connection:
        if not connection.execute("PRAGMA user_version").fetchone()[0]:
            return Counter(), 0
        rows = connection.execute(
            "SELECT url, o.id FROM observation AS o JOIN page ON page.id = page_id WHERE o.id > ?",
            (newest,),
        ).fetchall()
    return Counter(url for url, _ in rows), max([newest, *(number for _, number in rows)])


def measure(kills: int, seed: int, directory: Path) -> dict[str, Any]:
    """Kill, and judge the stores and the server's log."""
    started_at = monotonic()
    with living(Load(), directory / "exchanges.log") as web:
        trials = Trials(web, directory, seed)
        trials.run(kills)
    found = asdict(trials.findings)
    found["ahead"] = round(trials.findings.ahead, 2)
    found["differences"] = {
        policy: {
            "stores": len(each),
            "pages": sum(one.pages for one in each),
            "worth": max(one.worth for one in each),
            "stale": max(one.stale for one in each),
            "agreement": min(one.agreement for one in each),
        }
        for policy, each in trials.findings.differences.items()
    }
    return found | {"seconds": round(monotonic() - started_at, 1)}
