import numpy as np
import pytest

from freshet.scheduler.ephemeral.sources import EphemeralSources
from freshet.scheduler.evaluate.news import CONTENDERS, load
from scripts.reproductions.whittle_periods import run
from tests.scheduler.ephemeral.tables import TABLE_1, random_sources

MANY = random_sources(300, np.random.default_rng(5))


@pytest.mark.parametrize("name", CONTENDERS)
def test_a_policy_ends_at_its_pace(name: str) -> None:
    policy, pace = load(name)(MANY, 30.0)
    shares = run(MANY, policy, 30.0, 500, warm_up=300).shares
    assert pace.sum() == pytest.approx(30, abs=1)
    # One price for all leaves whoever is at it to chance; others keep to their pace.
    off = np.abs(shares - pace)
    assert (off > 0.01).mean() < 0.1
    assert off.sum() / 30 < 0.03


def test_the_example_of_four_sources_has_the_paces_that_can_be_derived() -> None:
    best, turn, greedy = (
        load(name)(TABLE_1, 2.0)[1].tolist() for name in ("best", "round_robin", "greedy")
    )
    assert best == [1, 1, 0, 0]
    assert turn == [0.5] * 4
    assert greedy == [1, 1, 0, 0]


def test_a_budget_for_all_crawls_all_and_sources_without_items_are_no_fault() -> None:
    for make in CONTENDERS.values():
        assert make(TABLE_1, 4.0)[1].tolist() == pytest.approx([1, 1, 1, 1])
        idle = EphemeralSources.of([0.0, 0.0], 1.0, 1.0)
        _, pace = make(idle, 1.0)
        assert ((pace >= 0) & (pace <= 1)).all()


def test_an_unknown_name_is_refused_in_a_line() -> None:
    with pytest.raises(ValueError, match="policy: is 'oracle'; accepted are whittle, static"):
        load("oracle")
