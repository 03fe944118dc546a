"""Templates: the blocks that the pages of a host have in common are frame.

Three kinds of evidence, each from at least three pages and a fifth of the sample:

*uniform* slots, at which nearly all pages that have the slot hold the same block, learnt from
stored sketches; *common* differences, the same block removed from or added to the same place on
many pages during a run; and *volatile* slots, at which many pages by their histories
differ at every visit, or often show another one of a few blocks that they share (adverts in
rotation, the variants of an A/B test).

A label that a person sets on single pages ("in stock", "sold out") is at no uniform slot as
soon as two values exist side by side. The very first page that departs from a uniform
label looks like the first page of a rebuild; whether others followed is known when the run
ends, and :func:`settled` then decides.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from freshet.crawler.compare.history import (
    NOTHING,
    Layout,
    PageRecord,
    PendingDifference,
    PlacedBlock,
    Slot,
    SlotHistory,
    beside_slots,
)
from freshet.storage.entries import Kind

#: Pages, and the share of the sample, that make a template.
LEAST_PAGES: Final = 3
LEAST_SHARE: Final = 0.2
#: Most known pages of a small host, and the blocks at a place that show its frame.
SMALL_HOST: Final = 5
_FRAME_BLOCKS: Final = 2
#: Pages that may share blocks.
_LEAST_SHARING: Final = 2
#: The share of the pages with a slot that hold the same block there, where it is uniform,
#: or find it volatile.
_UNIFORM_SHARE: Final = 0.9
#: Of all pages' comparisons, below this share of replacements a slot holds content, and
#: from that on a block that many pages share is one in rotation.
_CONTENT_SHARE: Final = 0.6
_ROTATION_SHARE: Final = 1 / 3
#: Pages for each different block, on average, from which on they share them.
_PAGES_PER_BLOCK: Final = 2.0
#: Least comparisons, of all pages together, for a judgement.
_TELLING_COMPARISONS: Final = 6
#: Pages without a difference that show that it is not the template's.
_WITNESSES: Final = 2
#: Ordinals from either end of a list that are considered.
_NEAR: Final = 8
#: Different items that are counted for a host; beyond, those seen once are dropped.
_MOST_COUNTED: Final = 8_192

#: A removed (False) or added (True) block, by place and digest.
Event: TypeAlias = tuple[bool, int, int]


class SlotKind(NamedTuple):
    """The kind of a slot on the pages of a sample.

    ``uniform`` is the block that nearly all pages hold there. A volatile slot changes at every
    visit on many pages; at one with content the pages' blocks were unchanged often enough.
    """

    uniform: int | None = None
    is_volatile: bool = False
    is_content: bool = False


_UNKNOWN: Final = SlotKind()


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """The slots of a sample of a host's pages; each is judged when it is first asked for.

    The ``pages`` have different texts: a page under several URLs counts as one. ``layouts`` are
    theirs, ``all`` is these one after another, so that one search finds a place on all pages.
    The host ``is_of_small`` number of pages, or of more.
    """

    pages: Sequence[PageRecord] = ()
    layouts: Sequence[Layout] = ()
    all: Layout = field(default_factory=Layout.joined)
    is_of_small: bool = False
    kinds: dict[Slot, SlotKind] = field(default_factory=dict)

    @classmethod
    def learnt(cls, pages: Sequence[PageRecord]) -> Template:
        """Learn the template of these pages, a sample of one host."""
        distinct = list({page.sketch.text_digest: page for page in pages}.values())
        layouts = [page.layout for page in distinct]
        return cls(distinct, layouts, Layout.joined(*layouts), len(pages) <= SMALL_HOST)

    @property
    def blocks(self) -> frozenset[int]:
        """Return the digests of the uniform blocks."""
        if len(self.pages) < LEAST_PAGES:
            return frozenset()
        slots = {slot for it in self.layouts for item in it.items() for slot in item.slots}
        uniform = (self.at(slot).uniform for slot in slots)
        return frozenset(digest for digest in uniform if digest is not None)

    def at(self, slot: Slot) -> SlotKind:
        """Return the kind of a slot."""
        known = self.kinds.get(slot)
        if known is None:
            is_known = len(self.pages) >= LEAST_PAGES and -_NEAR <= slot[1] < _NEAR
            known = self.kinds[slot] = self._at(slot) if is_known else _UNKNOWN
        return known

    def is_volatile(self, slot: Slot) -> bool:
        """Return whether a slot is volatile."""
        return self.at(slot).is_volatile

    def _at(self, slot: Slot) -> SlotKind:
        place, ordinal = slot
        numbers = self.all.numbers(place)
        total, first, end = _SlotSum(), 0, 0
        for page, layout in zip(self.pages, self.layouts, strict=True):
            end += len(layout)
            last = bisect_left(numbers, end, first)
            at = ordinal + (first if ordinal >= 0 else last)
            own = page.memory.slots.get(slot)
            if first <= at < last:
                total.add(int(self.all.digests[numbers[at]]), page, own)
            elif own is not None and own.digest == NOTHING:
                total.add(NOTHING, page, own)
            first = last
        return total.kind(enough(len(self.pages)))

    def shared(self) -> frozenset[tuple[int, int]]:
        """Return the places and digests that all pages of a small host have.

        Pages that share more than a half of their blocks are versions of one page: it has no frame.
        """
        if not self.is_of_small or len(self.pages) < _LEAST_SHARING:
            return frozenset()
        blocks = [
            frozenset(zip(it.places.tolist(), it.digests.tolist(), strict=True))
            for it in self.layouts
        ]
        shared = frozenset.intersection(*blocks)
        return shared if all(2 * len(shared) <= len(each) for each in blocks) else frozenset()

    def frame_of_small(
        self, removed: Sequence[PlacedBlock], added: Sequence[PlacedBlock], before: Layout
    ) -> frozenset[PlacedBlock]:
        """Return the items of the frame of a small host.

        Frame is a block on all of its pages, and a block at a place that had such a block, or only
        such blocks.
        """
        shared = self.shared()
        if not shared:
            return frozenset()
        went = {item for item in removed if (item.place, item.digest) in shared}
        left = {slot for item in went for slot in item.slots}
        places = {item.place for item in added if _is_framed(item.place, before, shared)}
        came = {item for item in added if item.place in places or not left.isdisjoint(item.slots)}
        return frozenset(went | came)


def _is_framed(place: int, before: Layout, shared: frozenset[tuple[int, int]]) -> bool:
    """Return whether a place had blocks, all of them shared."""
    numbers = before.numbers(place)
    return len(numbers) >= _FRAME_BLOCKS and all(
        (place, digest) in shared for digest in before.digests[numbers].tolist()
    )


def enough(pages: int) -> float:
    """Return the number of pages, of so large a sample, that make a template."""
    return max(LEAST_PAGES, LEAST_SHARE * pages)


@dataclass(slots=True)
class _SlotSum:
    """The blocks that the pages of a sample hold at one slot, and the sum of their histories."""

    blocks: list[int] = field(default_factory=list)
    volatile_pages: int = 0
    replaced: int = 0
    compared: int = 0

    @property
    def pages(self) -> int:
        return len(self.blocks)

    def add(self, digest: int, page: PageRecord, own: SlotHistory | None) -> None:
        """Add a page's block there, and its history if it ever differed."""
        self.blocks.append(digest)
        if own is None:
            self.compared += page.comparisons
        else:
            replaced, compared = own.share
            self.volatile_pages += own.volatile
            self.replaced += replaced
            self.compared += compared + page.still

    def kind(self, least: float) -> SlotKind:
        """Return the kind of the slot; ``least`` pages make a template."""
        if self.pages < LEAST_PAGES:
            return _UNKNOWN
        return SlotKind(self._uniform(least), self._is_volatile, self._is_content)

    def _uniform(self, least: float) -> int | None:
        digest, pages = Counter(self.blocks).most_common(1)[0]
        is_uniform = digest != NOTHING and pages >= max(least, _UNIFORM_SHARE * self.pages)
        return digest if is_uniform else None

    @property
    def _is_volatile(self) -> bool:
        return self.volatile_pages >= max(LEAST_PAGES, _UNIFORM_SHARE * self.pages) or (
            self.compared >= _TELLING_COMPARISONS
            and self.replaced >= _ROTATION_SHARE * self.compared
            and self.pages >= _PAGES_PER_BLOCK * len(set(self.blocks))
        )

    @property
    def _is_content(self) -> bool:
        return (
            self.compared >= _TELLING_COMPARISONS
            and self.replaced < _CONTENT_SHARE * self.compared
            and not self._is_volatile
        )


