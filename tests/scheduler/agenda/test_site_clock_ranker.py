"""Pages valued by the clock of their site."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.compiled import numeric
from freshet.compiled.numeric import record
from freshet.scheduler.agenda.site_clock_ranker import SiteClockRanker
from freshet.scheduler.arrays import Floats, Scratch
from freshet.scheduler.costs import ein
from freshet.scheduler.estimate.evidence import VisitResults
from freshet.scheduler.estimate.site_model import RATES

#: Page, days since the visit before, what it found, and for how long it was so by the server.
LOOKS = st.lists(
    st.tuples(
        st.integers(0, 11),
        st.floats(0.05, 9.0),
        st.sampled_from([True, False, False, None]),
        st.sampled_from([inf, 0.0, 0.05, 2.0]),
    ),
    max_size=120,
)


def pages(n: int, sites: int = 1, per_day: float | None = None) -> SiteClockRanker:
    """Pages of which there is a copy of day 0."""
    ranker = SiteClockRanker(per_day or n / 2.0)
    ranker.add(np.arange(n) % sites, np.arange(n) % 3, np.ones(n), np.zeros(n))
    none = np.zeros(n, np.bool_)
    ranker.learn(VisitResults(np.arange(n), np.zeros(n), none, none, none, none))
    return ranker


def stale(ranker: SiteClockRanker, day: float) -> Floats:
    return -np.expm1(-ranker.beliefs(day).hazard)


def visit(
    ranker: SiteClockRanker, row: int, at: float, *, changed: bool | None, modified: float = -inf
) -> None:
    ranker.learn(VisitResults.one(row, at, changed=changed, modified=modified))


@given(LOOKS, st.integers(1, 7), st.integers(1, 3))
@settings(deadline=None)
def test_in_which_batches_looks_come_does_not_show(
    visits: list[tuple[int, float, bool | None, float]], size: int, sites: int
) -> None:
    told, recalled = pages(12, sites), pages(12, sites)
    now, batch = 0.0, []
    for row, pause, found, quiet in visits:
        now += pause
        visit(told, row, now, changed=found, modified=now - quiet)
        batch.append((row, now, found, now - quiet))
    for first in range(0, len(batch), size):
        row_of, at, found_of, modified = zip(*batch[first : first + size], strict=True)
        recalled.learn(
            VisitResults(
                np.array(row_of, np.intp), np.array(at),
                np.array([found is not None for found in found_of]),
                np.array([bool(found) for found in found_of]),
                np.array([False] * len(at)),
                np.array([bool(found) for found in found_of]),
                np.array(modified),
            )
        )  # fmt: skip
    worth = told.worth(now + 1)
    assert np.array_equal(worth, recalled.worth(now + 1))
    assert np.array_equal(stale(told, now + 1), stale(recalled, now + 1))
    assert np.isfinite(worth).all()
    assert (worth >= 0).all()


def test_pages_that_are_found_meanwhile_change_nothing_of_what_is_known() -> None:
    early, late = pages(8), pages(8)
    for ranker, at_once in ((early, True), (late, False)):
        if at_once:
            ranker.add(np.zeros(5, np.intp), np.full(5, 4), np.ones(5), np.zeros(5))
        for day in range(1, 40):
            visit(ranker, day % 8, float(day), changed=day % 5 == 0)
        if not at_once:
            ranker.add(np.zeros(5, np.intp), np.full(5, 4), np.ones(5), np.zeros(5))
    assert np.array_equal(early.worth(41.0), late.worth(41.0))
    assert not early.worth(41.0)[8:].any()


def test_a_site_that_changes_at_once_has_its_pages_suspected_together() -> None:
    ranker = pages(30, per_day=15)
    rng = np.random.default_rng(2)
    rewritten = np.arange(10.0, 400.0, 20.0)
    last = np.zeros(30)
    for tick in range(1, 4_000):
        now = tick / 15
        row = int(rng.integers(0, 30))
        changed = bool(((rewritten > last[row]) & (rewritten <= now)).any())
        visit(ranker, row, now, changed=changed)
        last[row] = now
    assert ranker._learners[0].proven
    # The site is rewritten on day 270, and the first three pages tell.
    for row in range(30):
        visit(ranker, row, 269.9, changed=False)
    before = stale(ranker, 270.5)[3:]
    for row in range(3):
        visit(ranker, row, 270.5, changed=True)
    after = stale(ranker, 270.5)[3:]
    assert before.mean() < 0.2
    assert after.mean() > max(0.2, 10 * float(before.mean()))


def _after_a_named_day(*, believed: bool) -> Floats:
    """Return the likelihoods of a page that changed on day 78.5 by the server, visited on day 80.

    On days that the server named before, all pages changed, or none.
    """
    ranker = pages(8)
    for day in range(10, 80, 10):
        for row in range(1, 8):
            visit(ranker, row, day, changed=believed, modified=day - 1.0)
    visit(ranker, 0, 80.0, changed=True, modified=78.5)
    site = ranker._learners[0].site
    return np.asarray(site.plain_likelihood[ranker._page.rows["place"][0]], np.float64)


def test_a_change_on_a_named_day_has_its_density_and_the_quiet_days_after_it() -> None:
    found = _after_a_named_day(believed=True)
    usual = RATES < 10
    assert np.ptp((found - np.log(RATES) + 1.5 * RATES)[usual]) < 0.01


def test_the_days_of_a_site_are_not_believed_where_pages_did_not_change_on_them() -> None:
    found = _after_a_named_day(believed=False)
    assert np.ptp(found - np.log(-np.expm1(-80.0 * RATES))) < 1e-5


def test_pages_that_know_nothing_of_each_other_go_by_the_days() -> None:
    ranker, rng = pages(40, per_day=20), np.random.default_rng(4)
    rate = np.exp(rng.uniform(np.log(0.01), np.log(1.0), 40))
    last, used = np.zeros(40), 0
    for tick in range(1, 4_000):
        now = tick / 20
        row = int(np.argmax(ranker.worth(now)))
        changed = rng.random() < -np.expm1(-rate[row] * (now - last[row]))
        visit(ranker, row, now, changed=bool(changed))
        last[row] = now
        used += ranker._learners[0].proven
    assert used < 2_000


def test_the_page_that_waits_too_long_is_looked_at_before_all_others() -> None:
    ranker = pages(10, per_day=10)
    for day in range(1, 8):
        for row in range(1, 10):
            visit(ranker, row, float(day), changed=row % 2 == 0)
    assert int(np.argmax(ranker.worth(8.0))) == 0


def test_after_years_it_holds_no_more_than_after_months() -> None:
    ranker, sizes = pages(6, per_day=3), []
    for tick in range(1, 6_001):
        visit(ranker, tick % 6, tick / 3, changed=tick % 7 == 0)
        if tick % 1_500 == 0:
            arrays = ranker._learners[0].clock.structure._arrays
            sizes.append(sum(array.nbytes for array in arrays))
    assert float(ranker._learners[0].clock.facts[0]["at"]) > 1_000
    assert sizes[0] == sizes[-1]
    assert np.isfinite(ranker.worth(2_001.0)).all()


def test_a_page_that_slept_through_what_the_clock_remembers_goes_by_when_it_was_seen() -> None:
    ranker = pages(6, per_day=3)
    for tick in range(1, 3_000):
        visit(ranker, tick % 5, tick / 3, changed=tick % 4 == 0)
    assert float(ranker._learners[0].clock.facts[0]["at"]) > 0
    found = stale(ranker, 1_000.0)
    assert found[5] > found[:5].max()
    visit(ranker, 5, 1_000.0, changed=True)
    assert np.isfinite(ranker.worth(1_001.0)).all()


def test_looks_that_become_known_out_of_order_are_harmless() -> None:
    ranker = pages(8)
    for at, row in ((5.0, 0), (4.9, 1), (4.8, 0), (5.0, 2), (4.7, 3), (5.1, 4), (4.95, 5)):
        visit(ranker, row, at, changed=True)
    assert np.isfinite(ranker.worth(6.0)).all()


def test_the_compiled_ein_is_ein() -> None:
    for x in np.exp(np.linspace(-12, 6, 60)):
        worth = np.empty(1)
        page = np.zeros(1, record("page"))
        page["known"] = True
        # So rarely changed that the bound decides: ½ τ Ein(x).
        numeric.site_worth(
            page,
            hazard=np.array([x]),
            jump=np.zeros(1),
            per=np.array([1e-300]),
            importance=np.ones(1),
            now=2.0,
            longest=inf,
            worth=worth,
        )
        assert worth[0] == pytest.approx(ein(float(x)), rel=1e-11)


class Drifting:
    """Twelve pages, three of them busy, that are visited every other day in turn."""

    def __init__(self) -> None:
        self.ranker, self.rng = pages(12, per_day=6), np.random.default_rng(3)
        self.chance = np.where(np.arange(12) >= 9, 0.8, 0.01)
        self.day = 0

    def go_on(self) -> None:
        self.day += 1
        for row in range(self.day % 2, 12, 2):
            visit(self.ranker, row, self.day, changed=bool(self.rng.random() < self.chance[row]))

    def looks_until(self, row: int, *, above: float = 0.0, below: float = inf) -> int:
        """How many visits to a page until its rate is between these; 99: never."""
        for count in range(1, 100):
            self.go_on()
            self.go_on()
            if above < self.ranker.beliefs(self.day).rate[row] < below:
                return count
        return 99


def test_a_page_that_turns_busy_is_noticed_and_one_that_rests_is_let_go() -> None:
    site = Drifting()
    for _ in range(300):
        site.go_on()
    before = site.ranker.beliefs(300.0).rate
    assert before[0] < 0.05
    assert before[10] > 0.3
    site.chance[0], site.chance[10] = 1.0, 0.0
    assert site.looks_until(0, above=0.2) <= 8
    assert site.looks_until(10, below=0.1) <= 15


def test_new_pages_begin_with_what_is_usual_in_their_area() -> None:
    ranker, n = SiteClockRanker(30.0), 60
    area, none = np.arange(n) % 2, np.zeros(n, np.bool_)
    ranker.add(np.zeros(n, np.intp), area, np.ones(n), np.zeros(n))
    ranker.learn(VisitResults(np.arange(n), np.zeros(n), none, none, none, none))
    rng = np.random.default_rng(5)
    for tick in range(1, 1_200):
        row = tick % n
        found = bool(rng.random() < (0.9 if row % 2 else 0.05))
        visit(ranker, row, tick / 30, changed=found)
    new, first = np.array([n, n + 1]), np.full(2, 41.0)
    ranker.add(np.zeros(2, np.intp), np.array([0, 1]), np.ones(2), first)
    ranker.learn(VisitResults(new, first, none[:2], none[:2], none[:2], none[:2]))
    quiet, busy = ranker.beliefs(42.0).rate[new]
    assert busy > 3 * quiet


def test_arrays_in_a_file_hold_what_is_written_when_the_system_takes_them_away() -> None:
    scratch = Scratch()
    for array in (np.zeros((0, 3)), np.arange(6.0).reshape(2, 3), np.ones(1 << 20, np.float32)):
        moved = scratch.moved(array)
        assert moved.dtype == array.dtype
        assert np.array_equal(moved, array)
        moved += 1.0
        scratch.let_go()
        assert np.array_equal(moved, array + 1.0) or moved is array
