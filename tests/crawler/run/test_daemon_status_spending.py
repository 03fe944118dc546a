"""What a budget was spent on since a time."""

import pytest

from freshet.crawler.run.daemon_status import per_minute, spent
from freshet.storage.tables.runs import RunProgress

Moment = tuple[float, int, float, int, float]


@pytest.mark.parametrize(
    ("moments", "requests", "flowed"),
    [
        # A sixth of what came between 90 and 150 was before.
        ([(0, 1, 0, 0, 0.0), (90, 1, 0, 8, 9.0), (150, 1, 0, 13, 15.0), (200, 1, 0, 18, 20.0)],
         round(10 - 5 / 6), 10.0),
        # A daemon that began since counts from its beginning.
        ([(120, 1, 120, 0, 0.0), (200, 1, 120, 8, 8.5)], 8, 8.5),
        # A killed daemon goes on with its requests, three of which came before it was killed, and
        # with a budget of its own.
        ([(90, 1, 0, 9, 9.0), (150, 1, 0, 14, 15.0), (180, 1, 180, 17, 0.0),
          (200, 1, 180, 19, 2.0)], round(10 - 5 / 6), 7.0),
        # Runs are counted each by itself.
        ([(90, 1, 0, 9, 9.0), (150, 1, 0, 14, 15.0), (160, 2, 160, 0, 0.0),
          (200, 2, 160, 4, 4.0)], round(9 - 5 / 6), 9.0),
    ],
)  # fmt: skip
def test_what_was_spent_is_counted_from_the_moments_around_the_beginning(
    moments: list[Moment], requests: int, flowed: float
) -> None:
    found = spent([RunProgress(*each) for each in moments], 100)
    assert (found.requests, found.flowed, found.share) == (requests, flowed, requests / flowed)


def test_less_than_a_request_has_no_share_and_nothing_is_no_error() -> None:
    assert spent([RunProgress(0, 1, 0, 0, 0.0), RunProgress(5, 1, 0, 0, 0.5)], 0).share is None
    assert spent([], 0).requests == 0


def test_requests_a_minute_are_of_the_minutes_that_runs_went_on() -> None:
    # Three minutes of one run since then, and two of the next, which began later.
    moments = [(0, 1, 0, 0, 0.0), (420, 1, 0, 70, 70.0), (900, 2, 900, 0, 0.0),
               (1_020, 2, 900, 20, 20.0)]  # fmt: skip
    found = per_minute([RunProgress(*each) for each in moments], 240)
    assert found == pytest.approx((30 + 20) / 5)
    assert per_minute([], 0) == 0
