"""Policies side by side: the same start, the same bound, and what can be told of each."""

import numpy as np
import pytest

from freshet.scheduler.evaluate.changes import ChangeTimes
from freshet.scheduler.evaluate.counterfactual import ReplayTerms
from freshet.scheduler.evaluate.verdicts import compare
from tests.scheduler.evaluate.archives import complete, sampled

DAYS = 120.0


@pytest.fixture(scope="module")
def changes() -> ChangeTimes:
    """Of thirty pages a third changes every other day, and the others hardly ever."""
    rng = np.random.default_rng(5)
    number = np.where(np.arange(30) < 10, 60, 1)
    at = np.concatenate([np.sort(rng.uniform(0.1, DAYS, each)) for each in number])
    return ChangeTimes(np.append(0, np.cumsum(number)), at)


def test_a_complete_history_closes_and_a_sampled_one_does_not(changes: ChangeTimes) -> None:
    terms = [ReplayTerms(3.0, 30.0, 118.0), ReplayTerms(12.0, 30.0, 118.0)]
    names = ("greedy_index", "uniform")
    whole = compare(complete(changes, DAYS), names, terms)
    assert [(verdict.policy, verdict.budget) for verdict in whole.verdicts] == [
        ("greedy_index", 3.0), ("uniform", 3.0), ("greedy_index", 12.0), ("uniform", 12.0)
    ]  # fmt: skip
    for verdict in whole.verdicts:
        cost = verdict.harmonic
        assert cost.optimistic == pytest.approx(cost.early) == pytest.approx(cost.pessimistic)
        assert verdict.harmonic.clairvoyant < cost.optimistic
        assert verdict.binary.clairvoyant < verdict.binary.optimistic
        assert not len(verdict.flagged)
    greedy, uniform, more, _ = whole.verdicts
    # There are more changes than three a day can see.
    assert greedy.harmonic.clairvoyant > 0 < greedy.binary.clairvoyant
    assert greedy.harmonic.early < uniform.harmonic.early
    assert more.harmonic.early < greedy.harmonic.early
    assert np.nanmean(greedy.harmonic.daily[:, 0]) == pytest.approx(greedy.harmonic.early)

    weekly = compare(sampled(changes, np.arange(0.0, DAYS, 7.0)), names, terms)
    for verdict, true in zip(weekly.verdicts, whole.verdicts, strict=True):
        cost = verdict.harmonic
        assert cost.optimistic < cost.early < cost.pessimistic
        assert verdict.harmonic.clairvoyant <= cost.optimistic
        assert verdict.fetches == true.fetches
    # Twelve a day is a visit every 2.5 days, where the archive looked once a week.
    assert set(range(30)) >= set(weekly.verdicts[-1].flagged.tolist()) != set()


def test_what_is_spent_and_foretold_adds_up(changes: ChangeTimes) -> None:
    found = compare(complete(changes, DAYS), ("site_clock",), [ReplayTerms(6.0, 30.0, 118.0)])
    (verdict,) = found.verdicts
    assert (
        verdict.by_page.sum()
        == verdict.by_host.sum()
        == sum(verdict.by_class.values())
        == verdict.fetches
    )
    assert sum(found.by_class.values()) == 30
    told = verdict.calibration
    assert told.asks.sum() == verdict.fetches
    assert told.changed.sum() == pytest.approx(told.expected.sum(), rel=0.3)
    assert verdict.believed[:10].min() > verdict.believed[10:].max()
