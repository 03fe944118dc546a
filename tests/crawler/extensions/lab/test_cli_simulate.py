"""`freshet simulate` sets policies against each other."""

from functools import partial

import pytest

from tests.console import as_json, freshet

SMALL = ("--sources", "500", "--days", "2", "--seed", "3")
simulated = partial(freshet, "simulate")


def test_json_is_one_object_with_the_costs_of_each_policy_as_it_was_named() -> None:
    told = as_json(
        "simulate", *SMALL, "--bandwidth", "0.2", "--policy", "greedy_index",
        "--policy", "uniform:crawling=periodic",
    )  # fmt: skip
    assert set(told) == {"policies", "lambda_crawl_optimum"}
    assert list(told["policies"]) == ["greedy_index", "uniform:crawling=periodic"]
    for outcome in told["policies"].values():
        assert set(outcome) == {"harmonic_cost", "binary_cost", "crawls", "budget"}
    assert set(told["lambda_crawl_optimum"]) == {"harmonic_cost", "binary_cost"}
    assert told["policies"]["greedy_index"]["crawls"] == 200
    assert told["policies"]["greedy_index"]["budget"] == 200


def test_a_share_in_per_cent_is_the_same_budget() -> None:
    share, per_cent = (
        simulated(*SMALL, "--policy", "uniform", "--bandwidth", text, "--json").stdout
        for text in ("0.2", "20%")
    )
    assert share == per_cent


def test_people_get_a_table_with_ratios_to_the_optimum() -> None:
    result = simulated(*SMALL)
    lines = result.stdout.splitlines()
    assert lines[0].startswith("500 sources, 20% of them crawled a day, 2 days measured")
    assert any(line.startswith("greedy_index") and "0." in line for line in lines)
    assert lines[-1].split() == ["LambdaCrawl's", "optimum", *lines[-1].split()[2:]]
    assert "1.00" in lines[-1]


def test_learning_measures_the_last_week() -> None:
    asked = ("--sources", "300", "--days", "9", "--learn", "--policy", "greedy_index")
    assert "rates learned by empirical_bayes, 7 days measured" in simulated(*asked).stdout
    told = as_json("simulate", *asked)
    assert told["policies"]["greedy_index"]["budget"] == pytest.approx(7 * 60)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policy", "nobody"), "freshet: policy: 'nobody' is not known; accepted are"),
        (("--policy", "uniform:pace=2"), "freshet: policy uniform: option 'pace=2'"),
        (("--bandwidth", "lots"), "freshet: --bandwidth lots: accepted are crawls per source"),
        (("--bandwidth", "0"), "freshet: --bandwidth 0: accepted"),
        (("--days", "-1"), "freshet: --days -1: accepted is a number above 0"),
        (("--days", "nan"), "freshet: --days nan: accepted"),
        (("--estimator", "crystal_ball"), "freshet: --estimator crystal_ball: accepted are"),
        (("--process", "bursts:mean_size=0"), "freshet: process bursts: mean_size: is 0.0"),
        (("--process", "chaos"), "freshet: process: is 'chaos'; accepted are poisson"),
    ],
)
def test_what_is_not_accepted_is_told_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = simulated(*SMALL, *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1
    assert not result.stdout


def test_fewer_than_one_source_is_wrong_usage() -> None:
    assert simulated("--sources", "0").exit_code == 2
