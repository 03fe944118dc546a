"""Tables of the results of visits: observations, amendments, audits, versions, bodies."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from hashlib import blake2b
from math import inf
from sqlite3 import Connection
from typing import Any, Final

import zstandard
from aiosqlite import Connection as Reader

from freshet.storage.database import Values, as_json, columns_of, row_to, values_of
from freshet.storage.entries import (
    DOUBTFUL,
    REBASED,
    TEXT_CHANNELS,
    Amendment,
    Kind,
    Retraction,
    Role,
)
from freshet.storage.records import Estimate, Observation, PageHistory, Visit
from freshet.storage.tables import links, near_duplicates, pages

#: Kinds that saw the page's content and so refer to a version of it.
_SAW_CONTENT = frozenset({"new", "changed", "unchanged"})

_AT = "SELECT count(*) FROM observation WHERE page_id = ? AND at = ?"


async def count_at(db: Reader, page_id: int, at: float) -> int:
    """Count the observations of a page at that time."""
    return int(next(iter(await db.execute_fetchall(_AT, (page_id, at))))[0])


def any_at(db: Connection, page_id: int, at: float) -> bool:
    """Return whether a page has an observation at that time."""
    return bool(db.execute(_AT, (page_id, at)).fetchone()[0])


async def last_at(db: Reader, run_id: int) -> float:
    """Return the time of the last observation of a run in Unix seconds, -inf without one."""
    sql = "SELECT ifnull(max(at), ?) FROM observation WHERE run_id = ?"
    ((found,),) = await db.execute_fetchall(sql, (-inf, run_id))
    return float(found)


async def newest(db: Reader) -> int:
    """Return the id of the newest observation, 0 without any."""
    ((found,),) = await db.execute_fetchall("SELECT ifnull(max(id), 0) FROM observation")
    return int(found)


_APPEND: Final = (
    f"INSERT INTO observation ({columns_of(Observation)}, run_id, version_id) VALUES "
    f"({', '.join('?' * len(fields(Observation)))}, ?, "
    "(SELECT max(id) FROM version WHERE page_id = ? AND ?))"
)


def append(db: Connection, run_id: int, visits: Sequence[Visit]) -> None:
    """Append the observations of these visits, after their versions were written."""
    db.executemany(
        _APPEND,
        [
            (*values_of(o), run_id, o.page_id, o.kind in _SAW_CONTENT)
            for o in (visit.observation for visit in visits)
        ],
    )


# -- amendments: observations (never changed) as later ones correct them, view ``finding``

#: Verdicts that a run's end may change: changes by blocks, and changes of the frame.
_OPEN = "(o.kind = 'changed' AND o.rung = 'blocks') OR o.rung = 'frame'"


def amend(db: Connection, page_id: int, amendment: Amendment, now: float) -> None:
    """Correct the verdict of an observation; a later correction replaces it.

    Differences beside the text stay; a change by them alone is not corrected.
    """
    sql = (
        "SELECT id, kinds FROM observation "
        "WHERE page_id = ? AND at = ? AND rung IS NOT 'document' ORDER BY id"
    )
    for observation_id, said in db.execute(sql, (page_id, amendment.at)).fetchall():
        kinds = [each for each in (said or "").split() if each not in TEXT_CHANNELS]
        if amendment.kind == "changed":
            kinds.insert(0, "words")
        db.execute(
            "INSERT OR REPLACE INTO amendment (observation_id, kind, rung, reason, kinds, at) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (observation_id, amendment.kind, amendment.rung, amendment.reason,
             " ".join(kinds) or None, now),
        )  # fmt: skip
        sql = "UPDATE page SET last_kind = ? WHERE id = ? AND last_at = ?"
        db.execute(sql, (amendment.kind, page_id, amendment.at))


def fail(
    db: Connection, observation_ids: Sequence[int], reason: str, detail: str, now: float
) -> None:
    """Correct observations to failures: they saw no content."""
    db.executemany(
        "INSERT OR REPLACE INTO amendment (observation_id, kind, reason, detail, at) "
        "VALUES (?, ?, ?, ?, ?)",
        [(each, "failed", reason, detail, now) for each in observation_ids],
    )


async def open_hosts(db: Reader, run_id: int, since: float) -> list[tuple[int, int]]:
    """Return the hosts with verdicts that a run's end may change, and their pages visited since."""
    sql = (
        "SELECT p.host_id, count(DISTINCT o.page_id) FROM observation AS o "
        "JOIN page AS p ON p.id = o.page_id "
        "WHERE o.run_id = ? AND o.at >= ? AND o.kind IN ('new', 'changed', 'unchanged') "
        "AND p.role = 'page' "
        "AND o.id NOT IN (SELECT observation_id FROM amendment WHERE kind = 'failed') "
        f"GROUP BY p.host_id HAVING max({_OPEN})"
    )
    return [(row[0], row[1]) for row in await db.execute_fetchall(sql, (run_id, since))]


