"""kill -9 at random moments, from outside, to the process group of a real crawl.

After each kill everything that was acknowledged (logged as observed) must stand in the
store, and the store must be sound, its search index as the changefeed tells. Killed crawls go on
with the same command; a store is crawled to the end of its second run, in which all pages are
known, before a fresh one is begun. Whenever a run ends, every page of the sites must have been
fetched in it.
"""

from __future__ import annotations

import json
import shutil
from argparse import Namespace
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, TypeAlias

from scripts.benchmarks import command
from scripts.benchmarks.crawling import CrawlProcess, crawl
from scripts.benchmarks.exchanges import Exchange
from scripts.benchmarks.loopback import Server, Web, addresses, serving
from scripts.benchmarks.site_contents import Calm
from scripts.benchmarks.store_inspection import StoreState, inspect

_RUNS_PER_STORE = 2
_OPTIONS = ("--delay", "0", "--verbose", "--index", "on")

Run: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Load:
    """So many kills of crawls of so many pages."""

    trials: int
    hosts: int = 3
    pages_per_host: int = 150
    latency_s: float = 0.005
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Invocation:
    """One process: its run (of which store), and what that had committed beforehand."""

    run: Run
    started_at: float
    settled: frozenset[str]


@dataclass(slots=True)
class Findings:
    """What went wrong, which is nothing, and how much there was to go wrong."""

    kills: int = 0
    kills_before_any_acknowledgement: int = 0
    acknowledged: int = 0
    lost: int = 0
    stores_not_sound: int = 0
    runs_ended: int = 0
    pages_missed: int = 0
    wrong_bodies: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Store:
    number: int
    path: Path
    acknowledged: set[tuple[str, float]] = field(default_factory=set)
    state: StoreState = field(default_factory=StoreState)


class Trials:
    """Kills, and looks at what is left."""

    def __init__(self, server: Server, directory: Path, load: Load) -> None:
        self._server = server
        self._directory = directory
        self._load = load
        self._rng = Random(load.seed)
        self._truth = _truth(server)
        self._store = _Store(-1, directory)
        self.invocations: list[Invocation] = []
        self.findings = Findings()
        self.undisturbed_s = 0.0

    def run(self) -> None:
        """Time an undisturbed crawl; then kill others at moments of that time."""
        self._begin_store()
        started_at = monotonic()
        self._invoke(None)
        self.undisturbed_s = monotonic() - started_at
        self._begin_store()
        while self.findings.kills < self._load.trials:
            killed = self._invoke(self._rng.uniform(0, self.undisturbed_s))
            if killed and self.findings.kills % 50 == 0:
                command.say(f"{self.findings.kills} kills, {self.findings.lost} lost")
        self._invoke(None)

    def _begin_store(self) -> None:
        if self._store.number >= 0:
            shutil.rmtree(self._store.path.parent)
        number = self._store.number + 1
        directory = self._directory / f"store-{number}"
        directory.mkdir()
        self._store = _Store(number, directory / "store.db")

    def _invoke(self, moment_s: float | None) -> bool:
        """Whether this process was killed, at the moment, before it had ended."""
        store, before = self._store, self._store.state
        with crawl(self._server, store.path, *_OPTIONS) as crawling:
            if not crawling.wait(moment_s):
                crawling.kill()
        store.state = inspect(store.path)
        same_run = store.state.run_id == before.run_id
        run = (store.number, store.state.run_id)
        settled = before.observed if same_run else frozenset()
        self.invocations.append(Invocation(run, crawling.started_at, settled))
        self._check(crawling)
        if not crawling.killed:
            self._check_run(crawling)
            if store.state.run_id >= _RUNS_PER_STORE:
                self._begin_store()
        return crawling.killed

    def _check(self, crawling: CrawlProcess) -> None:
        findings, store = self.findings, self._store
        acknowledged = acknowledged_in(crawling.errors)
        store.acknowledged |= acknowledged
        lost = store.acknowledged - store.state.observations
        store.acknowledged -= lost
        findings.kills += crawling.killed
        findings.kills_before_any_acknowledgement += crawling.killed and not acknowledged
        findings.acknowledged += len(acknowledged)
        findings.lost += len(lost)
        findings.stores_not_sound += bool(store.state.problems)
        findings.problems += store.state.problems

    def _check_run(self, crawling: CrawlProcess) -> None:
        crawling.report()
        state = self._store.state
        self.findings.runs_ended += 1
        self.findings.pages_missed += len(self._truth.keys() - state.answered)
        self.findings.wrong_bodies += len(self._truth.items() - state.digests)


def _truth(server: Server) -> dict[str, bytes]:
    """The digest of every page's body, by URL."""
    calm = server.web.calm
    digests = {
        calm.path(n): blake2b(calm.body(n), digest_size=16).digest() for n in range(calm.pages)
    }
    return {
        server.origin(address) + path: digest
        for address in server.web.addresses
        for path, digest in digests.items()
    }


