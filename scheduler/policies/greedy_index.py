"""Index policy for the harmonic cost: crawl next the source with the highest index. No solver.

Consider one source as if every crawl had to be paid for, at a price λ:

    minimise the long-run average of D + λ · (crawls per day)

where D is the cost per day in the source's present state. A crawl pays from the moment at which
waiting no longer pays. The *index* W of a state is the price at which crawling there and waiting a
little longer cost the same. If every source is crawled as soon as W ≥ λ, each minimises its share
of the Lagrangian; with λ the price at which exactly R crawls per day are made, the sum of the costs
is the least for deterministic policies under the budget R. The policy reverses this: it makes R
crawls per day, each where W is largest, and λ is the resulting level of W. It adapts by itself when
budget, rates or sources change. (Whittle's construction for restless bandits.)

**Incomplete observations.** At age τ the changes N since the crawl are Poisson of mean Δτ, so D(τ)
= μ Ein(Δτ). Crawled whenever its age reaches T, the source costs

    J(T) = (1/T) [ ∫₀ᵀ D(s) ds + λ ],     J'(T) = 0   ⇔   λ = T·D(T) − ∫₀ᵀ D(s) ds

The right side is the index at age T. By parts, with s·dEin(Δs)/ds = 1 − e^{−Δs},

    W(τ) = μ ∫₀^τ (1 − e^{−Δs}) ds = μ (τ − (1 − e^{−Δτ})/Δ)

in words: importance times the expected number of days for which the copy has been stale. W
increases with τ, so that W ≥ λ is a rule "crawl from this age on". Early it is μΔτ²/2, late μ(τ −
1/Δ): every source is crawled in the end, however fast it changes.

**Complete observations.** n changes were notified since the crawl; D = μ H(n). Crawled at every
k-th change the source costs (S_k/Δ + λ)/(k/Δ) with S_k = Σ_{j<k} H(j)·μ = μ(kH(k) − k), that is
μ(H(k) − 1) + λΔ/k. Thresholds n and n + 1 cost the same at

    W(n) = μ n/Δ

regardless of the day. Without a change it is 0.

    μ   importance                  weight                 (n,)
    Δ   change_rate                 changes per day        (n,)
    τ   now − last_crawl            days                   (n,)
    n   pending_signals             changes                (n,)   complete observations only
    W   result                      importance · days      (n,)   = the price λ, per crawl

Signals of sources with incomplete observations are ignored here: noisy_signal_index uses them.

Method: one closed form per source, O(n). Numerical form: W = μτ · w(Δτ) with w(x) = 1 +
expm1(−x)/x, below x = 0.01 by its Taylor series; relative error below 1e-13 for Δτ from 1e-12 to
1e12. Edge cases: if μ or Δ is 0, W is 0; a crawl later than ``now`` counts as one at ``now``.

Reference: ours. The cost is from Kolobov et al., NeurIPS 2019, eq. 1; the construction is P.
Whittle, "Restless Bandits: Activity Allocation in a Changing World", J. Appl. Probability 25A
(1988). Differs from the paper in: it is a rule for the next crawl instead of a plan of random crawl
rates; on the paper's population it has about 0.68 of LambdaCrawl's cost with the same number of
crawls.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.sources import SourceTable

#: Below this, 1 + expm1(−x)/x has lost digits, and the series needs few terms.
SMALL = 1e-2


@dataclass(frozen=True, slots=True)
class GreedyIndex:
    """An index of expected staleness since the crawl, times importance.

    Three days after its crawl a source of importance 2 that changes at once (Δ → ∞) has been stale
    for three days; two pending changes of another source, at 4 a day, have the index 2 · 2/4.

    >>> table = SourceTable.of(
    ...     [2, 2], [1e9, 4], complete_observations=[False, True], pending_signals=[0, 2]
    ... )
    >>> GreedyIndex().index(table, now=3.0).round(6).tolist()
    [6.0, 1.0]
    """

    def index(self, table: SourceTable, now: float) -> Floats:
        """Return W (n,) in importance · days."""
        return _index(table, now, stale_share, table.pending_signals)


def _index(
    table: SourceTable, now: float, share: Callable[[Floats], Floats], signals: Ints | Bools
) -> Floats:
    """Return μτ times the share of Δτ, or μ/Δ times the signals for complete observations."""
    age = np.maximum(now - table.last_crawl, 0.0)
    index = table.importance * age * share(table.change_rate * age)
    complete = np.flatnonzero(table.complete_observations)
    if len(complete):
        delta, value = table.change_rate[complete], np.zeros(len(complete))
        np.divide(table.importance[complete] * signals[complete], delta, out=value, where=delta > 0)
        index[complete] = value
    return index


def stale_share(x: Floats) -> Floats:
    """Return w(x) = 1 − (1 − e^{−x})/x (n,), the stale share of the days since a crawl.

    x is Δτ, the mean number of changes since the crawl, 0 to inf. The same as
    :func:`freshet.scheduler.costs.changed_mean`, in a tenth of its time for a hundred sources.

    >>> stale_share(np.array([0.0, 1.0])).round(6).tolist()  # 1/e
    [0.0, 0.367879]
    """
    series = x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6 * (1 - x / 7)))))
    closed = 1 + np.expm1(-x) / np.maximum(x, SMALL)
    return np.where(x < SMALL, series, closed)


# -- greedy index binary --
#
# Index policy for the binary cost: a copy is fresh or stale, regardless of the number of changes.
#
# The construction is the same as for the harmonic cost: W = τ·D(τ) − ∫₀^τ D(s) ds.
#
# **Incomplete observations.** The cost per day is D(τ) = μ P(N > 0) = μ (1 − e^{−Δτ}), so
#
#     W(τ) = μ ∫₀^τ s·Δe^{−Δs} ds = μ (1 − e^{−Δτ}(1 + Δτ))/Δ
#
# W increases with τ, but not beyond μ/Δ. At a higher price the source is better never crawled:
# fast changing sources starve, as under BinaryLambdaCrawl, and their harmonic cost is unbounded.
#
# **Complete observations.** The copy is stale from the first of n notified changes on, and every
# day until the crawl costs μ; a crawl then gains 1/Δ fresh days on average:
#
#     W(n) = μ/Δ  for n ≥ 1,   W(0) = 0
#
# Symbols, units, edge cases and ignored columns are as for the harmonic cost. Numerical form:
# W = μτ · b(Δτ) with b(x) = (1 − e^{−x}(1 + x))/x, below x = 0.01 by its Taylor series; relative
# error below 1e-13 for Δτ from 1e-12 to 1e12.
#
# Reference: Busa-Fekete et al., "A Scalable Crawling Algorithm Utilizing Noisy Change-Indicating
# Signals" (WWW 2025), GREEDY and, for complete observations, the limit of GREEDY-NCIS for
# unannounced changes a → 0 and precision q → 1; the cost is eq. 2 of Kolobov et al., NeurIPS 2019.
# Differs from the paper in: a source that is never worth a crawl (W = 0) is never crawled.


@dataclass(frozen=True, slots=True)
class GreedyIndexBinary:
    """An index of the fresh days that a crawl gains, times importance.

    Long after its crawl, and at a known change, a crawl of a source that changes four times a day
    gains a quarter of a day.

    >>> table = SourceTable.of(
    ...     [2, 2], [4, 4], complete_observations=[False, True], pending_signals=[0, 3]
    ... )
    >>> GreedyIndexBinary().index(table, now=1000.0).tolist()
    [0.5, 0.5]
    """

    def index(self, table: SourceTable, now: float) -> Floats:
        """Return W (n,) in importance · days."""
        return _index(table, now, fresh_share, table.pending_signals > 0)


def fresh_share(x: Floats) -> Floats:
    """Return b(x) = (1 − e^{−x}(1 + x))/x (n,): fresh days gained per day waited.

    x is Δτ, the mean number of changes since the crawl, 0 to inf. The maximum, 0.298, is near x =
    1.79.

    >>> fresh_share(np.array([0.0, 1.0])).round(6).tolist()  # 1 − 2/e
    [0.0, 0.264241]
    """
    series = x / 2 * (1 - x / 3 * (2 - x / 4 * (3 - x / 5 * (4 - x / 6 * (5 - x / 7 * 6)))))
    # Past 800 the exponential is 0, and so must be its product with x.
    left = np.minimum(x, 800.0)
    closed = (-np.expm1(-x) - left * np.exp(-left)) / np.maximum(x, SMALL)
    return np.where(x < SMALL, series, closed)


# -- site clock --
#
# The policy of a daemon that learns how whole sites change: the greedy index on their clocks.
#
# Pages of a site change together: it is rewritten, a template is edited, an hour is busy. A daemon
# with this policy learns a clock for each site from its visits, and values a page by the clock's
# time since the last visit instead of the days (:mod:`freshet.scheduler.queue.site_clock_ranker`
# has the equations).
#
# That requires the history of sites. A table of sources has only constant change rates: it has no
# proven clock, its time is the days, and the index is the greedy one. So it is in a simulation of
# independent sources, and in the daemon's forecasts for its hosts.
#
# Reference: ours.


@dataclass(frozen=True, slots=True)
class SiteClock(GreedyIndex):
    """The greedy index by the clock of the page's site.

    >>> table = SourceTable.of([1.0], [2.0])  # ln 2 changes expected: (1/2)(ln 2 − 1/2)
    >>> SiteClock().index(table, now=0.34657359028).round(6).tolist()
    [0.096574]
    """


@dataclass(frozen=True, slots=True)
class SearchQuality(SiteClock):
    """The site clock's index, with the cost of missed changes for searchers as importance.

    The importance of a page is the expected cost for searchers of a missed change (by the extension
    ``readers``), on sites with a history that shows a gain. The caller supplies it. In a table of
    sources, the importance is used unchanged.
    """
