"""Budgeted bandits, against a player written out arm by arm, and the thesis' theorems."""

from dataclasses import replace
from math import exp, inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, sparse, stats

from scripts.reproductions import bandit_policies as bandits
from scripts.reproductions.bandit_policies import (
    BanditPlayers,
    BanditPolicy,
    earnings_bound,
    prior_plays,
)

CERTAIN = 1e12
POLICIES = {
    "GREEDY": bandits.GREEDY,
    "MIX": bandits.MIX,
    "BMIX": bandits.BMIX,
    "BMIX-E": bandits.BMIX_E,
    "BMIX-T": bandits.BMIX_T,
    "BMIX-ET": bandits.BMIX_ET,
    "BPOL": bandits.BPOL_MIX,
    "BPOL keeps": replace(bandits.BPOL_MIX, restart="keep"),
}


class OneByOne:
    """A policy of the thesis as its text says it, one arm at a time."""

    def __init__(
        self, name: str, count: int, bids: list[list[float]], budgets: list[float]
    ) -> None:
        self.name, self.count, self.bids = name, count, bids
        self.budgets, self.left = budgets, list(budgets)
        self.shown = [[0] * len(each) for each in bids]
        self.clicked = [[0] * len(each) for each in bids]
        self.asked = [0] * len(bids)
        self.out: list[set[int]] = [set() for _ in bids]
        self.earned = 0.0

    def begin_day(self) -> None:
        self.left = list(self.budgets)
        self.asked = [0] * len(self.bids)
        self.out = [set() for _ in self.bids]

    def priority(self, phrase: int, arm: int, kind: int) -> float:
        n, bid = self.shown[phrase][arm], self.bids[phrase][arm]
        if n == 0:
            return inf
        c, ratio = self.clicked[phrase][arm] / n, log(self.asked[phrase]) / n
        if self.name == "GREEDY":
            return c * bid
        if "E" in self.name.removeprefix("BPOL"):
            value = c + sqrt(ratio * min(0.25, c * (1 - c) + sqrt(2 * ratio)))
        else:
            value = c + sqrt(2 * ratio)
        if self.name.endswith("T"):
            limited = self.budgets[kind] < inf
            value *= 1 - exp(-self.left[kind] / self.budgets[kind] if limited else -1)
        return value * bid

    def play(self, phrase: int, types: list[int], succeeds: list[bool]) -> None:
        self.asked[phrase] += 1
        bids = self.bids[phrase]
        fit = [arm for arm, bid in enumerate(bids) if self.left[types[arm]] >= bid]
        out = set(range(len(bids))) - set(fit)
        if self.name.startswith("BPOL") and out - self.out[phrase]:
            self.asked[phrase] = 1
            if self.name == "BPOL":
                self.shown[phrase], self.clicked[phrase] = [0] * len(bids), [0] * len(bids)
        self.out[phrase] = out
        arms = range(len(bids)) if self.name == "MIX" else fit
        order = sorted(arms, key=lambda arm: (-self.priority(phrase, arm, types[arm]), arm))
        for arm in order[: self.count]:
            self.shown[phrase][arm] += 1
            if succeeds[arm]:
                self.clicked[phrase][arm] += 1
                if self.left[types[arm]] >= bids[arm]:
                    self.left[types[arm]] -= bids[arm]
                    self.earned += bids[arm]


@given(st.integers(0, 2**32), st.integers(1, 3))
def test_policies_side_by_side_do_what_each_does_arm_by_arm(seed: int, count: int) -> None:
    """Bids and budgets are any numbers, so that only arms never played tie."""
    generator = np.random.default_rng(seed)
    bids = [np.sort(generator.random(n))[::-1] for n in generator.integers(1, 6, 3)]
    types = [generator.integers(0, 4, len(each)) for each in bids]
    budgets = np.append(1 + 4 * generator.random(3), inf)
    policies = [replace(each, count=count) for each in POLICIES.values()]
    players = BanditPlayers(policies, budgets, generator)
    arms = [players.arms(bid, kind) for bid, kind in zip(bids, types, strict=True)]
    slow = [
        OneByOne(name, count, [each.tolist() for each in bids], budgets.tolist())
        for name in POLICIES
    ]
    for step in range(60):
        if step == 40:
            players.begin_day()
            for each in slow:
                each.begin_day()
        phrase = int(generator.integers(3))
        succeeds = generator.random(len(bids[phrase])) < 0.4
        players.play(arms[phrase], succeeds)
        for each in slow:
            each.play(phrase, types[phrase].tolist(), succeeds.tolist())
        assert (players.spent <= players.budgets).all()
    for phrase, known_arms in enumerate(arms):
        assert known_arms.plays.tolist() == [one.shown[phrase] for one in slow]
        assert known_arms.successes.tolist() == [one.clicked[phrase] for one in slow]
    assert players.earned == pytest.approx([one.earned for one in slow])


