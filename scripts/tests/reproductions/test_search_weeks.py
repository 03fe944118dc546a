"""The parts of the thesis' experiment, each against brute force or enumeration."""

import doctest
from collections.abc import Callable
from itertools import product
from math import exp, expm1

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate
from scipy.optimize import linear_sum_assignment

from freshet.crawler.extensions.readers.search_quality import views
from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.costs import ein
from freshet.scheduler.evaluate.serving import serve
from freshet.scheduler.policies.greedy_index import GreedyIndex, GreedyIndexBinary
from freshet.scheduler.queue.site_clock_ranker import SiteClockRanker
from freshet.scheduler.sources import SourceTable
from scripts.reproductions import search_histograms
from scripts.reproductions import search_policies as policies
from scripts.reproductions import search_weeks as weekly
from scripts.reproductions.search_histograms import ScoreHistogram
from tests.crawler.extensions.readers.listed_quality import search_quality, usefulness

PAGES, QUERIES, WEEKS = 5, 3, 3
FREQUENCY = np.array([0.5, 0.3, 0.2])
#: Few values, so that scores tie: (weeks, pages, queries).
SCORES = arrays(np.int64, (WEEKS, PAGES, QUERIES), elements=st.integers(0, 3)).map(lambda s: s / 2)
COPIES = arrays(np.int64, PAGES, elements=st.integers(0, WEEKS - 1))


def weekly_scores(scores: Floats) -> weekly.WeeklyScores:
    return weekly.WeeklyScores.of(FREQUENCY, WEEKS, lambda week: scores[week])


def test_the_example_of_the_histogram_is_right() -> None:
    assert doctest.testmod(search_histograms).failed == 0


@given(SCORES, COPIES)
def test_quality_and_every_change_are_those_of_the_whole_lists(
    scores: Floats, copies: Ints
) -> None:
    found = weekly_scores(scores)
    held = scores[copies, np.arange(PAGES)]
    for week, live in enumerate(scores):
        wanted = search_quality(held.T, live.T, FREQUENCY)
        assert found.quality(copies, week) == pytest.approx(wanted)
        old, new = found.held(copies), found.score[week]
        for page in range(PAGES):
            after, paid = held.copy(), held.copy()
            after[page] = paid[page] = live[page]
            true, local = (
                usefulness(after.T, s.T, FREQUENCY) - usefulness(held.T, s.T, FREQUENCY)
                for s in (live, paid)
            )
            assert found.changes(old, new, new)[page] == pytest.approx(true, abs=1e-12)
            assert found.changes(old, new, old)[page] == pytest.approx(local, abs=1e-12)
            assert local > -1e-12
    assert found.usefulness(copies).sum() == pytest.approx(usefulness(held.T, held.T, FREQUENCY))


LISTS = st.lists(st.floats(0.1, 9), max_size=30).map(lambda s: -np.sort(-np.array(s)))


@given(LISTS, st.integers(1, 5), st.floats(0, 10), st.floats(0, 10))
def test_the_change_by_a_histogram_is_its_sum_over_ranks(
    scores: Floats, buckets: int, s1: float, s2: float
) -> None:
    histogram = ScoreHistogram.of(scores, buckets)
    n = len(scores)
    assume(n or s2 > 0)  # nobody leaves an empty list

    def seen(rank: int) -> float:
        return float(views(np.array(rank)))

    def score(rank: int) -> float:
        return float(histogram.score(np.array([rank]))[0])

    r1 = int(histogram.rank(np.array([s1]))[0]) if s1 > 0 else n + 1
    r2 = int(histogram.rank(np.array([s2]))[0]) if s2 > 0 else n
    wanted = (seen(r2) if s2 > 0 else 0) * s2 - (seen(r1) if s1 > 0 else 0) * s2
    wanted += sum((seen(r - 1) - seen(r)) * score(r) for r in range(r1 + 1, r2 + 1))
    wanted += sum((seen(r + 1) - seen(r)) * score(r) for r in range(r2, r1))
    found = histogram.change(np.array([s1]), np.array([s2]))
    assert found[0] == pytest.approx(wanted, abs=1e-9)


@given(LISTS, st.integers(2, 6))
def test_a_histogram_keeps_the_order_and_the_mean_of_its_buckets(
    scores: Floats, buckets: int
) -> None:
    histogram = ScoreHistogram.of(scores, buckets)
    assert histogram.size == len(scores)
    assert (np.diff(histogram.knots) <= 1e-12).all()
    assert len(histogram.edges) <= buckets + 1
    if len(scores):
        first = scores[: histogram.edges[1] - 1]
        top = histogram.score(np.arange(1, len(first) + 1)).mean()
        assert top == pytest.approx(first.mean())
        assert histogram.rank(histogram.score(np.arange(1, 2)))[0] == 1 or np.ptp(scores) == 0


