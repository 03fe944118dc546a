"""The state of a daemon: the pages of a store, and the ranker that has learnt from them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from math import inf
from random import Random
from typing import Final, Protocol

import aiosqlite
import numpy as np

from freshet.config.settings import Settings
from freshet.config.sites import Sites
from freshet.crawler.run.capacities import CapacityLimits, costs_of, exchange_of, limits_of
from freshet.crawler.run.importance import (
    Areas,
    ImportanceData,
    interests,
    learnt_items,
    terms,
    weigh,
)
from freshet.crawler.run.orders import parsed
from freshet.scheduler import policy
from freshet.scheduler.arrays import Bools, Column, Ints
from freshet.scheduler.policies.greedy_index import SearchQuality
from freshet.scheduler.queue.hooks import AgendaHooks
from freshet.scheduler.queue.page_rules import PageRules
from freshet.scheduler.queue.ranker import Ranker
from freshet.scheduler.queue.rankers import PolicyRanker, ranker_of
from freshet.scheduler.queue.recrawl import RecrawlAgenda
from freshet.scheduler.queue.snapshots import ExtraArrays, Snapshots
from freshet.storage.database import Database
from freshet.storage.entries import Host
from freshet.storage.records import StoredSeed
from freshet.storage.tables import hosts as hosts_tables

#: Keys of ``sites`` that affect the rules of pages.
_TERMS: Final = (
    "match", "never", "max_pages", "importance", "least_days", "most_days", "ephemeral",
    "half_life_hours",
)  # fmt: skip
#: The values last written to ``estimate``, for each page.
NOTED: Final = np.dtype([(name, np.float64) for name in ("at", "asked", "rate", "hazard")])
#: Smaller relative changes of a mark are ignored.
_MOVED: Final = 0.02


class SiteChoice(Protocol):
    """The sites of a store that a daemon keeps fresh."""

    @property
    def named(self) -> str:
        """A text that identifies this choice."""

    def left_out(self, urls: Sequence[str]) -> Bools:
        """Return a mask (m,) of the URLs that are never visited."""


class DaemonState:
    """The pages, their rules and the ranker of a daemon.

    ``choice`` decides which pages are never visited. The agenda calls ``hooks`` for its
    surroundings, and this state for what former runs learnt. The store is not read before
    :meth:`weigh` and ``agenda.open()``.

    Attributes:
        settings: the settings in force; :meth:`follow` replaces them.
        ranker: values the pages, by the ``policy``.
        weighing: the importance of pages.
        agenda: the crawl queue: pages and expected new links, valued by the ranker.
        noted: (n,), of :data:`NOTED`; the last pages may be missing.
    """

    def __init__(
        self,
        reader: aiosqlite.Connection,
        settings: Settings,
        ranker: Ranker,
        *,
        seeds: Sequence[StoredSeed] = (),
        choice: SiteChoice | None = None,
        rng: Random | None = None,
        many: float = inf,
        hooks: AgendaHooks | None = None,
    ) -> None:
        self._reader = reader
        self._area_of = Areas()
        self._choice = choice
        self._represented: dict[int, int] = {}
        self.noted = Column[np.void](NOTED)
        self.ranker = ranker
        self.weighing = ImportanceData(settings.daemon.importance, seeds)
        self.agenda = RecrawlAgenda(
            reader,
            ranker,
            self.terms,
            rng or Random(0),
            recheck_days=settings.crawl.permanent_recheck_days,
            many=many,
            hooks=hooks,
            memory=self,
        )
        self.snapshots = Snapshots(self.agenda)
        self.follow(settings)

    def anew(self) -> Ranker:
        """Replace the ranker by one that has learnt nothing, and return it."""
        daemon = self.settings.daemon
        self.ranker = ranker_of(daemon.policy, parsed(daemon.budget))
        self.noted = Column[np.void](NOTED)
        return self.ranker

    # -- in the store --

    async def write(self, database: Database) -> None:
        """Write a snapshot of the learnt state; no valuation may be running."""
        await self.snapshots.write(database, self._others)

    async def close(self) -> None:
        """Cancel work in progress, and stop reading the store."""
        await self.agenda.close()
        self.snapshots.close()

    def _others(self) -> ExtraArrays:
        area, same = {"roots": self._area_of.roots, "codes": self._area_of.codes}, self.weighing
        return ExtraArrays(
            settings=self._settings_digest(),
            whole={
                "areas": np.frombuffer(json.dumps(area).encode(), np.uint8),
                "same": np.array(list(same.representatives.items()), np.int64).reshape(-1, 2),
            },
            columns={"noted": self.noted.rows},
        )

    def _settings_digest(self) -> str:
        """Return a digest of the settings that determine the pages and their rules."""
        settings, daemon = self.settings, self.settings.daemon
        listed = [
            (
                it.root_url or it.url,
                it.importance,
                it.half_life_hours,
                it.half_life_hours and it.page_id,
            )
            for it in self.weighing.seeds
        ]
        sites = [[getattr(it, name) for name in _TERMS] for it in settings.sites]
        parts = (daemon.policy, parsed(daemon.budget), daemon.importance, sites, listed)
        recheck, chosen = settings.crawl.permanent_recheck_days, ""
        if self._choice is not None:
            chosen = self._choice.named
        text = json.dumps([*parts, recheck, chosen])
        return blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()

    async def recall(self) -> bool:
        """Load a snapshot if it was made with these settings; return whether that succeeded."""
        self.noted = Column[np.void](NOTED)
        found = await self.snapshots.read(self._reader, self._settings_digest(), self._take_over)
        if not found:
            self._area_of = Areas()
            self.agenda.begin(self.anew())
            return False
        before = replace(self.weighing, representatives=self._represented, marks={})
        touched = self.weighing.touched(before)
        if touched is None or touched:
            await self.agenda.learner.reweigh(touched)
        return True

    def _take_over(self, others: ExtraArrays) -> None:
        """Restore the state outside of the agenda, before the agenda takes in new pages.

        Raises:
            TypeError: another version wrote it.
        """
        area = json.loads(bytes(others.whole["areas"]))
        self._area_of.roots, self._area_of.codes = area["roots"], area["codes"]
        self._represented = dict(others.whole["same"].tolist())
        if others.columns["noted"].dtype != NOTED:
            raise TypeError("these are estimates of another version")
        self.noted.extend(others.columns["noted"])

    def follow(self, settings: Settings) -> None:
        """Apply these settings to the agenda."""
        self.settings, daemon = settings, settings.daemon
        self._sites = Sites(settings.sites)
        self.policy = policy.load(daemon.policy)
        self.agenda.draws.share, self.agenda.budget = daemon.audit_share, parsed(daemon.budget)
        exchange = exchange_of(settings.ephemeral, daemon)
        scopes = {settings.crawl.scope, *(each.scope for each in settings.sites)} - {None, "list"}
        learnt = self.agenda.quota.terms.learnt
        self.agenda.quota.terms = replace(exchange, come=bool(scopes), learnt=learnt)

    def terms(self, page_id: Ints, urls: Sequence[str], origins: Sequence[str]) -> PageRules:
        """Return the rules of pages; ``origins`` are the origins of their hosts."""
        known = {origin: code for code, origin in enumerate(dict.fromkeys(origins))}
        host = np.array([known[origin] for origin in origins], np.intp)
        importance = self.weighing.importances(page_id, urls, host, list(known))
        found = terms(
            urls,
            self._area_of(urls),
            importance,
            self._sites,
            self.weighing.half_lives(page_id, urls),
        )
        if self._choice is not None:
            found.never[:] |= self._choice.left_out(urls)
        return found

    async def reset(self, ranker: Ranker) -> None:
        """Read all pages again with another ranker; no request may be in progress."""
        self.ranker = ranker
        self._area_of, self.noted = Areas(), Column[np.void](NOTED)
        await self.agenda.forget(ranker)

    async def relearn(self, ranker: Ranker) -> None:
        """Make another ranker learn the same pages from the corrected store."""
        self.ranker, self.noted = ranker, Column[np.void](NOTED)
        await self.agenda.relearn(ranker)

    async def weigh(self) -> list[int] | None:
        """Recompute the importance; return the ids of the changed pages (None: any)."""
        await self.learn_items()
        before, marks = self.weighing, None
        if isinstance(self.policy, SearchQuality) and (known := interests()) is not None:
            marks = steady(await known.marks(self._reader), before.marks)
        self.weighing = await weigh(self._reader, self.settings.daemon.importance, marks)
        return self.weighing.touched(before)

    async def learn_items(self) -> None:
        """Learn from the store's clicks how the items of ephemeral sources lose value."""
        learnt = await learnt_items(self._reader, self.settings.ephemeral)
        self.agenda.quota.terms = replace(self.agenda.quota.terms, learnt=learnt)

    async def hosts(self) -> list[Host]:
        """Return the hosts of the pages, in the order of their codes."""
        known = await hosts_tables.load(self._reader, self.agenda.learner.hosts.ids)
        by_id = {host.host_id: host for host in known}
        return [by_id[host_id] for host_id in self.agenda.learner.hosts.ids]

    async def limits(self) -> CapacityLimits:
        """Return the visits that politeness allows, and set them for agenda and ranker.

        No learning happens until the caller awaits again.
        """
        in_order = await self.hosts()
        exchange_s = await hosts_tables.exchange_s(self._reader)
        await self.agenda.at_rest()
        polite = self.settings.politeness
        self.agenda.learner.hosts.costs = costs_of(in_order, self.settings)
        found = limits_of(in_order, exchange_s, polite.delay_s, polite.connections_per_host)
        if isinstance(self.ranker, PolicyRanker):
            self.ranker.hosts(found.queue, found.per_day, self.agenda.learner.hosts.costs)
        return found


def steady(marks: Mapping[int, float], before: Mapping[int, float]) -> dict[int, float]:
    """Return the marks, with the former value of those that differ by less than a fiftieth."""
    return {
        page: old if (old := before.get(page)) and abs(mark / old - 1) < _MOVED else mark
        for page, mark in marks.items()
    }


async def load_state(reader: aiosqlite.Connection, settings: Settings) -> DaemonState:
    """Read all pages, and make the ranker of the settings' policy learn from their visits.

    A daemon does the same at its start: the ranker's state depends on the visits only. Raises as
    :func:`ranker_of`.
    """
    ranker = ranker_of(settings.daemon.policy, parsed(settings.daemon.budget))
    state = DaemonState(reader, settings, ranker)
    await state.weigh()
    await state.agenda.open()
    return state
