"""`freshet simulate --ephemeral` tells what policies reap of items that fade."""

import json
from functools import partial

import pytest

from tests.console import as_json, freshet

SMALL = ("--ephemeral", "--sources", "300", "--days", "2", "--seed", "3")
simulated = partial(freshet, "simulate")


def test_json_has_the_figures_of_each_policy_asked_for_and_the_bound() -> None:
    asked = (*SMALL, "--bandwidth", "50%", "--policy", "greedy", "--policy", "whittle", "--json")
    result, same = simulated(*asked), simulated(*asked)
    assert result.exit_code == 0, result.output
    assert result.stdout == same.stdout
    told = json.loads(result.stdout)
    assert [told[key] for key in ("sources", "bandwidth", "days", "seed")] == [300, 0.5, 2.0, 3]
    assert list(told["policies"]) == ["greedy", "whittle"]
    whittle, greedy = told["policies"]["whittle"], told["policies"]["greedy"]
    assert greedy["expected"] < whittle["expected"] < told["bound"] * 1.01 < told["coming"]
    assert whittle["of_bound"] == pytest.approx(whittle["expected"] / told["bound"])
    assert (whittle["crawls"], whittle["budget"], whittle["spent"]) == (300, 300, 300)


def test_people_get_a_table_of_all_policies_under_the_bound() -> None:
    result = simulated(*SMALL)
    lines = result.stdout.splitlines()
    assert lines[0] == (
        "300 sources of items that fade, 0.2 crawls per source and day, decided each hour, "
        "2 days measured"
    )
    assert [line.split()[0] for line in lines[4:-1]] == [
        "whittle", "static", "greedy", "round_robin", "best",
    ]  # fmt: skip
    assert lines[-1].startswith("relaxed bound")
    assert simulated(*SMALL, "--days", "1").stdout.splitlines()[0].endswith(", 1 day measured")


def test_one_source_may_get_no_crawl_and_no_source_more_than_one_a_period() -> None:
    one = ("simulate", "--ephemeral", "--sources", "1", "--days", "1")
    seldom = as_json(*one, "--bandwidth", "20%")["policies"]["whittle"]
    assert (seldom["crawls"], seldom["items"], seldom["median_age"]) == (0, 0, None)
    always = as_json(*one, "--bandwidth", "24")["policies"]["whittle"]
    assert (always["crawls"], always["of_bound"]) == (24, pytest.approx(1.0))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--policy", "oracle"), "freshet: --policy: is 'oracle'; accepted are whittle, static"),
        (("--bandwidth", "0"), "freshet: --bandwidth 0: accepted are crawls per source and day"),
        (("--bandwidth", "25"), "freshet: --bandwidth: is 25; accepted are crawls per source"),
        (("--days", "0"), "freshet: --days 0: accepted is a number above 0"),
        (("--learn",), "freshet: --learn: has no effect with --ephemeral"),
        (("--estimator", "poisson_mle"), "freshet: --estimator: has no effect with --ephemeral"),
        (("--process", "drift"), "freshet: --process: has no effect with --ephemeral"),
        (("--budget", "9/day"), "freshet: --budget: has no effect with --ephemeral"),
        (("--web", "newsroom"), "freshet: --ephemeral: has no effect with --web"),
    ],
)
def test_what_is_not_accepted_is_told_in_one_line(arguments: tuple[str, ...], told: str) -> None:
    result = simulated("--ephemeral", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(told)
    assert result.stderr.count("\n") == 1
    assert not result.stdout
    assert simulated("--ephemeral", "--sources", "0").exit_code == 2
