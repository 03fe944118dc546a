"""A policy before an archive: it asks for pages day by day, and gets what the archive has.

An ask of day t gets the page's latest capture at or before t. Where that is none, it is a *miss*:
no 404, it teaches nothing and costs a fetch. A failed visit likewise. Before ``start`` nothing is
asked: all policies have the copies of the archive, and have learnt from its captures as from looks
of their own (an interval policy from the last one of each page). From then on a page exists for
them from the day on which it was ``found``.

One fetch every 1/budget days. They are chosen some together, a twentieth of the pages at most and
not more than those of a day, unless ``step`` says otherwise: the worthiest pages, those that were
found and never answered before all others, in the order in which they were found. What has just
missed or failed is left alone for a day, for twice as long each further time, up to the time in
which all pages could be asked; a look at what is gone is worth a tenth, and a tenth of that each
time that it is still gone, as it is to a daemon. No host has a limit, and nothing but answers is
heard. Where copies are ``given``, pages that are found bring theirs along: only refreshing is
judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler import policy
from freshet.scheduler.agenda.ranker import Beliefs
from freshet.scheduler.agenda.rankers import ByIndex, ByRate, Learning
from freshet.scheduler.agenda.site_clock_ranker import ByClock
from freshet.scheduler.arrays import Bools, Column, Floats, Ints
from freshet.scheduler.estimate.observations import VisitResults
from freshet.scheduler.evaluate.captures import FAILED, GONE, Captures, content_before
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.policy import IndexPolicy, IntervalPolicy, Pace, RatePolicy, Revisit
from freshet.scheduler.sources import Rows

# -- askers ------------------------------------------------------------------
#
# Policies as they stand before an archive: what is worth asking for, learning from answers.
#
# All learn from answers and nothing else. Index and rate policies share the learning of
# :mod:`scheduler.agenda.rankers`, a batch at a time; ``greedy_index`` is what the daemon makes
# of it (:mod:`freshet.scheduler.agenda.site_clock_ranker`); interval policies keep their paces.


class Asker(Protocol):
    """What a run asks of a policy, as of a :class:`~freshet.scheduler.agenda.ranker.Refresher`."""

    def add(self, site: Rows, area: Rows, importance: Floats, at: Floats) -> None:
        """Append rows: pages of these sites and areas (integer codes), found on these days."""
        ...

    def learn(self, looks: VisitResults) -> None:
        """Take in what was found, in the order of time."""
        ...

    def worth(self, now: float) -> Floats:
        """(n,), what a look at each page is worth on this day; 0: it is not to be asked for."""
        ...

    def beliefs(self, now: float) -> Beliefs | None:
        """What is thought of all pages on this day; None where there are no such beliefs."""
        ...

    def replan(self, budget: float, now: float) -> None:
        """Take it that ``budget`` looks a day can be paid from now on."""
        ...


class Paced:
    """An :class:`Asker` for an interval policy: the most overdue first, and nothing before it is.

    Servers do not say when a page changed: a policy learns when a look last saw a change.
    """

    def __init__(self, interval_policy: IntervalPolicy) -> None:
        self._policy = interval_policy
        self._paces: list[Pace | None] = []
        self._due = Column[np.float64](np.float64)
        self._modified = Column[np.float64](np.float64)

    def add(self, site: Rows, area: Rows, importance: Floats, at: Floats) -> None:
        """Append rows, which have no pace before the first look."""
        self._paces += [None] * len(at)
        self._due.extend(np.full(len(at), np.inf))
        self._modified.extend(at)

    def learn(self, looks: VisitResults) -> None:
        """Set the paces of what was looked at."""
        due, modified = self._due.rows, self._modified.rows
        rows, days, changed = looks.row.tolist(), looks.at.tolist(), looks.changed.tolist()
        for row, at, is_changed in zip(rows, days, changed, strict=True):
            before = self._paces[row]
            if is_changed or before is None:
                modified[row] = at
            revisit = Revisit(at, is_changed, float(modified[row]))
            pace = self._paces[row] = self._policy.next_interval(before, revisit)
            due[row] = pace.due_at

    def worth(self, now: float) -> Floats:
        """(n,), days overdue."""
        late: Floats = np.maximum(now - self._due.rows, 0.0)
        return late

    def beliefs(self, now: float) -> Beliefs | None:
        """It has none."""
        return None

    def replan(self, budget: float, now: float) -> None:
        """It knows no budget."""


def shown(asker: Asker, looks: VisitResults) -> VisitResults:
    """Of these looks, made by somebody else, those that a policy learns from.

    Change rates are learnt from all of them. An interval is set by the looks that it brought
    about: there the last one of each page is where it begins.
    """
    if not isinstance(asker, Paced):
        return looks
    _, last = np.unique(looks.row[::-1], return_index=True)
    return looks.take(np.sort(len(looks) - 1 - last))


def asker_of(specification: str) -> Asker:
    """What asks by the policy of this name, ``NAME`` or ``NAME:OPTION=VALUE,…``.

    Raises:
        PolicyError: there is none of this name, or an option or value is not accepted.
    """
    chosen = policy.load(specification)
    if isinstance(chosen, GreedyIndex):
        return ByClock()
    if isinstance(chosen, IndexPolicy):
        return ByIndex(chosen, Learning(together=True))
    if isinstance(chosen, RatePolicy):
        return ByRate(chosen, learning=Learning(together=True))
    return Paced(chosen)


_STEPS_A_TURN: Final = 20.0
_GONE_FACTOR: Final = 0.1
_LEAST_WAIT: Final = 1.0

#: Told the day that a run has reached.
Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms a policy asks; days are those of the archive.

    ``budget`` is fetches a day, ``step`` the days for which they are chosen together (None: as
    the module says), ``given`` whether pages bring their first copies along.
    """

    budget: float
    start: float
    end: float
    step: float | None = None
    given: bool = False


