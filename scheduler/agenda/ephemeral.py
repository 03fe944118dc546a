"""Values of visits to ephemeral sources, and the new items that are fetched at once. In days.

Of a source at which items appear at the rate Λ and fade at the rate μ, a visit τ days after the
last one is worth its Whittle index where crawls may come at any time, times importance:

    W = w E (Λ/μ) [1 − (1 + μτ) e^{−μτ}] / C

    w   importance of the source
    E   item_worth: what an item is worth when it appears, in days on which a copy is stale; the
        exchange rate between reaching new items and keeping copies fresh
    Λ   items a day (:mod:`freshet.scheduler.agenda.new_pages`);  μ  ln 2 over the half-life
    C   cost of a visit, in requests

so that sources of items and copies compete for each request at one price. Where others reveal the
same items, the bracket is taken for each item that the source has revealed, with τ since any page
was visited that reveals it (:mod:`scheduler.discovery.precedents`), and averaged: an overlap is
paid once. The items that a visit finds cost a request each as well; as each must be fetched once,
now or later, that does not change when to visit, and C does not count them.

A source that was declared to be one, or whose links churn, is never worth less than it would be as
an ordinary page: a copy of it is kept, after all, and what is wrongly taken for a source loses
nothing.

*Items.* A missing page costs its importance a day, an item that fades w E μ e^{−μ·age} a day until
it is reached. While that is more, the item comes before all else that is not overdue, the one that
has most to lose first; after that it waits its turn as any page does that was found.

Reference: Avrachenkov and Borkar 2018, Theorem 1, as T → 0 (:mod:`scheduler.policies.whittle`);
what stands of overlaps and of items is ours.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from freshet.scheduler.agenda.new_pages import Churning, Discovering, rate_of_silent
from freshet.scheduler.agenda.pages import Watchlist
from freshet.scheduler.agenda.terms import SourceTerms
from freshet.scheduler.arrays import Bools, Floats, Ints, rows_among
from freshet.scheduler.discovery.precedents import Revealing
from freshet.scheduler.policies import whittle
from freshet.scheduler.sources import Rows


@dataclass(frozen=True, slots=True)
class Fading:
    """Values of sources and items on a day.

    Attributes:
        row: (k,), the pages that are ephemeral sources, ascending.
        rate: (k,), Λ.
        worth: (k,), W.
        urgent: (m,), the rows of the items that come at once.
        urgency: (m,), what a day costs by which each comes later.
    """

    row: Rows
    rate: Floats
    worth: Floats
    urgent: Rows
    urgency: Floats


def fading(
    pages: Watchlist, discovering: Discovering, revealing: Revealing, on: SourceTerms, now: float,
    cost: Floats,
) -> Fading:  # fmt: skip
    """Return the values of visits to sources on a day, and the items to fetch at once.

    ``cost`` (H,) is C of a visit at each host.
    """
    columns: Any = {each.name: pages[each.name] for each in fields(_Columns)}
    it = _Columns(**columns)
    looked = VisitSpans(it.found_at, it.since, it.captured & (it.gone == 0))
    row, rate = sources(it.half_life, looked, discovering.churning, on)
    if not len(row):
        return Fading(row, rate, np.zeros(0), np.zeros(0, np.intp), np.zeros(0))
    decay = decays(it.half_life[row], on)
    place = np.full(len(it.since), -1)
    place[row] = np.arange(len(row))
    reveals = (place[revealing.by] >= 0) & (revealing.item >= 0)
    by, item = place[revealing.by[reveals]], revealing.item[reveals]
    since = np.maximum(now - it.since[row], 0.0)
    worth = it.importance[row] * on.item_worth * rate
    worth *= _reaped(since, decay, by, revealing.waited[reveals])
    if on.by_delay:
        worth /= cost[it.host[row]]
    return Fading(row, rate, worth, *_urgent(it, item, decay[by], on, now))


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of the watchlist, (n,) each."""

    host: Rows
    importance: Floats
    half_life: Floats
    since: Floats
    found_at: Floats
    captured: Bools
    gone: Ints


@dataclass(frozen=True, slots=True)
class VisitSpans:
    """First and last visit (days) of n pages, and whether a copy is ``held``."""

    found_at: Floats
    since: Floats
    held: Bools


def sources(
    half_life: Floats, looked: VisitSpans, churning: Churning, on: SourceTerms
) -> tuple[Rows, Floats]:
    """Return (k,) each: the rows of the pages that are sources, ascending, and their Λ.

    ``half_life`` (n,) is as :class:`~freshet.scheduler.agenda.terms.Terms` has it.
    """
    known = churning.rates(looked.since)
    is_source: Bools = half_life > 0
    if on.recognise:
        is_source[known.row[known.churning]] = True
    row = np.flatnonzero(is_source & looked.held & (half_life != 0))
    rate = rate_of_silent(looked.since[row] - looked.found_at[row])
    place, told = rows_among(row, known.row)
    rate[place] = known.rate[told]
    return row, rate


def decays(half_life: Floats, on: SourceTerms) -> Floats:
    """Return (k,), μ of the items of sources."""
    own = np.isfinite(half_life) & (half_life > 0)
    decay: Floats = np.log(2) / np.where(own, half_life, on.half_life)
    return decay


def _reaped(since: Floats, decay: Floats, by: Rows, waited: Floats) -> Floats:
    """Return (k,), the index for Λ = 1, averaged over items that others reveal, too."""
    items = np.bincount(by, minlength=len(since))
    each = np.bincount(by, whittle.ripe(decay[by] * waited), minlength=len(since))
    ripe = np.where(items > 0, each / np.maximum(items, 1), whittle.ripe(decay * since))
    reaped: Floats = ripe / decay
    return reaped


def _urgent(
    it: _Columns, item: Rows, decay: Floats, on: SourceTerms, now: float
) -> tuple[Rows, Floats]:
    """Return the rows of the items to fetch at once, and the cost of a day of delay.

    ``item`` (m,) was revealed by a source at which things fade at the rate ``decay``; by the
    fastest, where there are several.
    """
    waits = ~it.captured[item] & (it.gone[item] == 0)
    row, which = np.unique(item[waits], return_inverse=True)
    fastest = np.zeros(len(row))
    np.maximum.at(fastest, which, decay[waits])
    age = np.maximum(now - it.found_at[row], 0.0)
    a_day = on.item_worth * fastest * np.exp(-fastest * age)
    hurry = a_day > on.missing
    return row[hurry], it.importance[row[hurry]] * a_day[hurry]
