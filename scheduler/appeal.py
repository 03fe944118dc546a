"""The appeal of a page: the probability that somebody who looks at it in a list opens it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from freshet.scheduler.arrays import Floats
from freshet.scheduler.special import digamma, log_gamma, trigamma

# -- beta laws ---------------------------------------------------------------

#: The strength of a prior before data, and the standard deviation of its logarithm: it matters
#: where the data are of a single page, or show no spread.
_USUAL_STRENGTH: Final = 5.0
_SPREAD: Final = 2.0
_STEPS: Final = 50


@dataclass(frozen=True, slots=True)
class BetaPrior:
    """A beta law of probabilities: ``mean`` in (0, 1), and ``strength`` α + β, above 0."""

    mean: float
    strength: float

    def posterior_mean(self, successes: Floats, failures: Floats) -> Floats:
        """Return (n,), the expected probabilities after these successes and failures."""
        weight = self.strength + successes + failures
        return np.asarray((self.mean * self.strength + successes) / weight)

    @classmethod
    def fitted(cls, successes: Floats, failures: Floats) -> BetaPrior:
        """Return the law from which the probabilities of n arms come most likely.

        Maximises the marginal likelihood over α, β > 0, by Newton's method in their logarithms,

            Σ ln [B(α + s_i, β + f_i) / B(α, β)] + ½ ln [αβ / (α + β)²]
                − ½ (ln(α + β) − ln 5)² / 2²,

        whose last terms, of less weight than an arm, keep α + β finite where the arms do not
        differ, and the mean off 0 where none had a success. ``successes`` and ``failures`` (n,) are
        at least 0 and need not be whole.
        """
        known = successes + failures > 0
        s, f = successes[known], failures[known]
        mean = (s.sum() + 0.5) / (s.sum() + f.sum() + 1.0)
        point = np.log(_USUAL_STRENGTH) + np.log([mean, 1 - mean])
        value = _likelihood(point, s, f)
        for _ in range(_STEPS if len(s) else 0):
            slope, curvature = _derivatives(point, s, f)
            step, size = np.linalg.solve(curvature, slope), 1.0
            while (after := _likelihood(point + size * step, s, f)) < value and size > 1e-6:
                size /= 2
            if after < value:
                break
            point, value = point + size * step, after
            if np.abs(size * step).max() < 1e-8:
                break
        alpha, beta = np.exp(point).tolist()
        return cls(alpha / (alpha + beta), alpha + beta)


def _likelihood(point: Floats, s: Floats, f: Floats) -> float:
    a, b = np.exp(np.clip(point, -30.0, 30.0))
    ends = log_gamma(np.array([a, b, a + b]))
    inside = log_gamma(a + s) + log_gamma(b + f) - log_gamma(a + b + s + f)
    strength = np.log((a + b) / _USUAL_STRENGTH) / _SPREAD
    usual = 0.5 * np.log(a * b / (a + b) ** 2) - strength**2 / 2
    return float(inside.sum() - len(s) * (ends[0] + ends[1] - ends[2]) + usual)


def _derivatives(point: Floats, s: Floats, f: Floats) -> tuple[Floats, Floats]:
    """Return the gradient (2,), and the negated second derivatives, made positive definite."""
    a, b = np.exp(point)
    n, total = len(s), a + b
    first = digamma(np.array([a, b, total]))
    second = trigamma(np.array([a, b, total]))
    both = n * first[2] - digamma(total + s + f).sum()
    both2 = n * second[2] - trigamma(total + s + f).sum()
    strength = np.log(total / _USUAL_STRENGTH) / _SPREAD**2
    ga = digamma(a + s).sum() - n * first[0] + both - strength / total
    gb = digamma(b + f).sum() - n * first[1] + both - strength / total
    mixed = both2 + (strength - 1 / _SPREAD**2) / total**2
    mean, even = a / total, a * b / total**2
    haa = trigamma(a + s).sum() - n * second[0] + mixed
    hbb = trigamma(b + f).sum() - n * second[1] + mixed
    across = a * b * mixed + even
    hessian = [[a * a * haa + a * ga - even, across], [across, b * b * hbb + b * gb - even]]
    values, vectors = np.linalg.eigh(-np.array(hessian))
    positive = np.maximum(np.abs(values), 1e-9)
    slope = np.array([a * ga + 0.5 - mean, b * gb + mean - 0.5])
    return slope, (vectors * positive) @ vectors.T


# -- indices -----------------------------------------------------------------

_NEWTON_STEPS: Final = 12


def kl_upper_bound(mean: Floats, level: Floats) -> Floats:
    """Return the largest q (n,) with kl(mean, q) ≤ level, the KL-UCB index of a probability.

        kl(p, q) = p ln(p/q) + (1 − p) ln((1 − p)/(1 − q))

    ``mean`` in [0, 1], ``level`` at least 0, of one shape. From above by Newton's method, which
    falls to the root, as kl is convex; it begins at the lesser of p + √(level/2) (Pinsker) and of
    the q at which −h(p) − (1 − p) ln(1 − q) reaches the level, h the entropy.

    Reference: Garivier and Cappé, "The KL-UCB algorithm for bounded stochastic bandits and
    beyond", 2011.

    >>> kl_upper_bound(np.array([0.0, 0.5]), np.array([np.log(2), 0.0])).round(6).tolist()
    [0.5, 0.5]
    """
    p, rest = mean, 1 - mean
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.nan_to_num(-p * np.log(p)) + np.nan_to_num(-rest * np.log(rest))
        far = -np.expm1(-(level + entropy) / rest)
        q = np.fmin(np.fmin(p + np.sqrt(level / 2), far), 1.0)
        for _ in range(_NEWTON_STEPS):
            above = -entropy - p * np.log(q) - rest * np.log1p(-q) - level
            step = above * q * (1 - q) / (q - p)
            q = np.where(np.isfinite(step), np.clip(q - step, p, q), q)
    return np.asarray(q)
