"""What a server's log says about a crawl: one line an exchange, times on the monotonic clock.

The clock is that of the whole machine, so that times of several processes compare.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request as the server saw it: from its arrival to the end of the answer.

    ``end`` is when the last piece was handed to the kernel, before which no client can have
    it; ``sent`` is when that call had returned, which is later by a time slice where the
    kernel let the client that it woke go first.
    """

    host: str
    path: str
    start: float
    end: float
    sent: float
    status: int


def read_log(log: Path) -> list[Exchange]:
    """All exchanges in the order of their ends; a line that is being written is left out."""
    text = log.read_text("utf-8")
    return [Exchange(*json.loads(line)) for line in text[: text.rfind("\n") + 1].splitlines()]


def by_host(exchanges: Iterable[Exchange]) -> dict[str, list[Exchange]]:
    """The exchanges of each host in the order of their starts."""
    hosts: dict[str, list[Exchange]] = defaultdict(list)
    for exchange in sorted(exchanges, key=lambda e: e.start):
        hosts[exchange.host].append(exchange)
    return dict(hosts)


def gaps_s(host: Sequence[Exchange]) -> list[float]:
    """Seconds from the end of each exchange with a host to the start of the next.

    Negative where two overlap.
    """
    return [after.start - before.end for before, after in pairwise(host)]


def utilisation(hosts: Iterable[Sequence[Exchange]], delay_s: float) -> float:
    """The share of the time allowed to the crawler in which it made use of the hosts.

    Requests x (delay + mean response time) / time, summed over hosts. A host's time runs
    from its first request to its last, which does not count: 1 is what no polite crawler
    can exceed.
    """
    used = possible = 0.0
    for host in hosts:
        cycles = host[:-1]
        used += sum(delay_s + exchange.end - exchange.start for exchange in cycles)
        possible += host[-1].start - host[0].start
    return used / possible if possible else 0.0


def overall_utilisation(exchanges: Sequence[Exchange], hosts: int, delay_s: float) -> float:
    """The same with one span for all hosts: first request of any to last answer of any."""
    response_s = fmean(e.end - e.start for e in exchanges)
    seconds = max(e.end for e in exchanges) - min(e.start for e in exchanges)
    return len(exchanges) * (delay_s + response_s) / (hosts * (seconds + delay_s))
