"""Counts and lists of the whole store, for status and reports. Read-only."""

import tomllib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from math import inf
from pathlib import Path
from typing import Any, Final

import aiosqlite
from aiosqlite import Connection as Reader

from freshet.storage.database import as_json, row_to
from freshet.storage.entries import INTERNAL_ERROR, OWN_FAULTS, REBASED, REFRESHED
from freshet.storage.tables.observations import IS_EXPLAINED, NUMBER, SIGNIFICANT
from freshet.storage.tables.pages import NO_CONTENT_SINCE


@dataclass(frozen=True, slots=True)
class Holdings:
    """Counts of all that a store holds; sizes in bytes.

    ``pages`` counts pages with a capture that are not aliases; ``links`` counts current ones.
    ``body_bytes`` is the size of kept bodies decoded, ``stored_bytes`` compressed.
    """

    urls: int
    pages: int
    aliases: int
    hosts: int
    links: int
    offsite_links: int
    observations: int
    versions: int
    bodies: int
    body_bytes: int
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class WaitingHost:
    """A host with ``urls`` in the frontier, for which a run, or a pause ``until`` then, waits."""

    origin: str
    until: float | None
    reason: str | None
    urls: int


async def holdings(db: Reader) -> Holdings:
    """Count the rows of a store."""
    rows = await db.execute_fetchall(
        "SELECT p.urls, p.pages, p.aliases, (SELECT count(*) FROM host), "
        "       (SELECT count(*) FROM link WHERE gone_at IS NULL), "
        "       (SELECT count(*) FROM offsite_link WHERE gone_at IS NULL), "
        "       (SELECT count(*) FROM observation), (SELECT count(*) FROM version), "
        "       b.bodies, b.decoded, b.packed "
        "FROM (SELECT count(*) AS urls, count(alias_of) AS aliases, count(*) FILTER ("
        "        WHERE role = 'page' AND alias_of IS NULL AND checked_at IS NOT NULL) AS pages "
        "      FROM page) AS p, "
        "     (SELECT count(*) AS bodies, coalesce(sum(size_bytes), 0) AS decoded, "
        "             coalesce(sum(length(zstd)), 0) AS packed FROM body) AS b"
    )
    return Holdings(*next(iter(rows)))


async def frontier_counts(db: Reader, now: float) -> dict[str, int]:
    """Count the URLs of the frontier: due now, waiting for a retry, deferred to the next run."""
    sql = (
        "SELECT count(*) FILTER (WHERE deferred IS NULL AND due_at <= :now) AS due, "
        "       count(*) FILTER (WHERE deferred IS NULL AND due_at > :now) AS waiting, "
        "       count(deferred) AS deferred FROM frontier"
    )
    return dict(next(iter(await db.execute_fetchall(sql, {"now": now}))))


async def to_come(db: Reader) -> int:
    """Count the URLs of the frontier that this run is to visit."""
    sql = (
        "SELECT count(*) - (SELECT count(*) FROM frontier WHERE deferred IS NOT NULL) FROM frontier"
    )
    return int(next(iter(await db.execute_fetchall(sql)))[0])


async def busiest(db: Reader, now: float, limit: int) -> list[tuple[str, int]]:
    """Return the origins with the most URLs due now, and how many."""
    sql = (
        "SELECT h.origin, d.n AS due FROM (SELECT host_id, count(*) AS n FROM frontier "
        "  WHERE deferred IS NULL AND due_at <= ? GROUP BY host_id) AS d "
        "JOIN host AS h ON h.id = d.host_id ORDER BY d.n DESC, h.origin LIMIT ?"
    )
    return [(row[0], row[1]) for row in await db.execute_fetchall(sql, (now, limit))]


async def parked(db: Reader, now: float) -> list[WaitingHost]:
    """Return the hosts that are parked now, the first to be free first."""
    sql = (
        "SELECT origin, parked_until AS until, parked_reason AS reason, "
        "       (SELECT count(*) FROM frontier WHERE host_id = host.id) AS urls "
        "FROM host WHERE parked_until > ? ORDER BY parked_until, origin"
    )
    return [WaitingHost(**row) for row in await db.execute_fetchall(sql, (now,))]


