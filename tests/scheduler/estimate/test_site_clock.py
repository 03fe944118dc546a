"""The clock of a site."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.compiled.numeric import CONSTANTS
from freshet.scheduler.estimate import site_model
from freshet.scheduler.estimate.site_model import ClockState
from tests.compiled.inner import look, read

REWRITTEN = CONSTANTS["REWRITTEN"]


def started(width: float = 0.25) -> ClockState:
    return site_model.started(0.0, width, 6)


def test_where_nobody_has_looked_a_day_is_a_day() -> None:
    clock = started()
    shared, cold = read(clock, [0.0, 1.0, 100.0], 3)
    assert shared == pytest.approx([0.0, 1.0, 100.0])
    assert cold == pytest.approx(REWRITTEN * shared)
    look(clock, 10.0, 11.0, 0.1, 0.1, 0, False)
    assert np.diff(read(clock, [20.0, 300.0])[0]) == pytest.approx(280)


def test_pages_that_changed_together_tell_when_and_unchanged_ones_when_not() -> None:
    clock = site_model.with_larger_ring(started())
    for _ in range(20):
        look(clock, 0.0, 10.0, 0.1, 0.0, 0, True)
        look(clock, 0.0, 6.0, 0.1, 0.0, 0, False)
        look(clock, 7.0, 10.0, 0.1, 0.0, 0, False)
    passed = np.diff(read(clock, [0.0, 6.0, 7.0, 10.0])[0])
    assert passed[1] > 20 * passed[0]
    assert passed[1] > 20 * passed[2]


def test_a_rewritten_area_is_suspected_and_others_a_little() -> None:
    clock = started()
    for _ in range(10):
        look(clock, 4.0, 8.0, 1e-3, 1.0, 2, True)
    here, there, nowhere = (
        float(np.diff(read(clock, days, area)[1])[0])
        for days, area in (([4.0, 8.0], 2), ([4.0, 8.0], 5), ([8.0, 12.0], 2))
    )
    assert here > 1.2 * there
    assert there > 100 * nowhere


def test_what_it_says_of_the_last_bins_does_not_depend_on_those_it_let_go() -> None:
    visits = [(day, day + 3.0, 0.1, 0.5, int(day) % 3, int(day) % 4 == 0) for day in range(300)]
    old, young = started(0.25), started(0.25)
    for visit in visits:
        look(old, *visit)
    assert float(old.facts[0]["at"]) > 100.0
    for visit in visits[-120:]:
        look(young, *visit)
    for mine, other in zip(
        read(old, [250.0, 280.0, 303.0], 1), read(young, [250.0, 280.0, 303.0], 1), strict=True
    ):
        assert np.diff(mine) == pytest.approx(np.diff(other), rel=0.05)


def test_a_larger_ring_and_further_areas_change_nothing_that_is_known() -> None:
    clock = site_model.started(0.0, 0.25, 2)
    for k in range(25):
        look(clock, 0.3 * k, 0.3 * k + 2.0, 0.1, 0.4, k % 2, k % 3 > 0)
    before = read(clock, [1.0, 3.0, 9.0], 1)
    larger = site_model.with_areas(site_model.with_larger_ring(clock), 7)
    for mine, other in zip(read(larger, [1.0, 3.0, 9.0], 1), before, strict=True):
        assert mine == pytest.approx(other)
    kept = clock.facts[0]["next"] - clock.facts[0]["oldest"]
    assert kept == len(clock.ring)
    for number in range(int(clock.facts[0]["oldest"]), int(clock.facts[0]["next"])):
        assert larger.ring[number % len(larger.ring)] == clock.ring[number % len(clock.ring)]


LOOKS = st.lists(st.tuples(st.integers(0, 4), st.floats(0.05, 30.0), st.booleans()), max_size=60)


@given(LOOKS)
@settings(deadline=None)
def test_time_never_goes_back_and_evidence_stays_finite(
    visits: list[tuple[int, float, bool]],
) -> None:
    clock, now = started(0.1), 0.0
    for page, pause, changed in visits:
        look(clock, now, now + pause, 0.01 * 4**page, 0.5, page, changed)
        now += pause
    kept = float(clock.facts[0]["at"])
    for passed in read(clock, np.linspace(kept, now + 5, 200).tolist(), 1):
        assert np.isfinite(passed).all()
        assert (np.diff(passed) >= -1e-9).all()
    for bins in (clock.changes, clock.all_changes, clock.cold_changes, clock.exposure):
        assert np.isfinite(bins).all()
        assert (bins >= 0).all()
