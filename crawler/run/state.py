"""The state of a daemon: the pages of a store, and the ranker that has learnt from them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from random import Random

import aiosqlite
import numpy as np

from freshet.config.settings import Settings
from freshet.config.sites import Sites
from freshet.crawler.capacities import Limits, costs_of, exchange_of, limits_of
from freshet.crawler.importance import Weighing, areas, terms, weigh
from freshet.crawler.run.orders import parsed
from freshet.scheduler import policy
from freshet.scheduler.agenda.ranker import Ranker
from freshet.scheduler.agenda.rankers import PolicyRanker, ranker_of
from freshet.scheduler.agenda.recrawl import RecrawlAgenda
from freshet.scheduler.agenda.terms import Terms
from freshet.scheduler.arrays import Bools, Ints
from freshet.storage.entries import Host
from freshet.storage.records import StoredSeed
from freshet.storage.tables import hosts as hosts_tables


class DaemonState:
    """Pages, values of new pages, page rules and importance, for a ranker.

    ``left_out`` returns a mask of URLs that are never visited. The store is not read before
    :meth:`weigh` and ``agenda.open()``.

    Attributes:
        settings: the settings in force; :meth:`follow` replaces them.
        ranker: values the pages, by the ``policy``.
        weighing: the importance of pages.
        agenda: the pages and their expected new links, valued by the ranker.
    """

    def __init__(
        self,
        reader: aiosqlite.Connection,
        settings: Settings,
        ranker: Ranker,
        *,
        seeds: Sequence[StoredSeed] = (),
        left_out: Callable[[Sequence[str]], Bools] | None = None,
        rng: Random | None = None,
        many: float = inf,
    ) -> None:
        self._reader = reader
        self._area_of = areas()
        self._left_out = left_out
        self.ranker = ranker
        self.weighing = Weighing(settings.daemon.importance, seeds)
        self.agenda = RecrawlAgenda(
            reader,
            ranker,
            self.terms,
            rng or Random(0),
            recheck_days=settings.crawl.permanent_recheck_days,
            many=many,
        )
        self.follow(settings)

    def follow(self, settings: Settings) -> None:
        """Apply these settings to the agenda."""
        self.settings, said = settings, settings.daemon
        self._sites = Sites(settings.sites)
        self.policy = policy.load(said.policy)
        self.agenda.audit_share, self.agenda.budget = said.audit_share, parsed(said.budget)
        exchange = exchange_of(settings.ephemeral, said)
        self.agenda.quota.terms = replace(exchange, come=settings.crawl.scope != "list")

    def terms(self, page_id: Ints, urls: Sequence[str], origins: Sequence[str]) -> Terms:
        """Return the terms of pages; ``origins`` are those of their hosts."""
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
        if self._left_out is not None:
            found.never[:] |= self._left_out(urls)
        return found

    async def begin_anew(self, ranker: Ranker) -> None:
        """Read all pages again with another ranker; no request may be in flight."""
        self.ranker = ranker
        await self.agenda.forget(ranker)

    async def learn_anew(self, ranker: Ranker) -> None:
        """Let another ranker learn the same pages from the corrected store."""
        self.ranker = ranker
        await self.agenda.relearn(ranker)

    async def weigh(self) -> list[int] | None:
        """Compute the importance anew; return the ids of the changed pages (None: any)."""
        before = self.weighing
        self.weighing = await weigh(self._reader, self.settings.daemon.importance)
        return self.weighing.touched(before)

    async def hosts(self) -> list[Host]:
        """Return the hosts of the pages, in the order of their codes."""
        known = await hosts_tables.load(self._reader, self.agenda.host_ids)
        by_id = {host.host_id: host for host in known}
        return [by_id[host_id] for host_id in self.agenda.host_ids]

    async def limits(self) -> Limits:
        """Return the visits that politeness allows, and set them for agenda and ranker.

        No learning happens until the caller awaits again.
        """
        in_order = await self.hosts()
        exchange_s = await hosts_tables.exchange_s(self._reader)
        await self.agenda.at_rest()
        polite = self.settings.politeness
        self.agenda.costs = costs_of(in_order, polite.delay_s)
        found = limits_of(in_order, exchange_s, polite.delay_s, polite.connections_per_host)
        if isinstance(self.ranker, PolicyRanker):
            self.ranker.hosts(found.queue, found.per_day, self.agenda.costs)
        return found


async def load_state(reader: aiosqlite.Connection, settings: Settings) -> DaemonState:
    """Read all pages and let the ranker of the settings' policy learn from their visits.

    A daemon does the same at its start: the ranker's knowledge depends on the visits alone. Raises
    as :func:`ranker_of`.
    """
    ranker = ranker_of(settings.daemon.policy, parsed(settings.daemon.budget))
    state = DaemonState(reader, settings, ranker)
    await state.weigh()
    await state.agenda.open()
    return state
