import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from scipy.integrate import quad

from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate import bayes
from freshet.scheduler.estimate.bayes import (
    BROAD,
    CHUNK,
    FINE,
    HATS,
    INTERPOLATION,
    LOG_RATES,
    POINTS,
    EmpiricalBayes,
)
from freshet.scheduler.estimate.evidence import Evidence
from freshet.scheduler.estimate.poisson import PoissonMle
from tests.scheduler.estimate.pieces import pieces

NOTHING = np.zeros((1, POINTS))


def posterior(changes: float, days: float) -> Floats:
    """Under a prior that is flat in ln Δ: a gamma distribution of Δ, by conjugacy."""
    return bayes.relative_likelihood(NOTHING, np.array([[changes, days]]))


def test_the_coarse_points_are_among_the_fine_ones() -> None:
    np.testing.assert_allclose(FINE[::4], LOG_RATES)
    np.testing.assert_array_equal(INTERPOLATION[:, ::4], np.eye(POINTS))


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
    np.testing.assert_allclose(bayes.log_differed(span) @ INTERPOLATION, exact, atol=2e-3)


@pytest.mark.parametrize(("changes", "days"), [(2, 10), (5, 1), (30, 7), (200, 2000), (900, 100)])
def test_the_mean_of_the_logarithm_is_that_of_a_gamma_distribution(
    changes: float, days: float
) -> None:
    expected = special.digamma(changes) - np.log(days)
    assert bayes.log_mean(posterior(changes, days))[0] == pytest.approx(expected, abs=3e-3)


@pytest.mark.parametrize("changes", [1e4, 1e6, 1e9])
@pytest.mark.parametrize("rate", [0.0123, 0.1, 1.618, 17.0])
def test_however_much_is_known_the_mean_is_right_to_half_a_step(
    changes: float, rate: float
) -> None:
    found = bayes.log_mean(posterior(changes, changes / rate))[0]
    assert found == pytest.approx(np.log(rate), abs=0.036)


@pytest.mark.parametrize("probability", [0.05, 0.5, 0.9])
@pytest.mark.parametrize(("changes", "days"), [(3, 10), (30, 7), (200, 2000)])
def test_quantiles_are_those_of_a_gamma_distribution(
    changes: float, days: float, probability: float
) -> None:
    expected = stats.gamma.ppf(probability, changes, scale=1 / days)
    found = bayes.quantile(posterior(changes, days), probability)[0]
    assert found == pytest.approx(expected, rel=0.01)


def test_the_outermost_quantiles_are_the_ends_of_the_grid() -> None:
    flat = np.ones((1, len(FINE)))
    assert bayes.quantile(flat, 0.0)[0] == pytest.approx(1e-3)
    assert bayes.quantile(flat, 1.0)[0] == pytest.approx(50)


def hat_likelihood(rng: np.random.Generator, rates: Floats, days: float) -> Floats:
    """From counts of changes over so many days."""
    exact = np.stack([rng.poisson(rates * days), np.full(len(rates), days)], axis=1)
    nothing = np.zeros((len(rates), POINTS))
    return bayes.relative_likelihood(nothing, exact) @ HATS.T


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
        for weights in (bayes.fit(likelihood, BROAD, strength, k) for k in range(12))
    ]
    assert (np.diff(penalised) >= -1e-9 * abs(penalised[0])).all()


def test_the_weights_converge_to_where_the_gradient_is_the_same_for_all() -> None:
    rng = np.random.default_rng(3)
    likelihood = hat_likelihood(rng, rng.lognormal(-1, 1, 30), 3.0)
    weights = bayes.fit(likelihood, BROAD, 10.0, 5_000)
    # Kuhn-Tucker under Σ w = 1, the multiplier being n + κ.
    gradient = (likelihood / (likelihood @ weights)[:, None]).sum(axis=0) + 10.0 * BROAD / weights
    np.testing.assert_allclose(gradient, 40.0, rtol=1e-6)
    assert weights.sum() == pytest.approx(1.0)


def test_the_distribution_of_a_large_population_is_found() -> None:
    rng = np.random.default_rng(4)
    logs = rng.choice([np.log(0.05), np.log(2.0)], 5_000, p=[0.7, 0.3]) + rng.normal(0, 0.3, 5_000)
    weights = bayes.fit(hat_likelihood(rng, np.exp(logs), 20.0), BROAD, 10.0, 30)
    assert weights[np.exp(LOG_RATES) > 0.5].sum() == pytest.approx(0.3, abs=0.03)
    assert weights @ LOG_RATES == pytest.approx(logs.mean(), abs=0.1)


def test_without_members_the_prior_is_its_parent() -> None:
    assert bayes.fit(np.zeros((0, 40)), BROAD, 10.0, 5) == pytest.approx(BROAD)


