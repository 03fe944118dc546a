"""Change rates of a site's pages, learnt visit by visit over its clock and over the days.

Two posteriors of each rate are kept, over the days and over the site's time, and both predict the
outcome of every visit. The clock of a site is *proven* while its decayed log loss is the smaller
one: on a site with independent pages it would see bursts that do not exist. A page's last interval
is *pending*: it is committed one visit later, when the clock there has settled.

*Law.* The state is a function of the visits in their order, however they are divided into batches.
So only visited pages count.

A change is *dated* where the server's Last-Modified tells its day L. Bytes move more often than the
page changes, of the moves of a site a share s are changes; a change found after t days is the last
of the moves with the probability s(1 − e^{−dt/s})/(1 − e^{−dt}), d its rate. If that is high, the
page changed at L, which has the density d e^{−da} where L is a days ago.

A site of fewer than five pages has no clock. When the mean time between visits has become four
times as long or as short, another clock begins with bins to match. The loops are those of
``site_model.c``, ``site_clock.c`` and ``grid.c`` in :mod:`freshet.compiled`, which write into the
arrays of the states here; what they need beyond these, the learner allocates.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.compiled import numeric
from freshet.compiled.numeric import CONSTANTS, Records, Structure, record
from freshet.scheduler.arrays import Arrays, Floats, Scratch
from freshet.scheduler.estimate.bayes import quantile
from freshet.scheduler.sources import AREAS, Rows

# -- rates on a grid ---------------------------------------------------------
#
# Posteriors of change rates on a grid, as log-likelihoods that grow visit by visit.
#
# A page's rate is one of 48, from 2e-4 to 50 changes a day and evenly spaced in their logarithm.
# Its row of sums is ln P(results of its visits | rate), but for a constant; with the prior of its
# site and area it is a posterior, and its estimate exp(E[ln d]).
#
# Rates drift: a page is taken to get another one once in T = 1,500 days, drawn from the prior. So
# between two visits t days apart the posterior goes a share 1 − e^{−t/T} of the way back to it. A
# quiet page that turns busy is thereby believed after a few changes, however long it has been
# quiet, which fading sums would not do.
#
# Priors are fitted to pages by expectation and maximisation, and shrunk by the weight of ten pages:
# that of a site to an even one, those of its areas to the site's.
#
# Reference: M. Herbster and M. Warmuth, "Tracking the best expert", Machine Learning 1998 (fixed
# share).

RATES: Final[Floats] = numeric.grid_rates()
POINTS: Final = len(RATES)
_LOGS: Final[Floats] = np.log(RATES)


def even() -> Floats:
    """Return the prior (48,) without any knowledge."""
    return np.full(POINTS, 1 / POINTS)


def credible_interval(sums: NDArray[np.floating], prior: Floats) -> tuple[Floats, Floats]:
    """Return the rates, (m,) each, between which nine tenths of each posterior lie.

    As much is left out below as above; ``sums`` and ``prior`` are (m, 48).
    """
    posterior = prior * np.exp(sums - sums.max(axis=1, keepdims=True))
    return quantile(posterior, 0.05, _LOGS), quantile(posterior, 0.95, _LOGS)


# -- the clock of a site -----------------------------------------------------
#
# The clock of one site: how much faster or slower than usual its pages changed, bin by bin.
#
# The pages of a site change together: when it is edited, rebuilt or moved. So the hazard of page i
# at time t is taken to be
#
#     d_i [(1 − b) + b m(t)] + θ_i y(t),        changes a day.
#
# m(t), the *site's clock*, is shared and has the mean 1; y(t), the *cold clock*, is an equal jump
# for all pages that hardly ever change (θ_i near 1, and near 0 for the busy ones), as when a site
# is rewritten; each *area* of the site has its own, with a fifth of its evidence shared by all
# areas. Both are constant within bins of width w, with priors m ~ Gamma(αw, αw) and
# yw ~ Gamma(cw, 1), independent from bin to bin: αw and cw are small, so changes come in bursts.
#
# Visits are the ends of intervals (l, t] in which a page changed or not. An unchanged interval
# adds exposure to its bins. In a changed one the expected number of changes, x/(1 − e^{−x}) for the
# hazard x accumulated over it, is divided among the page's own time, its bins of m and its bins of
# y in proportion to their share in x; among bins by weights o exp(ψ(a + N))/(a + E), which draw
# overlapping intervals to common bins (variational Bayes).
# The changed intervals of the last time, the *ring*, are divided anew whenever one that overlaps
# comes.
#
#     b    share of the hazard that keeps the site's time          0.65
#     α    strength of the prior of m                              0.2 a day
#     c    how often an area is rewritten                          1e-5 a day
#     w    bin width, an 80th of the mean time between two visits  days
#     o    overlap of an interval with a bin                       days; of the cold clock, bins
#     N, E  changes ascribed to a bin, and its exposure;  those of the cold clock likewise
#
# An interval reaches back over its last 256 bins, and at least 512 bins are kept, so a clock takes
# the same memory after years. What pages need of bins is noted before these are dropped.
#
# Cost: a visit touches the bins of its interval, one that found a change divides some of the ring
# anew.
#
# Reference: ours; the weights are those of variational mixtures (C. Bishop, "Pattern Recognition
# and Machine Learning", 2006, section 10.2).

#: Bins of a clock; of the mean time between two visits; of an interval, at most; and intervals of
#: the ring, at most.
_BINS, _BINS_A_TURN, _REACH, _RING = (
    int(CONSTANTS[name]) for name in ("BINS", "BINS_A_TURN", "REACH", "RING")
)
_FIRST_RING: Final = 16


@dataclass(frozen=True, slots=True)
class ClockState:
    """Arrays of a clock; bins go along axis 0, areas along axis 1.

    ``shared`` and ``cold`` are M(t) and Y(t), summed up to the edges of the bins; ``ring`` with
    ``of_shared`` and ``of_cold`` are changed intervals and what was ascribed of them to each bin.
    """

    facts: Records
    changes: Floats
    exposure: Floats
    cold_changes: Floats
    cold_exposure: Floats
    all_changes: Floats
    all_exposure: Floats
    shared: Floats
    cold: Floats
    ring: Records
    of_shared: NDArray[np.float32]
    of_cold: NDArray[np.float32]
    structure: Structure = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        bins, areas = self.cold_changes.shape
        size, span = self.of_shared.shape
        made = Structure("clock", self, bins=bins, areas=areas, size=size, span=span)
        object.__setattr__(self, "structure", made)


def stopped() -> ClockState:
    """Return a clock without bins, for a site that has none yet."""
    return _sized(0, 1, 1)


def started(at: float, width: float, areas: int) -> ClockState:
    """Return a clock of bins from day ``at`` on, each ``width`` days, for this number of areas."""
    clock = _sized(_BINS, areas, _FIRST_RING)
    numeric.clock_restart(clock.structure, at, width)
    return clock


def with_areas(clock: ClockState, areas: int) -> ClockState:
    """Return the clock with this number of areas; new ones start from all areas' evidence."""
    further = areas - clock.cold.shape[1]

    def widened(columns: Floats) -> Floats:
        return np.pad(columns, ((0, 0), (0, further)))

    grown = replace(
        clock,
        cold_changes=widened(clock.cold_changes),
        cold_exposure=widened(clock.cold_exposure),
        cold=widened(clock.cold),
    )
    # What was summed up before the first bin that is kept is not known by area.
    grown.cold[0, -further:] = clock.cold[0].min()
    numeric.clock_sum_from(grown.structure, 0, int(clock.facts[0]["summed"]))
    return grown


