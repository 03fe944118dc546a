"""Maximum-likelihood change rates from crawls (Kolobov et al. 2019, eq. 10).

A source changes as a Poisson process of rate Δ. Two crawls that lie a days apart are compared:
they differ with probability 1 − e^{−aΔ}, are equal with probability e^{−aΔ}. Maximising the
product of these over all intervals a_j, z_j = 1 where the two crawls differed, means

    Σ_{z_j=1} a_j/(e^{a_jΔ} − 1) − Σ_{z_j=0} a_j + [s/(e^{sΔ} − 1) − s] = 0.

Where
    a_j  ``intervals``, days, above 0, ragged: as many as the source has;
    z_j  ``changed``, truth values, one an interval;
    s    ``smoothing``, days: two imaginary intervals of this length, one changed and one not,
         without which a source that always changed gets Δ = ∞ and one that never did Δ = 0;
    Δ    the estimate, changes per day.

So the changed intervals and the SUM of the unchanged ones are all that matters. Evidence from
signals fits in: c changes counted in a days multiply the likelihood by Δ^c e^{−aΔ}, which is
c changed intervals of length 0 (lim a/(e^{aΔ} − 1) = 1/Δ) and a days unchanged.

Method: write F(Δ) for the sum over the changed intervals and S for the unchanged days. F is a
sum of log-convex functions, hence log-convex and falling, so that Newton's iteration on
ln F(Δ) = ln S never oversteps when it starts on the left of the root: it needs no bracket.
The start is the root for k intervals of the mean length ā of the k changed ones,
ln(1 + kā/S)/ā. It lies on the left because a/(e^{aΔ} − 1) is convex in a (Jensen), and it is the
root where all changed intervals are equally long. About six steps of O(intervals) each.

Edge cases: with ``smoothing=0`` the answer is the plain maximum, which may be ``inf`` (always
changed) or 0 (never); a source without any interval is then refused. Without intervals, the
smoothing alone gives Δ = ln 2/s. Numerical form: expm1; F'(Δ) = −Σ v(v + a) with
v = a/(e^{aΔ} − 1), no cancellation; relative error below 1e-12 for intervals from 1e-150 to 1e150.

Reference: Kolobov, Peres, Lu, Horvitz, "Staying up to Date with Online Content Changes Using
Reinforcement Learning for Scheduling", NeurIPS 2019, eq. 10 and Algorithm 4, line 11; the
estimator is that of Cho and Garcia-Molina, "Estimating Frequency of Change", TOIT 2003. Differs
from the paper in: the length of the imaginary intervals is an argument; counted changes.

>>> round(estimate([1.0, 1.0, 1.0], [True, True, False], smoothing=0), 6)  # ln 3
1.098612
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.estimate.evidence import Evidence
from freshet.scheduler.sources import Rows

# -- complete observations --
#
# A source that reports every change (Kolobov et al. 2019, eq. 11). The likelihood of U changes in S
# days under a Poisson process is maximal at Δ = U/S, which is 0 for a source that has not changed
# yet. The paper's remedy, line 13 of its Algorithm 4, is
#
#     Δ = (U + 0.5) / (S + 0.5).
#
# Where U is ``changes``, S ``days``, both (m,), and 0.5 ``smoothing``: imaginary changes in as many
# imaginary days. Edge cases: without evidence Δ = 1; with ``smoothing=0`` Δ = 0 without changes.
# Differs from the paper in: the smoothing is an argument; eq. 11 itself has the consistent
# (U + 1)/S.


def estimate_complete(changes: int, days: float, *, smoothing: float = 0.5) -> float:
    """Return changes per day of a source that changed ``changes`` times in ``days`` days.

    Raises:
        ValueError: as for :func:`estimate_many`.
    """
    return float(estimate_many_complete([changes], [days], smoothing=smoothing)[0])


def estimate_many_complete(
    changes: ArrayLike, days: ArrayLike, *, smoothing: float = 0.5
) -> Floats:
    """Return changes per day (m,) of m sources.

    Raises:
        ValueError: if a number of changes is not whole, a number is negative or not finite,
            or a source has no days and there is no smoothing.
    """
    number = arrays.counts("changes", changes)
    window = arrays.non_negative("days", days, len(number))
    s = float(arrays.non_negative("smoothing", [smoothing])[0])
    if s == 0 and not window.all():
        row = int(np.argmin(window))
        raise ValueError(f"days: row {row} is 0; accepted is a number above 0 without smoothing")
    return smoothed_rate(number, window, s)


def smoothed_rate(changes: Ints | Floats, days: Floats, smoothing: float) -> Floats:
    """Evaluate the equation, for values that are known to be good."""
    rate: Floats = (changes + smoothing) / (days + smoothing)
    return rate


# -- interval log --

#: In place of a number of changes: at least one.
AT_LEAST_ONE: Final = -1

_ENTRY = np.dtype(
    [
        ("source", np.int32),
        ("changes", np.int32),
        ("at", np.float64),
        ("span", np.float64),
        ("previous", np.int32),
    ],
    align=True,
)
_SMALLEST = 1024


class IntervalLog:
    """A log of entries (source, day, span in days, changes) that may forget the oldest.

    Invariant: every entry knows the entry before it of the same source, and every source its last
    entry. Consequence: an append costs O(1), and reading some sources reads no others.

    Args:
        n: the number of sources.
        window: days; entries at least this much older than the newest count no longer.
    """

    def __init__(self, n: int, window: float) -> None:
        self._window = window
        self._n = n
        self.newest = -np.inf
        self._length = 0
        self._clear(_SMALLEST)

    def __len__(self) -> int:
        return self._length

    def append(self, source: Rows, at: Floats, span: Floats, changes: Ints) -> None:
        """Add entries, in any order of days."""
        if not len(source):
            return
        self.newest = max(self.newest, float(at.max()))
        if self._length + len(source) > len(self._entries):
            self._make_room(len(source))
        new = self._entries[self._length : self._length + len(source)]
        new["source"], new["at"], new["span"], new["changes"] = source, at, span, changes
        self._link(source)
        self._length += len(source)

    def of(self, rows: Rows) -> tuple[Rows, Floats, Ints]:
        """Return the entries of these sources that still count: owner, span and changes.

        The owner is a position in ``rows``; owners ascend, the entries of one come newest first.
        """
        number = self._number[rows]
        starts = np.cumsum(number) - number
        entries = np.empty(int(number.sum()), np.int64)
        walker, at = np.arange(len(rows)), self._last[rows]
        depth = 0
        while len(walker := walker[at >= 0]):
            at = at[at >= 0]
            entries[starts[walker] + depth] = at
            at = self._entries["previous"][at]
            depth += 1
        owner = np.repeat(np.arange(len(rows)), number)
        kept = self._entries["at"][entries] > self.newest - self._window
        entries, owner = entries[kept], owner[kept]
        return owner, self._entries["span"][entries], self._entries["changes"][entries]

    def _link(self, source: Rows) -> None:
        """Chain the new entries: behind one another within the batch, then to the old ones."""
        order = np.argsort(source, kind="stable")
        position = self._length + order
        ordered = source[order]
        previous = self._last[ordered]
        follows = ordered[1:] == ordered[:-1]
        previous[1:][follows] = position[:-1][follows]
        self._entries["previous"][position] = previous
        # Positions of one source ascend, and the last of equal rows is the one that stays.
        self._last[ordered] = position
        np.add.at(self._number, source, 1)

    def _make_room(self, more: int) -> None:
        """Drop entries that count no longer; double if little was dropped."""
        old = self._entries[: self._length]
        kept = old[old["at"] > self.newest - self._window]
        self._clear(max(_SMALLEST, 2 * (len(kept) + more)))
        self._entries[: len(kept)] = kept
        self._link(kept["source"].astype(np.intp))
        self._length = len(kept)

    def _clear(self, capacity: int) -> None:
        self._entries: NDArray[np.void] = np.empty(capacity, _ENTRY)
        self._last = np.full(self._n, -1, np.int64)
        self._number = np.zeros(self._n, np.intp)
        self._length = 0


#: Sources solved together: their intervals stay in the processor's cache.
_CHUNK = 4096
#: A Newton step so small that the next would be lost in rounding.
_LAST_STEP = 1e-9


def estimate(
    intervals: Sequence[float] | Floats,
    changed: Sequence[bool] | Bools,
    *,
    smoothing: float = 0.5,
) -> float:
    """Return changes per day of one source; see the module's text.

    Raises:
        ValueError: as for :func:`estimate_many`.
    """
    one = np.zeros(len(intervals), np.intp)
    return float(estimate_many(one, intervals, changed, 1, smoothing=smoothing)[0])


def estimate_many(
    source: ArrayLike, intervals: ArrayLike, changed: ArrayLike, n: int, *, smoothing: float = 0.5
) -> Floats:
    """Return changes per day (n,) of n sources with ragged histories.

    Args:
        source: row of the source (0 to n − 1) that each interval belongs to, in any order;
            fastest if sorted.
        intervals: days, of the same length.
        changed: whether the source differed at the end of the interval, of the same length.
        n: the number of sources.
        smoothing: days, see the module's text.

    Raises:
        ValueError: if an interval is not above 0 and finite, the lengths differ, a row of
            ``changed`` is not a truth value, or a source has no interval and there is no smoothing.
    """
    days = arrays.finite("intervals", arrays.positive("intervals", intervals))
    z = arrays.flags("changed", changed, len(days))
    owner = arrays.codes("source", source, len(days), n)
    s = float(arrays.non_negative("smoothing", [smoothing])[0])
    if s == 0:
        _refuse_empty(np.bincount(owner, minlength=n))
    return _solve(owner[z], days[z], np.zeros(n), _sums(owner, np.where(z, 0.0, days), n), s)


class PoissonMle:
    """Eq. 10 and 11 as an :class:`~scheduler.estimate.evidence.Estimator` that keeps history.

    A source of which all evidence is counted has the estimate of eq. 11; all others have that
    of eq. 10, into which counted evidence enters too. Memory: 32 bytes for each observation
    kept, up to twice that while the log grows.

    Args:
        n: the number of sources.
        smoothing: above 0, for eq. 10 in days.
        window_days: observations at least this much older than the newest one of all are
            forgotten; None: none is.

    Raises:
        ValueError: naming the argument.
    """

    def __init__(self, n: int, *, smoothing: float = 0.5, window_days: float | None = None) -> None:
        self._smoothing = arrays.budget("smoothing", smoothing)
        self._windowed = window_days is not None
        window = np.inf if window_days is None else arrays.budget("window_days", window_days)
        self._log = IntervalLog(n, window)
        self._compared = np.zeros(n, np.bool_)
        self._counted = np.zeros(n, np.bool_)

    def observe(self, evidence: Evidence) -> None:
        """Append the evidence to the history."""
        counted = evidence.counted
        self._counted[evidence.source[counted]] = True
        self._compared[evidence.source[~counted]] = True
        # "Not changed" and "changed no times" are the same evidence.
        changes = np.where(counted | (evidence.changes == 0), evidence.changes, AT_LEAST_ONE)
        self._log.append(evidence.source, evidence.at, evidence.span, changes)

    def change_rate(self, rows: Rows | None = None) -> Floats:
        """Return estimated changes per day (m,) of these rows, or of all sources."""
        wanted = np.arange(len(self._counted)) if rows is None else rows
        owner, span, changes = self._log.of(wanted)
        z = changes == AT_LEAST_ONE
        m = len(wanted)
        number = _sums(owner, np.where(z, 0.0, changes), m)
        days = _sums(owner, np.where(z, 0.0, span), m)
        compared = _solve(owner[z], span[z], number, days, self._smoothing)
        complete = self._counted[wanted] & ~self._compared[wanted]
        counted = smoothed_rate(number, days, self._smoothing)
        return np.where(complete, counted, compared)

    @property
    def revision(self) -> int:
        """Return the newest observation's whole day with a window, 0 without."""
        return int(self._log.newest) if self._windowed and len(self._log) else 0


