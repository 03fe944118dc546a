"""Catching up with the near-duplicates: pages that are new or changed find their group.

A crawl ends with it, and ``freshet duplicates --update`` does it in between. Done in
transactions of bounded size, each of which leaves the index whole: it may be interrupted at any
moment, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import aiosqlite

from freshet.crawler.detection.near_duplicates import (
    BUCKET_SIZE,
    THRESHOLD,
    Banding,
    Leaders,
    bucket_keys,
    optimal_banding,
)
from freshet.crawler.detection.sketch import Sketch
from freshet.storage.database import Database
from freshet.storage.tables import near_duplicates
from freshet.storage.tables.near_duplicates import Parameters, Placement

#: Observations looked at, and pages placed, in one transaction. Buckets lie scattered over
#: their table: the more at once, the less often is a leaf of it written.
_BATCH = 10_000
#: Pages whose candidates are read at once, which bounds the sketches in memory.
_CHUNK = 500


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """What catching up did.

    ``placed`` pages found a group or lead one; ``rebuilt_from`` is the threshold of an
    index that was thrown away because another was asked for, None where none was. What was
    stopped is not ``complete``.
    """

    placed: int
    threshold: float
    rebuilt_from: float | None = None
    complete: bool = True


@dataclass(slots=True)
class Watch:
    """Who looks on: ``placed`` is written after each transaction, ``stopping`` read before it."""

    stopping: Callable[[], bool] = lambda: False
    placed: int | None = None


async def catch_up(
    database: Database,
    now: Callable[[], float],
    *,
    threshold: float | None = None,
    batch: int = _BATCH,
    watch: Watch | None = None,
) -> CaughtUp:
    """Group every page that has come, changed or gone since the last time.

    With another ``threshold`` (0 to 1) than the index has it is built anew; None keeps the
    one that there is, or takes :data:`THRESHOLD`.

    Raises:
        StoreError: the store cannot be written.
        ValueError: the threshold is none.
    """
    before = await near_duplicates.parameters(database.reader)
    chosen = _parameters(before, threshold)
    if chosen != before:
        async with database.transaction() as connection:
            await near_duplicates.begin(connection, chosen)
    watch = watch or Watch()
    placed, working = 0, True
    while working and not watch.stopping():
        watch.placed = placed
        async with database.transaction() as connection:
            seen = await near_duplicates.survey(connection, batch)
            found = await _place(connection, chosen, now(), batch)
        placed += found
        working = seen + found > 0
    rebuilt = before is not None and chosen != before
    return CaughtUp(
        placed, chosen.threshold, before.threshold if before and rebuilt else None, not working
    )


def _parameters(before: Parameters | None, threshold: float | None) -> Parameters:
    if before is not None and threshold in {None, before.threshold}:
        return before
    wanted = THRESHOLD if threshold is None else threshold
    banding = optimal_banding(wanted)
    return Parameters(wanted, banding.count, banding.rows)


async def _place(
    connection: aiosqlite.Connection, chosen: Parameters, at: float, limit: int
) -> int:
    """Place the pages that wait, at most ``limit``; how many there were."""
    leaders = Leaders(chosen.threshold)
    placements: list[Placement] = []
    last = 0
    while len(placements) < limit:
        chunk = min(_CHUNK, limit - len(placements))
        stored = await near_duplicates.waiting(connection, last, chunk)
        if not stored:
            break
        placements += await _placed(connection, leaders, chosen, _decoded(stored))
        last = placements[-1].page_id
    await near_duplicates.place(connection, placements, at)
    return len(placements)


async def _placed(
    connection: aiosqlite.Connection,
    leaders: Leaders,
    chosen: Parameters,
    sketches: Mapping[int, Sketch],
) -> list[Placement]:
    banding = Banding(chosen.bands, chosen.band_rows)
    keys = {page_id: bucket_keys(sketch, banding) for page_id, sketch in sketches.items()}
    wanted = {key for own in keys.values() for key in own}
    leaders.meet(await near_duplicates.buckets(connection, wanted, BUCKET_SIZE))
    unread = leaders.unread(keys.values())
    leaders.read(_decoded(await near_duplicates.sketches(connection, unread)))
    return [_placement(leaders, i, sketch, keys[i]) for i, sketch in sketches.items()]


def _placement(leaders: Leaders, page_id: int, sketch: Sketch, keys: tuple[int, ...]) -> Placement:
    match = leaders.nearest(sketch, keys)
    if match is None:
        leaders.add(page_id, sketch, keys)
        return Placement(page_id, page_id, keys=keys)
    found = match.resemblance
    return Placement(page_id, match.leader_id, found.value, found.standard_error)


def _decoded(stored: Mapping[int, bytes]) -> dict[int, Sketch]:
    return {page_id: Sketch.from_bytes(sketch) for page_id, sketch in stored.items()}
