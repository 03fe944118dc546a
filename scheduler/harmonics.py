"""Harmonic numbers of a random number of changes: E H(N).

The harmonic cost counts N uncrawled changes as H(N) = 1 + 1/2 + … + 1/N. One integral serves
every law of N, because

    H(n) = ∫₀¹ (1 − (1 − u)ⁿ)/u du,   so   E H(N) = ∫₀¹ (1 − E[(1 − u)ᴺ])/u du,

and E[(1 − u)ᴺ] is e^{−mu} for a Poisson number with mean m, (1 − qu)ᵏ for a binomial one, and
their product for the sum of the two.

Every function takes one number or an array of any shape, and returns the same. Relative
errors are below 1e-13. Nothing is checked here: :mod:`freshet.scheduler.freshness` and the policies
check their arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import overload

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy.special import digamma, exp1

from freshet.scheduler.arguments import Floats, Ints

# Below 1 the closed forms subtract nearly equal numbers, while the Taylor series alternate
# with falling terms: the first one left out is below 1/20!.
_TERMS = range(1, 20)
_EIN = [(-1) ** (k + 1) / (k * factorial(k)) for k in _TERMS]
_EIN_MEAN = [(-1) ** (k + 1) / (k * factorial(k + 1)) for k in _TERMS]
_CHANGED_MEAN = [(-1) ** (k + 1) / factorial(k + 1) for k in _TERMS]

#: H(0), H(1), … without rounding where differences such as H(1) − 1 must vanish.
_SMALL = np.concatenate(([0.0], np.cumsum(1 / np.arange(1.0, 64.0))))

#: Of Gauss-Legendre on (−1, 1): exact for polynomials up to degree 63.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
#: What e^{−s} leaves beyond this s is below the last bit of any result.
_TAIL = 40.0


@overload
def ein(m: float) -> float: ...
@overload
def ein(m: Floats) -> Floats: ...
def ein(m: float | Floats) -> float | Floats:
    """Ein(m) = E H(N) for a Poisson number N of changes with mean m.

        Ein(m) = ∫₀ᵐ (1 − e^{−s})/s ds = γ + ln m + E₁(m)

    Symbols: m is ``m``, the mean number of changes, 0 to inf; γ Euler's constant; E₁ the
    exponential integral.

    Method: below 1 the series m − m²/(2·2!) + m³/(3·3!) − …, above it the closed form.

    Reference: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 5.1.39, 5.1.40.

    >>> ein(0.0), round(ein(1.0), 6)  # 1 - 1/4 + 1/18 - 1/96 + …
    (0.0, 0.7966)
    """
    return _piecewise(m, _EIN, lambda x: np.euler_gamma + np.log(x) + exp1(x))


@overload
def ein_mean(x: float) -> float: ...
@overload
def ein_mean(x: Floats) -> Floats: ...
def ein_mean(x: float | Floats) -> float | Floats:
    """The mean of Ein over (0, x): E H(N) at a random moment between evenly spaced crawls.

        (1/x) ∫₀ˣ Ein(s) ds = Ein(x) − 1 + (1 − e^{−x})/x

    by parts, with s·dEin(s)/ds = 1 − e^{−s}. Near 0 it is x/2 − x²/12 + …; for large x it tends
    to ln x + γ − 1.

    Symbols: x is ``x``, the mean number of changes from one crawl to the next, 0 to inf.

    >>> ein_mean(0.0), round(ein_mean(1.0), 6)  # 0.7966 - 1/e
    (0.0, 0.42872)
    """
    return _piecewise(
        x, _EIN_MEAN, lambda x: np.euler_gamma + np.log(x) + exp1(x) - 1 - np.expm1(-x) / x
    )


@overload
def ein_integral(x: float) -> float: ...
@overload
def ein_integral(x: Floats) -> Floats: ...
def ein_integral(x: float | Floats) -> float | Floats:
    """∫₀ˣ Ein(s) ds = x·Ein(x) − x + 1 − e^{−x}, the area under :func:`ein`.

    Symbols: x is ``x``, 0 to inf. Divided by Δ it is the harmonic cost, in days, that a source
    of importance 1 and change rate Δ runs up within x/Δ days after a crawl.

    >>> ein_integral(0.0), round(ein_integral(1.0), 6)  # 0.7966 - 1/e
    (0.0, 0.42872)
    """
    return x * ein_mean(x)


@overload
def changed_mean(x: float) -> float: ...
@overload
def changed_mean(x: Floats) -> Floats: ...
def changed_mean(x: float | Floats) -> float | Floats:
    """The mean of 1 − e^{−s} over (0, x): P(N > 0) at a random moment between even crawls.

        1 − (1 − e^{−x})/x,   near 0   x/2 − x²/6 + …

    Symbols: x is ``x``, the mean number of changes from one crawl to the next, 0 to inf.

    >>> changed_mean(0.0), round(changed_mean(1.0), 6)  # 1/e
    (0.0, 0.367879)
    """
    return _piecewise(x, _CHANGED_MEAN, lambda x: 1 + np.expm1(-x) / x)


@overload
def harmonic_number(n: float) -> float: ...
@overload
def harmonic_number(n: Floats | Ints) -> Floats: ...
def harmonic_number(n: float | Floats | Ints) -> float | Floats:
    """H(n) = 1 + 1/2 + … + 1/n = ψ(n + 1) + γ; H(0) = 0.

    Symbols: n is ``n``, a whole number of at least 0 (as int or float; inf gives inf); ψ the
    digamma function, used from n = 64 on.

    >>> harmonic_number(0), harmonic_number(1), harmonic_number(2)
    (0.0, 1.0, 1.5)
    """
    whole = np.asarray(n, dtype=np.float64)
    small = whole < len(_SMALL)
    if small.all():
        return _same_kind(_SMALL[whole.astype(np.intp)])
    known = _SMALL[np.where(small, whole, 0).astype(np.intp)]
    return _same_kind(np.where(small, known, digamma(whole + 1) + np.euler_gamma))


@overload
def noisy_harmonic(m: float, k: int, q: float) -> float: ...
@overload
def noisy_harmonic(m: Floats, k: Floats | Ints | int, q: Floats | float) -> Floats: ...
def noisy_harmonic(m: float | Floats, k: int | Floats | Ints, q: float | Floats) -> float | Floats:
    """E H(N) for N = Poisson(m) + Bin(k, q): unannounced changes, and signals that were true.

        ∫₀¹ (1 − e^{−mu} (1 − qu)ᵏ)/u du

    Special cases: for k = 0 or q = 0 it is Ein(m), for m = 0 and q = 1 it is H(k).

    Symbols (arrays broadcast): m is ``m``, the mean number of unannounced changes, at least 0
    and finite; k is ``k``, the number of signals; q is ``q``, their precision, 0 to 1.

    Method: with M = m + kq and s = Mu the integral equals

        Ein(M) + ∫₀ᴹ e^{−s} (1 − e^{k(ln(1 − qu) + qu)})/s ds,

    a sum of two terms that are not negative. The second integrand is smooth and has vanished
    at s = 40: Gauss-Legendre with 32 nodes on (0, min(M, 40)).

    >>> round(noisy_harmonic(0.0, 2, 1.0), 12), round(noisy_harmonic(0.0, 1, 0.5), 12)
    (1.5, 0.5)
    """
    unannounced, signals, precision = np.broadcast_arrays(
        np.asarray(m, dtype=np.float64),
        np.asarray(k, dtype=np.float64),
        np.asarray(q, dtype=np.float64),
    )
    mean = unannounced + signals * precision
    end = np.minimum(mean, _TAIL)
    # qs/M without 0/0 where nothing is expected: there s = 0, and the term vanishes.
    scale = precision / np.where(mean > 0, mean, 1.0)
    result = np.array(ein(mean), ndmin=mean.ndim)
    for node, weight in zip((_NODES + 1) / 2, _WEIGHTS / 2, strict=True):
        s = end * node
        qu = scale * s
        result -= weight / node * np.exp(-s) * np.expm1(signals * (np.log1p(-qu) + qu))
    return _same_kind(result)


def _piecewise(
    x: float | Floats, series: Sequence[float], closed: Callable[[Floats], Floats]
) -> float | Floats:
    """x·(series in x) below 1, the closed form from 1 on."""
    given = np.asarray(x, dtype=np.float64)
    small = given < 1
    if small.all():
        return _same_kind(given * polyval(given, series))
    result = np.empty_like(given)
    result[small] = given[small] * polyval(given[small], series)
    result[~small] = closed(given[~small])
    return _same_kind(result)


def _same_kind(result: Floats) -> float | Floats:
    """A number where a number was given."""
    return result if result.ndim else float(result)
