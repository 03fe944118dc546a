"""Single items of simulated sources, so that a policy may learn from what its crawls bring.

Items come as a Poisson process of rate Λ and are worth ξ̄ each; an item of age a gets a Poisson
number of clicks from then on, of the mean ξ̄e^{−μa}, at ages that fade at the rate μ. A crawl shows
the items since the last crawl, with their ages. From then on they are watched until the next crawl
of their source, which tells of the clicks that they had meanwhile. Later clicks are lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.ephemeral.policies import PolicyInput
from freshet.scheduler.ephemeral.sources import EphemeralSources, UtilityLaw


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

    def __call__(self, seen: PolicyInput) -> Floats:
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
    _before: PolicyInput | None = None
    _shown: dict[int, Floats] = field(default_factory=dict)

    def __call__(self, seen: PolicyInput) -> Floats:
        """(n,), the learner's, which knows of all periods before."""
        if (before := self._before) is not None:
            for row in np.flatnonzero(seen.crawls > before.crawls).tolist():
                self._tell(row, before.elapsed, int(before.since_crawl[row]))
        self._before = seen
        return self.learner(seen)

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


def arriving(
    sources: EphemeralSources, law: UtilityLaw, periods: int, rng: np.random.Generator
) -> Floats:
    """(periods, n), U of each period and source.

    Items come as a Poisson process of rate Λ, each worth ξ when it appears; at the end of a period

        U = Σ ξ_j e^{−μ(T − τ_j)},   E U = u

    With ``law.together`` U varies as ξ does, however many items there are; else it varies by
    E ξ²/(ξ̄² Λ T).
    """
    columns = [_of_one(sources, row, law, periods, rng) for row in range(len(sources))]
    return np.stack(columns, axis=1)


def _of_one(
    sources: EphemeralSources, row: int, law: UtilityLaw, periods: int, rng: np.random.Generator
) -> Floats:
    counts = rng.poisson(sources.arrival_rate[row] * sources.period, periods)
    total = int(counts.sum())
    owner = np.repeat(np.arange(periods), counts)
    ages = rng.random(total) * sources.period
    worth = sources.mean_utility[row] * np.exp(-sources.decay[row] * ages)
    worth *= law.draws(periods, rng)[owner] if law.together else law.draws(total, rng)
    sums: Floats = np.bincount(owner, worth, minlength=periods).astype(np.float64)
    return sums
