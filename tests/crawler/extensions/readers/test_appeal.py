"""Priors and indices of appeal."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special, stats

from freshet.crawler.extensions.readers import appeal
from freshet.crawler.extensions.readers.appeal import Appeal, Attention, BetaPrior, kl_upper_bound


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


# -- attention ---------------------------------------------------------------


def opened_at(
    rng: np.random.Generator, exponent: float, shown: int, *, places: int = 10, first: float = 0.4
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    place = np.arange(1, places + 1)
    of_place = np.full(places, float(shown))
    return place, of_place, rng.binomial(shown, first * place**-exponent).astype(float)


def test_attention_is_what_a_general_optimiser_finds() -> None:
    place, shown, opened = opened_at(np.random.default_rng(1), 1.4, 50)

    def negative(point: np.ndarray) -> float:
        law = stats.binom(shown, np.exp(point[1]) * place ** -point[0])
        return float(-law.logpmf(opened).sum() + 0.5 * ((point[0] - 1) / 0.5) ** 2)

    best = optimize.minimize(negative, [1.0, -1.0], method="Nelder-Mead", tol=1e-8)
    found = Attention.fitted(place, shown, opened)
    assert found.exponent == pytest.approx(best.x[0], abs=0.01)
    for end in found.interval:
        profile = optimize.minimize_scalar(
            lambda level, end=end: negative(np.array([end, level])),
            bounds=(-8, 0),
            method="bounded",
        )
        assert profile.fun - best.fun == pytest.approx(1.92, abs=0.1)


@pytest.mark.parametrize(("exponent", "shown"), [(0.5, 5), (1.0, 5), (1.5, 20), (1.0, 200)])
def test_the_interval_of_attention_holds_the_truth_in_19_of_20_cases(
    exponent: float, shown: int
) -> None:
    rng = np.random.default_rng(shown)
    found = [Attention.fitted(*opened_at(rng, exponent, shown)) for _ in range(300)]
    held = [each.interval[0] <= exponent <= each.interval[1] for each in found]
    assert 0.92 <= np.mean(held) <= 1.0


def test_much_data_give_the_exponent_and_none_the_usual_one() -> None:
    much = Attention.fitted(*opened_at(np.random.default_rng(2), 0.7, 200_000))
    assert much.exponent == pytest.approx(0.7, abs=0.011)
    assert np.ptp(much.interval) < 0.05
    most = Attention.fitted(np.arange(1, 3), np.full(2, 4e9), np.array([2e9, 1e9]))
    assert most.interval == (1.0, 1.0)
    none = np.zeros(0)
    for places, counts in ((none.astype(np.int64), none), (np.array([1]), np.array([9.0]))):
        nothing = Attention.fitted(places, counts, counts)
        assert nothing.exponent == Attention().exponent
        assert nothing.interval == pytest.approx(Attention().interval, abs=0.011)


# -- the hierarchy -----------------------------------------------------------


def grown(
    rng: np.random.Generator, shape: tuple[int, int, int], strengths: tuple[float, float, float]
) -> tuple[np.ndarray, ...]:
    """Return appeal, views, opens, section and site of pages of sections of sites, mean 0.15."""
    sites, sections, pages = shape
    nu = rng.beta(0.15 * strengths[2], 0.85 * strengths[2], sites).clip(1e-6, 1 - 1e-6)
    site = np.repeat(np.arange(sites), sections)
    mu = rng.beta(nu[site] * strengths[1], (1 - nu[site]) * strengths[1]).clip(1e-6, 1 - 1e-6)
    section = np.repeat(np.arange(sites * sections), pages)
    appeal = rng.beta(mu[section] * strengths[0], (1 - mu[section]) * strengths[0])
    views = rng.poisson(rng.exponential(10, len(section))).astype(float)
    return appeal, views, rng.binomial(views.astype(int), appeal) + 0.0, section, site[section]


def brute_force(
    views: np.ndarray, opens: np.ndarray, section: np.ndarray, strengths: np.ndarray
) -> tuple[float, np.ndarray, float]:
    """Return ln of the marginal likelihood, means of a site's two sections and of a third one."""
    logits = np.linspace(-30, 15, 226)
    mean, step = special.expit(logits), logits[1] - logits[0]

    def law(strength: float) -> np.ndarray:
        a = mean[:, None] * strength
        log = special.xlogy(a, mean) + special.xlogy(strength - a, 1 - mean)
        return np.asarray(step * np.exp(log - special.betaln(a, strength - a)))

    def likelihood(code: int) -> np.ndarray:
        a, b = mean[:, None] * strengths[0], (1 - mean[:, None]) * strengths[0]
        s, e = opens[section == code], views[section == code]
        log = special.betaln(a + s, b + e - s) - special.betaln(a, b)
        return np.asarray(np.exp(log.sum(axis=1)))

    top = step * stats.beta(0.5, 0.5).pdf(mean) * mean * (1 - mean)
    middle, lower = law(strengths[2]), law(strengths[1])
    terms = (top, middle, lower, likelihood(0), lower, likelihood(1))
    form = "o,on,na,a,nb,b->"
    total = np.einsum(form, *terms, optimize=True)
    third = np.einsum(form + "n", *terms, optimize=True) @ lower @ mean
    sums = [np.einsum(form + each, *terms, optimize=True) @ mean for each in "ab"]
    return float(np.log(total)), np.array(sums) / total, float(third / total)


