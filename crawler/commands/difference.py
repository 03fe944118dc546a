"""What ``freshet diff`` found out, as a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from freshet.crawler.comparison.alignment import AlignedBlock, Change, counts
from freshet.crawler.detection.layout import Layout
from freshet.crawler.detection.memory import PageMemory
from freshet.crawler.parsing.blocks import Blocks
from freshet.storage.queries.page import StoredVersion
from freshet.storage.records import PageHistory


@dataclass(frozen=True, slots=True)
class Gap:
    """Unchanged blocks that are not shown."""

    blocks: int


@dataclass(frozen=True, slots=True)
class Difference:
    """Two versions of a page, aligned; ``volatile`` are positions in the later one."""

    url: str
    before: StoredVersion
    after: StoredVersion
    blocks: tuple[AlignedBlock, ...]
    volatile: frozenset[int] = frozenset()

    def is_volatile(self, block: AlignedBlock) -> bool:
        """Whether the block stands where the page differs at every visit."""
        return block.after in self.volatile

    @property
    def is_empty(self) -> bool:
        """Whether no block of main text differs."""
        return all(block.change is Change.KEPT for block in self.blocks)

    def around_changes(self, context: int) -> Iterator[AlignedBlock | Gap]:
        """All that changed, with so many unchanged blocks before and after, and gaps between."""
        near: set[int] = set()
        for place, block in enumerate(self.blocks):
            if block.change is not Change.KEPT:
                near.update(range(place - context, place + context + 1))
        left_out = 0
        for place, block in enumerate(self.blocks):
            if place in near:
                if left_out:
                    yield Gap(left_out)
                left_out = 0
                yield block
            else:
                left_out += 1
        if left_out:
            yield Gap(left_out)

    def as_json(self) -> dict[str, object]:
        """The difference as JSON values; unchanged blocks are counted only."""
        return {
            "url": self.url,
            "before": asdict(self.before),
            "after": asdict(self.after),
            "counts": {str(change): n for change, n in counts(self.blocks).items()},
            "blocks": [
                asdict(b) | {"volatile": self.is_volatile(b)}
                for b in self.blocks
                if b.change is not Change.KEPT
            ],
        }


def volatile_blocks(history: PageHistory, blocks: Blocks) -> frozenset[int]:
    """The positions of the blocks at slots where the page differs at every visit."""
    if history.memory is None:
        return frozenset()
    volatile = PageMemory.from_bytes(history.memory).volatile
    items = Layout(blocks.places, blocks.places).items()
    return frozenset(i for i, item in enumerate(items) if not volatile.isdisjoint(item.slots))