def with_larger_ring(clock: ClockState) -> ClockState:
    """Return the clock with room for more changed intervals."""
    size = min(_RING, 2 * len(clock.ring))
    grown = replace(
        clock,
        ring=np.zeros(size, record("interval")),
        of_shared=np.zeros((size, _REACH + 1), np.float32),
        of_cold=np.zeros((size, _REACH + 1), np.float32),
    )
    for number in range(int(clock.facts[0]["oldest"]), int(clock.facts[0]["next"])):
        old, new = number % len(clock.ring), number % size
        grown.ring[new] = clock.ring[old]
        grown.of_shared[new], grown.of_cold[new] = clock.of_shared[old], clock.of_cold[old]
    return grown


@cache
def _bare(bins: int, areas: int) -> ClockState:
    """Return arrays that all clocks at rest share."""
    return _sized(bins, areas, 1)


def _sized(bins: int, areas: int, ring: int) -> ClockState:
    width = _REACH + 1 if bins else 1
    return ClockState(
        facts=np.zeros(1, record("clock_facts")),
        changes=np.zeros(bins),
        exposure=np.zeros(bins),
        cold_changes=np.zeros((bins, areas)),
        cold_exposure=np.zeros((bins, areas)),
        all_changes=np.zeros(bins),
        all_exposure=np.zeros(bins),
        shared=np.zeros(bins + 1),
        cold=np.zeros((bins + 1, areas)),
        ring=np.zeros(ring, record("interval")),
        of_shared=np.zeros((ring, width), np.float32),
        of_cold=np.zeros((ring, width), np.float32),
    )


