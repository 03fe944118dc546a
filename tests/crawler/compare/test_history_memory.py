"""What is remembered of a page, as bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.compare.history import (
    MOST_DELTAS,
    MOST_ITEMS,
    Layout,
    PageMemory,
    PageRecord,
    PendingDifference,
    PlacedBlock,
    SlotHistory,
    bounded,
)
from freshet.crawler.reduce.sketch import sketch
from freshet.storage.records import PageHistory

U64 = st.integers(0, 2**64 - 1)
SLOTS = st.tuples(U64, st.integers(-500, 500))
HISTORIES = st.builds(SlotHistory, U64, st.integers(0, 0xFFFF), st.integers(0, 16), st.booleans())
ITEMS = st.builds(PlacedBlock, U64, st.integers(0, 500), st.integers(-500, -1), U64)
SOME_ITEMS = st.lists(ITEMS, max_size=3).map(tuple)
DELTAS = st.builds(
    PendingDifference, st.floats(0, 1e10), st.sampled_from(["changed", "unchanged"]),
    SOME_ITEMS, SOME_ITEMS,
)  # fmt: skip
MEMORIES = st.builds(
    PageMemory, st.integers(0, 0xFFFF), st.dictionaries(SLOTS, HISTORIES, max_size=4),
    st.dictionaries(U64, st.integers(0, 255), max_size=4),
    st.lists(DELTAS, max_size=3).map(tuple),
)  # fmt: skip


@given(MEMORIES)
def test_bytes_round_trip(memory: PageMemory) -> None:
    assert PageMemory.from_bytes(memory.to_bytes()) == memory


@given(MEMORIES, st.data())
def test_bytes_cut_short_are_refused(memory: PageMemory, data: st.DataObject) -> None:
    whole = memory.to_bytes()
    with pytest.raises(ValueError, match="memory of"):
        PageMemory.from_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(ValueError, match="version that is not 1"):
        PageMemory.from_bytes(b"\x09" + whole[1:])


def test_an_ordinal_farther_than_is_remembered_is_kept_at_the_limit() -> None:
    delta = PendingDifference(1.0, "changed", (), (PlacedBlock(1, 90_000, -80_000, 2),))
    (again,) = (PageMemory(deltas=(delta,)).to_bytes(),)
    assert PageMemory.from_bytes(again).deltas[0].added == (PlacedBlock(1, 32_767, -32_767, 2),)


def test_a_page_is_laid_out_with_its_volatile_blocks_as_last_seen() -> None:
    made = sketch(["prose", "visit 1"], [1, 2])
    memory = PageMemory(3, {(2, 0): SlotHistory(42, 0b111, 3, volatile=True)})
    record = PageRecord.of(PageHistory(made.to_bytes(), memory.to_bytes(), 2))
    assert record.layout.at((2, 0)) == 42
    assert record.layout.at((1, 0)) == int(made.block_digests[0])
    assert record.comparisons == 5
    assert PageRecord.of(PageHistory(made.to_bytes(), None, 0)).memory == PageMemory()


def test_places_are_renamed_wherever_they_stand() -> None:
    item = PlacedBlock(1, 0, -1, 5)
    memory = PageMemory(
        1, {(1, 0): SlotHistory(5)}, {}, (PendingDifference(1.0, "changed", (item,), ()),)
    )
    renamed = memory.renamed({1: 9})
    assert list(renamed.slots) == [(9, 0)]
    assert renamed.deltas[0].removed == (PlacedBlock(9, 0, -1, 5),)


def test_the_newest_deltas_are_kept_within_bounds() -> None:
    def delta(at: int, items: int) -> PendingDifference:
        return PendingDifference(
            float(at), "changed", tuple(PlacedBlock(1, n, -1, n) for n in range(items)), ()
        )

    newest = [d.at for d in bounded(delta(at, 1) for at in range(20))]
    assert newest == list(range(20 - MOST_DELTAS, 20))
    big = [delta(0, 1), delta(1, MOST_ITEMS), delta(2, 1)]
    assert [d.at for d in bounded(big)] == [2.0]


def test_what_another_extraction_finds_alike_keeps_its_history() -> None:
    before = Layout.of(sketch(["menu", "one", "two"], [1, 2, 2]))
    after = Layout.of(sketch(["one", "2"], [2, 2]))
    same, other, gone = (SlotHistory(0, 1, 2), SlotHistory(0, 3, 4), SlotHistory(0, 5, 6))
    delta = PendingDifference(1.0, "changed", (), (PlacedBlock(2, 0, -2, before.digests[1]),))
    memory = PageMemory(7, {(2, 0): same, (2, -1): other, (1, 0): gone}, {5: 3}, (delta,))
    rebased = memory.rebased(before, after)
    assert rebased == PageMemory(7, {(2, 0): same}, {5: 3}, ())
    assert memory.rebased(before, Layout.of(sketch(["menu", "one", "two"], [1, 2, 2]))) is memory
