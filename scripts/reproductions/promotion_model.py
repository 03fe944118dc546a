"""A community of pages and people, and what the model of chapter 5 expects of its ranking.

A page's awareness is a chain on 0, 1/m … 1 with rate F(aQ)(1 − a), and a death with rate λ sends
it back to 0. F, the visits that a popularity gives, follows from the popularity of all pages: a
fixpoint. Theorem 2 and F(0) as printed are wrong or missing: see :func:`awareness`, :func:`solve`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom, nbinom

from freshet.crawler.extensions.readers.promotion import critical_degree
from freshet.scheduler.arrays import Floats

#: Pages that stand for themselves; the others are in classes.
_SINGLE, _CLASSES = 150, 250
#: Up to this rank the law of a place is summed up, above it its first moments do.
_EXACT = 320
_ROUNDS, _CHANGE = 150, 1e-5
Form = Literal["law", "printed", "fitted"]


@dataclass(frozen=True, slots=True)
class Community:
    """The pages of a topic and its users; a tenth of them is monitored.

    The page of the i-th best quality has 0.4 i^(−exponent): the thesis names no exponent.
    """

    pages: int = 10_000
    users: int = 1_000
    visits: float = 1_000.0
    life: float = 547.5
    exponent: float = 2 / 3

    @property
    def monitored(self) -> int:
        """The number of monitored users, m."""
        return self.users // 10

    @property
    def looks(self) -> float:
        """Visits a day by monitored users, v."""
        return self.visits / 10

    @property
    def quality(self) -> Floats:
        """Q (n,), the best first."""
        return np.asarray(0.4 * np.arange(1.0, self.pages + 1) ** -self.exponent)

    @property
    def attention(self) -> Floats:
        """F₂ (n,), visits a day by place (5.5)."""
        return np.asarray(self.theta * np.arange(1.0, self.pages + 1) ** -1.5)

    @property
    def theta(self) -> float:
        """θ, the visits at the first place."""
        return float(self.looks / (np.arange(1.0, self.pages + 1) ** -1.5).sum())

    @property
    def best(self) -> float:
        """QPC of ranking by quality."""
        return float(self.attention @ self.quality / self.looks)

    def critical(self, k: int) -> float:
        """r_c: from this degree on the pool is emptied."""
        return critical_degree(self.pages / self.life, self.looks, self.attention, k=k)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of promotion, r = 0 for none, and whether pages without popularity tie by age."""

    k: int = 1
    r: float = 0.0
    uniform: bool = False
    older_first: bool = False

    @property
    def name(self) -> str:
        """As in tables."""
        if not self.r:
            return "none, older first" if self.older_first else "none"
        return f"{'uniform' if self.uniform else 'sel'} {self.k} {self.r:g}"


def awareness(rates: Floats, death: float) -> Floats:
    """The law of awareness (…, m + 1) by rates F(aᵢq)(1 − aᵢ) (…, m + 1): theorem 2, corrected.

    f₀ = λ/(λ + F(0)) and fᵢ = fᵢ₋₁ F(aᵢ₋₁q)(1 − aᵢ₋₁)/(λ + F(aᵢq)(1 − aᵢ)). As printed, (1 − aᵢ)
    stands outside the denominator, where it makes it 0 for i = m.
    """
    steps = np.log(rates[..., :-1]) - np.log(death + rates[..., 1:])
    first = np.log(death / (death + rates[..., :1]))
    logs = np.concatenate([first, first + np.cumsum(steps, axis=-1)], axis=-1)
    return np.asarray(np.exp(logs))


def printed_awareness(visits: Floats, death: float) -> Floats:
    """Theorem 2 (5.4) as printed, by F(aᵢq) (m + 1,); without i = m, where it divides by zero."""
    known = np.arange(len(visits) - 1) / (len(visits) - 1)
    steps = np.append(1.0, visits[:-2] / (death + visits[1:-1]))
    return np.asarray(death / (death + visits[0]) / (1 - known) * np.cumprod(steps))


@dataclass(frozen=True, slots=True)
class Solved:
    """The fixpoint: of each class weight and quality, law of awareness and F (classes, m + 1)."""

    community: Community
    weight: Floats
    quality: Floats
    law: Floats
    visits: Floats
    rounds: int

    @property
    def pool(self) -> float:
        """z, pages without awareness."""
        return float(self.weight @ self.law[:, 0])

    @property
    def total(self) -> float:
        """ΣV, which should be v."""
        return float(self.weight @ (self.law * self.visits).sum(axis=1))

    @property
    def qpc(self) -> float:
        """Normalized quality per click."""
        gain = float((self.weight * self.quality) @ (self.law * self.visits).sum(axis=1))
        return gain / self.total / self.community.best

    def rates(self) -> Floats:
        """F(aᵢ 0.4)(1 − aᵢ) (m + 1,), of a page of the best quality."""
        return np.asarray(self.visits[0] * (1 - _known(self.community)))

    @property
    def days(self) -> float:
        """TBP: days until the best quality's popularity exceeds 99 % of it."""
        return float((1 / self.rates()[: goal(self.community.monitored)]).sum())

    def popularity(self, days: Floats) -> Floats:
        """E P(t) (days,) of a page of quality 0.4 that lives on."""
        rates, known = self.rates(), _known(self.community)
        step = 0.2 / rates.max()
        law, at, found = np.eye(1, len(rates))[0], 0.0, np.zeros(len(days))
        for i, day in enumerate(days):
            for _ in range(times := int(np.ceil((day - at) / step))):
                flow = law * rates * (day - at) / times
                law += np.append(0.0, flow[:-1]) - flow
            found[i], at = 0.4 * law @ known, day
        return found


