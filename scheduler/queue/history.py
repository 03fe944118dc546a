"""Visits and change signals in the order in which they became known. Days are Unix days."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final, TypeAlias

import aiosqlite
import numpy as np

from freshet.scheduler.arrays import Bools, Ints
from freshet.scheduler.estimate.evidence import (
    UNASKED,
    SignalBatch,
    VisitResult,
    VisitResults,
    visit_results,
)
from freshet.scheduler.queue.pages import PageTable
from freshet.scheduler.queue.ranker import Ranker
from freshet.scheduler.sources import Rows
from freshet.storage.entries import CLAIM_KINDS, Claims, no_claims
from freshet.storage.queries import columns
from freshet.storage.records import Observation
from freshet.storage.tables import claims

_DAY_S: Final = 86_400.0
_NONE: Final = np.empty(0, np.intp)
#: Visits that are learnt in one step.
_AT_ONCE: Final = 1 << 18
#: Rows of the watched ones among these pages (ids), and a mask (m,) of the watched ones.
RowsOf: TypeAlias = Callable[[Ints], tuple[Rows, Bools]]
#: A header only describes the page that was just visited.
_HEADER: Final = CLAIM_KINDS.index("last_modified")


@dataclass(frozen=True, slots=True)
class NewEvidence:
    """Visits, and groups of signals with the number of visits before each, ascending."""

    visits: VisitResults
    received: Sequence[tuple[int, SignalBatch]] = ()

    def teach(self, ranker: Ranker) -> None:
        """Teach a ranker the visits, and the signals between them, in order."""
        first = 0
        for after, batch in [*self.received, (len(self.visits), None)]:
            # In parts, because a ranker needs several times the memory of the visits.
            while first < after:
                part = slice(first, min(first + _AT_ONCE, after))
                ranker.learn(self.visits.take(part))
                first = part.stop
            if batch is not None:
                ranker.receive(batch)


class PendingEvidence:
    """Committed visits and claims that are not learnt yet, in order."""

    def __init__(self, reader: aiosqlite.Connection, pages: PageTable) -> None:
        self._reader = reader
        self._pages = pages
        self._visits: list[VisitResult] = []
        self._claims: list[Claims] = []
        self._known_sources: set[int] = set()
        self._asked: Mapping[int, int] = {}

    def seen(self, row: int, it: Observation) -> None:
        """Record the result of a visit."""
        self._visits.append((row, it.at / _DAY_S, it.kind, it.rung))

    def claimed(self, found: Claims) -> None:
        """Record claims, before the visits that brought them."""
        if len(found):
            self._claims.append(found)

    async def load_sources(self) -> None:
        """Load the pages of sources when a claim has a new source."""
        sources = {each for some in self._claims for each in np.unique(some.source_id).tolist()}
        if not sources <= self._known_sources:
            self._known_sources |= sources
            self._asked = await claims.asked(self._reader)

    def new(self) -> NewEvidence:
        """Return the evidence since the last call; it counts as learnt."""
        visits, self._visits = visit_results(self._visits), []
        parts, self._claims = [no_claims(), *self._claims], []
        joined = (np.concatenate([getattr(s, it.name) for s in parts]) for it in fields(Claims))
        return _new_evidence(visits, Claims(*joined), self._pages.meant, self._asked)

    async def all(self, observation: int = 0, claim: int = 0) -> NewEvidence:
        """Return the history of the store; it counts as learnt.

        By default the whole history, else the part after an observation and a claim (their ids).
        """
        self._visits, self._claims = [], []
        self._asked = await claims.asked(self._reader)
        stored = await columns.visit_columns(self._reader, after=observation)
        loaded = await claims.load(self._reader, claim)
        rows, known = self._pages.rows(stored.page_id)
        visits = VisitResults(
            row=rows,
            at=stored.at[known] / _DAY_S,
            compared=stored.compared[known],
            changed=stored.changed[known],
            gone=stored.gone[known],
            moved=stored.moved[known],
        )
        return _new_evidence(visits, loaded, self._pages.meant, self._asked)


def _new_evidence(
    visits: VisitResults, claimed: Claims, rows_of: RowsOf, pages: Mapping[int, int]
) -> NewEvidence:
    """Merge visits and claims; ``pages`` has the page of each source that is requested.

    Sitemaps and feeds are pages as well: a visit to a source's page without a new claim is also a
    batch.
    """
    asked_rows, is_watched = rows_of(np.array(list(pages.values()), np.int64))
    sources = np.array(list(pages), np.int64)[is_watched]
    asked = dict(zip(sources.tolist(), asked_rows.tolist(), strict=True))
    sources_of: defaultdict[int, list[int]] = defaultdict(list)
    for source, row in sorted(asked.items()):
        sources_of[row].append(source)
    rows, known = rows_of(claimed.page_id)
    informative = known & (claimed.kind != _HEADER)
    row, at = rows[informative[known]], claimed.received_at[informative] / _DAY_S
    since, until = claimed.since[informative] / _DAY_S, claimed.until[informative] / _DAY_S
    # The positions of claims from one source at one time.
    source = claimed.source_id[informative]
    order = np.lexsort((source, at))
    parted = (np.diff(source[order]) != 0) | (np.diff(at[order]) != 0)
    parts: Sequence[Rows] = np.split(order, np.flatnonzero(parted) + 1) if len(order) else ()
    groups = {(int(source[each[0]]), float(at[each[0]])): each for each in parts}

    def batch(source: int, day: float, places: Rows) -> SignalBatch:
        return SignalBatch(
            source=source,
            asked=asked.get(source, UNASKED),
            at=day,
            row=row[places],
            since=since[places],
            until=until[places],
        )

    received: list[tuple[int, SignalBatch]] = []
    for k in np.flatnonzero(np.isin(visits.row, asked_rows) & ~visits.gone).tolist():
        day = float(visits.at[k])
        received.extend(
            (k + 1, batch(source, day, groups.pop((source, day), _NONE)))
            for source in sources_of[int(visits.row[k])]
        )
    for (source, day), places in groups.items():
        # Within a batch, visits are nearly in order of their days.
        after = int(np.searchsorted(visits.at, day, "right"))
        received.append((after, batch(source, day, places)))
    received.sort(key=lambda each: (each[0], each[1].at, each[1].source))
    return NewEvidence(visits, received)
