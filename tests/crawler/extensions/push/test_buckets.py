"""Token buckets: never more than the burst and what flowed in."""

from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.service.senders import Buckets


@given(st.lists(st.tuples(st.floats(0.0, 30.0), st.floats(0.1, 3.0)), max_size=100))
def test_no_span_gives_more_than_burst_and_flow(steps: list[tuple[float, float]]) -> None:
    buckets, now, taken = Buckets(5.0, 0.5, room=10), 0.0, []
    for gap, amount in steps:
        now += gap
        if buckets.take("k", now, amount):
            taken.append((now, amount))
    for i, (begun, _) in enumerate(taken):
        total = 0.0
        for at, amount in taken[i:]:
            total += amount
            assert total <= 5.0 + 0.5 * (at - begun) + 1e-6


def test_keys_do_not_take_from_each_other() -> None:
    buckets = Buckets(1.0, 0.0, room=10)
    assert [buckets.take(key, 0.0) for key in "aab"] == [True, False, True]


def test_a_clock_that_is_set_back_leaves_no_bucket_empty() -> None:
    buckets = Buckets(1.0, 0.5, room=10)
    assert [buckets.take("k", now) for now in (1e9, 1e9, 5.0, 6.0)] == [True, False, True, False]


def test_only_so_many_keys_are_remembered() -> None:
    buckets = Buckets(1.0, 0.0, room=10)
    for n in range(100):
        buckets.take(n, 0.0)
    assert len(buckets._levels) == 10
    assert not buckets.take(99, 0.0)


def test_what_is_drained_fills_again() -> None:
    buckets = Buckets(2.0, 1.0, room=10)
    buckets.drain("k", 0.0)
    assert [buckets.take("k", now) for now in (0.5, 1.0)] == [False, True]
