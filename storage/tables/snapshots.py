"""Table ``snapshot``: what a daemon has learnt, in parts, which are arrays by name.

A part is one byte, the format, and a Zstandard frame with a checksum: a line of JSON that lists the
arrays, and these. All parts are replaced in one transaction; parts that are left are as they were.
"""

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from sqlite3 import Connection
from threading import Lock
from typing import Any, Final, TypeAlias

import numpy as np
import zstandard
from aiosqlite import Connection as Reader
from numpy.typing import NDArray

from freshet.storage.database import readable

#: Arrays by their names.
Arrays: TypeAlias = Mapping[str, NDArray[Any]]

#: The format of the parts, and of what is in them: another one is learnt anew.
_FORMAT: Final = 1
_ALIGNED: Final = 16
_LEVEL: Final = 1


class SnapshotError(Exception):
    """A part is missing, damaged, or of another version: what it held must be learnt anew."""


@dataclass(frozen=True, slots=True)
class LearntUpTo:
    """The last rows of the store that a snapshot knows, by their ids; 0: none.

    ``amendments`` counts those of the observations that were learnt.
    """

    observation: int
    claim: int
    page: int
    amendments: int


_NOW: Final = (
    "SELECT (SELECT coalesce(max(id), 0) FROM observation), "
    "(SELECT coalesce(max(id), 0) FROM claim), (SELECT coalesce(max(id), 0) FROM page), "
    "(SELECT count(*) FROM amendment)"
)


def packed(arrays: Arrays) -> bytes:
    """Return a part."""
    listed: list[tuple[str, str, tuple[int, ...]]] = []
    pieces: list[bytes] = []
    for name, array in arrays.items():
        listed.append((name, json.dumps(np.lib.format.dtype_to_descr(array.dtype)), array.shape))
        data = np.ascontiguousarray(array).tobytes()
        pieces += [data, bytes(-len(data) % _ALIGNED)]
    line = json.dumps(listed).encode() + b"\n"
    line = line.rjust(len(line) + -len(line) % _ALIGNED)
    whole = b"".join([line, *pieces])
    frame = zstandard.ZstdCompressor(_LEVEL, write_checksum=True).compress(whole)
    return bytes([_FORMAT]) + frame


def unpacked(part: bytes) -> Arrays:
    """Return the arrays of a part, which may be written into.

    Raises:
        SnapshotError: it is damaged, or of another format.
    """
    if not part or part[0] != _FORMAT:
        raise SnapshotError("it is of another version")
    try:
        buffer = bytearray(zstandard.frame_content_size(part[1:]))
        reader = zstandard.ZstdDecompressor().stream_reader(memoryview(part)[1:])
        if reader.readinto(buffer) != len(buffer) or reader.read(1):
            raise SnapshotError("it is cut")
        first = buffer.index(b"\n") + 1
        found = {}
        for name, kind, shape in json.loads(buffer[:first]):
            array = np.frombuffer(buffer, _dtype(kind), prod(shape), first).reshape(shape)
            found[name] = array
            first += array.nbytes + -array.nbytes % _ALIGNED
    except (zstandard.ZstdError, ValueError, TypeError) as error:
        raise SnapshotError(f"it is damaged ({error})") from error
    return found


@cache
def _dtype(kind: str) -> np.dtype[Any]:
    """Return the dtype that JSON describes as numpy does."""
    described = json.loads(kind)
    if not isinstance(described, str):
        described = [
            tuple(tuple(each) if isinstance(each, list) else each for each in it)
            for it in described
        ]
    return np.lib.format.descr_to_dtype(described)


def write(db: Connection, parts: Iterable[tuple[str, Arrays]], *, anew: bool) -> None:
    """Replace these parts, or all of them, by these."""
    if anew:
        db.execute("DELETE FROM snapshot")
    rows = ((name, packed(arrays)) for name, arrays in parts)
    db.executemany("INSERT OR REPLACE INTO snapshot VALUES (?, ?)", rows)
    db.execute("DELETE FROM altered_page")


async def up_to(db: Reader) -> LearntUpTo:
    """Return what the store holds now."""
    rows = await db.execute_fetchall(_NOW)
    return LearntUpTo(*next(iter(rows)))


async def read(db: Reader, of: str) -> AsyncIterator[tuple[str, Arrays]]:
    """Yield the parts whose names begin so, up to a slash, in the order of their numbers.

    Raises:
        SnapshotError: one is damaged.
    """
    sql = (
        "SELECT substr(name, length(?1) + 2), data FROM snapshot "
        "WHERE name = ?1 OR (name > ?1 || '/' AND name < ?1 || '0') "
        "ORDER BY CAST(substr(name, length(?1) + 2) AS INTEGER)"
    )
    async with db.execute(sql, (of,)) as cursor:
        async for row in cursor:
            yield str(row[0]), unpacked(row[1])


class Parts:
    """The parts of a store, read by their names, from any thread; opening it takes longer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._db: Connection | None = None

    def __call__(self, name: str) -> Arrays:
        """Return a part.

        Raises:
            SnapshotError: it is not there, or damaged.
        """
        with self._lock:
            if self._db is None:
                self._db = readable(self._path, is_known=True)
            sql = "SELECT data FROM snapshot WHERE name = ?"
            row = self._db.execute(sql, (name,)).fetchone()
        if row is None:
            raise SnapshotError(f"{name} is missing")
        return unpacked(row[0])

    def close(self) -> None:
        """Close the file; the last connection to a store that closes leaves it as one file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
            self._db = None


async def altered(db: Reader) -> list[int]:
    """Return the pages that came to stand elsewhere, or to be held back or not, since the last."""
    return [row[0] for row in await db.execute_fetchall("SELECT page_id FROM altered_page")]


async def touched(db: Reader, known: LearntUpTo) -> list[int]:
    """Return the pages that were visited, found or altered since, ascending."""
    sql = (
        "SELECT page_id FROM observation WHERE id > ?1 UNION SELECT id FROM page WHERE id > ?2 "
        "UNION SELECT page_id FROM altered_page ORDER BY 1"
    )
    rows = await db.execute_fetchall(sql, (known.observation, known.page))
    return [row[0] for row in rows]


async def path_of(db: Reader) -> Path:
    """Return the file of a store."""
    rows = await db.execute_fetchall("PRAGMA database_list")
    return Path(next(row[2] for row in rows if row[1] == "main"))
