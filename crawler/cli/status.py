"""``freshet status``: the daemon, the last run, the store and its frontier."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path

from freshet.crawler import terminal
from freshet.crawler.cli.options import DEFAULT_DB, Db, Json
from freshet.crawler.cli.standing_view import print_standing
from freshet.crawler.run.standing import Standing, standing
from freshet.crawler.terminal import (
    counted_duplicates,
    moment,
    print_json,
    show_facts,
    show_line,
    show_list,
    size,
    span,
)
from freshet.storage.queries import overview, page
from freshet.storage.queries.overview import (
    BoundedPattern,
    BusyHost,
    DeferredHost,
    FrontierCounts,
    Holdings,
    ParkedHost,
    UnreachableRobots,
)
from freshet.storage.tables import alerts as alerts_tables
from freshet.storage.tables import near_duplicates, runs
from freshet.storage.tables.alerts import RuleCounts
from freshet.storage.tables.near_duplicates import IndexState
from freshet.storage.tables.runs import CrawlRun, RunState

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A run and its observations. ``seconds`` end with the run, or its newest observation."""

    run: CrawlRun
    seconds: float
    observed_at: float | None
    observations: dict[str, int]

    def as_json(self) -> dict[str, object]:
        """Return the run as JSON values."""
        return {
            "run": self.run.run_id, "state": self.run.state, "started_at": self.run.started_at,
            "ended_at": self.run.ended_at, "last_observation_at": self.observed_at,
            "seconds": round(self.seconds, 3), "fetches": self.run.fetches,
            "observations": self.observations,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Status:
    """The store at one moment; ``busiest`` are the hosts with the most due URLs.

    ``daemon`` is its status if the last run is a daemon's.
    """

    db: str
    at: float
    last_run: RunStatus | None
    holdings: Holdings
    file_bytes: int
    frontier: FrontierCounts
    busiest: list[BusyHost]
    parked: list[ParkedHost]
    deferred: list[DeferredHost]
    robots_unreachable: list[UnreachableRobots]
    bounded: list[BoundedPattern]
    held_back: dict[str, int]
    duplicates: IndexState
    alerts: list[RuleCounts]
    daemon: Standing | None

    def as_json(self) -> dict[str, object]:
        """Return the status as JSON values."""
        return asdict(self) | {
            "last_run": self.last_run and self.last_run.as_json(),
            "daemon": self.daemon and self.daemon.as_json(),
        }


def status_command(db: Db = DEFAULT_DB, json: Json = False) -> None:
    """Show the daemon, the last run, the contents of the store, and the hosts that wait.

    A crawl may be writing the store meanwhile.
    """
    status = terminal.run(_read(db, time.time()))
    if json:
        print_json(status.as_json())
    else:
        _print(status)


async def _read(db: Path, now: float) -> Status:
    async with page.snapshot(db) as connection:
        last = await runs.latest(connection)
        observed_at = await overview.last_sign_of_life(connection, last.run_id) if last else None
        kinds = await overview.kinds(connection, last.run_id) if last else {}
        return Status(
            db=str(db),
            at=now,
            last_run=_run_status(last, observed_at, kinds) if last else None,
            holdings=await overview.holdings(connection),
            file_bytes=overview.file_bytes(db),
            frontier=await overview.frontier_counts(connection, now),
            busiest=await overview.busiest(connection, now, _SHOWN),
            parked=await overview.parked(connection, now),
            deferred=await overview.deferred(connection),
            robots_unreachable=await overview.unreachable_robots(connection),
            bounded=await overview.bounded(connection),
            held_back=await overview.held_back(connection),
            duplicates=await near_duplicates.state(connection),
            alerts=await alerts_tables.counts(connection),
            daemon=await standing(connection, db, last, now),
        )


def _run_status(run: CrawlRun, observed_at: float | None, kinds: dict[str, int]) -> RunStatus:
    last_at = run.ended_at or observed_at or run.started_at
    return RunStatus(run, max(0.0, last_at - run.started_at), observed_at, kinds)


def _print(status: Status) -> None:
    show_line(f"{status.db} ({size(status.file_bytes)})", "bold")
    if status.daemon is not None:
        print_standing(status.daemon, status.at)
    _print_run(status)
    _print_holdings(status)
    _print_hosts(status)
    show_list(
        "Bounded patterns (possible traps)",
        ("pattern", "kind", "crawled", "not"),
        [(f"{p.origin}{p.shape}", p.kind, p.admitted, p.refused) for p in status.bounded],
        _SHOWN,
    )
    _print_alerts(status)
    show_list("Known but not crawled", ("why", "URLs"), list(status.held_back.items()), _SHOWN)


def _print_alerts(status: Status) -> None:
    """Print unsent alerts; `freshet alerts` says more."""
    show_list(
        "Alerts",
        ("rule", "waiting", "pending", "given up", "why"),
        [
            (each.rule, each.waiting, each.pending, each.failed, each.said)
            for each in status.alerts
            if each.waiting or each.pending or each.failed
        ],
        _SHOWN,
    )


def _print_run(status: Status) -> None:
    last, now = status.last_run, status.at
    if last is None:
        show_line("no crawl has run yet")
        return
    run = last.run
    observed = [f"{kind} {count:,}" for kind, count in last.observations.items()]
    show_facts(
        f"Run {run.run_id}: {_state(run.state, status.daemon)}",
        {
            "started": moment(run.started_at, now),
            "ended": moment(run.ended_at, now) if run.ended_at is not None else None,
            "last observation": _moment(last.observed_at, now),
            "took": f"{last.seconds:,.1f} s" if last.seconds < 60 else span(last.seconds),
            "fetches": run.fetches,
            "observations": ", ".join(observed) or "none",
        },
    )


def _state(state: RunState, daemon: Standing | None) -> str:
    if state is RunState.ENDED:
        return "ended"
    if daemon is not None:
        return "running" if daemon.process else "killed (the same command continues)"
    if state is RunState.RUNNING:
        return "running, or killed (the next crawl finishes it)"
    why = "limit reached" if state is RunState.LIMIT else "interrupted"
    return f"{why} (the next crawl finishes it)"


def _moment(at: float | None, now: float) -> str | None:
    return None if at is None else moment(at, now)


def _print_holdings(status: Status) -> None:
    held, frontier = status.holdings, status.frontier
    show_facts(
        "Store",
        {
            "pages": f"{held.pages:,} of {held.urls:,} known URLs, {held.aliases:,} aliases",
            "hosts": held.hosts,
            "links": f"{held.links:,}, and {held.offsite_links:,} out of scope",
            "observations": held.observations,
            "versions": held.versions,
            "near-duplicates": _near_duplicates(status.duplicates),
            "bodies": f"{held.bodies:,}, {size(held.body_bytes)} in {size(held.stored_bytes)}",
        },
    )
    if status.daemon is not None:
        return
    show_facts(
        "Frontier",
        {
            "due now": frontier.due,
            "waiting for their time": frontier.waiting or None,
            "deferred to the next run": frontier.deferred or None,
        },
    )


def _near_duplicates(found: IndexState) -> str | None:
    """Describe the number of duplicates; None before any comparison."""
    if not found.pages and not found.unseen:
        return None
    # A crawl that is under way compares its pages when it ends, one that was killed has not.
    to_come = f", {found.unseen:,} observations not checked" if found.unseen else ""
    return counted_duplicates(found) + to_come


def _print_hosts(status: Status) -> None:
    now = status.at
    if status.daemon is None:
        show_list(
            "Hosts with the most URLs due",
            ("host", "due"),
            [(h.origin, h.due) for h in status.busiest],
        )
    show_list(
        "Parked hosts",
        ("host", "until", "why", "URLs"),
        [(h.origin, moment(h.until, now), h.reason, h.urls) for h in status.parked],
        _SHOWN,
    )
    show_list(
        "Deferred to the next run",
        ("host", "URLs", "why"),
        [(h.origin, h.urls, h.reason) for h in status.deferred],
        _SHOWN,
    )
    show_list(
        "robots.txt cannot be reached",
        ("host", "since", "why", "meanwhile"),
        [
            (r.origin, moment(r.since, now), r.reason, _meanwhile(r))
            for r in status.robots_unreachable
        ],
        _SHOWN,
    )


def _meanwhile(robots: UnreachableRobots) -> str:
    closed = robots.standing == "unreachable"
    return "nothing is fetched" if closed else "an older copy is used"
