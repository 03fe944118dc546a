"""Pages valued by policies, with what is learnt of them."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.agenda.ranker import Refresher
from freshet.scheduler.agenda.rankers import ByIndex, ByRate, Guarded, Learning
from freshet.scheduler.agenda.site_clock_ranker import ByClock
from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate.observations import VisitResults
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl
from freshet.scheduler.policies.optimal_intervals import OptimalIntervals
from freshet.scheduler.policy import CrawlPlan
from freshet.scheduler.sources import SourceTable

LOOKS = st.lists(
    st.tuples(st.integers(0, 3), st.floats(0.1, 5.0), st.sampled_from([True, False, None])),
    max_size=60,
)


def pages(refresher: Refresher | Learning, n: int = 4, at: float = 0.0) -> None:
    columns = np.arange(n) % 2, np.ones(n), np.full(n, at)
    if isinstance(refresher, Learning):
        refresher.add(*columns)
    else:
        refresher.add(columns[0], np.zeros(n, np.intp), *columns[1:])
    none = np.zeros(n, np.bool_)
    refresher.learn(VisitResults(np.arange(n), np.full(n, at), none, none, none, none))


def look(refresher: Refresher | Learning, row: int, at: float, *, changed: bool | None) -> None:
    refresher.learn(VisitResults.one(row, at, changed=changed))


@given(LOOKS, st.integers(1, 9))
def test_in_which_batches_looks_come_does_not_show(
    looks: list[tuple[int, float, bool | None]], size: int
) -> None:
    told, recalled = Learning(), Learning()
    pages(told)
    pages(recalled)
    now, batch = 0.0, []
    for page, pause, changed in looks:
        now += pause
        look(told, page, now, changed=changed)
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


def test_pages_that_come_later_are_like_those_of_their_site() -> None:
    learning = Learning()
    pages(learning, 40)
    for day in range(1, 9):
        for row in range(40):
            look(learning, row, float(day), changed=row % 2 == 0)
    learning.add(np.array([0, 1, 2]), np.ones(3), np.full(3, 8.0))
    busy, quiet, unknown = learning.table().change_rate[-3:]
    assert busy > 5 * quiet
    assert quiet < unknown < busy


def test_an_index_policy_values_the_page_that_changes_and_was_not_looked_at() -> None:
    refresher = ByIndex(GreedyIndex())
    pages(refresher)
    for day in range(1, 20):
        for row in range(4):
            look(refresher, row, float(day), changed=row == 2)
    assert int(np.argmax(refresher.worth(21.0))) == 2


def plan(refresher: Refresher, days: float, per_day: float, n: int) -> Floats:
    """How often each page is looked at if always the worthiest is."""
    counts = np.zeros(n)
    for tick in range(1, round(days * per_day) + 1):
        now = tick / per_day
        row = int(np.argmax(refresher.worth(now)))
        counts[row] += 1
        look(refresher, row, now, changed=None)
    return counts


def test_an_evenly_spaced_plan_of_equal_rates_looks_at_all_in_turn() -> None:
    refresher = ByRate(OptimalIntervals())
    pages(refresher, 10)
    refresher.replan(5.0, 0.0)
    counts = plan(refresher, 20.0, 5.0, 10)
    assert counts.min() >= 9
    assert counts.max() <= 11


def test_lambda_crawl_is_followed_at_poisson_times() -> None:
    refresher = ByRate(LambdaCrawl())
    importance = np.array([100.0, 1.0, 1.0, 1.0])
    refresher.add(np.zeros(4, np.intp), np.zeros(4, np.intp), importance, np.zeros(4))
    refresher.replan(4.0, 0.0)
    counts = plan(refresher, 100.0, 4.0, 4)
    table = SourceTable.of(importance, refresher._learning.table().change_rate)
    share = LambdaCrawl().rates(table, 4.0).crawl_rate / 4.0
    assert counts / 400 == pytest.approx(share, abs=0.15)


@pytest.mark.parametrize(
    "refresher",
    [ByIndex(GreedyIndex()), ByRate(OptimalIntervals()), ByClock(), Guarded(ByClock(), "x")],
    ids=["index", "rate", "clock", "guarded"],
)
def test_pages_that_weigh_more_from_now_on_are_worth_more(refresher: Refresher) -> None:
    pages(refresher)
    refresher.replan(2.0, 0.0)
    before = refresher.worth(3.0)
    refresher.reweigh(np.array([1, 3]), np.array([4.0, 0.0]))
    refresher.replan(2.0, 3.0)
    after = refresher.worth(3.0)
    assert int(np.argmax(after)) == 1
    assert after[3] < before[3]
    assert after[1] > before[1]


def test_where_a_policy_fails_pages_go_by_what_they_weigh_by_now() -> None:
    guarded = Guarded(ByRate(Faulty()), "theirs")
    pages(guarded)
    guarded.reweigh(np.array([2]), np.array([7.0]))
    assert guarded.worth(1.0).tolist() == [1.0, 1.0, 7.0, 1.0]


def test_the_same_looks_make_the_same_due() -> None:
    worths = []
    for _ in range(2):
        refresher = ByRate(LambdaCrawl(), seed=3)
        pages(refresher)
        refresher.replan(1.0, 0.0)
        look(refresher, 1, 2.5, changed=True)
        worths.append(refresher.worth(4.0))
    assert np.array_equal(worths[0], worths[1])


def test_what_a_full_host_refuses_goes_to_the_pages_of_the_others() -> None:
    refresher = ByRate(OptimalIntervals())
    pages(refresher, 10)
    refresher.replan(5.0, 0.0)
    refresher.limits(np.array([0, 1]), np.array([1.0, 100.0]))
    counts = plan(refresher, 40.0, 5.0, 10)
    assert counts[::2].sum() == pytest.approx(40, abs=6)
    assert counts[1::2].sum() == pytest.approx(160, abs=6)


def test_sites_of_one_lane_share_its_limit_and_sites_that_come_later_have_none() -> None:
    refresher = ByRate(LambdaCrawl())
    sites = np.array([0, 1, 2])
    refresher.add(sites, np.zeros(3, np.intp), np.ones(3), np.zeros(3))
    refresher.replan(10.0, 0.0)
    refresher.limits(np.array([0, 0]), np.array([2.0]))
    planned = refresher._current(1.0).crawl_rate
    assert planned[:2].sum() == pytest.approx(2.0)
    assert planned[2] == pytest.approx(8.0)


def test_a_limit_that_moves_calls_for_another_plan_and_one_that_trembles_does_not() -> None:
    refresher = ByRate(LambdaCrawl())
    pages(refresher, 4)
    refresher.replan(10.0, 0.0)
    refresher.limits(np.array([0, 1]), np.array([2.0, 50.0]))
    before = refresher._current(1.0)
    refresher.limits(np.array([0, 1]), np.array([2.1, 49.0]))
    assert refresher._current(1.1) is before
    refresher.limits(np.array([0, 1]), np.array([4.0, 49.0]))
    assert refresher._current(1.2).crawl_rate[::2].sum() == pytest.approx(4.0)


@pytest.mark.parametrize(
    "make",
    [ByClock, lambda: ByIndex(GreedyIndex()), lambda: ByRate(LambdaCrawl())],
    ids=["clock", "index", "rate"],
)
def test_pages_are_believed_to_change_as_they_were_seen_to(
    make: Callable[[], Refresher],
) -> None:
    refresher = Guarded(make(), "any")
    pages(refresher)
    refresher.replan(4.0, 0.0)
    for day in range(1, 12):
        for row in range(4):
            look(refresher, row, float(day), changed=row == 2)
    found, later = refresher.beliefs(14.0), refresher.beliefs(16.0)
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
        (np.array([1.0, np.nan, 2.0, 3.0]), "page 1 is worth nan"),
        (np.array([1.0, 1.0, -2.0, 3.0]), "page 2 is worth -2.0"),
        (np.ones(3), r"\(3,\) values for 4 pages"),
    ],
)
def test_a_faulty_policy_is_told_of_once_and_its_last_good_plan_holds(
    answer: Floats | Exception, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    policy = Faulty()
    refresher = Guarded(ByIndex(policy), "theirs")
    pages(refresher)
    good = refresher.worth(1.0)
    policy.answer = answer
    look(refresher, 3, 1.5, changed=None)
    for now in (2.0, 3.0):
        worth = refresher.worth(now)
        assert worth[:3].tolist() == good[:3].tolist()
        assert 0 < worth[3] < worth[0]
    assert len(caplog.records) == 1
    assert caplog.records[0].getMessage().startswith("policy theirs: ")
    assert re.search(told, caplog.text)


def test_a_fault_that_moves_from_page_to_page_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    policy = Faulty()
    refresher = Guarded(ByIndex(policy), "theirs")
    pages(refresher)
    for row in range(4):
        policy.answer = np.where(np.arange(4) == row, np.nan, 1.0)
        refresher.worth(2.0)
    assert len(caplog.records) == 1


def test_a_policy_that_never_worked_leaves_pages_to_go_by_their_age() -> None:
    refresher = Guarded(ByRate(Faulty()), "theirs")
    pages(refresher)
    look(refresher, 0, 1.0, changed=None)
    worth = refresher.worth(3.0)
    assert worth[1] == worth[2] > worth[0] > 0
