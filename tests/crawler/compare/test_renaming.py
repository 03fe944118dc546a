"""Which place became which in a rebuild."""

from freshet.crawler.compare.ladder import new_names
from freshet.crawler.compare.layout import Layout


def layout(*blocks: tuple[int, int]) -> Layout:
    return Layout([place for place, _ in blocks], [digest for _, digest in blocks])


OLD = layout((1, 10), (1, 11), (2, 20), (3, 30))


def test_places_are_renamed_by_the_blocks_that_stayed() -> None:
    new = layout((7, 10), (7, 11), (8, 20), (9, 30))
    assert new_names(OLD, new) == {1: 7, 2: 8, 3: 9}


def test_where_no_block_stayed_the_gap_between_those_that_did_tells() -> None:
    new = layout((7, 10), (7, 11), (8, 99), (9, 30))
    assert new_names(OLD, new) == {1: 7, 2: 8, 3: 9}
    at_the_end = layout((7, 10), (7, 11), (8, 20), (9, 99))
    assert new_names(OLD, at_the_end) == {1: 7, 2: 8, 3: 9}


def test_gaps_of_another_length_tell_nothing() -> None:
    new = layout((7, 10), (7, 11), (8, 98), (8, 99), (9, 30))
    assert new_names(OLD, new) == {1: 7, 3: 9}


def test_places_that_both_texts_have_keep_their_names() -> None:
    assert new_names(OLD, OLD) == {}
    assert new_names(OLD, layout((1, 10), (2, 20), (2, 21))) == {}


def test_no_two_places_become_one() -> None:
    names = new_names(OLD, layout((7, 10), (7, 11), (7, 20), (7, 30)))
    assert names == {1: 7}
