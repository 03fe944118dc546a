"""Table ``page`` (and its view ``alias``): every URL in scope, and its last good capture."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from sqlite3 import Connection
from typing import Any, Final

from aiosqlite import Connection as Reader

from freshet.storage.database import as_json, values_of
from freshet.storage.entries import NO_CONTENT
from freshet.storage.records import Alias, SitemapSource, Target, Validators, Visit

#: Why a page of another shard is not crawled here.
FOREIGN: str = "shard"
#: Reasons to hold a URL back that a better link to it lifts.
_LIFTED = ("nofollow", "depth", FOREIGN)

_GOOD = ("new", "changed", "unchanged")

#: Kinds that give no evidence of the target of a URL.
_SILENT = ("failed", "refused")
_NONE = (None, None, None)
_NOT_MODIFIED = 304
#: Kinds that give no evidence of a page's content.
_UNTELLING = (*_SILENT, "skipped")
#: Of ``page AS p``: since when it has no content, if five visits over seven days found none (the
#: fifth is not counted before); else NULL. It keeps its last version.
NO_CONTENT_SINCE = "iif(p.no_content_visits >= 5, p.no_content_since, NULL)"


@dataclass(frozen=True, slots=True)
class Admitted:
    """A URL that has just become due."""

    page_id: int
    url: str
    host_id: int


def admit(
    db: Connection, found: Sequence[tuple[Target, float]], host_ids: Mapping[str, int], run_id: int
) -> list[Admitted]:
    """Make pages of targets, each found at a time; return those to be crawled from now on.

    This upsert is the seen-set: of all links to a URL, in this run or before, exactly one returns
    it.
    """
    rows = as_json(
        [
            (url, fetch_url, host_ids[origin], role, depth, redirects, held_back, at)
            for (url, fetch_url, origin, role, depth, redirects, held_back, *_), at in found
        ]
    )
    admitted = db.execute(
        "INSERT INTO page (url, fetch_url, host_id, role, depth, redirects, held_back, "
        "                  found_at, found_run_id) "
        "SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, "
        "       value ->> 6, value ->> 7, ? FROM json_each(?) WHERE true "
        "ON CONFLICT (url) DO UPDATE SET held_back = NULL, depth = excluded.depth, "
        "                                redirects = excluded.redirects "
        "WHERE excluded.held_back IS NULL AND page.held_back IN (?, ?, ?) "
        "RETURNING id, url, host_id, held_back",
        (run_id, rows, *_LIFTED),
    ).fetchall()
    return [Admitted(r[0], r[1], r[2]) for r in admitted if r[3] is None]


def lift_depth(db: Connection, depth_at: Callable[[str], int]) -> None:
    """Admit pages that a smaller limit held back; ``depth_at`` is that of a URL (0: none)."""
    db.create_function("depth_at", 1, depth_at, deterministic=True)
    db.execute(
        "UPDATE page SET held_back = NULL "
        "WHERE held_back = 'depth' AND (depth_at(url) = 0 OR depth <= depth_at(url))"
    )


def lift_nofollow(db: Connection) -> None:
    """Admit pages to which only links lead that are marked with nofollow."""
    db.execute("UPDATE page SET held_back = NULL WHERE held_back = 'nofollow'")


def hold_never(db: Connection, is_never: Callable[[str], bool] | None) -> None:
    """Hold back exactly the pages that the settings now exclude from visits.

    ``is_never`` judges canonical URLs; None: no page is excluded.
    """
    db.execute("UPDATE page SET held_back = NULL WHERE held_back = 'never'")
    if is_never is not None:
        db.create_function("is_never", 1, is_never, deterministic=True)
        db.execute(
            "UPDATE page SET held_back = 'never' "
            "WHERE held_back IS NULL AND role = 'page' AND is_never(url)"
        )


def hold_beyond(db: Connection, admits: Callable[[str, int], bool] | None) -> None:
    """Hold back exactly the pages beyond the present limit; None: no limit.

    ``admits`` is asked with URL and depth, the pages that have had content first.
    """
    db.execute("UPDATE page SET held_back = NULL WHERE held_back = 'max_pages'")
    if admits is not None:
        rows = db.execute(
            "SELECT id, url, depth FROM page WHERE held_back IS NULL AND role = 'page' "
            "AND alias_kind IS NULL AND last_kind IS NOT 'gone' ORDER BY version_id IS NULL, id"
        )
        beyond = [page_id for page_id, url, depth in rows if not admits(url, depth)]
        hold_back(db, beyond, "max_pages")


def take_over_scope(db: Connection, scopes: Sequence[tuple[str, str]]) -> None:
    """Have each page parsed again if the last run had other scopes, which may contain links.

    ``scopes`` has patterns of seeds and their kinds; the scope of all other seeds is first.
    """
    last = db.execute(
        "SELECT settings ->> '$.crawl.scope', (SELECT json_group_array(json_array("
        "    value ->> '$.match', value ->> '$.scope')) FROM json_each(settings, '$.sites') "
        "  WHERE value ->> '$.scope' IS NOT NULL) FROM crawl_run ORDER BY id DESC LIMIT 1"
    ).fetchone() or (None, "[]")
    if last[0] is not None and scopes != [("", last[0]), *map(tuple, json.loads(last[1]))]:
        db.execute(
            "UPDATE page SET etag = NULL, last_modified = NULL, body_digest = zeroblob(16) "
            "WHERE body_digest IS NOT NULL"
        )


def hold_back(db: Connection, page_ids: Sequence[int], why: str) -> None:
    """Keep known pages out of the frontier, with the reason."""
    sql = "UPDATE page SET held_back = ? WHERE id IN (SELECT value FROM json_each(?))"
    if page_ids:
        db.execute(sql, (why, as_json(list(page_ids))))


def refuse(db: Connection, admitted: Sequence[Admitted]) -> list[Admitted]:
    """Hold back what begins as the user wants never to be fetched again; return the others."""
    prefixes = tuple(row[0] for row in db.execute("SELECT prefix FROM refusal"))
    refused = {each.page_id for each in admitted if each.url.startswith(prefixes)}
    hold_back(db, sorted(refused), "forgotten")
    return [each for each in admitted if each.page_id not in refused]


async def refused(db: Reader, urls: Collection[str]) -> set[str]:
    """Return the canonical URLs among these that the user has excluded for good."""
    sql = (
        "SELECT value FROM json_each(?) WHERE "
        "EXISTS (SELECT 1 FROM refusal WHERE substr(value, 1, length(prefix)) = prefix) OR "
        "EXISTS (SELECT 1 FROM page WHERE url = value AND held_back = 'forgotten')"
    )
    return {row[0] for row in await db.execute_fetchall(sql, (as_json(list(urls)),))}


def record(db: Connection, visits: Sequence[Visit]) -> set[int]:
    """Update the pages with the results of these visits; return those that became final pages."""
    _record_results(db, visits)
    _record_rejections(db, visits)
    _record_captures(db, visits)
    _record_noindex(db, visits)
    _record_preferences(db, visits)
    return _record_aliases(db, visits)


def _record_results(db: Connection, visits: Sequence[Visit]) -> None:
    """Store the end of the last visit, its effect on the next one, and the doubt on the content.

    304s and visits without a text are counted; a response that was read resets both counts. A visit
    without content does not change the doubt.
    """
    db.executemany(
        "UPDATE page SET last_kind = :kind, last_at = :at, status = :status, role = :role, "
        "fetch_url = coalesce(:fetch_url, fetch_url), checked_at = iif(:good, :at, checked_at), "
        "wish_s = iif(:signed, :wish_s, wish_s), plain_at = coalesce(:plain_at, plain_at), "
        "not_modified = iif(:read, 0, not_modified + :same), read_at = iif(:read, :at, read_at), "
        "no_content_visits = iif(:told, 0, iif(:lost AND (no_content_visits < 4 "
        "  OR :at >= no_content_since + 604800.0), no_content_visits + 1, no_content_visits)), "
        "no_content_since = iif(:told, NULL, iif(:lost, coalesce(no_content_since, :at), "
        "  no_content_since)), "
        "doubtful_as = iif(:good, :doubtful_as, doubtful_as), "
        "doubtful_p = iif(:good, :doubtful_p, doubtful_p), "
        "doubtful_why = iif(:good, :doubtful_why, doubtful_why), "
        "etag = iif(:validated, :etag, etag), "
        "last_modified = iif(:validated, :last_modified, last_modified) WHERE id = :page",
        [_result(v) for v in visits],
    )


def _result(v: Visit) -> Mapping[str, Any]:
    """Return the parameters of :func:`_record_results`."""
    seen, said = v.observation, v.validators or Validators()
    same, good = seen.status == _NOT_MODIFIED, seen.kind in _GOOD
    doubt = _NONE if v.doubt is None else values_of(v.doubt)
    return {
        "page": v.due.page_id, "kind": seen.kind, "at": seen.at, "status": seen.status,
        "role": v.role, "fetch_url": v.fetch_url, "good": good, "signed": v.signs is not None,
        "wish_s": v.wish_s, "plain_at": v.plain_at, "same": same,
        "read": not same and (good or v.rejected is not None),
        "told": seen.kind not in _UNTELLING,
        "lost": seen.kind == "failed" and seen.reason in NO_CONTENT,
        **dict(zip(("doubtful_as", "doubtful_p", "doubtful_why"), doubt, strict=True)),
        "validated": v.validators is not None, "etag": said.etag,
        "last_modified": said.last_modified,
    }  # fmt: skip


def _record_rejections(db: Connection, visits: Sequence[Visit]) -> None:
    """Store the content that was refused, or that none is."""
    sql = "UPDATE page SET rejected_digest = ?, rejected_as = ?, rejected_at = ? WHERE id = ?"
    db.executemany(
        sql,
        [
            (*(_NONE if v.rejected is None else values_of(v.rejected)), v.due.page_id)
            for v in visits
            # A failure to fetch gives no evidence of it.
            if v.rejected is not None
            or (v.due.rejected is not None and v.observation.kind not in _SILENT)
        ],
    )


def _record_captures(db: Connection, visits: Sequence[Visit]) -> None:
    """Store the pages' data from their newest captures."""
    db.executemany(
        "UPDATE page SET body_digest = ?, text_digest = ?, title = ?, language = ?, "
        "canonical_url = ?, noindex = ?, noarchive = ?, nofollow = ?, "
        "version_id = (SELECT max(id) FROM version WHERE page_id = page.id) WHERE id = ?",
        [
            (
                c.digests.body, c.digests.text, c.title, c.language, c.canonical_url, c.noindex,
                c.noarchive, c.nofollow, v.due.page_id,
            )
            for v in visits
            if (c := v.capture) is not None
        ],
    )  # fmt: skip


