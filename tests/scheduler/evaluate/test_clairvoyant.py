"""The clairvoyant's bound is that of the best choice of looks, found by trying all."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.scheduler.evaluate.bounds import PageVisits, bill, least_cost
from freshet.scheduler.evaluate.captures import Captures, Timeline

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


def tried(captures: Captures, copy: float, looks: int, column: int) -> float:
    """The least optimistic cost of so many looks, of all choices of them."""
    n, timeline = len(captures), Timeline.of(captures)
    places = [(row, at) for row in range(n) for at in MOMENTS]
    least = np.inf
    for chosen in combinations(places, min(looks, len(places))):
        number = np.bincount([row for row, _ in chosen], minlength=n)
        at = np.array([at for _, at in sorted(chosen)], np.float64)
        looked = PageVisits(np.append(0, np.cumsum(number)), at, np.full(n, copy))
        pages, _ = bill(timeline, looked, captures.importance, 0.0, float(DAYS))
        least = min(least, float(captures.importance @ pages[:, column]))
    return least


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
    best = [tried(captures, copy, looks, column) for looks in range(most + 1)]
    for looks in range(most + 1):
        bound = least_cost(
            Timeline.of(captures), np.full(len(captures), copy), captures.importance,
            (0.0, float(DAYS)), looks, harmonic=column == 0,
        )  # fmt: skip
        assert bound <= best[looks] + 1e-9
    # With none and with enough the price decides nothing, and the bound is what is best.
    assert no_looks(captures, copy, column) == pytest.approx(best[0], abs=1e-9)


def no_looks(captures: Captures, copy: float, column: int) -> float:
    return least_cost(
        Timeline.of(captures), np.full(len(captures), copy), captures.importance,
        (0.0, float(DAYS)), 0, harmonic=column == 0,
    )  # fmt: skip


@pytest.mark.parametrize("harmonic", [True, False])
def test_the_bound_is_reached_where_costs_are_convex(harmonic: bool) -> None:
    # Two pages that change once, by days 1 and 2 of 4: one look saves 3 days, the other 2.
    captures = archive([[1, None, None, 1], [0, 1, None, 1]], [1.0, 1.0])
    timeline, copy = Timeline.of(captures), np.zeros(2)
    costs = [
        least_cost(timeline, copy, captures.importance, (0.0, 4.0), looks, harmonic=harmonic)
        for looks in range(3)
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
    # Each second change is looked at, and the others cost a day.
    assert half == pytest.approx(changes - 2 - changes // 2, rel=0.01)
