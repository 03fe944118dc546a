"""The differences between two versions of a text, block by block, with their places.

A block is known by its digest, and stands at a *slot*: a place (equal for all rows of a
list) and an ordinal among the blocks at that place, from the front (0, 1 …) or from the back
(-1, -2 …). The two ordinals distinguish replacement from shifting: a row on top of a
list moves all front ordinals and none of those from the back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TypeAlias

from freshet.crawler.reduce.sketch import Sketch

#: A place, and an ordinal among the blocks there.
Slot: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Item:
    """A block by its digest, where it stands: ``front`` counts from 0, ``back`` from -1."""

    place: int
    front: int
    back: int
    digest: int

    @property
    def slots(self) -> tuple[Slot, Slot]:
        """Return the slot from the front, and that from the back."""
        return (self.place, self.front), (self.place, self.back)


@dataclass(frozen=True, slots=True)
class Layout:
    """The blocks of a text as columns: ``places`` and ``digests`` in document order."""

    places: Sequence[int]
    digests: Sequence[int]
    _numbers: Mapping[int, list[int]] | None = field(default=None, repr=False, compare=False)

    @property
    def numbers(self) -> Mapping[int, list[int]]:
        """Return the numbers of the blocks at each place."""
        if self._numbers is None:
            numbers: defaultdict[int, list[int]] = defaultdict(list)
            for number, place in enumerate(self.places):
                numbers[place].append(number)
            object.__setattr__(self, "_numbers", dict(numbers))
            return numbers
        return self._numbers

    @classmethod
    def of(cls, sketch: Sketch) -> Layout:
        """Return the layout that a sketch keeps."""
        return cls(sketch.block_places.tolist(), sketch.block_digests.tolist())

    def __len__(self) -> int:
        return len(self.digests)

    def items(self, numbers: Iterable[int] | None = None) -> list[Item]:
        """Return these blocks, or all."""
        return [self._item(i) for i in (range(len(self)) if numbers is None else numbers)]

    def near_slots(self, reach: int) -> Iterator[tuple[Slot, int]]:
        """Return the first and last ``reach`` slots at each place, with the digests there."""
        digests = self.digests
        for place, numbers in self.numbers.items():
            for ordinal, number in enumerate(numbers[:reach]):
                yield (place, ordinal), digests[number]
            for ordinal, number in enumerate(reversed(numbers[-reach:]), start=1):
                yield (place, -ordinal), digests[number]

    def number(self, item: Item) -> int:
        """Return the number of one of the blocks."""
        return self.numbers[item.place][item.front]

    def at(self, slot: Slot) -> int | None:
        """Return the digest of the block at a slot, if there is one."""
        number = self._number(slot)
        return None if number is None else self.digests[number]

    def with_digests(self, known: Mapping[Slot, int]) -> Layout:
        """Return the layout with other digests at some slots; slots that it lacks are ignored."""
        if not known:
            return self
        digests = list(self.digests)
        for slot, digest in known.items():
            number = self._number(slot)
            if number is not None:
                digests[number] = digest
        return Layout(self.places, digests, self._numbers)

    def renamed(self, names: Mapping[int, int]) -> Layout:
        """Return the layout with other names for some places."""
        if not names:
            return self
        return Layout([names.get(place, place) for place in self.places], self.digests)

    def _item(self, number: int) -> Item:
        place = self.places[number]
        numbers = self.numbers[place]
        front = bisect_left(numbers, number)
        return Item(place, front, front - len(numbers), self.digests[number])

    def _number(self, slot: Slot) -> int | None:
        place, ordinal = slot
        numbers = self.numbers.get(place, ())
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
    start, end = _equal_ends(old, new)
    gone, come = range(start, len(old) - end), range(start, len(new) - end)
    # Of equal blocks those at the same place match.
    here = [(old.digests[i], old.places[i]) for i in gone]
    there = [(new.digests[i], new.places[i]) for i in come]
    left, right = _unmatched(gone, here, there), _unmatched(come, there, here)
    before, after = [old.digests[i] for i in left], [new.digests[i] for i in right]
    left, right = _unmatched(left, before, after), _unmatched(right, after, before)
    removed, added = tuple(old.items(left)), tuple(new.items(right))
    went = {slot for item in removed for slot in item.slots}
    replaced = {slot: item.digest for item in added for slot in item.slots if slot in went}
    kept = _beside(old.digests, gone, left), _beside(new.digests, come, right)
    return LayoutDifference(removed, added, replaced, kept)


def beside_slots(
    volatile: Set[Slot], removed: Sequence[Item], added: Sequence[Item]
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Return the differences beside the blocks that were replaced at volatile slots."""
    went, came = ({slot for item in items for slot in item.slots} for items in (removed, added))
    replaced = volatile & went & came
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
    return [digests[i] for i in numbers if i not in left_out]


def _equal_ends(old: Layout, new: Layout) -> tuple[int, int]:
    """Count equal leading and trailing blocks without overlap."""
    shorter = min(len(old), len(new))
    start = next((i for i in range(shorter) if _differ(old, new, i)), shorter)
    rest = shorter - start
    end = next((i for i in range(1, rest + 1) if _differ(old, new, -i)), rest + 1)
    return start, end - 1


def _differ(old: Layout, new: Layout, i: int) -> bool:
    return old.digests[i] != new.digests[i] or old.places[i] != new.places[i]