def _record_noindex(db: Connection, visits: Sequence[Visit]) -> None:
    """Store the noindex of headers: bit 1 is the page's, bit 2 a header's."""
    of_headers = [(2 * v.noindex, v.due.page_id) for v in visits if v.noindex is not None]
    sql = "UPDATE page SET noindex = (noindex & 1) | ? WHERE id = ? AND noindex & 2 <> ?"
    db.executemany(sql, [(bit, page_id, bit) for bit, page_id in of_headers])


def _record_preferences(db: Connection, visits: Sequence[Visit]) -> None:
    """Store changed statements about the use of pages."""
    stated = [(v.preferences, v.due.page_id, v.at) for v in visits if v.preferences is not None]
    if stated:
        sql = "UPDATE page SET preferences = nullif(?, '') WHERE id = ?"
        db.executemany(sql, [row[:2] for row in stated])
        sql = "INSERT OR REPLACE INTO preference (statements, page_id, at) VALUES (?, ?, ?)"
        db.executemany(sql, stated)


def _record_aliases(db: Connection, visits: Sequence[Visit]) -> set[int]:
    """Note where pages redirect, or that they do not; return those that became final pages."""
    db.executemany(
        "UPDATE page SET alias_of = NULL, alias_kind = NULL, alias_at = NULL "
        "WHERE id = ? AND alias_kind IS NOT NULL",
        [(v.due.page_id,) for v in visits if v.alias is None and v.observation.kind not in _SILENT],
    )
    aliases = [(v.due.page_id, v.alias, v.observation.at) for v in visits if v.alias is not None]
    return {final for each in aliases if (final := _point(db, *each)) is not None}


