"""The index policy's next crawl among ten million sources, and with hosts that must rest.

The sources are the surrogate population in its stationary state at R = 0.2 n crawls a day: ages
uniform over each source's interval, pending changes over each threshold. While crawls are timed
the changes of sources of complete observations are signalled as they come.
"""

from __future__ import annotations

import heapq
import json
import subprocess
import sys
import time
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from freshet.scheduler.arrays import Bools
from freshet.scheduler.evaluate.world import surrogate
from freshet.scheduler.index_queue import IndexQueue
from freshet.scheduler.policies import greedy_index
from freshet.scheduler.policies.greedy_index import GreedyIndex, valuation
from freshet.scheduler.policies.optimal_intervals import OptimalIntervals, interval_at
from freshet.scheduler.sources import SourceTable
from scripts.benchmarks.command import say

#: R, crawls per day and source.
BANDWIDTH = 0.2
HOSTS = 20_000
#: How long a host rests after a crawl. The largest of 20,000 wants one every 5 s.
RESTS_SECONDS = (60, 600, 3_600)

GOAL_CRAWL_US = 10
GOAL_BYTES_PER_SOURCE = 64
GOAL_RESTING_HOSTS_US = 100

_ROOT = Path(__file__).parents[2]
_DAY = 86_400.0
_COLUMNS = tuple(name for name in SourceTable.__slots__ if name != "host_capacity")
#: Sources that are drawn together, so that drawing needs little more memory than they do.
_BATCH = 500_000
_SAMPLE = 100_000
#: Crawls between which signals are sent.
_ROUND = 20

#: What a queue adds to a process that holds the table: to keep, and at its highest.
_MEMORY = """
import json, sys
from scripts.benchmarks.scheduler_queue import Crawling, stationary

def kilobytes(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))

n, crawls = int(sys.argv[1]), int(sys.argv[2])
# Load the compiler first: it is no part of the schedule.
Crawling.of(stationary(30_000, 1)).run(1_000)
table = stationary(n, 1)
# From here on the highest use is counted anew.
with open("/proc/self/clear_refs", "w") as refs:
    refs.write("5")
before = kilobytes("VmRSS:")
crawling = Crawling.of(table)
crawling.run(crawls)
print(json.dumps([kilobytes("VmRSS:") - before, kilobytes("VmHWM:") - before]))
"""


