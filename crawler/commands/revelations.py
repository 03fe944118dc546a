"""What a look at a page may reveal, as the daemon of the last run has it, from the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import aiosqlite

from freshet.scheduler.agenda.ephemeral import Exchange, fading
from freshet.scheduler.agenda.new_pages import Discovering, recall
from freshet.scheduler.agenda.pages import Terms, Watchlist
from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate.observations import Looks
from freshet.scheduler.sources import Rows
from freshet.storage.queries.columns import WatchedPages

_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Revelations:
    """What is known of one page, the one in ``row``; ``new_page`` is what a missing page costs.

    ``takes_in`` says whether there can be others than those that are known, ``turn`` are the
    days in which all captured pages could be looked at, ``exists`` is how likely the page is
    there, if it was not asked for yet. On the terms of ``exchange`` ephemeral sources compete, and
    ``cost`` (H,) is what a look at each host costs.
    """

    pages: Watchlist
    discovering: Discovering
    row: int
    new_page: float
    takes_in: bool
    turn: float
    exists: float
    exchange: Exchange
    cost: Floats

    def on(self, day: float) -> Revelation:
        """What a look on a day is expected to reveal."""
        revealing, row = self.discovering.revealing(self.pages, day), self.row
        faded = fading(self.pages, self.discovering, revealing, self.exchange, day, self.cost)
        own = faded.row == row
        return Revelation(
            self.new_page * float(revealing.worth[row]) if self.takes_in else 0.0,
            float(revealing.pages[row]) if self.takes_in else 0.0,
            float(faded.rate[own].sum()), float(faded.worth[own].sum()),
            row in faded.urgent,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Revelation:
    """What a look at a page on one day is expected to reveal.

    Attributes:
        worth: what that is worth, by who revealed new pages before.
        pages: how many pages that are not known.
        rate: of an ephemeral source the new items a day, else 0.
        fading: what a look at it is worth for these.
        is_urgent: whether the page itself is an item of such a source, to be fetched at once.
    """

    worth: float
    pages: float
    rate: float
    fading: float
    is_urgent: bool


async def revelations(
    connection: aiosqlite.Connection, found: WatchedPages, codes: Rows, on: Terms, looks: Looks
) -> tuple[Watchlist, Discovering]:
    """All pages, and which of them reveal new ones; ``codes`` are those of their hosts."""
    pages, discovering = Watchlist(), Discovering()
    rows = pages.add(
        found.page_id, host=codes, area=on.area, importance=on.importance,
        found_at=found.found_at / _DAY_S, since=found.since / _DAY_S, captured=found.captured,
        gone=found.gone, half_life=on.half_life_days,
    )  # fmt: skip
    discovering.watch(rows, codes, found.url, found.found_at / _DAY_S)
    await recall(connection, discovering, pages, looks)
    return pages, discovering
