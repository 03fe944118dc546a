"""What all pages are worth now, and which of them come next. Pure; days are Unix days."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from freshet.scheduler.agenda.ephemeral import Exchange, fading
from freshet.scheduler.agenda.history import News
from freshet.scheduler.agenda.new_pages import Discovering
from freshet.scheduler.agenda.pages import Watchlist
from freshet.scheduler.agenda.queue import worthiest
from freshet.scheduler.agenda.ranker import Refresher
from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.sources import Rows


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What is asked at one moment.

    Attributes:
        now: day.
        news: what has come since the last time.
        free: (H,), how many pages of each host may come into the window.
        room: how many of all.
        drawing: whether pages will be drawn at random.
        new_page: what a page costs that is missing, in stale copies; ``revealed`` one that is not
            known yet.
        favoured: whether looks for discovery come before all others, or after; None: neither.
        budget: looks a day.
        exchange: on which terms ephemeral sources compete.
        cost: (H,), what a look at one of each host costs.
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
    exchange: Exchange
    cost: Floats


@dataclass(frozen=True, slots=True)
class Appraisal:
    """The answer.

    Attributes:
        worth: (n,), what a look at each page is worth.
        discovers: (n,), whether most of that is for pages that are not captured yet.
        chosen: the rows that come into the window, the worthiest first.
        sources: the rows of the pages that are taken for ephemeral sources, ascending.
        hazard: (n,), the changes expected since the last look, where pages are drawn; else empty.
        unknown, per_day: new pages that are thought to be there unknown, and those a day.
    """

    worth: Floats
    discovers: Bools
    chosen: Rows
    sources: Rows
    hazard: Floats
    unknown: float
    per_day: float


#: What is not favoured comes after all that is; what comes at once is no exception to that.
_AFTER: Final = 1e-150
_AT_ONCE: Final = 1e120


def appraise(
    pages: Watchlist, refresher: Refresher, discovering: Discovering, asked: Inquiry
) -> Appraisal:
    """Learn from looks, value all pages and choose the worthiest that may be asked for.

    A look is worth what it keeps fresh and what it reveals together. A page that has never been
    captured must be once, sooner or later, so that waiting saves nothing: it is worth a turn (the
    days in which all captured pages could be looked at) more than one that has certainly changed.
    Of ephemeral sources, and of what appears there, :mod:`scheduler.agenda.ephemeral` speaks.
    """
    asked.news.teach(refresher)
    fresh = refresher.worth(asked.now)
    revealing = discovering.revealing(pages, asked.now)
    new = asked.revealed * revealing.worth
    captured = pages["captured"].astype(np.bool_, copy=False)
    turn = int(np.count_nonzero(captured)) / asked.budget
    faded = fading(pages, discovering, revealing, asked.exchange, asked.now, asked.cost)
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
    hazard = refresher.beliefs(asked.now).hazard if asked.drawing else np.empty(0)
    chosen = worthiest(left, host, asked.free, asked.room)
    return Appraisal(
        worth, discovers, chosen, faded.row, hazard, revealing.unknown, revealing.per_day
    )