def final_pages(db: Connection) -> set[int]:
    """Return the pages to which others redirect."""
    sql = "SELECT DISTINCT alias_of FROM page WHERE alias_of IS NOT NULL"
    return {row[0] for row in db.execute(sql)}


def take_back(db: Connection, page_id: int, at: float, reason: str, *, keeps_version: bool) -> None:
    """Restore a page's state before the retracted captures, the last one at ``at``.

    Its next response supplies data that older releases did not store (title, language …): no bytes
    have the digest 0, so that the page is parsed again. Validators of a block page stay.
    """
    of_version = (
        "title = NULL, language = NULL, canonical_url = NULL, noindex = 0, noarchive = 0, "
        "nofollow = 0, still = 0, "
    )
    db.execute(
        "UPDATE page SET last_kind = iif(last_at = :at, 'failed', last_kind), "
        "(version_id, text_digest, body_digest) = (SELECT id, text_digest, zeroblob(16) "
        "  FROM version WHERE page_id = :page ORDER BY id DESC LIMIT 1), "
        "checked_at = (SELECT max(at) FROM finding "
        "  WHERE page_id = :page AND kind IN ('new', 'changed', 'unchanged')), "
        "doubtful_as = NULL, doubtful_p = NULL, doubtful_why = NULL, "
        f"{'' if keeps_version else of_version}etag = iif(rejected_digest IS NULL, NULL, etag), "
        "last_modified = iif(rejected_digest IS NULL, NULL, last_modified) WHERE id = :page",
        {"page": page_id, "at": at},
    )
    # No bytes have the empty digest: the page is requested without validators.
    sql = (
        "UPDATE page SET rejected_digest = zeroblob(0), rejected_as = ?, rejected_at = ? "
        "WHERE id = ? AND last_at = ? AND rejected_digest IS NULL"
    )
    db.execute(sql, (reason, at, page_id, at))


