"""Priors and indices of appeal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special

from freshet.scheduler.appeal import BetaPrior, kl_upper_bound


def negative_log_posterior(point: np.ndarray, s: np.ndarray, f: np.ndarray) -> float:
    a, b = np.exp(point)
    marginal = (special.betaln(a + s, b + f) - special.betaln(a, b)).sum()
    usual = 0.5 * np.log(a * b / (a + b) ** 2) - 0.5 * (np.log((a + b) / 5) / 2) ** 2
    return float(-marginal - usual)


@pytest.mark.parametrize(("arms", "a", "b"), [(3_000, 0.8, 19.2), (200, 0.8, 3.2), (1, 1.0, 1.0)])
def test_a_fitted_prior_is_the_one_that_a_general_optimiser_finds(
    arms: int, a: float, b: float
) -> None:
    rng = np.random.default_rng(arms)
    shown = rng.integers(1, 60, arms)
    s = rng.binomial(shown, rng.beta(a, b, arms)).astype(float)
    found = BetaPrior.fitted(s, shown - s)
    best = optimize.minimize(
        negative_log_posterior, [0.0, 0.0], (s, shown - s), "Nelder-Mead", tol=1e-10
    )
    alpha, beta = np.exp(best.x)
    assert found.mean == pytest.approx(alpha / (alpha + beta), rel=1e-4)
    assert found.strength == pytest.approx(alpha + beta, rel=1e-4)


counts = st.lists(
    st.tuples(st.floats(0, 1e4), st.floats(0, 1e4)).map(lambda pair: np.round(pair, 3)), max_size=30
)


@given(counts)
def test_a_fitted_prior_is_a_law_whatever_the_counts(pairs: list[np.ndarray]) -> None:
    s, f = np.array(pairs, np.float64).reshape(-1, 2).T
    found = BetaPrior.fitted(s, f)
    assert 0 < found.mean < 1
    assert 0 < found.strength < np.inf


probabilities = st.floats(0, 1)


@given(st.lists(st.tuples(probabilities, st.floats(1e-9, 30)), min_size=1, max_size=20))
def test_the_bound_is_at_the_level_or_at_one(pairs: list[tuple[float, float]]) -> None:
    p, level = np.array(pairs).T
    q = kl_upper_bound(p, level)
    assert ((p <= q) & (q <= 1)).all()
    inside = q < 1 - 1e-9
    distance = special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q)
    assert distance[inside] == pytest.approx(level[inside], rel=1e-5, abs=1e-12)
