"""Harmonic and binary costs of staleness: in closed form, and along a known history.

Let N(t) be the number of a source's changes since its last crawl. Its costs are long-run time
averages, weighted with its importance μ. The cost of a policy is the sum over its sources:

    harmonic  J_h = μ E H(N),  H(n) = 1 + 1/2 + … + 1/n    every further change hurts less
    binary    J_b = μ P(N > 0)                             stale is stale

Changes are a Poisson process of rate Δ. Sources with incomplete observations (W⁻ in the paper) are
crawled by the clock, sources with complete observations (Wᵒ) when a signal announces a change; each
at random or regularly. The costs of these four ways of crawling depend only on the distribution of
N at a random moment:

    crawled                              law of N                   E H(N)       P(N > 0)
    by the clock, Poisson of rate ρ      geometric, mean x = Δ/ρ    ln(1 + x)    x/(1 + x)
    by the clock, every 1/ρ days         Poisson, with a mean that  Ein(x) − 1   1 − (1 − e^{−x})/x
                                         is uniform on (0, x)       + (1 − e^{−x})/x
    on a signal, with probability p      geometric, mean (1 − p)/p  −ln p        1 − p
    on every k-th signal                 uniform on 0 … k − 1       H(k) − 1     1 − 1/k

Every cost takes columns of one row a source:
    importance: μ (n,), a weight of at least 0.
    change_rate: Δ (n,), changes per day, at least 0.
    crawl_rate: ρ (n,), crawls per day, at least 0; with complete observations pΔ, at most Δ.
    complete_observations: (n,), True where signals trigger the crawls; all False by default.
    crawling: ``"poisson"`` (lines 1 and 3) or ``"periodic"`` (2 and 4, k = ⌈1/p⌉).

Edge cases: for a source never crawled (ρ = 0) the harmonic cost is inf and the binary cost μ; a
source without importance or without changes costs 0 at any crawl rate. Bad values raise ValueError,
naming the argument and the row; so does a crawl rate above the change rate of a source with
complete observations (a relative excess up to 1e-9 counts as rounding).

Numerical form: x, or (1 − p)/p from the exact difference Δ − pΔ; relative errors stay below 1e-12
for Δ/ρ from 1e-12 to 1e12. One pass over the columns in pieces that stay in the processor's cache.

Reference: Kolobov, Peres, Lu, Horvitz, "Staying up to Date with Online Content Changes Using
Reinforcement Learning for Scheduling", NeurIPS 2019: eq. 1 and 2, eq. 4 (Prop. 1), eq. 6 (Prop. 4),
and eq. 8 for both classes together. Differs from the paper in: the paper has no regular crawling
(lines 2 and 4), which costs less at the same rates.

*Harmonic numbers.* The harmonic cost counts N uncrawled changes as H(N). One integral serves every
distribution of N, because

    H(n) = ∫₀¹ (1 − (1 − u)ⁿ)/u du,   so   E H(N) = ∫₀¹ (1 − E[(1 − u)ᴺ])/u du,

and E[(1 − u)ᴺ] is e^{−mu} for a Poisson number with mean m, (1 − qu)ᵏ for a binomial one, and
their product for the sum of the two. These functions take one number or an array of any shape and
return the same, with relative errors below 1e-13; their arguments are not checked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.policy import Crawling, CrawlPlan
from freshet.scheduler.sources import SourceTable
from freshet.scheduler.special_functions import exp1

#: Change rates, crawl rates and classes of some rows → the figure of each at importance 1.
_Formula: TypeAlias = Callable[[Floats, Floats, Bools], Floats]
_Columns: TypeAlias = tuple[Floats, Floats, Floats, Bools]
#: One number, or an array of any shape.
Number = TypeVar("Number", float, Floats)

_ROWS = 1 << 14
#: Tolerance for rounding: of a computed crawl rate pΔ at its bound, and of 1/p at a whole number.
_ROUNDING = 1e-9

# Below 1 the closed forms subtract nearly equal numbers. The Taylor series alternate with
# decreasing terms there: the first omitted term is below 1/20!.
_TERMS = range(1, 20)
_EIN = [(-1) ** (k + 1) / (k * factorial(k)) for k in _TERMS]
_EIN_MEAN = [(-1) ** (k + 1) / (k * factorial(k + 1)) for k in _TERMS]
_CHANGED_MEAN = [(-1) ** (k + 1) / factorial(k + 1) for k in _TERMS]

#: H(0), H(1), … without rounding, so that differences such as H(1) − 1 vanish exactly.
_SMALL = np.concatenate(([0.0], np.cumsum(1 / np.arange(1.0, 64.0))))

#: Gauss-Legendre quadrature on (−1, 1): exact for polynomials up to degree 63.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
#: Beyond this s, the rest of the integral of e^{−s} is below the last bit of any result.
_TAIL = 40.0


@dataclass(frozen=True, slots=True)
class Costs:
    """Both costs of each source, (n,): time averages, weighted with importance."""

    harmonic: Floats
    binary: Floats


def harmonic_cost(
    importance: ArrayLike,
    change_rate: ArrayLike,
    crawl_rate: ArrayLike,
    *,
    complete_observations: ArrayLike | None = None,
    crawling: Crawling = "poisson",
) -> float:
    """Return J_h, the sum over all sources.

    >>> round(harmonic_cost([2.0, 3.0], [1.0, 4.0], [1.0, 4.0]), 6)  # 5 ln 2
    3.465736
    """
    columns = _checked(importance, change_rate, crawl_rate, complete_observations, crawling)
    return float(_each(_HARMONIC[crawling], columns).sum())


def binary_cost(
    importance: ArrayLike,
    change_rate: ArrayLike,
    crawl_rate: ArrayLike,
    *,
    complete_observations: ArrayLike | None = None,
    crawling: Crawling = "poisson",
) -> float:
    """Return J_b, the sum over all sources.

    >>> binary_cost([2.0, 4.0], [1.0, 1.0], [1.0, 0.75], complete_observations=[False, True])
    2.0
    """
    columns = _checked(importance, change_rate, crawl_rate, complete_observations, crawling)
    return float(_each(_BINARY[crawling], columns).sum())


def costs_of(
    importance: ArrayLike,
    change_rate: ArrayLike,
    crawl_rate: ArrayLike,
    *,
    complete_observations: ArrayLike | None = None,
    crawling: Crawling = "poisson",
) -> Costs:
    """Return μ E H(N) and μ P(N > 0) of each source.

    >>> on_every_second = {"complete_observations": [True], "crawling": "periodic"}
    >>> costs_of([6.0], [3.0], [1.5], **on_every_second)  # 6 (1 + 1/2 - 1) and 6 (1 - 1/2)
    Costs(harmonic=array([3.]), binary=array([3.]))
    """
    columns = _checked(importance, change_rate, crawl_rate, complete_observations, crawling)
    return Costs(_each(_HARMONIC[crawling], columns), _each(_BINARY[crawling], columns))


def plan_costs(table: SourceTable, plan: CrawlPlan) -> Costs:
    """Return the costs of each source under a plan; raises as :func:`costs_of`."""
    return costs_of(
        table.importance,
        table.change_rate,
        plan.crawl_rate,
        complete_observations=plan.on_signals,
        crawling=plan.crawling,
    )


def stale_days(
    changed: Floats, first: Ints, number: Ints, begin: Floats, end: Floats
) -> tuple[Floats, Floats]:
    """Return ∫ H(N) dt and ∫ 1{N > 0} dt, (g,) each, over g stretches of time without a crawl.

    Args:
        changed: times of changes, grouped by stretch, ascending within each.
        first: (g,), position of the first change after the crawl before the stretch.
        number: (g,), number of changes until the end of the stretch; the j-th adds 1/j to H(N).
        begin: (g,), of the stretch; a change before it counts from here on.
        end: (g,), of the stretch.

    >>> stale_days(np.array([1.0, 2.0]), np.array([0]), np.array([2]), np.array([0.0]),
    ...            np.array([4.0]))  # 3 + 2/2 and 3
    (array([4.]), array([3.]))
    """
    starts = np.cumsum(number) - number
    stretch = np.repeat(np.arange(len(first)), number)
    nth = np.arange(len(stretch)) - starts[stretch]
    stale = end[stretch] - np.maximum(changed[first[stretch] + nth], begin[stretch])
    some = number > 0
    binary = np.zeros(len(first))
    binary[some] = stale[starts[some]]
    harmonic = np.bincount(stretch, stale / (nth + 1), len(first))
    return np.asarray(harmonic, np.float64), binary


def changes_per_crawl(change_rate: Floats, crawl_rate: Floats) -> Floats:
    """Return the changes per regular crawl: k = ⌈1/p⌉, p = crawl_rate/change_rate; (n,).

    A 1/p within rounding of a whole number is taken as that number. Without crawls k is inf, for a
    source without changes 1.

    >>> changes_per_crawl(np.array([3.0, 0.3, 1.0, 0.0]), np.array([2.0, 0.1, 0.0, 0.0])).tolist()
    [2.0, 3.0, inf, 1.0]
    """
    per_crawl = _ratio(change_rate, crawl_rate)
    return np.maximum(np.ceil(per_crawl * (1 - _ROUNDING)), 1.0)


def _harmonic_poisson(delta: Floats, rho: Floats, complete: Bools) -> Floats:
    return np.log1p(_ratio(_passed_over(delta, rho, complete), rho))


def _binary_poisson(delta: Floats, rho: Floats, complete: Bools) -> Floats:
    passed_over = _passed_over(delta, rho, complete)
    return _ratio(passed_over, passed_over + rho)


def _harmonic_periodic(delta: Floats, rho: Floats, complete: Bools) -> Floats:
    cost = ein_mean(_ratio(delta, rho))
    cost[complete] = harmonic_number(changes_per_crawl(delta[complete], rho[complete])) - 1
    return cost


def _binary_periodic(delta: Floats, rho: Floats, complete: Bools) -> Floats:
    cost = changed_mean(_ratio(delta, rho))
    cost[complete] = 1 - 1 / changes_per_crawl(delta[complete], rho[complete])
    return cost


_HARMONIC: dict[Crawling, _Formula] = {"poisson": _harmonic_poisson, "periodic": _harmonic_periodic}
_BINARY: dict[Crawling, _Formula] = {"poisson": _binary_poisson, "periodic": _binary_periodic}


def _passed_over(delta: Floats, rho: Floats, complete: Bools) -> Floats:
    """Return the changes per day that trigger no crawl: Δ, or Δ − pΔ on signals."""
    # The difference of close numbers is exact; 1 − p would have lost its last digits.
    return np.where(complete, np.maximum(delta - rho, 0.0), delta)


def _ratio(above: Floats, below: Floats) -> Floats:
    """Return above/below, or 0 where ``above`` is 0."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.divide(above, below, out=np.zeros_like(above), where=above > 0)


