"""Search quality along weekly snapshots, exactly: the experiment of Pandey's thesis.

n pages are known from W weekly snapshots. All copies are of the first one; in each later week some
pages are looked at, by a policy (:mod:`scripts.reproductions.search_policies`), and
search quality (4.5) is taken after that. Lists are sorted whole: nothing here is approximated but
where :func:`estimated_changes` says so.

Reference: Pandey (2008), sections 4.5 to 4.7. Differs from the thesis in: quality is taken after
the looks of a week.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from freshet.crawler.extensions.readers.search_quality import views
from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.estimate.evidence import VisitResults
from freshet.scheduler.evaluate.serving import Batch, Valuer, serve
from freshet.scheduler.sources import Rows
from scripts.reproductions.search_histograms import ScoreHistogram

#: Days of a week, in which the serving loop counts.
WEEK: Final = 7.0

# -- scores ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WeeklyScores:
    """The scores of n pages in W weeks, for pairs of a query and a page that match in any week.

    Attributes:
        frequency: f (m,).
        pages: n.
        query: (k,), ascending.
        page: (k,), ascending within a query.
        score: (W, k), of the live page; 0: no match.
        best: (W,), the usefulness of the answers if no copy is stale (4.4).
    """

    frequency: Floats
    pages: int
    query: Ints
    page: Ints
    score: Floats
    best: Floats = field(init=False)

    def __post_init__(self) -> None:
        """Compute what all runs divide by."""
        object.__setattr__(self, "best", np.array([self._useful(s, s) for s in self.score]))

    @classmethod
    def of(cls, frequency: Floats, weeks: int, scores: Callable[[int], Floats]) -> WeeklyScores:
        """Gather the scores (n, m) of each week; each week is asked for twice."""
        matches = scores(0) > 0
        for week in range(1, weeks):
            matches |= scores(week) > 0
        query, page = np.nonzero(matches.T)
        score = np.stack([scores(week)[page, query] for week in range(weeks)])
        return cls(frequency, len(matches), query, page, score)

    @property
    def weeks(self) -> int:
        """Return W."""
        return len(self.score)

    def held(self, copies: Ints) -> Floats:
        """Return the scores (k,) of copies that are of these weeks (n,)."""
        return np.asarray(self.score[copies[self.page], np.arange(len(self.page))], np.float64)

    def quality(self, copies: Ints, week: int) -> float:
        """Return Q (4.5) in a week; where nothing matches it is 1."""
        useful, best = self._useful(self.held(copies), self.score[week]), float(self.best[week])
        return useful / best if best > 0 else 1.0

    def views(self, week: int) -> Floats:
        """Return Σ_q f_q I(R(p)) (n,) of the live pages."""
        order, rank, _ = self._listed(self.score[week])
        seen = self.frequency[self.query[order]] * views(rank)
        return np.asarray(np.bincount(self.page[order], seen, self.pages), np.float64)

    def usefulness(self, copies: Ints) -> Floats:
        """Return u (n,), Σ_q f_q I(R(p)) S(p, q) of the copies."""
        held = self.held(copies)
        order, rank, _ = self._listed(held)
        seen = self.frequency[self.query[order]] * views(rank) * held[order]
        return np.asarray(np.bincount(self.page[order], seen, self.pages), np.float64)

    def changes(self, old: Floats, new: Floats, paid: Floats) -> Floats:
        """Return, for each page, ΔQ_A (n,) if it alone goes from old to new scores (k,).

        Its own views are paid by its new scores, those of others by ``paid`` (k,): the true ΔQ_A
        by live scores, what an engine can measure by the old ones.
        """
        order, rank, first = self._listed(old)
        count = np.bincount(self.query[order], minlength=len(self.frequency))
        moved = np.flatnonzero(old != new)
        query, s1, s2 = self.query[moved], old[moved], new[moved]
        place = np.zeros(len(old), np.int64)
        place[order] = rank
        r1 = np.where(s1 > 0, place[moved], count[query] + 1)
        r2 = np.where(s2 > 0, self._ranks(order, old, moved, new) - (s1 > s2), count[query])
        # Sums of (I(r − 1) − I(r)) S(r) and (I(r) − I(r + 1)) S(r) up to each place of all lists.
        here = views(rank)
        ahead = np.where(rank > 1, views(np.maximum(rank - 1, 1)) - here, 0.0)
        climbed = np.append(0.0, np.cumsum(ahead * paid[order]))
        sunk = np.append(0.0, np.cumsum((here - views(rank + 1)) * paid[order]))
        at = first[query]
        last = np.minimum(r2, count[query])
        fallen = climbed[at + last] - climbed[at + np.minimum(r1, last)]
        risen = sunk[at + np.maximum(r1, r2) - 1] - sunk[at + r2 - 1]
        own = np.where(s2 > 0, views(np.maximum(r2, 1)), 0.0) - np.where(s1 > 0, views(r1), 0.0)
        gain = own * s2 + np.where(r2 > r1, fallen, np.where(r2 < r1, -risen, 0.0))
        return np.asarray(
            np.bincount(self.page[moved], self.frequency[query] * gain, self.pages), np.float64
        )

    def _useful(self, listed: Floats, paid: Floats) -> float:
        order, rank, _ = self._listed(listed)
        return float(np.sum(self.frequency[self.query[order]] * views(rank) * paid[order]))

    def _listed(self, scores: Floats) -> tuple[Ints, Ints, Ints]:
        """Return pairs in the order of the lists, the rank of each, and each list's beginning."""
        some = np.flatnonzero(scores > 0)
        order = some[np.lexsort((-scores[some], self.query[some]))]
        count = np.bincount(self.query[order], minlength=len(self.frequency))
        first = np.cumsum(count) - count
        return order, np.arange(len(order)) - first[self.query[order]] + 1, first

    def _ranks(self, order: Ints, old: Floats, moved: Ints, new: Floats) -> Ints:
        """Return 1 + the listed pairs (of ``old``) before each moved one with its new score."""
        pairs = np.concatenate([order, moved])
        scores = np.concatenate([old[order], new[moved]])
        merged = np.lexsort((self.page[pairs], -scores, self.query[pairs]))
        is_listed = merged < len(order)
        before = np.cumsum(is_listed)[~is_listed]
        ranks = np.empty(len(moved), np.int64)
        ranks[merged[~is_listed] - len(order)] = before
        count = np.bincount(self.query[order], minlength=len(self.frequency))
        return ranks - (np.cumsum(count) - count)[self.query[moved]] + 1