async def open_memories(
    db: Reader, run_id: int, host_id: int
) -> list[tuple[int, bytes | None, bytes]]:
    """Return the pages of a host with such verdicts: id, digest of the text, memory."""
    sql = (
        "SELECT m.page_id, p.text_digest, m.data "
        "FROM memory AS m JOIN page AS p ON p.id = m.page_id "
        "WHERE p.host_id = ? AND p.role = 'page' AND EXISTS (SELECT 1 FROM observation AS o "
        f"  WHERE o.page_id = m.page_id AND o.run_id = ? AND ({_OPEN}))"
    )
    return [(row[0], row[1], row[2]) for row in await db.execute_fetchall(sql, (host_id, run_id))]


async def moves(db: Reader, run_id: int) -> list[tuple[int, float, bytes, bytes]]:
    """Return the pages that were new in a run and to which an older page redirects for good.

    Each with its time and the sketches of the old page and the new one; amended verdicts are left
    out.
    """
    sketch = (
        "(SELECT sketch FROM version WHERE page_id = {} AND sketch IS NOT NULL "
        " ORDER BY at DESC, id DESC LIMIT 1)"
    )
    rows = await db.execute_fetchall(
        f"SELECT o.page_id, o.at, {sketch.format('x.id')}, {sketch.format('o.page_id')} "
        "FROM observation AS o JOIN page AS x ON x.alias_of = o.page_id "
        "WHERE o.run_id = ? AND o.kind = 'new' AND x.alias_kind = 'permanent' "
        f"AND o.reason IS NOT '{REBASED}' AND x.version_id IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM amendment WHERE observation_id = o.id) "
        "GROUP BY o.page_id HAVING max(x.checked_at)",
        (run_id,),
    )
    return [(row[0], row[1], row[2], row[3]) for row in rows if row[2] and row[3]]


async def any_since(db: Reader, at: float) -> bool:
    """Return whether a verdict was amended at or after this time."""
    rows = await db.execute_fetchall("SELECT 1 FROM amendment WHERE at >= ? LIMIT 1", (at,))
    return bool(list(rows))


# -- audits: visits to random samples, which measure freshness ----------------


def append_audit(db: Connection, visits: Sequence[Visit]) -> None:
    """Mark the observations of these visits that are audits."""
    db.executemany(
        "INSERT OR REPLACE INTO audit (observation_id, importance, since, expected, hazard) "
        "SELECT max(id), ?, ?, ?, ? FROM observation WHERE page_id = ? AND at = ? HAVING max(id)",
        [
            (a.importance, a.since, a.expected, a.hazard, v.due.page_id, v.observation.at)
            for v in visits
            if (a := v.due.audit) is not None
        ],
    )


async def was_drawn(db: Reader, page_id: int) -> bool:
    """Return whether the last visit of a page was an audit."""
    sql = (
        "SELECT 1 FROM audit WHERE observation_id = "
        "(SELECT max(id) FROM observation WHERE page_id = ?)"
    )
    return bool(list(await db.execute_fetchall(sql, (page_id,))))


# -- versions and bodies: contents of pages, content-addressed ---------------


@dataclass(frozen=True, slots=True)
class NewestText:
    """A page's newest content with a text, by the extraction ``text_version``.

    Of a new extraction there are a ``sketch`` and, if it replaces the page's, a ``memory``
    (versioned bytes).
    """

    page_id: int
    fetch_url: str
    role: Role
    version_id: int
    content_type: str | None
    text_digest: bytes
    text_version: str | None
    sketch: bytes | None = None
    memory: bytes | None = None


