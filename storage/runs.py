"""Table ``crawl_run``: one row a crawl, however many invocations it took."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import aiosqlite


class RunState(StrEnum):
    """How a run stands; all but ``ENDED`` are finished by the next invocation."""

    RUNNING = "running"
    ENDED = "ended"
    INTERRUPTED = "interrupted"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True)
class CrawlRun:
    """A crawl run. ``fetches`` counts all requests, robots.txt and redirects included."""

    run_id: int
    started_at: float
    ended_at: float | None
    state: RunState
    fetches: int


async def latest(connection: aiosqlite.Connection) -> CrawlRun | None:
    """The run that was started last, or None in a new store."""
    rows = await connection.execute_fetchall(
        "SELECT id, started_at, ended_at, state, fetches FROM crawl_run ORDER BY id DESC LIMIT 1"
    )
    return next((CrawlRun(r[0], r[1], r[2], RunState(r[3]), r[4]) for r in rows), None)


async def began_at(connection: aiosqlite.Connection, run_id: int) -> float:
    """When a run began, in Unix seconds.

    Raises:
        LookupError: there is no such run.
    """
    rows = await connection.execute_fetchall(
        "SELECT started_at FROM crawl_run WHERE id = ?", (run_id,)
    )
    for row in rows:
        return float(row[0])
    raise LookupError(run_id)


async def settings_of_latest(connection: aiosqlite.Connection) -> str | None:
    """The settings (JSON) of the run that was started last, or None in a new store."""
    rows = await connection.execute_fetchall(
        "SELECT settings FROM crawl_run ORDER BY id DESC LIMIT 1"
    )
    return next((str(row[0]) for row in rows), None)


async def start(connection: aiosqlite.Connection, now: float, settings: str) -> int:
    """Begin a run; its id. ``settings`` is a JSON object, kept as a record."""
    rows = await connection.execute_fetchall(
        "INSERT INTO crawl_run (started_at, state, settings) VALUES (?, ?, ?) RETURNING id",
        (now, RunState.RUNNING, settings),
    )
    return int(next(iter(rows))[0])


async def record_settings(connection: aiosqlite.Connection, run_id: int, settings: str) -> None:
    """Keep other settings (a JSON object) as the record of a run."""
    await connection.execute("UPDATE crawl_run SET settings = ? WHERE id = ?", (settings, run_id))


async def reopen(connection: aiosqlite.Connection, run_id: int) -> None:
    """Go on with a run that did not end (or, when forced, with one that did)."""
    await connection.execute(
        "UPDATE crawl_run SET state = ?, ended_at = NULL WHERE id = ?", (RunState.RUNNING, run_id)
    )


async def close(connection: aiosqlite.Connection, run_id: int, state: RunState, now: float) -> None:
    """Record how a run was left; only ``ENDED`` sets ``ended_at``."""
    ended_at = now if state is RunState.ENDED else None
    await connection.execute(
        "UPDATE crawl_run SET state = ?, ended_at = ? WHERE id = ?", (state, ended_at, run_id)
    )


async def count_fetches(connection: aiosqlite.Connection, run_id: int, fetches: int) -> None:
    """Add requests to a run's total."""
    await connection.execute(
        "UPDATE crawl_run SET fetches = fetches + ? WHERE id = ?", (fetches, run_id)
    )


async def is_first(connection: aiosqlite.Connection, run_id: int) -> bool:
    """Whether no run came before this one."""
    rows = await connection.execute_fetchall(
        "SELECT count(*) FROM crawl_run WHERE id < ?", (run_id,)
    )
    return not next(iter(rows))[0]
