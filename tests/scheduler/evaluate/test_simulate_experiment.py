"""Small worlds, judged as large ones are."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from freshet.scheduler import PolicyError
from freshet.scheduler.evaluate.changes import poisson
from freshet.scheduler.evaluate.runners import OverBudget
from freshet.scheduler.evaluate.simulate import Experiment, lambda_crawl_optimum, simulate
from freshet.scheduler.evaluate.world import World, surrogate
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl
from freshet.scheduler.policies.uniform import UniformCrawl
from freshet.scheduler.policy import CrawlPlan
from freshet.scheduler.sources import SourceTable
from scripts.reproductions.relaxed_bound import relaxed_bound

N, BUDGET = 1_000, 200.0
KINDS = ["lambda_crawl", "greedy_index", "nutch_adaptive"]


@pytest.fixture(scope="module")
def population() -> SourceTable:
    return surrogate(N, np.random.default_rng(1))


@dataclass(frozen=True, slots=True)
class Spendthrift:
    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        plan = UniformCrawl().rates(table, budget)
        return replace(plan, crawl_rate=2 * plan.crawl_rate)


def test_a_plan_costs_what_its_closed_form_says(population: SourceTable) -> None:
    found = simulate(population, ["lambda_crawl"], bandwidth=BUDGET, days=30.0, seed=1)
    ratio = found.policies["lambda_crawl"].harmonic_cost / found.lambda_crawl_optimum.harmonic_cost
    assert ratio == pytest.approx(1.0, abs=0.03)


def test_the_index_pays_less_than_seven_tenths_and_no_more_than_the_bound(
    population: SourceTable,
) -> None:
    found = simulate(population, ["greedy_index"], bandwidth=BUDGET, days=14.0, seed=1)
    index = found.policies["greedy_index"]
    assert index.harmonic_cost < 0.70 * found.lambda_crawl_optimum.harmonic_cost
    assert index.harmonic_cost < 1.02 * relaxed_bound(population, BUDGET) / N
    assert index.crawls == index.budget == 14 * BUDGET


@pytest.mark.long
def test_costs_are_stationary_from_the_first_measured_day_on(population: SourceTable) -> None:
    """A week costs as much a day as three weeks: no policy starts with fresh copies."""
    week, weeks = (
        simulate(population, KINDS, bandwidth=BUDGET, days=days, seed=1).policies
        for days in (7.0, 21.0)
    )
    for name in KINDS:
        assert week[name].harmonic_cost == pytest.approx(weeks[name].harmonic_cost, rel=0.06)


@pytest.mark.long
def test_the_same_seed_is_the_same_result_and_another_seed_another(population: SourceTable) -> None:
    one, same, other = (
        simulate(population, KINDS, bandwidth=BUDGET, days=3.0, seed=seed) for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


@pytest.mark.long
def test_policies_do_not_disturb_one_another(population: SourceTable) -> None:
    together = simulate(population, KINDS, bandwidth=BUDGET, days=3.0, seed=1)
    alone = simulate(population, ["nutch_adaptive"], bandwidth=BUDGET, days=3.0, seed=1)
    assert together.policies["nutch_adaptive"] == alone.policies["nutch_adaptive"]


@pytest.mark.parametrize("estimator", ["empirical_bayes", "poisson_mle"])
def test_learned_rates_come_near_known_ones(population: SourceTable, estimator: str) -> None:
    found = simulate(
        population, ["greedy_index"], bandwidth=BUDGET, days=14.0, seed=1, learn=True,
        estimator=estimator,
    )  # fmt: skip
    index = found.policies["greedy_index"]
    assert index.harmonic_cost < 0.80 * found.lambda_crawl_optimum.harmonic_cost
    assert index.budget == 7 * BUDGET


@pytest.mark.parametrize("name", [*KINDS, "lambda_crawl_approx", "greedy_index_binary"])
def test_the_learner_gets_observations_only(
    population: SourceTable, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the judge and the drawing of changes sees NaN for the true rates; it still runs."""
    blinded: list[World] = []
    blind = World.blind

    def noted(world: World) -> World:
        blinded.append(blind(world))
        return blinded[-1]

    monkeypatch.setattr(World, "blind", noted)
    found = simulate(population, [name], bandwidth=BUDGET, days=8.0, seed=1, learn=True)
    (world,) = blinded
    assert np.isnan(world.table.change_rate).all()
    assert np.isfinite(found.policies[name].harmonic_cost)


