"""Policies over periods: who is crawled at each multiple of T, and what that earns.

Every period a policy names a priority for each source; the largest that the budget pays for are
crawled (:mod:`scheduler.ephemeral.policies`). A crawl earns the utility that has gathered, and
the source begins anew. Unless ``since_crawl`` says otherwise, all sources begin as if they had been
crawled one period before the first.

Deterministic: the utility of a period is its mean, u. Stochastic: it is what ``arriving`` says
(:func:`scripts.reproductions.whittle_items.arriving`); a policy sees the state of the sources that
are observed and the expected state of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.ephemeral.policies import PeriodPolicy, PolicyInput, affordable
from freshet.scheduler.ephemeral.sources import EphemeralSources


@dataclass(frozen=True, slots=True)
class Outcome:
    """What t periods brought after the warm-up.

    Attributes:
        reward: (t,), utility that was crawled.
        crawled: (t, n), who was crawled.
        states: (t, n), the utility before the crawls.
        spent: (t,), cost.
    """

    reward: Floats
    crawled: Bools
    states: Floats
    spent: Floats

    @property
    def mean(self) -> float:
        """Utility per period."""
        return float(self.reward.mean())

    @property
    def shares(self) -> Floats:
        """(n,), the share of the periods in which each source was crawled."""
        shares: Floats = self.crawled.mean(axis=0)
        return shares


def run(
    sources: EphemeralSources,
    policy: PeriodPolicy,
    budget: float,
    periods: int,
    *,
    warm_up: int = 0,
    arriving: Floats | None = None,
    observed: Bools | bool = True,
    since_crawl: Floats | None = None,
) -> Outcome:
    """The outcome of ``periods`` periods after ``warm_up`` others.

    ``arriving`` is (warm_up + periods, n), what new items are worth at the end of each period;
    None: their mean. ``observed``, (n,) or one for all, says whose state the policy sees.
    ``since_crawl``, (n,), at least 1: how long ago each source was crawled in the first period.

    Raises:
        ValueError: if the budget is not above 0, there is no period, or ``arriving`` has
            another shape.
    """
    arrays.budget("budget", budget)
    total = warm_up + periods
    if periods < 1 or warm_up < 0:
        raise ValueError(f"periods: are {periods} after {warm_up}; accepted is at least 1 after 0")
    coming = np.broadcast_to(sources.fresh, (total, len(sources))) if arriving is None else arriving
    if coming.shape != (total, len(sources)):
        raise ValueError(
            f"arriving: has shape {coming.shape}; accepted is {(total, len(sources))}, "
            "a row a period"
        )
    known = np.broadcast_to(np.asarray(observed), len(sources))
    outcome = Outcome(
        np.empty(total), np.zeros(coming.shape, np.bool_), np.empty(coming.shape), np.empty(total)
    )
    start = np.zeros(len(sources)) if since_crawl is None else since_crawl - 1
    _fill(outcome, sources, policy, budget, coming, known, start)
    return Outcome(
        outcome.reward[warm_up:],
        outcome.crawled[warm_up:],
        outcome.states[warm_up:],
        outcome.spent[warm_up:],
    )


def _fill(
    outcome: Outcome,
    sources: EphemeralSources,
    policy: PeriodPolicy,
    budget: float,
    coming: Floats,
    observed: Bools,
    start: Floats,
) -> None:
    retention, fresh = sources.retention, sources.fresh
    state, ages, crawls = sources.utility_after(start), start.copy(), np.zeros(len(sources))
    expected = state.copy()
    for t, arrived in enumerate(coming):
        state = retention * state + arrived
        expected = retention * expected + fresh
        ages += 1
        known = np.where(observed, state, expected)
        seen = PolicyInput(t, ages.copy(), crawls.copy(), known, expected.copy())
        rows = affordable(policy(seen), sources.cost, budget)
        outcome.states[t] = state
        outcome.reward[t] = state[rows].sum()
        outcome.crawled[t, rows] = True
        outcome.spent[t] = sources.cost[rows].sum()
        crawls[rows] += 1
        for column in (state, expected, ages):
            column[rows] = 0.0
