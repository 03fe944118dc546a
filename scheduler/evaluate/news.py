"""Utility that policies gain from items with decaying value, in one world of random items. Seeded.

In each period a Poisson number of items appears at each source, each with the utility ξ
(freshet.scheduler.ephemeral.sources). Then each policy crawls its preferred sources, and collects
the remaining utility of the waiting items. A policy does not see waiting items before the crawl: it
uses expectations.

The unspent part of a period's budget is carried over, so that with a budget of M a period ⌊Mt⌋ is
spent in t periods if a crawl costs 1. No source is crawled twice in a period.

All policies begin near their steady state: with their paces (freshet.scheduler.evaluate.news), each
source at an independent point of its round, with the utility expected there. The first four days
are not measured: in them, the waiting items become fully random. The expected utility of a policy
in a week is constant from then on (tested). With few sources it fluctuates with their rounds.

Ages: given their number, the items that appeared in the k periods between two crawls are spread
evenly over them, because the crawls do not depend on them. So the ages at collection are a mixture
of uniform distributions; its median is exact, and no item need be remembered.

O(n) per period and policy; the memory does not grow with the days, except for a number for each
length of wait.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log
from typing import Final, TypeAlias

import numpy as np
from numpy.random import Generator

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.ephemeral import policies
from freshet.scheduler.ephemeral.policies import PeriodPolicy
from freshet.scheduler.ephemeral.sources import EphemeralSources, UtilityLaw
from freshet.scheduler.evaluate.serving import Progress, silent
from freshet.scheduler.sources import Rows

# -- policies for ephemeral sources, with their paces --
# A *pace* is how often a policy crawls each source in the long run, in crawls per period, (n,). A
# simulation that begins with it begins near its steady state.
#
# A policy that learns belongs in :data:`CONTENDERS` as well: it would be made of the periods and
# the costs alone, and begin with the pace of a round-robin schedule.

#: A policy, and its pace.
_Contender: TypeAlias = tuple[PeriodPolicy, Floats]


def _whittle(sources: EphemeralSources, budget: float) -> _Contender:
    periods = policies.crawl_periods(sources, policies.relaxed(sources, budget).price)
    return policies.whittle_by_age(sources), 1 / periods


def _greedy(sources: EphemeralSources, budget: float) -> _Contender:
    """Visit a source when its waiting items, (u*/C)(1 − e^{−μTk}), reach a common level."""
    most = sources.ceiling / sources.cost

    def at(level: float) -> Floats:
        short = np.maximum(1 - level / np.maximum(most, level), 0.0)
        with np.errstate(divide="ignore"):
            periods = np.ceil(-np.log(short) / (sources.decay * sources.period))
        paces: Floats = 1 / np.maximum(periods, 1.0)
        return paces

    top = float(most.max())
    _, high = policies.least_price(lambda level: float(sources.cost @ at(level)), budget, top)
    return policies.greedy_expected(sources), at(high) if high > 0 else np.zeros(len(sources))


def _round_robin(sources: EphemeralSources, budget: float) -> _Contender:
    share = min(1.0, budget / float(sources.cost.sum()))
    return policies.round_robin, np.full(len(sources), share)


def _static(sources: EphemeralSources, budget: float) -> _Contender:
    frequencies = policies.static_frequencies(sources, budget)
    return policies.at_frequencies(frequencies), frequencies


def _best(sources: EphemeralSources, budget: float) -> _Contender:
    pace = np.zeros(len(sources))
    pace[policies.affordable(sources.fresh / sources.cost, sources.cost, budget)] = 1.0
    return policies.best_sources(sources), pace


#: Makers of contenders by name, from the sources and the budget of a period.
CONTENDERS: Final[Mapping[str, Callable[[EphemeralSources, float], _Contender]]] = {
    "whittle": _whittle,
    "static": _static,
    "greedy": _greedy,
    "round_robin": _round_robin,
    "best": _best,
}


def load(name: str) -> Callable[[EphemeralSources, float], _Contender]:
    """Return the maker of a contender.

    Raises:
        ValueError: if the name is unknown.
    """
    return CONTENDERS[arrays.one_of("policy", name, tuple(CONTENDERS))]


_WARM_UP_DAYS: Final = 4.0
#: Number of half-lives after which an item does not count among the items that wait at the start.
_GONE: Final = 10.0


@dataclass(frozen=True, slots=True)
class _Reaped:
    """Utility of a policy in the measured days.

    Attributes:
        utility: collected a day.
        expected: a day; the mean over all worlds for these crawls.
        of_bound: ``expected`` as a share of the relaxed bound.
        items: number of collected items.
        median_age: their median age at collection, in days; None without items.
        crawls: number of crawls.
        budget: total budget.
        spent: the spent part of the budget.
        uncrawled: number of sources that were not crawled.
    """

    utility: float
    expected: float
    of_bound: float
    items: int
    median_age: float | None
    crawls: int
    budget: float
    spent: float
    uncrawled: int


@dataclass(frozen=True, slots=True)
class NewsUtility:
    """Utility of each policy; ``bound`` is the relaxed bound, in utility a day.

    ``coming`` is the mean utility of new items a day: more than any crawler could collect.
    """

    coming: float
    bound: float
    policies: dict[str, _Reaped]


def budget_a_period(sources: EphemeralSources, bandwidth: float) -> float:
    """Return M for these crawls per source and day, of the mean cost; the unit of time is the day.

    Raises:
        ValueError: if the bandwidth is not above 0, or is more than one crawl a source and period.
    """
    most = 1 / sources.period
    if not 0 < bandwidth <= most * (1 + 1e-12):
        raise ValueError(
            f"bandwidth: is {bandwidth:g}; accepted are crawls per source and day above 0 "
            f"and up to {most:g}, one a period"
        )
    return min(bandwidth * sources.period, 1.0) * float(sources.cost.sum())


def reap(
    sources: EphemeralSources,
    contenders: Mapping[str, _Contender],
    budget: float,
    periods: int,
    rng: Generator,
    *,
    law: UtilityLaw,
    progress: Progress = silent,
) -> NewsUtility:
    """Return the utilities of policies in one world, in the periods after the warm-up.

    Args:
        sources: rates are per day.
        contenders: by name; made for these sources and this budget.
        budget: M, of a period, above 0.
        periods: number of measured periods, at least 1.
        rng: for the world and the initial state of sources.
        law: distribution of an item's utility, as a share of its source's mean.
        progress: called with the finished share of the warm-up and the measured periods.

    Raises:
        ValueError: naming the argument. A source without decay is refused: if it is never crawled,
            it has no steady state to begin in.
    """
    arrays.budget("budget", budget)
    arrays.positive("decay", sources.decay)
    if periods < 1:
        raise ValueError(f"periods: are {periods}; accepted is at least 1")
    phase = (rng.permutation(len(sources)) + 0.5) / len(sources)
    crawlers = [_Crawler(sources, each, budget, phase, rng) for each in contenders.values()]
    warm_up = round(_WARM_UP_DAYS / sources.period)
    for t in range(warm_up + periods):
        if t == warm_up:
            for each in crawlers:
                each.begin_to_measure()
        arrived, count = _arrivals(sources, law, rng)
        for each in crawlers:
            each.pass_period(arrived, count)
        progress((t + 1) / (warm_up + periods))
    coming = float(sources.arrival_rate @ sources.mean_utility)
    bound = policies.relaxed(sources, budget).bound
    reaped = {name: each.reaped(bound) for name, each in zip(contenders, crawlers, strict=True)}
    return NewsUtility(coming, bound / sources.period, reaped)


def _arrivals(sources: EphemeralSources, law: UtilityLaw, rng: Generator) -> tuple[Floats, Ints]:
    """Draw a period's items: each source's total utility at its end, and number of items."""
    count = rng.poisson(sources.arrival_rate * sources.period)
    owner = np.repeat(np.arange(len(sources)), count)
    age = rng.random(len(owner)) * sources.period
    value = sources.mean_utility[owner] * np.exp(-sources.decay[owner] * age)
    if law.together:
        value *= law.draws(len(sources), rng)[owner]
    else:
        value *= law.draws(len(owner), rng)
    return np.bincount(owner, value, minlength=len(sources)).astype(np.float64), count


class _Crawler:
    """One running policy: the state of the sources under it, and the collected utility."""

    def __init__(
        self,
        sources: EphemeralSources,
        contender: _Contender,
        budget: float,
        phase: Floats,
        rng: Generator,
    ) -> None:
        self._sources = sources
        self._policy, pace = contender
        self._budget = budget
        self._retention, self._fresh = sources.retention, sources.fresh
        # At the end of the first period a source with a pace of 1 has waited for one period.
        waited = np.full(len(sources), np.inf)
        np.ceil(np.divide(phase, pace, out=waited, where=pace > 0), out=waited)
        self._waited = waited - 1
        self._crawls = -pace * np.where(pace > 0, self._waited, 0.0)
        self._state = sources.utility_after(self._waited)
        self._expected = self._state.copy()
        gone = np.ceil(_GONE * np.log(2) / (sources.decay * sources.period))
        self._span = np.minimum(self._waited, gone).astype(np.int64)
        self._items = rng.poisson(sources.arrival_rate * sources.period * self._span)
        self._elapsed = 0
        self.begin_to_measure()

    def begin_to_measure(self) -> None:
        """Reset the collected utility, not the state of the sources."""
        self._measured = 0
        self._earned = self._utility = self._spent = 0.0
        self._visited = np.zeros(len(self._sources), np.int64)
        self._items_by_span = np.zeros(1, np.int64)

    def pass_period(self, arrived: Floats, count: Ints) -> None:
        """Add new items, and crawl."""
        self._state = self._retention * self._state + arrived
        self._expected = self._retention * self._expected + self._fresh
        self._items = self._items + count
        self._waited += 1
        self._span += 1
        seen = policies.PolicyInput(
            self._elapsed,
            self._waited.copy(),
            self._crawls.copy(),
            self._expected.copy(),
            self._expected.copy(),
        )
        self._elapsed += 1
        self._measured += 1
        purse = self._budget * self._measured - self._spent
        self._crawl(policies.affordable(self._policy(seen), self._sources.cost, purse))

    def _crawl(self, rows: Rows) -> None:
        # A policy that learns would receive the results of the rows here.
        self._utility += float(self._state[rows].sum())
        self._earned += float(self._expected[rows].sum())
        self._spent += float(self._sources.cost[rows].sum())
        self._visited[rows] += 1
        self._crawls[rows] += 1
        found = np.bincount(self._span[rows], self._items[rows]).astype(np.int64)
        longer = max(len(found), len(self._items_by_span)) - len(self._items_by_span)
        self._items_by_span = np.pad(self._items_by_span, (0, longer))
        self._items_by_span[: len(found)] += found
        for column in (self._state, self._expected, self._waited):
            column[rows] = 0.0
        for counts in (self._span, self._items):
            counts[rows] = 0

    def reaped(self, bound: float) -> _Reaped:
        """Return the utility since the measurement began; ``bound`` is the bound of a period."""
        days = self._measured * self._sources.period
        middle = median_age(self._items_by_span)
        return _Reaped(
            utility=self._utility / days,
            expected=self._earned / days,
            of_bound=self._earned / self._measured / bound if bound else 0.0,
            items=int(self._items_by_span.sum()),
            median_age=None if middle is None else middle * self._sources.period,
            crawls=int(self._visited.sum()),
            budget=self._budget * self._measured,
            spent=self._spent,
            uncrawled=int((self._visited == 0).sum()),
        )


def median_age(items: Ints) -> float | None:
    """Return the median of ages spread evenly from 0 to k, ``items[k]`` items; None without items.

    With six items within one period and six within three, as many items are younger than a as
    older, where a/1 + a/3 = 1.

    >>> median_age(np.array([0, 6, 0, 6]))
    0.75
    """
    if not items[1:].any():
        return None
    edges = np.arange(len(items))
    share = items / np.maximum(edges, 1)
    younger = np.cumsum(items) + edges * (share.sum() - np.cumsum(share))
    return float(np.interp(items.sum() / 2, younger, edges))


# -- a population of news sources. Seeded. --

#: One decision an hour; rates are per day.
PERIODS_A_DAY: Final = 24
#: Distribution of the utility of one source's items, as a share of its mean.
ITEMS: Final = UtilityLaw("lognormal", 1.0)

#: ln Λ before clipping: mean and standard deviation; the most items a day.
_LOG_RATE, _RATE_SIGMA, _BUSIEST = -2.4326, 3.0204, 1_000.0
#: Half-lives in days: the median, σ of the logarithm, least and most.
_HALF_LIFE, _HALF_LIFE_SIGMA = 1.0, 0.9
_SHORTEST, _LONGEST = 1 / 24, 14.0
_UTILITY_SIGMA = 1.0


def news_sources(n: int, rng: Generator) -> EphemeralSources:
    """Return n sources with rates per day and a period of an hour; a crawl costs 1.

        Λ   items a day    ln Λ ~ N(−2.433, 3.020²), at most 1,000
        h   half-life      ln h ~ N(ln 24 hours, 0.9²), from 1 hour to 14 days; μ = ln 2 / h
        ξ̄   mean utility   log-normal, mean 1, σ 1

    all three independent. The utility of an item varies about ξ̄ by :data:`ITEMS`, log-normal with
    σ 1 as well.

    Λ is fitted to two figures for 8,155 feeds that were observed for eight months (Travers et al.):
    they published 10,794,285 items, 5.4 a feed and day, and 17 % of the feeds published 97 % of the
    items. The half-life has the mean of 36 hours within which half of the readers of an item of a
    large news site visit it (Dezső et al.). The spread of half-lives and utilities, and their
    independence of each other and of Λ, are guesses.

    References: N. Travers et al., "RSS feeds behavior analysis, structure and vocabulary", Int. J.
    Web Information Systems 10(3), 2014, abstract; Z. Dezső et al., "Dynamics of information access
    on the web", Phys. Rev. E 73, 066132, 2006. The visits of readers follow a power law there; the
    model of Avrachenkov and Borkar has exponentials.
    """
    rate, life, utility = rng.standard_normal((3, n))
    half_life = np.clip(_HALF_LIFE * np.exp(_HALF_LIFE_SIGMA * life), _SHORTEST, _LONGEST)
    return EphemeralSources.of(
        np.minimum(np.exp(_LOG_RATE + _RATE_SIGMA * rate), _BUSIEST),
        # The mean of a log-normal variable is e^{σ²/2} times its median.
        np.exp(_UTILITY_SIGMA * utility - _UTILITY_SIGMA**2 / 2),
        log(2) / half_life,
        period=1 / PERIODS_A_DAY,
    )
