"""The history of a site: windows of it, and what visits revealed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.discovery.reveal_graph import Sightings, yields

INF = float("inf")


def sightings(
    found_at: list[float], links: list[tuple[int, int, float]], visits: list[tuple[int, float]]
) -> Sightings:
    visits = sorted(visits, key=lambda visit: visit[1])
    return Sightings(
        np.array(found_at, float), np.array([source for source, _, _ in links], np.int64),
        np.array([target for _, target, _ in links], np.int64),
        np.array([at for _, _, at in links], float),
        np.array([page for page, _ in visits], np.int64), np.array([at for _, at in visits], float),
    )  # fmt: skip


#: Pages 0 and 1 stand at time 0; recrawls at 1 and 2 find 2 (by 0), then 3 (by 0 and 1) and 4
#: (behind 3).
STORY = sightings(
    [0, 0, 1, 2, 2],
    [(0, 1, 0), (0, 2, 1), (0, 3, 2), (1, 3, 2), (3, 4, 2)],
    [(page, at) for at in (0.0, 1.0, 2.0) for page in (0, 1)] + [(2, 1.0), (2, 2.0), (3, 2.0)],
)


def test_windows_between_full_recrawls() -> None:
    first, second = STORY.between(0, 1), STORY.between(1, 2)
    assert (first.old, first.new, second.old, second.new) == (2, 1, 3, 2)
    assert first.degrees.tolist() == [1, 0]
    assert second.degrees.tolist() == [2, 2, 0]
    assert STORY.between(0, 2).degrees.tolist() == [3, 2]
    assert STORY.between(2, 3).new == 0


def test_a_page_that_was_not_looked_at_in_a_window_may_have_had_the_link() -> None:
    late = sightings([0, 0, 1], [(0, 2, 1), (1, 2, 5)], [(0, 0), (1, 0), (0, 1), (1, 5)])
    assert late.between(0, 1).degrees.tolist() == [1, 1]
    visited = sightings([0, 0, 1], [(0, 2, 1), (1, 2, 5)], [(0, 0), (1, 0), (0, 1), (1, 1), (1, 5)])
    assert visited.between(0, 1).degrees.tolist() == [1, 0]


def test_what_looks_revealed() -> None:
    visits, revealed = yields(STORY)
    assert visits.tolist() == [2, 2, 1, 0, 0]
    assert revealed.tolist() == [2, 1, 0, 0, 0]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=12),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7)), min_size=1, max_size=8),
)
def test_the_look_before(visits: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    history = sightings([0, 0, 0, 0], [], [(page, float(at)) for page, at in visits])
    pages, times = np.array([p for p, _ in asked]), np.array([t for _, t in asked], float)
    expected = [
        max((t for p, t in visits if p == page and t < at), default=-INF) for page, at in asked
    ]
    assert history.visited_before(pages, times).tolist() == expected


def test_an_empty_site() -> None:
    none = sightings([], [], [])
    assert none.between(0, 1).new == 0
    assert [each.size for each in yields(none)] == [0, 0]


def test_times_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="in the order of time"):
        sightings([1, 0], [], [])