async def newest_texts(db: Reader, after: int, limit: int) -> list[NewestText]:
    """Return the newest texts of up to ``limit`` pages, ``after`` a page id."""
    columns = columns_of(
        NewestText, "v", page_id="p.id", fetch_url="p.fetch_url", role="p.role", version_id="v.id",
        sketch="NULL", memory="NULL",
    )  # fmt: skip
    rows = await db.execute_fetchall(
        f"SELECT {columns} FROM page AS p JOIN version AS v ON v.id = p.version_id "
        "WHERE p.id > ? AND v.text_digest IS NOT NULL ORDER BY p.id LIMIT ?",
        (after, limit),
    )
    return list(map(row_to(NewestText), rows))


async def last_page_id(db: Reader) -> int:
    """Return the greatest id of a page, 0 without pages."""
    return int(next(iter(await db.execute_fetchall("SELECT coalesce(max(id), 0) FROM page")))[0])


#: The versions that were a page's first or changed it significantly; the others are noise.
SIGNIFICANT: Final = (
    "SELECT version_id FROM finding WHERE kind IN ('new', 'changed') AND version_id IS NOT NULL"
)
#: True if the detail of a finding ``f`` explains a minor difference or a returned text.
IS_EXPLAINED: Final = "(f.rung = 'minor' OR f.reason = 'return')"
#: The number of the version that a page had after a finding ``f``.
NUMBER: Final = (
    "(SELECT nullif(count(*), 0) FROM version AS v "
    "WHERE v.page_id = f.page_id AND v.id <= f.version_id)"
)


def append_bodies(db: Connection, visits: Iterable[Visit]) -> None:
    """Add a version for each visit with a capture, and its body where one is kept."""
    captured = [(v.due.page_id, v.observation.at, v.capture) for v in visits if v.capture]
    db.executemany(
        "INSERT INTO version (page_id, at, body_digest, text_digest, text_version, content_type, "
        "encoding, sketch, channels) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (page_id, at, *values_of(c.digests), c.content_type, c.encoding, c.sketch, c.channels)
            for page_id, at, c in captured
        ],
    )
    db.executemany(
        "INSERT OR IGNORE INTO body VALUES (?, ?, ?, ?)",
        [(c.digests.body, at, c.size_bytes, c.body) for _, at, c in captured if c.body is not None],
    )


def reread(db: Connection, texts: Sequence[NewestText]) -> None:
    """Replace the texts of the newest contents of pages; observations stay."""
    sql = "UPDATE version SET text_digest = ?, sketch = ?, text_version = ? WHERE id = ?"
    db.executemany(sql, [(t.text_digest, t.sketch, t.text_version, t.version_id) for t in texts])
    sql = "UPDATE page SET text_digest = ? WHERE id = ?"
    db.executemany(sql, [(t.text_digest, t.page_id) for t in texts])
    sql = "INSERT OR REPLACE INTO memory VALUES (?, ?)"
    db.executemany(sql, [(t.page_id, t.memory) for t in texts if t.memory is not None])
    # The index of near-duplicates rests on the old sketches.
    near_duplicates.begin_anew(db)


# -- dictionaries: common parts of a host's pages, with which their bodies are packed ---------
# *Law.* A writer of a frame has found its dictionary in the store, and a dictionary is deleted
# only after the frames that need it. Consequence: a kill leaves no frame that cannot be read.

#: A host gets a dictionary after this many bodies, and a new one after four times as many: the
#: first pages of a site are often of one kind.
_FIRST_MADE: Final = 60
_LAST_MADE: Final = 960
_GROWTH: Final = 4
#: Bodies that one is made of, and bytes of each.
_SAMPLES: Final = 60
_SAMPLE_BYTES: Final = 1 << 15
#: Longer bodies do not count: they are unpacked whole.
_LONGEST: Final = 1 << 20
_DICTIONARY_BYTES: Final = 1 << 15
#: Hosts with counted bodies in memory, some kilobytes each.
_COUNTED: Final = 1_024
#: The ids that the format leaves to everybody.
_LEAST_ID: Final = 1 << 15
_IDS: Final = (1 << 31) - _LEAST_ID
#: A frame names its dictionary within this many bytes.
_HEAD: Final = 18
_PLAIN_LEVEL: Final = 3


