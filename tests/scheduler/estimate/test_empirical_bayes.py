import doctest

import numpy as np
import pytest
from scipy.integrate import quad

from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate import bayes, rate_posterior
from freshet.scheduler.estimate.bayes import EmpiricalBayes
from freshet.scheduler.estimate.evidence import Evidence
from freshet.scheduler.estimate.poisson import PoissonMle
from freshet.scheduler.estimate.rate_posterior import BROAD

#: Not enough evidence for a first fit of the prior.
FEW = Evidence.of(
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
        np.tile(np.arange(n), number),
        np.cumsum(span, axis=0).ravel(),
        span.ravel(),
        changed.ravel().astype(np.int64),
        np.zeros(span.size, np.bool_),
    )


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
        prior = np.interp(log_rate, rate_posterior.LOG_RATES, density)
        return float(prior * likelihood(source, np.exp(log_rate)))

    ends, knots = (np.log(1e-3), np.log(50)), rate_posterior.LOG_RATES[1:-1]
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


def test_evidence_may_come_in_one_batch_or_in_many() -> None:
    rng = np.random.default_rng(7)
    rates = rng.lognormal(-1, 1, 200)
    whole = crawls(rng, rates, 12)
    at_once, in_parts = EmpiricalBayes(200), EmpiricalBayes(200)
    at_once.observe(whole)
    for first in range(0, len(whole), 90):
        part = slice(first, first + 90)
        in_parts.observe(
            Evidence(
                whole.source[part],
                whole.at[part],
                whole.span[part],
                whole.changes[part],
                whole.counted[part],
            )
        )
    np.testing.assert_allclose(in_parts.change_rate(), at_once.change_rate(), rtol=1e-5)


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


def test_evidence_that_says_nothing_leaves_the_prior() -> None:
    learner = EmpiricalBayes(1)
    zeros = np.zeros(50)
    learner.observe(Evidence.of(np.zeros(50, np.intp), zeros, zeros, zeros, counted=zeros == 0))
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


def test_the_example_in_the_text_is_right() -> None:
    assert doctest.testmod(bayes) == (0, 3)
