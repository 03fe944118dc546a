"""Table ``snapshot``: the learned state of a daemon, in parts, which are arrays by name.

A part is one byte, the format, and a Zstandard frame with a checksum: a line of JSON that lists the
arrays, and these.

Invariant: parts are written once, and the last one, ``agenda``, lists all that belong to the same
snapshot. Consequence: others may commit between two parts, and a kill leaves the snapshot before,
beside unlisted parts that are pruned before the next one.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate, groupby
from math import prod
from pathlib import Path
from sqlite3 import Connection
from threading import Lock
from typing import Any, Final, TypeAlias

import numpy as np
import zstandard
from aiosqlite import Connection as Reader
from numpy.typing import NDArray

from freshet.storage.database import Database, as_json, readable
from freshet.storage.errors import SnapshotError

#: Arrays by their names.
Arrays: TypeAlias = Mapping[str, NDArray[Any]]

#: The format of the parts and of their contents: with another one the daemon learns again.
_FORMAT: Final = 1
_ALIGNED: Final = 16
_LEVEL: Final = 1
#: Bytes that are written or deleted in one transaction: others wait for that.
_PIECE: Final = 1 << 22
_LAST: Final = "agenda"
_LIST: Final = "parts"


@dataclass(frozen=True, slots=True)
class LearntUpTo:
    """The last rows of the store in a snapshot, by their ids; 0 without any.

    ``amendments`` counts the amendments of the learned observations.
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


async def append(database: Database, parts: Iterable[tuple[str, Arrays]]) -> dict[str, int]:
    """Store parts, between which others commit; return their ids by their names.

    They are packed in a thread, and belong to no snapshot before :func:`complete`.
    """
    ids: dict[str, int] = {}
    pieces = _pieces(parts)
    while piece := await asyncio.to_thread(next, pieces, ()):
        ids |= await database.write(partial(_insert, rows=piece))
    return ids


def _pieces(parts: Iterable[tuple[str, Arrays]]) -> Iterator[Sequence[tuple[str, bytes]]]:
    """Yield packed parts, as many at once as are written in one transaction."""
    rows: list[tuple[str, bytes]] = []
    for name, arrays in parts:
        rows.append((name, packed(arrays)))
        if sum(len(data) for _, data in rows) >= _PIECE:
            yield rows
            rows = []
    yield rows


def _insert(db: Connection, rows: Iterable[tuple[str, bytes]]) -> dict[str, int]:
    sql = "INSERT INTO snapshot (name, data) VALUES (?, ?)"
    return {row[0]: int(db.execute(sql, row).lastrowid or 0) for row in rows}


async def complete(
    database: Database, arrays: Arrays, ids: Mapping[str, int], altered: int
) -> None:
    """Make a snapshot of the parts with these ids; these arrays are in its last part.

    It knows the alterations of pages up to that id.
    """
    listed = np.frombuffer(json.dumps(ids).encode(), np.uint8)
    last = packed({**arrays, _LIST: listed})

    def write(db: Connection) -> None:
        _insert(db, [(_LAST, last)])
        db.execute("DELETE FROM altered_page WHERE id <= ?", (altered,))

    await database.write(write)