def dictionary_id(frame: bytes) -> int:
    """Return the id of the dictionary with which a body is packed, 0 without one.

    Raises:
        zstandard.ZstdError: it is not a frame.
    """
    return zstandard.get_frame_parameters(frame).dict_id


def _words(packed: bytes) -> zstandard.ZstdCompressionDict:
    """Return a dictionary that is stored so."""
    return zstandard.ZstdCompressionDict(zstandard.decompress(packed))


#: For readers. A writer prepares its dictionary for packing, and does not share it.
_words_read = lru_cache(maxsize=16)(_words)


def unpacked(frame: bytes, size: int, dictionary: bytes | None) -> bytes:
    """Return a body of that size, with the dictionary as stored.

    Raises:
        zstandard.ZstdError: it is damaged, or needs another dictionary.
    """
    words = None if dictionary is None else _words_read(dictionary)
    return zstandard.ZstdDecompressor(dict_data=words).decompress(frame, max_output_size=size)


async def dictionary(db: Reader, key: int) -> bytes | None:
    """Return a dictionary, or None."""
    rows = await db.execute_fetchall("SELECT zstd FROM dictionary WHERE id = ?", (key,))
    return next((row[0] for row in rows), None)


async def newest_dictionary(db: Reader, host_id: int) -> zstandard.ZstdCompressionDict | None:
    """Return the dictionary for new bodies of a host, which is the caller's own."""
    sql = (
        "SELECT d.zstd FROM host AS h JOIN dictionary AS d ON d.origin = h.origin "
        "WHERE h.id = ? ORDER BY d.bodies DESC, d.made_at DESC LIMIT 1"
    )
    return next((_words(row[0]) for row in await db.execute_fetchall(sql, (host_id,))), None)


async def has_dictionaries(db: Reader, origins: Collection[str]) -> bool:
    """Return whether a store has dictionaries of these origins."""
    sql = "SELECT 1 FROM json_each(?) JOIN dictionary ON origin = value LIMIT 1"
    return bool(list(await db.execute_fetchall(sql, (as_json(list(origins)),))))


@dataclass(slots=True)
class _HostBodies:
    """The counted bodies of a host, with digests of a sample spread over all of them."""

    count: int
    stride: int = 1
    digests: list[bytes] = field(default_factory=list)

    def add(self, digest: bytes) -> bool:
        """Count one more; return whether a dictionary is due."""
        self.count += 1
        if self.count % self.stride == 0:
            if len(self.digests) >= _SAMPLES:
                del self.digests[1::2]
                self.stride *= 2
            self.digests.append(digest)
        stage = _FIRST_MADE
        while stage < min(self.count, _LAST_MADE):
            stage *= _GROWTH
        return self.count == stage


class Dictionaries:
    """Makes dictionaries of incoming bodies; used by the one writer.

    Attributes:
        made: the newest ones, by host, that are in the store for good.
    """

    def __init__(self) -> None:
        self.made: dict[int, int] = {}
        self._making: dict[int, int] = {}
        self._hosts: dict[int, _HostBodies] = {}

    def follow(self, db: Connection, visits: Iterable[Visit], now: float) -> None:
        """Count the bodies of a batch, and make due dictionaries."""
        for visit in visits:
            capture, host_id = visit.capture, visit.due.host_id
            if capture is None or capture.body is None or visit.role != "page":
                continue
            if capture.size_bytes > _LONGEST:
                continue
            # In the order of use, the last one last.
            host = self._hosts.pop(host_id, None) or _HostBodies(_counted(db, host_id))
            self._hosts[host_id] = host
            if host.add(capture.digests.body) and (key := _make(db, host_id, host, now)):
                self._making[host_id] = key
        while len(self._hosts) > _COUNTED:
            del self._hosts[next(iter(self._hosts))]

    def committed(self) -> None:
        """Let new ones be used: the transaction that made them is in the store."""
        self.made |= self._making
        self._making.clear()

    def forget(self) -> None:
        """Count again: the transaction failed."""
        self._making.clear()
        self._hosts.clear()


