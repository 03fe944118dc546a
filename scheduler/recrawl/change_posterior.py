"""Posteriors of change rates on a grid, as log-likelihoods that grow look by look. Pure.

A page's rate is one of 40, from 2e-4 to 5 changes a day and evenly spaced in their logarithm. Its
row of sums is ln P(what its looks found | rate), but for a constant; with the prior of its site it
is a posterior, and its estimate exp(E[ln d]).

Priors are fitted to the pages of a site by expectation and maximisation, and shrunk to an even one
by the weight of ten pages.

The functions are compiled; rows and sums are written in place.
"""

from __future__ import annotations

from math import exp, expm1, log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler.arguments import Floats
from scheduler.compiling import part
from scheduler.sources import Rows

POINTS: Final = 40
RATES: Final[Floats] = np.exp(np.linspace(np.log(2e-4), np.log(5.0), POINTS))
_LOGS: Final[Floats] = np.log(RATES)
_PAGES_OF_PRIOR: Final = 10.0
_STEPS: Final = 15
_SAMPLE: Final = 4_096
_LEAST: Final = 1e-12


def even() -> Floats:
    """The prior of which nothing is known."""
    return np.full(POINTS, 1 / POINTS)


def unfitted_rate() -> float:
    """exp(E[ln d]) under :func:`even`."""
    return float(np.exp(_LOGS.mean()))


@part
def add_interval(sums: NDArray[np.floating], own: float, cold: float, changed: bool) -> None:
    """Add ln P of an interval with the hazards d × ``own`` + ``cold``, with a change or without.

    An unchanged interval speaks of the page's own time alone.
    """
    for k in range(POINTS):
        if changed:
            sums[k] += log(max(-expm1(-RATES[k] * own - cold), _LEAST))
        else:
            sums[k] -= RATES[k] * own


@part
def mean_rate(sums: NDArray[np.floating], prior: Floats) -> float:
    """exp(E[ln d]) under a row of log-likelihoods and a prior."""
    most = sums[0]
    for k in range(POINTS):
        most = max(most, sums[k])
    total, mean = 0.0, 0.0
    for k in range(POINTS):
        weight = prior[k] * exp(sums[k] - most)
        total += weight
        mean += weight * _LOGS[k]
    return exp(mean / total)


@part
def fit(sums: NDArray[np.float32], rows: Rows, prior: Floats) -> None:
    """Fit a prior to these rows, or to some thousands of them, evenly chosen."""
    every = max(1, len(rows) // _SAMPLE)
    count = (len(rows) + every - 1) // every
    likelihood = np.empty((count, POINTS))
    for j in range(count):
        row = rows[j * every]
        most = sums[row, 0]
        for k in range(POINTS):
            most = max(most, sums[row, k])
        for k in range(POINTS):
            likelihood[j, k] = exp(sums[row, k] - most)
    shares = np.empty(POINTS)
    for _ in range(_STEPS):
        for k in range(POINTS):
            shares[k] = 0.0
        for j in range(count):
            total = 0.0
            for k in range(POINTS):
                total += likelihood[j, k] * prior[k]
            for k in range(POINTS):
                shares[k] += likelihood[j, k] / total
        for k in range(POINTS):
            own = prior[k] * shares[k] + _PAGES_OF_PRIOR / POINTS
            prior[k] = own / (count + _PAGES_OF_PRIOR)