#: Pages ``p`` whose current content is doubtful.
_DOUBTFUL: Final = "p.doubtful_as IS NOT NULL AND p.role = 'page' AND p.alias_of IS NULL"


async def needing_javascript(db: Reader) -> list[tuple[str, int]]:
    """Return the origins with pages that needed JavaScript at their last visit, and how many."""
    sql = (
        "SELECT h.origin, count(*) AS n FROM page AS p JOIN host AS h ON h.id = p.host_id "
        "WHERE p.role = 'page' AND p.last_kind = 'failed' AND 'needs_javascript' = ("
        "  SELECT reason FROM finding WHERE page_id = p.id ORDER BY id DESC LIMIT 1) "
        "GROUP BY h.id ORDER BY n DESC, h.origin"
    )
    return [(row[0], row[1]) for row in await db.execute_fetchall(sql)]


@dataclass(frozen=True, slots=True)
class DoubtfulPage:
    """A page with doubtful content, see :class:`~freshet.storage.records.Doubt`."""

    url: str
    kind: str
    probability: float
    why: str


async def doubtful(db: Reader, most: int) -> tuple[int, list[DoubtfulPage]]:
    """Return how many pages are doubtful, and the most probable block pages among them."""
    ((count,),) = await db.execute_fetchall("SELECT count(*) FROM page AS p WHERE " + _DOUBTFUL)
    sql = (
        "SELECT url, doubtful_as AS kind, doubtful_p AS probability, doubtful_why AS why "
        f"FROM page AS p WHERE {_DOUBTFUL} ORDER BY doubtful_p DESC, url LIMIT ?"
    )
    return count, list(map(row_to(DoubtfulPage), await db.execute_fetchall(sql, (most,))))


async def without_content(db: Reader) -> list[tuple[str, int]]:
    """Return the origins with pages that have no content any more, and how many."""
    sql = (
        "SELECT h.origin, count(*) AS n FROM page AS p JOIN host AS h ON h.id = p.host_id "
        f"WHERE p.no_content_since IS NOT NULL AND {NO_CONTENT_SINCE} IS NOT NULL "
        "GROUP BY h.id ORDER BY n DESC, h.origin"
    )
    return [(row[0], row[1]) for row in await db.execute_fetchall(sql)]


async def last_sign_of_life(db: Reader, run_id: int) -> float | None:
    """Return the time of the newest observation of the store, if it is of this run."""
    sql = "SELECT at FROM observation WHERE id = (SELECT max(id) FROM observation) AND run_id = ?"
    return next((float(row[0]) for row in await db.execute_fetchall(sql, (run_id,))), None)


def file_bytes(path: Path) -> int:
    """Return the size of the store on disk with its write-ahead log."""
    log = path.with_name(path.name + "-wal")
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)


# -- reports -----------------------------------------------------------------

_GOOD = "('new', 'changed', 'unchanged')"


async def appeared(db: Reader, run_id: int, after: int = 0) -> list[str]:
    """Return the pages that a run fetched for the first time, after an observation."""
    sql = f"SELECT p.url {_OF_PAGES} f.kind = 'new' AND f.reason IS NOT '{REBASED}' "
    found = await db.execute_fetchall(f"{sql} {_OF_RUN} ORDER BY f.id", (run_id, after))
    return [row[0] for row in found]


async def vanished(db: Reader, run_id: int, after: int = 0) -> list[str]:
    """Return the pages that a run found gone after an observation, and the visit before not."""
    sql = (
        "SELECT p.url FROM observation AS o JOIN page AS p ON p.id = o.page_id "
        "WHERE o.run_id = ? AND o.id > ? AND o.kind = 'gone' AND p.role = 'page' AND ("
        f"  SELECT b.kind IN {_GOOD} FROM finding AS b "
        "  WHERE b.page_id = o.page_id AND b.id < o.id AND b.kind NOT IN ('failed', 'refused') "
        "  ORDER BY b.id DESC LIMIT 1) ORDER BY o.id"
    )
    return [row[0] for row in await db.execute_fetchall(sql, (run_id, after))]


