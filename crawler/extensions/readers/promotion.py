"""Rank promotion: some places of a list are given to items that nobody has seen.

A list ordered by popularity stays as it is: what stands below is not seen, and so it cannot
become popular. Randomized rank promotion leaves the first k − 1 places to the ranked items. Each
other place has, with probability r, the next item of a *pool* in random order, or else the next of
the ranked items; where one of both is used up, the other. The pool is *selective* (the items that
nobody has opened) or *uniform* (each item with probability r).

Reference: Pandey, "Information Mediation in the Presence of Constraints and Uncertainties" (thesis,
CMU-CS-08-125, 2008), section 5.5. Differs from the thesis in: only the places that are shown are
worked out, as functions of a seed, so that the second page of a list continues the first; laws of
places and the critical degree are not in it. Its sentence that the first k − 1 items are protected
does not hold for the uniform pool, which may take them.
"""

from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b
from heapq import nsmallest
from math import inf

import numpy as np

from freshet.scheduler.arrays import Floats, amount, non_negative


def first_places(
    ranked: Sequence[int], pool: Collection[int], count: int, *, k: int, r: float, seed: int
) -> list[tuple[int, bool]]:
    """Return the first places of a list with promotion: items, and whether each was promoted.

    It is a beginning of what a larger ``count`` gives. An item that enters or leaves the pool does
    not change the random order of the others. The cost grows with the places and the pool only.

    Args:
        ranked: the items by popularity. One of the pool may stand here, too: it is shown once,
            where it comes first. If the pool stands last, in random order, or not at all, this is
            the merge of the thesis.
        pool: the items that may be promoted.
        count: how many places; fewer are returned if there are fewer items.
        k: the first place, from 1, at which an item may be promoted.
        r: the degree of randomization, from 0 to 1.
        seed: of it the last 64 bits count.

    Raises:
        ValueError: k is below 1, r not from 0 to 1, or the count negative.

    >>> first_places([1, 2, 3, 4, 5], [4, 5], 4, k=3, r=1.0, seed=7)
    [(1, False), (2, False), (5, True), (4, True)]
    """
    _check(k, r)
    if count < 0:
        raise ValueError(f"count: is {count}; accepted is at least 0")
    shown: dict[int, bool] = {}
    promoted = iter(nsmallest(count, set(pool), key=lambda item: _hash(item, seed, b"order")))
    others = iter(ranked)
    coins = np.random.default_rng(seed % 2**64).random(count) < r
    coins[: k - 1] = False
    for coin in coins.tolist():
        for source in (promoted, others) if coin else (others, promoted):
            if (item := next((each for each in source if each not in shown), None)) is not None:
                shown[item] = source is promoted
                break
    return list(shown.items())


def uniform_pool(items: Iterable[int], *, r: float, seed: int) -> list[int]:
    """Return the pool of the uniform rule: each item with probability r, anew for each seed.

    In the thesis its items leave the ranked list: give the others alone as ``ranked``.

    >>> uniform_pool(range(10), r=0.3, seed=1)
    [0, 4, 6]
    """
    return [item for item in items if _hash(item, seed, b"pool") < r * 2**64]


def selective_law(place: int, *, ranked: int, pool: int, k: int, r: float) -> Floats:
    """Return the law of the item at one place, without the list: (ranked + 1,) probabilities.

    Of j = i − k places before place i (from 1) the coins give B ~ Binomial(j, r) to the z items of
    the pool; b = clamp(B, max(0, j − D), min(z, j)) of them are there, D = ranked − (k − 1), where
    ``ranked`` does not count the pool. Place i is from the pool with probability r (1 where no
    ranked item is left, 0 where none of the pool is), or has the ranked item k − 1 + j − b, from 0.
    The last probability is that of the pool, of which each item is as likely.

    Raises:
        ValueError: there is no such place, k is below 1, or r not from 0 to 1.

    >>> selective_law(2, ranked=2, pool=1, k=1, r=0.25).tolist()  # the pool: 3/4 · 1/4
    [0.25, 0.5625, 0.1875]
    """
    _check(k, r)
    if not 1 <= place <= ranked + pool:
        raise ValueError(f"place: is {place}; accepted is 1 to {ranked + pool}")
    protected = min(k - 1, ranked)
    if place <= protected:
        return np.asarray(np.eye(1, ranked + 1, place - 1)[0])
    before, rest = place - protected - 1, ranked - protected
    given = np.clip(np.arange(before + 1), max(0, before - rest), min(pool, before))
    from_pool = np.where(before - given == rest, 1.0, np.where(given == pool, 0.0, r))
    weight, law = _binomial(before, r), np.zeros(ranked + 1)
    np.add.at(law, np.minimum(place - 1 - given, ranked), weight * (1 - from_pool))
    law[ranked] += weight @ from_pool
    return law


def uniform_law(place: int, *, items: int, k: int, r: float) -> Floats:
    """Return the probabilities (items,) that each item, by popularity, stands at one place.

    The sum of :func:`selective_law` over the sizes of the pool. Of D items outside a pool the first
    item is one with probability D/n, and likewise each next one by those that are left. The cost is
    O(n³): it is for tests.

    >>> uniform_law(1, items=2, k=1, r=0.5).tolist()
    [0.625, 0.375]
    """
    law = np.zeros(items)
    for pool, weight in enumerate(_binomial(items, r).tolist()):
        of_place = selective_law(place, ranked=items - pool, pool=pool, k=k, r=r)
        taken = np.eye(1, items - pool + 1)[0]
        for item in range(items):
            outside = np.maximum(items - pool - np.arange(len(taken)), 0) / (items - item)
            law[item] += weight * float(taken[:-1] * outside[:-1] @ of_place[:-1])
            taken = taken * (1 - outside) + np.append(0.0, (taken * outside)[:-1])
        law += weight * of_place[-1] / items
    return law


def critical_degree(
    new_per_day: float, views_per_day: float, attention: Floats, *, k: int
) -> float:
    """Return r_c, the degree of randomization above which the selective pool is emptied; or inf.

        r_c = nλ / Σ_{i≥k} F₂(i),   F₂ = views · attention / Σ attention

    As many items are new each day as promotion gives views to. Below r_c most of the pool waits;
    the best degree is a little above it. Above 1 no degree is enough.

    nλ are the new items a day; ``attention`` (n,), of the first place first, is relative and not
    all 0; k is the first place at which an item may be promoted.

    >>> round(critical_degree(2.0, 10.0, np.array([3.0, 1.0, 1.0]), k=2), 6)
    0.5
    """
    _check(k, 0.0)
    share = non_negative("attention", attention)
    views = amount("views_per_day", views_per_day) * float(share[k - 1 :].sum() / share.sum())
    return amount("new_per_day", new_per_day) / views if views > 0 else inf


def _check(k: int, r: float) -> None:
    if k < 1:
        raise ValueError(f"k: is {k}; accepted is at least 1")
    if not 0 <= r <= 1:
        raise ValueError(f"r: is {r}; accepted is 0 to 1")


def _hash(item: int, seed: int, purpose: bytes) -> int:
    key = (seed % 2**64).to_bytes(8, "little")
    number = (item % 2**64).to_bytes(8, "little")
    return int.from_bytes(blake2b(number, digest_size=8, key=key, person=purpose).digest(), "big")


def _binomial(trials: int, p: float) -> Floats:
    """Return the probabilities (trials + 1,) of numbers of successes."""
    law = np.ones(1)
    for _ in range(trials):
        law = np.append(law * (1 - p), 0.0) + np.append(0.0, law * p)
    return law
