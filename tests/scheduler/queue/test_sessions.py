"""Sessions: when a host opens, and for how many requests is saved."""

from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from freshet.scheduler.estimate.evidence import VisitResults
from freshet.scheduler.queue.pages import PageTable
from freshet.scheduler.queue.sessions import SESSION_DAYS, Sessions, price
from scripts.benchmarks.sites import WITHOUT

N, RATE = 100, 0.01


def index(age: np.ndarray) -> np.ndarray:
    return (RATE * age + np.expm1(-RATE * age)) / RATE


@pytest.mark.parametrize("budget", [0.5, 2.0, 5.0])
def test_a_host_of_alike_pages_opens_when_a_session_of_two_roots_of_them_is_due(
    budget: float,
) -> None:
    sessions, host = Sessions(), np.zeros(N, np.intp)
    sessions.grow(1)
    sessions.reprice(np.full(N, RATE), np.ones(N), budget, 0.0)
    # As in a rotation, one page after the other comes to the price.
    turn = N / (0.9 * budget)
    for day in np.arange(0.0, 100.0, 0.05):
        age = turn + day - np.arange(N) * turn / N
        opened = sessions.open(
            index(age), index(age + 1), host, at_once=np.zeros(1, np.bool_),
            pages=np.array([N]), saved=budget * day, now=day, budget=budget,
        )  # fmt: skip
        if len(opened):
            break
    visits = budget * (day + SESSION_DAYS)
    assert visits == pytest.approx(2 * N**0.5, rel=0.15)
    assert sessions.saves == pytest.approx(2 * N**0.5 + 1)
    assert not sessions.close(day + SESSION_DAYS - 0.01)[0]
    assert sessions.close(day + SESSION_DAYS)[0]
    sessions.shift(-50.0)  # the clock is set back
    assert sessions.close(day + SESSION_DAYS - 50.0)[0]
    assert sessions.should_reprice(0.26 - 50.0)


def test_no_more_hosts_open_than_the_budget_serves_and_none_stays_closed_while_it_is_idle() -> None:
    sessions, host = Sessions(), np.repeat(np.arange(3), 10)
    sessions.grow(3)
    sessions.price = 1.0
    worth = np.repeat([5.0, 9.0, 0.5], 10)

    def opened(saved: float, *, at_once: int | None = None) -> list[int]:
        first = np.arange(3) == (-1 if at_once is None else at_once)
        found = sessions.open(
            worth, worth, host, at_once=first, pages=np.full(3, 10), saved=saved, now=0.0, budget=1
        )
        return [int(code) for code in found]

    assert opened(2.0) == []  # not enough for a session of any
    assert opened(9.0) == [1]  # the one with most to gain; ten visits wait there
    sessions.serve(1)
    assert opened(0.0, at_once=2) == []  # robots.txt would be asked for alone
    assert opened(1.6, at_once=2) == [2]
    sessions.serve(2)
    assert opened(8.0) == [0]  # as many are saved as may be: nothing is left unused


def test_a_host_of_many_doubtful_pages_stays_closed_while_others_take_all_that_is_saved() -> None:
    # Its robots.txt would be fetched in vain: the ten pages of the other host come first.
    worth = np.append(np.full(10, 9.0), np.full(1_000, 1.1))
    host = np.repeat([0, 1], [10, 1_000])
    for saved, expected in ((8.0, [0]), (40.0, [0, 1])):
        sessions = Sessions()
        sessions.grow(2)
        sessions.price = 1.0
        opened = sessions.open(
            worth, worth, host, at_once=np.zeros(2, np.bool_), pages=np.array([10, 0]),
            saved=saved, now=0.0, budget=1,
        )  # fmt: skip
        assert opened.tolist() == expected


def test_where_nothing_is_due_the_price_is_none() -> None:
    assert price(np.zeros(0), np.zeros(0), 1.0) == 0.0
    assert price(np.ones(3), np.ones(3), np.inf) == 0.0


def test_a_url_without_content_is_worth_what_the_like_of_it_turned_into() -> None:
    def worth(turned: int) -> float:
        table, day = PageTable(), np.zeros(3)
        absent = np.where(np.arange(3) < turned, np.inf, 0.0)
        table.add(
            np.arange(3), urls=["http://a.example/"] * 3, host=np.zeros(3, np.intp),
            importance=np.ones(3), asked=day + 10.0, absent=absent, captured=np.isinf(absent),
            not_before=day - np.inf, most=day + np.inf,
        )  # fmt: skip
        rows, no = np.repeat(np.arange(turned), 2), np.zeros(2 * turned, np.bool_)
        gone = np.arange(2 * turned) % 2 == 0
        table.recall_gone(VisitResults(rows, np.where(gone, 3.0, 10.0), no, no, gone, no))
        worth = float(table.weighted(np.zeros(3), now=110.0)[2])
        assert table["empty"].tolist() == [row >= turned for row in range(3)]
        return worth

    d = 0.5 / (20_000 + 30)
    assert worth(0) == pytest.approx((100 * d + np.expm1(-100 * d)) / d, rel=1e-6)
    assert worth(2) == pytest.approx(5 * worth(0), rel=0.01)


def test_a_host_opens_for_one_visit_that_is_worth_many() -> None:
    """A sitemap that tells the truth leaves its pages nothing to wait for."""
    sessions, host = Sessions(), np.repeat([0, 1], [200, 1000])
    sessions.grow(2)
    sessions.price = 1.0
    sessions.closed = np.array([True, False])
    worth = np.repeat([0.0, 2.0], [200, 1000])

    def opened(sitemap: float) -> list[int]:
        worth[0] = sitemap
        found = sessions.open(
            worth, worth, host, at_once=np.zeros(2, np.bool_), pages=np.array([200, 1000]),
            saved=0.0, now=0.0, budget=2_000,
        )  # fmt: skip
        return [int(code) for code in found]

    assert opened(6.0) == []
    assert opened(50.0) == [0]


