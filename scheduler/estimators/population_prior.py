"""The distribution of change rates in a population, from what is known of its members.

Each source i has a likelihood L_i over its rate (rate_grid). With the prior a mixture of hat
functions h_g of weights w_g, and l_ig = Σ L_i h_g, the log-likelihood of the whole population is
Σ_i ln Σ_g w_g l_ig: concave in w. It is increased by expectation and maximisation,

    w_g ← [ Σ_i w_g l_ig / Σ_k w_k l_ik + κ v_g ] / (n + κ).

Where
    l_ig  ``likelihood``, (n, 40), each row up to a factor;
    w_g   the weights, (40,), sum 1;
    v_g   ``parent``, (40,), what the weights shrink to;
    κ     ``strength``: the parent counts like so many sources of known rate. The κ terms are a
          Dirichlet prior on w: each step increases Σ_i ln Σ_g w_g l_ig + κ Σ_g v_g ln w_g.

Method and cost: ``steps`` steps from w = v, O(n) each. The steps are few on purpose: the maximum
itself is a handful of spikes (Laird), and stopping early keeps the distribution smooth.
Edge cases: with n = 0 it is the parent.

Reference: Dempster, Laird, Rubin, "Maximum Likelihood from Incomplete Data via the EM
Algorithm", JRSS B 1977; Laird, "Nonparametric Maximum Likelihood Estimation of a Mixing
Distribution", JASA 1978.

Two sources that are certainly of the first kind, one that is of the second:

>>> kinds = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
>>> fit(kinds, np.array([0.5, 0.5]), strength=1.0, steps=9).tolist()  # 2.5/4, 1.5/4
[0.625, 0.375]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from freshet.scheduler.arguments import Floats
from freshet.scheduler.estimators.rate_grid import LOG_RATES
from freshet.scheduler.sources import Rows


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
    """(40,), the weights after so many steps; see the module's text."""
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
