"""``freshet simulate``: what policies cost on a population of sources whose copies go stale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from freshet.crawler.commands import running
from freshet.crawler.commands.bars import progress_bars
from freshet.crawler.commands.console import fail, print_json
from freshet.crawler.commands.display import Cell, show_line, show_list
from freshet.crawler.commands.figures import amount, counted, percent, times
from freshet.scheduler.estimate import ESTIMATORS
from freshet.scheduler.evaluate import changes
from freshet.scheduler.evaluate.runners import OverBudget
from freshet.scheduler.evaluate.simulate import MEASURED_WHEN_LEARNING, Comparison, simulate
from freshet.scheduler.evaluate.world import surrogate
from freshet.scheduler.policy import PolicyError

DEFAULT_POLICIES = ("lambda_crawl", "greedy_index")


@dataclass(frozen=True, slots=True)
class PopulationOrder:
    """What the user wants simulated; ``bandwidth`` in the user's words, ``share`` as a number."""

    policies: Sequence[str]
    sources: int
    bandwidth: str
    share: float
    days: float
    seed: int
    learn: bool
    estimator: str
    process: str


def simulate_population(order: PopulationOrder, *, json: bool) -> None:
    """Simulate all policies in one world, and print what they cost."""
    if order.estimator not in ESTIMATORS:
        fail(f"--estimator {order.estimator}: accepted are {' and '.join(ESTIMATORS)}", 2)
    with running.told_in_one_line():
        comparison = _simulated(order)
    if json:
        print_json(asdict(comparison))
        return
    measured = min(order.days, MEASURED_WHEN_LEARNING) if order.learn else order.days
    learned = f", rates learned by {order.estimator}" if order.learn else ""
    show_line(
        f"{counted(order.sources, 'source')}, {order.bandwidth} of them crawled a day{learned}, "
        f"{amount(measured)} days measured, changes: {order.process}",
        "bold",
    )
    _show(comparison)


def _simulated(order: PopulationOrder) -> Comparison:
    try:
        changes.load(order.process)
        with progress_bars() as progress:
            return simulate(
                surrogate(order.sources, np.random.default_rng(order.seed)),
                order.policies or DEFAULT_POLICIES,
                bandwidth=order.share * order.sources,
                days=order.days,
                seed=order.seed,
                learn=order.learn,
                estimator=order.estimator,
                process=order.process,
                progress=progress,
            )
    except (PolicyError, changes.ProcessError) as error:
        fail(str(error), 2)
    except OverBudget as error:
        fail(str(error))


def _show(comparison: Comparison) -> None:
    optimum = comparison.lambda_crawl_optimum
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            amount(outcome.harmonic_cost),
            times(_ratio(outcome.harmonic_cost, optimum.harmonic_cost)),
            amount(outcome.binary_cost),
            times(_ratio(outcome.binary_cost, optimum.binary_cost)),
            outcome.crawls,
            percent(outcome.crawls / outcome.budget),
        )
        for name, outcome in comparison.policies.items()
    ]
    harmonic, binary = amount(optimum.harmonic_cost), amount(optimum.binary_cost)
    show_list(
        "Cost a source by policy (× is LambdaCrawl's optimum for known rates)",
        ("policy", "harmonic", "×", "binary", "×", "crawls", "of budget"),
        [*rows, ("LambdaCrawl's optimum", harmonic, times(1.0), binary, times(1.0), None, None)],
    )


def _ratio(cost: float, optimum: float) -> float | None:
    return cost / optimum if optimum else None
