"""The report of one invocation: counts, what changed, and what was left and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import aiosqlite

from freshet.crawler.pool import Ending
from freshet.crawler.tally import Tally
from freshet.storage.queries import overview
from freshet.storage.queries.overview import (
    BoundedPattern,
    ChangedPage,
    DeferredHost,
    MovedSeed,
    SilentSeed,
)
from freshet.storage.tables import near_duplicates, runs
from freshet.storage.tables.near_duplicates import IndexState
from freshet.storage.words import Kind


@dataclass(frozen=True, slots=True)
class CrawlReport:
    """What ``freshet crawl`` did; the counts are of this invocation.

    ``pages`` are distinct canonical URLs that answered 200 or 304; ``changed`` counts
    significant changes only; ``appeared`` and ``vanished`` are empty in a first run, in
    which everything is new. ``duplicates`` are the store's near-duplicates, and ``forgone`` is
    how many requests a daemon's budget had room for while no host could be asked.
    """

    run: int
    resumed: bool
    ending: Ending
    pages: int
    fetches: int
    new: int
    changed: int
    unchanged: int
    gone: int
    redirected: int
    refused: int
    refused_by_robots: int
    skipped: int
    errors: int
    retries: int
    seconds: float
    reasons: dict[str, int]
    changed_pages: list[ChangedPage]
    appeared: list[str]
    vanished: list[str]
    deferred: list[DeferredHost]
    silent_seeds: list[SilentSeed]
    moved_seeds: list[MovedSeed]
    bounded: list[BoundedPattern]
    held_back: dict[str, int]
    duplicates: IndexState
    forgone: float | None = None

    def as_json(self) -> dict[str, object]:
        """The report as JSON values."""
        return asdict(self) | {"seconds": round(self.seconds, 3)}


async def make_report(
    reader: aiosqlite.Connection,
    run_id: int,
    tally: Tally,
    ending: Ending,
    *,
    seconds: float,
    resumed: bool,
) -> CrawlReport:
    """Gather the report of an invocation that has ended."""
    kinds = tally.kinds
    first = await runs.is_first(reader, run_id)
    return CrawlReport(
        run=run_id,
        resumed=resumed,
        ending=ending,
        pages=tally.pages,
        fetches=tally.fetches,
        new=kinds[Kind.NEW],
        changed=kinds[Kind.CHANGED],
        unchanged=kinds[Kind.UNCHANGED],
        gone=kinds[Kind.GONE],
        redirected=kinds[Kind.REDIRECTED],
        refused=kinds[Kind.REFUSED],
        refused_by_robots=tally.refused_by_robots,
        skipped=kinds[Kind.SKIPPED],
        errors=tally.errors,
        retries=tally.retries,
        seconds=seconds,
        reasons={f"{kind}: {reason}": n for (kind, reason), n in tally.reasons.most_common()},
        changed_pages=await overview.changed(reader, run_id),
        appeared=[] if first else await overview.appeared(reader, run_id),
        vanished=[] if first else await overview.vanished(reader, run_id),
        deferred=await overview.deferred(reader),
        silent_seeds=await overview.silent_seeds(reader, run_id),
        moved_seeds=await overview.moved_seeds(reader),
        bounded=await overview.bounded(reader),
        held_back=await overview.held_back(reader),
        duplicates=await near_duplicates.state(reader),
    )
