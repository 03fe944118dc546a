"""Sites: the use of the budget, its results, and the details of one site."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from typing import Any, Final

from aiosqlite import Connection as Reader

from freshet.config.settings import SiteSettings
from freshet.config.sites import Sites, StoredSite, with_stored
from freshet.crawler.admission.site_lists import spellings
from freshet.crawler.errors import UnknownPage, UsageError
from freshet.crawler.extensions.dashboard import changes, site_settings
from freshet.crawler.extensions.dashboard.plots import treemap
from freshet.crawler.extensions.dashboard.request import DashboardRequest, value_of
from freshet.crawler.read.library import asking
from freshet.crawler.urls import origin
from freshet.storage.database import as_json
from freshet.storage.queries import sites
from freshet.storage.queries.sites import SiteFigures, SiteVisits
from freshet.storage.tables import hosts

_DAY_S, _DAYS = 86_400, 30
_SHOWN, _CHANGES, _ROBOTS_SHOWN = 100, 20, 20_000
#: Sites on a map, and the sizes of the map on a desktop and on a telephone.
_MAPPED, _MAPS = 40, ((1000.0, 380.0), (390.0, 460.0))
#: Shares of stale copies, on a logarithmic scale, between the colours of a map.
STALE: Final = (0.3, 0.1, 0.03, 0.01)
_NONE: Final = SiteVisits(*[0] * len(fields(SiteVisits)))
#: Settings of sites that may hold secrets.
_SECRET: Final = {"headers", "cookies", "user", "password", "bearer", "proxy"}


async def listed(asked: DashboardRequest) -> Mapping[str, object]:
    """Return sites in an order, and the map of those with most requests."""
    order = asked.query.get("order", "requests")
    if order not in sites.ORDERS:
        raise UsageError(f"order={order[:80]}: accepted are {', '.join(sites.ORDERS)}")
    value = value_of(asked.query, "value", float, "numbers", 0.0)
    after = (value, asked.query["after"]) if "after" in asked.query else None
    read = asking(_list, since=_since(asked), order=order, after=after)
    parts, down = await asked.library.each(lambda _: read)
    found, most, days = zip(*parts.values(), strict=True)
    total = sum(it.requests for it in sites.merged(days).values())
    shown, mapped = _in_order(found), _in_order(most)
    told = [_told(it, total) for it in mapped[:_MAPPED] if it.visits.requests]
    return {
        "sites": [_told(it, total) for it in shown[:_SHOWN]], "order": order,
        "stale": STALE, "maps": [(*size, _tiles(told, *size)) for size in _MAPS if told],
        "next": shown[_SHOWN - 1] if len(shown) >= _SHOWN else None, "down": down,
    }  # fmt: skip


def _in_order(parts: Iterable[Sequence[SiteFigures]]) -> list[SiteFigures]:
    """Return the sites of all shards, the highest value first."""
    return sorted(chain.from_iterable(parts), key=lambda it: (-it.value, it.origin))


async def _list(db: Reader, since: int, order: str, after: Any) -> tuple[Any, ...]:
    shown = await sites.sites(db, since, order, after=after, limit=_SHOWN)
    most = await sites.sites(db, since, "requests", limit=_MAPPED)
    return shown, most, await sites.totals(db, since)


async def by_day(asked: DashboardRequest) -> list[tuple[int, SiteVisits]]:
    """Return the figures of the whole store on each of the last days, with the days' starts."""
    read = asking(sites.totals, since_day=_since(asked))
    parts, _ = await asked.library.each(lambda _: read)
    return _days(asked, sites.merged(list(parts.values())))


async def one(asked: DashboardRequest) -> Mapping[str, object]:
    """Return a site: its figures, days, clock, settings, robots.txt and newest changes."""
    said = asked.query.get("origin", "").strip()
    shard, _ = await asked.library.home(f"{said}/")
    read = asking(_site, said=said, since=_since(asked))
    found, host, days, hours = await asked.library.one(shard, read)
    newest, _, _ = await changes.newest(asked, _CHANGES, site=(host.origin,))
    tables = with_stored(asked.settings, (await site_settings.stored(asked))[0]).sites
    most = max(hours or [0])
    return {
        "it": _told(found, 0), "host": host, "days": _days(asked, days),
        "clock": [(count, -(-4 * count // most)) for count in hours or ()],
        "busiest": hours.index(most) if hours else None,
        "settings": list(_settings(tables, host.origin)),
        "robots": host.robots and host.robots.body[:_ROBOTS_SHOWN].decode("utf-8", "replace"),
        "changes": newest,
    }  # fmt: skip


def _settings(tables: Sequence[SiteSettings], site: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield match, key, value and origin of the settings of a site, or of its pages."""
    below = f"{site.partition('://')[2]}/"
    for table in tables:
        is_of_pages = table.match.rpartition("://")[2].startswith(below)
        if not is_of_pages and not Sites([table]).matching(f"{site}/"):
            continue
        where = "a browser" if isinstance(table, StoredSite) else "the file"
        for key, value in table.model_dump(
            mode="json", exclude={"match"}, exclude_none=True
        ).items():
            said = value if isinstance(value, str) else as_json(value)
            yield table.match, key, "set" if key in _SECRET else said, where


async def _site(db: Reader, said: str, since: int) -> tuple[Any, ...]:
    if not (known := await hosts.named(db, [said])):  # a link may have an odd name
        urls = value_of({"origin": said}, "origin", spellings, "sites, as example.org", list[str]())
        known = await hosts.named(db, [str(origin(url)) for url in urls])
    if not (found := await sites.sites(db, since, only=known[0].origin if known else said)):
        raise UnknownPage(f"origin={said[:80]}: accepted are known sites, as https://example.org")
    days = await sites.totals(db, since, known[0].host_id)
    hours = await sites.changes_by_hour(db, known[0].host_id)
    return found[0], known[0], days, hours


def _since(asked: DashboardRequest) -> int:
    return int(asked.now // _DAY_S) - _DAYS + 1


def _days(asked: DashboardRequest, found: Mapping[int, SiteVisits]) -> list[tuple[int, SiteVisits]]:
    """Return all days from the first one that is known."""
    days = range(min(found, default=0), _since(asked) + _DAYS) if found else ()
    return [(day * _DAY_S, found.get(day, _NONE)) for day in days]


def _told(it: SiteFigures, total: int) -> dict[str, Any]:
    """Return the data of a site, with shares of 1; None if unknown."""
    visits, stale = it.visits, None if it.outlook is None else it.outlook.stale
    answered = visits.new + visits.changed + visits.unchanged + visits.gone + visits.failed
    return {
        "origin": it.origin, "visits": visits, "outlook": it.outlook,
        "share": visits.requests / max(total, 1), "fresh": None if stale is None else 1 - stale,
        "level": None if stale is None else sum(stale < bound for bound in STALE),
        "robots": visits.robots / max(visits.requests, 1),
        "dead": visits.gone / max(answered, 1),
    }  # fmt: skip


def _tiles(named: Sequence[dict[str, Any]], width: float, height: float) -> list[dict[str, Any]]:
    """Return the sites of a map, each with its place, and all others as the last one."""
    rest = 1 - sum(it["share"] for it in named)
    every = (
        [*named, {"origin": "", "share": rest, "fresh": None, "level": None}]
        if rest > 1e-6
        else named
    )
    places = treemap([it["share"] for it in every], width, height)
    return [it | {"place": place} for it, place in zip(every, places, strict=True)]
