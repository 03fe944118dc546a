"""A change is told in one line."""

import doctest

from freshet.crawler.compare import diff
from freshet.crawler.compare.diff import align, in_numbers, in_one_line


def test_the_example_holds() -> None:
    assert doctest.testmod(diff).failed == 0


def test_the_first_edit_comes_before_additions_and_the_rest_is_counted() -> None:
    old = ["Opening hours are nine to five", "Closed on Sunday"]
    new = ["News of today", "Opening hours are nine to six", "Closed on Sunday"]
    line = in_one_line(align(old, new))
    assert line == "“Opening hours are nine to five → six”  1 edited, 1 added"


def test_additions_removals_and_moves_have_their_marks() -> None:
    assert in_one_line(align([], ["A new paragraph"])) == "+ “A new paragraph”"
    assert in_one_line(align(["An old paragraph"], [])) == "− “An old paragraph”"
    assert in_one_line(align(["a a", "b b"], ["b b", "a a"])) == "moved: “b b”"
    assert in_one_line(align(["a"], ["a"])) == "no block of text differs"


def test_a_long_block_is_cut_around_what_changed() -> None:
    words = " ".join(f"word{i}" for i in range(100))
    line = in_one_line(align([f"{words} old {words}"], [f"{words} new {words}"]))
    assert "old → new" in line
    assert len(line) < 100


def test_a_line_keeps_to_its_width() -> None:
    assert len(in_one_line(align([], ["x" * 500]), width=60)) <= 62


def test_numbers_name_only_what_there_is() -> None:
    assert in_numbers(align(["a"], ["a", "b", "c"])) == "2 added"
