"""What is expected of all pages that are kept fresh: how stale, how quick, how many. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from scheduler.arguments import Bools, Floats
from scheduler.harmonics import ein
from scheduler.recrawl.refresher import Beliefs
from scheduler.recrawl.watchlist import Watchlist
from scheduler.sources import Rows, SourceTable
from storage.records import RATE_CLASSES

#: Looks that had to be taken, drawn at random or overdue, are worth more than this.
_FORCED: Final = 1e100


@dataclass(frozen=True, slots=True)
class Forecast:
    """Sums over all pages; the names are those of :class:`~storage.records.Outlook`."""

    watched: int
    captured: int
    waiting: int
    gone: int
    stale: float | None
    harmonic: float | None
    changing: tuple[int, ...]
    clocked: float


def forecast(pages: Watchlist, beliefs: Beliefs) -> Forecast:
    """What is expected of these pages; costs are means over the captured, by importance."""
    held, gone = _held(pages), _column(pages, "gone") > 0
    importance = _column(pages, "importance")[held]
    hazard = beliefs.hazard[held]
    return Forecast(
        len(pages), int(held.sum()), int(_waiting(pages).sum()), int(gone.sum()),
        _mean(-np.expm1(-hazard), importance), _mean(np.asarray(ein(hazard)), importance),
        _classes(beliefs.rate[held]), float(beliefs.clocked[held].mean()) if held.any() else 0.0,
    )  # fmt: skip


def sources(
    pages: Watchlist, beliefs: Beliefs, lane: Rows, per_day: Floats, now: float
) -> tuple[SourceTable, Floats]:
    """The captured and the waiting pages on their lanes, for :func:`~.demand.wanted`.

    ``lane`` is that of each host; beside the table there are the days that each has waited, nan
    for those that are captured.
    """
    held = _held(pages)
    rows = np.flatnonzero(held | _waiting(pages))
    table = SourceTable.of(
        _column(pages, "importance")[rows],
        beliefs.rate[rows],
        host=lane[_column(pages, "host")[rows].astype(np.intp)],
        host_capacity=per_day,
    )
    waited = np.maximum(now - _column(pages, "since")[rows], 0.0)
    return table, np.where(held[rows], np.nan, waited)


def price(paid: Sequence[float]) -> float | None:
    """The median of what looks were worth, but for those that had to be taken."""
    free = [worth for worth in paid if worth < _FORCED]
    return float(np.median(free)) if free else None


def _column(pages: Watchlist, name: str) -> Floats:
    return np.asarray(pages[name], np.float64)


def _held(pages: Watchlist) -> Bools:
    held: Bools = (_column(pages, "captured") > 0) & (_column(pages, "gone") == 0)
    return held


def _waiting(pages: Watchlist) -> Bools:
    """Those that were found and have not been asked for."""
    never = (_column(pages, "captured") == 0) & (_column(pages, "gone") == 0)
    waiting: Bools = never & np.isneginf(_column(pages, "not_before"))
    return waiting


def _mean(values: Floats, weight: Floats) -> float | None:
    total = float(weight.sum())
    return float((values * weight).sum()) / total if total > 0 else None


def _classes(rate: Floats) -> tuple[int, ...]:
    """How many rates lie in each class, the quickest first."""
    quicker: Bools = rate[:, None] >= np.array(RATE_CLASSES)
    counts = quicker.sum(axis=0)
    return tuple(int(count) for count in np.diff(counts, prepend=0))