@dataclass(frozen=True, slots=True)
class Asks:
    """k asks in the order of time.

    Attributes:
        page: (k,), row of the page.
        at: (k,), day.
        capture: (k,), place of the capture that was got; −1: a miss.
        answered: (k,), whether it was content, or that the page is gone.
        compared: (k,), whether content came that could be compared with a copy.
        changed: (k,), whether it was another one.
        again: (k,), whether it was what the page's last ask had got.
        expected: (k,), the probability of change that the policy foretold; NaN: it did not.
        rate: (n,), changes a day of each page as believed in the end; NaN likewise.
        copy: (n,), the day of the look before ``start``; −inf: none.
    """

    page: Rows
    at: Floats
    capture: Rows
    answered: Bools
    compared: Bools
    changed: Bools
    again: Bools
    expected: Floats
    rate: Floats
    copy: Floats

    def __len__(self) -> int:
        return len(self.page)


def run(captures: Captures, asker: Asker, terms: Terms, progress: Progress) -> Asks:
    """All asks of a policy from ``start`` to ``end``."""
    course = _Course(captures, asker, terms)
    course.catch_up()
    turn = max(len(captures), 1) / terms.budget
    step = terms.step or max(min(turn / _STEPS_A_TURN, 1.0), 1.0 / terms.budget)
    number, now = 0, terms.start
    while now < terms.end:
        number += 1
        until = min(terms.start + number * step, terms.end)
        course.go(now, until)
        progress(until)
        now = until
    return course.asks()


_ASK = np.dtype(
    [
        ("page", np.intp),
        ("at", np.float64),
        ("capture", np.intp),
        ("answered", np.bool_),
        ("compared", np.bool_),
        ("changed", np.bool_),
        ("again", np.bool_),
        ("expected", np.float64),
    ]
)