def test_few_members_move_the_prior_little() -> None:
    fast = hat_likelihood(np.random.default_rng(5), np.full(100, 4.0), 50.0)
    means = [float(LOG_RATES @ bayes.fit(fast[:n], BROAD, 10.0, 10)) for n in (0, 1, 10, 100)]
    assert means == sorted(means)
    assert means[1] - means[0] < 0.1 * (np.log(4.0) - means[0])
    assert means[3] - means[0] > 0.8 * (np.log(4.0) - means[0])


def test_members_of_groups_are_given_with_their_codes() -> None:
    found = bayes.members(np.array([7, 0, 7, 2, 0]))
    assert [(code, rows.tolist()) for code, rows in found] == [(0, [1, 4]), (2, [3]), (7, [0, 2])]


def test_a_sample_is_spread_evenly_over_the_rows() -> None:
    assert bayes.thinned(np.arange(10), 5).tolist() == [0, 2, 4, 6, 8]
    assert bayes.thinned(np.arange(3), 5).tolist() == [0, 1, 2]
    assert bayes.thinned(np.arange(0), 5).tolist() == []


SOURCES = 3
PIECE = st.tuples(
    st.integers(0, SOURCES - 1), st.integers(0, 20).map(float), st.sampled_from([0.25, 1.0, 3.0]),
    st.integers(0, 1), st.booleans(),
)  # fmt: skip


def evidence(history: list[tuple[int, float, float, int, bool]]) -> Evidence:
    source, at, span, changes, counted = zip(*history, strict=True) if history else ((),) * 5
    return pieces(
        np.array(source, np.intp), at, span, changes, counted=np.array(counted, np.bool_),
    )  # fmt: skip


@given(st.lists(PIECE, min_size=1, max_size=12), st.sampled_from([2.0, None]), st.data())
def test_neither_order_nor_batches_of_evidence_matter(
    pieces: list[tuple[int, float, float, int, bool]], half_life: float | None, data: st.DataObject
) -> None:
    at_once, in_parts = (
        EmpiricalBayes(SOURCES, half_life_days=half_life),
        EmpiricalBayes(SOURCES, half_life_days=half_life),
    )
    at_once.observe(evidence(pieces))
    mixed = data.draw(st.permutations(pieces))
    cut = data.draw(st.integers(0, len(pieces)))
    in_parts.observe(evidence(mixed[:cut]))
    for piece in mixed[cut:]:
        in_parts.observe(evidence([piece]))
    rows = np.arange(SOURCES)
    np.testing.assert_allclose(in_parts.likelihood(rows), at_once.likelihood(rows), atol=1e-5)
    np.testing.assert_array_equal(in_parts.known(), at_once.known())


@given(st.lists(PIECE, min_size=1, max_size=12), st.sampled_from([2.0, None]))
def test_a_likelihood_is_the_product_of_that_of_each_piece_faded_to_the_newest(
    pieces: list[tuple[int, float, float, int, bool]], half_life: float | None
) -> None:
    sums = EmpiricalBayes(SOURCES, half_life_days=half_life)
    sums.observe(evidence(pieces))
    rates = np.exp(bayes.FINE)
    for source in range(SOURCES):
        own = [piece[1:] for piece in pieces if piece[0] == source]
        newest = max((at for at, *_ in own), default=0.0)
        total = np.zeros_like(rates)
        for at, span, changes, counted in own:
            differed = changes == 1 and not counted
            log = np.log(-np.expm1(-span * rates)) if differed else -span * rates
            log = log + changes * np.log(rates) if counted else log
            total += 0.5 ** ((newest - at) / (half_life or np.inf)) * log
        expected = np.exp(total - total.max())
        np.testing.assert_allclose(sums.likelihood(np.array([source]))[0], expected, atol=2e-3)


def test_a_batch_may_be_larger_than_what_is_worked_out_together() -> None:
    rng = np.random.default_rng(1)
    m = 3 * CHUNK + 5
    source = rng.integers(0, 50, m)
    span = rng.exponential(1.0, m)
    sums = EmpiricalBayes(50)
    sums.observe(Evidence(source, np.zeros(m), span, np.ones(m, np.int64), np.zeros(m, np.bool_)))
    expected = np.stack([bayes.log_differed(span[source == i]).sum(axis=0) for i in range(50)])
    np.testing.assert_allclose(sums._differed.rows, expected, rtol=1e-5)


def test_only_sources_with_evidence_are_known() -> None:
    sums = EmpiricalBayes(5)
    sums.observe(pieces([1, 2], [1.0, 1.0], [1.0, 1e4], [0, 1]))
    sums.observe(pieces([4], [1.0], [0.0], [1], counted=[True]))
    assert sums.known().tolist() == [1, 2, 4]


