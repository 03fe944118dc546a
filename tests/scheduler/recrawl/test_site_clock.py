"""The clock of a site, and pages valued by it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.recrawl.by_clock import ByClock
from scheduler.recrawl.site_clock import REWRITTEN, SiteClock

LOOKS = st.lists(
    st.tuples(st.integers(0, 4), st.floats(0.05, 3.0), st.sampled_from([True, False, None])),
    max_size=40,
)


def pages(refresher: ByClock, n: int, site: int = 0) -> None:
    refresher.replan(n / 2.0, 0.0)
    refresher.add(np.full(n, site), np.zeros(n, np.intp), np.ones(n), np.zeros(n))


def test_where_nobody_has_looked_a_day_is_a_day() -> None:
    clock = SiteClock(0.0, 0.25)
    days = np.array([0.0, 1.0, 100.0])
    assert clock.shared(days) == pytest.approx(days)
    assert clock.cold(days, 3) == pytest.approx(REWRITTEN * days)
    clock.look(10.0, 11.0, 0.1, 0.1, 0, changed=False)
    assert clock.shared(np.array([300.0]))[0] - clock.shared(np.array([20.0]))[0] == pytest.approx(
        280
    )


def test_pages_that_changed_together_tell_when_and_unchanged_ones_when_not() -> None:
    clock = SiteClock(0.0, 0.25)
    for _ in range(20):
        clock.look(0.0, 10.0, 0.1, 0.0, 0, changed=True)
        clock.look(0.0, 6.0, 0.1, 0.0, 0, changed=False)
        clock.look(7.0, 10.0, 0.1, 0.0, 0, changed=False)
    passed = np.diff(clock.shared(np.array([0.0, 6.0, 7.0, 10.0])))
    assert passed[1] > 20 * passed[0]
    assert passed[1] > 20 * passed[2]


def test_a_rewritten_area_is_suspected_and_others_a_little() -> None:
    clock = SiteClock(0.0, 0.25)
    for _ in range(10):
        clock.look(4.0, 8.0, 1e-3, 1.0, 2, changed=True)
    here, there, nowhere = (
        float(np.diff(clock.cold(np.array(days), area))[0])
        for days, area in (([4.0, 8.0], 2), ([4.0, 8.0], 5), ([8.0, 12.0], 2))
    )
    assert here > 1.2 * there
    assert there > 100 * nowhere


@given(LOOKS)
@settings(deadline=None)
def test_time_never_goes_back_and_evidence_stays_finite(
    looks: list[tuple[int, float, bool | None]],
) -> None:
    clock, now = SiteClock(0.0, 0.1), 0.0
    for page, pause, changed in looks:
        clock.look(now, now + pause, 0.01 * 4**page, 0.5, page, changed=bool(changed))
        now += pause
    days = np.linspace(0, now + 5, 200)
    for passed in (clock.shared(days), clock.cold(days, 1)):
        assert np.isfinite(passed).all()
        assert (np.diff(passed) >= -1e-9).all()


@given(LOOKS)
@settings(deadline=None)
def test_what_is_recalled_is_what_was_learnt(looks: list[tuple[int, float, bool | None]]) -> None:
    told, recalled = ByClock(), ByClock()
    pages(told, 5)
    pages(recalled, 5)
    now, rows, days, compared, changed = 0.0, [], [], [], []
    for row, pause, found in looks:
        now += pause
        told.looked(row, now, changed=found)
        rows.append(row)
        days.append(now)
        compared.append(found is not None)
        changed.append(bool(found))
    recalled.recall(
        np.array(rows, np.intp), np.array(days), np.array(compared, np.bool_),
        np.array(changed, np.bool_),
    )  # fmt: skip
    assert np.array_equal(told.worth(now + 1), recalled.worth(now + 1))
    worth = told.worth(now + 1)
    assert np.isfinite(worth).all()
    assert (worth >= 0).all()


def test_a_site_that_changes_at_once_has_its_pages_suspected_together() -> None:
    refresher = ByClock()
    pages(refresher, 30)
    rng = np.random.default_rng(2)
    rewritten = np.arange(10.0, 400.0, 20.0)
    last, tick = np.zeros(30), 0
    for tick in range(1, 4_000):
        now = tick / 15
        row = int(rng.integers(0, 30))
        changed = bool(((rewritten > last[row]) & (rewritten <= now)).any())
        refresher.looked(row, now, changed=changed)
        last[row] = now
    assert refresher._sites[0].loss < 0
    # The site is rewritten on day 270, and the first three pages tell.
    for row in range(30):
        refresher.looked(row, 269.9, changed=False)
    before = [refresher.stale(row, 270.5) for row in range(3, 30)]
    for row in range(3):
        refresher.looked(row, 270.5, changed=True)
    after = [refresher.stale(row, 270.5) for row in range(3, 30)]
    assert np.mean(before) < 0.2
    assert np.mean(after) > max(0.3, 3 * float(np.mean(before)))


def test_the_page_that_waits_too_long_is_looked_at_before_all_others() -> None:
    refresher = ByClock()
    pages(refresher, 10)
    for day in range(1, 8):
        for row in range(1, 10):
            refresher.looked(row, float(day), changed=row % 2 == 0)
    assert int(np.argmax(refresher.worth(8.0))) == 0