def _each(formula: _Formula, columns: _Columns) -> Floats:
    """Return μ times the formula of each row, computed in pieces."""
    importance, change_rate, crawl_rate, complete = columns
    result = np.zeros(len(importance))
    for start in range(0, len(importance), _ROWS):
        rows = slice(start, start + _ROWS)
        mu = importance[rows]
        figure = formula(change_rate[rows], crawl_rate[rows], complete[rows])
        # Where μ is 0 the cost is 0, even for a source that is never crawled.
        np.multiply(mu, figure, out=result[rows], where=mu > 0)
    return result


def _checked(
    importance: ArrayLike,
    change_rate: ArrayLike,
    crawl_rate: ArrayLike,
    complete_observations: ArrayLike | None,
    crawling: str,
) -> _Columns:
    arrays.one_of("crawling", crawling, ("poisson", "periodic"))
    mu = arrays.non_negative("importance", importance)
    n = len(mu)
    delta = arrays.non_negative("change_rate", change_rate, n)
    rho = arrays.non_negative("crawl_rate", crawl_rate, n)
    if complete_observations is None:
        return mu, delta, rho, np.zeros(n, np.bool_)
    complete = arrays.flags("complete_observations", complete_observations, n)
    _refuse_unanswered(delta, rho, complete)
    return mu, delta, rho, complete


