"""What the pages of a host have in common."""

from collections.abc import Sequence
from typing import Final

import pytest

from freshet.crawler.compare import history
from freshet.crawler.compare.history import (
    Layout,
    PageMemory,
    PageRecord,
    PendingDifference,
    PlacedBlock,
    Slot,
    SlotHistory,
)
from freshet.crawler.compare.templates import (
    Correction,
    HostRun,
    SlotKind,
    Template,
    enough,
    settled,
)
from freshet.storage.entries import Kind
from tests.crawler.compare.pages_over_time import Block, sketch_of

CHANGED: Kind = "changed"
UNCHANGED: Kind = "unchanged"
TITLE, BOX = 1, 2


def page(box: str, bits: str = "", title: str = "") -> PageRecord:
    """A page with a title of its own and a box; ``bits`` are the box's last comparisons."""
    slots = {}
    if bits:
        history = SlotHistory(0)
        for bit in bits:
            history = history.after(0, replaced=bit == "x")
        slots = {(BOX, 0): history}
    sketch = sketch_of([(TITLE, title or f"title {box} {bits}"), (BOX, box)])
    return PageRecord(sketch, PageMemory(len(bits), slots))


def item(digest: int, place: int = BOX) -> PlacedBlock:
    return PlacedBlock(place, 0, -1, digest)


def delta(old: int, new: int, kind: Kind = CHANGED) -> PendingDifference:
    return PendingDifference(1.0, kind, (item(old),), (item(new),))


@pytest.mark.parametrize(("pages", "expected"), [(3, 3), (15, 3), (20, 4), (100, 20)])
def test_a_template_is_three_pages_and_a_fifth(pages: int, expected: float) -> None:
    assert enough(pages) == expected


def test_a_block_that_nearly_all_pages_hold_at_a_slot_is_uniform() -> None:
    template = Template.learnt([page("same", title=f"t{n}") for n in range(10)])
    (digest,) = template.blocks
    assert {template.at((BOX, ordinal)).uniform for ordinal in (0, -1)} == {digest}
    assert template.at((TITLE, 0)).uniform is None


MENU, PLACE = ("Home", "Nix (Beta)", "About"), 5


def small_host(pages: int, menu: Sequence[str] = MENU, own: int = 6) -> list[PageRecord]:
    """Pages with a menu, and with so many blocks of their own."""
    return [
        PageRecord(sketch_of([*((PLACE, m) for m in menu), *(f"{n} of {k}" for k in range(own))]))
        for n in range(pages)
    ]


def framed(pages: list[PageRecord], new: Sequence[Block]) -> tuple[int, int]:
    """The numbers of differing blocks of the first page, and of those of the frame."""
    before, after = pages[0].layout, Layout.of(sketch_of(new))
    found = history.difference(before, after)
    frame = Template.learnt(pages).frame_of_small(found.removed, found.added, before)
    return len(found.removed) + len(found.added), len(frame)


REST: Final = [f"0 of {k}" for k in range(6)]


@pytest.mark.parametrize("pages", [2, 3, 4, 5])
@pytest.mark.parametrize(
    ("menu", "differing"),
    [(("Home", "Nix", "About"), 2), (("Home", "About"), 1), ((*MENU, "Forum"), 1),
     (("Start", "Forum"), 5), ((), 3)],
)  # fmt: skip
def test_what_stands_on_all_pages_of_a_small_host_is_frame(
    pages: int, menu: tuple[str, ...], differing: int
) -> None:
    new: list[Block] = [*((PLACE, each) for each in menu), *REST]
    assert framed(small_host(pages), new) == (differing, differing)


@pytest.mark.parametrize(
    ("pages", "new"),
    [
        (small_host(1), [(PLACE, "Home"), (PLACE, "Nix"), (PLACE, "About"), *REST]),
        (small_host(6), [(PLACE, "Home"), (PLACE, "Nix"), (PLACE, "About"), *REST]),
        (small_host(3), [*((PLACE, each) for each in MENU), *REST[:-1], "another"]),
        (small_host(3), [*((PLACE, each) for each in MENU), *REST[:-1]]),
        (small_host(3), [*((PLACE, each) for each in MENU), *REST, "more"]),
        (small_host(3), [*((PLACE, each) for each in MENU), *REST, (6, "at another place")]),
        (small_host(3, own=2), [(PLACE, "Home"), (PLACE, "Nix"), (PLACE, "About"), *REST[:2]]),
        ([*small_host(2), *small_host(1, ("Home",))], [(PLACE, "Home"), (PLACE, "About"), *REST]),
        (small_host(3, ("Home",)), [(PLACE, "Home"), (PLACE, "News"), *REST]),
        (small_host(1) * 3, [(PLACE, "Home"), (PLACE, "Nix"), (PLACE, "About"), *REST]),
    ],
    ids=["one page", "six pages", "an own block", "an own block gone", "an own block more",
         "another place", "versions of one page", "not on all", "a lone block", "one page thrice"],
)  # fmt: skip
def test_what_is_no_frame_of_a_small_host(pages: list[PageRecord], new: Sequence[Block]) -> None:
    differing, frame = framed(pages, new)
    assert differing > 0
    assert frame == 0


@pytest.mark.parametrize("pages", [1, 2])
def test_few_pages_make_no_template(pages: int) -> None:
    template = Template.learnt([page("same", title=f"t{n}") for n in range(pages)])
    assert (template.at((BOX, 0)), template.blocks) == (SlotKind(), frozenset())


