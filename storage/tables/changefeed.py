"""Tables ``changefeed`` and ``change``: documents in the order of their last changes.

A page's document is its newest significant version, while the page exists, may be indexed, and has
not moved permanently. Other visits (failures, temporary redirects) do not affect it.

*Invariant.* The row of a page gets a new, higher number with each change of its document, in the
transaction of the visit that found the change. Consequence: a consumer that has read all rows up to
a number gets, by the rows after it, the last state of each page with a later change.

A change that proves to be noise is withdrawn: its row then has the page's last real change, or how
the page became known, and a noise row has the rest. The row keeps its number and its version.
Consequence: consumers that have read the row have the same document as others, and consumers that
have not do not receive the change.

*Invariant.* A row lists the verdicts of itself and of the earlier rows, each with its number and
its version (rows of older releases without them). Consequence: a consumer that has missed several
changes receives the kinds of all of them by their current verdicts, ``refreshed`` never hides a
change, and the version that a consumer has is known.
"""

import base64
import json
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from sqlite3 import Connection
from typing import Final, Literal, NamedTuple, TypeAlias

from aiosqlite import Connection as Reader

from freshet.storage.database import as_json, columns_of, row_to
from freshet.storage.entries import CHANNELS, PREFERENCES, REFRESHED, stored
from freshet.storage.errors import CursorGone
from freshet.storage.records import Doubt, Visit
from freshet.storage.tables.pages import NO_CONTENT_SINCE

#: Kinds of changes. ``refreshed``: the document differs in details that do not count as a change.
#: The kinds after ``noise`` are reasons why the document no longer exists.
ChangeKind: TypeAlias = Literal[
    "new", "changed", "refreshed", "noise",
    "gone", "moved", "noindex", "robots", "withdrawn", "forgotten",
]  # fmt: skip

#: Kinds of visits without information on a document, unless they have a new version.
_SILENT: Final = frozenset({"unchanged", "failed", "skipped"})
#: Kinds between which a later verdict may move a document.
_DIFFERING: Final = frozenset({"changed", REFRESHED})
#: Largest number of verdicts that a row lists.
_MOST_FINDINGS: Final = 32
_STATES: Final = (files(__package__) / "changefeed.sql").read_text("utf-8")


def touched(db: Connection, visits: Iterable[Visit]) -> set[int]:
    """Return the pages with documents that these visits may have changed."""
    found, silent = set[int](), []
    for visit in visits:
        told = visit.capture is not None or visit.noindex or visit.amendments
        if told or visit.observation.kind not in _SILENT:
            found.add(visit.due.page_id)
        elif visit.observation.kind == "unchanged":
            silent.append(visit.due.page_id)
        found.update(each.page_id for each in visit.retractions)
    if not silent:
        return found
    # A page without a document may have its old content again, or may be published again.
    sql = (
        "SELECT value FROM json_each(?) WHERE NOT EXISTS "
        "(SELECT 1 FROM change WHERE page_id = value AND version_id IS NOT NULL)"
    )
    return found.union(row[0] for row in db.execute(sql, (as_json(silent),)))


#: The time and the observation of a change.
_Seen: TypeAlias = tuple[float, int | None]


class _State(NamedTuple):
    """A page's document as published and as found: a row of ``changefeed.sql``."""

    page_id: int
    missing: ChangeKind | None
    last_id: int | None
    last_at: float | None
    version: int
    found_id: int | None
    found_at: float
    found: int | None
    told: int | None
    noise: int | None
    exists: bool
    was: ChangeKind | None
    told_at: float
    told_id: int | None
    is_noise: bool
    kind: ChangeKind | None

    @property
    def newest(self) -> int:
        """Return the newest version that is not noise; the first version never is."""
        told = self.told or 0
        return max(self.found or 0, told if self.exists else 0) or self.version

    @property
    def is_newer(self) -> bool:
        """Return whether a version other than the published one is to be published."""
        # Withdrawn noise does not change the document.
        return self.newest != self.told or (self.noise or 0) > self.version

    @property
    def has_noise(self) -> bool:
        """Return whether the page differs by noise that was not published."""
        return (self.version > self.newest or self.is_noise) and self.version != self.noise

    @property
    def is_first(self) -> bool:
        """Return whether the first document of a page is to be published."""
        untold = self.was is None and self.noise is None
        return untold and self.missing is None and not self.has_noise

    def last(self, now: float) -> _Seen:
        """Return the time and the observation of the page's last visit."""
        return now if self.last_at is None else self.last_at, self.last_id

    def seen(self, last: _Seen) -> _Seen:
        """Return the time and the observation that found the newest version."""
        return (self.found_at, self.found_id) if self.newest == self.found else last