def _refuse_unanswered(delta: Floats, rho: Floats, complete: Bools) -> None:
    """Refuse crawl rates on signals above the change rate."""
    for start in range(0, len(delta), _ROWS):
        rows = slice(start, start + _ROWS)
        above = complete[rows] & (rho[rows] > delta[rows] * (1 + _ROUNDING))
        if above.any():
            row = start + int(np.argmax(above))
            raise ValueError(
                f"crawl_rate: row {row} is {rho[row]}; accepted is at most its change_rate "
                f"({delta[row]}), for its observations are complete"
            )


def ein(m: Number) -> Number:
    """Return Ein(m) = E H(N) for a Poisson number N of changes with mean m.

        Ein(m) = ∫₀ᵐ (1 − e^{−s})/s ds = γ + ln m + E₁(m)

    m is at least 0, γ Euler's constant, E₁ the exponential integral; below 1 by the series
    m − m²/(2·2!) + m³/(3·3!) − ….

    Reference: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 5.1.39, 5.1.40.

    >>> ein(0.0), round(ein(1.0), 6)  # 1 - 1/4 + 1/18 - 1/96 + …
    (0.0, 0.7966)
    """
    return _piecewise(m, _EIN, lambda x: np.euler_gamma + np.log(x) + exp1(x))


