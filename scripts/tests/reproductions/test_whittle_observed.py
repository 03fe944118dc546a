import doctest

import numpy as np
import pytest

from freshet.scheduler.arrays import Floats
from freshet.scheduler.ephemeral.sources import EphemeralSources, UtilityLaw
from scripts.reproductions import whittle_observed as observed_index
from scripts.reproductions.whittle_items import arriving
from scripts.reproductions.whittle_observed import (
    WhittleByCurve,
    WhittleByState,
    atoms,
    index_curve,
)
from scripts.reproductions.whittle_periods import run
from scripts.reproductions.whittle_states import index_at
from tests.scheduler.ephemeral.tables import TABLE_1

HEAVY = UtilityLaw("lognormal", 1.5, together=True)


def test_the_examples_in_the_documentation_are_right() -> None:
    assert doctest.testmod(observed_index).failed == 0


@pytest.mark.parametrize("row", range(4))
def test_where_the_law_is_degenerate_the_curve_is_the_deterministic_index(row: int) -> None:
    curve = index_curve(TABLE_1.fresh[row : row + 1], TABLE_1.retention[row], cost=2, points=120)
    one = EphemeralSources.of(
        TABLE_1.arrival_rate[row], TABLE_1.mean_utility[row], TABLE_1.decay[row], cost=2
    )
    exact = np.array([index_at(one, np.array([state]))[0] for state in curve.states])
    error = np.abs(curve.indices - exact).max()
    assert error < 1e-3 * one.ceiling[0] / 2
    coarse = index_curve(TABLE_1.fresh[row : row + 1], TABLE_1.retention[row], points=12)
    exact = np.array([index_at(one, np.array([state]))[0] for state in coarse.states])
    assert np.abs(coarse.indices / 2 - exact).max() > 10 * error


def iterated_gain(utilities: Floats, retention: float, price: float, states: Floats) -> Floats:
    """By value iteration: what crawling is worth more than waiting, at each state."""
    value, crawl, wait = np.zeros((3, len(states)))
    following = retention * states[:, None] + utilities
    beyond = np.maximum(following - states[-1], 0)
    for _ in range(300):
        wait = price + (np.interp(following, states, value) + beyond).mean(axis=1)
        crawl = states + (wait[0] - price)
        value = (value + np.maximum(wait, crawl)) / 2
        value -= value[0]
    gain: Floats = crawl - wait
    return gain


@pytest.mark.parametrize("share", [0.4, 0.8, 1.2])
def test_value_iteration_at_the_price_of_a_state_has_its_threshold_there(share: float) -> None:
    retention, rng = 0.6, np.random.default_rng(4)
    utilities = atoms(UtilityLaw("lognormal", 1.0).draws(20_000, rng), 40, 1.0)
    state = share / (1 - retention)
    price = index_curve(utilities, retention, points=150).at(state)
    states = np.linspace(0, 12, 1501)
    gain = iterated_gain(utilities, retention, price, states)
    # One threshold (Lemma 5), and it is the state.
    assert (np.diff(np.sign(gain)) >= 0).all()
    threshold = states[np.argmax(gain >= 0)]
    assert threshold == pytest.approx(state, rel=0.01)


def test_the_curve_rises_is_0_at_0_and_scales_with_utility_and_cost() -> None:
    rng = np.random.default_rng(3)
    utilities = atoms(HEAVY.draws(5000, rng), 50, 1.0)
    curve = index_curve(utilities, 0.7, points=60)
    assert curve.at(0.0) == 0
    assert (np.diff(curve.indices) > 0).all()
    scaled = index_curve(5 * utilities, 0.7, cost=4, points=60)
    assert scaled.indices == pytest.approx(5 / 4 * curve.indices, rel=1e-9)
    top = float(scaled.states[-1])
    assert scaled.at(top + 8) == pytest.approx(scaled.indices[-1] + 2)


def test_it_beats_the_deterministic_index_where_heavy_tails_are_observed() -> None:
    rng = np.random.default_rng(1)
    coming = arriving(TABLE_1, HEAVY, 3000, rng)
    sample = arriving(TABLE_1, HEAVY, 20_000, np.random.default_rng(2))
    curves = [
        index_curve(atoms(sample[:, row], 100, TABLE_1.fresh[row]), alpha, points=80)
        for row, alpha in enumerate(TABLE_1.retention)
    ]
    ours = run(TABLE_1, WhittleByCurve(TABLE_1, curves), 1, 3000, arriving=coming)
    theirs = run(TABLE_1, WhittleByState(TABLE_1), 1, 3000, arriving=coming)
    assert ours.mean > theirs.mean
    # Without curves, and where nothing is observed, it is the deterministic index.
    none = WhittleByCurve(TABLE_1, [None] * 4)
    assert (run(TABLE_1, none, 1, 200, arriving=coming[:200]).crawled == theirs.crawled[:200]).all()


@pytest.mark.parametrize(
    ("utilities", "retention", "words"),
    [
        ([1.0, -1.0], 0.5, "utilities: row 1 is -1.0"),
        ([0.0, 0.0], 0.5, "utilities: are all 0"),
        ([], 0.5, "utilities: are all 0"),
        ([1.0], 1.0, "retention: is 1.0; accepted is a number from 0 to below 1"),
    ],
)
def test_bad_values_are_refused_in_a_line(
    utilities: list[float], retention: float, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        index_curve(np.array(utilities), retention)
