"""The overview: the budget, freshness, what changed, what waits and why, and what is wrong."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
from aiosqlite import Connection as Reader
from numpy.typing import NDArray

from freshet.crawler.documents import Documents
from freshet.crawler.extensions.dashboard import changes, kept, sites
from freshet.crawler.extensions.dashboard.asked import Asked
from freshet.crawler.hooks import merged_parts, parts_of, status_parts
from freshet.crawler.library import asking
from freshet.crawler.run.status import DaemonStatus, daemon_status, merged
from freshet.crawler.tally import AUDITED_S
from freshet.crawler.terminal import counted, percent
from freshet.storage.database import owner_of
from freshet.storage.queries import columns, overview, page
from freshet.storage.queries.overview import WaitingHost
from freshet.storage.tables import hosts, observations, runs
from freshet.storage.tables.runs import CrawlRun

_SHOWN = 8
_DAY_S = 86_400.0
#: A share of the budget that was not spent from which on it is worth a warning.
_FORGONE = 0.1


@dataclass(frozen=True, slots=True)
class _Part:
    """The state of one store: a file, or a shard."""

    run: CrawlRun | None
    daemon: DaemonStatus | None
    audits: NDArray[np.void] | None
    writer: str | None
    extensions: Mapping[str, Any]
    to_come: int
    waiting: Sequence[WaitingHost]
    troubled: Sequence[WaitingHost]
    doubtful: Sequence[overview.DoubtfulPage]


async def opened(asked: Asked) -> Mapping[str, object]:
    """Return what the overview shows, and the last days, which change slowly."""
    return {**await shown(asked), "days": await sites.by_day(asked)}


async def shown(asked: Asked) -> Mapping[str, object]:
    """Return what the overview shows."""
    parts, down = await asked.library.each(lambda _: partial(_read, now=asked.now))
    found = list(parts.values())
    daemons = [(it.daemon, it.audits) for it in found if it.daemon and it.audits is not None]
    daemon = daemons[0][0] if len(daemons) == 1 else None
    if len(daemons) > 1:
        daemon = merged(daemons, asked.now)
    run = max((it.run for it in found if it.run), key=attrgetter("started_at"), default=None)
    writer = next((it.writer for it in found if it.writer), None)
    waiting = sorted((it for part in found for it in part.waiting), key=attrgetter("urls"))
    newest, _, _ = await changes.newest(asked, _SHOWN)
    kept_here = (await kept.listed(asked))["kept"]
    return {
        "daemon": daemon,
        "left": None if daemon is None else _left(daemon, asked.now),
        "run": run,
        "warnings": list(_warnings(run, writer, daemon, found)),
        "to_come": sum(it.to_come for it in found),
        "waiting": waiting[::-1][:_SHOWN],
        "paused": [it.match for it in kept_here if (it.key, it.value) == ("never", "true")],
        "troubled": [it for part in found for it in part.troubled][:_SHOWN],
        "doubtful": sorted(
            (it for part in found for it in part.doubtful),
            key=attrgetter("probability"),
            reverse=True,
        )[:_SHOWN],
        "changes": newest,
        "down": down,
    }


def _left(daemon: DaemonStatus, now: float) -> float:
    """Return the requests that the budget still allows until midnight UTC."""
    to_come = daemon.outlook.budget * (_DAY_S - now % _DAY_S) / _DAY_S
    return max(0.0, daemon.today.flowed - daemon.today.requests + to_come)


def _warnings(
    run: CrawlRun | None, writer: str | None, daemon: DaemonStatus | None, found: Sequence[_Part]
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong, and what to do about it."""
    if run is not None and run.state == "running" and writer is None:
        yield "The last run was killed.", "The same command goes on where it was."
    if daemon is not None:
        outlook = daemon.outlook
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
    for name, state in merged_parts([it.extensions for it in found]).items():
        yield from status_parts()[name].troubles(state)


async def mark(asked: Asked) -> object:
    """Return what is another one after each visit and each request, in one quick read."""
    return (await asked.library.each(lambda _: asking(_mark)))[0]


async def _mark(db: Reader) -> tuple[int, CrawlRun | None]:
    return await observations.newest(db), await runs.latest(db)


async def _read(made: Documents, now: float) -> _Part:
    async with page.snapshot(made.path) as db:
        run = await runs.latest(db)
        daemon = await daemon_status(db, made.path, run, now, rotated=False)
        owner = owner_of(made.path)
        return _Part(
            run=run,
            daemon=daemon,
            audits=None if daemon is None else await columns.audits(db, now - AUDITED_S),
            writer=None if owner is None else owner.name,
            extensions=await parts_of(db),
            to_come=await overview.to_come(db) if daemon is None else 0,
            waiting=[*await overview.parked(db, now), *await overview.deferred(db)],
            troubled=await _without_robots(db),
            doubtful=(await overview.doubtful(db, _SHOWN))[1],
        )


async def _without_robots(db: Reader) -> list[WaitingHost]:
    """Return the hosts whose robots.txt cannot be reached, so that nothing is fetched there."""
    return [
        WaitingHost(origin, None, f"robots.txt: {robots.reason}", 0)
        for origin, robots in await hosts.unreachable_robots(db)
        if robots.standing == "unreachable"
    ]
