"""Policies for ephemeral sources by name, each with the pace to which it tends.

A *pace* is how often a policy crawls each source in the long run, in crawls per period, (n,). A
simulation that lets it begin so begins near the state in which it would end.

A policy that learns has its place in :data:`CONTENDERS`, too: it would be made of the periods and
the costs alone, and begin at the pace of all in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from freshet.scheduler import arguments
from freshet.scheduler.arguments import Floats
from freshet.scheduler.ephemeral.affordable import affordable
from freshet.scheduler.ephemeral.baselines import BestSources, GreedyExpected, RoundRobin
from freshet.scheduler.ephemeral.ephemeral_sources import EphemeralSources
from freshet.scheduler.ephemeral.index_policies import WhittleByAge
from freshet.scheduler.ephemeral.periods import PeriodPolicy
from freshet.scheduler.ephemeral.relaxed import crawl_periods, relaxed
from freshet.scheduler.ephemeral.static_frequencies import StaticFrequencies, static_frequencies


@dataclass(frozen=True, slots=True)
class Contender:
    """A policy, and its pace."""

    policy: PeriodPolicy
    pace: Floats


def _whittle(sources: EphemeralSources, budget: float) -> Contender:
    periods = crawl_periods(sources, relaxed(sources, budget).price)
    return Contender(WhittleByAge(sources), 1 / periods)


def _greedy(sources: EphemeralSources, budget: float) -> Contender:
    """A source is crawled when what waits, (u*/C)(1 − e^{−μTk}), reaches a level for all."""
    most = sources.ceiling / sources.cost

    def at(level: float) -> Floats:
        short = np.maximum(1 - level / np.maximum(most, level), 0.0)
        with np.errstate(divide="ignore"):
            periods = np.ceil(-np.log(short) / (sources.decay * sources.period))
        paces: Floats = 1 / np.maximum(periods, 1.0)
        return paces

    low, high = 0.0, float(most.max())
    while high > 0 and low < (middle := (low + high) / 2) < high:
        if float(sources.cost @ at(middle)) > budget:
            low = middle
        else:
            high = middle
    return Contender(GreedyExpected(sources), at(high) if high > 0 else np.zeros(len(sources)))


def _round_robin(sources: EphemeralSources, budget: float) -> Contender:
    share = min(1.0, budget / float(sources.cost.sum()))
    return Contender(RoundRobin(), np.full(len(sources), share))


def _static(sources: EphemeralSources, budget: float) -> Contender:
    frequencies = static_frequencies(sources, budget)
    return Contender(StaticFrequencies(frequencies), frequencies)


def _best(sources: EphemeralSources, budget: float) -> Contender:
    pace = np.zeros(len(sources))
    pace[affordable(sources.fresh / sources.cost, sources.cost, budget)] = 1.0
    return Contender(BestSources(sources), pace)


#: By name: of sources and the budget of a period.
CONTENDERS: Final[Mapping[str, Callable[[EphemeralSources, float], Contender]]] = {
    "whittle": _whittle,
    "static": _static,
    "greedy": _greedy,
    "round_robin": _round_robin,
    "best": _best,
}


def load(name: str) -> Callable[[EphemeralSources, float], Contender]:
    """What makes a contender.

    Raises:
        ValueError: if there is none of this name.
    """
    return CONTENDERS[arguments.one_of("policy", name, tuple(CONTENDERS))]
