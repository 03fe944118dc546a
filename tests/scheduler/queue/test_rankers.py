"""Pages valued by policies, with what is learnt of them."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate.evidence import UNASKED, SignalBatch, VisitResults
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl
from freshet.scheduler.policies.noisy_signal_index import NoisySignalIndex
from freshet.scheduler.policies.optimal_intervals import OptimalIntervals
from freshet.scheduler.policy import CrawlPlan, Pace, Revisit
from freshet.scheduler.queue.ranker import Ranker
from freshet.scheduler.queue.rankers import IntervalRanker, PolicyRanker, RateRanker, ranker_of
from freshet.scheduler.queue.site_clock_ranker import SiteClockRanker
from freshet.scheduler.sources import SourceTable

LOOKS = st.lists(
    st.tuples(st.integers(0, 3), st.floats(0.1, 5.0), st.sampled_from([True, False, None])),
    max_size=60,
)


def pages(ranker: Ranker, n: int = 4, at: float = 0.0) -> None:
    ranker.add(np.arange(n) % 2, np.zeros(n, np.intp), np.ones(n), np.full(n, at))
    none = np.zeros(n, np.bool_)
    ranker.learn(VisitResults(np.arange(n), np.full(n, at), none, none, none, none))


def visit(ranker: Ranker, row: int, at: float, *, changed: bool | None) -> None:
    ranker.learn(VisitResults.one(row, at, changed=changed))


def greedy() -> PolicyRanker:
    return PolicyRanker(GreedyIndex().index)


@given(LOOKS, st.integers(1, 9))
def test_in_which_batches_looks_come_does_not_show(
    visits: list[tuple[int, float, bool | None]], size: int
) -> None:
    told, recalled = greedy(), greedy()
    for each in (told, recalled):
        pages(each)
        each.receive(SignalBatch(0, UNASKED, 0.5, np.arange(2), np.zeros(2), np.full(2, 0.5)))
    now, batch = 0.0, []
    for page, pause, changed in visits:
        now += pause
        visit(told, page, now, changed=changed)
        batch.append((page, now, changed))
    for first in range(0, len(batch), size):
        row, at, found = zip(*batch[first : first + size], strict=True)
        recalled.learn(
            VisitResults(
                np.array(row, np.intp), np.array(at),
                np.array([each is not None for each in found]),
                np.array([bool(each) for each in found]), np.array([False] * len(at)),
                np.array([bool(each) for each in found]),
            )
        )  # fmt: skip
    assert np.array_equal(told.table().last_crawl, recalled.table().last_crawl)
    # But for the last digits: several rows are estimated together.
    assert told.table().change_rate == pytest.approx(recalled.table().change_rate, rel=1e-12)


def test_looks_tell_the_same_together_as_one_by_one() -> None:
    """Each day a visit to every page; the higher its row, the more often it has changed."""
    rng = np.random.default_rng(4)
    row = np.tile(np.arange(10), 40)
    at = np.repeat(np.arange(40), 10) + row / 10
    changed = (at >= 1) & (rng.random(len(row)) < row / 10)
    visits = VisitResults(row, at, at >= 1, changed, np.zeros(len(row), np.bool_), changed)
    tables = []
    # A batch may have a page more than once.
    for together, batch in ((False, 1), (True, 100)):
        ranker = PolicyRanker(GreedyIndex().index, together=together)
        ranker.add(*(np.zeros(10, np.intp),) * 2, np.ones(10), np.zeros(10))
        for first in range(0, len(visits), batch):
            ranker.learn(visits.take(slice(first, first + batch)))
        tables.append(ranker.table())
    one_by_one, many = tables
    assert many.last_crawl.tolist() == one_by_one.last_crawl.tolist()
    # Only the day on which the prior was fitted is another one.
    assert many.change_rate == pytest.approx(one_by_one.change_rate, rel=0.1)
    assert many.change_rate[5:].min() > many.change_rate[:4].max()


def test_pages_that_come_later_are_like_those_of_their_site() -> None:
    learning = greedy()
    pages(learning, 40)
    for day in range(1, 9):
        for row in range(40):
            visit(learning, row, float(day), changed=row % 2 == 0)
    learning.add(np.array([0, 1, 2]), np.zeros(3, np.intp), np.ones(3), np.full(3, 8.0))
    busy, quiet, unknown = learning.table().change_rate[-3:]
    assert busy > 5 * quiet
    assert quiet < unknown < busy


def test_an_index_policy_values_the_page_that_changes_and_was_not_looked_at() -> None:
    ranker = greedy()
    pages(ranker)
    for day in range(1, 20):
        for row in range(4):
            visit(ranker, row, float(day), changed=row == 2)
    assert int(np.argmax(ranker.values(21.0))) == 2


def plan(ranker: Ranker, days: float, per_day: float, n: int) -> Floats:
    """How often each page is visited if always the worthiest is."""
    counts = np.zeros(n)
    for tick in range(1, round(days * per_day) + 1):
        now = tick / per_day
        row = int(np.argmax(ranker.values(now)))
        counts[row] += 1
        visit(ranker, row, now, changed=None)
    return counts


def test_an_evenly_spaced_plan_of_equal_rates_looks_at_all_in_turn() -> None:
    ranker = RateRanker(OptimalIntervals(), 5.0)
    pages(ranker, 10)
    counts = plan(ranker, 20.0, 5.0, 10)
    assert counts.min() >= 9
    assert counts.max() <= 11


def test_lambda_crawl_is_followed_at_poisson_times() -> None:
    ranker = RateRanker(LambdaCrawl(), 4.0)
    importance = np.array([100.0, 1.0, 1.0, 1.0])
    ranker.add(np.zeros(4, np.intp), np.zeros(4, np.intp), importance, np.zeros(4))
    counts = plan(ranker, 100.0, 4.0, 4)
    table = SourceTable.of(importance, ranker.table().change_rate)
    share = LambdaCrawl().rates(table, 4.0).crawl_rate / 4.0
    assert counts / 400 == pytest.approx(share, abs=0.15)


@pytest.mark.parametrize(
    "ranker",
    [greedy(), RateRanker(OptimalIntervals(), 2.0), SiteClockRanker(2.0)],
    ids=["index", "rate", "clock"],
)
def test_pages_that_weigh_more_from_now_on_are_worth_more(ranker: Ranker) -> None:
    pages(ranker)
    before = ranker.values(3.0)
    ranker.reweigh(np.array([1, 3]), np.array([4.0, 0.0]))
    after = ranker.values(4.5)
    assert int(np.argmax(after)) == 1
    assert after[3] < before[3]
    assert after[1] > before[1]


def test_where_a_policy_fails_pages_go_by_what_they_weigh_by_now() -> None:
    guarded = RateRanker(Faulty(), 1.0, guard="theirs")
    pages(guarded)
    guarded.reweigh(np.array([2]), np.array([7.0]))
    assert guarded.values(1.0).tolist() == [1.0, 1.0, 7.0, 1.0]


def test_the_same_looks_make_the_same_due() -> None:
    worths = []
    for _ in range(2):
        ranker = RateRanker(LambdaCrawl(), 1.0)
        pages(ranker)
        visit(ranker, 1, 2.5, changed=True)
        worths.append(ranker.values(4.0))
    assert np.array_equal(worths[0], worths[1])


def test_what_a_full_host_refuses_goes_to_the_pages_of_the_others() -> None:
    ranker = RateRanker(OptimalIntervals(), 5.0)
    pages(ranker, 10)
    ranker.hosts(np.array([0, 1]), np.array([1.0, 100.0]), np.ones(2))
    counts = plan(ranker, 40.0, 5.0, 10)
    assert counts[::2].sum() == pytest.approx(40, abs=6)
    assert counts[1::2].sum() == pytest.approx(160, abs=6)


def current(ranker: RateRanker, now: float) -> CrawlPlan:
    return ranker._current(ranker.table(), now)


def test_sites_of_one_queue_share_its_limit_and_sites_that_come_later_have_none() -> None:
    ranker = RateRanker(LambdaCrawl(), 10.0)
    sites = np.array([0, 1, 2])
    ranker.add(sites, np.zeros(3, np.intp), np.ones(3), np.zeros(3))
    ranker.hosts(np.array([0, 0]), np.array([2.0]), np.ones(2))
    planned = current(ranker, 1.0).crawl_rate
    assert planned[:2].sum() == pytest.approx(2.0)
    assert planned[2] == pytest.approx(8.0)


def test_a_limit_that_moves_calls_for_another_plan_and_one_that_trembles_does_not() -> None:
    ranker = RateRanker(LambdaCrawl(), 10.0)
    pages(ranker, 4)
    ranker.hosts(np.array([0, 1]), np.array([2.0, 50.0]), np.ones(2))
    before = current(ranker, 1.0)
    ranker.hosts(np.array([0, 1]), np.array([2.1, 49.0]), np.ones(2))
    assert current(ranker, 1.1) is before
    ranker.hosts(np.array([0, 1]), np.array([4.0, 49.0]), np.ones(2))
    assert current(ranker, 1.2).crawl_rate[::2].sum() == pytest.approx(4.0)


@pytest.mark.parametrize("name", ["site_clock", "greedy_index", "lambda_crawl", "nutch_adaptive"])
def test_pages_are_believed_to_change_as_they_were_seen_to(name: str) -> None:
    ranker = ranker_of(name, 4.0)
    pages(ranker)
    for day in range(1, 12):
        for row in range(4):
            visit(ranker, row, float(day), changed=row == 2)
    found, later = ranker.beliefs(14.0), ranker.beliefs(16.0)
    assert (later.hazard > found.hazard).all()
    assert found.hazard == pytest.approx(3 * found.rate, rel=0.5)
    assert int(np.argmax(found.rate)) == 2
    assert found.clocked.min() >= 0
    assert found.clocked.max() <= 1
    assert len(found.rate) == len(found.clocked) == 4


class Faulty:
    """Index and rates of somebody who has not thought of everything."""

    def __init__(self) -> None:
        self.answer: Floats | Exception | None = None

    def index(self, table: SourceTable, now: float) -> Floats:
        if isinstance(self.answer, Exception):
            raise self.answer
        return np.arange(1.0, len(table) + 1) if self.answer is None else self.answer

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        raise ZeroDivisionError("in the plug-in")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (ZeroDivisionError("oh"), "ZeroDivisionError: oh"),
        (np.array([1.0, np.nan, 2.0, 3.0]), "page 1 at nan"),
        (np.array([1.0, 1.0, -2.0, 3.0]), "page 2 at -2.0"),
        (np.ones(3), r"\(3,\) values for 4 pages"),
    ],
)
def test_a_faulty_policy_is_told_of_once_and_its_last_good_plan_holds(
    answer: Floats | Exception, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    policy = Faulty()
    ranker = PolicyRanker(policy.index, guard="theirs")
    pages(ranker)
    good = ranker.values(1.0)
    policy.answer = answer
    visit(ranker, 3, 1.5, changed=None)
    for now in (2.0, 3.0):
        worth = ranker.values(now)
        assert worth[:3].tolist() == good[:3].tolist()
        assert 0 < worth[3] < worth[0]
    assert len(caplog.records) == 1
    assert caplog.records[0].getMessage().startswith("policy theirs: ")
    assert re.search(told, caplog.text)


def test_a_fault_that_moves_from_page_to_page_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    policy = Faulty()
    ranker = PolicyRanker(policy.index, guard="theirs")
    pages(ranker)
    for row in range(4):
        policy.answer = np.where(np.arange(4) == row, np.nan, 1.0)
        ranker.values(2.0)
    assert len(caplog.records) == 1


def test_a_policy_that_never_worked_leaves_pages_to_go_by_their_age() -> None:
    ranker = RateRanker(Faulty(), 1.0, guard="theirs")
    pages(ranker)
    visit(ranker, 0, 1.0, changed=None)
    worth = ranker.values(3.0)
    assert worth[1] == worth[2] > worth[0] > 0


def test_a_signal_moves_the_index_of_its_page_alone() -> None:
    ranker = PolicyRanker(NoisySignalIndex().index)
    pages(ranker)
    for row in range(4):
        visit(ranker, row, 2.0, changed=False)
    rows = np.arange(4)
    ranker.receive(SignalBatch(0, UNASKED, 3.0, rows, np.full(4, 1.0), np.full(4, 1.0)))
    before = ranker.values(4.0)
    ranker.receive(SignalBatch(0, UNASKED, 4.0, rows[:1], np.full(1, 3.5), np.full(1, 3.5)))
    after = ranker.values(4.0)
    assert after[0] > 1.5 * before[0]
    assert after[1:].tolist() == before[1:].tolist()


class Doubling:
    """Intervals of one, two, four days …; fails where a page has changed."""

    def next_interval(self, previous: Pace | None, observation: Revisit) -> Pace:
        if observation.changed:
            raise ZeroDivisionError("oh")
        days = 1.0 if previous is None else 2 * previous.interval
        return Pace(days, observation.at + days)


def test_an_interval_policy_makes_pages_wait_until_they_are_due() -> None:
    ranker = IntervalRanker(Doubling())
    pages(ranker)
    visit(ranker, 1, 1.0, changed=False)
    assert ranker.values(2.5).tolist() == [1.5, 0.0, 1.5, 1.5]
    assert ranker.due(2.5).tolist() == [True, False, True, True]
    ranker.add(*(np.zeros(1, np.intp),) * 2, np.ones(1), np.zeros(1))
    ranker.inherit(1, 4)
    assert ranker.values(4.0)[[1, 4]].tolist() == [1.0, 1.0]
    # The intervals so far were somebody else's.
    ranker.restart()
    assert ranker.values(4.0)[:3].tolist() == [3.0, 2.0, 3.0]


def test_where_an_interval_policy_fails_the_page_goes_by_its_age(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ranker = IntervalRanker(Doubling(), guard="theirs")
    pages(ranker)
    visit(ranker, 1, 1.0, changed=True)
    visit(ranker, 2, 1.5, changed=True)
    assert ranker.values(2.0).tolist() == [1.0, 1.0, 0.5, 1.0]
    assert [each.getMessage() for each in caplog.records] == [
        "policy theirs: ZeroDivisionError: oh; its last valid values are used"
    ]
    archived = IntervalRanker(Doubling())
    pages(archived)
    with pytest.raises(ZeroDivisionError):
        visit(archived, 0, 1.0, changed=True)


class Answering:
    """A plan that visits each page a day, those that signal at every second signal; at a price."""

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        n, told = len(table), table.complete_observations.copy()
        p = np.where(told, 0.5, 1.0)
        return CrawlPlan(np.ones(n), p, told, budget, price=2.0, crawling="periodic")


def test_a_page_that_is_observed_completely_is_due_when_enough_was_told_of_it() -> None:
    ranker = RateRanker(Answering(), 4.0)
    pages(ranker)
    ranker.declare(np.arange(4), np.array([True, True, False, False]))

    def say(at: float, *rows: int) -> None:
        row, when = np.array(rows), np.full(len(rows), at)
        ranker.receive(SignalBatch(0, 3, at, row, when, when))

    say(0.1, 0, 1, 2)
    say(0.2, 0)
    table = ranker.table()
    assert table.complete_observations.tolist() == [True, True, False, False]
    assert table.pending_signals[:2].tolist() == [2, 1]
    worth = ranker.values(0.5)
    # Two changes were told of the first page, 0.4 days ago; it goes a day before others.
    assert worth[0] == pytest.approx(1.4, rel=1e-6)
    assert (worth[1:] < 1e-6).all()
    # Who is told knows how stale it is.
    assert ranker.beliefs(0.5).hazard.tolist()[:2] == pytest.approx([6.0, 3.0], abs=0.1)
    assert ranker.beliefs(0.5).claimed is not None
    visit(ranker, 0, 0.5, changed=True)
    assert ranker.table().pending_signals[0] == 0
    # By the clock one that was not told of would be due now; one that signals is not.
    worth = ranker.values(1.1)
    assert worth[1] < 1e-6 < worth[2]


def test_a_source_is_asked_when_what_it_tells_is_worth_the_price() -> None:
    ranker = RateRanker(Answering(), 4.0)
    pages(ranker)
    ranker.declare(np.arange(3), np.ones(3, np.bool_))
    row, at = np.arange(3), np.full(3, 0.1)
    ranker.receive(SignalBatch(0, 3, 0.1, row, at, at))
    told = ranker.table().change_rate[:3].sum()
    # The sum of the changes a day is A; A τ²/2 reaches the price of 2 after so many days.
    after = 2.0 / np.sqrt(told)
    assert ranker.values(0.99 * after)[3] < 2.0
    assert ranker.values(1.01 * after)[3] == pytest.approx(2.0, rel=0.03)
