"""The companions of a run: what extensions do beside its visits."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from freshet.config.settings import Settings
from freshet.crawler.hooks import COMPANIONS, Accompanying, Companion
from freshet.crawler.network import Network
from freshet.crawler.pool import FetchPool
from freshet.crawler.run.wiring import Assembly, RunContext
from freshet.entry_points import loaded
from freshet.storage.records import Acknowledged

if TYPE_CHECKING:
    from freshet.crawler.importance import Importances


def check(settings: Settings) -> None:
    """Raise CrawlError where an extension cannot do what the settings ask for."""
    for each in _accompanying():
        each.check(settings)


class Companions:
    """All companions of a run together, in the order of their names."""

    def __init__(self, context: RunContext, network: Network) -> None:
        made = [each.accompany(context, network) for each in _accompanying()]
        self._all: list[Companion] = [each for each in made if each is not None]

    @property
    def listens(self) -> list[str]:
        """The addresses at which they listen."""
        return [each.listens for each in self._all if each.listens]

    @asynccontextmanager
    async def beside(
        self, assembly: Assembly, pool: FetchPool, importances: "Importances | None" = None
    ) -> AsyncIterator[None]:
        """Let them run while the block visits pages."""
        started: list[Companion] = []
        try:
            for each in self._all:
                await each.start(assembly, pool, importances)
                started.append(each)
            yield
        finally:
            for each in reversed(started):
                await each.stop()

    def begun(self) -> None:
        """Tell them that the first turn is over."""
        for each in self._all:
            each.begun()

    def committed(self, batch: Sequence[Acknowledged] = ()) -> None:
        """Tell them of entries that are in the store now."""
        for each in self._all:
            each.committed(batch)

    def obey(self, settings: Settings) -> None:
        """Let them go by other settings from now on."""
        for each in self._all:
            each.obey(settings)

    async def finish(self, told_to_stop: asyncio.Event) -> None:
        """Let them do what is left."""
        await asyncio.gather(*(each.finish(told_to_stop) for each in self._all))

    async def close(self) -> None:
        """Close all of them."""
        for each in self._all:
            await each.close()


def _accompanying() -> list[Accompanying]:
    return list(loaded(COMPANIONS).values())
