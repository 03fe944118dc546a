"""Table ``estimate``: the daemon's last belief about each page."""

from __future__ import annotations

from collections.abc import Iterable
from sqlite3 import Connection
from typing import Final

from aiosqlite import Connection as Reader

from freshet.storage.database import columns_of, row_to, values_of
from freshet.storage.records import Estimate

COLUMNS: Final = tuple(Estimate.__dataclass_fields__)
#: A restart forgets the price paid: the stored one stays.
_UPDATES: Final = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS[1:-1])
_WRITE: Final = (
    f"INSERT INTO estimate ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) "
    f"ON CONFLICT (page_id) DO UPDATE SET {_UPDATES}, paid = coalesce(excluded.paid, paid)"
)


def write(db: Connection, estimates: Iterable[Estimate]) -> None:
    """Replace the estimates of these pages."""
    db.executemany(_WRITE, map(values_of, estimates))


async def of_page(db: Reader, page_id: int) -> Estimate | None:
    """Return the estimate of a page, or None before its first valuation."""
    sql = f"SELECT {columns_of(Estimate)} FROM estimate WHERE page_id = ?"
    return next(map(row_to(Estimate), await db.execute_fetchall(sql, (page_id,))), None)
