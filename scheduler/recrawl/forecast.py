"""What is expected of all pages that are kept fresh: how stale, how quick, how many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np

from freshet.scheduler.arguments import Bools, Floats, Ints
from freshet.scheduler.harmonics import ein
from freshet.scheduler.recrawl.refresher import Beliefs
from freshet.scheduler.recrawl.watchlist import Watchlist
from freshet.scheduler.sources import Rows, SourceTable
from freshet.storage.entries import RATE_CLASSES

#: Looks that had to be taken, drawn at random or overdue, are worth more than this.
_FORCED: Final = 1e100


@dataclass(frozen=True, slots=True)
class Census:
    """The n pages of a watchlist at one moment, as copies of its columns."""

    host: Rows
    importance: Floats
    since: Floats
    captured: Bools
    gone: Ints
    not_before: Floats

    @classmethod
    def of(cls, pages: Watchlist) -> Census:
        """The pages as they are now."""
        columns: dict[str, Any] = {each.name: pages[each.name].copy() for each in fields(cls)}
        return cls(**columns)

    def __len__(self) -> int:
        return len(self.host)

    @property
    def held(self) -> Bools:
        """(n,), of which there is a copy, of a page that is still there."""
        held: Bools = self.captured & (self.gone == 0)
        return held

    @property
    def waiting(self) -> Bools:
        """(n,), those that were found and have not been asked for."""
        waiting: Bools = ~self.captured & (self.gone == 0) & np.isneginf(self.not_before)
        return waiting


@dataclass(frozen=True, slots=True)
class Forecast:
    """Sums over all pages; the names are those of :class:`~freshet.storage.records.Outlook`."""

    watched: int
    captured: int
    waiting: int
    gone: int
    stale: float | None
    harmonic: float | None
    changing: tuple[int, ...]
    clocked: float


def forecast(pages: Census, beliefs: Beliefs) -> Forecast:
    """What is expected of these pages; costs are means over the captured, by importance."""
    held = pages.held
    importance, hazard = pages.importance[held], beliefs.hazard[held]
    return Forecast(
        len(pages), int(held.sum()), int(pages.waiting.sum()), int((pages.gone > 0).sum()),
        _mean(-np.expm1(-hazard), importance), _mean(np.asarray(ein(hazard)), importance),
        _classes(beliefs.rate[held]), float(beliefs.clocked[held].mean()) if held.any() else 0.0,
    )  # fmt: skip


def sources(
    pages: Census, beliefs: Beliefs, lane: Rows, per_day: Floats, now: float
) -> tuple[SourceTable, Floats]:
    """The captured and the waiting pages on their lanes, for :func:`~.demand.wanted`.

    ``lane`` is that of each host, as far as known: pages of others are left out. Beside the table
    there are the days that each has waited, nan for those that are captured.
    """
    held = pages.held
    rows = np.flatnonzero((held | pages.waiting) & (pages.host < len(lane)))
    table = SourceTable.of(
        pages.importance[rows],
        beliefs.rate[rows],
        host=lane[pages.host[rows]],
        host_capacity=per_day,
    )
    waited = np.maximum(now - pages.since[rows], 0.0)
    return table, np.where(held[rows], np.nan, waited)


def price(paid: Sequence[float]) -> float | None:
    """The median of what looks were worth, but for those that had to be taken."""
    free = [worth for worth in paid if worth < _FORCED]
    return float(np.median(free)) if free else None


def _mean(values: Floats, weight: Floats) -> float | None:
    total = float(weight.sum())
    return float((values * weight).sum()) / total if total > 0 else None


def _classes(rate: Floats) -> tuple[int, ...]:
    """How many rates lie in each class, the quickest first."""
    quicker: Bools = rate[:, None] >= np.array(RATE_CLASSES)
    counts = quicker.sum(axis=0)
    return tuple(int(count) for count in np.diff(counts, prepend=0))
