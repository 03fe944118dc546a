from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler import estimate
from freshet.scheduler.costs import costs_of, ein
from freshet.scheduler.evaluate.changes import ChangeTimes, poisson
from freshet.scheduler.evaluate.crawl_costs import (
    Crawls,
    RateLearner,
    expected_costs,
    gaps_of,
    realised_costs,
)
from freshet.scheduler.sources import SourceTable


def times(columns: list[list[float]]) -> ChangeTimes:
    offsets = np.cumsum([0, *map(len, columns)])
    return ChangeTimes(offsets, np.array([t for each in columns for t in sorted(each)], float))


def crawls(columns: list[list[float]]) -> Crawls:
    pairs = [(row, t) for row, each in enumerate(columns) for t in sorted(each)]
    return Crawls(np.array([p[0] for p in pairs], np.intp), np.array([p[1] for p in pairs], float))


def by_hand(
    changes: list[float], crawled: list[float], last: float, start: float, end: float
) -> tuple[float, float]:
    """∫ H(N) and ∫ 1{N > 0}, from every moment to the next at which something happens."""
    moments = sorted({start, end, *[t for t in changes + crawled if start < t < end]})
    harmonic = binary = 0.0
    for begin, until in pairwise(moments):
        before = max([last, *[t for t in crawled if t <= begin]])
        n = sum(before < t <= begin for t in changes)
        harmonic += (until - begin) * sum(1 / j for j in range(1, n + 1))
        binary += (until - begin) * (n > 0)
    return harmonic, binary


MOMENTS = st.lists(st.integers(-4, 12).map(float), max_size=6)


@given(
    st.lists(st.tuples(MOMENTS, st.lists(st.integers(1, 12).map(float), max_size=4)), max_size=3),
    st.integers(0, 4),
    st.integers(5, 10),
)
def test_realised_costs_are_those_of_every_single_moment(
    sources: list[tuple[list[float], list[float]]], start: int, end: int
) -> None:
    n = len(sources)
    last = -2.0
    table = SourceTable.of(np.full(n, 3.0), np.ones(n), last_crawl=np.full(n, last))
    costs = realised_costs(
        table, crawls([each[1] for each in sources]), start, end,
        changes=times([each[0] for each in sources]),
    )  # fmt: skip
    for row, (changes, crawled) in enumerate(sources):
        harmonic, binary = by_hand(changes, crawled, last, start, end)
        assert costs.harmonic[row] == pytest.approx(3 * harmonic / (end - start))
        assert costs.binary[row] == pytest.approx(3 * binary / (end - start))


def test_the_expectation_is_the_mean_of_what_comes_about() -> None:
    n, days = 40_000, 8.0
    rng = np.random.default_rng(1)
    table = SourceTable.of(np.ones(n), np.full(n, 0.7), last_crawl=np.full(n, -1.5))
    crawled = Crawls(np.repeat(np.arange(n), 2), np.tile([2.0, 5.5], n))
    drawn = poisson(table, days + 1.5, rng)
    changes = ChangeTimes(drawn.offsets, drawn.at - 1.5)
    unheard = np.zeros(n, np.bool_)
    expected = expected_costs(table, crawled, 0, days, changes=changes, signalled=unheard)
    realised = realised_costs(table, crawled, 0, days, changes=changes)
    assert expected.harmonic.std() < 1e-12
    assert realised.harmonic.mean() == pytest.approx(expected.harmonic[0], rel=0.01)
    assert realised.binary.mean() == pytest.approx(expected.binary[0], rel=0.01)


def test_what_is_heard_is_judged_by_its_changes() -> None:
    table = SourceTable.of([1, 1], [1, 1], complete_observations=[True, False])
    changes = times([[1.0], [1.0]])
    costs = expected_costs(
        table, crawls([[], []]), 0, 2, changes=changes, signalled=table.complete_observations
    )
    # The first changed on day 1 of 2; of the second only the law is known.
    assert costs.harmonic[0] == 0.5
    grid = (np.arange(20_000) + 0.5) / 10_000
    assert costs.harmonic[1] == pytest.approx(ein(grid).mean(), rel=1e-6)