def test_the_price_of_very_many_pages_is_that_of_all_of_them() -> None:
    rng = np.random.default_rng(1)
    rate, importance = np.exp(rng.normal(-4, 1.5, 70_000)), rng.pareto(2, 70_000) + 0.1
    found = price(rate, importance, 14_000.0)
    x = np.array([brentq(lambda x, y=y: x + np.expm1(-x) - y, 0, 1e6)
                  for y in (found * rate / importance)[::10]])  # fmt: skip
    assert 10 * (rate[::10] / x).sum() == pytest.approx(0.9 * 14_000, rel=0.02)
    assert found == pytest.approx(price(np.tile(rate, 3), np.tile(importance, 3), 42_000.0), 1e-6)


def test_what_the_benchmark_switches_off_is_there() -> None:
    switched = [each for changes in WITHOUT.values() for each in changes]
    assert all(hasattr(owner, name) for owner, name, _ in switched)
    # As before, a host opens for the number of its visits that are served.
    with patch.object(*WITHOUT["sessions by worth"][0]), pytest.raises(AssertionError):
        test_a_host_opens_for_one_visit_that_is_worth_many()


#: Days between two valuations.
_STEP = 1 / 8


class Lean:
    """Hosts with ten pages each, and a budget: a frontier that asks for robots.txt before pages."""

    def __init__(self, hosts: int, budget: float, *, robots_days: float, is_new: bool) -> None:
        self.budget, self.robots_days, self.hosts = budget, robots_days, hosts
        self.sessions, self.host = Sessions(), np.repeat(np.arange(hosts), 10)
        self.sessions.grow(hosts)
        self.rate = np.full(len(self.host), RATE)
        self.visited = np.full(len(self.host), np.nan if is_new else 0.0)
        self.robots_at = np.full(hosts, -np.inf)
        self.saved = 0.0
        self.spent: list[tuple[float, str, int]] = []

    def live(self, days: float) -> None:
        for now in np.arange(0.0, days, _STEP).tolist():
            self.saved = min(self.saved + self.budget * _STEP, max(1.0, self.sessions.saves))
            if self.sessions.should_reprice(now):
                self.sessions.reprice(self.rate, np.ones(len(self.host)), self.budget, now)
            self.value(now)
            while self.saved >= 1 and self.spend(now):
                self.saved -= 1

    def value(self, now: float) -> None:
        is_new = np.isnan(self.visited)
        worth, later = (
            np.where(is_new, 1e3 + at, index(at - np.nan_to_num(self.visited)))
            for at in (now, now + 1)
        )
        at_once = np.bincount(self.host[~is_new], minlength=self.hosts) == 0
        if self.sessions.close(now).any():
            self.sessions.open(
                worth, later, self.host, at_once=at_once, pages=np.full(self.hosts, 10),
                saved=self.saved, now=now, budget=self.budget,
            )  # fmt: skip
        self.worth = worth

    def spend(self, now: float) -> bool:
        stale = np.flatnonzero(~self.sessions.closed & (self.robots_at + self.robots_days <= now))
        if len(stale):
            self.robots_at[stale[0]] = now
            self.spent.append((now, "robots.txt", int(stale[0])))
            return True
        ready = np.flatnonzero(~self.sessions.closed)
        ready = np.array([h for h in self.sessions.unserved if h in ready] or ready, np.intp)
        rows = np.flatnonzero(np.isin(self.host, ready) & (self.worth > 0))
        if not len(rows):
            return False
        row = int(rows[np.argmax(self.worth[rows])])
        self.visited[row], self.worth[row] = now, 0.0
        self.sessions.serve(int(self.host[row]))
        self.spent.append((now, "page", int(self.host[row])))
        return True

    def alone(self) -> list[tuple[float, int]]:
        """Return when robots.txt was requested again of a host before any page of it was."""
        found, waiting = [], set[int]()
        for at, what, host in self.spent:
            if what == "page":
                waiting.discard(host)
            elif host in waiting:
                found.append((at, host))
            else:
                waiting.add(host)
        return found


#: Hosts, days for which a request must last, and whether the hosts are new: 14 by default.
_GRID = list(product([1, 2, 5, 20], [1.0, 2.0, 3.0, 7.0, 15.0, 30.0, 60.0], [False, True]))


@pytest.mark.parametrize(
    ("hosts", "days", "is_new"),
    [it if k % 4 == k // 14 else pytest.param(*it, marks=pytest.mark.long)
     for k, it in enumerate(_GRID)],
)  # fmt: skip
def test_robots_txt_is_not_requested_of_a_host_again_before_a_page_of_it_was(
    hosts: int, days: float, *, is_new: bool
) -> None:
    lean = Lean(hosts, 1 / days, robots_days=1.0, is_new=is_new)
    lean.live(min(16 * days, 400.0))
    assert lean.alone() == []
    assert any(what == "page" for _, what, _ in lean.spent) or not lean.spent


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(
    hosts=st.integers(1, 20), budget=st.floats(1 / 60, 8.0), is_new=st.booleans(),
    robots_days=st.sampled_from([1.0, 2.0, 7.0]),
)  # fmt: skip
def test_where_robots_txt_is_read_and_a_page_is_due_every_session_requests_a_page(
    hosts: int, budget: float, robots_days: float, *, is_new: bool
) -> None:
    lean = Lean(hosts, budget, robots_days=robots_days, is_new=is_new)
    lean.live(min(12 / budget, 200.0))
    assert lean.alone() == []
