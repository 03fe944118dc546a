"""Table ``trap``: URL patterns of hosts that are bounded or closed, and their yields."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from sqlite3 import Connection
from typing import Final, TypeAlias

from aiosqlite import Connection as Reader

from freshet.storage.database import as_json, columns_of, row_to
from freshet.storage.entries import DATES, CopyFinding
from freshet.storage.records import Target, Visit
from freshet.storage.tables import frontier
from freshet.storage.tables.pages import Admitted

# -- copies: patterns with URLs that keep giving known pages -----------------
# A pattern gathers URLs that differ in the values of their parameters, or consist of recurring
# values. ``page.copy_of`` is the original of a copy (a page's own id: it is not a copy); a
# *barren* page, which shows only what others show, is a copy unless it led to new pages. If nearly
# all are copies the pattern is *closed*: its unvisited URLs are held back, except a sample.
#
# Invariant: in a row of kind :data:`KIND`, ``admitted`` counts the pages of the pattern with a
# ``copy_of``, ``copies`` those that are copies, and ``closed_at`` is set if and only if the rule
# closes these counts; each function keeps it within the caller's transaction. Consequence: counts
# survive a restart, and a pattern whose pages prove to differ is opened again, with all URLs held
# back.

#: Why a URL of a closed pattern is held back.
KIND = "trap: copies"
#: Why a URL is held back that differs from a known one in a part that makes copies.
BY_PART: Final = "trap: parameter"
#: One of this number of URLs of a closed pattern is requested anyway: evidence continues.
SAMPLED = 20
#: URLs held back at which the sample is halved, and again at twice that number: each filter page
#: leads to a hundred others, so that one in twenty has no end either.
THINNED = 600
#: A multiplier that scatters consecutive ids (D. Knuth's multiplicative hashing).
_SCATTER = 2_654_435_761

_Key = tuple[int, str]
#: Pages by host id.
HostPages: TypeAlias = dict[int, frozenset[int]]


@dataclass(frozen=True, slots=True)
class CopyRule:
    """Number of pages of a pattern (0: never) and share of copies that close it.

    Days with an event are rare, and follow one another: a calendar's pattern is closed by twice as
    many copies in a row. With ``by_part``, parts of URLs that make copies on the whole host hold
    URLs back as well.
    """

    urls: int = 30
    share: float = 0.9
    by_part: bool = True

    def closes(self, read: int, copies: int) -> bool:
        """Return whether the rule closes a pattern with these counts."""
        return 0 < self.urls <= read and copies >= self.share * read

    def ends(self, in_a_row: int) -> bool:
        """Return whether the rule closes a calendar's pattern after this many copies in a row."""
        return 0 < 2 * self.urls <= in_a_row


@dataclass(frozen=True, slots=True)
class Throttle:
    """A reason, ``kind`` (``trap: …``, ``nofollow`` …), that holds URLs of a host back.

    ``shape`` is their pattern, None without one: ``crawled`` of its URLs were admitted and ``held``
    were not. Of a pattern of copies ``crawled`` URLs were read, ``copies`` had no content of their
    own, and ``sampled`` were requested since it was closed at ``closed_at``. ``example`` is a
    URL held back, None if the store does not have it.
    """

    host_id: int
    kind: str
    shape: str | None
    crawled: int
    held: int
    copies: int = 0
    sampled: int = 0
    closed_at: float | None = None
    example: str | None = None


def _pattern(sampled: str = "0", example: str = "NULL") -> str:
    """Return the columns of a :class:`Throttle` in table ``trap``."""
    return columns_of(
        Throttle, "trap", crawled="trap.admitted", held="trap.refused", sampled=sampled,
        example=example,
    )  # fmt: skip


def is_sampled(page_id: int, refused: int = 0, thinned: int = THINNED) -> bool:
    """Return whether this URL of a closed pattern, with ``refused`` others, is requested anyway.

    Of n URLs these are about 30 + 15 log2(n / 600), if n is above 600 = ``thinned``.
    """
    return (page_id * _SCATTER >> 16) % sampling(refused, thinned) == 0


