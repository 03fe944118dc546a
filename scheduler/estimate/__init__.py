"""Estimators of change rates, by the names that users give."""

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler import arrays
from freshet.scheduler.estimate.bayes import EmpiricalBayes
from freshet.scheduler.estimate.poisson import PoissonMle

#: A learner of change rates, finite and above 0, from evidence alone. Its ``revision`` grows when
#: the estimates of rows without new evidence have moved.
Estimator: TypeAlias = EmpiricalBayes | PoissonMle

#: From the hosts of n sources, (n,), to an estimator of their rates.
ESTIMATORS: Final[dict[str, Callable[[NDArray[np.intp]], Estimator]]] = {
    "empirical_bayes": lambda host: EmpiricalBayes(len(host), group=host),
    "poisson_mle": lambda host: PoissonMle(len(host)),
}


def load(name: str, host: NDArray[np.intp]) -> Estimator:
    """Return an estimator for sources on these hosts (n,), which may share a prior by host.

    Raises:
        ValueError: if the name is unknown.
    """
    return ESTIMATORS[arrays.one_of("estimator", name, tuple(ESTIMATORS))](host)
