"""What differs between two texts, and where."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.compare.history import Layout, PlacedBlock, difference
from freshet.crawler.reduce.sketch import sketch

BLOCKS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 6)), max_size=12)


def layout(*blocks: tuple[int, int]) -> Layout:
    return Layout.made([place for place, _ in blocks], [digest for _, digest in blocks])


def test_the_layout_of_a_sketch_has_its_places_and_digests() -> None:
    made = sketch(["one", "two"], [7, 8])
    assert Layout.of(made) == Layout.made([7, 8], made.block_digests.tolist())


def test_a_replaced_block_is_known_from_either_end_of_its_place() -> None:
    found = difference(layout((1, 10), (2, 20), (2, 21)), layout((1, 10), (2, 20), (2, 22)))
    assert found.removed == (PlacedBlock(2, 1, -1, 21),)
    assert found.added == (PlacedBlock(2, 1, -1, 22),)
    assert found.replaced == {(2, 1): 22, (2, -1): 22}
    assert not found.moved()


def test_a_row_on_top_of_a_list_and_a_list_that_shifts_replace_nothing() -> None:
    rows = [(2, n) for n in range(20, 25)]
    found = difference(layout(*rows), layout((2, 99), *rows))
    assert [item.digest for item in found.added] == [99]
    assert (found.removed, found.replaced) == ((), {})
    found = difference(layout((2, 20), (2, 21), (2, 22)), layout((2, 19), (2, 20), (2, 21)))
    assert found.replaced == {}
    assert (found.removed[0].digest, found.added[0].digest) == (22, 19)


def test_another_place_alone_is_no_difference_but_equal_blocks_stay_at_theirs() -> None:
    found = difference(layout((1, 10), (2, 20)), layout((3, 10), (2, 20)))
    assert (found.removed, found.added, found.moved()) == ((), (), False)
    found = difference(layout((1, 10), (2, 10)), layout((2, 10)))
    assert found.removed == (PlacedBlock(1, 0, -1, 10),)


def test_another_order_is_told_beside_some_blocks() -> None:
    found = difference(layout((1, 10), (1, 11), (1, 12)), layout((1, 11), (1, 12), (1, 10)))
    assert found.moved()
    assert not found.moved(beside={10})


def test_blocks_last_seen_elsewhere_are_put_in_at_their_slots() -> None:
    known = layout((1, 10), (2, 20), (2, 21)).with_digests({(2, -1): 99, (5, 0): 1})
    assert known == layout((1, 10), (2, 20), (2, 99))
    assert (known.at((2, 1)), known.at((2, 2)), known.at((9, 0))) == (99, None, None)


def test_many_places_are_looked_up_at_once() -> None:
    rows = layout(*((n % 50, n) for n in range(100)))
    assert [rows.numbers(place) for place in range(50)] == [[n, n + 50] for n in range(50)]
    assert rows.numbers(50) == []


def test_a_page_without_text_has_no_block_at_any_of_many_places() -> None:
    empty = Layout.made((), ())
    assert [empty.numbers(place) for place in range(200)] == [[]] * 200
    assert empty.at((7, 0)) is None


@given(BLOCKS, BLOCKS)
def test_a_difference_is_that_of_the_blocks(
    old: list[tuple[int, int]], new: list[tuple[int, int]]
) -> None:
    found = difference(layout(*old), layout(*new))
    before, after = Counter(d for _, d in old), Counter(d for _, d in new)
    assert Counter(item.digest for item in found.removed) == before - after
    assert Counter(item.digest for item in found.added) == after - before
    equal = [d for _, d in old] == [d for _, d in new]
    assert (not (found.removed or found.added or found.moved())) == equal


@given(BLOCKS)
def test_an_item_stands_at_its_slots(blocks: list[tuple[int, int]]) -> None:
    made = layout(*blocks)
    for item in made.items():
        assert [made.at(slot) for slot in item.slots] == [item.digest] * 2
