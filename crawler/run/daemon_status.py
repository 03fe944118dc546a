"""The status of a store's daemon: last status snapshot, use of the budget, measured freshness."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Final

import aiosqlite
import numpy as np
from numpy.typing import NDArray

from freshet.crawler.run.orders import AUDITED_S
from freshet.scheduler.queue.audit import Staleness, staleness
from freshet.storage.database import owner_of
from freshet.storage.entries import Outlook, summed
from freshet.storage.queries import columns, page
from freshet.storage.tables import runs as runs_tables
from freshet.storage.tables.runs import CrawlRun, RunProgress


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """Requests made, and requests that the budget allowed, in the same time."""

    requests: int
    flowed: float

    @property
    def share(self) -> float | None:
        """The spent share of the allowed requests; None before the first is allowed."""
        return self.requests / self.flowed if self.flowed >= 1 else None


def spent(moments: Sequence[RunProgress], since: float) -> BudgetUse:
    """Return the requests spent and allowed from ``since`` to the last moment.

    ``moments`` start with the last one before ``since``; between two moments, spending counts as
    even. Requests of a run before its first moment count as earlier than ``since``.
    """
    requests, flowed = 0.0, 0.0
    ordered = sorted(moments, key=lambda m: m.run_id)
    for _, run in groupby(ordered, key=lambda m: m.run_id):
        mine = list(run)
        requests += _grown([(m.at, m.fetches) for m in mine], since)
        for _, invocation in groupby(mine, key=lambda m: m.began_at):
            flowed += _grown([(m.at, m.flowed) for m in invocation], since)
    return BudgetUse(round(requests), flowed)


def per_minute(moments: Sequence[RunProgress], since: float) -> float:
    """Return the requests per minute of running time; ``moments`` as for :func:`spent`."""
    began = {m.began_at: m.at for m in sorted(moments, key=attrgetter("at")) if m.at > since}
    ran_s = sum(at - max(since, began_at) for began_at, at in began.items())
    return 60 * spent(moments, since).requests / max(60.0, ran_s)


def _grown(counts: Sequence[tuple[float, float]], since: float) -> float:
    """Return the growth of a count since a time, or since its first value."""
    at, count = zip(*counts, strict=True)
    return float(count[-1] - np.interp(since, at, count))


_DAY_S: Final = 86_400.0
#: The longest time between two status snapshots of a running daemon.
_HOUR_S: Final = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStatus:
    """The status of a daemon at one moment.

    ``process`` is its process id, or None if it does not run. ``today`` begins at midnight UTC,
    ``day`` is the last 24 hours. ``per_minute`` are the requests per minute of running time in the
    last hour. ``measured`` is the freshness by the audit sample of :data:`AUDITED_S`. ``next_url``
    was the next URL at the last status snapshot. ``audits`` are the audits behind ``measured``,
    kept to merge the status of several daemons.
    """

    process: int | None
    snapshot: Outlook
    today: BudgetUse
    day: BudgetUse
    per_minute: float
    measured: Staleness | None
    next_url: str | None
    audits: NDArray[np.void] = field(compare=False, repr=False)

    def as_json(self) -> dict[str, object]:
        """Return the status as JSON values, with the refused visits of capped host queues."""
        found = asdict(self)
        del found["audits"]
        found["snapshot"]["capped"] = [
            asdict(queue) | {"refused": queue.refused} for queue in self.snapshot.capped
        ]
        found["snapshot"]["discovered"]["share"] = self.snapshot.discovered.share
        found["snapshot"]["unused_requests"] = found["snapshot"].pop("forgone")
        return found


async def daemon_status(
    connection: aiosqlite.Connection, db: Path, run: CrawlRun | None, now: float
) -> DaemonStatus | None:
    """Return the current or last status of a run's daemon, or None for a crawl."""
    last = None if run is None else await runs_tables.latest_outlook(connection, run.run_id)
    if run is None or last is None:
        return None
    process = _process(db)
    if process is None:
        # For a stopped daemon, today and the last 24 hours end at its last snapshot.
        now = min(now, last.at)
    midnight = now // _DAY_S * _DAY_S
    moments = await runs_tables.spendings(connection, min(midnight, now - _DAY_S) - 2 * _HOUR_S)
    moments.append(_as_of(now, run, last, runs=process is not None))
    audits = await columns.audits(connection, now - AUDITED_S)
    return DaemonStatus(
        process=process,
        snapshot=last,
        today=spent(moments, midnight),
        day=spent(moments, now - _DAY_S),
        per_minute=per_minute(moments, now - _HOUR_S),
        measured=_measured(audits),
        next_url=await runs_tables.upcoming(connection, last),
        audits=audits,
    )


