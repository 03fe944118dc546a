"""What visits to ephemeral sources are worth, and which items come at once."""

from dataclasses import dataclass, replace
from math import exp, inf, log, nan

import numpy as np
import pytest

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.ephemeral.openings import LearntItems
from freshet.scheduler.queue.ephemeral import decaying
from freshet.scheduler.queue.new_pages import HubPages
from freshet.scheduler.queue.page_rules import DiscoveryTerms
from freshet.scheduler.queue.pages import PageTable

NOW = 10.0
#: An item loses half of its worth in a quarter of a day.
DECAY = log(2) / 0.25
ON = DiscoveryTerms(item_worth=7.0)


@dataclass(frozen=True, slots=True)
class Columns:
    """What came of it, (n,) each."""

    source: Bools
    worth: Floats
    urgency: Floats


class Site:
    """Pages of one host; the first two are lists, the others what these show."""

    def __init__(self, half_life: tuple[float, float] = (nan, nan)) -> None:
        self.pages, self.hubs = PageTable(), HubPages()
        self.found: list[float] = [0.0, 0.0]
        self.half_life = half_life
        self.since = [NOW - 0.1, NOW - 0.1]

    def churns(self, row: int, per_look: int = 2) -> "Site":
        for day in np.linspace(0.25, 10, 40).tolist():
            self.hubs.churning.saw(row, day, 0.0, (per_look, per_look, per_look))
        self.since[row] = NOW
        return self

    def visited(self, row: int, at: float) -> "Site":
        self.since[row] = at
        return self

    def items(self, count: int, by: tuple[int, ...], at: float, *, captured: bool = True) -> "Site":
        """So many items, which these lists showed first at visits on this day."""
        first = len(self.found)
        self.found += [at] * count
        n = len(self.found)
        self.hubs = self._hubs(n)
        for row in range(first, n):
            for each in by:
                self.hubs.shown(each, at - 1.0, at, row, at)
        self.since += [at if captured else nan] * count
        return self

    def _hubs(self, n: int) -> HubPages:
        known = self.hubs
        watched = len(known.newest)
        rows = np.arange(watched, n)
        urls = [f"https://a.test/{row}" for row in rows.tolist()]
        known.watch(rows, np.zeros(len(rows), np.intp), urls, np.array(self.found[watched:]))
        return known

    def decaying(self, on: DiscoveryTerms = ON, now: float = NOW, cost: float = 1.0) -> Columns:
        n = len(self.found)
        since = np.array(self.since)
        self.pages.add(
            np.arange(n), urls=["https://a.test/"] * n, host=np.zeros(n, np.intp),
            importance=np.ones(n), found_at=np.array(self.found),
            since=np.where(np.isnan(since), NOW, since),
            captured=~np.isnan(since), half_life=np.array([*self.half_life, *[nan] * (n - 2)]),
        )  # fmt: skip
        revealing = self._hubs(n).revealing(self.pages, now)
        (row, _, worth), (urgent, urgency) = decaying(
            self.pages, self.hubs, revealing, on, now, cost=np.array([cost])
        )
        columns = Columns(np.zeros(n, np.bool_), np.zeros(n), np.zeros(n))
        columns.source[row], columns.worth[row] = True, worth
        columns.urgency[urgent] = urgency
        return columns


def law(rate: float, tau: float, decay: float = DECAY) -> float:
    """Theorem 1 for periods that are short, by adding up what a visit earns later."""
    steps = 200_000
    age = (np.arange(steps) + 0.5) * (tau / steps)
    # Each moment's wait has cost what all that had come by then lost in it, seen from now.
    kept = np.exp(-decay * age)
    return float(7.0 * rate * decay * np.sum(age * kept) * (tau / steps))