def _counted(db: Connection, host_id: int) -> int:
    sql = (
        "SELECT coalesce(max(d.bodies), 0) FROM host AS h JOIN dictionary AS d "
        "ON d.origin = h.origin WHERE h.id = ?"
    )
    return int(db.execute(sql, (host_id,)).fetchone()[0])


def _make(db: Connection, host_id: int, host: _HostBodies, now: float) -> int | None:
    """Make a dictionary of bodies of a host; return its id, None if they are too few or short."""
    samples = list[bytes | bytearray | memoryview]()
    for each in host.digests:
        samples += [body[:_SAMPLE_BYTES]] if (body := _body(db, each)) else []
    key = _LEAST_ID + int.from_bytes(blake2b(b"".join(samples), digest_size=8).digest()) % _IDS
    try:
        # With these parameters it takes some 7 ms. A search for better ones brings no gain.
        made = zstandard.train_dictionary(
            _DICTIONARY_BYTES, samples, k=1024, d=8, f=18, accel=10, dict_id=key
        )
    except zstandard.ZstdError:
        return None
    # Another one may have the id.
    added = db.execute(
        "INSERT OR IGNORE INTO dictionary SELECT ?, origin, ?, ?, ? FROM host WHERE id = ?",
        (key, now, host.count, zstandard.compress(made.as_bytes(), 9), host_id),
    )
    return key if added.rowcount else None


def _body(db: Connection, digest: bytes, schema: str = "main") -> bytes | None:
    """Return a body that is kept, None if it is not, or cannot be read."""
    sql = f"SELECT zstd, size_bytes FROM {schema}.body WHERE digest = ?"
    row = db.execute(sql, (digest,)).fetchone()
    if row is None:
        return None
    try:
        key = dictionary_id(row[0])
        sql = f"SELECT zstd FROM {schema}.dictionary WHERE id = ?"
        words = db.execute(sql, (key,)).fetchone() if key else None
        return unpacked(row[0], row[1], words and words[0])
    except (zstandard.ZstdError, MemoryError):
        return None


def packed_with(db: Connection, keys: Collection[int]) -> list[bytes]:
    """Return the digests of the bodies that are packed with dictionaries; reads all heads."""
    heads = db.execute(f"SELECT digest, substr(zstd, 1, {_HEAD}) FROM body")
    return [digest for digest, head in heads if _id_in(head) in keys]


def _id_in(head: bytes) -> int:
    try:
        return dictionary_id(head)
    except zstandard.ZstdError:
        return 0


def unpack(db: Connection, digests: Iterable[bytes], schema: str = "main") -> None:
    """Pack bodies again without a dictionary; they are in the store ``schema``."""
    for digest in digests:
        if (body := _body(db, digest, schema)) is not None:
            frame = zstandard.compress(body, _PLAIN_LEVEL)
            db.execute("UPDATE main.body SET zstd = ? WHERE digest = ?", (frame, digest))


def dictionaries_of(db: Connection, origins: Collection[str]) -> list[int]:
    """Return the ids of the dictionaries of these origins."""
    sql = "SELECT d.id FROM json_each(?) JOIN dictionary AS d ON d.origin = value"
    return [row[0] for row in db.execute(sql, (as_json(list(origins)),))]


def drop_dictionaries(db: Connection, keys: Collection[int]) -> None:
    """Delete dictionaries that no body needs."""
    db.executemany("DELETE FROM dictionary WHERE id = ?", [(key,) for key in keys])


def drop_unused(db: Connection) -> None:
    """Delete the dictionaries that no body needs; no run may be under way, which could use them."""
    heads = db.execute(f"SELECT substr(zstd, 1, {_HEAD}) FROM body")
    used = {_id_in(row[0]) for row in heads}
    every = {row[0] for row in db.execute("SELECT id FROM dictionary")}
    drop_dictionaries(db, every - used)


