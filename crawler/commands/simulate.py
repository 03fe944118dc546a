"""``freshet simulate``: policies or budgets against each other, in one of three kinds of world.

What policies cost on a population whose copies go stale
(:mod:`freshet.crawler.commands.simulating_population`), what they reap of items that fade
(``--ephemeral``, :mod:`crawler.commands.simulating_ephemeral`), and what budgets give the whole
daemon (``--web``, :mod:`freshet.crawler.commands.simulating_web`).
"""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from freshet.crawler.commands.console import fail
from freshet.crawler.commands.options import ConfigFile, Json
from freshet.crawler.commands.simulating_ephemeral import EphemeralOrder, simulate_ephemeral
from freshet.crawler.commands.simulating_population import (
    DEFAULT_POLICIES,
    PopulationOrder,
    simulate_population,
)
from freshet.crawler.commands.simulating_web import WebOrder, simulate_web
from freshet.scheduler.estimate import ESTIMATORS
from freshet.scheduler.evaluate.news import CONTENDERS
from freshet.scheduler.evaluate.simulate import MEASURED_WHEN_LEARNING

#: What means something for some kinds of simulation only: to those without either of the two
#: options, to those of items that fade, to those of the daemon.
_OF_ONE_KIND = {
    "": ("sources", "bandwidth", "learn", "estimator", "process"),
    "ephemeral": ("sources", "bandwidth", "ephemeral"),
    "web": ("web", "budget", "db", "config"),
}


def simulate_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    context: typer.Context,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:OPTION=VALUE,…]",
            help="What is simulated; may be repeated "
            f"(default: {' and '.join(DEFAULT_POLICIES)}; with --ephemeral "
            f"{', '.join(CONTENDERS)}; with --web that of the settings).",
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
    ephemeral: Annotated[
        bool,
        typer.Option("--ephemeral", help="Sources of items that fade within hours or days."),
    ] = False,
    web: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[:OPTION=VALUE,…]",
            help="Run the whole daemon on a synthetic web instead: synthetic "
            "(:hosts=4,pages=40), showcase, endless (:pages=60) or newsroom (:items=48,docs=40).",
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

    All policies decide in the same world. The population is fitted to what the LambdaCrawl paper
    prints of its 18.5 million URLs. Costs are means over the sources, weighted with importance:
    harmonic (each further missed change adds less) and binary (whether a copy is stale).

    With --ephemeral sources publish items that people soon forget, as many as feeds of news and
    blogs do; every hour a policy chooses whom to crawl, once at most, and reaps what its items are
    still worth.

    With --web the daemon starts from nothing and runs in virtual time: discovery, politeness,
    change detection and store are the real ones, under the settings of --config. What is printed
    is how fresh its copies truly were over the last half of the days (30 at most), and what its
    audits said of it, for each budget and policy; of a newsroom also what its new pages were
    worth when they were first fetched.
    """
    kind = "web" if web is not None else "ephemeral" if ephemeral else ""
    _refuse_what_means_nothing(context, kind)
    if not isfinite(days) or days <= 0:
        fail(f"--days {days:g}: accepted is a number above 0", 2)
    named = policy or []
    if web is not None:
        simulate_web(WebOrder(web, budget or [], named, days, seed, config, db), json=json)
        return
    share = _share(bandwidth)
    if ephemeral:
        of_news = EphemeralOrder(named, sources, share, days, seed)
        simulate_ephemeral(of_news, json=json)
        return
    order = PopulationOrder(named, sources, bandwidth, share, days, seed, learn, estimator, process)
    simulate_population(order, json=json)


def _refuse_what_means_nothing(context: typer.Context, kind: str) -> None:
    """End the program (wrong usage) at an option of another kind of simulation."""
    for name in dict.fromkeys(name for names in _OF_ONE_KIND.values() for name in names):
        source = context.get_parameter_source(name)
        if name in _OF_ONE_KIND[kind] or source is None or source.name != "COMMANDLINE":
            continue
        fail(f"--{name}: means nothing {f'with --{kind}' if kind else 'without --web'}", 2)


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
