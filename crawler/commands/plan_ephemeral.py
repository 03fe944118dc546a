"""The part of a plan that goes to ephemeral sources, at the price of all else."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Final

import numpy as np

from freshet.crawler.commands.sources.appearing import EphemeralPages
from freshet.crawler.commands.sources.columns import Sources
from freshet.scheduler.agenda.ephemeral import Exchange
from freshet.scheduler.arrays import Floats
from freshet.scheduler.ephemeral.joint_plan import FadingSources, JointPlan, joint_plan
from freshet.scheduler.planning import rate_plan
from freshet.scheduler.policies import whittle
from freshet.scheduler.policy import CrawlPlan
from freshet.scheduler.sources import SourceTable

_DAY_S: Final = 86_400.0
#: Whose prices count where the policy of a plan has none.
_PRICED: Final = "lambda_crawl"


@dataclass(frozen=True, slots=True)
class PlannedEphemeral:
    """An ephemeral source and its part of the plan.

    ``arrival_rate`` are new items a day, ``shown_elsewhere`` the share of them that counts for
    other sources which show them, too; ``index`` is what a crawl is worth now. A crawl comes every
    ``interval_days``, the next one at ``next_crawl_at`` (Unix seconds), and is expected to reap
    ``expected_reward``, that is ``reward_per_day`` in the long run, where 1 is an item at the
    moment when it appears. Those four are None where no crawl is worth the price: then it is
    planned as any other page.
    """

    url: str
    host: str
    importance: float
    declared: bool
    arrival_rate: float
    shown_elsewhere: float
    half_life_hours: float
    index: float
    interval_days: float | None
    next_crawl_at: float | None
    expected_reward: float | None
    reward_per_day: float | None


@dataclass(frozen=True, slots=True)
class EphemeralPlan:
    """The whole plan, the price of a crawl, if it has one, and the sources, the worthiest first."""

    plan: CrawlPlan
    price: float | None
    sources: tuple[PlannedEphemeral, ...]


@dataclass(frozen=True, slots=True)
class Competing:
    """Ephemeral sources that compete with all else.

    Attributes:
        pages: the sources; their rows are those of the plan.
        exchange: on which terms.
        cost: (H,), what a look at each host costs.
        day: Unix days, now.
    """

    pages: EphemeralPages
    exchange: Exchange
    cost: Floats
    day: float


def plan_with_ephemeral(
    policy: str, table: SourceTable, budget: float, sources: Sources, it: Competing
) -> EphemeralPlan:
    """Divide a budget among pages that are kept fresh and ephemeral sources.

    Raises:
        PolicyError: as :func:`~freshet.scheduler.planning.rate_plan`.
    """
    pages = it.pages
    income = table.importance[pages.row] * it.exchange.item_worth * pages.rate * pages.own
    cost = it.cost[table.host[pages.row]] if it.exchange.by_delay else np.ones(len(pages))
    fading = FadingSources(pages.row, income, pages.decay, cost)
    found = joint_plan(
        table, budget, fading,
        lambda others, left: rate_plan(policy, others, left),
        lambda others, left: rate_plan(_PRICED, others, left).price or 0.0,
    )  # fmt: skip
    return EphemeralPlan(found.plan, found.price, _told(found, fading, sources, it))


def _told(
    found: JointPlan, fading: FadingSources, sources: Sources, it: Competing
) -> tuple[PlannedEphemeral, ...]:
    pages, row = it.pages, it.pages.row
    waited = np.maximum(it.day - pages.last_look, 0.0)
    index = np.asarray(
        whittle.index_after(waited, fading.income, 1.0, fading.decay, cost=fading.cost)
    )
    rate = np.where(np.isin(row, found.fading), found.plan.crawl_rate[row], 0.0)
    with np.errstate(divide="ignore"):
        interval = 1 / rate
    items = pages.rate * pages.own
    reward = items / pages.decay * -np.expm1(-pages.decay * interval)
    return tuple(
        PlannedEphemeral(
            sources.url[row[k]], sources.hosts[sources.host[row[k]]],
            float(sources.importance[row[k]]), bool(pages.declared[k]), float(pages.rate[k]),
            float(1 - pages.own[k]), float(pages.half_life_hours[k]), float(index[k]),
            *_next(float(interval[k]), float(pages.last_look[k]), float(reward[k]), it.day),
        )
        for k in np.lexsort((row, -index)).tolist()
    )  # fmt: skip


def _next(
    interval: float, last: float, reward: float, day: float
) -> tuple[float | None, float | None, float | None, float | None]:
    """Interval, next crawl and rewards; None where no crawl is worth its price."""
    if not isfinite(interval):
        return None, None, None, None
    return interval, max(last + interval, day) * _DAY_S, reward, reward / interval
