"""A page's prospects by its own history under its site's prior: rate, worth, next look.

Worked out from the store. A daemon on the clocks of sites may look earlier, where a site is seen
to change, or later.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

import aiosqlite
import numpy as np

from config.settings import Daemon
from crawler.commands.display import span
from crawler.commands.sources.importance import Importance
from crawler.commands.sources.page_rules import terms
from crawler.commands.sources.weighing import weigh
from scheduler import policy
from scheduler.arguments import Bools, Floats
from scheduler.policy import IndexPolicy
from scheduler.recrawl.learning import Learning
from scheduler.recrawl.looks import Looks
from scheduler.sources import Rows
from storage import hosts, runs, watched
from storage.watched import Looks as StoredLooks
from storage.watched import WatchedPages

_DAY_S: Final = 86_400.0
#: Looks of which the price is the median worth.
_RECENT: Final = 200
_FARTHEST_DAYS: Final = 3_650.0
_HALVINGS: Final = 60


@dataclass(frozen=True, slots=True)
class Prospect:
    """A page as the daemon of the last run sees it.

    ``change_rate`` is in changes a day, with its 90 % interval; ``stale`` is the probability that
    it has changed since it was looked at. Under an index policy ``worth`` is what a look is worth
    now, ``price`` what looks are taken at, and ``due_in_days`` when the one reaches the other; None
    where they do not apply.
    """

    budget: str
    policy: str
    importance: Importance
    change_rate: float
    rate_lower: float
    rate_upper: float
    compared: int
    age_days: float
    stale: float
    worth: float | None
    price: float | None
    due_in_days: float | None

    def sentence(self) -> str:
        """All this in a sentence or two."""
        said = (
            f"It changes about {_often(self.change_rate)} ({_often(self.rate_lower)} to "
            f"{_often(self.rate_upper)}, from {self.compared} comparisons), and was looked at "
            f"{span(self.age_days * _DAY_S)} ago: stale with {self.stale:.0%}. Its importance is "
            f"{self.importance.value:.3g} ({self.importance.said()})."
        )
        if self.worth is None or self.price is None or self.due_in_days is None:
            return said
        then = "now" if self.due_in_days == 0 else f"in about {span(self.due_in_days * _DAY_S)}"
        return (
            f"{said} A look is worth {self.worth:.3g}, and under {self.budget} looks are taken at "
            f"about {self.price:.3g}: by its own history {then}."
        )


async def prospect(connection: aiosqlite.Connection, page_id: int, now: float) -> Prospect | None:
    """What the last run's daemon thinks of a page; None if that was no daemon, or has no copy."""
    order = await _order(connection)
    pages = await watched.pages(connection)
    rows = np.flatnonzero((pages.page_id == page_id) & pages.captured)
    if order is None or not len(rows):
        return None
    row = int(rows[0])
    host_ids, codes = np.unique(pages.host_id, return_inverse=True)
    origin_of = {h.host_id: h.origin for h in await hosts.load(connection, host_ids.tolist())}
    origins = [origin_of[host_id] for host_id in host_ids.tolist()]
    weighing = await weigh(connection, order.importance)
    weights = weighing.importances(pages.page_id, pages.url, codes, origins)
    importance = terms(pages.url, codes, weights, order.rules).importance
    learning = Learning()
    learning.add(codes.astype(np.intp), importance, pages.found_at / _DAY_S)
    looks = await watched.looks(connection)
    places, known = _places(pages, looks)
    learning.learn(
        Looks(
            places, looks.at[known] / _DAY_S, looks.compared[known], looks.changed[known],
            looks.gone[known],
        )
    )  # fmt: skip
    lower, upper = learning.credible(row)
    day = now / _DAY_S
    told = weighing.told(
        page_id, pages.url[row], origins[int(codes[row])], float(importance[row]), order
    )
    worth, price, due = _worth(order.policy, learning, row, _recent(places, looks.at[known]), day)
    return Prospect(
        order.budget, order.policy, told, learning.rate(row), lower, upper,
        int((looks.compared[known] & (places == row)).sum()),
        max(0.0, day - float(pages.since[row]) / _DAY_S), float(learning.stale(day)[row]),
        worth, price, due,
    )  # fmt: skip


async def _order(connection: aiosqlite.Connection) -> Daemon | None:
    """The daemon's settings in the last run, if it was one's."""
    text = await runs.settings_of_latest(connection)
    said = json.loads(text).get("daemon") if text else None
    # A run of before there was a choice followed the list.
    return Daemon.model_validate({"importance": "list"} | said) if said and said["budget"] else None


def _places(pages: WatchedPages, looks: StoredLooks) -> tuple[Rows, Bools]:
    """The rows of the looks at pages that are watched, and which looks these are."""
    place = np.searchsorted(pages.page_id, looks.page_id)
    place = np.minimum(place, len(pages) - 1)
    known = pages.page_id[place] == looks.page_id
    return place[known], known


def _recent(places: Rows, at: Floats) -> tuple[Rows, Floats, Floats]:
    """Of the last looks at pages seen before: row, day of the look before, and day."""
    order = np.lexsort((np.arange(len(places)), places))
    row, day = places[order], at[order] / _DAY_S
    again = np.flatnonzero(np.diff(row) == 0) + 1
    latest = again[np.argsort(day[again])[-_RECENT:]]
    return row[latest], day[latest - 1], day[latest]


def _worth(
    name: str, learning: Learning, row: int, recent: tuple[Rows, Floats, Floats], now: float
) -> tuple[float | None, float | None, float | None]:
    """The worth of a look, the price, and the days until the one reaches the other."""
    chosen = policy.load(name)
    rows, before, day = recent
    if not isinstance(chosen, IndexPolicy) or not len(rows):
        return None, None, None

    def index(which: Rows, last: Floats, at: float) -> Floats:
        table = learning.table().take(which)
        table.last_crawl[:] = last
        return chosen.index(table, at)

    paid = [
        float(index(rows[i : i + 1], before[i : i + 1], float(day[i]))[0]) for i in range(len(rows))
    ]
    price = float(np.median(paid))
    own = np.array([row], np.intp)
    last = learning.table().last_crawl[own]
    worth = float(index(own, last, now)[0])
    early, late = 0.0, 0.0 if worth >= price else _FARTHEST_DAYS
    for _ in range(_HALVINGS if late else 0):
        middle = (early + late) / 2
        reached = float(index(own, last, now + middle)[0]) >= price
        early, late = (early, middle) if reached else (middle, late)
    return worth, price, late


def _often(per_day: float) -> str:
    """A rate in words."""
    return f"{per_day:.2g} times a day" if per_day >= 1 else f"every {span(_DAY_S / per_day)}"
