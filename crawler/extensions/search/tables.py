"""Tables ``search_page`` and ``search_words``: the index of the documents' words, if there is one.

*Invariant.* The index has the version of each page in the changefeed (table ``change``), and is
updated in the same transaction. Consequence: a page is found as soon as its visit is acknowledged,
and not found as soon as a visit that saw it deleted, moved or withheld is. A version that is not
from a visit (a new index, a withdrawn capture) is :func:`pending` until :func:`fill` has its words.

``search_words`` is an FTS5 table without content. To delete a row, FTS5 needs exactly the words
that were inserted; ``search_page`` keeps them, packed.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from sqlite3 import Connection, OperationalError
from typing import Any, Final, Literal, Protocol

import zstandard
from aiosqlite import Connection as Reader

from freshet.config.settings import Settings
from freshet.entry_points import loaded
from freshet.storage.database import Database, as_json, columns_of, row_to
from freshet.storage.errors import StoreError
from freshet.storage.records import Observation

#: Version of the words of given text. Raise it with every change of :mod:`.words`.
FORMAT: Final = 1
#: Of zstd: 6 takes some 5 % less space for three times the processor's time.
_LEVEL: Final = 3

_INDEX: Final = ("search_words", "search_page", "search_index")
_TRIGGERS: Final = ("search_is_forgotten", "search_goes_with_its_page")

#: Searches that are counted, and characters of one.
_REMEMBERED: Final = 20_000
_LONGEST_SEARCH: Final = 200
#: Rows of ``change`` with a document that the index should have.
_TOLD: Final = "c.kind <> 'noise' AND c.version_id IS NOT NULL"
_INSERT: Final = "INSERT INTO search_words (rowid, title, headings, body) VALUES (?, ?, ?, ?)"
#: By its key: an UPDATE of possibly more rows makes FTS5 flush its buffers.
_COUNT: Final = "UPDATE search_index SET pages = pages + ?, words = words + ? WHERE id = 1"
_DELETE: Final = (
    "INSERT INTO search_words (search_words, rowid, title, headings, body) "
    "VALUES ('delete', ?, ?, ?, ?)"
)


class Meter(Protocol):
    """Measures what replacing the words of pages changes of search quality, in a run."""

    def measure(self, db: Connection, page_id: int, old: str | None, new: str | None) -> float:
        """Return the change before the index has it; lines are the page's lines, or None."""

    def keep(self, db: Connection, page_id: int, packed: bytes) -> None:
        """Keep the packed lines that a page had until now."""

    def note_gains(
        self, db: Connection, seen: Sequence[Observation], gained: Mapping[int, float]
    ) -> None:
        """Store the changes of visits, by page."""

    def forget(self) -> None:
        """Drop the cache after a transaction was rolled back."""

    async def keep_up(self, database: Database, settings: Settings, now: float) -> None:
        """Store the contribution of pages to searches, and the quality."""


class Metering(Protocol):
    """Measures search quality by an index: a module, or an object."""

    def create(self, db: Connection) -> None:
        """Make its tables where they are not there; called with each index that is opened."""

    def drop(self, db: Connection) -> None:
        """Delete its tables, with the index."""

    def forget(self, db: Connection, page_ids: Sequence[int]) -> None:
        """Delete the measurements of pages."""

    async def open(self, database: Database, settings: Settings) -> Meter | None:
        """Return the meter of a run, None if the settings want no measurements."""

    async def quality(self, db: Reader) -> float | None:
        """Return the quality of searches, None where it is not measured."""


#: Entry points that give :class:`Metering`; the first one is used.
METERS: Final = "freshet.meters"


def metering() -> Metering | None:
    """Return what measures search quality, if an extension does."""
    return next(iter(loaded(METERS).values()), None)


@dataclass(frozen=True, slots=True)
class PendingPage:
    """A page; its version ``version_id`` is not indexed yet."""

    page_id: int
    version_id: int
    fetch_url: str
    content_type: str | None
    title: str | None


def take_over(db: Connection, wanted: Literal["on", "off", "keep"]) -> bool:
    """Make, delete or keep the index; return whether it exists now.

    Raises:
        StoreError: as :func:`create`.
    """
    if wanted == "on":
        create(db)
    elif wanted == "off":
        drop(db)
    if not exists(db):
        return False
    for sql in _statements():
        # An index that an earlier version made lacks some.
        if "IF NOT EXISTS" in sql:
            db.execute(sql)
    if (meters := metering()) is not None:
        meters.create(db)
    # Pages that a Freshet without this extension has deleted since.
    sql = "SELECT c.page_id FROM change AS c JOIN search_page AS s ON s.page_id = c.page_id "
    rows = db.execute(f"{sql} WHERE c.kind <> 'noise' AND c.version_id IS NULL").fetchall()
    follow(db, [row[0] for row in rows], {})
    return True


