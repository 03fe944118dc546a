"""All pages are valued again after a time, or earlier if hosts may offer more."""

from math import inf

import pytest

from freshet.scheduler.queue.ready import ReadyQueue
from freshet.scheduler.queue.valuation_times import ValuationTimes


def queue(*, is_low: bool) -> ReadyQueue:
    found = ReadyQueue()
    found.wanted = 4 if is_low else 0
    return found


def valued(at: float = 1_000.0) -> ValuationTimes:
    times = ValuationTimes()
    times.valued(at)
    times.filled(has_all=False)
    return times


def test_the_first_valuation_is_due_at_once() -> None:
    assert ValuationTimes().is_due
    assert not valued().is_due


@pytest.mark.parametrize(
    ("budget", "waits"),
    [(inf, 60.0), (86_400.0, 60.0), (432.0, 100.0), (24.0, 900.0), (6.0, 1_800.0), (1.0, 3_600.0)],
)
def test_the_less_the_budget_the_longer_it_waits(budget: float, waits: float) -> None:
    assert valued().next_at(budget, range(10), queue(is_low=True)) == 1_000.0 + waits


@pytest.mark.parametrize("is_low", [True, False])
def test_where_something_came_and_the_queue_is_low_it_only_rests(is_low: bool) -> None:
    times = valued()
    times.altered(is_drained=False)
    rested = times.next_at(24.0, range(1_000_000), queue(is_low=is_low)) - 1_000.0
    assert rested == pytest.approx(8.01 if is_low else 900.0)


@pytest.mark.parametrize(("wider", "drained"), [(True, False), (False, True), (False, False)])
def test_more_is_wanted_where_there_may_be_other_pages(wider: bool, drained: bool) -> None:
    times = valued()
    times.altered(is_drained=drained)
    assert times.wants_more(is_wider=wider) == (wider or drained)
    assert (times.next_at(24.0, range(0), queue(is_low=False)) < 1_001.0) == (wider or drained)


def test_a_page_that_becomes_overdue_later_sets_the_time_and_follows_the_clock() -> None:
    times = valued()
    times.visited([900.0, inf, 1_030.0, 1_020.0])
    assert times.next_at(1.0, range(10), queue(is_low=False)) == 1_020.0
    times.shift(500.0)
    assert times.next_at(1.0, range(10), queue(is_low=False)) == 1_520.0
    times.begin()
    assert (times.is_due, times.overdue_at) == (True, inf)
