"""What staleness costs: the harmonic and the binary objective in closed form.

Let N(t) be the number of a source's changes since its last crawl. Its costs are long-run time
averages, weighted with its importance μ, and a policy costs the sum over its sources:

    harmonic  J_h = μ E H(N),  H(n) = 1 + 1/2 + … + 1/n    every further change hurts less
    binary    J_b = μ P(N > 0)                             stale is stale

Changes come as a Poisson process of rate Δ. Sources of incomplete observations (W⁻ of the
paper) are crawled by the clock, those of complete observations (Wᵒ) when a signal tells of a
change; each at random or regularly. All that matters of these four ways of crawling is the law
of N at a random moment:

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
    complete_observations: (n,), True where crawls answer to signals; left out: nowhere.
    crawling: ``"poisson"`` (lines 1 and 3) or ``"periodic"`` (2 and 4, k = ⌈1/p⌉).

Edge cases: never crawled (ρ = 0) is inf for the harmonic cost and μ for the binary one; a
source without importance or without changes costs 0 however it is crawled. Bad values raise
ValueError, naming the argument and the row; so does a crawl rate above the change rate of a
source of complete observations (by more than 1e-9 of it, which is taken for rounding).

Numerical form: by x, or by (1 − p)/p from the exact difference Δ − pΔ; relative errors stay
below 1e-12 for Δ/ρ from 1e-12 to 1e12. One pass over the columns in pieces that stay in the
processor's cache: 18.5 million sources need no further columns.

Reference: Kolobov, Peres, Lu, Horvitz, "Staying up to Date with Online Content Changes Using
Reinforcement Learning for Scheduling", NeurIPS 2019: eq. 1 and 2, eq. 4 (Prop. 1), eq. 6
(Prop. 4), and eq. 8 for both classes together. Differs from the paper in: it has no regular
crawling (lines 2 and 4), which costs less at the same rates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import fsum
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc

from freshet.scheduler import arguments
from freshet.scheduler.arguments import Bools, Floats
from freshet.scheduler.harmonics import changed_mean, ein_mean, harmonic_number
from freshet.scheduler.policy import Crawling, CrawlPlan
from freshet.scheduler.sources import SourceTable

#: Change rates, crawl rates and classes of some rows → the figure of each at importance 1.
_Formula: TypeAlias = Callable[[Floats, Floats, Bools], Floats]
_Columns: TypeAlias = tuple[Floats, Floats, Floats, Bools]

_ROWS = 1 << 14
#: A crawl rate pΔ that was computed may miss its bound, and 1/p its whole number, by this.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Costs:
    """Both costs of each source, (n,): time averages, weighted with importance."""

    harmonic: Floats
    binary: Floats


def plan_costs(table: SourceTable, plan: CrawlPlan) -> Costs:
    """What each source costs under a plan, carried out as the plan says.

    Raises:
        ValueError: as told above, of the table's and the plan's columns.
    """
    columns = _checked(
        table.importance, table.change_rate, plan.crawl_rate, plan.on_signals, plan.crawling
    )
    return Costs(
        _each(_HARMONIC[plan.crawling], columns),
        _each(_BINARY[plan.crawling], columns),
    )


def harmonic_cost(
    importance: ArrayLike,
    change_rate: ArrayLike,
    crawl_rate: ArrayLike,
    *,
    complete_observations: ArrayLike | None = None,
    crawling: Crawling = "poisson",
) -> float:
    """J_h, the sum of :func:`harmonic_costs`.

    >>> round(harmonic_cost([2.0, 3.0], [1.0, 4.0], [1.0, 4.0]), 6)  # 5 ln 2
    3.465736
    """
    columns = _checked(importance, change_rate, crawl_rate, complete_observations, crawling)
    return fsum(float(cost.sum()) for cost in _pieces(_HARMONIC[crawling], columns))


def binary_cost(
    importance: ArrayLike,
    change_rate: ArrayLike,
    crawl_rate: ArrayLike,
    *,
    complete_observations: ArrayLike | None = None,
    crawling: Crawling = "poisson",
) -> float:
    """J_b, the sum of :func:`binary_costs`.

    >>> binary_cost([2.0, 4.0], [1.0, 1.0], [1.0, 0.75], complete_observations=[False, True])
    2.0
    """
    columns = _checked(importance, change_rate, crawl_rate, complete_observations, crawling)
    return fsum(float(cost.sum()) for cost in _pieces(_BINARY[crawling], columns))


def harmonic_costs(
    importance: ArrayLike,
    change_rate: ArrayLike,
    crawl_rate: ArrayLike,
    *,
    complete_observations: ArrayLike | None = None,
    crawling: Crawling = "poisson",
) -> Floats:
    """μ E H(N) of each source, (n,).

    >>> on_every_second = {"complete_observations": [True], "crawling": "periodic"}
    >>> harmonic_costs([6.0], [3.0], [1.5], **on_every_second).tolist()  # 6 (1 + 1/2 - 1)
    [3.0]
    """
    columns = _checked(importance, change_rate, crawl_rate, complete_observations, crawling)
    return _each(_HARMONIC[crawling], columns)


def binary_costs(
    importance: ArrayLike,
    change_rate: ArrayLike,
    crawl_rate: ArrayLike,
    *,
    complete_observations: ArrayLike | None = None,
    crawling: Crawling = "poisson",
) -> Floats:
    """μ P(N > 0) of each source, (n,).

    >>> binary_costs([5.0, 5.0, 5.0], [0.0, 1.0, 1.0], [0.0, 0.0, 4.0]).tolist()
    [0.0, 5.0, 1.0]
    """
    columns = _checked(importance, change_rate, crawl_rate, complete_observations, crawling)
    return _each(_BINARY[crawling], columns)


def harmonic_marginals(
    importance: ArrayLike,
    change_rate: ArrayLike,
    crawl_rate: ArrayLike,
    *,
    complete_observations: ArrayLike | None = None,
    crawling: Crawling = "poisson",
) -> Floats:
    """−∂J_h/∂ρ of each source, (n,): what one more crawl per day would save.

    By the clock it is J_b/ρ, for either way of crawling (d ln(1 + x)/d ln x = x/(1 + x), and
    alike for the other); on signals μ/(pΔ). A source that is never crawled has inf.

    Raises:
        ValueError: also for a source of complete observations that is crawled periodically:
            its cost is a step function of its rate and has no derivative.

    >>> harmonic_marginals([6.0, 6.0], [1.0, 4.0], [1.0, 3.0],
    ...                    complete_observations=[False, True]).tolist()
    [3.0, 2.0]
    """
    columns = _checked(importance, change_rate, crawl_rate, complete_observations, crawling)
    _refuse_steps(columns, crawling)
    return _each(_HARMONIC_MARGINAL[crawling], columns)


def binary_marginals(
    importance: ArrayLike,
    change_rate: ArrayLike,
    crawl_rate: ArrayLike,
    *,
    complete_observations: ArrayLike | None = None,
    crawling: Crawling = "poisson",
) -> Floats:
    """−∂J_b/∂ρ of each source, (n,): what one more crawl per day would save.

        by the clock, Poisson        μΔ/(Δ + ρ)²
        by the clock, every 1/ρ      (μ/Δ)(1 − e^{−x}(1 + x))
        on signals                   μ/Δ

    Raises:
        ValueError: as for :func:`harmonic_marginals`.

    >>> binary_marginals([8.0, 8.0], [1.0, 4.0], [1.0, 3.0],
    ...                  complete_observations=[False, True]).tolist()
    [2.0, 2.0]
    """
    columns = _checked(importance, change_rate, crawl_rate, complete_observations, crawling)
    _refuse_steps(columns, crawling)
    return _each(_BINARY_MARGINAL[crawling], columns)


def changes_per_crawl(change_rate: Floats, crawl_rate: Floats) -> Floats:
    """On which change a regular crawl answers: k = ⌈1/p⌉, p = crawl_rate/change_rate; (n,).

    A 1/p that misses a whole number by rounding only stays that number. No crawls give inf,
    a source without changes 1.

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


