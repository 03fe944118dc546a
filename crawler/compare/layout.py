"""The differences between two versions of a text, block by block, with their places.

A block is known by its digest, and stands at a *slot*: a place (equal for all rows of a
list) and an ordinal among the blocks at that place, from the front (0, 1 …) or from the back
(-1, -2 …). The two ordinals distinguish replacement from shifting: a row on top of a
list moves all front ordinals and none of those from the back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from freshet.crawler.reduce.sketch import Sketch, Words64

#: A place, and an ordinal among the blocks there.
Slot: TypeAlias = tuple[int, int]
#: Places that are looked up one by one.
_FEW_PLACES: Final = 32


class Item(NamedTuple):
    """A block by its digest, where it stands: ``front`` counts from 0, ``back`` from -1."""

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
        """Return whether there is no other block at the place."""
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
        if found is None and len(self._at_place) >= _FEW_PLACES:
            # Most places are asked for: all at once, in the time of some.
            order = np.argsort(self.places, kind="stable")
            names, starts = np.unique(self.places[order], return_index=True)
            groups = np.split(order, starts[1:])
            self._at_place.update(
                (name, group.tolist()) for name, group in zip(names.tolist(), groups, strict=True)
            )
            found = self._at_place.setdefault(place, [])
        elif found is None:
            found = self._at_place[place] = np.flatnonzero(self.places == place).tolist()
        return found

    def part(self, start: int, end: int) -> Layout:
        """Return the layout of some blocks one after another."""
        return Layout(self.places[start:end], self.digests[start:end])

    def items(self, numbers: Iterable[int] | None = None) -> list[Item]:
        """Return these blocks, or all."""
        chosen = list(range(len(self)) if numbers is None else numbers)
        places, digests = self.places[chosen].tolist(), self.digests[chosen].tolist()
        found = []
        for number, place, digest in zip(chosen, places, digests, strict=True):
            there = self.numbers(place)
            front = bisect_left(there, number)
            found.append(Item(place, front, front - len(there), digest))
        return found

    def number(self, item: Item) -> int:
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

    removed: tuple[Item, ...]
    added: tuple[Item, ...]
    replaced: Mapping[Slot, int]
    kept: tuple[list[int], list[int]]

    def moved(self, beside: Collection[int] = ()) -> bool:
        """Return whether blocks in both stand in another order, those in ``beside`` left out."""
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
    is_volatile: Callable[[Slot], bool], removed: Sequence[Item], added: Sequence[Item]
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Return the differences beside the blocks that were replaced at volatile slots.

    The one block of a place may come and go there, too.
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
    """Return the numbers whose names have no counterpart among the others."""
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
