"""The measuring of search quality, as the search index knows it; short, for each run loads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freshet.crawler.extensions.readers.quality_tables import (
    are_there,
    create,
    drop,
    forget,
    noted_quality,
    queries,
)
from freshet.crawler.extensions.search.settings import SearchSettings

if TYPE_CHECKING:
    from aiosqlite import Connection as Reader

    from freshet.config.settings import Settings
    from freshet.crawler.extensions.readers.quality import QualityMeter
    from freshet.storage.database import Database

__all__ = ["create", "drop", "forget", "open", "quality"]


async def open(database: Database, settings: Settings) -> QualityMeter | None:  # noqa: A001 - a hook
    """Return the meter of a run, None where the settings want none."""
    said = settings.group(SearchSettings)
    if not (said.queries or said.remember):
        return None
    from freshet.crawler.extensions.readers.quality import QualityMeter, take_over_queries  # noqa: PLC0415 - imports numpy

    return QualityMeter(await take_over_queries(database, said))


async def quality(db: Reader) -> float | None:
    """Return the share of search quality that a store has, None where it is not measured."""
    if not await are_there(db) or not await queries(db):
        return None
    noted = await noted_quality(db)
    return None if noted is None else noted[1]
