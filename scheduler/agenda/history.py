"""Visits and change signals in the order in which they became known. Days are Unix days."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import aiosqlite
import numpy as np

from freshet.scheduler.agenda.pages import Watchlist
from freshet.scheduler.agenda.ranker import HearsSignals, Ranker
from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.estimate.evidence import (
    UNASKED,
    SignalBatch,
    VisitResult,
    VisitResults,
    told,
)
from freshet.scheduler.sources import Rows
from freshet.storage.entries import CLAIM_KINDS, ClaimKind, Claims, no_claims
from freshet.storage.queries import columns as columns_queries
from freshet.storage.records import Observation
from freshet.storage.tables import claims as claims_tables


@dataclass(frozen=True, slots=True)
class News:
    """``heard`` has the number of visits before each group of signals."""

    looks: VisitResults
    heard: tuple[tuple[int, SignalBatch], ...] = ()

    def teach(self, ranker: Ranker, first: int = 0, stop: int | None = None) -> None:
        """Let a ranker learn from visits ``first`` to ``stop`` and the signals after each of them.

        Signals before all visits come with the first.
        """
        stop = len(self.looks) if stop is None else stop
        hears = ranker if isinstance(ranker, HearsSignals) else None
        for after, said in self.heard:
            if hears is not None and (first < after <= stop or after == first == 0):
                if after > first:
                    ranker.learn(self.looks.take(slice(first, after)))
                    first = after
                hears.hear(said)
        if stop > first:
            ranker.learn(self.looks.take(slice(first, stop)))


@dataclass(frozen=True, slots=True)
class _ClaimColumns:
    """m claims on pages that are watched, in the order of their receipt.

    Attributes:
        source: number of the source.
        row: of the page.
        since, until: days between which it changed last.
        at: day of the receipt.
    """

    source: Ints
    row: Rows
    since: Floats
    until: Floats
    at: Floats


class _SignalSources:
    """Pages under which sources of signals are requested: sitemaps and feeds are pages, too."""

    def __init__(self, asked: Mapping[int, int]) -> None:
        """``asked`` has the row of the page of each source that is asked."""
        self._asked = asked
        self._of: dict[int, list[int]] = {}
        for source, row in sorted(asked.items()):
            self._of.setdefault(row, []).append(source)
        self._rows = np.array(sorted(self._of), np.intp)

    def news(self, looks: VisitResults, claims: _ClaimColumns) -> News:
        """Merge visits with the signals received at or between them.

        A visit to the page of a source that finds no claim moved is a hearing as well.
        """
        said = _by_hearing(claims)
        heard: list[tuple[int, SignalBatch]] = []
        for k in np.flatnonzero(np.isin(looks.row, self._rows) & ~looks.gone).tolist():
            row, at = int(looks.row[k]), float(looks.at[k])
            for source in self._of[row]:
                places = said.pop((source, at), _NONE)
                heard.append((k + 1, _hearing(claims, places, source, row, at)))
        for (source, at), places in said.items():
            # Within a batch the visits' order is nearly that of their days.
            after = int(np.searchsorted(looks.at, at, "right"))
            asked = self._asked.get(source, UNASKED)
            heard.append((after, _hearing(claims, places, source, asked, at)))
        heard.sort(key=lambda each: (each[0], each[1].at, each[1].source))
        return News(looks, tuple(heard))


_NONE: Final = np.empty(0, np.intp)


def _by_hearing(claims: _ClaimColumns) -> dict[tuple[int, float], Rows]:
    """Group the claims that came from one source at one time."""
    order = np.lexsort((claims.source, claims.at))
    parted = (np.diff(claims.source[order]) != 0) | (np.diff(claims.at[order]) != 0)
    groups: Sequence[Rows] = np.split(order, np.flatnonzero(parted) + 1) if len(order) else ()
    return dict(_keyed(claims, groups))


def _keyed(
    claims: _ClaimColumns, groups: Sequence[Rows]
) -> Iterator[tuple[tuple[int, float], Rows]]:
    for places in groups:
        yield (int(claims.source[places[0]]), float(claims.at[places[0]])), places


def _hearing(
    claims: _ClaimColumns, places: Rows, source: int, asked: int, at: float
) -> SignalBatch:
    return SignalBatch(
        source=source,
        asked=asked,
        at=at,
        row=claims.row[places],
        since=claims.since[places],
        until=claims.until[places],
    )


# -- visits and claims that were not learnt yet ------------------------------

_DAY_S: Final = 86_400.0
#: The rows of those of some pages (ids) that are watched, and which they are.
RowsOf: TypeAlias = Callable[[Ints], tuple[Rows, Bools]]
#: A header speaks of the page that is just visited.
_NO_NEWS: Final = CLAIM_KINDS.index(ClaimKind.LAST_MODIFIED)


class Unlearnt:
    """Collects what was committed and not learnt yet, in order."""

    def __init__(self, reader: aiosqlite.Connection, pages: Watchlist) -> None:
        self._reader = reader
        self._pages = pages
        self._looks: list[VisitResult] = []
        self._claims: list[Claims] = []
        self._met: set[int] = set()
        self._asked: dict[int, int] = {}

    def seen(self, row: int, observation: Observation) -> None:
        """Note the result of a visit."""
        it = observation
        self._looks.append((row, it.at / _DAY_S, it.kind, it.rung))

    def claimed(self, said: Claims) -> None:
        """Note claims."""
        if len(said):
            self._claims.append(said)

    async def meet_sources(self) -> None:
        """Load the pages of sources when a claim has a new source."""
        said = {each for some in self._claims for each in np.unique(some.source_id).tolist()}
        if not said <= self._met:
            self._met |= said
            self._asked = await claims_tables.asked(self._reader)

    def news(self) -> News:
        """Return what has come since the last call; it counts as learnt."""
        looks, self._looks = told(self._looks), []
        said, self._claims = self._claims, []
        return _news(looks, _joined(said), self._pages.rows, self._asked)

    async def all(self) -> News:
        """Return the whole history of the store; it counts as learnt."""
        self._looks, self._claims = [], []
        self._asked = await claims_tables.asked(self._reader)
        return await stored_news(self._reader, self._pages.rows)


async def stored_news(reader: aiosqlite.Connection, rows_of: RowsOf) -> News:
    """Return all visits and claims of the store."""
    stored = await columns_queries.looks(reader)
    rows, known = rows_of(stored.page_id)
    looks = VisitResults(
        row=rows,
        at=stored.at[known] / _DAY_S,
        compared=stored.compared[known],
        changed=stored.changed[known],
        gone=stored.gone[known],
        moved=stored.moved[known],
    )
    return _news(
        looks, await claims_tables.load(reader), rows_of, await claims_tables.asked(reader)
    )


def _news(looks: VisitResults, said: Claims, rows_of: RowsOf, pages: Mapping[int, int]) -> News:
    """Merge visits and claims; ``pages`` has the page of each source that is requested."""
    sources = np.array(list(pages), np.int64)
    asked_rows, is_watched = rows_of(np.array(list(pages.values()), np.int64))
    asked = dict(zip(sources[is_watched].tolist(), asked_rows.tolist(), strict=True))
    rows, known = rows_of(said.page_id)
    tells = known & (said.kind != _NO_NEWS)
    columns = _ClaimColumns(
        said.source_id[tells], rows[tells[known]], said.since[tells] / _DAY_S,
        said.until[tells] / _DAY_S, said.received_at[tells] / _DAY_S,
    )  # fmt: skip
    return _SignalSources(asked).news(looks, columns)


def _joined(said: list[Claims]) -> Claims:
    if not said:
        return no_claims()
    return Claims(
        *(
            np.concatenate([getattr(each, name) for each in said])
            for name in ("source_id", "kind", "page_id", "since", "until", "received_at")
        )
    )
