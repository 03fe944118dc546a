"""A site's links step by step, as the graphs from which covers are chosen."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.reproductions.link_history import LinkHistory
from tests.scheduler.discovery.graphs import reached


def history(born: list[int], links: list[tuple[int, int, int, int]], steps: int = 4) -> LinkHistory:
    columns = np.array(links, np.int64).reshape(-1, 4).T
    return LinkHistory("site", steps, np.array(born, np.int64), *columns)


def test_a_link_counts_while_it_is_there() -> None:
    site = history([0, 0, 1, 2], [(0, 2, 1, 2), (1, 3, 1, 2), (0, 3, 2, 9), (2, 3, 2, 9)])
    first, second, third = site.recrawls()
    assert (first.old, first.new, first.of(0).tolist()) == (2, 1, [0])
    assert [second.of(page).tolist() for page in range(3)] == [[0], [], [0]]
    assert (third.old, third.new) == (4, 0)


def test_orphans_and_direct_links_are_counted() -> None:
    site = history([0, 1, 1, 1], [(0, 1, 1, 9), (1, 2, 1, 9), (0, 3, 2, 9)])
    assert site.at(1).orphans == 1
    assert site.linked_directly() == 1


def test_a_page_is_there_until_the_step_at_which_it_is_gone() -> None:
    plain = history([0, 0, 1], [])
    assert plain.alive(0).tolist() == [True, True]
    site = replace(plain, gone=np.array([1, 9, 2]))
    assert [site.alive(step).tolist() for step in (0, 1, 2)] == [
        [True, True], [False, True, True], [False, True, False],
    ]  # fmt: skip
    with pytest.raises(ValueError, match="gone at one step"):
        replace(plain, gone=np.array([1]))


@st.composite
def histories(draw: st.DrawFn) -> LinkHistory:
    born = sorted(draw(st.lists(st.integers(0, 3), min_size=1, max_size=8)))
    page, step = st.integers(0, len(born) - 1), st.integers(0, 4)
    return history(born, draw(st.lists(st.tuples(page, page, step, step), max_size=20)))


@given(histories())
def test_each_step_is_what_its_definition_says(site: LinkHistory) -> None:
    for step in range(1, site.steps):
        old, both = int((site.born < step).sum()), int((site.born <= step).sum())
        columns = (site.source, site.target, site.begin, site.end)
        links = {
            (source, target)
            for source, target, begin, end in zip(*(c.tolist() for c in columns), strict=True)
            if begin <= step < end and max(source, target) < both
        }
        graph = site.at(step)
        assert (graph.old, graph.new) == (old, both - old)
        for page in range(old):
            assert set(graph.of(page).tolist()) == reached(links, old, page)


def test_pages_out_of_order_and_torn_links_are_refused() -> None:
    with pytest.raises(ValueError, match="order of their first steps"):
        history([1, 0], [])
    none, one = np.zeros(0, np.int64), np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="a source, a target, a begin and an end"):
        LinkHistory("site", 1, none, one, one, one, none)
