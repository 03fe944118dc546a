from collections.abc import Callable
from math import inf

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.shortlists.front import Front
from freshet.scheduler.shortlists.ranks import NOBODY, Rank
from freshet.scheduler.shortlists.repair import Repair
from freshet.scheduler.shortlists.shortlist import Shortlist
from freshet.scheduler.shortlists.whole import Whole
from freshet.scheduler.sources import SourceTable

HOSTS = 20


def whole_of(n: int, rng: np.random.Generator) -> Whole:
    table = SourceTable.of(
        *(10 ** rng.uniform(-1, 1, (2, n))),
        host=rng.integers(0, HOSTS, n),
        host_capacity=np.full(HOSTS, inf),
        last_crawl=-rng.exponential(3.0, n),
    )
    return Whole(table, GreedyIndex().index, 0.0, 0)


def lists_of(whole: Whole) -> list[Shortlist]:
    return [Shortlist(whole, 60), Shortlist(whole, 20), Front(whole, 5)]


def repaired(
    whole: Whole, lists: list[Shortlist], now: float, crawls: int, ready: Bools | None
) -> tuple[Rank, int]:
    """The leader when nothing is left to mend, and the steps it took."""
    front = lists[-1]
    assert isinstance(front, Front)
    repair, steps = Repair(whole, lists, now, crawls, ready), 0
    while repair.step(leader := front.leader(now, ready)):
        steps += 1
        assert steps < 200
    return leader, steps


def best(whole: Whole, now: float, ready: Bools | None) -> Rank:
    worth = whole.worth(now)
    if ready is not None:
        worth = worth * ready[whole.table.host]
    row = int(worth.argmax())
    return (float(worth[row]), row) if worth[row] > 0 else NOBODY


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.2, 0.6, 1.0]))
def test_what_is_mended_tells_the_best_of_all(seed: int, share_ready: float) -> None:
    rng = np.random.default_rng(seed)
    whole = whole_of(300, rng)
    lists = lists_of(whole)
    now = 0.0
    for crawls in range(12):
        now += float(rng.exponential(0.2))
        ready = None if share_ready == 1 else rng.random(HOSTS) < share_ready
        leader, _ = repaired(whole, lists, now, crawls, ready)
        assert leader == best(whole, now, ready)
        if leader != NOBODY:
            whole.table.last_crawl[leader[1]] = now
            for each in lists:
                each.admit([leader[1]])


def test_what_is_in_order_is_left_alone() -> None:
    whole = whole_of(300, np.random.default_rng(4))
    lists = lists_of(whole)
    for day in (1.0, 2.0):
        repaired(whole, lists, day, int(day), None)
    assert repaired(whole, lists, 2.0, 2, None)[1] == 0


def test_when_all_resting_hosts_are_ready_at_once_the_lists_are_drawn_anew() -> None:
    whole = whole_of(300, np.random.default_rng(5))
    lists = lists_of(whole)
    nobody = np.zeros(HOSTS, np.bool_)
    for day in (1.0, 2.0):
        repaired(whole, lists, day, int(day), nobody)
    assert any(len(each.held_back) for each in lists)
    leader, _ = repaired(whole, lists, 2.0, 2, ~nobody)
    assert leader == best(whole, 2.0, ~nobody)


def test_it_ends_even_if_an_index_breaks_the_law() -> None:
    """Then what it ends with may not be the best; that is the policy's fault."""
    rng = np.random.default_rng(6)
    table = whole_of(300, rng).table
    falling: list[Callable[[SourceTable, float], Floats]] = [
        lambda part, now: part.importance / (1 + now - part.last_crawl),
        lambda part, now: rng.random(len(part)),
    ]
    for index in falling:
        whole = Whole(table, index, 0.0, 0)
        lists = lists_of(whole)
        for tick in range(20):
            leader, _ = repaired(whole, lists, 1.0 + tick / 10, tick, rng.random(HOSTS) < 0.5)
            assert leader[0] > 0
