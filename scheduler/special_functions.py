"""Special functions that the policies need.

Equation numbers refer to the NIST Digital Library of Mathematical Functions (DLMF). Arguments are
not checked; relative errors are below the bound that each function states.
"""

import math
from typing import Final

import numpy as np
from numpy.polynomial.polynomial import polyval

from freshet.scheduler.arrays import Floats

#: For exp1, in ascending powers of 1/x: the rational function that equals x eˣ E₁(x) at 20 points.
_EXP1_ABOVE: Final = (
    1.0, 43.706119982940103, 738.00070428827977, 6219.9039433256373, 28278.139189806645,
    70185.999230279349, 92198.908027756466, 59386.4365449011, 16146.247209920585,
    1330.8287749815397, 7.6054951530802235,
)  # fmt: skip
_EXP1_BELOW: Final = (
    1.0, 44.706119982940103, 780.70682427121988, 6917.198527630968, 33878.160788801371,
    93961.057027299625, 145814.60560775947, 121071.51317689098, 49234.248868401724,
    8273.872045318724, 386.79373097105166,
)  # fmt: skip

#: Rows computed together: they stay in the processor's cache.
_ROWS: Final = 1 << 14
#: Terms below this share of a sum do not change it.
_LEAST: Final = 1e-17


def exp1(x: Floats) -> Floats:
    """Return the exponential integral E₁(x) = ∫ₓ^∞ e^{−t}/t dt (n,), x from 1 to inf; to 1e-15.

    A rational function in 1/x as in Abramowitz and Stegun, 5.1.56, of degree 10 instead of 4.

    >>> exp1(np.array([1.0, np.inf])).round(6).tolist()
    [0.219384, 0.0]
    """
    inverse = 1 / x
    return np.exp(-x) * inverse * polyval(inverse, _EXP1_ABOVE) / polyval(inverse, _EXP1_BELOW)


def gammainc(n: int, x: Floats) -> Floats:
    """Return P(n, x), the probability that a Poisson number with mean x is n or more; to 3e-13.

    Below x = n a sum of non-negative terms, from x = n on the sum of the complement:

        P(n, x) = e^{−x} xⁿ/n! (1 + x/(n+1) (1 + x/(n+2) (1 + …)))                       (8.7.1)
                = 1 − e^{−x} x^{n−1}/(n−1)! (1 + (n−1)/x (1 + (n−2)/x (1 + …)))          (8.4.9)

    n is at least 1, x an array of any shape from 0 to inf. Above n = 200 the error is 2e-15 n.

    >>> gammainc(2, np.array([0.0, 1.0, np.inf])).round(6).tolist()  # 1 − 2/e
    [0.0, 0.264241, 1.0]
    """
    given = x.ravel()
    found = np.empty_like(given)
    stirling = math.lgamma(n + 1) - n * math.log(n) + n
    # More terms than the slowest sum (x = n) needs.
    steps = np.arange(1.0, 50.0 + 10 * math.sqrt(n))
    for start in range(0, len(given), _ROWS):
        # Beyond this, P is 1.
        t = np.minimum(given[start : start + _ROWS], 2 * n + 800.0) / n
        with np.errstate(divide="ignore"):
            density = np.exp(n * (np.log(t) + 1 - t) - stirling)
        below = t < 1
        part = np.empty_like(t)
        part[below] = density[below] * _nested(t[below], n / (n + steps))
        inverse = 1 / t[~below]
        part[~below] = 1 - density[~below] * inverse * _nested(inverse, 1 - steps[:n] / n)
        found[start : start + _ROWS] = part
    return found.reshape(x.shape)


def _nested(t: Floats, factors: Floats) -> Floats:
    """Return 1 + f₁t (1 + f₂t (1 + …)) (n,), with as many ``factors`` as change the result."""
    largest = float(t.max(initial=0.0))
    factors = factors[np.cumprod(largest * factors) > _LEAST]
    if len(t) * len(factors) < _ROWS:
        terms: Floats = np.multiply.accumulate(np.multiply.outer(t, factors), axis=1)
        return np.asarray(1 + terms.sum(axis=1), np.float64)
    total = np.ones_like(t)
    for factor in factors[::-1].tolist():
        total *= t
        total *= factor
        total += 1
    return total


