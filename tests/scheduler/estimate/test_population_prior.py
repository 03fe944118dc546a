import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate import rate_posterior
from freshet.scheduler.estimate.rate_posterior import BROAD, HATS, LOG_RATES


def hat_likelihood(rng: np.random.Generator, rates: Floats, days: float) -> Floats:
    """From counts of changes over so many days."""
    exact = np.stack([rng.poisson(rates * days), np.full(len(rates), days)], axis=1)
    nothing = np.zeros((len(rates), rate_posterior.POINTS))
    return rate_posterior.likelihood(nothing, exact) @ HATS.T


def test_the_example_in_the_text_is_right() -> None:
    assert doctest.testmod(rate_posterior) == (0, 2)


def test_the_broad_prior_is_a_distribution_around_once_a_week() -> None:
    assert BROAD.sum() == pytest.approx(1.0)
    assert np.exp(LOG_RATES @ BROAD) == pytest.approx(1 / 7, rel=0.03)
    below, above = np.exp(LOG_RATES) < 1 / 182, np.exp(LOG_RATES) > 4
    assert BROAD[below | above].sum() == pytest.approx(0.1, abs=0.02)


@given(st.integers(0, 1000), st.integers(1, 50), st.sampled_from([1.0, 10.0]))
def test_each_step_makes_the_population_more_likely(seed: int, n: int, strength: float) -> None:
    rng = np.random.default_rng(seed)
    likelihood = hat_likelihood(rng, rng.lognormal(-1, 2, n), 5.0)
    penalised = [
        np.log(likelihood @ weights).sum() + strength * BROAD @ np.log(weights)
        for weights in (rate_posterior.fit(likelihood, BROAD, strength, k) for k in range(12))
    ]
    assert (np.diff(penalised) >= -1e-9 * abs(penalised[0])).all()


def test_the_weights_converge_to_where_the_gradient_is_the_same_for_all() -> None:
    rng = np.random.default_rng(3)
    likelihood = hat_likelihood(rng, rng.lognormal(-1, 1, 30), 3.0)
    weights = rate_posterior.fit(likelihood, BROAD, 10.0, 5_000)
    # Kuhn-Tucker under Σ w = 1, the multiplier being n + κ.
    gradient = (likelihood / (likelihood @ weights)[:, None]).sum(axis=0) + 10.0 * BROAD / weights
    np.testing.assert_allclose(gradient, 40.0, rtol=1e-6)
    assert weights.sum() == pytest.approx(1.0)


def test_the_distribution_of_a_large_population_is_found() -> None:
    rng = np.random.default_rng(4)
    logs = rng.choice([np.log(0.05), np.log(2.0)], 5_000, p=[0.7, 0.3]) + rng.normal(0, 0.3, 5_000)
    weights = rate_posterior.fit(hat_likelihood(rng, np.exp(logs), 20.0), BROAD, 10.0, 30)
    assert weights[np.exp(LOG_RATES) > 0.5].sum() == pytest.approx(0.3, abs=0.03)
    assert weights @ LOG_RATES == pytest.approx(logs.mean(), abs=0.1)


def test_without_members_the_prior_is_its_parent() -> None:
    assert rate_posterior.fit(np.zeros((0, 40)), BROAD, 10.0, 5) == pytest.approx(BROAD)


def test_few_members_move_the_prior_little() -> None:
    fast = hat_likelihood(np.random.default_rng(5), np.full(100, 4.0), 50.0)
    means = [
        float(LOG_RATES @ rate_posterior.fit(fast[:n], BROAD, 10.0, 10)) for n in (0, 1, 10, 100)
    ]
    assert means == sorted(means)
    assert means[1] - means[0] < 0.1 * (np.log(4.0) - means[0])
    assert means[3] - means[0] > 0.8 * (np.log(4.0) - means[0])


def test_members_of_groups_are_given_with_their_codes() -> None:
    found = rate_posterior.members(np.array([7, 0, 7, 2, 0]))
    assert [(code, rows.tolist()) for code, rows in found] == [(0, [1, 4]), (2, [3]), (7, [0, 2])]


def test_a_sample_is_spread_evenly_over_the_rows() -> None:
    assert rate_posterior.thinned(np.arange(10), 5).tolist() == [0, 2, 4, 6, 8]
    assert rate_posterior.thinned(np.arange(3), 5).tolist() == [0, 1, 2]
    assert rate_posterior.thinned(np.arange(0), 5).tolist() == []
