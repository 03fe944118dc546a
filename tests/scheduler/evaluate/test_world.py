import numpy as np

from freshet.scheduler.evaluate.changes import ChangeTimes, poisson
from freshet.scheduler.evaluate.world import World
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