def restate(db: Connection, visits: Iterable[Visit]) -> None:
    """Enter documents again if their preferences have changed; call after :func:`tell`."""
    for visit in visits:
        if visit.preferences is None:
            continue
        page_id = visit.due.page_id
        sql = "SELECT max(id) FROM observation WHERE page_id = ?"
        ((seen_id,),) = db.execute(sql, (page_id,)).fetchall()
        row = db.execute(
            "SELECT version_id FROM change WHERE page_id = ? AND kind <> 'noise' "
            "AND version_id IS NOT NULL AND observation_id IS NOT ?",
            (page_id, seen_id),
        ).fetchone()
        if row is not None:
            _enter(db, page_id, REFRESHED, row[0], (visit.at, seen_id))


def _tell_missing(db: Connection, state: _State, missing: ChangeKind, last: _Seen) -> None:
    """Enter that the document is missing; a forgotten page stays so until it is found again."""
    # A new reason is also published.
    if state.told is not None or state.was not in {None, missing, "forgotten"}:
        _enter(db, state.page_id, missing, None, last)


def _tell_document(db: Connection, state: _State, last: _Seen) -> None:
    """Enter a document's newest version, its current verdict, and later noise."""
    page_id, told_otherwise = state.page_id, {state.was, state.kind} == _DIFFERING
    if state.is_newer:
        _tell_version(db, state, last)
    elif state.is_noise:
        _take_back(db, page_id, state.kind or "new", state.found_id)
        last = state.told_at, state.told_id
    elif state.found == state.told and told_otherwise and state.kind is not None:
        _take_back(db, page_id, state.kind, state.found_id)
    elif state.was == REFRESHED:
        _add_change(db, page_id)
    if state.has_noise:
        _enter(db, page_id, "noise", state.version, last)


def _tell_version(db: Connection, state: _State, last: _Seen) -> None:
    newest, is_found = state.newest, state.newest == state.found
    is_refreshed = newest == state.told or (is_found and state.kind == REFRESHED)
    how: ChangeKind = REFRESHED if is_refreshed else "changed"
    kind = "new" if state.told is None else how
    _enter(db, state.page_id, kind, newest, state.seen(last))


def tell(db: Connection, page_ids: Collection[int], now: float) -> None:
    """Enter the changes of these pages' documents, after the rest of a batch was written."""
    states = [_State(*row) for row in db.execute(_STATES, (as_json(sorted(page_ids)),)).fetchall()]
    # Nearly all documents of a first crawl.
    first = [state for state in states if state.is_first]
    db.executemany(
        _ENTER, [("new", s.newest, *s.seen(s.last(now)), None, s.page_id) for s in first]
    )
    for state in states:
        if state.is_first:
            continue
        last = state.last(now)
        if state.missing is not None:
            _tell_missing(db, state, state.missing, last)
        else:
            _tell_document(db, state, last)


#: The findings of a row ``c``: its finding alone, if it replaced no other row.
_FINDINGS: Final = (
    "coalesce(c.findings, json_array(json_array(ifnull(c.observation_id, 0), c.seq, c.version_id)))"
)


_ENTER: Final = (
    "INSERT OR REPLACE INTO change (kind, version_id, at, observation_id, changed_at, page_id, "
    "title, language, canonical_url) SELECT ?, ?, ?, ?, ?, id, title, language, canonical_url "
    "FROM page WHERE id = ?"
)


def _enter(
    db: Connection,
    page_id: int,
    kind: ChangeKind,
    version_id: int | None,
    seen: tuple[float, int | None],
) -> None:
    """Replace a page's row; ``seen`` is when and by which observation. Noise before it ends."""
    before, changed_at = list[list[int]](), None
    if kind != "noise":
        db.execute("DELETE FROM change WHERE page_id = ? AND kind = 'noise'", (page_id,))
        if version_id is not None:
            before, changed_at = _told_before(db, page_id)
    entered = db.execute(
        _ENTER, (kind, version_id, *seen, changed_at if kind == REFRESHED else None, page_id)
    )
    if before and version_id is not None and seen[1] is not None:
        _name(db, page_id, [*before, [seen[1], entered.lastrowid or 0, version_id]])


