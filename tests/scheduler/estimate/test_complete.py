"""Sources that tell of every change are believed; those that lie, in whatever way, are not."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import pytest

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.estimate.complete import CompleteSources
from freshet.scheduler.estimate.evidence import UNASKED, SignalBatch, VisitResults
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.queue.rankers import PolicyRanker
from tests.variants import first

_PAGES: Final = 40
_DAYS: Final = 80.0
_VISITS_A_DAY: Final = 12.0
_POLLS_A_DAY: Final = 4
#: What a source says of all pages when it is asked on a day, of the days of their changes.
Source: TypeAlias = Callable[["Site", float], Floats | None]


@dataclass
class Site:
    """Pages that change at Poisson times, one of which has the list."""

    rng: np.random.Generator
    changes: list[Floats] = field(init=False)

    def __post_init__(self) -> None:
        rates = np.exp(self.rng.normal(-1.6, 0.7, _PAGES))
        self.changes = [
            np.sort(self.rng.random(self.rng.poisson(rate * _DAYS)) * _DAYS) for rate in rates
        ]

    def last(self, day: float) -> Floats:
        """Return the day on which each page changed last by then, 0 for never."""
        counts = [int(np.searchsorted(at, day, "right")) for at in self.changes]
        return np.array(
            [at[n - 1] if n else 0.0 for at, n in zip(self.changes, counts, strict=True)]
        )

    def has_changed(self, row: int, since: float, until: float) -> bool:
        """Return whether a page changed between two days."""
        return bool(np.diff(np.searchsorted(self.changes[row], [since, until], "right"))[0])


def kept(
    source: Source, *, asked: bool = True, declared: bool = False, seed: int = 1
) -> list[Bools]:
    """Keep a site with a source by the greedy index; return each day which pages are complete."""
    site, rng = Site(np.random.default_rng(seed)), np.random.default_rng(seed)
    ranker = PolicyRanker(GreedyIndex().index)
    # The last row is that of the list, which is asked by our own clock.
    ranker.add(np.zeros(_PAGES + 1, np.intp), np.zeros(_PAGES + 1, np.intp),
               np.append(np.ones(_PAGES), 0.0), np.zeros(_PAGES + 1))  # fmt: skip
    ranker.declare(np.arange(_PAGES), np.full(_PAGES, declared))
    said, last, found = np.full(_PAGES, -1.0), np.full(_PAGES, -1.0), []
    every = 1 / _VISITS_A_DAY
    for turn in range(int(_DAYS * _VISITS_A_DAY)):
        day = (turn + 1) * every
        if turn % int(_VISITS_A_DAY / _POLLS_A_DAY) == 0:
            says = source(site, day)
            if says is not None:
                news = np.flatnonzero(says != said)
                until = np.minimum(says[news], day)
                ranker.receive(
                    SignalBatch(0, _PAGES if asked else UNASKED, day, news, until, until)
                )
                said = says.copy()
        captured = last >= 0
        worth = np.where(captured, ranker.values(day)[:_PAGES], np.inf)
        # One visit in twenty goes to a page at random.
        row = int(rng.integers(_PAGES)) if rng.random() < 0.05 else int(np.argmax(worth))
        changed = site.has_changed(row, last[row], day) if captured[row] else None
        ranker.learn(VisitResults.one(row, day, changed=changed))
        last[row] = day
        if turn % int(_VISITS_A_DAY) == 0:
            found.append(ranker.table().complete_observations[:_PAGES].copy())
    return found


def true(site: Site, day: float) -> Floats:
    """Say the last change of each page."""
    return site.last(day)


def share(found: list[Bools], first: int, last: int, rows: slice = slice(None)) -> float:
    """Return the share of pages that are complete in these days."""
    return float(np.mean([each[rows] for each in found[first:last]]))


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_source_that_tells_every_change_is_complete_and_stays_so(
    seed: int, *, asked: bool
) -> None:
    found = kept(true, asked=asked, seed=seed)
    assert share(found, 0, 3) == 0.0
    assert share(found, 40, 80) > 0.9
    # It does not flap.
    flips = np.sum(np.diff(np.array(found, np.int8), axis=0) != 0, axis=0)
    assert np.median(flips) <= 1


def every(day: float, days: float) -> float:
    """Return the last day of a rhythm."""
    return float(np.floor(day / days) * days)


def late(site: Site, day: float, days: float = 3.0) -> Floats:
    """Say a change some days after it was made, with its true date."""
    return site.last(max(day - days, 0.0))


def late_as_new(site: Site, day: float) -> Floats:
    """Say a change three days after it was made, as one of now."""
    told = late(site, day)
    return np.where(told > 0, np.ceil((told + 3.0) * _POLLS_A_DAY) / _POLLS_A_DAY, 0.0)


def half_of_the_changes(site: Site, day: float) -> Floats:
    """Say every second change of each page."""
    return np.array([max(at[::2][at[::2] <= day], default=0.0) for at in site.changes])


def at_random(site: Site, day: float) -> Floats:
    """Say of one page in twenty that it has changed now."""
    drawn = np.random.default_rng(int(day * _POLLS_A_DAY)).random(_PAGES)
    return np.where(drawn < 0.05, day, -2.0)


def with_noise(site: Site, day: float) -> Floats:
    """Say the truth, and of each page every fifth day that it has changed."""
    shift = 7.0 * np.arange(_PAGES) % 5
    found: Floats = np.maximum(site.last(day), np.floor((day + shift) / 5) * 5 - shift)
    return found


LIES: Final[dict[str, Source]] = {
    "all pages change at each poll": lambda _site, day: np.full(_PAGES, day),
    "no page ever changes": lambda _site, _day: np.zeros(_PAGES),
    "three days late": late,
    "three days late, as new": late_as_new,
    "once a week": lambda site, day: site.last(every(day, 7.0)),
    "half of the changes": half_of_the_changes,
    "pages at random": at_random,
    "dates of next year": lambda _site, day: np.full(_PAGES, day + 365.0),
    "dates of last year": lambda site, day: site.last(day) - 365.0,
    "a build a day": lambda _site, day: np.full(_PAGES, np.floor(day)),
    "the changes of the neighbour": lambda site, day: np.roll(site.last(day), 1),
    "dates to and fro": lambda _site, day: np.full(_PAGES, day - int(day * _POLLS_A_DAY) % 2),
    "noise beside the truth": with_noise,
}


@pytest.mark.parametrize("lie", first(4, LIES))
def test_a_source_that_lies_is_not_complete_and_not_for_long_where_that_is_set(lie: str) -> None:
    learnt, is_set = (kept(LIES[lie], declared=declared) for declared in (False, True))
    assert share(learnt, 40, 80) == 0.0
    assert is_set[0].any()
    assert share(is_set, 75, 80) == 0.0


THEN: Final[dict[str, Source]] = {
    "silent": lambda site, _day: site.last(_DAYS / 2),
    "calls everything changed": lambda _site, day: np.full(_PAGES, day),
    "gone": lambda _site, _day: None,
    "silent about half of the pages": lambda site, day: np.where(
        np.arange(_PAGES) % 2 == 0, site.last(day), site.last(_DAYS / 2)
    ),
    "names the neighbour": lambda site, day: np.roll(site.last(day), 1),
    "late": lambda site, day: site.last(max(day - 3.0, _DAYS / 2)),
}


@pytest.mark.parametrize("then", THEN)
def test_a_source_that_was_true_and_lies_then_is_complete_no_longer(then: str) -> None:
    def source(site: Site, day: float) -> Floats | None:
        return true(site, day) if day < _DAYS / 2 else THEN[then](site, day)

    found = kept(source)
    assert share(found, 30, 40) > 0.9
    assert share(found, 75, 80) == 0.0


def test_a_list_that_keeps_some_dates_is_complete_for_the_others() -> None:
    found = kept(lambda site, day: np.where(np.arange(_PAGES) % 2 == 0, site.last(day), 0.0))
    assert share(found, 40, 80, slice(0, None, 2)) > 0.9
    assert share(found, 40, 80, slice(1, None, 2)) == 0.0


def test_a_source_that_told_too_little_is_not_judged() -> None:
    sources = CompleteSources()
    sources.add(1)
    for day in range(1, 9):
        at = np.array([float(day)])
        said = SignalBatch(0, UNASKED, float(day), np.zeros(1, np.intp), at, at)
        sources.now = float(day)
        sources.receive(said, np.zeros(1, np.intp), at - 1.0)
        assert sources.learn(0, day + 0.5, 1.0, 1.0, changed=True) == -1
    complete, pending, *_ = sources.columns(np.ones(1))
    assert not complete.any()
    assert pending.tolist() == [0]


def test_a_page_takes_along_what_is_said_of_it() -> None:
    sources = CompleteSources()
    sources.add(2)
    sources.declared.rows[:] = True
    row, at = np.zeros(1, np.intp), np.array([1.0])
    sources.receive(SignalBatch(0, UNASKED, 1.0, row, at, at), row, at - 1.0)
    sources.inherit(0, 1)
    complete, pending, *_ = sources.columns(np.ones(2))
    assert complete.tolist() == [True, True]
    assert pending.tolist() == [1, 1]
