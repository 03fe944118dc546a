"""Blocks of two versions are aligned: kept, edited, moved, added, removed."""

import doctest

from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.compare import diff
from freshet.crawler.compare.diff import align, counts

TEXTS = st.lists(
    st.sampled_from(["a", "b", "c d e", "c d f", "c x f", "one two three four", "one two six four"])
)


def told(old: list[str], new: list[str]) -> list[tuple[str, str]]:
    return [(block.change, block.text) for block in align(old, new)]


def test_the_example_holds() -> None:
    assert doctest.testmod(diff).failed == 0


def test_a_word_edited_is_an_edited_block_and_nothing_else() -> None:
    old = ["Title", "The price is 10.99 today", "End"]
    new = ["Title", "The price is 11.49 today", "End"]
    (kept, edited, end) = align(old, new)
    assert [kept.change, edited.change, end.change] == ["kept", "edited", "kept"]
    assert [(run.before, run.after) for run in edited.runs if not run.is_kept] == [
        ("10.99", "11.49")
    ]
    assert (edited.before, edited.after) == (1, 1)


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
    assert told(old, new) == [
        ("moved", "third story"),
        ("kept", "first story here"),
        ("kept", "second story there"),
    ]
    assert align(old, new)[0].before == 2


def test_a_short_block_that_moved_does_not_part_long_ones_that_were_edited() -> None:
    old = ["The museum shows glass of one century", "Tickets cost 10.99 for adults", "Write to us."]
    new = [
        "Write to us.",
        "The museum shows glass of two centuries",
        "Tickets cost 11.49 for adults",
    ]
    assert [change for change, _ in told(old, new)] == ["moved", "edited", "edited"]


def test_a_removed_block_stands_where_it_stood() -> None:
    old = ["a b c d", "gone for ever", "e f g h i"]
    new = ["a b c x", "e f g h j"]
    assert [change for change, _ in told(old, new)] == ["edited", "removed", "edited"]


def test_empty_versions_are_no_special_case() -> None:
    assert align([], []) == ()
    assert told([], ["a"]) == [("added", "a")]
    assert told(["a"], []) == [("removed", "a")]


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
