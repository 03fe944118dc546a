"""Small graphs of old and new pages, drawn at random, and the definitions word for word."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from freshet.scheduler.discovery.covers import RecrawlHistory
from freshet.scheduler.discovery.reveal_graph import Reveals, from_rows

Sets = Sequence[frozenset[int]]


def reveals(sets: Sets, new: int) -> Reveals:
    """The graph in which old page i reveals the i-th set."""
    rows = [(page, np.array(sorted(each), np.int64)) for page, each in enumerate(sets)]
    return from_rows(len(sets), new, rows)


@st.composite
def graphs(draw: st.DrawFn, most_old: int = 7, most_new: int = 8) -> tuple[Sets, int]:
    """What each old page reveals, and how many pages are new."""
    new = draw(st.integers(0, most_new))
    member = st.integers(0, new - 1) if new else st.nothing()
    sets = draw(st.lists(st.frozensets(member), max_size=most_old))
    return sets, new


@st.composite
def pasts(draw: st.DrawFn, most_old: int = 6) -> tuple[RecrawlHistory, list[Sets]]:
    """A past of up to four recrawls of a site that grows, and the sets of each."""
    drawn = sorted(draw(st.lists(graphs(most_old, 5), max_size=4)), key=lambda each: len(each[0]))
    recrawls = [reveals(sets, new) for sets, new in drawn]
    pages = max((len(sets) for sets, _ in drawn), default=0) + draw(st.integers(0, 2))
    return RecrawlHistory(pages, recrawls), [sets for sets, _ in drawn]


def best_covered(sets: Sets, budget: int) -> int:
    """What the best cover of so many pages reveals, by trying all."""
    size = min(budget, len(sets))
    return max(len(frozenset().union(*chosen)) for chosen in combinations(sets, size))


def reached(links: set[tuple[int, int]], old: int, page: int) -> frozenset[int]:
    """The new pages to which a path leads through new pages only."""
    found: set[int] = set()
    waiting = [page]
    while waiting:
        at = waiting.pop()
        for source, target in links:
            if source == at and target >= old and target not in found:
                found.add(target)
                waiting.append(target)
    return frozenset(each - old for each in found)