def figures(*, quick: bool = False) -> dict[str, object]:
    """Microseconds a crawl and bytes a source, beside a scan and a heap; resting hosts."""
    n, crawls = (50_000, 2_000) if quick else (10_000_000, 600_000)
    return {
        "one_crawl": _one_crawl(n, crawls),
        "memory": _memory(n, crawls // 2),
        "resting_hosts": _resting_hosts(n // 10, crawls // 6),
    }


def stationary(n: int, seed: int) -> SourceTable:
    """Surrogate sources on day 0, long after an index policy began to crawl them."""
    price = _price(seed)
    one = surrogate(1, np.random.default_rng(seed))
    columns = {name: np.empty(n, getattr(one, name).dtype) for name in _COLUMNS}
    for start in range(0, n, _BATCH):
        part = _stationary(min(_BATCH, n - start), price, seed + start)
        for name, column in columns.items():
            column[start : start + len(part)] = getattr(part, name)
    return replace(one, **columns)


def _price(seed: int) -> float:
    """λ at which R is spent, from a sample."""
    sample = surrogate(_SAMPLE, np.random.default_rng(seed))
    price = OptimalIntervals().rates(sample, BANDWIDTH * _SAMPLE).price
    assert price is not None
    return price


def _stationary(n: int, price: float, seed: int) -> SourceTable:
    rng = np.random.default_rng(seed)
    table = surrogate(n, rng)
    interval = interval_at(table.importance, table.change_rate, price)
    threshold = np.maximum(np.ceil(price * table.change_rate / table.importance), 1.0)
    pending = np.floor(rng.random(n) * threshold).astype(np.int64)
    return replace(
        table,
        last_crawl=-rng.random(n) * interval,
        pending_signals=np.where(table.complete_observations, pending, 0),
    )


class Crawling:
    """A queue in use: a crawl every 1/R days, and signals as often as they come."""

    def __init__(self, table: SourceTable, readiness: Readiness | None) -> None:
        self.queue = IndexQueue(GreedyIndex(), table, 0.0)
        self._readiness = readiness
        self._rng = np.random.default_rng(len(table))
        self._step = 1 / (BANDWIDTH * len(table))
        self._crawls = 0
        told = np.flatnonzero(table.complete_observations)
        rate = table.change_rate[told]
        self._signals_per_crawl = float(rate.sum()) * self._step
        # As often as each changes.
        self._told = self._rng.choice(told, _SAMPLE, p=rate / rate.sum()).tolist()

    @classmethod
    def of(cls, table: SourceTable) -> Crawling:
        """All hosts are ready all the time."""
        return cls(table, None)

    @property
    def now(self) -> float:
        """The day of the last crawl."""
        return self._crawls * self._step

    def run(self, crawls: int) -> float:
        """Processor seconds of ``best`` and ``crawled``, of so many crawls."""
        seconds = 0.0
        for first in range(0, crawls, _ROUND):
            count = min(_ROUND, crawls - first)
            began = time.process_time()
            for _ in range(count):
                self._crawl()
            seconds += time.process_time() - began
            self._send_signals(count)
        return seconds

    def _crawl(self) -> None:
        self._crawls += 1
        now = self.now
        if self._readiness is None:
            row = self.queue.best(now)
        else:
            row = self.queue.best(now, self._readiness.at(now))
        if row is None:
            return
        self.queue.crawled(row, now)
        if self._readiness is not None:
            self._readiness.crawled(int(self.queue.table.host[row]), now)

    def _send_signals(self, crawls: int) -> None:
        for _ in range(self._rng.poisson(self._signals_per_crawl * crawls)):
            source = self._told[self._rng.integers(len(self._told))]
            self.queue.signalled(source, self.now)


class Readiness:
    """Hosts rest for some days after each crawl."""

    def __init__(self, hosts: int, rest: float) -> None:
        self._ready = np.ones(hosts, np.bool_)
        self._resting: deque[tuple[float, int]] = deque()
        self._rest = rest

    def __len__(self) -> int:
        return len(self._resting)

    def at(self, now: float) -> Bools:
        """(H,), who is ready."""
        while self._resting and self._resting[0][0] <= now:
            self._ready[self._resting.popleft()[1]] = True
        return self._ready

    def crawled(self, host: int, now: float) -> None:
        """The host rests from now on."""
        self._ready[host] = False
        self._resting.append((now + self._rest, host))


def _one_crawl(n: int, crawls: int) -> dict[str, object]:
    found: dict[str, object] = {
        "sources": n,
        "crawls": crawls,
        "goal_us": GOAL_CRAWL_US,
    }
    for way in ("compiled", "numpy"):
        found[way] = _way(n, crawls, way)
    say(f"queue: a heap of due times, {n:,} sources")
    return found | {"heapq_of_due_times": _heap(n, crawls)}


def _way(n: int, crawls: int, way: str) -> dict[str, object]:
    say(f"queue: {crawls:,} crawls of {n:,} sources, {way}")
    with _computed(way):
        crawling = Crawling.of(stationary(n, 1))
        # Loads the compiled code; its second window is the first that knows the pace of crawls.
        first = crawling.run(1)
        drawing = crawling.run(1)
        crawling.run(crawls // 6)
        ours = crawling.run(crawls) / crawls * 1e6
        say(f"queue: the same by scans, {way}")
        scan = _scan_us(crawling.queue.table, crawling.now)
    return {
        "crawl_us": round(ours, 2),
        "first_crawl_ms": round(max(first, drawing) * 1e3, 1),
        "argmax_scan_us": round(scan, 1),
        "scan_over_ours": round(scan / ours),
    }


def _computed(way: str) -> AbstractContextManager[object]:
    if way == "compiled":
        return nullcontext()
    return patch.object(greedy_index, "COMPILED_FROM", sys.maxsize)


def _scan_us(table: SourceTable, now: float, ready: Bools | None = None) -> float:
    """The index of all sources, and the largest, one crawl; the best of three."""
    index = valuation(GreedyIndex(), len(table))

    def seconds() -> float:
        began = time.process_time()
        worth = index(table, now)
        (worth if ready is None else worth * ready[table.host]).argmax()
        return time.process_time() - began

    return min(seconds() for _ in range(3)) * 1e6


def _heap(n: int, crawls: int) -> dict[str, object]:
    """Python's heap of the times at which each index reaches λ.

    It is no index policy: the price must be known, and stay, and signals are not heard.
    """
    table, price = stationary(n, 1), _price(1)
    interval = interval_at(table.importance, table.change_rate, price)
    clock = np.flatnonzero(~table.complete_observations)
    due = (table.last_crawl + interval)[clock]
    began = time.process_time()
    heap = list(zip(due.tolist(), clock.tolist(), strict=True))
    heapq.heapify(heap)
    building = time.process_time() - began
    began = time.process_time()
    for _ in range(crawls):
        day, row = heap[0]
        heapq.heapreplace(heap, (day + float(interval[row]), row))
    seconds = time.process_time() - began
    each = sys.getsizeof(heap[0]) + sum(map(sys.getsizeof, heap[0])) + sys.getsizeof(heap) / n
    return {
        "crawl_us": round(seconds / crawls * 1e6, 2),
        "first_crawl_ms": round(building * 1e3, 1),
        "bytes_per_source": round(each, 1),
        "knows_prices_that_change_and_signals": False,
    }


def _memory(n: int, crawls: int) -> dict[str, object]:
    say(f"queue: memory of {n:,} sources")
    command = [sys.executable, "-c", _MEMORY, str(n), str(crawls)]
    found = subprocess.run(command, check=True, capture_output=True, text=True, cwd=_ROOT).stdout
    held, peak = json.loads(found)
    return {
        "sources": n,
        "kept_bytes_per_source": round(held * 1024 / n, 1),
        "peak_bytes_per_source": round(peak * 1024 / n, 1),
        "goal_bytes_per_source": GOAL_BYTES_PER_SOURCE,
    }


def _resting_hosts(n: int, crawls: int) -> dict[str, object]:
    """A host's share of the sources falls with its rank, as 1/rank."""
    hosts = min(HOSTS, n // 10)
    weight = 1 / np.arange(1, hosts + 1)
    host = np.random.default_rng(3).choice(hosts, n, p=weight / weight.sum())
    table = replace(stationary(n, 1), host=host, host_capacity=np.full(hosts, np.inf))
    return {
        "sources": n,
        "hosts": hosts,
        "crawls": crawls,
        "goal_us": GOAL_RESTING_HOSTS_US,
        "rests": [_resting(table, crawls, rest) for rest in RESTS_SECONDS],
    }


def _resting(table: SourceTable, crawls: int, rest: float) -> dict[str, object]:
    hosts = len(table.host_capacity)
    say(f"queue: {len(table):,} sources on {hosts:,} hosts that rest for {rest} s")
    readiness = Readiness(hosts, rest / _DAY)
    crawling = Crawling(_copied(table), readiness)
    crawling.run(crawls // 6)
    ours = crawling.run(crawls) / crawls * 1e6
    ready = readiness.at(crawling.now)
    scan = _scan_us(crawling.queue.table, crawling.now, ready)
    return {
        "rest_seconds": rest,
        "hosts_resting_at_the_end": len(readiness),
        "sources_resting_at_the_end": int((~ready[table.host]).sum()),
        "crawl_us": round(ours, 2),
        "argmax_scan_us": round(scan, 1),
        "scan_over_ours": round(scan / ours),
    }


def _copied(table: SourceTable) -> SourceTable:
    """With columns of its own for a queue to write to."""
    return table.take(np.arange(len(table)))
