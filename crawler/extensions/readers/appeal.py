"""The appeal of a page: the probability that somebody who sees it in a list opens it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

import numpy as np

from freshet.scheduler.arrays import Floats, Ints

# -- attention ---------------------------------------------------------------

#: The exponents that are compared, and how unusual each is.
_EXPONENTS: Final = np.linspace(0.0, 4.0, 401)
_UNUSUAL: Final = (_EXPONENTS - 1.0) / 0.5


@dataclass(frozen=True, slots=True)
class Attention:
    """The probability that a place of a list is seen, relative to the first: i^(−exponent).

    ``interval`` holds the exponent with a probability of 95 %.
    """

    exponent: float = 1.0
    interval: tuple[float, float] = (0.02, 1.98)

    def of(self, places: Floats | Ints) -> Floats:
        """Return (n,) the attention to ``places`` (n,), which count from 1.

        >>> Attention().of(np.array([1, 2, 10])).tolist()
        [1.0, 0.5, 0.1]
        """
        return np.asarray(places, np.float64) ** -self.exponent

    @classmethod
    def fitted(cls, places: Ints, shown: Floats, opened: Floats) -> Attention:
        """Return the attention under which what was put at random places was opened most likely.

        Of ``shown`` (n,) items at a place ``opened`` (n,) were opened, a binomial number with
        probability c·i^(−η). It holds where chance chose the items, for an order by worth puts
        the better ones first. For each η from 0 to 4, c ≤ 1 is the most likely one; η has the
        prior N(1, ½²). The interval is where the profile's logarithm is at most 1.92 (χ²₁/2) less.
        """
        attention = _EXPONENTS[:, None] * -np.log(np.asarray(places, np.float64))
        level, step = np.full((len(_EXPONENTS), 1), -15.0), 15.0
        for _ in range(_STEPS):
            odds = 1 / np.expm1(-attention - level)
            step /= 2
            level += np.where(odds @ (shown - opened) < opened.sum(), step, -step)[:, None]
        value = (attention + level) @ opened - _UNUSUAL**2 / 2
        value += np.log(-np.expm1(attention + level)) @ (shown - opened)
        inside = _EXPONENTS[value >= value.max() - 1.92].tolist()
        return cls(float(_EXPONENTS[value.argmax()]), (inside[0], inside[-1]))


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
    from scipy.special import gammaln  # noqa: PLC0415 - slow to import

    a, b = np.exp(np.clip(point, -30.0, 30.0))
    ends = gammaln(np.array([a, b, a + b]))
    inside = gammaln(a + s) + gammaln(b + f) - gammaln(a + b + s + f)
    strength = np.log((a + b) / _USUAL_STRENGTH) / _SPREAD
    usual = 0.5 * np.log(a * b / (a + b) ** 2) - strength**2 / 2
    return float(inside.sum() - len(s) * (ends[0] + ends[1] - ends[2]) + usual)


def _derivatives(point: Floats, s: Floats, f: Floats) -> tuple[Floats, Floats]:
    """Return the gradient (2,), and the negated second derivatives, made positive definite."""
    from scipy.special import digamma, polygamma  # noqa: PLC0415 - slow to import

    a, b = np.exp(point)
    n, total = len(s), a + b
    first = digamma(np.array([a, b, total]))
    second = polygamma(1, np.array([a, b, total]))
    both = n * first[2] - digamma(total + s + f).sum()
    both2 = n * second[2] - polygamma(1, total + s + f).sum()
    strength = np.log(total / _USUAL_STRENGTH) / _SPREAD**2
    ga = digamma(a + s).sum() - n * first[0] + both - strength / total
    gb = digamma(b + f).sum() - n * first[1] + both - strength / total
    mixed = both2 + (strength - 1 / _SPREAD**2) / total**2
    mean, even = a / total, a * b / total**2
    haa = polygamma(1, a + s).sum() - n * second[0] + mixed
    hbb = polygamma(1, b + f).sum() - n * second[1] + mixed
    across = a * b * mixed + even
    hessian = [[a * a * haa + a * ga - even, across], [across, b * b * hbb + b * gb - even]]
    values, vectors = np.linalg.eigh(-np.array(hessian))
    positive = np.maximum(np.abs(values), 1e-9)
    slope = np.array([a * ga + 0.5 - mean, b * gb + mean - 0.5])
    return slope, (vectors * positive) @ vectors.T


# -- indices -----------------------------------------------------------------

#: From these beginnings as many leave a relative error of 1e-9, and less where it matters.
_NEWTON_STEPS: Final = 4


def kl_upper_bound(mean: Floats, level: Floats) -> Floats:
    """Return the largest q (n,) with kl(mean, q) ≤ level, the KL-UCB index of a probability.

        kl(p, q) = p ln(p/q) + (1 − p) ln((1 − p)/(1 − q)) = ∫ (x − p)/(x(1 − x)) dx, from p to q

    ``mean`` in [0, 1], ``level`` at least 0, of one shape. From above by Newton's method, which
    falls to the root, as kl is convex. It begins at the least of four bounds of q: three from
    x(1 − x) ≤ ¼ (Pinsker), 1 − p and q, and that at which −h(p) − (1 − p) ln(1 − q) reaches the
    level, h the entropy.

    Reference: Garivier and Cappé, "The KL-UCB algorithm for bounded stochastic bandits and
    beyond", 2011.

    >>> kl_upper_bound(np.array([0.0, 0.5]), np.array([np.log(2), 0.0])).round(6).tolist()
    [0.5, 0.5]
    """
    p, rest = mean, 1 - mean
    with np.errstate(divide="ignore", invalid="ignore"):
        constant = level - np.fmin(p * np.log(p), 0.0) - np.fmin(rest * np.log(rest), 0.0)
        far = -np.expm1(-constant / rest)
        near = np.sqrt(level * np.minimum(0.5, 2 * rest))
        near = p + np.minimum(near, level + np.sqrt(level * (level + 2 * p)))
        q = start = np.fmin(np.fmin(near, far), 1.0)
        for _ in range(_NEWTON_STEPS):
            below = p * np.log(q) + rest * np.log1p(-q) + constant
            q = np.fmin(np.fmax(q + below * q * (1 - q) / (q - p), p), start)
    # Where the bound is 1 the logarithm has no value.
    return np.where(start < 1, q, 1.0)


# -- the hierarchy -----------------------------------------------------------

#: Logits of means, so near that that of very many views is off by 12 % at most; the means.
_LOGITS: Final = np.linspace(-9.0, 5.0, 57)
_MEANS: Final = 1 / (1 + np.exp(-_LOGITS))
_LEAST: Final = 1e-300
#: Strengths are the usual one times 2 to the power of whole numbers between these.
_POWERS: Final = (-2.0, 7.0)
#: How unusual twice a strength is.
_DOUBLE: Final = np.log(2.0) / _SPREAD
#: Where strengths are compared, the logarithm of a count is rounded to a step of 1/20.
_ROUNDED: Final = 20.0
#: The share of the logarithm of the lists shown that an index may cost.
_EXPLORATION: Final = 0.3


@dataclass(frozen=True, slots=True)
class Appeal:
    """Probabilities that somebody who sees a page opens it: ``mean`` and ``index`` (n,).

    ``strengths`` (3,) are the views that the means of a section, a site and the store are worth.
    """

    mean: Floats
    index: Floats
    strengths: Floats
    _explored: float
    _of_section: Floats
    _of_site: Floats

    @classmethod
    def learned(
        cls, views: Floats, opens: Floats, section: Ints, site: Ints, *, lists: float
    ) -> Appeal:
        """Return the appeal of n pages that were opened ``opens`` times in ``views`` views.

        Looks (n,) are expected ones, Σ attention of the places where the page was shown. Opens are
        successes, max(views − opens, 0) failures, θ the probability of a success, and

            θ of a page ~ Beta(κ₁μ, κ₁(1 − μ)),  μ of its section ~ Beta(κ₂ν, κ₂(1 − ν)),
            ν of its site ~ Beta(κ₃ω, κ₃(1 − ω)),  ω of the store ~ Beta(½, ½).

        The κ, of 1.25, 2.5, … 640, maximise the marginal likelihood with ln κ ~ N(ln 5, 2²), as far
        as steps from 5 up or down do. Means are expectations under them, summed over a grid of μ,
        ν and ω; the index is the KL-UCB index with the level 0.3 ln(lists)/(views + κ₁).
        ``section`` and ``site`` (n,) are codes from 0; a section belongs to one site.
        """
        tree = _Tree.grown(np.array([opens, np.maximum(views - opens, 0.0)]), section, site)
        strengths, sections = tree.fitted()
        of_section, of_site = tree.means(strengths, sections)
        weight = strengths[0] + np.maximum(views, opens)
        mean = (of_section[section] * strengths[0] + opens) / weight
        explored = _EXPLORATION * float(np.log(max(lists, 1.0)))
        index = kl_upper_bound(mean, explored / weight)
        return cls(
            mean, index, strengths, _explored=explored, _of_section=of_section, _of_site=of_site
        )

    def prior_of(self, section: Ints, site: Ints) -> tuple[Floats, Floats]:
        """Return (n,) means and (n,) indices of pages that were never shown.

        The codes are those of :meth:`learned`, and −1 for sections and sites that it did not have.
        """
        mean = np.where(section >= 0, self._of_section[section], self._of_site[site])
        return mean, kl_upper_bound(mean, np.full(len(mean), self._explored / self.strengths[0]))


@dataclass(frozen=True, slots=True)
class _Tree:
    """Sections (n,) of pages, in order, successes and failures (2, n); sites of sections (m,)."""

    section: Ints
    counts: Floats
    site_of: Ints
    sites: int

    @classmethod
    def grown(cls, counts: Floats, section: Ints, site: Ints) -> _Tree:
        known = np.flatnonzero(counts.sum(axis=0))
        known = known[np.argsort(section[known])]
        site_of = np.zeros(section.max(initial=-1) + 1, np.int64)
        site_of[section] = site
        logarithms = np.log(np.maximum(counts[:, known], _LEAST))
        rounded = np.exp(np.round(_ROUNDED * logarithms) / _ROUNDED)
        return cls(section[known], rounded, site_of, int(site.max(initial=-1)) + 1)

    def fitted(self) -> tuple[Floats, Floats]:
        """Return strengths (3,) from which no step is more likely, and sections (m, g) by them."""
        of_sections = functools.cache(self._of_sections)

        def value(powers: Floats) -> float:
            strengths = _USUAL_STRENGTH * 2.0**powers
            store = self._messages(of_sections(strengths[0]), strengths)[-1]
            return float(np.logaddexp.reduce(store) - ((_DOUBLE * powers) ** 2).sum() / 2)

        best, steps = np.zeros(3), np.concatenate([np.zeros((1, 3)), np.eye(3), -np.eye(3)])
        while step := int(np.argmax([value(each) for each in np.clip(best + steps, *_POWERS)])):
            best = best + steps[step]
        strengths = _USUAL_STRENGTH * 2.0**best
        return strengths, of_sections(strengths[0])

    def _of_sections(self, strength: float) -> Floats:
        """Return (m, g) the logarithmic likelihood of the pages of sections, by their means."""
        from scipy.special import gammaln  # noqa: PLC0415 - slow to import

        each = np.zeros((self.counts.shape[1], len(_MEANS)))
        both = self.counts.sum(axis=0)
        laws = (
            (_MEANS, self.counts[0], 1),
            (1 - _MEANS, self.counts[1], 1),
            (np.ones(1), both, -1),
        )
        for mean, counts, sign in laws:
            different, which = np.unique(counts, return_inverse=True)
            above = gammaln(mean * strength + different[:, None]) - gammaln(mean * strength)
            each += sign * above[which]
        found = np.zeros((len(self.site_of), len(_MEANS)))
        if len(each):
            present, start = np.unique(self.section, return_index=True)
            found[present] = np.add.reduceat(each, start, axis=0)
        return found

    def means(self, strengths: Floats, sections: Floats) -> tuple[Floats, Floats]:
        """Return means of sections (m + 1,) and of sites' new ones (k + 1,), and a new site's."""
        to_sites, sites, to_store, store = self._messages(sections, strengths)
        above, below = _law(_MEANS, strengths[2]), _law(_MEANS, strengths[1])
        site = np.log(_belief(store - to_store) @ above + _LEAST) + sites
        section = _belief(site[self.site_of] - to_sites) @ below
        section = _belief(np.log(section + _LEAST) + sections)
        new = _belief(store) @ above @ below @ _MEANS
        return np.append(section @ _MEANS, new), np.append(_belief(site) @ below @ _MEANS, new)

    def _messages(self, sections: Floats, strengths: Floats) -> tuple[Floats, ...]:
        """Return what sections say to their sites, sites know and say, and the store knows."""
        to_sites = _up(sections, _law(_MEANS, strengths[1]))
        sites = np.zeros((self.sites, len(_MEANS)))
        np.add.at(sites, self.site_of, to_sites)
        to_store = _up(sites, _law(_MEANS, strengths[2]))
        usual = np.log(_law(np.array([0.5]), 1.0)[0])
        return to_sites, sites, to_store, to_store.sum(axis=0) + usual


def _law(mean: Floats, strength: float) -> Floats:
    """Return (n, g) the beta laws with these means (n,); what is beyond the grid is at its ends."""
    a = mean[:, None] * strength
    b = strength - a
    width = np.full((len(mean), len(_MEANS)), _LOGITS[1] - _LOGITS[0])
    width[:, [0, -1]] = width[:, [0, -1]] / 2 + np.hstack([1 / a, 1 / b])
    return _belief(a * np.log(_MEANS) + b * np.log1p(-_MEANS) + np.log(width))


def _up(likelihood: Floats, law: Floats) -> Floats:
    """Return (n, g) the logarithmic likelihood by the mean above of that by the own mean (n, g)."""
    top = likelihood.max(axis=-1, keepdims=True)
    return np.asarray(np.log(np.exp(likelihood - top) @ law.T + _LEAST) + top)


def _belief(logarithm: Floats) -> Floats:
    """Return probabilities (…, g) from their logarithms, each row up to a constant."""
    weight = np.exp(logarithm - logarithm.max(axis=-1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))
