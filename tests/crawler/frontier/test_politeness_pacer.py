"""A budget of requests over time."""

from bisect import bisect_left
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.frontier.politeness import Pacer

DAY_S = 86_400.0
HOUR_S = 3_600.0


def starts(pacer: Pacer, pauses: list[float]) -> list[float]:
    """When requests start if after each pause all are made that may be."""
    now, times = 0.0, []
    for pause in pauses:
        now += pause
        while pacer.allows(now):
            pacer.started()
            times.append(now)
    return times


def test_what_is_saved_for_a_session_stays_when_less_may_be_saved() -> None:
    pacer = Pacer(1.0, 0.0)
    pacer.save(15.0)
    assert pacer.saved(100 * DAY_S) == 15.0
    pacer.save(0.0)
    assert pacer.saved(101 * DAY_S) == 15.0
    assert pacer.forgone == 86.0


@given(st.floats(1, 1e7), st.lists(st.floats(0, 5_000), min_size=1, max_size=60))
def test_no_hour_brings_more_than_its_share_and_the_reserve(
    per_day: float, pauses: list[float]
) -> None:
    # No more than a few thousand requests, so that the test ends.
    per_day = min(per_day, 2_000 * DAY_S / max(1.0, sum(pauses)))
    times = starts(Pacer(per_day, 0.0), pauses)
    reserve = max(1.0, per_day / 2_880)
    for i, first in enumerate(times):
        in_an_hour = sum(first <= at < first + HOUR_S for at in times[i:])
        assert in_an_hour <= per_day / 24 + reserve + 1e-3


@pytest.mark.parametrize("per_day", [10, 500, 50_000, 3_000_000])
def test_who_asks_when_told_spends_the_budget_whole_and_evenly(per_day: int) -> None:
    pacer, now, times = Pacer(per_day, 1.8e9), 1.8e9, []
    until = now + min(DAY_S, 5_000 / per_day * DAY_S)
    while (now := pacer.allows_at(now)) <= until:
        pacer.started()
        times.append(now)
    assert abs(len(times) - (until - 1.8e9) / DAY_S * per_day) <= 1
    gaps = [b - a for a, b in pairwise(times)]
    assert max(gaps) < 1.01 * DAY_S / per_day
    assert pacer.forgone == pytest.approx(0, abs=1e-3)


def test_a_start_and_the_end_of_a_pause_are_no_bursts() -> None:
    pacer = Pacer(24_000, 0.0)
    assert not pacer.allows(0)
    assert len(starts(pacer, [10 * DAY_S, 0.0])) == 24_000 // 2_880
    assert pacer.forgone == pytest.approx(240_000 - 24_000 / 2_880)


@given(
    st.lists(
        st.tuples(st.floats(1, 2e4), st.floats(60, 10_000), st.sampled_from([0.0, 30.0, 4_000.0])),
        min_size=1,
        max_size=5,
    )
)
def test_any_hour_brings_the_budget_within_two_parts_in_a_hundred_or_one_request(
    parts: list[tuple[float, float, float]],
) -> None:
    """Budgets a day that hold for so many seconds each, all of them spent but for a pause."""
    pacer, now, times = Pacer(parts[0][0], 0.0), 0.0, []
    ends, pauses = [0.0], []
    for per_day, seconds, pause in parts:
        pacer.change(per_day, now)
        pauses.append((now, now + pause))
        now, until = now + pause, now + pause + seconds
        while (now := pacer.allows_at(now)) <= until:
            pacer.started()
            times.append(now)
        now = until
        ends.append(now)

    def flow(begin: float, end: float) -> float:
        """What flows in from one time to another."""
        overlaps = (min(end, b) - max(begin, a) for a, b in pairwise(ends))
        return sum(
            max(0.0, overlap) * per_day / DAY_S
            for overlap, (per_day, _, _) in zip(overlaps, parts, strict=True)
        )

    begins = [*times[:: max(1, len(times) // 50)], *ends]
    for begin in (each for each in begins if each + HOUR_S <= ends[-1]):
        end = begin + HOUR_S
        asked, may = bisect_left(times, end) - bisect_left(times, begin), flow(begin, end)
        highest = max(part[0] for part, b in zip(parts, ends[1:], strict=True) if b > begin)
        slack = max(0.02 * highest / 24, 1.0) + 1e-3
        assert asked <= may + slack
        if not any(a < end and b > begin and b > a for a, b in pauses):
            assert asked >= may - slack


def test_a_clock_set_back_neither_gives_nor_takes() -> None:
    pacer = Pacer(24, 0.0)
    assert not pacer.allows(HOUR_S / 2)
    assert not pacer.allows(0)
    assert pacer.allows_at(0) == pytest.approx(HOUR_S / 2)


def test_another_budget_holds_at_once() -> None:
    pacer = Pacer(24, 0.0)
    pacer.change(48, HOUR_S / 2)
    assert pacer.allows_at(HOUR_S / 2) == pytest.approx(0.75 * HOUR_S)


def test_without_a_limit_nothing_waits() -> None:
    pacer = Pacer(inf, 0.0)
    for _ in range(1_000):
        assert pacer.allows_at(0.0) == 0.0
        pacer.started()
    assert (pacer.spent, pacer.forgone) == (1_000, 0.0)


@pytest.mark.parametrize("per_day", [0, -1, float("nan")])
def test_a_budget_of_nothing_is_refused(per_day: float) -> None:
    with pytest.raises(ValueError, match="per_day"):
        Pacer(per_day, 0.0)


def test_all_that_flowed_was_spent_or_kept_or_forgone() -> None:
    pacer = Pacer(86_400.0, now=0.0)
    for now in range(1, 41):
        assert pacer.allows(float(now))
        pacer.started()
    assert pacer.flowed(50.0) == pytest.approx(50.0)
    assert pacer.flowed(500.0) == pytest.approx(500.0)
    assert pacer.forgone == pytest.approx(500 - 40 - 30)
