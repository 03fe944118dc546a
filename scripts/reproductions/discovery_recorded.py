"""Recorded sites: pages and links as they were, and what a full crawl each week would have seen."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import numpy as np
import zstandard
from numpy.typing import NDArray

from freshet.scheduler.arrays import Bools, Floats, Ints
from scripts.reproductions.courses import Course, snapshots, step
from scripts.reproductions.link_history import LinkHistory

DAY_S: Final = 86_400.0
#: Seconds since 1970, when the recording began and ended.
_SPAN = "SELECT CAST(value AS REAL) FROM meta WHERE key IN ('t_start', 't_end') ORDER BY key DESC"
_PAGES = "SELECT id, first_seen, coalesce(last_seen, 9e15) FROM pages WHERE kind = 'html'"
_LINKS = "SELECT src, dst, t0, coalesce(t1, 9e15) FROM links"


def directory() -> Path | None:
    """Where recorded sites are (``FRESHET_EVOLUTION_DIR``), if they are here."""
    named = os.environ.get("FRESHET_EVOLUTION_DIR")
    path = Path(named) if named else None
    return path if path is not None and path.is_dir() else None


def recorded(folder: Path) -> Iterator[LinkHistory]:
    """The sites of a directory as weekly crawls saw them, in the order of their names."""
    for site in watched(folder):
        yield snapshots(site)[0]


def watched(folder: Path) -> Iterator[Course]:
    """The sites of a directory (``*.sqlite.zst``), in the order of their names."""
    for packed in sorted(folder.glob("*.sqlite.zst")):
        with _unpacked(packed) as path, closing(sqlite3.connect(path)) as connection:
            yield course(packed.name.removesuffix(".sqlite.zst"), connection)


def course(name: str, connection: sqlite3.Connection) -> Course:
    """A recorded site as it was: its HTML pages and the links between them."""
    begin, end = (row[0] for row in connection.execute(_SPAN))
    pages = _columns(connection, _PAGES, 3)
    born, gone = (pages[1:] - begin) / DAY_S
    order = np.argsort(step(born), kind="stable")
    numbers = pages[0][order]
    links = _columns(connection, _LINKS, 4)
    source, has_source = _places(numbers, links[0])
    target, has_target = _places(numbers, links[1])
    known = has_source & has_target & (source != target)
    first, last = (links[2:, known] - begin) / DAY_S
    return Course(
        name, (end - begin) / DAY_S, born[order], gone[order],
        source[known], target[known], first, last,
    )  # fmt: skip


def _places(numbers: Floats, wanted: Floats) -> tuple[Ints, Bools]:
    order = np.argsort(numbers)
    at = np.minimum(np.searchsorted(numbers[order], wanted), max(numbers.size - 1, 0))
    found = order[at]
    return found.astype(np.int64), numbers[found] == wanted


def _columns(connection: sqlite3.Connection, statement: str, count: int) -> NDArray[np.float64]:
    return np.array(connection.execute(statement).fetchall(), np.float64).reshape(-1, count).T


@contextmanager
def _unpacked(packed: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="freshet-discovery-") as folder:
        path = Path(folder) / "site.sqlite"
        with packed.open("rb") as source, path.open("wb") as target:
            zstandard.ZstdDecompressor().copy_stream(source, target)
        yield path
