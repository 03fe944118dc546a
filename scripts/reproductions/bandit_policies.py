"""Budgeted multi-armed multi-bandits: which arms to play while the budgets of their types last.

Instances (search phrases; hosts) are invoked one at a time, not by choice. Each has arms
(advertisements; sections of the host), of which some are played. An arm of bid b succeeds with an
unknown probability c and then pays b out of the budget d of its type (an advertiser), which is
renewed every day. A day's earnings are to be large.

    s, n    successes and plays of an arm, those of its prior (α, α + β) included    ĉ = s/n
    N       invocations of the instance, the present one included, of today or since the beginning
    r       what is left of d

An arm whose r is below its bid is not played. Among the others those of the largest index are:

    GREEDY      ĉ b
    MIX         (ĉ + √(2 ln N / n)) b                             heeds no budgets
    BMIX        the same, heeds them
    BMIX-E      (ĉ + √(min(¼, V) ln N / n)) b,                    V = ĉ(1 − ĉ) + √(2 ln N / n)
    -T, -ET     times φ = 1 − exp(−r/d); without a limit 1 − 1/e
    KL-UCB      b times the largest q with n kl(ĉ, q) ≤ ln N
    Thompson    b times a draw of Beta(s, n − s); wants a prior
    BPOL(POL)   POL, begun again whenever an arm of the instance has run out of budget, on those
                that are left: with the prior ("forget"), or with all counts as one ("keep")

An arm that was never played comes first. A known c is a prior of mean c and enormous n. Policies
are rows of arrays, arms columns: many play on the same outcomes at the cost of few.

Reference: S. Pandey, thesis (Carnegie Mellon 2008), chapter 6; Auer et al. 2002 (UCB1-Tuned);
Garivier and Cappé 2011 (KL-UCB). Differs from the thesis in: ties go to the first arm, and N may
count since the beginning, as theorem 4 needs it (``daily=False``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.random import Generator

from freshet.crawler.extensions.readers.appeal import kl_upper_bound
from freshet.scheduler.arrays import Bools, Floats, Ints

#: Plays below which an arm counts as never played, in place of a division by 0.
_NEVER: Final = 1e-9

# -- policies ----------------------------------------------------------------

#: From ĉ and n (policies, arms) and ln N (policies, 1): what a success counts for per unit of bid.
ArmIndex: TypeAlias = Callable[[Floats, Floats, Floats, Generator], Floats]


def posterior_mean(mean: Floats, _n: Floats, _log: Floats, _: Generator) -> Floats:
    """Return ĉ."""
    return mean


def ucb1(mean: Floats, plays: Floats, log_invocations: Floats, _: Generator) -> Floats:
    """Return ĉ + √(2 ln N / n)."""
    return mean + np.sqrt(2 * log_invocations / plays)


def ucb1_tuned(mean: Floats, plays: Floats, log_invocations: Floats, _: Generator) -> Floats:
    """Return ĉ + √(min(¼, V) ln N / n) with V = ĉ(1 − ĉ) + √(2 ln N / n)."""
    ratio = log_invocations / plays
    variance = mean * (1 - mean) + np.sqrt(2 * ratio)
    return mean + np.sqrt(ratio * np.minimum(0.25, variance))


def kl_ucb(mean: Floats, plays: Floats, log_invocations: Floats, _: Generator) -> Floats:
    """Return the largest q with n kl(ĉ, q) ≤ ln N."""
    return kl_upper_bound(mean, log_invocations / plays)


def thompson(mean: Floats, plays: Floats, _log: Floats, generator: Generator) -> Floats:
    """Return draws of the arms' posterior laws; each arm needs a prior."""
    successes = np.maximum(mean * plays, _NEVER)
    return generator.beta(successes, np.maximum(plays - successes, _NEVER))


@dataclass(frozen=True, slots=True)
class BanditPolicy:
    """A rule that chooses ``count`` arms of the instance that is invoked.

    ``restart`` is BPOL's; ``daily``: N is of today; ``random_ties`` do not go to the first arm;
    ``tries_all`` puts arms first that were never played.
    """

    index: ArmIndex
    heeds_budgets: bool = True
    throttled: bool = False
    restart: Literal["never", "forget", "keep"] = "never"
    daily: bool = True
    random_ties: bool = False
    tries_all: bool = True
    count: int = 1


GREEDY: Final = BanditPolicy(posterior_mean)
MIX: Final = BanditPolicy(ucb1, heeds_budgets=False)
BMIX: Final = BanditPolicy(ucb1)
BMIX_E: Final = BanditPolicy(ucb1_tuned)
BMIX_T: Final = BanditPolicy(ucb1, throttled=True)
BMIX_ET: Final = BanditPolicy(ucb1_tuned, throttled=True)
BPOL_MIX: Final = BanditPolicy(ucb1, restart="forget")
KL_UCB: Final = BanditPolicy(kl_ucb)
THOMPSON: Final = BanditPolicy(thompson)
RANDOM: Final = BanditPolicy(lambda mean, *_: 0 * mean, random_ties=True, tries_all=False)


