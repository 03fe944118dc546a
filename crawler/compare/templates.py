"""Templates: the blocks that the pages of a host have in common are frame.

Three kinds of evidence, each from at least three pages and a fifth of the sample:

*uniform* slots, at which nearly all pages that have the slot hold the same block, learnt from
stored sketches; *common* differences, the same block removed from or added to the same place on
many pages during a run; and *volatile* slots, at which by their own histories many pages
differ at every visit, or often show another one of a few blocks that they share (adverts in
rotation, the variants of an A/B test).

A label that a person sets on single pages ("in stock", "sold out") is at no uniform slot as
soon as two values stand beside each other. The very first page that departs from a uniform
label looks like the first page of a rebuild; whether others followed is known when the run
ends, and :func:`settled` then decides.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from freshet.crawler.compare.history import Delta, PageRecord
from freshet.crawler.compare.layout import Item, Layout, Slot, beside_slots
from freshet.storage.entries import Kind

#: Pages, and the share of the sample, that make a template.
LEAST_PAGES: Final = 3
LEAST_SHARE: Final = 0.2
#: A host of at most so many known pages is small, and blocks at a place that tell its frame.
SMALL_HOST: Final = 5
_FRAME_BLOCKS: Final = 2
#: The share of the pages with a slot that hold the same block there, where it is uniform,
#: or find it volatile.
_UNIFORM_SHARE: Final = 0.9
#: Of all pages' comparisons, below this share of replacements a slot holds content, and
#: from that on a block that many pages share is one in rotation.
_CONTENT_SHARE: Final = 0.6
_ROTATION_SHARE: Final = 1 / 3
#: Pages for each different block, on average, from which on they share them.
_PAGES_PER_BLOCK: Final = 2.0
#: Comparisons, of all pages together, below which there is no judgement.
_TELLING_COMPARISONS: Final = 6
#: Pages without a difference that show that it is not the template's.
_WITNESSES: Final = 2
#: Ordinals from either end of a list that are considered.
_NEAR: Final = 8
#: Different items that are counted for a host; beyond, those seen once are dropped.
_MOST_COUNTED: Final = 8_192

#: A removed (False) or added (True) block, by place and digest.
Event: TypeAlias = tuple[bool, int, int]


@dataclass(frozen=True, slots=True)
class Template:
    """The slots of a sample of a host's pages.

    ``uniform`` has the block that nearly all pages hold at a slot; ``volatile`` slots change
    at every visit on many pages; at ``content`` slots the pages' blocks were unchanged often
    enough to be content. ``shared`` has the places and digests of the blocks that all pages of a
    host have, if that ``is_of_small`` one.
    """

    uniform: Mapping[Slot, int] = field(default_factory=dict)
    volatile: frozenset[Slot] = frozenset()
    content: frozenset[Slot] = frozenset()
    shared: frozenset[tuple[int, int]] = frozenset()
    is_of_small: bool = field(default=False, compare=False)

    @property
    def blocks(self) -> frozenset[int]:
        """Return the digests of the uniform blocks."""
        return frozenset(self.uniform.values())

    @classmethod
    def learnt(cls, pages: Sequence[PageRecord]) -> Template:
        """Learn the template of these pages, a sample of one host.

        Pages with equal texts are one page under several URLs, and count as one.
        """
        distinct = {page.sketch.text_digest: page for page in pages}
        sums: defaultdict[Slot, _SlotSum] = defaultdict(_SlotSum)
        for page in distinct.values():
            for slot, digest in page.layout.near_slots(_NEAR):
                total, own = sums[slot], page.memory.slots.get(slot)
                total.blocks.append(digest)
                if own is None:
                    total.compared += page.comparisons
                else:
                    replaced, compared = own.share
                    total.volatile_pages += own.volatile
                    total.replaced += replaced
                    total.compared += compared + page.still
        least = enough(len(distinct))
        shared = {slot: s for slot, s in sums.items() if s.pages >= LEAST_PAGES}
        uniform = {slot: s.uniform(least) for slot, s in shared.items()}
        return cls(
            {slot: digest for slot, digest in uniform.items() if digest is not None},
            frozenset(slot for slot, s in shared.items() if s.is_volatile),
            frozenset(slot for slot, s in shared.items() if s.is_content),
            _shared([page.layout for page in distinct.values()]),
            len(pages) <= SMALL_HOST,
        )


def _shared(pages: Sequence[Layout]) -> frozenset[tuple[int, int]]:
    """Return the places and digests that all pages of a small host have.

    Pages that share more than a half of their blocks are versions of one page: it has no frame.
    """
    if not 2 <= len(pages) <= SMALL_HOST:
        return frozenset()
    blocks = [frozenset(zip(page.places, page.digests, strict=True)) for page in pages]
    shared = frozenset.intersection(*blocks)
    return shared if all(2 * len(shared) <= len(each) for each in blocks) else frozenset()


def frame_of_small(
    removed: Sequence[Item], added: Sequence[Item], before: Layout, template: Template
) -> frozenset[Item]:
    """Return the items of the frame of a small host.

    A block is, that stood on all of its pages, and what stands where such a one was, or where only
    such ones were.
    """
    shared = template.shared
    if not shared:
        return frozenset()
    went = {item for item in removed if (item.place, item.digest) in shared}
    left = {slot for item in went for slot in item.slots}
    places = {
        place
        for place in {item.place for item in added}
        if (numbers := before.numbers.get(place, ()))
        and len(numbers) >= _FRAME_BLOCKS
        and all((place, before.digests[number]) in shared for number in numbers)
    }
    came = {item for item in added if item.place in places or not left.isdisjoint(item.slots)}
    return frozenset(went | came)


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

    def uniform(self, least: float) -> int | None:
        """Return the digest that stands on nearly all of the pages, if one does."""
        digest, pages = Counter(self.blocks).most_common(1)[0]
        return digest if pages >= max(least, _UNIFORM_SHARE * self.pages) else None

    @property
    def is_volatile(self) -> bool:
        return self.volatile_pages >= max(LEAST_PAGES, _UNIFORM_SHARE * self.pages) or (
            self.compared >= _TELLING_COMPARISONS
            and self.replaced >= _ROTATION_SHARE * self.compared
            and self.pages >= _PAGES_PER_BLOCK * len(set(self.blocks))
        )

    @property
    def is_content(self) -> bool:
        return (
            self.compared >= _TELLING_COMPARISONS
            and self.replaced < _CONTENT_SHARE * self.compared
            and not self.is_volatile
        )


@dataclass(slots=True)
class HostRun:
    """The observations of a host in one run: a template, and common events.

    ``pages`` were visited, and the texts of ``differing`` ones differ from those before.
    A text that another page has, too, adds no evidence.
    """

    template: Template = field(default_factory=Template)
    pages: int = 0
    differing: int = 0
    _events: Counter[Event] = field(default_factory=Counter)
    _texts: set[bytes] = field(default_factory=set)

    def differed(self, text: bytes, removed: Iterable[Item], added: Iterable[Item]) -> None:
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


def _events(removed: Iterable[Item], added: Iterable[Item]) -> set[Event]:
    return {(False, i.place, i.digest) for i in removed} | {
        (True, i.place, i.digest) for i in added
    }


def frame_items(
    removed: Sequence[Item], added: Sequence[Item], host: HostRun
) -> tuple[set[Item], set[Item]]:
    """Return the removed and added items that belong to the host's template."""
    uniform = host.template.uniform
    went = {
        item
        for item in removed
        if any(uniform.get(slot) == item.digest for slot in item.slots)
        or host.is_common((False, item.place, item.digest))
    }
    left = {slot for item in went for slot in item.slots}
    came = {
        item
        for item in added
        if any(slot in left or uniform.get(slot) == item.digest for slot in item.slots)
        or host.is_common((True, item.place, item.digest))
    }
    return went, came


