"""The overview: curves of thirty days, the budget, what needs attention, and new changes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import TypeAlias

import numpy as np
from aiosqlite import Connection as Reader

from freshet.crawler.extensions.dashboard import changes, site_settings, sites
from freshet.crawler.extensions.dashboard.request import DashboardRequest
from freshet.crawler.frontier.clock import iso
from freshet.crawler.read.documents import Documents
from freshet.crawler.read.library import asking
from freshet.crawler.run.daemon_status import DaemonStatus
from freshet.crawler.run.hooks import status_parts
from freshet.crawler.run.status import StatusReport, merged_standing, standing
from freshet.crawler.run.terminal import counted, percent
from freshet.scheduler.queue.audit import staleness
from freshet.storage.queries import columns, page
from freshet.storage.queries.overview import WaitingHost
from freshet.storage.queries.sites import outlooks_by_day
from freshet.storage.tables import observations, runs
from freshet.storage.tables.runs import CrawlRun, SiteSetting

_SHOWN = 8
#: Audits that a day needs for a measured fresh share.
_LEAST_DRAWS = 10
_DAY_S = 86_400.0
#: A warning is shown if at least this share of the budget was not spent.
_FORGONE = 0.1


async def opened(asked: DashboardRequest) -> Mapping[str, object]:
    """Return the data of the overview, with curves of the last days, which change slowly."""
    return {**await shown(asked), "days": await _curves(asked)}


#: By day three figures: of outlooks the budget, captured pages and their stale share; of audits the
#: fresh share in percent and the ends of its interval.
_ByDay: TypeAlias = dict[int, tuple[float, float, float]]


async def _curves(asked: DashboardRequest) -> list[dict[str, object]]:
    """Return by day the results of visits, the budget, and the fresh share in percent.

    ``expected`` is from the daemon's forecasts, ``fresh`` from the audits of the day, from ``low``
    to ``high``; audits of several shards cannot be combined, so a folder has no such values.
    """
    days = await sites.by_day(asked)
    read = asking(_outlooks, since=int(days[0][0] // _DAY_S) if days else 0)
    parts, _ = await asked.library.each(lambda _: read)
    audited = next(iter(parts.values()))[1] if len(parts) == 1 else {}
    outlooks = [it for it, _ in parts.values()]
    return [
        {"at": at, "visits": visits}
        | _planned([it[day] for it in outlooks if day in it])
        | dict(zip(("fresh", "low", "high"), audited.get(day, (None,) * 3), strict=True))
        for at, visits in days
        for day in [int(at // _DAY_S)]
    ]


def _planned(told: Sequence[tuple[float, float, float]]) -> dict[str, float | None]:
    """Return the budget of a day, and the share that was expected to be fresh, over shards."""
    captured = sum(it[1] for it in told)
    if not captured:
        return {"budget": None, "expected": None}
    stale = sum(it[1] * it[2] for it in told) / captured
    return {"budget": sum(it[0] for it in told), "expected": 100 * (1 - stale)}


async def _outlooks(db: Reader, since: int) -> tuple[_ByDay, _ByDay]:
    """Return outlooks and audits by day."""
    drawn = await columns.audits(db, since * _DAY_S)
    days, measured = (drawn["at"] // _DAY_S).astype(int), _ByDay()
    for day in np.unique(days):
        some = drawn[days == day]
        it = staleness(some["importance"], some["stale"], some["hazard"])
        if it is not None and it.draws >= _LEAST_DRAWS:
            stale = it.binary
            fresh, low = 100 * (1 - stale.mean), 100 * (1 - stale.upper)
            measured[int(day)] = fresh, low, 100 * (1 - stale.lower)
    return await outlooks_by_day(db, since), measured


async def shown(asked: DashboardRequest) -> Mapping[str, object]:
    """Return the data of the overview."""
    parts, down = await asked.library.each(lambda _: partial(_read, now=asked.now))
    found = list(parts.values())
    it = found[0] if len(found) == 1 else merged_standing(found, asked.now)
    waiting = sorted([*it.parked, *it.deferred], key=attrgetter("urls"), reverse=True)
    newest, _, _ = await changes.newest(asked, _SHOWN)
    kept_here = (await site_settings.listed(asked))["kept"]
    return {
        "daemon": it.daemon,
        "left": None if it.daemon is None else _left(it.daemon, asked.now),
        "run": it.last_run,
        "warnings": list(_warnings(it)),
        "to_come": it.to_come,
        "waiting": waiting[:_SHOWN],
        "paused": list(islice(_paused(kept_here), _SHOWN)),
        "troubled": list(_without_robots(it))[:_SHOWN],
        "doubtful": it.doubtful[1][:_SHOWN],
        "changes": newest,
        "down": down,
    }


def _paused(kept: Iterable[SiteSetting]) -> Iterator[str]:
    """Yield the pages and hosts that are paused. A pattern with ``*`` is not a pause."""
    for it in kept:
        if (it.key, it.value) == ("never", "true") and "*" not in it.match:
            yield it.match


def _left(daemon: DaemonStatus, now: float) -> float:
    """Return the requests that the budget still allows until midnight UTC."""
    to_come = daemon.snapshot.budget * (_DAY_S - now % _DAY_S) / _DAY_S
    return max(0.0, daemon.today.flowed - daemon.today.requests + to_come)


def _warnings_of(run: CrawlRun, *, is_written: bool) -> Iterator[tuple[str, str]]:
    """Yield the problems of the last run. It still runs if the store ``is_written``."""
    if run.state == "running" and not is_written:
        yield "The last run was killed.", "The same command goes on where it was."
    elif run.no_network_since is not None:
        yield (
            f"No network since {iso(run.no_network_since)[:19]}Z.",
            "No host can be reached, and none is blamed; one is asked every 30 s.",
        )


def _warnings(it: StatusReport) -> Iterator[tuple[str, str]]:
    """Yield each problem, with advice."""
    daemon = it.daemon
    if it.last_run is not None:
        yield from _warnings_of(it.last_run, is_written=it.writer is not None)
    if daemon is not None:
        outlook = daemon.snapshot
        if daemon.process and outlook.forgone > _FORGONE * max(1.0, outlook.flowed):
            share = percent(min(1.0, outlook.forgone / outlook.flowed))
            yield (
                f"{share} of the budget could not be spent, for no host was ready.",
                "Add sites, lower the budget, or shorten the delay where you may.",
            )
        if outlook.capped:
            yield (
                (
                    f"{counted(len(outlook.capped), 'host')} at the limit of politeness, such as "
                    f"{outlook.capped[0].queue}."
                ),
                "Their pages are visited less often than is worth it; their owners may allow more.",
            )
    for name, part in status_parts().items():
        yield from part.troubles(it.extensions[name])


async def mark(asked: DashboardRequest) -> object:
    """Return a value that differs after each visit and each request; it takes one quick read."""
    return (await asked.library.each(lambda _: asking(_mark)))[0]


async def _mark(db: Reader) -> tuple[int, CrawlRun | None]:
    return await observations.newest(db), await runs.latest(db)


async def _read(made: Documents, now: float) -> StatusReport:
    async with page.snapshot(made.path) as db:
        return await standing(db, made.path, now)


def _without_robots(it: StatusReport) -> Iterator[WaitingHost]:
    """Yield the hosts with an unreachable robots.txt, where no page is fetched."""
    for origin, robots in it.robots_unreachable:
        if robots.standing == "unreachable":
            yield WaitingHost(origin, None, f"robots.txt: {robots.reason}", 0)
