"""How fast the items of one source fade, and what one is worth: from the clicks on them.

An item gets ξ clicks in all, on average, of which those at the age x come at the rate ξμe^{−μx}.
It is watched from the age a (when it was found) to the age b (now, or when the clicks were last
fetched). A click at the age x, of which d = x − a and w = b − a, then has the density

    μ e^{−μd} / (1 − e^{−μw})        0 ≤ d ≤ w

whatever ξ is. What is thought of μ is log-Gamma shaped about its mode, weighing as k clicks whose
end was not cut off. Further clicks move the mode to the maximum over μ of

    k (log μ − μ/μ₀) + Σ [ log μ − μd − log(1 − e^{−μw}) ]

that is, with h = μw and S = k/μ₀ + Σd, to the root of the concave

    G(μ) = k + Σ [ 1 − h/(e^h − 1) ] − μS

and each adds its information about log μ, 1 − (h/2)²/sinh²(h/2): 1 if w is long, h²/12 if short.

    x     ages                     of items when they were clicked      (m,), time
    a, b  since, until             ages between which they are watched  (m,) or one for all
    μ₀    Fading.decay             mode so far                          per unit of time
    k     PRIOR_CLICKS + clicks    its weight                           clicks
    μ     result                   decay                                per unit of time

With μ, an item that is watched has Σ (e^{−μa} − e^{−μb}) of its clicks then, the *exposure*, and ξ̄
has the Gamma posterior of clicks in so much exposure.

Method: Newton's steps from the upper end (k + m)/S, which fall to the root as G is concave; from
three to ten of O(m), one if nothing is cut off. Two numbers are kept, in any unit of time.

Edge cases: without clicks μ is ln 2/half-life to the last bit, and ξ̄ what was said of it, 1.
Clicks outside of their window are refused, as is all that is negative, NaN or not finite (but
``until``, which is infinite where no click is cut off).

Reference: exponential fading, and ξ as all the clicks that an item gets: the papers of Avrachenkov
and Borkar, after Lefortier et al. 2013. Differs from the papers in: they take μ and ξ̄ as known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.ephemeral.arrivals import HALF_LIFE_DAYS, Arrivals
from freshet.scheduler.ephemeral.policies import Seen
from freshet.scheduler.ephemeral.sources import EphemeralSources
from freshet.scheduler.policies import whittle

#: As how many clicks a configured half-life weighs. Few: it is a guess, and clicks are the thing.
PRIOR_CLICKS: Final = 2.0
#: As how much exposure a configured worth weighs, in items watched from birth to the end.
PRIOR_EXPOSURE: Final = 1.0
#: Windows of fewer half-lives than this, by h, have series.
_SHORT: Final = 1e-3
#: Beyond this h a window has no end.
_LONG: Final = 500.0
_TOLERANCE: Final = 1e-12
_STEPS: Final = 60


@dataclass(frozen=True, slots=True)
class Fading:
    """What is known of one source's μ; :meth:`of` begins.

    Two clicks' worth of a half-life of ln 2, hence of a mean age 1, and one click at the age 4:
    three clicks in a time of 6.

    >>> Fading.of(math.log(2)).after([4.0])
    Fading(decay=0.5, clicks=1.0)

    Attributes:
        decay: μ, per unit of time.
        clicks: what it rests on beyond the prior, in clicks that tell all.
    """

    decay: float
    clicks: float = 0.0

    def __post_init__(self) -> None:
        arrays.budget("decay", self.decay)
        arrays.amount("clicks", self.clicks)

    @classmethod
    def of(cls, half_life: float) -> Fading:
        """What is thought before any click.

        Raises:
            ValueError: if the half-life is not a finite number above 0.
        """
        return cls(math.log(2) / arrays.budget("half_life", half_life))

    def after(
        self, ages: ArrayLike, *, since: ArrayLike = 0.0, until: ArrayLike = np.inf
    ) -> Fading:
        """What is known after clicks on items of these ``ages``.

        ``since`` and ``until``, a row a click or one number for all: the ages of the item between
        which its clicks are seen.

        Raises:
            ValueError: as the module says.
        """
        x = arrays.non_negative("ages", np.atleast_1d(np.asarray(ages, dtype=np.float64)))
        if not len(x):
            return self
        start, window = _windows(since, until, len(x))
        _inside(x, start, window)
        weight = PRIOR_CLICKS + self.clicks
        total = weight / self.decay + float((x - start).sum())
        decay = _mode(weight, total, window)
        information = float(_information(decay * window).sum())
        return Fading(decay, self.clicks + information)

    @property
    def deviation(self) -> float:
        """That of log μ."""
        return 1 / math.sqrt(PRIOR_CLICKS + self.clicks)


@dataclass(frozen=True, slots=True)
class Worth:
    """What is known of one source's ξ̄; :meth:`of` begins.

    Three clicks while items passed one item's whole life make, with the prior, four in two.

    >>> Worth.of().after(clicks=3, exposure=1.0).mean
    2.0

    Attributes:
        clicks: those seen, and the prior's.
        exposure: the lives of items in which they were seen, and the prior's.
    """

    clicks: float
    exposure: float

    def __post_init__(self) -> None:
        arrays.amount("clicks", self.clicks)
        arrays.budget("exposure", self.exposure)

    @classmethod
    def of(cls, worth: float = 1.0) -> Worth:
        """What is thought before any item is watched.

        Raises:
            ValueError: if the worth is negative or not finite.
        """
        return cls(arrays.amount("worth", worth) * PRIOR_EXPOSURE, PRIOR_EXPOSURE)

    @property
    def mean(self) -> float:
        """ξ̄, clicks an item."""
        return self.clicks / self.exposure

    @property
    def deviation(self) -> float:
        """That of ξ̄."""
        return math.sqrt(self.clicks) / self.exposure

    def after(self, clicks: float, exposure: float) -> Worth:
        """What is known after so many clicks in so much :func:`exposure`.

        Raises:
            ValueError: if one is negative or not finite.
        """
        seen = arrays.amount("clicks", clicks)
        return Worth(self.clicks + seen, self.exposure + arrays.amount("exposure", exposure))


def exposure(decay: float, since: ArrayLike, until: ArrayLike) -> float:
    """Σ (e^{−μa} − e^{−μb}): of how many items all clicks are seen, if these are watched so long.

    ``since`` and ``until`` are (m,), an item a row, or one of them is a number for all.

    Watched from the half-life to twice the half-life, an item shows a quarter of its clicks.

    >>> round(exposure(math.log(2), [1.0], [2.0]), 12)
    0.25

    Raises:
        ValueError: if the decay is not above 0, or a window is negative or ends before it begins.
    """
    mu = arrays.budget("decay", decay)
    start, window = _windows(since, until, max(np.size(since), np.size(until)))
    with np.errstate(over="ignore"):
        return float((np.exp(-mu * start) * -np.expm1(-mu * window)).sum())


def _windows(since: ArrayLike, until: ArrayLike, length: int) -> tuple[Floats, Floats]:
    """A and w = b − a, each (m,)."""
    start = arrays.non_negative("since", _column(since, length), length)
    end = _column(until, length)
    finite = np.where(np.isposinf(end), 0.0, end)
    arrays.non_negative("until", finite, length)
    early = end < start
    if early.any():
        row = int(np.argmax(early))
        raise ValueError(f"until: row {row} is {end[row]}; accepted is from since, {start[row]}")
    return start, end - start


def _column(values: ArrayLike, length: int) -> Floats:
    given = np.atleast_1d(np.asarray(values, dtype=np.float64))
    return np.full(length, given[0]) if np.ndim(values) == 0 else given


def _inside(ages: Floats, start: Floats, window: Floats) -> None:
    out = (ages < start) | (ages - start > window)
    if out.any():
        row = int(np.argmax(out))
        raise ValueError(
            f"ages: row {row} is {ages[row]}; accepted is from since, {start[row]}, to until, "
            f"{start[row] + window[row]}"
        )


def _mode(weight: float, total: float, window: Floats) -> float:
    """The root of G, where S is ``total``."""
    decay = (weight + len(window)) / total
    for _ in range(_STEPS):
        h = decay * window
        value = weight + float(_one_less_tail(h).sum()) - decay * total
        slope = float(_slope(h).sum()) / decay - total
        step = value / slope
        decay -= step
        if abs(step) <= _TOLERANCE * decay:
            break
    return decay


def _one_less_tail(h: Floats) -> Floats:
    """1 − h/(e^h − 1), from h/2 to 1."""
    short, capped = np.minimum(h, _SHORT), np.clip(h, _SHORT, _LONG)
    return np.where(h < _SHORT, short / 2 - short * short / 12, 1 - capped / np.expm1(capped))


def _slope(h: Floats) -> Floats:
    """H times the derivative of it: [h/(e^h − 1)] [h e^h/(e^h − 1) − 1]."""
    short, capped = np.minimum(h, _SHORT), np.clip(h, _SHORT, _LONG)
    tail = capped / np.expm1(capped)
    return np.where(
        h < _SHORT, short / 2 - short * short / 6, tail * (capped / -np.expm1(-capped) - 1)
    )


def _information(h: Floats) -> Floats:
    """1 − (h/2)²/sinh²(h/2), from h²/12 to 1."""
    short, half = np.minimum(h, _SHORT), np.clip(h, _SHORT, _LONG) / 2
    return np.where(h < _SHORT, short * short / 12, 1 - (half / np.sinh(half)) ** 2)


# -- simulated items ---------------------------------------------------------
#
# Single items of simulated sources, so that a policy may learn from what its crawls bring.
#
# Items come as a Poisson process of rate Λ and are worth ξ̄ each; an item of age a gets a Poisson
# number of clicks from then on, of the mean ξ̄e^{−μa}, at ages that fade at the rate μ. A crawl
# shows the items since the last crawl, with their ages. From then on they are watched until the
# next crawl of their source, which tells of the clicks that they had meanwhile. Later clicks are
# lost.


@dataclass(frozen=True, slots=True)
class Items:
    """The items of n sources in t periods.

    Attributes:
        published: of each source, when its items appeared, (m,), period by period.
        starts: of each source, its first item of each period, and the end, (t + 1,).
        period: T.
    """

    published: tuple[Floats, ...]
    starts: tuple[Ints, ...]
    period: float

    @classmethod
    def drawn(cls, sources: EphemeralSources, periods: int, rng: np.random.Generator) -> Items:
        """Poisson processes of the sources' rates."""
        published, starts = [], []
        for rate in sources.arrival_rate:
            counts = rng.poisson(rate * sources.period, periods)
            begin = np.repeat(np.arange(periods) * sources.period, counts)
            published.append(begin + sources.period * rng.random(len(begin)))
            starts.append(np.concatenate([[0], np.cumsum(counts)]))
        return cls(tuple(published), tuple(starts), sources.period)

    def arriving(self, sources: EphemeralSources) -> Floats:
        """(t, n), U: what the items of each period are worth at its end."""
        columns = []
        for row, (published, starts) in enumerate(zip(self.published, self.starts, strict=True)):
            owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
            age = (owner + 1) * self.period - published
            worth = sources.mean_utility[row] * np.exp(-sources.decay[row] * age)
            columns.append(np.bincount(owner, worth, minlength=len(starts) - 1))
        return np.stack(columns, axis=1).astype(np.float64)

    def ages(self, row: int, elapsed: int, waited: int) -> Floats:
        """(m,), of what a crawl at the end of period ``elapsed`` shows of the last ``waited``."""
        starts = self.starts[row]
        shown = self.published[row][starts[max(0, elapsed + 1 - waited)] : starts[elapsed + 1]]
        ages: Floats = (elapsed + 1) * self.period - shown
        return ages