def copy_dictionaries(db: Connection) -> None:
    """Copy the dictionaries of the bodies of ``temp.to_version`` from the store ``old``.

    Dictionaries of hosts outside ``temp.moving`` are not copied: their bodies are packed again.
    """
    sql = "SELECT h.origin FROM temp.moving AS m JOIN old.host AS h ON h.id = m.host_id"
    origins = {row[0] for row in db.execute(sql)}
    copied = db.execute(
        f"SELECT b.digest, substr(b.zstd, 1, {_HEAD}) FROM main.body AS b "
        "JOIN old.body AS o ON o.digest = b.digest AND o.zstd = b.zstd "
        "WHERE b.digest IN (SELECT v.body_digest FROM temp.to_version AS m "
        "                   JOIN old.version AS v ON v.id = m.old)"
    )
    by_key: dict[int, list[bytes]] = {}
    for digest, head in copied:
        by_key.setdefault(_id_in(head), []).append(digest)
    by_key.pop(0, None)
    for key, digests in by_key.items():
        find = "SELECT origin, zstd FROM {}.dictionary WHERE id = ?".format
        theirs = db.execute(find("old"), (key,)).fetchone()
        ours = db.execute(find("main"), (key,)).fetchone()
        if theirs is not None and theirs[0] in origins and ours in {None, theirs}:
            sql = "INSERT OR IGNORE INTO main.dictionary SELECT * FROM old.dictionary WHERE id = ?"
            db.execute(sql, (key,))
        elif ours != theirs:
            unpack(db, digests, "old")


# -- memories: change detection beside the last sketch -----------------------

#: The version with the sketch of a page's last text, in the row of ``page AS p``.
_SKETCHED = (
    "(SELECT id FROM version WHERE page_id = p.id AND sketch IS NOT NULL "
    "ORDER BY at DESC, id DESC LIMIT 1)"
)


async def load(db: Reader, page_id: int) -> PageHistory | None:
    """Return the stored state to compare a page's next text with; None without a text."""
    return next(iter(await _histories(db, "p.id = ?", (page_id,))), None)


async def predecessor(db: Reader, page_id: int) -> PageHistory | None:
    """Return the history of the last page that redirects permanently to this one."""
    histories = await _histories(
        db,
        "p.id = (SELECT id FROM page WHERE alias_of = ? AND alias_kind = 'permanent' "
        "AND version_id IS NOT NULL ORDER BY checked_at DESC LIMIT 1)",
        (page_id,),
    )
    return next(iter(histories), None)


async def sample(db: Reader, host_id: int, limit: int) -> list[PageHistory]:
    """Return the histories of up to ``limit`` pages of a host, spread over all of them."""
    return await _histories(
        db,
        "p.id IN (SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS n, "
        "         count(*) OVER () AS total FROM page "
        "         WHERE host_id = :host AND role = 'page' AND text_digest IS NOT NULL) "
        "         WHERE (n * :limit) / total > ((n - 1) * :limit) / total)",
        {"host": host_id, "limit": limit},
    )


def record(db: Connection, visits: Iterable[Visit]) -> None:
    """Store the new memories, and count the visits without a difference."""
    sql = "INSERT OR REPLACE INTO memory VALUES (?, ?)"
    db.executemany(sql, [(v.due.page_id, v.memory) for v in visits if v.memory is not None])
    db.executemany(
        "UPDATE page SET still = iif(?, 0, still + 1) WHERE id = ?",
        [
            (v.memory is not None, v.due.page_id)
            for v in visits
            if v.memory is not None or v.observation.kind == "unchanged"
        ],
    )


async def _histories(db: Reader, condition: str, parameters: Values) -> list[PageHistory]:
    rows = await db.execute_fetchall(
        "SELECT v.sketch, m.data, p.still, v.text_version FROM page AS p "
        f"JOIN version AS v ON v.id = {_SKETCHED} "
        f"LEFT JOIN memory AS m ON m.page_id = p.id WHERE {condition}",
        parameters,
    )
    return [PageHistory(*row) for row in rows]


# -- retractions: captures that prove to be block pages ----------------------
# Invariant: afterwards everything but table ``observation`` is as if the block page had been
# recognised at these visits: they are failures, and no version of the page holds what only they
# captured.

