"""A store of a few rows, made with plain SQL: what the reading side is tested on."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from freshet.storage.database import open_store

HOST = "http://one.example"


def rows(db: Path, sql: str, *values: object) -> list[Any]:
    """Ask a database over a connection of its own, as anybody else would."""
    with closing(sqlite3.connect(db)) as connection:
        return connection.execute(sql, values).fetchall()


#: The connection of the store that was written to last: to open one costs as much as fifty rows.
_kept: dict[Path, sqlite3.Connection] = {}


def close_kept() -> None:
    """Close the connection that is kept, if there is one."""
    while _kept:
        _kept.popitem()[1].close()


@contextmanager
def _writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the kept connection for one transaction, which others see as a whole file."""
    if path not in _kept:
        close_kept()
        _kept[path] = sqlite3.connect(path, check_same_thread=False)
    with _kept[path] as connection:
        yield connection
    connection.execute("PRAGMA wal_checkpoint").close()


@dataclass(frozen=True, slots=True)
class SmallStore:
    """Inserts rows; columns that a test does not care for have a plain value."""

    path: Path

    def insert(self, table: str, **columns: object) -> int:
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        with _writing(self.path) as connection:
            cursor = connection.execute(
                f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(columns.values())
            )
            return cursor.lastrowid or 0

    def execute(self, sql: str, *values: object) -> None:
        with _writing(self.path) as connection:
            connection.execute(sql, values)

    def run(self, started_at: float, **columns: object) -> int:
        return self.insert(
            "crawl_run",
            **{"started_at": started_at, "state": "running", "settings": "{}"} | columns,
        )

    def host(self, origin: str = HOST, **columns: object) -> int:
        return self.insert("host", origin=origin, **columns)

    def page(self, path: str = "/", *, host: int = 1, **columns: object) -> int:
        url = path if "://" in path else HOST + path
        plain: dict[str, object] = {
            "url": url, "fetch_url": url, "host_id": host, "depth": 0, "found_at": 0.0,
            "found_run_id": 1,
        }  # fmt: skip
        return self.insert("page", **plain | columns)

    def observe(self, page: int, at: float, kind: str, **columns: object) -> int:
        plain: dict[str, object] = {
            "page_id": page, "run_id": 1, "at": at, "kind": kind, "duration_s": 0.1
        }  # fmt: skip
        return self.insert("observation", **plain | columns)

    def due(self, page: int, at: float, *, host: int = 1, **columns: object) -> None:
        plain: dict[str, object] = {
            "page_id": page, "host_id": host, "priority": 1, "due_at": at, "reason": "discovery"
        }  # fmt: skip
        self.insert("frontier", **plain | columns)

    def show(self, page: int, at: float, *, place: int = 1, opened: bool = False) -> None:
        self.insert(
            "showing", list_id=1, made_for="file", at=at, page_id=page, place=place, promoted=0,
            opened_at=at if opened else None,
        )  # fmt: skip

    def items(self, source: int, found_at: Sequence[float], ages: Sequence[float]) -> None:
        """Items of a source; each is shown at ages (seconds), and opened at all but the last."""
        for at in found_at:
            item = self.page(f"/items/{source}/{at}", found_at=at)
            self.link(source, item, at)
            self.insert(
                "churn", page_id=source, at=at, since=at - 1.0, appeared=1, dropped=1, stayed=3
            )
            for age in ages:
                self.show(item, at + age, opened=age < max(ages))

    def link(self, src: int, url_or_dst: int | str, at: float, **columns: object) -> None:
        target = {"url": url_or_dst} if isinstance(url_or_dst, str) else {"dst_id": url_or_dst}
        table = "offsite_link" if isinstance(url_or_dst, str) else "link"
        plain: dict[str, object] = {
            "src_id": src, "position": 0, "rel": "", "anchor": "", "first_seen_at": at,
            "last_seen_at": at,
        }  # fmt: skip
        self.insert(table, **plain | target | columns)


async def small_store(path: Path) -> SmallStore:
    """A new store at ``path`` without any rows."""
    await (await open_store(path)).close()
    return SmallStore(path)
