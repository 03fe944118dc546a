"""The greedy index on the clocks of sites, as far as these have proved themselves. Pure.

With the hazard x accumulated since the last look (:mod:`scheduler.recrawl.site_clock`) and
D = d + θc the mean rate at which a page becomes stale again, a look is worth

    W = μ min( (x − 1 + e^{−x})/D,  ½ τ Ein(x) ).

The first is the index of the harmonic cost with the days replaced by the site's time: what
matters is what may have happened, and D how long the look is good for. The second bounds it by
what the look can save if staleness builds up no faster than it has: at a constant hazard it never
binds, as x − 1 + e^{−x} ≤ ½ x Ein(x); where a rewritten site raises the suspicion of pages that
hardly ever change, it keeps the rest from being forgotten for them.

Two posteriors of each rate are kept, over the days and over the site's time, and both foretell
the outcome of every look. The clock of a site is used while its decayed log loss is the smaller
one: on a site whose pages know nothing of each other it would see bursts where there are none.

    μ   importance;  d  change rate, exp(E[ln d]);  τ  days since the last look
    θ   (d̄/(d̄ + d))², how cold a page is; d̄ the geometric mean of the site's rates

A posterior lives on 40 rates from 2e-4 to 5 a day, under a prior that is fitted to the site from
time to time and shrunk to an even one by the weight of ten pages; what it rests on fades with a
half-life of 720 days. An interval is taken in for good one look later, when the clock there has
settled. No page waits longer than three times as long as if all were looked at in turn, where
all are equally important.

Reference: ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler.arguments import Bools, Floats
from scheduler.harmonics import ein
from scheduler.recrawl.refresher import Beliefs
from scheduler.recrawl.site_clock import AREAS, REWRITTEN, SHARED, Changed, SiteClock
from scheduler.sources import Rows

_RATES: Final[Floats] = np.exp(np.linspace(np.log(2e-4), np.log(5.0), 40))
_LOGS: Final[Floats] = np.log(_RATES)
_EVEN: Final[Floats] = np.full(40, 1 / 40)
_HALF_LIFE_DAYS: Final = 720.0
_PAGES_OF_PRIOR: Final = 10.0
_STEPS: Final = 15
_SAMPLE: Final = 4_096
_BINS: Final = 80
_MEMORY: Final = 500.0
_LEAST: Final = 1e-4
_LONGEST: Final = 3.0
#: Where the mean time between looks has changed by so much, bins of another width are begun.
_ANOTHER_WIDTH: Final = 4.0
_ALL_AREAS: Final[Rows] = np.arange(AREAS)


@dataclass(slots=True)
class _Site:
    """The pages of a site, its clock, the priors of their rates by either time, and the gate."""

    clock: SiteClock
    begin: float
    rows: Rows = field(default_factory=lambda: np.empty(0, np.intp))
    prior: Floats = field(default_factory=_EVEN.copy)
    plain_prior: Floats = field(default_factory=_EVEN.copy)
    mean_rate: float = float(np.exp(_LOGS.mean()))
    #: Decayed log loss of the clock, less that of the days.
    loss: float = 0.0
    looks: int = 0


@dataclass(slots=True, eq=False)
class _Latest:
    """A page's last interval, not yet taken in for good."""

    begin: float
    end: float
    changed: Changed | None
    is_changed: bool


