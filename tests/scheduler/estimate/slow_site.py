"""The model of a site as its equations have it, without any care for speed.

:mod:`freshet.scheduler.estimate.site_model` has the method; arrays are as there.
"""

from math import sqrt
from typing import Final

import numpy as np

from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.estimate.site_model import GENERAL_PRIOR, POINTS, RATES

_ROUNDS: Final = 6


class SlowSite:
    """Pages of a site, of these areas (n,), each visited for the first time on day 0.

    The rate of each is ``above`` (n,) points of the grid higher than a usual one.
    """

    def __init__(self, area: Ints, above: Ints) -> None:
        self.area, self.groups = area, int(area.max()) + 2
        #: (n, 40), the point of each page's rate, by that of the usual one.
        self.point = np.clip(np.arange(POINTS) + above[:, None], 0, POINTS - 1)
        self.began, self.compared = [0.0], 0
        self.session = np.zeros(len(area), np.int64)
        self.last = np.zeros(len(area))
        #: Place, first, stop, days within a session, changed; those of the present session.
        self.notes: list[tuple[int, int, int, float, bool]] = []
        self.present: list[tuple[int, int, int, float, bool]] = []

    def visit(self, place: int, at: float, *, changed: bool) -> None:
        """Note a visit."""
        if at - self.began[-1] >= 1 or self.compared >= 2 * sqrt(len(self.area)):
            self.close()
            self.began.append(at)
        now, first = len(self.began) - 1, int(self.session[place])
        within = at - self.last[place] if first == now else 0.0
        self.present.append((place, first, now, within, changed))
        self.compared += 1
        self.session[place], self.last[place] = now, at

    def close(self) -> None:
        """Close the session."""
        self.notes += self.present
        self.present, self.compared = [], 0

    def fit(self) -> tuple[Floats, Floats, bool]:
        """Return the beliefs (n, 40), the readings of the clocks and whether they count."""
        area, n, groups = self.area, len(self.area), self.groups
        edges = len(self.began) - 1
        days = np.maximum(np.diff(np.array(self.began[:edges])), 1e-3)
        by_area = np.tile(days, (groups, 1))
        prior, clocked = GENERAL_PRIOR.copy(), False
        place, first, stop, within, changed = (
            np.array(column) for column in zip(*self.notes, strict=True)
        )
        changed = changed.astype(np.bool_)
        belief = np.empty((n, POINTS))
        for turn in range(_ROUNDS):
            passed = np.concatenate([np.zeros((groups, 1)), np.cumsum(by_area, 1)], 1)
            time = passed[area[place], stop] - passed[area[place], first] + within
            sums = np.zeros((n, POINTS))
            drifted = np.zeros(n)
            for k in range(len(place)):
                x, row = RATES * time[k], place[k]
                if changed[k]:
                    at = self.began[stop[k]]
                    another = -np.expm1(-(at - drifted[row]) / 1_500)
                    likely = np.exp(sums[row] - sums[row].max())
                    mean = prior @ likely[self.point[row]]
                    sums[row] = np.log((1 - another) * likely / mean + another)
                    drifted[row] = at
                sums[row] += np.log(-np.expm1(-np.maximum(x, 1e-12))) if changed[k] else -x
            likelihood = np.exp(sums - sums.max(1, keepdims=True))
            usual = prior * np.take_along_axis(likelihood, self.point, 1)
            usual /= usual.sum(1, keepdims=True)
            belief = np.zeros((n, POINTS))
            np.add.at(belief, (np.arange(n)[:, None], self.point), usual)
            prior = (8 * GENERAL_PRIOR + usual.sum(0)) / (8 + n)
            if turn == 1:
                clocked = n >= 5 and _bursts(stop, changed, belief[place], time, edges)
            if turn >= 4 and not clocked:
                break
            if clocked:
                by_area = self._clock(belief, days, (place, first, stop, changed, time), by_area)
        passed = np.concatenate([np.zeros((groups, 1)), np.cumsum(by_area, 1)], 1)
        return belief, passed, clocked

    def _clock(
        self, belief: Floats, days: Floats,
        notes: tuple[Ints, Ints, Ints, Bools, Floats], before: Floats,
    ) -> Floats:  # fmt: skip
        events, exposure = np.zeros_like(before), np.zeros_like(before)
        for place, first, stop, changed, time in zip(*notes, strict=True):
            group, rate = self.area[place], float(belief[place] @ RATES)
            exposure[group, first:stop] += rate
            if changed:
                share = rate / max(-np.expm1(-rate * time), 1e-9)
                events[group, first:stop] += share * before[group, first:stop]
        of_site = (0.5 + events.sum(0)) / (0.5 / days + exposure.sum(0))
        of_site = np.maximum(of_site * days.sum() / of_site.sum(), 1e-3)
        found: Floats = (0.3 + events) / (0.3 / of_site + exposure)
        return found

    def days(self, now: float) -> Floats:
        """Return the days of the clock since the last visits (n,)."""
        belief, passed, clocked = self.fit()
        assert clocked
        edges = passed.shape[1]
        last = len(self.began) - 1
        if edges <= last:
            passed = np.concatenate([passed, passed[:, -1:] + self._went(belief, passed)], 1)
        on = now - self.began[-1]
        found: Floats = passed[self.area, last] - passed[self.area, self.session] + on
        return found

    def _went(self, belief: Floats, passed: Floats) -> Floats:
        """Return how far the clocks went from the session before to the present one."""
        now = len(self.began) - 1
        days = self.began[now] - self.began[now - 1]
        went = np.full((self.groups, 1), days)
        seen = [note for note in self.present if note[1] < now]
        if not seen:
            return went
        exposure = np.zeros((self.groups, 1))
        for place, *_ in seen:
            exposure[self.area[place]] += belief[place] @ RATES
        for _ in range(5):
            events = np.zeros((self.groups, 1))
            for place, first, _, within, changed in seen:
                if changed:
                    group, rate = self.area[place], belief[place] @ RATES
                    time = passed[group, now - 1] - passed[group, first] + within + went[group]
                    events[group] += rate * went[group] / max(-np.expm1(-rate * time), 1e-9)
            of_site = (0.5 + events.sum()) / (0.5 / days + exposure.sum())
            went = (0.3 + events) / (0.3 / of_site + exposure)
        return went


def _bursts(stop: Ints, changed: Bools, belief: Floats, time: Floats, edges: int) -> bool:
    p = 1 - (belief * np.exp(-np.outer(time, RATES))).sum(1)
    found, expected = (np.bincount(stop, each, edges) for each in (changed, p))
    variance = np.bincount(stop, p * (1 - p), edges)
    sessions = np.count_nonzero(variance)
    usual = 4 * variance.sum() / sessions
    squares, bound = ((found - expected) ** 2).sum(), 1 + 2 * np.sqrt(2 / (sessions + 4))
    return bool(squares + 3 * usual > bound * (variance.sum() + usual))
