"""Which new pages of a site each old one reveals: the graph H_t (Pandey 2008, section 3.2).

The pages of a site are numbered in the order in which they appeared: at any time the old ones are
those below a number, the new ones the next. A new page is *efficiently discoverable* from an old
one where a path leads to it through new pages only; whoever fetches them learns the rest for
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler.arguments import Bools, Floats, Ints
from freshet.scheduler.discovery.paths import reached

_NONE = -1


@dataclass(frozen=True, slots=True)
class Reveals:
    """H_t = (X_t, Y_t, Z_t). Old pages that reveal the same new ones share one set.

    Attributes:
        old: how many old pages there are; they are numbered from 0 on.
        new: how many new ones; in here they are numbered from 0 on, too.
        set_of: which set an old page reveals, -1 for nothing; of shape (old,).
        offsets: where the sets begin in ``members``; one more than there are sets.
        members: the new pages of all sets, ascending in each.
    """

    old: int
    new: int
    set_of: Ints
    offsets: Ints
    members: Ints

    @property
    def sizes(self) -> Ints:
        """How many new pages each set holds."""
        return np.diff(self.offsets)

    @property
    def degrees(self) -> Ints:
        """|N(x)| of each old page."""
        found = np.zeros(self.old, np.int64)
        reveals = self.set_of != _NONE
        found[reveals] = self.sizes[self.set_of[reveals]]
        return found

    @property
    def fractions(self) -> Floats:
        """p_x = |N(x)| / N of each old page; 0 where nothing is new."""
        return self.degrees / max(self.new, 1)

    @property
    def first_pages(self) -> Ints:
        """The first old page of each set."""
        rows = np.flatnonzero(self.set_of != _NONE)
        _, first = np.unique(self.set_of[rows], return_index=True)
        return np.asarray(rows[first], np.int64)

    def members_of(self, number: int) -> Ints:
        """The new pages of one set."""
        return self.members[self.offsets[number] : self.offsets[number + 1]]

    def of(self, page: int) -> Ints:
        """N(x): the new pages that one old page reveals."""
        number = int(self.set_of[page])
        return self.members_of(number) if number != _NONE else self.members[:0]

    def covered(self, pages: ArrayLike) -> Bools:
        """N(S) of a set of old pages, as a mask over the new ones."""
        mask = np.zeros(self.new, np.bool_)
        numbers = np.unique(self.set_of[np.asarray(pages, np.int64)])
        for number in numbers[numbers != _NONE].tolist():
            mask[self.members_of(number)] = True
        return mask

    def by(self, kept: Bools) -> Reveals:
        """What some of the old pages reveal, as if the others revealed nothing."""
        set_of = np.where(kept, self.set_of, _NONE)
        is_used = np.zeros(self.sizes.size, np.bool_)
        is_used[set_of[set_of != _NONE]] = True
        number = np.append(np.cumsum(is_used) - 1, _NONE)
        offsets = np.concatenate(([0], np.cumsum(self.sizes[is_used])))
        members = self.members[np.repeat(is_used, self.sizes)]
        return Reveals(self.old, self.new, number[set_of], offsets, members)

    @property
    def orphans(self) -> int:
        """New pages that no old one reveals."""
        mask = np.ones(self.new, np.bool_)
        mask[self.members] = False
        return int(mask.sum())


def reveals_of(old: int, new: int, sources: ArrayLike, targets: ArrayLike) -> Reveals:
    """H_t of the links between ``old + new`` pages that are there at the time.

    Links to old pages say nothing and may be among them.

    Raises:
        ValueError: a link begins or ends at a page that there is not.
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
    """H_t of the new pages (ascending, each once) that some old pages reveal."""
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
    """The targets of each source, ascending, each once."""
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
