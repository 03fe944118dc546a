import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.arrays import Floats
from freshet.scheduler.ephemeral.policies import affordable


def one_by_one(index: Floats, cost: Floats, budget: float) -> list[int]:
    left, rows = budget * (1 + 1e-12), []
    for row in np.lexsort((np.arange(len(index)), -index)):
        if cost[row] <= left:
            rows.append(int(row))
            left -= cost[row]
    return sorted(rows)


@given(st.integers(0, 2**32 - 1), st.integers(0, 60), st.floats(0, 30), st.booleans())
def test_it_is_what_going_through_all_in_order_gives(
    seed: int, n: int, budget: float, equal: bool
) -> None:
    rng = np.random.default_rng(seed)
    index = rng.integers(0, 8, n).astype(float)
    # Quarters add up without rounding.
    cost = np.full(n, 0.75) if equal else rng.integers(1, 20, n) / 4
    assert affordable(index, cost, budget).tolist() == one_by_one(index, cost, budget)


def test_a_budget_for_more_than_all_crawls_all_and_one_for_less_than_any_none() -> None:
    index, cost = np.array([0.0, 2.0, 1.0]), np.array([1.0, 2.0, 4.0])
    assert affordable(index, cost, 1e9).tolist() == [0, 1, 2]
    assert affordable(index, np.ones(3), 7).tolist() == [0, 1, 2]
    assert affordable(index, cost, 0.5).tolist() == []
    assert affordable(np.empty(0), np.empty(0), 1).tolist() == []


def test_a_budget_that_rounding_has_lowered_still_pays() -> None:
    tenths = np.full(3, 0.1)
    assert affordable(np.array([3.0, 2.0, 1.0]), tenths, 0.1 + 0.1 + 0.1).tolist() == [0, 1, 2]
    assert affordable(np.array([3.0, 2.0, 1.0]), tenths, 0.3).tolist() == [0, 1, 2]


@pytest.mark.parametrize("count", [1, 40, 700, 9_000, 19_999])
@pytest.mark.parametrize("order", ["random", "rising", "falling", "every 64th", "equal"])
def test_the_largest_of_many_are_chosen_however_they_lie(count: int, order: str) -> None:
    index = np.random.default_rng(2).random(20_000)
    match order:
        case "rising":
            index = np.sort(index)
        case "falling":
            index = -np.sort(-index)
        case "every 64th":
            # Where the sample misleads.
            index[::64] += 5
        case "equal":
            index = np.round(index, 2)
    expected = np.sort(np.lexsort((np.arange(len(index)), -index))[:count])
    assert (affordable(index, np.ones(20_000), count) == expected).all()


def test_infinite_indices_come_first() -> None:
    index = np.array([1.0, np.inf, 2.0, np.inf])
    assert affordable(index, np.ones(4), 3).tolist() == [1, 2, 3]