#: c₁, c₂, … of DLMF 4.13.7: y in powers of √(2s), which converge below 2√π.
_BRANCH: Final[list[float]] = [0.0, 1.0]
for _n in range(2, 14):
    _sum = sum(k * _BRANCH[k] * _BRANCH[_n + 1 - k] for k in range(2, _n))
    _BRANCH.append((_BRANCH[_n - 1] - _sum) / (_n + 1))


def lambert(level: Floats) -> Floats:
    """Return y ≥ 0 with y − ln(1 + y) = s (n,), s from 0 to inf; to 1e-14.

    This is −1 − W₋₁(−e^{−1−s}), the lower real branch of Lambert's W function. As a function of s
    it loses no digits at the branch point. Near the branch point a series in √(2s) (4.13.8),
    elsewhere Newton's method, which decreases from √(2s) + s to the root.

    >>> lambert(np.array([0.0, 1 - np.log(2), np.inf])).round(9).tolist()
    [0.0, 1.0, inf]
    """
    root = np.sqrt(2) * np.sqrt(level)
    found: Floats = np.where(root < 0.25, polyval(np.minimum(root, 0.25), _BRANCH), root + level)
    far = (root >= 0.25) & np.isfinite(level)
    y, wanted = found[far], level[far]
    for _ in range(20):
        step = (y - np.log1p(y) - wanted) * (1 + 1 / y)
        y = y - step
        if np.all(np.abs(step) <= 1e-14 * y):
            break
    found[far] = y
    return found


def beta_hazard(a: float, b: float, x: float, rest: float) -> float:
    """Return xᵃ (1 − x)ᵇ / (B(a, b) I_x(a, b)), I the regularised incomplete beta function.

    ``rest`` is 1 − x; all are above 0. Computed with the continued fraction of I (8.17.22), or of 1
    − I where x is large; to 1e-13, in about √max(a, b) steps. Where x is large and b below 0.01,
    the difference of nearly equal numbers leaves an error of about 1e-15/b.

    >>> round(beta_hazard(2.0, 1.0, 0.5, 0.5), 9)  # I is x², and 1/B is 2
    1.0
    """
    if x < (a + 1) / (a + b + 2):
        return a * _fraction(a, b, x)
    # Distance of x from a/(a + b); in this form, the large terms of the logarithm cancel.
    beyond = b * x - a * rest
    late = math.log1p(-beyond / b) if beyond < b / 2 else math.log(rest * (a + b) / b)
    exponent = (
        a * math.log1p(beyond / a) + b * late + _stirling(a + b) - _stirling(a) - _stirling(b)
    )
    density = math.sqrt(a / (a + b) * b / (2 * math.pi)) * math.exp(exponent)
    return density / (1 - density / (b * _fraction(b, a, rest)))


def _fraction(a: float, b: float, x: float) -> float:
    """Return xᵃ (1 − x)ᵇ / (a B(a, b) I_x(a, b)) = 1 + d₁/(1 + d₂/(1 + …)), by Lentz's method."""
    value, above, below, change, m = 1.0, 1.0, 0.0, 2.0, 0
    while abs(change - 1) > 1e-15:
        m += 1
        half, odd = divmod(m, 2)
        over = -(a + half) if odd else half
        d = over / (a + (m - 1)) * (((a + b + half) if odd else (b - half)) / (a + m) * x)
        below = 1 / (1 + d * below)
        above = 1 + d / above
        change = above * below
        value *= change
    return value


def _stirling(z: float) -> float:
    """Return ln Γ(z) − (z − ½) ln z + z − ½ ln 2π (5.11.1)."""
    if z > 16:
        return 1 / (12 * z) - 1 / (360 * z**3) + 1 / (1260 * z**5) - 1 / (1680 * z**7)
    return math.lgamma(z) - (z - 0.5) * math.log(z) + z - 0.5 * math.log(2 * math.pi)
