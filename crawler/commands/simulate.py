"""``freshet simulate``: what policies cost on a surrogate population, with the same budget."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from math import isfinite
from typing import Annotated

import numpy as np
import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from crawler.commands import running
from crawler.commands.console import err, fail, print_json
from crawler.commands.display import Cell, show_line, show_list
from crawler.commands.figures import amount, counted, percent, times
from crawler.commands.options import Json
from scheduler.estimators.by_name import ESTIMATORS
from scheduler.policy import PolicyError
from scheduler.simulate import changes
from scheduler.simulate.experiment import (
    MEASURED_WHEN_LEARNING,
    Comparison,
    PolicyProgress,
    simulate,
)
from scheduler.simulate.populations import surrogate
from scheduler.simulate.rate_runner import OverBudget

_DEFAULT_POLICIES = ("lambda_crawl", "greedy_index")


def simulate_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:OPTION=VALUE,…]",
            help="What is simulated; may be repeated "
            f"(default: {' and '.join(_DEFAULT_POLICIES)}).",
        ),
    ] = None,
    sources: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many sources there are.")
    ] = 20_000,
    bandwidth: Annotated[
        str, typer.Option(metavar="SHARE", help="Crawls per source and day: 0.2 or 20%.")
    ] = "20%",
    days: Annotated[float, typer.Option(metavar="D", help="How many days are simulated.")] = 21.0,
    seed: Annotated[
        int, typer.Option(metavar="S", min=0, help="Decides the sources and all chance.")
    ] = 1,
    learn: Annotated[
        bool,
        typer.Option(
            "--learn",
            help="Change rates are unknown at the start; the last "
            f"{MEASURED_WHEN_LEARNING:.0f} days are measured.",
        ),
    ] = False,
    estimator: Annotated[
        str, typer.Option(metavar="NAME", help=f"What learns: {' or '.join(ESTIMATORS)}.")
    ] = "empirical_bayes",
    process: Annotated[
        str,
        typer.Option(
            metavar="NAME[:OPTION=VALUE,…]",
            help="How sources change: poisson, bursts, drift or together.",
        ),
    ] = "poisson",
    json: Json = False,
) -> None:
    """Simulate policies on the surrogate population, all in the same world.

    The population is random, fitted to what the LambdaCrawl paper prints of its 18.5 million
    URLs. Costs are means over the sources, weighted with importance: harmonic (each further
    missed change adds less) and binary (whether a copy is stale).
    """
    share = _share(bandwidth)
    if not isfinite(days) or days <= 0:
        fail(f"--days {days:g}: accepted is a number above 0", 2)
    if estimator not in ESTIMATORS:
        fail(f"--estimator {estimator}: accepted are {' and '.join(ESTIMATORS)}", 2)
    with running.told_in_one_line():
        try:
            changes.load(process)
            with _watching() as progress:
                comparison = simulate(
                    surrogate(sources, np.random.default_rng(seed)),
                    policy or _DEFAULT_POLICIES,
                    bandwidth=share * sources,
                    days=days,
                    seed=seed,
                    learn=learn,
                    estimator=estimator,
                    process=process,
                    progress=progress,
                )
        except (PolicyError, changes.ProcessError) as error:
            fail(str(error), 2)
        except OverBudget as error:
            fail(str(error))
    if json:
        print_json(asdict(comparison))
        return
    measured = min(days, MEASURED_WHEN_LEARNING) if learn else days
    learned = f", rates learned by {estimator}" if learn else ""
    show_line(
        f"{counted(sources, 'source')}, {bandwidth} of them crawled a day{learned}, "
        f"{amount(measured)} days measured, changes: {process}",
        "bold",
    )
    _show(comparison)


def _share(text: str) -> float:
    """Crawls per source and day; ends the program (wrong usage) if the text is none."""
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = 0.0
    if not isfinite(number) or number <= 0:
        fail(
            f"--bandwidth {text}: accepted are crawls per source and day above 0, "
            "such as 0.2 or 20%",
            2,
        )
    return number


@contextmanager
def _watching() -> Iterator[PolicyProgress | None]:
    """A bar for each policy, on a terminal only."""
    if not err.is_terminal:
        yield None
        return
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=err, transient=True) as display:
        bars: dict[str, TaskID] = {}

        def tell(policy: str, done: float) -> None:
            if policy not in bars:
                bars[policy] = display.add_task(escape(policy), total=1.0)
            display.update(bars[policy], completed=done)

        yield tell


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
