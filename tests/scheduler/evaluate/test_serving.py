"""The loop spends its budget on the worthiest, in whatever environment."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate.evidence import VisitResults
from freshet.scheduler.evaluate.serving import Batch, best_rows, serve
from freshet.scheduler.sources import Rows


class Fixed:
    """Values sources with the same numbers until they are visited, then with 0."""

    def __init__(self, worth: list[float]) -> None:
        self.fixed = np.array(worth)
        self.told: list[tuple[int, float]] = []

    def values(self, now: float) -> Floats:
        return self.fixed

    def learn(self, visits: VisitResults) -> None:
        self.told += zip(visits.row.tolist(), visits.at.tolist(), strict=True)
        self.fixed = self.fixed.copy()
        self.fixed[visits.row] = 0.0


class Days:
    """Three days; row 0 is not to be visited before the second."""

    def __init__(self) -> None:
        self.advanced: list[float] = []

    def batches(self, budget: float) -> Iterator[Batch]:
        for day in range(3):
            yield float(day), day + np.arange(1, budget + 1) / budget

    def advance(self, now: float) -> None:
        self.advanced.append(now)

    def weighed(self, worth: Floats, now: float) -> Floats:
        return worth if now >= 1 else np.where(np.arange(len(worth)) == 0, 0.0, worth)

    def visit(self, rows: Rows, at: Floats) -> VisitResults:
        no = np.zeros(len(rows), np.bool_)
        return VisitResults(rows, at, ~no, no, no, no)


def test_the_worthiest_are_visited_in_batches_as_the_environment_weighs_them() -> None:
    ranker, days, progress = Fixed([9.0, 1.0, 2.0, 3.0]), Days(), list[float]()
    serve(ranker, days, 2.0, progress.append)
    assert ranker.told == [(3, 0.5), (2, 1.0), (0, 1.5), (1, 2.0)]
    assert days.advanced == [0.0, 1.0, 2.0]
    assert progress == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_values_that_mean_nothing_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="not finite numbers of at least 0"):
        serve(Fixed([1.0, bad]), Days(), 1.0)


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 2.5]), max_size=12), st.integers(0, 14))
def test_the_worthiest_are_those_of_a_whole_sort(values: list[float], count: int) -> None:
    some = [row for row in range(len(values)) if values[row] > 0]
    expected = sorted(some, key=lambda row: (-values[row], row))[:count]
    assert best_rows(np.array(values), count).tolist() == expected
