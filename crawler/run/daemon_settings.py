"""The order, the settings and the budget by which a daemon goes, and what changes them.

That is a reload, a browser, and for a default budget the number of pages: one request a page and
day, at most one a second. Pages that are visited at a fixed interval count as often as that, and
each host once, for its robots.txt. While pages wait for their first visit the daemon sends one
request a second, so that a new site is read in hours. That is two requests for each of them, and
ten: URLs of a host that never answers cannot keep it up.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from math import inf, log2
from typing import TYPE_CHECKING, Final

import numpy as np

from freshet.config.sites import with_stored
from freshet.crawler.admission.admit import Scope
from freshet.crawler.run.rules import scope_at
from freshet.storage.queries import columns
from freshet.storage.tables import frontier, runs
from freshet.storage.tables.runs import VISIT, SiteSetting

if TYPE_CHECKING:
    from collections.abc import Sequence

    import aiosqlite

    from freshet.config.settings import Settings
    from freshet.crawler.frontier.politeness import Pacer
    from freshet.crawler.run.orders import DaemonOrder
    from freshet.crawler.run.pool import FetchPool
    from freshet.scheduler.arrays import Bools
    from freshet.scheduler.queue.recrawl import RecrawlAgenda
    from freshet.storage.database import Database
    from freshet.storage.records import StoredSeed

#: Settings that map hosts to host queues cannot change while the queues are in use.
_OF_QUEUES: Final = ("key", "groups")
#: Requests a day at most without an order: one a second.
MOST_PER_DAY: Final = 86_400.0
_FIRST: Final = 2.0
_LEAST_FIRST: Final = 10.0
#: A budget that differs by less is not changed.
_MOVED: Final = 0.05
#: What is set in a browser is looked for this often.
_LOOKED_FOR_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class ChosenSites:
    """The seeds that a daemon keeps fresh, and the scope of the store's other seeds."""

    seeds: Sequence[StoredSeed]
    others: Scope

    @property
    def named(self) -> str:
        """Return the roots that are left out, as text."""
        return repr(sorted(self.others.roots()))

    def left_out_of(self, urls: Sequence[str], scope: Scope) -> Bools:
        """Return a mask (m,) of the pages that belong to other seeds only."""
        if not self.others.roots():
            return np.zeros(len(urls), np.bool_)
        return np.array(
            [self.others.contains(url) and not scope.contains(url) for url in urls], np.bool_
        )

    def beside(self, before: ChosenSites) -> str:
        """Return the change in the number of seeds for a log line, or ""."""
        now, then = ({seed.url for seed in each.seeds} for each in (self, before))
        came, went = len(now - then), len(then - now)
        return f", {came:,} seeds added, {went:,} removed" if came or went else ""


async def chosen_sites(
    connection: aiosqlite.Connection, named: Sequence[StoredSeed], settings: Settings
) -> ChosenSites:
    """Return the stored seeds that are ``named``; all of them if none is."""
    stored = await runs.load(connection)
    urls = {seed.url for seed in named} or {seed.url for seed in stored}
    others = [seed.root_url or seed.url for seed in stored if seed.url not in urls]
    return ChosenSites(
        [seed for seed in stored if seed.url in urls], Scope(scope_at(settings), others)
    )


@dataclass(frozen=True, slots=True)
class InForce:
    """The order of a daemon with its settings, the sites that it chooses, and two budgets.

    Attributes:
        per_day: requests a day.
        learns_by: the budget by which the ranker learns.
    """

    order: DaemonOrder
    settings: Settings
    sites: ChosenSites
    per_day: float
    learns_by: float

    @property
    def of_ranker(self) -> Settings:
        """Return the settings with the budget by which the ranker learns."""
        return with_budget(self.settings, self.order, self.learns_by)


def learning_budget(order: DaemonOrder, per_day: float) -> float:
    """Return the budget by which a ranker learns: a default one is followed in steps."""
    # A power of two: where the pages hardly change, what it has learnt serves after the next start.
    return float(2.0 ** round(log2(per_day))) if order.budget is None else per_day


def with_budget(settings: Settings, order: DaemonOrder, per_day: float) -> Settings:
    """Return the settings with this budget and the policy of the order."""
    said = {"budget": f"{per_day:.12g}/day", "policy": order.policy}
    daemon = settings.daemon.model_copy(update=said)
    return settings.model_copy(update={"daemon": daemon})


def for_store(settings: Settings) -> str:
    """Return the settings as a run's row keeps them, without those of the store itself."""
    return with_stored(settings, ()).model_dump_json()


# -- reload ------------------------------------------------------------------


