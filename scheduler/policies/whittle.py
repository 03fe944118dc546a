"""The Whittle index of ephemeral content: the value of a crawl, for items with decaying utility.

Items appear at a source at rate Λ, with a mean utility of ξ̄, and decay at rate μ. A crawl collects
all that remains. Every T a crawler chooses which sources to crawl, Σ C_i v_i ≤ M. With

    α = e^{−μT},   u = (Λξ̄/μ)(1 − α),   u* = u/(1 − α) = Λξ̄/μ

the expected utility x of a source becomes αx + u if it is not crawled; if it is, x is earned and
the next state is u. The *index* γ(x) is the price per unit of cost at which crawling and waiting
are equal (Theorem 1):

    γ(x) = (1/C) [ η((1−α)x − u) + u(1 − α^η)/(1 − α) ],     η(x) = ⌈log_α(1 − x/u*)⌉

The state after k periods is x_k = u(1 − α^k)/(1 − α), where η = k, and

    γ(x_k) = (u/C) Σ_{j<k} (α^j − α^k) = (1/C) [ x_k − k u α^k ]

in words: the utility that the crawl earns, less k times the gain of waiting one more period. It
ranges from u(1 − α)/C at x = u to u*/C at x = u*.

    k    periods_since_crawl   whole periods; inf: never crawled       broadcast
    Λ    arrival_rate          items per unit of time                  broadcast
    ξ̄    mean_utility          utility                                 broadcast
    μ    decay                 per unit of time                        broadcast
    C    cost                  of a crawl, in the unit of M            broadcast
    T    period                time                                    one number
    γ    result                utility per unit of cost, at least 0

Method: one closed form per source, O(n). Numerical form: with h = μT and y = kh, γ = (Λξ̄T/C) k [
(φ(y) − e^{−y}) + e^{−y}(1 − φ(h)) ], φ(z) = (1 − e^{−z})/z; both terms are at least 0, and each is
a series for small arguments. The error is 1e-12 of the index.

If sources may be crawled at any time, T → 0, with the time τ since the crawl (P is the lower
incomplete gamma function, regularised):

    γ(τ) = (u*/C) [ 1 − (1 + μτ) e^{−μτ} ] = (u*/C) P(2, μτ),   u* = Λξ̄/μ

Edge cases: Λ = 0 or ξ̄ = 0 gives 0. μ = 0 gives 0 after any time: items without decay lose nothing
by waiting, so at any price above 0 the crawl is postponed. C = 0 is refused: a free crawl needs no
choice. Never crawled means x = u*, hence u*/C.

Raises ValueError, naming the argument and the row, for values that are negative, NaN or not finite,
and numbers of periods that are not whole.

Reference: K. Avrachenkov and V. Borkar, "Whittle Index Policy for Crawling Ephemeral Content", IEEE
Trans. Control of Network Systems 5(1), 2018, Theorem 1. Differs from the paper in: only states that
follow from crawls are supported.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Floats
from freshet.scheduler.policies.greedy_index import SMALL, fresh_share, stale_share
from freshet.scheduler.special_functions import lambert


def index(
    periods_since_crawl: ArrayLike,
    arrival_rate: ArrayLike,
    mean_utility: ArrayLike,
    decay: ArrayLike,
    *,
    cost: ArrayLike = 1.0,
    period: float = 1.0,
) -> Floats:
    """Return γ(x_k) of states a number of periods after a crawl.

    If an item loses half of its utility in a period, α = ½: after two periods the state is 1½ u,
    the index u(1 − ¼ + ½ − ¼) = u, and u = Λξ̄/(2μ).

    >>> index([1, 2, np.inf], 2 * np.log(2), 1.0, np.log(2)).round(6).tolist()
    [0.5, 1.0, 2.0]
    """
    k = _checked("periods_since_crawl", periods_since_crawl, _whole_or_never)
    income, mu, price = _sources(arrival_rate, mean_utility, decay, cost)
    step = arrays.budget("period", period)
    k, income, mu, price = _together(k, income, mu, price)
    return _result(income * step * _visited(k, mu * step) / price)


def index_after(
    elapsed: ArrayLike,
    arrival_rate: ArrayLike,
    mean_utility: ArrayLike,
    decay: ArrayLike,
    *,
    cost: ArrayLike = 1.0,
) -> Floats:
    """Return γ(τ) for crawls at any time, a time τ after the last; inf: never crawled.

    After the mean lifetime of an item, 1/μ, it is 1 − 2/e of u*, here 3.

    >>> index_after([0.0, 0.5, np.inf], 6.0, 1.0, 2.0).round(6).tolist()
    [0.0, 0.792723, 3.0]
    """
    tau = _checked("elapsed", elapsed, _elapsed)
    income, mu, price = _sources(arrival_rate, mean_utility, decay, cost)
    tau, income, mu, price = _together(tau, income, mu, price)
    decaying = mu > 0
    with np.errstate(over="ignore"):
        share = ripe(np.where(decaying, mu, 0.0) * np.where(decaying, tau, 0.0))
        value = np.divide(income, mu, out=np.zeros_like(tau), where=decaying) * share
    return _result(value / price)


def ripe(y: Floats) -> Floats:
    """Return γ(τ) as a share of its limit u*/C (n,), for unchecked y = μτ of at least 0.

    >>> ripe(np.array([0.0, 1.0])).round(6).tolist()  # 1 − 2/e
    [0.0, 0.264241]
    """
    # From 800 on the share is 1; inf would give NaN in the product.
    finite = np.minimum(y, 800.0)
    return finite * fresh_share(finite)


def elapsed_at(
    price: float,
    arrival_rate: ArrayLike,
    mean_utility: ArrayLike,
    decay: ArrayLike,
    *,
    cost: ArrayLike = 1.0,
) -> Floats:
    """Return the time τ at which γ(τ) is the price λ; inf if it never is, λC ≥ u*.

    The inverse of :func:`index_after`.

    >>> elapsed_at(3 * (1 - 2 / np.e), 6.0, 1.0, [2.0, 200.0]).round(6).tolist()
    [0.5, inf]
    """
    arrays.amount("price", price)
    income, mu, per_crawl = _sources(arrival_rate, mean_utility, decay, cost)
    income, mu, per_crawl = _together(income, mu, per_crawl)
    earns = (mu > 0) & (income > 0)
    share = np.divide(price * per_crawl * mu, income, out=np.ones_like(income), where=earns)
    with np.errstate(divide="ignore"):
        # P(2, y) = share is equivalent to y − ln(1 + y) = −ln(1 − share).
        y = lambert(-np.log1p(-np.minimum(share, 1.0)))
    return _result(np.divide(y, mu, out=np.full_like(mu, np.inf), where=earns))


def utility_after(
    periods: ArrayLike,
    arrival_rate: ArrayLike,
    mean_utility: ArrayLike,
    decay: ArrayLike,
    *,
    period: float = 1.0,
) -> Floats:
    """Return x_k, the expected utility a number of periods after a crawl; inf: u*.

    It is infinite for sources without decay that were never crawled.

    >>> utility_after([0, 1, 2, np.inf], 2 * np.log(2), 1.0, np.log(2)).round(6).tolist()
    [0.0, 1.0, 1.5, 2.0]
    """
    k = _checked("periods", periods, _whole_or_never)
    income, mu, _ = _sources(arrival_rate, mean_utility, decay, 1.0)
    step = arrays.budget("period", period)
    k, income, mu = _together(k, income, mu)
    with np.errstate(over="ignore"):
        y = np.where(mu > 0, k, 0.0) * mu * step
    decaying = -np.expm1(-y) / np.where(mu > 0, mu, 1.0)
    grown = np.where(income > 0, k, 0.0) * step
    return _result(income * np.where(mu > 0, decaying, grown))


def _visited(k: Floats, h: Floats) -> Floats:
    """Return (1/h) [1 − e^{−kh} − k(1 − e^{−h}) e^{−kh}], the index for Λξ̄T = C = 1."""
    never = np.isinf(k)
    finite = np.where(never, 0.0, k)
    with np.errstate(over="ignore"):
        y = finite * h
        left = np.exp(-y)
        small = np.minimum(y, SMALL)
        series = small / 2 * (1 - small * (2 / 3 - small * (1 / 4 - small * (1 / 15 - small / 72))))
        safe = np.where(h > 0, h, 1.0)
        closed = -np.expm1(-y) / safe - finite * left * (1 - stale_share(h))
        early = finite * (series + left * stale_share(h))
        late = np.where(h > 0, 1 / safe, 0.0)
    return np.where(never, late, np.where(y < SMALL, early, closed))


def _sources(
    arrival_rate: ArrayLike, mean_utility: ArrayLike, decay: ArrayLike, cost: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    rate = _checked("arrival_rate", arrival_rate, arrays.non_negative)
    utility = _checked("mean_utility", mean_utility, arrays.non_negative)
    mu = _checked("decay", decay, arrays.non_negative)
    price = _checked("cost", cost, arrays.positive)
    rate, utility = _together(rate, utility)
    return rate * utility, mu, price


def _whole_or_never(name: str, values: Floats) -> Floats:
    column = np.asarray(values, dtype=np.float64)
    # Above 2⁵³ every float is whole; so is infinity.
    arrays.counts(name, np.minimum(column, 2.0**53))
    return column


def _elapsed(name: str, values: Floats) -> Floats:
    column = np.asarray(values, dtype=np.float64)
    # A source that was never crawled was crawled infinitely long ago.
    arrays.non_negative(name, np.where(np.isposinf(column), 0.0, column))
    return column


def _checked(name: str, values: ArrayLike, check: Callable[[str, Floats], Floats]) -> Floats:
    array = np.asarray(values)
    return check(name, array.reshape(-1)).reshape(array.shape)


def _together(*columns: Floats) -> tuple[Floats, ...]:
    try:
        return np.broadcast_arrays(*columns)
    except ValueError as error:
        lengths = ", ".join(str(len(column)) for column in columns if column.ndim)
        raise ValueError(f"columns: have {lengths} rows; accepted is one per source") from error


def _result(values: Floats) -> Floats:
    # One number for one source: indexing a 0-dimensional array with () unwraps it.
    unwrapped: Floats = np.asarray(values, dtype=np.float64)[()]
    return unwrapped
