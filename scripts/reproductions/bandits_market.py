"""A synthetic market of search advertisements, in place of Yahoo!'s, and its days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise

import numpy as np

from freshet.crawler.extensions.readers.appeal import BetaPrior
from freshet.scheduler.arrays import Floats, Ints
from scripts.reproductions.bandit_policies import (
    BanditPlayers,
    BanditPolicy,
    earnings_bound,
    prior_plays,
)

#: Queries of the first day after which a prior is learnt again, beside every beginning of a day.
_AGAIN = frozenset({1_000, 5_000, 20_000, 60_000, 120_000})


@dataclass(frozen=True, eq=False)
class Market:
    """Advertisements by phrase, and within it by falling bid; queries and budgets of a day."""

    phrase: Ints
    advertiser: Ints
    bids: Floats
    clicks: Floats
    queries: Ints
    budgets: Floats

    @cached_property
    def ads(self) -> list[slice]:
        """The advertisements of each phrase."""
        starts = np.searchsorted(self.phrase, np.arange(len(self.queries) + 1)).tolist()
        return [slice(*each) for each in pairwise(starts)]

    def with_clicks(self, mean: float, seed: int) -> Market:
        """Return the same with click probabilities Beta(20 mean, 20 (1 − mean)), and budgets.

        A budget is 0.7 LogN(0, 0.7) of what greedy choice with known c would spend of it, at least
        the largest bid; 40 % of the advertisers have none.
        """
        generator = np.random.default_rng([seed, 1])
        clicks = generator.beta(20 * mean, 20 * (1 - mean), len(self.bids))
        worth, advertisers = self.bids * clicks, len(self.budgets)
        best = np.lexsort((-worth, self.phrase))[[each.start for each in self.ads]]
        spent = np.bincount(self.advertiser[best], self.queries * worth[best], advertisers)
        largest = np.zeros(advertisers)
        np.maximum.at(largest, self.advertiser, self.bids)
        budgets = 0.7 * np.exp(0.7 * generator.standard_normal(advertisers)) * spent
        limited = (generator.random(advertisers) < 0.6) & (largest > 0)
        budgets = np.where(limited, np.maximum(budgets, largest), np.inf)
        return replace(self, clicks=clicks, budgets=budgets)


def market(phrases: int, queries: int, advertisers: int, seed: int) -> Market:
    """Return a market of some 8.5 advertisements a phrase. All laws are ours."""
    generator = np.random.default_rng(seed)
    ads = np.minimum(generator.geometric(1 / 8, phrases) + (generator.random(phrases) < 0.5), 60)
    phrase = np.repeat(np.arange(phrases), ads)
    share = np.arange(1.0, advertisers + 1) ** -0.7
    advertiser = generator.choice(advertisers, len(phrase), p=share / share.sum())
    bids = 0.4 * np.exp(0.7 * generator.standard_normal(len(phrase)))
    bids = bids[np.lexsort((-bids, phrase))]
    asked = np.arange(1.0, phrases + 1) ** -0.8
    of_phrases = generator.permutation(generator.multinomial(queries, asked / asked.sum()))
    bare = Market(phrase, advertiser, bids, bids, of_phrases, np.ones(advertisers))
    return bare.with_clicks(0.04, seed)


@cache
def bound(of: Market, count: int = 1) -> float:
    """Return what no policy can earn more of in a day by so many advertisements a query."""
    return earnings_bound(
        worth=of.bids * of.clicks,
        instance=of.phrase,
        types=of.advertiser,
        invocations=of.queries.astype(float),
        budgets=of.budgets,
        count=count,
    )


def given_priors(clicks: Floats, share: float, confidence: float, seed: int) -> Floats:
    """Return (2, ads), successes and plays of priors that a share of the advertisements have.

    Section 6.8.1: μ of variance c(1 − v), redrawn until it is below v; none where c ≥ v.
    """
    generator = np.random.default_rng([seed, 2])
    has = (generator.random(len(clicks)) < share) & (clicks < confidence)
    c, prior = clicks[has], np.zeros((2, len(clicks)))
    strength, mean = prior_plays(c, confidence), np.ones(has.sum())
    while (again := np.flatnonzero(mean >= confidence)).size:
        part = strength[again]
        mean[again] = generator.beta(c[again] * part, (1 - c[again]) * part)
    prior[1, has] = prior_plays(mean, confidence)
    prior[0, has] = mean * prior[1, has]
    return prior


@dataclass(frozen=True, slots=True, eq=False)
class Contender:
    """A policy with what it is given.

    ``prior`` (2, ads) are successes and plays; if it ``learns_prior``, then that of all ads, by
    maximum likelihood, from time to time. After a mean ``life`` in days an advertisement is
    replaced by one like it that nobody knows. A ``market`` of its own has the same phrases, bids
    and queries.
    """

    name: str
    policy: BanditPolicy
    prior: Floats | float = 0.0
    learns_prior: bool = False
    life: float = np.inf
    market: Market | None = None


class Days:
    """Contenders in the same days of a market, query by query, with the same coins of clicks."""

    def __init__(self, market: Market, contenders: Sequence[Contender], seed: int) -> None:
        """Begin."""
        self._market, self._contenders = market, contenders
        self._generator = np.random.default_rng([seed, 3])
        own = [each.market or market for each in contenders]
        several = any(each.market for each in contenders)
        self._players = BanditPlayers(
            [each.policy for each in contenders],
            np.array([each.budgets for each in own]) if several else market.budgets,
            np.random.default_rng([seed, 4]),
        )
        self._clicks = np.array([each.clicks for each in own]) if several else market.clicks
        shape = 2, len(market.bids)
        prior = np.stack([np.broadcast_to(each.prior, shape) for each in contenders], axis=1)
        self._arms = [
            self._players.arms(market.bids[ads], market.advertiser[ads], prior[:, :, ads])
            for ads in market.ads
        ]
        self._left: dict[float, Ints] = {}
        self._again = _AGAIN

    def earned(self, days: int) -> Floats:
        """Return (days, contenders): what each earns in the next days."""
        earned = [self._players.earned.copy()]
        for _ in range(days):
            self._run()
            earned.append(self._players.earned.copy())
        return np.diff(earned, axis=0)

    def _run(self) -> None:
        self._learn_priors()
        phrases = np.repeat(np.arange(len(self._arms)), self._market.queries)
        phrases = self._generator.permutation(phrases)
        ends = np.cumsum(np.bincount(self._market.phrase)[phrases])
        coins, start = self._generator.random(ends[-1]), 0
        clicks = [self._clicks[..., ads] for ads in self._market.ads]
        for query, (phrase, end) in enumerate(zip(phrases.tolist(), ends.tolist(), strict=True)):
            self._players.play(self._arms[phrase], coins[start:end] < clicks[phrase])
            start = end
            if query in self._again:
                self._learn_priors()
        self._again = frozenset()
        self._players.begin_day()
        self._replace_ads()

    def _learn_priors(self) -> None:
        for row in (row for row, each in enumerate(self._contenders) if each.learns_prior):
            s = np.concatenate([each.successes[row] - each.prior[0, row] for each in self._arms])
            n = np.concatenate([each.plays[row] - each.prior[1, row] for each in self._arms])
            law = BetaPrior.fitted(s, n - s)
            for each in self._arms:
                each.believe(row, np.array([[law.mean * law.strength], [law.strength]]))

    def _replace_ads(self) -> None:
        """Forget the advertisements whose life is over; first lives are in their midst."""
        alive = np.ones((len(self._contenders), len(self._market.bids)))
        lives = np.array([each.life for each in self._contenders])
        for life in np.unique(lives[np.isfinite(lives)]).tolist():
            if life not in self._left:
                first = self._lives(life)
                self._left[life] = np.ceil(first * self._generator.random(len(first))).astype(int)
            over = self._left[life] <= 1
            self._left[life] = np.where(over, self._lives(life), self._left[life] - 1)
            alive[lives == life] = ~over
        if not alive.all():
            for arms, ads in zip(self._arms, self._market.ads, strict=True):
                arms.successes *= alive[:, ads]
                arms.plays *= alive[:, ads]

    def _lives(self, mean: float) -> Ints:
        """Return whole days of Poisson's law, none of them 0."""
        lives = np.zeros(len(self._market.bids), int)
        while (again := np.flatnonzero(lives == 0)).size:
            lives[again] = self._generator.poisson(mean, again.size)
        return lives