def _told_before(db: Connection, page_id: int) -> tuple[list[list[int]], float | None]:
    """Return the findings that a page's row names, and when the page was new or changed last."""
    row = db.execute(
        f"SELECT {_FINDINGS}, coalesce(c.changed_at, c.at) FROM change AS c "
        "WHERE c.page_id = ? AND c.kind <> 'noise' AND c.version_id IS NOT NULL",
        (page_id,),
    ).fetchone()
    return (json.loads(row[0]), row[1]) if row else ([], None)


def _name(db: Connection, page_id: int, findings: Sequence[Sequence[int]]) -> None:
    db.execute(
        "UPDATE change SET findings = ? WHERE page_id = ? AND kind <> 'noise'",
        (as_json(findings[-_MOST_FINDINGS:]), page_id),
    )


def _add_change(db: Connection, page_id: int) -> None:
    """Add a change to a page's row that counted as noise when the row was entered."""
    findings, _ = _told_before(db, page_id)
    named = [each[0] for each in findings]
    found = db.execute(
        "SELECT id FROM finding WHERE page_id = ? AND kind = 'changed' AND id BETWEEN ? AND ? "
        "ORDER BY id DESC LIMIT 1",
        (page_id, min(named), max(named)),
    ).fetchone()
    if found is not None and found[0] not in named:
        _name(db, page_id, [*findings[:-1], [found[0], findings[-1][1]], findings[-1]])


def _take_back(db: Connection, page_id: int, kind: ChangeKind, found_id: int | None) -> None:
    """Set a page's row to its current kind, or to an earlier finding; its document stays."""
    db.execute(
        "UPDATE change SET kind = ?, observation_id = coalesce(?, observation_id) "
        "WHERE page_id = ? AND kind <> 'noise'",
        (kind, found_id, page_id),
    )


def forget(db: Connection, page_ids: Sequence[int], now: float) -> None:
    """Enter that these pages were forgotten, if consumers knew a document of them."""
    sql = "SELECT page_id FROM change JOIN json_each(?) ON page_id = value WHERE kind <> 'noise'"
    for (page_id,) in db.execute(sql, (as_json(list(page_ids)),)).fetchall():
        _enter(db, page_id, "forgotten", None, (now, None))


def begin_epoch(db: Connection) -> None:
    """Give a copy of a store another name, so that no cursor is valid in both."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'changefeed'").fetchone():
        db.execute("UPDATE changefeed SET epoch = lower(hex(randomblob(8)))")


# -- reading -----------------------------------------------------------------

_CURSOR: Final = re.compile(r"([0-9a-f]{16})-(\d{1,18})(?:-(\d{1,18}))?")
#: Rows that are looked at in one query where not all match.
_ROWS: Final = 1_000
#: More than the number of any change.
_ENDLESS: Final = 1 << 62
_START_ANEW: Final = "empty your copy, and start anew at 0"


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a store's changefeed: all changes up to number ``seq`` were delivered.

    The consumer began after number ``begun``: it has no page that was deleted before.
    """

    epoch: str
    seq: int
    begun: int

    def __str__(self) -> str:
        """Return the cursor that consumers keep."""
        return f"{self.epoch}-{self.seq}" + (f"-{self.begun}" if self.begun > self.seq else "")


@dataclass(frozen=True, slots=True)
class LastChange:
    """The last change of a page's document.

    ``version_id`` is None if the document was deleted; ``moved_to`` is the new URL of a page that
    has moved. ``no_content_since`` is the time since when visits find no content, or None.
    ``resemblance`` and the numbers of blocks are the observation's. ``kinds`` has the channels that
    differ from the consumer's version, separated by spaces. ``doubt`` is the present doubt about
    the page's content, ``preferences`` has the stored statements about its use.
    """

    seq: int
    page_id: int
    url: str
    title: str | None
    kind: ChangeKind
    at: float
    version_id: int | None
    moved_to: str | None
    no_content_since: float | None
    resemblance: float | None
    blocks_added: int | None
    blocks_removed: int | None
    kinds: str | None
    doubt: Doubt | None = field(default=None, metadata=stored(Doubt, optional=True))
    preferences: str | None = None

    @property
    def channels(self) -> tuple[str, ...]:
        """Return the channels in ``kinds``, each once."""
        said = (self.kinds or "").split()
        return tuple(each for each in (*CHANNELS, PREFERENCES) if each in said)