@dataclass(frozen=True, slots=True)
class Watched:
    """Items of a source that were watched from one age to another, and the clicks on them.

    Attributes:
        since, until: (m,), of the items.
        item: (c,), the item of each click.
        ages: (c,), the age of the item at the click.
    """

    since: Floats
    until: Floats
    item: Ints
    ages: Floats


class Learner(Protocol):
    """A policy over periods that hears what its crawls brought."""

    def priority(self, seen: Seen) -> Floats:
        """(n,), the larger the sooner, per unit of cost."""
        ...

    def found(self, row: int, ages: Floats, elapsed: float) -> None:
        """A crawl showed items of these ages, all that came in the ``elapsed`` time before it."""
        ...

    def watched(self, row: int, seen: Watched) -> None:
        """Clicks were counted."""
        ...


@dataclass(slots=True)
class Told:
    """A policy over periods that passes on to a learner what its last crawls brought.

    ``clicks`` draws the clicks on the items of ``sources``; None: none are seen.
    """

    learner: Learner
    sources: EphemeralSources
    items: Items
    clicks: np.random.Generator | None = None
    _before: Seen | None = None
    _shown: dict[int, Floats] = field(default_factory=dict)

    def priority(self, seen: Seen) -> Floats:
        """(n,), the learner's, which knows of all periods before."""
        if (before := self._before) is not None:
            for row in np.flatnonzero(seen.crawls > before.crawls).tolist():
                self._tell(row, before.elapsed, int(before.since_crawl[row]))
        self._before = seen
        return self.learner.priority(seen)

    def _tell(self, row: int, elapsed: int, waited: int) -> None:
        span = waited * self.items.period
        if self.clicks is not None and row in self._shown:
            self.learner.watched(row, self._clicked(row, self._shown[row], span, self.clicks))
        ages = self.items.ages(row, elapsed, waited)
        self._shown[row] = ages
        self.learner.found(row, ages, span)

    def _clicked(self, row: int, since: Floats, span: float, rng: np.random.Generator) -> Watched:
        mu = float(self.sources.decay[row])
        share = -np.expm1(-mu * span)
        mean = float(self.sources.mean_utility[row]) * share * np.exp(-mu * since)
        item = np.repeat(np.arange(len(since)), rng.poisson(mean))
        # The distribution function of an exponential that is cut off, inverted.
        later = -np.log1p(-share * rng.random(len(item))) / mu if share > 0 else np.zeros(0)
        return Watched(since, since + span, item, since[item] + np.minimum(later, span))


