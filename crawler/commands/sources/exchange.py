"""On which terms ephemeral sources compete, by the settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from freshet.config.settings import Daemon, Ephemeral
from freshet.scheduler.agenda.ephemeral import Exchange
from freshet.scheduler.arrays import Floats
from freshet.storage.entries import Host

_DAY_HOURS: Final = 24.0
#: Where no delay is kept, a host that wants one costs as much as if a tenth of a second were.
_LEAST_DELAY_S: Final = 0.1


def exchange_of(said: Ephemeral, daemon: Daemon) -> Exchange:
    """The terms of these settings."""
    return Exchange(
        said.item_worth, daemon.new_page_worth, said.half_life_hours / _DAY_HOURS,
        said.recognise, by_delay=said.cost == "delay",
    )  # fmt: skip


def costs_of(hosts: Sequence[Host], delay_s: float) -> Floats:
    """(H,), how many delays of ``delay_s`` pass between two looks at each host; at least 1."""
    known = [None if host.state is None else host.state.delay_s for host in hosts]
    return relative_delays(known, delay_s)


def relative_delays(delays_s: Sequence[float | None], delay_s: float) -> Floats:
    """(H,), how many delays of ``delay_s`` each of these is, at least 1; None: one."""
    delays = np.array([delay_s if each is None else each for each in delays_s], np.float64)
    return np.maximum(delays / max(delay_s, _LEAST_DELAY_S), 1.0)
