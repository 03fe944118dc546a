"""Rank promotion against the merge of the thesis, word by word, and its enumeration."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations, product
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare

from freshet.crawler.extensions.readers.promotion import (
    critical_degree,
    first_places,
    selective_law,
    uniform_law,
    uniform_pool,
)

RANKED, POOL = (10, 11, 12), (20, 21)
K, R = 2, 0.3
SEEDS = 6000


def merged(ranked: Sequence[int], pool: Sequence[int], k: int, coins: Sequence[bool]) -> list[int]:
    """Return the list of section 5.5: ``pool`` is in its random order, a coin for each place."""
    rest, promoted = list(ranked), list(pool)
    listed = [rest.pop(0) for _ in range(min(k - 1, len(rest)))]
    for coin in coins[len(listed) :]:
        take = promoted if (coin and promoted) or not rest else rest
        listed.append(take.pop(0))
    return listed


def enumerated(
    ranked: Sequence[int], pool: Sequence[int], k: int, r: float
) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield each list with its probability, by all coins and all orders of the pool."""
    orders = list(permutations(pool))
    for order, coins in product(orders, product((True, False), repeat=len(ranked) + len(pool))):
        chance = r ** sum(coins) * (1 - r) ** (len(coins) - sum(coins)) / len(orders)
        yield tuple(merged(ranked, order, k, coins)), chance


def law_of_lists(k: int, r: float) -> dict[tuple[int, ...], float]:
    found: Counter[tuple[int, ...]] = Counter()
    for listed, chance in enumerated(RANKED, POOL, k, r):
        found[listed] += chance  # type: ignore[assignment] # probabilities
    return dict(found)


def is_drawn_from(drawn: Counter[tuple[int, ...]], law: dict[tuple[int, ...], float]) -> bool:
    assert drawn.keys() <= law.keys()
    expected = np.array([*law.values()]) * drawn.total()
    return bool(chisquare([drawn[each] for each in law], expected).pvalue > 1e-3)


def items(places: Sequence[tuple[int, bool]]) -> tuple[int, ...]:
    return tuple(item for item, _ in places)


@pytest.mark.parametrize("pool_stands_last", [False, True])
def test_the_lists_have_the_law_of_the_merge(*, pool_stands_last: bool) -> None:
    rng = np.random.default_rng(1)
    drawn: Counter[tuple[int, ...]] = Counter()
    for seed in range(SEEDS):
        last = rng.permutation(POOL).tolist() if pool_stands_last else []
        drawn[items(first_places([*RANKED, *last], POOL, 5, k=K, r=R, seed=seed))] += 1
    assert is_drawn_from(drawn, law_of_lists(K, R))


def test_the_test_tells_another_degree_from_it() -> None:
    drawn = Counter(
        items(first_places(RANKED, POOL, 5, k=K, r=R, seed=seed)) for seed in range(SEEDS)
    )
    assert not is_drawn_from(drawn, law_of_lists(K, R + 0.03))


@pytest.mark.parametrize("k", [1, 2, 4, 6])
@pytest.mark.parametrize("r", [0.0, 0.3, 1.0])
def test_the_law_of_a_place_is_that_of_all_coins(k: int, r: float) -> None:
    for place in range(1, 6):
        law: Counter[int] = Counter()
        for listed, chance in enumerated(RANKED, POOL, k, r):
            law[min(listed[place - 1], POOL[0])] += chance  # type: ignore[assignment]
        expected = [law[item] for item in (*RANKED, POOL[0])]
        assert selective_law(place, ranked=3, pool=2, k=k, r=r) == pytest.approx(expected)


@pytest.mark.parametrize("k", [1, 3])
def test_the_uniform_law_is_that_of_all_pools(k: int) -> None:
    count, r = 4, 0.35
    law = np.zeros((count, count))
    for size in range(count + 1):
        for pool in combinations(range(count), size):
            ranked = [item for item in range(count) if item not in pool]
            for listed, chance in enumerated(ranked, pool, k, r):
                law[range(count), listed] += chance * r**size * (1 - r) ** (count - size)
    found = [uniform_law(place, items=count, k=k, r=r) for place in range(1, count + 1)]
    assert np.array(found) == pytest.approx(law)


