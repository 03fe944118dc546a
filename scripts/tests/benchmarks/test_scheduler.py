"""Every section of the scheduler's benchmark runs, small, and what must hold at any size does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scripts.benchmarks import scheduler


def section(name: str) -> dict[str, Any]:
    """The figures as a reader of the JSON has them."""
    told: dict[str, Any] = json.loads(json.dumps(scheduler.SECTIONS[name](quick=True)))
    return told


@pytest.mark.parametrize("name", ["estimators", "signals"])
def test_a_section_gives_figures_as_json(name: str) -> None:
    assert section(name)


def test_the_solution_is_exact_and_keeps_budget_and_capacities() -> None:
    told = section("solve")
    assert told["exactness"]["kkt_residual"] < told["exactness"]["goal_kkt_residual"]
    difference = told["exactness"]["relative_difference_of_cost_to_algorithm_3"]
    assert difference < told["exactness"]["goal_difference"]
    assert told["capacities"]["largest_relative_excess"] < told["capacities"]["goal_excess"]
    assert told["capacities"]["hosts_at_capacity"] > 100


def test_of_ephemeral_sources_the_largest_indices_are_chosen() -> None:
    for row in section("ephemeral")["selection"]:
        assert row["crawled"] >= 5
        assert row["least_chosen_over_most_left"] >= 1


def test_the_index_policy_keeps_its_budget_and_beats_the_optimal_rates() -> None:
    told = section("simulation")
    assert told["known_rates"]["greedy_index_crawls_over_budget"] == 1
    assert told["known_rates"]["greedy_index_over_optimum"] < 0.72
    assert told["learned_rates"]["greedy_index_crawls_over_budget"] == 1
