"""Openings of lists, and search quality, in ``freshet status``."""

from collections.abc import Iterable, Mapping
from typing import Any

from aiosqlite import Connection as Reader

from freshet.crawler.extensions.readers import tables
from freshet.crawler.extensions.readers.tables import ListCounts
from freshet.crawler.run.hooks import StatusTable
from freshet.crawler.run.terminal import counted, percent
from freshet.storage.entries import summed
from freshet.storage.extensions import index


class ReadersPart:
    """A part of the status without a table and without troubles."""

    def table(self, _state: Any) -> StatusTable | None:
        """Return no table."""
        return None

    def troubles(self, _state: Any) -> Iterable[tuple[str, str]]:
        """Return no problems."""
        return ()


class OpeningsPart(ReadersPart):
    """Numbers of pages that lists showed, and people opened; None if no list is recorded."""

    async def read(self, db: Reader) -> ListCounts | None:
        """Return the counts of a store."""
        return await tables.counts(db)

    def merged(self, found: Iterable[ListCounts | None]) -> ListCounts | None:
        """Return the counts of several stores together."""
        held = [each for each in found if each]
        return summed(held) if held else None

    def lines(self, state: ListCounts | None) -> Mapping[str, str | None]:
        """Return how much is recorded."""
        if state is None:
            return {}
        opened = f"{counted(state.opened, 'page')} of {state.shown:,} opened"
        return {"lists": f"{state.lists:,} recorded, {opened}"}


class AttentionPart(ReadersPart):
    """The law by which the attention to places falls: its exponent, and the 95 % interval."""

    async def read(self, db: Reader) -> tuple[float, float, float] | None:
        """Return the attention law learnt from promoted pages, or None without any."""
        lists = await tables.counts(db)
        if lists is None or not lists.promoted:
            return None
        from freshet.crawler.extensions.readers.audience import attention_of  # noqa: PLC0415 - imports numpy

        found = await attention_of(db)
        return found.exponent, *found.interval

    def merged(self, _found: Iterable[object]) -> None:
        """Return None: exponents cannot be merged without their data."""

    def lines(self, state: tuple[float, float, float] | None) -> Mapping[str, str | None]:
        """Return the law."""
        if state is None:
            return {}
        return {"attention": "falls as place^−{:.2f} ({:.2f} to {:.2f})".format(*state)}


class QualityPart(ReadersPart):
    """The share of search quality that a store has by the last visits, None if not measured."""

    async def read(self, db: Reader) -> float | None:
        """Return the share; the search index, which it needs, is another extension's."""
        if index() is None:
            return None
        from freshet.crawler.extensions.readers import quality_meter  # noqa: PLC0415 - see above

        return await quality_meter.quality(db)

    def merged(self, _found: Iterable[object]) -> None:
        """Return None: shares cannot be merged without their data."""

    def lines(self, state: float | None) -> Mapping[str, str | None]:
        """Return the share."""
        if state is None:
            return {}
        told = f"{percent(state)} of that of fresh copies, by the last visits"
        return {"search quality": told}


OPENINGS, ATTENTION, QUALITY = OpeningsPart(), AttentionPart(), QualityPart()
