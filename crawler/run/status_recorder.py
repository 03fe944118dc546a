"""The status of a daemon and its page estimates, written to the store every hour."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from math import isfinite
from typing import Any, Final

import numpy as np

from freshet.crawler.frontier.politeness import Pacer
from freshet.crawler.run.capacities import CapacityLimits
from freshet.crawler.run.orders import DaemonSnapshot
from freshet.crawler.run.state import DaemonState
from freshet.scheduler.arrays import Floats
from freshet.scheduler.policy import IndexPolicy, Policy
from freshet.scheduler.queue.ephemeral import item_terms
from freshet.scheduler.queue.forecasts import (
    Forecast,
    PageTableCopy,
    forecast,
    price,
    sources,
    wanted,
)
from freshet.scheduler.queue.ranker import Beliefs
from freshet.scheduler.queue.valuer import Valuation
from freshet.scheduler.sources import Rows
from freshet.storage.database import Database
from freshet.storage.entries import CappedQueue, DiscoveryShares, Outlook, SiteOutlook
from freshet.storage.errors import SnapshotError, StoreUnavailable
from freshet.storage.records import Estimate, StoreUpdate

log = logging.getLogger(__name__)

_DAY_S: Final = 86_400.0
_EVERY_S: Final = 3_600.0
_FIRST_S: Final = 10.0
#: From this number on, pages are valued in the background.
_MANY: Final = 20_000
_CAPPED: Final = 50
#: Estimates in one batch: about 10 ms of the event loop, and of the writer.
_BATCH: Final = 500
#: With fewer pages than this, an estimate is also written again after a hundredth of the time in
#: which all pages could be visited.
_FEW: Final = 2_000
_OF_A_TURN: Final = 0.01
#: Pause between two batches if there are many pages.
_PAUSE_S: Final = 0.05
#: An estimate is written again after a visit, after a day, or when the probability that the page
#: has changed differs by this much from the prediction of the last estimate.
_KEPT_DAYS: Final = 1.0
_UNLIKE: Final = 0.02
#: Forced visits (audit samples, overdue pages) have a larger value than this.
_FORCED: Final = 1e100
#: Horizon of forecasts; times are found to a thousandth of a second.
_FARTHEST_DAYS: Final = 3_650.0
_HALVINGS: Final = 40
_OF_PAGES: Final = (
    "page_id", "importance", "captured", "since", "least", "most", "not_before", "half_life", "paid"
)  # fmt: skip


class StatusRecorder:
    """Records a daemon's status; it also passes the limits of politeness to the ranker.

    The status is written 10, 20, 40 … seconds after the start, and at each full hour of UTC.
    ``last`` is the last one, or None. The learnt state is written to the ``database`` after the
    start, and at each full hour.
    """

    def __init__(
        self, state: DaemonState, pacer: Pacer, began_at: float, database: Database | None = None
    ) -> None:
        self._state = state
        self.agenda = state.agenda
        self._pacer = pacer
        self._began_at = began_at
        self._next_at = self._snapshot_at = began_at
        self._database = database
        self._is_first = True
        self.last: Outlook | None = None
        self._sites: Sequence[SiteOutlook] = ()
        self._task: asyncio.Task[None] | None = None

    def shift(self, by: float) -> None:
        """Adapt to a jump of the clock."""
        self._next_at += by
        self._snapshot_at += by
        self._began_at += by

    async def _snapshot(self, database: Database) -> None:
        """Write the learnt state, or retry in an hour if the store is unavailable."""
        try:
            await self._state.write(database)
        except StoreUnavailable as error:
            # The next commit meets the same error, and waits for its end.
            log.info("the learnt state was not saved: %s", error)

    async def chore(self, now: float, submit: Callable[[StoreUpdate], Awaitable[None]]) -> None:
        """Write status and estimates if it is time; in the background if there are many pages."""
        if self._task is not None and self._task.done():
            done, self._task = self._task, None
            done.result()
        if now < self._next_at or self._task is not None:
            return
        hour = (now // _EVERY_S + 1) * _EVERY_S
        if self._database is not None and now >= self._snapshot_at:
            if self._snapshot_at > self._began_at or not self._state.snapshots.is_current:
                self.agenda.do_at_rest(partial(self._snapshot, self._database))
            self._snapshot_at = hour
        self._next_at = min(hour, max(2 * now - self._began_at, now + _FIRST_S))
        if len(self.agenda.pages) > _MANY:
            self._task = asyncio.create_task(self._record(now, submit))
        else:
            await self._record(now, submit)

    async def _record(self, now: float, submit: Callable[[StoreUpdate], Awaitable[None]]) -> None:
        await self._state.learn_items()
        await submit(StoreUpdate(now, outlook=await self.outlook(now)))
        for first in range(0, len(self._sites), _BATCH):
            await submit(StoreUpdate(now, sites=self._sites[first : first + _BATCH]))
        async for batch in self.estimates():
            await submit(batch)
            await asyncio.sleep(_PAUSE_S if len(self.agenda.pages) > _MANY else 0)

    async def stop(self) -> None:
        """Cancel the background work."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def snapshot(self, now: float) -> DaemonSnapshot:
        """Return the current status, without new forecasts."""
        upcoming = self.agenda.queue.worthiest(self.agenda.is_closed)
        return DaemonSnapshot(
            spent=self._pacer.spent,
            flowed=self._pacer.flowed(now),
            next_at=self._pacer.allows_at(now),
            next_url=None if upcoming is None else upcoming.url,
            outlook=self.last,
        )

    async def outlook(self, now: float) -> Outlook:
        """Return the current status, with forecasts over all pages."""
        limits, followed = await self._state.limits(), self._state.policy
        name = self._state.settings.daemon.policy
        # A copy: pages are added and visited during the computation.
        pages = PageTableCopy.of(self.agenda.pages)
        beliefs = (
            self._state.ranker.beliefs(now / _DAY_S) if len(pages) else Beliefs(*(np.zeros(0),) * 3)
        )
        # Hosts that are added meanwhile have no limits.
        host_ids = self.agenda.learner.hosts.ids[: len(limits.queue)]

        def work() -> tuple[Forecast, tuple[CappedQueue, ...], Sequence[SiteOutlook]]:
            expected, queues, columns = self._expected(followed, pages, beliefs, limits, now)
            sites = zip(host_ids, [now] * len(host_ids), *columns, strict=bool(len(pages)))
            return expected, queues, [SiteOutlook(*each) for each in sites]

        found, capped, self._sites = await asyncio.to_thread(work) if len(pages) > _MANY else work()
        upcoming = self.agenda.queue.worthiest(self.agenda.is_closed)
        shares, last = self.agenda.quota, self.agenda.valuation
        self.last = Outlook(
            at=now,
            began_at=self._began_at,
            budget=self.agenda.budget,
            policy=name,
            flowed=self._pacer.flowed(now),
            forgone=self._pacer.forgone,
            watched=found.watched,
            captured=found.captured,
            waiting=found.waiting,
            gone=found.gone,
            stale=found.stale,
            harmonic=found.harmonic,
            price=price(self.agenda.queue.paid) if isinstance(followed, IndexPolicy) else None,
            changing=found.changing,
            clocked=found.clocked,
            next_at=self._pacer.allows_at(now),
            next_page_id=None if upcoming is None else upcoming.page_id,
            capped=capped,
            discovered=DiscoveryShares(
                shares.found,
                shares.revealed,
                shares.refreshed,
                0.0 if last is None else last.unknown,
                0.0 if last is None else last.per_day,
            ),
        )
        return self.last

    def _expected(
        self,
        followed: Policy,
        pages: PageTableCopy,
        beliefs: Beliefs,
        limits: CapacityLimits,
        now: float,
    ) -> tuple[Forecast, tuple[CappedQueue, ...], list[list[Any]]]:
        """Return forecasts, the capped host queues, and the columns of ``SiteOutlook``."""
        expected, queue = forecast(pages, beliefs), limits.queue
        if not len(pages):
            return expected, (), [[]] * 7
        table, waited = sources(pages, beliefs, limits.per_day[queue], now / _DAY_S)
        try:
            visits = wanted(followed, table, waited, self.agenda.budget)
        except Exception:  # noqa: BLE001 - a plug-in policy; the ranker's guard logs the error
            visits = np.full(len(queue), np.nan)
        of_queue = np.bincount(queue, np.nan_to_num(visits), minlength=len(limits.keys))
        count = np.bincount(queue[table.host], minlength=len(limits.keys))
        found = [
            CappedQueue(limits.keys[code], *each)
            for code, each in enumerate(
                zip(limits.per_day.tolist(), of_queue.tolist(), count.tolist(), strict=True)
            )
            if each[1] > each[0]
        ]
        *counts, stale = pages.by_host(beliefs.hazard, len(queue))
        is_capped = (of_queue > limits.per_day)[queue]
        columns = [each.tolist() for each in counts] + [_known(stale), _known(visits)]
        columns += [_known(limits.per_day[queue]), is_capped.tolist()]
        return expected, tuple(sorted(found, key=lambda it: -it.refused)[:_CAPPED]), columns

    # -- estimates of pages ------------------------------------------------------

    async def estimates(self) -> AsyncIterator[StoreUpdate]:
        """Yield the outdated estimates of the store, as of the last valuation.

        With few pages, all estimates are yielded. A page visited since that valuation waits for the
        next one.
        """
        found, pages, ranker = self.agenda.valuation, self.agenda.pages, self._state.ranker
        if found is None:
            return
        await self.agenda.at_rest()
        beliefs = ranker.beliefs(found.at)
        rows = self._outdated(found, beliefs)
        # Go site by site, because the parts of resting sites must be loaded.
        rows = rows[np.argsort(pages["host"][rows], kind="stable")]
        for first in range(0, len(rows), _BATCH):
            await self.agenda.at_rest()
            if pages is not self.agenda.pages:
                # After a reload, rows are other pages.
                return
            some = rows[first : first + _BATCH]
            try:
                rates = ranker.credible_interval(some)
            except SnapshotError as error:
                self.agenda.lose(error)
                return
            yield self._batch(some, found, beliefs, rates)

    def _outdated(self, found: Valuation, beliefs: Beliefs) -> Rows:
        """Return the rows to write, and record their new values."""
        n = len(found.worth)
        self._state.noted.append(n - len(self._state.noted))
        written, asked = self._state.noted.rows, self.agenda.pages["asked"][:n]
        if self._is_first and n <= _FEW:
            written["at"] = 0.0
        self._is_first = False
        now = {"asked": asked, "rate": beliefs.rate[:n], "hazard": beliefs.hazard[:n]}
        days = found.at - written["at"]
        expected = np.exp(-written["hazard"] - written["rate"] * days)
        kept = min(_KEPT_DAYS, _OF_A_TURN * n / self.agenda.budget) if n <= _FEW else _KEPT_DAYS
        outdated = (days > kept) | (written["asked"] != asked)
        outdated |= np.abs(expected - np.exp(-now["hazard"])) > _UNLIKE
        rows: Rows = np.flatnonzero(outdated & (asked <= found.at))
        written["at"][rows] = found.at
        for name, values in now.items():
            written[name][rows] = values[rows]
        return rows

    def _batch(
        self, rows: Rows, found: Valuation, beliefs: Beliefs, rates: tuple[Floats, Floats]
    ) -> StoreUpdate:
        """Return the estimates of these rows; ``rates`` are the bounds of their rates."""
        pages: Any = {name: self.agenda.pages[name][rows] for name in _OF_PAGES}
        noted, worth, paid = self._state.noted.rows[rows], found.worth[rows], pages["paid"]
        low, high = rates
        arrivals = np.full(len(found.worth), np.nan)
        arrivals[found.sources] = found.arrivals
        terms = self.agenda.quota.terms
        half_life = np.log(2) / item_terms(pages["half_life"], pages["page_id"], terms)[0] * 24.0
        half_life[np.isnan(arrivals[rows])] = np.nan
        has_index = isinstance(self._state.policy, IndexPolicy)
        worth = np.where(has_index & (worth < _FORCED), worth, np.nan)
        planned = np.full(len(rows), np.nan) if beliefs.planned is None else beliefs.planned[rows]
        urgent = np.isin(rows, found.urgent)
        free = np.where(pages["captured"], pages["since"] + pages["least"], -np.inf)
        free = np.maximum(free, pages["not_before"])
        paid_lately = price(self.agenda.queue.paid)
        least = np.inf if paid_lately is None else paid_lately
        again = _wait(worth, noted["hazard"], noted["rate"], least)
        # Without importance or plan, a page is never due, or it is unknown when.
        with np.errstate(divide="ignore", invalid="ignore"):
            wait = np.maximum(least - worth, 0.0) / pages["importance"]
            wait = np.where(pages["captured"], again, wait)
            due = np.where(planned > 0, pages["since"] + 1 / planned, found.at + wait)
        due = np.where(pages["captured"], np.fmin(due, pages["since"] + pages["most"]), due)
        due = np.maximum(np.where(urgent, found.at, due), free)
        claimed = np.full(len(rows), -1) if beliefs.claimed is None else beliefs.claimed[rows]
        columns = {
            "page_id": pages["page_id"].tolist(),
            "at": (noted["at"] * _DAY_S).tolist(),
            "visited_at": (noted["asked"] * _DAY_S).tolist(),
            "rate": noted["rate"].tolist(),
            "low": np.minimum(low, noted["rate"]).tolist(),
            "high": np.maximum(high, noted["rate"]).tolist(),
            "hazard": noted["hazard"].tolist(),
            "importance": pages["importance"].tolist(),
            "clocked": beliefs.clocked[rows].tolist(),
            "claimed": [
                None if is_claimed < 0 else bool(is_claimed) for is_claimed in claimed.tolist()
            ],
            "worth": _known(worth),
            "urgent": urgent.tolist(),
            "reveals": found.reveals[rows].tolist(),
            "arrival_rate": _known(arrivals[rows]),
            "half_life_hours": _known(half_life),
            "planned": _known(planned),
            "not_before": _known(free * _DAY_S),
            "due_at": _known(due * _DAY_S),
            "paid": _known(np.where(has_index & (paid > 0) & (paid < _FORCED), paid, np.nan)),
        }
        values = zip(*columns.values(), strict=True)
        return StoreUpdate(
            found.at * _DAY_S,
            estimates=tuple(Estimate(**dict(zip(columns, each, strict=True))) for each in values),
        )


def _wait(worth: Floats, hazard: Floats, rate: Floats, least: float) -> Floats:
    """Return the days (m,) until visits reach a price; inf: not for years, nan: unknown.

    The value of a visit grows as x − 1 + e^{−x} in the expected changes x since the last visit.
    """
    early, late = np.zeros(len(worth)), np.full(len(worth), _FARTHEST_DAYS)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = least / worth * _grown(hazard)
    for _ in range(_HALVINGS):
        middle = (early + late) / 2
        reached = _grown(hazard + rate * middle) >= wanted
        early, late = np.where(reached, early, middle), np.where(reached, middle, late)
    late[late >= _FARTHEST_DAYS] = np.inf
    return np.where(np.isnan(worth), np.nan, np.where(worth >= least, 0.0, late))


def _grown(changes: Floats) -> Floats:
    """Return x − 1 + e^{−x}, precise for small x."""
    return np.where(changes < 1e-4, changes**2 / 2, changes + np.expm1(-changes))


def _known(values: Floats) -> list[float | None]:
    """Return the values as a list, with None for those that are not finite."""
    return [value if isfinite(value) else None for value in values.tolist()]
