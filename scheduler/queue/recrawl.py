"""The agenda of a daemon: it supplies the best visit at each moment, over all new and known pages.

Invariant: a page is in the ready queue or in flight at most once, and the agenda learns from
commits only. Consequence: after a crash the same observations lead to the same order.

The agenda joins its parts. A :class:`~freshet.scheduler.queue.learner.Learner` holds the state of
the pages. A :class:`~freshet.scheduler.queue.valuer.VisitValuer` computes the values of visits. An
:class:`~freshet.scheduler.queue.appraiser.Appraiser` chooses by these values, and a
:class:`~freshet.scheduler.queue.refill.Supply` loads the choice into the
:class:`~freshet.scheduler.queue.ready.ReadyQueue`.

*The ready queue.* One pass over all watched pages chooses the pages with the highest values, at
most two per host, and they are read from the store; :meth:`RecrawlAgenda.next` takes the best page
whose host is ready. If the budget pays for a visit but no host in the ready queue is ready, the
ready queue is widened. So capacity that hosts refuse is used for the next best pages, and no
robots.txt is requested before it is needed.

*The valuation.* Learning from new observations and valuing all pages is one piece of work on
arrays. With many pages it runs in a thread, while fetching continues from the ready queue. Until it
ends, nothing else accesses the pages, and new observations wait. The same holds for a snapshot.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from math import inf
from random import Random
from typing import Final, TypeAlias

import aiosqlite
import numpy as np

from freshet.scheduler.arrays import Ints
from freshet.scheduler.queue.appraiser import Appraiser, ChoiceBounds
from freshet.scheduler.queue.hooks import AgendaHooks, Memory, NoHooks
from freshet.scheduler.queue.learner import Learner, News
from freshet.scheduler.queue.page_rules import TermsOf
from freshet.scheduler.queue.pages import OVERDUE, PageTable
from freshet.scheduler.queue.ranker import Ranker
from freshet.scheduler.queue.ready import DiscoveryQuota, EmptyQuota, ReadyQueue
from freshet.scheduler.queue.refill import AuditDraws, Supply
from freshet.scheduler.queue.sessions import Sessions
from freshet.scheduler.queue.valuation_times import ValuationTimes
from freshet.scheduler.queue.valuer import Valuation
from freshet.storage.entries import CLAIM_KINDS, PUSHED, Host
from freshet.storage.errors import SnapshotError
from freshet.storage.records import Acknowledged, DueUrl

log = logging.getLogger(__name__)

_DAY_S: Final = 86_400.0
#: Maximum number of pages of a host in the ready queue.
_OF_A_HOST: Final = 2
#: At most this many unserved hosts are checked before all others.
_UNSERVED: Final = 100
#: Kinds of claims that open a host before its session is due.
_PUSHED: Final = tuple(map(CLAIM_KINDS.index, PUSHED))
#: Work before the next valuation, while nothing learns.
AtRest: TypeAlias = Callable[[], Awaitable[None]]


class RecrawlAgenda:
    """An :class:`~freshet.storage.records.Agenda` that never ends.

    It calls the run around it by ``hooks``. From ``many`` pages on it values visits in a thread.
    Pages of unreachable hosts do not take space in the ready queue. If the budget allows no request
    now, only overdue pages may be taken, ahead of the budget. If the ``memory`` of former runs is
    usable, the state is read from there.
    """

    def __init__(
        self,
        reader: aiosqlite.Connection,
        ranker: Ranker,
        terms_of: TermsOf,
        rng: Random,
        *,
        recheck_days: float = 30.0,
        many: float = inf,
        hooks: AgendaHooks | None = None,
        memory: Memory | None = None,
    ) -> None:
        self._hooks = hooks or NoHooks()
        self._memory = memory
        self._many = many
        self._reader = reader
        self._learner_of = partial(
            Learner, reader, terms_of=terms_of, hooks=self._hooks, recheck_days=recheck_days,
            many=many,
        )  # fmt: skip
        self.quota = DiscoveryQuota()
        self.draws = AuditDraws(rng)
        self.budget = inf
        self.queue = ReadyQueue()
        self.times = ValuationTimes()
        #: A valuation, or work at rest.
        self._work: asyncio.Future[Valuation | None] | None = None
        self._at_rest: AtRest | None = None
        self.begin(ranker)

    def begin(self, ranker: Ranker) -> None:
        """Reset all state."""
        #: The error of a part of a snapshot that could not be read.
        self._lost: SnapshotError | None = None
        self.learner = self._learner_of(ranker)
        self.pages: PageTable = self.learner.pages
        self.queue = ReadyQueue(self.queue.wanted)
        self._supply = Supply(self._reader, self.learner, self.queue, self.draws)
        self.sessions = Sessions()
        #: Hosts (ids) with an announced change: they need not wait for a session.
        self._called: set[int] = set()
        self._appraiser = Appraiser(
            learner=self.learner, sessions=self.sessions, quota=self.quota, empty=EmptyQuota(),
            hooks=self._hooks,
        )  # fmt: skip
        #: The last valuation of all pages; None before the first.
        self.valuation: Valuation | None = None
        self.times.begin()

    # -- state --

    @property
    def ranker(self) -> Ranker:
        """The ranker that has learnt from the visits."""
        return self.learner.ranker

    async def open(self) -> None:
        """Load the state from a snapshot or from the store, unless it is loaded."""
        if len(self.pages) or (self._memory is not None and await self._memory.recall()):
            return
        await self.learner.read_all()

    async def forget(self, ranker: Ranker) -> None:
        """Reset all state, with another ranker; nothing may be in flight."""
        await self.rest()
        self.begin(ranker)

    async def relearn(self, ranker: Ranker) -> None:
        """Teach another ranker the store's history with its present corrections."""
        await self.rest()
        await self.learner.relearn(ranker)

    async def settle(self) -> None:
        """Learn from all commits, without a valuation."""
        await self._take_in()
        await self.learner.teach(self.learner.evidence.new())

    def done(self, acknowledged: Acknowledged) -> None:
        """Queue a commit; it is learnt at the next valuation."""
        self.learner.note(acknowledged)
        claims, hosts = acknowledged.claims, self.learner.hosts
        rows, _ = self.pages.rows(claims.page_id[np.isin(claims.kind, _PUSHED)])
        self._called.update(hosts.ids[code] for code in self.pages["host"][rows].tolist())
        self.times.is_due |= len(rows) > 0

    async def _take_in(self) -> None:
        """Process the queued commits."""
        news = await self.learner.take_in()
        if news is None:
            return
        # The first pages must not wait for the valuation after an empty one.
        self.times.is_due |= news.is_first
        if news.has_pages:
            self.times.altered(is_drained=True)
        for host_id in news.visited:
            self.times.altered(is_drained=host_id not in self.queue)
        self.times.visited(news.overdue)
        self._make_way(news)

    def _make_way(self, news: News) -> None:
        """Make room for new links of ephemeral sources."""
        if self.valuation is None:
            return
        for row in news.churned:
            if row in self.valuation.sources:
                self.times.is_due = True
                self._supply.clear([self.pages["host"][row]])

    # -- work in the background ----------------------------------------------------

    def do_at_rest(self, work: AtRest) -> None:
        """Run this work before the next valuation, while nothing learns."""
        self._at_rest = work

    def lose(self, error: SnapshotError) -> None:
        """Learn from all observations at the next refill: the learnt state cannot be read."""
        self._lost = error

    async def at_rest(self) -> None:
        """Wait until nothing learns; the state may be read until the caller awaits."""
        while self._work is not None and not self._work.done():
            await asyncio.wait([self._work])

    async def rest(self) -> None:
        """Wait as :meth:`at_rest`, and discard a thread's choice."""
        await self.at_rest()
        work, self._work = self._work, None
        if work is not None:
            self.times.is_due = True
            try:
                work.result()
            except SnapshotError as error:
                self._lost = error

    async def close(self) -> None:
        """Cancel the work in progress."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)

    def _begin(self, work: asyncio.Future[Valuation | None]) -> None:
        self._work = work
        work.add_done_callback(lambda _: self._hooks.wake())

    # -- the next page -------------------------------------------------------------

    def next(self, ready: Collection[int], now: float) -> DueUrl | None:
        """Take the best page of the ready hosts.

        Unserved hosts rank first: hosts with a robots.txt that was read for a session, and without
        a taken page.
        """
        if not self._hooks.allows(now):
            due = self.queue.best(ready, favoured=self.quota.favoured, least=OVERDUE)
        elif (due := self._best(ready)) is None:
            self._widen(now)
        if due is None:
            return None
        self.sessions.serve(self.learner.hosts.codes[due.host_id])
        self.times.altered(is_drained=due.host_id not in self.queue)
        self.quota.took(discovers=due.reason == "discovery", captured=due.digests is not None)
        self.queue.took()
        row = self.pages.row(due.page_id)
        self._appraiser.empty.took(is_empty=None if row is None else self.pages["empty"][row])
        if row is not None:
            self.pages["paid"][row] = self.queue.paid[-1]
            self.quota.aside.took(due.host_id, row)
        self.draws.took()
        return due

    def _best(self, ready: Collection[int]) -> DueUrl | None:
        favoured, ids = self.quota.favoured, self.learner.hosts.ids
        unserved = [ids[code] for code in islice(self.sessions.unserved, _UNSERVED)]
        due = self.queue.best([each for each in unserved if each in ready], favoured=favoured)
        return due or self.queue.best(ready, favoured=favoured)

    def _widen(self, now: float) -> None:
        """Value pages again if a host could offer one that is not in the ready queue."""
        if self._work is not None:
            return
        is_wider = self.times.may_widen and self.queue.widen()
        if self.times.wants_more(is_wider=is_wider) and now >= self.wakes_at():
            self.times.is_due = True

    def put_back(self, due: DueUrl) -> None:
        """Requeue a URL that was not visited; it ranks before all others."""
        self.queue.add(inf, due)

    def wish(self, due: DueUrl) -> None:
        """Move a page to the front of the queue, because a user or a program waits for it."""
        row = self.pages.row(due.page_id)
        # A taken page that is not in the ready queue is being visited.
        if row is None or (self.pages["taken"][row]
                           and not self.queue.withdraw(due.host_id, due.page_id)):  # fmt: skip
            return
        self.pages["taken"][row] = self.times.is_due = True
        self._called.add(due.host_id)
        self.put_back(replace(due, reason="signal"))

    # -- hosts ---------------------------------------------------------------------

    def waiting(self, host_id: int) -> bool:
        """Return whether a page of this host is in the ready queue."""
        return host_id in self.queue and not self.is_closed(host_id)

    def offered(self, away: Collection[int] = ()) -> int:
        """Count the pages in the ready queue of open hosts that are not ``away``."""
        counts = self.queue.counts()
        return sum(n for host, n in counts if host not in away and not self.is_closed(host))

    def is_closed(self, host_id: int) -> bool:
        """Return whether a host waits for its session."""
        code, closed = self.learner.hosts.codes[host_id], self.sessions.closed
        return code < len(closed) and bool(closed[code])

    def target_of(self, host_id: int) -> int | None:
        """Return the host to which a host has only redirected, by the last valuation, or None."""
        code, found = self.learner.hosts.codes.get(host_id, -1), self.valuation
        if found is None or not 0 <= code < len(found.targets) or found.targets[code] < 0:
            return None
        return self.learner.hosts.ids[int(found.targets[code])]

    def take_probe(self, host_id: int) -> bool:
        """Take a request for a URL that cannot exist; return whether the quota allowed it.

        Without a probe, a doubtful page is delivered as doubtful.
        """
        return self.quota.aside.take_probe(host_id)

    # -- times -----------------------------------------------------------------------

    @property
    def hungry(self) -> bool:
        """Return whether there is new evidence, or a valuation is due at once."""
        if self._work is not None:
            return self._work.done()
        return self.learner.has_news or self.times.is_due

    def wakes_at(self) -> float:
        """Return when all pages are valued again."""
        if self._work is not None:
            # The end of the work wakes the pool.
            return inf
        return self.times.next_at(self.budget, self.pages, self.queue)

    def overdue_at(self) -> float:
        """Return when the next page is overdue, -inf if one is in the ready queue."""
        return -inf if self.queue.has_overdue else self.times.overdue_at

    def shift(self, by: float, now: float) -> None:
        """Shift all times after a jump of the clock."""
        self.times.shift(by)
        self.pages.shift(by / _DAY_S, now / _DAY_S)
        self.sessions.shift(by / _DAY_S)

    # -- the valuation ---------------------------------------------------------------

    async def replenish(self, now: float) -> tuple[Sequence[Host], Sequence[int]]:
        """Learn from new commits, and refill the ready queue if it is low."""
        try:
            return await self._replenish(now)
        except SnapshotError as error:
            if self._memory is None:
                raise
            log.warning(
                "the stored ranker state cannot be read: %s; learning from all observations", error
            )
            self._work = self._lost = None
            self.times.is_due = True
            await self._take_in()
            await self.relearn(self._memory.anew())
            return (), ()

    async def _replenish(self, now: float) -> tuple[Sequence[Host], Sequence[int]]:
        if self._lost is not None:
            raise self._lost
        if self._work is not None:
            if not self._work.done():
                return (), ()
            found, self._work = self._work.result(), None
            if found is not None:
                return (), list(await self._fill(found, now))
        if self._at_rest is not None:
            self._begin(asyncio.ensure_future(self._at_rest()))
            self._at_rest = None
            if len(self.pages) >= self._many:
                return (), ()
            await self.at_rest()
            return await self._replenish(now)
        await self._take_in()
        due = self.times.is_due or now >= self.wakes_at()
        supplied = await self._value(now) if due else set()
        return self.learner.hosts.take_new(), list(supplied)

    async def _value(self, now: float) -> set[int]:
        """Value all pages; return the hosts with new pages in the ready queue."""
        self.times.valued(now)
        self.queue.follow(len(self.pages))
        self._make_room_for_overdue(now / _DAY_S)
        away = self._hooks.away(now)
        self._call_hosts(away)
        self._take_back_of_closed()
        choice = ChoiceBounds(
            free=self._free(),
            room=max(0, self.queue.wanted - self.offered(away)),
            favoured=self.quota.favoured,
            sampling=self.draws.is_due,
            saved=self._hooks.saved(now),
            budget=self.budget,
        )
        work = partial(self._appraiser, self.learner.evidence.new(), now / _DAY_S, choice)
        if len(self.pages) < self._many:
            return await self._fill(work(), now)
        self._begin(asyncio.get_running_loop().run_in_executor(None, work))
        return set()

    def _make_room_for_overdue(self, now: float) -> None:
        """Make room in the ready queue for pages that are overdue on this day."""
        pages = self.pages
        if np.isinf(pages["most"]).all():
            return
        overdue = pages.overdue(now) & pages.may_be_requested(now)
        self._supply.clear(np.unique(pages["host"][overdue]).tolist(), OVERDUE)
        self.times.overdue_at = pages.next_overdue(now) * _DAY_S

    def _call_hosts(self, away: Collection[int]) -> None:
        """Pass the called hosts to the sessions, and the ``away`` ones as served."""
        codes = self.learner.hosts.codes
        self.sessions.grow(len(codes))
        for host_id in codes.keys() & away:
            self.sessions.serve(codes[host_id])
        called, self._called = self._called, set()
        self.sessions.call(np.array([codes[host_id] for host_id in called], np.intp))

    def _take_back_of_closed(self) -> None:
        """Remove the pages of closed hosts from the ready queue: their values open the hosts."""
        codes, closed = self.learner.hosts.codes, self.sessions.closed
        of_queue = [codes[host_id] for host_id, _ in self.queue.counts()]
        self._supply.clear(code for code in of_queue if closed[code])

    def _free(self) -> Ints:
        """Return (H,), how many pages of each host may be added to the ready queue."""
        codes = self.learner.hosts.codes
        free = np.full(len(codes), _OF_A_HOST)
        for host_id, count in self.queue.counts():
            free[codes[host_id]] -= count
        return free

    async def _fill(self, found: Valuation, now: float) -> set[int]:
        """Load the chosen pages into the ready queue, and sort it."""
        self.valuation = found
        self._supply.revalue(found.worth)
        self._hooks.save(self.sessions.saves)
        supplied = {self.learner.hosts.ids[code] for code in found.opened.tolist()}
        full = len(self.queue) + len(found.chosen)
        supplied |= await self._supply.bring(found, now)
        if len(self.queue) < full:
            # If a page may no longer be fetched, its host may offer another one.
            self.times.altered(is_drained=True)
        self.times.filled(has_all=found.has_all)
        if found.has_all:
            self.queue.has_all()
        return supplied | await self._supply.draw_audits(found.hazard, now)
