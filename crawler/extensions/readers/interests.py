"""The worth of pages to readers and to searchers, as the core asks for it.

Search quality needs the extension search: without it nothing is measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from freshet.crawler.extensions.readers import tables
from freshet.crawler.extensions.readers.audience import OpenedLists, attention_of
from freshet.storage.extensions import index

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aiosqlite import Connection as Reader

    from freshet.scheduler.arrays import Bools, Floats, Ints
    from freshet.storage.database import Database


async def appeals(db: Reader) -> Callable[[Sequence[int], Sequence[str]], Floats] | None:
    """Return a function that gives the appeal of pages; None where nothing was ever opened."""
    audience = await OpenedLists.learnt(db)
    if audience.appeal is None:
        return None
    return lambda ids, urls: audience.appeals(ids, urls)[0]


async def marks(db: Reader) -> Mapping[int, float]:
    """Return the marks of pages where they decide, as shares of the mean of their hosts."""
    if index() is None:
        return {}
    from freshet.crawler.extensions.readers.marks import read_marks  # noqa: PLC0415 - see above

    return (await read_marks(db)).factor


async def told(db: Reader, page_id: int, host_id: int, now: float, *, decides: bool) -> str | None:
    """Say what the changes of a page mean to searchers."""
    if index() is None:
        return None
    from freshet.crawler.extensions.readers.marks import read_marks  # noqa: PLC0415 - see above

    return (await read_marks(db)).said(page_id, host_id, now, decides=decides)


async def judge_next(database: Database, now: float) -> None:
    """Judge the host that was judged longest ago, if it is time."""
    if index() is None:
        return
    from freshet.crawler.extensions.readers.marks import judge_next as judge  # noqa: PLC0415 - see above

    await judge(database, now)


async def items(db: Reader) -> tuple[Ints, Floats, Floats, Bools] | None:
    """Return the items of sources that were shown; None where none was opened."""
    shown = await tables.shown_items(db)
    if not shown.opened.any():
        return None
    view = (await attention_of(db)).of(shown.place)
    return shown.source_id, shown.age_s, view, shown.opened > 0