def _statements() -> list[str]:
    """Return the statements that make the index; a trigger's statements are indented."""
    return re.split(r";\n(?=[CI-])", (files(__package__) / "index.sql").read_text("utf-8"))


def exists(db: Connection) -> bool:
    """Return whether the store has an index of the current format."""
    sql = "SELECT count(*) FROM sqlite_master WHERE name = 'search_index'"
    if not db.execute(sql).fetchone()[0]:
        return False
    return bool(db.execute(f"SELECT format = {FORMAT} FROM search_index").fetchone()[0])


def create(db: Connection) -> None:
    """Make an empty index, in the place of one of another format; one that is there stays.

    Raises:
        StoreError: Python's SQLite has no FTS5.
    """
    if exists(db):
        return
    _drop(db, _INDEX)
    try:
        for sql in _statements():
            db.execute(sql)
        db.execute("INSERT INTO search_index (id, format) VALUES (1, ?)", (FORMAT,))
    except OperationalError as error:
        if "no such module" not in str(error):
            raise
        raise StoreError(
            "this Python's SQLite has no FTS5, which the search index needs; "
            "use a Python from python.org, uv, or your distribution"
        ) from error
    if (meters := metering()) is not None:
        meters.create(db)


def drop(db: Connection) -> None:
    """Delete the index, if there is one, and all that rests on it."""
    _drop(db, (*_INDEX, "search_asked"))
    if (meters := metering()) is not None:
        meters.drop(db)


def _drop(db: Connection, names: Iterable[str]) -> None:
    for name in _TRIGGERS:
        db.execute(f"DROP TRIGGER IF EXISTS {name}")
    for name in names:
        db.execute(f"DROP TABLE IF EXISTS {name}")


def follow(
    db: Connection, page_ids: Iterable[int], words: Mapping[int, str], meter: Meter | None = None
) -> dict[int, float]:
    """Update the index with the changefeed's current documents of these pages.

    ``words`` are the indexed lines of pages' newest captures (:func:`.words.index_lines`). Returns
    the quality changes of pages that were indexed before.
    """
    rows = db.execute(
        "SELECT p.id, p.version_id, c.version_id, s.version_id, s.words "
        "FROM json_each(?) AS wanted JOIN page AS p ON p.id = wanted.value "
        f"LEFT JOIN change AS c ON c.page_id = p.id AND {_TOLD} "
        "LEFT JOIN search_page AS s ON s.page_id = p.id "
        # FTS5 flushes its buffers when the ids do not ascend.
        "WHERE c.version_id IS NOT s.version_id ORDER BY p.id",
        (as_json(sorted(page_ids)),),
    ).fetchall()
    changes: dict[int, float] = {}
    for page_id, newest, wanted, indexed, packed in rows:
        old = None if indexed is None else unpacked(packed)
        new = words.get(page_id) if wanted is not None and wanted == newest else None
        if meter is not None:
            change = meter.measure(db, page_id, old, new)
            if old is not None:
                changes[page_id] = change
                meter.keep(db, page_id, packed)
        if old is not None:
            _remove(db, page_id, old)
        if new is not None:
            _add(db, page_id, wanted, new)
    return changes


def forget(db: Connection, page_ids: Iterable[int]) -> None:
    """Delete the words and measurements of pages that leave the store."""
    ids = list(page_ids)
    sql = "SELECT s.* FROM json_each(?) JOIN search_page AS s ON page_id = value ORDER BY page_id"
    for page_id, _, packed in db.execute(sql, (as_json(ids),)).fetchall():
        _remove(db, page_id, unpacked(packed))
    if (meters := metering()) is not None:
        meters.forget(db, ids)


def fill(db: Connection, pages: Iterable[tuple[int, int, str]]) -> None:
    """Index pages, each with its version and lines; those that have another version by now not."""
    for page_id, version_id, words in pages:
        row = db.execute(
            "SELECT s.words FROM change AS c LEFT JOIN search_page AS s USING (page_id) "
            f"WHERE c.page_id = ? AND {_TOLD} AND c.version_id = ?",
            (page_id, version_id),
        ).fetchone()
        if row is not None:
            if row[0] is not None:
                _remove(db, page_id, unpacked(row[0]))
            _add(db, page_id, version_id, words)