@pytest.mark.parametrize("crawling", ["poisson", "periodic"])
def test_long_runs_come_to_the_closed_forms(crawling: str) -> None:
    n, days, rate = 200, 400.0, 0.5
    rng = np.random.default_rng(2)
    delta = np.geomspace(0.02, 6, n)
    table = SourceTable.of(np.ones(n), delta)
    if crawling == "poisson":
        source = np.repeat(np.arange(n), rng.poisson(rate * days, n))
        at = days * rng.random(len(source))
        order = np.lexsort((at, source))
        crawled = Crawls(source[order], at[order])
    else:
        crawled = Crawls(np.repeat(np.arange(n), 200), np.tile(2.0 * np.arange(1, 201), n))
    nothing = ChangeTimes(np.zeros(n + 1, np.int64), np.empty(0))
    costs = expected_costs(
        table, crawled, 0, days, changes=nothing, signalled=np.zeros(n, np.bool_)
    )
    columns = np.ones(n), delta, np.full(n, rate)
    tolerance = 0.02 if crawling == "poisson" else 1e-9
    closed = costs_of(*columns, crawling=crawling)  # type: ignore[arg-type]
    assert costs.harmonic.sum() == pytest.approx(closed.harmonic.sum(), rel=tolerance)
    assert costs.binary.sum() == pytest.approx(closed.binary.sum(), rel=tolerance)


def test_sources_without_changes_or_crawls_cost_what_they_must() -> None:
    table = SourceTable.of([5, 5], [0, 2], last_crawl=[-3, -3])
    nothing = times([[], []])
    costs = expected_costs(
        table, crawls([[], []]), 0, 1, changes=nothing, signalled=np.zeros(2, np.bool_)
    )
    assert costs.harmonic[0] == 0
    grid = 3 + (np.arange(10_000) + 0.5) / 10_000
    assert costs.harmonic[1] == pytest.approx(5 * ein(2 * grid).mean(), rel=1e-6)


def test_crawls_are_counted_from_behind_the_start_to_the_end() -> None:
    assert crawls([[0.0, 1.0], [1.5, 2.0]]).within(0.0, 1.5) == 2


def learner_of(name: str) -> RateLearner:
    """The first of two sources is watched by crawls, the second tells of its changes."""
    table = SourceTable.of([1.0, 1.0], [1.0, 1.0], complete_observations=[False, True])
    return RateLearner(table, estimate.load(name, table.host))


def see(learner: RateLearner, row: int, *days: float) -> None:
    """Each of these crawls, day after day, finds a change."""
    crawls = Crawls(np.full(len(days), row), np.array(days))
    source, at, before = gaps_of(crawls, np.zeros(2))
    learner.see(source, at, at - before, np.ones(len(days), np.bool_))


@pytest.mark.parametrize("name", estimate.ESTIMATORS)
def test_crawls_teach_of_the_first_and_signals_of_the_second(name: str) -> None:
    learner = learner_of(name)
    before = learner.table.change_rate.copy()
    see(learner, 0, 1.0, 2.0)
    learner.refresh()
    assert learner.table.change_rate[0] != before[0]
    learner.receive(np.array([2]), 0.0, 1.0)
    learner.refresh()
    assert learner.table.change_rate[1] > before[1]
    assert learner.table.signal_rate[1] == learner.table.change_rate[1]


def test_what_a_crawl_shows_of_a_source_that_tells_is_not_counted_twice() -> None:
    learner = learner_of("poisson_mle")
    before = learner.table.change_rate.copy()
    see(learner, 1, 1.0)
    learner.refresh()
    assert learner.table.change_rate.tolist() == before.tolist()


def test_news_are_of_the_rows_asked_for() -> None:
    learner = learner_of("poisson_mle")
    see(learner, 0, 1.0)
    rows, rates = learner.news(np.array([0]))
    assert rows.tolist() == [0]
    assert len(rates) == 1


def test_the_gap_of_a_first_crawl_begins_with_the_copy_before() -> None:
    source, at, before = gaps_of(
        Crawls(np.array([1, 0, 1]), np.array([3.0, 2.0, 1.0])), np.array([0.5, -1.0])
    )
    assert (source.tolist(), at.tolist()) == ([0, 1, 1], [2.0, 1.0, 3.0])
    assert before.tolist() == [0.5, -1.0, 1.0]
