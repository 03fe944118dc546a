"""Quality changes of single-term queries by histograms of scores, as in Pandey's thesis.

For each term the average score of a few ranges of rank, exponentially growing, is all that is kept
of a list of n scores. Its two readings, the score Ŝ(r) at a rank and the rank R̂(s) of a score,
give the change of quality when a page's score moves from s₁ to s₂, ranks r₁ and r₂:

    Δ = (I(r₂) − I(r₁)) s₂ + Σ_{r₁ < r ≤ r₂} (I(r − 1) − I(r)) Ŝ(r)      and likewise if it rises

Edges are e_j = round((n + 1)^(j/b)), equal ones dropped; a_j is the mean of ranks e_{j−1} to
e_j − 1. Ŝ is linear between knots at rank e_j − ½ of height (a_j + a_{j+1})/2, at the ends
2a₁ less its neighbour, and 2a_b less its neighbour but at least 0. With C(r) = Σ_{k ≤ r} I(k) the
sum over any number of ranks in a bucket is exact:

    Σ_{r=x}^{y} (I(r−1) − I(r)) = I(x−1) − I(y)
    Σ_{r=x}^{y} r (I(r−1) − I(r)) = x I(x−1) − y I(y) + C(y−1) − C(x−1)
    Σ_{r=x}^{y} (I(r+1) − I(r)) = I(y+1) − I(x)
    Σ_{r=x}^{y} r (I(r+1) − I(r)) = y I(y+1) − x I(x) − C(y) + C(x)

Reference: Pandey (2008), section 4.6.1. Differs from the thesis in: the linear form holds for r₂,
too, which its range r₁ < r < r₂ leaves out; what rises is written out; a score at a bucket's end is
between the means of both; and no integral is used: that of the thesis for Σ_{k=i}^{j} k^(−3/2),
2 (1/√i − 1/√(j − 1)), is negative for one rank and infinite for the first. The result can be below
0, where the exact one by the copies' scores is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from freshet.crawler.extensions.readers.search_quality import views
from freshet.scheduler.arrays import Floats, Ints


@lru_cache(maxsize=32)
def _views_and_sums(size: int) -> tuple[Floats, Floats]:
    """Return I(r) and C(r) of ranks 0 to ``size``; those of rank 0 are 0."""
    seen = np.append(0.0, views(np.arange(1, size + 1)))
    return seen, np.cumsum(seen)


@dataclass(frozen=True, slots=True)
class ScoreHistogram:
    """The scores of a list by rank, in at most b buckets: 20 bytes for three of them.

    Attributes:
        edges: (b + 1,), first rank of each bucket, and the first behind the list.
        knots: (b + 1,), Ŝ half a rank before each edge, not ascending.
    """

    edges: Ints
    knots: Floats

    @classmethod
    def of(cls, scores: Floats, buckets: int = 3) -> ScoreHistogram:
        """Summarise scores above 0, (n,), in descending order.

        >>> found = ScoreHistogram.of(np.array([8.0, 4.0, 2.0, 2.0, 1.0, 1.0, 1.0]))
        >>> found.edges.tolist(), found.knots.tolist()
        ([1, 2, 4, 8], [10.5, 5.5, 2.125, 0.375])
        """
        n = len(scores)
        powers = np.arange(buckets + 1) / buckets
        edges = np.unique(np.rint((n + 1) ** powers).astype(np.int64))
        if len(edges) < 2:
            return cls(edges, np.zeros(1))
        mean = np.add.reduceat(scores, edges[:-1] - 1) / np.diff(edges)
        if len(mean) == 1:
            return cls(edges, np.array([2 * mean[0], 0.0]))
        inner = (mean[:-1] + mean[1:]) / 2
        ends = 2 * mean[0] - inner[0], max(0.0, 2 * mean[-1] - inner[-1])
        return cls(edges, np.concatenate([[ends[0]], inner, [ends[1]]]))

    @property
    def size(self) -> int:
        """Return n."""
        return int(self.edges[-1]) - 1

    def score(self, rank: Ints | Floats) -> Floats:
        """Return Ŝ(r) (m,)."""
        return np.interp(rank, self.edges - 0.5, self.knots)

    def rank(self, score: Floats) -> Ints:
        """Return R̂(s) (m,), from 1 to n; 1 for an empty list."""
        place = np.interp(score, self.knots[::-1], self.edges[::-1] - 0.5)
        return np.asarray(np.clip(np.rint(place), 1, max(self.size, 1)), np.int64)

    def change(self, old: Floats, new: Floats) -> Floats:
        """Return Δ (m,) of moves from scores s₁ to s₂ (m,); 0: no match."""
        n = self.size
        seen, total = _views_and_sums(1 << (n + 3).bit_length())
        r1 = np.where(old > 0, self.rank(old), n + 1)
        r2 = np.where(new > 0, self.rank(new), n)
        own = np.where(new > 0, seen[r2], 0.0) - np.where(old > 0, seen[r1], 0.0)
        passed = np.zeros(len(own))
        is_fall = r2 > r1
        first, last = np.where(is_fall, r1 + 1, r2), np.where(is_fall, r2, r1 - 1)
        for bucket, (left, right) in enumerate(pairwise(self.edges.tolist())):
            slope = (self.knots[bucket + 1] - self.knots[bucket]) / (right - left)
            level = self.knots[bucket] - slope * (left - 0.5)
            y = np.minimum(last, right - 1)
            x = np.minimum(np.maximum(first, left), y + 1)  # y + 1: none of the ranks is here
            fallen = level * (seen[x - 1] - seen[y]) + slope * (
                x * seen[x - 1] - y * seen[y] + total[y - 1] - total[x - 1]
            )
            risen = level * (seen[y + 1] - seen[x]) + slope * (
                y * seen[y + 1] - x * seen[x] - total[y] + total[x]
            )
            passed += np.where(is_fall, fallen, risen)
        return np.asarray(own * new + passed, np.float64)