def ein_mean(x: Number) -> Number:
    """Return the mean of Ein over (0, x): E H(N) at a random moment between evenly spaced crawls.

        (1/x) ∫₀ˣ Ein(s) ds = Ein(x) − 1 + (1 − e^{−x})/x

    by parts, with s·dEin(s)/ds = 1 − e^{−s}; x is the mean number of changes from one crawl to the
    next, 0 to inf. Near 0 it is x/2 − x²/12 + …; for large x it tends to ln x + γ − 1.

    >>> ein_mean(0.0), round(ein_mean(1.0), 6)  # 0.7966 - 1/e
    (0.0, 0.42872)
    """
    return _piecewise(x, _EIN_MEAN, lambda x: ein(x) - 1 - np.expm1(-x) / x)


def changed_mean(x: Number) -> Number:
    """Return the mean of 1 − e^{−s} over (0, x): P(N > 0) at a random moment between even crawls.

        1 − (1 − e^{−x})/x,   near 0   x/2 − x²/6 + …

    x is the mean number of changes from one crawl to the next, 0 to inf.

    >>> changed_mean(0.0), round(changed_mean(1.0), 6)  # 1/e
    (0.0, 0.367879)
    """
    return _piecewise(x, _CHANGED_MEAN, lambda x: 1 + np.expm1(-x) / x)


@overload
def harmonic_number(n: float) -> float: ...
@overload
def harmonic_number(n: Floats | Ints) -> Floats: ...
def harmonic_number(n: float | Floats | Ints) -> float | Floats:
    """Return H(n) = 1 + 1/2 + … + 1/n; H(0) = 0.

    n is a whole number of at least 0 (inf gives inf). From 64 on it is ln n + γ + 1/(2n) − 1/(12n²)
    + 1/(120n⁴) − 1/(252n⁶), to rounding (Abramowitz and Stegun, 6.3.18).

    >>> harmonic_number(0), harmonic_number(1), harmonic_number(2)
    (0.0, 1.0, 1.5)
    """
    whole = np.asarray(n, dtype=np.float64)
    small = whole < len(_SMALL)
    result = _SMALL[np.where(small, whole, 0).astype(np.intp)]
    if not small.all():
        n_large = np.maximum(whole, len(_SMALL))
        square = n_large**-2
        series = square * (1 / 12 - square * (1 / 120 - square / 252))
        large = np.log(n_large) + np.euler_gamma + 0.5 / n_large - series
        result = np.where(small, result, large)
    found: float | Floats = _same_kind(result)
    return found


def noisy_harmonic(m: Number, k: ArrayLike, q: ArrayLike) -> Number:
    """Return E H(N) for N = Poisson(m) + Bin(k, q): unannounced changes, and true signals.

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
        *(np.asarray(each, dtype=np.float64) for each in (m, k, q))
    )
    mean = unannounced + signals * precision
    end = np.minimum(mean, _TAIL)
    # qs/M without 0/0 for a mean of 0: there s = 0, and the term vanishes.
    scale = precision / np.where(mean > 0, mean, 1.0)
    result = np.array(ein(mean), ndmin=mean.ndim)
    for node, weight in zip((_NODES + 1) / 2, _WEIGHTS / 2, strict=True):
        s = end * node
        qu = scale * s
        result -= weight / node * np.exp(-s) * np.expm1(signals * (np.log1p(-qu) + qu))
    found: Number = _same_kind(result)
    return found


def _piecewise(x: Number, series: Sequence[float], closed: Callable[[Floats], Floats]) -> Number:
    """Return x·(series in x) below 1, the closed form from 1 on."""
    given = np.asarray(x, dtype=np.float64)
    small = given < 1
    result = np.empty_like(given)
    result[small] = given[small] * polyval(given[small], series)
    if not small.all():
        result[~small] = closed(given[~small])
    found: Number = _same_kind(result)
    return found


def _same_kind(result: Floats) -> Any:
    """Return a float for zero-dimensional input, else the array."""
    return result if result.ndim else float(result)
