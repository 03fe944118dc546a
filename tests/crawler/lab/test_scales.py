"""Scales take whatever there is, and name round values of it."""

from __future__ import annotations

from math import inf, isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.lab.charts import Linear, Log, date_ticks, scale_of_budgets

numbers = st.floats(-1e9, 1e9, allow_nan=False).map(lambda value: round(value, 6))
sizes = st.floats(1e-9, 1e9)


@given(st.lists(numbers), st.booleans(), st.integers(2, 12))
def test_linear_ticks_lie_on_the_axis_and_are_few(
    values: list[float], zero: bool, most: int
) -> None:
    scale = Linear.around([*values, nan, inf], zero=zero)
    assert scale.low < scale.high
    ticks = scale.ticks(most)
    assert len(ticks) <= most
    assert ticks == sorted(set(ticks))
    assert all(-1e-6 <= scale(tick) <= 1 + 1e-6 for tick in ticks)
    assert all(-1e-9 <= scale(value) <= 1 + 1e-9 for value in values)


@given(st.lists(sizes), st.integers(2, 12))
def test_ticks_of_ratios_lie_on_the_axis_and_are_few(values: list[float], most: int) -> None:
    scale = Log.around([*values, 0.0, -1.0, nan])
    ticks = scale.ticks(most)
    assert 1 <= len(ticks) <= most
    assert ticks == sorted(ticks)
    assert all(-0.02 <= scale(tick) <= 1.02 for tick in ticks)
    assert all(-1e-9 <= scale(value) <= 1 + 1e-9 for value in values)


def test_ticks_are_round() -> None:
    assert Linear(0.0, 0.313).ticks(5) == [0.0, 0.1, 0.2, 0.3]
    assert Log(1.0, 1_000.0).ticks(5) == [1.0, 10.0, 100.0, 1_000.0]
    assert isnan(Log(1.0, 10.0)(0.0))


def test_budgets_far_apart_stand_by_their_ratios() -> None:
    assert isinstance(scale_of_budgets([10.0, 100.0]), Log)
    assert isinstance(scale_of_budgets([10.0, 20.0]), Linear)
    assert isinstance(scale_of_budgets([10.0]), Linear)


@pytest.mark.parametrize("span", [0.2, 1.5, 18.0, 60.0, 365.0, 5_000.0, 100_000.0])
def test_dates_are_few_and_within_the_span(span: float) -> None:
    ticks = date_ticks(20_000.3, 20_000.3 + span, 5)
    assert 1 <= len(ticks) <= 5
    assert all(20_000.3 <= day <= 20_000.3 + span for day, _ in ticks)


def test_dates_have_names_that_fit_the_span() -> None:
    assert date_ticks(0.0, 4.0, 5)[0] == (0.0, "1 Jan")
    assert date_ticks(0.0, 1_000.0, 5)[0] == (0.0, "Jan 1970")
