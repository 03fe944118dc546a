import numpy as np
import pytest

from freshet.scheduler.estimate import Estimator
from freshet.scheduler.estimate.bayes import EmpiricalBayes
from freshet.scheduler.estimate.poisson import PoissonMle
from tests.scheduler.estimate.pieces import pieces


@pytest.mark.parametrize("estimator", [PoissonMle(2), EmpiricalBayes(2)])
def test_estimators_give_one_rate_a_row(estimator: Estimator) -> None:
    assert estimator.change_rate().shape == (2,)
    assert estimator.change_rate(np.array([1])).shape == (1,)
    assert estimator.change_rate(np.zeros(0, np.intp)).shape == (0,)


@pytest.mark.parametrize("make", [PoissonMle, EmpiricalBayes])
def test_no_sources_have_no_rates(make: type[PoissonMle] | type[EmpiricalBayes]) -> None:
    estimator = make(0)
    estimator.observe(pieces([], [], [], []))
    assert estimator.change_rate().tolist() == []