def sampling(refused: int, thinned: int = THINNED) -> int:
    """Return n: one of n URLs is requested if a closed pattern has refused that number."""
    return SAMPLED << (max(refused, 0) // thinned).bit_length()


def closed_copies(db: Connection, keys: Iterable[_Key]) -> dict[_Key, int]:
    """Return the closed ones of these patterns (host id and shape) with their URLs held back."""
    rows = db.execute(
        "SELECT host_id, shape, refused FROM json_each(?) AS k CROSS JOIN trap "
        "ON host_id = k.value ->> 0 AND shape = k.value ->> 1 AND kind = ? "
        "WHERE closed_at IS NOT NULL",
        (as_json(list(keys)), KIND),
    ).fetchall()
    return {(row[0], row[1]): row[2] for row in rows}


def weigh(
    db: Connection,
    visits: Sequence[Visit],
    run_id: int,
    rule: CopyRule,
    revealed: Mapping[int, Sequence[int]],
) -> tuple[HostPages, HostPages]:
    """Learn from these visits, which are recorded and settled.

    ``revealed`` are the pages that have become due by links of each visited page. Return the pages
    that closed and opened patterns released into the frontier, and withdrew from it.
    """
    # URLs that were in flight when their pattern was closed.
    passed = let_pass(db, [v.due.page_id for v in visits], KIND)
    count_refused(db, [(host_id, shape, -1) for host_id, _, shape in passed])
    findings = [finding for visit in visits for finding in visit.copies]
    findings = _without_leads(db, findings, revealed)
    effect: tuple[HostPages, HostPages] = ({}, {})
    if not findings:
        return effect
    at = max(visit.observation.at for visit in visits)
    visited = {v.due.page_id for v in visits}
    for key, counts in _changes(db, findings, visited, run_id).items():
        row = db.execute(
            "INSERT INTO trap (host_id, shape, kind, admitted, copies) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET admitted = admitted + excluded.admitted, "
            f"copies = copies + excluded.copies RETURNING {_pattern()}",
            (*key, KIND, *counts),
        ).fetchone()
        _decide(db, row_to(Throttle)(row), rule, at=at, effect=effect)
    return effect


def reconsider(db: Connection, rule: CopyRule, at: float) -> None:
    """Close and open patterns by this rule, which may differ from the last run's."""
    rows = db.execute(f"SELECT {_pattern()} FROM trap WHERE kind = ?", (KIND,)).fetchall()
    for found in map(row_to(Throttle), rows):
        _decide(db, found, rule, at=at, effect=({}, {}))
    if not rule.by_part:
        sql = "UPDATE page SET held_back = NULL WHERE held_back = ? RETURNING id"
        held = [row[0] for row in db.execute(sql, (BY_PART,)).fetchall()]
        frontier.add(db, held, at, "discovery")
        db.execute("UPDATE trap SET closed_at = NULL, refused = 0 WHERE kind = ?", (BY_PART,))


async def pattern_of(db: Reader, page_id: int) -> Throttle | None:
    """Return the counts of the pattern of a URL, or None."""
    rows = await db.execute_fetchall(
        f"SELECT {_pattern()} FROM page AS p JOIN trap "
        "ON trap.host_id = p.host_id AND trap.shape = p.pattern AND trap.kind = ? WHERE p.id = ?",
        (KIND, page_id),
    )
    return next(map(row_to(Throttle), rows), None)


async def bounded(db: Reader) -> list[tuple[str, Throttle]]:
    """Return the patterns with URLs that are not crawled, each with the origin of its host."""
    rows = await db.execute_fetchall(
        f"SELECT h.origin, {_pattern()} FROM trap JOIN host AS h ON h.id = trap.host_id "
        "WHERE trap.refused > 0 ORDER BY trap.refused DESC"
    )
    return [(row[0], row_to(Throttle)(row[1:])) for row in rows]


def bounded_as_json(found: Sequence[tuple[str, Throttle]]) -> list[dict[str, object]]:
    """Return bounded patterns, with their origins, as JSON values."""
    return [
        {
            "origin": origin, "kind": each.kind, "shape": each.shape, "admitted": each.crawled,
            "refused": each.held,
        }
        for origin, each in found
    ]  # fmt: skip


async def original_of(db: Reader, page_id: int) -> str | None:
    """Return the URL of the original of which a page was a copy when last read, or None."""
    sql = (
        "SELECT o.url FROM page AS p JOIN page AS o ON o.id = p.copy_of "
        "WHERE p.id = ? AND o.id <> p.id"
    )
    return next((str(row[0]) for row in await db.execute_fetchall(sql, (page_id,))), None)


async def texts(db: Reader, host_id: int, limit: int) -> list[tuple[int, str, bytes]]:
    """Return id, URL and sketch of the first ``limit`` pages of a host, as they were found."""
    sql = (
        "SELECT id AS page_id, url, (SELECT sketch FROM version WHERE page_id = page.id "
        "  AND sketch IS NOT NULL ORDER BY id DESC LIMIT 1) AS sketch FROM page "
        "WHERE host_id = ? AND role = 'page' AND text_digest IS NOT NULL "
        "AND last_kind <> 'gone' AND sketch IS NOT NULL ORDER BY id LIMIT ?"
    )
    return [(row[0], row[1], row[2]) for row in await db.execute_fetchall(sql, (host_id, limit))]


def let_pass(db: Connection, page_ids: Iterable[int], kind: str) -> list[tuple[int, str, str]]:
    """Release the pages among these that are held back for this reason.

    Return their hosts, URLs and patterns.
    """
    sql = (
        "UPDATE page SET held_back = NULL WHERE id IN (SELECT value FROM json_each(?)) "
        "AND held_back = ? RETURNING host_id, url, pattern"
    )
    return [(row[0], row[1], row[2]) for row in db.execute(sql, (as_json(list(page_ids)), kind))]


def withdraw(db: Connection, page_ids: Collection[int], kind: str) -> None:
    """Hold these pages back, which are in the frontier."""
    if not page_ids:
        return
    chosen = as_json(list(page_ids))
    sql = "UPDATE page SET held_back = ? WHERE id IN (SELECT value FROM json_each(?))"
    db.execute(sql, (kind, chosen))
    db.execute("DELETE FROM frontier WHERE page_id IN (SELECT value FROM json_each(?))", (chosen,))


def count_refused(db: Connection, counts: Iterable[tuple[int, str, int]], kind: str = KIND) -> None:
    """Add to the numbers of URLs held back, by host and shape."""
    sql = (
        "UPDATE trap SET refused = max(refused + ?, 0) WHERE host_id = ? AND shape = ? AND kind = ?"
    )
    db.executemany(sql, [(count, host_id, shape, kind) for host_id, shape, count in counts])


def _without_leads(
    db: Connection, findings: Sequence[CopyFinding], revealed: Mapping[int, Sequence[int]]
) -> list[CopyFinding]:
    """Return the findings; barren pages that led to valuable pages are not copies.

    A page is valuable if it has no pattern, or another one with a majority of pages that are not
    copies.
    """
    new = {f.page_id: revealed.get(f.page_id, ()) for f in findings if f.is_barren}
    if not any(new.values()):
        return list(findings)
    rows = db.execute(
        "SELECT p.id, p.pattern FROM json_each(?) AS k CROSS JOIN page AS p ON p.id = k.value "
        "LEFT JOIN trap AS t ON t.host_id = p.host_id AND t.shape = p.pattern AND t.kind = ? "
        "WHERE p.role = 'page' AND (p.pattern IS NULL OR 2 * t.copies < t.admitted)",
        (as_json([page_id for pages in new.values() for page_id in pages]), KIND),
    ).fetchall()
    worth = {row[0]: row[1] for row in rows}
    return [
        replace(f, original_id=None, is_barren=False)
        if any(n in worth and worth[n] != f.pattern for n in new.get(f.page_id, ()))
        else f
        for f in findings
    ]


def _counted_in(before: int | None, stored: str | None) -> str | None:
    """Return the pattern in which a page was counted, if it was."""
    return None if before is None else stored


def _changes(
    db: Connection, findings: Sequence[CopyFinding], visited: Collection[int], run_id: int
) -> Mapping[_Key, tuple[int, int]]:
    """Record for each page whether it is a copy; return the pages read of each pattern, and copies.

    Both are additions to the counts of the pattern.
    """
    known = _known(db, {f.page_id for f in findings}, run_id)
    changes: dict[_Key, tuple[int, int]] = {}
    shapes = {}
    for finding in findings:
        host_id, before, may_have_changed, stored = known[finding.page_id]
        # Recurring values are known only later: a page stays in the pattern that counted it.
        shape = shapes[finding.page_id] = _counted_in(before, stored) or finding.pattern
        now = finding.original_id or finding.page_id
        was_copy, is_copy = before not in {None, finding.page_id}, now != finding.page_id
        if was_copy and not is_copy and may_have_changed and before not in visited:
            continue
        read, copies = changes.get((host_id, shape), (0, 0))
        changes[host_id, shape] = read + (before is None), copies + is_copy - was_copy
        known[finding.page_id] = host_id, now, may_have_changed, shape
    sql = "UPDATE page SET copy_of = ?, pattern = ? WHERE id = ?"
    db.executemany(sql, [(known[page_id][1], shape, page_id) for page_id, shape in shapes.items()])
    return changes


def _known(
    db: Connection, page_ids: Collection[int], run_id: int
) -> dict[int, tuple[int, int | None, bool, str | None]]:
    """Return of these pages: host, ``copy_of``, whether the original was not visited, pattern.

    An original not visited in this run may have changed in the same way as its copy.
    """
    rows = db.execute(
        "SELECT p.id, p.host_id, p.copy_of, "
        "coalesce(o.last_at < (SELECT started_at FROM crawl_run WHERE id = ?), 0), p.pattern "
        "FROM json_each(?) AS k CROSS JOIN page AS p ON p.id = k.value "
        "LEFT JOIN page AS o ON o.id = p.copy_of",
        (run_id, as_json(list(page_ids))),
    ).fetchall()
    return {row[0]: (row[1], row[2], bool(row[3]), row[4]) for row in rows}


def _decide(
    db: Connection,
    found: Throttle,
    rule: CopyRule,
    *,
    at: float,
    effect: tuple[HostPages, HostPages],
) -> None:
    """Close or open a pattern by its counts."""
    host_id, shape = found.host_id, str(found.shape)
    if shape.endswith(DATES):
        closes = rule.ends(_in_a_row(db, host_id, shape))
    else:
        closes = rule.closes(found.crawled, found.copies)
    if closes == (found.closed_at is not None):
        return
    sql = "UPDATE trap SET closed_at = ? WHERE host_id = ? AND shape = ? AND kind = ?"
    db.execute(sql, (at if closes else None, host_id, shape, KIND))
    released, withdrawn = effect
    if closes:
        left = _withdraw(db, host_id, shape)
        withdrawn[host_id] = withdrawn.get(host_id, frozenset()).union(left)
    elif pages := _release(db, host_id, shape, at):
        released[host_id] = released.get(host_id, frozenset()).union(pages)


def _in_a_row(db: Connection, host_id: int, shape: str) -> int:
    """Return the number of copies among a pattern's pages since the last one that is not a copy."""
    row = db.execute(
        "SELECT count(*) FILTER (WHERE copy_of <> id AND found_at > ("
        "  SELECT ifnull(max(found_at), 0) FROM page WHERE host_id = :host AND pattern = :shape "
        "  AND copy_of = id)) "
        "FROM page WHERE host_id = :host AND pattern = :shape AND copy_of IS NOT NULL",
        {"host": host_id, "shape": shape},
    ).fetchone()
    return int(row[0])


def _withdraw(db: Connection, host_id: int, shape: str) -> list[int]:
    """Remove unvisited URLs from the frontier, except those that the user named (depth 0)."""
    rows = db.execute(
        "SELECT id FROM page WHERE host_id = ? AND pattern = ? AND last_at IS NULL "
        "AND held_back IS NULL AND depth > 0 AND id IN (SELECT page_id FROM frontier)",
        (host_id, shape),
    ).fetchall()
    page_ids: list[int] = []
    for (page_id,) in rows:
        if not is_sampled(page_id, len(page_ids)):
            page_ids.append(page_id)
    withdraw(db, page_ids, KIND)
    count_refused(db, [(host_id, shape, len(page_ids))])
    return page_ids


def _release(db: Connection, host_id: int, shape: str, at: float) -> list[int]:
    rows = db.execute(
        "UPDATE page SET held_back = NULL WHERE host_id = ? AND pattern = ? AND held_back = ? "
        "RETURNING id",
        (host_id, shape, KIND),
    ).fetchall()
    page_ids = [row[0] for row in rows]
    frontier.add(db, page_ids, at, "discovery")
    count_refused(db, [(host_id, shape, -len(page_ids))])
    return page_ids


#: The pattern of a target, its kind, and the number of its URLs that are crawled.
_Sign: TypeAlias = tuple[str, str, int]


def bound(
    db: Connection, admitted: Sequence[Admitted], targets: Sequence[Target]
) -> dict[int, str]:
    """Count these pages; return those to be held back, with the kind of their pattern.

    They are copies by a closed pattern, or beyond the cap of a bounded one.
    """
    copied = _copies(db, admitted, targets)
    signs = {
        url: (shape, kind, cap)
        for url, *_, shape, kind, cap, _ in targets
        if shape is not None and kind is not None
    }
    others = [page for page in admitted if page.url in signs and page.page_id not in copied]
    return copied | _beyond_caps(db, [(page, signs[page.url]) for page in others])


def _copies(
    db: Connection, admitted: Sequence[Admitted], targets: Sequence[Target]
) -> dict[int, str]:
    """Store the patterns of these pages; return those held back as copies."""
    patterns = {
        url: (shape, depth) for url, _, _, _, depth, *_, shape in targets if shape is not None
    }
    found = [(page, *patterns[page.url]) for page in admitted if page.url in patterns]
    if not found:
        return {}
    sql = "UPDATE page SET pattern = ? WHERE id = ?"
    db.executemany(sql, [(shape, p.page_id) for p, shape, _ in found])
    refused = _beyond_sample(db, found)
    count_refused(db, [(page.host_id, shape, 1) for page, shape in refused])
    return {page.page_id: KIND for page, _ in refused}


def _beyond_sample(
    db: Connection, found: Sequence[tuple[Admitted, str, int]]
) -> Sequence[tuple[Admitted, str]]:
    """Return the pages, with patterns and depths, with a pattern that takes no more."""
    closed = closed_copies(db, {(page.host_id, shape) for page, shape, _ in found})
    refused: list[tuple[Admitted, str]] = []
    for page, shape, depth in found:
        key = page.host_id, shape
        if depth and key in closed and not is_sampled(page.page_id, closed[key]):
            closed[key] += 1
            refused.append((page, shape))
    return refused


def _beyond_caps(db: Connection, bounded: Sequence[tuple[Admitted, _Sign]]) -> dict[int, str]:
    if not bounded:
        return {}
    counts = _counts(db, {(page.host_id, shape, kind) for page, (shape, kind, _) in bounded})
    refused: dict[int, str] = {}
    for page, (shape, kind, cap) in bounded:
        key = page.host_id, shape, kind
        if counts[key] >= cap:
            refused[page.page_id] = kind
        else:
            counts[key] += 1
    db.executemany(
        "INSERT INTO trap (host_id, shape, kind, admitted, refused) "
        "VALUES (:host, :shape, :kind, NOT :refused, :refused) ON CONFLICT DO UPDATE SET "
        "admitted = admitted + excluded.admitted, refused = refused + excluded.refused",
        [
            {"host": p.host_id, "shape": shape, "kind": kind, "refused": p.page_id in refused}
            for p, (shape, kind, _) in bounded
        ],
    )
    return refused


def _counts(db: Connection, keys: Iterable[tuple[int, str, str]]) -> Counter[tuple[int, str, str]]:
    """Return the crawled URLs of these patterns, by host, shape and kind."""
    rows = db.execute(
        "SELECT host_id, shape, kind, admitted FROM json_each(?) AS k CROSS JOIN trap "
        "ON host_id = k.value ->> 0 AND shape = k.value ->> 1 AND kind = k.value ->> 2",
        (as_json(list(keys)),),
    ).fetchall()
    return Counter({(row[0], row[1], row[2]): row[3] for row in rows})


# -- yields: share of own pages among the requested URLs of a pattern --------
# Own pages are not copies, not barren, not gone, not failures. :attr:`PatternYield.shrunk` shrinks
# the share of few URLs towards the host's share.

#: URLs of a pattern that weigh as much as all others of its host: half of those that close it.
STRENGTH: Final = 15.0


@dataclass(frozen=True, slots=True)
class PatternYield:
    """Yield of a pattern (None: of URLs without one): of ``read`` URLs ``own`` were own pages.

    ``of_host`` is the share of own pages among all requested URLs of the host.
    """

    host_id: int
    pattern: str | None
    read: int
    own: int
    of_host: float

    @property
    def shrunk(self) -> float:
        """Return the share of ``own``, shrunk towards the host's share; from 0 to 1."""
        return (self.own + STRENGTH * self.of_host) / (self.read + STRENGTH)


async def yields(db: Reader, host_ids: Collection[int]) -> list[PatternYield]:
    """Return all patterns of these hosts with requested URLs, None among them."""
    rows = await db.execute_fetchall(
        "SELECT p.host_id, p.pattern, count(*), "
        "  sum(p.last_kind IN ('new', 'changed', 'unchanged') AND coalesce(p.copy_of, p.id) = p.id)"
        "FROM json_each(?) AS k CROSS JOIN page AS p ON p.host_id = k.value "
        "WHERE p.role = 'page' AND p.last_kind NOT IN ('redirected', 'refused', 'skipped') "
        "GROUP BY p.host_id, p.pattern ORDER BY p.host_id, p.pattern",
        (as_json(sorted(host_ids)),),
    )
    read, own = defaultdict[int, int](int), defaultdict[int, int](int)
    for host_id, _, count, pages in rows:
        read[host_id] += count
        own[host_id] += pages
    return [
        PatternYield(host_id, pattern, count, pages, own[host_id] / read[host_id])
        for host_id, pattern, count, pages in rows
    ]


async def representatives(db: Reader) -> dict[int, int]:
    """Return for the copies in closed patterns the first copy, which represents all.

    An endless pattern counts as one page, however many were read before it was closed.
    """
    sql = (
        "SELECT p.id, min(p.id) OVER (PARTITION BY t.host_id, t.shape) FROM trap AS t "
        "JOIN page AS p ON p.host_id = t.host_id AND p.pattern = t.shape "
        "WHERE t.kind = ? AND t.closed_at IS NOT NULL AND p.copy_of <> p.id AND p.depth > 0"
    )
    return {row[0]: row[1] for row in await db.execute_fetchall(sql, (KIND,))}


# -- throttles: known URLs that are not crawled, by reason -------------------


async def reach(db: Reader, host_ids: Collection[int]) -> dict[str, int]:
    """Count the pages of these hosts: known, asked (visited), waiting for that, held back."""
    rows = await db.execute_fetchall(
        "SELECT count(*) AS known, "
        "  count(*) FILTER (WHERE held_back IS NULL AND last_at IS NOT NULL) AS asked, "
        "  count(*) FILTER (WHERE held_back IS NULL AND last_at IS NULL) AS waiting, "
        "  count(held_back) AS held "
        "FROM json_each(?) AS k CROSS JOIN page AS p ON p.host_id = k.value WHERE role = 'page'",
        (as_json(sorted(host_ids)),),
    )
    return dict(next(iter(rows)))


async def throttles(db: Reader, host_ids: Collection[int]) -> list[Throttle]:
    """Return the reasons that hold URLs of these hosts back, the largest first.

    Of patterns these are the closed ones of copies, and the bounded ones with URLs beyond the cap.
    """
    columns = _pattern(
        sampled=f"(SELECT count(*) {_OF_PATTERN} AND p.last_at > trap.closed_at "
        "  AND p.found_at > trap.closed_at)",
        example=f"iif(trap.kind = :kind, (SELECT url {_OF_PATTERN} "
        "  AND p.held_back = trap.kind ORDER BY p.id LIMIT 1), NULL)",
    )
    hosts = as_json(sorted(host_ids))
    traps = await db.execute_fetchall(
        f"SELECT {columns} FROM json_each(:hosts) AS k CROSS JOIN trap ON trap.host_id = k.value "
        "WHERE iif(trap.kind = :kind, trap.closed_at IS NOT NULL, trap.refused > 0)",
        {"hosts": hosts, "kind": KIND},
    )
    others = await db.execute_fetchall(
        # Beside min() SQLite takes the other columns from the row that has it.
        "SELECT p.host_id, p.held_back, NULL, 0, count(*), 0, 0, NULL, p.url, min(p.id) "
        "FROM json_each(?) AS k CROSS JOIN page AS p ON p.host_id = k.value "
        "WHERE p.held_back NOT LIKE 'trap: %' AND p.held_back <> 'spelling' GROUP BY 1, 2",
        (hosts,),
    )
    found = map(row_to(Throttle), [*traps, *(row[:-1] for row in others)])
    return sorted(found, key=lambda each: (-each.held, each.kind, each.shape or ""))


async def held(db: Reader, host_id: int, kind: str, limit: int) -> list[str]:
    """Return the first URLs of a host that are held back for a reason."""
    sql = "SELECT url FROM page WHERE host_id = ? AND held_back = ? ORDER BY id LIMIT ?"
    return [row[0] for row in await db.execute_fetchall(sql, (host_id, kind, limit))]


_OF_PATTERN = "FROM page AS p WHERE p.host_id = trap.host_id AND p.pattern = trap.shape"
