"""Index policy for sources with signals that may be false, and with unannounced changes.

Crawl next the source with the highest value. The value W of a source is the price λ per crawl at
which crawling it in its present state is marginal, if each state is crawled exactly when that
reduces the long-run average of cost + λ · crawls.

A source is crawled at day 0; s days later k signals have been received:

    D(s, k) = μ E[H(Poisson(as) + Bin(k, q))]         cost per day, harmonic (the default)
    D(s, k) = μ (1 − e^{−as}(1 − q)^k)                cost per day, binary
    W = E∫₀^{T_L} (L − D) ds  at  L = D(s, k)         the index

with T_L the first time at which D reaches the level L. The index, its sums, and the fast form for
the harmonic cost are derived below.

    μ      importance          weight
    Δ      change_rate         changes per day, all of them
    g      signal_rate         signals per day, false ones included
    q      signal_precision    probability that a signal is true
    a      Δ − gq              unannounced changes per day
    s      now − last_crawl    days
    k      pending_signals     signals since the last crawl

Limits: without signals (g = 0 or q = 0) the greedy index of the same cost; with all changes
announced and no false signal (g = Δ, q = 1) μk/Δ for the harmonic cost. The greedy index at the
effective age is *not* the index. It ignores that a signal may end the wait at any moment, and so
overvalues sources with many signals: simulated, it costs the same up to a recall of 0.3 and 4 to 11
% more at 0.9. Nor is it s·D − ∫D along the received path, which is the value of stopping on this
path only: 3 to 65 % more.

Cost: harmonic about 2.5 µs a source, after a quarter of a second for a table at the first call;
binary 2 µs. Accuracy: see the sections below; a relative error of at most 4e-3 and a median of 5e-5
(harmonic), rounding if at most 64 signals matter (binary). A crawl later than ``now`` counts as one
at ``now``.

Reference: Busa-Fekete et al., "A Scalable Crawling Algorithm Utilizing Noisy Change-Indicating
Signals" (WWW 2025), GREEDY-NCIS: the binary index. The harmonic one is ours, by the same
construction.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.costs import ein, noisy_harmonic
from freshet.scheduler.policies.greedy_index import GreedyIndex, GreedyIndexBinary
from freshet.scheduler.policy import IndexPolicy
from freshet.scheduler.sources import Rows, SourceTable
from freshet.scheduler.special_functions import exp1, gammainc

# -- signal paths --
#
# The value of a crawl of a source with signals that may be false, summed over its paths.
#
# **Model.** Between two crawls of a source, unannounced changes happen at rate a, and signals at
# rate g, each independently true with probability q (the precision). At age s, with k signals
# received, N = Poisson(as) + Bin(k, q) changes are waiting, and the source costs D(s, k) per day: μ
# E[H(N)] (harmonic), or μ P(N > 0) = μ (1 − e^{−as}(1 − q)^k) (binary).
#
# **Rule.** At price λ per crawl, a cycle from crawl to crawl that ends at time T costs λ + E∫₀ᵀ D.
# Crawling when D reaches the long-run average cost L is optimal among all rules that depend on the
# time and the signals, because D increases along every path: once stopping pays, it always pays
# (the monotone case of optimal stopping). The best level for a price λ is the L with W(L) = λ,
# where
#
#     W(L) = E∫₀^{T_L} (L − D) ds = Σ_k ∫₀^{s_k} e^{−gs} (gs)^k / k! (L − D(s, k)) ds,
#
# T_L is the first time with D ≥ L, and D(s_k, k) = L: a path with k signals at time s < s_k has not
# stopped before, because D was less. W increases with L (its slope is E[T_L]), so the index of a
# state is W at its level, L = D(s, k), and crawling the largest index first is the Whittle-type
# policy of this problem.
#
# **Units.** Time is in 1/Δ and cost in μ, where Δ = a + gq is the rate of all changes: the value of
# a source is μ/Δ times the result of the functions here. Two numbers describe a source: the
# ``precision`` q (above 0, at most 1) and the ``recall`` r = gq/Δ (above 0, at most 1), the share
# of its changes that are announced. Then g = r/q and a = 1 − r. All arguments are columns of one
# length n, and so are the results.
#
# Reference: Busa-Fekete et al., "A Scalable Crawling Algorithm Utilizing Noisy Change-Indicating
# Signals" (WWW 2025), for the model and the binary sum; the harmonic cost is from Kolobov et al.,
# "Staying up to Date with Online Content Changes" (NeurIPS 2019). Differs from the paper in: the
# harmonic cost, which the paper does not treat; the limits a = 0, q = 1 and of many signals of
# small effect.

# The Gauss–Legendre rule in √u: the nodes are dense at u = 0, where the integrands of a high level
# decrease steeply. To 1e-9 relative for levels up to the level of 100 changes.
_X, _W = np.polynomial.legendre.leggauss(24)
_U: Floats = ((_X + 1) / 2) ** 2
_DU: Floats = (_X + 1) / 2 * _W
_DU_OVER_U: Floats = _DU / _U

#: Signals that :func:`binary_value` follows one by one.
_FOLLOWED = 64
#: −ln(1 − q) at q = 1: e to minus this is the smallest float.
_CERTAIN = 745.0


def ein_inverse(level: Floats) -> Floats:
    """Return x with Ein(x) = ``level`` (n,), at least 0; Newton, to rounding.

    Ein is concave: from the second step on, Newton's steps all increase x.
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


