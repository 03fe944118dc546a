"""The live study of chapter 5 (5.10), simulated: two groups rate jokes for 45 days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from freshet.scheduler.arrays import Floats, Ints

_DAYS, _MEASURED, _LIFE = 45, 15, 30
_PEOPLE = 962 // 2
_FIRST = 20
#: Rankings a day: the site of the study ranked at each vote.
_STEPS = 10


@dataclass(frozen=True, slots=True)
class Study:
    """Items with qualities top · i^(−exponent), and how many a person views on average.

    The thesis prints neither.
    """

    views: float
    top: float = 0.4
    exponent: float = 2 / 3
    items: int = 1_000

    @property
    def quality(self) -> Floats:
        """Q (n,), the probability that a person finds the item funny."""
        return np.asarray(self.top * np.arange(1.0, self.items + 1) ** -self.exponent)


class Group:
    """The votes of a group whose list has, or has not, unseen items from place 21 on.

    All others are by funny votes, ties by age. A person sees the unseen items in an order of his
    or her own, and has one vote an item.
    """

    def __init__(self, study: Study, *, promoted: bool, rng: Generator) -> None:
        self.study, self.promoted, self.rng = study, promoted, rng
        n = study.items
        self.funny, self.viewed = np.zeros(n, np.int64), np.zeros(n, np.bool_)
        self.end = rng.integers(1, _LIFE + 1, n)
        self.voted = np.zeros((_PEOPLE, n), np.bool_)
        self.preference = rng.random((_PEOPLE, n), np.float32)
        # Of first items, too, the one with less life left is the older.
        self.birth = self.end - _LIFE + rng.random(n)
        self.attention = np.cumsum(np.arange(1.0, n + 1) ** -1.5)
        self.attention /= self.attention[-1]

    def ratio(self) -> float:
        """The share of funny votes in the last days of the study."""
        votes = np.zeros(2, np.int64)
        for day in range(_DAYS):
            self.replace(day)
            for _ in range(_STEPS):
                found = self.views()
                if day >= _DAYS - _MEASURED:
                    votes += found
        return float(votes[0] / votes[1])

    def replace(self, day: int) -> None:
        """Let new items of the same quality take the place of those whose life ends."""
        old = np.flatnonzero(self.end == day)
        self.funny[old], self.viewed[old], self.voted[:, old] = 0, False, False
        self.end[old], self.birth[old] = day + _LIFE, day + self.rng.random(len(old))
        self.preference[:, old] = self.rng.random((_PEOPLE, len(old)), np.float32)

    def views(self) -> Ints:
        """Let people view the list of this moment; return their funny and all votes."""
        rng = self.rng
        size = rng.poisson(_PEOPLE * self.study.views / _DAYS / _STEPS)
        person = rng.integers(_PEOPLE, size=size)
        place = np.searchsorted(self.attention, rng.random(size))
        pairs = np.unique(person * self.study.items + self.items(person, place))
        person, item = np.divmod(pairs, self.study.items)
        self.viewed[item] = True
        new = ~self.voted[person, item]
        person, item = person[new], item[new]
        self.voted[person, item] = True
        is_funny = rng.random(len(item)) < self.study.quality[item]
        np.add.at(self.funny, item[is_funny], 1)
        return np.array([is_funny.sum(), len(item)])

    def items(self, person: Ints, place: Ints) -> Ints:
        """The items that people see at places, from 0."""
        order = np.lexsort((self.birth, -self.funny))
        if not self.promoted:
            return order[place]
        pool = np.flatnonzero(~self.viewed)
        ranked = order[self.viewed[order]]
        first = min(_FIRST, len(ranked))
        behind = place - first
        found = np.empty(len(place), np.int64)
        is_pool = (behind >= 0) & (behind < len(pool))
        found[~is_pool] = ranked[np.where(behind < 0, place, place - len(pool))[~is_pool]]
        for i in np.flatnonzero(is_pool):
            found[i] = pool[np.argsort(self.preference[person[i], pool])[behind[i]]]
        return found


def ratios(study: Study, runs: Sequence[int]) -> Floats:
    """The share of funny votes (runs, 2) without promotion and with it, by seeds."""
    return np.array(
        [
            [
                Group(study, promoted=p, rng=np.random.default_rng([seed, p])).ratio()
                for p in (False, True)
            ]
            for seed in runs
        ]
    )
