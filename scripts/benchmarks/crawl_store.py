"""What the store costs: the entries of a crawl written again, in batches as the writer does."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import process_time_ns
from types import ModuleType
from typing import Any
from unittest import mock

from freshet.storage import writer
from freshet.storage.database import open_store
from freshet.storage.records import Entry, StoredSeed, Visit
from freshet.storage.tables import runs
from freshet.storage.writer import VisitTables

_BATCH = 200


async def write(
    entries: Sequence[Entry], seeded: Sequence[StoredSeed], directory: Path
) -> dict[str, float]:
    """CPU microseconds for all entries: the whole, and each function that the batches call."""
    parts = _Parts()
    database = await open_store(directory / "replayed.db")
    try:
        await database.write(partial(runs.add, seeds=seeded, now=0.0))
        run_id = await database.write(partial(runs.start, now=0.0, settings="{}"))
        tables = VisitTables(run_id)
        with _timed(parts):
            started_at = process_time_ns()
            for start in range(0, len(entries), _BATCH):
                await tables.write(database, entries[start : start + _BATCH])
            whole = process_time_ns() - started_at
    finally:
        await database.close()
    rest = whole - sum(parts.spent.values())
    figures = {"store": whole}
    figures |= {f"store/{name}": ns for name, ns in sorted(parts.spent.items()) if ns * 200 > whole}
    figures |= {"store/commit and the rest": rest, "store: bare rows": _bare(entries, directory)}
    return {name: ns / 1e3 for name, ns in figures.items()}


@dataclass(slots=True)
class _Parts:
    """CPU nanoseconds by function; of calls in calls the outermost counts."""

    spent: dict[str, int] = field(default_factory=dict)
    inside: bool = False

    @contextmanager
    def timing(self, name: str) -> Iterator[None]:
        """Count the block, unless it stands in another one."""
        if self.inside:
            yield
            return
        self.inside, started_at = True, process_time_ns()
        try:
            yield
        finally:
            self.inside = False
            self.spent[name] = self.spent.get(name, 0) + process_time_ns() - started_at


@contextmanager
def _timed(parts: _Parts) -> Iterator[None]:
    """Time the public functions of the tables, whatever they are called, for the block."""
    with ExitStack() as stack:
        for module in filter(inspect.ismodule, vars(writer).copy().values()):
            for name, function in vars(module).copy().items():
                if _is_own(module, name, function):
                    label = f"{module.__name__.rpartition('.')[2]}.{name}"
                    wrapped = _wrapped(function, label, parts)
                    stack.enter_context(mock.patch.object(module, name, wrapped))
        yield


def _is_own(module: ModuleType, name: str, function: object) -> bool:
    return (
        inspect.isfunction(function)
        and not inspect.iscoroutinefunction(function)
        and function.__module__ == module.__name__
        and module.__name__.startswith("freshet.storage.")
        and not name.startswith("_")
    )


def _wrapped(function: Callable[..., Any], label: str, parts: _Parts) -> Callable[..., Any]:
    def called(*arguments: Any, **options: Any) -> Any:
        with parts.timing(label):
            return function(*arguments, **options)

    return called


def _bare(entries: Sequence[Entry], directory: Path) -> int:
    """The same bodies and links in two tables without indexes, by sqlite3's executemany."""
    written = [e for e in entries if isinstance(e, Visit) and e.capture is not None]
    with closing(sqlite3.connect(directory / "bare.db", isolation_level=None)) as connection:
        connection.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
            "CREATE TABLE body (page INTEGER, content BLOB);"
            "CREATE TABLE link (page INTEGER, url TEXT);"
        )
        started_at = process_time_ns()
        for start in range(0, len(written), _BATCH):
            batch = written[start : start + _BATCH]
            connection.execute("BEGIN")
            connection.executemany(
                "INSERT INTO body VALUES (?, ?)",
                [(v.due.page_id, v.capture.body) for v in batch if v.capture is not None],
            )
            connection.executemany(
                "INSERT INTO link VALUES (?, ?)",
                [(v.due.page_id, u) for v in batch if v.links is not None for u in v.links.urls],
            )
            connection.execute("COMMIT")
        return process_time_ns() - started_at
