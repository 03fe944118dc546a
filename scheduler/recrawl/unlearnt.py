"""What has come and was not learnt yet: of looks, and of claims. Reads who is asked for claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import aiosqlite
import numpy as np

from freshet.scheduler.arguments import Bools, Ints
from freshet.scheduler.recrawl.looks import Looks, Told, told
from freshet.scheduler.recrawl.news import ClaimColumns, News, Sources
from freshet.scheduler.recrawl.watchlist import Watchlist
from freshet.scheduler.sources import Rows
from freshet.storage.entries import CLAIM_KINDS, NO_CLAIMS, ClaimKind, Claims
from freshet.storage.queries import columns as columns_queries
from freshet.storage.records import Observation
from freshet.storage.tables import claims

_DAY_S: Final = 86_400.0
#: The rows of those of some pages (ids) that are watched, and which they are.
RowsOf: TypeAlias = Callable[[Ints], tuple[Rows, Bools]]
#: A header speaks of the page that is just looked at.
_NO_NEWS: Final = CLAIM_KINDS.index(ClaimKind.LAST_MODIFIED)


class Unlearnt:
    """Collects, in the order in which it commits."""

    def __init__(self, reader: aiosqlite.Connection, pages: Watchlist) -> None:
        self._reader = reader
        self._pages = pages
        self._looks: list[Told] = []
        self._claims: list[Claims] = []
        self._met: set[int] = set()
        self._asked: dict[int, int] = {}

    def seen(self, row: int, observation: Observation) -> None:
        """Note what a visit found."""
        it = observation
        self._looks.append((row, it.at / _DAY_S, it.kind, it.rung))

    def claimed(self, said: Claims) -> None:
        """Note what was claimed."""
        if len(said):
            self._claims.append(said)

    async def meet_sources(self) -> None:
        """Learn who is asked for what, where a claim is of somebody new."""
        said = {each for some in self._claims for each in np.unique(some.source_id).tolist()}
        if not said <= self._met:
            self._met |= said
            self._asked = await claims.asked(self._reader)

    def news(self) -> News:
        """What has come since the last time; it counts as learnt."""
        looks, self._looks = told(self._looks), []
        said, self._claims = self._claims, []
        return _news(looks, _joined(said), self._pages.rows, self._asked)

    async def all(self) -> News:
        """Everything that the store has; nothing else is unlearnt then."""
        self._looks, self._claims = [], []
        self._asked = await claims.asked(self._reader)
        return await stored_news(self._reader, self._pages.rows)


async def stored_news(reader: aiosqlite.Connection, rows_of: RowsOf) -> News:
    """All looks and claims of the store."""
    stored = await columns_queries.looks(reader)
    rows, known = rows_of(stored.page_id)
    looks = Looks(
        rows, stored.at[known] / _DAY_S, stored.compared[known], stored.changed[known],
        stored.gone[known], stored.moved[known],
    )  # fmt: skip
    return _news(looks, await claims.load(reader), rows_of, await claims.asked(reader))


def _news(looks: Looks, said: Claims, rows_of: RowsOf, pages: Mapping[int, int]) -> News:
    """Looks and claims as one; ``pages`` has the page of each source that is asked."""
    sources = np.array(list(pages), np.int64)
    asked_rows, is_watched = rows_of(np.array(list(pages.values()), np.int64))
    asked = dict(zip(sources[is_watched].tolist(), asked_rows.tolist(), strict=True))
    rows, known = rows_of(said.page_id)
    tells = known & (said.kind != _NO_NEWS)
    columns = ClaimColumns(
        said.source_id[tells], rows[tells[known]], said.since[tells] / _DAY_S,
        said.until[tells] / _DAY_S, said.received_at[tells] / _DAY_S,
    )  # fmt: skip
    return Sources(asked).news(looks, columns)


def _joined(said: list[Claims]) -> Claims:
    if not said:
        return NO_CLAIMS
    return Claims(
        *(
            np.concatenate([getattr(each, name) for each in said])
            for name in ("source_id", "kind", "page_id", "since", "until", "received_at")
        )
    )