async def deferred(db: Reader) -> list[WaitingHost]:
    """Return the hosts with URLs that wait for the next run."""
    rows = await db.execute_fetchall(
        "SELECT h.origin, NULL AS until, max(f.deferred) AS reason, count(*) AS urls "
        "FROM frontier AS f JOIN host AS h ON h.id = f.host_id WHERE f.deferred IS NOT NULL "
        "GROUP BY h.id ORDER BY h.origin"
    )
    return [WaitingHost(**row) for row in rows]


def deferred_as_json(found: Sequence[WaitingHost]) -> list[dict[str, object]]:
    """Return the hosts with deferred URLs as JSON values."""
    return [{"origin": each.origin, "urls": each.urls, "reason": each.reason} for each in found]


async def silent_seeds(db: Reader, run_id: int) -> list[tuple[str, str, str]]:
    """Return the seeds on hosts without a page in a run: line, URL, and the last result.

    Seeds of other shards are left out.
    """
    rows = await db.execute_fetchall(
        "SELECT s.text, coalesce(s.root_url, s.url), f.deferred, o.kind, o.reason, o.detail, "
        "       o.status, p.held_back, s.fallback_url, r.reason "
        "FROM seed AS s LEFT JOIN page AS p ON p.id = s.page_id "
        "LEFT JOIN robots AS r ON r.host_id = p.host_id "
        "LEFT JOIN frontier AS f ON f.page_id = p.id LEFT JOIN finding AS o ON o.id = ("
        "  SELECT max(id) FROM observation WHERE page_id = p.id AND run_id = :run) "
        # One lookup for each host of seeds: many seeds may be on one large host.
        "WHERE coalesce(p.held_back, '') <> 'shard' AND (p.id IS NULL OR p.host_id NOT IN "
        " (SELECT h.host_id FROM (SELECT DISTINCT host_id FROM page "
        "  WHERE id IN (SELECT page_id FROM seed)) AS h WHERE EXISTS (SELECT 1 FROM page "
        "  WHERE host_id = h.host_id AND role = 'page' AND checked_at >= "
        "  (SELECT started_at FROM crawl_run WHERE id = :run)))) ORDER BY s.id",
        {"run": run_id},
    )
    return [(row[0], row[1], _why_silent(row)) for row in rows]


async def moved_seeds(db: Reader) -> list[tuple[str, str]]:
    """Return the seeds that redirected, so that their scope has moved: line and new URL."""
    rows = await db.execute_fetchall(
        "SELECT text, root_url FROM seed WHERE root_url IS NOT NULL AND root_url <> url "
        "AND root_url <> coalesce(fallback_url, '') ORDER BY id"
    )
    return [(row[0], row[1]) for row in rows]


async def held_back(db: Reader) -> dict[str, int]:
    """Count the known URLs that are not crawled, by reason."""
    # A former spelling is not a separate URL.
    sql = "SELECT held_back, count(*) FROM page WHERE held_back <> 'spelling' GROUP BY 1"
    return {row[0]: row[1] for row in await db.execute_fetchall(sql)}


async def kinds(db: Reader, run_id: int, after: int = 0) -> dict[str, int]:
    """Count a run's visits to pages after an observation, by kind; of repeated tries the last."""
    # Of a daemon's millions of visits nearly all are to pages: the others are looked up once.
    sql = (
        f"SELECT iif(f.reason IS '{REBASED}', f.reason, f.kind), count(*) FROM finding AS f "
        "WHERE f.page_id NOT IN (SELECT id FROM page WHERE role <> 'page') AND "
        "f.run_id = :run AND f.id > :after AND (f.kind <> 'failed' OR NOT EXISTS (SELECT 1 FROM "
        "  observation AS o WHERE o.page_id = f.page_id AND o.run_id = :run AND o.id > f.id)) "
        "GROUP BY 1 ORDER BY 1"
    )
    rows = await db.execute_fetchall(sql, {"run": run_id, "after": after})
    return {row[0]: row[1] for row in rows}


