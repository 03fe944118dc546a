"""What was fetched when, judged by one who knows when every page changed.

A *copy* lasts from the first look that a page answered to the first one after its death, or to
the end. It is stale from the first change or the death of its page on until the next look. All
means are over the time of copies, weighted with importance.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from statistics import fmean, median
from typing import Final

_DAY_S: Final = 86_400.0
#: The time in which a new page loses half of its worth, if it is one of those that soon do.
HALF_LIFE_S: Final = 6 * 3_600.0


@dataclass(frozen=True, slots=True)
class Known:
    """A page as it truly was; Unix seconds. ``died_at`` is inf for one that does not die."""

    importance: float
    born_at: float
    died_at: float
    changed_at: Sequence[float]


@dataclass(frozen=True, slots=True)
class Freshness:
    """How fresh copies were.

    ``binary`` is the share of time that they were stale, ``harmonic`` the mean of the harmonic
    number of the changes missed, ``age_days`` the mean time since the last look, ``stale_days``
    the mean time for which those that were stale had been.
    """

    fresh: float
    binary: float
    harmonic: float
    age_days: float
    stale_days: float


@dataclass(frozen=True, slots=True)
class Discovery:
    """Which of the pages ``born`` in a span were found by its end, and after how many days.

    ``utility`` is what they were worth when they were first fetched, a mean over all that were
    born: 1 at birth, half of it after :data:`HALF_LIFE_S`, 0 for a page that was not found.
    """

    born: int
    found: int
    mean_delay_days: float | None
    median_delay_days: float | None
    utility: float | None


@dataclass(slots=True)
class _Sums:
    """Integrals over the time of copies, in weighted seconds."""

    lived: float = 0.0
    stale: float = 0.0
    harmonic: float = 0.0
    age: float = 0.0
    behind: float = 0.0


def freshness(
    pages: Iterable[tuple[Known, Sequence[float]]], begin: float, end: float
) -> Freshness | None:
    """How fresh copies were in a span; ``pages`` with the times of the looks at them, rising.

    None where there was no copy.
    """
    sums = _Sums()
    for page, looks in pages:
        for since, until in _kept(page, looks, end):
            if until > begin:
                _add(sums, page, since, max(since, begin), until)
    if not sums.lived:
        return None
    binary = sums.stale / sums.lived
    return Freshness(
        fresh=1 - binary,
        binary=binary,
        harmonic=sums.harmonic / sums.lived,
        age_days=sums.age / sums.lived / _DAY_S,
        stale_days=sums.behind / sums.stale / _DAY_S if sums.stale else 0.0,
    )


def discovery(
    pages: Iterable[tuple[Known, Sequence[float]]], begin: float, end: float
) -> Discovery:
    """How the pages born after ``begin`` and up to ``end`` were found."""
    born = [(page, looks) for page, looks in pages if begin < page.born_at <= end]
    first = [(next(iter(_answered(page, looks)), inf), page.born_at) for page, looks in born]
    delays = [(at - born_at) / _DAY_S for at, born_at in first if at <= end]
    return Discovery(
        len(born),
        len(delays),
        fmean(delays) if delays else None,
        median(delays) if delays else None,
        sum(0.5 ** (days * _DAY_S / HALF_LIFE_S) for days in delays) / len(born) if born else None,
    )


def held(pages: Iterable[tuple[Known, Sequence[float]]], at: float) -> int:
    """Of how many pages that live at a time there is a copy."""
    return sum(
        page.born_at <= at < page.died_at and any(look <= at for look in _answered(page, looks))
        for page, looks in pages
    )


def _answered(page: Known, looks: Sequence[float]) -> Iterator[float]:
    return (at for at in looks if page.born_at <= at < page.died_at)


def _kept(page: Known, looks: Sequence[float], end: float) -> Iterator[tuple[float, float]]:
    """The copies of a page, from look to look."""
    answered = list(_answered(page, looks))
    if answered:
        found_dead = next((at for at in looks if at >= page.died_at), end)
        yield from pairwise([*answered, min(found_dead, end)])


def _add(sums: _Sums, page: Known, since: float, begin: float, until: float) -> None:
    """Add what a copy of ``since`` was from ``begin`` to ``until``."""
    weight = page.importance
    sums.lived += weight * (until - begin)
    sums.age += weight * ((until - since) ** 2 - (begin - since) ** 2) / 2
    first = bisect_right(page.changed_at, since)
    missed = [at for at in page.changed_at[first:] if at < until]
    if since < page.died_at < until:
        missed.append(page.died_at)
    if not missed:
        return
    stale_since = missed[0]
    stale_from = max(stale_since, begin)
    sums.stale += weight * (until - stale_from)
    sums.behind += weight * ((until - stale_since) ** 2 - (stale_from - stale_since) ** 2) / 2
    sums.harmonic += weight * sum(
        (until - max(at, begin)) / n for n, at in enumerate(missed, start=1)
    )
