"""GREEDY, OD and CLIQ against their definitions and the bounds that the thesis proves."""

from collections.abc import Sequence
from itertools import combinations
from math import e, inf, isnan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from freshet.scheduler.discovery.covers import CoverRecord, greedy
from freshet.scheduler.discovery.thesis_covers import cliq, clusters, jaccard, od
from tests.scheduler.discovery.graphs import Sets, best_covered, graphs, reveals

Drawn = tuple[Sets, int]


def naive(sets: Sets, budget: int) -> list[int]:
    """GREEDY as the thesis has it, of equal pages the first."""
    chosen: list[int] = []
    covered: frozenset[int] = frozenset()
    while len(chosen) < budget:
        gains = [len(each - covered) for each in sets]
        if not any(gains):
            break
        chosen.append(gains.index(max(gains)))
        covered |= sets[chosen[-1]]
    return chosen


def found(sets: Sets, pages: Sequence[int]) -> int:
    return len(frozenset().union(*(sets[page] for page in pages)))


@given(graphs(), st.integers(0, 8))
def test_greedy_is_what_its_definition_says(drawn: Drawn, budget: int) -> None:
    sets, new = drawn
    assert greedy(reveals(sets, new), budget=budget).tolist() == naive(sets, budget)


@given(graphs(), st.integers(1, 5))
def test_greedy_finds_most_of_what_any_cover_finds(drawn: Drawn, budget: int) -> None:
    sets, new = drawn
    assume(sets)
    ours = found(sets, greedy(reveals(sets, new), budget=budget).tolist())
    assert ours >= (1 - 1 / e) * best_covered(sets, budget)


@given(graphs())
def test_all_is_covered_and_no_page_is_looked_at_in_vain(drawn: Drawn) -> None:
    sets, new = drawn
    cover = greedy(reveals(sets, new)).tolist()
    wanted = found(sets, range(len(sets)))
    assert found(sets, cover) == wanted
    if cover:
        assert found(sets, cover[:-1]) < wanted


@given(graphs(), st.integers(1, 4))
def test_lemma_1(drawn: Drawn, budget: int) -> None:
    sets, new = drawn
    assume(any(sets))
    p = reveals(sets, new).fractions
    cover = od(p, budget)
    largest = np.sort(p)[::-1]
    bound = largest[0] / (largest[0] + largest[budget : 2 * budget - 1].sum())
    assert found(sets, cover.tolist()) >= bound * best_covered(sets, budget) - 1e-9


def is_divided(sets: Sets, eps_b: float, eps_s: float) -> bool:
    """Whether any two pages reveal nearly the same or nearly nothing in common."""
    pairs = [(len(a & b) / len(a | b)) for a, b in combinations(sets, 2)]
    return all(j >= 1 - eps_b or j <= eps_s for j in pairs)


@st.composite
def divided(draw: st.DrawFn) -> tuple[Sets, int, float, float]:
    """Families of pages that reveal nearly the same, over nearly distinct new pages."""
    families = draw(st.integers(1, 3))
    sets: list[frozenset[int]] = []
    for family in range(families):
        whole = frozenset(range(family * 9, family * 9 + draw(st.integers(4, 9))))
        for _ in range(draw(st.integers(1, 3))):
            lost = draw(st.frozensets(st.sampled_from(sorted(whole)), max_size=1))
            more = draw(st.frozensets(st.integers(0, families * 9 - 1), max_size=1))
            sets.append((whole - lost) | more)
    eps_b, eps_s = draw(st.floats(0.05, 1 / 3)), draw(st.floats(0.0, 1 / 3))
    assume(is_divided(sets, eps_b, eps_s))
    return sets, families * 9, eps_b, eps_s


@given(divided())
def test_lemma_2_clusters_are_equivalence_classes(drawn: tuple[Sets, int, float, float]) -> None:
    sets, new, eps_b, _ = drawn
    graph = reveals(sets, new)
    cluster_of = clusters(graph, eps_b)
    for one, two in combinations(range(cluster_of.size), 2):
        is_alike = jaccard(graph, one, two) >= 1 - eps_b
        assert (cluster_of[one] == cluster_of[two]) == is_alike


@given(divided(), st.integers(1, 4))
def test_theorem_1(drawn: tuple[Sets, int, float, float], budget: int) -> None:
    sets, new, eps_b, eps_s = drawn
    graph = reveals(sets, new)
    classes = int(clusters(graph, eps_b).max()) + 1
    bound = (1 - min(budget, classes) * eps_s) / (1 + budget * eps_b)
    cover = cliq(graph, budget, eps_b)
    assert found(sets, cover.tolist()) >= bound * best_covered(sets, budget) - 1e-9


@given(graphs(12, 6), st.floats(0, 0.99))
def test_pages_that_are_alike_are_in_one_cluster(drawn: Drawn, eps_b: float) -> None:
    sets, new = drawn
    graph = reveals(sets, new)
    cluster_of = clusters(graph, eps_b)
    for one, two in combinations(range(cluster_of.size), 2):
        if jaccard(graph, one, two) >= 1 - eps_b:
            assert cluster_of[one] == cluster_of[two]


def test_where_pairs_are_too_many_hashes_find_those_that_are_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Two families of ten pages, of which each reveals all but one or two of forty new ones.
    sets = [frozenset(range(40 * f, 40 * f + 40)) - {40 * f + n} for f in (0, 1) for n in range(10)]
    graph = reveals(sets, 80)
    counted = clusters(graph, 0.3)
    monkeypatch.setattr("freshet.scheduler.discovery.thesis_covers._MOST_PAIRS", 0)
    assert clusters(graph, 0.3).tolist() == counted.tolist()
    assert len(set(counted.tolist())) == 2


def test_mirrors_take_the_whole_budget_of_od_and_one_page_of_cliq() -> None:
    mirror = frozenset(range(10))
    sets = [mirror, mirror, mirror, frozenset({10, 11})]
    graph = reveals(sets, 12)
    assert graph.covered(od(graph.fractions, 2)).sum() == 10
    assert graph.covered(cliq(graph, 2)).sum() == 12


def test_overhead_and_coverage() -> None:
    def record(*figures: int) -> CoverRecord:
        return CoverRecord(*np.array(figures)[:, None])

    assert (record(5, 100, 200).overhead, record(5, 100, 200).coverage) == (0.05, 0.5)
    assert (record(3, 0, 7).overhead, record(0, 0, 0).overhead) == (inf, 0.0)
    assert isnan(record(0, 0, 0).coverage)


def test_wrong_arguments_are_refused() -> None:
    graph = reveals([frozenset({0})], 1)
    with pytest.raises(ValueError, match="budget must be"):
        greedy(graph, -1)
    with pytest.raises(ValueError, match="eps_b must be"):
        clusters(graph, 1.0)
