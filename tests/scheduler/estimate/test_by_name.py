import numpy as np
import pytest

from freshet.scheduler import estimate
from freshet.scheduler.estimate import Estimator


@pytest.mark.parametrize("name", estimate.ESTIMATORS)
def test_an_estimator_is_for_as_many_sources_as_have_hosts(name: str) -> None:
    estimator = estimate.load(name, np.array([0, 0, 1]))
    assert isinstance(estimator, Estimator)
    assert len(estimator.change_rate()) == 3


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="estimator: is 'guess'; accepted are empirical_bayes, po"):
        estimate.load("guess", np.zeros(1, np.intp))
