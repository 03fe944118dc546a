import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.arrays import Floats
from freshet.scheduler.ephemeral.sources import EphemeralSources
from scripts.reproductions import whittle_states
from scripts.reproductions.whittle_states import index_at

TABLE_1 = EphemeralSources.of(250.0, [1.0, 0.7, 0.2, 0.08], [0.7, 0.35, 0.7, 0.21])
decays = st.floats(1e-3, 5)
positive = st.floats(0.01, 100)


def alike(mu: float, n: int, **options: float) -> EphemeralSources:
    return EphemeralSources.of(1.0, 1.0, np.full(n, mu), **options)


def test_the_example_in_the_documentation_is_right() -> None:
    assert doctest.testmod(whittle_states).failed == 0


def test_the_limits_are_those_of_one_period_and_of_no_crawl() -> None:
    u, ceiling = TABLE_1.fresh, TABLE_1.ceiling
    assert index_at(TABLE_1, u) == pytest.approx(u * (1 - TABLE_1.retention))
    assert index_at(TABLE_1, ceiling) == pytest.approx(ceiling)
    assert index_at(TABLE_1, ceiling * (1 - 1e-12)) == pytest.approx(ceiling, rel=1e-8)


@given(st.integers(1, 200), decays, positive)
def test_a_visited_state_has_the_index_of_its_periods_though_it_was_rounded(
    k: int, mu: float, cost: float
) -> None:
    sources = EphemeralSources.of(3.0, 2.0, [mu], cost=cost)
    x, expected = sources.utility_after(np.array([k])), sources.index(np.array([k]))
    for state in (x, np.nextafter(x, 0), np.nextafter(x, np.inf)):
        assert index_at(sources, state) == pytest.approx(expected, rel=1e-9)


@given(st.floats(0, 0.999), decays)
def test_between_visited_states_the_index_is_the_highest_of_theorem_1s_lines(
    share: float, mu: float
) -> None:
    # γ is convex, so each of its straight pieces lies below it everywhere else.
    alpha, u = np.exp(-mu), (1 - np.exp(-mu)) / mu
    x = share * u / (1 - alpha)
    eta = np.arange(0, int(10 / mu) + 2)
    lines = eta * ((1 - alpha) * x - u) + u * (1 - alpha**eta) / (1 - alpha)
    (worth,) = index_at(alike(mu, 1), np.array([x]))
    assert worth == pytest.approx(lines.max(), rel=1e-9, abs=1e-12)


@given(decays, positive)
def test_the_index_rises_with_the_state(mu: float, cost: float) -> None:
    worth = index_at(alike(mu, 400, cost=cost), np.linspace(0, 3 / mu, 400))
    assert (np.diff(worth) >= -1e-12 * worth[-1]).all()


def test_what_never_fades_loses_nothing_by_waiting() -> None:
    assert index_at(alike(0.0, 3), np.array([0.0, 250.0, 1e9])).tolist() == [0, 0, 0]


@pytest.mark.parametrize(("rate", "utility"), [(0.0, 1.0), (1.0, 0.0)])
def test_where_nothing_of_worth_appears_only_what_is_left_is_worth_a_crawl(
    rate: float, utility: float
) -> None:
    sources = EphemeralSources.of(rate, utility, [0.5, 0.5], cost=2)
    assert index_at(sources, np.array([0.0, 3.0])).tolist() == [0, 1.5]


def test_a_state_below_0_is_refused() -> None:
    with pytest.raises(ValueError, match=r"state: row 1 is -1\.0"):
        index_at(alike(1.0, 2), np.array([0.0, -1.0]))


def values_at(price: float, mu: float, states: Floats) -> tuple[Floats, Floats]:
    """Value iteration for one source: what crawling and waiting are worth at each state."""
    alpha, u = np.exp(-mu), (1 - np.exp(-mu)) / mu
    value, crawl, wait = np.zeros((3, len(states)))
    for _ in range(400):
        wait = price + np.interp(alpha * states + u, states, value)
        crawl = states + np.interp(u, states, value)
        value = (value + np.maximum(wait, crawl)) / 2
        value -= value[0]
    return crawl, wait


@pytest.mark.parametrize("mu", [0.3, 0.7])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95, 1.5])
def test_at_the_price_of_a_state_crawling_and_waiting_come_to_the_same(
    mu: float, share: float
) -> None:
    # Above u* (share 1.5), where the paper defines no index, too.
    x = share / mu
    states = np.linspace(0, 4 / mu, 4001)
    price = float(index_at(alike(mu, 1), np.array([x]))[0])
    crawl, wait = values_at(price, mu, states)
    gain = crawl - wait
    scale = 1 / mu
    assert np.interp(x, states, gain) == pytest.approx(0, abs=2e-3 * scale)
    # Lemma 5: wait below, crawl above. Lemmas 1 and 2: V rises and is convex.
    assert (gain[states < x - 0.02 * scale] < 0).all()
    assert (gain[states > x + 0.02 * scale] > 0).all()
    value = np.maximum(crawl, wait)
    assert (np.diff(value) >= -1e-9).all()
    assert (np.diff(value, 2) >= -1e-9).all()