def test_the_uniform_rule_takes_each_item_with_its_probability_and_for_itself() -> None:
    pools = [frozenset(uniform_pool(range(3), r=R, seed=seed)) for seed in range(SEEDS)]
    law = {
        frozenset(pool): R**size * (1 - R) ** (3 - size)
        for size in range(4)
        for pool in combinations(range(3), size)
    }
    drawn = Counter(pools)
    expected = np.array([*law.values()]) * SEEDS
    assert chisquare([drawn[each] for each in law], expected).pvalue > 1e-3


def test_the_pool_of_a_seed_does_not_lean_to_its_order() -> None:
    """The hashes that make the pool are not those of its order, or its first would stay first."""
    first = 0
    for seed in range(SEEDS):
        order = first_places([], range(2), 2, k=1, r=1.0, seed=seed)
        first += (order[0][0] == 0) == (0 in uniform_pool(range(2), r=0.5, seed=seed))
    assert binomtest(first, SEEDS).pvalue > 1e-3


LISTS = st.lists(st.integers(0, 2**64 - 1), unique=True, max_size=12)
DEGREES = st.one_of(st.just(0.0), st.just(1.0), st.floats(0, 1))
SEED = st.integers(0, 2**64 - 1)


@given(LISTS, st.data(), st.integers(1, 14), DEGREES, SEED)
def test_a_list_has_each_item_once_and_is_continued_by_the_next_page(
    ranked: list[int], data: st.DataObject, k: int, r: float, seed: int
) -> None:
    among = st.lists(st.sampled_from(ranked), unique=True) if ranked else st.just([])
    pool = data.draw(among) + data.draw(LISTS)
    whole = first_places(ranked, pool, 40, k=k, r=r, seed=seed)
    assert sorted(items(whole)) == sorted({*ranked, *pool})
    assert items(whole[: k - 1])[: len(ranked)] == tuple(ranked[: k - 1])
    assert not any(promoted for _, promoted in whole[: min(k - 1, len(ranked))])
    assert {item for item, promoted in whole if promoted} <= {*pool}
    others = [item for item in items(whole) if item not in pool]
    assert others == [item for item in ranked if item not in pool]
    for count in range(len(whole)):
        assert first_places(ranked, pool, count, k=k, r=r, seed=seed) == whole[:count]


@given(LISTS.filter(len), SEED)
def test_an_item_that_leaves_the_pool_does_not_shuffle_it(pool: list[int], seed: int) -> None:
    order = items(first_places([], pool, 12, k=1, r=1.0, seed=seed))
    without = [item for item in pool if item != pool[0]]
    rest = items(first_places([], without, 12, k=1, r=1.0, seed=seed))
    assert rest == tuple(item for item in order if item != pool[0])


def test_an_item_of_the_pool_is_shown_where_it_comes_first() -> None:
    assert first_places([1, 2, 3], [1, 9], 3, k=2, r=1.0, seed=4) == [
        (1, False), (9, True), (2, False),
    ]  # fmt: skip
    assert first_places([1, 2, 3], [3], 3, k=1, r=0.0, seed=4) == [
        (1, False), (2, False), (3, False),
    ]  # fmt: skip


def test_the_critical_degrees_of_the_default_community() -> None:
    """10,000 pages that live 547.5 days, 100 views a day, attention i^(−3/2)."""
    attention = np.arange(1.0, 10_001.0) ** -1.5
    found = [critical_degree(10_000 / 547.5, 100, attention, k=k) for k in (1, 2, 6, 11, 21)]
    assert found == pytest.approx([0.183, 0.297, 0.569, 0.793, 1.12], abs=5e-3)
    assert found[0] == pytest.approx(10_000 / 547.5 / 100)


def test_without_looks_no_degree_empties_the_pool() -> None:
    assert critical_degree(1.0, 0.0, np.ones(3), k=1) == inf
    assert critical_degree(1.0, 5.0, np.ones(3), k=4) == inf
    assert critical_degree(0.0, 5.0, np.ones(3), k=1) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0, "r": 0.1, "count": 1}, "k: is 0"),
        ({"k": 1, "r": 1.5, "count": 1}, "r: is 1.5"),
        ({"k": 1, "r": float("nan"), "count": 1}, "r: is nan"),
        ({"k": 1, "r": 0.1, "count": -1}, "count: is -1"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        first_places([1], [], seed=0, **options)  # type: ignore[arg-type]


def test_a_place_beyond_the_list_is_refused() -> None:
    with pytest.raises(ValueError, match="place: is 6; accepted is 1 to 5"):
        selective_law(6, ranked=3, pool=2, k=1, r=0.1)