# -- plug in -----------------------------------------------------------------
#
# Learning whom to crawl: the Whittle index of estimated parameters, and some optimism.
#
# The index needs Λ, ξ̄ and μ of each source. What crawls find and what clicks tell gives
# posteriors of them (:mod:`scheduler.ephemeral.arrivals`, :mod:`scheduler.ephemeral.learning`).
# Plugged in are
#
#     Λ̃ = E Λ + sσ(Λ),    ξ̃ = E ξ̄ + sσ(ξ̄),    μ̃ = μ̂ e^{−sσ(log μ)},    s = z √(1 + ln k)
#
# k periods after a crawl: the ends at which u* = Λξ̄/μ, hence what a long wait gathers, is
# largest, optimism in the face of uncertainty. Else a source whose items seem to fade too soon is
# left alone, and never known better; as s grows without bound, however slowly, none is left alone
# for good. The deviations σ fall as one over the square root of the evidence, and the exploration
# with them. Whom nobody has crawled comes first, once: an order of magnitude cannot be guessed.
#
# A learner sees only what was crawled, and no utilities. Without clicks ξ̄ and μ stay what was
# configured, and the ranks are as good as that is; what no clicks can teach is not explored.
#
#     z          optimism      deviations one period after a crawl  one number
#     k          since_crawl   periods                              (n,)
#     μ̂ at first half_life     ln 2/μ, in the time of T             (n,) or one number
#     ξ̄ at first worth         configured                           (n,) or one number
#
# Method: O(1) a crawl for Λ. For ξ̄ and μ clicks are kept until their items are an eighth of all
# that came before, and learnt at once: some hundred times for a million. O(n) a period for the
# index.
#
# Edge cases: a source without items comes to a Λ, and an index, near 0. One whose items do not
# fade cannot be configured: a half-life is finite. What a source is known for is forgotten by its
# crawls, not while it is left alone.
#
# Reference: ours, in the place of the learner of Avrachenkov and Borkar 2019
# (:mod:`freshet.scheduler.ephemeral.lspe`), which learns thresholds without a model.

