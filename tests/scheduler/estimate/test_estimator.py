import numpy as np
import pytest

from freshet.scheduler.estimate.bayes import EmpiricalBayes
from freshet.scheduler.estimate.evidence import Estimator
from freshet.scheduler.estimate.poisson import PoissonMle
from tests.scheduler.estimate.pieces import pieces


@pytest.mark.parametrize("estimator", [PoissonMle(2), EmpiricalBayes(2)])
def test_the_estimators_of_the_house_keep_the_protocol(estimator: Estimator) -> None:
    assert isinstance(estimator, Estimator)
    assert estimator.change_rate().shape == (2,)
    assert estimator.change_rate(np.array([1])).shape == (1,)
    assert estimator.change_rate(np.zeros(0, np.intp)).shape == (0,)


@pytest.mark.parametrize("make", [PoissonMle, EmpiricalBayes])
def test_no_sources_have_no_rates(make: type[PoissonMle] | type[EmpiricalBayes]) -> None:
    estimator = make(0)
    estimator.observe(pieces([], [], [], []))
    assert estimator.change_rate().tolist() == []