def weekly_changes(scores: WeeklyScores, paid: str = "old") -> Floats:
    """Return (W − 1, n): ΔQ_A of a look in each week at a copy of the week before.

    The others' views are paid by their ``old`` scores, or by their ``new`` ones, the true.
    """
    pairs = ((old, new, old if paid == "old" else new) for old, new in pairwise(scores.score))
    return np.stack([scores.changes(*each) for each in pairs])


def estimated_changes(scores: WeeklyScores, buckets: int = 3) -> Floats:
    """Return the same by histograms of the week before, at least 0; queries are single terms."""
    found = np.zeros((scores.weeks - 1, scores.pages))
    bounds = np.searchsorted(scores.query, np.arange(len(scores.frequency) + 1))
    for week, (before, after) in enumerate(pairwise(scores.score)):
        differ = before != after
        touched = np.unique(scores.query[differ])
        for query in touched.tolist():
            part = slice(bounds[query], bounds[query + 1])
            old, some = before[part], differ[part]
            kept = -np.sort(-old[old > 0])
            gains = ScoreHistogram.of(kept, buckets).change(old[some], after[part][some])
            found[week, scores.page[part][some]] += scores.frequency[query] * gains
    return np.maximum(found, 0.0)


def tf_idf(
    counts: Callable[[int], tuple[NDArray[np.number], Floats]],
    weeks: int,
    queries: Sequence[Sequence[int]],
    frequency: Floats,
) -> WeeklyScores:
    """Return Lucene's TF-IDF of 2005, as the thesis has it; idf is that of the first week.

        S(d, q) = Σ_{t in q} √tf idf(t)² / (√|d| √(Σ idf²)),   idf = 1 + ln(N/(df + 1))

    where all terms occur. ``counts`` gives for a week tf (n, T) and |d| (n,), ``queries`` are sets
    of columns of tf.
    """
    first, _ = counts(0)
    idf = 1 + np.log(len(first) / ((first > 0).sum(axis=0) + 1))
    most = max(map(len, queries))
    column = np.array([[*q, *[first.shape[1]] * (most - len(q))] for q in queries])
    norm = 1 / np.sqrt((np.append(idf, 0.0)[column] ** 2).sum(axis=1))

    def scores(week: int) -> Floats:
        tf, length = counts(week)
        parts = np.sqrt(tf / np.maximum(length, 1)[:, None]) * idf**2
        parts = np.pad(parts, ((0, 0), (0, 1)))
        occurs = np.pad(tf > 0, ((0, 0), (0, 1)), constant_values=True)
        found = sum(parts[:, each] for each in column.T) * norm
        return np.where(np.all([occurs[:, each] for each in column.T], axis=0), found, 0.0)

    return WeeklyScores.of(frequency, weeks, scores)


