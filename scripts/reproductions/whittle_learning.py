"""Learners on Table 1's example and on random tables: our own, and the one of the 2019 paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.ephemeral.policies import PeriodPolicy, whittle_by_age
from freshet.scheduler.ephemeral.sources import EphemeralSources
from scripts.reproductions import whittle_lspe as lspe
from scripts.reproductions.whittle_items import Items, Told
from scripts.reproductions.whittle_measures import TABLE_1
from scripts.reproductions.whittle_periods import Outcome, run
from scripts.reproductions.whittle_plug_in import PlugIn

#: What our learner is told: whether it sees clicks, and what is configured for it.
CLICKS = "clicks seen, nothing configured"
RIGHT = "no clicks, worths and half-lives right"
WRONG = "no clicks, half-lives wrong by a factor of 2"
SAME = "no clicks, half-lives right, all worth the same"
VARIANTS = (CLICKS, RIGHT, WRONG, SAME)
#: The learner of the paper as its text has it, and where it leaves something open, other readings.
AS_PRINTED = "as printed"
READINGS = {
    AS_PRINTED: lspe.Settings(),
    "what is crawled drives it": lspe.Settings(drive="crawled"),
    "states in units of Λ": lspe.Settings(scale=250),
    "both": lspe.Settings(scale=250, drive="crawled"),
}
STEPS_C = (0.01, 0.1, 0.5, 0.9)
REGULARISATIONS = (1e-6, 1e-3, 1.0, 1e3)
#: The last part of a run is this share of it.
_LAST = 5


@dataclass(frozen=True, slots=True)
class Earned:
    """Rewards of runs from nothing, all (seeds,) but ``course``.

    Attributes:
        whole, last: utility per period over all steps, and over the last fifth.
        share: ``whole`` as a share of what the index policy that knows all earns of the same items.
        crawls: crawls per period.
        course: (seeds, steps), utility.
    """

    whole: Floats
    last: Floats
    share: Floats
    crawls: Floats
    course: Floats

    @classmethod
    def of(cls, rewards: list[Floats], crawled: list[Bools], known: Floats) -> Earned:
        """From each seed's rewards and crawls, and the mean that the knowing policy earns."""
        course = np.array(rewards)
        whole = course.mean(axis=1)
        tail = course[:, -(-course.shape[1] * (_LAST - 1) // _LAST) :]
        crawls = np.array([each.sum(axis=1).mean() for each in crawled])
        return cls(whole, tail.mean(axis=1), whole / known, crawls, course)

    def figures(self) -> dict[str, float]:
        """For the file of numbers."""
        return {
            "whole": float(self.whole.mean()),
            "whole_spread": float(self.whole.std(ddof=len(self.whole) > 1)),
            "whole_worst": float(self.whole.min()),
            "last": float(self.last.mean()),
            "last_spread": float(self.last.std(ddof=len(self.last) > 1)),
            "share": float(self.share.mean()),
            "share_worst": float(self.share.min()),
            "crawls": float(self.crawls.mean()),
        }


Tables = Callable[[int], tuple[EphemeralSources, int]]


def example(budget: int) -> Tables:
    """Table 1 for every seed."""
    return lambda _: (TABLE_1, budget)


def random_tables(wide: bool) -> Tables:
    """Three to ten sources, not all crawled; ``wide``: Λ over four orders of magnitude."""

    def drawn(seed: int) -> tuple[EphemeralSources, int]:
        rng = np.random.default_rng([seed, int(wide)])
        n = int(rng.integers(3, 11))
        decay = np.exp(rng.uniform(np.log(0.1), np.log(2), n))
        rate = 10.0 ** rng.uniform(-1, 3, n) if wide else rng.uniform(1, 10, n)
        return EphemeralSources.of(rate, rng.uniform(0.1, 1, n), decay), int(rng.integers(1, n))

    return drawn


def plug_in(tables: Tables, variant: str, steps: int, seeds: Sequence[int]) -> Earned:
    """Our learner, told as ``variant`` says."""
    outcomes: list[Outcome] = []
    known = np.empty(len(seeds))
    before, best = None, np.zeros((0, 0), np.bool_)
    for run_number, seed in enumerate(seeds):
        table, budget = tables(seed)
        streams = np.random.default_rng([seed, 2]).spawn(3)
        items = Items.drawn(table, steps, streams[0])
        coming = items.arriving(table)
        learner = configured(table, variant, streams[1])
        told = Told(learner, table, items, streams[2] if variant == CLICKS else None)
        outcomes.append(run(table, told, budget, steps, arriving=coming))
        if table is not before:
            # Who sees no state crawls the same whatever comes.
            before, best = table, run(table, whittle_by_age(table), budget, steps).crawled
        known[run_number] = rewards(table, best, coming).mean()
    courses = [outcome.reward for outcome in outcomes]
    return Earned.of(courses, [outcome.crawled for outcome in outcomes], known)


def configured(table: EphemeralSources, variant: str, rng: np.random.Generator) -> PlugIn:
    """A learner that knows nothing but what the variant says."""
    if variant == CLICKS:
        return PlugIn(table.cost)
    wrong = 2.0 ** rng.choice([-1, 1], len(table)) if variant == WRONG else 1.0
    worth = 1.0 if variant == SAME else table.mean_utility
    return PlugIn(table.cost, half_life=math.log(2) / table.decay * wrong, worth=worth)


def rewards(table: EphemeralSources, crawled: Bools, coming: Floats) -> Floats:
    """(steps,), what these crawls earn of these items."""
    earned, state = np.empty(len(coming)), np.zeros(len(table))
    for step, (arrived, chosen) in enumerate(zip(coming, crawled, strict=True)):
        state = table.retention * state + arrived
        earned[step] = state[chosen].sum()
        state[chosen] = 0
    return earned


def of_all(policy: PeriodPolicy, budget: int, steps: int) -> float:
    """Utility per period on the example, of a policy that need not learn."""
    return run(TABLE_1, policy, budget, steps).mean


@dataclass(frozen=True, slots=True)
class Lspe:
    """Runs of LSPE(0): what they earn, how many diverged, the share of thresholds held in place."""

    earned: Earned
    diverged: int
    held: float

    def figures(self) -> dict[str, float]:
        """For the file of numbers."""
        return self.earned.figures() | {"diverged": float(self.diverged), "held": self.held}


def paper_learner(settings: lspe.Settings, steps: int, seeds: Sequence[int]) -> Lspe:
    """LSPE(0) on the example; its share is of what the index earns of M = 1."""
    runs = [lspe.learn(TABLE_1, settings, steps, np.random.default_rng(seed)) for seed in seeds]
    best = of_all(whittle_by_age(TABLE_1), 1, steps)
    earned = Earned.of(
        [each.reward for each in runs], [each.crawled for each in runs], np.full(len(seeds), best)
    )
    diverged = sum(each.diverged is not None for each in runs)
    return Lspe(earned, diverged, float(np.mean([each.held.mean() for each in runs])))


def grid(steps: int, seeds: Sequence[int]) -> dict[tuple[float, float], Lspe]:
    """LSPE(0) by c and δ."""
    return {
        (c, delta): paper_learner(lspe.Settings(step=c, regularisation=delta), steps, seeds)
        for c, delta in product(STEPS_C, REGULARISATIONS)
    }
