"""What it is worth to crawl a source whose signals may be false, summed over its paths.

**Model.** Between two crawls of a source, changes that no signal tells of come at rate a, and
signals at rate g, each of them true with probability q (the precision) on its own. At age s,
with k signals heard, N = Poisson(as) + Bin(k, q) changes are waiting, and the source costs
D(s, k) per day: μ E[H(N)] (harmonic), or μ P(N > 0) = μ (1 − e^{−as}(1 − q)^k) (binary).

**Rule.** At price λ per crawl, a cycle from crawl to crawl that ends at time T costs
λ + E∫₀ᵀ D; crawling when D reaches the long-run average cost L is optimal among all rules that
look at the clock and the signals, because D rises along every path: once it pays to stop, it
pays for ever after (the monotone case of optimal stopping). The best level for a price λ is
the L with W(L) = λ, where

    W(L) = E∫₀^{T_L} (L − D) ds = Σ_k ∫₀^{s_k} e^{−gs} (gs)^k / k! (L − D(s, k)) ds,

T_L is the first time with D ≥ L, and D(s_k, k) = L: a path on which k signals have been heard
at time s < s_k has not stopped before, for D was less. W rises with L (its slope is E[T_L]), so the
index of a state is W at its own level, L = D(s, k), and crawling the largest index first is
the Whittle-type policy of this problem.

**Units.** Time is in 1/Δ and cost in μ, where Δ = a + gq is the rate of all changes: the worth
of a source is μ/Δ times what the functions here return. Two numbers remain of a source, the
``precision`` q (above 0, at most 1) and the ``recall`` r = gq/Δ (above 0, at most 1): the share
of its changes that a signal tells of. Then g = r/q and a = 1 − r. All arguments are columns of
one length n, and so are the results.

Reference: Busa-Fekete et al., "A Scalable Crawling Algorithm Utilizing Noisy Change-Indicating
Signals" (WWW 2025), for the model and the binary sum; the harmonic cost is of Kolobov et al.,
"Staying up to Date with Online Content Changes" (NeurIPS 2019).
Differs from the paper in: the harmonic cost, which the paper does not treat; the limits a = 0,
q = 1 and of many signals of little worth.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammainc

from freshet.scheduler.arguments import Floats, Ints
from freshet.scheduler.harmonics import ein
from freshet.scheduler.sources import Rows

# The Gauss–Legendre rule in √u: the nodes crowd at u = 0, where the integrands of a high
# level fall steeply. To 1e-9 relative for levels up to that of 100 changes.
_X, _W = np.polynomial.legendre.leggauss(24)
_U: Floats = ((_X + 1) / 2) ** 2
_DU: Floats = (_X + 1) / 2 * _W
_DU_OVER_U: Floats = _DU / _U

#: Signals that :func:`binary_worth` follows one by one.
_FOLLOWED = 64
#: −ln(1 − q) where q is 1: e to minus this is the least of the floats.
_CERTAIN = 745.0


def ein_inverse(level: Floats) -> Floats:
    """The x with Ein(x) = ``level`` (n,), at least 0; Newton, to rounding.

    Ein is concave: from the second step on Newton's steps all go up.
    """
    x: Floats = np.where(
        level < 1, level * (1 + level / 4), np.exp(np.maximum(level, 1) - np.euler_gamma)
    )
    for _ in range(8):
        slope = np.divide(-np.expm1(-x), x, out=np.ones_like(x), where=x > 0)
        step = (level - ein(x)) / slope
        x = np.maximum(x + step, 0)
        if np.all(np.abs(step) <= 1e-13 * x):
            break
    return x


def harmonic_worth(recall: Floats, precision: Floats, level: Floats) -> Floats:
    """W at ``level`` (n,) for the harmonic cost, exactly; the index is μ/Δ times it.

    D(s, k) = ∫₀¹ (1 − e^{−asu}(1 − qu)^k)/u du, so both parts of each integral close:

        ∫₀^{s_k} e^{−gs}(gs)^k/k! ds          = P(k+1, g s_k)/g
        ∫₀^{s_k} e^{−gs}(gs)^k/k! e^{−asu} ds = g^k/(g+au)^{k+1} P(k+1, (g+au) s_k)

    with P the regularized lower incomplete gamma function; what is left is the integral over
    u, by quadrature. The sum ends at the k with D(0, k) ≥ L, or where terms no longer change
    it. Relative error 1e-9 for levels from 1e-3 (it grows as cancellation, 1e-16/L, below).
    About 30 µs a row at the levels that occur: what :mod:`freshet.scheduler.signal_levels` is made
    from, and measured by.

    >>> one = np.ones(1)  # every change is told of, and every signal true: W(H(3)) is 3
    >>> harmonic_worth(one, one, one * (1 + 1 / 2 + 1 / 3)).round(9).tolist()
    [3.0]
    """
    worth = np.zeros(len(level))
    rows: Rows = np.flatnonzero(level > 0)
    unsignalled, start = ein_inverse(level), np.zeros(len(level))
    k = 0
    while len(rows):
        r, q, at = recall[rows], precision[rows], level[rows]
        m = unsignalled[rows] if k == 0 else _changes_at(at, k, q, unsignalled[rows])
        term = _worth_with(k, r, q, at, m)
        worth[rows] += term
        k += 1
        # One more signal: E[H(Bin(k, q))] = Σ_{i ≤ k} (1 − (1 − q)^i)/i.
        start[rows] -= np.expm1(k * _log_false(q)) / k
        unsignalled[rows] = np.maximum(m - q, 0)
        # Terms fall with k: this one bounds those to come.
        rows = rows[(level[rows] > start[rows]) & (term > 1e-18 * worth[rows])]
    return worth


def binary_worth(recall: Floats, precision: Floats, elapsed: Floats, signals: Ints) -> Floats:
    """W at the level of age ``elapsed`` and ``signals``, for the binary cost.

    The level depends on the effective age x = s + kβ alone, β = ln(1/(1−q))/a, and the
    integrals close:

        W = Σ_j (1−q)^j g^j/(a+g)^{j+1} P(j+1, (a+g)(x−jβ)) − e^{−ax} Σ_j P(j+1, g(x−jβ))/g

    over all j with jβ < x. Exact where 64 such terms suffice. Beyond them (signals of little
    worth, or a very old source) ax is a fluid of drift c = a + gaβ that passes its threshold
    by gaβ·aβ/(2c) on average, so E[T] = (ax + gaβ·aβ/(2c))/c: to 1e-4 of the worth.
    """
    a, g = 1 - recall, recall / precision
    jump = np.minimum(-_log_false(precision), _CERTAIN)
    x = a * elapsed + signals * jump
    near = np.minimum(x, _FOLLOWED * jump)
    worth = _until_first_signal(a, g, near)
    for j in range(1, _FOLLOWED):
        # Terms past e^{−40} change no digit.
        rows = np.flatnonzero(j * jump < np.minimum(near, 40.0))
        if not len(rows):
            break
        worth[rows] += _after_signals(j, a[rows], g[rows], jump[rows], near[rows])
    drift = a + g * jump
    beyond = 1 + g * jump**2 / (2 * drift)
    worth += ((beyond + near) * np.exp(-near) - (beyond + x) * np.exp(-x)) / drift
    return worth


def _log_false(precision: Floats) -> Floats:
    """ln(1 − q); the least of the floats has the logarithm of 0."""
    logarithm: Floats = np.log1p(-np.minimum(precision, 1 - 2.0**-53))
    return np.where(precision < 1, logarithm, -_CERTAIN)


def _changes_at(level: Floats, k: int, precision: Floats, above: Floats) -> Floats:
    """The m = a s_k at which k signals and m unsignalled changes reach ``level``.

    Newton from ``above``, which lies a little over the root; D is concave in m.
    """
    true = k * np.log1p(-precision[:, None] * _U)
    m = above
    for _ in range(50):
        none_of_them = np.exp(true - m[:, None] * _U)
        step = (level - (1 - none_of_them) @ _DU_OVER_U) / (none_of_them @ _DU)
        m = np.maximum(m + step, 0)
        if np.all(np.abs(step) <= 1e-10 * m):
            break
    return m


def _worth_with(k: int, recall: Floats, precision: Floats, level: Floats, m: Floats) -> Floats:
    """The k-th term of W; ``m`` is a s_k."""
    a, g = 1 - recall, recall / precision
    heard = _per_drift(g * m, a)
    share = (a / g)[:, None] * _U
    in_time = gammainc(k + 1, heard)
    faded = np.exp(k * np.log1p(-precision[:, None] * _U) - (k + 1) * np.log1p(share)) * gammainc(
        k + 1, heard[:, None] + m[:, None] * _U
    )
    term: Floats = (level * in_time - (in_time[:, None] - faded) @ _DU_OVER_U) / g
    return term


def _until_first_signal(a: Floats, g: Floats, x: Floats) -> Floats:
    """The term j = 0 of the binary sum, free of cancellation; ``x`` is ax."""
    z = _per_drift(g * x, a)
    missed = 1 - np.divide(-np.expm1(-z), z, out=np.ones_like(z), where=z > 0)
    term: Floats = (gammainc(2, x) + x * np.exp(-x) * missed) / (a + g)
    return term


def _after_signals(j: int, a: Floats, g: Floats, jump: Floats, x: Floats) -> Floats:
    """The term j of the binary sum; ``x`` is ax."""
    z = _per_drift(g * (x - j * jump), a)
    fresh = np.exp(j * (np.log(g / (a + g)) - jump)) / (a + g)
    stale = np.exp(-x) * gammainc(j + 1, z) / g
    term: Floats = fresh * gammainc(j + 1, z + (x - j * jump)) - stale
    return term


def _per_drift(amount: Floats, a: Floats) -> Floats:
    """``amount``/a: without unsignalled changes, a = 0, a level is never reached in silence."""
    endless = np.where(amount > 0, np.inf, 0.0)
    return np.divide(amount, a, out=endless, where=a > 0)
