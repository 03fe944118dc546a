"""COV-WIN against its definition, and what it does that the thesis's algorithms do not."""

from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.discovery.covers import RecrawlHistory
from freshet.scheduler.discovery.thesis_covers import ALGORITHMS, cov_win, od_win
from tests.scheduler.discovery.graphs import Sets, pasts, reveals

Scenarios = Mapping[tuple[int, int], int]


def naive(past: RecrawlHistory, told: Sequence[Sets], budget: int) -> list[int]:
    """Word for word: the best of what is left, until all is covered, and from the beginning."""
    weight: dict[tuple[int, int], int] = {}
    revealed: list[set[tuple[int, int]]] = [set() for _ in range(past.pages)]
    for step, (recrawl, sets) in enumerate(zip(past.recrawls, told, strict=True)):
        for page, found in enumerate(sets):
            revealed[page] |= {(step, new) for new in found}
        for new in range(recrawl.new):
            worth = 2**30 / recrawl.new**0.5
            weight[step, new] = max(round(worth), 1)
    chosen: list[int] = []
    uncovered = set(weight)
    while len(chosen) < budget:
        left = [page for page in range(past.pages) if revealed[page] and page not in chosen]
        if not left:
            break
        gains = {page: worth_of(revealed[page] & uncovered, weight) for page in left}
        if not any(gains.values()):
            uncovered = set(weight)
            continue
        chosen.append(
            max(left, key=lambda page: (gains[page], worth_of(revealed[page], weight), -page))
        )
        uncovered -= revealed[chosen[-1]]
    return chosen


def worth_of(scenarios: set[tuple[int, int]], weight: Scenarios) -> int:
    return sum(weight[each] for each in scenarios)


@given(pasts(), st.integers(0, 8))
def test_it_is_what_its_definition_says(
    drawn: tuple[RecrawlHistory, list[Sets]], budget: int
) -> None:
    past, told = drawn
    assert cov_win(past, budget).tolist() == naive(past, told, budget)


@given(pasts(), st.integers(0, 8))
def test_it_looks_at_no_more_pages_than_od_win_and_never_at_one_twice(
    drawn: tuple[RecrawlHistory, list[Sets]], budget: int
) -> None:
    past, _ = drawn
    cover = cov_win(past, budget).tolist()
    assert len(cover) == len(set(cover)) == od_win(past, budget).size
    assert set(cover) <= set(past.ever().tolist())
    assert cov_win(past, past.pages).tolist()[: len(cover)] == cover


@given(pasts(), st.data())
def test_pages_that_are_gone_are_not_chosen_and_count_for_nothing(
    drawn: tuple[RecrawlHistory, list[Sets]], data: st.DataObject
) -> None:
    past, told = drawn
    alive = np.array(
        data.draw(st.lists(st.booleans(), min_size=past.pages, max_size=past.pages)), np.bool_
    )
    living = [
        [found if alive[page] else frozenset() for page, found in enumerate(sets)] for sets in told
    ]
    cover = cov_win(past.of_living(alive), past.pages)
    assert alive[cover].all()
    assert cover.tolist() == naive(past, living, past.pages)


def test_a_step_without_news_makes_it_forget_nothing() -> None:
    past = RecrawlHistory(2, [reveals([frozenset({0})], 1), reveals([frozenset()] * 2, 0)])
    assert ALGORITHMS["cov"](past, 1).tolist() == []
    assert cov_win(past, 1).tolist() == [0]


def test_a_rebuild_does_not_decide_alone() -> None:
    """A migration with 100 new pages behind page 0; then a page a week for a year behind page 1."""
    rebuilt = reveals([frozenset(range(100)), frozenset()], 100)
    weeks = [reveals([frozenset(), frozenset({0})], 1) for _ in range(52)]
    past = RecrawlHistory(2, [rebuilt, *weeks])
    assert cov_win(past, 1).tolist() == [1]
