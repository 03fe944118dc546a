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

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arrays import Floats
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


# -- population prior --------------------------------------------------------
#
# The distribution of change rates in a population, from what is known of its members.
#
# Each source i has a likelihood L_i over its rate (rate_grid). With the prior a mixture of hat
# functions h_g of weights w_g, and l_ig = Σ L_i h_g, the log-likelihood of the whole population is
# Σ_i ln Σ_g w_g l_ig: concave in w. It is increased by expectation and maximisation,
#
#     w_g ← [ Σ_i w_g l_ig / Σ_k w_k l_ik + κ v_g ] / (n + κ).
#
# Where
#     l_ig  ``likelihood``, (n, 40), each row up to a factor;
#     w_g   the weights, (40,), sum 1;
#     v_g   ``parent``, (40,), what the weights shrink to;
#     κ     ``strength``: the parent counts like so many sources of known rate. The κ terms are a
#           Dirichlet prior on w: each step increases Σ_i ln Σ_g w_g l_ig + κ Σ_g v_g ln w_g.
#
# Method and cost: ``steps`` steps from w = v, O(n) each. The steps are few on purpose: the maximum
# itself is a handful of spikes (Laird), and stopping early keeps the distribution smooth.
# Edge cases: with n = 0 it is the parent.
#
# Reference: Dempster, Laird, Rubin, "Maximum Likelihood from Incomplete Data via the EM
# Algorithm", JRSS B 1977; Laird, "Nonparametric Maximum Likelihood Estimation of a Mixing
# Distribution", JASA 1978.


def _broad() -> Floats:
    density = np.exp(-0.5 * ((LOG_RATES - np.log(1 / 7)) / 2.0) ** 2)
    # The outermost hats are half as wide.
    density[[0, -1]] /= 2
    weights: Floats = density / density.sum()
    return weights


#: Before any evidence: log-normal around once a week, wider by far than any one site
#: (σ = 2 in ln Δ: nine in ten between once in six months and four times a day).
BROAD: Final[Floats] = _broad()


def fit(likelihood: Floats, parent: Floats, strength: float, steps: int) -> Floats:
    """(40,), the weights after so many steps; see the module's text.

    Two sources that are certainly of the first kind, one that is of the second:

    >>> kinds = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> fit(kinds, np.array([0.5, 0.5]), strength=1.0, steps=9).tolist()  # 2.5/4, 1.5/4
    [0.625, 0.375]
    """
    weights = parent
    for _ in range(steps):
        shares = weights * ((1.0 / (likelihood @ weights)) @ likelihood)
        weights = (shares + strength * parent) / (len(likelihood) + strength)
    return weights


def members(group: Rows) -> Iterator[tuple[int, Rows]]:
    """The code of each group, and the rows of its members in ascending order."""
    order = np.argsort(group, kind="stable")
    codes, starts = np.unique(group[order], return_index=True)
    yield from zip(codes.tolist(), np.split(order, starts[1:]), strict=True)


def thinned(rows: Rows, most: int) -> Rows:
    """``most`` of these rows, evenly spaced, or all where they are no more."""
    taken = min(len(rows), most)
    return rows[np.arange(taken) * len(rows) // max(1, taken)]