def prior_plays(mean: Floats, confidence: float) -> Floats:
    """Return α + β = (v − μ)/(1 − v) of the beta law of mean μ and variance μ(1 − v), v > μ.

    ``mean`` is (n,), ``confidence`` below 1. Reference: section 6.8.1, where σ is the variance.

    >>> prior_plays(np.array([0.2]), 0.9).round(6).tolist()
    [7.0]
    """
    return (confidence - mean) / (1 - confidence)


# -- play --------------------------------------------------------------------


class Arms:
    """The arms of one instance, as each of the policies that play them knows them.

    Arms (n,) stand in the order in which ties prefer them: usually by falling bid. ``budgets``
    (policies or 1, n) are those of their ``types``, ``room`` what may be spent of them before an
    arm is out. ``successes`` and ``plays`` (policies, n) include the ``prior`` (2, policies, n).
    """

    def __init__(self, *, bids: Floats, types: Ints, budgets: Floats, prior: Floats) -> None:
        """Begin with the prior."""
        self.bids, self.types = bids, types
        self.budgets, self.room = budgets, budgets - bids
        self.prior = prior
        self.successes, self.plays = prior.copy()
        self.invocations = np.zeros((prior.shape[1], 1))
        self.playable = np.ones(prior.shape[1:], bool)
        self.day = 0

    def believe(self, row: int, prior: Floats) -> None:
        """Put another prior (2, n) in the place of that of a policy; what it saw is kept."""
        self.successes[row] += prior[0] - self.prior[0, row]
        self.plays[row] += prior[1] - self.prior[1, row]
        self.prior[:, row] = prior


class BanditPlayers:
    """Policies that play the same instances side by side, each with budgets of its own.

    ``budgets`` is (types,) or (policies, types), above 0, ``inf`` without a limit. ``spent``
    (policies, types) is of today and never above them, ``earned`` (policies,) is of all days.

    >>> players = BanditPlayers([GREEDY], np.array([1.0, np.inf]), np.random.default_rng(0))
    >>> arms = players.arms(bids=np.array([1.0, 0.4]), types=np.array([0, 1]))
    >>> for _ in range(5):  # the first earns 1, the other 0.4 each time
    ...     players.play(arms, np.array([True, True]))
    >>> players.earned.round(6).tolist(), arms.plays.tolist()
    ([2.6], [[1.0, 4.0]])
    """

    def __init__(
        self, policies: Sequence[BanditPolicy], budgets: Floats, generator: Generator
    ) -> None:
        """Begin the first day."""
        self.budgets = np.atleast_2d(budgets)
        self.spent = np.zeros((len(policies), self.budgets.shape[1]))
        self.earned = np.zeros(len(policies))
        self._generator, self._day = generator, 0
        self._indices: list[tuple[slice, ArmIndex]] = []
        for index, group in groupby(range(len(policies)), lambda row: policies[row].index):
            rows = list(group)
            self._indices.append((slice(rows[0], rows[-1] + 1), index))
        self._rows = np.arange(len(policies))[:, None]
        counts = np.array([[each.count] for each in policies])
        self._within = np.arange(counts.max()) < counts
        self._blind = np.array([[not each.heeds_budgets] for each in policies])
        self._throttled = np.array([[each.throttled] for each in policies])
        self._restarts = np.array([[each.restart != "never"] for each in policies])
        self._forgets = np.array([each.restart == "forget" for each in policies])
        self._daily = np.array([each.daily for each in policies])
        self._random = np.flatnonzero([each.random_ties for each in policies])
        self._tries = np.array([[each.tries_all] for each in policies])
        self._throttles, self._begins_again = bool(self._throttled.any()), self._restarts.any()

    def arms(self, bids: Floats, types: Ints, prior: Floats | float = 0.0) -> Arms:
        """Return an instance's arms; ``prior`` is (2, policies, n): α and α + β, or 0 for none."""
        prior = np.zeros((2, len(self._rows), len(bids))) + prior
        return Arms(bids=bids, types=types, budgets=self.budgets[:, types], prior=prior)

    def begin_day(self) -> None:
        """Renew the budgets."""
        self.spent[:] = 0
        self._day += 1

    def play(self, arms: Arms, succeeds: Bools) -> None:
        """Invoke an instance: choose arms, pay for successes, learn from all.

        ``succeeds`` (n,) or (policies, n) says which arms would succeed if they were played. What
        succeeds but no longer fits its budget is learnt and pays nothing.
        """
        if arms.day != self._day:
            arms.day = self._day
            arms.invocations[self._daily] = 0
            arms.playable[:] = True
        arms.invocations += 1
        spent = self.spent.take(arms.types, axis=1)
        playable = (spent <= arms.room) | self._blind
        if self._begins_again:
            self._restart(arms, playable)
        priority = self._priority(arms, spent)
        np.copyto(priority, -np.inf, where=~playable)
        columns, places = self._best(priority)
        arms.plays.reshape(-1)[places] += 1
        if succeeds.any():
            hits = succeeds.take(columns if succeeds.ndim == 1 else places)
            self._pay(arms, places[hits])

    def _restart(self, arms: Arms, playable: Bools) -> None:
        lost = ((arms.playable > playable) & self._restarts).any(axis=1)
        if lost.any():
            arms.invocations[lost] = 1
            forgetful = lost & self._forgets
            arms.successes[forgetful], arms.plays[forgetful] = arms.prior[:, forgetful]
        arms.playable = playable

    def _priority(self, arms: Arms, spent: Floats) -> Floats:
        plays = np.maximum(arms.plays, _NEVER)
        mean, log = arms.successes / plays, np.log(arms.invocations)
        priority = np.empty(plays.shape)
        for rows, index in self._indices:
            priority[rows] = index(mean[rows], plays[rows], log[rows], self._generator)
        priority *= arms.bids
        if self._throttles:
            left = -np.expm1(spent / arms.budgets - 1)
            np.multiply(priority, left, out=priority, where=self._throttled)
        np.copyto(priority, np.inf, where=(arms.plays < _NEVER) & self._tries)
        return priority

    def _best(self, priority: Floats) -> tuple[Ints, Ints]:
        """Return the columns of the arms that are played, and their places in all arms, flat."""
        most = self._within.shape[1]
        columns = priority.argmax(axis=1)[:, None]
        if most > 1:
            columns = np.argsort(-priority, axis=1, kind="stable")[:, :most]
        if self._random.size:
            rows = priority[self._random]
            order = np.lexsort((-self._generator.random(rows.shape), -rows), axis=1)
            columns[self._random] = order[:, :most]
        places = columns + self._rows * priority.shape[1]
        chosen = (priority.take(places) > -np.inf) & self._within[:, : columns.shape[1]]
        return (columns, places) if chosen.all() else (columns[chosen], places[chosen])

    def _pay(self, arms: Arms, successful: Ints) -> None:
        arms.successes.reshape(-1)[successful] += 1
        for place in successful.tolist():
            row, column = divmod(place, len(arms.bids))
            kind, bid = arms.types[column], arms.bids[column]
            spent = self.spent[row, kind] + bid
            if spent <= self.budgets[row % len(self.budgets), kind]:
                self.spent[row, kind] = spent
                self.earned[row] += bid


