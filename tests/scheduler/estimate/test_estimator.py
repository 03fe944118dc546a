import re
from typing import Any

import numpy as np
import pytest

from freshet.scheduler.estimate.bayes import EmpiricalBayes
from freshet.scheduler.estimate.evidence import Estimator, Evidence
from freshet.scheduler.estimate.poisson import PoissonMle

GOOD: dict[str, Any] = {
    "source": [0, 1, 1], "at": [1.0, 2.0, 3.0], "span": [1.0, 2.0, 1.0], "changes": [1, 0, 1],
}  # fmt: skip


def test_evidence_is_made_of_columns_of_one_length() -> None:
    evidence = Evidence.of(**GOOD)
    assert len(evidence) == 3
    assert not evidence.counted.any()
    assert evidence.changes.tolist() == [1, 0, 1]


def test_counted_evidence_may_hold_many_changes_in_no_time() -> None:
    evidence = Evidence.of([0], [1.0], [0.0], [7], counted=[True])
    assert evidence.changes.tolist() == [7]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"at": [1.0, np.nan, 2.0]}, "at: row 1 is nan; accepted is a finite number"),
        ({"span": [1.0, 1.0]}, "span: has 2 rows; accepted are 3"),
        ({"span": [1.0, 0.0, 1.0]}, "span: row 1 is 0.0; accepted is above 0 where it is not"),
        ({"span": [1.0, -1.0, 1.0]}, "span: row 1 is -1.0; accepted is a finite number of at"),
        ({"changes": [0, 1, 2]}, "changes: row 2 is 2; accepted is 0 or 1 where it is not counted"),
        ({"changes": [0, 0.5, 1]}, "changes: row 1 is 0.5; accepted is a whole number"),
        ({"source": [0, 1, 2]}, "source: row 2 is 2; accepted is an integer code from 0 to 1"),
        ({"counted": [1, 0, 0]}, "counted: has dtype int64; accepted are truth values"),
    ],
)
def test_wrong_evidence_is_told_by_argument_and_row(
    wrong: dict[str, list[float]], message: str
) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        Evidence.of(**(GOOD | wrong), sources=2)


@pytest.mark.parametrize("estimator", [PoissonMle(2), EmpiricalBayes(2)])
def test_the_estimators_of_the_house_keep_the_protocol(estimator: Estimator) -> None:
    assert isinstance(estimator, Estimator)
    assert estimator.change_rate().shape == (2,)
    assert estimator.change_rate(np.array([1])).shape == (1,)
    assert estimator.change_rate(np.zeros(0, np.intp)).shape == (0,)


@pytest.mark.parametrize("make", [PoissonMle, EmpiricalBayes])
def test_no_sources_have_no_rates(make: type[PoissonMle] | type[EmpiricalBayes]) -> None:
    estimator = make(0)
    estimator.observe(Evidence.of([], [], [], []))
    assert estimator.change_rate().tolist() == []
