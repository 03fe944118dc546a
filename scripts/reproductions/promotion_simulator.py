"""A simulated community: people visit places of a ranked list, and pages live and die.

The visits of a step are to the list of the end of the last step. The item at a place is drawn from
the law of the place, as if the list were merged anew for each visit, but without any merge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.random import Generator

from freshet.scheduler.arrays import Bools, Floats, Ints
from scripts.reproductions.promotion_model import Community, Rule, goal

#: Steps of which visits are drawn together.
_BLOCK = 64
#: The probability that a surfer follows no link, in 5.9.
_JUMP = 0.15


@dataclass(frozen=True, slots=True)
class Run:
    """Options of a simulation.

    Attributes:
        days: after the burn-in, which is some lives long.
        steps: rankings a day.
        surfing: the share of visits by people who follow links.
        probe: whether the best page lives until it is popular, and is born again then.
    """

    days: int
    seed: int
    burn_in: float = 8.0
    steps: int = 1
    surfing: float = 0.0
    probe: bool = False


@dataclass(slots=True)
class Outcome:
    """What a simulation found: normalized and absolute QPC, mean z, and TBP of each probe."""

    qpc: float
    absolute: float
    pool: float
    popular: list[float] = field(default_factory=list)


def simulate(community: Community, rule: Rule, run: Run) -> Outcome:
    """Run a community through its burn-in and ``run.days`` days."""
    world = World(community, rule, run)
    world.advance(round(run.burn_in * community.life * run.steps))
    world.gain = world.clicks = world.pools = 0.0
    world.popular.clear()
    world.advance(run.days * run.steps)
    absolute = world.gain / world.clicks
    pool = world.pools / (run.days * run.steps)
    return Outcome(absolute / community.best, absolute, pool, world.popular)


@dataclass(slots=True)
class Visits:
    """The visits of one step, as far as they do not depend on the state.

    Attributes:
        place: (v,), from 0.
        before: (v,), B, promoted pages at the places before, as the coins have it.
        coin: (v,), whether the coin of the place itself is for the pool.
        user: (v,), a number below m, and ``pick``, one below 1.
        surfs: (v,), 0: looks at the list; 1: follows a link; 2: goes to any page.
    """

    place: Ints
    before: Ints
    coin: Bools
    user: Ints
    pick: Floats
    surfs: Ints

    def part(self, start: int, stop: int) -> Visits:
        """Return some of them."""
        columns = (self.place, self.before, self.coin, self.user, self.pick, self.surfs)
        return Visits(*(column[start:stop] for column in columns))  # type: ignore[arg-type]


def drawn(community: Community, rule: Rule, run: Run, rng: Generator) -> Iterator[Visits]:
    """Yield the visits of each step without end.

    Uniform: place and ``before`` are those of the page's natural rank, s + NegBin(s, 1 − r).
    """
    cumulated = np.cumsum(community.attention)
    cumulated /= cumulated[-1]
    each = community.looks / run.steps
    while True:
        whole = np.full(_BLOCK, int(each))
        counts = whole if each == int(each) else rng.poisson(each, _BLOCK)
        size = int(counts.sum())
        place = np.searchsorted(cumulated, rng.random(size))
        behind = place - (rule.k - 1)
        before = rng.binomial(np.maximum(behind, 0), rule.r)
        coin = (rng.random(size) < rule.r) & (behind >= 0)
        if rule.uniform:
            outside = place - before + 1
            place, before = outside - 1 + rng.negative_binomial(outside, 1 - rule.r), 0 * before
        surfs = (rng.random(size) < run.surfing) * (1 + (rng.random(size) < _JUMP))
        visits = Visits(
            place, before, coin,
            rng.integers(community.monitored, size=size), rng.random(size), surfs,
        )  # fmt: skip
        bounds = np.append(0, np.cumsum(counts)).tolist()
        yield from (visits.part(*each) for each in pairwise(bounds))


class World:
    """The state: awareness, pages with some by popularity, and the others by birth.

    *Invariant.* ``order`` and ``unaware`` together have each page once; ``key``, the negative
    popularity of ``order``, ascends.
    """

    def __init__(self, community: Community, rule: Rule, run: Run) -> None:
        self.community, self.rule, self.run = community, rule, run
        self.rng = np.random.default_rng(run.seed)
        n = community.pages
        self.quality = community.quality
        self.aware = np.zeros(n, np.int64)
        self.order, self.key = np.zeros(0, np.int64), np.zeros(0)
        self.unaware = self.rng.permutation(n)
        self.visits = drawn(community, rule, run, self.rng)
        self.gain = self.clicks = self.pools = 0.0
        self.popular: list[float] = []
        self.day = self.born = 0.0
        self._touched = np.zeros(n, np.bool_)

    def advance(self, steps: int) -> None:
        """Go on for this number of steps."""
        for visits, _ in zip(self.visits, range(steps), strict=False):
            self.day += 1 / self.run.steps
            pages = self.visited(visits)
            self.gain += float(self.quality[pages].sum())
            self.clicks += len(pages)
            changed = self.learnt(pages, visits.user)
            self.rank(np.concatenate([changed, self.deaths()]))
            self.pools += len(self.unaware)

    def visited(self, visits: Visits) -> Ints:
        """The page of each visit."""
        ranked, pool, k = len(self.order), len(self.unaware), self.rule.k
        place, n = visits.place, self.community.pages
        if self.rule.uniform:
            anywhere = visits.coin | (place >= n)
            pages = self.listed(np.minimum(place, n - 1), visits.pick)
            pages[anywhere] = (visits.pick[anywhere] * n).astype(np.int64)
        elif not self.rule.r:
            pages = self.listed(place, visits.pick)
        else:
            behind = np.maximum(place - (k - 1), 0)
            least = np.maximum(behind - max(ranked - (k - 1), 0), 0)
            before = np.clip(visits.before, least, np.minimum(pool, behind))
            # Where the ranked pages are used up this is any page of the pool.
            pages = self.listed(place - before, visits.pick)
            promoted = visits.coin & (before < pool)
            pages[promoted] = self.unaware[(visits.pick[promoted] * pool).astype(np.int64)]
        if self.run.surfing:
            self.surf(pages, visits)
        return pages

    def listed(self, place: Ints, pick: Floats) -> Ints:
        """The pages at places of the list without promotion; those without popularity tie."""
        ranked, pool = len(self.order), len(self.unaware)
        found = np.empty(len(place), np.int64)
        seen = place < ranked
        found[seen] = self.order[place[seen]]
        if self.rule.older_first:
            found[~seen] = self.unaware[place[~seen] - ranked]
        else:
            found[~seen] = self.unaware[(pick[~seen] * pool).astype(np.int64)]
        return found

    def surf(self, pages: Ints, visits: Visits) -> None:
        """Replace the pages of those who do not look at the list."""
        follows, jumps = visits.surfs == 1, visits.surfs == 2
        if not len(self.order):
            follows, jumps = np.zeros_like(follows), follows | jumps
        else:
            cumulated = np.cumsum(-self.key)
            at = np.searchsorted(cumulated, visits.pick[follows] * cumulated[-1])
            pages[follows] = self.order[at]
        pages[jumps] = (visits.pick[jumps] * self.community.pages).astype(np.int64)

    def learnt(self, pages: Ints, user: Ints) -> Ints:
        """Count the users who are new to a page; return the pages that have some.

        Those who know a page are the first of its users, for only their number matters.
        """
        new = user >= self.aware[pages]
        # np.unique does the same with more overhead.
        pairs = np.sort(pages[new] * self.community.monitored + user[new])
        first = np.ones(len(pairs), np.bool_)
        first[1:] = pairs[1:] != pairs[:-1]
        changed = pairs[first] // self.community.monitored
        np.add.at(self.aware, changed, 1)
        return changed

    def deaths(self) -> Ints:
        """Let pages die; return them."""
        n, rng = self.community.pages, self.rng
        chance = -np.expm1(-1 / (self.community.life * self.run.steps))
        dead = rng.choice(n, rng.binomial(n, chance), replace=False, shuffle=False)
        if self.run.probe:
            dead = dead[dead != 0]
            if self.aware[0] >= goal(self.community.monitored):
                self.popular.append(self.day - self.born)
                self.born, dead = self.day, np.append(dead, 0)
        self.aware[dead] = 0
        return np.asarray(dead)

    def rank(self, changed: Ints) -> None:
        """Take these pages out of the order and insert them anew."""
        touched = self._touched
        touched[changed] = True
        stays = ~touched[self.order]
        order, key = self.order[stays], self.key[stays]
        waits = self.unaware[~touched[self.unaware]]
        changed = np.flatnonzero(touched)
        touched[changed] = False
        moved = changed[self.aware[changed] > 0]
        new = -self.aware[moved] * self.quality[moved]
        by_key = np.argsort(new)
        moved, new = moved[by_key], new[by_key]
        at = np.searchsorted(key, new) + np.arange(len(new))
        stays = np.ones(len(key) + len(new), np.bool_)
        stays[at] = False
        self.order, self.key = np.empty(len(stays), np.int64), np.empty(len(stays))
        self.order[at], self.order[stays] = moved, order
        self.key[at], self.key[stays] = new, key
        born = changed[self.aware[changed] == 0]
        self.unaware = np.concatenate([waits, self.rng.permutation(born)])
