"""What looks at ephemeral sources are worth, and which new items are fetched at once. Pure; days.

Of a source at which items appear at the rate Λ and fade at the rate μ, a look τ days after the last
one is worth its Whittle index where crawls may come at any time, times importance:

    W = w E (Λ/μ) [1 − (1 + μτ) e^{−μτ}] / C

    w   importance of the source
    E   item_worth: what an item is worth when it appears, in days on which a copy is stale; the
        exchange rate between reaching new items and keeping copies fresh
    Λ   items a day (:mod:`scheduler.recrawl.churning`);  μ  ln 2 over the half-life
    C   cost of a look, in requests

so that sources of items and copies compete for each request at one price. Where others reveal the
same items, the bracket is taken for each item that the source has revealed, with τ since any page
was looked at that reveals it (:mod:`scheduler.discovery.precedents`), and averaged: an overlap is
paid once. The items that a look finds cost a request each as well; as each must be fetched once,
now or later, that does not change when to look, and C does not count them.

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

from scheduler.arguments import Bools, Floats, Ints
from scheduler.discovery.precedents import Revealing
from scheduler.policies import whittle
from scheduler.recrawl.churning import Churning, rate_of_silent
from scheduler.recrawl.discovering import Discovering
from scheduler.recrawl.watchlist import Watchlist
from scheduler.sources import Rows


@dataclass(frozen=True, slots=True)
class Exchange:
    """On which terms ephemeral sources compete with pages that are kept fresh.

    Attributes:
        item_worth: E, days of a stale copy.
        missing: what a day costs on which any other page is missing, in days of a stale copy.
        half_life: days in which an item loses half of its worth, where a page says nothing else.
        recognise: whether pages whose links churn are taken for sources though nobody declared
            them.
        by_delay: whether a look at a host that wants a longer delay costs as much more.
    """

    item_worth: float = 7.0
    missing: float = 1.0
    half_life: float = 0.25
    recognise: bool = True
    by_delay: bool = False


@dataclass(frozen=True, slots=True)
class Fading:
    """What comes of it for n pages; every column has length n.

    Attributes:
        source: whether a page is taken for an ephemeral source.
        rate: Λ, of a source; else 0.
        worth: W, of a source; else 0.
        urgency: of an item that comes at once what a day's delay costs; else 0.
    """

    source: Bools
    rate: Floats
    worth: Floats
    urgency: Floats


def fading(
    pages: Watchlist, discovering: Discovering, revealing: Revealing, on: Exchange, now: float,
    cost: Floats,
) -> Fading:  # fmt: skip
    """What looks at sources are worth on a day, and which items are fetched at once.

    ``cost`` (H,) is C of a look at each host.
    """
    it = _Columns.of(pages)
    held = it.captured & (it.gone == 0)
    looked = Looked(it.found_at, it.since, held)
    source, rate = sources(it.half_life, looked, discovering.churning, on)
    if not source.any():
        return Fading(source, rate, np.zeros(len(source)), np.zeros(len(source)))
    decay = decays(it.half_life, on)
    reveals = source[revealing.by] & (revealing.item >= 0)
    by, item = revealing.by[reveals], revealing.item[reveals]
    worth = it.importance * on.item_worth * rate
    worth *= _reaped(it, source, decay, by, revealing.waited[reveals], now)
    if on.by_delay:
        worth /= cost[it.host]
    fastest = np.zeros(len(source))
    np.maximum.at(fastest, item, decay[by])
    return Fading(source, rate, worth, _urgency(it, fastest, on, now))


@dataclass(frozen=True, slots=True)
class _Columns:
    """Those of the watchlist that matter here."""

    host: Rows
    importance: Floats
    half_life: Floats
    since: Floats
    found_at: Floats
    captured: Bools
    gone: Ints

    @classmethod
    def of(cls, pages: Watchlist) -> _Columns:
        columns: dict[str, Any] = {each.name: pages[each.name] for each in fields(cls)}
        return cls(**columns)


@dataclass(frozen=True, slots=True)
class Looked:
    """From when (days) to when n pages were looked at, and of which a copy is ``held``."""

    found_at: Floats
    since: Floats
    held: Bools


def sources(
    half_life: Floats, looked: Looked, churning: Churning, on: Exchange
) -> tuple[Bools, Floats]:
    """(n,) each: which pages are sources, and Λ of those.

    ``half_life`` is as :class:`~scheduler.recrawl.terms.Terms` has it.
    """
    source: Bools = half_life > 0
    rate = rate_of_silent(looked.since - looked.found_at)
    if len(churning):
        known = churning.rates(looked.since)
        rate[known.row] = known.rate
        if on.recognise:
            source[known.row[known.churning]] = True
    source &= looked.held & (half_life != 0)
    return source, np.where(source, rate, 0.0)


def decays(half_life: Floats, on: Exchange) -> Floats:
    """(n,), μ of what appears at pages, were they sources."""
    own = np.isfinite(half_life) & (half_life > 0)
    decay: Floats = np.log(2) / np.where(own, half_life, on.half_life)
    return decay


def _reaped(
    it: _Columns, source: Bools, decay: Floats, by: Rows, waited: Floats, now: float
) -> Floats:
    """(n,), the index for Λ = 1: that of the items that others reveal, too, by when they did."""
    found, rows = np.zeros(len(source)), np.flatnonzero(source)
    since = np.maximum(now - it.since[rows], 0.0)
    found[rows] = whittle.index_after(since, 1.0, 1.0, decay[rows])
    items = np.bincount(by, minlength=len(found))
    each = np.bincount(by, whittle.index_after(waited, 1.0, 1.0, decay[by]), minlength=len(found))
    known = items > 0
    found[known] = each[known] / items[known]
    return found


def _urgency(it: _Columns, decay: Floats, on: Exchange, now: float) -> Floats:
    """(n,), what a day costs by which an item comes later; 0 where that is no hurry any more.

    ``decay`` (n,) is how fast it fades, 0 of what no source revealed.
    """
    a_day = on.item_worth * decay * np.exp(-decay * np.maximum(now - it.found_at, 0.0))
    waits = ~it.captured & (it.gone == 0) & (a_day > on.missing)
    return np.where(waits, it.importance * a_day, 0.0)
