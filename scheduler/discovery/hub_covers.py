"""The hub pages that a daemon visits for new links, where an algorithm chooses them.

The newest pages of each site, which :mod:`freshet.scheduler.discovery.hub_yield` remembers with
those that revealed them, are the past recrawls of the site in steps of a week. The algorithm
chooses by them as many pages as the greedy cover of all of them has. Visits to others are worth
nothing for new links. Where nothing was revealed yet, every page may be tried.
"""

from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.discovery.covers import RecrawlHistory, greedy
from freshet.scheduler.discovery.reveal_graph import Reveals, from_rows
from freshet.scheduler.discovery.thesis_covers import ALGORITHMS, Algorithm
from freshet.scheduler.estimate.bayes import members
from freshet.scheduler.sources import Rows

#: What chooses the pages: the worth of what each may reveal, or an algorithm.
Discovery: TypeAlias = Literal["areas", "greedy", "cov_win", "od_win", "cliq_win"]
AREAS: Final[Discovery] = get_args(Discovery)[0]
_STEP_DAYS: Final = 7.0
#: A cover holds for so long.
_DAYS: Final = 1.0


class HubCovers:
    """Chooses the hub pages of each site anew, once a day if more is known of them."""

    def __init__(self) -> None:
        # Of a site the day of the choice, how many pairs were known, and the rows chosen.
        self._chosen: dict[int, tuple[float, int, Rows]] = {}

    def chosen(
        self, name: Discovery, pairs: tuple[Rows, Floats, Rows, Rows], page_site: Rows, now: float
    ) -> Bools:
        """Return (n,), the pages of sites (n,) that may be visited for new links on this day.

        ``pairs`` (m,) are the site, the day on which a new page was found, its row, and that of a
        page that reveals it.
        """
        site, found_at, item, by = pairs
        may = np.ones(len(page_site), np.bool_)
        for code, places in members(site) if len(site) else ():
            known = self._chosen.get(code)
            if known is None or (now >= known[0] + _DAYS and known[1] != len(places)):
                rows = cover(ALGORITHMS[name], found_at[places], item[places], by[places])
                known = self._chosen[code] = (now, len(places), rows)
            may[page_site == code] = False
            may[known[2]] = True
        return may


def cover(algorithm: Algorithm, found_at: Floats, item: Rows, by: Rows) -> Rows:
    """Return the rows that an algorithm chooses, of those ``by`` which each item was revealed."""
    hubs, hub = np.unique(by, return_inverse=True)
    step = np.floor((found_at - found_at.min()) / _STEP_DAYS)
    recrawls = [
        _recrawl(len(hubs), item[places], hub[places])
        for places in (np.flatnonzero(step == each) for each in np.unique(step))
    ]
    budget = len(greedy(_recrawl(len(hubs), item, hub)))
    rows: Rows = hubs[algorithm(RecrawlHistory(len(hubs), recrawls), budget)]
    return rows


def _recrawl(hubs: int, item: Rows, hub: Rows) -> Reveals:
    items, new = np.unique(item, return_inverse=True)
    return from_rows(
        hubs, len(items), ((code, np.sort(new[places])) for code, places in members(hub))
    )
