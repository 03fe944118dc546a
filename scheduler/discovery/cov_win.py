"""COV-WIN: the greedy cover of all past recrawls pooled. Pure. Ours, not the thesis's.

Every new page of the past is a scenario that may come again. COV covers those of the last recrawl
and knows nothing after one without news; OD-WIN adds up what pages revealed, and pays for overlaps
again and again. The cover of all scenarios together does neither: "it is not easy to 'average'
cover information from multiple recrawls" (section 3.6.3), but it is to cover their union.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from itertools import islice
from typing import Final

import numpy as np

from freshet.scheduler.arguments import Ints
from freshet.scheduler.discovery.past import Past

#: What a page counts that came alone in a step. Weights are whole numbers, so that sums are exact
#: and what is equal is equal.
_ONE: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class _Group:
    """Pages that revealed the same, the first last; ``loss`` is below 0 what that is worth."""

    loss: int
    pages: list[int]
    members: Ints


def cov_win(past: Past, budget: int, alpha: float = 1.0) -> Ints:
    """The page that covers most of what is not covered yet, again and again; ``budget`` of them.

    Of N pages that came in one step each counts alpha^(t - t') / sqrt(N): a site that was rebuilt
    does not decide alone, nor does a step with a single page count as much as one with hundreds.
    When all is covered, it is covered a second time by the pages that are left, for where those
    of the first cover fail; and so on. Of equal pages the one that revealed most, of these the
    first. Pages that never revealed anything are not chosen.

    Raises:
        ValueError: alpha is not above 0 and at most 1.
    """
    weights = _weights(past, alpha)
    groups = _groups(past)
    return np.array(list(islice(_covers(groups, weights), max(budget, 0))), np.int64)


def _weights(past: Past, alpha: float) -> Ints:
    """What each new page of the past counts."""
    counts = [
        np.full(each.new, max(round(_ONE * weight / np.sqrt(max(each.new, 1))), 1))
        for each, weight in zip(past.recrawls, past.weights(alpha).tolist(), strict=True)
    ]
    return np.concatenate([np.zeros(0, np.int64), *counts]).astype(np.int64)


def _groups(past: Past) -> list[tuple[list[int], Ints]]:
    """Pages that revealed the same in all recrawls, and what that was, numbered through them."""
    pages = np.flatnonzero(past.ever())
    if not pages.size:
        return []
    numbers = np.full((pages.size, len(past.recrawls)), -1, np.int64)
    for column, recrawl in enumerate(past.recrawls):
        known = int(np.searchsorted(pages, recrawl.old))
        numbers[:known, column] = recrawl.set_of[pages[:known]]
    kinds, kind_of = np.unique(numbers, axis=0, return_inverse=True)
    order = np.argsort(kind_of.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(kind_of.ravel()))
    first = np.cumsum([0, *(each.new for each in past.recrawls)]).tolist()
    return [
        (
            same.tolist(),
            np.concatenate([
                past.recrawls[n].members_of(int(kind[n])) + first[n]
                for n in np.flatnonzero(kind >= 0).tolist()
            ]),
        )
        for same, kind in zip(np.split(pages[order], ends[:-1]), kinds, strict=True)
    ]  # fmt: skip


def _covers(groups: Sequence[tuple[list[int], Ints]], weights: Ints) -> Iterator[int]:
    """The pages of one cover after the other."""
    left = [_Group(-int(weights[members].sum()), pages[::-1], members) for pages, members in groups]
    while left:
        for group in _cover(left, weights.copy()):
            yield group.pages.pop()
        left = [group for group in left if group.pages]


def _cover(groups: Sequence[_Group], uncovered: Ints) -> Iterator[_Group]:
    """GREEDY: what a page adds only shrinks, so that it is valued anew when it stands first."""
    waiting = [(each.loss, each.loss, each.pages[-1], n) for n, each in enumerate(groups)]
    heapify(waiting)
    while waiting:
        bound, loss, page, number = waiting[0]
        group = groups[number]
        gain = int(uncovered[group.members].sum())
        if not gain:
            heappop(waiting)
        elif gain < -bound:
            heapreplace(waiting, (-gain, loss, page, number))
        else:
            heappop(waiting)
            uncovered[group.members] = 0
            yield group
