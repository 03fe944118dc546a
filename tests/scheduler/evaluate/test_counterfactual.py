"""Policies get what the archive has, learn from that alone, and keep their budgets."""

import numpy as np
import pytest

from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate.evidence import SignalBatch, VisitResults
from freshet.scheduler.evaluate.captures import FAILED, GONE, Captures
from freshet.scheduler.evaluate.changes import ChangeTimes
from freshet.scheduler.evaluate.counterfactual import AskedVisits, ReplayTerms, run
from freshet.scheduler.queue.ranker import Beliefs, Ranker
from freshet.scheduler.queue.rankers import ranker_of
from freshet.scheduler.sources import Rows
from tests.scheduler.evaluate.archives import one_page, sampled


class Turn:
    """Asks for the page visited longest ago; keeps what it was told."""

    def __init__(self) -> None:
        self.last: list[float] = []
        self.told: list[tuple[int, float, bool | None, bool]] = []
        self.known_on: list[float] = []

    def add(
        self, site: Rows, area: Rows, importance: Floats, at: Floats, pace: Floats | None = None
    ) -> None:
        self.last += at.tolist()
        self.known_on += at.tolist()

    def learn(self, visits: VisitResults) -> None:
        for k in range(len(visits)):
            row, at = int(visits.row[k]), float(visits.at[k])
            self.last[row] = at
            changed = bool(visits.changed[k]) if visits.compared[k] else None
            self.told.append((row, at, changed, bool(visits.gone[k])))

    def values(self, now: float) -> Floats:
        return np.maximum(now - np.array(self.last), 0.0) + 1e-9

    def beliefs(self, now: float) -> Beliefs:
        return Beliefs(*np.zeros((3, len(self.last))))

    def receive(self, said: SignalBatch) -> None:
        raise AssertionError("not in an archive")

    def credible_interval(self, rows: Rows) -> tuple[Floats, Floats]:
        raise AssertionError("not in an archive")

    def reweigh(self, rows: Rows, importance: Floats) -> None:
        raise AssertionError("not in an archive")

    def inherit(self, old: int, new: int) -> None:
        raise AssertionError("not in an archive")


def asked(captures: Captures, ranker: Ranker, *, budget: float = 1.0, start: float = 0.0,
          end: float = 10.0, step: float | None = 1.0,
          given: bool = False) -> AskedVisits:  # fmt: skip
    terms = ReplayTerms(budget, start, end, step, given)
    return run(captures, ranker, terms, lambda _day: None)


def test_an_ask_shows_the_latest_capture_and_what_it_changed() -> None:
    turn = Turn()
    asks = asked(one_page({0.0: 0, 2.5: 1, 3.2: 0, 6.0: 0}), turn, end=6.0)
    assert asks.at.tolist() == [1, 2, 3, 4, 5, 6]
    assert asks.capture.tolist() == [0, 0, 1, 2, 2, 3]
    assert asks.again.tolist() == [True, True, False, False, True, False]
    assert [changed for _, _, changed, _ in turn.told] == [
        None, False, False, True, True, False, False
    ]  # fmt: skip


def test_a_miss_is_no_404_and_teaches_nothing() -> None:
    captures = Captures.of([0], [5.5], [0], found=[0.0], importance=[1.0])
    turn = Turn()
    asks = asked(captures, turn)
    # After a miss it is left alone for a day, as the turn is: it has nothing else to ask.
    assert asks.at.tolist()[:5] == [1, 3, 5, 7, 8]
    assert asks.capture.tolist()[:5] == [-1, -1, -1, 0, 0]
    assert asks.answered.tolist()[:5] == [False, False, False, True, True]
    assert [visit[0:2] for visit in turn.told][:2] == [(0, 7.0), (0, 8.0)]


def test_a_page_exists_from_the_day_on_which_the_archive_shows_it() -> None:
    captures = Captures.of([0, 1], [0.0, 4.5], [0, 0], found=[0.0, 4.0], importance=[1.0, 1.0])
    turn = Turn()
    asks = asked(captures, turn)
    assert asks.at[asks.page == 1].min() == 5.0
    assert turn.known_on == [0.0, 4.0]


def test_given_pages_bring_their_copies_along() -> None:
    captures = Captures.of([0, 1], [0.0, 4.5], [0, 0], importance=[1.0, 1.0])
    asks = asked(captures, Turn(), given=True)
    assert asks.copy.tolist() == [0.0, 4.5]


def test_failures_teach_nothing_and_gone_pages_are_asked_for_less() -> None:
    captures = Captures.of(
        [0, 0, 1, 1, 2], [0.0, 1.5, 0.0, 1.5, 0.0], [0, FAILED, 0, GONE, 0], importance=np.ones(3)
    )
    turn = Turn()
    asks = asked(captures, turn, budget=1.0, end=60.0)
    assert not asks.answered[(asks.page == 0) & (asks.at > 1.5)].any()
    assert all(at <= 1.5 for row, at, _, _ in turn.told if row == 0)
    assert any(gone for row, _, _, gone in turn.told if row == 1)
    number = np.bincount(asks.page, minlength=3)
    assert number[1] < number[2] / 2


def test_what_the_archive_showed_before_the_start_has_been_learnt() -> None:
    turn = Turn()
    captures = one_page({0.0: 0, 1.0: 1, 2.0: FAILED, 3.0: GONE, 8.0: 2})
    asks = asked(captures, turn, start=4.0)
    assert turn.told[:3] == [(0, 0.0, None, False), (0, 1.0, True, False), (0, 3.0, None, True)]
    assert asks.copy.tolist() == [3.0]


@pytest.mark.parametrize(
    "name",
    ["site_clock", "greedy_index", "greedy_index_binary", "lambda_crawl", "uniform",
     "nutch_adaptive"],
)  # fmt: skip
def test_every_kind_of_policy_keeps_the_budget_and_looks_where_changes_are(name: str) -> None:
    rng = np.random.default_rng(3)
    often, n = 4, 24
    number = np.where(np.arange(n) < often, 80, 2)
    at = np.concatenate([np.sort(rng.uniform(0, 160, each)) for each in number])
    changes = ChangeTimes(np.append(0, np.cumsum(number)), at)
    captures = sampled(changes, np.arange(0.0, 160.0, 0.5))
    asks = asked(
        captures, ranker_of(name, 6.0, archived=True), budget=6.0, start=40.0, end=160.0, step=None
    )
    assert 0 < len(asks) <= 6 * 120
    assert (np.diff(asks.at) > 0).all()
    assert asks.at[-1] <= 160.0
    shares = np.bincount(asks.page, minlength=n) / len(asks)
    if name not in {"uniform", "lambda_crawl"}:
        assert shares[:often].mean() > 1.5 * shares[often:].mean()
    told = asks.compared & np.isfinite(asks.expected)
    # What is foretold of pages that change often is more, and happens more.
    assert asks.expected[told & (asks.page < often)].mean() > 2 * (
        asks.expected[told & (asks.page >= often)].mean()
    )
    # What was changed is what the archive says, whoever asks.
    again = captures.content[asks.capture]
    for row in range(n):
        mine = asks.page == row
        assert (asks.changed[mine][1:] == (np.diff(again[mine]) != 0)).all()
