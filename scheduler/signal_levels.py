"""The harmonic worth of a source with noisy signals, fast.

:func:`scheduler.signal_paths.harmonic_worth` is the equation; this module evaluates it in about
two microseconds. Model, rule and units are told there. Let x = Ein⁻¹(L) be the effective age: the
age at which a source without signals (r = 0) has the level L.

1. Up to the level L = q one signal is enough to stop, so only the path without signals counts,
   with Ein(as) = L, that is x = as, and

       W = [Ein(x) + Ein(gx/a) − Ein(x + gx/a)]/g.

2. Far above q signals are many and each of them is little: a fluid. The changes that are
   waiting, as + qk on average, grow at rate 1, so by Wald's equation E[T] is x plus what the
   last jump overshoots. Jumps of q at rate g overshoot by gq²/2 = qr/2; the level of Bin(k, q)
   changes is a little higher than that of as many Poisson ones, which takes a part of it back:

       dW/dL = E[T] = x + (qr/2) x/(eˣ − 1),  and  W = x − (1 − qr/2)(1 − e^{−x}) + constant.

   For q = r = 1 this is the μn/Δ of complete observations, H⁻¹(L) = x − 1/2; for r = 0 it is
   the index without signals, x − 1 + e^{−x}.
3. Past q, W is the value of 1. at q plus the increase of 2. plus q² times a correction, which
   is 0 at L = q, constant far above it and less than 7 % of W between: interpolated linearly
   in a table over (r, q, ln(x/x_q)) that is computed from the exact sum at the first use, in a
   quarter of a second.

The relative error against the exact sum is at most 4e-3 (2.5e-3 where recall is below 0.95) and
5e-5 in the median. W rises with the level, interpolated or not, so the index never falls on a
path.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.interpolate import RegularGridInterpolator
from scipy.special import exp1

from freshet.scheduler.arguments import Floats, Ints
from freshet.scheduler.harmonics import ein, noisy_harmonic
from freshet.scheduler.signal_paths import ein_inverse, harmonic_worth

# Where every change is told of (r near 1), W has a kink at each level that a whole number of
# signals has: nodes lie closer there, and closer between the first few of these levels.
_RECALL = np.concatenate(
    [np.arange(8) / 10, [0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.995, 1]]
)
_PRECISION = np.array([0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1])
_BEYOND = np.concatenate([np.arange(60) / 40, np.arange(1.5, 2, 0.05), [2, 2.25, 2.5, 3, 3.4]])

_LEVEL_X, _LEVEL_W = np.polynomial.legendre.leggauss(10)
_SHARE: Floats = (_LEVEL_X + 1) / 2
_D_SHARE: Floats = _LEVEL_W / 2


def worth(recall: Floats, precision: Floats, elapsed: Floats, signals: Ints) -> Floats:
    """W at the level of age ``elapsed`` (in 1/Δ) and ``signals`` (n,), in units of μ/Δ.

    ``recall`` and ``precision`` are above 0 and at most 1. About 2.5 µs a row.

    >>> half = np.array([0.5])  # all changes are told of, every other signal is false
    >>> worth(half * 2, half, half, np.array([1])).tolist()  # a gap of q for 1/g days
    [0.25]
    """
    x = _effective_age(recall, precision, elapsed, signals)
    x_one = ein_inverse(precision)
    # Rounding must not take one signal's level below q, where silence is assumed.
    x = np.where(signals > 0, np.maximum(x, x_one), x)
    alone = np.minimum(x, x_one)
    total = _in_silence(recall, precision, alone)
    rows = np.flatnonzero(x > x_one)
    if len(rows):
        r, q = recall[rows], precision[rows]
        total[rows] += _fluid(r, q, x[rows]) - _fluid(r, q, alone[rows])
        total[rows] += q**2 * _correction(r, q, np.log(x[rows]) - np.log(alone[rows]))
    # Complete observations need no approximation.
    return np.where((recall == 1) & (precision == 1), signals, total)


def _effective_age(recall: Floats, precision: Floats, elapsed: Floats, signals: Ints) -> Floats:
    """The age x = Ein⁻¹(D/μ) (n,), in 1/Δ, at which a source without signals costs as much."""
    x = (1 - recall) * elapsed
    heard = np.flatnonzero(signals > 0)
    x[heard] = ein_inverse(noisy_harmonic(x[heard], signals[heard], precision[heard]))
    return x


def _in_silence(recall: Floats, precision: Floats, x: Floats) -> Floats:
    """W up to the level of one signal: [Ein(x) + Ein(z) − Ein(x + z)]/g, z = gx/a."""
    a, g = 1 - recall, recall / precision
    z = np.divide(g * x, a, out=np.where(x > 0, np.inf, 0.0), where=a > 0)
    total: Floats = np.empty_like(x)
    few = z < 1
    # The same as an integral, without the cancellation of small z.
    zt, xt = z[few, None] * _SHARE, x[few, None] * _SHARE
    total[few] = np.expm1(-zt) * np.expm1(-xt) @ (_D_SHARE / _SHARE)
    z, x = z[~few], x[~few]
    total[~few] = ein(x) - np.log1p(x / z) - exp1(x + z) + exp1(z)
    return total / g


def _fluid(recall: Floats, precision: Floats, x: Floats) -> Floats:
    """W far above the level of one signal, but for a constant."""
    return x + (1 - precision * recall / 2) * np.expm1(-x)


def _correction(recall: Floats, precision: Floats, beyond: Floats) -> Floats:
    found: Floats = _table()((recall, precision, np.clip(beyond, 0, _BEYOND[-1])))
    return found


@cache
def _table() -> RegularGridInterpolator:
    """(W − W(q) − fluid)/q² over recall, precision and ln(x/x_q)."""
    # At 1e-4 the limit of worthless signals is reached to the accuracy of the table.
    r, q, beyond = np.meshgrid(
        np.maximum(_RECALL, 1e-4), np.maximum(_PRECISION, 1e-4), _BEYOND, indexing="ij"
    )
    x = ein_inverse(q) * np.exp(beyond)
    exact = harmonic_worth(r.ravel(), q.ravel(), ein(x).ravel()).reshape(r.shape)
    rest = exact - _fluid(r, q, x)
    return RegularGridInterpolator((_RECALL, _PRECISION, _BEYOND), (rest - rest[..., :1]) / q**2)
