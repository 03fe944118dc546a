"""Snapshots of an agenda's state: written with the daemon's status, read at a start.

*Contract.* An agenda that reads a snapshot and learns the observations since then has the same
state as one that learns all observations, with the same order of the pages; otherwise the snapshot
is not used. Corrections after the snapshot are the exception: observations that were amended, pages
that moved or were withdrawn, after they were learnt. If their number exceeds a thousandth of the
observations beyond the first million (a million are learnt in a minute), all observations are
learnt again.

Besides the state of the agenda, a snapshot holds the areas of URLs and the importance of pages,
which other parts write, and page columns that do not belong to the agenda: the ``others``.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from typing import Final

import aiosqlite
import numpy as np

from freshet.scheduler.arrays import Arrays
from freshet.scheduler.queue.new_pages import recall_since
from freshet.scheduler.queue.recrawl import RecrawlAgenda
from freshet.scheduler.queue.site_clock_ranker import SiteClockRanker
from freshet.storage.database import Database
from freshet.storage.errors import SnapshotError
from freshet.storage.queries import columns
from freshet.storage.tables import snapshots
from freshet.storage.tables.snapshots import LearntUpTo, SnapshotParts

log = logging.getLogger(__name__)

#: Version of the learning method: change it with the method.
_VERSION: Final = 3
#: Pages in one part.
_PAGES: Final = 1 << 16
#: Above this number of observations, a few corrections are tolerated.
_FEW: Final = 1_000_000
_TOLERATED: Final = 1_000


@dataclass(slots=True)
class ExtraArrays:
    """Arrays that other parts write into a snapshot and read back.

    Attributes:
        settings: the settings that determine the pages and their rules; after a change, all
            observations are learnt again.
        whole: arrays.
        columns: arrays with a row for each page; the last rows may be missing.
    """

    settings: str = ""
    whole: Arrays = field(default_factory=dict)
    columns: Arrays = field(default_factory=dict)


class Snapshots:
    """Writer and reader of the snapshot of one agenda with a :class:`SiteClockRanker`."""

    def __init__(self, agenda: RecrawlAgenda) -> None:
        self._agenda = agenda
        self._known = LearntUpTo(0, 0, 0, 0)
        self._ranker: object = None
        self._ids: Mapping[str, int] = {}
        self._read: SnapshotParts | None = None

    @property
    def is_current(self) -> bool:
        """Return whether the ranker's state was read or written."""
        return self._ranker is self._agenda.ranker

    def close(self) -> None:
        """Close the store from which parts of sites at rest are read."""
        if self._read is not None:
            self._read.close()

    async def write(self, database: Database, others: Callable[[], ExtraArrays]) -> None:
        """Write all that has been committed and learnt.

        No other task may learn in the meantime; other tasks may commit.
        """
        agenda, ranker = self._agenda, self._agenda.ranker
        if not isinstance(ranker, SiteClockRanker) or not len(agenda.pages):
            # Nothing was read yet: there is no state to write.
            return
        self._read = self._read or SnapshotParts(database.path)
        # Parts left by a killed process.
        await snapshots.prune(database)
        try:
            # Learn most of it now, because commits wait during the rest.
            await agenda.settle()
            async with database.patience:
                await agenda.settle()
                known = await snapshots.up_to(database.reader)
                altered = await snapshots.last_altered(database.reader)
            last, parts = self._last(known, extra := others()), self._parts(ranker, extra)
            kept = self._ids if self.is_current else {}
            ids = {**kept, **await snapshots.append(database, parts)}
            await snapshots.complete(database, last, ids, altered)
            self._ranker, self._ids = ranker, ids
            ranker.rest(self._part)
        finally:
            await snapshots.prune(database)

    def _part(self, name: str) -> Arrays:
        """Return a part of the snapshot that was read or written last."""
        if self._read is None:
            raise SnapshotError("the store is closed")
        return self._read(name, self._ids.get(name, 0))

    def _last(self, known: LearntUpTo, others: ExtraArrays) -> Arrays:
        learner = self._agenda.learner
        return {
            "version": np.array([_VERSION]),
            "settings": _text(others.settings),
            "count": np.array([len(learner.pages)]),
            "known": np.array(astuple(known)),
            "corrections": np.array([learner.amended, learner.corrections]),
            "hosts": np.array(learner.hosts.ids, np.int64),
            "turned": learner.pages.turned,
            **{f"other.{name}": array for name, array in others.whole.items()},
        }

    def _parts(self, ranker: SiteClockRanker, others: ExtraArrays) -> Iterator[tuple[str, Arrays]]:
        pages = self._agenda.pages
        yield "hubs", self._agenda.learner.hubs.written()
        yield "existence", pages.existence.written()
        for first in range(0, len(pages), _PAGES):
            some = slice(first, min(first + _PAGES, len(pages)))
            yield (
                f"pages/{first // _PAGES}",
                {
                    "pages": pages.written(some),
                    **ranker.columns(some),
                    **{f"other.{name}": array[some] for name, array in others.columns.items()},
                },
            )
        yield from ranker.written()

    async def read(
        self, reader: aiosqlite.Connection, settings: str, take_over: Callable[[ExtraArrays], None]
    ) -> bool:
        """Read the snapshot, pass others' arrays to ``take_over``, and learn what followed.

        Return False if there is no usable snapshot; then the agenda must learn from all
        observations.
        """
        agenda, ranker = self._agenda, self._agenda.ranker
        if not isinstance(ranker, SiteClockRanker):
            return False
        try:
            found = await snapshots.newest(reader)
            if not found or not await self._is_usable(reader, found[0], settings):
                return False
            take_over(await self._take_in(reader, ranker, *found))
        except (SnapshotError, KeyError, TypeError) as error:
            log.warning("the snapshot cannot be used (%s): learning from all observations", error)
            return False
        self._ranker = ranker
        await self._catch_up(reader)
        log.info("learnt %s pages from the snapshot", f"{len(agenda.pages):,}")
        return True

    async def _is_usable(self, reader: aiosqlite.Connection, found: Arrays, settings: str) -> bool:
        if found["version"][0] != _VERSION or bytes(found["settings"]).decode() != settings:
            return False
        self._known = LearntUpTo(*found["known"].tolist())
        learner = self._agenda.learner
        learner.amended, moved = found["corrections"].tolist()
        now = await snapshots.up_to(reader)
        if any(
            is_now < then for is_now, then in zip(astuple(now), astuple(self._known), strict=True)
        ):
            return False
        altered = sum(each <= self._known.page for each in await snapshots.altered(reader))
        learner.corrections = moved + altered
        corrected = now.amendments - learner.amended + learner.corrections
        return not corrected or corrected * _TOLERATED < now.observation - _FEW

    async def _take_in(
        self,
        reader: aiosqlite.Connection,
        ranker: SiteClockRanker,
        found: Arrays,
        ids: Mapping[str, int],
    ) -> ExtraArrays:
        learner, pages, self._ids = self._agenda.learner, self._agenda.pages, ids
        await learner.load_hosts(found["hosts"].tolist())
        others, count = ExtraArrays(whole=_others(found)), int(found["count"][0])
        parts: dict[str, list[np.ndarray]] = {}
        async for _, some in snapshots.read(reader, ids, "pages"):
            pages.read(some["pages"], count)
            ranker.recall(some["pages"]["host"], some["pages"]["importance"], some, count)
            for name, array in _others(some).items():
                parts.setdefault(name, []).append(array)
        others.columns = {name: np.concatenate(arrays) for name, arrays in parts.items()}
        pages.turned = found["turned"]
        async for _, arrays in snapshots.read(reader, ids, "hubs"):
            learner.hubs.read(arrays)
        async for _, arrays in snapshots.read(reader, ids, "existence"):
            pages.existence.read(arrays)
        self._read = self._read or SnapshotParts(await snapshots.path_of(reader))
        async for code, arrays in snapshots.read(reader, ids, "site"):
            ranker.recall_site(int(code), arrays, self._part)
        async for code, arrays in snapshots.read(reader, ids, "claims"):
            ranker.recall_claims(int(code), arrays)
        return others

    async def _catch_up(self, reader: aiosqlite.Connection) -> None:
        """Learn the observations since the snapshot."""
        learner, pages = self._agenda.learner, self._agenda.pages
        names = ("gone", "since", "asked", "absent", "captured")
        before = {name: pages[name].copy() for name in names}
        wanted = np.array(await snapshots.touched(reader, self._known), np.int64)
        rows, was_known = pages.rows(wanted)
        # Pages that were gone and then linked again count as new, but may have been back before.
        present = wanted[was_known][before["gone"][rows] == 0].tolist()
        for page_id, times in (await snapshots.gone_by(reader, present, self._known)).items():
            row = pages.row(page_id)
            before["gone"][row], before["absent"][row] = times, before["since"][row]
        found = await columns.pages(reader, wanted.tolist())
        is_held = np.isin(wanted[was_known], found.page_id)
        pages.drop(rows[~is_held])
        await learner.refresh(found)
        past = await learner.evidence.all(self._known.observation, self._known.claim)
        await learner.teach(past)
        pages.recall_gone(past.visits, before)
        linked = await recall_since(reader, learner.hubs, pages, past.visits, before)
        again = pages["page_id"][linked[pages["gone"][linked] > 0]].tolist()
        shown = await columns.pages(reader, again)
        await learner.refresh(shown.take(~shown.gone))


def _text(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


def _others(arrays: Arrays) -> Arrays:
    return {
        # A copy, so that the rest of the part can be freed.
        name.removeprefix("other."): array.copy()
        for name, array in arrays.items()
        if name.startswith("other.")
    }
