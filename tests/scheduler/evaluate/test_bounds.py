"""The costs bound those of every history that shows the same captures."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.scheduler.evaluate.bounds import (
    AGE,
    BINARY,
    COUNTED,
    HARMONIC,
    PageVisits,
    bill,
    least_cost,
)
from freshet.scheduler.evaluate.captures import GONE, Captures, Timeline
from freshet.scheduler.evaluate.changes import ChangeTimes
from freshet.scheduler.evaluate.crawl_costs import Crawls, realised_costs
from freshet.scheduler.sources import SourceTable
from tests.scheduler.evaluate.archives import complete, one_page


def costs(captures: Captures, visits: list[float], copy: float, start: float, end: float):  # type: ignore[no-untyped-def]
    visited = PageVisits(np.array([0, len(visits)]), np.array(visits), np.array([copy]))
    pages, _ = bill(Timeline.of(captures), visited, captures.importance, start, end)
    return pages[0]


def truth(changes: list[float], visits: list[float], end: float) -> tuple[float, float]:
    """What another judge says of one page that is visited on day 0 and then so."""
    times = ChangeTimes(np.array([0, len(changes)]), np.array(changes))
    crawls = Crawls(np.zeros(len(visits), np.intp), np.array(visits))
    found = realised_costs(SourceTable.of([1.0], [1.0]), crawls, 0.0, end, changes=times)
    return float(found.harmonic[0]) * end, float(found.binary[0]) * end


ARCHIVES = st.lists(st.integers(0, 1), min_size=2, max_size=5)
LOOKS = st.lists(st.sampled_from([0.5, 1.0, 1.25, 1.5, 2.5, 2.75, 3.0]), max_size=3, unique=True)


@given(ARCHIVES, LOOKS.map(sorted))
def test_every_history_of_the_known_changes_lies_between(
    contents: list[int], visits: list[float]
) -> None:
    end = len(contents) - 1.0
    visits = [visit for visit in visits if visit < end]
    captures = one_page({float(day): content for day, content in enumerate(contents)})
    bounds = costs(captures, visits, 0.0, 0.0, end)
    gaps = [day for day in range(len(contents) - 1) if contents[day] != contents[day + 1]]
    steps = (1e-9, 0.25, 0.5, 0.75, 1.0)
    histories = [
        truth([gap + step for gap, step in zip(gaps, chosen, strict=True)], visits, end)
        for chosen in product(steps, repeat=len(gaps))
    ]
    for place, cost in enumerate(zip(*histories, strict=True)):
        optimistic, early, pessimistic = bounds[3 * place : 3 * place + 3]
        # The steps are all moments at which somebody looks, so that the least is reached.
        assert min(cost) == pytest.approx(optimistic, abs=1e-8)
        assert max(cost) <= early + 1e-8
        assert early <= pessimistic + 1e-12
        if not any(visit % 1 for visit in visits):
            assert max(cost) == pytest.approx(early, abs=1e-7)


@given(
    st.lists(st.lists(st.floats(0.1, 9.9), max_size=5, unique=True), min_size=1, max_size=3),
    st.lists(st.floats(0.1, 9.9), max_size=4, unique=True),
)
def test_the_bounds_of_a_complete_history_close_at_the_truth(
    pages: list[list[float]], visits: list[float]
) -> None:
    changes = ChangeTimes(
        np.cumsum([0, *map(len, pages)]),
        np.array([at for page in pages for at in sorted(page)], np.float64),
    )
    captures = complete(changes, 10.0)
    n, sorted_looks = len(pages), sorted(visits)
    visited = PageVisits(
        np.arange(n + 1) * len(visits), np.tile(np.array(sorted_looks), n), np.zeros(n)
    )
    by_page, by_day = bill(Timeline.of(captures), visited, captures.importance, 0.0, 10.0)
    crawls = Crawls(np.repeat(np.arange(n), len(visits)), visited.at)
    table = SourceTable.of(np.ones(n), np.ones(n))
    known = realised_costs(table, crawls, 0.0, 10.0, changes=changes)
    for columns, true in ((HARMONIC, known.harmonic), (BINARY, known.binary)):
        for figure in by_page[:, columns].T:
            assert figure == pytest.approx(true * 10)
    assert by_day.sum(axis=0) == pytest.approx(by_page.sum(axis=0))


def test_where_captures_are_taken_away_the_bounds_open() -> None:
    whole = one_page({0.0: 0, 2.0: 1, 6.0: 2}, until=[2.0, 6.0, 8.0])
    thin = one_page({0.0: 0, 6.0: 2})
    closed, opened = costs(whole, [4.0], 0.0, 0.0, 6.0), costs(thin, [4.0], 0.0, 0.0, 6.0)
    assert closed[HARMONIC].tolist() == [2.0, 2.0, 2.0]
    # The visit of day 4 may have caught the change, or there has been one since.
    assert opened[HARMONIC].tolist() == [0.0, 6.0, 6.0]


def test_between_equal_captures_a_page_may_have_been_another_one() -> None:
    found = costs(one_page({0.0: 0, 4.0: 0}), [], 0.0, 0.0, 4.0)
    assert found[BINARY].tolist() == [0.0, 0.0, 4.0]
    # A visit of day 1 may have brought home what was gone by day 4.
    taken = costs(one_page({0.0: 0, 4.0: 0}, until=[0.0, 6.0]), [1.0], 0.0, 0.0, 6.0)
    assert taken[BINARY].tolist() == [0.0, 0.0, 6.0]


def test_a_page_that_was_never_looked_at_has_missed_its_own_appearance() -> None:
    found = costs(one_page({1.0: 0, 3.0: 1}, until=[3.0, 5.0]), [], -np.inf, 0.0, 5.0)
    assert found[HARMONIC].tolist() == [2 * 1.0 + 2 * 1.5] * 3
    assert found[AGE] == 0.0


def test_nothing_counts_while_a_page_is_gone_or_after_its_last_capture() -> None:
    found = costs(one_page({0.0: 0, 1.0: 0, 2.0: GONE, 3.0: 1, 4.0: 1}), [], 0.0, 0.0, 9.0)
    assert found[COUNTED] == 2.0
    assert found[HARMONIC][0] == 1.0
    assert found[AGE] == 0.5 + 3.5


DAYS = 4
#: A day's capture, or none, for each of the days.
PAGE = st.lists(st.sampled_from([None, 0, 1]), min_size=DAYS, max_size=DAYS)
#: Where it may be worth looking: at a capture, right after it, and later in the gap.
MOMENTS = [day + part for day in range(DAYS) for part in (0.0, 0.001, 0.5)]


def archive(pages: list[list[int | None]], importance: list[float]) -> Captures:
    visits = [
        (row, float(day), content)
        for row, page in enumerate(pages)
        for day, content in enumerate([0, *page])
        if content is not None
    ]
    page, at, contents = zip(*visits, strict=True)
    return Captures.of(page, at, contents, importance=importance)


def tried(captures: Captures, copy: float, visits: int, column: int) -> float:
    """The least optimistic cost of so many visits, of all choices of them."""
    n, timeline = len(captures), Timeline.of(captures)
    places = [(row, at) for row in range(n) for at in MOMENTS]
    least = np.inf
    for chosen in combinations(places, min(visits, len(places))):
        number = np.bincount([row for row, _ in chosen], minlength=n)
        at = np.array([at for _, at in sorted(chosen)], np.float64)
        visited = PageVisits(np.append(0, np.cumsum(number)), at, np.full(n, copy))
        pages, _ = bill(timeline, visited, captures.importance, 0.0, float(DAYS))
        least = min(least, float(captures.importance @ pages[:, column]))
    return least


@pytest.mark.long
@pytest.mark.parametrize("column", [0, 3])
@given(
    st.lists(PAGE, min_size=1, max_size=2),
    st.sampled_from([[1.0, 1.0], [1.0, 2.5]]),
    st.sampled_from([0.0, -np.inf]),
)
@settings(max_examples=40)
def test_no_choice_of_looks_costs_less(
    column: int, pages: list[list[int | None]], importance: list[float], copy: float
) -> None:
    captures = archive(pages, importance[: len(pages)])
    most = 2 if len(pages) > 1 else 3
    best = [tried(captures, copy, visits, column) for visits in range(most + 1)]
    for visits in range(most + 1):
        bound = least_cost(
            Timeline.of(captures), np.full(len(captures), copy), captures.importance,
            (0.0, float(DAYS)), visits, harmonic=column == 0,
        )  # fmt: skip
        assert bound <= best[visits] + 1e-9
    # With none and with enough the price decides nothing, and the bound is what is best.
    assert no_looks(captures, copy, column) == pytest.approx(best[0], abs=1e-9)


def no_looks(captures: Captures, copy: float, column: int) -> float:
    return least_cost(
        Timeline.of(captures), np.full(len(captures), copy), captures.importance,
        (0.0, float(DAYS)), 0, harmonic=column == 0,
    )  # fmt: skip


@pytest.mark.parametrize("harmonic", [True, False])
def test_the_bound_is_reached_where_costs_are_convex(harmonic: bool) -> None:
    # Two pages that change once, by days 1 and 2 of 4: one visit saves 3 days, the other 2.
    captures = archive([[1, None, None, 1], [0, 1, None, 1]], [1.0, 1.0])
    timeline, copy = Timeline.of(captures), np.zeros(2)
    costs = [
        least_cost(timeline, copy, captures.importance, (0.0, 4.0), visits, harmonic=harmonic)
        for visits in range(3)
    ]
    assert costs == pytest.approx([5.0, 2.0, 0.0], abs=1e-9)


def test_many_changes_cost_no_more_time_than_their_bound_needs() -> None:
    changes = 2_000
    days = np.arange(changes) * 1.0
    captures = Captures.of(
        np.zeros(changes, np.intp), days, np.arange(changes), until=np.append(days[1:], changes),
        importance=[1.0],
    )  # fmt: skip
    span = (0.0, float(changes - 1))
    timeline, copy = Timeline.of(captures), np.zeros(1)
    half = least_cost(timeline, copy, captures.importance, span, changes // 2, harmonic=True)
    # Each second change is visited, and the others cost a day.
    assert half == pytest.approx(changes - 2 - changes // 2, rel=0.01)
