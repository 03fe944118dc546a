"""Likelihoods as functions of the logarithm of the change rate, on a grid.

A source's evidence is a likelihood over its change rate Δ. On the 40 points of LOG_RATES it is
a vector, and evidence is taken in by adding vectors. Two crawls a days apart that differ add
ln(1 − e^{−aΔ}); the rest, u ln Δ − dΔ for u counted changes and d days that were equal or
counted, is known exactly from the two sums u and d.

Forty points stand 0.28 apart in ln Δ: a source with a thousand changes is known better than
that. So a likelihood is evaluated on a grid four times as fine (FINE, 157 points, 0.07 apart),
to which the vector of 40 is brought by cubic interpolation: it is a smooth function of ln Δ.
A prior is a mixture of 40 hat functions of ln Δ, the linear splines on LOG_RATES.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arguments import Floats
from freshet.scheduler.sources import Rows

#: From once in three years to every half hour; a rate beyond is taken for one of the ends.
LOWEST_PER_DAY: Final = 1e-3
HIGHEST_PER_DAY: Final = 50.0
POINTS: Final = 40
_FINER: Final = 4

LOG_RATES: Final[Floats] = np.linspace(np.log(LOWEST_PER_DAY), np.log(HIGHEST_PER_DAY), POINTS)
FINE: Final[Floats] = np.linspace(LOG_RATES[0], LOG_RATES[-1], (POINTS - 1) * _FINER + 1)

_RATES: Final[Floats] = np.exp(LOG_RATES)
#: What one counted change and one day add to a log-likelihood, (2, 157).
_EXACT: Final[Floats] = np.stack([FINE, -np.exp(FINE)])


def _cubic_interpolation() -> Floats:
    """(40, 157), the weights of Lagrange's cubic through the four nearest points."""
    weights = np.zeros((POINTS, len(FINE)))
    for j in range(len(FINE)):
        first = min(max(j // _FINER - 1, 0), POINTS - 4)
        place = j / _FINER - first
        for k in range(4):
            others = [other for other in range(4) if other != k]
            factors = [(place - other) / (k - other) for other in others]
            weights[first + k, j] = np.prod(factors)
    return weights


def _hats() -> Floats:
    """(40, 157), each linear spline's probabilities on the fine grid, by the trapezoidal rule."""
    distance = np.abs(np.arange(len(FINE)) / _FINER - np.arange(POINTS)[:, None])
    hats = np.maximum(0.0, 1.0 - distance)
    hats[:, [0, -1]] /= 2
    shares: Floats = hats / hats.sum(axis=1, keepdims=True)
    return shares


INTERPOLATION: Final[Floats] = _cubic_interpolation()
HATS: Final[Floats] = _hats()


def differed(span: Floats | float) -> Floats:
    """(40,) or (m, 40), ln(1 − e^{−aΔ}): two crawls ``span`` days apart differed."""
    log_probability: Floats = np.multiply.outer(-np.asarray(span), _RATES)
    np.expm1(log_probability, out=log_probability)
    np.negative(log_probability, out=log_probability)
    return np.log(log_probability, out=log_probability)


def likelihood(changed: NDArray[np.floating], exact: Floats) -> Floats:
    """(m, 157), each row relative to its largest value.

    Args:
        changed: (m, 40), sums of :func:`differed`.
        exact: (m, 2), counted changes, and days that were counted or unchanged.
    """
    log_likelihood: Floats = changed @ INTERPOLATION
    log_likelihood += exact @ _EXACT
    log_likelihood -= log_likelihood.max(axis=1, keepdims=True)
    return np.exp(log_likelihood, out=log_likelihood)


def log_mean(posterior: Floats) -> Floats:
    """(m,), E[ln Δ] under these (m, 157) posteriors, which need not sum to 1."""
    mean: Floats = posterior @ FINE / posterior.sum(axis=1)
    return mean


def quantile(posterior: Floats, probability: float) -> Floats:
    """(m,), the Δ below which ``probability`` of each posterior lies.

    A point of the fine grid stands for its cell, over which its mass is even in ln Δ; the
    outermost cells end at the grid's ends.
    """
    below = np.cumsum(posterior, axis=1)
    wanted = probability * below[:, -1]
    cell = (below < wanted[:, None]).sum(axis=1)
    row: Rows = np.arange(len(posterior))
    mass = posterior[row, cell]
    part = 1.0 - (below[row, cell] - wanted) / mass
    log_rate = FINE[cell] + (part - 0.5) * (FINE[1] - FINE[0])
    rate: Floats = np.exp(np.clip(log_rate, FINE[0], FINE[-1]))
    return rate
