"""What a budget was spent on since a time."""

from freshet.crawler.run.status import spent
from freshet.storage.tables.runs import RunProgress


def moments(*columns: tuple[float, int, float, int, float]) -> list[RunProgress]:
    return [RunProgress(*each) for each in columns]


def test_it_counts_evenly_between_the_moments_around_the_beginning() -> None:
    found = spent(
        moments(
            (0, 1, 0, 0, 0.0), (90, 1, 0, 8, 9.0), (150, 1, 0, 13, 15.0), (200, 1, 0, 18, 20.0)
        ),
        100,
    )
    # A sixth of what came between 90 and 150 was before.
    assert (found.requests, found.flowed) == (round(10 - 5 / 6), 10.0)
    assert found.share == 9 / 10


def test_a_daemon_that_began_since_counts_from_its_beginning() -> None:
    found = spent(moments((120, 1, 120, 0, 0.0), (200, 1, 120, 8, 8.5)), 100)
    assert (found.requests, found.flowed) == (8, 8.5)


def test_a_killed_daemon_goes_on_with_its_requests_and_with_a_budget_of_its_own() -> None:
    found = spent(
        moments(
            (90, 1, 0, 9, 9.0), (150, 1, 0, 14, 15.0),
            # Three more requests came before it was killed.
            (180, 1, 180, 17, 0.0), (200, 1, 180, 19, 2.0),
        ),
        100,
    )  # fmt: skip
    assert (found.requests, found.flowed) == (round(10 - 5 / 6), 7.0)


def test_runs_are_counted_each_by_itself() -> None:
    found = spent(
        moments(
            (90, 1, 0, 9, 9.0), (150, 1, 0, 14, 15.0), (160, 2, 160, 0, 0.0), (200, 2, 160, 4, 4.0)
        ),
        100,
    )
    assert (found.requests, found.flowed) == (round(9 - 5 / 6), 9.0)


def test_less_than_a_request_has_no_share_and_nothing_is_no_error() -> None:
    assert spent(moments((0, 1, 0, 0, 0.0), (5, 1, 0, 0, 0.5)), 0).share is None
    assert spent([], 0).requests == 0
