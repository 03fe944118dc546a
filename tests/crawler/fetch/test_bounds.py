"""A bounded mapping that forgets what was used longest ago."""

from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.fetch.bounds import LruCache


def test_writing_and_using_keep_an_entry_and_reading_does_not() -> None:
    cache: LruCache[str, int] = LruCache(3)
    for number, key in enumerate("abc"):
        cache[key] = number
    assert cache.use("a") == 0
    cache["b"] = 7
    assert cache.get("c") == cache["c"] == 2
    cache["d"] = 3
    assert list(cache) == ["a", "b", "d"]
    assert cache.use("c") is None


@given(st.integers(1, 4), st.lists(st.tuples(st.booleans(), st.integers(0, 6))))
def test_the_entries_used_last_are_kept(room: int, uses: list[tuple[bool, int]]) -> None:
    cache: LruCache[int, int] = LruCache(room)
    order: list[int] = []
    for is_write, key in uses:
        if is_write:
            cache.setdefault(key, -key)
            cache[key] = key
        else:
            assert cache.use(key) == (key if key in order else None)
        if is_write or key in order:
            order = [*(each for each in order if each != key), key][-room:]
        assert list(cache) == order