def _why_silent(row: aiosqlite.Row) -> str:
    """Return the reason for which a seed has no page, and the remedy."""
    _, _, deferred_why, kind, reason, detail, status, held, over_http, of_robots = row
    # A bad certificate does not justify a request without TLS.
    wants_http = "tls" in {deferred_why, reason} and over_http is not None
    hint = f"; name {over_http} to crawl it without https" if wants_http else ""
    if deferred_why is not None:
        is_told = of_robots is None or of_robots in deferred_why
        return (deferred_why if is_told else f"{deferred_why}: {of_robots}") + hint
    if kind is None:
        return str(held) if held else "it was not reached"
    if reason == "out_of_scope":
        return f"it redirects to {detail}, another site; name that to crawl it"
    return _last_answer(kind, status, reason, detail) + hint


def _last_answer(kind: str, status: int | None, reason: str | None, detail: str | None) -> str:
    """Return how the last visit of a seed ended, in words."""
    words = [
        kind,
        None if status is None else f"HTTP {status}",
        INTERNAL_ERROR if reason in OWN_FAULTS else None,
        detail or reason,
    ]
    return ": ".join(str(word) for word in words if word)


# -- changes of all pages, in the order of time ------------------------------


@dataclass(frozen=True, slots=True)
class PageChange:
    """A page that changed, appeared or vanished.

    ``kind`` is "refreshed" if the differences do not count as a change; ``kinds`` names them.
    ``resemblance`` is to the text before; ``version_id`` is the version after the change, with its
    number; ``before_id`` is the significant one before it, or None. ``reason``: of a failed visit,
    of a minor difference, or of a return.
    """

    at: float
    url: str
    kind: str
    title: str | None
    resemblance: float | None
    blocks_added: int | None
    blocks_removed: int | None
    version_id: int | None
    before_id: int | None
    version: int | None
    reason: str | None
    kinds: str | None = None

    @property
    def changed_at(self) -> datetime:
        """The time of the visit that saw it, in UTC."""
        return datetime.fromtimestamp(self.at, UTC)


_CHANGE: Final = (
    f"f.at, p.url, iif(f.kind = 'unchanged' AND f.kinds IS NOT NULL, '{REFRESHED}', f.kind) "
    "AS kind, p.title, f.resemblance, f.blocks_added, f.blocks_removed, "
    f"f.version_id, (SELECT max(version_id) FROM ({SIGNIFICANT} AND page_id = f.page_id) "
    f"  WHERE version_id < f.version_id) AS before_id, {NUMBER} AS version, "
    "iif(f.kind = 'failed' OR f.reason = 'doubtful', coalesce(f.detail, f.reason), "
    f"  iif({IS_EXPLAINED}, f.detail, NULL)) AS reason, f.kinds"
)
_OF_PAGES: Final = "FROM finding AS f JOIN page AS p ON p.id = f.page_id WHERE p.role = 'page' AND"
_OF_RUN: Final = "AND f.run_id = ? AND f.id > ?"
_SIGNIFICANTLY: Final = "f.kind = 'changed'"
#: Kinds of changes. The first is significant; ``unchanged`` is noise, in another version.
CHANGES: Final = ("changed", "new", "gone", REFRESHED, "unchanged")
#: Changes that are looked at for words, at most.
_LOOKED: Final = 1_000
#: The newest 1,000 failures, in the columns of ``site_change``: an index has them by run.
_FAILED: Final = (
    "(SELECT p.host_id, o.kind, o.at, o.id AS observation_id FROM crawl_run AS r "
    "CROSS JOIN observation AS o ON o.run_id = r.id AND o.kind = 'failed' "
    "CROSS JOIN page AS p ON p.id = o.page_id ORDER BY r.id DESC, o.id DESC LIMIT 1000)"
)
_OF_IDS: Final = (
    "FROM json_each(?) AS c CROSS JOIN finding AS f ON f.id = c.value "
    "CROSS JOIN page AS p ON p.id = f.page_id"
)
_SHOWN: Final = f"SELECT {_CHANGE} {_OF_IDS} ORDER BY c.key"
_WITH_WORDS: Final = (
    f"SELECT f.id {_OF_IDS} WHERE NOT EXISTS (SELECT 1 FROM json_each(?) AS w WHERE "
    "NOT instr(lower(p.url || ' ' || coalesce(p.title, '')), lower(w.value))) ORDER BY c.key"
)