def test_strengths_and_means_are_those_of_the_marginal_likelihood() -> None:
    rng = np.random.default_rng(4)
    _, views, opens, section, site = grown(rng, (1, 2, 12), (8.0, 6.0, 6.0))
    found = Appeal.learned(views, opens, section, site, lists=100)

    def value(strengths: np.ndarray) -> float:
        unusual = (np.log(strengths / 5) / 2) ** 2 / 2
        return brute_force(views, opens, section, strengths)[0] - float(unusual.sum())

    for level in np.eye(3):
        assert value(found.strengths) >= value(found.strengths * 2**level)
        assert value(found.strengths) >= value(found.strengths / 2**level)
    _, means, third = brute_force(views, opens, section, found.strengths)
    strength = found.strengths[0]
    expected = (means[section] * strength + opens) / (strength + views)
    assert found.mean == pytest.approx(expected, rel=0.01)
    new, _ = found.prior_of(np.array([0, 1, -1]), np.array([0, 0, 0]))
    assert new == pytest.approx([*means, third], rel=0.02)


def test_strengths_and_appeal_are_recovered() -> None:
    rng = np.random.default_rng(5)
    appeal, views, opens, section, site = grown(rng, (40, 10, 20), (5.0, 20.0, 10.0))
    found = Appeal.learned(views, opens, section, site, lists=1000)
    assert (np.abs(np.log2(found.strengths / [5, 20, 10])) <= 1).all()
    error = np.mean((found.mean - appeal) ** 2)
    flat = BetaPrior.fitted(opens, views - opens).posterior_mean(opens, views - opens)
    assert error < 0.93 * np.mean((flat - appeal) ** 2)
    # As an expectation is, it is right on average among pages for which it is about the same.
    for part in np.array_split(np.argsort(found.mean), 5):
        assert found.mean[part].mean() == pytest.approx(appeal[part].mean(), abs=0.015)


def test_what_was_never_shown_has_the_mean_above_it() -> None:
    views = np.array([40.0, 30.0, 0.0, 0.0, 50.0, 0.0])
    opens = np.array([20.0, 10.0, 0.0, 0.0, 1.0, 0.0])
    section, site = np.array([0, 0, 0, 1, 2, 3]), np.array([0, 0, 0, 0, 1, 2])
    found = Appeal.learned(views, opens, section, site, lists=50)
    new, index = found.prior_of(np.array([0, 1, -1, 3, -1]), np.array([0, 0, 0, 2, -1]))
    assert new[[0, 1, 3]] == pytest.approx(found.mean[[2, 3, 5]])
    assert index[[0, 1, 3]] == pytest.approx(found.index[[2, 3, 5]])
    assert new[2] == pytest.approx(new[1])  # a section of site 0 that nobody knows
    assert new[4] == pytest.approx(new[3])  # a site that nobody knows
    assert found.mean[0] > new[0] > new[1] > new[3] > found.mean[4]


@pytest.mark.parametrize("lists", [0, 0.5, 1])
@pytest.mark.parametrize("pages", [0, 1, 3])
def test_few_lists_explore_nothing(lists: float, pages: int) -> None:
    code = np.zeros(pages, np.int64)
    views = np.arange(pages, dtype=float)
    found = Appeal.learned(views, 3 * views, code, code, lists=lists)  # opens beyond views
    assert found.index == pytest.approx(found.mean)
    assert ((found.mean > 0) & (found.mean < 1)).all()
    mean, index = found.prior_of(np.array([-1]), np.array([-1]))
    assert index == pytest.approx(mean)
    assert 0 < mean[0] < 1


pages_of_lists = st.lists(
    st.tuples(st.floats(0, 300), st.integers(0, 100), st.integers(0, 3)), min_size=1, max_size=12
)


@given(pages_of_lists, st.integers(1, 50), st.data())
def test_more_opens_lower_no_mean(
    pages: list[tuple[float, int, int]], more: int, data: st.DataObject
) -> None:
    views, opens, section = np.array(pages, np.float64).reshape(-1, 3).T
    codes = section.astype(np.int64)
    page = data.draw(st.integers(0, len(pages) - 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(appeal, "_POWERS", (0.0, 0.0))  # of equal strengths
        before = Appeal.learned(views, opens, codes, codes // 2, lists=9)
        opens[page] += more
        views[page] += more if data.draw(st.booleans()) else 0.0
        after = Appeal.learned(views, opens, codes, codes // 2, lists=9)
    assert (after.mean >= before.mean - 1e-9).all()


@given(pages_of_lists, st.floats(0, 1e5), st.randoms(use_true_random=False))
def test_appeal_is_a_probability_below_its_index_in_any_order(
    pages: list[tuple[float, int, int]], lists: float, random: Random
) -> None:
    columns = np.array(pages, np.float64).reshape(-1, 3).T
    order = np.array(random.sample(range(len(pages)), len(pages)))
    found, shuffled = (
        Appeal.learned(views, opens, s.astype(np.int64), s.astype(np.int64) // 2, lists=lists)
        for views, opens, s in (columns, columns[:, order])
    )
    assert ((found.mean > 0) & (found.mean <= found.index) & (found.index <= 1)).all()
    assert shuffled.mean == pytest.approx(found.mean[order])
    assert shuffled.index == pytest.approx(found.index[order])
