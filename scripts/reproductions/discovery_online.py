"""Within seven days of birth: who finds new pages by visits that are spread over the week.

A visit to a page reveals what it links to at that moment; new pages are fetched, which is no visit,
and reveal what is behind them. What is known of a site beforehand are full recrawls of every week,
as the thesis gives them, each told a week late: so that no page of which anybody was told is still
to be found within its seven days.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Final, Protocol

import numpy as np

from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.discovery.covers import RecrawlHistory
from freshet.scheduler.discovery.reveal_graph import Reveals
from freshet.scheduler.discovery.thesis_covers import ALGORITHMS
from scripts.reproductions.courses import WEEK, Course, Links, judged, snapshots
from scripts.reproductions.discovery_measures import FIRST, REBUILT
from scripts.reproductions.discovery_valued import ByWorth, Shown
from scripts.reproductions.discovery_weekly import Turn

#: Looks at a site in a week.
BUDGETS: Final = (1, 3, 7, 14, 28)
#: Who chooses once a week, by their names in ``freshet discover``.
WEEKLY: Final[Mapping[str, str]] = {
    "COV-WIN": "cov_win",
    "OD-WIN": "od_win",
    "CLIQ-WIN": "cliq_win",
    "COV": "cov",
}
PRECEDENTS, UNTOLD, UNIFORM = "precedents", "precedents, untold", "in turn"
AT_ONCE: Final = "OD-WIN, at once"
RIVALS: Final = ("OD-WIN", "CLIQ-WIN", "COV", UNIFORM)
#: Weeks after which a full recrawl is told.
_LATE: Final = 1


@dataclass(frozen=True, slots=True)
class Score:
    """What ``visits`` found: ``found`` in time of ``new`` pages."""

    new: int
    found: int
    visits: int

    @property
    def coverage(self) -> float:
        """The share found; NaN where nothing was new."""
        return self.found / self.new if self.new else nan

    @property
    def overhead(self) -> float:
        """Looks for each page found; infinite where none was."""
        return self.visits / self.found if self.found else inf


#: By who chose, and looks a week.
Scores = Mapping[str, Mapping[int, Score]]


@dataclass(frozen=True, slots=True)
class Site:
    """A course, and what full recrawls of it saw.

    Attributes:
        pages: the pages of the course, by the numbers that the recrawls give them.
        recrawls: the n-th tells what was new in week n + 1.
        alive: the pages that were there in the n-th recrawl, of those that had been by then.
        judged: the new pages that count, of shape (pages of the course,).
    """

    course: Course
    links: Links
    pages: Ints
    recrawls: Sequence[Reveals]
    alive: Sequence[Bools]
    judged: Bools

    @property
    def weeks(self) -> int:
        """Whole weeks in which there are looks."""
        return self.course.weeks - 1


class Chooser(Protocol):
    """Says where to look next."""

    def choose(self, day: float) -> int | None:
        """The page to look at on a day; None: none."""

    def saw(self, page: int, day: float, shown: Shown) -> None:
        """What the visit showed."""


class InOrder:
    """Looks at pages that are given for a week, one after the other."""

    def __init__(self, covers: Sequence[Ints]) -> None:
        self._covers = covers
        self._left: list[int] = []

    def begin(self, week: int) -> None:
        """Forget the week before."""
        self._left = self._covers[week].tolist()[::-1]

    def choose(self, day: float) -> int | None:
        """The next page of the week."""
        return self._left.pop() if self._left else None

    def saw(self, page: int, day: float, shown: Shown) -> None:
        """Whatever it was."""


def site_of(course: Course) -> Site:
    """What is needed to play a course."""
    history, pages = snapshots(course)
    links = Links(course)
    alive = [history.alive(week) for week in range(history.steps)]
    counted = judged(course, links, FIRST, REBUILT)
    return Site(course, links, pages, history.recrawls(), alive, counted)


def compared(course: Course) -> Scores:
    """What each finds, with each budget."""
    site = site_of(course)
    scores: dict[str, dict[int, Score]] = {
        PRECEDENTS: {k: by_worth(site, k, is_told=True) for k in BUDGETS},
        UNTOLD: {k: by_worth(site, k, is_told=False) for k in BUDGETS},
    }
    for shown, name in WEEKLY.items():
        chosen = covers(site, name, max(BUDGETS))
        # The cover for any budget begins that for the largest.
        scores[shown] = {k: in_order(site, [each[:k] for each in chosen], k) for k in BUDGETS}
        if shown == "OD-WIN":
            scores[AT_ONCE] = {
                k: in_order(site, [each[:k] for each in chosen], k, is_spread=False)
                for k in BUDGETS
            }  # fmt: skip
    scores[UNIFORM] = {k: in_order(site, in_turn(site, k), k) for k in BUDGETS}
    return scores


def covers(site: Site, name: str, budget: int) -> list[Ints]:
    """The pages that an algorithm chooses for each week, first the best."""
    chosen = []
    for week in range(site.weeks):
        told = max(week - _LATE, 0)
        alive = site.alive[told]
        past = RecrawlHistory(alive.size, site.recrawls[:told])
        chosen.append(site.pages[ALGORITHMS[name](past.of_living(alive), budget)])
    return chosen


def in_turn(site: Site, budget: int) -> list[Ints]:
    """All pages that are known to be there, one after the other, a few each week."""
    turn = Turn(budget)
    return [site.pages[turn.choose(site.alive[max(n - _LATE, 0)])] for n in range(site.weeks)]


def in_order(site: Site, chosen: Sequence[Ints], budget: int, *, is_spread: bool = True) -> Score:
    """What is found by visits to given pages, in their order over the week, or all at its start."""
    chooser, found, visits = InOrder(chosen), unknown(site.course), 0
    for week in range(site.weeks):
        chooser.begin(week)
        days = [WEEK * (week + n / budget * is_spread) for n in range(budget)]
        visits += _visited(site.links, found, chooser, days) * (week >= FIRST)
    return score(site, found, visits)


def by_worth(site: Site, budget: int, *, is_told: bool) -> Score:
    """What is found by visits at the page worth most at each moment, evenly spread."""
    chooser, found, visits = ByWorth(site.course, is_told=is_told), unknown(site.course), 0
    numbers = site.pages.tolist()
    for week in range(site.weeks):
        told = week - _LATE
        if told > 0:
            gone = site.pages[np.flatnonzero(~site.alive[told])].tolist()
            chooser.told(site.recrawls[told - 1], numbers, gone, WEEK * week)
        days = [WEEK * (week + n / budget) for n in range(budget)]
        visits += _visited(site.links, found, chooser, days) * (week >= FIRST)
    return score(site, found, visits)


def unknown(course: Course) -> Floats:
    """(pages,), when each page was found: the first ones on day 0, the others not yet."""
    return np.where(course.born <= 0.0, 0.0, inf)


def score(site: Site, found: Floats, visits: int) -> Score:
    """What counts of the days on which pages were found."""
    in_time = site.judged & (found <= site.course.born + WEEK)
    return Score(int(site.judged.sum()), int(in_time.sum()), visits)


def _visited(links: Links, found: Floats, chooser: Chooser, days: Sequence[float]) -> int:
    """Let one visit on some days; how many visits there were."""
    visits = 0
    for day in days:
        page = chooser.choose(day)
        if page is not None:
            visits += 1
            chooser.saw(page, day, visit(links, found, page, day))
    return visits


def visit(links: Links, found: Floats, page: int, day: float) -> Shown:
    """Fetch a page and the new ones behind it; marks those as found on this day."""
    shown = {page: links.of(page, day)}
    open_ = [page]
    while open_:
        for target in shown[open_.pop(0)] or ():
            if found[target] == inf:
                found[target] = day
                if target not in shown:
                    shown[target] = links.of(target, day)
                    open_.append(target)
    return shown


def lead(scores: Scores, budget: int) -> float:
    """By what share of the new pages precedents find more than the best of the rivals."""
    return scores[PRECEDENTS][budget].coverage - max(scores[r][budget].coverage for r in RIVALS)


def is_dearer(scores: Scores, budget: int) -> bool:
    """Whether precedents pay more looks for a page than OD-WIN."""
    return scores[PRECEDENTS][budget].overhead > scores["OD-WIN"][budget].overhead