def _harmonic_marginal_poisson(delta: Floats, rho: Floats, complete: Bools) -> Floats:
    stale = _ratio(delta, np.where(complete, delta, delta + rho))
    return _ratio(stale, rho)


def _binary_marginal_poisson(delta: Floats, rho: Floats, complete: Bools) -> Floats:
    events = np.where(complete, delta, delta + rho)
    return _ratio(_ratio(delta, events), events)


def _harmonic_marginal_periodic(delta: Floats, rho: Floats, _: Bools) -> Floats:
    return _ratio(changed_mean(_ratio(delta, rho)), rho)


def _binary_marginal_periodic(delta: Floats, rho: Floats, _: Bools) -> Floats:
    # 1 − e^{−x}(1 + x) is the regularised incomplete gamma function P(2, x).
    return _ratio(np.asarray(gammainc(2.0, _ratio(delta, rho))), delta)


_HARMONIC: dict[Crawling, _Formula] = {
    "poisson": _harmonic_poisson,
    "periodic": _harmonic_periodic,
}
_BINARY: dict[Crawling, _Formula] = {
    "poisson": _binary_poisson,
    "periodic": _binary_periodic,
}
_HARMONIC_MARGINAL: dict[Crawling, _Formula] = {
    "poisson": _harmonic_marginal_poisson,
    "periodic": _harmonic_marginal_periodic,
}
_BINARY_MARGINAL: dict[Crawling, _Formula] = {
    "poisson": _binary_marginal_poisson,
    "periodic": _binary_marginal_periodic,
}


