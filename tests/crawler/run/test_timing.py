"""Learning is timed, and otherwise as it was."""

from __future__ import annotations

import numpy as np
import pytest

from freshet.crawler.run.service import Timed
from freshet.scheduler.agenda.ranker import Beliefs, Refresher
from freshet.scheduler.estimate.observations import VisitResults
from freshet.scheduler.sources import Rows


class Inner:
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> object:
        def answer(*_arguments: object) -> object:
            self.asked.append(name)
            if name == "beliefs":
                return Beliefs(*(np.zeros(1),) * 3)
            if name == "replan":
                raise ArithmeticError("no plan")
            return np.ones(1)

        return answer


def test_each_piece_of_work_is_told_also_one_that_fails() -> None:
    told: list[tuple[str, float]] = []
    inner = Inner()
    refresher: Refresher = Timed(inner, lambda *each: told.append(each))  # type: ignore[arg-type]
    rows: Rows = np.zeros(1, np.intp)
    one = np.ones(1)
    refresher.add(rows, rows, one, one)
    refresher.learn(VisitResults(rows, one, one > 0, one > 0, one > 0, one > 0))
    assert refresher.worth(1.0).tolist() == [1.0]
    assert refresher.beliefs(1.0).hazard.tolist() == [0.0]
    with pytest.raises(ArithmeticError):
        refresher.replan(5.0, 1.0)
    refresher.reweigh(rows, one)
    refresher.inherit(0, 0)
    refresher.limits(rows, one)
    assert inner.asked == [
        "add", "learn", "worth", "beliefs", "replan", "reweigh", "inherit", "limits",
    ]  # fmt: skip
    assert [work for work, _ in told] == ["learn", "value", "foresee", "replan"]
    assert all(seconds >= 0 for _, seconds in told)
