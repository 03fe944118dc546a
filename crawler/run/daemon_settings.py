"""The order, settings and budget of a daemon, and their changes at run time.

They change by a reload, by a browser and, for a default budget, with the number of pages: one
request per page and day, at most one a second. Pages with a fixed interval count by that interval,
and each host counts once for its robots.txt. While pages wait for their first visit, the daemon
sends one request a second, so that it reads a new site within hours. That rate is limited to two
requests per waiting page plus ten, so that URLs of a host that never answers cannot keep it up.
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
#: Upper limit of the default budget: one request a second.
MOST_PER_DAY: Final = 86_400.0
_FIRST: Final = 2.0
_LEAST_FIRST: Final = 10.0
#: Relative changes of the budget below this are ignored.
_MOVED: Final = 0.05
#: Seconds between two checks for settings made in a browser.
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
        """Return a mask (m,) of the pages that only belong to other seeds."""
        if not self.others.roots():
            return np.zeros(len(urls), np.bool_)
        return np.array(
            [self.others.contains(url) and not scope.contains(url) for url in urls], np.bool_
        )

    def beside(self, before: ChosenSites) -> str:
        """Return the change in the number of seeds for a log line, or ""."""
        now, then = ({seed.url for seed in each.seeds} for each in (self, before))
        added, removed = len(now - then), len(then - now)
        return f", {added:,} seeds added, {removed:,} removed" if added or removed else ""


async def chosen_sites(
    connection: aiosqlite.Connection, named: Sequence[StoredSeed], settings: Settings
) -> ChosenSites:
    """Return the stored seeds in ``named``, or all if it is empty."""
    stored = await runs.load(connection)
    urls = {seed.url for seed in named} or {seed.url for seed in stored}
    others = [seed.root_url or seed.url for seed in stored if seed.url not in urls]
    return ChosenSites(
        [seed for seed in stored if seed.url in urls], Scope(scope_at(settings), others)
    )


@dataclass(frozen=True, slots=True)
class InForce:
    """An order in force: its settings, its sites and two budgets.

    Attributes:
        per_day: requests a day.
        learns_by: the budget with which the ranker learns.
    """

    order: DaemonOrder
    settings: Settings
    sites: ChosenSites
    per_day: float
    learns_by: float

    @property
    def of_ranker(self) -> Settings:
        """The settings with the ranker's budget."""
        return with_budget(self.settings, self.order, self.learns_by)


def learning_budget(order: DaemonOrder, per_day: float) -> float:
    """Return the ranker's budget: a default budget is rounded to a power of two."""
    # Then a ranker's snapshot stays valid at the next start, unless the number of pages changed
    # much.
    return float(2.0 ** round(log2(per_day))) if order.budget is None else per_day


def with_budget(settings: Settings, order: DaemonOrder, per_day: float) -> Settings:
    """Return the settings with this budget and the policy of the order."""
    keys = {"budget": f"{per_day:.12g}/day", "policy": order.policy}
    daemon = settings.daemon.model_copy(update=keys)
    return settings.model_copy(update={"daemon": daemon})


def for_store(settings: Settings) -> str:
    """Return the settings as a run's row stores them, without settings made in the browser."""
    return with_stored(settings, ()).model_dump_json()


# -- reload ------------------------------------------------------------------


def taken_over(running: Settings, wanted: Settings) -> Settings:
    """Return the running settings with the wanted values of those that a reload can change."""
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


class BrowserRequests:
    """Checks for settings made in a browser, and queues the pages that users asked for."""

    def __init__(self, database: Database, agenda: RecrawlAgenda, pool: FetchPool) -> None:
        self._database = database
        self._agenda = agenda
        self._pool = pool
        #: Requests that were handled, and the time of the next check.
        self._handled, self._next_at = set[SiteSetting](), -inf

    def reset(self) -> None:
        """Handle all requests again, because the crawl queue was rebuilt."""
        self._handled = set()

    def shift(self, by: float) -> None:
        """Adapt to a jump of the clock."""
        self._next_at += by

    async def apply(self, settings: Settings, now: float) -> Settings:
        """Queue newly requested pages if a check is due; return the settings in force."""
        hosts = self._pool.frontier
        if now < self._next_at or not hosts.host_count:
            return settings
        self._next_at = now + _LOOKED_FOR_S
        asyncio.get_running_loop().call_later(_LOOKED_FOR_S, self._pool.wake)
        found = await runs.site_settings(self._database.reader)
        requested = {it for it in found if it.key == VISIT}
        new = [it.match for it in found if it in requested and it not in self._handled]
        self._handled = requested
        for due in await frontier.of_urls(self._database.reader, new):
            if hosts.knows(due.host_id):
                self._agenda.wish(due)
                hosts.wake(due.host_id)
        return with_stored(settings, found)


# -- the default budget ------------------------------------------------------


async def budget_of_store(reader: aiosqlite.Connection, seeds: int) -> float:
    """Return the default requests per day for the pages of a store, at least one per seed."""
    return limited(max(await columns.watched(reader), seeds))


def limited(wanted: float) -> float:
    """Return the requests a day for this many visits, between 1 and the upper limit."""
    return min(max(1.0, wanted), MOST_PER_DAY)


class DefaultBudget:
    """The default budget, which follows the pages of a crawl queue.

    Attributes:
        steady: requests a day once all pages have been visited.
        first: whether pages wait for their first visit, at one request a second.
        waiting: the number of pages that wait.
        counts_at: when to count the pages next.
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
    """Return the number of pages with a fixed interval, and their visits a day in all."""
    pages = agenda.pages
    those = (pages["gone"] == 0) & (pages["least"] == pages["most"])
    return int(np.count_nonzero(those)), float((1 / pages["most"][those]).sum())