def exact_harmonic_value(recall: Floats, precision: Floats, level: Floats) -> Floats:
    """Return W at ``level`` (n,) for the harmonic cost, exactly; the index is μ/Δ times it.

    D(s, k) = ∫₀¹ (1 − e^{−asu}(1 − qu)^k)/u du, so both parts of each integral have a closed form:

        ∫₀^{s_k} e^{−gs}(gs)^k/k! ds          = P(k+1, g s_k)/g
        ∫₀^{s_k} e^{−gs}(gs)^k/k! e^{−asu} ds = g^k/(g+au)^{k+1} P(k+1, (g+au) s_k)

    with P the regularized lower incomplete gamma function; the integral over u remains, by
    quadrature. The sum ends at the k with D(0, k) ≥ L, or when terms no longer change it. Relative
    error 1e-9 for levels from 1e-3 (below, it grows by cancellation, 1e-16/L). About 30 µs a row at
    the levels that occur: the fast form is derived from it and tested against it.

    >>> one = np.ones(1)  # every change is announced, every signal true: W(H(3)) is 3
    >>> exact_harmonic_value(one, one, one * (1 + 1 / 2 + 1 / 3)).round(9).tolist()
    [3.0]
    """
    value = np.zeros(len(level))
    rows: Rows = np.flatnonzero(level > 0)
    unsignalled, start = ein_inverse(level), np.zeros(len(level))
    k = 0
    while len(rows):
        r, q, at = recall[rows], precision[rows], level[rows]
        m = unsignalled[rows] if k == 0 else _changes_at(at, k, q, unsignalled[rows])
        term = _value_with(k, r, q, at, m)
        value[rows] += term
        k += 1
        # One more signal: E[H(Bin(k, q))] = Σ_{i ≤ k} (1 − (1 − q)^i)/i.
        start[rows] -= np.expm1(k * _log_false(q)) / k
        unsignalled[rows] = np.maximum(m - q, 0)
        # Terms decrease with k: this one bounds the later ones.
        rows = rows[(level[rows] > start[rows]) & (term > 1e-18 * value[rows])]
    return value


