"""The index of pages by their text, which an extension may keep (entry points ``INDEXES``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from freshet.entry_points import loaded
from freshet.storage.extensions import INDEXES, Indexed, Recording

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from freshet.config.settings import Settings
    from freshet.crawler.reduce.parser_process import Parser
    from freshet.storage.database import Database


class RunIndex(Recording):
    """An index of pages by their text, in a run: it follows each visit; by itself there is none."""

    #: Whether it wants the words of captures.
    exists: bool = False

    def lines(self, title: str | None, texts: Sequence[str], kinds: Sequence[str]) -> str:
        """Return the words of a capture, as :meth:`Indexed.lines`; called if it exists."""
        raise NotImplementedError

    async def keep_up(
        self, database: Database, parser: Parser, settings: Settings, now: float
    ) -> None:
        """Index what the index lacks; called now and then, and at the end of a crawl.

        Raises:
            StoreError: the store cannot be read or written.
        """


class Indexing(Indexed, Protocol):
    """An index of pages by their text (entry points ``INDEXES``): a module, or an object."""

    def prepare(self, path: Path, settings: Settings) -> None:
        """Make the index of a store where the settings want one; a verb that writes begins so."""

    async def open_index(self, database: Database, settings: Settings) -> RunIndex:
        """Make, delete or keep the index of a store, as the settings say; return it for a run.

        Raises:
            UsageError: the settings cannot be obeyed.
            StoreError: the store cannot be written.
        """


def indexing() -> Indexing | None:
    """Return the index that an extension keeps, if there is one."""
    return next(iter(loaded(INDEXES).values()), None)


async def open_index(database: Database, settings: Settings) -> RunIndex:
    """Return the index of a store for a run; raises as :meth:`Indexing.open_index`."""
    found = indexing()
    return RunIndex() if found is None else await found.open_index(database, settings)
