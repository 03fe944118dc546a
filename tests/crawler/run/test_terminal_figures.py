"""Figures for people: a few digits, the right unit, and never a number that misleads."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.run import terminal


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (1e-7, "1.00e-07"), (0.012345, "0.0123"), (0.9999, "1"), (1.234, "1.23"),
     (9.999, "10"), (56.78, "56.8"), (999.96, "1,000"), (1_234.5, "1,234"),
     (12_345_678.0, "12,345,678"), (3.2e17, "3.20e+17"), (inf, "∞")],
)  # fmt: skip
def test_an_amount_has_the_digits_that_count(value: float, shown: str) -> None:
    assert terminal.amount(value) == shown


@given(st.floats(1e-12, 1e20))
def test_an_amount_is_right_to_half_a_per_cent(value: float) -> None:
    assert float(terminal.amount(value).replace(",", "")) == pytest.approx(value, rel=0.0051)


@pytest.mark.parametrize(
    ("days", "words"),
    [(None, "never"), (inf, "never"), (1 / 1_440, "every 1 min"), (0.25, "every 6 hours"),
     (1.5, "every 36 hours"), (3.24, "every 3.2 days"), (41.7, "every 42 days"),
     (4_321.0, "every 4,321 days")],
)  # fmt: skip
def test_an_interval_is_told_in_a_unit_of_everyday_life(days: float | None, words: str) -> None:
    assert terminal.every(days) == words


def test_a_span_of_time_is_in_hours_below_two_days() -> None:
    assert [terminal.lasting(days) for days in (0.0, 0.8, 1.9, 2.0, 1_234.5)] == [
        "0.0 h", "19.2 h", "45.6 h", "2.0 d", "1,234.5 d",
    ]  # fmt: skip


def test_a_source_on_signals_is_told_by_its_changes() -> None:
    assert terminal.on_changes(1.0, "poisson") == "at each change"
    assert terminal.on_changes(1 - 1e-12, "periodic") == "at each change"
    assert terminal.on_changes(0.4, "poisson") == "40.0 % of changes"
    assert terminal.on_changes(0.4, "periodic") == "1 change in 3"
    assert terminal.on_changes(1 / 3, "periodic") == "1 change in 3"


def test_a_share_that_is_not_0_is_not_shown_as_0() -> None:
    assert [terminal.percent(share) for share in (0.0, 0.00004, 0.001, 0.256, 1.0)] == [
        "0.0 %", "0.004 %", "0.1 %", "25.6 %", "100.0 %",
    ]  # fmt: skip


def test_things_are_counted_in_words() -> None:
    assert (terminal.counted(1, "page"), terminal.counted(2_000, "page")) == (
        "1 page",
        "2,000 pages",
    )
    assert (terminal.times(None), terminal.times(1.414)) == ("∞", "1.41")