def known(clicks: np.ndarray, policies: int = 1) -> np.ndarray:
    """Return a prior that no outcome moves."""
    return np.repeat(np.stack((clicks, np.ones_like(clicks)))[:, None] * CERTAIN, policies, axis=1)


def shares(policies: list[BanditPolicy], *, known_clicks: bool) -> list[float]:
    """Return earnings by the optimum where theorem 3 is tight.

    Two advertisers want phrase A, the first alone wants B, and all A are asked before all B; each
    budget is what half of the queries are worth.
    """
    queries, generator, click = 10_000, np.random.default_rng(1), np.array([0.5, 0.4999])
    players = BanditPlayers(policies, np.full(2, queries / 4), generator)
    for arms in (2, 1):
        prior = known(click[:arms], len(policies)) if known_clicks else 0.0
        instance = players.arms(np.ones(arms), np.arange(arms), prior)
        for coins in generator.random((queries // 2, arms)):
            players.play(instance, coins < click[:arms])
    return [float(each) for each in players.earned / (queries / 2)]


def test_theorem_3_is_tight_and_throttling_earns_three_quarters_of_the_optimum() -> None:
    greedy, throttled = shares([bandits.GREEDY, bandits.BMIX_T], known_clicks=True)
    assert greedy == pytest.approx(0.509, abs=0.01)
    assert throttled == pytest.approx(0.758, abs=0.015)
    learners = shares([bandits.BMIX, bandits.BMIX_E, bandits.BMIX_ET], known_clicks=False)
    assert all(0.70 < share < 0.80 for share in learners)


def staircase(order: slice) -> list[float]:
    """Return what GREEDY and its throttled form earn of the optimum on MSVV's staircase."""
    types, queries = 40, 50
    policies = [bandits.GREEDY, replace(bandits.GREEDY, throttled=True)]
    players = BanditPlayers(policies, np.full(types, float(queries)), np.random.default_rng(0))
    for first in range(types):
        wanted = np.arange(first, types)[order]
        arms = players.arms(np.ones(len(wanted)), wanted, known(np.ones(len(wanted)), 2))
        for _ in range(queries):
            players.play(arms, np.ones(len(wanted), bool))
    return [float(each) for each in players.earned / (types * queries)]


def test_on_the_staircase_ties_decide_what_greedy_earns_and_throttling_is_safe() -> None:
    assert staircase(slice(None, None, -1)) == pytest.approx([0.500, 0.639], abs=0.004)
    assert staircase(slice(None))[0] == 1


def test_mix_shows_wrong_arms_no_more_often_than_theorem_4_allows() -> None:
    """Count over ten runs, each a row with coins of its own."""
    generator, runs, invocations = np.random.default_rng(4), 10, 3_000
    clicks, bids = generator.beta(0.8, 3.2, 40), np.exp(0.7 * generator.standard_normal(40))
    policies = [replace(bandits.MIX, daily=False)] * runs
    players = BanditPlayers(policies, np.full(40, inf), generator)
    arms = players.arms(bids, np.arange(40))
    for _ in range(invocations):
        players.play(arms, generator.random((runs, 40)) < clicks)
    worth = clicks * bids
    wrong = worth < worth.max()
    gap = worth.max() - worth[wrong]
    allowed = np.ceil(8 * log(invocations) * bids[wrong] ** 2 / gap**2) + 1 + np.pi**2 / 3
    share = arms.plays.mean(axis=0)[wrong] / allowed
    assert 0.05 < share.max() < 0.5


@pytest.mark.parametrize(("confidence", "chance"), [(0.9, 0.492), (0.95, 0.681), (0.98, 0.893)])
def test_a_prior_is_as_near_the_truth_as_the_exact_law_says(
    confidence: float, chance: float
) -> None:
    """Section 6.8.1 prints 0.58, 0.68, "almost 0.90": the first is a misprint."""
    plays = prior_plays(np.array([0.2]), confidence)[0]
    law = stats.beta(0.2 * plays, 0.8 * plays)
    assert law.var() == pytest.approx(0.2 * (1 - confidence))
    assert law.cdf(0.3) - law.cdf(0.1) == pytest.approx(chance, abs=5e-4)


def optimum(
    worth: np.ndarray, instance: np.ndarray, types: np.ndarray, invocations: np.ndarray,
    *, budgets: np.ndarray, count: int,
) -> float:  # fmt: skip
    """Return the LP's optimum, by HiGHS."""
    arms, limited = np.arange(len(worth)), np.flatnonzero(budgets < inf)
    shown = sparse.csr_array((np.ones(len(worth)), (instance, arms)))
    paid = sparse.csr_array((worth, (types, arms)), shape=(len(budgets), len(worth)))[limited]
    most = np.concatenate((count * invocations, budgets[limited]))
    rows = optimize.LinearConstraint(sparse.vstack([shown, paid]), -inf, most)
    found = optimize.milp(
        -worth, constraints=rows, bounds=optimize.Bounds(0, invocations[instance])
    )
    assert found.fun is not None
    return -found.fun


@pytest.mark.parametrize(
    ("phrases", "advertisers", "count", "seed"),
    [*((12, 5, 1 + seed % 3, seed) for seed in range(12)), (600, 200, 1, 1), (300, 100, 4, 1)],
)
def test_the_bound_is_the_optimum_of_the_linear_programme(
    phrases: int, advertisers: int, count: int, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    instance = np.repeat(np.arange(phrases), generator.geometric(1 / 8, phrases))
    types = np.floor(advertisers * generator.random(len(instance)) ** 2).astype(int)
    worth = generator.beta(0.8, 19.2, len(instance)) * np.exp(
        generator.standard_normal(len(instance))
    )
    invocations = np.floor(1 + 400 / (1 + generator.permutation(phrases)) ** 0.8)
    whole = np.bincount(types, invocations[instance] * worth, advertisers)
    budgets = np.where(generator.random(advertisers) < 0.6, 0.2 * whole + 0.1, inf)
    best = optimum(worth, instance, types, invocations, budgets=budgets, count=count)
    bound = earnings_bound(
        worth=worth,
        instance=instance,
        types=types,
        invocations=invocations,
        budgets=budgets,
        count=count,
    )
    assert best * (1 - 1e-9) <= bound <= best * 1.001


def test_ties_at_random_and_random_choice_take_all_arms_alike() -> None:
    policies = [replace(bandits.GREEDY, random_ties=True), bandits.RANDOM]
    players = BanditPlayers(policies, np.array([1.0, inf]), np.random.default_rng(3))
    types = np.array([0, 1, 1, 1])
    arms = players.arms(np.array([2.0, 1.0, 1.0, 1.0]), types, known(np.full(4, 0.1), 2))
    for _ in range(3_000):
        players.play(arms, np.zeros(4, bool))
    shown = arms.plays - CERTAIN
    assert shown[:, 0].tolist() == [0, 0]
    assert shown[:, 1:] == pytest.approx(1_000, abs=100)


def test_thompson_draws_from_the_posterior_law_and_kl_ucb_is_above_it() -> None:
    mean, plays = np.full((1, 4_000), 0.2), np.full((1, 4_000), 12.0)
    drawn = bandits.thompson(mean, plays, plays, np.random.default_rng(1))
    assert drawn.mean() == pytest.approx(0.2, abs=0.01)
    assert drawn.var() == pytest.approx(0.2 * 0.8 / 13, rel=0.1)
    (upper,) = bandits.kl_ucb(mean[:, :1], plays[:, :1], np.array([[3.0]]), np.random.default_rng())
    divergence = stats.entropy([0.2, 0.8], [upper[0], 1 - upper[0]])
    assert 12 * divergence == pytest.approx(3.0)


def test_another_prior_leaves_what_was_seen() -> None:
    players = BanditPlayers([bandits.BMIX], np.array([inf]), np.random.default_rng(0))
    arms = players.arms(np.ones(1), np.zeros(1, int), np.array([[[1.0]], [[10.0]]]))
    players.play(arms, np.array([True]))
    arms.believe(0, np.array([[0.5], [4.0]]))
    assert (arms.successes.item(), arms.plays.item()) == (1.5, 5.0)