def test_a_histogram_of_many_buckets_reads_scores_back() -> None:
    scores = 100.0 / np.arange(1, 200)
    histogram = ScoreHistogram.of(scores, 40)
    ranks = np.arange(5, 150)
    assert histogram.score(ranks) == pytest.approx(scores[ranks - 1], rel=0.03)
    assert np.abs(histogram.rank(scores[ranks - 1]) - ranks).max() <= 4


@given(
    st.lists(st.tuples(st.floats(0, 2), st.floats(0, 3)), min_size=1, max_size=3), st.integers(0, 9)
)
def test_greedy_looks_are_the_best_that_can_be_counted_out(
    pages: list[tuple[float, float]], total: int
) -> None:
    weeks = 4
    rate, weight = np.array(pages).T
    looks = total / weeks

    def fresh(count: tuple[int, ...]) -> float:
        spans = [(r, w, weeks / (x + 1)) for (r, w), x in zip(pages, count, strict=True)]
        each = [w * (t if r < 1e-12 else -expm1(-r * t) / r) for r, w, t in spans]
        return sum(e * (x + 1) for e, x in zip(each, count, strict=True))

    ways = [c for c in product(range(weeks + 1), repeat=len(pages)) if sum(c) <= total]
    found = tuple(policies.fresh_looks(rate, weight, weeks, looks).tolist())
    assert sum(found) <= total
    assert fresh(found) == pytest.approx(max(map(fresh, ways)), rel=1e-9)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.integers(0, 4))
def test_a_schedule_is_the_cheapest_assignment(counts: list[int], spare: int) -> None:
    weeks = 4
    count = np.array(counts)
    looks = max(sum(counts) + spare, 1) / weeks
    room = np.diff(np.array([int(looks * week + 1e-9) for week in range(weeks + 1)]))
    plan = policies.schedule(count, looks, weeks)
    assert (plan[1:].sum(axis=1) <= room).all()
    times = [(p, weeks * i / (x + 1)) for p, x in enumerate(counts) for i in range(1, x + 1)]
    slots = np.repeat(np.arange(1, weeks + 1), room)
    cost = np.abs(np.array([t for _, t in times])[:, None] - slots)
    rows, columns = linear_sum_assignment(cost)
    if (plan.sum(axis=0) == count).all():
        # The looks of a page keep their order, so each week's looks tell what they cost.
        paid = sum(
            abs(week - t)
            for p, x in enumerate(counts)
            for week, t in zip(
                np.flatnonzero(plan[:, p]), [t for q, t in times if q == p], strict=True
            )
        )
        assert paid == pytest.approx(float(cost[rows, columns].sum()) if times else 0.0)


def test_the_mean_of_ratios_is_too_high_and_the_ratio_of_sums_is_not() -> None:
    """At 0.3 changes a week, one of unit gain at most: 0.472 where 0.259 accrues."""
    chance = 1 - exp(-0.3)
    changed = np.random.default_rng(3).random((2000, 50)) < chance
    gains = changed.astype(np.float64)
    wanted = -chance * np.log(chance) / (1 - chance)
    assert wanted == pytest.approx(0.472, abs=5e-4)
    assert policies.mean_of_ratios(gains, changed).mean() == pytest.approx(wanted, rel=0.01)
    assert policies.ratio_of_sums(gains).mean() == pytest.approx(0.259, rel=0.01)


@pytest.mark.parametrize("x", [0.3, 2.0, 7.0])
def test_each_index_is_the_saving_of_its_loss(x: float) -> None:
    """Hold W = τ D(τ) − ∫ D for the k-th missed change costing k^(−θ); Δ = x a week, τ a week."""
    table, now = SourceTable.of([1.0], [x / 7]), 7.0
    copies = weekly.HeldCopies(
        weekly_scores(np.zeros((WEEKS, 1, QUERIES))), np.zeros((2, 1), np.bool_)
    )
    losses: list[tuple[Callable[[float], float], Floats]] = [
        (lambda s: s, policies.saving(np.array([x / 7]))(copies).values(now)),
        (ein, GreedyIndex().index(table, now)),
        (lambda s: 1 - exp(-s), GreedyIndexBinary().index(table, now)),
    ]
    for loss, saving in losses:
        wanted = 7 * (loss(x) - integrate.quad(loss, 0, x)[0] / x)
        assert saving[0] == pytest.approx(wanted)