class ByClock:
    """A :class:`~scheduler.recrawl.refresher.Refresher`: see the module's text."""

    def __init__(self) -> None:
        self._n = 0
        self._site_of = np.empty(0, np.intp)
        self._area = np.empty(0, np.intp)
        self._importance = np.empty(0)
        self._alive = np.empty(0, np.bool_)
        self._last = np.empty(0)
        self._rate, self._plain_rate = np.empty(0), np.empty(0)
        self._likelihood = np.empty((0, 40), np.float32)
        self._plain_likelihood = np.empty((0, 40), np.float32)
        # The site's time and the cold clock at the last look.
        self._shared, self._cold = np.empty(0), np.empty(0)
        self._latest: dict[int, _Latest] = {}
        self._sites: list[_Site] = []
        self._budget = 1.0

    # -- what comes in -----------------------------------------------------------

    def add(self, site: Rows, area: Rows, importance: Floats, at: Floats) -> None:
        """Append rows; they begin with the prior of their site."""
        rows = np.arange(self._n, self._n + len(site))
        self._n += len(site)
        for name, values in (
            ("_site_of", site), ("_area", area), ("_importance", importance), ("_last", at),
            ("_alive", np.ones(len(site), np.bool_)),
            ("_rate", np.zeros(len(site))), ("_plain_rate", np.zeros(len(site))),
            ("_shared", np.zeros(len(site))), ("_cold", np.zeros(len(site))),
            ("_likelihood", np.zeros((len(site), 40), np.float32)),
            ("_plain_likelihood", np.zeros((len(site), 40), np.float32)),
        ):  # fmt: skip
            setattr(self, name, np.concatenate([getattr(self, name), values]))
        for code in np.unique(site).tolist():
            while code >= len(self._sites):
                begin = float(at.min())
                self._sites.append(_Site(SiteClock(begin, self._width()), begin))
            mine = rows[site == code]
            it = self._sites[code]
            it.rows = np.concatenate([it.rows, mine])
            self._rate[mine] = _mean(self._likelihood[mine], it.prior)
            self._plain_rate[mine] = _mean(self._plain_likelihood[mine], it.plain_prior)
            self._read_clock(it, mine)

    def recall(self, rows: Rows, at: Floats, compared: Bools, changed: Bools) -> None:
        """As :meth:`looked` for each look of former runs."""
        columns = zip(rows.tolist(), at.tolist(), compared.tolist(), changed.tolist(), strict=True)
        for row, day, is_compared, is_changed in columns:
            self.looked(row, day, changed=is_changed if is_compared else None)

    def looked(self, row: int, at: float, *, changed: bool | None) -> None:
        """Learn from a look."""
        it = self._sites[int(self._site_of[row])]
        last = float(self._last[row])
        self._last[row], self._alive[row] = at, True
        if changed is None or at <= last:
            self._latest.pop(row, None)
            self._read_clock(it, np.array([row]))
            return
        self._judge(it, row, last, at, changed=changed)
        self._fade(row, at - last)
        days, outcome = np.array([at - last]), np.array([changed])
        self._plain_likelihood[row] += _evidence(days, np.zeros(1), outcome)[0]
        self._plain_rate[row] = _mean(self._plain_likelihood[row : row + 1], it.plain_prior)[0]
        self._commit(it, row)
        theta = self._theta(it, self._rate[row : row + 1])[0]
        since, found = it.clock.look(
            last, at, float(self._rate[row]), float(theta), int(self._area[row]), changed=changed
        )
        self._latest[row] = _Latest(last, at, found, changed)
        self._read_clock_from(it, since)
        self._rate[row] = self._posteriors(it, np.array([row]))[0]
        it.looks += 1
        if it.looks % max(200, len(it.rows) // 4) == 0:
            self._fit(it)

    def gone(self, row: int) -> None:
        """Leave a page out of all counts until it is looked at again."""
        self._alive[row] = False

    def replan(self, budget: float, now: float) -> None:
        """Looks a day: they say how wide bins are, and how long a page may wait."""
        self._budget = budget

    # -- what comes out ----------------------------------------------------------

    def worth(self, now: float) -> Floats:
        """(n,), what a look at each page is worth."""
        age = np.maximum(now - self._last, 0.0)
        hazard, rate = self._hazard(now, age)
        fresh = hazard - 1 + np.exp(-hazard)
        fresh = np.where(hazard < 1e-4, hazard**2 / 2, fresh)
        found: Floats = np.minimum(fresh / rate, age * ein(hazard) / 2)
        if self._n and self._importance.min() == self._importance.max():
            longest = _LONGEST * self._alive.sum() / self._budget
            overdue = age > longest
            found[overdue] += longest + age[overdue]
        return self._importance * found

    def stale(self, row: int, now: float) -> float:
        """The probability that a page has changed since it was looked at."""
        age = np.maximum(now - self._last, 0.0)
        return float(-np.expm1(-self._hazard(now, age)[0][row]))

    def beliefs(self, now: float) -> Beliefs:
        """By the clock of each site, where that has proved itself, or else by the days."""
        hazard, rate = self._hazard(now, np.maximum(now - self._last, 0.0))
        proven = np.array([it.loss < 0 for it in self._sites], np.float64)[self._site_of]
        return Beliefs(hazard, rate, proven)

    def limits(self, lane: Rows, per_day: Floats) -> None:
        """Nothing changes: the next look goes to the worthiest page whose host is ready."""

    def _hazard(self, now: float, age: Floats) -> tuple[Floats, Floats]:
        """(n,) each: what has accumulated since the last look, and the mean rate."""
        one = np.array([now])
        sites = self._sites
        shared = np.array([it.clock.shared(one)[0] for it in sites])[self._site_of]
        by_area = np.array([it.clock.cold(one, _ALL_AREAS) for it in sites])
        cold = by_area[self._site_of, self._area]
        proven = np.array([it.loss < 0 for it in sites], np.bool_)[self._site_of]
        mean = np.array([it.mean_rate for it in sites])[self._site_of]
        theta = (mean / (mean + self._rate)) ** 2
        own = self._rate * ((1 - SHARED) * age + SHARED * (shared - self._shared))
        clocked = own + theta * (cold - self._cold)
        hazard = np.where(proven, clocked, self._plain_rate * age)
        rate = np.where(proven, self._rate + theta * REWRITTEN, self._plain_rate)
        return np.maximum(hazard, 1e-12), rate

    # -- a look, step by step ----------------------------------------------------

    def _judge(self, it: _Site, row: int, last: float, at: float, *, changed: bool) -> None:
        """Let both times foretell the outcome; the better one so far decides."""
        theta = self._theta(it, self._rate[row : row + 1])[0]
        shared, cold = self._passed(it, last, at, int(self._area[row]))
        own = (1 - SHARED) * (at - last) + SHARED * shared
        clocked = float(self._rate[row]) * own + theta * cold
        plain = float(self._plain_rate[row]) * (at - last)
        it.loss *= 1 - 1 / max(_MEMORY, 2.0 * len(it.rows))
        it.loss += _log_loss(clocked, changed=changed) - _log_loss(plain, changed=changed)

    def _commit(self, it: _Site, row: int) -> None:
        """Take the interval before in for good."""
        latest = self._latest.get(row)
        if latest is not None:
            self._likelihood[row] += self._evidence_of(it, [latest])[0]

    def _posteriors(self, it: _Site, rows: Rows) -> Floats:
        """(m,), exp(E[ln d]) with the last intervals as the clock sees them now."""
        sums = self._likelihood[rows].astype(np.float64)
        found = [self._latest.get(row) for row in rows.tolist()]
        known = [latest for latest in found if latest is not None]
        if known:
            has = np.array([latest is not None for latest in found], np.bool_)
            sums[has] += self._evidence_of(it, known)
        return _mean(sums, it.prior)

    def _evidence_of(self, it: _Site, latest: list[_Latest]) -> Floats:
        """(m, 40), the log-likelihoods of intervals as the clock sees them now."""
        begin = np.array([each.begin for each in latest])
        end = np.array([each.end for each in latest])
        shared = it.clock.shared(end) - it.clock.shared(begin)
        own = (1 - SHARED) * (end - begin) + SHARED * shared * self._pace(it, end)
        cold = [
            0.0 if each.changed is None else it.clock.suspected(each.changed) for each in latest
        ]
        changed = np.array([each.is_changed for each in latest], np.bool_)
        return _evidence(np.maximum(own, 1e-9), np.array(cold), changed)

    def _pace(self, it: _Site, end: Floats) -> Floats:
        """Keeps rates in days: the clock's mean pace up to one mean interval before is 1."""
        interval = _BINS * it.clock.width
        settled = np.maximum(end - interval - it.begin, 0.0)
        passed = it.clock.shared(it.begin + settled)
        pace: Floats = (settled + 2 * interval) / (passed + 2 * interval)
        return pace

    def _passed(self, it: _Site, begin: float, end: float, area: int) -> tuple[float, float]:
        days = np.array([begin, end])
        shared, cold = it.clock.shared(days), it.clock.cold(days, area)
        return float(shared[1] - shared[0]), float(cold[1] - cold[0])

    def _fade(self, row: int, days: float) -> None:
        kept = np.float32(0.5 ** (days / _HALF_LIFE_DAYS))
        self._likelihood[row] *= kept
        self._plain_likelihood[row] *= kept

    def _theta(self, it: _Site, rate: Floats) -> Floats:
        cold: Floats = (it.mean_rate / (it.mean_rate + rate)) ** 2
        return cold

    # -- a site ------------------------------------------------------------------

    def _read_clock(self, it: _Site, rows: Rows) -> None:
        self._shared[rows] = it.clock.shared(self._last[rows])
        self._cold[rows] = it.clock.cold(self._last[rows], self._area[rows])

    def _read_clock_from(self, it: _Site, since: float) -> None:
        """Read the clock anew for the pages that were last looked at after ``since``."""
        self._read_clock(it, it.rows[self._last[it.rows] >= since])

    def _fit(self, it: _Site) -> None:
        """Fit the priors to the site's pages, and estimate all of them under these."""
        rows = it.rows[self._alive[it.rows]]
        sample = rows[:: max(1, len(rows) // _SAMPLE)]
        it.prior = _fitted(self._likelihood[sample], it.prior)
        it.plain_prior = _fitted(self._plain_likelihood[sample], it.plain_prior)
        self._plain_rate[rows] = _mean(self._plain_likelihood[rows], it.plain_prior)
        self._rate[rows] = self._posteriors(it, rows)
        it.mean_rate = float(np.exp(np.log(self._rate[rows]).mean()))
        width = self._width()
        if not 1 / _ANOTHER_WIDTH < width / it.clock.width < _ANOTHER_WIDTH:
            it.clock = SiteClock(float(self._last[rows].max()), width)
            it.begin = float(self._last[rows].max())
            for row in it.rows.tolist():
                self._latest.pop(row, None)
            self._read_clock(it, rows)

    def _width(self) -> float:
        """An 80th of the days between two looks at a page, were all looked at in turn."""
        return max(int(self._alive.sum()), 1) / self._budget / _BINS


def _evidence(own: Floats, cold: Floats, changed: Bools) -> Floats:
    """(m, 40), the log-likelihood of each rate."""
    hazard = np.multiply.outer(own, _RATES)
    differed = np.log(np.maximum(-np.expm1(-hazard - cold[:, None]), 1e-12))
    return np.where(changed[:, None], differed, -hazard)


def _mean(sums: NDArray[np.floating], prior: Floats) -> Floats:
    """(m,), exp(E[ln d]) under (m, 40) log-likelihoods."""
    weights = np.exp(sums - sums.max(axis=1, keepdims=True)) * prior
    mean: Floats = np.exp(weights @ _LOGS / weights.sum(axis=1))
    return mean


def _fitted(sums: NDArray[np.floating], prior: Floats) -> Floats:
    """The prior after some steps of expectation and maximisation, shrunk to an even one."""
    likelihood = np.exp(sums - sums.max(axis=1, keepdims=True)).astype(np.float64)
    for _ in range(_STEPS):
        shares = prior * ((1.0 / (likelihood @ prior)) @ likelihood)
        prior = (shares + _PAGES_OF_PRIOR * _EVEN) / (len(likelihood) + _PAGES_OF_PRIOR)
    return prior


def _log_loss(hazard: float, *, changed: bool) -> float:
    """−ln of the probability that was given to what came, cut where it says nothing."""
    probability = min(max(-np.expm1(-hazard), _LEAST), 1 - _LEAST)
    return float(-np.log(probability if changed else 1 - probability))
