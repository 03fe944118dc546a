"""Pages valued by the clock of their site."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.scheduler.arrays import Floats, ScratchArrays
from freshet.scheduler.estimate.evidence import VisitResults
from freshet.scheduler.queue.site_clock_ranker import SiteClockRanker

#: Page, days since the visit before, and what it found.
LOOKS = st.lists(
    st.tuples(
        st.integers(0, 11), st.floats(0.05, 9.0), st.sampled_from([True, False, False, None])
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


def visit(ranker: SiteClockRanker, row: int, at: float, *, changed: bool | None) -> None:
    ranker.learn(VisitResults.one(row, at, changed=changed))


@given(LOOKS, st.integers(1, 7), st.integers(1, 3))
@settings(deadline=None)
def test_in_which_batches_looks_come_does_not_show(
    visits: list[tuple[int, float, bool | None]], size: int, sites: int
) -> None:
    told, recalled = pages(12, sites), pages(12, sites)
    now, batch = 0.0, []
    for row, pause, found in visits:
        now += pause
        visit(told, row, now, changed=found)
        batch.append((row, now, found))
    for first in range(0, len(batch), size):
        row_of, at, found_of = zip(*batch[first : first + size], strict=True)
        recalled.learn(
            VisitResults(
                np.array(row_of, np.intp), np.array(at),
                np.array([found is not None for found in found_of]),
                np.array([bool(found) for found in found_of]),
                np.array([False] * len(at)),
                np.array([bool(found) for found in found_of]),
            )
        )  # fmt: skip
    worth = told.values(now + 1)
    assert np.array_equal(worth, recalled.values(now + 1))
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
    assert np.array_equal(early.values(41.0), late.values(41.0))
    assert not early.values(41.0)[8:].any()


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


def test_pages_that_know_nothing_of_each_other_go_by_the_days() -> None:
    ranker, rng = pages(40, per_day=20), np.random.default_rng(4)
    rate = np.exp(rng.uniform(np.log(0.01), np.log(1.0), 40))
    last, used = np.zeros(40), 0
    for tick in range(1, 4_000):
        now = tick / 20
        row = int(np.argmax(ranker.values(now)))
        changed = rng.random() < -np.expm1(-rate[row] * (now - last[row]))
        visit(ranker, row, now, changed=bool(changed))
        last[row] = now
        used += ranker._learners[0].proven
    assert used < 1_000


def test_the_page_that_waits_too_long_is_looked_at_before_all_others() -> None:
    ranker = pages(10, per_day=10)
    for day in range(1, 8):
        for row in range(1, 10):
            visit(ranker, row, float(day), changed=row % 2 == 0)
    assert int(np.argmax(ranker.values(8.0))) == 0


def test_after_years_it_holds_no_more_than_after_months() -> None:
    ranker, sizes = pages(6, per_day=3), []
    for tick in range(1, 6_001):
        visit(ranker, tick % 6, tick / 3, changed=tick % 7 == 0)
        if tick % 1_500 == 0:
            arrays = ranker._learners[0].site.structure._arrays
            sizes.append(sum(array.nbytes for array in arrays))
    assert float(ranker._learners[0].site.began[0]) > 1_000
    assert max(sizes) < 60_000
    assert np.isfinite(ranker.values(2_001.0)).all()


def test_a_page_that_slept_through_what_is_kept_goes_by_when_it_was_seen() -> None:
    ranker = pages(6, per_day=3)
    for tick in range(1, 3_000):
        visit(ranker, tick % 5, tick / 3, changed=tick % 4 == 0)
    assert float(ranker._learners[0].site.began[0]) > 0
    found = stale(ranker, 1_000.0)
    assert found[5] > found[:5].max()
    visit(ranker, 5, 1_000.0, changed=True)
    assert np.isfinite(ranker.values(1_001.0)).all()


def test_what_is_folded_says_what_was_noted() -> None:
    kept, folded = pages(6, per_day=3), pages(6, per_day=3)
    for tick in range(1, 500):
        for ranker in (kept, folded):
            visit(ranker, tick % 6, tick * 1.1, changed=tick % 6 == 2)
        if tick == 240:
            learner, (pages_, belief) = folded._learners[0], (folded._pages(), folded._belief.rows)
            before = folded.beliefs(tick * 1.1).rate.copy()
            learner._fold(pages_, belief)
            learner._fit(pages_, belief)
            assert folded.beliefs(tick * 1.1).rate == pytest.approx(before, rel=0.2)
        if tick == 250:
            break
    assert len(folded._learners[0].site.base)
    assert folded.beliefs(300.0).rate == pytest.approx(kept.beliefs(300.0).rate, rel=0.3)


@pytest.mark.parametrize("size", [2, 7, 50, 1_000])
def test_when_sessions_are_folded_does_not_depend_on_the_batches(size: int) -> None:
    rng, told, recalled = np.random.default_rng(size), pages(12), pages(12)
    row = rng.integers(0, 12, 3_000)
    at = np.cumsum(rng.exponential(0.2, len(row)))
    changed, none = rng.random(len(row)) < 0.2, np.zeros(len(row), np.bool_)
    looks = VisitResults(row, at, ~none, changed, none, changed)
    for k in range(len(row)):
        told.learn(looks.take(slice(k, k + 1)))
    for first in range(0, len(row), size):
        recalled.learn(looks.take(slice(first, first + size)))
    assert float(told._learners[0].site.began[0]) > 0
    for one, other in zip(told._learners, recalled._learners, strict=True):
        assert one.site.facts.tobytes() == other.site.facts.tobytes()
    assert np.array_equal(told.values(at[-1] + 1), recalled.values(at[-1] + 1))


def test_a_site_of_all_areas_has_a_clock_in_each() -> None:
    n = 32
    ranker, none = SiteClockRanker(n / 4), np.zeros(n, np.bool_)
    ranker.add(np.zeros(n, np.intp), np.arange(n) % 16, np.ones(n), np.zeros(n))
    ranker.learn(VisitResults(np.arange(n), np.zeros(n), none, none, none, none))
    for day in range(2, 40, 2):
        for row in range(day % 7, n, 3):
            visit(ranker, row, float(day), changed=day % 10 == 0)
            assert np.isfinite(ranker.values(float(day))).all()
    learner = ranker._learners[0]
    assert learner.proven
    assert learner.fit.passed.shape[0] == 17


@pytest.mark.parametrize("visits", [0, 1, 30])
@pytest.mark.parametrize("sites", [1, 2])
def test_a_page_takes_its_history_to_where_it_moves(visits: int, sites: int) -> None:
    ranker = pages(8, sites)
    for day in range(1, visits + 1):
        for row in range(7):
            visit(ranker, row, 2.0 * day, changed=row == 0)
    ranker.inherit(0, 7)
    visit(ranker, 7, 2.0 * visits + 2, changed=False)
    rate = ranker.beliefs(2.0 * visits + 3).rate
    assert np.isfinite(rate).all()
    if visits == 30:
        assert rate[7] > 5 * rate[3]


def test_looks_that_become_known_out_of_order_are_harmless() -> None:
    ranker = pages(8)
    for at, row in ((5.0, 0), (4.9, 1), (4.8, 0), (5.0, 2), (4.7, 3), (5.1, 4), (4.95, 5)):
        visit(ranker, row, at, changed=True)
    assert np.isfinite(ranker.values(6.0)).all()


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


def test_new_pages_begin_with_what_is_usual_on_their_site() -> None:
    n = 60
    ranker, rng = pages(n, sites=2, per_day=30), np.random.default_rng(5)
    for tick in range(1, 1_200):
        row = tick % n
        visit(ranker, row, tick / 30, changed=bool(rng.random() < (0.9 if row % 2 else 0.05)))
    new, none = np.array([n, n + 1]), np.zeros(2, np.bool_)
    ranker.add(np.array([0, 1]), np.zeros(2, np.intp), np.ones(2), np.full(2, 41.0))
    ranker.learn(VisitResults(new, np.full(2, 41.0), none, none, none, none))
    for tick in range(1_200, 1_800):
        visit(ranker, tick % n, tick / 30 + 1.5, changed=bool(tick % 2))
    quiet, busy = ranker.beliefs(60.0).rate[new]
    assert busy > 3 * quiet


def test_arrays_in_a_file_hold_what_is_written_when_the_system_takes_them_away() -> None:
    scratch = ScratchArrays()
    for array in (np.zeros((0, 3)), np.arange(6.0).reshape(2, 3), np.ones(1 << 20, np.float32)):
        moved = scratch.moved(array)
        assert moved.dtype == array.dtype
        assert np.array_equal(moved, array)
        moved += 1.0
        scratch.release()
        assert np.array_equal(moved, array + 1.0) or moved is array


def test_a_page_presumed_to_change_often_comes_first_until_its_visits_say_otherwise() -> None:
    ranker, n = SiteClockRanker(2.0), 8
    zeros = np.zeros(n, np.intp)
    ranker.add(zeros, zeros, np.ones(n), np.zeros(n), pace=np.array([3.0] + [1.0] * (n - 1)))
    none = np.zeros(n, np.bool_)
    ranker.learn(VisitResults(np.arange(n), np.zeros(n), none, none, none, none))
    assert ranker.values(20.0).argmax() == 0
    for turn in range(1, 13):
        for row in range(n):
            visit(ranker, row, 20.0 * turn, changed=row == 5)
    assert ranker.values(260.0).argmax() == 5
    rate = ranker.beliefs(260.0).rate
    assert rate[5] > 4 * rate[0] > 0