def test_what_openings_teach_holds_where_nothing_else_is_said() -> None:
    learnt = LearntItems(
        np.array([0, 1]), np.array([1.0, 1.0]), np.array([1.5, 1.5]), np.array([9.0, 9.0])
    )
    on, plain = replace(ON, learnt=learnt), replace(ON, half_life=1.0)
    found = Site((inf, 0.5)).items(1, (0, 1), NOW).decaying(on)
    usual = Site((inf, 0.5)).items(1, (0, 1), NOW).decaying(plain)
    assert found.worth[:2] == pytest.approx(usual.worth[:2] * [1.5, 1.0])
    item = [
        Site((inf, 0.0)).items(1, (0,), NOW, captured=False).decaying(each) for each in (on, plain)
    ]
    assert item[0].urgency[2] == pytest.approx(1.5 * item[1].urgency[2])
    assert item[0].urgency[2] > 0


def test_a_source_is_worth_its_whittle_index() -> None:
    site = Site().churns(0)
    _, (rate,), _ = site.hubs.churning.rates(np.array([NOW]))
    found = site.decaying(now=NOW + 0.2)
    assert found.source.tolist() == [True, False]
    assert found.worth[0] == pytest.approx(law(rate, 0.2), rel=1e-6)
    assert found.worth[1] == 0


def test_declared_sources_have_their_own_half_life_or_the_usual_one() -> None:
    found = Site((inf, 2.0)).decaying()
    assert found.source.tolist() == [True, True]
    assert found.worth[0] / found.worth[1] == pytest.approx(
        law(1.0, 0.1) / law(1.0, 0.1, log(2) / 2.0), rel=1e-6
    )


def test_what_is_said_to_be_none_is_none_and_recognising_can_be_turned_off() -> None:
    assert not Site((0.0, nan)).churns(0).decaying().source.any()
    assert not Site().churns(0).decaying(DiscoveryTerms(recognise=False)).source.any()


def test_a_look_costs_by_the_delay_where_that_is_asked_for() -> None:
    by_request = Site((inf, nan)).decaying(DiscoveryTerms(), cost=5.0).worth[0]
    by_delay = Site((inf, nan)).decaying(DiscoveryTerms(by_delay=True), cost=5.0).worth[0]
    assert by_request == pytest.approx(5 * by_delay)


def test_what_another_list_showed_a_moment_ago_is_not_paid_twice() -> None:
    alone = Site((inf, 0.0)).items(4, (0,), NOW - 0.5).decaying(now=NOW)
    shared = Site((inf, 0.0)).items(4, (0, 1), NOW - 0.5).visited(1, NOW).decaying(now=NOW)
    half = Site((inf, 0.0)).items(2, (0,), NOW - 0.5).items(2, (0, 1), NOW - 0.5)
    assert alone.worth[0] > 0
    assert shared.worth[0] == 0
    assert half.visited(1, NOW).decaying(now=NOW).worth[0] == pytest.approx(alone.worth[0] / 2)


def test_new_items_of_a_source_come_at_once_while_there_is_something_to_lose() -> None:
    site = Site((inf, 0.0)).items(1, (0,), NOW - 0.5, captured=False)
    site.items(1, (0,), NOW - 2.0, captured=False).items(1, (1,), NOW, captured=False)
    found = site.items(1, (0,), NOW).decaying().urgency
    assert found[2] == pytest.approx(7.0 * DECAY * exp(-DECAY * 0.5))
    # Too late; of no source; captured.
    assert found[3:].tolist() == [0.0, 0.0, 0.0]
    assert found[:2].tolist() == [0.0, 0.0]


def test_where_missing_pages_cost_more_items_wait_their_turn() -> None:
    site = Site((inf, 0.0)).items(1, (0,), NOW - 0.01, captured=False)
    assert not site.decaying(DiscoveryTerms(item_worth=0.3)).urgency.any()


def test_without_sources_there_is_nothing() -> None:
    found = Site().items(2, (0,), NOW).decaying()
    assert not found.source.any()
    assert not found.worth.any()
    assert not found.urgency.any()
