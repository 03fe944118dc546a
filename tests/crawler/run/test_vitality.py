"""A daemon that is stuck is told from one that waits."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.run.service import Vitality, Vitals
from freshet.crawler.service.metrics import DaemonPhase

BUSY = Vitals(turns=5, spent=9, commits=3, backlog=4, queued=7, parked=2)
HOURS_S = 7_200.0


def visited_at(vitals: Vitals, state: DaemonPhase = "fetching") -> Vitality:
    """After hours in which nothing has moved."""
    vitality = Vitality(0.0)
    vitality.check("fetching", vitals, 1.0)
    vitality.check(state, vitals, HOURS_S)
    return vitality


def test_a_writer_that_commits_nothing_is_no_life() -> None:
    vitality = Vitality(0.0)
    vitality.check("fetching", BUSY, 10.0)
    vitality.check("fetching", replace(BUSY, turns=99, spent=99), 120.0)
    assert vitality.lifeless(120.0) is None
    vitality.check("fetching", replace(BUSY, turns=100, spent=100), 140.0)
    said = vitality.lifeless(140.0)
    assert said == "nothing has been committed for 130 s although 4 entries wait"
    assert vitality.problems(140.0) == [said]
    vitality.check("fetching", replace(BUSY, turns=101, spent=100, commits=4), 141.0)
    assert vitality.lifeless(141.0) is None


def test_a_pool_that_looks_for_no_work_is_no_life() -> None:
    assert visited_at(replace(BUSY, backlog=0)).lifeless(HOURS_S) == (
        "the pool has not looked for work for 7199 s"
    )


@pytest.mark.parametrize(
    ("vitals", "state"),
    [
        (replace(BUSY, store_is_away=True), "fetching"),
        (replace(BUSY, backlog=0, held=True), "fetching"),
        (replace(BUSY, backlog=0), "upkeep"),
        (replace(BUSY, backlog=0), "stopping"),
        (replace(BUSY, backlog=0), "reloading"),
    ],
)
def test_waiting_that_is_meant_is_life(vitals: Vitals, state: DaemonPhase) -> None:
    assert visited_at(vitals, state).lifeless(HOURS_S) is None


def test_a_store_that_is_away_is_a_problem_and_no_reason_for_a_new_start() -> None:
    vitality = visited_at(replace(BUSY, store_is_away=True))
    (problem,) = vitality.problems(HOURS_S)
    assert "the store is unavailable" in problem
    assert vitality.lifeless(HOURS_S) is None


def test_pages_that_are_due_and_not_fetched_are_a_problem() -> None:
    vitality = Vitality(0.0)
    vitality.check("fetching", replace(BUSY, backlog=0), 0.0)
    for now in (100.0, 601.0):
        vitality.check("fetching", replace(BUSY, backlog=0, turns=int(now)), now)
    (problem,) = vitality.problems(601.0)
    assert problem.startswith("nothing has been fetched for 601 s although pages are due")
    assert "hosts parked: 2" in problem
    vitality.check("fetching", replace(BUSY, backlog=0, turns=700, spent=10), 602.0)
    assert vitality.problems(602.0) == []


@pytest.mark.parametrize("calm", [replace(BUSY, held=True), replace(BUSY, queued=0)])
def test_nothing_to_do_is_no_problem(calm: Vitals) -> None:
    vitality = Vitality(0.0)
    for now in (1.0, 500.0, 1_000.0, 5_000.0):
        vitals = replace(calm, backlog=0, turns=int(now))
        vitality.check("fetching", vitals, now)
    assert vitality.problems(5_000.0) == []


@pytest.mark.parametrize("state", ["starting", "stopping"])
def test_who_starts_or_stops_is_not_available(state: DaemonPhase) -> None:
    vitality = Vitality(0.0)
    vitality.check(state, Vitals(), 1.0)
    assert vitality.problems(1.0) == [f"it is {state}"]


@given(st.lists(st.tuples(st.integers(0, 1), st.floats(0, 119)), min_size=1, max_size=40))
def test_who_commits_in_time_lives_for_ever(steps: list[tuple[int, float]]) -> None:
    vitality, vitals, now = Vitality(0.0), BUSY, 0.0
    for turned, seconds in steps:
        now += seconds
        vitals = replace(vitals, commits=vitals.commits + 1, turns=vitals.turns + 1 + turned)
        vitality.check("fetching", vitals, now)
        assert vitality.lifeless(now) is None
