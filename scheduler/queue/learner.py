"""The state of an agenda: its pages, and the ranker that learns from their visits.

Invariant: the state is learnt from commits, in their order. Consequence: after a crash, the same
observations lead to the same state.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

import aiosqlite
import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate.evidence import VisitResults
from freshet.scheduler.queue import pages as pages_agenda
from freshet.scheduler.queue.history import NewEvidence, PendingEvidence
from freshet.scheduler.queue.hooks import AgendaHooks
from freshet.scheduler.queue.hosts import HostCodes
from freshet.scheduler.queue.new_pages import HubPages, recall
from freshet.scheduler.queue.page_rules import TermsOf
from freshet.scheduler.queue.pages import PageTable
from freshet.scheduler.queue.ranker import Ranker, SignalRanker
from freshet.storage.queries import columns
from freshet.storage.queries.columns import WatchedPages
from freshet.storage.records import Acknowledged, Churn, Visit
from freshet.storage.tables import hosts as hosts_tables
from freshet.storage.tables.snapshots import up_to

log = logging.getLogger(__name__)

_DAY_S: Final = 86_400.0


@dataclass(slots=True)
class News:
    """The news since the last call.

    Attributes:
        has_pages: whether pages were found.
        is_first: whether no page was known before.
        visited: the hosts (ids) of the visits.
        overdue: times at which the visited pages become overdue.
        churned: the rows of pages that had new links.
    """

    has_pages: bool = False
    is_first: bool = False
    visited: list[int] = field(default_factory=list)
    overdue: list[float] = field(default_factory=list)
    churned: Sequence[int] = ()


class Learner:
    """The pages, their hosts and links, and a ranker that has learnt from all commits.

    ``terms_of`` returns the user's rules for pages. From ``many`` visits on, a thread does the
    learning.

    Attributes:
        ranker: ranks the pages.
        pages, hubs, hosts: the state of the pages, their links, and their hosts.
        evidence: committed evidence that is not learnt yet.
        amended, corrections: amendments at the time when all was learnt, and moves and withdrawals
            since.
    """

    def __init__(
        self,
        reader: aiosqlite.Connection,
        ranker: Ranker,
        terms_of: TermsOf,
        hooks: AgendaHooks,
        *,
        recheck_days: float,
        many: float,
    ) -> None:
        self._reader = reader
        self._terms_of = terms_of
        self._hooks = hooks
        self._many = many
        self.ranker = ranker
        self.pages, self.hubs, self.hosts = PageTable(recheck_days), HubPages(), HostCodes()
        self.evidence = PendingEvidence(reader, self.pages)
        self.amended = self.corrections = 0
        self._settled: list[Visit] = []
        self._churned: list[tuple[int, float, Churn]] = []
        self._found: list[int] = []
        self._withdrawn: list[int] = []

    # -- all that the store holds --------------------------------------------------

    async def read_all(self) -> None:
        """Load all pages of the store, and learn from all their visits."""
        await self.watch(await columns.pages(self._reader))
        visits = await self._learn_all()
        self.pages.recall_gone(visits)
        await recall(self._reader, self.hubs, self.pages, visits)

    async def relearn(self, ranker: Ranker) -> None:
        """Teach another ranker the store's history with its present corrections."""
        before, self.ranker = self.ranker, ranker
        names = ("host", "area", "importance", "found_at", "pace")
        ranker.add(*(self.pages[name] for name in names))
        if isinstance(before, SignalRanker) and isinstance(ranker, SignalRanker):
            ranker.declare(np.arange(len(before.declared)), before.declared)
        await self._learn_all()

    async def _learn_all(self) -> VisitResults:
        """Learn from all visits and claims of the store; return the visits."""
        self.amended, self.corrections = (await up_to(self._reader)).amendments, 0
        past = await self.evidence.all()
        await self.teach(past)
        return past.visits

    async def teach(self, evidence: NewEvidence) -> None:
        """Teach the ranker, in a thread if there are many visits."""
        with self._hooks.timed("learn"):
            if len(evidence.visits) > self._many:
                log.info("learning from %s visits", f"{len(evidence.visits):,}")
                await asyncio.to_thread(evidence.teach, self.ranker)
            else:
                evidence.teach(self.ranker)

    # -- pages and hosts -----------------------------------------------------------

    async def watch(self, found: WatchedPages) -> None:
        """Append pages, with their state in the store."""
        if not len(found):
            return
        await self.load_hosts(sorted(set(found.host_id.tolist()) - self.hosts.codes.keys()))
        host_ids = found.host_id.tolist()
        codes = np.array([self.hosts.codes[host_id] for host_id in host_ids], np.intp)
        origins = [self.hosts.origins[host_id] for host_id in host_ids]
        terms = self._terms_of(found.page_id, found.url, origins)
        if terms.never.any():
            await self.watch(found.take(~terms.never))
            return
        depths = zip(found.url, found.depth.tolist(), strict=True)
        pace = np.array([pages_agenda.presumed_pace(url, depth) for url, depth in depths])
        rows = self.pages.add(
            found.page_id, urls=found.url, host=codes, importance=terms.importance,
            least=terms.least_days, most=terms.most_days, area=terms.area,
            half_life=terms.half_life_days,
            spelling=np.array([pages_agenda.spelling(url) for url in found.url], np.int64),
            pace=pace.astype(np.float32),
            **self._visit_columns(found),
        )  # fmt: skip
        days = found.found_at / _DAY_S
        self.ranker.add(codes, terms.area, terms.importance, days, pace=pace)
        if isinstance(self.ranker, SignalRanker):
            self.ranker.declare(rows, terms.complete)
        self.hubs.watch(rows, codes, found.url, found.found_at / _DAY_S)

    async def refresh(self, found: WatchedPages) -> None:
        """Update the state of known pages, and append new ones."""
        rows, is_known = self.pages.rows(found.page_id)
        self.pages.refresh(rows, **self._visit_columns(found.take(is_known)))
        await self.watch(found.take(~is_known))

    async def load_hosts(self, host_ids: Sequence[int]) -> None:
        """Load hosts; codes are assigned in this order."""
        known = {host.host_id: host for host in await hosts_tables.load(self._reader, host_ids)}
        self.hosts.add([known[host_id] for host_id in host_ids])

    def _visit_columns(self, found: WatchedPages) -> dict[str, NDArray[Any]]:
        """Return the columns of pages (m,) that depend on their visits."""
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
            "list": found.is_list,
        }

    def _not_before(self, found: WatchedPages) -> Floats:
        asked, since = found.asked / _DAY_S, found.since / _DAY_S
        until = self.pages.elsewhere_until(asked, since, found.permanent)
        failed = self.pages.failed_until(asked, since)
        return np.where(found.elsewhere, until, np.where(found.failed, failed, -np.inf))

    async def reweigh(self, page_ids: Sequence[int] | None) -> None:
        """Apply the present rules to all pages, or to those with these ids."""
        found = await columns.pages(self._reader, page_ids)
        rows, known = self.pages.rows(found.page_id)
        found = found.take(known)
        origins = [self.hosts.origins[host_id] for host_id in found.host_id.tolist()]
        terms = self._terms_of(found.page_id, found.url, origins)
        self.pages.reweigh(rows, terms.importance, terms.half_life_days)
        self.ranker.reweigh(rows, terms.importance)
        if isinstance(self.ranker, SignalRanker):
            self.ranker.declare(rows, terms.complete)

    async def inherit(self, page_ids: Collection[int]) -> None:
        """Copy to these pages the state learnt at their old URLs."""
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

    # -- commits --

    @property
    def has_news(self) -> bool:
        """Return whether visits or pages wait to be learnt."""
        return bool(self._settled or self._found or self._withdrawn)

    def note(self, acknowledged: Acknowledged) -> None:
        """Queue a commit for :meth:`take_in`."""
        if isinstance(acknowledged.entry, Visit):
            self._settled.append(acknowledged.entry)
            if acknowledged.churn is not None:
                it = acknowledged.entry.observation
                self._churned.append((it.page_id, it.at / _DAY_S, acknowledged.churn))
        self._found.extend(acknowledged.pages)
        self.evidence.claimed(acknowledged.claims)
        for _, page_ids in acknowledged.withdrawn:
            self._withdrawn.extend(page_ids)

    async def take_in(self) -> News | None:
        """Process all queued commits; the ranker learns them by :meth:`PendingEvidence.new`.

        Return None if only claims were queued.
        """
        if not self.has_news:
            await self.evidence.load_sources()
            return None
        news = News()
        await self._take_in_pages(news)
        self._drop_withdrawn()
        settled, self._settled = self._settled, []
        for visit in settled:
            await self._take_in_visit(visit, news)
        churned, self._churned = self._churned, []
        news.churned = self.hubs.churned(self.pages, churned)
        await pages_agenda.follow(self._reader, self.pages, settled)
        await self.evidence.load_sources()
        return news

    async def _take_in_pages(self, news: News) -> None:
        found, self._found = self._found, []
        if found:
            news.has_pages, news.is_first = True, not len(self.pages)
            new = [page_id for page_id in found if self.pages.row(page_id) is None]
            self.pages.admit_again(found)
            await self.watch(await columns.pages(self._reader, new))

    def _drop_withdrawn(self) -> None:
        """Stop watching withdrawn pages; those in the ready queue are still visited."""
        withdrawn, self._withdrawn = self._withdrawn, []
        rows = [row for page_id in withdrawn if (row := self.pages.row(page_id)) is not None]
        self.pages.drop(np.array(rows, np.intp))
        self.corrections += len(rows)

    async def _take_in_visit(self, visit: Visit, news: News) -> None:
        row = self.pages.row(visit.due.page_id)
        if row is None:
            return
        arrived_by_move = pages_agenda.arrived_by_move(self.pages, visit)
        if arrived_by_move:
            self.evidence.new().teach(self.ranker)
            await self.inherit([visit.due.page_id])
        if visit.targets is not None:
            is_known = arrived_by_move or visit.due.digests is not None
            # Targets omit links to URLs that are already settled in the store.
            seen = dict.fromkeys((*visit.targets.urls, *(visit.links.urls if visit.links else ())))
            self.hubs.visited(
                row, float(self.pages["since"][row]) if is_known else None,
                visit.observation.at / _DAY_S, seen, self.pages["found_at"],
            )  # fmt: skip
        self.pages.settle(row, visit)
        news.visited.append(visit.due.host_id)
        news.overdue.append(self.pages.overdue_from(row) * _DAY_S)
        self.evidence.seen(row, visit.observation)
