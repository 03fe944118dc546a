import doctest
import re

import numpy as np
import pytest

from freshet.scheduler.estimate import poisson
from freshet.scheduler.estimate.poisson import estimate_complete, estimate_many_complete


def test_the_example_in_the_text_is_right() -> None:
    assert doctest.testmod(poisson) == (0, 1)


def test_a_source_without_a_change_has_a_rate_above_zero() -> None:
    assert estimate_complete(0, 9.5) == 0.05


def test_without_smoothing_it_is_the_number_of_changes_by_the_days() -> None:
    assert estimate_many_complete([3, 0], [2.0, 1.0], smoothing=0).tolist() == [1.5, 0.0]


def test_the_estimate_converges_to_the_rate() -> None:
    rng = np.random.default_rng(1)
    rate = np.array([0.02, 0.3, 6.0])
    days = np.full(3, 1e6)
    np.testing.assert_allclose(
        estimate_many_complete(rng.poisson(rate * days), days), rate, rtol=0.03
    )


@pytest.mark.parametrize(
    ("changes", "days", "smoothing", "message"),
    [
        ([0.5], [1.0], 0.5, "changes: row 0 is 0.5; accepted is a whole number"),
        ([1], [-1.0], 0.5, "days: row 0 is -1.0; accepted is a finite number of at least 0"),
        ([1, 2], [1.0], 0.5, "days: has 1 rows; accepted are 2"),
        ([1, 1], [1.0, 0.0], 0.0, "days: row 1 is 0; accepted is a number above 0 without smooth"),
        ([1], [1.0], -0.5, "smoothing: row 0 is -0.5; accepted is a finite number of at least 0"),
    ],
)
def test_bad_input_is_told(
    changes: list[int], days: list[float], smoothing: float, message: str
) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        estimate_many_complete(changes, days, smoothing=smoothing)
