"""PageRank is the law of a surfer who follows links and now and then jumps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.importance import pagerank

GRAPHS = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=30)
    )
)


def ranks(n: int, links: list[tuple[int, int]]) -> list[float]:
    source, target = (np.array([link[i] for link in links], np.int32) for i in range(2))
    found: list[float] = pagerank(n, source, target).tolist()
    return found


def stationary(n: int, links: list[tuple[int, int]]) -> list[float]:
    """The same by the surfer's matrix and linear algebra, without any trick."""
    surfer = np.full((n, n), 0.15 / n)
    for i in range(n):
        targets = sorted({b for a, b in links if a == i != b}) or range(n)
        surfer[i, list(targets)] += 0.85 / len(targets)
    law = np.linalg.solve(
        np.vstack([(surfer.T - np.eye(n))[:-1], np.ones(n)]), np.append(np.zeros(n - 1), 1.0)
    )
    found: list[float] = (law * n).tolist()
    return found


@given(GRAPHS)
def test_it_is_where_the_surfer_is_in_the_long_run(
    graph: tuple[int, list[tuple[int, int]]],
) -> None:
    n, links = graph
    assert ranks(n, links) == pytest.approx(stationary(n, links), abs=1e-5)


def test_a_link_that_is_there_twice_counts_once_and_one_to_itself_not_at_all() -> None:
    links = [(0, 1), (0, 2), (1, 0)]
    assert ranks(3, [*links, (0, 1), (1, 1), (2, 2)]) == ranks(3, links)


def test_pages_without_links_are_alike_and_no_pages_have_no_rank() -> None:
    assert ranks(3, []) == [1.0, 1.0, 1.0]
    assert ranks(0, []) == []


def test_a_chain_a_star_and_a_ring_come_to_an_end() -> None:
    n = 20_000
    chain = [(i, i + 1) for i in range(n - 1)]
    assert np.isfinite(ranks(n, chain)).all()
    star = ranks(n, [(i, 0) for i in range(1, n)])
    assert star[0] == pytest.approx(star[1] * (1 + 0.85 * (n - 1)))
    assert ranks(n, [*chain, (n - 1, 0)]) == pytest.approx([1.0] * n)
