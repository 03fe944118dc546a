"""The ledger in ``freshet status`` and on the dashboard: ``freshet.status``."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from aiosqlite import Connection as Reader

from freshet.crawler.run.hooks import StatusTable
from freshet.storage.database import reading
from freshet.storage.stores import open_stores


async def read(db: Reader) -> dict[str, int]:
    """Return the visits to each page of a store, by its URL."""
    sql = "SELECT url, visits FROM ledger JOIN page ON page_id = id ORDER BY visits DESC"
    return dict(await db.execute_fetchall(sql))  # type: ignore[arg-type] # it has two columns


def merged(found: Iterable[dict[str, int]]) -> dict[str, int]:
    """Return the visits in several stores together."""
    return dict(sum(map(Counter, found), Counter()))


def lines(state: Mapping[str, int]) -> Mapping[str, str | None]:
    """Return a line with the number of all visits."""
    return {"ledger": f"{sum(state.values())} visits"}


def table(_state: Mapping[str, int]) -> StatusTable | None:
    """Return no table."""
    return None


def troubles(_state: Mapping[str, int]) -> Iterable[tuple[str, str]]:
    """Return nothing that an operator has to know."""
    return ()


async def visits(path: Path) -> dict[str, int]:
    """Return the visits of a store, or of all its shards."""

    async def one(part: Path) -> dict[str, int]:
        async with reading(part) as db:
            return await read(db)

    return merged((await open_stores(path).each(one)).values())
