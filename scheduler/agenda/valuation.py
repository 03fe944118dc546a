"""The valuation of all pages, and the choice of those that come next; days are Unix days."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from freshet.scheduler.agenda.ephemeral import SourceTerms, fading
from freshet.scheduler.agenda.history import News
from freshet.scheduler.agenda.new_pages import Discovering
from freshet.scheduler.agenda.pages import Watchlist
from freshet.scheduler.agenda.queue import worthiest
from freshet.scheduler.agenda.ranker import Ranker, SetsDueTimes
from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.sources import Rows


@dataclass(frozen=True, slots=True)
class Inquiry:
    """The state of an agenda at one moment.

    Attributes:
        now: day.
        news: visits and signals since the last time.
        free: (H,), how many pages of each host may come into the ready queue.
        room: how many of all.
        drawing: whether pages will be sampled at random.
        new_page: what a page costs that is missing, in stale copies; ``revealed`` one that is not
            known yet.
        favoured: whether visits for discovery come before all others, or after; None: neither.
        budget: visits a day.
        exchange: on which terms ephemeral sources compete.
        cost: (H,), the cost of a visit to each host.
    """

    now: float
    news: News
    free: Ints
    room: int
    drawing: bool
    new_page: float
    revealed: float
    favoured: bool | None
    budget: float
    exchange: SourceTerms
    cost: Floats


@dataclass(frozen=True, slots=True)
class Valuation:
    """The value of each page, and the choice that follows.

    Attributes:
        at: day.
        worth: (n,), the value of a visit to each page.
        discovers: (n,), whether most of that is for pages that are not captured yet.
        chosen: the rows that come into the ready queue, the worthiest first.
        sources: the rows of the pages that are taken for ephemeral sources, ascending.
        arrivals: the new items a day at each of these.
        urgent: the rows of the items that come at once.
        reveals: (n,), how many new pages a visit to each page is expected to reveal.
        hazard: (n,), the changes expected since the last visit, where pages are drawn; else empty.
        unknown, per_day: new pages that are thought to be there unknown, and those a day.
    """

    at: float
    worth: Floats
    discovers: Bools
    chosen: Rows
    sources: Rows
    arrivals: Floats
    urgent: Rows
    reveals: Floats
    hazard: Floats
    unknown: float
    per_day: float


#: Times a piece of work, by its name.
Timed: TypeAlias = Callable[[str], AbstractContextManager[None]]
#: What is not favoured comes after all that is; what comes at once is no exception to that.
_AFTER: Final = 1e-150
_AT_ONCE: Final = 1e120


def value_pages(
    pages: Watchlist, ranker: Ranker, discovering: Discovering, asked: Inquiry, timed: Timed
) -> Valuation:
    """Learn from visits, value all pages and choose the worthiest that may be requested.

    A visit is worth what it keeps fresh and what it reveals together. A page that has never been
    captured must be once, sooner or later, so that waiting saves nothing: it is worth a turn (the
    days in which all captured pages could be visited) more than one that has certainly changed. Of
    ephemeral sources, and of what appears there, :mod:`freshet.scheduler.agenda.ephemeral` speaks.
    """
    with timed("learn"):
        asked.news.teach(ranker)
    with timed("value"):
        fresh = ranker.worth(asked.now)
    revealing = discovering.revealing(pages, asked.now)
    new = asked.revealed * revealing.worth
    if isinstance(ranker, SetsDueTimes):
        new[~ranker.due(asked.now)] = 0.0
    captured = pages["captured"].astype(np.bool_, copy=False)
    turn = int(np.count_nonzero(captured)) / asked.budget
    faded = fading(
        pages=pages,
        discovering=discovering,
        revealing=revealing,
        on=asked.exchange,
        now=asked.now,
        cost=asked.cost,
    )
    both = fresh + new
    both[faded.row] = np.maximum(both[faded.row], faded.worth)
    new[faded.row] = np.maximum(new[faded.row], faded.worth)
    worth = pages.weighted(both, asked.now, turn, asked.new_page)
    worth[faded.urgent] = _AT_ONCE * faded.urgency
    discovers: Bools = (new > fresh) | ~captured
    left = np.where(pages.may_be_asked(asked.now), worth, 0.0)
    if asked.favoured is not None:
        left[discovers != asked.favoured] *= _AFTER
    host = pages["host"].astype(np.intp, copy=False)
    hazard = ranker.beliefs(asked.now).hazard if asked.drawing else np.empty(0)
    chosen = worthiest(left, host, asked.free, asked.room)
    return Valuation(
        at=asked.now,
        worth=worth,
        discovers=discovers,
        chosen=chosen,
        sources=faded.row,
        arrivals=faded.rate,
        urgent=faded.urgent,
        reveals=revealing.pages,
        hazard=hazard,
        unknown=revealing.unknown,
        per_day=revealing.per_day,
    )
