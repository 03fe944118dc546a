import numpy as np
import pytest

from freshet.scheduler.estimators import by_name
from freshet.scheduler.estimators.estimator import Estimator


@pytest.mark.parametrize("name", by_name.ESTIMATORS)
def test_an_estimator_is_for_as_many_sources_as_have_hosts(name: str) -> None:
    estimator = by_name.load(name, np.array([0, 0, 1]))
    assert isinstance(estimator, Estimator)
    assert len(estimator.change_rate()) == 3


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="estimator: is 'guess'; accepted are empirical_bayes, po"):
        by_name.load("guess", np.zeros(1, np.intp))
