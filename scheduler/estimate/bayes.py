"""Change rates from few observations: each source's posterior under a prior learnt from all.

A source with little evidence is most likely like the others. Its posterior over the logarithm of
the change rate Δ is

    p(ln Δ | evidence) ∝ w(ln Δ) · Π_{differed} (1 − e^{−aΔ}) · Π_{equal} e^{−aΔ} · Δ^u e^{−dΔ},

and its estimate exp(E[ln Δ | evidence]), which minimises the expected squared error of ln Δ.

Where
    a   days between two crawls that were compared;
    u   changes counted in d days (complete observations);
    w   the prior density, fitted to the whole population, and for each group of sources, a site
        for instance, to the group, shrunk to the population's.

Method: the logarithm of the product is stored as running sums, without a history: 40 sums of ln(1 −
e^{−aΔ}) on a grid in ln Δ, and the two exact sums u and d. The forty points are 0.28 apart. A
source with a thousand changes is known better than that, so the 40 are interpolated cubically on a
grid four times as fine (157 points, 0.07 apart). With a half-life h the sums decay by 2^{−t/h} over
the t days from a source's last evidence to its next, to follow a rate that drifts; the prior does
not decay. The prior is fitted again whenever the evidence has grown by half, from the same start
each time, so that it depends on the sums alone and not on earlier fits.

The prior is a mixture of 40 hat functions h_g of ln Δ with weights w_g. With l_ig = Σ L_i h_g, L_i
the likelihood of source i, the population's log-likelihood Σ_i ln Σ_g w_g l_ig is concave in w.
Expectation and maximisation increase it,

    w_g ← [ Σ_i w_g l_ig / Σ_k w_k l_ik + κ v_g ] / (n + κ),

where v, the ``parent``, counts like κ sources of known rate: a Dirichlet prior on w. The number of
steps is small on purpose: the maximum itself is a few spikes (Laird), and stopping early keeps the
distribution smooth.

Cost: about 20 µs to observe and 12 µs to estimate one source, at most 1 µs each in a batch; 184
bytes a source, 8 more with a half-life. Edge cases: without evidence the estimate is the prior's;
rates beyond the grid are taken as its ends. Numerical form: the 40 sums in float32, the rest in
float64; the error in ln Δ from the grid of spacing 0.07 is at most 0.04 for any amount of evidence,
and below 0.003 up to a thousand changes.

On sources crawled at Poisson times once a day (the surrogate population) the root mean square error
of ln Δ after 5, 20, 80 crawls is 0.92, 0.58, 0.32; for eq. 10 it is 1.48, 0.79, 0.42.

Reference: Robbins, "An empirical Bayes approach to statistics", 1956; Dempster, Laird, Rubin,
"Maximum Likelihood from Incomplete Data via the EM Algorithm", JRSS B 1977; Laird, "Nonparametric
Maximum Likelihood Estimation of a Mixing Distribution", JASA 1978. It replaces eq. 10 and 11 in
Algorithm 4 of Kolobov et al., NeurIPS 2019; their section on the number of parameters suggests
sharing change rates between sources.

>>> learner = EmpiricalBayes(1)
>>> source, days, changes, counted = (np.array([value]) for value in (0, 100.0, 1000, True))
>>> learner.observe(Evidence(source, days, days, changes, counted))
>>> round(float(learner.change_rate()[0]), 1)  # a thousand changes in a hundred days
10.0
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Column, Floats
from freshet.scheduler.estimate.evidence import Evidence
from freshet.scheduler.sources import Rows

#: From once in three years to every half hour; a rate beyond is taken as the nearest end.
LOWEST_PER_DAY: Final = 1e-3
HIGHEST_PER_DAY: Final = 50.0
POINTS: Final = 40
_FINER: Final = 4

LOG_RATES: Final[Floats] = np.linspace(np.log(LOWEST_PER_DAY), np.log(HIGHEST_PER_DAY), POINTS)
FINE: Final[Floats] = np.linspace(LOG_RATES[0], LOG_RATES[-1], (POINTS - 1) * _FINER + 1)

_RATES: Final[Floats] = np.exp(LOG_RATES)
#: Contribution of one counted change and of one day to a log-likelihood, (2, 157).
_EXACT: Final[Floats] = np.stack([FINE, -np.exp(FINE)])


def _cubic_interpolation() -> Floats:
    """Return the weights (40, 157) of Lagrange's cubic through the four nearest points."""
    weights = np.zeros((POINTS, len(FINE)))
    for j in range(len(FINE)):
        first = min(max(j // _FINER - 1, 0), POINTS - 4)
        place = j / _FINER - first
        for k in range(4):
            others = [other for other in range(4) if other != k]
            factors = [(place - other) / (k - other) for other in others]
            weights[first + k, j] = np.prod(factors)
    return weights


def _hats() -> Floats:
    """Return each linear spline's probabilities (40, 157) on the fine grid (trapezoidal rule)."""
    distance = np.abs(np.arange(len(FINE)) / _FINER - np.arange(POINTS)[:, None])
    hats = np.maximum(0.0, 1.0 - distance)
    hats[:, [0, -1]] /= 2
    shares: Floats = hats / hats.sum(axis=1, keepdims=True)
    return shares


INTERPOLATION: Final[Floats] = _cubic_interpolation()
HATS: Final[Floats] = _hats()


def log_differed(span: Floats | float) -> Floats:
    """Return ln(1 − e^{−aΔ}), (40,) or (m, 40): two crawls ``span`` days apart differed."""
    log_probability: Floats = np.multiply.outer(-np.asarray(span), _RATES)
    np.expm1(log_probability, out=log_probability)
    np.negative(log_probability, out=log_probability)
    return np.log(log_probability, out=log_probability)


def relative_likelihood(changed: NDArray[np.floating], exact: Floats) -> Floats:
    """Return likelihoods (m, 157), each row relative to its largest value.

    Args:
        changed: (m, 40), sums of :func:`log_differed`.
        exact: (m, 2), counted changes, and days that were counted or unchanged.
    """
    log_likelihood: Floats = changed @ INTERPOLATION
    log_likelihood += exact @ _EXACT
    log_likelihood -= log_likelihood.max(axis=1, keepdims=True)
    return np.exp(log_likelihood, out=log_likelihood)


def log_mean(posterior: Floats) -> Floats:
    """Return E[ln Δ] (m,) under these (m, 157) posteriors, which need not sum to 1."""
    mean: Floats = posterior @ FINE / posterior.sum(axis=1)
    return mean


def quantile(posterior: Floats, probability: float, log_rates: Floats = FINE) -> Floats:
    """Return the quantile Δ (m,) of each posterior at ``probability``.

    A point of the grid represents its cell, with the mass spread evenly in ln Δ; the outermost
    cells end at the grid's ends.
    """
    below = np.cumsum(posterior, axis=1)
    wanted = probability * below[:, -1]
    cell = (below < wanted[:, None]).sum(axis=1)
    row: Rows = np.arange(len(posterior))
    mass = posterior[row, cell]
    part = 1.0 - (below[row, cell] - wanted) / mass
    log_rate = log_rates[cell] + (part - 0.5) * (log_rates[1] - log_rates[0])
    rate: Floats = np.exp(np.clip(log_rate, log_rates[0], log_rates[-1]))
    return rate


# -- the prior --


#: Prior without evidence: log-normal around once a week, much wider than any single site (σ = 2 in
#: ln Δ: nine in ten between once in six months and four times a day).
_DENSITY: Final[Floats] = np.exp(-0.5 * ((LOG_RATES - np.log(1 / 7)) / 2.0) ** 2)
# The outermost hats are half as wide.
_DENSITY[[0, -1]] /= 2
BROAD: Final[Floats] = _DENSITY / _DENSITY.sum()


def fit(likelihood: Floats, parent: Floats, strength: float, steps: int) -> Floats:
    """Return the weights w (40,) after ``steps`` steps from the parent; the parent if n = 0.

    Two sources that are certainly of the first kind, and one of the second:

    >>> kinds = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> fit(kinds, np.array([0.5, 0.5]), strength=1.0, steps=9).tolist()  # 2.5/4, 1.5/4
    [0.625, 0.375]
    """
    weights = parent
    for _ in range(steps):
        shares = weights * ((1.0 / (likelihood @ weights)) @ likelihood)
        weights = (shares + strength * parent) / (len(likelihood) + strength)
    return weights


def members(group: Rows) -> Iterator[tuple[int, Rows]]:
    """Yield the code of each group and the rows of its members in ascending order."""
    order = np.argsort(group, kind="stable")
    codes, starts = np.unique(group[order], return_index=True)
    yield from zip(codes.tolist(), np.split(order, starts[1:]), strict=True)


def thinned(rows: Rows, most: int) -> Rows:
    """Return ``most`` of these rows, evenly spaced, or all if they are fewer."""
    taken = min(len(rows), most)
    return rows[np.arange(taken) * len(rows) // max(1, taken)]


#: Rows with likelihoods computed together: 157 numbers each.
CHUNK = 2048


#: Rows of evidence at the first fit, and their growth from one fit to the next.
_FIRST_FIT = 32
_GROWTH = 1.5
#: Maximum number of sources for fitting a prior; its 40 weights need no more.
_SAMPLE = 1 << 15
#: Weight of the broad prior in the population's, and of the population's in a group's.
_STRENGTH = 10.0
_STEPS = 30
_GROUP_STEPS = 10


class EmpiricalBayes:
    """An estimator by running sums.

    Invariant: the sums of a source are over its evidence, each piece weighted by 2^{−t/h}, with t
    the days from it to the source's newest piece and h the half-life. Consequence: the order of the
    evidence and its division into batches affect only the times of the fits.

    Args:
        n: the number of sources.
        group: (n,), integer codes of groups of similar sources; None: one group.
        half_life_days: the age at which evidence has half the weight; None: no decay.
        growth: the factor by which evidence grows between two fits of the prior, above 1.

    Raises:
        ValueError: naming the argument and the row.
    """

    def __init__(
        self,
        n: int,
        *,
        group: ArrayLike | None = None,
        half_life_days: float | None = None,
        growth: float = _GROWTH,
    ) -> None:
        self._half_life = (
            None if half_life_days is None else arrays.budget("half_life_days", half_life_days)
        )
        self._differed = Column[np.float32](np.float32, width=POINTS)
        self._exact = Column[np.float64](np.float64, width=2)
        self._latest = Column[np.float64](np.float64)
        self._group = Column[np.intp](np.intp)
        self._population = BROAD @ HATS
        self._prior = np.empty((0, len(FINE)))
        self._rows_seen = 0
        self._growth = growth
        self._fit_at = _FIRST_FIT
        self._fits = 0
        self.extend(arrays.codes("group", np.zeros(n, np.intp) if group is None else group, n))

    def extend(self, group: ArrayLike) -> None:
        """Append sources of these groups; a new group starts with the population's prior.

        Raises:
            ValueError: if a code is negative.
        """
        codes = arrays.codes("group", group, len(np.asarray(group)))
        self._group.extend(codes)
        self._differed.append(len(codes))
        self._exact.append(len(codes))
        if self._half_life is not None:
            self._latest.extend(np.full(len(codes), -np.inf))
        new = int(codes.max(initial=0)) + 1 - len(self._prior)
        if new > 0:
            self._prior = np.concatenate([self._prior, np.tile(self._population, (new, 1))])

    def observe(self, evidence: Evidence) -> None:
        """Add the evidence to the sums."""
        self._rows_seen += len(evidence)
        source, span, exact = evidence.source, evidence.span, self._exact.rows
        weight = self._decay_to(source, evidence.at)
        differed = (evidence.changes > 0) & ~evidence.counted
        rest = ~differed
        np.add.at(exact[:, 0], source[rest], (weight * evidence.changes)[rest])
        np.add.at(exact[:, 1], source[rest], (weight * span)[rest])
        rows = np.flatnonzero(differed)
        rows = rows[np.argsort(source[rows], kind="stable")]
        for first in range(0, len(rows), CHUNK):
            part = rows[first : first + CHUNK]
            log_probability = log_differed(span[part])
            log_probability *= weight[part, None]
            starts = np.flatnonzero(np.diff(source[part], prepend=-1))
            added = np.add.reduceat(log_probability, starts, axis=0)
            self._differed.rows[source[part[starts]]] += added

    def _decay_to(self, source: Rows, at: Floats) -> Floats:
        """Decay the sums of sources to their newest evidence; return weights (m,) of these days."""
        if self._half_life is None:
            return np.ones(len(source))
        rows, latest = np.unique(source), self._latest.rows
        before = latest[rows]
        np.maximum.at(latest, source, at)
        decayed = np.exp2((before - latest[rows]) / self._half_life)[:, None]
        self._differed.rows[rows] *= decayed.astype(np.float32)
        self._exact.rows[rows] *= decayed
        weights: Floats = np.exp2((at - latest[source]) / self._half_life)
        return weights

    def inherit(self, old: int, new: int) -> None:
        """Add the evidence of a source to another one."""
        self._differed.rows[new] += self._differed.rows[old]
        self._exact.rows[new] += self._exact.rows[old]
        if self._half_life is not None:
            latest = self._latest.rows
            latest[new] = max(latest[new], latest[old])

    def likelihood(self, rows: Rows) -> Floats:
        """Return likelihoods (m, 157), each row relative to its largest value."""
        return relative_likelihood(self._differed.rows[rows], self._exact.rows[rows])

    def known(self) -> Rows:
        """Return the rows of the sources with evidence."""
        # After an interval with a difference, the sum at the lowest rate is not 0.
        return np.flatnonzero(self._exact.rows.any(axis=1) | (self._differed.rows[:, 0] != 0))

    def change_rate(self, rows: Rows | None = None) -> Floats:
        """Return exp(E[ln Δ]) (m,) of these rows, or of all; fit the prior if due."""
        parts = [np.exp(log_mean(posterior)) for posterior in self._posteriors(rows)]
        return np.concatenate(parts)

    def credible_interval(
        self, rows: Rows | None = None, mass: float = 0.9
    ) -> tuple[Floats, Floats]:
        """Return lower and upper bounds (m,) of Δ's central ``mass``.

        Raises:
            ValueError: if ``mass`` is not from 0 to 1.
        """
        tail = (1.0 - float(arrays.share("mass", [mass])[0])) / 2
        ends = [
            (quantile(posterior, tail), quantile(posterior, 1.0 - tail))
            for posterior in self._posteriors(rows)
        ]
        lower, upper = np.concatenate(ends, axis=1)
        return lower, upper

    @property
    def revision(self) -> int:
        """Return the number of fits of the prior; a fit moves all estimates."""
        return self._fits

    @property
    def fit_is_due(self) -> bool:
        """Return whether the next estimate fits the prior."""
        return self._rows_seen >= self._fit_at

    def _posteriors(self, rows: Rows | None) -> Iterator[Floats]:
        """Yield chunks (m, 157), not normalised; at least one, possibly empty."""
        if self.fit_is_due:
            self._fit()
        wanted = np.arange(len(self._group)) if rows is None else rows
        for first in range(0, max(1, len(wanted)), CHUNK):
            part = wanted[first : first + CHUNK]
            posterior = self.likelihood(part)
            posterior *= self._prior[self._group.rows[part]]
            yield posterior

    def _fit(self) -> None:
        """Fit the prior of the population, then the priors of the groups with evidence."""
        self._fit_at = int(self._growth * self._rows_seen) + 1
        self._fits += 1
        known = self.known()
        if not len(known):
            return
        population = self._fitted(known, BROAD, _STEPS)
        self._population = population @ HATS
        weights = np.tile(population, (len(self._prior), 1))
        if len(self._prior) > 1:
            for code, places in members(self._group.rows[known]):
                weights[code] = self._fitted(known[places], population, _GROUP_STEPS)
        self._prior = weights @ HATS

    def _fitted(self, rows: Rows, parent: Floats, steps: int) -> Floats:
        """Return the weights (40,) of the common prior of these sources."""
        sample = thinned(rows, _SAMPLE)
        parts = [sample[first : first + CHUNK] for first in range(0, len(sample), CHUNK)]
        likelihood = np.concatenate([self.likelihood(part) @ HATS.T for part in parts])
        return fit(likelihood, parent, _STRENGTH, steps)
