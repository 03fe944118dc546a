"""Subscriptions as a state machine, without a hub."""

from itertools import count

import pytest

from freshet.crawler.extensions.push.tables import Subscription
from freshet.crawler.extensions.push.websub import Leases, is_live
from freshet.storage.entries import HubLink

DAY_S = 86_400.0
HOUR_S = 3_600.0
URL = "https://a.example/"
SAID = HubLink("https://hub.example/", URL)


def leases(**rules: float) -> Leases:
    numbers = count(1)
    return Leases(lambda: f"random-{next(numbers)}", **rules)  # type: ignore[arg-type]


@pytest.fixture
def book() -> Leases:
    return leases()


def subscribed(book: Leases, now: float = 0.0, page: int = 1, host: int = 1) -> Subscription:
    new = book.advertised(page, host, f"{URL}{page}", SAID, now)
    assert new is not None
    return new


def active(book: Leases, now: float = 0.0, lease_s: float | None = DAY_S) -> Subscription:
    token = subscribed(book, now).token
    book.requested(token, now)
    found = book.verified(token, "subscribe", URL, lease_s, now)
    assert found is not None
    return found


def test_a_page_that_names_its_hub_again_changes_nothing(book: Leases) -> None:
    new = subscribed(book)
    assert new.token != new.secret
    assert book.advertised(1, 1, URL, SAID, 1.0) is None


def test_another_hub_gets_another_token_and_secret_and_not_twice_a_day(book: Leases) -> None:
    first = active(book)
    other = HubLink("https://other.example/", URL)
    moved = book.advertised(1, 1, URL, other, HOUR_S)
    assert moved is not None
    assert {moved.token, moved.secret}.isdisjoint({first.token, first.secret})
    assert not is_live(moved, HOUR_S)
    assert book.of(first.token) is None
    assert book.advertised(1, 1, URL, SAID, 2 * HOUR_S) is None
    assert book.advertised(1, 1, URL, SAID, HOUR_S + DAY_S) is not None


def test_subscriptions_are_bounded_in_all_and_by_host() -> None:
    book = leases(most=3, of_a_host=2)
    subscribed(book, page=1)
    subscribed(book, page=2)
    assert book.advertised(3, 1, URL, SAID, 0.0) is None
    subscribed(book, page=4, host=2)
    assert book.advertised(5, 3, URL, SAID, 0.0) is None
    book.forget(book.due(0.0)[0].token)
    subscribed(book, page=5, host=3)


def test_a_lease_is_asked_for_anew_when_four_fifths_have_passed(book: Leases) -> None:
    found = active(book, lease_s=10 * DAY_S)
    assert book.due(8 * DAY_S - 1) == []
    assert book.due(8 * DAY_S) == [found]
    assert is_live(found, 10 * DAY_S)
    assert not is_live(found, 10 * DAY_S + 1)


def test_a_lease_is_that_of_the_hub_within_bounds_or_what_was_asked_for() -> None:
    assert active(leases(lease_s=5 * DAY_S), lease_s=None).lease_until == 5 * DAY_S
    assert active(leases(), lease_s=1e15).lease_until == 365 * DAY_S
    # A lease of a second does not make us ask every second.
    assert active(leases(), lease_s=1.0).next_at == 6 * HOUR_S


def test_only_what_was_asked_for_within_an_hour_is_verified(book: Leases) -> None:
    token = subscribed(book).token
    book.requested(token, 0.0)
    assert book.verified(token, "subscribe", URL, DAY_S, HOUR_S + 1) is None
    for mode in ("unsubscribe", "denied", "", "SUBSCRIBE"):
        assert book.verified(token, mode, URL, DAY_S, 0.0) is None
    assert book.verified(token, "subscribe", URL, DAY_S, HOUR_S) is not None


def test_a_redirect_of_the_hub_is_followed_at_once_but_not_for_ever(book: Leases) -> None:
    token = subscribed(book).token
    for hop in range(3):
        book.requested(token, 0.0)
        moved = book.answered(token, 0.0, "307", f"https://hub{hop}.example/")
        assert moved is not None
        assert moved.next_at == 0.0
    book.requested(token, 0.0)
    last = book.answered(token, 0.0, "307", "https://hub9.example/")
    assert last is not None
    assert last.next_at > HOUR_S


def test_a_farewell_is_said_three_times_at_most(book: Leases) -> None:
    token = active(book).token
    (leaving,) = book.leave(lambda _: False, HOUR_S)
    assert leaving.state == "leaving"
    assert book.request(leaving, "https://cb.example/") == {
        "hub.callback": "https://cb.example/", "hub.mode": "unsubscribe", "hub.topic": URL,
    }  # fmt: skip
    now = HOUR_S
    for _ in range(3):
        assert not book.has_ended(leaving)
        now = leaving.next_at
        leaving = book.requested(token, now)
    assert book.has_ended(leaving)


def test_what_is_wanted_again_is_subscribed_to_again(book: Leases) -> None:
    active(book)
    book.leave(lambda _: False, HOUR_S)
    (back,) = book.leave(lambda _: True, 2 * HOUR_S)
    assert back.state == "wanted"
    assert book.leave(lambda _: True, 2 * HOUR_S) == []


def test_an_answer_that_comes_after_the_end_says_nothing(book: Leases) -> None:
    token = subscribed(book).token
    book.requested(token, 0.0)
    book.forget(token)
    assert book.answered(token, 1.0, "http_500") is None
    assert len(book) == 0