#: The cursor of a folder of shards begins so; and the most bytes that one is read for.
_VECTOR: Final = "s"
_MOST_BYTES: Final = 100_000


def packed(places: Mapping[int, str], turn: int) -> str:
    """Return the cursor of a folder: its shards' cursors, and the shard with the next turn."""
    data = zlib.compress(json.dumps([turn, places], separators=(",", ":")).encode())
    return _VECTOR + base64.urlsafe_b64encode(data).decode().rstrip("=")


def unpacked(since: str) -> tuple[dict[int, str], int]:
    """Return the cursors of shards, and the turn, in a folder's; none of ``0`` and ``now``.

    Raises as :func:`position`.
    """
    if since in {"0", "now"}:
        return {}, 0
    if _CURSOR.fullmatch(since):
        raise CursorGone(f"the cursor is of a store in one file; {_START_ANEW}")
    try:
        data = base64.b64decode(since[1:] + "=" * (-len(since[1:]) % 4), "-_", validate=True)
        turn, places = json.loads((reader := zlib.decompressobj()).decompress(data, _MOST_BYTES))
        if since.startswith(_VECTOR) and reader.eof and turn >= 0:
            return {int(shard): str(place) for shard, place in places.items()}, int(turn)
    except (ValueError, TypeError, AttributeError, RecursionError, zlib.error):
        pass
    raise ValueError(_no_cursor(since))


def _no_cursor(since: str) -> str:
    return f"{since[:80]!r} is no cursor; accepted are 0, now and what a feed returned"


async def position(db: Reader, since: str) -> Position:
    """Return the place of a cursor, of ``0`` (before all changes), or of ``now`` (after them).

    Raises:
        ValueError: the text is none of these.
        CursorGone: the cursor belongs to another store, or deletions after it are not kept.
    """
    # The last number that was given, also if its row has been deleted since.
    sql = (
        "SELECT epoch, kept_from, coalesce((SELECT seq FROM sqlite_sequence "
        "WHERE name = 'change'), 0) FROM changefeed"
    )
    ((epoch, kept_from, last),) = await db.execute_fetchall(sql)
    if since in {"0", "now"}:
        return Position(epoch, 0 if since == "0" else last, last)
    found = _CURSOR.fullmatch(since)
    if found is None:
        raise ValueError(_no_cursor(since))
    place = Position(found[1], int(found[2]), int(found[3] or found[2]))
    if place.epoch != epoch:
        why = "the cursor belongs to another store, or to this one before it was restored"
        raise CursorGone(f"{why}; {_START_ANEW}")
    if place.seq > last:
        why = "the cursor is of changes that the store has lost: an older copy stands in its place"
        raise CursorGone(f"{why}; {_START_ANEW}")
    if max(place.seq, place.begun) < kept_from:
        raise CursorGone(f"deletions since the cursor are not kept any more; {_START_ANEW}")
    return place


#: The findings ``k`` of a row ``c``, with their current verdicts.
_NAMED: Final = (
    f"FROM json_each({_FINDINGS}) AS e CROSS JOIN finding AS k "
    "WHERE k.id = json_extract(e.value, '$[0]')"
)
_COLUMNS: Final = columns_of(
    LastChange, "c", url="p.url", title="p.title",
    doubt="p.doubtful_as, p.doubtful_p, p.doubtful_why", preferences="p.preferences",
    resemblance="iif(a.kind IS 'failed', NULL, f.resemblance)",
    blocks_added="iif(a.kind IS 'failed', NULL, f.blocks_added)",
    blocks_removed="iif(a.kind IS 'failed', NULL, f.blocks_removed)",
    # By its last URL; as delivered if it is out of scope, or if the old URL serves content again.
    no_content_since=NO_CONTENT_SINCE,
    moved_to="iif(c.kind = 'moved', coalesce(t.url, a.detail, f.detail), NULL)",
    # The last change that "refreshed" replaced before it was delivered.
    kind=f"iif(c.kind = '{REFRESHED}', coalesce((SELECT k.kind {_NAMED} AND "
    "json_extract(e.value, '$[1]') > :told AND k.kind IN ('new', 'changed') "
    f"ORDER BY k.id DESC LIMIT 1), '{REFRESHED}'), c.kind)",
    kinds=f"(SELECT group_concat(k.kinds, ' ') {_NAMED} AND (k.id = c.observation_id "
    "OR json_extract(e.value, '$[1]') > :told))",
)  # fmt: skip
#: The changes in their order, behind one number; with noise or without. The view ``finding`` is not
#: joined: SQLite would make all of its rows before.
_CHANGES: Final = (
    f"SELECT {_COLUMNS} FROM change AS c JOIN page AS p ON p.id = c.page_id "
    "LEFT JOIN page AS t ON t.id = p.alias_of "
    "LEFT JOIN observation AS f ON f.id = c.observation_id "
    "LEFT JOIN amendment AS a ON a.observation_id = f.id "
    "WHERE c.seq > :after AND (c.kind <> 'noise' OR :noise) ORDER BY c.seq LIMIT :most"
)


