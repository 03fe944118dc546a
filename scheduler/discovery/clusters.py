"""Old pages that reveal nearly the same new ones, as clusters (section 3.6.2).

Single link: a page belongs to a cluster where its Jaccard coefficient with any other page of it is
at least 1 - eps_b. Pairs come from the new pages that both reveal; where those are too many, from
MinHash and LSH, and are checked exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

import numpy as np
from datasketch import MinHash, MinHashLSH
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from freshet.scheduler.arguments import Ints
from freshet.scheduler.discovery.reveals import Reveals

#: What the thesis clusters with.
EPS_B: Final = 0.8
#: So many pairs of sets and new pages in both are counted one by one.
_MOST_PAIRS: Final = 20_000_000
_PERMUTATIONS: Final = 128


def clusters(reveals: Reveals, eps_b: float = EPS_B) -> Ints:
    """The cluster of each set of ``reveals``, numbered from 0 on; of shape (sets,).

    Raises:
        ValueError: eps_b is not from 0 to below 1.
    """
    if not 0.0 <= eps_b < 1.0:
        raise ValueError(f"eps_b must be from 0 to below 1, not {eps_b}")
    sets = reveals.sizes.size
    if not sets:
        return np.zeros(0, np.int64)
    shared = np.bincount(reveals.members, minlength=reveals.new)
    is_small = float((shared.astype(np.float64) ** 2).sum()) <= _MOST_PAIRS
    first, second = _counted(reveals, eps_b) if is_small else _hashed(reveals, eps_b)
    links = coo_array((np.ones(first.size, np.int8), (first, second)), shape=(sets, sets))
    return connected_components(links.tocsr(), directed=False)[1].astype(np.int64)


def _counted(reveals: Reveals, eps_b: float) -> tuple[Ints, Ints]:
    """The pairs of sets that are alike, by counting what they share."""
    ones = np.ones(reveals.members.size, np.int64)
    shape = (reveals.sizes.size, reveals.new)
    holds = csr_array((ones, reveals.members, reveals.offsets), shape=shape)
    both = (holds @ holds.T).tocoo()
    first, second = both.coords
    union = reveals.sizes[first] + reveals.sizes[second] - both.data
    alike = both.data >= (1.0 - eps_b) * union
    return np.asarray(first[alike], np.int64), np.asarray(second[alike], np.int64)


def _hashed(reveals: Reveals, eps_b: float) -> tuple[Ints, Ints]:
    """The pairs of sets that are alike, but for a few that LSH misses."""
    index = MinHashLSH(threshold=1.0 - eps_b, num_perm=_PERMUTATIONS)
    hashes = []
    for number in range(reveals.sizes.size):
        hashed = MinHash(num_perm=_PERMUTATIONS)
        hashed.update_batch([each.tobytes() for each in reveals.members_of(number)])
        index.insert(number, hashed)
        hashes.append(hashed)
    pairs = chain.from_iterable(
        _alike(reveals, n, index, hashes[n], eps_b) for n in range(len(hashes))
    )
    found = np.array(list(pairs), np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _alike(
    reveals: Reveals, number: int, index: MinHashLSH, hashed: MinHash, eps_b: float
) -> Iterator[tuple[int, int]]:
    for other in index.query(hashed):
        if other > number and jaccard(reveals, number, other) >= 1.0 - eps_b:
            yield number, other


def jaccard(reveals: Reveals, first: int, second: int) -> float:
    """J of two sets."""
    one, two = reveals.members_of(first), reveals.members_of(second)
    both = np.intersect1d(one, two, assume_unique=True).size
    return both / (one.size + two.size - both)
