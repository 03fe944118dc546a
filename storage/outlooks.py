"""Tables ``outlook`` and ``capped_lane``: what a daemon expected, from time to time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

import aiosqlite

from freshet.storage.outlook import CappedLane, Discovered, Outlook

_DAY_S: Final = 86_400.0
#: Outlooks that are older are thinned to the last of each day.
_ALL_S: Final = 31 * _DAY_S
_PLAIN: Final = (
    "at", "began_at", "budget", "policy", "flowed", "forgone", "watched", "captured", "waiting",
    "gone", "stale", "harmonic", "price", "clocked", "next_at", "next_page_id",
)  # fmt: skip
_DISCOVERED: Final = tuple(field.name for field in fields(Discovered))
_VALUES: Final = ", ".join((*_PLAIN, "daily", "weekly", "monthly", "yearly", "rarer", *_DISCOVERED))


@dataclass(frozen=True, slots=True)
class Spending:
    """How far a run had come: ``fetches`` of all its invocations, ``flowed`` in this one."""

    at: float
    run_id: int
    began_at: float
    fetches: int
    flowed: float


async def append(
    connection: aiosqlite.Connection, run_id: int, outlooks: Sequence[Outlook]
) -> None:
    """Note outlooks of a run, after its requests have been counted, and thin the old ones."""
    for it in outlooks:
        await connection.execute("DELETE FROM capped_lane WHERE outlook_at = ?", (it.at,))
        await connection.execute(
            f"INSERT OR REPLACE INTO outlook (run_id, fetches, {_VALUES}) VALUES "
            f"(?1, (SELECT fetches FROM crawl_run WHERE id = ?1){', ?' * _VALUES.count(',')}, ?)",
            (
                run_id,
                *(getattr(it, name) for name in _PLAIN),
                *it.changing,
                *(getattr(it.discovered, name) for name in _DISCOVERED),
            ),
        )
        await connection.executemany(
            "INSERT INTO capped_lane VALUES (?, ?, ?, ?, ?)",
            [(it.at, lane.lane, lane.most, lane.wanted, lane.pages) for lane in it.capped],
        )
        await _thin(connection, it.at - _ALL_S)


async def _thin(connection: aiosqlite.Connection, before: float) -> None:
    """Keep the last outlook of each day that ended before a time."""
    ended = before // _DAY_S * _DAY_S
    old = (
        "SELECT at FROM outlook AS early WHERE at < ?1 AND EXISTS (SELECT 1 FROM outlook AS late "
        f"WHERE late.at > early.at AND late.at < (CAST(early.at / {_DAY_S} AS INT) + 1) * {_DAY_S})"
    )
    await connection.execute(f"DELETE FROM capped_lane WHERE outlook_at IN ({old})", (ended,))
    await connection.execute(f"DELETE FROM outlook WHERE at IN ({old})", (ended,))


async def latest_outlook(connection: aiosqlite.Connection, run_id: int) -> Outlook | None:
    """The last outlook of a run, or None."""
    rows = await connection.execute_fetchall(
        f"SELECT {_VALUES} FROM outlook WHERE run_id = ? ORDER BY at DESC LIMIT 1", (run_id,)
    )
    for row in rows:
        lanes = await connection.execute_fetchall(
            "SELECT lane, most, wanted, pages FROM capped_lane WHERE outlook_at = ? "
            "ORDER BY wanted - most DESC, lane",
            (row[0],),
        )
        plain = dict(zip(_PLAIN, row, strict=False))
        rest = tuple(row)[len(_PLAIN) :]
        changing, discovered = rest[: -len(_DISCOVERED)], rest[-len(_DISCOVERED) :]
        capped = tuple(CappedLane(*lane) for lane in lanes)
        return Outlook(
            **plain, changing=changing, capped=capped, discovered=Discovered(*discovered)
        )
    return None


async def spendings(connection: aiosqlite.Connection, since: float) -> list[Spending]:
    """How far runs had come at all outlooks from a time on, the earliest first."""
    rows = await connection.execute_fetchall(
        "SELECT at, run_id, began_at, fetches, flowed FROM outlook WHERE at >= ? ORDER BY at",
        (since,),
    )
    return [Spending(*row) for row in rows]


async def upcoming(connection: aiosqlite.Connection, outlook: Outlook) -> str | None:
    """The URL of the page that was to come next, or None."""
    rows = await connection.execute_fetchall(
        "SELECT url FROM page WHERE id = ?", (outlook.next_page_id,)
    )
    return next((str(row[0]) for row in rows), None)
