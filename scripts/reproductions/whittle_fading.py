"""How fast the items of one source fade, and what one is worth: from the clicks on them.

An item gets ξ clicks in all, on average, of which those at the age x come at the rate ξμe^{−μx}.
It is watched from the age a (when it was found) to the age b (now, or when the clicks were last
fetched). A click at the age x, of which d = x − a and w = b − a, then has the density

    μ e^{−μd} / (1 − e^{−μw})        0 ≤ d ≤ w

whatever ξ is. What is thought of μ is log-Gamma shaped about its mode, weighing as k clicks whose
end was not cut off. Further clicks move the mode to the maximum over μ of

    k (log μ − μ/μ₀) + Σ [ log μ − μd − log(1 − e^{−μw}) ]

that is, with h = μw and S = k/μ₀ + Σd, to the root of the concave

    G(μ) = k + Σ [ 1 − h/(e^h − 1) ] − μS

and each adds its information about log μ, 1 − (h/2)²/sinh²(h/2): 1 if w is long, h²/12 if short.

    x     ages                     of items when they were clicked      (m,), time
    a, b  since, until             ages between which they are watched  (m,) or one for all
    μ₀    Fading.decay             mode so far                          per unit of time
    k     PRIOR_CLICKS + clicks    its weight                           clicks
    μ     result                   decay                                per unit of time

With μ, an item that is watched has Σ (e^{−μa} − e^{−μb}) of its clicks then, the *exposure*, and ξ̄
has the Gamma posterior of clicks in so much exposure.

Method: Newton's steps from the upper end (k + m)/S, which fall to the root as G is concave; from
three to ten of O(m), one if nothing is cut off. Two numbers are kept, in any unit of time.

Edge cases: without clicks μ is ln 2/half-life to the last bit, and ξ̄ what was said of it, 1.
Clicks outside of their window are refused, as is all that is negative, NaN or not finite (but
``until``, which is infinite where no click is cut off).

Reference: exponential fading, and ξ as all the clicks that an item gets: the papers of Avrachenkov
and Borkar, after Lefortier et al. 2013. Differs from the papers in: they take μ and ξ̄ as known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Floats

#: As how many clicks a configured half-life weighs. Few: it is a guess, and clicks are the thing.
PRIOR_CLICKS: Final = 2.0
#: As how much exposure a configured worth weighs, in items watched from birth to the end.
PRIOR_EXPOSURE: Final = 1.0
#: Windows of fewer half-lives than this, by h, have series.
_SHORT: Final = 1e-3
#: Beyond this h a window has no end.
_LONG: Final = 500.0
_TOLERANCE: Final = 1e-12
_STEPS: Final = 60


@dataclass(frozen=True, slots=True)
class Fading:
    """What is known of one source's μ; :meth:`of` begins.

    Two clicks' worth of a half-life of ln 2, hence of a mean age 1, and one click at the age 4:
    three clicks in a time of 6.

    >>> Fading.of(math.log(2)).after([4.0])
    Fading(decay=0.5, clicks=1.0)

    Attributes:
        decay: μ, per unit of time.
        clicks: what it rests on beyond the prior, in clicks that tell all.
    """

    decay: float
    clicks: float = 0.0

    def __post_init__(self) -> None:
        arrays.budget("decay", self.decay)
        arrays.amount("clicks", self.clicks)

    @classmethod
    def of(cls, half_life: float) -> Fading:
        """What is thought before any click.

        Raises:
            ValueError: if the half-life is not a finite number above 0.
        """
        return cls(math.log(2) / arrays.budget("half_life", half_life))

    def after(
        self, ages: ArrayLike, *, since: ArrayLike = 0.0, until: ArrayLike = np.inf
    ) -> Fading:
        """What is known after clicks on items of these ``ages``.

        ``since`` and ``until``, a row a click or one number for all: the ages of the item between
        which its clicks are seen.

        Raises:
            ValueError: as the module says.
        """
        x = arrays.non_negative("ages", np.atleast_1d(np.asarray(ages, dtype=np.float64)))
        if not len(x):
            return self
        start, window = _windows(since, until, len(x))
        _inside(x, start, window)
        weight = PRIOR_CLICKS + self.clicks
        total = weight / self.decay + float((x - start).sum())
        decay = _mode(weight, total, window)
        information = float(_information(decay * window).sum())
        return Fading(decay, self.clicks + information)

    @property
    def deviation(self) -> float:
        """That of log μ."""
        return 1 / math.sqrt(PRIOR_CLICKS + self.clicks)


@dataclass(frozen=True, slots=True)
class Worth:
    """What is known of one source's ξ̄; :meth:`of` begins.

    Three clicks while items passed one item's whole life make, with the prior, four in two.

    >>> Worth.of().after(clicks=3, exposure=1.0).mean
    2.0

    Attributes:
        clicks: those seen, and the prior's.
        exposure: the lives of items in which they were seen, and the prior's.
    """

    clicks: float
    exposure: float

    def __post_init__(self) -> None:
        arrays.amount("clicks", self.clicks)
        arrays.budget("exposure", self.exposure)

    @classmethod
    def of(cls, worth: float = 1.0) -> Worth:
        """What is thought before any item is watched.

        Raises:
            ValueError: if the worth is negative or not finite.
        """
        return cls(arrays.amount("worth", worth) * PRIOR_EXPOSURE, PRIOR_EXPOSURE)

    @property
    def mean(self) -> float:
        """ξ̄, clicks an item."""
        return self.clicks / self.exposure

    @property
    def deviation(self) -> float:
        """That of ξ̄."""
        return math.sqrt(self.clicks) / self.exposure

    def after(self, clicks: float, exposure: float) -> Worth:
        """What is known after so many clicks in so much :func:`exposure`.

        Raises:
            ValueError: if one is negative or not finite.
        """
        seen = arrays.amount("clicks", clicks)
        return Worth(self.clicks + seen, self.exposure + arrays.amount("exposure", exposure))


def exposure(decay: float, since: ArrayLike, until: ArrayLike) -> float:
    """Σ (e^{−μa} − e^{−μb}): of how many items all clicks are seen, if these are watched so long.

    ``since`` and ``until`` are (m,), an item a row, or one of them is a number for all.

    Watched from the half-life to twice the half-life, an item shows a quarter of its clicks.

    >>> round(exposure(math.log(2), [1.0], [2.0]), 12)
    0.25

    Raises:
        ValueError: if the decay is not above 0, or a window is negative or ends before it begins.
    """
    mu = arrays.budget("decay", decay)
    start, window = _windows(since, until, max(np.size(since), np.size(until)))
    with np.errstate(over="ignore"):
        return float((np.exp(-mu * start) * -np.expm1(-mu * window)).sum())


def _windows(since: ArrayLike, until: ArrayLike, length: int) -> tuple[Floats, Floats]:
    """A and w = b − a, each (m,)."""
    start = arrays.non_negative("since", _column(since, length), length)
    end = _column(until, length)
    finite = np.where(np.isposinf(end), 0.0, end)
    arrays.non_negative("until", finite, length)
    early = end < start
    if early.any():
        row = int(np.argmax(early))
        raise ValueError(f"until: row {row} is {end[row]}; accepted is from since, {start[row]}")
    return start, end - start


def _column(values: ArrayLike, length: int) -> Floats:
    given = np.atleast_1d(np.asarray(values, dtype=np.float64))
    return np.full(length, given[0]) if np.ndim(values) == 0 else given


def _inside(ages: Floats, start: Floats, window: Floats) -> None:
    out = (ages < start) | (ages - start > window)
    if out.any():
        row = int(np.argmax(out))
        raise ValueError(
            f"ages: row {row} is {ages[row]}; accepted is from since, {start[row]}, to until, "
            f"{start[row] + window[row]}"
        )


def _mode(weight: float, total: float, window: Floats) -> float:
    """The root of G, where S is ``total``."""
    decay = (weight + len(window)) / total
    for _ in range(_STEPS):
        h = decay * window
        value = weight + float(_one_less_tail(h).sum()) - decay * total
        slope = float(_slope(h).sum()) / decay - total
        step = value / slope
        decay -= step
        if abs(step) <= _TOLERANCE * decay:
            break
    return decay


def _one_less_tail(h: Floats) -> Floats:
    """1 − h/(e^h − 1), from h/2 to 1."""
    short, capped = np.minimum(h, _SHORT), np.clip(h, _SHORT, _LONG)
    return np.where(h < _SHORT, short / 2 - short * short / 12, 1 - capped / np.expm1(capped))


def _slope(h: Floats) -> Floats:
    """H times the derivative of it: [h/(e^h − 1)] [h e^h/(e^h − 1) − 1]."""
    short, capped = np.minimum(h, _SHORT), np.clip(h, _SHORT, _LONG)
    tail = capped / np.expm1(capped)
    return np.where(
        h < _SHORT, short / 2 - short * short / 6, tail * (capped / -np.expm1(-capped) - 1)
    )


def _information(h: Floats) -> Floats:
    """1 − (h/2)²/sinh²(h/2), from h²/12 to 1."""
    short, half = np.minimum(h, _SHORT), np.clip(h, _SHORT, _LONG) / 2
    return np.where(h < _SHORT, short * short / 12, 1 - (half / np.sinh(half)) ** 2)
