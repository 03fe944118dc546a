"""Looks by what precedents say: always at the page that is worth most at the moment. Pure; days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

import numpy as np

from freshet.scheduler.discovery.hub_yield import PageSnapshot, Precedents
from freshet.scheduler.discovery.reveal_graph import Reveals
from scripts.reproductions.courses import WEEK, Course

#: The pages that each page led to when it was fetched, itself the first; None: it was gone.
Shown = Mapping[int, Sequence[int] | None]
#: Without full recrawls, one visit in so many explores, by the law to which nothing is too late.
_EXPLORING: Final = 4
#: Pages that are remembered: a year of 20 a week. The others remember all.
_REMEMBERED: Final = 1_000


class ByWorth:
    """Chooses by :class:`freshet.scheduler.discovery.hub_yield.Precedents`, to find within a week.

    Told of full recrawls it learns from nothing else, as the others do, but for when its own visits
    were; otherwise from what its own visits show, as a daemon does.
    """

    def __init__(self, course: Course, *, is_told: bool) -> None:
        pages = course.born.size
        self._is_told, self._visits = is_told, 0
        self._precedents = Precedents(_REMEMBERED)
        self._row = np.full(pages, -1)
        self._pages: list[int] = []
        self._found_at, self._since = np.zeros(pages), np.zeros(pages)
        self._gone = np.zeros(pages, np.bool_)
        for page in np.flatnonzero(course.born <= 0.0).tolist():
            self._admit(page, 0.0)

    def told(self, now: Reveals, pages: Sequence[int], gone: Sequence[int], day: float) -> None:
        """A full recrawl: what it revealed, by the numbers of ``pages``, and which are gone."""
        if not self._is_told:
            return
        for page in pages[now.old : now.old + now.new]:
            self._admit(page, day)
        for old in np.flatnonzero(now.degrees).tolist():
            for new in now.of(old).tolist():
                self._reveal(pages[now.old + new], pages[old])
        self._gone[self._row[list(gone)]] = True

    def choose(self, day: float) -> int | None:
        """The page that is worth most; None: none is worth a visit."""
        self._visits += 1
        explores = not self._is_told and self._visits % _EXPLORING == 0
        known = len(self._pages)
        standing = PageSnapshot(
            np.zeros(known, np.intp), np.ones(known), self._found_at[:known],
            self._since[:known], np.ones(known, np.bool_),
        )  # fmt: skip
        worth = self._precedents.value(standing, day, inf if explores else WEEK).value
        best = int(np.argmax(np.where(self._gone[:known], 0.0, worth)))
        return self._pages[best] if worth[best] > 0 and not self._gone[best] else None

    def saw(self, page: int, day: float, shown: Shown) -> None:
        """A visit to a page, and at the new ones behind it."""
        row = int(self._row[page])
        before, self._since[row] = self._since[row], day
        if shown[page] is None:
            self._gone[row] = True
            return
        if self._is_told:
            return
        for by, targets in shown.items():
            for target in targets or ():
                self._learn(by, target, day if by != page else before, day)

    def _learn(self, by: int, target: int, before: float, day: float) -> None:
        """A page led to another one; ``before`` is when it had been visited before."""
        is_first = before == day
        self._admit(target, day)
        found_at = self._found_at[self._row[target]]
        if not is_first:
            if found_at > before:
                self._reveal(target, by)
        elif found_at == day:
            for row in self._precedents.revealers(int(self._row[by])):
                self._reveal(target, self._pages[row])

    def _admit(self, page: int, day: float) -> None:
        if self._row[page] < 0:
            row = self._row[page] = len(self._pages)
            self._pages.append(page)
            self._found_at[row] = self._since[row] = day
            self._precedents.admit(int(row), 0, day)

    def _reveal(self, page: int, by: int) -> None:
        if page != by:
            self._precedents.reveal(int(self._row[page]), int(self._row[by]))