def binary_value(recall: Floats, precision: Floats, elapsed: Floats, signals: Ints) -> Floats:
    """Return W at the level of age ``elapsed`` and ``signals``, for the binary cost.

    The level depends on the effective age x = s + kβ alone, β = ln(1/(1−q))/a, and the integrals
    have a closed form:

        W = Σ_j (1−q)^j g^j/(a+g)^{j+1} P(j+1, (a+g)(x−jβ)) − e^{−ax} Σ_j P(j+1, g(x−jβ))/g

    over all j with jβ < x. Exact where 64 such terms suffice. Beyond that (signals of small effect,
    or a very old source) ax is a fluid of drift c = a + gaβ that passes its threshold by
    gaβ·aβ/(2c) on average, so E[T] = (ax + gaβ·aβ/(2c))/c: to 1e-4 of the value.
    """
    a, g = 1 - recall, recall / precision
    jump = np.minimum(-_log_false(precision), _CERTAIN)
    x = a * elapsed + signals * jump
    near = np.minimum(x, _FOLLOWED * jump)
    value = _until_first_signal(a, g, near)
    for j in range(1, _FOLLOWED):
        # Terms past e^{−40} change no digit.
        rows = np.flatnonzero(j * jump < np.minimum(near, 40.0))
        if not len(rows):
            break
        value[rows] += _after_signals(j, a[rows], g[rows], jump[rows], near[rows])
    drift = a + g * jump
    beyond = 1 + g * jump**2 / (2 * drift)
    value += ((beyond + near) * np.exp(-near) - (beyond + x) * np.exp(-x)) / drift
    return value


def _log_false(precision: Floats) -> Floats:
    """Return ln(1 − q); at q = 1 the logarithm of the smallest float."""
    logarithm: Floats = np.log1p(-np.minimum(precision, 1 - 2.0**-53))
    return np.where(precision < 1, logarithm, -_CERTAIN)


def _changes_at(level: Floats, k: int, precision: Floats, above: Floats) -> Floats:
    """Return m = a s_k at which k signals and m unsignalled changes reach ``level``.

    Newton's method from ``above``, slightly above the root; D is concave in m.
    """
    true = k * np.log1p(-precision[:, None] * _U)
    m = above
    for _ in range(50):
        all_false = np.exp(true - m[:, None] * _U)
        step = (level - (1 - all_false) @ _DU_OVER_U) / (all_false @ _DU)
        m = np.maximum(m + step, 0)
        if np.all(np.abs(step) <= 1e-10 * m):
            break
    return m


def _value_with(k: int, recall: Floats, precision: Floats, level: Floats, m: Floats) -> Floats:
    """Return the k-th term of W; ``m`` is a s_k."""
    a, g = 1 - recall, recall / precision
    received = _per_drift(g * m, a)
    share = (a / g)[:, None] * _U
    in_time = gammainc(k + 1, received)
    decayed = np.exp(k * np.log1p(-precision[:, None] * _U) - (k + 1) * np.log1p(share)) * gammainc(
        k + 1, received[:, None] + m[:, None] * _U
    )
    term: Floats = (level * in_time - (in_time[:, None] - decayed) @ _DU_OVER_U) / g
    return term


def _until_first_signal(a: Floats, g: Floats, x: Floats) -> Floats:
    """Return the term j = 0 of the binary sum, free of cancellation; ``x`` is ax."""
    z = _per_drift(g * x, a)
    missed = 1 - np.divide(-np.expm1(-z), z, out=np.ones_like(z), where=z > 0)
    term: Floats = (gammainc(2, x) + x * np.exp(-x) * missed) / (a + g)
    return term


def _after_signals(j: int, a: Floats, g: Floats, jump: Floats, x: Floats) -> Floats:
    """Return the term j of the binary sum; ``x`` is ax."""
    z = _per_drift(g * (x - j * jump), a)
    fresh = np.exp(j * (np.log(g / (a + g)) - jump)) / (a + g)
    announced, changed = np.split(gammainc(j + 1, np.concatenate((z, z + (x - j * jump)))), 2)
    term: Floats = fresh * changed - np.exp(-x) * announced / g
    return term


def _per_drift(amount: Floats, a: Floats) -> Floats:
    """Return ``amount``/a; inf for a = 0, because only signals then reach a level."""
    endless = np.where(amount > 0, np.inf, 0.0)
    return np.divide(amount, a, out=endless, where=a > 0)


