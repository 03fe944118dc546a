"""The queue is held against the plain definition: look at every source, take the largest."""

from __future__ import annotations

import doctest
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.scheduler import index_queue
from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.evaluate import judging
from freshet.scheduler.evaluate.changes import ChangeTimes
from freshet.scheduler.evaluate.judging import Crawls
from freshet.scheduler.evaluate.world import surrogate
from freshet.scheduler.index_queue import IndexQueue
from freshet.scheduler.policies.greedy_index import GreedyIndex, GreedyIndexBinary
from freshet.scheduler.policies.optimal_intervals import OptimalIntervals, relaxed_bound
from freshet.scheduler.policy import IndexPolicy
from freshet.scheduler.shortlists import jitter
from freshet.scheduler.sources import SourceTable


@dataclass(frozen=True, slots=True)
class Stairs:
    """An index that stands still for days, then jumps: many sources are worth the same."""

    def index(self, table: SourceTable, now: float) -> Floats:
        """(n,), whole steps of age."""
        age = np.maximum(now - table.last_crawl, 0.0)
        return np.floor(age * table.importance)


POLICIES: tuple[IndexPolicy, ...] = (GreedyIndex(), GreedyIndexBinary(), Stairs())


def copied(table: SourceTable) -> SourceTable:
    return replace(
        table,
        change_rate=table.change_rate.copy(),
        signal_rate=table.signal_rate.copy(),
        last_crawl=table.last_crawl.copy(),
        pending_signals=table.pending_signals.copy(),
    )


def drawn(n: int, rng: np.random.Generator, hosts: int = 1) -> SourceTable:
    alive = rng.random(n) > 0.05
    return SourceTable.of(
        alive * 10 ** rng.uniform(-2, 2, n),
        10 ** rng.uniform(-2, 1, n),
        complete_observations=rng.random(n) < 0.2,
        host=rng.integers(0, hosts, n),
        host_capacity=np.full(hosts, np.inf),
        last_crawl=-rng.exponential(5.0, n),
    )


def largest(
    policy: IndexPolicy,
    table: SourceTable,
    now: float,
    ready: Bools | None = None,
    noise: Floats | None = None,
) -> int | None:
    """The definition."""
    worth = policy.index(table, now)
    if noise is not None:
        worth = worth * noise
    if ready is not None:
        worth = np.where(ready[table.host], worth, 0.0)
    if not len(worth) or worth.max() <= 0:
        return None
    return int(np.argmax(worth))


def test_the_example_in_the_documentation_is_right() -> None:
    assert doctest.testmod(index_queue).failed == 0


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    policy=st.sampled_from(POLICIES),
    n=st.integers(1, 60),
    hosts=st.integers(1, 6),
    noise=st.sampled_from([0.0, 0.2]),
)
def test_whatever_happens_the_best_is_the_largest_index(
    seed: int, policy: IndexPolicy, n: int, hosts: int, noise: float
) -> None:
    """Crawls of the best and of others, signals, rates up and down, hosts ready and not."""
    _hold_against_the_definition(seed, policy, n, hosts, noise, events=60)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("hosts", [1, 40])
def test_so_it_is_with_lists_of_lists(policy: IndexPolicy, hosts: int) -> None:
    """Twenty thousand sources need a list between the front and the whole."""
    _hold_against_the_definition(5, policy, 20_000, hosts, 0.0, events=250)


def _hold_against_the_definition(
    seed: int, policy: IndexPolicy, n: int, hosts: int, noise: float, *, events: int
) -> None:
    rng = np.random.default_rng(seed)
    table = drawn(n, rng, hosts)
    queue = IndexQueue(policy, copied(table), 0.0, jitter=noise, seed=3)
    mine = copied(table)
    now = 0.0
    for _ in range(events):
        now += float(rng.choice([0.0, 0.01, 0.3, 5.0]))
        ready = None if rng.random() < 0.5 else rng.random(hosts) < 0.6
        factors = jitter.factors(noise, 3, np.arange(n), mine.last_crawl) if noise else None
        best = queue.best(now, ready)
        assert best == largest(policy, mine, now, ready, factors)
        _happen(queue, mine, best, now, rng)


def _happen(
    queue: IndexQueue, mine: SourceTable, best: int | None, now: float, rng: np.random.Generator
) -> None:
    """One event of every kind that there is, on both sides."""
    source = int(rng.integers(len(mine)))
    match rng.integers(5):
        case 0 | 1 if best is not None:
            queue.crawled(best, now)
            mine.last_crawl[best], mine.pending_signals[best] = now, 0
        case 2:
            queue.crawled(source, now)
            mine.last_crawl[source], mine.pending_signals[source] = now, 0
        case 3:
            queue.signalled(source, now, 2)
            mine.pending_signals[source] += 2
        case _:
            rate = float(10 ** rng.uniform(-2, 1))
            queue.learnt([source], [rate], now)
            mine.change_rate[source] = rate


@pytest.mark.parametrize("events", [90, 900, 5_000])
def test_however_much_happens_between_two_questions_the_best_is_the_largest(events: int) -> None:
    """So much that the front, the longer list too, or nothing of both is worth keeping."""
    rng = np.random.default_rng(events)
    mine = drawn(20_000, rng)
    queue = IndexQueue(GreedyIndex(), copied(mine), 0.0)
    for now in (1.0, 1.01, 1.02):
        assert queue.best(now) == largest(GreedyIndex(), mine, now)
        for source in rng.integers(20_000, size=events).tolist():
            queue.signalled(source, now)
            mine.pending_signals[source] += 1
        rows = rng.choice(20_000, events, replace=False)
        mine.change_rate[rows] *= 10 ** rng.uniform(-1, 1, events)
        queue.learnt(rows, mine.change_rate[rows], now)


