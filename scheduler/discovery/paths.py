"""What lies behind new pages: paths that lead on through new pages only.

New pages that reach one another count as one (strongly connected components); what each of those
reaches is found from the ends of the paths back to their beginnings, in one pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from freshet.scheduler.arguments import Ints


def reached(
    direct: Sequence[tuple[int, Ints]], sources: Ints, targets: Ints, new: int
) -> Iterator[tuple[int, Ints]]:
    """What each old page reveals: the new pages that it links to, and all that lie behind those.

    ``direct`` are old pages and the new ones that they link to; ``sources`` and ``targets`` are
    links among the ``new`` new ones. Takes at most ``new`` squared bits of memory.
    """
    if not sources.size:
        yield from direct
        return
    group_of, groups = _groups(sources, targets, new)
    behind = _behind(group_of[sources], group_of[targets], groups)
    pages_of = np.split(np.argsort(group_of, kind="stable"), np.cumsum(np.bincount(group_of))[:-1])
    known: dict[int, Ints] = {}
    for page, linked in direct:
        mask = 0
        for group in np.unique(group_of[linked]).tolist():
            mask |= behind[group]
        if mask not in known:
            found = [pages_of[group] for group in _bits(mask, groups)]
            known[mask] = np.sort(np.concatenate(found))
        yield page, known[mask]


def _groups(sources: Ints, targets: Ints, new: int) -> tuple[Ints, int]:
    """Which new pages reach one another: the group of each, and how many groups there are."""
    links = coo_array((np.ones(sources.size, np.int8), (sources, targets)), shape=(new, new))
    groups, group_of = connected_components(links.tocsr(), directed=True, connection="strong")
    return group_of.astype(np.int64), int(groups)


def _behind(sources: Ints, targets: Ints, groups: int) -> list[int]:
    """The groups that each one reaches, itself among them, as the bits of a number."""
    between = np.unique(np.column_stack((sources, targets))[sources != targets], axis=0)
    successors: list[list[int]] = [[] for _ in range(groups)]
    predecessors: list[list[int]] = [[] for _ in range(groups)]
    for source, target in between.tolist():
        successors[source].append(target)
        predecessors[target].append(source)
    behind = [1 << group for group in range(groups)]
    waiting = [len(each) for each in successors]
    done = [group for group in range(groups) if not waiting[group]]
    while done:
        group = done.pop()
        for successor in successors[group]:
            behind[group] |= behind[successor]
        for predecessor in predecessors[group]:
            waiting[predecessor] -= 1
            if not waiting[predecessor]:
                done.append(predecessor)
    return behind


def _bits(mask: int, groups: int) -> list[int]:
    data = np.frombuffer(mask.to_bytes((groups + 7) // 8, "little"), np.uint8)
    return [int(bit) for bit in np.flatnonzero(np.unpackbits(data, bitorder="little"))]