async def read_status(db: Path, now: float) -> DaemonStatus | None:
    """Return :func:`daemon_status` of the last run of a store; raises as :func:`page.snapshot`."""
    async with page.snapshot(db) as connection:
        return await daemon_status(connection, db, await runs_tables.latest(connection), now)


def merged(daemons: Sequence[DaemonStatus], now: float) -> DaemonStatus:
    """Return the status of the daemons of all shards as one, with their audits merged.

    Means are taken over the captured pages, as if the sites of each shard had equal importance,
    because snapshots lack the sum of importance. Each audit is weighted by the pages per audit of
    its shard.
    """
    coming = (it for it in daemons if it.process is not None and it.snapshot.next_at > now)
    following = min(coming, key=lambda it: it.snapshot.next_at, default=daemons[0])
    outlooks = [each.snapshot for each in daemons]
    return DaemonStatus(
        process=next((it.process for it in daemons if it.process is not None), None),
        snapshot=_merged_outlook(outlooks, following.snapshot.next_at),
        today=summed([it.today for it in daemons]),
        day=summed([it.day for it in daemons]),
        per_minute=sum(it.per_minute for it in daemons),
        measured=_measured_together(daemons),
        next_url=following.next_url,
        audits=np.concatenate([it.audits for it in daemons]),
    )


def _merged_outlook(outlooks: Sequence[Outlook], next_at: float) -> Outlook:
    return summed(
        outlooks,
        at=max(it.at for it in outlooks),
        began_at=min(it.began_at for it in outlooks),
        policy=", ".join(sorted({it.policy for it in outlooks})),
        stale=_mean(outlooks, "stale"),
        harmonic=_mean(outlooks, "harmonic"),
        price=_median_price(outlooks),
        changing=tuple(map(sum, zip(*(it.changing for it in outlooks), strict=True))),
        clocked=_mean(outlooks, "clocked") or 0.0,
        next_at=next_at,
        next_page_id=None,
        capped=tuple(
            sorted((queue for it in outlooks for queue in it.capped), key=lambda it: -it.refused)
        ),
        discovered=summed([it.discovered for it in outlooks]),
    )


def _median_price(outlooks: Sequence[Outlook]) -> float | None:
    prices = [it.price for it in outlooks if it.price is not None]
    return float(np.median(prices)) if prices else None


def _mean(outlooks: Sequence[Outlook], name: str) -> float | None:
    """Return the mean of an expectation over the captured pages, or None if it is unknown."""
    held = [it for it in outlooks if it.captured and getattr(it, name) is not None]
    values, pages = [getattr(it, name) for it in held], [it.captured for it in held]
    return float(np.average(values, weights=pages)) if held else None


def _measured_together(daemons: Sequence[DaemonStatus]) -> Staleness | None:
    """Return the staleness by the audits of all shards."""
    weights = [it.snapshot.captured / max(1, len(it.audits)) for it in daemons]
    drawn = np.concatenate([it.audits for it in daemons])
    return staleness(
        drawn["importance"] * np.repeat(weights, [len(it.audits) for it in daemons]),
        drawn["stale"],
        drawn["hazard"],
    )


async def measured(connection: aiosqlite.Connection, since: float) -> Staleness | None:
    """Return the staleness by the audits since a time, or None without audits."""
    return _measured(await columns.audits(connection, since))


def _measured(audits: NDArray[np.void]) -> Staleness | None:
    return staleness(audits["importance"], audits["stale"], audits["hazard"])


def _process(db: Path) -> int | None:
    owner, process, _ = owner_of(db) or ("", 0, "")
    return process if owner.endswith("daemon") else None


def _as_of(now: float, run: CrawlRun, last: Outlook, *, runs: bool) -> RunProgress:
    """Return the spending of a run until now; its budget grows only while it runs."""
    more = last.budget * max(0.0, now - last.at) / _DAY_S if runs else 0.0
    return RunProgress(
        max(now, last.at), run.run_id, last.began_at, run.fetches, last.flowed + more
    )
