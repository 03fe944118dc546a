import numpy as np
import pytest

from freshet.scheduler.costs import plan_costs
from freshet.scheduler.evaluate.changes import ChangeTimes, poisson
from freshet.scheduler.evaluate.world import World, surrogate
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl
from freshet.scheduler.sources import SourceTable


def world() -> World:
    """Two sources; the second tells of its changes."""
    table = SourceTable.of([1.0, 1.0], [1.0, 1.0], complete_observations=[False, True])
    changes = ChangeTimes(np.array([0, 3, 6]), np.array([-2.0, 0.5, 1.5, -3.0, -1.0, 0.7]))
    return World(table, changes, history=4.0, days=2.0)


def test_signals_are_those_of_complete_observations_in_the_order_of_time() -> None:
    source, at = world().signals(0.0, 2.0)
    assert (source.tolist(), at.tolist()) == ([1], [0.7])


def test_changes_are_told_source_after_source_for_any_stretch() -> None:
    source, at = world().changes_of(np.array([0, 1]), -3.0, 1.0)
    assert (source.tolist(), at.tolist()) == ([0, 0, 1, 1], [-2.0, 0.5, -1.0, 0.7])


def test_past_changes_are_counted_back_from_day_0_and_end_with_the_history() -> None:
    rows = np.array([0, 1, 1, 1])
    back = np.array([0.0, 0.0, 1.0, 2.0])
    assert world().past_change(rows, back).tolist() == [-2.0, -1.0, -3.0, -4.0]


def test_a_blind_world_has_the_same_changes_and_no_rates() -> None:
    blind = world().blind()
    assert np.isnan(blind.table.change_rate).all()
    assert np.isnan(blind.table.signal_rate[1])
    assert blind.changes is not None
    assert blind.signals(0.0, 2.0)[1].tolist() == [0.7]


def test_drawn_changes_cover_history_and_days_at_their_rate() -> None:
    table = SourceTable.of(np.ones(500), np.full(500, 2.0))
    drawn = World.draw(table, poisson, 10.0, 20.0, np.random.default_rng(1))
    at = drawn.changes.at
    assert at.min() > -10
    assert at.max() <= 20
    assert abs(len(at) / (500 * 2 * 30) - 1) < 0.02


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
    for signalled, expected in ((False, -0.2), (True, 0.5)):
        rows = table.complete_observations == signalled
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