@dataclass(frozen=True, slots=True)
class Correction:
    """The new verdict on a page after the end of a run."""

    page_id: int
    at: float
    was: Kind
    kind: Kind


def settled(
    differing: Mapping[int, tuple[bytes | None, Sequence[Delta]]], pages: int, template: Template
) -> list[Correction]:
    """Return the verdicts to correct after a run.

    ``differing`` has the differences in the run by page of a host, with the digests of their
    current texts; ``pages`` were visited; ``template`` is learnt from the current store. A
    difference that is common to enough of them is the template's; one that was taken for it and
    stayed alone, while other pages did not follow, is a change after all.
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


def _kind_by_now(delta: Delta, counts: Counter[Event], pages: int, template: Template) -> Kind:
    removed, added = beside_slots(template.volatile, delta.removed, delta.added)
    least = enough(pages)
    gone = {i for i in removed if counts[False, i.place, i.digest] >= least}
    left = {slot for item in gone for slot in item.slots}
    if len(gone) == len(removed) and all(
        counts[True, i.place, i.digest] >= least or not left.isdisjoint(i.slots) for i in added
    ):
        return "unchanged"
    most = max(counts[event] for event in _events(removed, added))
    alone = delta.kind == "unchanged" and pages - most >= _WITNESSES
    return "changed" if alone else delta.kind
