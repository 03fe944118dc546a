"""What looks at archived pages cost, between what the archive proves and what it allows.

A gap that holds a change lies between a copy, looked at on day s, and day t in one of three ways:
before s, after it, or around it. N(t), the changes since the look, is at each moment bounded by

    optimistic   the gaps that hold a change, begin at s or later, and have ended by t
    early        the gaps that hold a change, end after s, and have begun by t
    pessimistic  as early, and one more while t or s lies in an open gap, or t in the same gap

A change in the gap comes somewhere in (since, at]. The first two are the least and the most N(t)
of all histories that show these captures and no changes but those that the archive proves, for
whoever fetched at these moments. The third allows that a page was another one for the whole of an
open gap, and came back before its end; a look in the gap may have taken that for the page. It is
the most of all histories in which this is all that is hidden: how often a page may have changed
unseen knows no bound, and so neither does H(N). Where captures stand until the next ones begin, as
in a complete history, the three are one.

A page of which there is no copy yet has missed its own appearance: one more change.

Costs are time averages as of :mod:`scheduler.freshness`: H(N) and 1{N > 0} over the time that
counts (:mod:`freshet.scheduler.counterfactual.timeline`), as sums over each page, in days.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from freshet.scheduler.arguments import Bools, Floats, Ints
from freshet.scheduler.compiling import compiled, part
from freshet.scheduler.counterfactual.timeline import Timeline
from freshet.scheduler.harmonics import harmonic_number

#: The places of costs in :attr:`Bill.pages` and :attr:`Bill.days`.
HARMONIC: Final = slice(0, 3)
BINARY: Final = slice(3, 6)
#: Days that counted, days with a copy, and the ages of copies added up, in days².
COUNTED: Final = 6
COPIED: Final = 7
AGE: Final = 8
_COLUMNS: Final = 9


class Looked(NamedTuple):
    """k looks that were answered, those of a page together and in the order of time.

    Attributes:
        offsets: (n + 1,), where those of each page begin, and where the last ones end.
        at: (k,), days.
        copy: (n,), the day of the look before them all; −inf: there is no copy.
    """

    offsets: Ints
    at: Floats
    copy: Floats


@dataclass(frozen=True, slots=True)
class Bill:
    """What copies cost, not weighted with importance by page, and weighted by day.

    Attributes:
        pages: (n, 9), sums by page: harmonic cost, optimistic, early and pessimistic; binary cost,
            likewise; days that counted, those with a copy, the integral of the copy's age.
        days: (d, 9), the same of all pages by day. Ages are those of the middle of a stretch in
            which nothing happened.
    """

    pages: Floats
    days: Floats


class _Known(NamedTuple):
    """The columns of a :class:`Timeline`."""

    offsets: Ints
    since: Floats
    at: Floats
    until: Floats
    appears: Bools
    changed: Bools
    counts: Bools
    gap_counts: Bools


class _Sums(NamedTuple):
    """Where costs are added up; ``steps`` are to be summed up and added to ``bins``."""

    pages: Floats
    bins: Floats
    steps: Floats
    importance: Floats
    harmonic: Floats
    start: float


def bill(timeline: Timeline, looked: Looked, importance: Floats, start: float, end: float) -> Bill:
    """What the copies cost between two days, by page and by day.

    Cost: O(captures + looks), and as many more as looks fall into one gap.
    """
    days = int(np.ceil(end - start))
    most = int(np.diff(timeline.offsets).max(initial=0)) + 3
    sums = _Sums(
        np.zeros((len(timeline), _COLUMNS)),
        # One more, for what ends with the last day.
        np.zeros((days + 2, _COLUMNS)),
        np.zeros((days + 2, _COLUMNS)),
        importance,
        np.asarray(harmonic_number(np.arange(most)), np.float64),
        float(start),
    )
    known = _Known(
        timeline.offsets, timeline.since, timeline.at, timeline.until, timeline.appears,
        timeline.changed, timeline.counts, timeline.gap_counts,
    )  # fmt: skip
    _sweep(known, looked, sums, float(end))
    return Bill(sums.pages, (sums.bins + np.cumsum(sums.steps, axis=0))[:days])


@compiled
def _sweep(known: _Known, looked: Looked, sums: _Sums, end: float) -> None:
    """Go through each page's looks, and from each to the next through the captures."""
    for page in range(len(known.offsets) - 1):
        place, stop = known.offsets[page], known.offsets[page + 1]
        last = looked.offsets[page + 1]
        for k in range(looked.offsets[page] - 1, last):
            look = looked.copy[page] if k < looked.offsets[page] else looked.at[k]
            until = min(looked.at[k + 1], end) if k + 1 < last else end
            while place < stop and known.at[place] <= look and known.until[place] <= look:
                place += 1
            _interval(known, sums, page, place, look, until)


@part
def _interval(known: _Known, sums: _Sums, page: int, first: int, look: float, end: float) -> None:
    """Add what a copy cost from its look to the next one."""
    certain, possible, hidden = 0, 0, 0
    for k in range(first, known.offsets[page + 1]):
        since, at = known.since[k], known.at[k]
        if since >= end:
            break
        missed = at > look and (known.changed[k] or (known.appears[k] and look == -np.inf))
        unsure = known.gap_counts[k] and not known.changed[k] and since < at
        if unsure and since < look < at:
            hidden = 1
        if missed:
            possible += 1
        if known.gap_counts[k]:
            feared = possible + (1 if unsure else hidden)
            _add(sums, page, max(since, look), min(at, end), look, (certain, possible, feared))
        if missed and since >= look:
            certain += 1
        if known.counts[k]:
            until = min(known.until[k], end)
            counts = (certain, possible, possible + hidden)
            _add(sums, page, max(at, look), until, look, counts)


@part
def _add(
    sums: _Sums, page: int, begin: float, end: float, look: float, missed: tuple[int, int, int]
) -> None:
    """Add a stretch of time in which nothing happens but that the copy ages."""
    begin = max(begin, sums.start) - sums.start
    end = end - sums.start
    if end <= begin:
        return
    copied = look > -np.inf
    age = (begin + end) / 2 + sums.start - look if copied else 0.0
    weight = sums.importance[page]
    for column in range(9):
        if column < 3:
            value = sums.harmonic[missed[column]]
        elif column < 6:
            value = 1.0 if missed[column - 3] > 0 else 0.0
        else:
            value = (1.0, 1.0 if copied else 0.0, age)[column - 6]
        sums.pages[page, column] += value * (end - begin)
        first, last = int(begin), int(end)
        if first == last:
            sums.bins[first, column] += weight * value * (end - begin)
        else:
            sums.bins[first, column] += weight * value * (first + 1 - begin)
            sums.bins[last, column] += weight * value * (end - last)
            sums.steps[first + 1, column] += weight * value
            sums.steps[last, column] -= weight * value
