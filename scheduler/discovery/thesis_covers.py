"""Algorithms that choose hub pages by past recrawls (Pandey 2008, sections 3.6 and 7.1).

OD takes the pages with the largest outdegree to new pages (3.6.1), CLIQ the best page of each
cluster of similar pages (3.6.2), COV the greedy cover (3.6.3); -1 and COV use the last recrawl
alone, and choose no page after a step without new pages; -WIN uses all of them (3.6.4).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from itertools import islice
from typing import Final, TypeAlias

import numpy as np

from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.discovery.covers import RecrawlHistory, greedy
from freshet.scheduler.discovery.reveal_graph import Reveals


def od(fractions: Floats, budget: int) -> Ints:
    """Return the ``budget`` pages with the largest p_i above 0; ties are broken by the first.

    Lemma 1: it finds at least the share p_[1] / (p_[1] + the sum of p_[k+1] to p_[2k-1]) of the
    best cover.
    """
    candidates = np.flatnonzero(fractions > 0)
    best = np.argsort(-fractions[candidates], kind="stable")[: max(budget, 0)]
    return np.asarray(candidates[best], np.int64)


def od_win(past: RecrawlHistory, budget: int) -> Ints:
    """Return the pages that revealed most in all recrawls together."""
    return od(past.fractions(), budget)


# -- clusters --
#
# Old pages that reveal nearly the same new pages, as clusters (section 3.6.2).
#
# Single link: a page belongs to a cluster if its Jaccard coefficient with any other page of the
# cluster is at least 1 - eps_b. Pairs are counted from the new pages that both reveal; if those are
# too many, candidates are from MinHash and LSH, and are checked exactly.

#: The threshold of the thesis.
EPS_B: Final = 0.8
#: Up to this number of pairs of sets and common new pages, pairs are counted one by one.
_MOST_PAIRS: Final = 20_000_000
_PERMUTATIONS: Final = 128


def clusters(reveals: Reveals, eps_b: float = EPS_B) -> Ints:
    """Return the cluster of each set of ``reveals``, numbered from 0 on; of shape (sets,).

    Raises:
        ValueError: if eps_b is not at least 0 and below 1.
    """
    if not 0.0 <= eps_b < 1.0:
        raise ValueError(f"eps_b must be from 0 to below 1, not {eps_b}")
    sets = reveals.sizes.size
    if not sets:
        return np.zeros(0, np.int64)
    shared = np.bincount(reveals.members, minlength=reveals.new)
    is_small = float((shared.astype(np.float64) ** 2).sum()) <= _MOST_PAIRS
    first, second = _counted(reveals, eps_b) if is_small else _hashed(reveals, eps_b)
    return _joined(first, second, sets)


def _joined(first: Ints, second: Ints, sets: int) -> Ints:
    """Return the cluster of each set, numbered from 0 on, if these pairs belong together."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 - slow to import

    pairs = csr_array((np.ones(first.size, np.int8), (first, second)), shape=(sets, sets))
    return np.asarray(connected_components(pairs, directed=False)[1], np.int64)


def _counted(reveals: Reveals, eps_b: float) -> tuple[Ints, Ints]:
    """Return the pairs of similar sets, by counting their common pages."""
    holders, page = _holders(reveals), np.sort(reveals.members)
    # Each holder of a new page and its later holders, which are later sets.
    after = np.searchsorted(page, page, "right") - np.arange(len(page)) - 1
    place = np.repeat(np.arange(len(page)), after)
    other = place + 1 + np.arange(len(place)) - np.repeat(np.cumsum(after) - after, after)
    sets = reveals.sizes.size
    pairs, both = np.unique(holders[place] * sets + holders[other], return_counts=True)
    first, second = np.divmod(pairs, sets)
    union = reveals.sizes[first] + reveals.sizes[second] - both
    alike = both >= (1.0 - eps_b) * union
    return first[alike], second[alike]


def _holders(reveals: Reveals) -> Ints:
    """Return the sets of each new page, one page after the other."""
    set_of = np.repeat(np.arange(reveals.sizes.size), reveals.sizes)
    return set_of[np.argsort(reveals.members, kind="stable")]