def renew(db: Connection, words: Mapping[int, str]) -> None:
    """Replace the words of pages that are indexed; the versions that they are of stay."""
    sql = "SELECT s.* FROM json_each(?) JOIN search_page AS s ON page_id = value ORDER BY page_id"
    for page_id, version_id, packed in db.execute(sql, (as_json(list(words)),)).fetchall():
        _remove(db, page_id, unpacked(packed))
        _add(db, page_id, version_id, words[page_id])


def unpacked(packed: bytes) -> str:
    """Return the lines that are indexed of a page: title, headings, other blocks."""
    return zstandard.ZstdDecompressor().decompress(packed).decode()


def length(lines: str) -> int:
    """Return the number of words in the lines of a page."""
    # Two spaces divide headings.
    return sum(1 + line.count(" ") - line.count("  ") for line in lines.split("\n") if line)


def _add(db: Connection, page_id: int, version_id: int, words: str) -> None:
    packed = zstandard.ZstdCompressor(_LEVEL).compress(words.encode())
    db.execute("INSERT INTO search_page VALUES (?, ?, ?)", (page_id, version_id, packed))
    db.execute(_INSERT, (page_id, *words.split("\n")))
    db.execute(_COUNT, (1, length(words)))


def _remove(db: Connection, page_id: int, words: str) -> None:
    db.execute(_DELETE, (page_id, *words.split("\n")))
    db.execute("DELETE FROM search_page WHERE page_id = ?", (page_id,))
    db.execute(_COUNT, (-1, -length(words)))


def compact(db: Connection) -> None:
    """Merge all of the index, which leaves nothing of deleted words in it."""
    if exists(db):
        db.execute("INSERT INTO search_words (search_words) VALUES ('optimize')")


async def pending(db: Reader, after: int, limit: int) -> list[PendingPage]:
    """Return pages with an id above ``after`` without an indexed document, in order."""
    columns = columns_of(
        PendingPage, "v", page_id="p.id", version_id="v.id", fetch_url="p.fetch_url",
        title="c.title",
    )  # fmt: skip
    rows = await db.execute_fetchall(
        f"SELECT {columns} FROM change AS c JOIN page AS p ON p.id = c.page_id "
        "JOIN version AS v ON v.id = c.version_id "
        "LEFT JOIN search_page AS s ON s.page_id = c.page_id "
        f"WHERE {_TOLD} AND c.page_id > ? AND s.version_id IS NOT c.version_id "
        "ORDER BY c.page_id LIMIT ?",
        (after, limit),
    )
    return list(map(row_to(PendingPage), rows))


async def is_there(db: Reader) -> bool:
    """Return whether the store has an index of the current format, as :func:`exists`."""
    sql = "SELECT count(*) FROM sqlite_master WHERE name = 'search_index'"
    if not (await _rows(db, sql))[0][0]:
        return False
    return bool(await _rows(db, f"SELECT 1 FROM search_index WHERE format = {FORMAT}"))


async def counts(db: Reader) -> tuple[int, int] | None:
    """Return the number of indexed pages, and of those that should be; None without an index."""
    if not await is_there(db):
        return None
    sql = f"SELECT (SELECT pages FROM search_index), count(*) FROM change AS c WHERE {_TOLD}"
    ((indexed, told),) = await _rows(db, sql)
    return indexed, told


def count_search(db: Connection, terms: str) -> None:
    """Count a search for these sorted words, if the store has an index."""
    if not exists(db) or len(terms) > _LONGEST_SEARCH:
        return
    if db.execute("SELECT count(*) FROM search_asked").fetchone()[0] >= _REMEMBERED:
        # What is asked again and again stays.
        db.execute("UPDATE search_asked SET times = times / 2")
        db.execute("DELETE FROM search_asked WHERE times = 0")
    sql = "INSERT INTO search_asked VALUES (?, 1) ON CONFLICT DO UPDATE SET times = times + 1"
    db.execute(sql, (terms,))


async def asked(db: Reader, limit: int) -> list[tuple[str, int]]:
    """Return the most frequent searches: sorted words, and their count."""
    return await _rows(
        db, f"SELECT terms, times FROM search_asked ORDER BY times DESC, terms LIMIT {limit}"
    )


async def _rows(db: Reader, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await db.execute_fetchall(sql)]
