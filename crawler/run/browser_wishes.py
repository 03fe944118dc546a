"""The settings of sites and the wishes for visits that were set in a browser, in the store."""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING, Final

from freshet.config.sites import with_stored
from freshet.storage.tables import frontier, runs
from freshet.storage.tables.runs import VISIT, SiteSetting

if TYPE_CHECKING:
    from freshet.config.settings import Settings
    from freshet.crawler.pool import FetchPool
    from freshet.scheduler.agenda.recrawl import RecrawlAgenda
    from freshet.storage.database import Database

#: They are looked for this often.
_EVERY_S: Final = 2.0


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
        self._next_at = now + _EVERY_S
        asyncio.get_running_loop().call_later(_EVERY_S, self._pool.wake)
        found = await runs.site_settings(self._database.reader)
        wishes = {it for it in found if it.key == VISIT}
        new = [it.match for it in found if it in wishes and it not in self._heeded]
        self._heeded = wishes
        for due in await frontier.of_urls(self._database.reader, new):
            if hosts.knows(due.host_id):
                self._agenda.wish(due)
                hosts.wake(due.host_id)
        return with_stored(settings, found)
