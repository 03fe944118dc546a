"""The Whittle index at any state, also one that no crawl leads to.

Between two visited states, x_k = u(1 − α^k)/(1 − α), the index γ of
:mod:`freshet.scheduler.policies.whittle` is a straight line, so a ceiling that rounding has lifted
by one changes nothing:

    γ(x) = γ(x_η) + η (1 − α)(x − x_η)/C,     η(x) = ⌈log_α(1 − x/u*)⌉

Reference: Avrachenkov and Borkar 2018, Theorem 1. Differs from the paper in: where its log⁺ gives
0, x ≥ u*, the index is x/C. There the state can only fall and waiting can only lose: at the price
x/C nothing but a crawl at once equals never crawling at all.
"""

from __future__ import annotations

import numpy as np

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Floats
from freshet.scheduler.ephemeral.sources import EphemeralSources

#: How near to a whole number of periods is one, as a share: far above what rounding does.
_WHOLE = 1e-9


def index_at(sources: EphemeralSources, state: Floats) -> Floats:
    """Return γ(x), (n,), of a state x (n,) of each source.

    Halfway between the states after one and two periods, u and 1½ u, it is halfway between
    their indices; above u*, here 2, it is the state.

    >>> sources = EphemeralSources.of(2 * np.log(2), 1.0, np.log(2) * np.ones(4))
    >>> index_at(sources, np.array([1.0, 1.25, 2.0, 7.0])).round(6).tolist()
    [0.5, 0.75, 2.0, 7.0]

    Raises:
        ValueError: if a state is not a finite number of at least 0.
    """
    x = arrays.non_negative("state", state)
    fading = sources.decay > 0
    eta = _periods_to_reach(sources, x)
    inside = fading & np.isfinite(eta)
    k = np.where(inside, eta, 0.0)
    slope = k * -np.expm1(-sources.decay * sources.period) / sources.cost
    on_the_line = sources.index(k) + slope * (x - sources.utility_after(k))
    # What never fades loses nothing by waiting; what is above u* is worth itself.
    alone = np.where(fading, x / sources.cost, 0.0)
    return np.maximum(np.where(inside, on_the_line, alone), 0.0)


def _periods_to_reach(sources: EphemeralSources, x: Floats) -> Floats:
    """Return η(x), (n,); inf where the state is u* or above, or never fades."""
    inside = (sources.decay > 0) & (x < sources.ceiling)
    share = np.divide(x, sources.ceiling, out=np.zeros_like(x), where=inside)
    inside &= share < 1
    step = sources.decay * sources.period
    left = -np.log1p(-np.where(inside, share, 0.0))
    with np.errstate(over="ignore"):
        exact = np.divide(left, step, out=np.full_like(x, np.inf), where=inside)
    near = np.where(np.isfinite(exact), np.rint(exact), 0.0)
    whole = np.isfinite(exact) & (np.abs(exact - near) <= _WHOLE * near)
    return np.where(whole, near, np.ceil(exact))
