"""A shard of a store: its daemon, and its messages to other shards and the coordinator.

A page belongs to the shard of its registrable domain, or of its group of hosts. A link to a page of
another shard makes a page here that is held back, and a message to the other shard, which commits
the page before it answers (:mod:`freshet.storage.tables.outgoing`). The budget is divided by one
price (:mod:`scheduler.solve.shared_price`): a shard reports its demand, and receives the price and
its share (docs/adr/0014).
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Final

import numpy as np
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_fixed

from freshet.crawler.admission.admit import Admission
from freshet.crawler.errors import ShardUnreachable
from freshet.crawler.frontier.clock import Clock, SteadyClock, pause
from freshet.crawler.frontier.politeness import Pacer
from freshet.crawler.run.network import shard_of
from freshet.crawler.run.orders import Reread
from freshet.crawler.run.pagerank import outflow
from freshet.crawler.run.pool import FetchPool
from freshet.crawler.service.senders import Inbox
from freshet.scheduler.solve.budget import Hosts
from freshet.scheduler.solve.demand import IntervalDemand
from freshet.scheduler.solve.shared_price import DemandCurve, divide
from freshet.storage.database import Database
from freshet.storage.errors import StoreError
from freshet.storage.records import Acknowledged, StoreUpdate, Targets
from freshet.storage.shards import Shards
from freshet.storage.tables import outgoing

if TYPE_CHECKING:
    # A crawl does not need it.
    from freshet.crawler.run.state import DaemonState

log = logging.getLogger(__name__)

#: Pages of one message, some 150 bytes each.
_BATCH: Final = 2_000
#: Seconds between two messages to shards, and until the next one to a shard that was down.
_TOLD_S: Final = 1.0
_ANEW_S: Final = 30.0
#: With more shards than this, messages to each are rarer.
MANY: Final = 50
#: Seconds until a report that had no answer is made again.
_SOON_S: Final = 2.0
#: Seconds' worth of the budget that is granted later, and within which it is.
_LEFT_S: Final = 30.0
_GRANTED_S: Final = 120.0
#: Seconds until masses are sent again that some shards lack.
_AGAIN_S: Final = 3_600.0
#: Seconds between two reports of a shard.
REPORTED_S: Final = 60.0
#: Seconds after which the coordinator counts as away, and for which its price still holds.
_AWAY_S: Final = 150.0
_BY_PRICE_S: Final = 3_600.0
#: Requests a day of a shard before it knows its share: the others may use the whole budget.
NOTHING: Final = 1.0
_DAY_S: Final = 86_400.0
#: Changes a day of pages that are not held yet: a visit is worth the more the longer it waits.
_NEW: Final = 1e6


@dataclass(slots=True, kw_only=True, eq=False)
class Running:
    """The parts of a crawl or daemon that its ``shard`` works with from the pool's first turn on.

    A daemon has all of them.
    """

    shard: Shard
    pool: FetchPool
    admission: Admission
    database: Database
    clock: Clock
    pacer: Pacer | None = None
    state: DaemonState | None = None
    reload: Callable[[Reread], None] | None = None
    inbox: Inbox = field(init=False)
    #: Set by each commit: there may be pages to send.
    committed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        self.inbox = Inbox(self.pool.wake)

    async def turn(self) -> None:
        """Write received pages; the shard works with these parts from now on."""
        self.shard.running = self
        for entry in self.inbox.take():
            await self.pool.submit(entry)

    def acknowledged(self, batch: Sequence[Acknowledged]) -> None:
        """Observe a committed batch."""
        self.inbox.acknowledged(batch)
        self.committed.set()


class Shard:
    """One shard of a store while a crawl or a daemon runs on it.

    Attributes:
        number: from 0 on.
        running: the parts of that crawl or daemon, which sets them.
        share: requests a day that this shard may make, None before it is known.
        price: the price on which the shards agreed last, None before that.
        soon: set to report at once.
        told: messages with pages of other shards.
    """

    def __init__(
        self, shards: Shards, number: int, groups: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Be one of these shards; ``groups`` of hosts stay together."""
        self.number, self._count = number, shards.count
        self.running: Running | None = None
        self._attended: Running | None = None
        self.share: float | None = None
        self.price: float | None = None
        self.soon = asyncio.Event()
        self.of = lru_cache(65_536)(partial(shard_of, shards=shards, groups=groups or {}))
        self._curve: DemandCurve | None = None
        self._told_at = 0.0
        self.told, self._taking, self._ends = 0, 0, False

    @property
    def least_per_day(self) -> float:
        """Requests a day before the share is known."""
        return NOTHING

    def attend(
        self,
        *,
        pool: FetchPool,
        admission: Admission,
        database: Database,
        clock: Clock,
        pacer: Pacer | None = None,
        state: DaemonState | None = None,
        reload: Callable[[Reread], None] | None = None,
    ) -> None:
        """Work with these parts of a crawl or a daemon from its first turn on."""
        self._attended = Running(
            shard=self, pool=pool, admission=admission, database=database, clock=clock,
            pacer=pacer, state=state, reload=reload,
        )  # fmt: skip

    async def turn(self) -> None:
        """Do due work before each turn of the pool."""
        if self._attended is not None:
            await self._attended.turn()

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        """Observe a batch that is in the store now."""
        if self._attended is not None:
            self._attended.acknowledged(batch)

    def leave(self) -> None:
        """Forget the parts, which are about to be closed."""
        self.running = self._attended = None

    def is_ours(self, at_origin: str) -> bool:
        """Return whether an origin belongs to this shard."""
        return self.of(at_origin) == self.number

    async def talk(
        self,
        send: Callable[[str, int, bytes], Awaitable[bool]],
        report: Callable[[bytes, float | None], Awaitable[tuple[float, float] | None]],
    ) -> None:
        """Talk to the other shards and the coordinator until this is cancelled.

        ``send`` calls a method of another shard with a message, and returns whether it is kept
        there. ``report`` takes the demand and the share until now; it raises
        :class:`ShardUnreachable`.
        """
        works = (
            partial(self.tell, partial(send, "take")),
            partial(self.exchange, partial(send, "take_masses")),
            partial(self.agree, report),
        )
        async with asyncio.TaskGroup() as tasks:
            for work in works:
                tasks.create_task(self._lasting(work))

    async def _lasting(self, work: Callable[[], Awaitable[None]]) -> None:
        tries = AsyncRetrying(
            retry=retry_if_exception_type(Exception),
            wait=wait_fixed(_ANEW_S),
            before_sleep=self._failed,
            sleep=self._pause,
        )
        await tries(work)

    async def _pause(self, seconds: float) -> None:
        """Wait by the clock of the run, or by the machine's before and after it."""
        await pause(SteadyClock() if self.running is None else self.running.clock, seconds)

    def _failed(self, tries: RetryCallState) -> None:
        error = tries.outcome.exception() if tries.outcome is not None else None
        if isinstance(error, StoreError | sqlite3.Error):
            # The store may be unavailable for a while: the pool waits for it as well.
            log.warning("shard %s: %s; tried again", self.number, error)
        elif self.running is not None:
            # At the end the store is closed while work is under way.
            log.error("shard %s: a fault; tried again", self.number, exc_info=error)

    # -- links across shards ---------------------------------------------------------

    async def tell(self, send: Callable[[int, bytes], Awaitable[bool]]) -> None:
        """Tell other shards of their pages, for ever; ``send`` returns whether they have them.

        A shard that is down gets its pages later, and does not delay others.
        """
        after, anew_at, pause = 0, inf, _TOLD_S
        while True:
            missed, after = await self._tell(send, after)
            now = monotonic()
            if missed:
                anew_at = min(anew_at, now + pause)
            elif anew_at == inf:
                pause = _TOLD_S
            if now >= anew_at:
                # A shard that is only starting is soon there.
                after, anew_at, pause = 0, inf, min(2 * pause, _ANEW_S)
            await asyncio.sleep(_TOLD_S * max(1.0, self._count / MANY))
            if (running := self.running) is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, min(anew_at, now + _ANEW_S) - monotonic())):
                        await running.committed.wait()
                running.committed.clear()

    async def _tell(
        self, send: Callable[[int, bytes], Awaitable[bool]], after: int
    ) -> tuple[bool, int]:
        """Send the pages after an id; return whether a shard missed them, and the last id."""
        missed = False
        while (it := self.running) is not None:
            by_shard: defaultdict[int, list[outgoing.OutgoingPage]] = defaultdict(list)
            found = await outgoing.waiting(it.database.reader, after, _BATCH)
            for page in found:
                by_shard[self.of(page.url)].append(page)
            told = await asyncio.gather(*(send(to, _message(of)) for to, of in by_shard.items()))
            ids = [page.page_id for has, pages in zip(told, by_shard.values(), strict=True) if has
                   for page in pages]  # fmt: skip
            if ids:
                await it.database.write(partial(outgoing.acknowledge, page_ids=ids))
            missed = missed or not all(told)
            after = found[-1].page_id if found else after
            if len(found) < _BATCH:
                break
        return missed, after

    async def take(self, _shard: int, message: bytes) -> bool:
        """Admit the pages of another shard's message; return whether they are committed."""
        self.told += 1
        if self.running is None or self.running.pool.stopping:
            return False
        targets, admission = Targets(), self.running.admission
        for url, fetch_url, role, depth, redirects in json.loads(message):
            admission.add(targets, url, fetch_url, depth=depth, role=role, redirects=redirects)
        note = StoreUpdate(self.running.clock.now(), targets=targets)
        self._taking += 1
        try:
            return await self.running.inbox.commit(note)
        finally:
            self._taking -= 1

    # -- importance across shards ----------------------------------------------------

    async def exchange(self, send: Callable[[int, bytes], Awaitable[bool]]) -> None:
        """Tell other shards what flows to their pages by PageRank, each day, for ever.

        An hour later if there was no page to send, or a shard missed them.
        """
        while True:
            wait, it = _SOON_S, self.running
            if it is not None and it.state is not None:
                wait, told = _AGAIN_S, dict[int, bytes]()
                if it.state.settings.daemon.importance == "pagerank":
                    told = await outflow(it.database.reader, self.of)
                others = [to for to in range(self._count) if to != self.number]
                if told and all([await send(to, told.get(to, b"")) for to in others]):
                    wait = _DAY_S
            await asyncio.sleep(wait)

    async def take_masses(self, shard: int, message: bytes) -> bool:
        """Store another shard's masses until its next message, for the next weighing."""
        if self.running is None:
            return False
        taking = partial(outgoing.take_inflow, shard=shard, message=message)
        await self.running.database.write(taking)
        return True

    # -- the end of a crawl ----------------------------------------------------------

    def may_get_more(self) -> bool:
        """Return whether other shards may still send pages."""
        return not self._ends

    async def idle(self) -> bool:
        """Return whether no work is left here unless another shard sends pages."""
        it = self.running
        if it is None or self._taking or not it.pool.idle(it.clock.now()):
            return False
        return not await outgoing.waiting(it.database.reader, 0, 1)

    def end(self) -> None:
        """End when no URL is due: no shard will send pages any more."""
        self._ends = True
        if self.running is not None:
            self.running.pool.wake()

    # -- the budget ------------------------------------------------------------------

    async def demand(self) -> bytes | None:
        """Return the message of the current demand curve; None without one."""
        if self.running is None or (state := self.running.state) is None:
            return None
        now = self.running.clock.now()
        limits = await state.limits()
        agenda = state.agenda
        rate = agenda.ranker.beliefs(now / _DAY_S).rate
        pages = {name: agenda.pages[name][: len(rate)] for name in ("captured", "gone", "host")}
        # A host may have been added since the limits were read.
        known = pages["host"] < len(limits.queue)
        wanted = (pages["gone"] == 0) & np.isfinite(rate) & known
        changes = np.where(pages["captured"], rate, _NEW)[wanted]
        table = IntervalDemand(agenda.pages["importance"][: len(rate)][wanted], changes)
        self._curve = DemandCurve.of(
            table, Hosts(limits.queue[pages["host"][wanted]], limits.per_day), self.price or 0.0
        )
        return self._curve.message()

    def follow(self, price: float, share: float) -> None:
        """Go by the price and the share, in requests a day, that the coordinator has found."""
        if self.running is not None:
            self.price, self._told_at = price, self.running.clock.now()
            self._spend(share)

    def go_on(self) -> None:
        """Go by the last price, if the coordinator has not been heard for a while."""
        if self.running is None or self._curve is None or not self.price:
            return
        if _AWAY_S < self.running.clock.now() - self._told_at < _BY_PRICE_S:
            self._spend(self._curve.at(self.price))

    async def agree(
        self, report: Callable[[bytes, float | None], Awaitable[tuple[float, float] | None]]
    ) -> None:
        """Tell the coordinator the demand once a minute, and go by its answer, for ever.

        Without an answer it continues with the last price.
        """
        while True:
            answer, message = None, await self.demand()
            try:
                if message is not None:
                    answer = await report(message, self.share)
            except ShardUnreachable:
                self.go_on()
            if answer is not None:
                self.follow(*answer)
            self.soon.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_SOON_S if answer is None else REPORTED_S):
                    await self.soon.wait()

    def _spend(self, per_day: float) -> None:
        it = self.running
        if it is not None and it.pacer is not None and it.state is not None:
            self.share = per_day = max(per_day, NOTHING)
            it.pacer.change(per_day, it.clock.now())
            it.state.agenda.budget = per_day
            it.pool.wake()


