from dataclasses import replace
from math import inf

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.arrays import Bools
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.shortlists.ranks import Rank, outranks
from freshet.scheduler.shortlists.shortlist import Shortlist
from freshet.scheduler.shortlists.whole import Whole
from freshet.scheduler.sources import Rows, SourceTable

HOSTS = 6


def whole_of(n: int, rng: np.random.Generator) -> Whole:
    table = SourceTable.of(
        *(10 ** rng.uniform(-1, 1, (2, n))),
        host=rng.integers(0, HOSTS, n),
        host_capacity=np.full(HOSTS, inf),
        last_crawl=-np.round(rng.exponential(3.0, n), 1),
    )
    return Whole(table, GreedyIndex().index, 0.1, 0)


def drawn(whole: Whole, size: int, now: float, ready: Bools | None = None) -> Shortlist:
    """A list that knows a pace of 100 crawls a day."""
    made = Shortlist(whole, size)
    made.draw(whole, now - 1.0, 0, ready)
    made.draw(whole, now, 100, ready)
    return made


def listed(made: Shortlist) -> Rows:
    return made.rows(np.arange(len(made)))


def bar_of(made: Shortlist, host: int) -> Rank:
    held = made.held_back
    mine = np.flatnonzero(held.host == host)
    return (float(held.worth[mine[0]]), int(held.row[mine[0]])) if len(mine) else made.bar


def assert_promise(made: Shortlist, whole: Whole, at: float, but: Rows | None = None) -> None:
    """Nobody left out outranks the bar; ``but`` had events."""
    worth = whole.worth(at)
    left_out = np.setdiff1d(np.arange(len(whole)), listed(made))
    for row in left_out if but is None else np.setdiff1d(left_out, but):
        bar = bar_of(made, int(whole.table.host[row]))
        assert not outranks((float(worth[row]), int(row)), bar)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.booleans())
def test_until_the_window_ends_nobody_left_out_outranks_the_bar(
    seed: int, size: int, some_rest: bool
) -> None:
    rng = np.random.default_rng(seed)
    whole = whole_of(150, rng)
    made = drawn(whole, size, 2.0, rng.random(HOSTS) < 0.5 if some_rest else None)
    assert made.until > 2
    for at in (2.0, float(rng.uniform(2.0, made.until)), made.until):
        assert_promise(made, whole, at)


@given(st.integers(0, 2**32 - 1))
def test_a_host_is_let_in_as_far_as_it_can_be_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole = whole_of(400, rng)
    # A host that was not ready for long has risen above all others.
    whole.table.last_crawl[whole.table.host == 0] -= 90.0
    made = drawn(whole, 12, 2.0, np.arange(HOSTS) > 0)
    assert made.held_back.host.tolist() == [0]
    made.admit(made.let_in(whole, 0, 2.0))
    made.settle()
    worth = np.where(whole.table.host == 0, whole.worth(2.0), 0.0)
    assert int(worth.argmax()) in listed(made)
    for at in (2.0, made.until):
        assert_promise(made, whole, at)


def test_what_a_host_let_in_already_had_crawled_does_not_hide_its_best() -> None:
    """Neither list has taken in yet that twenty of the host's sources were crawled."""
    whole = whole_of(400, np.random.default_rng(1))
    whole.table.last_crawl[whole.table.host == 0] -= 90.0
    longer = drawn(whole, 200, 2.0)
    made = Shortlist(whole, 12)
    made.draw(longer, 2.0, 100, np.arange(HOSTS) > 0)
    worth = np.where(whole.table.host == 0, whole.worth(2.0), 0.0)
    *crawled, best = np.argsort(-worth)[:21].tolist()
    whole.table.last_crawl[crawled] = 2.0
    for each in (longer, made):
        each.admit(crawled)
    assert best in made.let_in(longer, 0, 2.0)


@given(st.integers(0, 2**32 - 1))
def test_sources_with_events_are_listed_with_their_new_columns_if_they_reach_the_bar(
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    whole = whole_of(150, rng)
    made = drawn(whole, 20, 2.0)
    rows = rng.integers(0, 150, 15)
    whole.table.last_crawl[rows] = 2.0
    risen = rng.integers(0, 150, 5)
    whole.table.last_crawl[risen] = -1e4
    events = np.concatenate([rows, risen])
    made.admit(events.tolist())
    made.settle()
    assert (np.diff(listed(made)) > 0).all()
    np.testing.assert_array_equal(made.worth(2.0), whole.worth(2.0)[listed(made)])
    assert_promise(made, whole, made.until)
    assert set(risen.tolist()) <= set(listed(made).tolist())


def test_a_list_as_long_as_its_source_lists_all_as_long_as_that_lasts() -> None:
    whole = whole_of(10, np.random.default_rng(1))
    made = drawn(whole, 10, 0.0)
    assert listed(made).tolist() == list(range(10))
    assert made.until == inf


def test_too_much_news_is_not_worth_keeping() -> None:
    made = drawn(whole_of(100, np.random.default_rng(1)), 5, 0.0)
    assert not made.would_overgrow(10)
    made.admit(range(10))
    assert made.would_overgrow(1)
    made.give_up()
    assert made.until == -inf
    assert not made.would_overgrow(1)


def test_where_nothing_is_worth_a_crawl_nothing_is_listed() -> None:
    whole = whole_of(50, np.random.default_rng(1))
    idle = replace(whole.table, importance=np.zeros(50))
    made = drawn(Whole(idle, GreedyIndex().index, 0.0, 0), 5, 1.0)
    assert len(made) == 0
