"""Within a block, changes are told word by word."""

import doctest

from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.compare import diff
from freshet.crawler.compare.diff import compare_words, shared_words, words_of

WORDS = st.lists(st.sampled_from(["a", "bee", "10.99", ",", "日本", " ", "x_y"]), max_size=12).map(
    " ".join
)


def changes(before: str, after: str) -> list[tuple[str, str]]:
    return [(run.before, run.after) for run in compare_words(before, after) if not run.is_kept]


def test_the_example_holds() -> None:
    assert doctest.testmod(diff).failed == 0


def test_numbers_are_words_with_their_points() -> None:
    assert changes("from 1,234.50 to 2", "from 1,334.50 to 2") == [("1,234.50", "1,334.50")]


def test_a_time_is_one_word() -> None:
    assert changes("at 2026-01-05T16:40:09Z", "at 2026-01-15T20:25:39Z") == [
        ("2026-01-05T16:40:09Z", "2026-01-15T20:25:39Z")
    ]


def test_neighbouring_changes_are_one() -> None:
    assert changes("at noon on Monday sharp", "at dusk by Tuesday sharp") == [
        ("noon on Monday", "dusk by Tuesday")
    ]


def test_a_script_without_spaces_is_compared_by_character() -> None:
    assert changes("今日は晴れ", "今日は雨れ") == [("晴", "雨")]


def test_a_text_too_long_to_compare_is_told_as_a_whole() -> None:
    before, after = "a " * 5_000, "b " * 5_000
    assert changes(before, after) == [(before, after)]


@given(WORDS, WORDS)
def test_joined_the_runs_give_both_texts_again(before: str, after: str) -> None:
    runs = compare_words(before, after)
    assert "".join(run.before for run in runs) == before
    assert "".join(run.after for run in runs) == after


def test_words_are_shared_whatever_their_order() -> None:
    assert shared_words(words_of("a b b, c"), words_of("c b a x")) == 3


@given(WORDS, WORDS)
def test_as_many_words_are_shared_either_way_round(before: str, after: str) -> None:
    one, other = words_of(before), words_of(after)
    assert shared_words(one, other) == shared_words(other, one) <= min(one.total(), other.total())
