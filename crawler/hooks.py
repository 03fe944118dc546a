"""The hooks of extensions, by which a package adds to Freshet.

Each hook is a group of entry points in the metadata of any installed package. Freshet's own
extensions, the folders of ``crawler/extensions``, use the same ones (``pyproject.toml``):

- ``freshet.companions``: an :class:`Accompanying`, which runs beside a crawl or a daemon;
- ``freshet.settings``: a table of the settings by its name (:class:`SettingsGroup`), with a
  ``defaults.toml`` in the same folder; ``settings.group(TYPE)`` gives its values;
- ``freshet.tables``: tables in the store, with migrations (:class:`Tables`);
- ``freshet.policies``: a policy (:mod:`freshet.scheduler.policy`).

The hook of a one-shot crawl is loaded by every crawl: its module imports what it needs when it is
needed. Of an extension that is missing the crawler says nothing; a store that it wrote is read and
written on, and it finds its tables again later.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from freshet.config.settings import Settings, SettingsGroup
from freshet.crawler.network import Network
from freshet.crawler.pool import FetchPool
from freshet.crawler.run.wiring import Assembly, RunContext
from freshet.storage.extensions import Tables
from freshet.storage.records import Acknowledged

__all__ = ["COMPANIONS", "Accompanying", "Companion", "SettingsGroup", "Tables"]

#: Entry points that give :class:`Accompanying`.
COMPANIONS: Final = "freshet.companions"


class Companion:
    """Runs beside the visits of one crawl or daemon; by itself it does nothing.

    The calls come in the order of these methods; ``obey`` may come at any time after ``start``.
    """

    #: The address at which it listens, for the log, or "".
    listens: str = ""

    async def start(self, assembly: Assembly, pool: FetchPool) -> None:
        """Begin, before the first visit; it may add listeners to one and chores to the other.

        Raises:
            CrawlError: it cannot begin as the settings say.
        """

    def begun(self) -> None:
        """Note that the first turn of the pool is over."""

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        """Take note of entries that are in the store now."""

    def obey(self, settings: Settings) -> None:
        """Go by other settings from now on, which a daemon has read again.

        Raises:
            CrawlError: it cannot; nothing has changed then.
        """

    async def stop(self) -> None:
        """Take no more work: the visits have ended, but the store is still written."""

    async def finish(self, told_to_stop: asyncio.Event) -> None:
        """Do what is left, for half a minute or until told to stop."""

    async def close(self) -> None:
        """Give back what is held; the last call, whatever happened."""


class Accompanying(Protocol):
    """Makes the companion of a run: a module with these functions, or an object."""

    def check(self, settings: Settings) -> None:
        """Raise CrawlError where settings cannot be obeyed; no store is open yet."""

    def accompany(self, context: RunContext, network: Network) -> Companion | None:
        """Return the companion of a run, which has not begun yet; None if it needs none."""
