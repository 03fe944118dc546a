import math

import numpy as np
import pytest

from freshet.scheduler.ephemeral.policies import PolicyInput, whittle_by_age
from freshet.scheduler.ephemeral.sources import EphemeralSources
from scripts.reproductions.whittle_items import Items, Told, Watched
from scripts.reproductions.whittle_periods import run
from scripts.reproductions.whittle_plug_in import PlugIn
from tests.scheduler.ephemeral.tables import TABLE_1, random_sources


def share(
    table: EphemeralSources, learner: PlugIn, budget: float, seed: int, *, clicks: bool
) -> float:
    """What it earns in 400 periods, learning included, of what the index with the truth does."""
    streams = np.random.default_rng(seed).spawn(2)
    items = Items.drawn(table, 400, streams[0])
    arriving = items.arriving(table)
    told = Told(learner, table, items, streams[1] if clicks else None)
    best = run(table, whittle_by_age(table), budget, 400, arriving=arriving).mean
    return run(table, told, budget, 400, arriving=arriving).mean / best


@pytest.mark.parametrize("budget", [1, 2])
@pytest.mark.parametrize("seed", [1, 2])
def test_clicks_teach_the_example_within_a_few_hundred_periods(budget: int, seed: int) -> None:
    learner = PlugIn(TABLE_1.cost)
    assert share(TABLE_1, learner, budget, seed, clicks=True) > 0.98
    rates, worths, decays = learner.estimates
    # Sources 3 and 4 are hardly crawled for one crawl a period.
    often = slice(0, 2 * budget)
    assert rates[often] == pytest.approx(TABLE_1.arrival_rate[often], rel=0.05)
    assert worths[often] == pytest.approx(TABLE_1.mean_utility[often], rel=0.15)
    assert decays[often] == pytest.approx(TABLE_1.decay[often], rel=0.15)


def test_without_clicks_what_is_configured_does() -> None:
    half_lives = math.log(2) / TABLE_1.decay
    right = PlugIn(TABLE_1.cost, half_life=half_lives, worth=TABLE_1.mean_utility)
    wrong = PlugIn(
        TABLE_1.cost, half_life=half_lives * [2, 0.5, 0.5, 2], worth=TABLE_1.mean_utility
    )
    assert share(TABLE_1, right, 1, 3, clicks=False) > 0.99
    assert 0.9 < share(TABLE_1, wrong, 1, 3, clicks=False) < 0.999
    assert right.estimates[2] == pytest.approx(TABLE_1.decay)
    assert right.estimates[1].tolist() == TABLE_1.mean_utility.tolist()


def test_rates_that_differ_by_orders_of_magnitude_are_learnt() -> None:
    rates = [0.05, 900.0, 3.0, 40.0]
    table = EphemeralSources.of(rates, [1.0, 0.02, 1.0, 0.3], [0.3, 0.6, 0.2, 1.0])
    assert share(table, PlugIn(table.cost), 1, 5, clicks=True) > 0.97


def test_a_source_that_seems_to_fade_too_soon_is_tried_again() -> None:
    table = EphemeralSources.of([5, 5], 1, 0.5)
    items = Items.drawn(table, 200, np.random.default_rng(1))
    learner = PlugIn(table.cost)
    # All clicks of the second source's few items came at once.
    learner.found(1, np.full(5, 0.5), 1.0)
    first = Watched(np.zeros(5), np.full(5, 1.0), np.arange(5), np.full(5, 0.01))
    learner.watched(1, first)
    assert learner.estimates[2][1] > 1.2
    outcome = run(table, Told(learner, table, items, np.random.default_rng(2)), 1, 200)
    assert outcome.shares[1] == pytest.approx(0.5, abs=0.1)
    assert learner.estimates[2][1] == pytest.approx(0.5, rel=0.4)


def test_the_longer_a_source_is_left_alone_the_more_it_may_be_worth() -> None:
    learner = PlugIn(np.ones(1))
    learner.found(0, np.full(5, 0.5), 1.0)
    learner.watched(0, Watched(np.zeros(5), np.ones(5), np.arange(5), np.full(5, 0.5)))
    rate, worth, decay = (float(column[0]) for column in learner.estimates)
    indices = [
        float(learner(PolicyInput(1, ages, np.ones(1), ages, ages))[0])
        for ages in (np.full(1, k) for k in (1e2, 1e4, 1e6, 1e8))
    ]
    # The index of estimates alone ends at u*.
    assert indices[0] > rate * worth / decay
    assert min(np.diff(indices)) > 0.1 * indices[0]


def test_those_nobody_has_crawled_come_first_and_the_rest_by_the_index() -> None:
    learner = PlugIn(np.ones(3))
    ages = np.array([1.0, 2.0, 2.0])
    found = learner(PolicyInput(1, ages, np.array([1.0, 0.0, 0.0]), ages, ages))
    assert np.isinf(found).tolist() == [False, True, True]


def test_a_run_is_reproduced_from_its_seeds() -> None:
    table = random_sources(5, np.random.default_rng(7))
    items = Items.drawn(table, 80, np.random.default_rng(8))
    first, second = (
        run(table, Told(PlugIn(table.cost), table, items, np.random.default_rng(9)), 2, 80)
        for _ in range(2)
    )
    assert (first.crawled == second.crawled).all()


def test_no_items_no_fading_and_a_budget_for_all_are_borne() -> None:
    table = EphemeralSources.of([0.0, 5.0, 5.0, 5.0], [1.0, 1.0, 0.0, 1.0], [0.5, 0.0, 0.5, 1e-16])
    items = Items.drawn(table, 60, np.random.default_rng(1))
    arriving = items.arriving(table)
    shares = []
    for budget in (1, 2, 9):
        told = Told(PlugIn(table.cost), table, items, np.random.default_rng(2))
        outcome = run(table, told, budget, 60, arriving=arriving)
        assert np.isfinite(outcome.reward).all()
        shares.append(outcome.shares)
    assert min(shares[0]) > 0
    assert shares[2].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"half_life": [1.0, 0.0]}, "half_life: row 1 is 0"),
        ({"half_life": np.inf}, "half_life: row 0 is inf"),
        ({"half_life": [1.0]}, "half_life: has 1 rows; accepted are 2"),
        ({"worth": -1.0}, "worth: row 0 is -1"),
        ({"optimism": np.nan}, "optimism: is nan"),
        ({"forgetting": 0.0}, "forgetting: is 0"),
        ({"period": -1.0}, "period: is -1"),
    ],
)
def test_bad_options_are_refused(options: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        PlugIn(np.ones(2), **options)


def test_costs_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="cost: row 1 is 0"):
        PlugIn(np.array([1.0, 0.0]))
