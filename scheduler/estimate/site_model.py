"""Change rates of a site's pages, and the clock of the site, learnt from visits in sessions.

*Sessions.* The visits to a site are cut into sessions. One begins a day after the one before, or
when that has had 2√n visits of n pages. A visit says whether the page has changed between two
sessions. Between two visits within one session days count.

*Rates.* The rate γ of a page is one of 40, from 1/20,000 to 50 changes a day and evenly spaced in
their logarithm. A page that was unchanged over the time t has the likelihood e^{−γt}, a changed one
1 − e^{−γt}. The prior is fitted to the pages of the site, by expectation and maximisation, from a
general one that weighs as much as eight pages. That of a page which presumably changes more often
than others of its site (:func:`~freshet.scheduler.queue.pages.presumed_pace`) is the same one,
moved up by as many points. Rates drift: a page gets another one once in 1,500 days, and each change
is judged by that. So a quiet page that turns busy is believed after a few changes, however long it
was quiet (fixed share, Herbster and Warmuth 1998).

*The clock.* Pages of a site change together: when it is edited, rebuilt or moved. So t is counted
by the clock of the page's area. It goes A[k] days of the site between the sessions k and k + 1, and
B[g, k] in the area g. They are found with the rates. A change in the time T has λB[k]/(1 − e^{−λT})
of an event in its part k, where λ is the page's mean rate, and

    A[k] = (κ + events)/(κ/days + exposure)         exposure: Σ λ of the visits that cover k
    B[g, k] = (κ' + events of g)/(κ'/A[k] + exposure of g).

The interval that ends at the present session is estimated anew after each of its visits. So a
session that meets unchanged pages turns to other areas, and one that meets changes goes on where
they are. A site whose changes a session vary no more than those of independent pages keeps calendar
days: there a free clock would see bursts that do not exist.

*Law.* What is known is a function of the visits in their order, however they are divided into
batches: a fit begins anew from what is noted, whenever somebody asks.

Cost: a visit is noted in less than a microsecond; a fit, one in a session, takes 2 to 5 µs a page.
Memory: 300 bytes a page, and 40 a change. Of 256 sessions the older half goes into likelihoods.

Reference: ours. The loops are those of ``site_model.c`` and ``grid.c`` in :mod:`freshet.compiled`.
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
#: The rates (40,), changes a day, and the prior of a page of which nothing is known.
_GRID: Final = numeric.grid_rates()
RATES: Final[Floats] = _GRID[0]
GENERAL_PRIOR: Final[Floats] = _GRID[1]
_SESSIONS: Final = int(CONSTANTS["SESSIONS"])
T = TypeVar("T", bound=np.generic)


def credible_interval(belief: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """Return the rates, (m,) each, between which nine tenths of each posterior (m, 40) lie."""
    logs, posterior = np.log(RATES), belief.astype(np.float64)
    return quantile(posterior, 0.05, logs), quantile(posterior, 0.95, logs)


def points_above(pace: Floats) -> Rows:
    """Return by how many points of the grid (m,) rates that are ``pace`` times as large are higher.

    >>> points_above(np.array([1.0, 3.0, 0.25])).tolist()
    [0, 3, -4]
    """
    found: Rows = np.rint(np.log(pace) / np.log(RATES[1] / RATES[0])).astype(np.intp)
    return np.clip(found, -POINTS, POINTS)


def raised(above: int) -> Floats:
    """Return the general prior (40,) of a page whose rate is so many points above the usual."""
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
    """The notes of a site; its visited pages have places.

    ``rows`` are those of the pages by their places, ``base`` (b, 40) their log-likelihoods by what
    is noted no more.
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
    """The prior (40,) that the notes give, and how far clocks had gone when each session began.

    ``passed`` is (areas + 1, sessions); the last clock is that of areas without a visit.
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
    """Return the array with room for this number of rows, and a quarter more than it had."""
    room = max(least, len(array) + len(array) // 4)
    found = np.zeros((room, *array.shape[1:]), array.dtype)
    found[: len(array)] = array
    return found


#: What is needed to learn alone.
_AT_LEARNING: Final = ("notes", "base")
_UNFITTED: Final = Fit(GENERAL_PRIOR.copy(), np.zeros((1, 1)))


def _fit_of(written: Arrays) -> Fit:
    return Fit(**{it.name: written[f"fit.{it.name}"] for it in fields(Fit) if it.init})


class SiteLearner:
    """The learner of one site; ``pages`` may be another, larger table at each call.

    It can *rest*: then it holds what days of the clock are read from, and the rest is in the store
    until it learns again.

    Attributes:
        is_altered: whether it has learnt since it was written there.
    """

    def __init__(self) -> None:
        self.site = _unknown()
        self.fit = _UNFITTED
        self.is_altered = True
        self._read: Callable[[], Arrays] | None = None
        self._aside: SiteState | None = None

    @property
    def proven(self) -> bool:
        """Return whether the changes of the site come in bursts, so that its clock counts."""
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
        """Return all that it knows."""
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
        """Return what it holds at rest."""
        facts, began = self.site.facts.copy(), self.site.began
        held: dict[str, Any] = {"facts": facts, "rows": self.rows.copy()}
        held["began"] = began[: int(facts[0]["sessions"])].copy()
        return held | (self._fitted() if self.proven else {})

    def rest(self, held: Arrays, read: Callable[[], Arrays]) -> None:
        """Hold this alone; what was :meth:`written` can be ``read``.

        Raises:
            KeyError, TypeError: another version has written it.
        """
        self.site = replace(_unknown(), facts=held["facts"], began=held["began"], rows=held["rows"])
        self.fit = _fit_of(held) if self.proven else _UNFITTED
        self.is_altered, self._read, self._aside = False, read, None

    def set_aside(self, scratch: ScratchArrays) -> None:
        """Move what valuations do not read into a file, where it stays until it grows, or rests.

        Raises:
            OSError: the disk is full.
        """
        moved: dict[str, Any] = {
            name: scratch.moved(getattr(self.site, name)) for name in _AT_LEARNING
        }
        self.site = self._aside = replace(self.site, **moved)

    @property
    def is_aside(self) -> bool:
        """Return whether all is still where it was :meth:`set_aside`."""
        return self._aside is self.site

    def wake(self) -> None:
        """Read what it has written, if it rests."""
        if self._read is not None:
            found, self._read = self._read(), None
            names = [it.name for it in fields(SiteState) if it.init]
            self.site = SiteState(**{name: found[name] for name in names})
            self.fit = _fit_of(found)

    # -- learning --

    def learn(self, pages: Pages, visits: Records, belief: Singles) -> None:
        """Learn these visits to pages of the site, in their order.

        ``belief`` (n, 40) of all pages is written for those of the site.
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
        """Make room for visits to come; let likelihoods take in the older half of many sessions."""
        site, facts = self.site, self.site.facts[0]
        known, notes, sessions = (int(facts[name]) for name in ("known", "notes", "sessions"))
        grown: dict[str, Any] = {}
        if known == len(site.rows):
            grown["rows"] = _roomier(site.rows, known + min(more, 1 + known // 4))
        if notes == len(site.notes):
            grown["notes"] = _roomier(site.notes, notes + min(more, 16))
        if not grown and sessions == _SESSIONS:
            # A session is to begin: when that is does not depend on the batch.
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
        """Take over the log-likelihoods (40,) of a page for the one in a place."""
        self.wake()
        self.is_altered = True
        base = _roomier(self.site.base, new + 1)
        self.site = replace(self.site, base=base)
        self.site.base[new] += sums
        self._fit(pages, belief)

    def sums(self, place: int) -> Singles:
        """Return the log-likelihoods (40,) of a page by all that is noted, by the days."""
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
        """Write the days of the site's clock since the last visits to its pages, of (n,).

        ``only``: to that in one row.
        """
        facts = self.site.facts[0]
        if facts["notes"] > facts["closed"]:
            self.wake()
        states = pages.structure, self.site.structure, self.fit.structure
        numeric.site_readings(*states, belief=belief, now=now, only=only, since=since)
