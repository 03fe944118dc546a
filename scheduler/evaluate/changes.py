"""Times at which sources change, and the processes that generate them. Seeded.

Every process preserves each source's mean rate Δ at every moment, so that policies meet sources
with the rates that they were given; only the distribution of the changes in time differs. Let N be
the number of changes of a source within T days, N' the number for another source of its group:

    poisson    independent of each other and of all else         Var N = ΔT
    bursts     in clusters within hours, with gaps between       more, as in clusters of 2m − 1
    drift      at a rate that wanders: busy weeks, then quiet    more, growing with T²
    together   at moments common to a group, with a share f      ΔT, but Cov(N, N') = fΔT

All policies assume the first process; the others test claims where that assumption is wrong. Times
are rounded by 2e-16 · n · days: a millisecond for a million sources and two months.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from freshet.scheduler import arrays, policy
from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.sources import Rows, SourceTable

# -- columns of different lengths, concatenated --


def places(at: Floats, begin: Ints, end: Ints, value: Floats) -> Ints:
    """Return (m,), the first position in the ascending stretch ``at[begin:end]`` after ``value``.

    The result is ``end`` if the stretch has no larger value. A binary search in all m stretches at
    once, with as many rounds as the longest stretch has binary digits.

    >>> at = np.array([1.0, 2.0, 2.0, 0.5])  # stretches [1, 2, 2] and [0.5]
    >>> places(at, np.array([0, 0, 3]), np.array([3, 3, 4]), np.array([0.0, 2.0, 0.25])).tolist()
    [0, 3, 3]
    """
    low, high = begin.astype(np.int64), end.astype(np.int64)
    while True:
        open_ = np.flatnonzero(low < high)
        if not len(open_):
            return low
        middle = (low[open_] + high[open_]) // 2
        behind = at[middle] > value[open_]
        high[open_[behind]] = middle[behind]
        low[open_[~behind]] = middle[~behind] + 1


def members(first: Ints, number: Ints) -> Ints:
    """Return the positions of m stretches, ``number`` (m,) from each ``first`` (m,) on.

    >>> members(np.array([7, 0]), np.array([2, 3])).tolist()
    [7, 8, 0, 1, 2]
    """
    begin = offsets_of(number)
    return np.arange(int(begin[-1])) + np.repeat(first - begin[:-1], number)


def offsets_of(number: Ints | Rows) -> Ints:
    """Return (m + 1,), the beginning of each of m stretches, and the end of the last.

    >>> offsets_of(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    offsets = np.zeros(len(number) + 1, np.int64)
    np.cumsum(number, out=offsets[1:])
    return offsets


#: Source and day of every change, in any order.
_Points: TypeAlias = tuple[Rows, Floats]


@dataclass(frozen=True, slots=True)
class ChangeTimes:
    """Every change of n sources."""

    offsets: Ints
    at: Floats

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def count(self, source: Rows, after: Floats, until: Floats) -> Ints:
        """Count (m,) the changes of each source in (after, until]."""
        first, last = self.stretches(source, after, until)
        return last - first

    def stretches(self, source: Rows, after: Floats, until: Floats) -> tuple[Ints, Ints]:
        """Return first, last: changes of source[i] in (after[i], until[i]] are at[first:last]."""
        end = self.offsets[source + 1]
        first = places(self.at, self.offsets[source], end, after)
        return first, places(self.at, first, end, until)


#: A process: it draws all changes of the sources in (0, days]. It raises ValueError if ``days`` is
#: not a finite number above 0.
ChangeProcess: TypeAlias = Callable[[SourceTable, float, np.random.Generator], ChangeTimes]


def poisson(table: SourceTable, days: float, rng: np.random.Generator) -> ChangeTimes:
    """Draw independent changes at rate Δ."""
    days = arrays.budget("days", days)
    return _ordered(len(table), days, _points(table.change_rate, days, rng))


def bursts(mean_size: float = 5.0, spread_days: float = 0.5) -> ChangeProcess:
    """Return a Neyman–Scott process: bursts at rate Δ/m, with a geometric number of changes.

    Each change of a burst follows its beginning after an independent exponential delay, so two
    changes are s days apart on average.

    Args:
        mean_size: m, changes in a burst, on average; at least 1.
        spread_days: s, mean delay of a change after the beginning of its burst.

    Reference: Neyman and Scott, "Statistical Approach to Problems of Cosmology", Journal of the
    Royal Statistical Society B 20 (1958), in one dimension.
    """
    arrays.budget("spread_days", spread_days)
    if not 1 <= mean_size < np.inf:
        raise ValueError(f"mean_size: is {mean_size}; accepted is a finite number of at least 1")

    def draw(table: SourceTable, days: float, rng: np.random.Generator) -> ChangeTimes:
        days = arrays.budget("days", days)
        # Bursts that began before day 0 still have later changes; a share e^{−30} of these is
        # omitted.
        lead = 30 * spread_days
        source, begin = _points(table.change_rate / mean_size, lead + days, rng)
        size = rng.geometric(1 / mean_size, len(source))
        delay = rng.exponential(spread_days, int(size.sum()))
        at = np.repeat(begin - lead, size) + delay
        within = (at > 0) & (at <= days)
        return _ordered(len(table), days, (np.repeat(source, size)[within], at[within]))

    return draw


def drift(sigma: float = 1.0, half_life_days: float = 30.0) -> ChangeProcess:
    """Return a process of rate Δ·e^{σx − σ²/2}, with x a stationary Ornstein–Uhlenbeck process.

    The rate is constant within a day. Its mean is Δ, because e^{σx} has the mean e^{σ²/2} for a
    standard normal x. Rates τ whole days apart have the covariance Δ²(e^{σ²r} − 1), r = 2^{−τ/h};
    the variance of N contains its sum over all pairs of days.

    Args:
        sigma: σ, the standard deviation of the logarithm of the rate.
        half_life_days: h, the half-life of a deviation of x.
    """
    arrays.budget("half_life_days", half_life_days)
    if not 0 <= sigma < np.inf:
        raise ValueError(f"sigma: is {sigma}; accepted is a finite number of at least 0")

    def draw(table: SourceTable, days: float, rng: np.random.Generator) -> ChangeTimes:
        days = arrays.budget("days", days)
        n = len(table)
        kept = 0.5 ** (1 / half_life_days)
        x = rng.standard_normal(n)
        drawn = []
        for day in range(int(np.ceil(days))):
            rate = table.change_rate * np.exp(sigma * x - sigma**2 / 2)
            source, at = _points(rate, min(1.0, days - day), rng)
            drawn.append((source, day + at))
            x = kept * x + np.sqrt(1 - kept**2) * rng.standard_normal(n)
        return _ordered(n, days, _joined(drawn))

    return draw


def together(share: float = 0.5, size: int = 20) -> ChangeProcess:
    """Return groups of sources of similar rates that change at the events of their group.

    A group has events at rate f·Δ of its busiest source. A source takes part in each with the
    probability Δ/(Δ of the busiest), so that a share f of its changes is common; the others are
    independent. Each single source is a Poisson process; two sources of a group are not
    independent.

    Args:
        share: f, of a source's changes, 0 to 1.
        size: sources in a group; the last group has the rest.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share: is {share}; accepted is a number from 0 to 1")
    if size < 1:
        raise ValueError(f"size: is {size}; accepted is a number of at least 1")

    def draw(table: SourceTable, days: float, rng: np.random.Generator) -> ChangeTimes:
        days = arrays.budget("days", days)
        rate, n = table.change_rate, len(table)
        own = _points((1 - share) * rate, days, rng)
        group = np.empty(n, np.intp)
        group[np.argsort(rate, kind="stable")] = np.arange(n) // size
        busiest = np.zeros(-(-n // size))
        np.maximum.at(busiest, group, rate)
        of_group, at = _points(share * busiest, days, rng)
        events = np.bincount(of_group, minlength=len(busiest))
        # Every source considers every event of its group.
        source = np.repeat(np.arange(n), events[group])
        event = members(offsets_of(events)[group], events[group])
        takes_part = rng.random(len(source)) * busiest[group[source]] < rate[source]
        common = source[takes_part], at[event[takes_part]]
        return _ordered(n, days, _joined([own, common]))

    return draw


#: Factories of processes by name; they raise ValueError if an option is out of range.
PROCESSES: Final[dict[str, Callable[..., ChangeProcess]]] = {
    "poisson": lambda: poisson,
    "bursts": bursts,
    "drift": drift,
    "together": together,
}


def load(specification: str) -> ChangeProcess:
    """Return a process by ``NAME`` or ``NAME:OPTION=VALUE,…``.

    Raises:
        ValueError: naming the process or option that is not accepted.
    """
    name, _, text = specification.partition(":")
    if name not in PROCESSES:
        raise ValueError(f"process: is {name!r}; accepted are {', '.join(PROCESSES)}")
    try:
        return PROCESSES[name](**policy.given(PROCESSES[name], text))
    except ValueError as error:
        raise ValueError(f"process {name}: {error}") from error


def _points(rate: Floats, days: float, rng: np.random.Generator) -> _Points:
    """Draw independent Poisson processes in (0, days], row after row."""
    source = np.repeat(np.arange(len(rate)), rng.poisson(rate * days))
    # random() can return 0 but not 1.
    return source, days * (1 - rng.random(len(source)))


def _joined(drawn: list[_Points]) -> _Points:
    return np.concatenate([source for source, _ in drawn]), np.concatenate([at for _, at in drawn])


def _ordered(n: int, days: float, points: _Points) -> ChangeTimes:
    """Sort the changes of all sources."""
    source, at = points
    # One sort of numbers: the source before the decimal point, the time after it. It takes a tenth
    # of the time of a sort by two keys.
    key = source + at / days
    key.sort()
    number = np.bincount(source, minlength=n)
    key -= np.repeat(np.arange(n), number)
    key *= days
    return ChangeTimes(offsets_of(number), key)