# -- a site ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pages:
    """All pages of all sites: (n,) records."""

    page: Records
    structure: Structure = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        made = Structure("pages", self, count=len(self.page))
        object.__setattr__(self, "structure", made)


@dataclass(frozen=True, slots=True)
class SiteState:
    """The state of a site: its facts, the priors by either time, and its visited pages.

    A prior is (areas + 1, 48): that of each area, and in the last row that of the whole site.
    ``rows`` (room,) are those of the pages by their places, which have (room, 48) log-likelihoods
    by either time.
    """

    facts: Records
    prior: Floats
    plain_prior: Floats
    rows: Rows
    likelihood: NDArray[np.float32]
    plain_likelihood: NDArray[np.float32]
    structure: Structure = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "structure", Structure("site", self, room=len(self.rows)))


def unknown_site() -> SiteState:
    """Return the state of a site without visits."""
    facts = np.zeros(1, record("site_facts"))
    facts["mean_rate"] = np.exp(_LOGS.mean())
    facts["fit_at"] = CONSTANTS["FIRST_FIT"]
    prior = np.tile(even(), (AREAS + 1, 1))
    none = np.empty((0, POINTS), np.float32)
    return SiteState(
        facts, prior, prior.copy(), np.empty(0, np.int64), likelihood=none, plain_likelihood=none
    )


#: Where a learner at rest points to, or one without a clock; nobody writes here.
_UNREAD: Final = unknown_site()
_STOPPED: Final = stopped()
_READ: Final = ("facts", "shared", "cold")


def _nothing(known: int) -> NDArray[np.float32]:
    return np.zeros((known, POINTS), np.float32)


@cache
def _unread(count: int) -> NDArray[np.float32]:
    """Return zeros that many may share; nobody writes here."""
    return _nothing(count)