def goal(monitored: int) -> int:
    """The number of users from which on more than 99 % of the monitored know the page."""
    return min(99 * monitored // 100 + 1, monitored)


@cache
def solve(community: Community, rule: Rule, form: Form = "law") -> Solved:
    """The fixpoint of F.

    ``law`` takes the mean of F₂ over the law of the rank; ``printed`` is F₂ of the mean rank (5.6);
    ``fitted`` is that with log F quadratic in log x, as in the thesis. Not printed are z and F(0).
    """
    weight, quality = _classes(community)
    known, death, places = _known(community), 1 / community.life, Places(community, rule)
    popularity = known * quality[:, None]
    order = np.argsort(-popularity[:, 1:], axis=None)
    pool = unseen_pages(community, rule, form)
    visits = community.looks * popularity / (popularity * weight[:, None]).sum()
    visits[:, 0] = unseen(community, rule, pool, form)
    rounds, change = 0, np.inf
    while rounds < _ROUNDS and change > _CHANGE:
        law = awareness(visits * (1 - known), death)
        above, variance, own = _above(law, weight, order)
        if form == "law":
            found = places.visits(above, variance, own, pool)
        else:
            found = places.far(1 + np.maximum(above - own, 0), pool)
        if form == "fitted":
            found = _fitted(popularity[:, 1:].ravel()[order], found)
        seen = visits[:, 1:].ravel()
        change = float(np.abs(np.log(found / seen[order])).max())
        seen[order] = np.sqrt(found * seen[order])
        visits[:, 1:] = seen.reshape(len(weight), -1)
        rounds += 1
    law = awareness(visits * (1 - known), death)
    return Solved(community, weight, quality, law, visits, rounds)


def unseen_pages(community: Community, rule: Rule, form: Form = "law") -> float:
    """z, where births are as many as deaths and first visits: z = nλ/(λ + F(0)), F(0) by z."""
    n, death = community.pages, 1 / community.life

    def surplus(pool: float) -> float:
        return pool * (1 + unseen(community, rule, pool, form) / death) - n

    return float(brentq(surplus, 1e-6, n - 1e-6))


def unseen(community: Community, rule: Rule, pool: float, form: Form = "law") -> float:
    """F(0): the mean visits of the pages without awareness, ``pool`` of them.

    Selective: Σ_{i≥k} F₂(i) r P(Binomial(i − k, r) < z)/z, and what the ranked pages leave at the
    end. Without promotion that is the mean over the last z places. Printed is F₂(1 + n − z) there,
    the best place of the tie: it is near what ties by age give.
    """
    n, attention = community.pages, community.attention
    last = np.clip(np.arange(1.0, n + 1) - n + pool, 0, 1)
    tail = float(last @ attention) / pool
    if rule.older_first or (not rule.r and form != "law"):
        tail = float(community.theta * (1 + n - pool) ** -1.5)
    if not rule.r:
        return tail
    if rule.uniform:
        return (1 - rule.r) * tail + rule.r * float(attention[rule.k - 1 :].sum()) / n
    place = np.arange(rule.k, n + 1)
    before = place - rule.k
    if rule.r == 1:
        return float(attention[rule.k - 1 :] @ np.clip(pool - before, 0, 1)) / pool
    fewer, part = divmod(pool, 1)
    chance = (1 - part) * binom.cdf(fewer - 1, before, rule.r)
    chance += part * binom.cdf(fewer, before, rule.r)
    used_up = place > rule.k - 1 + (n - pool - rule.k + 1) / (1 - rule.r)
    share = np.where(used_up, 1.0, rule.r * chance)
    return float(attention[rule.k - 1 :] @ share) / pool


def _known(community: Community) -> Floats:
    return np.arange(community.monitored + 1) / community.monitored


def _classes(community: Community) -> tuple[Floats, Floats]:
    n = community.pages
    bounds = np.geomspace(min(_SINGLE, n), n, _CLASSES + 1).round().astype(int)
    starts = np.unique(np.concatenate([np.arange(min(_SINGLE, n)), bounds[bounds < n]]))
    weight = np.diff(np.append(starts, n)).astype(float)
    return weight, np.add.reduceat(community.quality, starts) / weight


def _above(law: Floats, weight: Floats, order: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
    """The number of pages above each atom, in ``order``: its mean and variance.

    The third is the probability that a certain page of the atom's own quality is above it.
    """
    tail = np.cumsum(law[:, :0:-1], axis=1)[:, ::-1]
    mass = (weight[:, None] * law[:, 1:]).ravel()[order]
    higher = tail - law[:, 1:]
    squares = (weight[:, None] * (tail**2 - higher**2)).ravel()[order]
    above = np.cumsum(mass) - mass
    return above, np.maximum(above - np.cumsum(squares) + squares, 0), higher.ravel()[order]


class Places:
    """The visits E F₂ of a page by mean and variance of the number of pages above it.

    That number is taken as binomial; the displacement by promoted pages is negative-binomial, and
    not more than the pool.
    """

    def __init__(self, community: Community, rule: Rule) -> None:
        self.community, self.rule = community, rule
        self.rank = np.arange(1.0, _EXACT + 1)
        self.moved = 0 < rule.r < 1
        if self.moved:
            most = int(nbinom.ppf(1 - 1e-9, _EXACT, 1 - rule.r)) + 1
            moved = np.arange(most + 1.0)
            behind = np.maximum(self.rank - rule.k + 1, 0)[:, None]
            chance = np.where(behind > 0, nbinom.pmf(moved, np.maximum(behind, 1), 1 - rule.r), 0)
            chance[behind[:, 0] == 0, 0] = 1
            places = community.theta * (self.rank[:, None] + moved) ** -1.5
            # Up to a displacement of 0, 1 … exclusively.
            self.sums = np.pad(np.cumsum(chance * places, axis=1), ((0, 0), (1, 0)))
            self.chance = np.pad(np.cumsum(chance, axis=1), ((0, 0), (1, 0)))

    def visits(self, above: Floats, variance: Floats, own: Floats, pool: float) -> Floats:
        """F at each atom, interpolated between some; the page itself, ``own``, is not above it."""
        r = self.rule.r
        if self.rule.uniform:
            variance = (1 - r) * above - (1 - r) ** 2 * (above - variance)
            above, own, pool = above * (1 - r), own * (1 - r), self.community.pages * r
        wanted = np.geomspace(1, 1 + above[-1], 400) - 1
        some = np.unique(np.searchsorted(above, wanted).clip(0, len(above) - 1))
        found = self._mean(above[some], variance[some], pool)
        others = np.log1p(np.maximum(above - own, 0))
        values = np.exp(np.interp(others, np.log1p(above[some]), np.log(found)))
        if not self.rule.uniform:
            return values
        anywhere = float(self.community.attention[self.rule.k - 1 :].sum()) / self.community.pages
        return (1 - r) * values + r * anywhere

    def _mean(self, above: Floats, variance: Floats, pool: float) -> Floats:
        exact = self.by_rank(pool)
        found = np.empty(len(above))
        small = above < 0.6 * _EXACT
        mean, spread = above[small], variance[small]
        trials = np.maximum(np.ceil(mean), np.rint(mean**2 / np.maximum(mean - spread, 1e-9)))
        trials = np.maximum(trials, 1)
        chance = binom.pmf(self.rank - 1, trials[:, None], (mean / trials)[:, None])
        found[small] = chance @ exact
        rank, sd = 1 + above[~small], np.sqrt(variance[~small])
        found[~small] = (self.far(rank - sd, pool) + self.far(rank + sd, pool)) / 2
        return found

    def by_rank(self, pool: float) -> Floats:
        """E F₂ by natural rank, from 1 to _EXACT."""
        if not self.moved:
            return self.far(self.rank, pool)
        fewer, part = divmod(pool, 1)
        return (1 - part) * self._limited(int(fewer)) + part * self._limited(int(fewer) + 1)

    def _limited(self, pool: int) -> Floats:
        """E F₂ by natural rank where at most ``pool`` pages are promoted."""
        last = min(pool, self.sums.shape[1] - 1)
        behind = np.where(self.rank < self.rule.k, 0, pool)
        rest = self.community.theta * (self.rank + behind) ** -1.5
        return np.asarray(self.sums[:, last] + (1 - self.chance[:, last]) * rest)

    def far(self, rank: Floats, pool: float) -> Floats:
        """F₂ of the mean place of a natural rank (5.6)."""
        behind, r = np.maximum(rank - self.rule.k + 1, 0), self.rule.r
        by = r * behind / (1 - r) if r < 1 else np.where(behind > 0, np.inf, 0)
        return np.asarray(self.community.theta * (rank + np.minimum(by, pool)) ** -1.5)


def _fitted(popularity: Floats, visits: Floats) -> Floats:
    """Log F as a quadratic of log x, the ends with more weight."""
    x, y = np.log(popularity), np.log(visits)
    edge = 2 * (x - x.min()) / (x.max() - x.min()) - 1
    return np.asarray(np.exp(np.polyval(np.polyfit(x, y, 2, w=1 + 100 * edge**8), x)))
