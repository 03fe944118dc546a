"""LSPE(0) with policy gradient: the learner of Avrachenkov and Borkar 2019, as they ran it.

Source i is crawled with the probability f_i of its state x_i and a threshold T_i that depends on
the others' states, linear in q with the features ψ = (1, s_i, s_i²), s_i = Σ_{k≠i} x_k:

    T_i = q_i·ψ(x_{−i}), kept in [u_i, u_i/(1 − α_i)],      f_i = 1/(1 + e^{−κ(x_i − T_i − ½)})

The value of a state is V(x) ≈ r·φ(x), φ all x_i and all products x_i x_j. With a(n) = c/⌈n/500⌉ and
b(n) = c/⌈n/1000⌉^{2/3}, each step n moves (section IV)

    B ← B + b(n) (φφᵀ − B)                      φ = φ(X(n)), ψ likewise
    A ← A + b(n) (φ(φ(X(n + 1)) − φ)ᵀ − A)
    d ← d + b(n) (φ(Σ X_i − η) − d)             the paper's b̄
    r ← r + γ (BᵀB + δI)⁻¹Bᵀ (Ar + d)
    q ← q + a(n) ∇ log p(X(n + 1)|X(n)) V(X(n + 1))                               (9)
    η ← η + b(n) (Σ X_i − η)

to maximise the average β of Σ X_i over q. (8) in closed form is ∂ log p/∂q_i = κψ(f_i − ν_i), where
ν_i is 1 if i was crawled. States follow the mean: α_i x_i + u_i, or u_i after a crawl.

    κ, γ, c, δ, ε   Settings     pure numbers; δ in the unit of φφᵀ squared
    X               state        (n,), utility
    q, r            result       (n, 3) and (n + n(n+1)/2,)
    rng             argument     who is crawled

Method: B is symmetric, so (BᵀB + δI)⁻¹Bᵀ is λ/(λ² + δ) on its eigenvectors: no condition number is
squared. O(L³) a step for L features, 14 with four sources: 0.1 ms. f by ``expit``.

What becomes of it: on Table I with the settings below q grows to 1e95, and every threshold lies at
an end of its interval (``held``). A source is then crawled at 1/(1 + e/(1 + e)) = 0.58 of the
steps or, at the other end, at one of ten to 25; which of the two is a matter of the seed.

Edge cases: iterates that are not finite end the learning, not the run: q and r stay what they were,
and ``diverged`` says when. Sources that do not fade have no upper threshold and are refused, as are
those without items; the number crawled is not limited, and costs are not visited.

Reference: K. Avrachenkov, V. S. Borkar, "A learning algorithm for the Whittle index policy for
scheduling web crawlers", Allerton 2019, sections III to V. Differs from the paper in: the third
feature has a coefficient of its own (printed: q₁ twice); no Sherman–Morrison step, which the
regularised inverse replaces. (8) is taken for each T_i by itself, though a sum over i is printed.

What the paper leaves open, and what we take: c (0.5, the middle of its interval), δ (0.001,
"small"), ε (1), η, r and q at first (0, so that thresholds begin at u_i), states at first (u_i).
d is averaged with b(n) as A is, though it is not in the paper's list. States are the mean ones of
(2) and (3), in items as Table I has them; ``scale`` divides them. What the text decides is followed
also where one may wonder: β is the utility that *waits* at all sources, Σ X_i, not what crawls
earn, Σ X_i ν_i (for which set ``drive``), so that raising it means crawling less; and (9) has V as
it is, with no baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.ephemeral.sources import EphemeralSources

Drive: TypeAlias = Literal["waiting", "crawled"]
DRIVES: tuple[Drive, ...] = ("waiting", "crawled")


@dataclass(frozen=True, slots=True)
class Settings:
    """Those of section V where it has them.

    Attributes:
        kappa: κ, how sharply a source is crawled above its threshold.
        gamma: γ, the step of r.
        step: c, of a(n) and b(n).
        regularisation: δ.
        start: ε, B at first on its diagonal.
        scale: what states are divided by.
        drive: the reward of the Poisson equation, Σ X_i or Σ X_i ν_i.
    """

    kappa: float = 2.0
    gamma: float = 0.05
    step: float = 0.5
    regularisation: float = 1e-3
    start: float = 1.0
    scale: float = 1.0
    drive: Drive = "waiting"

    def __post_init__(self) -> None:
        for name in ("kappa", "gamma", "step", "regularisation", "start", "scale"):
            arrays.budget(name, getattr(self, name))
        arrays.one_of("drive", self.drive, DRIVES)


@dataclass(frozen=True, slots=True)
class Learnt:
    """What t steps brought.

    Attributes:
        reward: (t,), utility that was crawled, not divided by the scale.
        crawled: (t, n), who was crawled.
        held: (t,), the share of the thresholds that lay outside of their intervals.
        thresholds: (n, 3), q in the end.
        values: (L,), r in the end.
        diverged: the step at which an iterate was not finite; None: all were.
    """

    reward: Floats
    crawled: Bools
    held: Floats
    thresholds: Floats
    values: Floats
    diverged: int | None


def learn(
    sources: EphemeralSources, settings: Settings, steps: int, rng: np.random.Generator
) -> Learnt:
    """So many steps from nothing.

    Raises:
        ValueError: if there is no step, or a source has no items or does not fade.
    """
    if steps < 1:
        raise ValueError(f"steps: are {steps}; accepted is at least 1")
    for name in ("arrival_rate", "mean_utility", "decay"):
        arrays.positive(name, getattr(sources, name))
    least, most = sources.fresh / settings.scale, sources.ceiling / settings.scale
    chance = rng.random((steps, len(sources)))
    reward, crawled, held = np.empty(steps), np.empty(chance.shape, np.bool_), np.empty(steps)
    iterates = _Iterates(settings, len(sources))
    x, phi = least, value_features(least)
    with np.errstate(all="ignore"):
        for n in range(1, steps + 1):
            psi = threshold_features(x)
            wanted = (iterates.q * psi).sum(axis=1)
            threshold = np.clip(wanted, least, most)
            held[n - 1] = (wanted != threshold).mean()
            f = expit(settings.kappa * (x - threshold - 0.5))
            active = chance[n - 1] < f
            after = np.where(active, least, sources.retention * x + least)
            earned = float(x[active].sum())
            reward[n - 1], crawled[n - 1] = earned * settings.scale, active
            slope = settings.kappa * (f - active)[:, None] * psi
            driving = earned if settings.drive == "crawled" else float(x.sum())
            then = value_features(after)
            iterates.step(n, phi, then, driving, slope)
            x, phi = after, then
    return Learnt(reward, crawled, held, iterates.q, iterates.r, iterates.diverged)


def threshold_features(x: Floats) -> Floats:
    """(n, 3), ψ of each source: 1, the sum of the others' states, and its square.

    >>> threshold_features(np.array([1.0, 2.0, 4.0])).tolist()
    [[1.0, 6.0, 36.0], [1.0, 5.0, 25.0], [1.0, 3.0, 9.0]]
    """
    others = x.sum() - x
    return np.stack([np.ones(len(x)), others, others * others], axis=1)


def value_features(x: Floats) -> Floats:
    """(n + n(n+1)/2,), φ: all states, and all products of two.

    >>> value_features(np.array([2.0, 3.0])).tolist()
    [2.0, 3.0, 4.0, 6.0, 9.0]
    """
    return np.concatenate([x, np.outer(x, x).take(_pairs(len(x)))])


@cache
def _pairs(n: int) -> NDArray[np.intp]:
    return np.flatnonzero(np.triu(np.ones((n, n))))


class _Iterates:
    """Everything that section IV updates."""

    def __init__(self, settings: Settings, sources: int) -> None:
        length = sources + sources * (sources + 1) // 2
        self._settings = settings
        self.q, self.r = np.zeros((sources, 3)), np.zeros(length)
        self.diverged: int | None = None
        self._b = settings.start * np.eye(length)
        self._a = np.zeros((length, length))
        self._d = np.zeros(length)
        self._eta = 0.0

    def step(self, n: int, now: Floats, then: Floats, driving: float, slope: Floats) -> None:
        """Step n ≥ 1, from φ(X(n)) to φ(X(n + 1)); ``slope`` is (n, 3), ∇ log p."""
        if self.diverged is not None:
            return
        a = self._settings.step / -(-n // 500)
        b = self._settings.step / (-(-n // 1000)) ** (2 / 3)
        self._b += b * (np.outer(now, now) - self._b)
        self._a += b * (np.outer(now, then - now) - self._a)
        self._d += b * (now * (driving - self._eta) - self._d)
        self._eta += b * (driving - self._eta)
        q = self.q + a * float(self.r @ then) * slope
        move = self._inverse_times(self._a @ self.r + self._d)
        r = self.r + self._settings.gamma * move
        if np.isfinite(q).all() and np.isfinite(r).all():
            self.q, self.r = q, r
        else:
            self.diverged = n

    def _inverse_times(self, vector: Floats) -> Floats:
        """(BᵀB + δI)⁻¹Bᵀ times ``vector``; NaN where B has no eigenvalues."""
        if not np.isfinite(self._b).all():
            return np.full(len(vector), np.nan)
        try:
            values, vectors = np.linalg.eigh(self._b)
        except np.linalg.LinAlgError:
            return np.full(len(vector), np.nan)
        share = values / (values * values + self._settings.regularisation)
        product: Floats = vectors @ (share * (vectors.T @ vector))
        return product