# -- bound -------------------------------------------------------------------


def earnings_bound(
    *, worth: Floats, instance: Ints, types: Ints, invocations: Floats, budgets: Floats, count: int
) -> float:
    """Return what no policy can earn more of in a day on average: an LP's optimum + 0.1 % at most.

    The LP maximises Σ w x over the plays x of the arms, with x ≤ N_j (``invocations`` of its
    instance j), Σ x ≤ ``count`` N_j within an instance, Σ w x ≤ d within a type; w = b c is their
    ``worth``. With prices λ ≥ 0 of the budgets its dual, a bound for every λ, is

        D(λ) = Σ_i d_i λ_i + Σ_j N_j · (sum of the ``count`` largest positive (1 − λ) w of j's arms)

    It is minimised by subgradients scaled as in AdaGrad, at the mean of λ with weights t².
    ``worth``, ``instance`` (ascending), ``types`` are (arms,), ``invocations`` (instances,) and
    ``budgets`` (types,), above 0, ``inf`` without a limit.
    """
    limited = np.isfinite(budgets)
    limits, times = np.where(limited, budgets, 1.0), invocations[instance]
    rank = np.arange(len(worth)) - np.searchsorted(instance, instance)
    prices, average, squares = np.zeros((3, len(budgets)))
    best, steps = np.inf, 600
    for step in range(1, steps + 1):
        prices = average if step == steps else prices
        value = (1 - prices[types]) * worth
        order = np.lexsort((-value, instance))[rank < count]
        chosen = order[value[order] > 0]
        best = min(best, float(limits @ prices + times[chosen] @ value[chosen]))
        spent = np.bincount(types[chosen], times[chosen] * worth[chosen], len(budgets))
        slope = np.where(limited, np.minimum(spent / limits - 1, 10.0), 0.0)
        squares += slope**2
        prices = np.clip(prices + 0.3 * slope / (squares + 1e-12) ** 0.75, 0, 1)
        average += (prices - average) * 6 * step / ((step + 1) * (2 * step + 1))
    return best
