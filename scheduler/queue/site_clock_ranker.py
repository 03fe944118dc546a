"""The ranker of the policy ``site_clock``: the greedy index on the clocks of sites.

The value of a visit is the days of staleness that it ends, as expected under the belief in the rate
γ of the page, by the clock of its site (:mod:`~scheduler.estimate.site_model`):

    W = μ E[ τ − (1 − e^{−γτ})/γ ]

    μ   importance;  τ  days of the site's clock since the last visit

If signals are believed, the belief enters through its hazard, x = −ln E[e^{−γτ}], and
:mod:`~scheduler.estimate.sources_trust` gives the value of a visit. Every page is visited in the
end: W grows with τ for every γ, and a page that has waited ten times as long as a round-robin
schedule takes ranks before all others. A page of less than the mean importance waits longer, in
inverse proportion.

Cost: noting a visit takes less than 1 µs, valuing 0.1 µs a page. Memory: 300 bytes a page.

Reference: ours.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import numpy as np

from freshet.compiled import numeric
from freshet.compiled.numeric import Records, record
from freshet.scheduler.arrays import Arrays, Column, Floats, ScratchArrays
from freshet.scheduler.estimate.evidence import SignalBatch, VisitResults
from freshet.scheduler.estimate.site_model import (
    POINTS,
    Pages,
    SiteLearner,
    credible_interval,
    points_above,
    raised,
)
from freshet.scheduler.estimate.sources_trust import Reputation, SiteTrust, SourceTrust
from freshet.scheduler.queue.ranker import Beliefs
from freshet.scheduler.sources import AREAS, Rows

_LONGEST: Final = 10.0
#: Minimum number of sites that learn in memory: at twice as many, the others are moved to a file.
_AWAKE: Final = 32

log = logging.getLogger(__name__)


class SiteClockRanker:
    """A :class:`~freshet.scheduler.queue.ranker.Ranker` for ``budget`` visits a day: see above.

    The budget determines how long a page may wait.
    """

    def __init__(self, budget: float) -> None:
        self._site_of = Column[np.intp](np.intp)
        self._importance = Column[np.float64](np.float64)
        self._page = Column[np.void](record("page"))
        self._belief = Column[np.float32](np.float32, width=POINTS)
        # The pages, until they grow.
        self._states: Pages | None = None
        self._learners: list[SiteLearner] = []
        # The sites with a proven clock.
        self._clocked: set[int] = set()
        # The sites that learn in memory, the last one at the end, and the file for others.
        self._awake: dict[int, None] = {}
        self._scratch: ScratchArrays | None = None
        self._touched, self._is_full = 0, False
        self._trust = SourceTrust()
        self._budget = budget

    def add(
        self, site: Rows, area: Rows, importance: Floats, at: Floats, pace: Floats | None = None
    ) -> None:
        """Append rows; they count from the first visit on."""
        first = len(self._page)
        self._site_of.extend(site)
        self._importance.extend(importance)
        for column in (self._page, self._belief):
            column.append(len(site))
        above = points_above(np.ones(len(site)) if pace is None else pace)
        self._page.rows["above"][first:] = above
        for points in np.unique(above).tolist():
            self._belief.rows[first:][above == points] = raised(points)
        self._states = None
        self._trust.add(len(site))
        self._page.rows["area"][first:] = np.minimum(area, AREAS - 1)
        more = int(site.max(initial=-1)) + 1 - len(self._learners)
        self._learners += [SiteLearner() for _ in range(more)]

    def learn(self, visits: VisitResults) -> None:
        """Learn from visits, in their order."""
        table = np.zeros(len(visits), record("visit"))
        for name in ("row", "at", "compared", "changed", "gone", "moved"):
            table[name] = getattr(visits, name)
        site = self._site_of.rows[visits.row]
        order = np.argsort(site, kind="stable")
        bounds = np.flatnonzero(np.diff(site[order], prepend=-1, append=-1))
        pages, belief = self._pages(), self._belief.rows
        for first, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            mine, code = table[order[first:stop]], int(site[order[first]])
            learner = self._learners[code]
            if self._trust.of(code) is None:
                learner.learn(pages, mine, belief)
            else:
                for k in range(len(mine)):
                    self._learn_claimed(code, mine[k : k + 1])
            (self._clocked.add if learner.proven else self._clocked.discard)(code)
            self._set_aside(code)

    def _learn_claimed(self, code: int, visit: Records) -> None:
        """Learn a visit to a page of a site with claims, and the hazard expected without them."""
        learner, rows = self._learners[code], visit["row"]
        if self._page.rows["known"][rows[0]]:
            visit["hazard"] = self._expected_of(learner, rows, float(visit["at"][0]))
        learner.learn(self._pages(), visit, self._belief.rows)
        self._trust.learn(code, visit, learner.alive)

    def _set_aside(self, learnt: int) -> None:
        """Keep the sites that learnt last in memory, and move others to a file."""
        self._touched += 1
        if not self._learners[learnt].is_aside:
            self._awake.pop(learnt, None)
            self._awake[learnt] = None
        if self._touched < _AWAKE or self._is_full:
            return
        self._touched = 0
        try:
            for code in list(self._awake)[:-_AWAKE]:
                self._scratch = self._scratch or ScratchArrays()
                self._learners[code].set_aside(self._scratch)
                del self._awake[code]
        except OSError as error:
            log.warning("the site models stay in memory until the next snapshot: %s", error)
            self._is_full = True
        self._release_scratch()

    def _release_scratch(self) -> None:
        if self._scratch is not None:
            self._scratch.release()

    def receive(self, batch: SignalBatch) -> None:
        """Learn from the signals of one source at one time."""
        self._trust.receive(
            batch,
            self._site_of.rows,
            partial(self._unclaimed_at, batch.at),
            page=self._page.rows,
            importance=self._importance.rows,
            turn=self._turn,
        )

    def _unclaimed_at(self, now: float, site: int) -> tuple[int, Floats]:
        """Return the number of a site's pages, and (n,) the changes expected without claims."""
        learner, hazard = self._learners[site], np.zeros(len(self._page))
        hazard[learner.rows] = self._expected_of(learner, learner.rows, now)
        return learner.alive, hazard

    def _expected_of(self, learner: SiteLearner, rows: Rows, now: float) -> Floats:
        """Return the changes expected since the last visits to all pages of a site, or to one."""
        page, belief, since = self._page.rows, self._belief.rows, np.empty(len(self._page))
        since[rows] = np.maximum(now - page["last"][rows], 0.0)
        if learner.proven:
            only = int(rows[0]) if len(rows) == 1 else -1
            learner.write_days(self._pages(), belief, now, since, only)
        return numeric.page_prospects(page[rows], belief[rows], since[rows])[0]

    def site_trust(self, site: int) -> SiteTrust | None:
        """Return the record of a site's signals, or None if there never was one."""
        return self._trust.of(site)

    def reputations(self, site: int) -> list[Reputation]:
        """Return the reputation of each source of a site."""
        known = self._trust.of(site)
        return [] if known is None else known.reputations()

    def polled(self, *, confirmed: bool) -> Rows:
        """Return the polled pages of sources with ``confirmed`` announcements, or without."""
        return self._trust.polled(confirmed=confirmed)

    def reweigh(self, rows: Rows, importance: Floats) -> None:
        """Set the importance of these pages."""
        self._importance.rows[rows] = importance

    def inherit(self, old: int, new: int) -> None:
        """Copy the state of one row to another, the row of the page's new URL."""
        page = self._page.rows
        if not page["known"][old]:
            return
        last = float(page["last"][old])
        self.learn(VisitResults.one(old, last, changed=None, gone=True))
        if not page["known"][new]:
            self.learn(VisitResults.one(new, last, changed=None))
        theirs, mine = (self._learners[self._site_of.rows[row]] for row in (old, new))
        sums = theirs.sums(int(page["place"][old]))
        mine.inherit(self._pages(), self._belief.rows, int(page["place"][new]), sums)

    def values(self, now: float) -> Floats:
        """Return (n,), the value of a visit to each page; 0 before the first one."""
        hazard, rate, stale = self._expected(now)
        jump, per = self._trust.value(self._page.rows, now, self._turn, hazard, rate)
        found = numeric.page_worth(
            self._page.rows,
            hazard=hazard,
            stale=stale,
            jump=jump,
            per=per,
            importance=self._importance.rows,
            now=now,
            longest=_LONGEST * self._turn,
        )
        self._trust.value_polls(now, found)
        return found

    def beliefs(self, now: float) -> Beliefs:
        """Return estimates by the clock of each site, where that is proven, or else by the days."""
        hazard, rate, _ = self._expected(now)
        self._trust.value(self._page.rows, now, self._turn, hazard, rate)
        proven = np.array([learner.proven for learner in self._learners], np.float64)
        claimed = self._trust.believed(len(rate))
        return Beliefs(hazard, rate, proven[self._site_of.rows], claimed)

    def credible_interval(self, rows: Rows) -> tuple[Floats, Floats]:
        """Return the bounds (m,) each of the 90 % credible intervals of the pages' rates."""
        return credible_interval(self._belief.rows[rows])

    # -- in the store --

    def columns(self, some: slice) -> Arrays:
        """Return the state of these rows, without the state of their sites."""
        return {
            "learnt": self._page.rows[some],
            "belief": self._belief.rows[some],
            "slot": self._trust.slots[some],
        }

    def written(self) -> Iterator[tuple[str, Arrays]]:
        """Yield the altered state of sites, by name."""
        for code, learner in enumerate(self._learners):
            if learner.is_altered:
                yield f"site/{code}", learner.held()
                yield f"clock/{code}", learner.written()
                self._release_scratch()
        for code, trust in self._trust.altered():
            yield f"claims/{code}", trust.written()

    def rest(self, read: Callable[[str], Arrays]) -> None:
        """Unload the sites' models; ``read`` returns a written part by its name."""
        for code, learner in enumerate(self._learners):
            if learner.is_altered:
                learner.rest(learner.held(), partial(read, f"clock/{code}"))
        self._awake, self._scratch, self._is_full = {}, None, False
        for _, trust in self._trust.altered():
            trust.is_altered = False

    def recall(self, site: Rows, importance: Floats, columns: Arrays, count: int) -> None:
        """Append rows with their written state, of ``count`` in all.

        Raises:
            KeyError, TypeError: if another version wrote them.
        """
        first, area = len(self._page), columns["learnt"]["area"]
        if not first:
            for column in (self._page, self._belief, self._site_of, self._importance):
                column.reserve(count)
        self.add(site, area, importance, np.zeros(len(site)))
        if columns["learnt"].dtype != self._page.rows.dtype:
            raise TypeError("the pages were written by another version")
        self._page.rows[first:] = columns["learnt"]
        self._belief.rows[first:] = columns["belief"]
        self._trust.slots[first:] = columns["slot"]

    def recall_site(self, code: int, held: Arrays, read: Callable[[str], Arrays]) -> None:
        """Restore the unloaded model of a site whose rows are there; raises as :meth:`recall`."""
        learner, page = self._learners[code], self._page.rows
        rows = held["rows"]
        places = np.arange(len(rows))
        if (
            len(rows) != held["facts"]["known"][0]
            or not (rows >= 0).all()
            or (
                rows.max(initial=0) >= max(len(page), 1)
                or not np.array_equal(page["place"][rows], places)
            )
        ):
            raise TypeError("the pages of a site do not match its model")
        learner.rest(held, partial(read, f"clock/{code}"))
        if learner.proven:
            self._clocked.add(code)

    def recall_claims(self, code: int, written: Arrays) -> None:
        """Restore the claims at a site; raises as :meth:`recall`."""
        self._trust.read(code, written)

    def _pages(self) -> Pages:
        if self._states is None:
            self._states = Pages(self._page.rows)
        return self._states

    @property
    def _turn(self) -> float:
        """Return the days in which all pages could be visited once."""
        return max(int(np.count_nonzero(self._page.rows["alive"])), 1) / self._budget

    def _expected(self, now: float) -> tuple[Floats, Floats, Floats]:
        """Return (n,) each: changes since the last visit, rates a day, and days of staleness."""
        pages, belief = self._pages(), self._belief.rows
        page = self._page.rows
        since = np.maximum(now - page["last"], 0.0)
        for code in self._clocked:
            self._learners[code].write_days(pages, belief, now, since)
        return numeric.page_prospects(page, belief, since)
