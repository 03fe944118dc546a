import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.policies.adaptive_intervals import NutchAdaptive, StormCrawlerAdaptive
from freshet.scheduler.policy import Pace, Revisit


def test_the_first_capture_starts_with_the_default_interval_of_thirty_days() -> None:
    pace = NutchAdaptive().next_interval(None, Revisit(5, changed=True, modified_at=1))
    assert pace == Pace(30, 35)


@pytest.mark.parametrize(("changed", "interval"), [(True, 8), (False, 12)])
def test_a_change_takes_a_fifth_off_and_none_adds_a_fifth(changed: bool, interval: float) -> None:
    pace = NutchAdaptive().next_interval(Pace(10, 20), Revisit(20, changed=changed))
    assert pace.interval == pytest.approx(interval)
    assert pace.due_at == pytest.approx(20 + interval)


def test_a_source_that_has_rested_for_longer_waits_as_long_as_it_has_rested() -> None:
    # 40 days at rest: the interval is 40 instead of 12, the reference day 50 − 0.3 · 40 = 38.
    pace = NutchAdaptive().next_interval(Pace(10, 50), Revisit(50, False, modified_at=10))
    assert pace.interval == pytest.approx(40)
    assert pace.due_at == pytest.approx(38 + 40)


def test_a_short_rest_only_moves_the_due_day_towards_the_change() -> None:
    # 5 days at rest: the interval grows to 12, the reference day is 50 − 0.3 · 5 = 48.5.
    pace = NutchAdaptive().next_interval(Pace(10, 50), Revisit(50, False, modified_at=45))
    assert pace.interval == pytest.approx(12)
    assert pace.due_at == pytest.approx(48.5 + 12)


def test_the_rest_of_a_changed_source_is_over() -> None:
    pace = NutchAdaptive().next_interval(Pace(10, 50), Revisit(50, True, modified_at=10))
    assert pace == Pace(8, 58)


def test_without_synchronising_the_last_change_does_not_matter() -> None:
    policy = NutchAdaptive(sync_delta=False)
    assert policy.next_interval(Pace(10, 50), Revisit(50, False, modified_at=10)) == Pace(12, 62)


def test_a_last_change_in_the_future_counts_as_unknown() -> None:
    pace = NutchAdaptive().next_interval(Pace(10, 50), Revisit(50, False, modified_at=70))
    assert pace == Pace(12, 62)


def test_what_has_rested_for_years_is_not_due_at_once() -> None:
    # The case of NUTCH-1564: 30 days at rest, intervals of at most 7 days.
    policy = NutchAdaptive(first_days=2, min_days=1, max_days=7)
    pace = policy.next_interval(Pace(7, 30), Revisit(30, False, modified_at=0))
    assert pace.interval == 7
    assert pace.due_at == pytest.approx(30 + 7 - 0.3 * 7)


def test_intervals_stay_between_a_minute_and_a_year() -> None:
    policy, shortest, longest = NutchAdaptive(), Pace(1, 1), Pace(1, 1)
    for day in range(100):
        shortest = policy.next_interval(shortest, Revisit(day, True))
        longest = policy.next_interval(longest, Revisit(day, False))
    assert shortest.interval == pytest.approx(1 / 1440)
    assert longest.interval == 365


def test_the_first_capture_starts_with_stormcrawlers_default_of_a_day() -> None:
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
    ("policy", "options", "message"),
    [
        (NutchAdaptive, {"min_days": 0}, "min_days, first_days, max_days: are 0, 30.0, 365.0; acc"),
        (NutchAdaptive, {"first_days": 400}, "min_days, first_days, max_days"),
        (NutchAdaptive, {"max_days": float("inf")}, "min_days, first_days, max_days"),
        (NutchAdaptive, {"inc_rate": -0.1}, "inc_rate: is -0.1; accepted is a number of at least"),
        (NutchAdaptive, {"dec_rate": 1}, "dec_rate: is 1; accepted is at least 0 and below 1"),
        (NutchAdaptive, {"sync_delta_rate": float("nan")}, "sync_delta_rate: is nan"),
        (StormCrawlerAdaptive, {"min_days": 2}, "min_days, first_days, max_days: are 2, 1.0, 14.0"),
        (StormCrawlerAdaptive, {"max_days": float("nan")}, "min_days, first_days, max_days"),
        (StormCrawlerAdaptive, {"inc_rate": 0}, "inc_rate: is 0; accepted is above 0 and at most"),
        (StormCrawlerAdaptive, {"dec_rate": 1.5}, "dec_rate: is 1.5; accepted is above 0 and at m"),
    ],
)
def test_an_option_out_of_range_is_named(
    policy: type[NutchAdaptive | StormCrawlerAdaptive], options: dict[str, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        policy(**options)  # type: ignore[arg-type]
