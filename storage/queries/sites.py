"""Figures of sites and of the whole store, kept by day and by the daemon's outlooks. Read-only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import inf
from typing import Final

from aiosqlite import Connection as Reader

from freshet.storage.database import columns_of, row_to
from freshet.storage.entries import SiteOutlook, stored, summed

#: Most sites of one page, and most changes of a site that count by their hours.
_MOST, _CHANGES = 200, 5_000


@dataclass(frozen=True, slots=True)
class SiteVisits:
    """Sums over days: all ``requests``, those for ``robots``.txt, and visits to pages by kind."""

    requests: int
    robots: int
    new: int
    changed: int
    unchanged: int
    gone: int
    redirected: int
    refused: int
    failed: int
    skipped: int


@dataclass(frozen=True, slots=True)
class SiteFigures:
    """A site, its ``visits`` since a day, a daemon's ``outlook``, and the order's ``value``."""

    origin: str
    value: float
    host_id: int
    visits: SiteVisits = field(metadata=stored(SiteVisits))
    outlook: SiteOutlook | None = field(metadata=stored(SiteOutlook, optional=True))


_SUMS: Final = {each.name: f"coalesce(sum(d.{each.name}), 0)" for each in fields(SiteVisits)}
_SUM: Final = "(SELECT coalesce(sum({0}), 0) FROM site_day WHERE host_id = h.id AND day >= :day)"
#: What sites are ordered by, the largest first; equal ones, as all by ``origin``, by that.
ORDERS: Final = {"origin": "0", **{name: _SUM.format(name) for name in _SUMS}} | {
    name: f"coalesce(x.{name}, 0)" for name in ("captured", "waiting", "stale", "wanted")
}
_SITES: Final = (
    "WITH chosen AS MATERIALIZED (SELECT * FROM (SELECT h.id, h.origin, {value} AS value "
    "  FROM host AS h LEFT JOIN site_outlook AS x ON x.host_id = h.id "
    "  WHERE (h.exchanges OR x.host_id) AND h.origin = coalesce(:only, h.origin)) "
    "  WHERE (-value, origin) > (-:value, :origin) ORDER BY value DESC, origin LIMIT :limit) "
    f"SELECT h.origin, h.value, h.id, {columns_of(SiteVisits, **_SUMS)}, "
    f"{columns_of(SiteOutlook, 'x')} "
    "FROM chosen AS h LEFT JOIN site_outlook AS x ON x.host_id = h.id "
    "LEFT JOIN site_day AS d ON d.host_id = h.id AND d.day >= :day "
    "GROUP BY h.id ORDER BY h.value DESC, h.origin"
)


async def sites(
    db: Reader,
    since_day: int,
    order: str = "origin",
    *,
    after: tuple[float, str] | None = None,
    limit: int = _MOST,
    only: str | None = None,
) -> list[SiteFigures]:
    """Return sites that were ever asked, or ``only`` that origin, with sums since a day of 1970.

    ``after`` are value and origin of the last one before; ``order`` is one of :data:`ORDERS`.
    """
    value, origin = after or (inf, "")
    values = {"day": since_day, "only": only, "value": value, "origin": origin}
    sql, most = _SITES.format(value=ORDERS[order]), min(limit, _MOST)
    rows = await db.execute_fetchall(sql, values | {"limit": most})
    return list(map(row_to(SiteFigures), rows))


async def totals(db: Reader, since_day: int, host_id: int | None = None) -> dict[int, SiteVisits]:
    """Return the sums of a store, or of a site, by day of 1970 (UTC), since one of these."""
    only = "" if host_id is None else "d.host_id = :host AND "
    rows = await db.execute_fetchall(
        f"SELECT d.day, {columns_of(SiteVisits, **_SUMS)} FROM site_day AS d "
        f"WHERE {only}d.day >= :day GROUP BY d.day",
        {"day": since_day, "host": host_id},
    )
    return {row[0]: row_to(SiteVisits)(row[1:]) for row in rows}


async def changes_by_hour(db: Reader, host_id: int) -> list[int] | None:
    """Count a site's newest changes by hour of the week (168, from Monday, UTC); None without."""
    rows = await db.execute_fetchall(
        # 1970 began on a Thursday.
        "SELECT (CAST(at / 3600 AS INTEGER) + 72) % 168, count(*) FROM (SELECT at FROM site_change "
        "WHERE host_id = ? AND kind = 'changed' ORDER BY at DESC LIMIT ?) GROUP BY 1",
        (host_id, _CHANGES),
    )
    found = dict(map(tuple, rows))
    return [found.get(hour, 0) for hour in range(168)] if found else None


def merged(shards: Sequence[Mapping[int, SiteVisits]]) -> dict[int, SiteVisits]:
    """Return the sums by day of the :func:`totals` of shards."""
    return {
        day: summed([each[day] for each in shards if day in each])
        for day in sorted({day for each in shards for day in each})
    }


async def outlooks_by_day(db: Reader, since: int) -> dict[int, tuple[float, float, float]]:
    """Return by day the budget, the captured pages, and their share that is expected to be stale.

    All three are means over the outlooks of a day; ``since`` is the first day.
    """
    rows = await db.execute_fetchall(
        "SELECT CAST(at / 86400 AS INTEGER), avg(budget), avg(captured), "
        "sum(captured * stale) / sum(captured) FROM outlook "
        "WHERE at >= ? * 86400.0 AND stale IS NOT NULL AND captured GROUP BY 1",
        (since,),
    )
    return {day: (budget, captured, stale) for day, budget, captured, stale in rows}
