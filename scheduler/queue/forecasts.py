"""Forecasts over all pages that are kept fresh: staleness, change rates, visits by host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np

from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.costs import ein
from freshet.scheduler.policy import IndexPolicy, Policy, RatePolicy
from freshet.scheduler.queue.pages import PageTable
from freshet.scheduler.queue.ranker import Beliefs
from freshet.scheduler.sources import Rows, SourceTable
from freshet.storage.entries import RATE_CLASSES

#: Forced visits, such as audits and overdue pages, have a value above this.
_FORCED: Final = 1e100
_AT_ONCE: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class PageTableCopy:
    """The n pages of a page table at one moment, as copies of its columns."""

    host: Rows
    importance: Floats
    since: Floats
    captured: Bools
    gone: Ints
    not_before: Floats

    @classmethod
    def of(cls, pages: PageTable) -> PageTableCopy:
        """Copy the present columns."""
        columns: dict[str, Any] = {each.name: pages[each.name].copy() for each in fields(cls)}
        return cls(**columns)

    def __len__(self) -> int:
        return len(self.host)

    @property
    def held(self) -> Bools:
        """Return (n,), whether there is a copy of a page that is not gone."""
        held: Bools = self.captured & (self.gone == 0)
        return held

    @property
    def waiting(self) -> Bools:
        """Return (n,), whether a page was found and never requested."""
        waiting: Bools = ~self.captured & (self.gone == 0) & np.isneginf(self.not_before)
        return waiting

    def by_host(self, hazard: Floats, hosts: int) -> tuple[Ints, Ints, Ints, Floats]:
        """Return (H,) each: captured, waiting and gone pages, and stale share of captured ones."""

        def sums(those: Bools, weight: Floats | None = None) -> Any:
            return np.bincount(self.host[those], weight, minlength=hosts)[:hosts]

        held = self.held
        importance = self.importance[held]
        with np.errstate(invalid="ignore"):
            stale = sums(held, -np.expm1(-hazard[held]) * importance) / sums(held, importance)
        return sums(held), sums(self.waiting), sums(self.gone > 0), stale


@dataclass(frozen=True, slots=True)
class Forecast:
    """Sums over all pages, with the names of :class:`~freshet.storage.records.Outlook`."""

    watched: int
    captured: int
    waiting: int
    gone: int
    stale: float | None
    harmonic: float | None
    changing: tuple[int, ...]
    clocked: float


def forecast(pages: PageTableCopy, beliefs: Beliefs) -> Forecast:
    """Return the forecast; costs are means over the captured pages, weighted with importance."""
    held = pages.held
    importance, hazard = pages.importance[held], beliefs.hazard[held]
    # Pages in each class, the quickest first.
    quicker = beliefs.rate[held][:, None] >= np.array(RATE_CLASSES)
    return Forecast(
        watched=len(pages),
        captured=int(held.sum()),
        waiting=int(pages.waiting.sum()),
        gone=int((pages.gone > 0).sum()),
        stale=_mean(-np.expm1(-hazard), importance),
        harmonic=_mean(_ein(hazard), importance),
        changing=tuple(np.diff(quicker.sum(axis=0), prepend=0).tolist()),
        clocked=float(beliefs.clocked[held].mean()) if held.any() else 0.0,
    )


def sources(
    pages: PageTableCopy, beliefs: Beliefs, per_day: Floats, now: float
) -> tuple[SourceTable, Floats]:
    """Return the captured and the waiting pages by host, for :func:`wanted`.

    ``per_day`` is the limit of each known host; pages of other hosts are omitted. Also return the
    days that each page has waited, nan for captured pages.
    """
    held = pages.held
    rows = np.flatnonzero((held | pages.waiting) & (pages.host < len(per_day)))
    table = SourceTable.of(
        pages.importance[rows], beliefs.rate[rows], host=pages.host[rows], host_capacity=per_day
    )
    waited = np.maximum(now - pages.since[rows], 0.0)
    return table, np.where(held[rows], np.nan, waited)


def price(paid: Sequence[float]) -> float | None:
    """Return the 10th percentile of the values of visits that were not forced; None without any.

    The median would overstate the price, because half of the visits are made at lower values.
    """
    free = [value for value in paid if value < _FORCED]
    return float(np.percentile(free, 10)) if free else None


def _ein(x: Floats) -> Floats:
    """Return Ein(x) in pieces, to save memory."""
    return np.concatenate([ein(x[k : k + _AT_ONCE]) for k in range(0, len(x) or 1, _AT_ONCE)])


def _mean(values: Floats, weight: Floats) -> float | None:
    total = float(weight.sum())
    return float((values * weight).sum()) / total if total > 0 else None


# -- demand: visits a day of each page without limits of hosts --
# An index policy visits a page when its index W(τ) reaches the price λ, so once every T days, with
# W(T) = λ. At the price, all pages together use up the budget R,
#
#     Σ_w 1/T_w(λ) + Σ_new [ μ · (waited + 1 day) ≥ λ ] = R,
#
# where a new page, with the value importance times days since it was found, demands one visit
# within a day if that value reaches λ. W is evaluated on a grid of ages and interpolated between
# them (log-linear, to a per cent); of many pages, every k-th is a sample for k pages of its host. A
# rate policy supplies its own rates.
#
#     μ   importance           weight
#     W   index of the policy  importance · days  by age τ since the last visit
#     R   budget               visits a day       above 0

#: Days since the last visit at which indices are evaluated.
_AGES: Final[Floats] = np.geomspace(1e-4, 1e4, 97)
_SAMPLE: Final = 20_000
_HALVINGS: Final = 40
_MOMENT: Final = 1e-6


def wanted(policy: Policy, table: SourceTable, waited: Floats, budget: float) -> Floats:
    """Return (H,), each host's demand in visits a day without limits; nan: no page in the sample.

    ``table`` (n,) holds the pages with their hosts; its host capacities are ignored. ``waited``
    (n,) are the days since discovery for pages without a copy, nan for others.

    >>> from freshet.scheduler.policies.greedy_index import GreedyIndex
    >>> table = SourceTable.of([1, 1, 2, 2], [1.0] * 4, host=[0, 0, 1, 1], host_capacity=[9, 9])
    >>> low, high = wanted(GreedyIndex(), table, np.full(4, np.nan), 10.0)
    >>> round(float(low + high), 3), bool(1.4 < high / low < 1.6)  # early W is μΔτ²/2
    (10.0, True)
    """
    stride = -(-len(table) // _SAMPLE) or 1
    rows = np.argsort(table.host, kind="stable")[::stride]
    is_new = ~np.isnan(waited[rows])
    known, new = rows[~is_new], rows[is_new]
    hosts = len(table.host_capacity)
    if isinstance(policy, RatePolicy):
        fresh = np.full(len(new), min(1.0, budget / stride / max(len(new), 1)))
        left = budget / stride - fresh.sum()
        alone = SourceTable.of(table.importance[known], table.change_rate[known])
        is_left = left > 0 and len(known) > 0
        visits = policy.rates(alone, left).crawl_rate if is_left else np.zeros(len(known))
    elif isinstance(policy, IndexPolicy):
        value = table.importance[new] * (waited[new] + 1.0)
        visits, fresh = _at_one_price(policy, table.take(known), value, budget / stride)
    else:
        return np.zeros(hosts)
    host = np.concatenate([table.host[known], table.host[new]])
    total = np.bincount(host, np.concatenate([visits, fresh]), minlength=hosts)
    pages, seen = (np.bincount(of, minlength=hosts) for of in (table.host, host))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(pages > 0, total * (pages / seen), 0.0)


def _at_one_price(
    policy: IndexPolicy, table: SourceTable, value: Floats, budget: float
) -> tuple[Floats, Floats]:
    """Return visits a day at this price to known pages, and to new ones."""
    # Shape (ages, n): the value of a visit at each age.
    indices = np.empty((len(_AGES), len(table)))
    for row, age in enumerate(_AGES.tolist()):
        table.last_crawl[:] = -age
        indices[row] = policy.index(table, 0.0)
    indices = np.maximum.accumulate(indices, axis=0)
    positive = np.concatenate([indices[indices > 0], value[value > 0]])
    if not len(positive):
        return np.zeros(len(table)), np.zeros(len(value))
    # At the higher price the demand fits the budget, at the lower one it eventually exceeds it.
    low, high = np.log(positive.min()) - _MOMENT, np.log(positive.max()) + _MOMENT
    for _ in range(_HALVINGS):
        price = float(np.exp((low + high) / 2))
        total = _visits(indices, price).sum() + (value >= price).sum()
        low, high = (np.log(price), high) if total > budget else (low, np.log(price))
    visits, certain = _visits(indices, float(np.exp(high))), value >= np.exp(high)
    marginal = (value >= np.exp(low)) & ~certain
    room = max(0.0, budget - float(visits.sum() + certain.sum()))
    share = min(1.0, room / max(int(marginal.sum()), 1))
    return visits, certain + share * marginal


def _visits(indices: Floats, price: float) -> Floats:
    """Return (n,), 1/T with T the age at which the index reaches the price; 0 if it never does."""
    below: Rows = (indices < price).sum(axis=0)
    columns = np.arange(indices.shape[1])
    last = len(_AGES) - 1
    early, late = np.clip(below - 1, 0, last), np.minimum(below, last)
    before, after = indices[early, columns], indices[late, columns]
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.log(price / before) / np.log(after / before)
    part = np.where(np.isfinite(part), np.clip(part, 0.0, 1.0), 1.0)
    age = _AGES[early] * (_AGES[late] / _AGES[early]) ** part
    return np.where(below > last, 0.0, 1.0 / age)
