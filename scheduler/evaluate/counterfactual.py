"""Replay of policies on an archive: daily visits, answered from the archive's captures.

A request on day t gets the page's latest capture at or before t. Without one, the request is a
*miss*: not a 404; it costs a fetch and the policy learns nothing. The same holds for a failed
visit. Before ``start`` no requests are made: all policies have the copies of the archive, and have
learnt from its captures as if they had made the visits (an interval policy only from the last one
of each page). After that, a page exists for a policy from the day on which it was ``found``.

There is one fetch every 1/budget days. Fetches are chosen in batches
(:mod:`scheduler.evaluate.serving`) of at most a twentieth of the pages and one day, unless ``step``
sets another length: the pages with the highest values, but first the pages that were found and
never answered, in the order of discovery. After a miss or a failure a page is not requested for a
day, and twice as long after each further one, up to the time in which all pages could be requested.
A visit to a page that is gone has a tenth of the value, and a tenth of that each time that it is
still gone, as in a daemon. Hosts have no limits, and only answers are known. If copies are
``given``, pages that are found come with their first copies: then only refreshing is evaluated.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.estimate.evidence import VisitResults
from freshet.scheduler.evaluate.captures import FAILED, GONE, Captures, content_before
from freshet.scheduler.evaluate.serving import Batch, Progress, serve
from freshet.scheduler.queue.ranker import Ranker
from freshet.scheduler.queue.rankers import IntervalRanker
from freshet.scheduler.sources import Rows

_STEPS_A_TURN: Final = 20.0
_GONE_FACTOR: Final = 0.1
_LEAST_WAIT: Final = 1.0


@dataclass(frozen=True, slots=True)
class ReplayTerms:
    """The settings of a replay; days are days of the archive.

    ``budget`` is fetches a day, ``step`` the days of one batch (None: see the module), ``given``
    whether pages are found with their first copies.
    """

    budget: float
    start: float
    end: float
    step: float | None = None
    given: bool = False


@dataclass(frozen=True, slots=True)
class AskedVisits:
    """k visits in the order of time.

    Attributes:
        rate: (n,), estimated changes a day of each page at the end; NaN: the page was not found.
        copy: (n,), the day of the visit before ``start``; −inf: no copy.
        page: (k,), row of the page.
        at: (k,), day.
        capture: (k,), position of the returned capture; −1: a miss.
        answered: (k,), whether the answer was content, or that the page is gone.
        compared: (k,), whether content was returned and compared with a copy.
        changed: (k,), whether the content differed.
        again: (k,), whether the page's last request had returned the same capture.
        expected: (k,), the ranker's forecast of the probability of a change.
    """

    rate: Floats
    copy: Floats
    page: Rows
    at: Floats
    capture: Rows
    answered: Bools
    compared: Bools
    changed: Bools
    again: Bools
    expected: Floats

    def __len__(self) -> int:
        return len(self.page)


def run(captures: Captures, ranker: Ranker, terms: ReplayTerms, progress: Progress) -> AskedVisits:
    """Return all visits of a policy from ``start`` to ``end``."""
    archive = _ArchiveReplay(captures, ranker, terms)
    archive.catch_up()
    serve(ranker, archive, terms.budget, progress)
    return archive.asks()


#: The columns of :class:`AskedVisits` of length k.
_ASKED: Final = (
    np.intp, np.float64, np.intp, np.bool_, np.bool_, np.bool_, np.bool_, np.float64
)  # fmt: skip


class _ArchiveReplay:
    """An archive as an environment of the serving loop, with the results so far.

    By page: ``_content`` is the number of its copy (GONE: no copy), ``_capture`` the position of
    the last returned capture, ``_visited`` the day of its last answer, ``_gone`` how often in a row
    it was gone, ``_tries`` the number of misses and failures in a row.
    """

    def __init__(self, captures: Captures, ranker: Ranker, terms: ReplayTerms) -> None:
        n = len(captures)
        self._captures, self._ranker, self._terms = captures, ranker, terms
        self._known = 0
        self._now = terms.start
        self._content = np.full(n, GONE, np.int64)
        self._capture = np.full(n, -1, np.intp)
        self._gone = np.zeros(n, np.int64)
        self._tries = np.zeros(n, np.int64)
        self._not_before = np.full(n, -np.inf)
        self._visited = np.full(n, -np.inf)
        self._copy = np.full(n, -np.inf)
        self._asked: list[Sequence[NDArray[Any]]] = [[np.empty(0, kind) for kind in _ASKED]]
        self._turn = max(n, 1) / terms.budget

    def catch_up(self) -> None:
        """Teach a policy the archive before the start."""
        self.advance(self._terms.start)
        captures = self._captures
        early = captures.at <= self._terms.start
        read = np.flatnonzero(early & (captures.content != FAILED))
        page, at, content = captures.page[read], captures.at[read], captures.content[read]
        before = content_before(page, content)
        compared = (content >= 0) & (before >= 0)
        changed = compared & (content != before)
        visits = VisitResults(
            row=page, at=at, compared=compared, changed=changed, gone=content == GONE, moved=changed
        )
        self._ranker.learn(visits.take(np.argsort(at, kind="stable")))
        if isinstance(self._ranker, IntervalRanker):
            self._ranker.restart()
        # In an assignment by page, the last capture of a page counts.
        self._visited[page] = self._copy[page] = at
        self._capture[captures.page[early]] = np.flatnonzero(early)
        self._content[page] = np.where(content >= 0, content, before)
        self._gone[page] = _in_a_row(page, content == GONE)

    def batches(self, budget: float) -> Iterator[Batch]:
        """Yield the visits that are due, one every 1/``budget`` days."""
        start, end, step = self._terms.start, self._terms.end, self._terms.step
        step = step or max(min(self._turn / _STEPS_A_TURN, 1.0), 1.0 / budget)
        number, now, asked = 0, start, 0
        while now < end:
            number += 1
            until = min(start + number * step, end)
            due = int(np.floor(budget * (until - start) * (1 + 1e-12)))
            yield now, start + np.arange(asked + 1, due + 1) / budget
            now, asked = until, due

    def visit(self, rows: Rows, at: Floats) -> VisitResults:
        """Return the archive's captures of these pages."""
        expected = self._expected(rows, at)
        places = self._captures.latest(rows, at)
        again = (places >= 0) & (places == self._capture[rows])
        *answer, visits = self._take(rows, at, places)
        self._asked.append((rows, at, places, *answer, again, expected))
        return visits

    def asks(self) -> AskedVisits:
        """Return all visits; add the pages that were found last."""
        self.advance(self._terms.end)
        columns = map(np.concatenate, zip(*self._asked, strict=True))
        rate = np.full(len(self._captures), np.nan)
        rate[: self._known] = self._ranker.beliefs(self._terms.end).rate
        return AskedVisits(rate, self._copy, *columns)

    def _expected(self, rows: Rows, at: Floats) -> Floats:
        """Return the forecast probabilities of change."""
        believed = self._ranker.beliefs(self._now)
        ahead = np.maximum(at - self._now, 0.0)
        expected: Floats = -np.expm1(-believed.hazard[rows] - believed.rate[rows] * ahead)
        return expected

    def advance(self, now: float) -> None:
        """Add the pages that were found until now."""
        self._now = now
        captures, first = self._captures, self._known
        self._known = int(np.searchsorted(captures.found, now, "right"))
        new = slice(first, self._known)
        if first == self._known:
            return
        found = captures.found[new]
        self._ranker.add(captures.host[new], captures.area[new], captures.importance[new], found)
        if self._terms.given and found[-1] > self._terms.start:
            rows = np.arange(first, self._known)[found > self._terms.start]
            places = captures.latest(rows, captures.found[rows])
            self._ranker.learn(self._take(rows, captures.found[rows], places)[-1])
            self._copy[rows] = self._visited[rows]

    def weighed(self, value: Floats, now: float) -> Floats:
        """Return (known,), the values for the choice; 0: not now."""
        known = slice(0, self._known)
        if value.shape != (self._known,):
            raise ValueError(f"returns {value.shape} values for {self._known} pages")
        value = value * _GONE_FACTOR ** np.minimum(self._gone[known], 300)
        new = np.flatnonzero(np.isneginf(self._visited[known]))
        # The largest floating-point numbers, descending with the rows.
        value[new] = np.finfo(float).max * (1 - np.arange(len(new)) / max(4 * len(new), 1))
        value[self._not_before[known] > now] = 0.0
        return value

    def _take(
        self, rows: Rows, at: Floats, places: Rows
    ) -> tuple[Bools, Bools, Bools, VisitResults]:
        """Apply results, one for each page: (answered, compared, changed); return the visits."""
        got = np.where(places >= 0, self._captures.content[places], FAILED)
        answered, content = got != FAILED, got >= 0
        compared = content & (self._content[rows] >= 0)
        changed = compared & (got != self._content[rows])
        gone = got == GONE
        self._wait(rows[~answered], at[~answered])
        mine = rows[answered]
        self._tries[mine] = 0
        self._not_before[mine] = -np.inf
        self._visited[mine] = at[answered]
        self._gone[mine] = np.where(gone[answered], self._gone[mine] + 1, 0)
        self._content[rows[content]] = got[content]
        self._capture[rows] = np.where(places >= 0, places, self._capture[rows])
        taught = compared[answered], changed[answered], gone[answered], changed[answered]
        return answered, compared, changed, VisitResults(mine, at[answered], *taught)

    def _wait(self, rows: Rows, at: Floats) -> None:
        tries = np.minimum(self._tries[rows], 40)
        self._tries[rows] = tries + 1
        wait = np.minimum(_LEAST_WAIT * 2.0**tries, max(self._turn, _LEAST_WAIT))
        self._not_before[rows] = at + wait


def _in_a_row(page: Rows, flags: Bools) -> Ints:
    """Return (k,), the number of consecutive flags of a page up to each position."""
    place = np.arange(len(page))
    begins = ~flags
    begins[1:] |= page[1:] != page[:-1]
    begins[:1] = True
    since = np.maximum.accumulate(np.where(begins, place, 0))
    counted: Ints = place - since + flags[since]
    return counted
