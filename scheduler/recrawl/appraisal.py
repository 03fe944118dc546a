"""What all pages are worth now, and which of them come next. Pure; days are Unix days."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.arguments import Floats, Ints
from scheduler.recrawl.choosing import worthiest
from scheduler.recrawl.news import News
from scheduler.recrawl.refresher import Refresher
from scheduler.recrawl.watchlist import Watchlist
from scheduler.sources import Rows


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What is asked at one moment.

    Attributes:
        now: day.
        news: what has come since the last time.
        free: (H,), how many pages of each host may come into the window.
        room: how many of all.
        drawing: whether pages will be drawn at random.
    """

    now: float
    news: News
    free: Ints
    room: int
    drawing: bool


@dataclass(frozen=True, slots=True)
class Appraisal:
    """The answer.

    Attributes:
        worth: (n,), what a look at each page is worth.
        chosen: the rows that come into the window, the worthiest first.
        hazard: (n,), the changes expected since the last look, where pages are drawn; else empty.
    """

    worth: Floats
    chosen: Rows
    hazard: Floats


def appraise(pages: Watchlist, refresher: Refresher, asked: Inquiry) -> Appraisal:
    """Learn from looks, value all pages and choose the worthiest that may be asked for."""
    asked.news.teach(refresher)
    worth = pages.weighted(refresher.worth(asked.now), asked.now)
    left = np.where(pages.may_be_asked(asked.now), worth, 0.0)
    host = pages["host"].astype(np.intp, copy=False)
    hazard = refresher.beliefs(asked.now).hazard if asked.drawing else np.empty(0)
    return Appraisal(worth, worthiest(left, host, asked.free, asked.room), hazard)
