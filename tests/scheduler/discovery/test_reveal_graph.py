"""H_t: which new pages each old one reveals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.discovery.reveal_graph import reveals_of
from tests.scheduler.discovery.graphs import Sets, graphs, reached, reveals


@st.composite
def links(draw: st.DrawFn) -> tuple[int, int, set[tuple[int, int]]]:
    old, new = draw(st.integers(0, 5)), draw(st.integers(0, 6))
    if not old + new:
        return 0, 0, set()
    page = st.integers(0, old + new - 1)
    return old, new, draw(st.sets(st.tuples(page, page), max_size=25))


@given(links())
def test_a_page_reveals_what_paths_through_new_pages_lead_to(
    drawn: tuple[int, int, set[tuple[int, int]]],
) -> None:
    old, new, found = drawn
    ends = np.array(sorted(found), np.int64).reshape(-1, 2)
    graph = reveals_of(old, new, ends[:, 0], ends[:, 1])
    for page in range(old):
        assert graph.of(page).tolist() == sorted(reached(found, old, page))
    assert graph.degrees.tolist() == [len(reached(found, old, page)) for page in range(old)]
    revealed = frozenset().union(*(reached(found, old, page) for page in range(old)))
    assert graph.orphans == new - len(revealed)


def test_the_figure_of_the_thesis() -> None:
    # Old p1, p2, p3 are 0 to 2, new p4 to p7 are 3 to 6; p6 and p7 stand behind p4 (figure 3.1).
    graph = reveals_of(3, 4, [0, 0, 2, 3, 3], [3, 4, 4, 5, 6])
    assert graph.of(0).tolist() == [0, 1, 2, 3]
    assert graph.of(1).tolist() == []
    assert graph.of(2).tolist() == [1]


@given(graphs())
def test_a_cover_reveals_the_union_of_what_its_pages_reveal(drawn: tuple[Sets, int]) -> None:
    sets, new = drawn
    graph = reveals(sets, new)
    covered = graph.covered(range(len(sets)))
    assert set(np.flatnonzero(covered).tolist()) == set().union(*sets)
    # Equal sets are kept once.
    assert graph.sizes.size == len({each for each in sets if each})


def test_a_chain_of_new_pages_is_revealed_whole() -> None:
    count = 3_000
    pages = np.arange(1, count)
    graph = reveals_of(1, count, [0, *pages], [1, *(pages + 1)])
    assert graph.of(0).size == count


def test_ends_that_are_no_pages_are_refused() -> None:
    with pytest.raises(ValueError, match="targets must be one column of pages from 0 to 2"):
        reveals_of(2, 1, [0], [3])
    with pytest.raises(ValueError, match="1 sources and 2 targets"):
        reveals_of(2, 1, [0], [2, 2])