#: Verdicts for a page that has not changed since the visit before.
_SAME = ("304", "body", "text", "volatile")
#: A page's visits that saw its last content, the oldest first.
_LAST_CONTENT = (
    "SELECT id, at, kind, version_id, reason FROM finding AS f "
    "WHERE page_id = :page AND at < :until AND kind IN ('new', 'changed', 'unchanged') "
    "AND id >= coalesce("
    "  (SELECT max(id) FROM finding WHERE page_id = :page AND at < :until "
    "   AND (kind IN ('new', 'changed') "
    f"   OR kind = 'unchanged' AND rung NOT IN {_SAME})), 0) ORDER BY id"
)
#: Whether the content of a page is that which it had before a version.
_IS_BACK = (
    "SELECT 1 FROM page AS p WHERE id = :page AND text_digest = (SELECT text_digest FROM version "
    "WHERE page_id = p.id AND id < :version ORDER BY id DESC LIMIT 1)"
)


def _meant(db: Connection, retraction: Retraction, now: float) -> Sequence[tuple[Any, ...]]:
    """Return the last visits that saw the content of a retraction, all of them doubtful.

    Empty if it means another capture, or if one of them delivered it as content.
    """
    page_id, until = retraction.page_id, now if retraction.returns else inf
    visits = db.execute(_LAST_CONTENT, {"page": page_id, "until": until}).fetchall()
    if not visits or retraction.at not in {None, visits[-1][1]}:
        return ()
    if any(visit[4] != DOUBTFUL for visit in visits):
        return ()
    asked = {"page": page_id, "version": visits[0][3]}
    is_back = not retraction.returns or db.execute(_IS_BACK, asked).fetchone()
    return visits if is_back else ()


def take_back(
    db: Connection, retraction: Retraction, now: float, most: int
) -> tuple[Kind | None, int]:
    """Amend the last visits, ``most`` at most, that saw the content which a retraction means.

    Return the kind of the last one, and their number; None and 0 if the retraction means another
    capture, or if one of them delivered it as content. The version that they saw is deleted unless
    an earlier visit saw it as well.
    """
    page_id = retraction.page_id
    visits = _meant(db, retraction, now)
    if not visits:
        return None, 0
    wrong = visits[-most:]
    ids, times, kinds, *_ = zip(*wrong, strict=True)
    versions = {each[3] for each in wrong} - {each[3] for each in visits[: -len(wrong)]}
    fail(db, ids, retraction.reason, retraction.detail, now)
    sql = (
        "DELETE FROM version WHERE id IN (SELECT value FROM json_each(?)) RETURNING at, body_digest"
    )
    rows = db.execute(sql, (as_json(list(versions)),)).fetchall()
    deleted = [at for at, _ in rows]
    if deleted:
        links.forget(db, page_id, deleted)
        sql = (
            "DELETE FROM body WHERE digest = ? "
            "AND NOT EXISTS (SELECT 1 FROM version WHERE body_digest = digest)"
        )
        db.executemany(sql, [(digest,) for _, digest in rows])
    if not retraction.returns:
        if deleted:
            db.execute("DELETE FROM memory WHERE page_id = ?", (page_id,))
        pages.take_back(db, page_id, times[-1], retraction.reason, keeps_version=not deleted)
    near_duplicates.revise(db, page_id)
    last: Kind = kinds[-1]
    return last, len(wrong)


# -- estimates ---------------------------------------------------------------
#
# Table ``estimate``: the daemon's last belief about each page.

COLUMNS: Final = tuple(Estimate.__dataclass_fields__)
#: A restart forgets the price paid: the stored one stays.
_UPDATES: Final = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS[1:-1])
_WRITE: Final = (
    f"INSERT INTO estimate ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) "
    f"ON CONFLICT (page_id) DO UPDATE SET {_UPDATES}, paid = coalesce(excluded.paid, paid)"
)


def write(db: Connection, estimates: Iterable[Estimate]) -> None:
    """Replace the estimates of these pages."""
    db.executemany(_WRITE, map(values_of, estimates))


async def of_page(db: Reader, page_id: int) -> Estimate | None:
    """Return the estimate of a page, or None before its first valuation."""
    sql = f"SELECT {columns_of(Estimate)} FROM estimate WHERE page_id = ?"
    return next(map(row_to(Estimate), await db.execute_fetchall(sql, (page_id,))), None)
