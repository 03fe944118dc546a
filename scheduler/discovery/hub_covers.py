"""The hub pages that a daemon visits for new links, if an algorithm chooses them.

The newest pages of each site, which :mod:`freshet.scheduler.discovery.hub_yield` remembers with the
pages that revealed them, serve as the site's past recrawls in steps of a week. The algorithm uses
them to choose as many pages as their greedy cover has. Visits to other pages have no value for new
links. Before any page was revealed, every page may be tried.
"""

from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.discovery.covers import RecrawlHistory, greedy
from freshet.scheduler.discovery.reveal_graph import Reveals, from_rows
from freshet.scheduler.discovery.thesis_covers import ALGORITHMS, Algorithm
from freshet.scheduler.estimate.bayes import members
from freshet.scheduler.sources import Rows

#: The rule that chooses the pages: the value of what each may reveal (``areas``), or an algorithm.
Discovery: TypeAlias = Literal["areas", "greedy", "cov_win", "od_win", "cliq_win"]
AREAS: Final[Discovery] = get_args(Discovery)[0]
_STEP_DAYS: Final = 7.0
#: Days for which a cover is valid.
_DAYS: Final = 1.0


class HubCovers:
    """The chosen hub pages of each site, chosen again at most once a day if there is new data."""

    def __init__(self) -> None:
        # For each site: the day of the choice, the number of known pairs, and the chosen rows.
        self._chosen: dict[int, tuple[float, int, Rows]] = {}

    def chosen(
        self, name: Discovery, pairs: tuple[Rows, Floats, Rows, Rows], page_site: Rows, now: float
    ) -> Bools:
        """Return (n,), the pages of sites (n,) that may be visited for new links on this day.

        ``pairs`` (m,) are the site, the day on which a new page was found, its row, and the row of
        a page that reveals it.
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
    """Return the rows that an algorithm chooses among ``by``, the pages that reveal the items."""
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