def by_inlinks(scores: WeeklyScores, inlinks: Ints) -> WeeklyScores:
    """Return 1 + the number of inlinks (n,) as scores, where these scores match."""
    score = np.where(scores.score > 0, 1.0 + inlinks[scores.page], 0.0)
    return WeeklyScores(scores.frequency, scores.pages, scores.query, scores.page, score)


# -- a run -------------------------------------------------------------------


class HeldCopies:
    """The copies of a run: the environment of its serving loop.

    Attributes:
        scores: of all weeks.
        week: (n,), of which week each copy is.
        quality: Q of each week from the second on, after its looks.
    """

    def __init__(self, scores: WeeklyScores, changed: Bools) -> None:
        """Begin in the first week, all in sync; ``changed`` (W − 1, n) says which texts differ."""
        self.scores = scores
        self.week = np.zeros(scores.pages, np.int64)
        self.quality: list[float] = []
        self._before = self.week.copy()
        self._version = np.concatenate([np.zeros((1, scores.pages), np.int64), changed.cumsum(0)])

    def age(self, now: float) -> Floats:
        """Return τ (n,), days since the last look."""
        return np.asarray(now - WEEK * self.week, np.float64)

    def measured(self, rows: Rows) -> Floats:
        """Return ΔQ_A (m,) of the last looks, each by itself, as an engine measures it."""
        old, new = self.scores.held(self._before), self.scores.held(self.week)
        return self.scores.changes(old, new, old)[rows]

    def batches(self, budget: float) -> Iterator[Batch]:
        """Yield the looks of each week, parts of a look carried over, and take Q after them."""
        for week in range(1, self.scores.weeks):
            upto, before = (int(budget * WEEK * each + 1e-9) for each in (week, week - 1))
            yield WEEK * week, np.full(upto - before, WEEK * week)
            self.quality.append(self.scores.quality(self.week, week))

    def advance(self, now: float) -> None:
        """Nothing tells of changes."""

    def weighed(self, worth: Floats, now: float) -> Floats:
        """Return the values as they are."""
        return worth

    def visit(self, rows: Rows, at: Floats) -> VisitResults:
        """Replace the copies of these pages by those of this week."""
        week, all_of_them = round(at[0] / WEEK), np.ones(len(rows), np.bool_)
        changed = self._version[week, rows] != self._version[self.week[rows], rows]
        self._before = self.week.copy()
        self.week[rows] = week
        return VisitResults(
            rows, at, compared=all_of_them, changed=changed, gone=~all_of_them, moved=changed
        )


#: Makes a policy for the copies of a run.
Policy: TypeAlias = Callable[[HeldCopies], Valuer]


def run(scores: WeeklyScores, changed: Bools, policy: Policy, looks: float) -> Floats:
    """Return Q (W − 1,) of the weeks from the second on, with so many looks a week."""
    copies = HeldCopies(scores, changed)
    serve(policy(copies), copies, looks / WEEK)
    return np.array(copies.quality)