def test_the_order_of_the_rows_does_not_matter() -> None:
    rng = np.random.default_rng(9)
    table, order = drawn(3_000, rng), rng.permutation(3_000)
    one = IndexQueue(GreedyIndex(), copied(table), 0.0)
    other = IndexQueue(GreedyIndex(), table.take(order), 0.0)
    for tick in range(1, 300):
        now = tick * 0.01
        assert _crawled_best(one, now) == order[_crawled_best(other, now)]


def test_hosts_that_are_seldom_ready_do_not_hide_the_others() -> None:
    rng = np.random.default_rng(8)
    table = drawn(5_000, rng, hosts=300)
    queue, mine = IndexQueue(GreedyIndex(), copied(table), 0.0), copied(table)
    busy_until = np.zeros(300)
    for tick in range(1, 400):
        now = tick * 1e-3
        ready = busy_until <= now
        best = queue.best(now, ready)
        assert best == largest(GreedyIndex(), mine, now, ready)
        assert best is not None
        queue.crawled(best, now)
        mine.last_crawl[best], mine.pending_signals[best] = now, 0
        busy_until[mine.host[best]] = now + 0.05


def _crawled_best(queue: IndexQueue, now: float) -> int:
    row = queue.best(now)
    assert row is not None
    queue.crawled(row, now)
    return row


def test_ties_go_to_the_lowest_row() -> None:
    queue = IndexQueue(GreedyIndex(), SourceTable.of(np.ones(500), np.ones(500)), 0.0)
    assert [_crawled_best(queue, 1.0) for _ in range(5)] == [0, 1, 2, 3, 4]


def test_what_is_worth_nothing_is_nobody() -> None:
    assert IndexQueue(GreedyIndex(), SourceTable.of([], []), 0.0).best(1.0) is None
    idle = IndexQueue(GreedyIndex(), SourceTable.of([0.0, 1.0], [1.0, 0.0]), 0.0)
    assert idle.best(1_000.0) is None
    fresh = IndexQueue(GreedyIndex(), SourceTable.of([1.0], [1.0]), 0.0)
    assert fresh.best(0.0) is None
    assert fresh.best(0.1) == 0
    assert fresh.best(0.2, np.array([False])) is None


def test_the_same_seed_has_the_same_crawls_and_another_seed_has_others() -> None:
    def crawls(seed: int) -> list[int]:
        table = SourceTable.of(np.ones(50), np.ones(50))
        queue = IndexQueue(GreedyIndex(), table, 0.0, jitter=0.3, seed=seed)
        return [_crawled_best(queue, tick * 0.1) for tick in range(1, 30)]

    assert crawls(1) == crawls(1)
    assert crawls(1) != crawls(2)


def test_it_comes_within_two_per_cent_of_the_bound_for_all_deterministic_policies() -> None:
    n, per_day, days = 1_500, 300.0, 15.0
    rng = np.random.default_rng(2)
    table = surrogate(n, rng)
    plain = SourceTable.of(table.importance, table.change_rate)
    rate = OptimalIntervals().rates(plain, per_day).crawl_rate
    plain = replace(plain, last_crawl=-rng.random(n) / rate)
    queue = IndexQueue(GreedyIndex(), copied(plain), 0.0)
    ticks = np.linspace(0.0, days, int(per_day * days), endpoint=False)[1:]
    rows = [_crawled_best(queue, now) for now in ticks.tolist()]
    crawls = Crawls(np.array(rows), ticks)
    no_changes = ChangeTimes(np.zeros(n + 1, np.intp), np.zeros(0))
    costs = judging.expected_costs(
        plain, crawls, 0.0, days, changes=no_changes, heard=plain.complete_observations
    )
    bound = relaxed_bound(plain, per_day)
    assert 0.995 * bound <= float(costs.harmonic.sum()) <= 1.02 * bound


def test_time_does_not_go_backwards() -> None:
    queue = IndexQueue(GreedyIndex(), SourceTable.of([1.0], [1.0]), 2.0)
    queue.best(3.0)
    with pytest.raises(ValueError, match=r"now: is 2\.5; accepted is a finite day from 3\.0 on"):
        queue.crawled(0, 2.5)
    with pytest.raises(ValueError, match="now: is nan"):
        queue.best(float("nan"))


def test_a_last_crawl_in_the_future_is_refused() -> None:
    table = SourceTable.of([1.0, 1.0], [1.0, 1.0], last_crawl=[0.0, 5.0])
    with pytest.raises(ValueError, match=r"last_crawl: row 1 is 5\.0; accepted is a day up to now"):
        IndexQueue(GreedyIndex(), table, 1.0)


@pytest.mark.parametrize("noise", [-0.1, 1.0])
def test_a_jitter_out_of_range_is_refused(noise: float) -> None:
    with pytest.raises(ValueError, match="jitter: is"):
        IndexQueue(GreedyIndex(), SourceTable.of([1.0], [1.0]), 0.0, jitter=noise)


def test_unknown_sources_and_bad_numbers_are_refused() -> None:
    queue = IndexQueue(GreedyIndex(), SourceTable.of([1.0], [1.0]), 0.0)
    with pytest.raises(ValueError, match="source: is 1; accepted is a row from 0 to 0"):
        queue.crawled(1, 1.0)
    with pytest.raises(ValueError, match="count: is 0"):
        queue.signalled(0, 1.0, 0)
    with pytest.raises(ValueError, match="change_rate: row 0 is -1"):
        queue.learnt([0], [-1.0], 1.0)
    with pytest.raises(ValueError, match="rows: row 0 is 7"):
        queue.learnt([7], [1.0], 1.0)
    with pytest.raises(ValueError, match="ready: accepted are 1 truth values"):
        queue.best(1.0, np.array([True, True]))