def test_single_precision_is_enough_for_a_long_history() -> None:
    n, span = 20_000, 0.5
    sums = EmpiricalBayes(1)
    piece = pieces([0], [0.0], [span], [1])
    for _ in range(n):
        sums.observe(piece)
    sums.observe(pieces([0], [0.0], [n * span], [0]))
    rates = np.exp(bayes.FINE)
    direct = n * (np.log(-np.expm1(-span * rates)) - span * rates)
    # As many changed as unchanged: 1 − e^{−Δ/2} = 1/2.
    mean = bayes.log_mean(sums.likelihood(np.array([0])))[0]
    assert mean == pytest.approx(np.log(2 * np.log(2)), abs=0.036)
    assert sums.likelihood(np.array([0]))[0].argmax() == direct.argmax()


#: Not enough evidence for a first fit of the prior.
FEW = pieces(
    [0, 0, 0, 1, 1], [1, 3, 6, 2, 3], [1, 2, 3, 2, 1], [1, 0, 1, 3, 1],
    counted=[False, False, False, True, False],
)  # fmt: skip


def crawls(
    rng: np.random.Generator, rates: Floats, number: int, mean_days: float = 1.0
) -> Evidence:
    """So many crawls of every source at Poisson times."""
    n = len(rates)
    span = rng.exponential(mean_days, (number, n))
    changed = rng.random(span.shape) < -np.expm1(-rates * span)
    return Evidence(
        np.tile(np.arange(n), number), np.cumsum(span, axis=0).ravel(), span.ravel(),
        changed.ravel().astype(np.int64), np.zeros(span.size, np.bool_),
    )  # fmt: skip


def error(estimates: Floats, rates: Floats) -> float:
    return float(np.sqrt(np.mean(np.log(estimates / rates) ** 2)))


def likelihood(source: int, rate: float) -> float:
    if source == 0:
        return float(-np.expm1(-rate) * np.exp(-2 * rate) * -np.expm1(-3 * rate))
    return float(rate**3 * np.exp(-2 * rate) * -np.expm1(-rate)) if source == 1 else 1.0


@pytest.mark.parametrize("source", [0, 1, 2])
def test_the_estimate_is_that_of_bayes_theorem(source: int) -> None:
    learner = EmpiricalBayes(3)
    learner.observe(FEW)

    density = BROAD.copy()
    density[[0, -1]] *= 2  # their hats are half as wide

    def weight(log_rate: float) -> float:
        prior = np.interp(log_rate, bayes.LOG_RATES, density)
        return float(prior * likelihood(source, np.exp(log_rate)))

    ends, knots = (np.log(1e-3), np.log(50)), bayes.LOG_RATES[1:-1]
    mass = quad(weight, *ends, points=knots, limit=200)[0]
    mean = quad(lambda x: x * weight(x), *ends, points=knots, limit=200)[0] / mass
    assert learner.change_rate()[source] == pytest.approx(np.exp(mean), rel=2e-3)
    low, high = learner.credible_interval(np.array([source]), mass=0.8)
    below = quad(weight, ends[0], np.log(low[0]), points=knots, limit=200)[0]
    above = quad(weight, np.log(high[0]), ends[1], points=knots, limit=200)[0]
    assert (below / mass, above / mass) == pytest.approx((0.1, 0.1), abs=0.004)


def test_few_observations_of_a_population_tell_more_than_equation_10() -> None:
    rng = np.random.default_rng(1)
    rates = np.clip(np.exp(-1.744 + 2.693 * rng.standard_normal(4_000)), 0.018, 6)
    for number, goal in ((5, 0.95), (20, 0.60), (80, 0.35)):
        learner, mle = EmpiricalBayes(len(rates)), PoissonMle(len(rates))
        evidence = crawls(rng, rates, number)
        learner.observe(evidence)
        mle.observe(evidence)
        assert error(learner.change_rate(), rates) < goal
        assert error(learner.change_rate(), rates) < 0.85 * error(mle.change_rate(), rates)


def test_nine_in_ten_credible_intervals_hold_the_rate() -> None:
    rng = np.random.default_rng(2)
    rates = rng.lognormal(-1, 1.2, 4_000)
    learner = EmpiricalBayes(len(rates))
    learner.observe(crawls(rng, rates, 10))
    low, high = learner.credible_interval(mass=0.9)
    assert np.mean((low <= rates) & (rates <= high)) == pytest.approx(0.9, abs=0.02)


def test_with_much_evidence_the_estimate_is_the_rate() -> None:
    rng = np.random.default_rng(3)
    rates = np.array([0.03, 0.2, 1.0, 3.0])
    learner = EmpiricalBayes(4)
    learner.observe(crawls(rng, rates, 20_000, mean_days=0.5))
    np.testing.assert_allclose(learner.change_rate(), rates, rtol=0.08)


