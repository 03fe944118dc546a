"""The overview: the budget, freshness, what changed, what waits and why, and what is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

import numpy as np
from aiosqlite import Connection as Reader
from numpy.typing import NDArray

from freshet.crawler.dashboard import changes
from freshet.crawler.dashboard.asked import Asked
from freshet.crawler.documents import Documents
from freshet.crawler.run.status import DaemonStatus, daemon_status, merged
from freshet.crawler.tally import AUDITED_S
from freshet.storage.database import owner_of
from freshet.storage.queries import columns, overview, page
from freshet.storage.queries.overview import WaitingHost
from freshet.storage.tables import hosts, runs
from freshet.storage.tables.runs import CrawlRun

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class _Part:
    """The state of one store: a file, or a shard."""

    run: CrawlRun | None
    daemon: DaemonStatus | None
    audits: NDArray[np.void] | None
    writer: str | None
    frontier: Mapping[str, int]
    waiting: Sequence[WaitingHost]
    troubled: Sequence[WaitingHost]


async def shown(asked: Asked) -> Mapping[str, object]:
    """Return what the overview shows."""
    parts, down = await asked.library.each(lambda _: partial(_read, now=asked.now))
    found = list(parts.values())
    daemons = [(it.daemon, it.audits) for it in found if it.daemon and it.audits is not None]
    daemon = daemons[0][0] if len(daemons) == 1 else None
    if len(daemons) > 1:
        daemon = merged(daemons, asked.now)
    waiting = sorted((it for part in found for it in part.waiting), key=attrgetter("urls"))
    newest = await changes.newest(asked, _SHOWN)
    return {
        "daemon": daemon,
        "run": max((it.run for it in found if it.run), key=attrgetter("started_at"), default=None),
        "writer": next((it.writer for it in found if it.writer), None),
        "frontier": {key: sum(it.frontier[key] for it in found) for key in found[0].frontier},
        "waiting": waiting[::-1][:_SHOWN],
        "troubled": [it for part in found for it in part.troubled][:_SHOWN],
        "changes": newest,
        "down": down,
    }


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
            frontier=await overview.frontier_counts(db, now),
            waiting=[*await overview.parked(db, now), *await overview.deferred(db)],
            troubled=await _without_robots(db),
        )


async def _without_robots(db: Reader) -> list[WaitingHost]:
    """Return the hosts whose robots.txt cannot be reached, so that nothing is fetched there."""
    return [
        WaitingHost(origin, None, f"robots.txt: {robots.reason}", 0)
        for origin, robots in await hosts.unreachable_robots(db)
        if robots.standing == "unreachable"
    ]
