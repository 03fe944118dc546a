"""Places that got another name: a rebuild of a site gives its wrappers other classes.

What a block at such a place was before is still known: the blocks that stand in both texts say
which place became which, and where nothing at a place stayed, so does the same gap between two
blocks that did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from freshet.crawler.detection.layout import Layout

_Anchor = tuple[int, int]


def new_names(old: Layout, new: Layout) -> dict[int, int]:
    """For places that only the old text has, those of the new one that took over."""
    gone = set(old.places) - set(new.places)
    come = set(new.places) - set(old.places)
    if not gone or not come:
        return {}
    votes: Counter[tuple[int, int]] = Counter()
    for i, j in _pairs(old, new):
        if old.places[i] in gone and new.places[j] in come:
            votes[old.places[i], new.places[j]] += 1
    names: dict[int, int] = {}
    for (before, after), _ in votes.most_common():
        if before not in names and after in come:
            names[before] = after
            come.discard(after)
    return names


def _pairs(old: Layout, new: Layout) -> Iterator[_Anchor]:
    """Blocks that correspond: equal ones, and those that fill equally long gaps between."""
    anchors = [(-1, -1), *_anchors(old, new), (len(old), len(new))]
    for (i, j), (next_i, next_j) in pairwise(anchors):
        if next_i - i == next_j - j:
            yield from zip(range(i + 1, next_i), range(j + 1, next_j), strict=True)
        if next_i < len(old):
            yield next_i, next_j


def _anchors(old: Layout, new: Layout) -> list[_Anchor]:
    """The blocks that stand once in each text and in the same order, by their numbers."""
    there = {digest: number for number, digest in enumerate(new.digests)}
    once = {d for d, n in Counter(old.digests).items() if n == 1}
    once &= {d for d, n in Counter(new.digests).items() if n == 1}
    anchors: list[_Anchor] = []
    for i, digest in enumerate(old.digests):
        if digest in once and (not anchors or there[digest] > anchors[-1][1]):
            anchors.append((i, there[digest]))
    return anchors