async def changed(db: Reader, run_id: int, after: int = 0) -> list[PageChange]:
    """Return the pages whose main text changed in a run, newest first, after an observation."""
    sql = f"SELECT {_CHANGE} {_OF_PAGES} {_SIGNIFICANTLY} {_OF_RUN} ORDER BY f.at DESC, f.id"
    return [PageChange(**row) for row in await db.execute_fetchall(sql, (run_id, after))]


async def since(
    db: Reader, at: float, limit: int, *, all_kinds: bool = False
) -> tuple[list[PageChange], int]:
    """Return the newest ``limit`` changes after a moment (Unix seconds), and the number of all.

    ``all_kinds`` adds pages that appeared or were deleted, refreshed ones, and noise.
    """
    kinds = CHANGES if all_kinds else CHANGES[:1]
    found = await changes_page(db, limit, after=at, kinds=kinds)
    total = await db.execute_fetchall(
        "SELECT count(*) FROM site_change WHERE at > ? "
        "AND kind IN (SELECT value FROM json_each(?))", (at, as_json(kinds)),
    )  # fmt: skip
    return [change for _, change in found.changes], int(next(iter(total))[0])


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """Changes among ``looked`` rows, by observation; the next page is ``before``, if any."""

    changes: list[tuple[int, PageChange]]
    looked: int
    before: tuple[float, int] | None


def _newest_of(kinds: Sequence[str], host_ids: Sequence[int]) -> str:
    """Return the query of the newest changes of these hosts, or of all hosts."""
    of_site = f"c.host_id IN ({', '.join(map(str, host_ids))}) AND " if host_ids else ""
    # By index, each kind alone: a rare one may be far away.
    parts = " UNION ALL ".join(
        f"SELECT * FROM (SELECT c.observation_id, c.at FROM {source} AS c "
        f"WHERE {of_site}c.kind = '{kind}' AND (c.at, c.observation_id) < (:at, :last) "
        "AND c.at > :after ORDER BY c.at DESC, c.observation_id DESC LIMIT :most)"
        for kind in kinds
        for source in ("site_change", _FAILED)[: 1 + (kind == "failed")]
    )
    return f"{parts} ORDER BY 2 DESC, 1 DESC LIMIT :most"


async def changes_page(
    db: Reader,
    limit: int,
    *,
    before: tuple[float, int] | None = None,
    after: float = -inf,
    kinds: Sequence[str] = CHANGES,
    host_ids: Sequence[int] = (),
    words: Sequence[str] = (),
) -> ChangesPage:
    """Return the newest changes ``before`` a time and id, and after a time.

    Each of ``words`` must occur in the page's URL or title, in any case of ASCII letters. With
    words, a thousand changes are searched, so a page with few results may have a next page.
    """
    (at, last), most = before or (inf, 0), _LOOKED if words else limit
    rows = await db.execute_fetchall(
        _newest_of(kinds, host_ids), {"at": at, "last": last, "after": after, "most": most}
    )
    times: dict[int, float] = dict(map(tuple, rows))
    looked = shown = list(times)
    if words:
        found = await db.execute_fetchall(_WITH_WORDS, (as_json(looked), as_json(words)))
        shown = [row[0] for row in found]
    more = len(looked) == most
    if len(shown) > limit:
        shown, more = shown[:limit], True
        looked = looked[: looked.index(shown[-1]) + 1]
    found = await db.execute_fetchall(_SHOWN, (as_json(shown),))
    return ChangesPage(
        changes=[(row_id, PageChange(**row)) for row_id, row in zip(shown, found, strict=True)],
        looked=len(looked),
        before=(times[looked[-1]], looked[-1]) if more else None,
    )


# -- exports -----------------------------------------------------------------
#
# Tables that can be exported from a store: names, columns and rows.

_BATCH: Final = 5_000

#: By name: ``columns`` with their SQL types, and the ``sql`` that fills the table.
EXPORTS: Final[Mapping[str, Mapping[str, Any]]] = tomllib.loads(
    (files(__package__) / "exports.toml").read_text("utf-8")
)


async def batches(db: Reader, table: str) -> AsyncGenerator[list[tuple[object, ...]], None]:
    """Yield the rows of a table, some thousand at a time."""
    async with db.execute(EXPORTS[table]["sql"]) as cursor:
        while rows := list(await cursor.fetchmany(_BATCH)):
            yield [tuple(row) for row in rows]
