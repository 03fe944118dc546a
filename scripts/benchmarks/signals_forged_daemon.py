"""A daemon that notes how late it starts its fetches, and how late and busy its event loop is.

Reads its order (JSON) from standard input, and prints the figures at the end. A request is due
when the budget has room for it; there are far more hosts than it takes to spend the budget.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from time import perf_counter, process_time, thread_time
from typing import Any
from unittest.mock import patch

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.frontier.politeness import Pacer
from freshet.crawler.run import daemon
from freshet.crawler.run.crawl import Live
from freshet.crawler.run.orders import DaemonOrder
from freshet.crawler.run.wiring import Observer
from tests.integration.quick import quick

_TICK_S = 0.002
_WARM_S = 5.0


class NotingPacer(Pacer):
    """Notes by how much each request starts after the budget had room for it."""

    late: list[tuple[float, float]] = []  # noqa: RUF012 - one daemon a process

    def started(self, requests: int = 1) -> None:
        """A request has started."""
        self.late.append((perf_counter(), max(0.0, (self._balance - self._enough) / self._per_s)))
        super().started(requests)


async def _lag(late: list[tuple[float, float]], busy: list[tuple[float, float]]) -> None:
    """Note how late a tick is, and how much the loop's thread has computed since the last."""
    while True:
        due, worked = perf_counter() + _TICK_S, thread_time()
        await asyncio.sleep(_TICK_S)
        now = perf_counter()
        late.append((now, max(0.0, now - due)))
        busy.append((now, thread_time() - worked))


def _waited_s() -> float:
    """How long the main thread was ready to run and another program ran instead."""
    return int(Path("/proc/self/schedstat").read_text("ascii").split()[1]) / 1e9


def figures(noted: list[tuple[float, float]], since: float) -> dict[str, float]:
    """Percentiles in milliseconds of what was noted since."""
    late = sorted(each for at, each in noted if at >= since) or [0.0]
    places = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
    found = {
        name: late[min(len(late) - 1, int(len(late) * share))] for name, share in places.items()
    }
    return {name: round(1e3 * value, 2) for name, value in (found | {"max": late[-1]}).items()}


async def _kept(order: dict[str, Any]) -> dict[str, object]:
    lags: list[tuple[float, float]] = []
    busy: list[tuple[float, float]] = []
    tasks: list[asyncio.Task[None]] = []
    begun: list[float] = []

    def watch(_live: Live) -> Observer:
        begun.append(perf_counter())
        tasks.append(asyncio.create_task(_lag(lags, busy)))
        return lambda _batch: None

    settings = quick(
        receiver__listen=f"127.0.0.1:{order['port']}",
        receiver__public_url=f"http://127.0.0.1:{order['port']}",
        politeness__delay_s=0.2,
    )
    asked = DaemonOrder(
        Path(order["db"]), seeds_from_arguments(order["seeds"]).seeds, order["budget"],
        time_limit_s=order["seconds"],
    )  # fmt: skip
    cpu, waited = process_time(), _waited_s()
    with patch.object(daemon, "Pacer", NotingPacer):
        await daemon.keep(settings, asked, watch=watch)
    for task in tasks:
        task.cancel()
    since = begun[0] + _WARM_S
    return {
        "fetches": sum(at >= since for at, _ in NotingPacer.late),
        "fetch_late_ms": figures(NotingPacer.late, since),
        "loop_late_ms": figures(lags, since),
        "loop_busy_ms": figures(busy, since),
        "cpu_s": round(process_time() - cpu, 1),
        "waited_for_a_core_s": round(_waited_s() - waited, 2),
    }


if __name__ == "__main__":
    import uvloop

    sys.stdout.write(json.dumps(uvloop.run(_kept(json.load(sys.stdin)))) + "\n")