async def prune(database: Database) -> None:
    """Delete the parts that do not belong to the newest snapshot, between which others commit."""
    try:
        found = await newest(database.reader)
    except SnapshotError:
        # Nobody can use its parts.
        found = None
    listed = set(found[1].values()) if found else set()
    rows = await database.reader.execute_fetchall("SELECT id, length(data) FROM snapshot")
    unlisted = [tuple(row) for row in rows if row[0] not in listed]
    ends = accumulate(length for _, length in unlisted)
    pieces = groupby(zip(unlisted, ends, strict=True), lambda each: each[1] // _PIECE)
    for _, piece in pieces:
        await database.write(partial(_delete, ids=[row[0] for row, _ in piece]))


def _delete(db: Connection, ids: Sequence[int]) -> None:
    sql = "DELETE FROM snapshot WHERE id IN (SELECT value FROM json_each(?))"
    db.execute(sql, (as_json(ids),))


async def up_to(db: Reader) -> LearntUpTo:
    """Return the last rows of the store now."""
    rows = await db.execute_fetchall(_NOW)
    return LearntUpTo(*next(iter(rows)))


async def newest(db: Reader) -> tuple[Arrays, Mapping[str, int]] | None:
    """Return the last part of the newest snapshot, and the ids of all parts; None without one.

    Raises:
        SnapshotError: it is damaged.
    """
    sql = "SELECT id, data FROM snapshot WHERE name = ? ORDER BY id DESC LIMIT 1"
    for part_id, data in await db.execute_fetchall(sql, (_LAST,)):
        arrays = unpacked(data)
        if _LIST not in arrays:
            raise SnapshotError("it is of another version")
        return arrays, {**json.loads(bytes(arrays[_LIST])), _LAST: part_id}
    return None


async def read(db: Reader, ids: Mapping[str, int], of: str) -> AsyncIterator[tuple[str, Arrays]]:
    """Yield the parts with this beginning of their names, up to a slash, by the rest of the name.

    Raises:
        SnapshotError: one is missing, or damaged.
    """
    names = [name for name in ids if name.partition("/")[0] == of]
    names.sort(key=lambda name: int(name.partition("/")[2] or 0))
    sql = (
        "SELECT s.name, s.data FROM json_each(?) AS wanted "
        "LEFT JOIN snapshot AS s ON s.id = wanted.value"
    )
    wanted = iter(names)
    async with db.execute(sql, (as_json([ids[name] for name in names]),)) as cursor:
        async for row in cursor:
            yield (name := next(wanted)).partition("/")[2], _part(name, row)


def _part(name: str, row: Sequence[Any] | None) -> Arrays:
    if row is None or row[0] != name:
        raise SnapshotError(f"{name} is missing")
    return unpacked(row[1])


class SnapshotParts:
    """The parts of a store, read from any thread; opening it takes longer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._db: Connection | None = None

    def __call__(self, name: str, part_id: int) -> Arrays:
        """Return a part.

        Raises:
            SnapshotError: it is not there, or damaged.
        """
        with self._lock:
            if self._db is None:
                self._db = readable(self._path, is_known=True)
            sql = "SELECT name, data FROM snapshot WHERE id = ?"
            row = self._db.execute(sql, (part_id,)).fetchone()
        return _part(name, row)

    def close(self) -> None:
        """Close the file; the last connection to a store that closes leaves it as one file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
            self._db = None


async def last_altered(db: Reader) -> int:
    """Return the id of the last alteration of a page, or 0."""
    rows = await db.execute_fetchall("SELECT coalesce(max(id), 0) FROM altered_page")
    return int(next(iter(rows))[0])


async def altered(db: Reader) -> list[int]:
    """Return the pages that moved, or were held back or released, since an alteration."""
    return [row[0] for row in await db.execute_fetchall("SELECT page_id FROM altered_page")]


async def gone_by(db: Reader, page_ids: Sequence[int], known: LearntUpTo) -> dict[int, int]:
    """Return how often in a row these pages were gone at a time, by page, without the others."""
    sql = (
        "SELECT f.page_id, count(*) FROM json_each(:pages) JOIN finding AS f ON f.page_id = value "
        "WHERE f.kind = 'gone' AND f.id <= :last AND NOT EXISTS (SELECT 1 FROM finding AS g "
        "WHERE g.page_id = f.page_id AND g.id <= :last AND g.id > f.id "
        "AND g.kind IN ('new', 'changed', 'unchanged')) GROUP BY f.page_id"
    )
    values = {"pages": as_json(list(page_ids)), "last": known.observation}
    rows = await db.execute_fetchall(sql, values)
    return dict(map(tuple, rows))


async def touched(db: Reader, known: LearntUpTo) -> list[int]:
    """Return the pages that were visited, found or altered since, ascending."""
    sql = (
        "SELECT page_id FROM observation WHERE id > ? UNION SELECT id FROM page WHERE id > ? "
        "UNION SELECT page_id FROM altered_page ORDER BY 1"
    )
    rows = await db.execute_fetchall(sql, (known.observation, known.page))
    return [row[0] for row in rows]


async def path_of(db: Reader) -> Path:
    """Return the file of a store."""
    rows = await db.execute_fetchall("PRAGMA database_list")
    return Path(next(row[2] for row in rows if row[1] == "main"))
