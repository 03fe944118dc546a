"""Queues: what each answer does to the time of the next exchange."""

from datetime import UTC, datetime, tzinfo
from random import Random
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.frontier.politeness import (
    HostAnswer,
    HostQueue,
    Hours,
    PolitenessRules,
    answer_of,
    back_off_s,
    stricter,
)
from freshet.storage.entries import HostState

RULES = PolitenessRules()
NOON = 1_800_000_000.0
HOUR_S, DAY_S = 3_600.0, 86_400.0


def queue(rules: PolitenessRules = RULES) -> HostQueue:
    return HostQueue("a", rules, Random(0))


def end(
    queue: HostQueue,
    now: float,
    answer: HostAnswer = "fine",
    *,
    response_s: float = 0.0,
    retry_after_s: float | None = None,
    why: str = "why",
) -> float:
    """One exchange that ends at ``now``; the pause that follows it."""
    queue.start()
    queue.end(now, response_s, answer, retry_after_s, why)
    return queue.ready_at - now


@pytest.mark.parametrize(
    ("status", "reason", "answer"),
    [
        *((200, reason, "fine") for reason in (None, "too_large", "encoding", "content_type")),
        *((None, reason, "fine") for reason in ("address", "no_such_host", "url")),
        *((None, reason, "down") for reason in ("dns", "connect", "tls", "not_tls")),
        (None, "timeout_connect", "down"),
        *(
            (None, reason, "failed")
            for reason in ("timeout_headers", "hung_up", "protocol", "internal")
        ),
        *((200, reason, "failed") for reason in ("timeout_body", "too_slow", "cut_short")),
        *((status, f"http_{status}", "fine") for status in (301, 404)),
        (403, "http_403", "forbidden"),
        *((status, f"http_{status}", "throttled") for status in (429, 503)),
        (500, "http_500", "failed"),
    ],
)
def test_an_exchange_is_classified_by_its_status_and_failure(
    status: int | None, reason: str | None, answer: HostAnswer
) -> None:
    assert answer_of(status, reason) == answer


@given(st.integers(1, 2_000), st.integers(0, 99))
def test_back_off_is_exponential_with_jitter_between_1_and_1_25_up_to_a_cap(
    troubles: int, seed: int
) -> None:
    bare = min(5.0 * 4.0 ** min(troubles - 1, 100), RULES.back_off_max_s)
    pause = back_off_s(RULES, troubles, Random(seed))
    assert bare <= pause <= bare * 1.25


def test_back_off_of_an_absurd_factor_ends_at_the_cap() -> None:
    rules = PolitenessRules(back_off_factor=1e300, back_off_jitter=0.0)
    assert back_off_s(rules, 2_000, Random(0)) == rules.back_off_max_s


def test_back_off_differs_between_hosts_that_failed_together() -> None:
    rng = Random(0)
    assert len({back_off_s(RULES, 3, rng) for _ in range(50)}) == 50


@given(st.floats(0, 100), st.floats(0, 1_000), st.floats(0, 1_000))
def test_the_delay_is_the_largest_of_configured_asked_and_slow_and_never_shorter(
    delay_s: float, crawl_delay_s: float, response_s: float
) -> None:
    polite = queue(PolitenessRules(delay_s=delay_s))
    polite.obey_crawl_delay(crawl_delay_s)
    pause = end(polite, NOON, response_s=response_s)
    expected = max(delay_s, min(crawl_delay_s, 60.0), min(response_s, 30.0))
    assert pause == pytest.approx(expected, abs=1e-6)


def test_a_queue_may_start_at_once_when_nothing_is_known_of_it() -> None:
    assert queue().ready_at <= 0.0


def test_the_delay_runs_from_the_end_of_an_exchange() -> None:
    polite = queue()
    polite.start()
    full_between = polite.is_full
    polite.end(NOON + 9.0, 0.5, "fine", None, "200")
    assert (full_between, polite.is_full) == (True, False)
    assert polite.ready_at == NOON + 10.0


def test_the_first_retry_after_is_obeyed_as_it_stands_up_to_the_cap() -> None:
    for answer in ("throttled", "failed"):
        assert end(queue(), NOON, answer, retry_after_s=120.0) == 120.0
    assert end(queue(), NOON, "throttled", retry_after_s=1e9) == RULES.retry_after_cap_s


