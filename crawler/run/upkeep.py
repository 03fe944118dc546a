"""Upkeep of a store: formats, corrections by other pages, near-duplicates, and retention."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final

from freshet.config.settings import StoreSettings
from freshet.crawler.compare import history
from freshet.crawler.compare.detection import SAMPLE_PAGES, is_same_page
from freshet.crawler.compare.history import PageMemory, PageRecord
from freshet.crawler.compare.near_duplicates import (
    BUCKET_SIZE,
    THRESHOLD,
    Leaders,
    bucket_keys,
    optimal_banding,
)
from freshet.crawler.compare.not_content import host
from freshet.crawler.frontier.clock import STEP_S, Clock
from freshet.crawler.reduce import sketch
from freshet.crawler.reduce.sketch import Sketch
from freshet.crawler.run.hooks import RunShard
from freshet.crawler.run.terminal import moment, span
from freshet.storage.database import Database
from freshet.storage.entries import Amendment, Kind, Rung
from freshet.storage.errors import StoreError
from freshet.storage.extensions import Recording
from freshet.storage.maintenance import Retention, VersionedData, formats
from freshet.storage.tables import changefeed, hosts, near_duplicates, observations, runs
from freshet.storage.tables.near_duplicates import LeaderChoice, Parameters
from freshet.storage.tables.runs import lease_of, take_lease

if TYPE_CHECKING:
    import aiosqlite

    from freshet.crawler.compare.templates import Correction

log = logging.getLogger(__name__)

_WHY = {
    "unchanged": "the same blocks were added or removed on many pages of the site",
    "changed": "the same blocks have changed on no other page of the site",
}


async def correct(
    database: Database, run_id: int, since: float, now: float, recorders: Sequence[Recording] = ()
) -> list[Correction]:
    """Correct the verdicts of a run, begun at ``since``, that its other pages contradict.

    A page that counted as new but has moved is corrected as well. It may be repeated: a run that
    was killed and resumed is corrected as a whole. The ``recorders`` run in the same transaction.
    """
    corrections: list[Correction] = []
    for host_id, pages in await observations.open_hosts(database.reader, run_id, since):
        memories = await observations.open_memories(database.reader, run_id, host_id)
        differing = {
            page_id: (text, [d for d in PageMemory.from_bytes(data).deltas if d.at >= since])
            for page_id, text, data in memories
        }
        sample = await observations.sample(database.reader, host_id, SAMPLE_PAGES)
        from freshet.crawler.compare.templates import Template, settled  # noqa: PLC0415 - if one differs

        template = Template.learnt([PageRecord.of(history) for history in sample])
        corrections += settled(differing, pages, template)
    corrections += await _moves(database, run_id)

    def amend(connection: sqlite3.Connection) -> None:
        for each in corrections:
            observations.amend(connection, each.page_id, _amendment(each), now)
        documents = {each.page_id for each in corrections}
        changefeed.tell(connection, documents, now)
        for recorder in recorders:
            recorder.record(connection, (), documents, now)

    await database.write(amend)
    return corrections


def _amendment(it: Correction) -> Amendment:
    rung: Rung = "frame" if it.kind == "unchanged" else "blocks"
    why = _WHY[it.kind]
    if it.was == "new":
        rung = "text" if it.kind == "unchanged" else "blocks"
        why = "it stood at another URL before"
    return Amendment(it.at, it.kind, rung, why)


async def _moves(database: Database, run_id: int) -> list[Correction]:
    """Return corrections of new pages to which an old URL redirected later."""
    corrections = []
    for page_id, at, old_sketch, new_sketch in await observations.moves(database.reader, run_id):
        old, new = Sketch.from_bytes(old_sketch), Sketch.from_bytes(new_sketch)
        if is_same_page(old, new):
            from freshet.crawler.compare.templates import Correction  # noqa: PLC0415 - if one moved

            kind: Kind = "unchanged" if old.text_digest == new.text_digest else "changed"
            corrections.append(Correction(page_id, at, "new", kind))
    return corrections


# -- near-duplicates ---------------------------------------------------------
#
# Each transaction has a bounded size and leaves the index consistent, so the work may be
# interrupted and resumed at any time.

#: Observations read, and pages placed, in one transaction. Buckets are scattered over their table,
#: so a larger batch writes each leaf less often.
_BATCH = 10_000
#: Pages whose candidates are read at once; this limits the sketches in memory.
_CHUNK = 500


@dataclass(slots=True)
class Grouping:
    """Progress and result of grouping near-duplicates.

    ``stopping`` is called before each transaction; interrupted work is not ``complete``. ``placed``
    pages joined or lead a group. ``rebuilt_from`` is the threshold of a discarded index, if another
    threshold was requested.
    """

    stopping: Callable[[], bool] = field(default=lambda: False, compare=False)
    placed: int | None = None
    threshold: float = THRESHOLD
    rebuilt_from: float | None = None
    complete: bool = False


async def catch_up(
    database: Database,
    now: Callable[[], float],
    *,
    threshold: float | None = None,
    batch: int = _BATCH,
    watch: Grouping | None = None,
) -> Grouping:
    """Group all pages that are new, changed or gone since the last call; return ``watch``.

    A ``threshold`` (0 to 1) other than the index's rebuilds it. None keeps the index's threshold,
    or :data:`THRESHOLD` for a new index.

    Raises:
        StoreError: the store cannot be written.
        ValueError: the threshold is out of range.
    """
    before = await near_duplicates.parameters(database.reader)
    chosen = _parameters(before, threshold)
    if chosen != before:
        await database.write(partial(near_duplicates.begin, chosen=chosen))
    watch = watch or Grouping()
    watch.threshold = chosen.threshold
    watch.rebuilt_from = before.threshold if before and chosen != before else None
    watch.placed = 0
    while not watch.complete and not watch.stopping():
        seen, found = await database.write(partial(_step, chosen=chosen, at=now(), limit=batch))
        watch.placed += found
        watch.complete = seen + found == 0
    return watch


def _parameters(before: Parameters | None, threshold: float | None) -> Parameters:
    if before is not None and threshold in {None, before.threshold}:
        return before
    wanted = THRESHOLD if threshold is None else threshold
    return Parameters(wanted, *optimal_banding(wanted))


def _step(
    connection: sqlite3.Connection, chosen: Parameters, at: float, limit: int
) -> tuple[int, int]:
    """Read some observations and place some pages; return both counts."""
    seen = near_duplicates.survey(connection, limit)
    return seen, _place(connection, chosen, at, limit)


def _place(connection: sqlite3.Connection, chosen: Parameters, at: float, limit: int) -> int:
    """Place waiting pages, at most ``limit``; return their count."""
    leaders = Leaders(chosen.threshold)
    placements: list[LeaderChoice] = []
    last = 0
    while len(placements) < limit:
        chunk = min(_CHUNK, limit - len(placements))
        stored = near_duplicates.waiting(connection, last, chunk)
        if not stored:
            break
        placements += _placed(connection, leaders, chosen, _decoded(stored))
        last = placements[-1].page_id
    near_duplicates.place(connection, placements, at)
    return len(placements)


def _placed(
    connection: sqlite3.Connection,
    leaders: Leaders,
    chosen: Parameters,
    sketches: Mapping[int, Sketch],
) -> list[LeaderChoice]:
    banding = chosen.bands, chosen.band_rows
    keys = {page_id: bucket_keys(sketch, banding) for page_id, sketch in sketches.items()}
    wanted = {key for own in keys.values() for key in own}
    leaders.meet(near_duplicates.buckets(connection, wanted, BUCKET_SIZE))
    unread = leaders.unread(keys.values())
    leaders.read(_decoded(near_duplicates.sketches(connection, unread)))
    return [_placement(leaders, i, sketch, keys[i]) for i, sketch in sketches.items()]


def _placement(
    leaders: Leaders, page_id: int, sketch: Sketch, keys: tuple[int, ...]
) -> LeaderChoice:
    match = leaders.nearest(sketch, keys)
    if match is None:
        leaders.add(page_id, sketch, keys)
        return LeaderChoice(page_id, page_id, keys=keys)
    return LeaderChoice(page_id, *match)


def _decoded(stored: Mapping[int, bytes]) -> dict[int, Sketch]:
    return {page_id: Sketch.from_bytes(sketch) for page_id, sketch in stored.items()}


# -- retention ---------------------------------------------------------------

_DAY_S = 86_400.0


def retention_of(store: StoreSettings) -> Retention:
    """Return the retention of the settings, where 0 means no limit."""
    return Retention(
        bodies_per_page=store.bodies_per_page,
        body_age_s=store.body_age_days * _DAY_S,
        gone_body_age_s=_age_s(store.gone_body_age_days),
        sketches_per_page=store.sketches_per_page or inf,
        failure_age_s=_age_s(store.failure_age_days),
        link_age_s=_age_s(store.link_age_days),
        alert_age_s=_age_s(store.alert_age_days),
        deletion_age_s=_age_s(store.deletion_age_days),
    )


def _age_s(days: float) -> float:
    return days * _DAY_S or inf


# -- the clock of earlier runs ----------------------------------------------------

#: Smaller corrections of the clock are usual.
_LOGGED_FROM_S: Final = 60.0


async def resumed(database: Database, clock: Clock) -> bool:
    """Continue from the store's last time if the machine's clock is slightly behind it.

    If the clock is more than an hour behind, the last time was wrong, and later times are set to
    now. Return whether the last run was killed.
    """
    last, now = await hosts.last_exchange_at(database.reader), clock.now()
    if last is not None and last - now > STEP_S:
        await database.write(partial(hosts.bring_back, now=now))
    elif last is not None and last > now:
        clock.go_on_from(last)
    if last is not None and last - now > _LOGGED_FROM_S:
        what = (
            "that clock was wrong, and its later times are set to now"
            if last - now > STEP_S
            else "Freshet's clock runs 1 % slower until both agree"
        )
        log.warning(
            "%s was last written at %s, %s ahead of this machine's clock: %s",
            database.path,
            moment(last, now),
            span(last - now),
            what,
        )
    run = await runs.latest(database.reader)
    return run is not None and run.state == "running"


async def keep_to(database: Database, shard: RunShard | None, until: AsyncExitStack) -> None:
    """Take the lease of a shard's store ``until`` the store is closed.

    Raises:
        StoreError: the store belongs to another shard, or to a shard while ``shard`` is None.
    """
    leased = await database.write(lease_of)
    number = None if shard is None else shard.number
    if leased is not None and leased.shard != number:
        folder = database.path.parent
        raise StoreError(f"{database.path}: it is shard {leased.shard} of a store; name {folder}")
    if shard is not None:
        until.callback(shard.leave)
        database.lease = await database.write(partial(take_lease, shard=shard.number))


# -- formats of versioned bytes ----------------------------------------------

#: The oldest and newest formats that can be read.
_READ: dict[VersionedData, tuple[int, int]] = {
    "sketches": (sketch.PLAIN_VERSION, sketch.VERSION),
    "memories": (history.VERSION, history.VERSION),
    "not_content": (host.VERSION, host.VERSION),
}


async def require_readable(connection: aiosqlite.Connection, path: Path) -> None:
    """Raise an error for a store whose pages this version cannot compare.

    Raises:
        StoreError: its sketches, memories or block pages have another format.
    """
    for what, (oldest, newest) in _READ.items():
        for found in await formats(connection, what):
            if found < oldest:
                raise StoreError(
                    f"{path}: its {what} are of format {found}, older than the {oldest} that this "
                    f"Freshet reads; crawl into a new file (--db), this one can still be read"
                )
            if found > newest:
                raise StoreError(
                    f"{path}: its {what} are of format {found}, newer than the {newest} that this "
                    "Freshet knows; upgrade Freshet"
                )