# -- signal levels --
#
# The harmonic value of a source with noisy signals, fast.
#
# :func:`exact_harmonic_value` is the equation; the code below evaluates it in about 2 µs.
# Model, rule and units are explained there. Let x = Ein⁻¹(L) be the effective age: the age at which
# a source without signals (r = 0) has the level L.
#
# 1. Up to the level L = q one signal is enough to stop, so only the path without signals counts,
#    with Ein(as) = L, that is x = as, and
#
#        W = [Ein(x) + Ein(gx/a) − Ein(x + gx/a)]/g.
#
# 2. Far above q, signals are many and each has a small effect: a fluid. The waiting changes,
#    as + qk on average, grow at rate 1, so by Wald's equation E[T] is x plus the overshoot of the
#    last jump. Jumps of q at rate g overshoot by gq²/2 = qr/2; the level of Bin(k, q) changes is
#    slightly higher than the level of as many Poisson changes, which compensates for a part:
#
#        dW/dL = E[T] = x + (qr/2) x/(eˣ − 1),  and  W = x − (1 − qr/2)(1 − e^{−x}) + constant.
#
#    For q = r = 1 this is the μn/Δ of complete observations, H⁻¹(L) = x − 1/2; for r = 0 it is the
#    index without signals, x − 1 + e^{−x}.
# 3. Past q, W is the value of 1. at q plus the increase of 2. plus q² times a correction, which is
#    0 at L = q, constant far above it and less than 7 % of W between: interpolated linearly in a
#    table over (r, q, ln(x/x_q)) that is computed from the exact sum at the first use, in a quarter
#    of a second.
#
# The relative error against the exact sum is at most 4e-3 (2.5e-3 for a recall below 0.95) and 5e-5
# in the median. W increases with the level, interpolated or not, so the index never decreases on a
# path.

# If every change is announced (r near 1), W has a kink at each level of a whole number of signals:
# nodes are closer there, and closer between the first few of these levels.
_RECALL = np.concatenate(
    [np.arange(8) / 10, [0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.995, 1]]
)
_PRECISION = np.array([0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1])
_BEYOND = np.concatenate([np.arange(60) / 40, np.arange(1.5, 2, 0.05), [2, 2.25, 2.5, 3, 3.4]])

_LEVEL_X, _LEVEL_W = np.polynomial.legendre.leggauss(10)
_SHARE: Floats = (_LEVEL_X + 1) / 2
_D_SHARE: Floats = _LEVEL_W / 2


def harmonic_value(recall: Floats, precision: Floats, elapsed: Floats, signals: Ints) -> Floats:
    """Return W at the level of age ``elapsed`` (in 1/Δ) and ``signals`` (n,), in units of μ/Δ.

    ``recall`` and ``precision`` are above 0 and at most 1. About 2.5 µs a row.

    >>> half = np.array([0.5])  # all changes are announced, every other signal is false
    >>> harmonic_value(half * 2, half, half, np.array([1])).tolist()  # a gap of q for 1/g days
    [0.25]
    """
    x = _effective_age(recall, precision, elapsed, signals)
    x_one = ein_inverse(precision)
    # Rounding must not reduce one signal's level below q, the limit of the case without signals.
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
    """Return x = Ein⁻¹(D/μ) (n,), in 1/Δ, the age of equal cost without signals."""
    x = (1 - recall) * elapsed
    received = np.flatnonzero(signals > 0)
    x[received] = ein_inverse(noisy_harmonic(x[received], signals[received], precision[received]))
    return x


def _in_silence(recall: Floats, precision: Floats, x: Floats) -> Floats:
    """Return W up to one signal's level: [Ein(x) + Ein(z) − Ein(x + z)]/g, z = gx/a."""
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
    """Return W far above the level of one signal, except for a constant."""
    return x + (1 - precision * recall / 2) * np.expm1(-x)


