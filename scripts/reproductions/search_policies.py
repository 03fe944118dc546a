"""Policies of Pandey's thesis, and those that it is compared with: looks for searchers' sake.

By value, the largest first; τ is the days since a page's last look:

    uniform           τ
    thesis            P = δτ (fig. 4.1), δ the quality change a day, as measured at looks
    saving            W = δτ²/2, what a look saves until the next one
    known             the true ΔQ of a look now

By a schedule of x_p looks that maximises Σ_p w_p (x_p + 1)(1 − e^{−λT})/λ, T = weeks/(x_p + 1):

    SBR   w = 1, λ the rate of changes of more than a share τ of the shingles (Cho and
          Garcia-Molina 2000), looks placed by Wolf et al. (2002)
    EBR   w = views × share of changes of at least τ, λ the rate of all changes (Wolf et al. 2002)

The thesis fits δ, λ and w on the weeks on which it judges, and names the best τ for each budget.
On line (:class:`OnLine`, :class:`Marked`) everything is learnt from a policy's own looks.

P is myopic: pages whose loss grows evenly are looked at when δτ reaches a level, which costs as
much as looks at even times, Σ δ n/2B. The optimum, intervals ∝ 1/√δ, is that of W. On line P
starves: a page whose first looks found nothing is never looked at again.

Reference: Pandey (2008), chapter 4; Wolf, Squillante, Yu, Sethuraman, Ozsen, "Optimal crawling
strategies for web search engines", WWW 2002. Differs from the thesis in: uniform looks and τ = 0
are there, too; and EBR has the factor of views of Wolf et al., which the thesis does not print.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from freshet.crawler.extensions.readers.search_quality import Marks, as_importance
from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.estimate.evidence import VisitResults
from freshet.scheduler.evaluate.serving import Valuer
from freshet.scheduler.queue.ranker import Ranker
from scripts.reproductions.search_weeks import WEEK, HeldCopies, Policy

#: Days by which δ is shrunk towards its mean.
SHRUNK: Final = 40.0
#: Above any value: a page that has not had its first looks.
_FIRST: Final = 1e12


class _ByValue:
    """Ranks pages by what a function of the day says."""

    def __init__(self, value: Callable[[float], Floats]) -> None:
        self._value = value

    def values(self, now: float) -> Floats:
        return self._value(now)

    def learn(self, visits: VisitResults) -> None:
        """Nothing: parameters were fitted before."""


def uniform(copies: HeldCopies) -> Valuer:
    """Look at the page that was not looked at for longest."""
    return _ByValue(copies.age)


def thesis(delta: Floats) -> Policy:
    """Look at the pages of largest P = δτ."""
    return lambda copies: _ByValue(lambda now: delta * copies.age(now))


def saving(delta: Floats) -> Policy:
    """Look at the pages of largest W = δτ²/2."""
    return lambda copies: _ByValue(lambda now: delta * copies.age(now) ** 2 / 2)


def known(copies: HeldCopies) -> Valuer:
    """Look at the pages of largest true ΔQ: who knows all before looking."""
    scores = copies.scores

    def gains(now: float) -> Floats:
        live = scores.score[round(now / WEEK)]
        return np.maximum(scores.changes(scores.held(copies.week), live, live), 0.0)

    return _ByValue(gains)


def scheduled(plan: Bools) -> Policy:
    """Look at pages in the weeks of a schedule (W, n)."""
    return lambda _: _ByValue(lambda now: plan[round(now / WEEK)].astype(np.float64))


# -- fitting -----------------------------------------------------------------


def mean_of_ratios(changes: Floats, changed: Bools) -> Floats:
    """Return the thesis' δ (n,): the mean of ΔQ_A per week since the change before.

    Its looks are the weeks with a change, as if each was fetched at once. A short gap weighs as
    much as a long one: at 0.3 equal changes a week this is 0.47 where 0.26 accrues.
    """
    found = np.zeros(changes.shape[1])
    last = np.full(changes.shape[1], -1)
    for week, (gain, some) in enumerate(zip(changes, changed, strict=True)):
        found[some] += gain[some] / (week - last[some])
        last[some] = week
    return np.asarray(found / np.maximum(changed.sum(axis=0), 1), np.float64)


def ratio_of_sums(changes: Floats) -> Floats:
    """Return Σ ΔQ_A over all weeks, of a week: δ (n,) without that bias."""
    return np.asarray(changes.mean(axis=0), np.float64)


def change_rate(changed: Bools) -> Floats:
    """Return λ̂ (n,), −ln((W − X + ½)/(W + ½)) a week, X of W weeks changed (Cho 2003)."""
    weeks = len(changed)
    return np.asarray(-np.log((weeks - changed.sum(axis=0) + 0.5) / (weeks + 0.5)), np.float64)


def sbr(share: Floats, changed: Bools, threshold: float, looks: float) -> Bools:
    """Return SBR's schedule (W, n) of ``looks`` a week.

    ``share`` (W − 1, n) of the shingles differ from the week before; at threshold 0 any change
    counts.
    """
    rate = change_rate(changed if threshold == 0 else changed & (share > threshold))
    count = fresh_looks(rate, np.ones(len(rate)), len(share), looks)
    return schedule(count, looks, len(share))


def ebr(share: Floats, changed: Bools, threshold: float, looks: float, shown: Floats) -> Bools:
    """Return EBR's schedule (W, n), likewise; ``shown`` (n,) are the pages' views."""
    counted = changed & (share >= threshold)
    weight = shown * counted.sum(axis=0) / np.maximum(changed.sum(axis=0), 1)
    count = fresh_looks(change_rate(changed), weight, len(share), looks)
    return schedule(count, looks, len(share))


def fresh_looks(rate: Floats, weight: Floats, weeks: int, looks: float) -> Ints:
    """Return x (n,), at most one look a week: Σ w (x + 1)(1 − e^{−λT})/λ is largest, Σ x ≤ budget.

    T = weeks/(x + 1). The sum is concave in each x, so that looks taken in the order of what each
    adds are the optimum (Fox 1966). A look that adds nothing is not taken.
    """
    span = weeks / np.arange(1.0, weeks + 2)
    hazard = rate[:, None] * span
    fresh = np.where(hazard > 1e-12, -np.expm1(-hazard) / np.maximum(hazard, 1e-12), 1.0) * weeks
    gain = np.diff(fresh, axis=1) * weight[:, None]
    gain[gain < 1e-12 * max(float(gain.max()), 1e-300)] = 0.0
    total = int(looks * weeks + 1e-9)
    best = np.argsort(-gain, axis=None, kind="stable")[:total]
    best = best[gain.ravel()[best] > 0]
    return np.bincount(best // weeks, minlength=len(rate))


def schedule(count: Ints, looks: float, weeks: int) -> Bools:
    """Return in which weeks (W, n) to take each page's looks: as near as possible to even times.

    The i-th of x looks is best at weeks·i/(x + 1). Looks are given to weeks of limited capacity so
    that Σ |week − time| is least (the transportation problem of Wolf et al.). Of looks and weeks in
    order no two cross, so it is a shortest path over how many looks the first weeks take.
    """
    page = np.repeat(np.arange(len(count)), count)
    number = np.arange(len(page)) - np.repeat(np.cumsum(count) - count, count) + 1
    time = weeks * number / (count[page] + 1)
    order = np.argsort(time, kind="stable")
    page, time = page[order], time[order]
    room = np.diff((looks * np.arange(weeks + 1) + 1e-9).astype(np.int64))
    cost = np.full((weeks + 1, len(page) + 1), np.inf)
    cost[0, 0] = 0.0
    prefix = [np.append(0.0, np.cumsum(np.abs(time - week))) for week in range(weeks + 1)]
    for week in range(1, weeks + 1):
        cost[week] = _least(cost[week - 1] - prefix[week], room[week - 1]) + prefix[week]
    plan = np.zeros((weeks + 1, len(count)), np.bool_)
    end = len(page)
    for week in range(weeks, 0, -1):
        start = max(end - int(room[week - 1]), 0)
        before = cost[week - 1, start : end + 1] - prefix[week][start : end + 1]
        begin = start + int(np.argmin(before))
        plan[week, page[begin:end]] = True
        end = begin
    return plan


def _least(values: Floats, width: int) -> Floats:
    """Return the least of each value and the ``width`` before it, by windows of doubled length."""
    done, found = 0, values
    while done < width:
        step = min(done + 1, width - done)
        found = np.minimum(
            found, np.concatenate([np.full(step, np.inf), found[:-step]])[: len(found)]
        )
        done += step
    return found


# -- on line -----------------------------------------------------------------


class OnLine:
    """The thesis' priority (``power`` 1) or the saving (2), δ learnt from this policy's own looks.

    δ is the mean of ratios after two first looks at each page, or where it is ``shrunk``
    (Σ ΔQ_A + 40 d · mean)/(Σ gaps + 40 d).
    """

    def __init__(self, copies: HeldCopies, *, power: int, shrunk: bool) -> None:
        """Begin without a look."""
        self._copies, self._power, self._shrunk = copies, power, shrunk
        n = copies.scores.pages
        self._looks, self._last = np.zeros(n, np.int64), np.zeros(n)
        self._gains, self._gaps, self._ratios = np.zeros(n), np.zeros(n), np.zeros(n)

    def values(self, now: float) -> Floats:
        """Return δτ, or δτ²/2; more where a page has not had its first looks."""
        age = self._copies.age(now)
        return np.where(
            (not self._shrunk) & (self._looks < 2), _FIRST + age, self._delta() * age**self._power
        )

    def _delta(self) -> Floats:
        if not self._shrunk:
            return self._ratios / np.maximum(self._looks, 1)
        days = self._gaps.sum()
        mean = self._gains.sum() / days if days > 0 and self._gains.any() else 1.0
        return np.asarray((self._gains + SHRUNK * mean) / (self._gaps + SHRUNK), np.float64)

    def learn(self, visits: VisitResults) -> None:
        """Take in what looks found."""
        rows, gains = visits.row, self._copies.measured(visits.row)
        gaps = visits.at - self._last[rows]
        self._looks[rows] += 1
        self._gains[rows] += gains
        self._gaps[rows] += gaps
        self._ratios[rows] += gains / gaps
        self._last[rows] = visits.at


class Ranked:
    """A ranker of the product over all pages of a run, as one site."""

    def __init__(self, copies: HeldCopies, ranker: Ranker) -> None:
        """Tell the ranker of the first looks, in the first week."""
        self.copies, self.ranker = copies, ranker
        n = copies.scores.pages
        every, none = np.arange(n), np.zeros(n, np.bool_)
        site = np.zeros(n, np.intp)
        ranker.add(site, site, np.ones(n), np.zeros(n))
        ranker.learn(
            VisitResults(every, np.zeros(n), compared=none, changed=none, gone=none, moved=none)
        )

    def values(self, now: float) -> Floats:
        """Return the ranker's values."""
        return self.ranker.values(now)

    def learn(self, visits: VisitResults) -> None:
        """Let the ranker learn."""
        self.ranker.learn(visits)


class Marked(Ranked):
    """The same with the expected loss of a missed change for importance."""

    def __init__(self, copies: HeldCopies, ranker: Ranker) -> None:
        """Begin with equal importance."""
        super().__init__(copies, ranker)
        self._marks = Marks()
        self._marks.add(copies.scores.pages)

    def values(self, now: float) -> Floats:
        """Return the ranker's values at the importance by the marks so far."""
        scores, week = self.copies.scores, self.copies.week
        marks = self._marks.values(
            usefulness=scores.usefulness(week),
            age=(WEEK * week).astype(np.float64),
            rate=self.ranker.beliefs(now).rate,
        )
        self.ranker.reweigh(np.arange(len(marks)), as_importance(marks))
        return super().values(now)

    def learn(self, visits: VisitResults) -> None:
        """Let marks and ranker learn."""
        hazard = self.ranker.beliefs(float(visits.at[0])).hazard[visits.row]
        gains = self.copies.measured(visits.row)
        self._marks.learn(visits.row, hazard, gains, visits.changed)
        super().learn(visits)
