"""The expected yield of visits to hub pages, from the new pages that they revealed before.

Each new page found on a site is a *precedent*: the pages that linked to it at their next visit
would reveal the next similar page. With S(y) the pages that reveal precedent y, similar pages
appear at the rate r(y) a day, and are unknown until one of S(y) is visited. So at page x, where
τ(y) days have passed since the last visit to any page of S(y), a visit reveals

    E(x) = Σ r(y) τ(y)  over the y that x reveals

pages that no other visit has revealed. By the law by which the greedy index values changes (the
cost of delay until now, less its average), the value of the visit is

    W(x) = Σ μ(y) r(y) τ(y)² / 2,

importance times days. If pages must be found within D days, waiting costs the same for each day up
to D, and 4 D more when D has passed: by the same law

    W(x) = Σ μ(y) r(y) (min(τ(y), D)² / 2 + 4 D² [τ(y) ≥ D]).

The first term alone is the loss for pages that disappear after a time anywhere up to D (measured in
days), the second the loss for pages that remain: so this assumes that one in five disappears. A
guess. Without a limit, D = ∞, the first law applies.

Overlaps are thereby counted once, as in GREEDY: after a visit to the front page, the feed has less
to reveal. Pages linked from a new page, found at the first visit to it, count for the pages that
revealed it (the paths through new pages of Pandey 2008, section 3.2).

    r(y)  e^{−age/A} / (Z + Z₀), where Z = ∫ e^{−u/A} du over the days that the site is watched
    A     a year: the pages that a hub reveals are known from few cases, and rarely change
    Z₀    a week, so that the first days do not count too much
    The 200 newest pages of a site are remembered; Z begins when the last forgotten one was found.

At most ten pages, or a twentieth of the site, count from a single visit: when a site is rebuilt,
all pages are new once. A page that has not revealed any page yet is assumed to do so at the rate
½/(n/(2R) + days watched), for n pages of a site that reveal R new ones a day: so that every corner
is visited now and then.

Reference: ours, after Pandey 2008, sections 3.5 and 7.2 (joint discovery and refresh: future work).
"""

from collections import deque
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arrays import Arrays, Bools, Column, Floats
from freshet.scheduler.estimate.bayes import members
from freshet.scheduler.sources import Rows

#: Number of a site's newest pages that are remembered.
NEWEST: Final = 200
#: Number of revealing pages remembered for a precedent: with more of them, it is found anyway.
MOST_REVEALERS: Final = 64
_AT_ONCE: Final = 1_000
_AGE: Final = 365.0
_FIRST_DAYS: Final = 7.0
#: Cost of finding a page after the limit, in multiples of the limit; and the tolerance for sums of
#: days.
_TOO_LATE: Final = 4.0
_SAME_DAYS: Final = 1e-6
_OF_A_VISIT: Final = 10.0
_OF_THE_SITE: Final = 0.05
#: Prior number of new pages of each site, in its first days.
_PRIOR_PAGES: Final = 1.0
_PRIOR_DAYS: Final = 30.0

_PRECEDENT: Final = np.dtype(
    [("row", np.intp), ("site", np.intp), ("found_at", np.float64), ("batch", np.intp)]
)
_PAIR: Final = np.dtype([("precedent", np.intp), ("row", np.intp)])


@dataclass(frozen=True, slots=True)
class PageSnapshot:
    """A snapshot of n pages; all columns have length n, days are Unix days.

    Attributes:
        site: a code.
        importance: μ.
        found_at: when the page was found.
        since: the day of its last visit.
        captured: True where the page was ever captured.
    """

    site: Rows
    importance: Floats
    found_at: Floats
    since: Floats
    captured: Bools


@dataclass(frozen=True, slots=True)
class ExpectedReveals:
    """The expected new pages at a visit to each of n pages.

    Attributes:
        value: (n,), W, importance times days.
        pages: (n,), E, new pages.
        unknown: expected number of unknown new pages on all sites.
        per_day: new pages a day on all sites that some page reveals.
        by, item: (m,) each, the rows of a page and of a precedent that it reveals; -1: forgotten.
        waited: (m,), τ of the precedent.
    """

    value: Floats
    pages: Floats
    unknown: float
    per_day: float
    by: Rows
    item: Rows
    waited: Floats


