"""A store of pages with sketches, for what finds the near-duplicates among them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from freshet.storage.database import Database, open_store
from tests.storage.small_store import SmallStore, small_store


@dataclass(frozen=True, slots=True)
class SketchedStore:
    """Writes what visits leave behind: pages with a current version, and observations."""

    small: SmallStore
    database: Database

    def page(self, path: str, sketch: bytes, **columns: object) -> int:
        page_id = self.small.page(
            path, host=1, **{"last_kind": "new", "text_digest": b"t"} | columns
        )
        self.version(page_id, sketch, kind="new")
        return page_id

    def version(self, page_id: int, sketch: bytes | None, kind: str = "changed") -> None:
        version_id = self.small.insert(
            "version", page_id=page_id, at=0.0, body_digest=b"b", text_digest=b"t", sketch=sketch
        )
        self.observe(page_id, kind, version_id=version_id)

    def observe(self, page_id: int, kind: str, **columns: object) -> None:
        self.small.observe(page_id, 0.0, kind, **columns)
        self.set(page_id, last_kind=kind)

    def set(self, page_id: int, **columns: object) -> None:
        """Change columns of a page."""
        names = ", ".join(f"{name} = ?" for name in columns)
        self.small.execute(f"UPDATE page SET {names} WHERE id = ?", *columns.values(), page_id)

    async def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        return [tuple(r) for r in await self.database.reader.execute_fetchall(sql, parameters)]


@asynccontextmanager
async def sketched_store(path: Path) -> AsyncIterator[SketchedStore]:
    """A new store with one run and one host, checked for broken references at the end."""
    small = await small_store(path)
    small.run(0.0)
    small.host()
    database = await open_store(path)
    try:
        store = SketchedStore(small, database)
        yield store
        assert await store.rows("PRAGMA foreign_key_check") == []
    finally:
        await database.close()
