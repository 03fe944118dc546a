"""Signals as a table of pages has them: how many are pending, how often they come, how often true.

A signal is a source's claim that a page has changed since its last visit and since what was claimed
of it before. Of the visits to a page follow

    q  the precision: Σ t / Σ k,  t = kq/c of the k signals before a change, 0 before none;
    r  the recall: the mean of (1 − (1 − q)^k)/c over the changes;
    c  1 − (1 − q)^k e^{−(1 − r)ds}, the probability that the page has changed in s days,

which are the expectations of how many signals were true, and of whether one was: a page may have
changed unannounced. For each site q and r have a prior of one half that weighs as two, for each
page that of its site, which weighs as four. The rate of signals is g = rΔ/q: no more changes are
told of than there are.

    Δ  change rate    changes a day, as estimated by others
    d  the same by the visits here, which is enough to attribute a change
    k  pending        signals since the last visit

Cost: 3 µs a visit of a page that is signalled. Reference: ours; the moments of the model of
:mod:`freshet.scheduler.policies.noisy_signal_index`.
"""

from __future__ import annotations

from math import exp
from typing import Final, NamedTuple

import numpy as np

from freshet.scheduler.arrays import Column, Floats, Ints
from freshet.scheduler.estimate.observations import VisitResults
from freshet.scheduler.sources import Rows

_SITE_PRIOR: Final = 2.0
_PAGE_PRIOR: Final = 4.0
_HALF: Final = 0.5
#: A site is thought to have changed once in so many days more.
_DAYS_BEFORE: Final = 10.0
_PAGE: Final = np.dtype(
    [
        ("site", np.intp),
        ("signalled", np.bool_),
        ("pending", np.int64),
        ("visited", np.float64),
        ("until", np.float64),
        ("signals", np.float64),
        ("true", np.float64),
        ("changes", np.float64),
        ("told", np.float64),
        ("days", np.float64),
    ]
)
_COUNTS: Final = ("signals", "true", "changes", "told", "days")


_PRECISION: Final = ("true", "signals")
_RECALL: Final = ("told", "changes")
_CHANGES: Final = _COUNTS.index("changes")
_DAYS: Final = _COUNTS.index("days")


class SignalColumns(NamedTuple):
    """The columns of a source table that are about signals, (n,) each; 0 where none ever came."""

    pending: Ints
    rate: Floats
    precision: Floats


class SignalRates:
    """Counts the signals and the changes of n pages; rows come, and never go."""

    def __init__(self) -> None:
        self._page = Column[np.void](_PAGE)
        self._site = Column[np.float64](np.float64, width=len(_COUNTS))

    def add(self, site: Rows) -> None:
        """Append rows."""
        first = len(self._page)
        self._page.append(len(site))
        self._page.rows["site"][first:] = site
        self._page.rows["visited"][first:] = self._page.rows["until"][first:] = -np.inf
        self._site.append(max(0, int(site.max(initial=-1)) + 1 - len(self._site)))

    def hear(self, rows: Rows, until: Floats) -> None:
        """Take in that these pages changed last on these days, (m,) each."""
        page = self._page.rows
        page["signalled"][rows] = True
        page["pending"][rows] += until > np.maximum(page["visited"], page["until"])[rows]
        page["until"][rows] = np.maximum(page["until"][rows], until)

    def learn(self, looks: VisitResults) -> None:
        """Take in visits, in their order."""
        page = self._page.rows
        some = np.flatnonzero(page["signalled"][looks.row])
        for row, at, is_compared, is_changed in zip(
            looks.row[some].tolist(), looks.at[some].tolist(), looks.compared[some].tolist(),
            looks.changed[some].tolist(), strict=True,
        ):  # fmt: skip
            span = at - float(page["visited"][row])
            if is_compared and 0 < span < np.inf:
                self._count(row, span, is_changed=is_changed)
            page["pending"][row] = 0
            page["visited"][row] = max(at, float(page["visited"][row]))
        np.maximum.at(page["visited"], looks.row, looks.at)

    def _count(self, row: int, span: float, *, is_changed: bool) -> None:
        only = slice(row, row + 1)
        page, site = self._page.rows[only], int(self._page.rows["site"][row])
        pending, true, told = float(page["pending"][0]), 0.0, 0.0
        if pending and is_changed:
            q, r = (float(self._shares(*each, only)[0]) for each in (_PRECISION, _RECALL))
            of_site = self._site.rows[site]
            usual = (of_site[_CHANGES] + 1.0) / (of_site[_DAYS] + _DAYS_BEFORE)
            own = (float(page["changes"][0]) + 1.0) / (float(page["days"][0]) + 1.0 / usual)
            silent = (1 - q) ** pending
            changed = 1 - silent * exp(-(1 - r) * own * span)
            true, told = pending * q / changed, (1 - silent) / changed
        found = (pending, true, float(is_changed), told, span)
        for place, (name, value) in enumerate(zip(_COUNTS, found, strict=True)):
            page[name] += value
            self._site.rows[site, place] += value

    def _shares(self, part: str, whole: str, rows: slice) -> Floats:
        """Return the shares of these pages, by their own counts and those of their sites."""
        page = self._page.rows[rows]
        site = self._site.rows[page["site"]]
        total = site[:, _COUNTS.index(whole)] + _SITE_PRIOR
        usual = (site[:, _COUNTS.index(part)] + _SITE_PRIOR * _HALF) / total
        share: Floats = (page[part] + _PAGE_PRIOR * usual) / (page[whole] + _PAGE_PRIOR)
        return share

    def inherit(self, old: int, new: int) -> None:
        """Hand on the counts of one page to another, on whose site they are counted already."""
        page = self._page.rows
        for name in ("signalled", "visited", *_COUNTS):
            page[name][new] = page[name][old]

    def columns(self, change_rate: Floats) -> SignalColumns:
        """Return what a table of pages with these change rates, (n,), has of signals."""
        page, every = self._page.rows, slice(None)
        signalled = page["signalled"]
        if not signalled.any():
            nothing = np.zeros(len(page))
            return SignalColumns(np.zeros(len(page), np.int64), nothing, nothing)
        precision = self._shares(*_PRECISION, every)
        rate = self._shares(*_RECALL, every) * change_rate / precision
        return SignalColumns(
            page["pending"].copy(),
            np.where(signalled, rate, 0.0),
            np.where(signalled, precision, 0.0),
        )
