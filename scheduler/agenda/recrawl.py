"""The agenda of a daemon: the worthiest visit now, over all pages, found and known.

Invariant: a page is in the ready queue or in flight at most once, and what it learns comes from
what has committed. Consequence: after a crash the same observations lead to the same order.

*The ready queue.* Pages come from one pass over all watched ones, the worthiest first, at most two
of a host, and are read from the store; :meth:`RecrawlAgenda.next` takes the worthiest whose host is
ready. Where the budget would pay for a visit but no host in the ready queue is ready, the ready
queue is widened: so capacity that hosts refuse goes to the next best pages, and nobody's robots.txt
is requested before there is a use for it.

*The valuation.* Learning from what has come and valuing all pages is one piece of work on arrays.
Where pages are many it is done in a thread, while fetching goes on from the ready queue; until it
is through, nothing else touches the pages, and what comes meanwhile waits. So is a snapshot.

Invariant: all pages are valued again only if time has passed (:meth:`RecrawlAgenda.wakes_at`), or
if a page was taken, committed, found or refused since the last valuation and hosts may offer more
for it. Consequence: where no ready host has a page to offer, the agenda is not hungry, and its pool
waits for a host, a commit or the time; valuations are bounded by visits, and by a share of a core.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import islice
from math import expm1, inf
from random import Random
from typing import Any, Final, TypeAlias

import aiosqlite
import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.agenda import pages as pages_agenda
from freshet.scheduler.agenda.ephemeral import decaying
from freshet.scheduler.agenda.history import NewEvidence, PendingEvidence
from freshet.scheduler.agenda.new_pages import HubPages, recall
from freshet.scheduler.agenda.pages import OVERDUE, PageTable
from freshet.scheduler.agenda.queue import DiscoveryQuota, ReadyQueue, Valuation, worthiest
from freshet.scheduler.agenda.ranker import Ranker
from freshet.scheduler.agenda.rankers import IntervalRanker, PolicyRanker
from freshet.scheduler.agenda.sessions import Sessions
from freshet.scheduler.agenda.site_clock_ranker import SiteClockRanker
from freshet.scheduler.agenda.terms import TermsOf
from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.estimate.evidence import VisitResults
from freshet.scheduler.sources import Rows
from freshet.storage.entries import CLAIM_KINDS, Audit, Host, Reason
from freshet.storage.errors import SnapshotError
from freshet.storage.queries import columns
from freshet.storage.queries.columns import WatchedPages
from freshet.storage.records import Acknowledged, Churn, DueUrl, Visit
from freshet.storage.tables import hosts as hosts_tables
from freshet.storage.tables.snapshots import up_to

log = logging.getLogger(__name__)

_DAY_S: Final = 86_400.0
#: Pages of a host in the ready queue.
_OF_A_HOST: Final = 2
#: Most audits of an unreachable host that wait there.
_OF_AWAY_HOST: Final = 20
_LEAST: Final = 4
_MOST: Final = 4_096
#: The ready queue has one page in this number, so that its order is that of now.
_SHARE: Final = 200
#: Of the hosts of which no page was taken since they opened, so many are looked at.
_UNSERVED: Final = 100
#: Pages read from the store at once.
_READ: Final = 500
#: Pages are valued again after half of the time for which a request must last, from the first to
#: the second of these seconds; where requests are few after an eighth of it, up to the third.
_VALUE_AGAIN_S: Final = (60.0, 900.0, 3_600.0)
#: Seconds between two valuations at least, in all and for each page: one takes 4 % of that.
_REST_S: Final = 0.01
_REST_S_A_PAGE: Final = 8e-6
#: What is not favoured comes after all that is; what comes at once is no exception to that.
_AFTER: Final = 1e-150
_AT_ONCE: Final = 1e120
#: Overdue visits and those that come at once are worth more.
_CANNOT_WAIT: Final = 1e100
#: The share of requests for URLs that led to no content, and how many are saved for them.
_EMPTY_SHARE: Final = 0.02
_EMPTY_MOST: Final = 10.0
#: Claims that nobody polled for: they need not wait for a session.
_PUSHED: Final = tuple(CLAIM_KINDS.index(kind) for kind in ("websub", "ping"))
#: Times a piece of work, by its name.
Timed: TypeAlias = Callable[[str], AbstractContextManager[None]]


class RecrawlAgenda:
    """An :class:`~freshet.storage.records.Agenda` that never ends.

    Where it works in threads (``many`` pages or more), ``wake`` is called when one has ended; its
    work is ``timed``.
    ``away`` says which hosts are unreachable: their pages take no room in the ready queue.
    ``saved`` says how many requests of the budget have been saved, ``save`` how many may be. Where
    the budget ``allows`` no request now, overdue pages alone may be taken, ahead of it.
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
    ) -> None:
        self._reader = reader
        self._terms_of = terms_of
        self._recheck_days = recheck_days
        self._rng = rng
        self._many = many
        self.quota = DiscoveryQuota()
        self.budget = inf
        self.audit_share = self._audits_due = 0.0
        self._new_hosts: list[Host] = []
        self._wanted = _LEAST
        self._valued_at = 0.0
        self._room = 0
        #: A valuation is due after the rest from the last one.
        self._should_value = False
        #: Since the last valuation something was taken or has come; a host that may have a page to
        #: offer has none in the ready queue; all that could come into the ready queue has.
        self._is_altered = self._is_drained = self._has_all = False
        #: A valuation, or a snapshot.
        self._work: asyncio.Future[Valuation | None] | None = None
        self.wake: Callable[[], None] = lambda: None
        self.timed: Timed = lambda _work: nullcontext()
        self.away: Callable[[float], Collection[int]] = lambda _now: ()
        self.saved: Callable[[float], float] = lambda _now: 0.0
        self.save: Callable[[float], None] = lambda _most: None
        self.allows: Callable[[float], bool] = lambda _now: True
        #: Reads a snapshot, if one can be used; writes it at the next turn.
        self.recall: Callable[[], Awaitable[bool]] | None = None
        self.note: Callable[[], Awaitable[None]] | None = None
        #: Returns a ranker that has learnt nothing.
        self.anew: Callable[[], Ranker] | None = None
        self.begin(ranker)

    def begin(self, ranker: Ranker) -> None:
        """Know nothing yet."""
        self.ranker = ranker
        #: What could not be read of a snapshot.
        self.lost: SnapshotError | None = None
        self.pages, self.hubs = PageTable(self._recheck_days), HubPages()
        self.evidence = PendingEvidence(self._reader, self.pages)
        self.queue = ReadyQueue()
        self.sessions = Sessions()
        #: Hosts (ids) that were told of a change: they need not wait for their session.
        self._called: set[int] = set()
        #: Requests that URLs without content may have.
        self._for_empty = 1.0
        #: The last valuation of all pages; None before the first.
        self.valuation: Valuation | None = None
        self._sources: Rows = np.zeros(0, np.intp)
        #: The hosts by their codes for pages and ranker.
        self.host_ids: list[int] = []
        self.host_codes: dict[int, int] = {}
        self.origins: dict[int, str] = {}
        self._places: list[int] = []
        self.costs = np.ones(0)
        self._settled: list[Visit] = []
        self._churned: list[tuple[int, float, Churn]] = []
        self._found: list[int] = []
        self._withdrawn: list[int] = []
        #: Amendments that were known when all was learnt, and moves and withdrawals since.
        self.amended = self.corrections = 0
        #: A valuation is due at once.
        self._must_value = True
        #: When, after the last valuation, a page becomes overdue.
        self._overdue_at = inf

    async def forget(self, ranker: Ranker) -> None:
        """Begin anew with another ranker; nothing may be in flight."""
        await self.rest()
        self.begin(ranker)

    async def at_rest(self) -> None:
        """Wait until nothing learns; the state may be read until the caller awaits."""
        while self._work is not None and not self._work.done():
            await asyncio.wait([self._work])

    async def rest(self) -> None:
        """Wait as :meth:`at_rest`, and ignore a thread's choice."""
        await self.at_rest()
        work, self._work = self._work, None
        if work is not None:
            self._must_value = True
            try:
                work.result()
            except SnapshotError as error:
                self.lost = error

    async def close(self) -> None:
        """Break off what is under way."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)

    async def open(self) -> None:
        """Take in all pages of the store, unless they are known."""
        if len(self.pages) or (self.recall is not None and await self.recall()):
            return
        await self.watch(await columns.pages(self._reader))
        visits = await self._learn_all()
        self.pages.recall_gone(visits)
        await recall(self._reader, self.hubs, self.pages, visits)

    async def relearn(self, ranker: Ranker) -> None:
        """Teach another ranker the store's history as judged now."""
        await self.rest()
        self.ranker = ranker
        ranker.add(*(self.pages[name] for name in ("host", "area", "importance", "found_at")))
        await self._learn_all()

    async def _learn_all(self) -> VisitResults:
        """Learn from all visits and claims of the store; return the visits."""
        self.amended, self.corrections = (await up_to(self._reader)).amendments, 0
        past = await self.evidence.all()
        await self.teach(past)
        return past.visits

    async def teach(self, evidence: NewEvidence) -> None:
        """Let the ranker learn, in a thread if that is much."""
        with self.timed("learn"):
            if len(evidence.visits) > self._many:
                log.info("learning from %s visits", f"{len(evidence.visits):,}")
                await asyncio.to_thread(evidence.teach, self.ranker)
            else:
                evidence.teach(self.ranker)

    async def settle(self) -> None:
        """Learn all that has been committed, without a valuation."""
        await self._take_in()
        await self.teach(self.evidence.new())

    async def reweigh(self, page_ids: Sequence[int] | None = None) -> None:
        """Apply the present terms to all pages, or to those of these ids."""
        found = await columns.pages(self._reader, page_ids)
        rows, known = self.pages.rows(found.page_id)
        found = found.take(known)
        origins = [self.origins[host_id] for host_id in found.host_id.tolist()]
        terms = self._terms_of(found.page_id, found.url, origins)
        self.pages.reweigh(rows, terms.importance, terms.half_life_days)
        self.ranker.reweigh(rows, terms.importance)

    async def inherit(self, page_ids: Collection[int]) -> None:
        """Hand on to these pages what was learnt at their old URLs."""
        for page_id in page_ids:
            row = self.pages.row(page_id)
            if row is None:
                continue
            for old in await columns.moves(self._reader, page_id):
                before = self.pages.row(old)
                if before is not None:
                    self.corrections += 1
                    self.ranker.inherit(before, row)
                    self.hubs.inherit(before, row)

    def next(self, ready: Collection[int], now: float) -> DueUrl | None:
        """Take the worthiest page of the hosts that are ready.

        Those come first whose robots.txt was read for a session and of which no page was taken.
        """
        if not self.allows(now):
            due = self.queue.best(ready, favoured=self.quota.favoured, least=OVERDUE)
        elif (due := self._worthiest(ready)) is None:
            self._widen(now)
        if due is None:
            return None
        self.sessions.serve(self.host_codes[due.host_id])
        self._is_altered = True
        self._is_drained |= due.host_id not in self.queue
        self.quota.took(discovers=due.reason == "discovery", captured=due.digests is not None)
        self._wanted = max(_LEAST, self._wanted - 1)
        row = self.pages.row(due.page_id)
        self._for_empty = min(self._for_empty + _EMPTY_SHARE, _EMPTY_MOST)
        if row is not None:
            self.pages["paid"][row] = self.queue.paid[-1]
            self._for_empty -= float(self.pages["empty"][row])
            self.quota.lists.took(due.host_id, row)
        self._audits_due += self.audit_share
        return due

    def _worthiest(self, ready: Collection[int]) -> DueUrl | None:
        favoured = self.quota.favoured
        unserved = [self.host_ids[code] for code in islice(self.sessions.unserved, _UNSERVED)]
        due = self.queue.best([each for each in unserved if each in ready], favoured=favoured)
        return due or self.queue.best(ready, favoured=favoured)

    def _widen(self, now: float) -> None:
        """Value pages again if a host could offer one that is not in the ready queue."""
        if self._work is not None:
            return
        if not self._has_all and self._wanted < _MOST and len(self.queue) >= self._wanted:
            self._wanted = min(_MOST, 2 * self._wanted)
            self._should_value = True
        self._should_value |= self._is_drained
        self._must_value |= self._should_value and now >= self.wakes_at()

    def overdue_at(self) -> float:
        """Return when a page is overdue, -inf if one is in the ready queue."""
        return -inf if self.queue.has_overdue else self._overdue_at

    def put_back(self, due: DueUrl) -> None:
        """Take back a URL that has not been visited; it comes before all others."""
        self.queue.add(inf, due)

    def wish(self, due: DueUrl) -> None:
        """Let a page for which somebody waits come before all others."""
        row = self.pages.row(due.page_id)
        # One that is taken and not in the ready queue is being visited.
        if row is None or (self.pages["taken"][row]
                           and not self.queue.withdraw(due.host_id, due.page_id)):  # fmt: skip
            return
        self.pages["taken"][row] = self._must_value = True
        self._called.add(due.host_id)
        self.put_back(replace(due, reason="signal"))

    def waiting(self, host_id: int) -> bool:
        """Return whether a page of this host is in the ready queue."""
        return host_id in self.queue and not self.is_closed(host_id)

    def offered(self, away: Collection[int] = ()) -> int:
        """Count the pages in the ready queue of open hosts that are not ``away``."""
        counts = self.queue.counts()
        return sum(n for host, n in counts if host not in away and not self.is_closed(host))

    def is_closed(self, host_id: int) -> bool:
        """Return whether a host waits for its session."""
        code, closed = self.host_codes[host_id], self.sessions.closed
        return code < len(closed) and bool(closed[code])

    def target_of(self, host_id: int) -> int | None:
        """Return the host to which a host has only redirected, by the last valuation, or None."""
        code, found = self.host_codes.get(host_id, -1), self.valuation
        if found is None or not 0 <= code < len(found.targets) or found.targets[code] < 0:
            return None
        return self.host_ids[int(found.targets[code])]

    def done(self, acknowledged: Acknowledged) -> None:
        """Note a commit; it is learnt at the next valuation."""
        if isinstance(acknowledged.entry, Visit):
            self._settled.append(acknowledged.entry)
            if acknowledged.churn is not None:
                it = acknowledged.entry.observation
                self._churned.append((it.page_id, it.at / _DAY_S, acknowledged.churn))
        self._found.extend(acknowledged.pages)
        said = acknowledged.claims
        self.evidence.claimed(said)
        rows, _ = self.pages.rows(said.page_id[np.isin(said.kind, _PUSHED)])
        self._called.update(self.host_ids[code] for code in self.pages["host"][rows].tolist())
        self._must_value |= len(rows) > 0
        for _, page_ids in acknowledged.withdrawn:
            self._withdrawn.extend(page_ids)

    @property
    def hungry(self) -> bool:
        """Return whether there is new evidence, or a valuation that cannot wait."""
        if self._work is not None:
            return self._work.done()
        is_new = self._settled or self._found or self._withdrawn
        return bool(is_new or self._must_value)

    def wakes_at(self) -> float:
        """Return when all pages are valued again: pages never cease to change."""
        if self._work is not None:
            # It wakes its pool.
            return inf
        least, middle, most = _VALUE_AGAIN_S
        lasts = _DAY_S / self.budget
        wait = max(least, min(lasts / 2, middle), min(lasts / 8, most))
        is_low = self._is_altered and len(self.queue) * 2 < self._wanted
        if self._should_value or is_low:
            wait = min(wait, _REST_S + _REST_S_A_PAGE * len(self.pages))
        return min(self._valued_at + wait, self._overdue_at)

    def shift(self, by: float, now: float) -> None:
        """Follow a jump of the time."""
        self._valued_at += by
        self._overdue_at += by
        self.pages.shift(by / _DAY_S, now / _DAY_S)
        self.sessions.shift(by / _DAY_S)

    async def replenish(self, now: float) -> tuple[Sequence[Host], Sequence[int]]:
        """Learn what is new, and fill the ready queue when it runs low."""
        try:
            return await self._replenish(now)
        except SnapshotError as error:
            if self.anew is None:
                raise
            log.warning("what the store has learnt cannot be read: %s; learning anew", error)
            self._work, self.lost, self._must_value = None, None, True
            await self._take_in()
            await self.relearn(self.anew())
            return (), ()

    async def _replenish(self, now: float) -> tuple[Sequence[Host], Sequence[int]]:
        if self.lost is not None:
            raise self.lost
        if self._work is not None:
            if not self._work.done():
                return (), ()
            found, self._work = self._work.result(), None
            if found is not None:
                return (), list(await self._fill(found, now))
        if self.note is not None:
            self._begin(asyncio.ensure_future(self.note()))
            self.note = None
            if len(self.pages) >= self._many:
                return (), ()
            await self.at_rest()
            return await self._replenish(now)
        await self._take_in()
        due = self._must_value or now >= self.wakes_at()
        supplied = await self._value(now) if due else set()
        new_hosts, self._new_hosts = self._new_hosts, []
        return new_hosts, list(supplied)

    async def _take_in(self) -> None:
        """Take in what is new."""
        found, self._found = self._found, []
        if found:
            # The first pages must not wait for the turn after an empty one.
            self._must_value |= not len(self.pages)
            self._is_altered = self._is_drained = True
            new = [page_id for page_id in found if self.pages.row(page_id) is None]
            self.pages.admit_again(found)
            await self.watch(await columns.pages(self._reader, new))
        withdrawn, self._withdrawn = self._withdrawn, []
        # Those in the ready queue go on their way.
        rows = [row for page_id in withdrawn if (row := self.pages.row(page_id)) is not None]
        self.pages.drop(np.array(rows, np.intp))
        self.corrections += len(rows)
        settled, self._settled = self._settled, []
        for visit in settled:
            row = self.pages.row(visit.due.page_id)
            if row is None:
                continue
            self._is_altered = True
            self._is_drained |= visit.due.host_id not in self.queue
            has_come = pages_agenda.has_come(self.pages, visit)
            if has_come:
                self.evidence.new().teach(self.ranker)
                await self.inherit([visit.due.page_id])
            if visit.targets is not None:
                is_known = has_come or visit.due.digests is not None
                self.hubs.visited(
                    row, float(self.pages["since"][row]) if is_known else None,
                    visit.observation.at / _DAY_S, visit.targets.urls, self.pages["found_at"],
                )  # fmt: skip
            self.pages.settle(row, visit)
            overdue_at = self.pages.overdue_from(row) * _DAY_S
            if overdue_at > self._valued_at:
                self._overdue_at = min(self._overdue_at, overdue_at)
            self.evidence.seen(row, visit.observation)
        churned, self._churned = self._churned, []
        self._make_way(self.hubs.churned(self.pages, churned))
        await pages_agenda.follow(self._reader, self.pages, settled)
        await self.evidence.meet_sources()

    def _make_way(self, rows: Sequence[int]) -> None:
        """Note new links of these pages; items of ephemeral sources come first."""
        for row in rows:
            if row in self._sources:
                self._must_value = True
                self._clear(self.pages["host"][row])

    def _clear(self, host: int, least: float = inf) -> None:
        """Take the pages of a host (a code) that are worth less out of the ready queue."""
        back = self.queue.clear(self.host_ids[host], least)
        ids = np.array([due.page_id for due in back], np.int64)
        self.pages["taken"][self.pages.rows(ids)[0]] = False

    def _heed_overdue(self, now: float) -> None:
        """Let pages that are overdue on this day take the place of others of their hosts."""
        if np.isinf(self.pages["most"]).all():
            return
        overdue = self.pages.overdue(now) & self.pages.may_be_asked(now)
        for host in np.unique(self.pages["host"][overdue]).tolist():
            self._clear(host, OVERDUE)
        self._overdue_at = self.pages.next_overdue(now) * _DAY_S

    # -- learning ----------------------------------------------------------------

    async def watch(self, found: WatchedPages) -> None:
        """Append pages, with the state that the store has of them."""
        if not len(found):
            return
        await self.meet(sorted(set(found.host_id.tolist()) - self.host_codes.keys()))
        host_ids = found.host_id.tolist()
        codes = np.array([self.host_codes[host_id] for host_id in host_ids], np.intp)
        origins = [self.origins[host_id] for host_id in host_ids]
        terms = self._terms_of(found.page_id, found.url, origins)
        if terms.never.any():
            await self.watch(found.take(~terms.never))
            return
        rows = self.pages.add(
            found.page_id, urls=found.url, host=codes, importance=terms.importance,
            least=terms.least_days, most=terms.most_days, area=terms.area,
            half_life=terms.half_life_days,
            spelling=np.array([pages_agenda.spelling(url) for url in found.url], np.int64),
            **self.standing(found),
        )  # fmt: skip
        self.ranker.add(codes, terms.area, terms.importance, found.found_at / _DAY_S)
        self.hubs.watch(rows, codes, found.url, found.found_at / _DAY_S)

    async def meet(self, host_ids: Sequence[int]) -> None:
        """Take in hosts; their codes go on in this order."""
        known = {host.host_id: host for host in await hosts_tables.load(self._reader, host_ids)}
        for host in (known[host_id] for host_id in host_ids):
            self.host_codes[host.host_id] = len(self.host_codes)
            self.host_ids.append(host.host_id)
            self.origins[host.host_id] = host.origin
            self._places.append(pages_agenda.place(host.origin))
            self._new_hosts.append(host)

    def standing(self, found: WatchedPages) -> dict[str, NDArray[Any]]:
        """Return the columns of pages (m,) that their visits decide."""
        since = found.since / _DAY_S
        return {
            "since": since,
            "asked": found.asked / _DAY_S,
            "captured": found.captured,
            "absent": np.where(found.gone | found.elsewhere, since, inf),
            "away": found.alias,
            "leads_to": found.leads_to,
            "for_good": found.permanent,
            "had": found.had,
            "gone": found.gone.astype(np.int16),
            "found_at": found.found_at / _DAY_S,
            "not_before": self._not_before(found),
            "sitemap": found.sitemap,
        }

    def _not_before(self, found: WatchedPages) -> Floats:
        asked, since = found.asked / _DAY_S, found.since / _DAY_S
        until = self.pages.elsewhere_until(asked, since, found.permanent)
        failed = self.pages.failed_until(asked, since)
        return np.where(found.elsewhere, until, np.where(found.failed, failed, -np.inf))

    # -- the ready queue ---------------------------------------------------------

    async def _value(self, now: float) -> set[int]:
        """Value all pages; return the hosts of those that came into the ready queue."""
        self._valued_at, self._must_value, self._should_value = now, False, False
        self._is_altered = self._is_drained = False
        self._wanted = max(_LEAST, min(self._wanted, _MOST), len(self.pages) // _SHARE)
        self._heed_overdue(now / _DAY_S)
        counts, away = list(self.queue.counts()), self.away(now)
        self.sessions.grow(len(self.host_ids))
        for host_id in self.host_codes.keys() & away:
            self.sessions.serve(self.host_codes[host_id])
        free = np.full(len(self.host_ids), _OF_A_HOST)
        for host_id, count in counts:
            free[self.host_codes[host_id]] -= count
        self._room = max(0, self._wanted - self.offered(away))
        called, self._called = self._called, set()
        self.sessions.call(np.array([self.host_codes[each] for each in called], np.intp))
        work = partial(
            self._appraise,
            self.evidence.new(),
            now / _DAY_S,
            free,
            favoured=self.quota.favoured,
            sampling=self._audits_due >= 1,
            saved=self.saved(now),
        )
        if len(self.pages) < self._many:
            return await self._fill(work(), now)
        self._begin(asyncio.get_running_loop().run_in_executor(None, work))
        return set()

    def _begin(self, work: asyncio.Future[Valuation | None]) -> None:
        self._work = work
        work.add_done_callback(lambda _: self.wake())

    def _appraise(
        self,
        evidence: NewEvidence,
        now: float,
        free: Ints,
        *,
        favoured: bool | None,
        sampling: bool,
        saved: float,
    ) -> Valuation:
        """Learn from visits, value all pages and choose the worthiest that may be requested.

        A visit is worth what it keeps fresh and what it reveals together. A page that has never
        been captured must be once, sooner or later, so that waiting saves nothing: it is worth a
        turn (the days in which all captured pages could be visited) more than one that has
        certainly changed. Of ephemeral sources, and of what appears there,
        :mod:`freshet.scheduler.agenda.ephemeral` speaks.

        At most ``free`` (H,) pages of each host are chosen; visits for discovery come before all
        others, or after, as ``favoured`` says. ``sampling``: pages will be sampled at random.
        """
        pages, ranker, terms = self.pages, self.ranker, self.quota.terms
        with self.timed("learn"):
            evidence.teach(ranker)
        with self.timed("value"):
            fresh = ranker.worth(now)
        revealing = self.hubs.revealing(pages, now)
        new = (terms.missing if terms.come else 0.0) * revealing.worth
        if isinstance(ranker, IntervalRanker):
            # It leaves pages alone until they are due, whatever a visit might reveal.
            new[~ranker.due(now)] = 0.0
        turn = int(np.count_nonzero(pages["captured"])) / self.budget
        cost = np.append(self.costs, np.ones(len(free) - len(self.costs)))
        (row, rate, faded), (urgent, urgency) = decaying(
            pages, self.hubs, revealing, terms, now, cost=cost
        )
        both = fresh + new
        both[row] = np.maximum(both[row], faded)
        new[row] = np.maximum(new[row], faded)
        worth = pages.weighted(both, now, turn, terms.missing)
        worth[urgent] = _AT_ONCE * urgency
        discovers: Bools = (new > fresh) | ~pages["captured"]
        left = np.where(pages.may_be_asked(now), worth, 0.0)
        names, targets = pages.names(np.array(self._places))
        left[names] = 0.0
        self._price(now)
        left[pages["empty"] & ((worth < self.sessions.price) | (self._for_empty < 1))] = 0.0
        if isinstance(ranker, SiteClockRanker):
            lists = self.quota.lists
            lists.untold = ranker.untold()
            hosts = [self.host_ids[code] for code in pages["host"][lists.untold].tolist()]
            spent = lists.untold[[lists.is_spent(host_id) for host_id in hosts]]
            # What leads to new pages tells something; bounds and wishes stand above the share.
            left[spent[~discovers[spent] & (worth[spent] < _CANNOT_WAIT)]] = 0.0
        opened = self._sessions_begun(now, left, new, turn, saved=saved)
        left[self.sessions.closed[pages["host"]]] = 0.0
        if favoured is not None:
            left[discovers != favoured] *= _AFTER
        return Valuation(
            at=now,
            worth=worth,
            discovers=discovers,
            chosen=worthiest(left, pages["host"], free, self._room),
            sources=row,
            arrivals=rate,
            urgent=urgent,
            reveals=revealing.pages,
            hazard=ranker.beliefs(now).hazard if sampling else np.empty(0),
            unknown=revealing.unknown,
            per_day=revealing.per_day,
            opened=opened,
            targets=targets,
        )

    def _price(self, now: float) -> None:
        """Compute the price of a request, by a ranker whose values have one."""
        if not isinstance(self.ranker, PolicyRanker) and self.sessions.should_reprice(now):
            held = self.pages["captured"] & (self.pages["gone"] == 0)
            rate = self.ranker.beliefs(now).rate
            self.sessions.reprice(rate[held], self.pages["importance"][held], self.budget, now)

    def _sessions_begun(
        self, now: float, worth: Floats, new: Floats, turn: float, *, saved: float
    ) -> Rows:
        """Open the hosts whose time has come; return their codes.

        ``worth`` and ``new`` (n,) are those of visits now, in all and for what they reveal.
        """
        pages, sessions, host = self.pages, self.sessions, self.pages["host"]
        has_price = not isinstance(self.ranker, PolicyRanker)
        if not has_price and sessions.pays_for_all(self.budget):
            sessions.open_all()
            return np.zeros(0, np.intp)
        if not sessions.close(now).any():
            return np.zeros(0, np.intp)
        hosts, held = len(sessions.closed), pages["captured"] & (pages["gone"] == 0)
        later, tomorrow = worth, now + 1.0
        if has_price:
            later = pages.weighted(
                self.ranker.worth(tomorrow) + new, tomorrow, turn, self.quota.terms.missing
            )
            later[worth <= 0] = 0.0
        at_once = np.bincount(host[worth >= _CANNOT_WAIT], minlength=hosts) > 0
        counts = np.bincount(host[held], minlength=hosts)
        asked = pages["captured"] | np.isfinite(pages["absent"])
        # What a visit is worth by another policy has no price: then nothing waits for more.
        is_new = (np.bincount(host[asked], minlength=hosts) == 0) | (not has_price)
        at_once |= is_new & (np.bincount(host[worth > 0], minlength=hosts) > 0)
        return sessions.open(
            worth, later, host,
            at_once=at_once, pages=counts, saved=saved, now=now, budget=self.budget,
        )  # fmt: skip

    async def _fill(self, found: Valuation, now: float) -> set[int]:
        """Load the chosen pages into the ready queue, and sort it."""
        self.valuation = found
        self._sources = found.sources
        self.queue.revalue(lambda due: self._now_worth(due, found.worth))
        self.save(self.sessions.saves)
        supplied = {self.host_ids[code] for code in found.opened.tolist()}
        full = len(self.queue) + len(found.chosen)
        for first in range(0, len(found.chosen), _READ):
            supplied |= await self._bring(found.chosen[first : first + _READ], found, now)
        if len(self.queue) < full:
            # For a page that may not be fetched any more, its host may offer another one.
            self._is_altered = self._is_drained = True
        self._has_all = len(found.chosen) < self._room
        if self._has_all:
            self._wanted = max(_LEAST, len(self.queue))
        while len(found.hazard) and self._audits_due >= 1:
            self._audits_due -= 1
            supplied |= await self._draw_audit(found.hazard, now)
        return supplied

    async def _draw_audit(self, hazard: Floats, now: float) -> set[int]:
        """Draw a captured page, each equally likely; return its host.

        ``hazard`` (n,) are the changes expected since the last visit. What is in the ready queue is
        drawn as well: only a page in flight is passed over.
        """
        pages, known = self.pages, slice(len(hazard))
        captured = np.flatnonzero(pages["captured"][known] & (pages["gone"][known] == 0))
        if not len(captured):
            return set()
        row = int(captured[self._rng.randrange(len(captured))])
        host_id, page_id = self.host_ids[pages["host"][row]], int(pages["page_id"][row])
        if self.queue.count(host_id) > _OF_AWAY_HOST:
            return set()
        if pages["taken"][row]:
            due = self.queue.withdraw(host_id, page_id)
        else:
            due = next(iter(await columns.due_urls(self._reader, [page_id], now)), None)
        if due is None:
            return set()
        x, since = float(hazard[row]), float(pages["since"][row]) * _DAY_S
        audit = Audit(float(pages["importance"][row]), since, -expm1(-x), x)
        pages["taken"][row] = True
        self.queue.add(inf, replace(due, audit=audit, reason="audit"))
        return {due.host_id}

    async def _bring(self, rows: Rows, found: Valuation, now: float) -> set[int]:
        """Put the pages of these rows into the ready queue; return their hosts.

        What may not be fetched any more is watched no longer.
        """
        rows = rows[~self.pages["taken"][rows]]
        page_ids = self.pages["page_id"][rows].tolist()
        self.pages["taken"][rows] = True
        by_page = {due.page_id: due for due in await columns.due_urls(self._reader, page_ids, now)}
        hosts = set()
        for row, page_id in zip(rows.tolist(), page_ids, strict=True):
            due = by_page.get(page_id)
            if due is None:
                self.pages.drop(np.array([row]))
                continue
            reason: Reason = "discovery" if found.discovers[row] else "refresh"
            due = replace(due, attempt=int(self.pages["failures"][row]), reason=reason)
            self.queue.add(float(found.worth[row]), due)
            hosts.add(due.host_id)
        return hosts

    def _now_worth(self, due: DueUrl, worth: Floats) -> float:
        row = self.pages.row(due.page_id)
        # What was found since a thread began is not in its answer.
        is_first = due.audit or due.reason == "signal" or row is None or row >= len(worth)
        return inf if is_first else float(worth[row])