def acknowledged_in(log: Path) -> set[tuple[str, float]]:
    """URL and time of the observations in the log; a line that is cut off says nothing."""
    text = log.read_text("utf-8")
    lines = text[: text.rfind("\n") + 1].splitlines()
    events = [json.loads(line) for line in lines if line.startswith("{")]
    return {
        (e["url"], round(datetime.fromisoformat(e["at"]).timestamp(), 6))
        for e in events
        if e["message"] == "observed"
    }


def requests_repeated(
    invocations: Sequence[Invocation], exchanges: Sequence[Exchange], port: int
) -> dict[str, float]:
    """How often the server was asked for a page again in one run.

    After its commit, or twice by one process: never. Otherwise it was in flight at a kill.
    """
    ordered = sorted(exchanges, key=lambda e: e.start)
    starts = [e.start for e in ordered]
    bounds = [bisect_left(starts, i.started_at) for i in invocations] + [len(ordered)]
    asked_in: dict[Run, set[str]] = defaultdict(set)
    after_commit = twice = 0
    in_flight: list[int] = []
    for invocation, first, last in zip(invocations, bounds, bounds[1:], strict=False):
        asked = Counter(f"http://{e.host}:{port}{e.path}" for e in ordered[first:last])
        asked = Counter({u: n for u, n in asked.items() if not u.endswith("/robots.txt")})
        after_commit += len(asked.keys() & invocation.settled)
        twice += sum(n > 1 for n in asked.values())
        in_flight.append(len(asked.keys() & (asked_in[invocation.run] - invocation.settled)))
        asked_in[invocation.run] |= asked.keys()
    return {
        "after_commit": after_commit,
        "twice_by_one_process": twice,
        "in_flight_at_kills": sum(in_flight),
        "in_flight_at_one_kill_at_most": max(in_flight),
    }


def measure(load: Load, directory: Path) -> dict[str, Any]:
    """Kill, and judge the stores and the server's log."""
    calm = Calm(load.pages_per_host, latency_s=load.latency_s, max_bytes=6_000)
    web = Web(calm, addresses(load.hosts), {})
    started_at = monotonic()
    with serving(web, directory / "exchanges.log") as server:
        trials = Trials(server, directory, load)
        trials.run()
        exchanges = server.exchanges()
    found = {key: getattr(trials.findings, key) for key in Findings.__slots__}
    return found | {
        "asked_again_in_one_run": requests_repeated(trials.invocations, exchanges, server.port),
        "requests": len(exchanges),
        "undisturbed_crawl_s": round(trials.undisturbed_s, 2),
        "seconds": round(monotonic() - started_at, 1),
    }


def main() -> None:
    """The command ``scripts/bench kill``."""
    parser = command.arguments(__doc__)
    parser.add_argument(
        "--trials", type=int, help="kills; 1000, alerts 100, consumers 200, Scrapy 60"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--daemon", action="store_true", help="kill daemons instead of crawls")
    parser.add_argument(
        "--changefeed", action="store_true", help="kill daemons and consumers of their changefeed"
    )
    parser.add_argument("--alerts", action="store_true", help="kill daemons that send alerts")
    parser.add_argument(
        "--commands", action="store_true", help="kill other commands that write, at file calls"
    )
    parser.add_argument(
        "--sync",
        nargs="*",
        metavar="KIND",
        help="kill daemons, `freshet sync` and targets of these kinds; of all",
    )
    parser.add_argument(
        "--scrapy", action="store_true", help="kill crawls beside those of Scrapy with its JOBDIR"
    )
    parser.add_argument("--scrapy-python", type=Path, metavar="FILE", help="has Scrapy already")
    chosen = parser.parse_args()
    with command.workspace() as directory:
        command.finish(_measured(chosen, directory), chosen.output)


def _measured(chosen: Namespace, directory: Path) -> dict[str, Any]:
    if chosen.commands:
        from scripts.benchmarks import command_kill

        return command_kill.measure(chosen.trials or 20, directory)
    if chosen.alerts:
        from scripts.benchmarks import alert_kill

        return alert_kill.measure(chosen.trials or 100, chosen.seed, directory)
    if chosen.sync is not None:
        from scripts.benchmarks import sync_kill

        kinds = chosen.sync or sync_kill.KINDS
        return sync_kill.measure(chosen.trials or 100, chosen.seed, directory, kinds)
    if chosen.changefeed:
        from scripts.benchmarks import changefeed_kill

        return changefeed_kill.measure(chosen.trials or 200, chosen.seed, directory)
    if chosen.scrapy:
        from scripts.benchmarks import jobdir_kill

        return jobdir_kill.measure(
            chosen.trials or 60, chosen.seed, chosen.scrapy_python, directory
        )
    if chosen.daemon:
        from scripts.benchmarks import daemon_kill

        return daemon_kill.measure(chosen.trials or 1_000, chosen.seed, directory)
    return measure(Load(chosen.trials or 1_000, seed=chosen.seed), directory)
