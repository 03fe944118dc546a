"""The report of ``freshet plan`` as values: for people, for JSON and for a file."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite, isnan
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from freshet.crawler.extensions.lab.plan_sources import EphemeralPages, PlanSources, RateLearning
from freshet.scheduler import planning
from freshet.scheduler.arrays import Floats
from freshet.scheduler.costs import plan_costs
from freshet.scheduler.ephemeral.joint_plan import DecayingSources, JointPlan, joint_plan
from freshet.scheduler.planning import CrawlShare, Expectation, rate_plan
from freshet.scheduler.policies import whittle
from freshet.scheduler.policy import CrawlPlan
from freshet.scheduler.queue.page_rules import DiscoveryTerms
from freshet.scheduler.sources import Rows, SourceTable

# -- plan ephemeral ----------------------------------------------------------
_DAY_S: Final = 86_400.0
#: Whose prices count where the policy of a plan has none.
_PRICED: Final = "lambda_crawl"


@dataclass(frozen=True, slots=True)
class PlannedEphemeral:
    """An ephemeral source and its part of the plan.

    ``arrival_rate`` are new items a day, ``shown_elsewhere`` is the share of them that counts for
    other sources; half-life and worth of an item are ``learnt_from`` so many openings (None: they
    are set). ``index`` is the value of a crawl now. Crawls come every ``interval_days``, the next
    at ``next_crawl_at`` (Unix seconds) with ``expected_reward``; ``reward_per_day`` is the average,
    where a new item is worth 1. These four are None if no crawl is worth the price: the source is
    then planned as any other page.
    """

    url: str
    host: str
    importance: float
    declared: bool
    arrival_rate: float
    shown_elsewhere: float
    half_life_hours: float
    learnt_from: float | None
    item_worth: float
    index: float
    interval_days: float | None
    next_crawl_at: float | None
    expected_reward: float | None
    reward_per_day: float | None


#: The plan, the price of a crawl, if it has one, and the ephemeral sources by descending value.
Division: TypeAlias = tuple[CrawlPlan, float | None, tuple[PlannedEphemeral, ...]]


def plan_with_ephemeral(
    policy: str,
    table: SourceTable,
    budget: float,
    sources: PlanSources,
    *,
    pages: EphemeralPages,
    exchange: DiscoveryTerms,
    cost: Floats,
    day: float,
) -> Division:
    """Divide a budget (crawls a day) among ordinary pages and ephemeral sources.

    They compete on the terms of ``exchange``. The rows of ``pages`` are those of ``table`` and
    ``sources``; ``cost`` (H,) is that of a visit at each host, ``day`` is now in Unix days.
    """
    income = table.importance[pages.row] * pages.worth * pages.rate * pages.own
    own = cost[table.host[pages.row]] if exchange.by_delay else np.ones(len(pages))
    decaying = DecayingSources(pages.row, income, pages.decay, own)
    found = joint_plan(
        table, budget, decaying,
        lambda others, left: rate_plan(policy, others, left),
        lambda others, left: rate_plan(_PRICED, others, left).price or 0.0,
    )  # fmt: skip
    return found.plan, found.price, _planned_ephemeral(found, decaying, sources, pages, day)


def _planned_ephemeral(
    found: JointPlan,
    decaying: DecayingSources,
    sources: PlanSources,
    pages: EphemeralPages,
    day: float,
) -> tuple[PlannedEphemeral, ...]:
    row = pages.row
    waited = np.maximum(day - pages.last_visit, 0.0)
    index = np.asarray(
        whittle.index_after(waited, decaying.income, 1.0, decaying.decay, cost=decaying.cost)
    )
    rate = np.where(np.isin(row, found.decaying), found.plan.crawl_rate[row], 0.0)
    with np.errstate(divide="ignore"):
        interval = 1 / rate
    reward = pages.rate * pages.own / pages.decay * -np.expm1(-pages.decay * interval)
    return tuple(
        PlannedEphemeral(
            url=sources.url[row[k]],
            host=sources.hosts[sources.host[row[k]]],
            importance=float(sources.importance[row[k]]),
            declared=bool(pages.declared[k]),
            arrival_rate=float(pages.rate[k]),
            shown_elsewhere=float(1 - pages.own[k]),
            half_life_hours=float(pages.half_life_hours[k]),
            learnt_from=None if isnan(pages.learnt_from[k]) else float(pages.learnt_from[k]),
            item_worth=float(pages.worth[k]),
            index=float(index[k]),
            **_next(float(interval[k]), float(pages.last_visit[k]), float(reward[k]), day),
        )
        for k in np.lexsort((row, -index)).tolist()
    )


def _next(interval: float, last: float, reward: float, day: float) -> dict[str, float | None]:
    """Return interval, next crawl and rewards; None if no crawl is worth its price."""
    is_worth = isfinite(interval)
    return {
        "interval_days": interval if is_worth else None,
        "next_crawl_at": max(last + interval, day) * _DAY_S if is_worth else None,
        "expected_reward": reward if is_worth else None,
        "reward_per_day": reward / interval if is_worth else None,
    }


#: The policy whose costs are the measure of all others: the optimum of the harmonic cost.
_MEASURE = "lambda_crawl"
_SPLIT = ("incomplete_observations", "complete_observations", "by_host")
_COUNTS = ("sources", "hosts", "never_crawled", "hardly_crawled", "nothing_to_gain")

#: What is said where no page of a store has been captured twice.
NO_HISTORY = "no history yet"


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """A source and its part of the plan.

    ``interval_days`` is None for a source that is never crawled; with ``on_signals``, crawls follow
    signalled changes, a share ``crawl_probability`` of them.
    """

    url: str
    host: str
    importance: float
    change_rate: float
    complete_observations: bool
    crawl_rate: float
    crawl_probability: float
    interval_days: float | None
    on_signals: bool


@dataclass(frozen=True, slots=True)
class PlannedHost:
    """A host and its part of the plan; ``capacity`` is None without a limit."""

    host: str
    sources: int
    crawl_rate: float
    capacity: float | None
    capped: bool


@dataclass(frozen=True, slots=True)
class _PolicyCost:
    """The expected cost of a policy, and its ratio to LambdaCrawl's.

    None stands for an infinite cost or an undefined ratio. ``fresh`` is the share of the importance
    that is up to date at a random moment.
    """

    harmonic_cost: float | None
    harmonic_ratio: float | None
    binary_cost: float | None
    binary_ratio: float | None
    fresh: float | None
    crawl_rate: float


@dataclass(frozen=True, slots=True)
class _Intervals:
    """Deciles 1, 5 and 9 of the crawled sources' days between crawls."""

    tenth: float
    median: float
    ninetieth: float