def _refuse_empty(observed: NDArray[np.intp]) -> None:
    if not observed.all():
        raise ValueError(
            f"intervals: source {int(np.argmin(observed))} has none; accepted is at least one "
            "without smoothing"
        )


def _sums(owner: Rows, values: Floats, n: int) -> Floats:
    """Return the sum of each owner's values (n,)."""
    return np.bincount(owner, weights=values, minlength=n).astype(np.float64, copy=False)


def _solve(owner: Rows, changed: Floats, counts: Floats, unchanged: Floats, s: float) -> Floats:
    """Return the roots (n,) by changed intervals, counted changes and unchanged days of each."""
    order = slice(None) if (owner[1:] >= owner[:-1]).all() else np.argsort(owner, kind="stable")
    owner, changed = owner[order], changed[order]
    n = len(unchanged)
    number = np.bincount(owner, minlength=n)
    k = number + counts + (s > 0)
    total = unchanged + s
    root = _root_of_equal_intervals(k, _sums(owner, changed, n) + s, total)
    # Where there are several lengths the start is not yet the root.
    open_rows = np.flatnonzero((number + counts > 0) & (total > 0))
    ends = np.cumsum(number)[open_rows]
    lengths = number[open_rows]
    for first in range(0, len(open_rows), _CHUNK):
        rows = open_rows[first : first + _CHUNK]
        length = lengths[first : first + _CHUNK]
        stretch = slice(ends[first] - lengths[first], ends[first + len(rows) - 1])
        root[rows] = _newton(
            root[rows], changed[stretch], length, counts=counts[rows], total=total[rows], s=s
        )
    return root


