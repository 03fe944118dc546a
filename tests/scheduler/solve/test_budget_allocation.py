from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from freshet.scheduler.arrays import Floats
from freshet.scheduler.policy import CrawlPlan
from freshet.scheduler.solve.budget import NEIGHBOUR, Demand, Hosts, allocate
from freshet.scheduler.solve.demand import BinaryDemand, HarmonicDemand, IntervalDemand

SEEDS = st.integers(0, 2**32 - 1)
N = 12


def harmonic(mu: Floats, delta: Floats) -> HarmonicDemand:
    """Every third source is crawled on its signals."""
    return HarmonicDemand(mu, delta, np.arange(len(mu)) % 3 == 0)


def binary(mu: Floats, delta: Floats) -> BinaryDemand:
    """Without floors."""
    return BinaryDemand(mu, delta, np.zeros(len(mu)))


def saturating(mu: Floats, delta: Floats) -> HarmonicDemand:
    """Every source is crawled on its signals: at a low price they want no more."""
    return HarmonicDemand(mu, delta, np.full(len(mu), True))


Make = Callable[[Floats, Floats], Demand]
DEMANDS = pytest.mark.parametrize("make", [harmonic, binary, saturating, IntervalDemand])


def columns(seed: int, spread: float = 2.0) -> Floats:
    rng = np.random.default_rng(seed)
    drawn: Floats = 10 ** rng.uniform(-spread, spread, (2, N)) * (rng.random((2, N)) > 0.1)
    return drawn


def hosts_of(seed: int) -> Hosts:
    """Four hosts, one of them with no source, some without a limit."""
    rng = np.random.default_rng(seed)
    return Hosts(rng.integers(0, 3, N), rng.choice([0.01, 1.0, 30.0, np.inf], 4))


def rates_at(demand: Demand, price: float) -> Floats:
    rates, slopes = np.empty((2, len(demand)))
    demand.rates_at(price, rates, slopes)
    return rates


def assert_optimal(demand: Demand, found: CrawlPlan, budget: float, hosts: Hosts) -> None:
    """Karush, Kuhn and Tucker, in the words of the module."""
    assert found.price is not None
    assert found.host_price is not None
    totals = hosts.sums(found.crawl_rate)
    assert (totals <= hosts.capacity * (1 + 1e-12)).all()
    assert found.crawl_rate.sum() + found.left_over == pytest.approx(budget, rel=1e-12)
    assert (found.host_price >= found.price * (1 - 1e-14)).all()
    dearer = found.host_price > found.price * (1 + 1e-9)
    np.testing.assert_allclose(totals[dearer], hosts.capacity[dearer], rtol=1e-12)
    if found.price == 0:
        free = ~dearer[hosts.code]
        np.testing.assert_array_equal(found.crawl_rate[free], demand.limits()[free])
    else:
        assert found.left_over == 0
    for row in np.flatnonzero(found.host_price[hosts.code] > 0):
        one = demand.take(np.array([row]))
        (wanted,) = rates_at(one, float(found.host_price[hosts.code[row]]))
        assert found.crawl_rate[row] == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@DEMANDS
@given(SEEDS, st.floats(1e-3, 1e3))
def test_all_sources_want_what_they_get_at_one_price(make: Make, seed: int, budget: float) -> None:
    demand = make(*columns(seed))
    one_host = Hosts(np.zeros(N, np.intp), np.array([np.inf]))
    assert_optimal(demand, allocate(demand, budget), budget, one_host)


@DEMANDS
@given(SEEDS, st.floats(1e-3, 1e3))
def test_full_hosts_have_a_price_of_their_own(make: Make, seed: int, budget: float) -> None:
    demand, hosts = make(*columns(seed)), hosts_of(seed)
    assert_optimal(demand, allocate(demand, budget, hosts), budget, hosts)


