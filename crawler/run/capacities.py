"""Capacities of host queues: the visits a day that politeness allows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from freshet.config.settings import DaemonSettings, Ephemeral, Settings
from freshet.entry_points import loaded
from freshet.scheduler.arrays import Floats
from freshet.scheduler.queue.page_rules import DiscoveryTerms
from freshet.scheduler.sources import Rows
from freshet.storage.entries import Host

# -- spacing -----------------------------------------------------------------

_DAY_S = 86_400.0


def numbered(names: Iterable[str]) -> tuple[NDArray[np.intp], list[str]]:
    """Return the index of each name among the distinct names, and those in order of appearance."""
    codes: dict[str, int] = {}
    places = np.array([codes.setdefault(name, len(codes)) for name in names], np.intp)
    return places, list(codes)


def capacities(
    delays_s: Iterable[float | None],
    delay_s: float,
    connections_per_host: int = 1,
    exchange_s: Floats | float = 0.0,
) -> Floats:
    """Return (H,), requests per day by host; inf without any delay.

    ``delay_s`` is the minimum for all hosts; a host's own delay may be None. ``exchange_s`` is the
    duration of a request; 0 gives an upper bound.
    """
    seconds = [delay_s if own is None else max(delay_s, own) for own in delays_s]
    with np.errstate(divide="ignore"):
        return connections_per_host * _DAY_S / (np.array(seconds, np.float64) + exchange_s)


@dataclass(frozen=True, slots=True)
class CapacityLimits:
    """Host queues: ``queue`` (H,) maps hosts to rows of ``keys`` and ``per_day`` (L,)."""

    queue: Rows
    keys: list[str]
    per_day: Floats


def limits_of(
    hosts: Sequence[Host],
    exchange_s: Mapping[int, float],
    delay_s: float,
    connections_per_host: int = 1,
) -> CapacityLimits:
    """Return the limits of hosts; ``exchange_s`` is the mean request duration by host id."""
    queue, keys = numbered(key_of(host) for host in hosts)
    delays: list[float | None] = [None] * len(keys)
    known = np.array([exchange_s.get(host.host_id, np.nan) for host in hosts])
    for code, host in zip(queue.tolist(), hosts, strict=True):
        if host.state is not None:
            delays[code] = host.state.delay_s
    known_rows = ~np.isnan(known)
    count = np.bincount(queue[known_rows], minlength=len(keys))
    seconds = np.bincount(queue[known_rows], known[known_rows], minlength=len(keys)) / np.maximum(
        count, 1
    )
    return CapacityLimits(queue, keys, capacities(delays, delay_s, connections_per_host, seconds))


def key_of(host: Host) -> str:
    """Return the politeness key of a host, or its origin until the key is known."""
    return host.origin if host.state is None else host.state.queue


# -- exchange ----------------------------------------------------------------

_DAY_HOURS: Final = 24.0
#: Without a general delay, a host's own delay is measured in units of a tenth of a second.
_LEAST_DELAY_S: Final = 0.1


def exchange_of(ephemeral: Ephemeral, daemon: DaemonSettings) -> DiscoveryTerms:
    """Return the settings by which new pages and ephemeral sources compete for visits."""
    return DiscoveryTerms(
        missing=daemon.new_page_value,
        item_worth=ephemeral.item_value,
        half_life=ephemeral.half_life_hours / _DAY_HOURS,
        recognise=ephemeral.recognise,
        by_delay=ephemeral.cost == "delay",
        least=daemon.min_discovery,
        most=daemon.max_discovery,
        discovery=daemon.discovery,
    )


#: Entry points of :class:`VisitCosts`.
VISIT_COSTS: Final = "freshet.visit_costs"


class VisitCosts(Protocol):
    """Function that makes visits to some hosts cost more than to others."""

    def __call__(self, origins: Sequence[str], settings: Settings, /) -> Sequence[float]:
        """Return a factor above 0 for each origin; 1 leaves the cost unchanged.

        Policies see the costs as ``host_cost`` of their table.
        """


def costs_of(hosts: Sequence[Host], settings: Settings) -> Floats:
    """Return (H,), the cost of a visit to each host: relative delay times extensions' factors."""
    known = [None if host.state is None else host.state.delay_s for host in hosts]
    costs = relative_delays(known, settings.politeness.delay_s)
    for each in loaded(VISIT_COSTS).values():
        costs = costs * np.array(each([host.origin for host in hosts], settings), np.float64)
    return costs


def relative_delays(delays_s: Sequence[float | None], delay_s: float) -> Floats:
    """Return (H,), each delay in units of ``delay_s``, at least 1; None counts as one."""
    delays = np.array([delay_s if each is None else each for each in delays_s], np.float64)
    return np.maximum(delays / max(delay_s, _LEAST_DELAY_S), 1.0)
