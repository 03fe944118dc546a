"""Search quality: how useful the answers of a store are to searchers, and what a visit changes.

A *workload* is a set of queries q with frequencies f_q. The copies that hold every term of q are
listed by their scores S, ties by page; a searcher views the page of rank r with probability

    I(r) = c r^(−3/2),   c = 1/ζ(3/2),   I(∞) = 0                                            (4.2)

so that a query has one view. The quality of the copies Wᴸ of a web W is

    Q(Wᴸ) = Σ_q f_q Σ_p I(R(p, q, Wᴸ)) S(W[p], q) / Σ_q f_q Σ_p I(R(p, q, W)) S(W[p], q)     (4.5)

listed by the copies, paid by the live pages; it is 1 where nothing is stale. A visit that finds
p's score for q moved from s₁ to s₂ moves every page between p's ranks by one place. The *quality
change* ΔQ_A is what that adds to the numerator of (4.5). :class:`ScoreTable` measures it with the
scores of the copies, for nobody knows the others, and then it is never negative: the new order is
that of the scores which it pays (rearrangement inequality).

:class:`Marks` learns from quality changes what a missed change of each page costs. That is the
importance with which the index of the harmonic cost minimises the loss of quality.

Scores are BM25 with what depends on other pages frozen (:class:`Scoring`): otherwise every visit
would move all scores.

Reference: Pandey, "Information Mediation in the Presence of Constraints and Uncertainties" (thesis,
CMU-CS-08-125, 2008), chapter 4. Differs from the thesis in: the top scores of whole queries are
kept, not histograms of terms; a change of score is measured wherever it comes from, also from the
length alone; and visits are not ranked by P = δQ_A · age, which starves pages
(``scripts/reproduce search_quality``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from numpy.random import Generator

from freshet.compiled.numeric import Structure, score_rows_move, scorer_begin, scorer_score
from freshet.scheduler.arrays import Bools, Column, Floats, Ints
from freshet.scheduler.costs import ein
from freshet.scheduler.sources import Rows

#: Scores kept of a query: beyond them there are 7 % of the views.
TOP: Final = 128
#: 1/ζ(3/2).
_ONE_VIEW: Final = 0.3827934
#: κ, imaginary changes at which a page's mark goes halfway from the prior to what was measured.
KAPPA: Final = 5.0


def views(rank: Ints | Floats) -> Floats:
    """Return I(r) (n,), the probability that a searcher views this rank, from 1; inf: none (4.2).

    >>> views(np.array([1, 4, np.inf])).round(4).tolist()
    [0.3828, 0.0478, 0.0]
    """
    return np.asarray(_ONE_VIEW / (np.asarray(rank, np.float64) ** 1.5), np.float64)


# -- queries and scores ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Workload:
    """Queries with their frequencies.

    Attributes:
        queries: m sets of terms, each in alphabetical order.
        frequency: (m,), f; their sum is 1.
    """

    queries: tuple[tuple[str, ...], ...]
    frequency: Floats

    @classmethod
    def of(cls, queries: Iterable[tuple[Iterable[str], float]]) -> Workload:
        """Make one of terms with weights; the same set again adds up, an empty one is left out.

        >>> workload = Workload.of([(["tea", "green"], 1), (["green", "tea"], 2), (["tea"], 1)])
        >>> workload.queries, workload.frequency.tolist()
        ((('green', 'tea'), ('tea',)), [0.75, 0.25])
        """
        weights: Counter[tuple[str, ...]] = Counter()
        for terms, weight in queries:
            if found := tuple(sorted(set(terms))):
                weights[found] += weight  # type: ignore[assignment] # a weight may be a fraction
        frequency = np.fromiter(weights.values(), np.float64, len(weights))
        return cls(tuple(weights), frequency / max(frequency.sum(), np.finfo(np.float64).tiny))

    def as_texts(self) -> dict[str, float]:
        """Return each query, its terms divided by spaces, with its frequency."""
        texts = [" ".join(terms) for terms in self.queries]
        return dict(zip(texts, self.frequency.tolist(), strict=True))

    @property
    def terms(self) -> frozenset[str]:
        """Return every term of a query."""
        return frozenset(chain.from_iterable(self.queries))


class Scoring:
    """BM25 of the queries of a workload, each with the statistics of the time of its freezing.

        S(d, q) = Σ_{t in q} idf(t) · f (k₁ + 1) / (f + k₁ (1 − b + b |d| / mean length))

    where every term of q occurs, else 0; k₁ = 1.2, b = 0.75. Reference: Robertson and Zaragoza,
    "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), eq. 3.15.
    """

    def __init__(self, workload: Workload, weights: Sequence[float]) -> None:
        """Begin with nothing frozen; a term counts by the weight of its line in a page."""
        number = {term: n for n, term in enumerate(sorted(workload.terms))}
        self.weights = np.array(weights, np.float64)
        self.term = np.array([number[t] for q in workload.queries for t in q], np.int64)
        self.stops = np.cumsum([len(terms) for terms in workload.queries], dtype=np.int64)
        self.idf, self.per_word = np.zeros(len(self.term)), np.zeros(len(self.stops))
        octets = [term.encode() for term in number]
        self.words = np.frombuffer(bytearray(b"".join(octets)), np.uint8)
        self.ends = np.cumsum([len(each) for each in octets], dtype=np.int64)
        self.table = np.empty(2 << (2 * len(number)).bit_length(), np.int64)
        self.counts = np.zeros(len(number))
        self._held = Structure(
            "scorer", self, octets=len(self.words), terms=len(number), slots=len(self.table),
            queries=len(self.stops), entries=len(self.term), lines=len(weights),
        )  # fmt: skip
        scorer_begin(self._held)

    def freeze(self, query: int, idf: Sequence[float], mean_length: float) -> None:
        """Score a query from now on with these idfs of its terms, and mean length of a page."""
        stop = self.stops[query]
        self.idf[stop - len(idf) : stop] = idf
        self.per_word[query] = 0.9 / max(mean_length, 1e-9)

    def scores(self, lines: str | None) -> Floats:
        """Return the scores (m,) of a page of these lines of words; None: there is none.

        Of queries that it matches and that are not frozen they are −1.
        """
        if lines is None:
            return np.zeros(len(self.stops))
        return scorer_score(self._held, np.frombuffer(lines.encode(), np.uint8))


#: Of made queries: probabilities of one to four terms, and the power of the rank in f.
_LENGTHS: Final = (0.35, 0.35, 0.20, 0.10)
_POWER: Final = -0.85
_CHARACTERS: Final = 200


def made_queries(
    documents: Iterable[Iterable[str]],
    terms_of: Callable[[str], Sequence[str]],
    count: int,
    rng: Generator,
    *,
    draws: int = 200_000,
) -> Workload:
    """Return up to ``count`` queries as people might ask them, where no log of queries is.

    A string that n pages carry is drawn with weight √n, so that a menu does not drown all else, and
    of it a run of one to four terms. The k-th most often drawn set of terms has f ∝ k^(−0.85).

    Args:
        documents: for each page its title, headings of levels 1 to 3, and anchor texts.
        terms_of: the terms of a string, in order, as the index has them; without stop words and
            without terms that are not in the index.
        count: the most often drawn sets of terms that are kept.
        rng: the workload is a function of it and of the strings.
        draws: how many runs of terms are drawn.
    """
    pages = Counter(
        text for strings in documents for text in {each[:_CHARACTERS] for each in strings}
    )
    carried = [(terms, n) for text, n in sorted(pages.items()) if (terms := tuple(terms_of(text)))]
    if not carried:
        return Workload((), np.zeros(0))
    weight = np.sqrt([n for _, n in carried])
    size = np.array([len(terms) for terms, _ in carried])
    string = rng.choice(len(carried), draws, p=weight / weight.sum())
    length = np.minimum(rng.choice(4, draws, p=_LENGTHS) + 1, size[string])
    start = rng.integers(0, size[string] - length + 1)
    drawn: Counter[tuple[str, ...]] = Counter()
    runs = Counter(zip(string.tolist(), start.tolist(), length.tolist(), strict=True))
    for (text, first, terms), times in runs.items():
        drawn[tuple(sorted(set(carried[text][0][first : first + terms])))] += times
    kept = sorted(drawn, key=lambda terms: (-drawn[terms], terms))[:count]
    return Workload.of((terms, k**_POWER) for k, terms in enumerate(kept, 1))


# -- quality changes ---------------------------------------------------------


class ScoreTable:
    """The top scores of each query by the copies, kept through visits.

    *Invariant.* A row is the beginning of its query's list, in order. It may be *cut*: more pages
    match. A page whose place beyond a cut row is not known counts as the next after it, which has
    less than a thousandth of the views behind a full row; and as a cut row that loses pages cannot
    know which come up behind it, it should be refilled in time (:meth:`have_shrunk`).

    The rows are those of ``struct score_rows``: 2 KB a query.

    >>> table = ScoreTable(np.ones(1), top=2)
    >>> table.refill(0, np.array([7, 8]), np.array([2.0, 1.0]))
    >>> round(table.change(8, np.array([1.0]), np.array([3.0])), 4)  # (I(1) − I(2)) (3 − 2)
    0.2475
    >>> table.usefulness()[1].round(4).tolist()  # 2 I(2), 3 I(1)
    [0.2707, 1.1484]
    """

    def __init__(self, frequency: Floats, *, top: int = TOP) -> None:
        """Begin with no match of any query; f is (m,)."""
        queries = len(frequency)
        self.frequency, self.views = frequency.copy(), views(np.arange(1, top + 2))
        self.pages = np.full((queries, top), -1, np.int64)
        self.scores = np.zeros((queries, top))
        self.length = np.zeros(queries, np.int64)
        self.cut = np.zeros(queries, np.bool_)
        self._top = top
        self._held = Structure("score_rows", self, queries=queries, top=top)

    def have_shrunk(self) -> Bools:
        """Return (m,), whether to refill a row: it is cut, and has lost more than a quarter."""
        return np.asarray(self.cut & (4 * self.length < 3 * self._top))

    def refill(self, query: int, pages: Ints, scores: Floats) -> None:
        """Replace a query's row by these matches: all, or more of the best than a row holds."""
        order = np.lexsort((pages, -scores))[: self._top]
        self.pages[query, : len(order)] = pages[order]
        self.scores[query, : len(order)] = scores[order]
        self.length[query], self.cut[query] = len(order), len(pages) > self._top

    def change(self, page: int, before: Floats, after: Floats) -> float:
        """Return ΔQ_A of a visit, and move the page in the rows.

        For a page that falls from rank r₁ to r₂, and likewise where it rises, enters or leaves, the
        views of a row gain

            (I(r₂) − I(r₁)) s₂ + Σ_{r₁ < r ≤ r₂} (I(r − 1) − I(r)) S(r)

        with s₁ and s₂ the scores ``before`` and ``after``, (m,) each.
        """
        return max(score_rows_move(self._held, page, before, after), 0.0)

    def quality(self, query: Ints, page: Ints, before: Floats, live: Floats) -> float:
        """Return Q (4.5) of copies of which some score otherwise than the live pages.

        k times, a ``page`` scores ``before`` by its copy and ``live`` by itself for a ``query``; of
        all others the copies in the rows are right. Losses of single pages do not add up, so whole
        lists are ordered by the copies and paid by the live pages.
        """
        gained = best = 0.0
        for each in range(len(self.frequency)):
            held, some = slice(0, self.length[each]), np.flatnonzero(query == each)
            others = ~np.isin(self.pages[each, held], page[some])
            pages = np.append(self.pages[each, held][others], page[some])
            rest = self.scores[each, held][others]
            copies, paid = np.append(rest, before[some]), np.append(rest, live[some])
            gained += self.frequency[each] * _paid(pages, copies, paid)
            best += self.frequency[each] * _paid(pages, paid, paid)
        return gained / best if best > 0 else 1.0

    def usefulness(self) -> tuple[Ints, Floats]:
        """Return the pages in any row, ascending, and u_p = Σ_q f_q I(R(p)) S(p, q) of each."""
        held = np.arange(self._top) < self.length[:, None]
        seen = self.frequency[:, None] * self.views[:-1] * self.scores
        pages, which = np.unique(self.pages[held], return_inverse=True)
        return pages, np.bincount(which, seen[held], len(pages)).astype(np.float64, copy=False)