def taken_over(running: Settings, wanted: Settings) -> Settings:
    """Return the running settings with the groups that a reload can change."""
    keys = {name: getattr(running.politeness, name) for name in _OF_QUEUES}
    politeness = wanted.politeness.model_copy(update=keys)
    groups = {name: it for name, it in wanted.groups().items() if it.RELOADED}
    return running.model_copy(update={**groups, "sites": wanted.sites, "politeness": politeness})


def waiting_for_a_restart(running: Settings, wanted: Settings) -> str:
    """Return the changed settings that need a restart, for a log line, or ""."""
    now, then = running.model_dump(), wanted.model_dump()
    names = [
        f"{group}.{key}"
        for group, values in then.items()
        if isinstance(values, dict)
        for key, value in values.items()
        if value != now[group][key]
    ]
    return f"; restart the daemon to apply {', '.join(names)}" if names else ""


# -- the browser -------------------------------------------------------------


class BrowserWishes:
    """Looks for what was set in a browser, and has the pages visited that are wished for."""

    def __init__(self, database: Database, agenda: RecrawlAgenda, pool: FetchPool) -> None:
        self._database = database
        self._agenda = agenda
        self._pool = pool
        #: Wishes that were heeded, and when new ones are looked for.
        self._heeded, self._next_at = set[SiteSetting](), -inf

    def begin_anew(self) -> None:
        """Heed all wishes again: the queue begins anew."""
        self._heeded = set()

    def shift(self, by: float) -> None:
        """Follow a jump of the time."""
        self._next_at += by

    async def heed(self, settings: Settings, now: float) -> Settings:
        """Heed new wishes, if it is time; return the settings with what was set."""
        hosts = self._pool.frontier
        if now < self._next_at or not hosts.host_count:
            return settings
        self._next_at = now + _LOOKED_FOR_S
        asyncio.get_running_loop().call_later(_LOOKED_FOR_S, self._pool.wake)
        found = await runs.site_settings(self._database.reader)
        wishes = {it for it in found if it.key == VISIT}
        new = [it.match for it in found if it in wishes and it not in self._heeded]
        self._heeded = wishes
        for due in await frontier.of_urls(self._database.reader, new):
            if hosts.knows(due.host_id):
                self._agenda.wish(due)
                hosts.wake(due.host_id)
        return with_stored(settings, found)


# -- the default budget ------------------------------------------------------


async def budget_of_store(reader: aiosqlite.Connection, seeds: int) -> float:
    """Return the requests a day for the pages of a store, and at least for its seeds."""
    return limited(max(await columns.watched(reader), seeds))


def limited(wanted: float) -> float:
    """Return the requests a day for so many visits a day."""
    return min(max(1.0, wanted), MOST_PER_DAY)


class DefaultBudget:
    """Follows the pages of an agenda.

    Attributes:
        steady: requests a day once all pages were visited.
        first: whether pages wait for their first visit, at one request a second.
        waiting: how many do.
        counts_at: when the pages are counted next.
    """

    def __init__(self, agenda: RecrawlAgenda, pacer: Pacer, per_day: float) -> None:
        self._agenda = agenda
        self._pacer = pacer
        self._known = 0
        self._left = _LEAST_FIRST
        self._spent = pacer.spent
        self.steady = per_day
        self.first = True
        self.waiting = 0
        self.counts_at = -inf

    def per_day(self) -> float:
        """Return the budget for the pages that are known now."""
        pages = self._agenda.pages
        new = slice(min(self._known, len(pages)), None)
        waiting = ~pages["captured"] & (pages["gone"] == 0) & np.isneginf(pages["not_before"])
        self._left += _FIRST * int(np.count_nonzero(waiting[new]))
        if self.first:
            self._left = max(0.0, self._left - (self._pacer.spent - self._spent))
        self._known, self._spent = len(pages), self._pacer.spent
        self.waiting = int(np.count_nonzero(waiting))
        if not self.waiting and len(pages):
            self._left = 0.0
        self.first = (self.waiting > 0 or not len(pages)) and self._left > 0
        wanted = limited(self._visits())
        if abs(wanted / self.steady - 1) > _MOVED and len(pages):
            self.steady = wanted
        return MOST_PER_DAY if self.first else self.steady

    def _visits(self) -> float:
        pages = self._agenda.pages
        there = pages["gone"] == 0
        count, per_day = recurring(self._agenda)
        return int(np.count_nonzero(there)) - count + per_day + len(self._agenda.learner.hosts)


def recurring(agenda: RecrawlAgenda) -> tuple[int, float]:
    """Return how many pages are visited at a fixed interval, and how often a day in all."""
    pages = agenda.pages
    those = (pages["gone"] == 0) & (pages["least"] == pages["most"])
    return int(np.count_nonzero(those)), float((1 / pages["most"][those]).sum())