class Coordinator:
    """Divides a budget, in requests a day, among shards; each reports once a minute.

    A shard that is to have more waits until another has reported and knows that it has less; what
    is left of the budget meanwhile is granted within two minutes.

    *Invariant.* In any span of time the shares that were granted sum to no more than the budget and
    half a minute's worth of it, but for :data:`NOTHING` a shard.

    It stores no state: after a restart it learns from the next reports, and grants no share until
    all shards have reported, or a minute has passed. A shard that is silent for two minutes
    counts as down, and the others get its share.
    """

    def __init__(self, per_day: float, shards: int, now: float) -> None:
        self.per_day = per_day
        self._shards, self._began_at = shards, now
        self._curves: dict[int, DemandCurve] = {}
        #: Time of a shard's report, its part of the budget, and that part with its earlier rest.
        self._granted: dict[int, tuple[float, float, float]] = {}
        self._left, self._left_at = 0.0, inf

    def report(
        self, shard: int, message: bytes, share: float | None, now: float
    ) -> tuple[float, float] | None:
        """Take a shard's demand and its share; return the price and its new share.

        None: the other shards have not reported yet. Raises ValueError for an invalid demand curve.
        """
        self._curves[shard] = DemandCurve.read(message)
        flowed = max(0.0, now - self._left_at) / _DAY_S
        spent = sum(all_of_it for _, _, all_of_it in self._granted.values())
        self._left = min(
            self._left + flowed * (self.per_day - spent), self.per_day * _LEFT_S / _DAY_S
        )
        _, before, _ = self._granted.get(shard, (now, inf, inf))
        share = share or NOTHING
        self._granted[shard] = now, min(before, share), share
        for other in [one for one, (at, _, _) in self._granted.items() if now - at >= _AWAY_S]:
            del self._granted[other], self._curves[other]
        if len(self._curves) < self._shards and now - self._began_at < REPORTED_S:
            return None
        price, shares = divide(list(self._curves.values()), self.per_day)
        fair = dict(zip(self._curves, shares.tolist(), strict=True))[shard]
        others = sum(own for one, (_, own, _) in self._granted.items() if one != shard)
        own = min(fair, self.per_day - others)
        share = max(own * (1 + self._left * _DAY_S / _GRANTED_S / self.per_day), NOTHING)
        self._left_at = now
        self._granted[shard] = now, own, share
        return price, share


def _message(pages: Sequence[outgoing.OutgoingPage]) -> bytes:
    rows = [(it.url, it.fetch_url, it.role, it.depth, it.redirects) for it in pages]
    return json.dumps(rows, ensure_ascii=False).encode("utf-8", "replace")