@dataclass(slots=True)
class HostRun:
    """The observations of a host in one run: a template, and common events.

    ``pages`` were visited, and ``differing`` ones had another text than before. A text that another
    page has as well adds no evidence.
    """

    template: Template = field(default_factory=Template)
    pages: int = 0
    differing: int = 0
    _events: Counter[Event] = field(default_factory=Counter)
    _texts: set[bytes] = field(default_factory=set)

    def differed(
        self, text: bytes, removed: Iterable[PlacedBlock], added: Iterable[PlacedBlock]
    ) -> None:
        """Learn the difference of one more page, which now has the text of that digest."""
        self.differing += 1
        if text in self._texts:
            return
        if len(self._texts) >= _MOST_COUNTED:
            self._texts.clear()
        self._texts.add(text)
        self._events.update(_events(removed, added))
        if len(self._events) > _MOST_COUNTED:
            self._events = Counter({e: n for e, n in self._events.items() if n > 1})

    def is_common(self, event: Event) -> bool:
        """Return whether the event was seen on enough of the pages visited so far."""
        return self._events[event] >= enough(self.pages)

    def frame_items(
        self, removed: Sequence[PlacedBlock], added: Sequence[PlacedBlock]
    ) -> tuple[set[PlacedBlock], set[PlacedBlock]]:
        """Return the removed and added items that belong to the host's template."""
        template = self.template
        went = {
            item
            for item in removed
            if any(template.at(slot).uniform == item.digest for slot in item.slots)
            or self.is_common((False, item.place, item.digest))
        }
        left = {slot for item in went for slot in item.slots}
        came = {
            item
            for item in added
            if any(slot in left or template.at(slot).uniform == item.digest for slot in item.slots)
            or self.is_common((True, item.place, item.digest))
        }
        return went, came