def test_a_retry_after_shorter_than_the_delay_does_not_shorten_it() -> None:
    polite = queue()
    polite.obey_crawl_delay(30.0)
    assert end(polite, NOON, "throttled", retry_after_s=1.0) == 30.0


def test_a_short_retry_after_is_outgrown_where_the_host_keeps_refusing() -> None:
    polite, now, pauses = queue(), NOON, []
    for _ in range(5):
        pauses.append(end(polite, now, "throttled", retry_after_s=2.0))
        now = polite.ready_at
    assert pauses[0] == 2.0
    for pause, bare in zip(pauses[1:], (5.0, 20.0, 80.0, 320.0), strict=True):
        assert bare <= pause <= bare * 1.25


def test_a_refusal_without_retry_after_backs_off_at_once() -> None:
    assert 5.0 <= end(queue(), NOON, "throttled") <= 6.25


def test_a_host_that_is_down_is_parked_at_once_and_longer_each_time() -> None:
    polite, now = queue(), NOON
    for bare in (5.0, 20.0, 80.0):
        pause = end(polite, now, "down", why="dns")
        assert bare <= pause <= bare * 1.25
        now = polite.ready_at
    assert polite.parked_reason == "dns"


def test_single_failures_do_not_park_but_several_in_a_row_do() -> None:
    polite, pauses, now = queue(), [], NOON
    for _ in range(4):
        pauses.append(end(polite, now, "failed"))
        now = polite.ready_at
    assert pauses[:2] == [1.0, 1.0]
    assert 5.0 <= pauses[2] <= 6.25
    assert 20.0 <= pauses[3] <= 25.0


def test_dead_urls_of_a_host_that_answers_well_do_not_park_it() -> None:
    polite, now = queue(), NOON
    for turn in range(16):
        assert end(polite, now, "failed" if 8 <= turn < 15 else "fine") == 1.0
        now = polite.ready_at
    # The failures have used its credit up: the next three park it.
    pauses = [end(polite, now, "failed") for _ in range(3)]
    assert pauses[-1] > 5.0


def test_a_good_answer_ends_the_back_off() -> None:
    polite = queue()
    end(polite, NOON, "down")
    end(polite, NOON + 100.0)
    assert polite.state(1) == HostState(1, "a", NOON + 100.0, 1.0)
    assert 5.0 <= end(polite, NOON + 200.0, "down") <= 6.25


def test_each_burst_of_403_answers_doubles_the_delay_and_a_good_answer_resets_it() -> None:
    polite = queue()
    pauses = [end(polite, NOON + i * 100, "forbidden") for i in range(10)]
    assert pauses == [1.0] * 4 + [2.0] * 5 + [4.0]
    assert end(polite, NOON + 9_999.0) == 1.0


def test_bursts_of_403_answers_without_end_keep_to_the_cap() -> None:
    polite = queue()
    for i in range(6_000):
        end(polite, NOON + i, "forbidden")
    assert polite.delay_s == RULES.back_off_max_s


def test_a_host_that_is_slow_is_asked_less_often_until_it_is_quick_again() -> None:
    polite = queue()
    assert end(polite, NOON, response_s=12.0) == 12.0
    assert end(polite, NOON + 24.0, response_s=900.0) == 30.0
    assert end(polite, NOON + 999.0, response_s=0.1) == 1.0


def test_what_was_under_way_when_the_queue_was_parked_neither_counts_nor_frees_it() -> None:
    polite = queue(PolitenessRules(connections_per_host=3))
    for _ in range(3):
        polite.start()
    polite.end(NOON, 0.1, "throttled", 60.0, "http_429")
    polite.end(NOON + 1.0, 0.1, "throttled", 60.0, "http_429")
    polite.end(NOON + 2.0, 0.1, "fine", None, "200")
    assert polite.ready_at == NOON + 61.0
    assert polite.troubles == 1
    assert polite.state(1).parked_until == NOON + 61.0
    assert polite.state(1).parked_reason == "http_429"


def test_the_pauses_of_several_connections_never_shorten_each_other() -> None:
    polite = queue(PolitenessRules(connections_per_host=2))
    polite.start()
    polite.start()
    polite.end(NOON, 20.0, "fine", None, "200")
    polite.end(NOON, 0.0, "fine", None, "200")
    assert polite.ready_at == NOON + 20.0


