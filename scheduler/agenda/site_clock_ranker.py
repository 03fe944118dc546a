"""The ranker of the policy ``site_clock``: the greedy index on the clocks of sites.

With the hazard x accumulated since the last visit (:mod:`scheduler.estimate.site_clock`) and
D = d + θc the mean rate at which a page becomes stale again, a visit is worth

    W = μ min( (x − 1 + e^{−x})/D,  ½ τ Ein(x) ).

The first is the index of the harmonic cost with the days replaced by the site's time: what
matters is what may have happened, and D how long the visit is good for. The second bounds it by
what the visit can save if staleness builds up no faster than it has: at a constant hazard it never
binds, as x − 1 + e^{−x} ≤ ½ x Ein(x); where a rewritten site raises the suspicion of pages that
hardly ever change, it keeps the rest from being forgotten for them.

    μ   importance;  d  change rate, exp(E[ln d]);  τ  days since the last visit
    θ   (d̄/(d̄ + d))², how cold a page is; d̄ the geometric mean of the site's rates

What is learnt, and whether a site's clock is used, is said in
:mod:`~scheduler.estimate.site_model`. No page is forgotten: where all are equally important, one
waits at most three times as long as if all were visited in turn, and then goes before all others.
Otherwise it is ten times, and for a page of less than the mean importance as much longer as that is
more.

Cost: per visit 2 to 30 µs, more where changes are many; valuing takes 0.1 µs a page. Memory: 500
bytes a page, and some 100 to 1,000 kB a site of five pages or more, in a file where many learn.

Reference: ours.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import numpy as np

from freshet.compiled import numeric
from freshet.compiled.numeric import record
from freshet.scheduler.agenda.ranker import Beliefs
from freshet.scheduler.arrays import Arrays, Column, Floats, Scratch
from freshet.scheduler.estimate.evidence import SignalBatch, VisitResults
from freshet.scheduler.estimate.site_model import POINTS, Pages, SiteLearner, credible_interval
from freshet.scheduler.estimate.sources_trust import SiteTrust, SourceTrust
from freshet.scheduler.sources import AREAS, Rows

_LONGEST: Final = 3.0
_LONGEST_UNLIKE: Final = 10.0
_LEAST: Final = 1e-12
#: Sites that learn in memory, at least: from twice as many on others are in a file.
_AWAKE: Final = 32

log = logging.getLogger(__name__)


class SiteClockRanker:
    """A :class:`~freshet.scheduler.agenda.ranker.Ranker` for ``budget`` visits a day: see above.

    The budget says how wide bins are, and how long a page may wait.
    """

    def __init__(self, budget: float) -> None:
        self._site_of = Column[np.intp](np.intp)
        self._importance = Column[np.float64](np.float64)
        self._page = Column[np.void](record("page"))
        # The pages, until they grow.
        self._states: Pages | None = None
        # Whether a page counts, and how many do: by the visits that have come in.
        self._there = Column[np.bool_](np.bool_)
        self._count = 0
        self._learners: list[SiteLearner] = []
        # The sites that learn in memory, the last one at the end, and the file for others.
        self._awake: dict[int, None] = {}
        self._scratch: Scratch | None = None
        self._touched, self._is_full = 0, False
        self._trust = SourceTrust()
        self._budget = budget

    def add(self, site: Rows, area: Rows, importance: Floats, at: Floats) -> None:
        """Append rows; they count from the first visit on."""
        self._site_of.extend(site)
        self._importance.extend(importance)
        for column in (self._page, self._there):
            column.append(len(site))
        self._states = None
        self._trust.add(len(site))
        self._page.rows["area"][len(self._page) - len(site) :] = np.minimum(area, AREAS - 1)
        more = int(site.max(initial=-1)) + 1 - len(self._learners)
        self._learners += [SiteLearner() for _ in range(more)]

    def learn(self, visits: VisitResults) -> None:
        """Take in visits, in their order."""
        table = np.zeros(len(visits), record("visit"))
        for name in ("row", "at", "compared", "changed", "gone", "moved"):
            table[name] = getattr(visits, name)
        table["modified"] = -np.inf if visits.modified is None else visits.modified
        self._count = numeric.count_pages(self._there.rows, table, self._count, self._budget)
        site = self._site_of.rows[visits.row]
        order = np.argsort(site, kind="stable")
        bounds = np.flatnonzero(np.diff(site[order], prepend=-1, append=-1))
        pages = self._pages()
        for first, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            mine, code = table[order[first:stop]], int(site[order[first]])
            learner = self._learners[code]
            learner.learn(pages, mine)
            self._trust.learn(code, mine, learner.alive)
            self._set_aside(code)

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
                self._scratch = self._scratch or Scratch()
                self._learners[code].set_aside(self._scratch)
                del self._awake[code]
        except OSError as error:
            log.warning("what sites learn stays in memory until the next snapshot: %s", error)
            self._is_full = True
        self._let_go()

    def _let_go(self) -> None:
        if self._scratch is not None:
            self._scratch.let_go()

    def receive(self, said: SignalBatch) -> None:
        """Take in the signals of one source at one time."""
        self._trust.receive(
            said,
            self._site_of.rows,
            partial(self._unclaimed_at, said.at),
            page=self._page.rows,
            importance=self._importance.rows,
            turn=self._turn,
        )

    def _unclaimed_at(self, now: float, site: int) -> tuple[int, Floats]:
        """Return how many pages a site has, and (n,) the changes expected without claims."""
        learner, page = self._learners[site], self._page.rows
        hazard = np.zeros(len(page))
        if learner.proven:
            rate = np.empty(len(page))
            learner.write_hazards(self._pages(), now, hazard, rate)
        else:
            rows = learner.rows
            age = np.maximum(now - page["last"][rows], 0.0)
            hazard[rows] = np.maximum(page["plain_rate"][rows] * age, _LEAST)
        return learner.alive, hazard

    def site_trust(self, site: int) -> SiteTrust | None:
        """Return the record of a site's signals, or None if there never was one."""
        return self._trust.of(site)

    def reweigh(self, rows: Rows, importance: Floats) -> None:
        """Give these pages another importance."""
        self._importance.rows[rows] = importance

    def inherit(self, old: int, new: int) -> None:
        """Hand the state of one row on to another, where its page stands now."""
        page = self._page.rows
        if not page["known"][old]:
            return
        last = float(page["last"][old])
        # What is pending of it is thereby taken in for good.
        self.learn(VisitResults.one(old, last, changed=None, gone=True))
        theirs, mine = (self._learners[self._site_of.rows[row]] for row in (old, new))
        theirs.wake()
        mine.wake()
        if not page["known"][new]:
            page["place"][new] = mine.site.facts[0]["known"]
            mine.make_room(int(page["place"][new]) + 1)
        of, to = page["place"][old], page["place"][new]
        mine.site.likelihood[to] += theirs.site.likelihood[of]
        mine.site.plain_likelihood[to] += theirs.site.plain_likelihood[of]
        mine.is_altered = True
        if not page["known"][new]:
            self.learn(VisitResults.one(new, last, changed=None))

    def worth(self, now: float) -> Floats:
        """Return (n,), the value of a visit to each page; 0 before the first one."""
        hazard, _, jump, per = self._hazard(now)
        found = np.empty(len(self._page))
        importance = self._importance.rows
        alike = not len(importance) or importance.min() == importance.max()
        turns = (_LONGEST if alike else _LONGEST_UNLIKE) * self._turn
        numeric.site_worth(
            self._page.rows,
            hazard=hazard,
            jump=jump,
            per=per,
            importance=importance,
            now=now,
            longest=turns,
            worth=found,
        )
        self._trust.value_polls(now, found)
        return found

    def beliefs(self, now: float) -> Beliefs:
        """Return estimates by the clock of each site, where that is proven, or else by the days."""
        hazard, rate, _, _ = self._hazard(now)
        proven = np.array([learner.proven for learner in self._learners], np.float64)
        claimed = self._trust.believed(len(rate))
        return Beliefs(hazard, rate, proven[self._site_of.rows], claimed)

    def credible_interval(self, rows: Rows) -> tuple[Floats, Floats]:
        """Return the rates, (m,) each, between which those of pages lie at 90 %, by the days."""
        low, high = np.empty(len(rows)), np.empty(len(rows))
        site, area = self._site_of.rows[rows], self._page.rows["area"][rows]
        for code in np.unique(site).tolist():
            mine = np.flatnonzero(site == code)
            known, place = (self._page.rows[name][rows[mine]] for name in ("known", "place"))
            sums = np.zeros((len(mine), POINTS), np.float32)
            with self._learners[code].awake() as it:
                prior = it.plain_prior[area[mine]]
                sums[known] = it.plain_likelihood[place[known]]
            low[mine], high[mine] = credible_interval(sums, prior)
        self._let_go()
        return low, high

    # -- in the store --

    def columns(self, some: slice) -> Arrays:
        """Return the state of these rows, without that of their sites."""
        return {
            "learnt": self._page.rows[some],
            "there": self._there.rows[some],
            "slot": self._trust.slots[some],
        }

    def written(self) -> Iterator[tuple[str, Arrays]]:
        """Yield what has altered of the sites, by name."""
        for code, learner in enumerate(self._learners):
            if learner.is_altered:
                yield f"site/{code}", learner.held()
                yield f"clock/{code}", learner.written()
                self._let_go()
        for code, trust in self._trust.altered():
            yield f"claims/{code}", trust.written()

    def rest(self, read: Callable[[str], Arrays]) -> None:
        """Let the sites rest: what was written of them can be ``read`` by its name."""
        for code, learner in enumerate(self._learners):
            if learner.is_altered:
                learner.rest(learner.held(), partial(read, f"clock/{code}"))
        self._awake, self._scratch, self._is_full = {}, None, False
        for _, trust in self._trust.altered():
            trust.is_altered = False

    def recall(self, site: Rows, importance: Floats, columns: Arrays, count: int) -> None:
        """Append rows with their state, as it was written, of ``count`` in all.

        Raises:
            KeyError, TypeError: by another version.
        """
        first, area = len(self._page), columns["learnt"]["area"]
        if not first:
            for column in (self._page, self._there, self._site_of, self._importance):
                column.reserve(count)
        self.add(site, area, importance, np.zeros(len(site)))
        if columns["learnt"].dtype != self._page.rows.dtype:
            raise TypeError("these are pages of another version")
        self._page.rows[first:] = columns["learnt"]
        self._there.rows[first:] = columns["there"]
        self._trust.slots[first:] = columns["slot"]
        self._count += int(columns["there"].sum())

    def recall_site(self, code: int, held: Arrays, read: Callable[[str], Arrays]) -> None:
        """Let a site rest as it did, whose pages are there; raises as :meth:`recall`."""
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
            raise TypeError("the pages of a site are not where it has them")
        learner.rest(held, partial(read, f"clock/{code}"))

    def recall_claims(self, code: int, written: Arrays) -> None:
        """Know the claims at a site as they were written; raises as :meth:`recall`."""
        self._trust.read(code, written)

    def _pages(self) -> Pages:
        if self._states is None:
            self._states = Pages(self._page.rows)
        return self._states

    @property
    def _turn(self) -> float:
        """Return the days in which all pages could be visited once."""
        return max(self._count, 1) / self._budget

    def _hazard(self, now: float) -> tuple[Floats, Floats, Floats, Floats]:
        """Return (n,) each: the hazard since the last visit, the mean rate, q, and D.

        D is the rate where nothing is claimed.
        """
        page = self._page.rows
        hazard, rate = numeric.plain_hazards(page, now)
        for learner in self._learners:
            if learner.proven:
                learner.write_hazards(self._pages(), now, hazard, rate)
        jump, per = self._trust.value(page, now, self._turn, hazard, rate)
        return hazard, rate, jump, per
