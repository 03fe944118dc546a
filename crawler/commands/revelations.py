"""What a look at a page may reveal, as the daemon of the last run has it, from the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import aiosqlite

from scheduler.recrawl.discovering import Discovering
from scheduler.recrawl.looks import Looks
from scheduler.recrawl.recalling import recall
from scheduler.recrawl.terms import Terms
from scheduler.recrawl.watchlist import Watchlist
from scheduler.sources import Rows
from storage.watched import WatchedPages

_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Revelations:
    """What is known of one page, the one in ``row``; ``new_page`` is what a missing page costs.

    ``takes_in`` says whether there can be others than those that are known, ``turn`` are the
    days in which all captured pages could be looked at, ``exists`` is how likely the page is
    there, if it was not asked for yet.
    """

    pages: Watchlist
    discovering: Discovering
    row: int
    new_page: float
    takes_in: bool
    turn: float
    exists: float

    def worth(self, day: float) -> float:
        """What a look on a day is worth for the new pages that it may reveal."""
        if not self.takes_in:
            return 0.0
        return self.new_page * float(self.discovering.revealing(self.pages, day).worth[self.row])

    def new_pages(self, day: float) -> float:
        """How many pages a look on a day is expected to reveal."""
        return float(self.discovering.revealing(self.pages, day).pages[self.row])


async def revelations(
    connection: aiosqlite.Connection, found: WatchedPages, codes: Rows, on: Terms, looks: Looks
) -> tuple[Watchlist, Discovering]:
    """All pages, and which of them reveal new ones; ``codes`` are those of their hosts."""
    pages, discovering = Watchlist(), Discovering()
    rows = pages.add(
        found.page_id, host=codes, area=on.area, importance=on.importance,
        found_at=found.found_at / _DAY_S, since=found.since / _DAY_S, captured=found.captured,
        gone=found.gone,
    )  # fmt: skip
    discovering.watch(rows, codes, found.url, found.found_at / _DAY_S)
    await recall(connection, discovering, pages, looks)
    return pages, discovering
