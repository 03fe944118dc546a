"""Choices by past recrawls: OD, CLIQ and COV over windows, the bandit, and their bound."""

import numpy as np
import pytest
from hypothesis import given

from freshet.scheduler.arrays import Ints
from freshet.scheduler.discovery.covers import RecrawlHistory, judged
from freshet.scheduler.discovery.reveal_graph import Reveals
from freshet.scheduler.discovery.thesis_covers import ALGORITHMS, informed_bandit, od_win
from scripts.reproductions.discovery_measures import Bandit
from tests.scheduler.discovery.graphs import Sets, pasts, reveals


def past() -> RecrawlHistory:
    """Two recrawls: page 0 revealed all, then pages 1 (half) and 2 (the same half)."""
    first = reveals([frozenset(range(4)), frozenset(), frozenset()], 4)
    last = reveals([frozenset(), frozenset({0, 1}), frozenset({0, 1}), frozenset({2})], 4)
    return RecrawlHistory(6, [first, last])


def test_fractions_are_means() -> None:
    assert past().fractions().tolist() == [0.5, 0.25, 0.25, 0.125, 0, 0]


def test_each_algorithm_knows_what_it_may_know() -> None:
    known = past()
    assert ALGORITHMS["od_1"](known, 2).tolist() == [1, 2]
    assert ALGORITHMS["od_win"](known, 2).tolist() == [0, 1]
    assert ALGORITHMS["cliq_1"](known, 3).tolist() == [1, 3]
    assert ALGORITHMS["cov"](known, 3).tolist() == [1, 3]
    assert set(ALGORITHMS["cliq_win"](known, 2).tolist()) == {0, 1}
    assert known.ever().tolist() == [0, 1, 2, 3]


def test_a_site_without_a_history_gives_nothing() -> None:
    none = RecrawlHistory(5, [])
    for name in ALGORITHMS.keys() - {"bandit"}:
        assert ALGORITHMS[name](none, 3).tolist() == []
    assert none.ever().tolist() == []


def test_a_past_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="more old pages than the history"):
        RecrawlHistory(1, past().recrawls)


@given(pasts())
def test_a_full_recrawl_is_a_batch_of_all_pages(drawn: tuple[RecrawlHistory, list[Sets]]) -> None:
    past, _ = drawn
    batch = Bandit()
    for recrawl in past.recrawls:
        batch.learn({page: recrawl.of(page) for page in range(recrawl.old)})
    if not any(each.orphans for each in past.recrawls):
        assert informed_bandit(past, 3).tolist() == batch.choose(past.pages, 3).tolist()


def test_pages_that_are_gone_are_nobodys_choice() -> None:
    known = past().of_living(np.array([False, False, True, True, True, True]))
    for name, algorithm in ALGORITHMS.items():
        cover = algorithm(known, 3).tolist()
        assert not {0, 1} & set(cover), name
        assert 2 in cover, name
    assert known.ever().tolist() == [2, 3]


def test_who_is_asked_for_the_last_news_skips_steps_without_any() -> None:
    known = past()
    quiet = reveals([frozenset()] * 5, 0)
    later = RecrawlHistory(6, [*known.recrawls, quiet])
    for name in ("greedy", "od", "cliq"):
        assert ALGORITHMS[name](later, 3).tolist() == ALGORITHMS[name](known, 3).tolist() != []
    for name in ("cov", "od_1", "cliq_1"):
        assert ALGORITHMS[name](later, 3).tolist() == []


def test_a_judge_shows_nobody_what_was_gone_before_a_step() -> None:
    week = reveals([frozenset({0}), frozenset({0})], 1)
    seen = []

    def choose(past: RecrawlHistory, _now: Reveals) -> Ints:
        seen.append(od_win(past, 1).tolist())
        return od_win(past, 1)

    alive = [np.ones(2, np.bool_), np.ones(2, np.bool_), np.array([False, True])]
    assert judged([week] * 3, choose, alive).coverage == 1.0
    assert seen == [[0], [1]]
