"""The search index of a store, as runs and verbs of the core know it.

Every crawl loads this module; a store without an index loads no other one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from freshet.crawler.extensions.search.settings import SearchSettings
from freshet.crawler.run.wiring import RunIndex

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path
    from sqlite3 import Connection
    from types import ModuleType

    from freshet.config.settings import Settings
    from freshet.crawler.extensions.search.tables import Meter
    from freshet.crawler.reduce.parser_process import Parser
    from freshet.storage.database import Database
    from freshet.storage.records import Visit

_IS_THERE: Final = "SELECT 1 FROM sqlite_master WHERE name = 'search_index'"


class FollowingIndex(RunIndex):
    """The index of a run: it has the documents of the changefeed, and a meter measures with it."""

    exists = True

    def __init__(self, meter: Meter | None) -> None:
        self.meter = meter

    def lines(self, title: str | None, texts: Sequence[str], kinds: Sequence[str]) -> str:
        """Return the words of a capture."""
        return lines(title, texts, kinds)

    def record(
        self, db: Connection, visits: Sequence[Visit], documents: Collection[int], now: float
    ) -> None:
        """Update the index from the changefeed, and store gains of search quality."""
        from freshet.crawler.extensions.search import tables  # noqa: PLC0415 - see above

        words = {v.due.page_id: c.words for v in visits if (c := v.capture) and c.words is not None}
        meter = self.meter if visits else None
        gained = tables.follow(db, documents, words, meter)
        if meter is not None and gained:
            meter.note_gains(db, [each.observation for each in visits], gained)

    def rolled_back(self) -> None:
        """Forget the measurements."""
        if self.meter is not None:
            self.meter.forget()

    async def keep_up(
        self, database: Database, parser: Parser, settings: Settings, now: float
    ) -> None:
        """Index missing pages, and store the contribution of pages to searches."""
        from freshet.crawler.extensions.search.building import index_pending  # noqa: PLC0415

        await index_pending(database, parser)
        if self.meter is not None:
            await self.meter.keep_up(database, settings, now)


async def open_index(database: Database, settings: Settings) -> RunIndex:
    """Make, delete or keep the index of a store, following the settings; return it for a run."""
    wanted = settings.group(SearchSettings).index
    if wanted == "keep" and not await database.reader.execute_fetchall(_IS_THERE):
        return RunIndex()
    from freshet.crawler.extensions.search import tables  # noqa: PLC0415 - see above

    if not await database.write(partial(tables.take_over, wanted=wanted)):
        return RunIndex()
    metering = tables.metering()
    return FollowingIndex(None if metering is None else await metering.open(database, settings))


def prepare(path: Path, settings: Settings) -> None:
    """Make the index before a verb writes the store, and show the progress."""
    if settings.group(SearchSettings).index == "on":
        from freshet.crawler.extensions.search.cli.search import keep_index  # noqa: PLC0415

        keep_index(path, settings)


def lines(title: str | None, texts: Sequence[str], kinds: Sequence[str]) -> str:
    """Return the words of a text as the index has them."""
    from freshet.crawler.extensions.search.words import index_lines  # noqa: PLC0415 - see above

    return index_lines(title, texts, kinds)


def renew(db: Connection, words: Mapping[int, str]) -> None:
    """Replace the words of indexed pages."""
    if (tables := _tables(db)) is not None:
        tables.renew(db, words)


def forget(db: Connection, page_ids: Iterable[int]) -> None:
    """Delete the words of pages, and their measurements."""
    if (tables := _tables(db)) is not None:
        tables.forget(db, page_ids)


def compact(db: Connection) -> None:
    """Merge the index, which leaves nothing of deleted words in it."""
    if (tables := _tables(db)) is not None:
        tables.compact(db)


def begin_like(db: Connection, other: Connection) -> None:
    """Make an index in a new store if another store has one."""
    if (tables := _tables(other)) is not None:
        tables.create(db)


def _tables(db: Connection) -> ModuleType | None:
    """Return what writes the index of a store, None if it has no index of the current format."""
    if not db.execute(_IS_THERE).fetchone():
        return None
    from freshet.crawler.extensions.search import tables  # noqa: PLC0415 - see above

    return tables if tables.exists(db) else None
