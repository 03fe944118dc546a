"""Change rates of a site's pages, and the clock of the site, learnt from visits in sessions.

*Sessions.* The visits to a site are divided into sessions. A session begins a day after the
previous one began, or when that has had 2√n visits of n pages. A visit shows whether the page has
changed between two sessions. Between two visits within one session, days count.

*Rates.* The rate γ of a page is one of 40 values, from 1/20,000 to 50 changes a day, evenly spaced
in their logarithm. A page that was unchanged over the time t has the likelihood e^{−γt}, a changed
one 1 − e^{−γt}. The prior is fitted to the pages of the site, by expectation and maximisation, from
a general prior with the weight of eight pages. For a page that presumably changes more often than
others of its site (:func:`~freshet.scheduler.queue.pages.presumed_pace`), the prior is shifted up
on the grid. Rates drift: a page gets a new rate once in 1,500 days on average, and each change is
evaluated with that in mind. So a quiet page that becomes busy is recognised after a few changes,
regardless of how long it was quiet (fixed share, Herbster and Warmuth 1998).

*The clock.* Pages of a site change together: when it is edited, rebuilt or moved. So t is counted
by the clock of the page's area. The clock advances by A[k] days of the site between the sessions k
and k + 1, and by B[g, k] in the area g. These are estimated together with the rates. A change in
the time T counts as λB[k]/(1 − e^{−λT}) of an event in its part k, where λ is the page's mean rate,
and

    A[k] = (κ + events)/(κ/days + exposure)         exposure: Σ λ of the visits that cover k
    B[g, k] = (κ' + events of g)/(κ'/A[k] + exposure of g).

The interval that ends at the present session is estimated again after each of its visits. So a
session that finds unchanged pages turns to other areas, and one that finds changes continues in the
same areas. If the number of changes per session varies no more than for independent pages, the site
keeps calendar days: there, a free clock would see bursts that do not exist.

*Contract.* The state is a function of the visits in their order, regardless of their division into
batches: each fit starts from the recorded visits.

Cost: a visit is recorded in less than a microsecond; a fit, one in a session, takes 2 to 5 µs a
page. Memory: 300 bytes a page, and 40 a change. After 256 sessions, the older half is folded into
likelihoods.

Reference: ours. The loops are in ``site_model.c`` and ``grid.c`` in :mod:`freshet.compiled`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from freshet.compiled import numeric
from freshet.compiled.numeric import CONSTANTS, Records, Singles, Structure, record
from freshet.scheduler.arrays import Arrays, Floats, ScratchArrays
from freshet.scheduler.estimate.bayes import quantile
from freshet.scheduler.sources import Rows

POINTS: Final = int(CONSTANTS["POINTS"])
#: The rates (40,), changes a day, and the prior of a page without any history.
_GRID: Final = numeric.grid_rates()
RATES: Final[Floats] = _GRID[0]
GENERAL_PRIOR: Final[Floats] = _GRID[1]
_SESSIONS: Final = int(CONSTANTS["SESSIONS"])
T = TypeVar("T", bound=np.generic)


def credible_interval(belief: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """Return the bounds, (m,) each, of the central nine tenths of each posterior (m, 40)."""
    logs, posterior = np.log(RATES), belief.astype(np.float64)
    return quantile(posterior, 0.05, logs), quantile(posterior, 0.95, logs)


def points_above(pace: Floats) -> Rows:
    """Return the number of grid points (m,) by which rates are higher for a given ``pace``."""
    found: Rows = np.rint(np.log(pace) / np.log(RATES[1] / RATES[0])).astype(np.intp)
    return np.clip(found, -POINTS, POINTS)


def raised(above: int) -> Floats:
    """Return the general prior (40,), shifted up by ``above`` points."""
    found = np.zeros(POINTS)
    np.add.at(found, np.clip(np.arange(POINTS) + above, 0, POINTS - 1), GENERAL_PRIOR)
    return found


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
    """The recorded visits of a site; its visited pages have positions.

    ``rows`` are the rows of the pages by position, ``base`` (b, 40) their log-likelihoods from
    visits that are no longer recorded.
    """

    facts: Records
    rows: Rows
    notes: Records
    began: Floats
    base: Singles
    structure: Structure = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sizes = {"room": self.rows, "note_room": self.notes, "session_room": self.began}
        numbers = {name: len(array) for name, array in sizes.items()}
        made = Structure("site", self, **numbers, based=len(self.base))
        object.__setattr__(self, "structure", made)


@dataclass(frozen=True, slots=True)
class Fit:
    """The fitted prior (40,), and the readings of the clocks at the beginning of each session.

    ``passed`` is (areas + 1, sessions); the last clock is for areas without a visit.
    """

    prior: Floats
    passed: Floats
    structure: Structure = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        areas, edges = self.passed.shape
        object.__setattr__(self, "structure", Structure("fit", self, areas=areas, edges=edges))


def _unknown() -> SiteState:
    """Return the state of a site without visits."""
    return SiteState(
        facts=np.zeros(1, record("site_facts")),
        rows=np.empty(0, np.int64),
        notes=np.empty(0, record("note")),
        began=np.empty(0),
        base=np.empty((0, POINTS), np.float32),
    )


def _roomier(array: NDArray[T], least: int) -> NDArray[T]:
    """Return the array with at least ``least`` rows, and a quarter more than it had."""
    room = max(least, len(array) + len(array) // 4)
    found = np.zeros((room, *array.shape[1:]), array.dtype)
    found[: len(array)] = array
    return found


#: Columns that only learning needs.
_AT_LEARNING: Final = ("notes", "base")
_UNFITTED: Final = Fit(GENERAL_PRIOR.copy(), np.zeros((1, 1)))


def _fit_of(written: Arrays) -> Fit:
    return Fit(**{it.name: written[f"fit.{it.name}"] for it in fields(Fit) if it.init})


class SiteLearner:
    """The learner of one site; ``pages`` may be another, larger table at each call.

    It can be unloaded (:meth:`rest`): then it holds only the data for reading the clock, and the
    rest is in the store until it learns again.

    Attributes:
        is_altered: whether it has learnt since it was written to the store.
    """

    def __init__(self) -> None:
        self.site = _unknown()
        self.fit = _UNFITTED
        self.is_altered = True
        self._read: Callable[[], Arrays] | None = None
        self._aside: SiteState | None = None

    @property
    def proven(self) -> bool:
        """Return whether the site's changes happen in bursts, so that its clock is used."""
        return bool(self.site.facts[0]["is_clocked"])

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
        """Return the whole state."""
        self.wake()
        facts, site = self.site.facts[0], self.site
        known, notes, sessions = (int(facts[name]) for name in ("known", "notes", "sessions"))
        room = {"rows": known, "notes": notes, "began": sessions}
        found: dict[str, Any] = {
            it.name: getattr(site, it.name) for it in fields(SiteState) if it.init
        }
        found |= {name: found[name][:count].copy() for name, count in room.items()}
        return found | self._fitted()

    def _fitted(self) -> dict[str, Any]:
        return {f"fit.{it.name}": getattr(self.fit, it.name) for it in fields(Fit) if it.init}

    def held(self) -> Arrays:
        """Return the part of the state that stays loaded at rest."""
        facts, began = self.site.facts.copy(), self.site.began
        held: dict[str, Any] = {"facts": facts, "rows": self.rows.copy()}
        held["began"] = began[: int(facts[0]["sessions"])].copy()
        return held | (self._fitted() if self.proven else {})

    def rest(self, held: Arrays, read: Callable[[], Arrays]) -> None:
        """Keep only ``held``; ``read`` returns the :meth:`written` state.

        Raises:
            KeyError, TypeError: if another version wrote it.
        """
        self.site = replace(_unknown(), facts=held["facts"], began=held["began"], rows=held["rows"])
        self.fit = _fit_of(held) if self.proven else _UNFITTED
        self.is_altered, self._read, self._aside = False, read, None

    def set_aside(self, scratch: ScratchArrays) -> None:
        """Move columns that valuations do not need to a file, until they grow or it rests.

        Raises:
            OSError: if the disk is full.
        """
        moved: dict[str, Any] = {
            name: scratch.moved(getattr(self.site, name)) for name in _AT_LEARNING
        }
        self.site = self._aside = replace(self.site, **moved)

    @property
    def is_aside(self) -> bool:
        """Return whether all columns are still where :meth:`set_aside` moved them."""
        return self._aside is self.site

    def wake(self) -> None:
        """Read the written state, if the learner rests."""
        if self._read is not None:
            found, self._read = self._read(), None
            names = [it.name for it in fields(SiteState) if it.init]
            self.site = SiteState(**{name: found[name] for name in names})
            self.fit = _fit_of(found)

    # -- learning --

    def learn(self, pages: Pages, visits: Records, belief: Singles) -> None:
        """Learn these visits to pages of the site, in order.

        ``belief`` (n, 40) is an array for all pages; the rows of the site's pages are written.
        """
        self.wake()
        self.is_altered = True
        done = 0
        while True:
            states = pages.structure, self.site.structure
            done = numeric.site_note(*states, visits, done)
            if done == len(visits):
                break
            self._grow(pages, belief, len(visits) - done)
        if self.site.facts[0]["is_due"]:
            self._fit(pages, belief)

    def _grow(self, pages: Pages, belief: Singles, more: int) -> None:
        """Make room for more visits; fold the older half of too many sessions into likelihoods."""
        site, facts = self.site, self.site.facts[0]
        known, notes, sessions = (int(facts[name]) for name in ("known", "notes", "sessions"))
        grown: dict[str, Any] = {}
        if known == len(site.rows):
            grown["rows"] = _roomier(site.rows, known + min(more, 1 + known // 4))
        if notes == len(site.notes):
            grown["notes"] = _roomier(site.notes, notes + min(more, 16))
        if not grown and sessions == _SESSIONS:
            # A new session begins; its time does not depend on the batch.
            self._fold(pages, belief)
        elif not grown:
            room = _roomier(site.began, sessions + min(more, 8))
            grown["began"] = room[:_SESSIONS]
        self.site = replace(self.site, **grown)

    def _fold(self, pages: Pages, belief: Singles) -> None:
        numeric.site_close(self.site.structure)
        self._fit(pages, belief)
        base = _roomier(self.site.base, len(self.rows))
        self.site = replace(self.site, base=base)
        states = pages.structure, self.site.structure, self.fit.structure
        numeric.site_fold(*states, _SESSIONS // 2)

    def _fit(self, pages: Pages, belief: Singles) -> None:
        areas = int(pages.page["area"][self.rows].max(initial=0)) + 2
        edges = int(self.site.facts[0]["edges"])
        self.fit = Fit(np.empty(POINTS), np.empty((areas, edges)))
        states = pages.structure, self.site.structure, self.fit.structure
        numeric.site_fit(*states, belief)

    def inherit(self, pages: Pages, belief: Singles, new: int, sums: Singles) -> None:
        """Add a page's log-likelihoods (40,) to those of the page at a position."""
        self.wake()
        self.is_altered = True
        base = _roomier(self.site.base, new + 1)
        self.site = replace(self.site, base=base)
        self.site.base[new] += sums
        self._fit(pages, belief)

    def sums(self, place: int) -> Singles:
        """Return the log-likelihoods (40,) of a page from all its visits, by calendar days."""
        self.wake()
        known = place < len(self.site.base)
        found = self.site.base[place].copy() if known else np.zeros(POINTS, np.float32)
        notes = self.site.notes[: int(self.site.facts[0]["notes"])]
        for note in notes[notes["place"] == place]:
            began = self.site.began
            days = float(began[note["stop"]] - began[note["first"]] + note["before"])
            x = RATES * max(days, 1e-6)
            found += (np.log(-np.expm1(-x)) if note["changed"] else -x).astype(np.float32)
        return found

    def write_days(
        self, pages: Pages, belief: Singles, now: float, since: Floats, only: int = -1
    ) -> None:
        """Write the clock's days since the last visits to the site's pages into ``since`` (n,).

        ``only``: write just this row.
        """
        facts = self.site.facts[0]
        if facts["notes"] > facts["closed"]:
            self.wake()
        states = pages.structure, self.site.structure, self.fit.structure
        numeric.site_readings(*states, belief=belief, now=now, only=only, since=since)