def _paid(page: Ints, listed: Floats, paid: Floats) -> float:
    """Return Σ I(R) S of pages (n,) that are listed by some scores and paid by others."""
    order = np.lexsort((page, -listed))[: np.count_nonzero(listed > 0)]
    return float(views(np.arange(1, len(order) + 1)) @ paid[order])


# -- what a missed change costs ----------------------------------------------


class Marks:
    """The loss of search quality that one missed change of each page is expected to cost.

    A page's k-th missed change costs m_p/k. If its changes are Poisson with hazard x since the last
    look, a look that finds a change measures y with the mean m_p e(x), e(x) = Ein(x)/(1 − e^{−x}).
    Measurements are heavy-tailed, hence shrunk towards what the page's use by searchers suggests:

        m̂_p = (κ m⁰_p + Σ y) / (κ + Σ_{changed looks} e(x)),   m⁰_p = φ √(ũ_p · mean u)
        ũ_p = u_p + mean u/10
        φ = Σ_p (Σ y)_p/age_p / Σ_p base_p Δ_p   over pages with a look, base_p = m⁰_p/φ

    Rows come, and never go. In order of learning it is a sum, so that the division of visits into
    calls does not matter. Not in the thesis. A page's use alone does not tell what its staleness
    costs: on recorded sites both are hardly correlated.
    """

    def __init__(self) -> None:
        """Begin without rows."""
        self._measured = Column[np.float64](np.float64)
        self._exposure = Column[np.float64](np.float64)

    def __len__(self) -> int:
        return len(self._measured)

    def add(self, count: int) -> None:
        """Append rows of pages of which nothing was measured."""
        self._measured.append(count)
        self._exposure.append(count)

    def learn(self, rows: Rows, hazard: Floats, change: Floats, changed: Bools) -> None:
        """Take in looks (k,): the hazard before, ΔQ_A, and whether the page had changed."""
        x = np.maximum(hazard[changed], 1e-9)
        np.add.at(self._measured.rows, rows[changed], change[changed])
        np.add.at(self._exposure.rows, rows[changed], ein(x) / -np.expm1(-x))

    def values(self, *, usefulness: Floats, age: Floats, rate: Floats) -> Floats:
        """Return m̂ (n,), in usefulness a query and change.

        Args:
            usefulness: u (n,).
            age: (n,), days from a page's first look to its last; 0: there was only one.
            rate: Δ (n,), changes a day as estimated.
        """
        mean = float(usefulness.mean()) if len(usefulness) else 0.0
        base = np.sqrt((usefulness + 0.1 * mean) * mean)
        base = base / base.mean() if mean > 0 else np.ones(len(usefulness))
        measured, looked = self._measured.rows, age > 0
        expected = float(base[looked] @ rate[looked])
        level = float((measured[looked] / age[looked]).sum()) / expected if expected > 0 else 0.0
        return np.asarray(
            (KAPPA * level * base + measured) / (KAPPA + self._exposure.rows), np.float64
        )


def as_importance(marks: Floats) -> Floats:
    """Return marks scaled to the mean 1; all are 1 where nothing was measured.

    >>> as_importance(np.array([1.0, 3.0])).tolist(), as_importance(np.zeros(2)).tolist()
    ([0.5, 1.5], [1.0, 1.0])
    """
    mean = float(marks.mean()) if len(marks) else 0.0
    return np.asarray(marks / mean if mean > 0 else np.ones(len(marks)), np.float64)