@dataclass(frozen=True, slots=True)
class PlanReport:
    """A plan; rates are per day, costs are sums over the sources.

    Attributes:
        read_from: the file of the sources, or the store.
        sources, hosts: their numbers.
        policy: the policy that divided the budget.
        crawling: ``poisson`` or ``periodic``: the way in which its rates are carried out.
        price: the saving of one more crawl per day; None for a policy without prices.
        left_over: the part of the budget that no source can use.
        incomplete_observations, complete_observations, by_host: the split of the budget;
            ``by_host`` has the hosts with the most crawls.
        capped_hosts: those that would get more if politeness allowed it.
        policies: expected costs by policy.
        top, starved: the most crawled and the most neglected sources.
        never_crawled, hardly_crawled, nothing_to_gain: see :func:`planning.starvation`.
        learning: None if the change rates were given.
        ephemeral: sources whose new items count, by descending value.
    """

    read_from: str
    sources: int
    hosts: int
    policy: str
    crawling: str
    budget: float
    left_over: float
    price: float | None
    interval_days: _Intervals | None
    incomplete_observations: CrawlShare
    complete_observations: CrawlShare
    by_host: tuple[PlannedHost, ...]
    capped_hosts: tuple[str, ...]
    policies: Mapping[str, _PolicyCost]
    top: tuple[PlannedSource, ...]
    starved: tuple[PlannedSource, ...]
    never_crawled: int
    hardly_crawled: int
    nothing_to_gain: int
    learning: RateLearning | None
    ephemeral: tuple[PlannedEphemeral, ...]

    def as_json(self) -> dict[str, object]:
        """Return the report as JSON values."""
        values, learning = asdict(self), self.learning
        return {
            "counts": {name: values.pop(name) for name in _COUNTS},
            "split": {name: values.pop(name) for name in _SPLIT},
            "note": NO_HISTORY if learning is not None and not learning.intervals else None,
            **values,
        }


