import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.solve.budget import in_proportion


@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3))
def test_no_host_is_over_its_capacity_and_only_full_hosts_get_less_than_the_others(
    seed: int, budget: float
) -> None:
    rng = np.random.default_rng(seed)
    n, hosts = int(rng.integers(0, 30)), int(rng.integers(1, 8))
    weight = rng.choice([0.0, 1e-6, 1.0, 3.0, 1e6], n)
    host = rng.integers(0, hosts, n).astype(np.intp)
    capacity = rng.choice([0.1, 1.0, 20.0, np.inf], hosts)
    rates, left_over = in_proportion(weight, budget, host, capacity)
    total = np.bincount(host, rates, minlength=hosts)
    assert rates.sum() + left_over == pytest.approx(budget, rel=1e-12)
    assert (total <= capacity * (1 + 1e-12)).all()
    alive = weight > 0
    assert not rates[~alive].any()
    per_weight = rates[alive] / weight[alive]
    full = np.isclose(total, capacity, rtol=1e-12, atol=0)[host[alive]]
    if left_over > 1e-12 * budget:
        assert full.all()
    elif not full.all():
        level = per_weight[~full].max()
        np.testing.assert_allclose(per_weight[~full], level, rtol=1e-12)
        assert (per_weight[full] <= level * (1 + 1e-12)).all()


def test_nothing_to_crawl_leaves_all_over() -> None:
    host, capacity = np.zeros(2, np.intp), np.array([5.0])
    rates, left_over = in_proportion(np.zeros(2), 3.0, host, capacity)
    assert rates.tolist() == [0.0, 0.0]
    assert left_over == 3


def test_what_full_hosts_cannot_take_fills_the_next_one_first() -> None:
    # By weight alone 6, 3, 3; host 0 takes 2, then host 1 is full at 3.5, and the rest goes on.
    weight, host = np.array([2.0, 1.0, 1.0]), np.arange(3, dtype=np.intp)
    rates, left_over = in_proportion(weight, 12.0, host, np.array([2.0, 3.5, np.inf]))
    assert rates.tolist() == [2.0, 3.5, 6.5]
    assert left_over == 0


@pytest.mark.parametrize(
    ("weight", "budget", "capacity"),
    [([1e308, 1e308], 1.0, np.inf), ([1e-300, 1e-310], 1e300, np.inf),
     ([1e300, 1.0], 1e-300, np.inf), ([1e-300, 1e-310], 1e300, 1e200)],
)  # fmt: skip
def test_what_leaves_the_range_of_numbers_is_refused_and_not_warned_of(
    weight: list[float], budget: float, capacity: float
) -> None:
    host = np.zeros(2, np.intp)
    with pytest.raises(ValueError, match="some are too large or too small"):
        in_proportion(np.array(weight), budget, host, np.array([capacity]))
