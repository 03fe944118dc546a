"""Notes in the store how a daemon stands and what it expects: soon after its start, then hourly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import aiosqlite
import numpy as np

from freshet.config.settings import Politeness
from freshet.crawler.capacities import Limits, Spacing, costs_of, limits_of
from freshet.crawler.pacing import Pacer
from freshet.crawler.run.snapshot import Glimpse
from freshet.scheduler import policy
from freshet.scheduler.agenda.expected import Census, Forecast, forecast, price, sources, wanted
from freshet.scheduler.agenda.ranker import Beliefs, Refresher
from freshet.scheduler.agenda.recrawl import RecrawlAgenda
from freshet.scheduler.policy import IndexPolicy
from freshet.storage.entries import CappedLane, Discovered, Outlook
from freshet.storage.tables import hosts

_DAY_S: Final = 86_400.0
_EVERY_S: Final = 3_600.0
_FIRST_S: Final = 10.0
#: Pages from which on they are looked over in the background.
_MANY: Final = 20_000
_CAPPED: Final = 50


class Noting:
    """The chore of a daemon's pool; it also tells the refresher what politeness allows.

    Notes are taken 10, 20, 40 … seconds after the start, and at each full hour of UTC.
    """

    def __init__(
        self,
        reader: aiosqlite.Connection,
        agenda: RecrawlAgenda,
        pacer: Pacer,
        politeness: Politeness,
        began_at: float,
    ) -> None:
        self._reader = reader
        self._agenda = agenda
        self._pacer = pacer
        self._spacing = Spacing(politeness.delay_s, politeness.connections_per_host)
        self._began_at = began_at
        self._next_at = began_at
        self._last: Outlook | None = None
        self._task: asyncio.Task[None] | None = None

    def follow(self, name: str, refresher: Refresher, budget: float) -> None:
        """What is noted from now on is what this refresher believes, for this policy and budget."""
        self._name, self._policy = name, policy.load(name)
        self._refresher, self._budget = refresher, budget

    async def chore(self, now: float, submit: Callable[[Outlook], Awaitable[None]]) -> None:
        """Take a note if it is time; of many pages in the background."""
        if self._task is not None and self._task.done():
            self._task.result()
            self._task = None
        if now < self._next_at or self._task is not None:
            return
        hour = (now // _EVERY_S + 1) * _EVERY_S
        self._next_at = min(hour, max(2 * now - self._began_at, now + _FIRST_S))
        if len(self._agenda.pages) > _MANY:
            self._task = asyncio.create_task(self._note(now, submit))
        else:
            await self._note(now, submit)

    async def _note(self, now: float, submit: Callable[[Outlook], Awaitable[None]]) -> None:
        await submit(await self.outlook(now))

    async def stop(self) -> None:
        """Leave a note that is being taken."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def last(self) -> Outlook | None:
        """The last note that was taken, None before the first."""
        return self._last

    def glimpse(self, now: float) -> Glimpse:
        """How it stands at this moment."""
        upcoming = self._agenda.upcoming()
        return Glimpse(
            self._pacer.spent,
            self._pacer.flowed(now),
            self._pacer.allows_at(now),
            None if upcoming is None else upcoming.url,
            self._last,
        )

    async def outlook(self, now: float) -> Outlook:
        """How it stands now, and what it expects."""
        known = await hosts.load(self._reader, self._agenda.host_ids)
        by_id = {host.host_id: host for host in known}
        in_order = [by_id[host_id] for host_id in self._agenda.host_ids]
        limits = limits_of(in_order, await hosts.exchange_s(self._reader), self._spacing)
        await self._agenda.at_rest()
        self._agenda.costs = costs_of(in_order, self._spacing.delay_s)
        self._refresher.limits(limits.lane, limits.per_day)
        # At one moment: pages come and are looked at while the rest is worked out.
        pages = Census.of(self._agenda.pages)
        beliefs = (
            self._refresher.beliefs(now / _DAY_S) if len(pages) else Beliefs(*(np.zeros(0),) * 3)
        )
        work = partial(self._expected, pages, beliefs, limits, now / _DAY_S)
        found, capped = await asyncio.to_thread(work) if len(pages) > _MANY else work()
        upcoming = self._agenda.upcoming()
        self._last = Outlook(
            now, self._began_at, self._budget, self._name, self._pacer.flowed(now),
            self._pacer.forgone, found.watched, found.captured, found.waiting, found.gone,
            found.stale, found.harmonic,
            price(self._agenda.paid) if isinstance(self._policy, IndexPolicy) else None,
            found.changing, found.clocked, self._pacer.allows_at(now),
            None if upcoming is None else upcoming.page_id, capped, self._discovered(),
        )  # fmt: skip
        return self._last

    def _discovered(self) -> Discovered:
        agenda, shares = self._agenda, self._agenda.sharing
        return Discovered(
            shares.found, shares.revealed, shares.refreshed, agenda.unknown_pages,
            agenda.new_per_day,
        )  # fmt: skip

    def _expected(
        self, pages: Census, beliefs: Beliefs, limits: Limits, day: float
    ) -> tuple[Forecast, tuple[CappedLane, ...]]:
        found = forecast(pages, beliefs)
        if not len(pages) or limits.per_day.min() >= self._budget:
            return found, ()
        return found, self._capped(pages, beliefs, limits, day)

    def _capped(
        self, pages: Census, beliefs: Beliefs, limits: Limits, day: float
    ) -> tuple[CappedLane, ...]:
        """The lanes of which more is wanted than they allow."""
        table, waited = sources(pages, beliefs, limits.lane, limits.per_day, day)
        try:
            looks = wanted(self._policy, table, waited, self._budget)
        except Exception:  # noqa: BLE001 - another's policy; the refresher's guard tells of it
            return ()
        count = np.bincount(table.host, minlength=len(limits.keys))
        found = [
            CappedLane(limits.keys[code], *each)
            for code, each in enumerate(
                zip(limits.per_day.tolist(), looks.tolist(), count.tolist(), strict=True)
            )
            if each[1] > each[0]
        ]
        return tuple(sorted(found, key=lambda lane: -lane.refused)[:_CAPPED])
