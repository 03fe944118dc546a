"""Half-lives and values of the items of ephemeral sources, learnt from clicks.

An item of source s that a list shows at the age x, at a position seen with probability a, is opened
with probability a θ_s e^{−μ_s x}. The likelihood that n_s clicks, at ages x_i, were on these
impressions and not on others does not depend on θ:

    L_s(μ) = −μ Σ x_i − n_s log Σ_j a_j e^{−μ x_j}      j: all impressions of its items

so that ages at which items were shown without a click count, and ages without impressions do not.
μ_s maximises L_s + k (log μ − μ/m), a prior about m with the weight of k = 2 clicks: the spread of
half-lives between sources is about 2. m is estimated from the sources, each with the weight r_s =
n_s/(n_s + k), and from the set half-life, which counts as two sources:

    log m = (2 log (ln 2 / set) + Σ r_s log μ_s) / (2 + Σ r_s)

The value ξ_s of a new item, relative to the items of all sources, is θ_s divided by the θ of all
impressions, shrunk towards 1 by the same number of clicks:

    ξ_s = (n_s + k) / (θ D_s + k),   D_s = Σ_j a_j e^{−μ_s x_j},   θ = Σ n_s / Σ D_s

Edge cases: a source without clicks keeps m, and ξ below 1; without any click m is the set value.
Items that lists show for long because they appeal to many make half-lives too long.

Reference: ours. ξ and μ are as in Avrachenkov and Borkar 2018, who take them as known.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from freshet.scheduler.arrays import Bools, Floats, Ints, rows_among

#: k, in clicks, and the weight of the set half-life, in sources.
_PRIOR_OPENINGS: Final = 2.0
_PRIOR_SOURCES: Final = 2.0
#: Half-lives in days, from a minute to ten years, found by bisection of their logarithm.
_SHORTEST, _LONGEST = 1 / 1_440, 3_650.0
_HALVINGS: Final = 32
_ROUNDS: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class LearntItems:
    """Half-lives in days, values ξ and clicks of the items of k sources, by ascending ids; (k,)."""

    page_id: Ints
    half_life: Floats
    value: Floats
    opens: Floats

    def of(self, page_id: Ints) -> tuple[Floats, Floats, Floats]:
        """Return half-life, value and clicks of these pages, (m,) each; nan, 1, nan if unknown."""
        unknown = np.full(len(page_id), np.nan)
        found = unknown, np.ones(len(page_id)), unknown.copy()
        row, is_known = rows_among(self.page_id, page_id)
        for column, learnt in zip(found, (self.half_life, self.value, self.opens), strict=True):
            column[is_known] = learnt[row]
        return found


#: The result without clicks.
NOTHING: Final = LearntItems(np.zeros(0, np.int64), *[np.zeros(0)] * 3)


def learned(
    page_id: Ints, age: Floats, view: Floats, opened: Bools, *, half_life: float
) -> LearntItems:
    """Return the estimates for the sources ``page_id`` (j,) from j impressions of their items.

    ``age`` (j,) in days, ``view`` (j,) in (0, 1]; ``half_life`` is the default, in days.
    """
    if not opened.any():
        return NOTHING
    ids, source = np.unique(page_id, return_inverse=True)
    opens = np.bincount(source, opened).astype(np.float64)
    ages = np.bincount(source, opened * age)
    set_decay = usual = np.log(2) / half_life

    def discounted(decay: Floats, power: Floats | float = 1.0) -> Floats:
        return np.asarray(np.bincount(source, view * np.exp(-decay[source] * age) * power))

    def slope(decay: Floats) -> Floats:
        mean = discounted(decay, age) / np.maximum(discounted(decay), np.finfo(float).tiny)
        return np.asarray(opens * mean - ages + _PRIOR_OPENINGS * (1 / decay - 1 / usual))

    weight, decay = opens / (opens + _PRIOR_OPENINGS), np.full(len(ids), usual)
    for _ in range(_ROUNDS):
        decay = _root(slope, len(ids))
        known = _PRIOR_SOURCES * np.log(set_decay) + weight @ np.log(decay)
        usual = np.exp(known / (_PRIOR_SOURCES + weight.sum()))
    views = discounted(decay)
    expected = opens.sum() / views.sum() * views
    value = (opens + _PRIOR_OPENINGS) / (expected + _PRIOR_OPENINGS)
    return LearntItems(ids, np.log(2) / decay, value, opens)


def _root(falling: Callable[[Floats], Floats], n: int) -> Floats:
    """Return the decays (n,) at which the values of a decreasing function are 0."""
    low, high = (np.full(n, np.log(np.log(2) / days)) for days in (_LONGEST, _SHORTEST))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_above = falling(np.exp(middle)) > 0
        low, high = np.where(is_above, middle, low), np.where(is_above, high, middle)
    return np.asarray(np.exp(low))
