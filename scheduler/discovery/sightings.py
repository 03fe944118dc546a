"""When pages were found and links first seen: the history from which H_t is built.

A crawl that looks at some pages only knows of each link when it was first seen, and when the page
that has it was looked at before: in between, it appeared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freshet.scheduler.arguments import Bools, Floats, Ints
from freshet.scheduler.discovery.reveals import Reveals, reveals_of


@dataclass(frozen=True, slots=True)
class Sightings:
    """The history of a site; times in days, or in any other unit.

    Attributes:
        found_at: when each page was found, ascending; pages are numbered so. Of shape (pages,).
        source, target: the pages that a link leads from and to; of shape (links,), as the next.
        seen_at: when it was first seen.
        look_page, look_at: which page was looked at when, in order of time; of shape (looks,).
    """

    found_at: Floats
    source: Ints
    target: Ints
    seen_at: Floats
    look_page: Ints
    look_at: Floats

    def __post_init__(self) -> None:
        if np.any(np.diff(self.found_at) < 0) or np.any(np.diff(self.look_at) < 0):
            raise ValueError("pages and looks must be in the order of time")

    def looked_before(self, page: Ints, at: Floats) -> Floats:
        """When each page was last looked at before a time; -inf where it never was."""
        return looked_before(self.look_page, self.look_at, page, at)

    def between(self, start: float, end: float) -> Reveals:
        """H_t of the pages that were found after ``start``, up to ``end``.

        A link counts that may have been there at the end: the page that has it had not been looked
        at in vain. Where all pages were looked at at both times, those are the links that were.
        """
        source, target, old, both = self.links_between(start, end)
        return reveals_of(old, both - old, source, target)

    def links_between(self, start: float, end: float) -> tuple[Ints, Ints, int, int]:
        """The links to pages found in that time, and how many pages there were before and after."""
        old = int(np.searchsorted(self.found_at, start, "right"))
        both = int(np.searchsorted(self.found_at, end, "right"))
        known = (self.source < both) & (self.target < both) & (self.target >= old)
        known[known] = self.may_be_there(self.source[known], self.seen_at[known], end)
        return self.source[known], self.target[known], old, both

    def may_be_there(self, source: Ints, seen_at: Floats, end: float) -> Bools:
        """Which links on these pages may have been there at the end, by when they were seen."""
        possible = (seen_at <= end) | (self.looked_before(source, seen_at) < end)
        return np.asarray(possible, np.bool_)


def looked_before(look_page: Ints, look_at: Floats, page: Ints, at: Floats) -> Floats:
    """When each page was last looked at before a time, by looks in the order of time.

    (m,) like ``page`` and ``at``; -inf where it never was.
    """
    moments = look_at.size + 1
    key = look_page * moments + np.searchsorted(look_at, look_at, "left")
    order = np.argsort(key, kind="stable")
    wanted = page * moments + np.searchsorted(look_at, at, "left")
    last = np.searchsorted(key[order], wanted, "left") - 1
    found = np.full(page.size, -np.inf)
    is_one = np.zeros(page.size, np.bool_)
    is_one[last >= 0] = key[order[last[last >= 0]]] // moments == page[last >= 0]
    found[is_one] = look_at[order[last[is_one]]]
    return found


@dataclass(frozen=True, slots=True)
class Yields:
    """What the looks at each page revealed.

    Attributes:
        looks: looks behind which another one stands; of shape (pages,), as the next.
        days: the time between those.
        chances: the site's new pages that were found in that time.
        revealed: those of them to which the page linked when it was looked at.
    """

    looks: Ints
    days: Floats
    chances: Ints
    revealed: Ints

    @property
    def fractions(self) -> Floats:
        """p_x as far as the looks tell it: 0 where there was nothing to reveal."""
        return self.revealed / np.maximum(self.chances, 1)


def yields(sightings: Sightings) -> Yields:
    """What each page revealed, from whatever looks there were.

    A page reveals what was found since it was looked at before, no matter who found it first: of
    such pairs of looks p_x needs no full recrawl.
    """
    pages = sightings.found_at.size
    page, at = sightings.look_page, sightings.look_at
    before = sightings.looked_before(page, at)
    is_again = np.isfinite(before)
    page, at, before = page[is_again], at[is_again], before[is_again]
    found = np.searchsorted(sightings.found_at, at, "right")
    known = np.searchsorted(sightings.found_at, before, "right")
    seen_before = sightings.looked_before(sightings.source, sightings.seen_at)
    is_news = np.isfinite(seen_before) & (sightings.found_at[sightings.target] > seen_before)
    return Yields(
        np.bincount(page, minlength=pages),
        np.bincount(page, at - before, minlength=pages).astype(np.float64),
        np.bincount(page, found - known, minlength=pages).astype(np.int64),
        np.bincount(sightings.source[is_news], minlength=pages),
    )
