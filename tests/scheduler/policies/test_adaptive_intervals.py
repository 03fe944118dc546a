import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.policies.adaptive_intervals import NutchAdaptive, StormCrawlerAdaptive
from freshet.scheduler.policy import Pace, Revisit

NUTCH, STORM = NutchAdaptive(), StormCrawlerAdaptive()
UNSYNCHRONISED = NutchAdaptive(sync_delta=False)
WEEKLY = NutchAdaptive(first_days=2, min_days=1, max_days=7)


@pytest.mark.parametrize(
    ("policy", "previous", "seen", "expected"),
    [
        # The first capture starts with the default interval of thirty days.
        (NUTCH, None, Revisit(5, changed=True, modified_at=1), Pace(30, 35)),
        # A change takes a fifth off, and none adds a fifth.
        (NUTCH, Pace(10, 20), Revisit(20, True), Pace(8, 28)),
        (NUTCH, Pace(10, 20), Revisit(20, False), Pace(12, 32)),
        # 40 days at rest: the interval is 40 instead of 12, the reference day 50 − 0.3 · 40 = 38.
        (NUTCH, Pace(10, 50), Revisit(50, False, modified_at=10), Pace(40, 38 + 40)),
        # 5 days at rest: the interval grows to 12, the reference day is 50 − 0.3 · 5 = 48.5.
        (NUTCH, Pace(10, 50), Revisit(50, False, modified_at=45), Pace(12, 48.5 + 12)),
        # The rest of a changed source is over.
        (NUTCH, Pace(10, 50), Revisit(50, True, modified_at=10), Pace(8, 58)),
        # Without synchronising, the last change does not matter; in the future it is unknown.
        (UNSYNCHRONISED, Pace(10, 50), Revisit(50, False, modified_at=10), Pace(12, 62)),
        (NUTCH, Pace(10, 50), Revisit(50, False, modified_at=70), Pace(12, 62)),
        # The case of NUTCH-1564: 30 days at rest, intervals of at most 7 days.
        (WEEKLY, Pace(7, 30), Revisit(30, False, modified_at=0), Pace(7, 30 + 7 - 0.3 * 7)),
        # StormCrawler starts with a day, and an unchanged source waits half as long again.
        (STORM, None, Revisit(5, changed=True), Pace(1, 6)),
        (STORM, Pace(4, 9), Revisit(9, False), Pace(6, 15)),
        # A changed source comes half the way to an hour.
        (STORM, Pace(2, 9), Revisit(9, True), Pace((2 + 1 / 24) / 2, 9 + (2 + 1 / 24) / 2)),
        # The last change that the server names does not matter.
        (STORM, Pace(4, 9), Revisit(9, False, modified_at=1), Pace(6, 15)),
    ],
)
def test_the_next_interval_follows_from_the_last_one_and_what_was_seen(
    policy: NutchAdaptive | StormCrawlerAdaptive, previous: Pace | None, seen: Revisit,
    expected: Pace,
) -> None:  # fmt: skip
    pace = policy.next_interval(previous, seen)
    assert pace.interval == pytest.approx(expected.interval)
    assert pace.due_at == pytest.approx(expected.due_at)


def test_intervals_stay_between_a_minute_and_a_year() -> None:
    policy, shortest, longest = NutchAdaptive(), Pace(1, 1), Pace(1, 1)
    for day in range(100):
        shortest = policy.next_interval(shortest, Revisit(day, True))
        longest = policy.next_interval(longest, Revisit(day, False))
    assert shortest.interval == pytest.approx(1 / 1440)
    assert longest.interval == 365


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