@DEMANDS
@given(SEEDS, st.floats(-1, 1), st.floats(-8, 8))
def test_the_first_guess_changes_rounding_only(
    make: Make, seed: int, exponent: float, guess: float
) -> None:
    demand, hosts, budget = make(*columns(seed)), hosts_of(seed), 10.0**exponent
    cold, warm = (allocate(demand, budget, hosts, price) for price in (None, 10.0**guess))
    scale = 1e-12 * cold.crawl_rate.max(initial=0.0)
    np.testing.assert_allclose(warm.crawl_rate, cold.crawl_rate, rtol=1e-9, atol=scale)


@DEMANDS
def test_a_search_that_knows_nothing_of_slopes_finds_the_same_prices(make: Make) -> None:
    """scipy's brentq on the sums of minima, and on each full host's sum."""
    mu, delta = 10 ** np.random.default_rng(4).uniform(-1, 1, (2, N))
    demand = make(mu, delta)
    hosts = Hosts(np.arange(N) % 3, np.array([0.2, np.inf, np.inf]))
    budget = 2.0
    found = allocate(demand, budget, hosts)

    def excess(log_price: float) -> float:
        sums = hosts.sums(rates_at(demand, float(np.exp(log_price))))
        return float(np.minimum(sums, hosts.capacity).sum()) - budget

    def excess_of_first(log_price: float) -> float:
        return float(hosts.sums(rates_at(demand, float(np.exp(log_price))))[0] - hosts.capacity[0])

    assert found.price is not None
    assert found.host_price is not None
    assert found.price == pytest.approx(np.exp(brentq(excess, -20, 20, xtol=1e-13)), rel=1e-11)
    of_first = np.exp(brentq(excess_of_first, -20, 20, xtol=1e-13))
    np.testing.assert_allclose(found.host_price, [of_first, found.price, found.price], rtol=1e-11)
    assert found.host_price[0] > 1.01 * found.price


@given(SEEDS, st.floats(1e-2, 1e2))
def test_capacities_that_do_not_bind_change_rounding_only(seed: int, budget: float) -> None:
    demand = harmonic(*columns(seed))
    hosts = Hosts(np.arange(N) % 2, np.array([1e9, np.inf]))
    within = allocate(demand, budget, hosts)
    without = allocate(demand, budget)
    np.testing.assert_allclose(within.crawl_rate, without.crawl_rate, rtol=1e-12)
    assert within.price == pytest.approx(without.price, rel=1e-12)


def test_where_all_hosts_are_full_the_rest_is_left_over_at_no_price() -> None:
    demand = binary(np.ones(4), np.ones(4))
    hosts = Hosts(np.array([0, 0, 0, 1]), np.array([3.0, 0.5]))
    found = allocate(demand, 10.0, hosts)
    np.testing.assert_allclose(found.crawl_rate, [1.0, 1.0, 1.0, 0.5], rtol=1e-12)
    assert (found.price, found.left_over) == (0.0, 6.5)
    assert found.host_price is not None
    # √(1/λ) − 1 is the rate.
    np.testing.assert_allclose(found.host_price, [1 / 4, 1 / 1.5**2], rtol=1e-12)


def test_a_host_without_sources_has_the_common_price() -> None:
    hosts = Hosts(np.zeros(2, np.intp), np.array([0.5, 1.0, np.inf]))
    found = allocate(harmonic(np.ones(2), np.ones(2)), 3.0, hosts)
    assert found.host_price is not None
    assert found.host_price[0] > 0
    assert found.host_price[1:].tolist() == [found.price, found.price]


def test_full_hosts_leave_their_share_to_the_others() -> None:
    demand = IntervalDemand(np.ones(4), np.ones(4))
    hosts = Hosts(np.array([0, 0, 1, 2]), np.array([0.5, np.inf, np.inf]))
    found = allocate(demand, 4.0, hosts)
    np.testing.assert_allclose(found.crawl_rate, [0.25, 0.25, 1.75, 1.75], rtol=1e-12)


