"""Signals of pages: how many are pending, how often they come and how often they are true."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.estimate.evidence import VisitResults
from freshet.scheduler.estimate.sources_trust import SignalRates

DAYS = 400
EVENTS = st.lists(
    st.tuples(st.sampled_from(["claim", "changed", "same", "first"]), st.integers(0, 3)),
    max_size=60,
)


def receive(signals: SignalRates, row: int, until: float) -> None:
    signals.receive(np.array([row]), np.array([until]))


def visit(signals: SignalRates, row: int, at: float, *, changed: bool | None = None) -> None:
    signals.learn(VisitResults.one(row, at, changed=changed))


def watched(
    precision: float, recall: float, *, every: int = 2, rate: float = 0.2
) -> tuple[Ints, Floats, Floats]:
    """One page on a site for 400 days, visited every few days, with signals that may be false."""
    rng = np.random.default_rng(7)
    signals = SignalRates()
    signals.add(np.zeros(1, np.intp))
    receive(signals, 0, -9.0)
    visit(signals, 0, -1.0)
    has_changed = False
    false = rate * recall * (1 / precision - 1)
    for day in range(DAYS):
        changes = rng.random() < rate
        has_changed |= changes
        if (changes and rng.random() < recall) or rng.random() < false:
            receive(signals, 0, float(day))
        if day % every == 0:
            visit(signals, 0, day + 0.5, changed=has_changed)
            has_changed = False
    return signals.columns(np.array([rate]))


@pytest.mark.parametrize(("precision", "recall"), [(0.95, 0.9), (0.5, 0.9), (0.3, 0.5)])
def test_what_was_true_of_signals_is_found_from_visits(precision: float, recall: float) -> None:
    _, rate, told = watched(precision, recall)
    assert told[0] == pytest.approx(precision, abs=0.15)
    assert rate[0] * told[0] / 0.2 == pytest.approx(recall, abs=0.15)


def test_signals_that_say_nothing_new_are_not_counted() -> None:
    signals = SignalRates()
    signals.add(np.array([0, 0, 1]))
    visit(signals, 1, 5.0)
    receive(signals, 1, 4.0)  # older than the copy
    receive(signals, 1, 6.0)
    receive(signals, 1, 6.0)  # another source says the same
    receive(signals, 1, 7.0)
    pending, rate, _ = signals.columns(np.ones(3))
    assert pending.tolist() == [0, 2, 0]
    assert (rate > 0).tolist() == [False, True, False]
    visit(signals, 1, 8.0)
    assert signals.columns(np.ones(3))[0].tolist() == [0, 0, 0]


@given(EVENTS, st.floats(1e-6, 1e3))
@settings(deadline=None)
def test_no_more_changes_are_told_of_than_there_are(
    events: list[tuple[str, int]], rate: float
) -> None:
    signals = SignalRates()
    signals.add(np.arange(4) % 2)
    for day, (what, row) in enumerate(events, 1):
        if what == "claim":
            receive(signals, row, float(day))
        else:
            visit(signals, row, float(day), changed=None if what == "first" else what == "changed")
    pending, signal_rate, precision = signals.columns(np.full(4, rate))
    assert ((precision >= 0) & (precision <= 1)).all()
    assert (signal_rate * precision <= rate * (1 + 1e-9)).all()
    assert (pending >= 0).all()


def test_a_page_that_moves_takes_its_counts_along() -> None:
    signals = SignalRates()
    signals.add(np.array([0, 1]))
    receive(signals, 0, 1.0)
    for day in range(20):
        visit(signals, 0, day, changed=True)
    signals.inherit(0, 1)
    _, rate, _ = signals.columns(np.ones(2))
    assert rate[1] > 0
