import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, minimize

from freshet.scheduler.arrays import Floats
from freshet.scheduler.ephemeral.policies import static_frequencies
from freshet.scheduler.ephemeral.sources import EphemeralSources
from tests.scheduler.ephemeral.tables import TABLE_1, sources


def earned(table: EphemeralSources, frequencies: Floats) -> float:
    f = np.maximum(frequencies, 1e-12)
    return float((f * table.ceiling * -np.expm1(-table.decay * table.period / f)).sum())


@given(sources(unequal=True), st.floats(0.2, 0.95))
def test_the_budget_is_spent_and_no_source_is_crawled_more_than_once_a_period(
    table: EphemeralSources, share: float
) -> None:
    budget = share * float(table.cost.sum())
    frequencies = static_frequencies(table, budget)
    assert table.cost @ frequencies == pytest.approx(budget, rel=1e-6)
    assert (frequencies >= 0).all()
    assert (frequencies <= 1).all()


@pytest.mark.parametrize("budget", [0.7, 1, 2, 3.3])
def test_a_general_optimiser_finds_no_better_frequencies(budget: float) -> None:
    ours = earned(TABLE_1, static_frequencies(TABLE_1, budget))

    def lost(f: Floats) -> float:
        return -earned(TABLE_1, f) / 100

    theirs = minimize(
        lost, np.full(4, budget / 4), bounds=Bounds(np.full(4, 1e-6), np.ones(4)),
        constraints=LinearConstraint(np.ones((1, 4)), np.array([budget]), np.array([budget])),
        method="SLSQP",
    )  # fmt: skip
    assert ours == pytest.approx(-100 * theirs.fun, rel=1e-5)


def test_more_budget_than_crawls_and_sources_that_never_fade() -> None:
    assert static_frequencies(TABLE_1, 9).tolist() == [1, 1, 1, 1]
    assert static_frequencies(EphemeralSources.of([1, 0], 1, [0, 1]), 1).tolist() == [0, 0]