@pytest.fixture(scope="module")
def drawn() -> tuple[weekly.WeeklyScores, Bools]:
    """Return 40 pages: a third never changes, each other one in its own share of 30 weeks."""
    rng = np.random.default_rng(1)
    changed = rng.random((30, 40)) < np.linspace(0, 0.6, 40) * (np.arange(40) % 3 > 0)
    scores = [rng.random((40, 12))]
    for some in changed:
        scores.append(np.where(some[:, None], rng.random((40, 12)), scores[-1]))
    return weekly.WeeklyScores.of(np.full(12, 1 / 12), 31, lambda week: scores[week]), changed


def test_policies_that_know_more_lose_less(drawn: tuple[weekly.WeeklyScores, Bools]) -> None:
    scores, changed = drawn
    gains = weekly.weekly_changes(scores)
    assert (gains > -1e-12).all()
    assert not gains[~changed].any()
    shown = np.mean([scores.views(week) for week in range(31)], axis=0)
    looks = 4.5

    def loss(policy: weekly.Policy) -> float:
        found = weekly.run(scores, changed, policy, looks)
        assert len(found) == 30
        assert (found <= 1 + 1e-12).all()
        return 1 - float(found.mean())

    share = changed.astype(np.float64)
    uniform, known = loss(policies.uniform), loss(policies.known)
    fitted = {
        "thesis": policies.thesis(policies.mean_of_ratios(gains, changed)),
        "saving": policies.saving(policies.ratio_of_sums(gains)),
        "sbr": policies.scheduled(policies.sbr(share, changed, 0.0, looks)),
        "ebr": policies.scheduled(policies.ebr(share, changed, 0.5, looks, shown)),
    }
    assert all(known < loss(policy) < uniform for policy in fitted.values())
    on_line: dict[str, weekly.Policy] = {
        "saving": lambda c: policies.OnLine(c, power=2, shrunk=True),
        "site clock": lambda c: policies.Ranked(c, SiteClockRanker(looks / 7)),
        "marks": lambda c: policies.Marked(c, SiteClockRanker(looks / 7)),
    }
    assert all(known < loss(policy) < 1.2 * uniform for policy in on_line.values())
    all_looks = weekly.run(scores, changed, policies.uniform, 40.0)
    assert all_looks == pytest.approx(np.ones(30))
    # Nothing exceeds its threshold, so that nothing is looked at.
    assert not policies.sbr(share, changed, 1.0, looks).any()


def test_the_thesis_on_line_leaves_a_page_whose_first_looks_found_nothing() -> None:
    """One page changes from the fifth week on only; the other goes above and below it."""
    score = np.ones((20, 2, 1))
    score[:, 1, 0] += (np.arange(20) // 2 % 2 - 0.5) / 2
    score[5:, 0, 0] = np.arange(20)[5:]
    scores = weekly.WeeklyScores.of(np.ones(1), 20, lambda week: score[week])
    copies = weekly.HeldCopies(scores, np.diff(score[:, :, 0], axis=0) != 0)
    policy = policies.OnLine(copies, power=1, shrunk=False)
    serve(policy, copies, 1 / 7)
    assert copies.week[0] <= 4
    assert copies.week[1] == 19


def test_histograms_see_changes_about_as_large_as_they_are(
    drawn: tuple[weekly.WeeklyScores, Bools],
) -> None:
    scores, changed = drawn
    exact, found = weekly.weekly_changes(scores), weekly.estimated_changes(scores, 6)
    assert found.sum() == pytest.approx(exact.sum(), rel=0.15)
    assert np.corrcoef(found[changed], exact[changed])[0, 1] > 0.9


def test_tf_idf_is_lucenes(drawn: tuple[weekly.WeeklyScores, Bools]) -> None:
    tf = np.array([[4.0, 1.0, 0.0], [1.0, 0.0, 9.0]])
    length = np.array([16.0, 25.0])
    found = weekly.tf_idf(lambda _: (tf, length), 1, [(0,), (0, 1)], np.array([0.5, 0.5]))
    idf = 1 + np.log(2 / (np.array([2, 1, 1]) + 1))
    both = (2 / 4 * idf[0] ** 2 + 1 / 4 * idf[1] ** 2) / np.hypot(idf[0], idf[1])
    assert list(zip(found.query, found.page, strict=True)) == [(0, 0), (0, 1), (1, 0)]
    assert found.score[0] == pytest.approx([2 / 4 * idf[0], 1 / 5 * idf[0], both])
    linked = weekly.by_inlinks(found, np.array([3, 0]))
    assert linked.score.tolist() == [[4.0, 1.0, 4.0]]
