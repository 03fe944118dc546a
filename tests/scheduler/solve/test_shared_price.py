"""One price for several demand curves, held against the optimum of all sources together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.solve.budget import Hosts, allocate
from freshet.scheduler.solve.demand import IntervalDemand
from freshet.scheduler.solve.shared_price import PRICES, DemandCurve, divide


def demand(n: int, pace: float, seed: int) -> IntervalDemand:
    rng = np.random.default_rng(seed)
    return IntervalDemand(rng.lognormal(0, 1, n), pace * rng.lognormal(-2, 1.5, n))


def together(parts: list[IntervalDemand]) -> IntervalDemand:
    return IntervalDemand(
        np.concatenate([each.importance for each in parts]),
        np.concatenate([each.change_rate for each in parts]),
    )


@pytest.mark.parametrize("budget", [0.5, 30.0, 3_000.0])
def test_shares_are_those_of_the_optimum_of_all_sources(budget: float) -> None:
    parts = [demand(100, 1, 1), demand(800, 0.3, 2), demand(1_000, 5, 3)]
    curves = [DemandCurve.read(DemandCurve.of(each).message()) for each in parts]
    price, share = divide(curves, budget)
    plan = allocate(together(parts), budget)
    best = [each.sum() for each in np.split(plan.crawl_rate, [100, 900])]
    assert price == pytest.approx(plan.price, rel=3e-3)
    assert share == pytest.approx(np.array(best), rel=3e-3)
    assert share.sum() == pytest.approx(budget)


def test_many_sources_are_told_by_some() -> None:
    parts = [demand(30_000, 1, 4), demand(9_000, 0.1, 5)]
    _, share = divide([DemandCurve.of(each) for each in parts], 5_000.0)
    plan = allocate(together(parts), 5_000.0)
    assert share[0] == pytest.approx(plan.crawl_rate[:30_000].sum(), rel=0.01)


def test_a_host_gets_no_more_than_it_can_serve() -> None:
    sources = demand(50, 1.0, 6)
    hosts = Hosts(np.repeat([0, 1], 25), np.array([3.0, np.inf]))
    curve, alone = DemandCurve.of(sources, hosts), DemandCurve.of(sources.take(np.arange(25, 50)))
    found = curve.rates - alone.rates
    assert found.max() == pytest.approx(3.0)
    assert found == pytest.approx(
        np.minimum(DemandCurve.of(sources.take(np.arange(25))).rates, 3.0)
    )


@pytest.mark.parametrize("n", [0, 1, 40, 5_000])
def test_a_curve_is_the_sum_of_what_the_sources_want(n: int) -> None:
    sources = demand(n, 1.0, 7)
    rates, slopes = np.empty(n), np.empty(n)
    for price, found in zip(PRICES.tolist(), DemandCurve.of(sources).rates.tolist(), strict=True):
        sources.rates_at(price, rates, slopes)
        assert found == pytest.approx(rates.sum(), rel=1e-3)


rates = st.lists(st.floats(0, 1e9, width=32), min_size=1, max_size=6)


@given(st.lists(rates, min_size=1, max_size=5), st.floats(1e-3, 1e6))
def test_all_of_the_budget_is_shared_out_whatever_the_curves(
    given_rates: list[list[float]], budget: float
) -> None:
    curves = []
    for some in given_rates:
        steps = np.sort(np.resize(some, len(PRICES)))[::-1]
        curves.append(DemandCurve.read(DemandCurve(steps).message()))
    price, share = divide(curves, budget)
    assert 0 <= price < np.inf
    assert (share >= 0).all()
    assert share.sum() == pytest.approx(budget)


def test_what_nobody_wants_goes_to_all_alike() -> None:
    assert divide([DemandCurve(np.zeros(len(PRICES)))] * 2, 6.0)[1].tolist() == [3.0, 3.0]
    few = DemandCurve(np.full(len(PRICES), 1.0))
    price, share = divide([few, few, few], 6.0)
    assert (price, share.tolist()) == (0.0, [2.0, 2.0, 2.0])


@pytest.mark.parametrize(
    "message", [b"", b"x" * 643, np.full(len(PRICES), np.nan, "<f4").tobytes()]
)
def test_a_message_that_is_no_curve_is_refused(message: bytes) -> None:
    with pytest.raises(ValueError, match=r"curve|rates"):
        DemandCurve.read(message)
