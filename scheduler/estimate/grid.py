"""Posteriors of change rates on a grid, as log-likelihoods that grow visit by visit.

A page's rate is one of 48, from 2e-4 to 50 changes a day and evenly spaced in their logarithm. Its
row of sums is ln P(results of its visits | rate), but for a constant; with the prior of its site
and area it is a posterior, and its estimate exp(E[ln d]).

Rates drift: a page is taken to get another one once in T = 1,500 days, drawn from the prior. So
between two visits t days apart the posterior goes a share 1 − e^{−t/T} of the way back to it
(:func:`drift`). A quiet page that turns busy is thereby believed after a few changes, however
long it has been quiet, which fading sums would not do.

Priors are fitted to pages by expectation and maximisation, and shrunk by the weight of ten pages:
that of a site to an even one, those of its areas to the site's.

The functions are compiled; rows and sums are written in place.

Reference: M. Herbster and M. Warmuth, "Tracking the best expert", Machine Learning 1998 (fixed
share).
"""

from math import exp, expm1, log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arrays import Floats, part
from freshet.scheduler.estimate.bayes import quantile
from freshet.scheduler.sources import Rows

POINTS: Final = 48
RATES: Final[Floats] = np.exp(np.linspace(np.log(2e-4), np.log(50.0), POINTS))
_LOGS: Final[Floats] = np.log(RATES)
_PAGES_OF_PRIOR: Final = 10.0
#: T, days.
_KEPT_DAYS: Final = 1_500.0
_SAMPLE: Final = 4_096
_LEAST: Final = 1e-12
_LEAST_PROBABILITY: Final = 1e-4


def even() -> Floats:
    """Return the prior without any knowledge."""
    return np.full(POINTS, 1 / POINTS)


def unfitted_rate() -> float:
    """Return exp(E[ln d]) under :func:`even`."""
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
def drift(sums: NDArray[np.floating], prior: Floats, days: float) -> None:
    """Let a page's rate have changed within these days: p ← (1 − ε)p + ε · prior."""
    most = sums.max()
    total = 0.0
    for k in range(POINTS):
        total += prior[k] * exp(sums[k] - most)
    another = -expm1(-days / _KEPT_DAYS)
    for k in range(POINTS):
        sums[k] = log((1 - another) * exp(sums[k] - most) / total + another)


@part
def mean_rate(sums: NDArray[np.floating], prior: Floats) -> float:
    """Return exp(E[ln d]) under a row of log-likelihoods and a prior."""
    most = sums.max()
    total, mean = 0.0, 0.0
    for k in range(POINTS):
        weight = prior[k] * exp(sums[k] - most)
        total += weight
        mean += weight * _LOGS[k]
    return exp(mean / total)


def credible_interval(sums: NDArray[np.floating], prior: Floats) -> tuple[Floats, Floats]:
    """Return the rates, (m,) each, between which nine tenths of each posterior lie.

    As much is left out below as above; ``sums`` and ``prior`` are (m, 48).
    """
    posterior = prior * np.exp(sums - sums.max(axis=1, keepdims=True))
    return quantile(posterior, 0.05, _LOGS), quantile(posterior, 0.95, _LOGS)


@part
def log_loss(hazard: float, changed: bool) -> float:
    """Return −ln of the probability that was given to the outcome, clipped away from 0 and 1."""
    probability = min(max(-expm1(-hazard), _LEAST_PROBABILITY), 1 - _LEAST_PROBABILITY)
    return -log(probability) if changed else -log(1 - probability)


@part
def _likelihood(sums: NDArray[np.float32], rows: Rows) -> Floats:
    """Return (m, 48), each relative to its largest, for a sample of these rows."""
    every = max(1, len(rows) // _SAMPLE)
    count = (len(rows) + every - 1) // every
    likelihood = np.empty((count, POINTS))
    for j in range(count):
        row = rows[j * every]
        most = sums[row].max()
        for k in range(POINTS):
            likelihood[j, k] = exp(sums[row, k] - most)
    return likelihood


@part
def fit(sums: NDArray[np.float32], rows: Rows, prior: Floats, parent: Floats, steps: int) -> None:
    """Fit a prior to these rows, near ``parent``."""
    likelihood = _likelihood(sums, rows)
    count = len(likelihood)
    shares = np.empty(POINTS)
    # From the same start each time: few steps keep it smooth.
    prior[:] = parent
    for _ in range(steps):
        shares[:] = 0.0
        for j in range(count):
            total = 0.0
            for k in range(POINTS):
                total += likelihood[j, k] * prior[k]
            for k in range(POINTS):
                shares[k] += likelihood[j, k] / total
        for k in range(POINTS):
            own = prior[k] * shares[k] + _PAGES_OF_PRIOR * parent[k]
            prior[k] = own / (count + _PAGES_OF_PRIOR)
