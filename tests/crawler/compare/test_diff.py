"""Two versions of a page: blocks aligned, words compared, and the difference in one line."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.compare import diff
from freshet.crawler.compare.diff import align, compare_words, counts, in_numbers, in_one_line

TEXTS = st.lists(
    st.sampled_from(["a", "b", "c d e", "c d f", "c x f", "one two three four", "one two six four"])
)
WORDS = st.lists(st.sampled_from(["a", "bee", "10.99", ",", "日本", " ", "x_y"]), max_size=12).map(
    " ".join
)


def told(old: list[str], new: list[str]) -> list[tuple[str, str]]:
    return [(block.change, block.text) for block in align(old, new)]


def changes(before: str, after: str) -> list[tuple[str, str]]:
    return [(run.before, run.after) for run in compare_words(before, after) if not run.is_kept]


def test_the_example_holds() -> None:
    assert doctest.testmod(diff).failed == 0


# -- blocks --------------------------------------------------------------------------


def test_a_word_edited_is_an_edited_block_and_nothing_else() -> None:
    old = ["Title", "The price is 10.99 today", "End"]
    new = ["Title", "The price is 11.49 today", "End"]
    (kept, edited, end) = align(old, new)
    assert [kept.change, edited.change, end.change] == ["kept", "edited", "kept"]
    runs = [(run.before, run.after) for run in edited.runs if not run.is_kept]
    assert (runs, edited.before, edited.after) == ([("10.99", "11.49")], 1, 1)


def test_what_went_and_came_are_told_apart_from_edits() -> None:
    old = ["Intro", "A paragraph about bears and honey", "End"]
    new = ["Intro", "Completely different words stand here", "End"]
    assert told(old, new) == [
        ("kept", "Intro"), ("removed", "A paragraph about bears and honey"),
        ("added", "Completely different words stand here"), ("kept", "End"),
    ]  # fmt: skip


def test_a_moved_block_is_moved_not_removed_and_added() -> None:
    old = ["first story here", "second story there", "third story"]
    new = ["third story", "first story here", "second story there"]
    assert told(old, new) == [("moved", new[0]), ("kept", new[1]), ("kept", new[2])]
    assert align(old, new)[0].before == 2


def test_a_short_block_that_moved_does_not_part_long_ones_that_were_edited() -> None:
    old = ["The museum shows glass of one century", "Tickets cost 10.99 for adults", "Write us."]
    new = ["Write us.", "The museum shows glass of two centuries", "Tickets cost 11.49 for adults"]
    assert [change for change, _ in told(old, new)] == ["moved", "edited", "edited"]


def test_a_removed_block_stands_where_it_stood() -> None:
    old = ["a b c d", "gone for ever", "e f g h i"]
    new = ["a b c x", "e f g h j"]
    assert [change for change, _ in told(old, new)] == ["edited", "removed", "edited"]


def test_thousands_of_changed_blocks_are_paired_by_their_order() -> None:
    old = [f"row {i} has value {i}" for i in range(300)]
    new = [f"row {i} has value {i + 1_000}" for i in range(300)]
    assert counts(align(old, new))["edited"] == 300


@given(TEXTS, TEXTS)
def test_every_block_of_both_versions_is_told_once(old: list[str], new: list[str]) -> None:
    aligned = align(old, new)
    before = [block.before for block in aligned if block.before is not None]
    after = [block.after for block in aligned if block.after is not None]
    assert sorted(before) == list(range(len(old)))
    assert after == list(range(len(new)))
    for block in aligned:
        if block.before is not None and block.change != "edited":
            assert block.text == old[block.before]
        if block.after is not None:
            assert block.text == new[block.after]


@given(TEXTS)
def test_a_version_compared_with_itself_is_kept_throughout(blocks: list[str]) -> None:
    assert all(block.change == "kept" for block in align(blocks, blocks))


# -- words ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frame", "before", "after"),
    [
        ("from {} to 2", "1,234.50", "1,334.50"),
        ("at {}", "2026-01-05T16:40:09Z", "2026-01-15T20:25:39Z"),
        ("at {} sharp", "noon on Monday", "dusk by Tuesday"),
        ("今日は{}れ", "晴", "雨"),
        ("{}", "a " * 5_000, "b " * 5_000),
    ],
    ids=["a number", "a time", "neighbours", "no spaces", "too long to compare"],
)
def test_what_differs_is_told_by_whole_words(frame: str, before: str, after: str) -> None:
    assert changes(frame.format(before), frame.format(after)) == [(before, after)]


@given(WORDS, WORDS)
def test_joined_the_runs_give_both_texts_again(before: str, after: str) -> None:
    runs = compare_words(before, after)
    assert "".join(run.before for run in runs) == before
    assert "".join(run.after for run in runs) == after


# -- in one line ---------------------------------------------------------------------


def test_the_first_edit_comes_before_additions_and_the_rest_is_counted() -> None:
    old = ["Opening hours are nine to five", "Closed on Sunday"]
    new = ["News of today", "Opening hours are nine to six", "Closed on Sunday"]
    line = in_one_line(align(old, new))
    assert line == "“Opening hours are nine to five → six”  1 edited, 1 added"


def test_additions_removals_and_moves_have_their_marks() -> None:
    assert in_one_line(align([], ["A new paragraph"])) == "+ “A new paragraph”"
    assert in_one_line(align(["An old paragraph"], [])) == "− “An old paragraph”"
    assert in_one_line(align(["a a", "b b"], ["b b", "a a"])) == "moved: “b b”"
    assert in_one_line(align(["a"], ["a"])) == "what differed is ignored now, or not read as text"


def test_a_long_block_is_cut_around_what_changed() -> None:
    words = " ".join(f"word{i}" for i in range(100))
    line = in_one_line(align([f"{words} old {words}"], [f"{words} new {words}"]))
    assert "old → new" in line
    assert len(line) < 100
    assert len(in_one_line(align([], ["x" * 500]), width=60)) <= 62


def test_numbers_name_only_what_there_is() -> None:
    assert in_numbers(align(["a"], ["a", "b", "c"])) == "2 added"