async def changes(
    db: Reader,
    after: Position,
    limit: int,
    *,
    noise: bool = False,
    match: re.Pattern[str] | None = None,
) -> tuple[list[LastChange], Position]:
    """Return up to ``limit`` changes after a place, in their order, and the place after them.

    Only changes with a matching URL are returned; noise is left out unless requested.
    """
    found: list[LastChange] = []
    seq, most = after.seq, limit if match is None else _ROWS
    rows = most
    while len(found) < limit and rows == most:
        asked = {"after": seq, "told": after.seq, "noise": noise, "most": most}
        told = await db.execute_fetchall(_CHANGES, asked)
        read = list(map(row_to(LastChange), told))
        rows = len(read)
        for change in read:
            seq = change.seq
            if match is None or match.fullmatch(change.url):
                found.append(change)
            if len(found) == limit:
                break
    return found, replace(after, seq=seq)


async def told_versions(
    db: Reader, after: Position, found: Iterable[LastChange]
) -> dict[int, int | None]:
    """Return, by page, the version that a consumer at a place has, None without a version.

    Pages are left out if it is unknown: their row was delivered without a version, by an older
    release, or before the page was deleted.
    """
    sql = (
        f"SELECT c.page_id, c.seq, (SELECT e.value FROM json_each({_FINDINGS}) AS e "
        "WHERE json_extract(e.value, '$[1]') <= ? ORDER BY e.key DESC LIMIT 1) "
        "FROM json_each(?) AS s JOIN change AS c ON c.seq = s.value"
    )
    told = await db.execute_fetchall(sql, (after.seq, as_json([each.seq for each in found])))
    versions = {page_id: json.loads(said)[2:] for page_id, _, said in told if said is not None}
    known: dict[int, int | None] = {page_id: it[0] for page_id, it in versions.items() if it}
    # A consumer that still reads the first state of the feed has received no other version.
    return known | {page: None for page, seq, said in told if said is None and seq <= after.begun}


async def newest(
    db: Reader, limit: int, is_wanted: Callable[[str], bool] = bool
) -> list[LastChange]:
    """Return the last changes but noise of wanted URLs, newest first, each by itself."""
    seqs, before, rows = list[int](), _ENDLESS, _ROWS
    listing = (
        "SELECT c.seq, p.url FROM change AS c JOIN page AS p ON p.id = c.page_id "
        "WHERE c.seq < ? AND c.kind <> 'noise' ORDER BY c.seq DESC LIMIT ?"
    )
    while len(seqs) < limit and rows == _ROWS:
        told = [*await db.execute_fetchall(listing, (before, _ROWS))]
        seqs += [seq for seq, url in told if is_wanted(url)]
        before, rows = told[-1][0] if told else 0, len(told)
    chosen = "c.seq IN (SELECT value FROM json_each(:seqs))"
    sql = _CHANGES.replace("ORDER BY c.seq", f"AND {chosen} ORDER BY c.seq DESC")
    asked = {"after": 0, "noise": False, "most": limit, "seqs": as_json(seqs[:limit])}
    found = await db.execute_fetchall(sql.replace(":told", "c.seq - 1"), asked)
    return list(map(row_to(LastChange), found))


async def document_of(db: Reader, page_id: int) -> int | None:
    """Return the version of a page's document; without one, its last content, or None."""
    sql = (
        "SELECT coalesce(c.version_id, p.version_id) FROM page AS p LEFT JOIN change AS c "
        "ON c.page_id = p.id AND c.kind <> 'noise' WHERE p.id = ?"
    )
    return next((row[0] for row in await db.execute_fetchall(sql, (page_id,))), None)