def _correction(recall: Floats, precision: Floats, beyond: Floats) -> Floats:
    """Return the table's value, interpolated linearly along each axis."""
    table, strides = _table(), (len(_PRECISION) * len(_BEYOND), len(_BEYOND), 1)
    first, shares = np.zeros(len(recall), np.intp), []
    points = (recall, precision, np.minimum(beyond, _BEYOND[-1]))
    for nodes, at, stride in zip((_RECALL, _PRECISION, _BEYOND), points, strides, strict=True):
        below = np.searchsorted(nodes[1:-1], at, side="right")
        shares.append((at - nodes[below]) / np.diff(nodes)[below])
        first += below * stride
    # The corners of a cell, reduced from eight to one: the last axis first.
    corners = [
        table[first + i + j + k] for i in (0, strides[0]) for j in (0, strides[1]) for k in (0, 1)
    ]
    for share in reversed(shares):
        corners = [
            low + share * (high - low)
            for low, high in zip(corners[::2], corners[1::2], strict=True)
        ]
    return corners[0]


@cache
def _table() -> Floats:
    """Tabulate (W − W(q) − fluid)/q² over recall, precision and ln(x/x_q), one after the other."""
    # At 1e-4 the limit of worthless signals is reached to the accuracy of the table.
    r, q, beyond = np.meshgrid(
        np.maximum(_RECALL, 1e-4), np.maximum(_PRECISION, 1e-4), _BEYOND, indexing="ij"
    )
    x = ein_inverse(q) * np.exp(beyond)
    exact = exact_harmonic_value(r.ravel(), q.ravel(), ein(x).ravel()).reshape(r.shape)
    rest = exact - _fluid(r, q, x)
    correction: Floats = (rest - rest[..., :1]) / q**2
    return correction.ravel()


#: W in μ/Δ, by recall, precision, Δ times the elapsed days, and signals.
_VALUES: dict[str, Callable[[Floats, Floats, Floats, Ints], Floats]] = {
    "harmonic": harmonic_value,
    "binary": binary_value,
}
_WITHOUT_NOISE: dict[str, IndexPolicy] = {"harmonic": GreedyIndex(), "binary": GreedyIndexBinary()}

#: Maximum precision of signals that are ignored: W then hardly differs from W without signals.
_UNINFORMATIVE = 1e-9


@dataclass(frozen=True, slots=True)
class NoisySignalIndex:
    """An index of a source's value, given its age and its signals.

    Attributes:
        cost: ``harmonic`` or ``binary``.

    Raises:
        ValueError: if the cost is unknown.

    If every change is announced (a = 0) and every other signal is false, only signals add cost: one
    signal makes the level L = 8 · 1/2, and the value is L a day for the wait of 1/g = 1/2 day.

    >>> table = SourceTable.of(
    ...     [8], [1], signal_rate=[2], signal_precision=[0.5], pending_signals=[1]
    ... )
    >>> NoisySignalIndex().index(table, now=0.25).round(9).tolist()
    [2.0]
    """

    cost: str = "harmonic"

    def __post_init__(self) -> None:
        arrays.one_of("cost", self.cost, tuple(_VALUES))

    def index(self, table: SourceTable, now: float) -> Floats:
        """Return W (n,) in importance · days; the greedy index without noisy signals."""
        index = _WITHOUT_NOISE[self.cost].index(table, now)
        rows = _noisy(table)
        if len(rows):
            delta, q = table.change_rate[rows], table.signal_precision[rows]
            recall = np.minimum(table.signal_rate[rows] * q / delta, 1)
            elapsed = delta * np.maximum(now - table.last_crawl[rows], 0)
            value = _VALUES[self.cost](recall, q, elapsed, table.pending_signals[rows])
            index[rows] = table.importance[rows] / delta * value
        return index


def _noisy(table: SourceTable) -> Rows:
    """Return the rows with signals that are informative but not complete."""
    informative = (table.signal_rate > 0) & (table.signal_precision > _UNINFORMATIVE)
    return np.flatnonzero(informative & ~table.complete_observations & (table.change_rate > 0))