def make_report(
    read_from: str,
    sources: PlanSources,
    table: SourceTable,
    division: Division,
    *,
    policy: str,
    limit: int,
    learning: RateLearning | None = None,
) -> PlanReport:
    """Make the report of a plan; its lists have at most ``limit`` entries."""
    plan, price, ephemeral = division
    incomplete, complete = planning.class_shares(table, plan)
    of_host, host_rate, capped = planning.host_shares(table, plan)
    never, hardly, idle, starved = planning.starvation(table, plan, limit)
    return PlanReport(
        read_from=read_from,
        sources=len(sources),
        hosts=int((of_host > 0).sum()),
        policy=policy,
        crawling=plan.crawling,
        budget=plan.bandwidth,
        left_over=plan.left_over,
        price=price,
        interval_days=_intervals(planning.intervals(plan)),
        incomplete_observations=incomplete,
        complete_observations=complete,
        by_host=tuple(
            PlannedHost(
                sources.hosts[row],
                int(of_host[row]),
                float(host_rate[row]),
                _finite(table.host_capacity[row]),
                bool(capped[row]),
            )
            for row in planning.largest(host_rate, limit)
            if of_host[row]
        ),
        capped_hosts=tuple(sources.hosts[row] for row in np.flatnonzero(capped).tolist()),
        policies=_policies(table, plan, policy),
        top=_planned(sources, plan, planning.most_crawled(plan, limit)),
        starved=_planned(sources, plan, starved),
        never_crawled=never,
        hardly_crawled=hardly,
        nothing_to_gain=idle,
        learning=learning,
        ephemeral=ephemeral[:limit],
    )


def plan_columns(
    sources: PlanSources, table: SourceTable, plan: CrawlPlan
) -> dict[str, NDArray[Any]]:
    """Return a plan source by source, as the columns of a file.

    ``interval_days`` and ``harmonic_cost`` are inf for a source that is never crawled.
    """
    costs = plan_costs(table, plan)
    return {
        "url": np.array(sources.url, object),
        "host": np.array(sources.hosts, object)[sources.host],
        "importance": sources.importance,
        "change_rate": sources.change_rate,
        "complete_observations": sources.complete_observations,
        "crawl_rate": plan.crawl_rate,
        "crawl_probability": plan.crawl_probability,
        "interval_days": planning.intervals(plan),
        "harmonic_cost": costs.harmonic,
        "binary_cost": costs.binary,
    }


def _policies(table: SourceTable, plan: CrawlPlan, policy: str) -> dict[str, _PolicyCost]:
    """Return the cost of each policy, the plan's first."""
    own = planning.expectation(policy, plan, plan_costs(table, plan))
    others = [name for name in planning.COMPARED if name != policy]
    found = [own, *planning.compare(table, plan.bandwidth, others)]
    measure = next(each for each in found if each.policy == _MEASURE)
    whole = float(table.importance.sum())
    return {each.policy: _policy_cost(each, measure, whole) for each in found}


def _policy_cost(each: Expectation, measure: Expectation, importance: float) -> _PolicyCost:
    stale = _ratio(each.binary_cost, importance)
    return _PolicyCost(
        harmonic_cost=_finite(each.harmonic_cost),
        harmonic_ratio=_ratio(each.harmonic_cost, measure.harmonic_cost),
        binary_cost=_finite(each.binary_cost),
        binary_ratio=_ratio(each.binary_cost, measure.binary_cost),
        fresh=None if stale is None else 1 - stale,
        crawl_rate=each.crawl_rate,
    )


def _planned(sources: PlanSources, plan: CrawlPlan, rows: Rows) -> tuple[PlannedSource, ...]:
    days = planning.intervals(plan)
    return tuple(
        PlannedSource(
            url=sources.url[row],
            host=sources.hosts[sources.host[row]],
            importance=float(sources.importance[row]),
            change_rate=float(sources.change_rate[row]),
            complete_observations=bool(sources.complete_observations[row]),
            crawl_rate=float(plan.crawl_rate[row]),
            crawl_probability=float(plan.crawl_probability[row]),
            interval_days=_finite(days[row]),
            on_signals=bool(plan.on_signals[row]),
        )
        for row in rows
    )


def _intervals(days: NDArray[np.float64]) -> _Intervals | None:
    crawled = days[np.isfinite(days)]
    if not len(crawled):
        return None
    return _Intervals(*(float(each) for each in np.quantile(crawled, (0.1, 0.5, 0.9))))


def _ratio(value: float, of: float) -> float | None:
    return _finite(value / of) if of else None


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None
