"""What a site was at every moment: pages that come and go, links for a while. Pure; days.

Unlike a :class:`scripts.reproductions.link_history.LinkHistory`, which knows it once a week.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import Final

import numpy as np

from freshet.scheduler.arrays import Bools, Floats, Ints
from scripts.reproductions.link_history import LinkHistory

WEEK: Final = 7.0
#: Later than any day, and small enough for a whole number.
_NO_DAY: Final = 1e12


@dataclass(frozen=True, slots=True)
class Course:
    """A site from day 0 on; its pages are numbered by the weekly crawl that may see them first.

    Attributes:
        name: what the site is called.
        days: how long it was watched.
        born, gone: from when on a page was there, and from when on not; of shape (pages,).
        source, target: the pages that a link leads from and to; of shape (links,), as the next.
        begin, end: from when on the link was there, and from when on not.
    """

    name: str
    days: float
    born: Floats
    gone: Floats
    source: Ints
    target: Ints
    begin: Floats
    end: Floats

    @property
    def weeks(self) -> int:
        """Crawls that there were, one each seven days, the first on day 0."""
        return int(self.days / WEEK) + 1


def snapshots(course: Course) -> tuple[LinkHistory, Ints]:
    """What weekly crawls saw that each took no time, and the page behind each of their numbers.

    A page that came and went between two of them was never there.
    """
    born, gone = step(course.born), step(course.gone)
    was_seen = (born < gone) & (born < course.weeks)
    place = np.cumsum(was_seen) - 1
    first, last = step(course.begin), step(course.end)
    known = was_seen[course.source] & was_seen[course.target] & (first < last)
    history = LinkHistory(
        course.name, course.weeks, born[was_seen],
        place[course.source[known]], place[course.target[known]], first[known], last[known],
        gone[was_seen],
    )  # fmt: skip
    return history, np.flatnonzero(was_seen)


def step(day: Floats) -> Ints:
    """The first weekly crawl that sees what was there from a day on."""
    return np.ceil(np.clip(day, 0.0, _NO_DAY) / WEEK).astype(np.int64)


def spread(history: LinkHistory, rng: np.random.Generator) -> Course:
    """A history of weekly steps, each page of a step born at some moment of the week before it.

    A link begins with the later of its two pages where it is of the same step; otherwise, as all
    links end, in the middle of a week.
    """
    days = WEEK * (history.born - rng.random(history.born.size) * (history.born > 0))
    later = np.maximum(days[history.source], days[history.target])
    both = np.maximum(history.born[history.source], history.born[history.target])
    begin = np.where(history.begin <= both, later, _middle(history.begin))
    gone = np.full(days.size, inf)
    if history.gone is not None:
        gone = _middle(history.gone)
    return Course(
        history.name, WEEK * (history.steps - 1), days, gone, history.source, history.target,
        begin, _middle(history.end),
    )  # fmt: skip


def _middle(week: Ints) -> Floats:
    """The day in the middle of the week that a crawl ends."""
    return np.asarray(WEEK * (week - 0.5), np.float64)


class Links:
    """The links of a course, page by page."""

    def __init__(self, course: Course) -> None:
        order = np.lexsort((course.target, course.source))
        self._course = course
        self._target, self._begin, self._end = (
            column[order] for column in (course.target, course.begin, course.end)
        )
        self._first = np.searchsorted(course.source[order], np.arange(course.born.size + 1))

    def of(self, page: int, day: float) -> list[int] | None:
        """The pages, there on a day, that one leads to, ascending; None: it is not there."""
        born, gone = self._course.born, self._course.gone
        if not born[page] <= day < gone[page]:
            return None
        its = slice(self._first[page], self._first[page + 1])
        target = self._target[its]
        is_there = (self._begin[its] <= day) & (day < self._end[its])
        is_there &= (born[target] <= day) & (day < gone[target])
        found: list[int] = np.unique(target[is_there]).tolist()
        return found

    def to_all(self, page: int) -> Sequence[tuple[int, float, float]]:
        """Target, begin and end of each link from a page."""
        its = slice(self._first[page], self._first[page + 1])
        columns = (self._target[its], self._begin[its], self._end[its])
        return list(zip(*(column.tolist() for column in columns), strict=True))


def soonest(course: Course, links: Links) -> Floats:
    """(pages,), when one who looks at every page all the time knows of each; never: infinite."""
    known = np.where(course.born <= 0.0, 0.0, inf)
    open_ = [(0.0, page) for page in np.flatnonzero(known == 0.0).tolist()]
    while open_:
        day, page = heappop(open_)
        if day > known[page]:
            continue
        for target, begin, end in links.to_all(page):
            at = max(day, begin, float(course.born[target]))
            if at < min(end, course.gone[target], course.gone[page]) and at < known[target]:
                known[target] = at
                heappush(open_, (at, target))
    return known


def judged(course: Course, links: Links, first: int, most: float) -> Bools:
    """(pages,), the new pages that somebody may find within seven days.

    Of weeks from the ``first`` to the last but one, if they did not bring more than a share
    ``most`` of the pages there ever were: a site that is rebuilt is no new page.
    """
    week = step(course.born)
    counts = np.bincount(week)
    new, ever = counts[week], (np.cumsum(counts) - counts)[week]
    last = np.minimum(course.born + WEEK, course.gone)
    can_be = soonest(course, links) <= last
    return can_be & (week > first) & (course.born + WEEK <= course.days) & (new <= most * ever)