def test_groups_learn_from_their_own_and_small_ones_from_all() -> None:
    rng = np.random.default_rng(4)
    group = np.repeat([0, 1, 3], [2_000, 2_000, 1])
    rates = np.array([0.05, 3.0, 0.0, 3.0])[group] * rng.lognormal(0, 0.3, len(group))
    apart, together = EmpiricalBayes(len(group), group=group), EmpiricalBayes(len(group))
    evidence = crawls(rng, rates, 3)
    apart.observe(evidence)
    together.observe(evidence)
    assert error(apart.change_rate(), rates) < 0.7 * error(together.change_rate(), rates)
    # One source cannot make a prior: the group's is nearly that of all.
    last = np.array([len(group) - 1])
    assert apart.change_rate(last)[0] == pytest.approx(together.change_rate(last)[0], rel=0.4)


def test_a_group_without_evidence_has_the_prior_of_all() -> None:
    rng = np.random.default_rng(5)
    learner = EmpiricalBayes(1_001, group=np.append(np.zeros(1_000, np.intp), 1))
    evidence = crawls(rng, np.full(1_000, 3.0), 5)
    learner.observe(evidence)
    assert learner.change_rate()[-1] > 1.5
    assert EmpiricalBayes(1).change_rate()[0] < 0.2


def test_a_rate_that_drifts_is_followed_with_a_half_life() -> None:
    rng = np.random.default_rng(6)
    n = 500
    before, after = rng.lognormal(-1, 1, n), rng.lognormal(-1, 1, n)
    fading, lasting = EmpiricalBayes(n, half_life_days=10), EmpiricalBayes(n)
    first, second = crawls(rng, before, 100), crawls(rng, after, 100)
    second.at[:] += 100
    for learner in (fading, lasting):
        learner.observe(first)
        learner.observe(second)
    assert error(fading.change_rate(), after) < 0.5
    assert error(lasting.change_rate(), after) > 0.7


def test_a_fit_depends_on_the_sums_and_not_on_earlier_fits() -> None:
    rng = np.random.default_rng(8)
    rates = rng.lognormal(-1, 1, 200)
    asked_daily, asked_last = EmpiricalBayes(200), EmpiricalBayes(200)
    for _ in range(8):
        day = crawls(rng, rates, 1)
        asked_daily.observe(day)
        asked_last.observe(day)
        asked_daily.change_rate()
    # 200, 400, 800, 1400 rows are fitted; the last day's 1600 are too few more.
    assert (asked_daily.revision, asked_last.revision) == (4, 0)
    assert (asked_daily.change_rate() != asked_last.change_rate()).all()
    more = crawls(rng, rates, 5)
    asked_daily.observe(more)
    asked_last.observe(more)
    np.testing.assert_array_equal(asked_daily.change_rate(), asked_last.change_rate())


def test_estimates_of_unseen_sources_move_only_when_the_revision_does() -> None:
    rng = np.random.default_rng(10)
    learner = EmpiricalBayes(101)
    rates = np.full(100, 2.0)
    unseen = np.array([100])
    seen = [(learner.revision, learner.change_rate(unseen)[0])]
    for _ in range(12):
        learner.observe(crawls(rng, rates, 1))
        estimate = learner.change_rate(unseen)[0]
        seen.append((learner.revision, estimate))
    assert len(set(seen)) == len({revision for revision, _ in seen}) == learner.revision + 1


def test_some_rows_are_estimated_as_all_are() -> None:
    rng = np.random.default_rng(11)
    learner = EmpiricalBayes(5_000)
    learner.observe(crawls(rng, rng.lognormal(-1, 1, 5_000), 3))
    rows = np.array([4_999, 7, 7, 2_048])
    np.testing.assert_allclose(learner.change_rate(rows), learner.change_rate()[rows], rtol=1e-9)


def test_without_evidence_every_rate_is_that_of_the_broad_prior() -> None:
    learner = EmpiricalBayes(2)
    assert learner.change_rate() == pytest.approx(1 / 7, rel=0.03)
    assert learner.revision == 0
    # No change in no time says nothing.
    zeros = np.zeros(50)
    learner.observe(pieces(np.zeros(50, np.intp), zeros, zeros, zeros, counted=zeros == 0))
    assert learner.change_rate() == pytest.approx(1 / 7, rel=0.03)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"half_life_days": 0.0}, "half_life_days: is 0.0; accepted is a finite number above 0"),
        ({"group": [0]}, "group: has 1 rows; accepted are 2"),
        ({"group": [0, -1]}, "group: row 1 is -1; accepted is an integer code from 0"),
    ],
)
def test_options_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        EmpiricalBayes(2, **options)  # type: ignore[arg-type]


def test_the_mass_of_an_interval_is_a_share() -> None:
    with pytest.raises(ValueError, match=r"^mass: row 0 is 1\.5; accepted is a number from 0 to 1"):
        EmpiricalBayes(1).credible_interval(mass=1.5)
