import numpy as np
import pytest

from freshet.scheduler.costs import plan_costs
from freshet.scheduler.evaluate.world import surrogate
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl


def test_the_surrogate_has_the_means_that_the_paper_prints() -> None:
    table = surrogate(400_000, np.random.default_rng(1))
    assert table.importance.mean() == pytest.approx(1134, rel=0.03)
    assert table.change_rate.mean() == pytest.approx(1.124, rel=0.02)


def test_one_source_in_twenty_five_has_complete_observations() -> None:
    assert surrogate(1_000, np.random.default_rng(1)).complete_observations.sum() == 40


def test_importances_are_whole_and_change_rates_bounded() -> None:
    table = surrogate(10_000, np.random.default_rng(1))
    assert table.importance.min() >= 1
    assert (table.importance == np.round(table.importance)).all()
    assert table.change_rate.min() == 0.018
    assert table.change_rate.max() == 6


def test_what_matters_more_changes_less_unless_it_tells_of_its_changes() -> None:
    table = surrogate(100_000, np.random.default_rng(1))
    for heard, expected in ((False, -0.2), (True, 0.5)):
        rows = table.complete_observations == heard
        inside = rows & (table.change_rate > 0.018) & (table.change_rate < 6)
        logs = np.log(table.importance[inside]), np.log(table.change_rate[inside])
        found = np.corrcoef(*logs)[0, 1]
        assert np.sign(found) == np.sign(expected)


def test_lambda_crawl_costs_what_it_cost_when_the_surrogate_was_fitted() -> None:
    table = surrogate(300_000, np.random.default_rng(1))
    costs = plan_costs(table, LambdaCrawl().rates(table, 0.2 * len(table)))
    assert costs.harmonic.mean() == pytest.approx(302.6, rel=0.03)
    assert costs.binary.mean() == pytest.approx(184.9, rel=0.03)


def test_the_same_seed_draws_the_same_sources() -> None:
    one, other = (surrogate(100, np.random.default_rng(5)) for _ in range(2))
    assert (one.importance == other.importance).all()
    assert (one.change_rate == other.change_rate).all()
