"""Values of visits to ephemeral sources, and new items that are fetched at once. Times are in days.

For a source at which items appear at the rate Λ and lose value at the rate μ, the value of a visit
τ days after the last one is its Whittle index, where crawls may happen at any time, times
importance:

    W = w E (Λ/μ) [1 − (1 + μτ) e^{−μτ}] / C

    w   importance of the source
    E   item_worth: the value of an item when it appears, in days on which a copy is stale; the
        exchange rate between new items and fresh copies. If learnt from clicks, times ξ, the value
        of an item of the source relative to others
    Λ   items a day (:mod:`freshet.scheduler.queue.new_pages`);  μ  ln 2 over the half-life: from
        the site list or a table, else learnt (:mod:`freshet.scheduler.ephemeral.openings`), else
        the default
    C   cost of a visit, in requests

so that sources of items and copies compete for each request at one price. If other pages reveal the
same items, the bracket is computed for each item that the source has revealed, with τ since the
last visit to any page that reveals it (:mod:`scheduler.discovery.hub_yield`), and averaged: an
overlap is counted once. The items that a visit finds also cost a request each. Each must be fetched
once, now or later, so this does not change when to visit, and C does not include it.

The value of a source, declared or recognised, is at least its value as an ordinary page: the crawl
keeps a copy of it anyway, and a page that is wrongly recognised as a source loses nothing.

*Items.* A missing page costs its importance a day, an item w E μ e^{−μ·age} a day until it is
fetched. While an item costs more than a missing page, it ranks before all pages that are not
overdue, the most costly item first. After that it ranks like any other new page.

Reference: Avrachenkov and Borkar 2018, Theorem 1, as T → 0 (:mod:`scheduler.policies.whittle`); the
treatment of overlaps and items is ours.
"""

import numpy as np

from freshet.scheduler.arrays import Bools, Floats, Ints, rows_among
from freshet.scheduler.discovery.hub_yield import ExpectedReveals
from freshet.scheduler.policies import whittle
from freshet.scheduler.queue.new_pages import Churning, HubPages, rate_of_silent
from freshet.scheduler.queue.page_rules import DiscoveryTerms
from freshet.scheduler.queue.pages import PageTable
from freshet.scheduler.sources import Rows


def decaying(
    pages: PageTable,
    hubs: HubPages,
    revealing: ExpectedReveals,
    on: DiscoveryTerms,
    now: float,
    *,
    cost: Floats,
) -> tuple[tuple[Rows, Floats, Floats], tuple[Rows, Floats]]:
    """Return the ephemeral sources on a day, and the items to fetch at once.

    For the k sources: their rows, ascending, Λ, and W. For the m items: their rows, and the cost of
    a day of delay. ``cost`` (H,) is C for each host.
    """
    since, half_life = pages["since"], pages["half_life"]
    row, rate = sources(
        half_life,
        hubs.churning,
        on,
        found_at=pages["found_at"],
        since=since,
        held=pages["captured"] & (pages["gone"] == 0),
    )
    if not len(row):
        return (row, rate, rate), (row, rate)
    decay, item_worth = item_terms(half_life[row], pages["page_id"][row], on)
    place = np.full(len(since), -1)
    place[row] = np.arange(len(row))
    reveals = (place[revealing.by] >= 0) & (revealing.item >= 0)
    by, item = place[revealing.by[reveals]], revealing.item[reveals]
    # The index for Λ = 1, averaged over items that other pages reveal as well.
    items = np.bincount(by, minlength=len(row))
    each = np.bincount(by, whittle.ripe(decay[by] * revealing.waited[reveals]), minlength=len(row))
    alone = whittle.ripe(decay * np.maximum(now - since[row], 0.0))
    value = pages["importance"][row] * item_worth * rate
    value *= np.where(items > 0, each / np.maximum(items, 1), alone) / decay
    if on.by_delay:
        value /= cost[pages["host"][row]]
    return (row, rate, value), _urgent(pages, item, (decay[by], item_worth[by]), on, now)


def sources(
    half_life: Floats,
    churning: Churning,
    on: DiscoveryTerms,
    *,
    found_at: Floats,
    since: Floats,
    held: Bools,
) -> tuple[Rows, Floats]:
    """Return (k,) each: the rows of the pages that are sources, ascending, and their Λ.

    The arguments have n rows: ``half_life`` as in
    :class:`~freshet.scheduler.queue.page_rules.PageRules`, ``found_at`` and ``since`` the days of
    the discovery and the last visit, ``held`` whether there is a copy.
    """
    known, known_rate, is_churning = churning.rates(since)
    is_source: Bools = half_life > 0
    if on.recognise:
        is_source[known[is_churning]] = True
    row = np.flatnonzero(is_source & held & (half_life != 0))
    rate = rate_of_silent(since[row] - found_at[row])
    place, found = rows_among(row, known)
    rate[place] = known_rate[found]
    return row, rate


def item_terms(half_life: Floats, page_id: Ints, on: DiscoveryTerms) -> tuple[Floats, Floats]:
    """Return μ and E (k,) of the items of sources: from page rules, from clicks, or the default."""
    is_set = np.isfinite(half_life) & (half_life > 0)
    learnt, value, _ = on.learnt.of(page_id)
    usual = np.where(np.isnan(learnt), on.half_life, learnt)
    decay: Floats = np.log(2) / np.where(is_set, half_life, usual)
    return decay, on.item_worth * np.where(is_set, 1.0, value)


def _urgent(
    pages: PageTable, item: Rows, terms: tuple[Floats, Floats], on: DiscoveryTerms, now: float
) -> tuple[Rows, Floats]:
    """Return the rows of the items to fetch at once, and the cost of a day of delay.

    ``item`` (m,) was revealed by a source with these :func:`item_terms`, (m,) each. If several
    sources reveal an item, the largest values count.
    """
    waits = ~pages["captured"][item] & (pages["gone"][item] == 0)
    row, which = np.unique(item[waits], return_inverse=True)
    fastest, item_worth = np.zeros(len(row)), np.zeros(len(row))
    for largest, values in zip((fastest, item_worth), terms, strict=True):
        np.maximum.at(largest, which, values[waits])
    age = np.maximum(now - pages["found_at"][row], 0.0)
    a_day = item_worth * fastest * np.exp(-fastest * age)
    hurry = a_day > on.missing
    return row[hurry], pages["importance"][row[hurry]] * a_day[hurry]