def restored(state: HostState, rules: PolitenessRules = RULES) -> HostQueue:
    again = queue(rules)
    again.restore(state)
    return again


def test_a_restart_keeps_park_and_reason() -> None:
    before = queue()
    end(before, NOON, "throttled", retry_after_s=3600.0, why="http_429")
    after = restored(before.state(1))
    assert after.ready_at == NOON + 3600.0
    assert (after.parked_until, after.parked_reason) == (NOON + 3600.0, "http_429")
    assert after.state(1) == before.state(1)


def test_a_restart_keeps_the_exponent() -> None:
    before, now = queue(), NOON
    for _ in range(3):
        end(before, now, "down")
        now = before.ready_at
    assert 320.0 <= end(restored(before.state(1)), now, "down") <= 400.0


def test_a_restart_keeps_the_delay_until_the_host_has_answered_well() -> None:
    before = queue()
    for i in range(10):
        end(before, NOON + i * 100, "forbidden")
    after = restored(before.state(1))
    assert after.ready_at == NOON + 904.0
    assert end(after, NOON + 910.0, "forbidden") == 4.0
    assert end(after, NOON + 920.0) == 1.0


def test_a_restart_with_a_longer_configured_delay_keeps_to_that() -> None:
    before = queue()
    end(before, NOON)
    assert restored(before.state(1), PolitenessRules(delay_s=20.0)).ready_at == NOON + 20.0


def test_an_older_state_of_the_same_queue_is_not_news() -> None:
    polite = queue()
    end(polite, NOON)
    polite.restore(HostState(2, "a", NOON - 50.0, 40.0, 9, NOON + 9_999.0, "dns"))
    assert polite.ready_at == NOON + 1.0
    assert polite.troubles == 0


def test_the_states_of_hosts_that_had_their_own_queues_are_joined_at_their_strictest() -> None:
    polite = queue()
    polite.restore(HostState(1, "x", NOON, 3.0, 2, None, None))
    polite.restore(HostState(2, "y", NOON - 60.0, 1.0, 0, NOON + 60.0, "http_429"))
    assert polite.ready_at == NOON + 60.0
    assert polite.troubles == 2
    assert polite.parked_reason == "http_429"


BERLIN = ZoneInfo("Europe/Berlin")


@given(
    st.integers(0, 1_439), st.integers(0, 1_440), st.floats(1.7e9, 1.8e9),
    st.sampled_from([UTC, BERLIN, ZoneInfo("Asia/Kolkata")]),
)  # fmt: skip
def test_hours_open_and_close_in_turn(start: int, end: int, now: float, zone: tzinfo) -> None:
    hours = Hours(start, end, zone)
    opens_at = hours.opens_at(now)
    assert now <= opens_at <= now + 1.1 * DAY_S
    assert hours.opens_at(opens_at) == opens_at
    assert opens_at < hours.closes_at(opens_at) <= opens_at + 1.1 * DAY_S
    if end % 1_440 != start and zone is not BERLIN:
        closes_at = hours.closes_at(opens_at)
        assert hours.opens_at(closes_at) > closes_at


def test_hours_of_a_night_are_those_of_the_wall_when_clocks_are_set() -> None:
    hours = Hours(22 * 60, 6 * 60, BERLIN)
    noon = datetime(2026, 10, 24, 12, tzinfo=BERLIN).timestamp()
    opens_at = hours.opens_at(noon)
    assert datetime.fromtimestamp(opens_at, BERLIN) == datetime(2026, 10, 24, 22, tzinfo=BERLIN)
    # In that night the clock goes back an hour.
    assert hours.closes_at(opens_at) - opens_at == 9 * HOUR_S


def test_hours_of_two_hosts_hold_together() -> None:
    day, night = Hours(8 * 60, 20 * 60, UTC), Hours(18 * 60, 9 * 60, UTC)
    both = stricter(PolitenessRules(hours=(day,)), PolitenessRules(hours=(night,)))
    midnight = 20_000 * DAY_S
    assert both.opens_at(midnight) == midnight + 8 * HOUR_S
    assert both.opens_at(midnight + 10 * HOUR_S) == midnight + 18 * HOUR_S
    assert both.closes_at(midnight + 8.5 * HOUR_S) == midnight + 9 * HOUR_S
