"""The search index of a run; most stores have none, and load nothing of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from freshet.storage.tables import search

if TYPE_CHECKING:
    from freshet.config.settings import SearchSettings
    from freshet.crawler.reduce.parser_process import Parser
    from freshet.crawler.run.quality import QualityMeter
    from freshet.storage.database import Database


@dataclass(frozen=True, slots=True)
class SearchIndex:
    """The search index of a store, if it ``exists``, and what measures by it."""

    exists: bool = False
    meter: QualityMeter | None = None

    async def keep_up(
        self, database: Database, parser: Parser, settings: SearchSettings, now: float
    ) -> None:
        """Index what the index lacks, and note what pages contribute to searches."""
        if not self.exists:
            return
        from freshet.crawler.search import index_pending  # noqa: PLC0415 - see above

        await index_pending(database, parser)
        if self.meter is not None:
            from freshet.crawler.run.quality import note_quality  # noqa: PLC0415 - see above

            await note_quality(database, settings, self.meter, now)


async def open_index(database: Database, settings: SearchSettings) -> SearchIndex:
    """Make, delete or keep the index of a store, and return it with a meter where it is to measure.

    Raises:
        UsageError: as :func:`freshet.crawler.run.quality.listed_queries`.
        StoreError: the store cannot be written, or has no FTS5.
    """
    exists = await database.write(partial(search.take_over, wanted=settings.index))
    if not exists or not (settings.queries or settings.remember):
        return SearchIndex(exists)
    from freshet.crawler.run.quality import QualityMeter, take_over_queries  # noqa: PLC0415 - likewise

    return SearchIndex(exists, QualityMeter(await take_over_queries(database, settings)))
