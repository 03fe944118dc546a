import math
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from freshet.scheduler import arrays


@example([-0.0, 1.0])
@given(st.lists(st.floats(width=64)))
def test_the_bit_test_for_finite_and_non_negative_agrees_with_its_definition(
    values: list[float],
) -> None:
    wrong = [row for row, value in enumerate(values) if not 0 <= value < math.inf]
    if wrong:
        with pytest.raises(ValueError, match=rf"^rate: row {wrong[0]} is .*; accepted is"):
            arrays.non_negative("rate", values)
    else:
        assert arrays.non_negative("rate", values).tolist() == values


@pytest.mark.parametrize("bad", [math.nan, -1.0, math.inf, -math.inf, -5e-324])
def test_the_first_bad_row_is_named_even_far_into_a_column(bad: float) -> None:
    column = np.ones(100_000)
    column[[70_000, 90_000]] = bad
    message = f"^change_rate: row 70000 is {re.escape(str(bad))}; accepted is a finite number"
    with pytest.raises(ValueError, match=message):
        arrays.non_negative("change_rate", column)


def test_a_column_of_floats_is_not_copied() -> None:
    column = np.ones(10)
    assert arrays.non_negative("rate", column) is column


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1.0]], "rate: has 2 dimensions; accepted is one column"),
        ([1.0], "rate: has 1 rows; accepted are 2, one per source"),
        (["a", "b"], "rate: holds something that is not a number"),
        ([None, object()], "rate: holds something that is not a number"),
    ],
)
def test_a_wrong_shape_or_type_is_told(values: list[object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        arrays.non_negative("rate", values, 2)  # type: ignore[arg-type]


def test_no_limit_is_a_capacity_but_none_at_all_is_not() -> None:
    assert arrays.positive("host_capacity", [1.0, math.inf]).tolist() == [1.0, math.inf]
    with pytest.raises(ValueError, match=r"host_capacity: row 1 is 0\.0; accepted is a number abo"):
        arrays.positive("host_capacity", [1.0, 0.0])


def test_shares_end_at_one() -> None:
    assert arrays.share("precision", [0, 0.5, 1]).tolist() == [0, 0.5, 1]
    with pytest.raises(ValueError, match=r"precision: row 0 is 1\.5; accepted is a number from 0"):
        arrays.share("precision", [1.5])


def test_counts_are_whole() -> None:
    assert arrays.counts("pending_signals", [0, 3]).dtype == np.int64
    with pytest.raises(ValueError, match=r"row 1 is 0\.5; accepted is a whole number"):
        arrays.counts("pending_signals", [0, 0.5])


def test_flags_are_truth_values_only() -> None:
    assert arrays.flags("complete", [True, False], 2).tolist() == [True, False]
    assert arrays.flags("complete", [], 0).dtype == np.bool_
    with pytest.raises(ValueError, match="complete: has dtype int64; accepted are truth values"):
        arrays.flags("complete", [1, 0], 2)


@pytest.mark.parametrize(("codes", "row"), [([0, 3], 1), ([-1, 0], 0)])
def test_codes_stay_below_their_limit(codes: list[int], row: int) -> None:
    message = f"host: row {row} is {codes[row]}; accepted is an integer code from 0 to 2"
    with pytest.raises(ValueError, match=message):
        arrays.codes("host", codes, 2, below=3)


def test_codes_are_integers() -> None:
    with pytest.raises(ValueError, match="host: has dtype float64; accepted are integer codes"):
        arrays.codes("host", [0.0], 1)


@pytest.mark.parametrize("value", [0, 0.0, -1.0, math.nan, math.inf, True])
def test_a_budget_is_finite_and_above_zero(value: float) -> None:
    with pytest.raises(ValueError, match=r"^bandwidth: is .*; accepted is a finite number above 0"):
        arrays.budget("bandwidth", value)


def test_a_word_out_of_several_is_told_them() -> None:
    assert arrays.one_of("crawling", "poisson", ["poisson", "periodic"]) == "poisson"
    with pytest.raises(ValueError, match="crawling: is 'x'; accepted are poisson, periodic"):
        arrays.one_of("crawling", "x", ["poisson", "periodic"])
