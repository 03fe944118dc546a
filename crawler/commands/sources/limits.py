"""How many looks a day politeness leaves each lane, by what is known of its hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from freshet.crawler.commands.sources.columns import numbered
from freshet.crawler.commands.sources.spacing import Spacing
from freshet.scheduler.arrays import Floats
from freshet.scheduler.sources import Rows
from freshet.storage.entries import Host


@dataclass(frozen=True, slots=True)
class Limits:
    """``lane`` (H,) is that of each host, a row of ``keys`` and of ``per_day`` (L,)."""

    lane: Rows
    keys: list[str]
    per_day: Floats


def limits_of(hosts: Sequence[Host], exchange_s: Mapping[int, float], spacing: Spacing) -> Limits:
    """The limits of hosts whose exchanges take so long on average, by their ids."""
    lane, keys = numbered(key_of(host) for host in hosts)
    delays: list[float | None] = [None] * len(keys)
    known = np.array([exchange_s.get(host.host_id, np.nan) for host in hosts])
    for code, host in zip(lane.tolist(), hosts, strict=True):
        if host.state is not None:
            delays[code] = host.state.delay_s
    told = ~np.isnan(known)
    count = np.bincount(lane[told], minlength=len(keys))
    seconds = np.bincount(lane[told], known[told], minlength=len(keys)) / np.maximum(count, 1)
    return Limits(lane, keys, spacing.capacities(delays, seconds.tolist()))


def key_of(host: Host) -> str:
    """The politeness key of a host; its origin as long as it is not known."""
    return host.origin if host.state is None else host.state.lane
