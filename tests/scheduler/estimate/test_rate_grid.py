import numpy as np
import pytest
from scipy import special, stats

from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate import rate_posterior
from freshet.scheduler.estimate.rate_posterior import FINE, HATS, INTERPOLATION, LOG_RATES

NOTHING = np.zeros((1, rate_posterior.POINTS))


def posterior(changes: float, days: float) -> Floats:
    """Under a prior that is flat in ln Δ: a gamma distribution of Δ, by conjugacy."""
    return rate_posterior.likelihood(NOTHING, np.array([[changes, days]]))


def test_the_coarse_points_are_among_the_fine_ones() -> None:
    np.testing.assert_allclose(FINE[::4], LOG_RATES)
    np.testing.assert_array_equal(INTERPOLATION[:, ::4], np.eye(rate_posterior.POINTS))


def test_the_interpolation_is_exact_for_cubics() -> None:
    cubic = np.polynomial.Polynomial([2.0, -1.0, 0.5, 0.3])
    np.testing.assert_allclose(cubic(LOG_RATES) @ INTERPOLATION, cubic(FINE), rtol=1e-10)


def test_the_hats_are_distributions_that_make_up_any_line() -> None:
    np.testing.assert_allclose(HATS.sum(axis=1), 1.0)
    inner = HATS[1:-1] * 4
    np.testing.assert_allclose((LOG_RATES[1:-1] @ inner)[4:-4], FINE[4:-4])


@pytest.mark.parametrize("span", [1e-6, 0.01, 1.0, 30.0, 1e5])
def test_what_lies_between_the_points_of_a_comparison_is_interpolated_closely(span: float) -> None:
    exact = np.log(-np.expm1(-span * np.exp(FINE)))
    np.testing.assert_allclose(rate_posterior.differed(span) @ INTERPOLATION, exact, atol=2e-3)


def test_likelihoods_are_relative_to_their_largest_value() -> None:
    span, days = 2.0, 5.0
    found = rate_posterior.likelihood(
        rate_posterior.differed(np.array([span])), np.array([[0.0, days]])
    )
    rates = np.exp(FINE)
    direct = -np.expm1(-span * rates) * np.exp(-days * rates)
    np.testing.assert_allclose(found[0], direct / direct.max(), rtol=2e-3)
    assert found.max() == 1.0


@pytest.mark.parametrize(("changes", "days"), [(2, 10), (5, 1), (30, 7), (200, 2000), (900, 100)])
def test_the_mean_of_the_logarithm_is_that_of_a_gamma_distribution(
    changes: float, days: float
) -> None:
    expected = special.digamma(changes) - np.log(days)
    assert rate_posterior.log_mean(posterior(changes, days))[0] == pytest.approx(expected, abs=3e-3)


@pytest.mark.parametrize("changes", [1e4, 1e6, 1e9])
@pytest.mark.parametrize("rate", [0.0123, 0.1, 1.618, 17.0])
def test_however_much_is_known_the_mean_is_right_to_half_a_step(
    changes: float, rate: float
) -> None:
    found = rate_posterior.log_mean(posterior(changes, changes / rate))[0]
    assert found == pytest.approx(np.log(rate), abs=0.036)


@pytest.mark.parametrize("probability", [0.05, 0.5, 0.9])
@pytest.mark.parametrize(("changes", "days"), [(3, 10), (30, 7), (200, 2000)])
def test_quantiles_are_those_of_a_gamma_distribution(
    changes: float, days: float, probability: float
) -> None:
    expected = stats.gamma.ppf(probability, changes, scale=1 / days)
    found = rate_posterior.quantile(posterior(changes, days), probability)[0]
    assert found == pytest.approx(expected, rel=0.01)


def test_the_outermost_quantiles_are_the_ends_of_the_grid() -> None:
    flat = np.ones((1, len(FINE)))
    assert rate_posterior.quantile(flat, 0.0)[0] == pytest.approx(1e-3)
    assert rate_posterior.quantile(flat, 1.0)[0] == pytest.approx(50)


def test_no_evidence_is_a_flat_likelihood() -> None:
    assert (posterior(0, 0) == 1).all()