class SiteLearner:
    """The learner of one site; ``pages`` may be another, larger table at each call.

    It can *rest*: then it holds its facts and, where its clock is proven, what hazards are read
    from, and the rest is in the store until it learns again.

    Attributes:
        is_altered: whether it has learnt since it was written there.
    """

    def __init__(self) -> None:
        self.site, self.clock = unknown_site(), _STOPPED
        self.is_altered = True
        self._read: Callable[[], Arrays] | None = None
        self._aside: tuple[SiteState | None, ClockState | None] = None, None

    @property
    def proven(self) -> bool:
        """Return whether the clock predicts better than the days."""
        facts = self.site.facts[0]
        return bool(facts["clocked"] and facts["loss"] < 0)

    @property
    def rows(self) -> Rows:
        """Return the rows of its pages, in the order of their first visits."""
        return self.site.rows[: int(self.site.facts[0]["known"])]

    @property
    def alive(self) -> int:
        """Return the number of visited pages that exist."""
        return int(self.site.facts[0]["alive"])

    # -- rest --

    def written(self) -> Arrays:
        """Return all that it knows."""
        self.wake()
        known, clock = int(self.site.facts[0]["known"]), self.clock
        found = {it.name: getattr(self.site, it.name) for it in fields(SiteState) if it.init}
        found |= {name: found[name][:known] for name in ("rows", "likelihood", "plain_likelihood")}
        found |= {f"clock.{it.name}": getattr(clock, it.name) for it in fields(clock) if it.init}
        ring = np.zeros_like(clock.ring)
        slots = np.arange(clock.facts[0]["oldest"], clock.facts[0]["next"]) % len(ring)
        ring[slots] = clock.ring[slots]
        # Nobody reads what is left of intervals before.
        is_read = np.arange(clock.of_shared.shape[1]) < ring["bins"][:, None]
        for name in ("of_shared", "of_cold"):
            found[f"clock.{name}"] = np.where(is_read, getattr(clock, name), np.float32(0))
        return found | {"clock.ring": ring}

    def held(self) -> Arrays:
        """Return what it holds at rest."""
        names = _READ if self.proven else ()
        held = {f"clock.{name}": getattr(self.clock, name).copy() for name in names}
        return {"facts": self.site.facts.copy(), "rows": self.rows.copy(), **held}

    def rest(self, held: Arrays, read: Callable[[], Arrays]) -> None:
        """Hold this alone; what was :meth:`written` can be ``read``.

        Raises:
            KeyError, TypeError: another version has written it.
        """
        sums = _unread(1 << (len(held["rows"]) - 1).bit_length())[: len(held["rows"])]
        self.site = replace(
            _UNREAD, facts=held["facts"], rows=held["rows"], likelihood=sums, plain_likelihood=sums
        )
        self.clock = _STOPPED
        if self.proven:
            bins, areas = held["clock.cold"].shape
            facts, shared, cold = (held[f"clock.{name}"] for name in _READ)
            bare = _bare(bins - 1, areas)
            self.clock = replace(bare, facts=facts, shared=shared, cold=cold)
        self.is_altered, self._read = False, read

    @contextmanager
    def awake(self) -> Iterator[SiteState]:
        """Read what it has written, if it rests, for a while."""
        before = self.site, self.clock, self._read
        self.wake()
        yield self.site
        if not self.is_altered:
            self.site, self.clock, self._read = before

    def set_aside(self, scratch: Scratch) -> None:
        """Move what nobody else reads into a file, where it stays until it grows, or rests.

        Raises:
            OSError: the disk is full.
        """
        of_site, of_clock = (
            {
                it.name: array.copy() if it.name in kept else scratch.moved(array)
                for it in fields(state)
                if it.init
                for array in [getattr(state, it.name)]
            }
            for state, kept in (
                (self.site, ("facts", "rows")),
                (self.clock, _READ if self.proven else ("facts",)),
            )
        )
        self.site, self.clock = SiteState(**of_site), ClockState(**of_clock)
        self._aside = self.site, self.clock

    @property
    def is_aside(self) -> bool:
        """Return whether all is still where it was :meth:`set_aside`."""
        return self._aside[0] is self.site and self._aside[1] is self.clock

    def wake(self) -> None:
        """Read what it has written, if it rests."""
        if self._read is not None:
            found, self._read = self._read(), None
            names = [it.name for it in fields(SiteState) if it.init]
            self.site = SiteState(**{name: found[name] for name in names})
            names = [it.name for it in fields(ClockState) if it.init]
            self.clock = ClockState(**{name: found[f"clock.{name}"] for name in names})

    # -- learning --

    def learn(self, pages: Pages, visits: Records) -> None:
        """Learn these visits to pages of the site, in their order."""
        self.wake()
        self.is_altered = True
        new = np.count_nonzero(~pages.page["known"][visits["row"]])
        self.make_room(int(self.site.facts[0]["known"]) + int(new))
        done = 0
        while (done := self._learn_from(pages, visits, done)) < len(visits):
            self._grow(pages, visits[done])

    def _learn_from(self, pages: Pages, visits: Records, first: int) -> int:
        states = pages.structure, self.site.structure, self.clock.structure
        return numeric.site_learn(*states, visits, first)

    def make_room(self, pages: int) -> None:
        """Make room for this number of pages."""
        before = len(self.site.rows)
        if pages > before:
            # As few as are certain to come: most sites are met once.
            more = max(pages, before + before // 4) - before
            self.site = replace(
                self.site,
                rows=np.append(self.site.rows, np.zeros(more, np.int64)),
                likelihood=np.concatenate([self.site.likelihood, _nothing(more)]),
                plain_likelihood=np.concatenate([self.site.plain_likelihood, _nothing(more)]),
            )

    def _grow(self, pages: Pages, visit: np.void) -> None:
        """Allocate what the next visit needs."""
        areas = int(pages.page["area"][visit["row"]]) + 1
        if not self.site.facts[0]["clocked"]:
            known = self.site.rows[: self.site.facts[0]["known"]]
            areas = max(areas, int(pages.page["area"][known].max()) + 1)
            self.clock = started(visit["at"], visit["turn"] / _BINS_A_TURN, areas)
            self.site.facts[0]["clocked"] = True
            states = pages.structure, self.site.structure, self.clock.structure
            numeric.site_mark_all(*states)
        elif areas > self.clock.cold.shape[1]:
            most = min(AREAS, max(areas, 2 * self.clock.cold.shape[1]))
            self.clock = with_areas(self.clock, most)
        else:
            self.clock = with_larger_ring(self.clock)

    def write_hazards(self, pages: Pages, now: float, hazard: Floats, rate: Floats) -> None:
        """Write the hazards since the last visits, and the rates a day, by the clock, of (n,)."""
        states = pages.structure, self.site.structure, self.clock.structure
        numeric.site_hazards(*states, now=now, hazard=hazard, rate=rate)
