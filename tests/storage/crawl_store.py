"""A store that is written as a crawl writes it: entries in, rows out."""

import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from freshet.storage.database import Database, open_store
from freshet.storage.entries import DOUBTFUL, AliasKind, Kind, Role
from freshet.storage.records import (
    Acknowledged,
    Alias,
    Capture,
    Digests,
    Doubt,
    DueUrl,
    Entry,
    Links,
    Observation,
    StoreUpdate,
    Targets,
    Visit,
)
from freshet.storage.tables import frontier, runs
from freshet.storage.writer import VisitTables

SITE = "https://a.example"
START = 1_800_000_000.0
DAY_S = 86_400.0


class CrawlStore:
    """An open store with a run under way."""

    def __init__(self, database: Database, run_id: int) -> None:
        self.database = database
        self.run_id = run_id
        self.tables = VisitTables(run_id)

    async def apply(self, *entries: Entry) -> list[Acknowledged]:
        return await self.tables.write(self.database, entries)

    async def admit(self, *paths: str, at: float = START) -> list[Acknowledged]:
        return await self.apply(StoreUpdate(at, targets=targets(*paths)))

    async def new_run(self, at: float, recheck_before: float = 0.0) -> None:
        with writing(self.database) as connection:
            runs.close(connection, self.run_id, "ended", at)
            self.run_id = runs.start(connection, at, "{}")
            frontier.begin_run(connection, at, recheck_before)
        self.tables = VisitTables(self.run_id, recorders=self.tables.recorders)

    async def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        found = await self.database.reader.execute_fetchall(sql, parameters)
        return [tuple(row) for row in found]

    async def value(self, sql: str, *parameters: object) -> Any:
        ((found,),) = await self.rows(sql, *parameters)
        return found

    async def page_id(self, path: str) -> int:
        return int(await self.value("SELECT id FROM page WHERE url = ?", url_of(path)))

    async def due(self, now: float = START, limit: int = 1_000) -> list[DueUrl]:
        ids = [row[0] for row in await self.rows("SELECT id FROM host")]
        return await frontier.load(self.database.reader, ids, now, limit)

    async def due_paths(self, now: float = START) -> list[str]:
        return [due.url.removeprefix(SITE) for due in await self.due(now)]

    async def taken(self, path: str, now: float = START) -> DueUrl:
        """The due URL at a path, as the frontier hands it out."""
        return next(d for d in await self.due(now) if d.url == url_of(path))


@contextmanager
def writing(database: Database) -> Iterator[sqlite3.Connection]:
    """A transaction of a connection beside the store's own."""
    with closing(sqlite3.connect(database.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")


@asynccontextmanager
async def crawl_store(path: Path, at: float = START) -> AsyncIterator[CrawlStore]:
    """A store in its first run, checked for broken references when the test is done."""
    database = await open_store(path)
    try:
        with writing(database) as connection:
            run_id = runs.start(connection, at, "{}")
        store = CrawlStore(database, run_id)
        yield store
        assert await store.rows("PRAGMA foreign_key_check") == []
    finally:
        await database.close()


def url_of(path: str) -> str:
    return path if "://" in path else SITE + path


def targets(
    *paths: str,
    depth: int = 0,
    held_back: str | None = None,
    trap: tuple[str, str, int] | None = None,
    role: Role = "page",
    pattern: str | None = None,
) -> Targets:
    shape, kind, cap = trap or (None, None, 0)
    rest = depth, 0, held_back, shape, kind, cap, pattern
    urls = [url_of(path) for path in paths]
    return Targets((url, url, "/".join(url.split("/", 3)[:3]), role, *rest) for url in urls)


def links(*paths: str) -> Links:
    urls = tuple(url_of(path) for path in paths)
    return Links(urls, urls, ("",) * len(urls), tuple(f"to {path}" for path in paths))


def digest(text: str) -> bytes:
    return text.encode().ljust(16, b"\0")


def capture(text: str, body: bytes | None = b"packed", sketch: bytes | None = None) -> Capture:
    return Capture(
        Digests(digest(text), digest("text of " + text)), len(text), body=body, sketch=sketch
    )


def visit(due: DueUrl, kind: Kind = "unchanged", at: float = START) -> Visit:
    return Visit(due, Observation(due.page_id, at, kind, status=200))


def captured(
    due: DueUrl,
    text: str = "text",
    *,
    at: float = START,
    to: Sequence[str] = (),
    offsite: Sequence[str] = (),
) -> Visit:
    """A visit that saw new content, with links to these paths and out of scope."""
    found = links(*to, *offsite)
    kind: Kind = "new" if due.digests is None else "changed"
    return replace(
        visit(due, kind, at), capture=capture(text), links=found,
        targets=targets(*to, depth=due.depth + 1), offsite=frozenset(range(len(to), len(found))),
    )  # fmt: skip


def doubtful(seen: Visit) -> Visit:
    """The visit as of a page that may be no content."""
    doubt = Doubt("soft_404", 0.8, "its title says so")
    return replace(seen, doubt=doubt, observation=replace(seen.observation, reason=DOUBTFUL))


def redirected(due: DueUrl, path: str, kind: AliasKind = "permanent", at: float = START) -> Visit:
    return replace(
        visit(due, "redirected", at), targets=targets(path), alias=Alias(url_of(path), kind)
    )
