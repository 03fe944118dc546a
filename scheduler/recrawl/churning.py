"""Which pages' links churn, and how fast new ones come: as looks show. Pure; days are Unix days.

A *source* is a page that shows links to new pages again and again while old ones drop off: a front
page, a list of the newest, a feed. How fast items come there is learnt by
:mod:`scheduler.ephemeral.arrivals`; where nothing is left of what appeared there before, more may
have come and gone unseen. That a source is *churning* needs

    occasions  looks at which something appeared, and something of before stayed     at least 4
    items      that appeared at all looks                                            at least 8
    dropped    of so many links that appeared one has dropped off at least           2
    largest    share of the items that came with one look at most                    1/2
    rate       items a day at least                                                  1

A page that is rewritten shows much at once, an archive keeps what it has, a list that shows other
links at each look keeps none; and neighbours drawn from what is known are not new. All of it fades
with the half-life of the arrivals.

Reference: ours; thresholds are guesses, of which a wrong one costs little: a churning page is
looked at at least as often as any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arguments import Bools, Floats, Ints
from freshet.scheduler.columns import Column
from freshet.scheduler.ephemeral.arrivals import HALF_LIFE_DAYS, PRIOR_DAYS, PRIOR_ITEMS, Arrivals
from freshet.scheduler.sources import Rows

_LEAST_OCCASIONS: Final = 4.0
_LEAST_ITEMS: Final = 8.0
_LEAST_DROPPED: Final = 0.5
_LARGEST: Final = 0.5
_LEAST_RATE: Final = 1.0
#: What has faded a little since still counts.
_ROUNDING: Final = 0.9
#: Two looks at once are this long apart.
_MOMENT_DAYS: Final = 1e-6

_SOURCE: Final = np.dtype(
    [
        ("row", np.intp),
        ("at", np.float64),
        ("items", np.float64),
        ("days", np.float64),
        ("occasions", np.float64),
        ("appeared", np.float64),
        ("dropped", np.float64),
        ("largest", np.float64),
    ]
)
_EVIDENCE: Final = ("occasions", "appeared", "dropped", "largest")


@dataclass(frozen=True, slots=True)
class Appearing:
    """m looks at which something appeared, in the order of time; every column has length m.

    Attributes:
        row: of the page.
        at: day of the look.
        began: day since when the page is looked at.
        appeared, dropped, stayed: links; see :mod:`freshet.storage.tables.links`.
    """

    row: Rows
    at: Floats
    began: Floats
    appeared: Ints
    dropped: Ints
    stayed: Ints


@dataclass(frozen=True, slots=True)
class Rates:
    """What is known of k pages at which anything ever appeared; every column has length k.

    Attributes:
        row: of the page.
        rate: Λ, new items a day.
        churning: whether the page's links churn.
    """

    row: Rows
    rate: Floats
    churning: Bools


class Churning:
    """Learns of looks; rows as those of the pages.

    *Law.* What it knows depends on the looks in their order, not on how they were divided into
    calls.
    """

    def __init__(self) -> None:
        self._place: dict[int, int] = {}
        self._sources = Column[np.void](_SOURCE)

    def __len__(self) -> int:
        return len(self._sources)

    def learn(self, looks: Appearing) -> None:
        """Take in looks at which something appeared."""
        columns = (getattr(looks, name).tolist() for name in Appearing.__slots__)
        for row, at, began, appeared, dropped, stayed in zip(*columns, strict=True):
            self._saw(row, at, began, (appeared, dropped, stayed))

    def _saw(self, row: int, at: float, began: float, links: tuple[int, int, int]) -> None:
        appeared, dropped, stayed = links
        place = self._place.get(row)
        is_first = place is None
        if place is None:
            place = self._place[row] = len(self._sources)
            fresh = np.zeros(1, _SOURCE)
            fresh["row"], fresh["at"] = row, began
            self._sources.extend(fresh)
        it = self._sources.rows[place : place + 1]
        elapsed = max(at - float(it["at"][0]), _MOMENT_DAYS)
        known = Arrivals(float(it["items"][0]), float(it["days"][0])).after(
            appeared, elapsed, at_least=stayed == 0 and not is_first
        )
        kept = 0.5 ** (elapsed / HALF_LIFE_DAYS)
        for name in _EVIDENCE:
            it[name] *= kept
        it["at"], it["items"], it["days"] = at, known.items, known.days
        it["occasions"] += is_first or stayed > 0
        it["appeared"] += appeared
        it["dropped"] += dropped
        it["largest"] = np.maximum(it["largest"], appeared)

    def inherit(self, old: int, new: int) -> None:
        """The page of one row stands at another one now; unless more is known of that already."""
        place = self._place.get(old)
        if place is not None and new not in self._place:
            self._place[new] = self._place.pop(old)
            self._sources.rows["row"][place] = new

    def rates(self, since: Floats) -> Rates:
        """What is known when pages were looked at last on the days ``since``, (n,)."""
        it = self._sources.rows
        quiet = np.maximum(since[it["row"]] - it["at"], 0.0)
        kept = 0.5 ** (quiet / HALF_LIFE_DAYS)
        rate = _rate(it["items"] * kept, it["days"] * kept, quiet)
        return Rates(it["row"].copy(), rate, _churn(it, rate, kept))


def rate_of_silent(watched: Floats) -> Floats:
    """(n,), Λ of pages at which nothing has appeared in so many days."""
    return _rate(np.zeros(len(watched)), np.zeros(len(watched)), np.maximum(watched, 0.0))


def _rate(items: Floats, days: Floats, quiet: Floats) -> Floats:
    # As Arrivals has it of a look that finds nothing after so many days.
    more = -HALF_LIFE_DAYS / np.log(2) * np.expm1(-quiet * (np.log(2) / HALF_LIFE_DAYS))
    rate: Floats = (PRIOR_ITEMS + items) / (PRIOR_DAYS + days + more)
    return rate


def _churn(it: NDArray[np.void], rate: Floats, kept: Floats) -> Bools:
    appeared = it["appeared"]
    found: Bools = it["occasions"] * kept >= _LEAST_OCCASIONS * _ROUNDING
    found &= appeared * kept >= _LEAST_ITEMS * _ROUNDING
    found &= it["dropped"] >= _LEAST_DROPPED * appeared
    found &= it["largest"] <= _LARGEST * appeared
    found &= rate >= _LEAST_RATE
    return found
