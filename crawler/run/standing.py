"""How the daemon of a store stands, from its last outlook and what has come in since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

import aiosqlite
import numpy as np

from freshet.scheduler.agenda.audit import Staleness, staleness
from freshet.storage.database import owner_of
from freshet.storage.entries import Outlook
from freshet.storage.queries import page
from freshet.storage.tables import observations
from freshet.storage.tables import runs as runs_tables
from freshet.storage.tables.runs import CrawlRun, RunProgress

# -- spending ----------------------------------------------------------------
#
# What a budget was spent on since a time, from how far runs had come at some moments.


@dataclass(frozen=True, slots=True)
class Spent:
    """Requests made, and those that the budget had room for in the same time."""

    requests: int
    flowed: float

    @property
    def share(self) -> float | None:
        """How much of what flowed was spent; None as long as it is less than a request."""
        return self.requests / self.flowed if self.flowed >= 1 else None


def spent(moments: Sequence[RunProgress], since: float) -> Spent:
    """What was spent from ``since`` to the last moment; the earliest comes first.

    ``moments`` go back to the last one before ``since``; between two of them it is taken to have
    been spent evenly. What a run made before the first of its moments counts as made before.
    """
    requests, flowed = 0.0, 0.0
    ordered = sorted(moments, key=lambda m: m.run_id)
    for _, run in groupby(ordered, key=lambda m: m.run_id):
        mine = list(run)
        requests += _grown([(m.at, m.fetches) for m in mine], since)
        for _, invocation in groupby(mine, key=lambda m: m.began_at):
            flowed += _grown([(m.at, m.flowed) for m in invocation], since)
    return Spent(round(requests), flowed)


def _grown(counts: Sequence[tuple[float, float]], since: float) -> float:
    """How much a count has grown since a time, or since its first value."""
    at, count = zip(*counts, strict=True)
    return float(count[-1] - np.interp(since, at, count))


_DAY_S: Final = 86_400.0
#: Outlooks are never further apart while a daemon runs.
_HOUR_S: Final = 3_600.0
#: Audits within so long tell how fresh the copy is.
AUDITED_S: Final = 7 * _DAY_S


@dataclass(frozen=True, slots=True)
class Standing:
    """A daemon at one moment.

    ``process`` is its id, None if it does not run. ``today`` begins at midnight UTC, ``day`` are
    the last 24 hours. ``measured`` is by pages drawn at random within :data:`AUDITED_S`.
    ``next_url`` is what the next request was for at the last outlook.
    """

    process: int | None
    outlook: Outlook
    today: Spent
    day: Spent
    measured: Staleness | None
    next_url: str | None

    def as_json(self) -> dict[str, object]:
        """The standing as JSON values; the capped lanes say what they refuse."""
        found = asdict(self)
        found["outlook"]["capped"] = [
            asdict(lane) | {"refused": lane.refused} for lane in self.outlook.capped
        ]
        found["outlook"]["discovered"]["share"] = self.outlook.discovered.share
        return found


async def standing(
    connection: aiosqlite.Connection, db: Path, run: CrawlRun | None, now: float
) -> Standing | None:
    """How the daemon stands, or stood, whose run this is; None if it is a crawl's."""
    last = None if run is None else await runs_tables.latest_outlook(connection, run.run_id)
    if run is None or last is None:
        return None
    process = _process(db)
    if process is None:
        # What it says of today and of the last days is of when it stopped.
        now = min(now, last.at)
    midnight = now // _DAY_S * _DAY_S
    moments = await runs_tables.spendings(connection, min(midnight, now - _DAY_S) - 2 * _HOUR_S)
    moments.append(_as_of(now, run, last, runs=process is not None))
    return Standing(
        process, last, spent(moments, midnight), spent(moments, now - _DAY_S),
        await measured(connection, now), await runs_tables.upcoming(connection, last),
    )  # fmt: skip


async def read_standing(db: Path, now: float) -> Standing | None:
    """As :func:`standing`, of the last run of a store.

    Raises:
        StoreError: there is no such file, or it is not a store of this schema.
    """
    async with page.snapshot(db) as connection:
        return await standing(connection, db, await runs_tables.latest(connection), now)


async def measured(connection: aiosqlite.Connection, now: float) -> Staleness | None:
    """How stale the copy is by the audits of the last days, None where there were none."""
    found = await observations.results(connection, now - AUDITED_S)
    return staleness(
        [a.importance for a in found], [a.stale for a in found], [a.hazard for a in found]
    )


def _process(db: Path) -> int | None:
    owner, process = owner_of(db) or ("", 0)
    return process if owner == "daemon" else None


def _as_of(now: float, run: CrawlRun, last: Outlook, *, runs: bool) -> RunProgress:
    """How far a run has come now: the budget has gone on flowing if it is running."""
    more = last.budget * max(0.0, now - last.at) / _DAY_S if runs else 0.0
    return RunProgress(
        max(now, last.at), run.run_id, last.began_at, run.fetches, last.flowed + more
    )