#: Standard deviations of optimism, one period after a crawl.
OPTIMISM: Final = 1.0
#: Clicks and items are learnt when they are this share of those learnt before, or so many.
_SHARE: Final = 1 / 8
_MANY: Final = 20_000


class PlugIn:
    """The learner of n sources, told by :class:`~.simulated_items.Told`."""

    def __init__(
        self,
        cost: Floats,
        *,
        half_life: ArrayLike = 1.0,
        worth: ArrayLike = 1.0,
        period: float = 1.0,
        optimism: float = OPTIMISM,
        forgetting: float = HALF_LIFE_DAYS,
    ) -> None:
        """Begin with nothing but what is configured; ``cost`` is (n,).

        Raises:
            ValueError: if a cost or a half-life is not above 0, a worth is negative, or one of
                them not finite.
        """
        self._cost = arrays.positive("cost", arrays.finite("cost", cost))
        n = len(self._cost)
        half_lives = arrays.positive("half_life", _each("half_life", half_life, n))
        self._period = arrays.budget("period", period)
        self._optimism = arrays.amount("optimism", optimism)
        self._forgetting = arrays.budget("forgetting", forgetting)
        self._arrivals = [Arrivals()] * n
        self._fading = [Fading.of(float(each)) for each in half_lives]
        self._worth = [Worth.of(float(each)) for each in _each("worth", worth, n)]
        self._new: list[list[Watched]] = [[] for _ in range(n)]
        self._pending, self._learnt = [0] * n, [0] * n
        # Means of Λ and ξ̄ and the mode of log μ, and their deviations.
        self._middle, self._spread = np.empty((3, n)), np.zeros((3, n))
        for row in range(n):
            self._plug(row)

    @property
    def estimates(self) -> tuple[Floats, Floats, Floats]:
        """(n,) each: E Λ, E ξ̄ and μ̂, without optimism."""
        rates, worths, logs = self._middle
        return rates.copy(), worths.copy(), np.exp(logs)

    def priority(self, seen: Seen) -> Floats:
        """(n,), the index; infinite for whom nobody has crawled."""
        optimism = self._optimism * np.sqrt(1 + np.log(seen.since_crawl))
        rates, worths, logs = self._middle + optimism * self._spread
        index = whittle.index(
            seen.since_crawl,
            rates,
            worths,
            np.exp(logs),
            cost=self._cost,
            period=self._period,
        )
        return np.where(seen.crawls == 0, np.inf, index)

    def found(self, row: int, ages: Floats, elapsed: float) -> None:
        """A crawl showed items, all that came in the ``elapsed`` time before it."""
        known = self._arrivals[row]
        self._arrivals[row] = known.after(len(ages), elapsed, half_life=self._forgetting)
        self._plug(row)

    def watched(self, row: int, seen: Watched) -> None:
        """Clicks were counted on the items of an earlier crawl."""
        self._new[row].append(seen)
        self._pending[row] += len(seen.since)
        if self._pending[row] >= min(_MANY, _SHARE * self._learnt[row]):
            self._learn(row)

    def _learn(self, row: int) -> None:
        new = self._new[row]
        ages = np.concatenate([each.ages for each in new])
        since = np.concatenate([each.since[each.item] for each in new])
        until = np.concatenate([each.until[each.item] for each in new])
        fading = self._fading[row].after(ages, since=since, until=until)
        lives = exposure(
            fading.decay,
            np.concatenate([each.since for each in new]),
            np.concatenate([each.until for each in new]),
        )
        self._fading[row] = fading
        self._worth[row] = self._worth[row].after(float(len(ages)), lives)
        self._learnt[row] += self._pending[row]
        self._pending[row] = 0
        new.clear()
        self._plug(row)

    def _plug(self, row: int) -> None:
        arrivals, worth, fading = self._arrivals[row], self._worth[row], self._fading[row]
        self._middle[:, row] = arrivals.rate, worth.mean, math.log(fading.decay)
        self._spread[0, row] = arrivals.deviation
        # Without clicks nothing will ever be known of these but what was configured.
        if self._learnt[row]:
            self._spread[1:, row] = worth.deviation, -fading.deviation


def _each(name: str, values: ArrayLike, length: int) -> Floats:
    given = np.atleast_1d(np.asarray(values, dtype=np.float64))
    return arrays.non_negative(
        name, np.full(length, given[0]) if np.ndim(values) == 0 else given, length
    )
