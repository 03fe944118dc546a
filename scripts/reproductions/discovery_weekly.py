"""Within seven days: what each algorithm finds of a week's new pages, with equally many visits.

Every site is crawled whole every week, and every algorithm is given all these recrawls and the
pages that were still there in the last one. Beside them: as many visits to all pages in turn, the
bound, and GREEDY, which knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from freshet.scheduler.arrays import Bools, Ints
from freshet.scheduler.discovery.covers import RecrawlHistory, greedy
from freshet.scheduler.discovery.reveal_graph import Reveals
from freshet.scheduler.discovery.thesis_covers import ALGORITHMS
from scripts.reproductions import discovery_measures as measures
from scripts.reproductions.discovery_measures import FIRST, OPTIMAL, Row, Trace
from scripts.reproductions.link_history import LinkHistory

#: Looks at a site in a week.
BUDGETS: Final = (1, 3, 10, 30)
#: What the algorithms are called here, by their names in ``freshet discover``.
NAMES: Final[Mapping[str, str]] = {
    "COV-WIN": "cov_win",
    "OD-WIN": "od_win",
    "CLIQ-WIN": "cliq_win",
    "COV": "cov",
    "bandit": "bandit",
}
UNIFORM, BOUND = "in turn", "bound"
#: Above whom COV-WIN should stand, or at least not below.
RIVALS: Final = ("OD-WIN", "CLIQ-WIN", "COV", UNIFORM)
#: By algorithm and budget.
Rows = Mapping[str, Mapping[int, Row]]

_Choose = Callable[[RecrawlHistory, Reveals], Ints]


class Turn:
    """Looks at all pages that are there, one after the other, a few each week."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._next = 0

    def choose(self, alive: Bools) -> Ints:
        """The next pages, in the order of their numbers; after the last comes the first."""
        pages = np.flatnonzero(alive)
        at = int(np.searchsorted(pages, self._next))
        chosen = np.roll(pages, -at)[: self._budget]
        if chosen.size:
            self._next = int(chosen[-1]) + 1
        return np.asarray(chosen, np.int64)


def compared(histories: Sequence[LinkHistory]) -> Rows:
    """What each finds on some sites together, with each budget."""
    sites = [(each, measures.weeks(each.recrawls())) for each in histories]
    found: dict[str, Mapping[int, Row]] = {}
    for shown, name in NAMES.items():
        found[shown] = _by_budget([t for site in sites for t in _by_history(site, name)])
    found[UNIFORM] = {
        budget: measures.row((t for site in sites for t in _in_turn(site, budget)), budget)
        for budget in BUDGETS
    }
    bound = [t for site in sites for t in _judged(site, lambda past, _: past.ever())]
    found[BOUND] = dict.fromkeys(BUDGETS, measures.row(bound))
    found[OPTIMAL] = _by_budget(
        [t for site in sites for t in _judged(site, lambda _, now: greedy(now))]
    )
    return found


def lead(rows: Rows, budget: int) -> float:
    """By how much COV-WIN finds more than the best of its rivals; below 0: less."""
    best = max(rows[rival][budget].coverage for rival in RIVALS)
    return rows["COV-WIN"][budget].coverage - best


def is_dearer(rows: Rows, budget: int) -> bool:
    """Whether COV-WIN pays more looks for a page than OD-WIN."""
    return rows["COV-WIN"][budget].overall > rows["OD-WIN"][budget].overall


def _by_budget(traces: Sequence[Trace]) -> Mapping[int, Row]:
    return {budget: measures.row(traces, budget) for budget in BUDGETS}


def _by_history(site: tuple[LinkHistory, list[Reveals]], name: str) -> Iterator[Trace]:
    """The cover for any budget begins that for the largest."""
    choose = ALGORITHMS[name]
    return _judged(site, lambda past, _: choose(past, max(BUDGETS)))


def _judged(site: tuple[LinkHistory, list[Reveals]], choose: _Choose) -> Iterator[Trace]:
    history, weeks = site
    for week, now in enumerate(weeks):
        if week >= FIRST and measures.is_judged(now):
            past = RecrawlHistory(now.old, weeks[:week])
            yield measures.trace(now, choose(past.of_living(history.alive(week)), now))


def _in_turn(site: tuple[LinkHistory, list[Reveals]], budget: int) -> Iterator[Trace]:
    history, weeks = site
    turn = Turn(budget)
    for week, now in enumerate(weeks):
        chosen = turn.choose(history.alive(week))
        if week >= FIRST and measures.is_judged(now):
            yield measures.trace(now, chosen)