def test_a_slot_with_two_values_on_many_pages_is_not_uniform() -> None:
    pages = [page(value, title=f"{value}{n}") for n in range(5) for value in ("yes", "no")]
    assert Template.learnt(pages).at((BOX, 0)).uniform is None


def volatile(template: Template) -> set[Slot]:
    return set(filter(template.is_volatile, [(BOX, 0), (TITLE, 0)]))


def test_slots_that_are_volatile_on_the_pages_or_in_rotation_are_so_on_the_site() -> None:
    pages = [page(f"noise {n}", "xxx") for n in range(4)]
    assert volatile(Template.learnt(pages)) == {(BOX, 0)}
    # Shared blocks that come and go.
    pages = [page(f"advert {n % 3}", "x." if n % 2 else ".x", f"t{n}") for n in range(12)]
    template = Template.learnt(pages)
    assert volatile(template) == {(BOX, 0)}
    assert not template.at((BOX, 0)).is_content


def test_labels_that_seldom_change_and_prices_that_do_on_some_pages_are_content() -> None:
    labels = [page(f"label {n % 3}", "x...." if n == 0 else ".....", f"t{n}") for n in range(12)]
    prices = [page(f"price {n}", "x" if n % 2 else ".") for n in range(10)]
    for template in map(Template.learnt, (labels, prices)):
        assert template.at((BOX, 0)).is_content
        assert not template.is_volatile((BOX, 0))


def test_what_replaces_a_uniform_block_is_frame_with_it() -> None:
    host = HostRun(Template(kinds={(BOX, 0): SlotKind(uniform=5)}))
    assert host.frame_items([item(5)], [item(6)]) == ({item(5)}, {item(6)})
    assert host.frame_items([item(4)], [item(6)]) == (set(), set())
    assert host.frame_items([item(4)], [item(5)]) == (set(), {item(5)})


def test_a_difference_is_common_once_enough_pages_have_it() -> None:
    host = HostRun(pages=4)
    for n in range(3):
        host.differed(bytes([n]), [item(5)], [item(100 + n)])
    went, came = host.frame_items([item(5)], [item(7)])
    assert (went, came) == ({item(5)}, {item(7)})
    host.pages = 100
    assert host.frame_items([item(5)], [item(7)]) == (set(), set())


def test_what_is_counted_for_a_host_is_bounded() -> None:
    host = HostRun(pages=3)
    for n in range(3):
        many = (item(1_000 * n + i + 10) for i in range(3_000))
        host.differed(bytes([n]), [], [item(1), *many])
    host.differed(b"last", [], [item(1)])
    assert host.is_common((True, BOX, 1))
    assert len(host._events) <= 8_192


def pages_with(
    deltas: Sequence[PendingDifference],
) -> dict[int, tuple[bytes, list[PendingDifference]]]:
    """Pages of different texts, numbered as their deltas."""
    return {n: (bytes([n]), [delta]) for n, delta in enumerate(deltas)}


def test_a_rebuild_is_none_of_the_changes_of_its_first_pages() -> None:
    deltas = [delta(5, 6), delta(5, 6), delta(5, 6, UNCHANGED)]
    corrected = [Correction(n, 1.0, CHANGED, UNCHANGED) for n in (0, 1)]
    assert settled(pages_with(deltas), 10, Template()) == corrected


OWN = PendingDifference(1.0, CHANGED, (item(5), item(8, TITLE)), (item(6), item(9, TITLE)))
ROTATING = Template(kinds={(BOX, 0): SlotKind(is_volatile=True)})


@pytest.mark.parametrize(
    ("deltas", "pages", "template", "expected"),
    [
        # What differed on few pages stays a change, and so does a difference of a page's own.
        ([delta(5, 6)] * 2, 10, Template(), []),
        ([delta(5, 6)] * 3, 100, Template(), []),
        ([OWN, *[delta(5, 6)] * 3], 10, Template(), [1, 2, 3]),
        # A departure from a uniform block that nobody followed is a change.
        ([delta(5, 6, UNCHANGED)], 3, Template(), [0]),
        ([delta(5, 6, UNCHANGED)], 2, Template(), []),
        # What the site shows to be in rotation is none.
        ([delta(5, 6)], 10, ROTATING, [0]),
        ([PendingDifference(1.0, CHANGED, (), (item(6),))], 10, ROTATING, [0]),
        ([PendingDifference(1.0, CHANGED, (item(6),), ())], 10, ROTATING, [0]),
        # In a list the slots are those of other blocks as soon as one comes or goes.
        ([PendingDifference(1.0, CHANGED, (), (PlacedBlock(BOX, 0, -2, 6),))], 10, ROTATING, []),
    ],
)
def test_verdicts_are_corrected_by_what_other_pages_did(
    deltas: list[PendingDifference], pages: int, template: Template, expected: list[int]
) -> None:
    found = settled(pages_with(deltas), pages, template)
    assert [correction.page_id for correction in found] == expected


def test_one_page_under_many_urls_is_no_template() -> None:
    copies = [page("same", title="same")] * 9
    assert Template.learnt(copies).at((BOX, 0)) == SlotKind()
    host = HostRun(pages=9)
    for _ in range(9):
        host.differed(b"text", [item(5)], [item(6)])
    assert host.frame_items([item(5)], [item(6)]) == (set(), set())
    same = {n: (b"text", [delta(5, 6)]) for n in range(9)}
    assert settled(same, 9, Template()) == []