def _events(removed: Iterable[PlacedBlock], added: Iterable[PlacedBlock]) -> set[Event]:
    return {(False, i.place, i.digest) for i in removed} | {
        (True, i.place, i.digest) for i in added
    }


@dataclass(frozen=True, slots=True)
class Correction:
    """The new verdict on a page after the end of a run."""

    page_id: int
    at: float
    was: Kind
    kind: Kind


def settled(
    differing: Mapping[int, tuple[bytes | None, Sequence[PendingDifference]]],
    pages: int,
    template: Template,
) -> list[Correction]:
    """Return the verdicts to correct after a run.

    ``differing`` has the differences in the run by page of a host, with the digests of their
    current texts; ``pages`` were visited; ``template`` is learnt from the current store. A
    difference that is common to enough of them is the template's; one that was attributed to it,
    while other pages did not follow, is a change after all.
    """
    counts: Counter[Event] = Counter()
    for deltas in dict(differing.values()).values():
        counts.update(set().union(*(_events(delta.removed, delta.added) for delta in deltas)))
    return [
        Correction(page_id, delta.at, delta.kind, kind)
        for page_id, (_, deltas) in differing.items()
        for delta in deltas
        if (kind := _kind_by_now(delta, counts, pages, template)) != delta.kind
    ]


def _kind_by_now(
    delta: PendingDifference, counts: Counter[Event], pages: int, template: Template
) -> Kind:
    removed, added = beside_slots(template.is_volatile, delta.removed, delta.added)
    if _are_common(removed, added, counts, enough(pages)):
        return "unchanged"
    most = max(counts[event] for event in _events(removed, added))
    alone = delta.kind == "unchanged" and pages - most >= _WITNESSES
    return "changed" if alone else delta.kind


def _are_common(
    removed: Sequence[PlacedBlock],
    added: Sequence[PlacedBlock],
    counts: Counter[Event],
    least: float,
) -> bool:
    """Return whether all items were removed or added on ``least`` pages, or replace such items."""
    gone = {i for i in removed if counts[False, i.place, i.digest] >= least}
    left = {slot for item in gone for slot in item.slots}
    return len(gone) == len(removed) and all(
        counts[True, i.place, i.digest] >= least or not left.isdisjoint(i.slots) for i in added
    )
