"""Volatility: a block that differs at every visit is frame.

Invariant: a slot is volatile from the third comparison in a row at which its block was
replaced, and content again once it was unchanged at two in a row. Consequence: a stamp, a
counter or a token raises no change for long, and a price that changes now and then always
does: every comparison at which it was unchanged demands one more replacement in a row.

Where the other pages of the site hold content at the same slot, the page alone needs more
evidence.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from freshet.crawler.reduce.sketch import Sketch, Words64
from freshet.storage.entries import Kind
from freshet.storage.records import PageHistory

#: A place, and an ordinal among the blocks there.
Slot: TypeAlias = tuple[int, int]
#: Blocks that are grouped by their places in the time of a search for the blocks of one place.
_GROUPED_IN_A_SEARCH: Final = 32


class PlacedBlock(NamedTuple):
    """A block by its digest and place: ``front`` counts from 0, ``back`` from -1."""

    place: int
    front: int
    back: int
    digest: int

    @property
    def slots(self) -> tuple[Slot, Slot]:
        """Return the slot from the front, and that from the back."""
        return (self.place, self.front), (self.place, self.back)

    @property
    def is_alone(self) -> bool:
        """Return whether the block is alone at its place."""
        return self.front == 0 and self.back == -1


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The blocks of a text as columns: ``places`` and ``digests`` in document order."""

    places: Words64
    digests: Words64
    _at_place: dict[int, list[int]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, sketch: Sketch) -> Layout:
        """Return the layout that a sketch keeps."""
        return cls(sketch.block_places, sketch.block_digests)

    @classmethod
    def made(cls, places: Sequence[int], digests: Sequence[int]) -> Layout:
        """Return the layout of blocks at these places."""
        return cls(np.array(places, np.uint64), np.array(digests, np.uint64))

    @classmethod
    def joined(cls, *layouts: Layout) -> Layout:
        """Return the blocks of some layouts one after another."""
        nothing = [np.empty(0, np.uint64)]
        places = np.concatenate(nothing + [it.places for it in layouts])
        return cls(places, np.concatenate(nothing + [it.digests for it in layouts]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        same_places = np.array_equal(self.places, other.places)
        return same_places and np.array_equal(self.digests, other.digests)

    def __hash__(self) -> int:
        return hash((self.places.tobytes(), self.digests.tobytes()))

    def __len__(self) -> int:
        return len(self.digests)

    def numbers(self, place: int) -> list[int]:
        """Return the numbers of the blocks at a place."""
        found = self._at_place.get(place)
        if found is None and len(self._at_place) * _GROUPED_IN_A_SEARCH >= len(self):
            # Many places are asked for: all at once, in the time of the searches so far.
            groups: dict[int, list[int]] = {}
            for number, name in enumerate(self.places.tolist()):
                groups.setdefault(name, []).append(number)
            self._at_place.update(groups)
            found = self._at_place.setdefault(place, [])
        elif found is None:
            found = self._at_place[place] = np.flatnonzero(self.places == place).tolist()
        return found

    def part(self, start: int, end: int) -> Layout:
        """Return the layout of some blocks one after another."""
        return Layout(self.places[start:end], self.digests[start:end])

    def items(self, numbers: Iterable[int] | None = None) -> list[PlacedBlock]:
        """Return these blocks, or all."""
        chosen = list(range(len(self)) if numbers is None else numbers)
        places, digests = self.places[chosen].tolist(), self.digests[chosen].tolist()
        found = []
        for number, place, digest in zip(chosen, places, digests, strict=True):
            there = self.numbers(place)
            front = bisect_left(there, number)
            found.append(PlacedBlock(place, front, front - len(there), digest))
        return found

    def number(self, item: PlacedBlock) -> int:
        """Return the number of one of the blocks."""
        return self.numbers(item.place)[item.front]

    def at(self, slot: Slot) -> int | None:
        """Return the digest of the block at a slot, if there is one."""
        number = self._number(slot)
        return None if number is None else int(self.digests[number])

    def with_digests(self, known: Mapping[Slot, int]) -> Layout:
        """Return the layout with other digests at some slots; slots that it lacks are ignored."""
        if not known:
            return self
        digests = self.digests.copy()
        for slot, digest in known.items():
            number = self._number(slot)
            if number is not None:
                digests[number] = digest
        return Layout(self.places, digests, self._at_place)

    def renamed(self, names: Mapping[int, int]) -> Layout:
        """Return the layout with other names for some places."""
        if not names:
            return self
        places = self.places.copy()
        for place, name in names.items():
            places[self.numbers(place)] = name
        return Layout(places, self.digests)

    def _number(self, slot: Slot) -> int | None:
        place, ordinal = slot
        numbers = self.numbers(place)
        return numbers[ordinal] if -len(numbers) <= ordinal < len(numbers) else None


@dataclass(frozen=True, slots=True)
class LayoutDifference:
    """Removed and added blocks.

    ``replaced`` are the slots at which one block replaced another, with the digest of the new
    one; ``kept`` are the digests of the blocks in both, in the old and in the new order, equal
    ends left out.
    """

    removed: tuple[PlacedBlock, ...]
    added: tuple[PlacedBlock, ...]
    replaced: Mapping[Slot, int]
    kept: tuple[list[int], list[int]]

    def moved(self, beside: Collection[int] = ()) -> bool:
        """Return whether common blocks are in another order, without those in ``beside``."""
        old, new = ([d for d in order if d not in beside] for order in self.kept)
        return old != new


def difference(old: Layout, new: Layout) -> LayoutDifference:
    """Return the difference of two layouts, in linear time.

    A block that only changed its place, because the markup around it is another, is
    in both.
    """
    start, end = equal_ends(old, new)
    gone, come = range(start, len(old) - end), range(start, len(new) - end)
    (went, at), (came, there) = _between(old, gone), _between(new, come)
    # Of equal blocks those at the same place match.
    here, now = list(zip(went, at, strict=True)), list(zip(came, there, strict=True))
    left, right = _unmatched(gone, here, now), _unmatched(come, now, here)
    before, after = [went[i - start] for i in left], [came[i - start] for i in right]
    left, right = _unmatched(left, before, after), _unmatched(right, after, before)
    removed, added = tuple(old.items(left)), tuple(new.items(right))
    slots = {slot for item in removed for slot in item.slots}
    replaced = {slot: item.digest for item in added for slot in item.slots if slot in slots}
    kept = _beside(went, gone, left), _beside(came, come, right)
    return LayoutDifference(removed, added, replaced, kept)


def _between(layout: Layout, numbers: range) -> tuple[list[int], list[int]]:
    """Return the digests and the places of blocks one after another."""
    part = slice(numbers.start, numbers.stop)
    return layout.digests[part].tolist(), layout.places[part].tolist()


def beside_slots(
    is_volatile: Callable[[Slot], bool],
    removed: Sequence[PlacedBlock],
    added: Sequence[PlacedBlock],
) -> tuple[tuple[PlacedBlock, ...], tuple[PlacedBlock, ...]]:
    """Return the differences beside the blocks that were replaced at volatile slots.

    The single block of a place may also appear and disappear there.
    """
    went, came = ({slot for item in items for slot in item.slots} for items in (removed, added))
    alone = {slot for item in (*removed, *added) if item.is_alone for slot in item.slots}
    replaced = set(filter(is_volatile, (went & came) | alone))
    beside = (
        tuple(item for item in items if replaced.isdisjoint(item.slots))
        for items in (removed, added)
    )
    return next(beside), next(beside)


def _unmatched(
    numbers: Iterable[int], names: Iterable[Hashable], others: Iterable[Hashable]
) -> list[int]:
    """Return the numbers of the names without a counterpart among the others."""
    counts = Counter(others)
    left = []
    for number, name in zip(numbers, names, strict=True):
        if counts.get(name):
            counts[name] -= 1
        else:
            left.append(number)
    return left


def _beside(digests: Sequence[int], numbers: range, unmatched: Sequence[int]) -> list[int]:
    """Return the digests of the blocks that have a counterpart, in their order."""
    left_out = set(unmatched)
    return [digest for i, digest in zip(numbers, digests, strict=True) if i not in left_out]


def equal_ends(old: Layout, new: Layout) -> tuple[int, int]:
    """Count equal leading and trailing blocks without overlap."""
    shorter = min(len(old), len(new))
    start = _equal(old, new, slice(shorter))
    rest = shorter - start
    return start, _equal(old, new, slice(-1, -rest - 1, -1)) if rest else 0


def _equal(old: Layout, new: Layout, part: slice) -> int:
    """Count the equal blocks at the beginning of a part that both layouts have."""
    differ = old.digests[part] != new.digests[part]
    differ |= old.places[part] != new.places[part]
    first = int(differ.argmax()) if len(differ) else 0
    return first if len(differ) and differ[first] else len(differ)


#: Replacements in a row that make a slot volatile.
STREAK: Final = 3
#: The same, where other pages of the site have content at that slot.
STREAK_AGAINST_THE_SITE: Final = 8
#: Comparisons in a row without a replacement that make it content again.
STILLNESS: Final = 2
#: Comparisons that are remembered, and of those the ones without a replacement that count
#: against a streak.
WINDOW: Final = 16
_MOST_HELD_AGAINST: Final = 5
_WINDOW_BITS: Final = (1 << WINDOW) - 1
_STILL_BITS: Final = (1 << STILLNESS) - 1


#: The absence of a block at a place with one block at most: an advert that is not always there.
NOTHING: Final = 0


class SlotHistory(NamedTuple):
    """Results of the last comparisons at a slot.

    ``replacements`` has a bit for each of the last ``compared`` comparisons, the newest
    lowest; ``digest`` is the block that was last seen there, or :data:`NOTHING`.
    """

    digest: int
    replacements: int = 0
    compared: int = 0
    volatile: bool = False

    @property
    def share(self) -> tuple[int, int]:
        """Return the number of comparisons at which the block was replaced, and of all."""
        return self.replacements.bit_count(), self.compared

    def after(self, digest: int, *, replaced: bool, streak: int = STREAK) -> SlotHistory:
        """Return the history after one more comparison, which found ``digest``."""
        bits = (self.replacements << 1 | replaced) & _WINDOW_BITS
        compared = min(self.compared + 1, WINDOW)
        return SlotHistory(digest, bits, compared, self._is_volatile(bits, compared, streak))

    def after_stillness(self, comparisons: int) -> SlotHistory:
        """Return the history after some comparisons without a difference on the page."""
        comparisons = min(comparisons, WINDOW)
        bits = self.replacements << comparisons & _WINDOW_BITS
        compared = min(self.compared + comparisons, WINDOW)
        # The last comparison replaced no block: only a volatile slot may still be volatile.
        is_volatile = self.volatile and comparisons < STILLNESS and bits & _STILL_BITS != 0
        if not comparisons:
            return self
        return SlotHistory(self.digest, bits, compared, is_volatile)

    def _is_volatile(self, bits: int, compared: int, streak: int) -> bool:
        if self.volatile:
            return bits & _STILL_BITS != 0
        in_a_row = (~bits & (bits + 1)).bit_length() - 1
        stood_still = compared - bits.bit_count()
        return in_a_row >= streak + min(stood_still, _MOST_HELD_AGAINST)


# -- flips -------------------------------------------------------------------
# A page that alternates between variants (A/B tests, rotating adverts). A single return to an
# earlier text is a revert: a change, even if it only deletes an addition or restores a deletion.
# ``A B A`` is two changes; in ``A B A B`` the fourth visit is unchanged, because the variants have
# alternated three times within the last eight visits. A slower return (a shop that sells out every
# month) stays a change.

#: Visits within which variants must come back.
FLIP_WINDOW: Final = 8
#: Alternations that are needed.
_TURNS: Final = 3


#: The last visits at which something was there: a bit for each, the newest lowest.
Presence: TypeAlias = int
#: There at all visits before and not now, and there now for the first time.
GONE: Final[Presence] = (1 << FLIP_WINDOW) - 2
COME: Final[Presence] = 1
#: There at all remembered visits.
ALWAYS: Final[Presence] = (1 << FLIP_WINDOW) - 1


def alternates(presence: Presence) -> bool:
    """Return whether variants have alternated often enough in the last visits."""
    return ((presence ^ (presence >> 1)) & (ALWAYS >> 1)).bit_count() >= _TURNS


def later(presence: Presence, *, present: bool, visits: int = 1) -> Presence:
    """Return the presence after some visits that all found the same."""
    visits = min(visits, FLIP_WINDOW)
    return (presence << visits | ((1 << visits) - 1 if present else 0)) & ALWAYS


# -- memory ------------------------------------------------------------------
# Bounded: some tens of slots and blocks that changed; a page that never changed has no memory.
# The versioned bytes of a page with one changing stamp are some 150.

#: The version of the format.
VERSION: Final = 1
#: Slots, blocks and differing items that are remembered at most.
MOST_SLOTS: Final = 96
MOST_BLOCKS: Final = 96
MOST_ITEMS: Final = 96
#: Earlier verdicts that may still be amended.
MOST_DELTAS: Final = 8

_HEADER: Final = struct.Struct("<BHHHH")
_SLOT: Final = struct.Struct("<QhQHBB")
_BLOCK: Final = struct.Struct("<QB")
_DELTA: Final = struct.Struct("<dBH")
_ITEM: Final = struct.Struct("<QhhQB")
_FARTHEST: Final = 32_767
_KINDS: Final = ("changed", "unchanged")


@dataclass(frozen=True, slots=True)
class PendingDifference:
    """A difference at a comparison; later comparisons may correct its verdict.

    ``kind`` is the verdict so far; ``removed`` and ``added`` are the differences beside the
    volatile blocks.
    """

    at: float
    kind: Kind
    removed: tuple[PlacedBlock, ...]
    added: tuple[PlacedBlock, ...]

    def __len__(self) -> int:
        return len(self.removed) + len(self.added)

    def renamed(self, names: Mapping[int, int]) -> PendingDifference:
        """Return the delta with other names for some places."""
        removed, added = (
            tuple(i._replace(place=names.get(i.place, i.place)) for i in items)
            for items in (self.removed, self.added)
        )
        return replace(self, removed=removed, added=added)


@dataclass(frozen=True, slots=True)
class PageMemory:
    """The history of a page's slots and blocks that ever differed.

    ``comparisons`` counts the visits that could see a difference, up to 65,535.
    """

    comparisons: int = 0
    slots: Mapping[Slot, SlotHistory] = field(default_factory=dict)
    blocks: Mapping[int, Presence] = field(default_factory=dict)
    deltas: tuple[PendingDifference, ...] = ()

    @property
    def volatile(self) -> frozenset[Slot]:
        """Return the slots of frame blocks."""
        return frozenset(slot for slot, history in self.slots.items() if history.volatile)

    @property
    def last_seen(self) -> dict[Slot, int]:
        """Return the block last seen at each volatile slot; the last sketch does not have it."""
        return {s: h.digest for s, h in self.slots.items() if h.volatile and h.digest != NOTHING}

    def renamed(self, names: Mapping[int, int]) -> PageMemory:
        """Return the memory with other names for some places."""
        slots = {(names.get(place, place), n): h for (place, n), h in self.slots.items()}
        return replace(self, slots=slots, deltas=tuple(d.renamed(names) for d in self.deltas))

    def rebased(self, before: Layout, after: Layout) -> PageMemory:
        """Return the memory for another extraction of the last text, which gave ``before``.

        Slots keep their history where both have the same block there. If anything differs, earlier
        verdicts can no longer be amended: they refer to places in the old layout.
        """
        if before == after:
            return self
        slots = {
            slot: history
            for slot, history in self.slots.items()
            if (digest := before.at(slot)) is not None and digest == after.at(slot)
        }
        return replace(self, slots=slots, deltas=())

    def to_bytes(self) -> bytes:
        """Serialise the memory in the newest version of the format, little-endian."""
        parts = [
            _HEADER.pack(
                VERSION, min(self.comparisons, 0xFFFF), len(self.slots), len(self.blocks),
                len(self.deltas),
            )
        ]  # fmt: skip
        parts += [
            _SLOT.pack(*slot, h.digest, h.replacements, h.compared, h.volatile)
            for slot, h in self.slots.items()
        ]
        parts += [_BLOCK.pack(*block) for block in self.blocks.items()]
        for delta in self.deltas:
            parts.append(_DELTA.pack(delta.at, _KINDS.index(delta.kind), len(delta)))
            parts += [_packed(item, 0) for item in delta.removed]
            parts += [_packed(item, 1) for item in delta.added]
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> PageMemory:
        """Read the memory that :meth:`to_bytes` wrote.

        Raises:
            ValueError: for an unknown version, or bytes that are cut short.
        """
        if data[:1] != bytes([VERSION]):
            raise ValueError(f"memory of a version that is not {VERSION}")
        try:
            _, comparisons, slots, blocks, deltas = _HEADER.unpack_from(data)
            slots_end = _HEADER.size + slots * _SLOT.size
            blocks_end = slots_end + blocks * _BLOCK.size
            return cls(
                comparisons,
                dict(starmap(_slot, _rows(data, _HEADER.size, _SLOT, slots))),
                dict(_rows(data, slots_end, _BLOCK, blocks)),
                tuple(_deltas(data, blocks_end, deltas)),
            )
        except struct.error as error:
            raise ValueError(f"memory of {len(data)} bytes is cut short") from error


@dataclass(frozen=True, slots=True)
class PageRecord:
    """The stored knowledge of a page for the comparison with its next text.

    ``sketch`` is the sketch of its last text without volatile blocks, which are in ``memory``;
    ``still`` counts the visits without a difference since the memory was written.
    """

    sketch: Sketch
    memory: PageMemory = field(default_factory=PageMemory)
    still: int = 0

    @classmethod
    def of(cls, history: PageHistory) -> PageRecord:
        """Return the record of the bytes that the store has of a page.

        Raises:
            ValueError: its bytes are not of a version that this program reads.
        """
        memory = PageMemory() if history.memory is None else PageMemory.from_bytes(history.memory)
        return cls(Sketch.from_bytes(history.sketch), memory, history.still)

    def read_again(self, new: Sketch, text_version: str | None) -> PageHistory:
        """Return the record as if the last text had been read as ``new``."""
        memory = self.memory.rebased(self.layout, Layout.of(new)).to_bytes()
        return PageHistory(new.to_bytes(), memory, self.still, text_version)

    @property
    def comparisons(self) -> int:
        """Return the number of visits that could see a difference."""
        return self.memory.comparisons + self.still

    @property
    def layout(self) -> Layout:
        """Return the blocks as they were last seen."""
        return Layout.of(self.sketch).with_digests(self.memory.last_seen)


def _slot(
    place: int, ordinal: int, digest: int, bits: int, compared: int, volatile: int
) -> tuple[Slot, SlotHistory]:
    return (place, ordinal), SlotHistory(digest, bits, compared, bool(volatile))


def _rows(data: bytes, start: int, form: struct.Struct, number: int) -> Iterator[Any]:
    """Return ``number`` rows of a form; raises struct.error if the data has fewer."""
    part = data[start : start + number * form.size]
    if len(part) < number * form.size:
        raise struct.error
    return form.iter_unpack(part)


def _deltas(data: bytes, start: int, number: int) -> Iterator[PendingDifference]:
    for _ in range(number):
        at, kind, count = _DELTA.unpack_from(data, start)
        start += _DELTA.size
        sides: tuple[list[PlacedBlock], list[PlacedBlock]] = [], []
        for *item, sign in _rows(data, start, _ITEM, count):
            sides[sign].append(PlacedBlock(*item))
        start += count * _ITEM.size
        yield PendingDifference(at, _KINDS[kind], tuple(sides[0]), tuple(sides[1]))


def _packed(item: PlacedBlock, sign: int) -> bytes:
    front, back = min(item.front, _FARTHEST), max(item.back, -_FARTHEST)
    return _ITEM.pack(item.place, front, back, item.digest, sign)


def is_near(slot: Slot) -> bool:
    """Return whether a slot is remembered: not thousands of rows down a list."""
    return abs(slot[1]) < _FARTHEST


def bounded(deltas: Iterable[PendingDifference]) -> tuple[PendingDifference, ...]:
    """Return the newest of the deltas (oldest first) with items within the bounds."""
    kept: list[PendingDifference] = []
    room = MOST_ITEMS
    for delta in reversed(tuple(deltas)[-MOST_DELTAS:]):
        room -= len(delta)
        if room < 0:
            break
        kept.append(delta)
    return tuple(reversed(kept))