def test_no_sources_leave_all_over() -> None:
    none = np.empty(0)
    for hosts in (None, Hosts(np.empty(0, np.intp), np.array([1.0, 2.0]))):
        found = allocate(harmonic(none, none), 3.0, hosts)
        assert (len(found.crawl_rate), found.price, found.left_over) == (0, 0.0, 3.0)


@pytest.mark.parametrize("capacity", [None, 1.0])
def test_between_two_floats_the_one_that_jumps_gets_the_rest(capacity: float | None) -> None:
    """√(μΔ/λ) − Δ jumps by about 1e3 near λ = 1; the other source must not notice."""
    demand = binary(np.array([1e19, 9.0]), np.array([1e19, 1.0]))
    hosts = None if capacity is None else Hosts(np.array([0, 1]), np.array([capacity, np.inf]))
    found = allocate(demand, 2.5, hosts)
    assert found.price is not None
    assert found.price == pytest.approx(1, rel=1e-14)
    np.testing.assert_allclose(found.crawl_rate, [0.5, 2.0], rtol=1e-12)
    assert rates_at(demand, found.price)[0] > 100
    assert rates_at(demand, found.price * NEIGHBOUR)[0] == 0


def test_between_two_floats_a_full_host_is_filled_and_no_more() -> None:
    demand = binary(np.array([1e19, 9.0]), np.array([1e19, 1.0]))
    found = allocate(demand, 9.0, Hosts(np.array([0, 1]), np.array([0.5, np.inf])))
    np.testing.assert_allclose(found.crawl_rate, [0.5, 8.5], rtol=1e-12)
    assert found.host_price is not None
    assert found.host_price[0] == pytest.approx(1, rel=1e-14)


def test_a_tangent_that_is_nearly_flat_does_not_lead_astray() -> None:
    """All but one source have all they can use: the spending hardly depends on the price."""
    mu, delta = np.array([1e6, 1e-6]), np.array([1.0, 1e-2])
    demand = HarmonicDemand(mu, delta, np.array([True, False]))
    found = allocate(demand, 1.02)
    np.testing.assert_allclose(found.crawl_rate, [1.0, 0.02], rtol=1e-11)


@pytest.mark.parametrize("capacity", [None, 1.0])
def test_a_jump_that_dwarfs_the_budget_beyond_all_digits_is_refused(capacity: float | None) -> None:
    demand = binary(np.array([1e5]), np.array([1e74]))
    hosts = None if capacity is None else Hosts(np.zeros(1, np.intp), np.array([capacity]))
    with pytest.raises(ValueError, match="importance, change_rate: some are too large"):
        allocate(demand, 1e-293, hosts)


def told_or_found(demand: Demand, hosts: Hosts | None) -> CrawlPlan | str:
    try:
        return allocate(demand, 1.0, hosts)
    except ValueError as error:
        return str(error)


@DEMANDS
@given(SEEDS, st.sampled_from([100.0, 150.0, 300.0]), st.booleans())
def test_extreme_numbers_are_computed_with_or_refused_but_never_warned_of(
    make: Make, seed: int, spread: float, with_hosts: bool
) -> None:
    demand = make(*columns(seed, spread))
    hosts = hosts_of(seed) if with_hosts else None
    found = told_or_found(demand, hosts)
    if isinstance(found, str):
        assert found.startswith("importance, change_rate: some are too large or too small")
    else:
        assert (found.crawl_rate >= 0).all()
        assert found.crawl_rate.sum() + found.left_over == pytest.approx(1, rel=1e-9)


@DEMANDS
@given(SEEDS, st.floats(-12, 12), st.booleans())
def test_from_1e_minus_12_to_1e12_everything_is_computed_with(
    make: Make, seed: int, exponent: float, with_hosts: bool
) -> None:
    demand, budget = make(*columns(seed, 12.0)), 10.0**exponent
    found = allocate(demand, budget, hosts_of(seed) if with_hosts else None)
    assert found.crawl_rate.sum() + found.left_over == pytest.approx(budget, rel=1e-12)
