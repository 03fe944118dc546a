import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.policies.adaptive_intervals import StormCrawlerAdaptive
from freshet.scheduler.policy import Pace, Revisit


def test_the_first_capture_starts_with_the_default_interval_of_a_day() -> None:
    assert StormCrawlerAdaptive().next_interval(None, Revisit(5, changed=True)) == Pace(1, 6)


def test_an_unchanged_source_waits_half_as_long_again() -> None:
    assert StormCrawlerAdaptive().next_interval(Pace(4, 9), Revisit(9, False)) == Pace(6, 15)


def test_a_changed_source_comes_half_the_way_to_an_hour() -> None:
    pace = StormCrawlerAdaptive().next_interval(Pace(2, 9), Revisit(9, True))
    assert pace.interval * 24 == pytest.approx((48 + 1) / 2)
    assert pace.due_at == pytest.approx(9 + pace.interval)


def test_without_changes_the_interval_reaches_two_weeks_and_stays_there() -> None:
    policy, pace = StormCrawlerAdaptive(), Pace(1, 1)
    for day in range(20):
        pace = policy.next_interval(pace, Revisit(day, False))
    assert pace.interval == 14


@given(st.floats(1 / 24, 14), st.integers(0, 50))
def test_changes_close_in_on_the_minimum_geometrically(interval: float, changes: int) -> None:
    policy, pace = StormCrawlerAdaptive(dec_rate=0.25), Pace(interval, 0)
    for day in range(changes):
        pace = policy.next_interval(pace, Revisit(day, True))
    distance = (interval - policy.min_days) * 0.75**changes
    assert pace.interval == pytest.approx(policy.min_days + distance)


def test_the_last_change_that_the_server_names_does_not_matter() -> None:
    policy = StormCrawlerAdaptive()
    named = policy.next_interval(Pace(4, 9), Revisit(9, False, modified_at=1))
    assert named == policy.next_interval(Pace(4, 9), Revisit(9, False))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_days": 2}, "min_days, first_days, max_days: are 2, 1.0, 14.0; accepted is"),
        ({"max_days": float("nan")}, "min_days, first_days, max_days"),
        ({"inc_rate": 0}, "inc_rate: is 0; accepted is above 0 and at most 1"),
        ({"dec_rate": 1.5}, "dec_rate: is 1.5; accepted is above 0 and at most 1"),
    ],
)
def test_an_option_out_of_range_is_named(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StormCrawlerAdaptive(**options)