def _hashed(reveals: Reveals, eps_b: float) -> tuple[Ints, Ints]:
    """Return the pairs of similar sets, except a few that LSH misses.

    Uses datasketch's index, with the largest number of minima r per band for which sets of
    resemblance J ≥ 1 − eps_b meet in one of b = 128/r bands with 1 − (1 − J^r)^b ≥ 1 − 1/e: that
    is, (1/b)^(1/r) ≤ J (Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", 3.4).
    """
    from datasketch import MinHash, MinHashLSH  # noqa: PLC0415 - slow to import

    rows = max(
        r for r in range(1, _PERMUTATIONS + 1) if _PERMUTATIONS // r * (1.0 - eps_b) ** r >= 1.0
    )
    index = MinHashLSH(num_perm=_PERMUTATIONS, params=(_PERMUTATIONS // rows, rows))
    first, second = [], []
    for number, some in enumerate(np.split(reveals.members, reveals.offsets[1:-1])):
        minima = MinHash(_PERMUTATIONS)
        minima.update_batch([page.tobytes() for page in some])
        for other in index.query(minima):
            if jaccard(reveals, other, number) >= 1.0 - eps_b:
                first.append(other)
                second.append(number)
        index.insert(number, minima)
    return np.array(first, np.int64), np.array(second, np.int64)


def jaccard(reveals: Reveals, first: int, second: int) -> float:
    """Return J of two sets."""
    one, two = reveals.members_of(first), reveals.members_of(second)
    both = np.intersect1d(one, two, assume_unique=True).size
    return both / (one.size + two.size - both)


def cliq(reveals: Reveals, budget: int, eps_b: float = EPS_B) -> Ints:
    """Return the best pages of the ``budget`` clusters with the largest best pages.

    Theorem 1: if any two pages reveal either nearly the same pages or hardly any common page, it
    finds at least the share (1 - k' eps_s) / (1 + k eps_b) of the best cover.
    """
    return od(best_of_clusters(reveals, eps_b), budget)


def best_of_clusters(reveals: Reveals, eps_b: float = EPS_B) -> Floats:
    """Return p_x for the best page of each cluster, 0 for all others; of shape (old,)."""
    found = np.zeros(reveals.old)
    of_set = clusters(reveals, eps_b)
    # The largest set of each cluster; ties are broken by the first page.
    order = np.lexsort((reveals.first_pages, -reveals.sizes, of_set))
    _, first = np.unique(of_set[order], return_index=True)
    best = reveals.first_pages[order[first]]
    found[best] = reveals.fractions[best]
    return found


def cliq_win(past: RecrawlHistory, budget: int) -> Ints:
    """Return the best pages of the ``budget`` clusters with the highest value."""
    value = past.fractions()
    if past.recrawls:
        last = past.recrawls[-1]
        value[: last.old] = np.maximum(value[: last.old], best_of_clusters(last))
    return od(value, budget)


# -- cov win --
#
# COV-WIN: the greedy cover of all past recrawls pooled. Ours, not from the thesis.
#
# Every new page of the past is a scenario that may repeat. COV covers the pages of the last
# recrawl, and has no data after one without news; OD-WIN adds up the revealed pages, and pays for
# overlaps again and again. The cover of all scenarios together avoids both: "it is not easy to
# 'average' cover information from multiple recrawls" (section 3.6.3), but it is easy to cover their
# union.

#: Weight of a page that was the only new one in a step. Weights are integers, so that sums are
#: exact and ties are detected.
_ONE: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class _Group:
    """Pages that revealed the same set, the first last; ``loss`` is minus their value."""

    loss: int
    pages: list[int]
    members: Ints


def cov_win(past: RecrawlHistory, budget: int) -> Ints:
    """Return ``budget`` pages, each the one that covers most of what is not covered yet.

    Each of N pages that appeared in one step counts 1 / sqrt(N): a rebuilt site does not dominate,
    and a step with a single page does not count as much as one with hundreds. When all is covered,
    the remaining pages form a second cover, for cases where the first fails; and so on. Ties are
    broken by the larger set, then by the first page. Pages that never revealed a page are not
    chosen.
    """
    new = np.array([each.new for each in past.recrawls], np.int64)
    each_counts = np.maximum(np.round(_ONE / np.sqrt(np.maximum(new, 1))), 1).astype(np.int64)
    covers = _covers(_groups(past), np.repeat(each_counts, new))
    return np.array(list(islice(covers, max(budget, 0))), np.int64)


def _groups(past: RecrawlHistory) -> list[tuple[list[int], Ints]]:
    """Return groups of pages that revealed the same set, with new pages numbered throughout."""
    pages = past.ever()
    if not pages.size:
        return []
    numbers = np.full((pages.size, len(past.recrawls)), -1, np.int64)
    for column, recrawl in enumerate(past.recrawls):
        known = int(np.searchsorted(pages, recrawl.old))
        numbers[:known, column] = recrawl.set_of[pages[:known]]
    kinds, kind_of = np.unique(numbers, axis=0, return_inverse=True)
    order = np.argsort(kind_of.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(kind_of.ravel()))
    first = np.cumsum([0, *(each.new for each in past.recrawls)]).tolist()

    def members(kind: Ints) -> Ints:
        steps = np.flatnonzero(kind >= 0).tolist()
        return np.concatenate([past.recrawls[n].members_of(int(kind[n])) + first[n] for n in steps])

    alike = np.split(pages[order], ends[:-1])
    return [(same.tolist(), members(kind)) for same, kind in zip(alike, kinds, strict=True)]


def _covers(groups: Sequence[tuple[list[int], Ints]], weights: Ints) -> Iterator[int]:
    """Yield the pages of one cover after the other."""
    left = [_Group(-int(weights[members].sum()), pages[::-1], members) for pages, members in groups]
    while left:
        for group in _cover(left, weights.copy()):
            yield group.pages.pop()
        left = [group for group in left if group.pages]


def _cover(groups: Sequence[_Group], uncovered: Ints) -> Iterator[_Group]:
    """Yield a greedy cover; gains only shrink, so only the first in the heap is valued again."""
    waiting = [(each.loss, each.loss, each.pages[-1], n) for n, each in enumerate(groups)]
    heapify(waiting)
    while waiting:
        bound, loss, page, number = waiting[0]
        group = groups[number]
        gain = int(uncovered[group.members].sum())
        if not gain:
            heappop(waiting)
        elif gain < -bound:
            heapreplace(waiting, (-gain, loss, page, number))
        else:
            heappop(waiting)
            uncovered[group.members] = 0
            yield group


# -- bandit --
#
# A bandit that needs no full recrawls: every old page is an arm (section 7.1).
#
# A new page is a step in time, and an arm pays if it covers that page. k arms are pulled in a
# batch; the new pages that all of them revealed together are the only known ones. The arms with the
# largest upper confidence bound are pulled; they converge to the pages with the largest outdegree,
# as OD-WIN chooses them.
#
# The bound is from UCB1 (Auer, Cesa-Bianchi, Fischer 2002) with the estimated variance p (1 - p) of
# an arm, as in UCB-V (Audibert, Munos, Szepesvari 2009, without its range term). UCB1 uses 1/4 for
# every arm: then each of thousands of pages without payoff seems as promising as the index after a
# few visits, until it was pulled often.

#: Scales the confidence bounds; 0 only exploits. Narrow: the widest of 1, 0.1 and 0.01 with next to
#: no cost on synthetic sites.
WIDTH: Final = 0.1


def informed_bandit(past: RecrawlHistory, budget: int) -> Ints:
    """Return the arms that a bandit would pull next after all recrawls, the best first.

    A full recrawl is a batch in which every old page is an arm.
    """
    trials, paid, steps = np.zeros(past.pages), np.zeros(past.pages), 0
    for recrawl in past.recrawls:
        steps += max(recrawl.new, 1)
        trials[: recrawl.old] += max(recrawl.new, 1)
        paid[: recrawl.old] += recrawl.degrees
    best = np.argsort(-upper_bounds(trials, paid, steps), kind="stable")
    if past.alive is not None:
        best = best[past.alive[best]]
    return np.asarray(best[: max(budget, 0)], np.int64)


def upper_bounds(trials: Floats, paid: Floats, steps: int) -> Floats:
    """Return the upper confidence bound of the share of new pages that each arm covers."""
    # The mean payoff starts at a half, never at 0, or no page would be tried.
    prior = (float(paid.sum()) + 1.0) / (float(trials.sum()) + 2.0)
    known = trials + 1.0
    # A page without visits has the mean payoff of pages, and the uncertainty of no data.
    mean = np.minimum((paid + prior) / known, 1.0)
    variance = mean * (1.0 - mean)
    doubt = np.sqrt(2.0 * np.log(steps + 1.0) * variance / known)
    return np.asarray(mean + WIDTH * doubt, np.float64)


# -- algorithms --
#
# The algorithms for choosing a cover by past recrawls, by name.
#
# All of them use only the past. GREEDY, OD and CLIQ, which in the thesis use the recrawl itself,
# use the last recrawl with new pages; COV, OD-1 and CLIQ-1 the last one in any case. OD-ALL is
# OD-WIN with a full recrawl at every step (section 3.6.4): with the same steps, both choose the
# same.

#: From past recrawls and a budget to the old pages to visit.
Algorithm: TypeAlias = Callable[[RecrawlHistory, int], Ints]


def _by_last(choose: Callable[[Reveals, int], Ints], *, with_news: bool = False) -> Algorithm:
    def chosen(past: RecrawlHistory, budget: int) -> Ints:
        known = [each for each in past.recrawls if each.members.size or not with_news]
        return choose(known[-1], budget) if known else np.zeros(0, np.int64)

    return chosen


ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    "cov_win": cov_win,
    "greedy": _by_last(greedy, with_news=True),
    "od": _by_last(lambda last, budget: od(last.fractions, budget), with_news=True),
    "od_1": _by_last(lambda last, budget: od(last.fractions, budget)),
    "od_win": od_win,
    "od_all": od_win,
    "cliq": _by_last(cliq, with_news=True),
    "cliq_1": _by_last(cliq),
    "cliq_win": cliq_win,
    "cov": _by_last(greedy),
    "bandit": informed_bandit,
}
#: The default algorithm.
BEST: Final = "cov_win"
