import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.shortlists.front import Front
from freshet.scheduler.shortlists.ranks import NOBODY
from freshet.scheduler.shortlists.whole import Whole
from freshet.scheduler.sources import SourceTable


def whole_of(n: int, *, noise: float = 0.0) -> Whole:
    rng = np.random.default_rng(n)
    table = SourceTable.of(
        *(10 ** rng.uniform(-1, 1, (2, n))),
        host=np.arange(n) % 2,
        last_crawl=-rng.exponential(3.0, n),
    )
    return Whole(table, GreedyIndex().index, noise, 0)


def front_of(whole: Whole, size: int) -> Front:
    front = Front(whole, size)
    front.draw(whole, 1.0, 0, None)
    return front


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3]))
def test_its_leader_is_worth_most_through_all_events(seed: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    whole = whole_of(60, noise=noise)
    front = front_of(whole, 10)
    known = set(front.rows(np.arange(len(front))).tolist())
    for tick in range(1, 25):
        row, now = int(rng.integers(60)), 1.0 + tick
        whole.table.last_crawl[row] = rng.uniform(-50.0, now)
        front.admit([row])
        known.add(row)
        ready = rng.random(2) < 0.7
        worth = whole.worth(now) * ready[whole.table.host]
        best = max(known, key=lambda each: (worth[each], -each))
        expected = (worth[best], best) if worth[best] > 0 else NOBODY
        assert front.leader(now, ready) == expected


def test_of_equals_the_lowest_row_leads_whenever_it_was_admitted() -> None:
    whole = Whole(SourceTable.of(np.ones(50), np.ones(50)), GreedyIndex().index, 0.0, 0)
    front = front_of(whole, 5)
    assert front.leader(1.0, None)[1] == 0
    whole.table.last_crawl[:5] = 1.0
    front.admit([0, 1, 2, 3, 4, 30, 10, 40])
    assert front.leader(1.0, None)[1] == 10


@pytest.mark.parametrize("n", [0, 1])
def test_the_least_lists_have_a_leader_or_nobody(n: int) -> None:
    front = front_of(whole_of(n), 5)
    assert front.leader(1.0, None)[1] == (0 if n else NOBODY[1])
    assert front.leader(1.0, np.zeros(2, np.bool_)) == NOBODY


def test_an_empty_front_takes_in_its_first_source() -> None:
    whole = whole_of(3)
    front = Front(whole, 2)
    assert front.leader(1.0, None) == NOBODY
    front.admit([1])
    assert front.leader(1.0, None) == (float(whole.worth(1.0)[1]), 1)


def test_it_has_room_for_more_than_it_was_drawn_with() -> None:
    whole = whole_of(100)
    front = front_of(whole, 4)
    front.admit(range(60))
    assert len(front) >= 60
    assert front.leader(9.0, None)[0] >= whole.worth(9.0)[:60].max()
    assert front.would_overgrow(1)