class _Course:
    """What a policy has got so far, by page.

    ``_content`` is the number of its copy (GONE: none), ``_capture`` the place of what it got
    last, ``_looked`` the day of its last answer, ``_gone`` how often in a row it was gone,
    ``_tries`` how often it missed or failed.
    """

    def __init__(self, captures: Captures, asker: Asker, terms: Terms) -> None:
        n = len(captures)
        self._captures, self._asker, self._terms = captures, asker, terms
        self._known = 0
        self._content = np.full(n, GONE, np.int64)
        self._capture = np.full(n, -1, np.intp)
        self._gone = np.zeros(n, np.int64)
        self._tries = np.zeros(n, np.int64)
        self._not_before = np.full(n, -np.inf)
        self._looked = np.full(n, -np.inf)
        self._copy = np.full(n, -np.inf)
        self._asked = 0
        self._parts: list[NDArray[np.void]] = [np.empty(0, _ASK)]
        self._turn = max(n, 1) / terms.budget

    def catch_up(self) -> None:
        """See what the archive shows until the start."""
        self._asker.replan(self._terms.budget, self._terms.start)
        self._find(self._terms.start)
        captures = self._captures
        early = captures.at <= self._terms.start
        told = np.flatnonzero(early & (captures.content != FAILED))
        page, at, content = captures.page[told], captures.at[told], captures.content[told]
        before = content_before(page, content)
        compared = (content >= 0) & (before >= 0)
        changed = compared & (content != before)
        looks = VisitResults(page, at, compared, changed, content == GONE, changed)
        self._asker.learn(shown(self._asker, looks.take(np.argsort(at, kind="stable"))))
        # What comes last in a page stays.
        self._looked[page] = self._copy[page] = at
        self._capture[captures.page[early]] = np.flatnonzero(early)
        self._content[page] = np.where(content >= 0, content, before)
        self._gone[page] = _in_a_row(page, content == GONE)

    def go(self, now: float, until: float) -> None:
        """Ask what is paid for from one day to the next."""
        self._find(now)
        due = int(np.floor(self._terms.budget * (until - self._terms.start) * (1 + 1e-12)))
        count = due - self._asked
        if count <= 0 or not self._known:
            self._asked = due
            return
        worth = self._worth(now)
        rows = _largest(worth, count)
        at = self._terms.start + (self._asked + 1 + np.arange(len(rows))) / self._terms.budget
        self._asked = due
        asked = np.zeros(len(rows), _ASK)
        asked["page"], asked["at"], asked["expected"] = rows, at, self._expected(rows, at, now)
        asked["capture"] = places = self._captures.latest(rows, at)
        asked["again"] = (places >= 0) & (places == self._capture[rows])
        asked["answered"], asked["compared"], asked["changed"] = self._take(rows, at, places)
        self._parts.append(asked)

    def asks(self) -> Asks:
        """All that was asked; brings the pages along that were found last."""
        self._find(self._terms.end)
        ask = np.concatenate(self._parts)
        rate = np.full(len(self._captures), np.nan)
        believed = self._asker.beliefs(self._terms.end)
        if believed is not None:
            rate[: self._known] = believed.rate
        return Asks(
            ask["page"].copy(), ask["at"].copy(), ask["capture"].copy(), ask["answered"].copy(),
            ask["compared"].copy(), ask["changed"].copy(), ask["again"].copy(),
            ask["expected"].copy(), rate, self._copy,
        )  # fmt: skip

    def _expected(self, rows: Rows, at: Floats, now: float) -> Floats:
        """The probabilities of change that are foretold; NaN where none are."""
        believed = self._asker.beliefs(now)
        if believed is None:
            return np.full(len(rows), np.nan)
        ahead = np.maximum(at - now, 0.0)
        expected: Floats = -np.expm1(-believed.hazard[rows] - believed.rate[rows] * ahead)
        return expected

    def _find(self, now: float) -> None:
        """Let the policy know the pages that were found by now."""
        captures, first = self._captures, self._known
        self._known = int(np.searchsorted(captures.found, now, "right"))
        new = slice(first, self._known)
        if first == self._known:
            return
        found = captures.found[new]
        self._asker.add(captures.host[new], captures.area[new], captures.importance[new], found)
        if self._terms.given and found[-1] > self._terms.start:
            rows = np.arange(first, self._known)[found > self._terms.start]
            self._take(rows, captures.found[rows], captures.latest(rows, captures.found[rows]))
            self._copy[rows] = self._looked[rows]

    def _worth(self, now: float) -> Floats:
        """(known,), by what is asked for; 0: not now."""
        known = slice(0, self._known)
        worth = np.asarray(self._asker.worth(now), np.float64)
        if worth.shape != (self._known,) or not np.isfinite(worth).all() or worth.min() < 0:
            raise ValueError("values pages with something else than finite numbers of at least 0")
        worth = worth * _GONE_FACTOR ** np.minimum(self._gone[known], 300)
        new = np.flatnonzero(np.isneginf(self._looked[known]))
        # The largest numbers there are, in the order of the rows.
        worth[new] = np.finfo(float).max * (1 - np.arange(len(new)) / max(4 * len(new), 1))
        worth[self._not_before[known] > now] = 0.0
        return worth

    def _take(self, rows: Rows, at: Floats, places: Rows) -> tuple[Bools, Bools, Bools]:
        """Take answers in, a page once: (answered, compared, changed)."""
        got = np.where(places >= 0, self._captures.content[places], FAILED)
        answered, content = got != FAILED, got >= 0
        compared = content & (self._content[rows] >= 0)
        changed = compared & (got != self._content[rows])
        gone = got == GONE
        self._wait(rows[~answered], at[~answered])
        mine = rows[answered]
        self._tries[mine] = 0
        self._not_before[mine] = -np.inf
        self._looked[mine] = at[answered]
        self._gone[mine] = np.where(gone[answered], self._gone[mine] + 1, 0)
        self._content[rows[content]] = got[content]
        self._capture[rows] = np.where(places >= 0, places, self._capture[rows])
        self._asker.learn(
            VisitResults(
                mine, at[answered], compared[answered], changed[answered], gone[answered],
                changed[answered],
            )
        )  # fmt: skip
        return answered, compared, changed

    def _wait(self, rows: Rows, at: Floats) -> None:
        tries = np.minimum(self._tries[rows], 40)
        self._tries[rows] = tries + 1
        wait = np.minimum(_LEAST_WAIT * 2.0**tries, max(self._turn, _LEAST_WAIT))
        self._not_before[rows] = at + wait


def _largest(worth: Floats, count: int) -> Rows:
    """The rows of the ``count`` largest values above 0, the largest first, ties by row."""
    some = np.flatnonzero(worth > 0)
    if count < len(some):
        bar = np.partition(worth[some], len(some) - count)[len(some) - count]
        above = some[worth[some] > bar]
        some = np.concatenate([above, some[worth[some] == bar][: count - len(above)]])
    return some[np.lexsort((some, -worth[some]))]


def _in_a_row(page: Rows, flags: Bools) -> Ints:
    """(k,), how many flags of a page stand in a row up to each place."""
    place = np.arange(len(page))
    begins = ~flags
    begins[1:] |= page[1:] != page[:-1]
    begins[:1] = True
    since = np.maximum.accumulate(np.where(begins, place, 0))
    counted: Ints = place - since + flags[since]
    return counted
