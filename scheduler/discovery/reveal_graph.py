"""The graph H_t of new pages that each old page of a site reveals (Pandey 2008, section 3.2).

The pages of a site are numbered in the order in which they appeared: at any time the old pages are
those below a number, and the new pages follow. A new page is *efficiently discoverable* from an old
one if a path leads to it through new pages only: they must be fetched anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from graphlib import TopologicalSorter
from operator import or_

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freshet.scheduler.arrays import Bools, Floats, Ints

# -- paths --
#
# New pages that reach one another count as one (strongly connected components). The pages that each
# component reaches are computed from the ends of the paths back to their beginnings.


def _behind(sources: NDArray[np.integer], targets: NDArray[np.integer], groups: int) -> list[int]:
    """Return the groups that can be reached from each group by these links, as bits."""
    nearest: dict[int, set[int]] = {group: set() for group in range(groups)}
    for group, other in zip(sources.tolist(), targets.tolist(), strict=True):
        if other != group:
            nearest[group].add(other)
    behind = [0] * groups
    for group in TopologicalSorter(nearest).static_order():
        behind[group] = reduce(or_, (behind[each] for each in nearest[group]), 1 << group)
    return behind


def reached(
    direct: Sequence[tuple[int, Ints]], sources: Ints, targets: Ints, new: int
) -> Iterator[tuple[int, Ints]]:
    """Yield the new pages that each old page reveals: its links, and all reached from those.

    ``direct`` are old pages and the new ones that they link to; ``sources`` and ``targets`` are
    links among the ``new`` new ones. It needs at most ``new`` squared bits of memory.
    """
    if not sources.size:
        yield from direct
        return
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 - slow to import

    links = csr_array((np.ones(sources.size, np.int8), (sources, targets)), shape=(new, new))
    count, group_of = connected_components(links, connection="strong")
    behind = _behind(group_of[sources], group_of[targets], count)
    pages_of = np.split(np.argsort(group_of), np.cumsum(np.bincount(group_of))[:-1])
    known: dict[int, Ints] = {}
    for page, linked in direct:
        mask = reduce(or_, (behind[group] for group in set(group_of[linked].tolist())))
        if mask not in known:
            known[mask] = np.sort(np.concatenate([pages_of[it] for it in _bits(mask, count)]))
        yield page, known[mask]


def _bits(mask: int, groups: int) -> list[int]:
    data = np.frombuffer(mask.to_bytes((groups + 7) // 8, "little"), np.uint8)
    return [int(bit) for bit in np.flatnonzero(np.unpackbits(data, bitorder="little"))]


_NONE = -1


@dataclass(frozen=True, slots=True)
class Reveals:
    """H_t = (X_t, Y_t, Z_t). Old pages that reveal the same new pages share one set.

    Attributes:
        old: number of old pages, numbered from 0.
        new: number of new pages, also numbered from 0 here.
        set_of: the set that an old page reveals, or -1; of shape (old,).
        offsets: where the sets begin in ``members``; one more than the number of sets.
        members: the new pages of all sets, ascending in each.
    """

    old: int
    new: int
    set_of: Ints
    offsets: Ints
    members: Ints

    @property
    def sizes(self) -> Ints:
        """Return the number of new pages in each set."""
        return np.diff(self.offsets)

    @property
    def degrees(self) -> Ints:
        """Return |N(x)| of each old page."""
        found = np.zeros(self.old, np.int64)
        reveals = self.set_of != _NONE
        found[reveals] = self.sizes[self.set_of[reveals]]
        return found

    @property
    def fractions(self) -> Floats:
        """Return p_x = |N(x)| / N of each old page; 0 without new pages."""
        return self.degrees / max(self.new, 1)

    @property
    def first_pages(self) -> Ints:
        """Return the first old page of each set."""
        rows = np.flatnonzero(self.set_of != _NONE)
        _, first = np.unique(self.set_of[rows], return_index=True)
        return np.asarray(rows[first], np.int64)

    def members_of(self, number: int) -> Ints:
        """Return the new pages of one set."""
        return self.members[self.offsets[number] : self.offsets[number + 1]]

    def of(self, page: int) -> Ints:
        """Return N(x): the new pages that one old page reveals."""
        number = int(self.set_of[page])
        return self.members_of(number) if number != _NONE else self.members[:0]

    def covered(self, pages: ArrayLike) -> Bools:
        """Return N(S) of a set of old pages, as a mask over the new ones."""
        mask = np.zeros(self.new, np.bool_)
        numbers = np.unique(self.set_of[np.asarray(pages, np.int64)])
        for number in numbers[numbers != _NONE].tolist():
            mask[self.members_of(number)] = True
        return mask

    def by(self, kept: Bools) -> Reveals:
        """Return the graph of some old pages, as if the others revealed no page."""
        set_of = np.where(kept, self.set_of, _NONE)
        is_used = np.zeros(self.sizes.size, np.bool_)
        is_used[set_of[set_of != _NONE]] = True
        number = np.append(np.cumsum(is_used) - 1, _NONE)
        offsets = np.concatenate(([0], np.cumsum(self.sizes[is_used])))
        members = self.members[np.repeat(is_used, self.sizes)]
        return Reveals(self.old, self.new, number[set_of], offsets, members)

    @property
    def orphans(self) -> int:
        """Return the number of new pages that no old page reveals."""
        mask = np.ones(self.new, np.bool_)
        mask[self.members] = False
        return int(mask.sum())


def reveals_of(old: int, new: int, sources: ArrayLike, targets: ArrayLike) -> Reveals:
    """Return H_t for the links between the ``old + new`` pages that exist at the time.

    Links to old pages are ignored.

    Raises:
        ValueError: if a link begins or ends at a page that does not exist.
    """
    source, target = _ends("sources", sources, old + new), _ends("targets", targets, old + new)
    if source.shape != target.shape:
        raise ValueError(f"{source.size} sources and {target.size} targets; one of each is needed")
    is_new = target >= old
    source, target = source[is_new], target[is_new] - old
    within = source >= old
    direct = _rows(source[~within], target[~within])
    return from_rows(old, new, reached(direct, source[within] - old, target[within], new))


def from_rows(old: int, new: int, rows: Iterable[tuple[int, Ints]]) -> Reveals:
    """Return H_t for the new pages (ascending, each once) that some old pages reveal."""
    set_of = np.full(old, _NONE, np.int64)
    numbers: dict[bytes, int] = {}
    sets: list[Ints] = []
    for page, members in rows:
        if not members.size:
            continue
        number = numbers.setdefault(members.tobytes(), len(sets))
        if number == len(sets):
            sets.append(members)
        set_of[page] = number
    sizes = [members.size for members in sets]
    offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64)
    members = np.concatenate(sets) if sets else np.zeros(0, np.int64)
    return Reveals(old, new, set_of, offsets, members)


def _rows(sources: Ints, targets: Ints) -> list[tuple[int, Ints]]:
    """Return the targets of each source, ascending, each once."""
    order = np.lexsort((targets, sources))
    sources, targets = sources[order], targets[order]
    again = np.zeros(sources.size, np.bool_)
    again[1:] = (sources[1:] == sources[:-1]) & (targets[1:] == targets[:-1])
    sources, targets = sources[~again], targets[~again]
    if not sources.size:
        return []
    pages, starts = np.unique(sources, return_index=True)
    return list(zip(pages.tolist(), np.split(targets, starts[1:]), strict=True))


def _ends(name: str, values: ArrayLike, pages: int) -> Ints:
    column = np.asarray(values, np.int64)
    if column.ndim != 1 or (column.size and not 0 <= column.min() <= column.max() < pages):
        raise ValueError(f"{name} must be one column of pages from 0 to {pages - 1}")
    return column


# -- sightings --
#
# A crawl that visits only some pages knows for each link when it was first seen, and when its page
# was visited before: the link appeared in between.


@dataclass(frozen=True, slots=True)
class Sightings:
    """The history of a site; times in days, or in any other unit.

    Attributes:
        found_at: when each page was found, ascending; this is the order of the page numbers. Of
            shape (pages,).
        source, target: the pages that a link leads from and to; of shape (links,), as is
            ``seen_at``.
        seen_at: when it was first seen.
        visit_page, visit_at: the page and the time of each visit, in order of time; (visits,).
    """

    found_at: Floats
    source: Ints
    target: Ints
    seen_at: Floats
    visit_page: Ints
    visit_at: Floats

    def __post_init__(self) -> None:
        if np.any(np.diff(self.found_at) < 0) or np.any(np.diff(self.visit_at) < 0):
            raise ValueError("pages and visits must be in the order of time")

    def visited_before(self, page: Ints, at: Floats) -> Floats:
        """Return the last visit to each page before a time; -inf without one."""
        return visited_before(self.visit_page, self.visit_at, page, at)

    def between(self, start: float, end: float) -> Reveals:
        """Return H_t of the pages that were found after ``start``, up to ``end``.

        A link counts if it may have existed at the end: no earlier visit missed it. If all pages
        were visited at both times, these are exactly the links that existed.
        """
        source, target, old, both = self.links_between(start, end)
        return reveals_of(old, both - old, source, target)

    def links_between(self, start: float, end: float) -> tuple[Ints, Ints, int, int]:
        """Return the links to pages found in that time, and both numbers of pages."""
        old = int(np.searchsorted(self.found_at, start, "right"))
        both = int(np.searchsorted(self.found_at, end, "right"))
        known = (self.source < both) & (self.target < both) & (self.target >= old)
        known[known] = self.may_be_there(self.source[known], self.seen_at[known], end)
        return self.source[known], self.target[known], old, both

    def may_be_there(self, source: Ints, seen_at: Floats, end: float) -> Bools:
        """Return which links may have existed at the end, by the times at which they were seen."""
        return np.asarray((seen_at <= end) | (self.visited_before(source, seen_at) < end), np.bool_)


def visited_before(visit_page: Ints, visit_at: Floats, page: Ints, at: Floats) -> Floats:
    """Return the last visit to each page before a time, by visits in the order of time.

    (m,) like ``page`` and ``at``; -inf without one.
    """
    moments = visit_at.size + 1
    key = visit_page * moments + np.searchsorted(visit_at, visit_at, "left")
    order = np.argsort(key, kind="stable")
    wanted = page * moments + np.searchsorted(visit_at, at, "left")
    last = np.searchsorted(key[order], wanted, "left") - 1
    found = np.full(page.size, -np.inf)
    is_one = np.zeros(page.size, np.bool_)
    is_one[last >= 0] = key[order[last[last >= 0]]] // moments == page[last >= 0]
    found[is_one] = visit_at[order[last[is_one]]]
    return found


def yields(sightings: Sightings) -> tuple[Ints, Ints]:
    """Count the visits to each page after its first, and the new pages that they revealed.

    A page reveals links found since its previous visit, regardless of which page revealed them
    first. Both are of shape (pages,).
    """
    pages = sightings.found_at.size
    before = sightings.visited_before(sightings.visit_page, sightings.visit_at)
    again = sightings.visit_page[np.isfinite(before)]
    seen_before = sightings.visited_before(sightings.source, sightings.seen_at)
    is_news = np.isfinite(seen_before) & (sightings.found_at[sightings.target] > seen_before)
    revealed = np.bincount(sightings.source[is_news], minlength=pages)
    return np.bincount(again, minlength=pages), revealed