def test_wherever_the_true_rates_are_nan_the_crawls_are_the_same(population: SourceTable) -> None:
    """Not a number of the learning run depends on the true rates but through the changes."""
    experiment = Experiment(
        population, poisson, bandwidth=BUDGET, days=8.0, seed=1, estimator="empirical_bayes"
    )
    truth = experiment._world
    for policy in (LambdaCrawl(), GreedyIndex()):
        experiment._world = truth
        _, seen = experiment._run(policy, lambda _: None)
        unknown = replace(truth.table, change_rate=np.full(N, np.nan))
        experiment._world = replace(truth, table=unknown)
        _, blind = experiment._run(policy, lambda _: None)
        assert seen.source.tolist() == blind.source.tolist()
        assert seen.at.tolist() == blind.at.tolist()


@pytest.mark.parametrize("process", ["bursts", "drift:sigma=0.5", "together:share=0.9"])
def test_other_processes_are_judged_by_what_came_about(
    population: SourceTable, process: str
) -> None:
    found = simulate(
        population, ["lambda_crawl", "greedy_index"], bandwidth=BUDGET, days=10.0, seed=1,
        process=process,
    )  # fmt: skip
    costs = {name: outcome.harmonic_cost for name, outcome in found.policies.items()}
    assert costs["greedy_index"] < 0.85 * costs["lambda_crawl"]


def test_a_small_budget_is_judged_with_changes_that_reach_back_as_far_as_its_copies(
    population: SourceTable,
) -> None:
    """A round takes a hundred days here. Changes of the last sixty alone cost 3 % less."""
    costs = [
        simulate(
            population, ["uniform:crawling=periodic"], bandwidth=0.01 * N, days=2.0, seed=1,
            process=process,
        ).policies["uniform:crawling=periodic"].harmonic_cost
        for process in ("poisson", "together")
    ]  # fmt: skip
    assert costs[1] == pytest.approx(costs[0], rel=0.02)


def test_a_policy_that_crawls_more_than_its_budget_is_caught_by_name(
    population: SourceTable,
) -> None:
    experiment = Experiment(population, poisson, bandwidth=BUDGET, days=1.0, seed=1)
    with pytest.raises(OverBudget, match="policy generous: plans 400 crawls a day; its budget"):
        experiment.outcome("generous", Spendthrift())


def test_progress_goes_from_0_to_1(population: SourceTable) -> None:
    told: list[tuple[str, float]] = []
    simulate(
        population, ["greedy_index"], bandwidth=BUDGET, days=2.0, seed=1,
        progress=lambda name, done: told.append((name, done)),
    )  # fmt: skip
    assert {name for name, _ in told} == {"greedy_index"}
    shares = [done for _, done in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_the_optimum_is_that_of_the_closed_form(population: SourceTable) -> None:
    assert lambda_crawl_optimum(population, BUDGET).harmonic_cost == pytest.approx(300, rel=0.15)


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"bandwidth": 0.0}, "bandwidth: is 0.0"), ({"days": float("nan")}, "days: is nan"),
     ({"seed": -1}, "seed"), ({"estimator": "oracle", "learn": True}, "estimator: is 'oracle'"),
     ({"process": "chaos"}, "process: is 'chaos'")],
)  # fmt: skip
def test_bad_arguments_are_refused_by_name(
    population: SourceTable, changed: dict[str, object], message: str
) -> None:
    given = {"bandwidth": 1.0, "days": 1.0, "seed": 1} | changed
    with pytest.raises(ValueError, match=message):
        simulate(population, ["uniform"], **given)  # type: ignore[arg-type]


def test_unknown_policies_and_unsimulated_tables_are_refused(population: SourceTable) -> None:
    with pytest.raises(PolicyError, match="policy: 'psychic' is not known"):
        simulate(population, ["psychic"], bandwidth=1.0, days=1.0, seed=1)
    with pytest.raises(ValueError, match="table: has no sources"):
        simulate(SourceTable.of([], []), ["uniform"], bandwidth=1.0, days=1.0, seed=1)
    noisy = SourceTable.of([1.0], [1.0], signal_rate=[1.0])
    with pytest.raises(ValueError, match="signal_rate: row 0 has noisy signals"):
        simulate(noisy, ["uniform"], bandwidth=1.0, days=1.0, seed=1)
    limited = SourceTable.of([1.0], [1.0], host=[0], host_capacity=[2.0])
    with pytest.raises(ValueError, match=r"host_capacity: row 0 is 2\.0"):
        simulate(limited, ["uniform"], bandwidth=1.0, days=1.0, seed=1)
