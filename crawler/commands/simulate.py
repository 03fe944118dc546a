"""``freshet simulate``: what policies cost on a surrogate population, with the same budget.

With ``--web`` it is what budgets give the whole daemon (:mod:`crawler.commands.simulating_web`).
"""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from crawler.commands import running
from crawler.commands.bars import progress_bars
from crawler.commands.console import fail, print_json
from crawler.commands.display import Cell, show_line, show_list
from crawler.commands.figures import amount, counted, percent, times
from crawler.commands.options import ConfigFile, Json
from crawler.commands.simulating_web import WebOrder, simulate_web
from scheduler.estimators.by_name import ESTIMATORS
from scheduler.policy import PolicyError
from scheduler.simulate import changes
from scheduler.simulate.experiment import (
    MEASURED_WHEN_LEARNING,
    Comparison,
    simulate,
)
from scheduler.simulate.populations import surrogate
from scheduler.simulate.rate_runner import OverBudget

_DEFAULT_POLICIES = ("lambda_crawl", "greedy_index")


#: What means something for one kind of simulation only.
_OF_A_POPULATION = ("sources", "bandwidth", "learn", "estimator", "process")
_OF_A_WEB = ("budget", "db", "config")


def simulate_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    context: typer.Context,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:OPTION=VALUE,…]",
            help="What is simulated; may be repeated "
            f"(default: {' and '.join(_DEFAULT_POLICIES)}; with --web that of the settings).",
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
    web: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[:OPTION=VALUE,…]",
            help="Run the whole daemon on a synthetic web instead: synthetic "
            "(:hosts=4,pages=40), showcase or endless (:pages=60).",
        ),
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N/day|N/hour", help="With --web: requests that may be sent; may be repeated."
        ),
    ] = None,
    db: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --web: keep the store in this new file."),
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Simulate policies on a random population, or with --web the daemon on a synthetic web.

    With --web the daemon starts from nothing and runs in virtual time: discovery, politeness,
    change detection and store are the real ones, under the settings of --config. What is printed
    is how fresh its copies truly were over the last half of the days (30 at most), and what its
    audits said of it, for each budget and policy.

    Otherwise all policies decide in the same world. The population is fitted to what the
    LambdaCrawl paper prints of its 18.5 million URLs. Costs are means over the sources, weighted
    with importance: harmonic (each further missed change adds less) and binary (whether a copy is
    stale).
    """
    _refuse_what_means_nothing(context, web)
    if not isfinite(days) or days <= 0:
        fail(f"--days {days:g}: accepted is a number above 0", 2)
    if web is not None:
        simulate_web(WebOrder(web, budget or [], policy or [], days, seed, config, db), json=json)
        return
    share = _share(bandwidth)
    if estimator not in ESTIMATORS:
        fail(f"--estimator {estimator}: accepted are {' and '.join(ESTIMATORS)}", 2)
    with running.told_in_one_line():
        try:
            changes.load(process)
            with progress_bars() as progress:
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


def _refuse_what_means_nothing(context: typer.Context, web: str | None) -> None:
    """End the program (wrong usage) at an option of the other kind of simulation."""
    for name in _OF_A_POPULATION if web is not None else _OF_A_WEB:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            fail(f"--{name}: means nothing with{'out' * (web is None)} --web", 2)


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