def _root_of_equal_intervals(k: Floats, changed_days: Floats, unchanged_days: Floats) -> Floats:
    """Return k/A · ln(1 + A/S), the root for k equal changed intervals of A days in all.

    It is at most the true root. A source without changes has 0, one of changes only infinity.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        root = k / changed_days * np.log1p(changed_days / unchanged_days)
    root[k == 0] = 0.0
    return root


def _newton(
    rate: Floats, changed: Floats, lengths: Rows, *, counts: Floats, total: Floats, s: float
) -> Floats:
    """Iterate ln F = ln S by Newton from ``rate``, on the left of the root.

    ``changed`` are the intervals of one source after the other, ``lengths`` their numbers.
    """
    filled = lengths > 0
    starts = (np.cumsum(lengths) - lengths)[filled]
    step = rate
    # Long intervals overflow to a term of 0, which is what they are worth.
    with np.errstate(over="ignore"):
        while (step > _LAST_STEP * rate).any():
            terms = changed / np.expm1(changed * np.repeat(rate, lengths))
            f = counts / rate
            slope = f / rate
            f[filled] += np.add.reduceat(terms, starts)
            slope[filled] += np.add.reduceat(terms * (terms + changed), starts)
            if s > 0:
                imaginary = s / np.expm1(s * rate)
                f += imaginary
                slope += imaginary * (imaginary + s)
            step = f * np.log(f / total) / slope
            rate = rate + step
    return rate