def _passed_over(delta: Floats, rho: Floats, complete: Bools) -> Floats:
    """Changes per day that no crawl answers to at once: Δ, or Δ − pΔ on signals."""
    # The difference of close numbers is exact; 1 − p would have lost its last digits.
    return np.where(complete, np.maximum(delta - rho, 0.0), delta)


def _ratio(above: Floats, below: Floats) -> Floats:
    """above/below, and 0 where nothing is above, whatever is below."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.divide(above, below, out=np.zeros_like(above), where=above > 0)


def _pieces(formula: _Formula, columns: _Columns) -> Iterator[Floats]:
    """μ times the formula, some rows at a time."""
    importance, change_rate, crawl_rate, complete = columns
    for start in range(0, len(importance), _ROWS):
        rows = slice(start, start + _ROWS)
        mu = importance[rows]
        figure = formula(change_rate[rows], crawl_rate[rows], complete[rows])
        # Where μ is 0 the cost is, even of a source that is never crawled.
        yield np.multiply(mu, figure, out=np.zeros_like(mu), where=mu > 0)


def _each(formula: _Formula, columns: _Columns) -> Floats:
    result = np.empty(len(columns[0]))
    start = 0
    for piece in _pieces(formula, columns):
        result[start : start + len(piece)] = piece
        start += len(piece)
    return result


def _checked(
    importance: ArrayLike,
    change_rate: ArrayLike,
    crawl_rate: ArrayLike,
    complete_observations: ArrayLike | None,
    crawling: str,
) -> _Columns:
    arguments.one_of("crawling", crawling, ("poisson", "periodic"))
    mu = arguments.non_negative("importance", importance)
    n = len(mu)
    delta = arguments.non_negative("change_rate", change_rate, n)
    rho = arguments.non_negative("crawl_rate", crawl_rate, n)
    if complete_observations is None:
        return mu, delta, rho, np.zeros(n, np.bool_)
    complete = arguments.flags("complete_observations", complete_observations, n)
    _refuse_unanswered(delta, rho, complete)
    return mu, delta, rho, complete


def _refuse_unanswered(delta: Floats, rho: Floats, complete: Bools) -> None:
    """A crawl on a signal answers to a change: there are no more of the one than of the other."""
    for start in range(0, len(delta), _ROWS):
        rows = slice(start, start + _ROWS)
        above = complete[rows] & (rho[rows] > delta[rows] * (1 + _ROUNDING))
        if above.any():
            row = start + int(np.argmax(above))
            raise ValueError(
                f"crawl_rate: row {row} is {rho[row]}; accepted is at most its change_rate "
                f"({delta[row]}), for its observations are complete"
            )


def _refuse_steps(columns: _Columns, crawling: Crawling) -> None:
    complete = columns[3]
    if crawling == "periodic" and complete.any():
        raise ValueError(
            f"complete_observations: row {int(np.argmax(complete))} is True; accepted is False, "
            "for the cost of crawling every k-th change has no derivative"
        )
