"""The status of a store: what runs, what waits and why, problems, and the stored data.

:func:`standing` reads it, and :func:`store_status` adds counts. :func:`merged` joins the status of
shards. The verb, its JSON and the dashboard show it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from freshet.crawler.run.hooks import merged_parts, parts_of
from freshet.storage.database import owner_of
from freshet.storage.entries import RobotsRecord, summed
from freshet.storage.queries import overview, page
from freshet.storage.queries.overview import DoubtfulPage, Holdings, WaitingHost
from freshet.storage.tables import hosts, near_duplicates, runs, url_patterns
from freshet.storage.tables.hosts import RejectingHost
from freshet.storage.tables.near_duplicates import IndexState
from freshet.storage.tables.pages import FOREIGN
from freshet.storage.tables.runs import CrawlRun, RunState
from freshet.storage.tables.url_patterns import Throttle

if TYPE_CHECKING:
    from aiosqlite import Connection as Reader

    from freshet.crawler.run.daemon_status import DaemonStatus

#: Length of a list of the worst pages or hosts.
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusReport:
    """A store at one moment: what runs, what waits and why, and problems.

    ``writer`` names the program that writes the store now. ``daemon`` is the status of the last run
    if a daemon made it; otherwise ``to_come`` counts the pages that are still to be visited.
    ``robots_unreachable`` are hosts with an unreachable robots.txt. ``doubtful`` counts the pages
    that may be block pages, with the most probable ones. ``extensions`` are the states of
    extensions.
    """

    last_run: CrawlRun | None
    writer: str | None
    parked: Sequence[WaitingHost]
    deferred: Sequence[WaitingHost]
    robots_unreachable: Sequence[tuple[str, RobotsRecord]]
    doubtful: tuple[int, Sequence[DoubtfulPage]]
    to_come: int
    extensions: Mapping[str, Any]
    daemon: DaemonStatus | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus(StatusReport):
    """The full status; ``busiest`` are the hosts with the most due URLs.

    ``observed_at`` is the time of the newest observation of the last run, ``kinds`` counts all its
    observations. ``needs_javascript`` counts, by host, the pages that only a browser shows,
    ``no_content`` the pages without any content for a week. ``rejecting`` are the hosts with many
    block pages.
    """

    db: str
    at: float
    observed_at: float | None
    kinds: Mapping[str, int]
    bounds: Mapping[str, int]
    holdings: Holdings
    file_bytes: int
    frontier: Mapping[str, int]
    busiest: Sequence[tuple[str, int]]
    bounded: Sequence[tuple[str, Throttle]]
    held_back: Mapping[str, int]
    needs_javascript: Mapping[str, int]
    no_content: Mapping[str, int]
    rejecting: Sequence[RejectingHost]
    duplicates: IndexState

    def seconds(self, run: CrawlRun) -> float:
        """Return the duration of the last run, up to its end or its newest observation."""
        return max(0.0, (run.ended_at or self.observed_at or run.started_at) - run.started_at)

    def as_json(self) -> dict[str, object]:
        """Return the status as JSON values."""
        values: dict[str, Any] = asdict(self)
        for name in ("observed_at", "kinds", "daemon", "writer", "to_come"):
            del values[name]
        values |= values.pop("extensions")
        count, shown = values["doubtful"]
        return values | {
            "doubtful": {"pages": count, "most_probable": shown},
            "last_run": self.last_run and self._run_as_json(self.last_run),
            "daemon": self.daemon and self.daemon.as_json(),
            "busiest": [{"origin": origin, "due": due} for origin, due in self.busiest],
            "deferred": overview.deferred_as_json(self.deferred),
            "robots_unreachable": [
                {
                    "origin": origin, "standing": robots.standing, "since": since_of(robots),
                    "reason": robots.reason,
                }
                for origin, robots in self.robots_unreachable
            ],
            "bounded": url_patterns.bounded_as_json(self.bounded),
        }  # fmt: skip

    def _run_as_json(self, run: CrawlRun) -> dict[str, object]:
        since = run.no_network_since if self.writer else None
        return ({} if since is None else {"no_network_since": since}) | {
            "run": run.run_id, "state": run.state, "started_at": run.started_at,
            "ended_at": run.ended_at, "last_observation_at": self.observed_at,
            "seconds": round(self.seconds(run), 3), "fetches": run.fetches,
            "observations": self.kinds,
        }  # fmt: skip


def since_of(robots: RobotsRecord) -> float:
    """Return since when a robots.txt is unreachable."""
    return robots.fetched_at if robots.stale_since is None else robots.stale_since


# -- reading -----------------------------------------------------------------


async def standing(connection: Reader, db: Path, now: float) -> StatusReport:
    """Return the status without slow counts, for frequent calls."""
    return StatusReport(**await _report_values(connection, db, now))


async def store_status(connection: Reader, db: Path, now: float) -> StoreStatus:
    """Return the status of a store."""
    told = await _report_values(connection, db, now)
    last: CrawlRun | None = told["last_run"]
    return StoreStatus(
        **told,
        db=str(db),
        at=now,
        observed_at=await overview.last_sign_of_life(connection, last.run_id) if last else None,
        kinds=await overview.kinds(connection, last.run_id) if last else {},
        bounds=await runs.bounds(connection, last.run_id) if last else {},
        holdings=await overview.holdings(connection),
        file_bytes=overview.file_bytes(db),
        frontier=await overview.frontier_counts(connection, now),
        busiest=await overview.busiest(connection, now, _SHOWN),
        bounded=await url_patterns.bounded(connection),
        held_back=await overview.held_back(connection),
        needs_javascript=dict(await overview.needing_javascript(connection)),
        no_content=dict(await overview.without_content(connection)),
        rejecting=await hosts.rejecting(connection),
        duplicates=await near_duplicates.state(connection),
    )


async def _report_values(connection: Reader, db: Path, now: float) -> dict[str, Any]:
    """Return the values of a :class:`StatusReport`."""
    last, daemon, owner = await runs.latest(connection), None, owner_of(db)
    if last and await runs.latest_outlook(connection, last.run_id):
        from freshet.crawler.run.daemon_status import daemon_status  # noqa: PLC0415 - imports numpy

        daemon = await daemon_status(connection, db, last, now)
    return {
        "last_run": last,
        "writer": None if owner is None else owner.name,
        "parked": await overview.parked(connection, now),
        "deferred": await overview.deferred(connection),
        "robots_unreachable": await hosts.unreachable_robots(connection),
        "doubtful": await overview.doubtful(connection, _SHOWN),
        "to_come": await overview.to_come(connection) if daemon is None else 0,
        "extensions": await parts_of(connection),
        "daemon": daemon,
    }


async def read_status(db: Path, now: float) -> StoreStatus:
    """Return the status of the store in a file; raises as :func:`page.snapshot`."""
    async with page.snapshot(db) as connection:
        return await store_status(connection, db, now)


class ShardStatus(NamedTuple):
    """The status of a shard, its row in the table of shards, and its number of foreign hosts."""

    status: StoreStatus
    row: dict[str, object]
    foreign: int


async def read_shard(paths: Sequence[Path], now: float, db: Path) -> ShardStatus:
    """Return the status of the shard in a file, one of all ``paths``."""
    async with page.snapshot(db) as connection:
        status, owner = await store_status(connection, db, now), owner_of(db)
        ((outgoing, foreign),) = await connection.execute_fetchall(
            "SELECT (SELECT count(*) FROM outgoing), count(DISTINCT host_id) FROM page "
            f"WHERE held_back = '{FOREIGN}'"
        )
    it = status.daemon
    row = {
        "shard": paths.index(db), "writer": owner and owner.name,
        "process": owner and owner.process, "pages": status.holdings.pages,
        "due": status.frontier["due"] if it is None else None,
        "waiting": it and it.snapshot.waiting, "requests_today": it and it.today.requests,
        "budget": it and it.snapshot.budget, "price": it and it.snapshot.price,
        "outgoing": outgoing, "file_bytes": status.file_bytes,
    }  # fmt: skip
    return ShardStatus(status, row, foreign)


# -- several shards ----------------------------------------------------------


def merged_standing(found: Sequence[StatusReport], now: float) -> StatusReport:
    """Return the status of all shards, as of one store."""
    return StatusReport(**_together(found, now))


def merged(db: Path, now: float, shards: Sequence[ShardStatus]) -> StoreStatus:
    """Return the full status of all shards, as of one store."""
    all_of = [shard.status for shard in shards]
    held_back = _counts(all_of, "held_back")
    # Pages of other shards are counted there.
    stubs = held_back.pop(FOREIGN, 0)
    foreign = sum(shard.foreign for shard in shards)
    return StoreStatus(
        **_together(all_of, now),
        db=str(db),
        at=now,
        observed_at=max((it.observed_at for it in all_of if it.observed_at), default=None),
        kinds=dict(sorted(_counts(all_of, "kinds").items())),
        bounds=dict(sorted(_counts(all_of, "bounds").items(), key=_falling)),
        holdings=_merged_holdings([it.holdings for it in all_of], stubs, foreign),
        file_bytes=sum(it.file_bytes for it in all_of),
        frontier=dict(_counts(all_of, "frontier")),
        busiest=_rows(all_of, "busiest", _falling)[:_SHOWN],
        bounded=_rows(all_of, "bounded", lambda row: -row[1].held),
        held_back=dict(sorted(held_back.items())),
        needs_javascript=dict(sorted(_counts(all_of, "needs_javascript").items(), key=_falling)),
        no_content=dict(sorted(_counts(all_of, "no_content").items(), key=_falling)),
        rejecting=_rows(all_of, "rejecting", lambda host: (-host.rejected, host.origin)),
        duplicates=_merged_duplicates([it.duplicates for it in all_of]),
    )


def _together(found: Sequence[StatusReport], now: float) -> dict[str, Any]:
    """Return the values of a :class:`StatusReport` of several stores."""
    running = [it.last_run for it in found if it.last_run is not None]
    doubtful = [each for it in found for each in it.doubtful[1]]
    doubtful.sort(key=lambda each: (-each.probability, each.url))
    return {
        "last_run": _merged_run(running) if running else None,
        "writer": next((it.writer for it in found if it.writer), None),
        "parked": _rows(found, "parked", lambda host: (host.until, host.origin)),
        "deferred": _rows(found, "deferred", lambda host: host.origin),
        "robots_unreachable": _rows(found, "robots_unreachable", lambda row: row[0]),
        "doubtful": (sum(it.doubtful[0] for it in found), doubtful[:_SHOWN]),
        "to_come": sum(it.to_come for it in found),
        "extensions": merged_parts([it.extensions for it in found]),
        "daemon": _merged_daemon([it.daemon for it in found if it.daemon], now),
    }


def _counts(shards: Sequence[StatusReport], name: str) -> Counter[str]:
    """Return the sums of the counts of this name."""
    total = Counter[str]()
    for each in shards:
        total.update(getattr(each, name))
    return total


def _rows(shards: Sequence[StatusReport], name: str, order: Callable[[Any], Any]) -> list[Any]:
    """Return the rows of all lists of this name."""
    return sorted((row for each in shards for row in getattr(each, name)), key=order)


def _merged_daemon(daemons: Sequence[DaemonStatus], now: float) -> DaemonStatus | None:
    if not daemons:
        return None
    from freshet.crawler.run.daemon_status import merged as together  # noqa: PLC0415 - likewise

    return together(daemons, now)


def _merged_holdings(parts: Sequence[Holdings], stubs: int, foreign: int) -> Holdings:
    """Return the holdings together; pages and hosts of other shards count only there."""
    urls = sum(it.urls for it in parts) - stubs
    return summed(parts, urls=urls, hosts=sum(it.hosts for it in parts) - foreign)


def _merged_duplicates(parts: Sequence[IndexState]) -> IndexState:
    return summed(parts, parameters=next((it.parameters for it in parts), None))


def _falling(named: tuple[str, int]) -> tuple[int, str]:
    return -named[1], named[0]


def _merged_run(found: Sequence[CrawlRun]) -> CrawlRun:
    """Return the last runs of shards as one, in the least finished state."""
    ended = [it.ended_at for it in found if it.ended_at is not None]
    away = [it.no_network_since for it in found if it.no_network_since is not None]
    states: tuple[RunState, ...] = ("running", "interrupted", "limit", "ended")
    return summed(
        found,
        run_id=max(it.run_id for it in found),
        started_at=min(it.started_at for it in found),
        ended_at=max(ended) if len(ended) == len(found) else None,
        state=min((it.state for it in found), key=states.index),
        no_network_since=min(away, default=None),
    )