def _point(db: Connection, page_id: int, alias: Alias, at: float) -> int | None:
    """Make a page and its aliases aliases of the final page; a loop leaves no alias."""
    ((final,),) = db.execute(
        "UPDATE page SET alias_kind = ?, alias_at = ?, alias_of = nullif("
        "  (SELECT coalesce(t.alias_of, t.id) FROM page AS t WHERE t.url = ?), page.id) "
        "WHERE id = ? RETURNING alias_of",
        (alias.kind, at, alias.url, page_id),
    ).fetchall() or [(None,)]
    sql = "UPDATE page SET alias_of = ? WHERE alias_of = ?"
    db.execute(sql, (final, page_id))
    return None if final is None else int(final)


def turned_round(db: Connection, page_id: int, url: str, run_id: int) -> list[Admitted]:
    """Return the page at ``url`` if it was an alias of the page that now redirects to it.

    Such a page is not due in this run, because its redirect was assumed to hold.
    """
    sql = (
        "SELECT id, url, host_id FROM page WHERE url = ? AND alias_of = ? AND held_back IS NULL "
        "AND NOT EXISTS (SELECT 1 FROM frontier WHERE page_id = page.id) "
        "AND NOT EXISTS (SELECT 1 FROM observation WHERE page_id = page.id AND run_id = ?)"
    )
    return [Admitted(*row) for row in db.execute(sql, (url, page_id, run_id)).fetchall()]


def returned_to(db: Connection, aliases: Mapping[int, Alias]) -> dict[int, dict[int, int]]:
    """Return by page what its redirect leads back to, with the host: it is requested again."""
    sql = "SELECT id, host_id FROM page WHERE url = ? AND held_back IS NULL"
    return {
        page_id: dict(db.execute(sql, (alias.url,)).fetchall())
        for page_id, alias in aliases.items()
        if alias.again
    }


async def led_to(db: Reader, page_id: int) -> str | None:
    """Return the URL to which a page redirected at its last visit, or None."""
    sql = (
        "SELECT iif(kind = 'redirected', detail, NULL) FROM finding WHERE page_id = ? "
        "ORDER BY id DESC LIMIT 1"
    )
    return next((row[0] for row in await db.execute_fetchall(sql, (page_id,))), None)


async def alias_target(db: Reader, url: str, since: float = -inf) -> int | None:
    """Return the id of the page of which the current run found ``url`` to be an alias.

    It is the URL's own id if the URL is a page, or was seen to be an alias in an earlier run only,
    or before ``since``; None for an unknown URL.
    """
    sql = (
        "SELECT iif(alias_at >= max(?, (SELECT max(started_at) FROM crawl_run)), "
        "           coalesce(alias_of, id), id) FROM page WHERE url = ?"
    )
    return next((int(r[0]) for r in await db.execute_fetchall(sql, (since, url))), None)


#: Redirects and indexes through which a sitemap is reached.
_MOST_SOURCES: Final = 1_000
_SOURCES: Final = """
    WITH RECURSIVE source (id) AS (
        VALUES (:page)
        UNION
        SELECT p.id FROM source AS s JOIN page AS p ON p.alias_of = s.id
        UNION
        SELECT l.src_id FROM source AS s JOIN link AS l ON l.dst_id = s.id AND l.gone_at IS NULL
        JOIN page AS p ON p.id = l.src_id AND p.role = 'sitemap'
        LIMIT :most
    )
    SELECT p.url, EXISTS (SELECT 1 FROM seed WHERE page_id = p.id), coalesce(r.body, x'')
    FROM source AS s JOIN page AS p ON p.id = s.id
    LEFT JOIN robots AS r ON r.host_id = p.host_id AND r.standing = 'parsed'
        AND r.host_id <> (SELECT host_id FROM page WHERE id = :page)
    WHERE p.id <> :page
"""


async def sources(db: Reader, page_id: int) -> list[SitemapSource]:
    """Return the sitemaps that redirect to this one, and the indexes that name any of them."""
    values = {"page": page_id, "most": _MOST_SOURCES}
    return [SitemapSource(*row) for row in await db.execute_fetchall(_SOURCES, values)]