class Precedents:
    """The newest pages of each site, and the pages that reveal them, as page table rows.

    *Contract.* The state depends on the revealed pages and on the order of the pages, not on the
    division into calls.
    """

    def __init__(self, newest: int = NEWEST) -> None:
        """Remember the ``newest`` pages of each site."""
        self._remembered = newest
        self._newest: dict[int, deque[int]] = {}
        self._began = Column[np.float64](np.float64)
        self._revealers: dict[int, list[int]] = {}
        #: By the rows of pages: one more than the position of a precedent, or 0.
        self._place = Column[np.int32](np.int32)
        self._precedents = Column[np.void](_PRECEDENT)
        #: Precedents that are not in the column yet: many at once cost a tenth.
        self._admitted: list[tuple[int, int, float, int]] = []
        self._pairs = Column[np.void](_PAIR)
        self._batches: dict[tuple[int, float], int] = {}
        self._batch_size = Column[np.int64](np.int64)
        self._forgotten = 0

    def __len__(self) -> int:
        return len(self._precedents) + len(self._admitted) - self._forgotten

    def admit(self, row: int, site: int, at: float) -> int | None:
        """Add a page found on a day; return the row that it displaces, if any."""
        newest = self._newest.get(site)
        if newest is None:
            newest = self._newest[site] = deque()
            while len(self._began) <= site:
                self._began.extend([np.inf])
            self._began.rows[site] = at
        newest.append(row)
        self._place.append(max(0, row + 1 - len(self._place)))
        self._place.rows[row] = len(self._precedents) + len(self._admitted) + 1
        batch = self._batches.setdefault((site, at), len(self._batch_size))
        if batch == len(self._batch_size):
            self._batch_size.append(1)
        self._batch_size.rows[batch] += 1
        self._admitted.append((row, site, at, batch))
        if len(self._admitted) == _AT_ONCE:
            self._take_in()
        return self._displace(newest.popleft()) if len(newest) > self._remembered else None

    def reveal(self, row: int, by: int) -> None:
        """Record that a visit to page ``by`` showed a new link to this page."""
        place = self._place_of(row)
        if place < 0:
            return
        revealers = self._revealers.setdefault(row, [])
        if by not in revealers and len(revealers) < MOST_REVEALERS:
            revealers.append(by)
            self._pairs.extend(np.array([(place, by)], _PAIR))

    def _place_of(self, row: int) -> int:
        return int(self._place.rows[row]) - 1 if row < len(self._place) else -1

    @property
    def newest(self) -> Rows:
        """Return the rows of the remembered pages, ascending."""
        self._take_in()
        rows: Rows = self._precedents.rows["row"]
        return np.sort(rows[rows >= 0])

    def revealers(self, row: int) -> tuple[int, ...]:
        """Return S(y) for the page in this row."""
        return tuple(self._revealers.get(row, ()))

    @property
    def revealed(self) -> tuple[Rows, Floats, Rows, Rows]:
        """Return (m,): sites, days of discovery, rows of new pages, and rows that reveal them."""
        self._take_in()
        pairs = self._pairs.rows
        it = self._precedents.rows[pairs["precedent"]]
        kept = it["row"] >= 0
        it = it[kept]
        return it["site"], it["found_at"], it["row"], pairs["row"][kept]

    def move(self, old: int, new: int) -> None:
        """Move the reveals of one row's page to another row."""
        self._take_in()
        pairs, precedents = self._pairs.rows, self._precedents.rows
        for k in np.flatnonzero(pairs["row"] == old).tolist():
            revealers = self._revealers.get(int(precedents["row"][pairs["precedent"][k]]), [])
            if old not in revealers:
                continue
            if new in revealers:
                # The remaining pair belongs to a page that no longer exists.
                revealers.remove(old)
            else:
                revealers[revealers.index(old)] = new
                pairs["row"][k] = new

    def written(self) -> dict[str, NDArray[Any]]:
        """Return the whole state."""
        self._take_in()
        revealed = [(row, by) for row, each in self._revealers.items() for by in each]
        return {
            "precedents": self._precedents.rows,
            "pairs": self._pairs.rows,
            "revealers": np.array(revealed, np.int64).reshape(-1, 2),
            "began": self._began.rows,
            "batch_size": self._batch_size.rows,
        }

    def read(self, written: Arrays) -> None:
        """Restore a written state."""
        self._precedents.extend(written["precedents"])
        self._pairs.extend(written["pairs"])
        self._began.extend(written["began"])
        self._batch_size.extend(written["batch_size"])
        table = self._precedents.rows
        kept = np.flatnonzero(table["row"] >= 0)
        self._forgotten = len(table) - len(kept)
        self._place.append(int(table["row"].max(initial=-1)) + 1)
        self._place.rows[table["row"][kept]] = kept + 1
        for site, places in members(table["site"][kept]):
            self._newest[site] = deque(table["row"][kept[places]].tolist())
        keys = zip(table["site"].tolist(), table["found_at"].tolist(), strict=True)
        self._batches = dict(zip(keys, table["batch"].tolist(), strict=True))
        for row, by in written["revealers"].tolist():
            self._revealers.setdefault(row, []).append(by)

    def value(self, pages: PageSnapshot, now: float, limit: float = np.inf) -> ExpectedReveals:
        """Return the expected new pages at a visit to each page on this day.

        ``limit`` is D, in days; only ``value`` depends on it.
        """
        self._take_in()
        sites, n = int(pages.site.max(initial=-1)) + 1, len(pages.site)
        days = self._days(sites, now)
        rate = self._rates(pages, days, now)
        pairs = self._pairs.rows[pages.captured[self._pairs.rows["row"]]]
        row, place = pairs["row"], pairs["precedent"]
        latest = np.full(len(rate), -np.inf)
        np.maximum.at(latest, place, pages.since[row])
        known = np.isfinite(latest)
        waited = np.zeros(len(rate))
        waited[known] = np.maximum(now - latest[known], 0.0)
        unknown = rate * waited
        cost = pages.importance[self._precedents.rows["row"]] * rate * _delay(waited, limit)
        # Pages that a first crawl found were not new, and no page has revealed them.
        again, since = self._unexplored(pages, np.where(known, rate, 0.0), days, now)
        return ExpectedReveals(
            value=np.bincount(row, cost[place], minlength=n)
            + pages.importance * again * _delay(since, limit),
            pages=np.bincount(row, unknown[place], minlength=n) + again * since,
            unknown=float(unknown.sum()),
            per_day=float(rate[known].sum()),
            by=row,
            item=self._precedents.rows["row"][place],
            waited=waited[place],
        )

    def _unexplored(
        self, pages: PageSnapshot, rate: Floats, days: Floats, now: float
    ) -> tuple[Floats, Floats]:
        """Return further new pages a day for each page, and days since its visit; (n,) each."""
        held, sites = pages.captured, len(days)
        count = np.maximum(np.bincount(pages.site[held], minlength=sites), 1)
        new = np.bincount(self._precedents.rows["site"], rate, minlength=sites) * days
        per_page = (new + _PRIOR_PAGES) / (days + _PRIOR_DAYS) / count
        watched = np.maximum(pages.since - pages.found_at, 0.0)
        found: Floats = np.where(held, 0.5 / (0.5 / per_page[pages.site] + watched), 0.0)
        return found, np.maximum(now - pages.since, 0.0)

    def _days(self, sites: int, now: float) -> Floats:
        """Return Z + Z₀ for each site; (sites,)."""
        watched = np.maximum(now - self._began.rows[:sites], 0.0)
        days = np.full(sites, _FIRST_DAYS)
        days[: len(watched)] -= _AGE * np.expm1(-watched / _AGE)
        return days

    def _rates(self, pages: PageSnapshot, days: Floats, now: float) -> Floats:
        """Return r for each precedent; 0 if it is forgotten or has no content."""
        table = self._precedents.rows
        rate = np.zeros(len(table))
        if not len(table):
            return rate
        row, site = table["row"], table["site"]
        counts = (row >= 0) & pages.captured[row]
        table, site = table[counts], site[counts]
        size = np.bincount(pages.site, minlength=len(days))[site]
        most = np.maximum(_OF_A_VISIT, _OF_THE_SITE * size)
        share = np.minimum(1.0, most / self._batch_size.rows[table["batch"]])
        age = np.maximum(now - table["found_at"], 0.0)
        rate[counts] = share * np.exp(-age / _AGE) / days[site]
        return rate

    def _take_in(self) -> None:
        """Write admitted pages into the column."""
        self._precedents.extend(np.array(self._admitted, _PRECEDENT))
        self._admitted = []

    def _displace(self, row: int) -> int:
        """Forget the oldest page of a site."""
        place = self._place_of(row)
        self._place.rows[row] = 0
        self._revealers.pop(row, None)
        if place >= len(self._precedents):
            self._take_in()
        it = self._precedents.rows[place]
        it["row"], self._began.rows[it["site"]] = -1, it["found_at"]
        self._forgotten += 1
        if self._forgotten > max(len(self), self._remembered):
            self._rebuild()
        return row

    def _rebuild(self) -> None:
        """Rebuild the columns without forgotten pages."""
        self._take_in()
        kept = self._precedents.rows[self._precedents.rows["row"] >= 0].copy()
        self._precedents, self._forgotten = Column[np.void](_PRECEDENT), 0
        self._precedents.extend(kept)
        self._place.rows[:] = 0
        self._place.rows[kept["row"]] = np.arange(len(kept)) + 1
        used, kept["batch"] = np.unique(kept["batch"], return_inverse=True)
        self._precedents.rows["batch"] = kept["batch"]
        sizes = self._batch_size.rows[used].copy()
        self._batch_size = Column[np.int64](np.int64)
        self._batch_size.extend(sizes)
        keys = zip(kept["site"].tolist(), kept["found_at"].tolist(), strict=True)
        self._batches = dict(zip(keys, kept["batch"].tolist(), strict=True))
        pairs = [(self._place_of(y), x) for y, by in self._revealers.items() for x in by]
        self._pairs = Column[np.void](_PAIR)
        self._pairs.extend(np.array(pairs, _PAIR))


def _delay(waited: Floats, limit: float) -> Floats:
    """Return the value of finding one page a day now, after a wait of these days."""
    value: Floats = np.minimum(waited, limit) ** 2 / 2
    if np.isfinite(limit):
        value += _TOO_LATE * limit**2 * (waited >= limit - _SAME_DAYS)
    return value
