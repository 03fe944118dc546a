"""Keys of pings: what is remembered, and how often a host is asked."""

from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.extensions.push.indexnow import KeyCache, KeyPlace, holds_key

HOUR_S = 3_600.0
DAY_S = 24 * HOUR_S
HOST = "https://a.example"
PLACE = KeyPlace(HOST, "0a1b2c3d", f"{HOST}/0a1b2c3d.txt")


def test_a_key_is_valid_for_a_day_and_a_host_that_cannot_be_reached_is_asked_again_soon() -> None:
    for is_valid, standing, until in ((True, "valid", DAY_S), (None, "invalid", 900.0)):
        cache = KeyCache()
        assert cache.standing(PLACE, 0.0) == "unknown"
        cache.settle(PLACE, 0.0, is_valid=is_valid)
        assert cache.standing(PLACE, until - 1) == standing
        assert cache.standing(PLACE, until) == "unknown"


def test_a_wrong_key_is_asked_for_ever_more_rarely() -> None:
    cache, now, pauses = KeyCache(), 0.0, []
    for _ in range(4):
        cache.settle(PLACE, now, is_valid=False)
        begun = now
        while cache.standing(PLACE, now) == "invalid":
            now += HOUR_S
        pauses.append((now - begun) / HOUR_S)
    assert pauses == [1, 4, 16, 24]


@given(st.lists(st.floats(0.0, 600.0), max_size=200))
def test_no_host_is_asked_for_more_than_six_keys_in_an_hour(gaps: list[float]) -> None:
    cache, now, asked = KeyCache(), 0.0, []
    for n, gap in enumerate(gaps):
        now += gap
        if cache.may_request(KeyPlace(HOST, f"{n:08}", "x"), now):
            asked.append(now)
    assert all(sum(at <= other < at + HOUR_S for other in asked) <= 6 for at in asked)


def test_forgers_do_not_keep_a_key_from_being_renewed() -> None:
    cache = KeyCache()
    cache.settle(PLACE, 0.0, is_valid=True)
    forged = [cache.may_request(KeyPlace(HOST, f"{n:08}", "x"), DAY_S) for n in range(10)]
    assert forged.count(True) == 3
    assert cache.may_request(PLACE, DAY_S)


def test_a_key_file_says_the_key_and_nothing_else() -> None:
    for body in (b"0a1b2c3d", b"0a1b2c3d\r\n", b"\xef\xbb\xbf0a1b2c3d\n"):
        assert holds_key(body, "0a1b2c3d")
    for body in (b"", b"0a1b2c3d 0a1b2c3e", b"<p>0a1b2c3d</p>", b"0A1B2C3D"):
        assert not holds_key(body, "0a1b2c3d")
