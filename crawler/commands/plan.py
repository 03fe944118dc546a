"""``freshet plan``: how a crawl budget is best divided among pages, and what that gains."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer
from numpy.typing import NDArray

from freshet.config.settings import Daemon, Ephemeral, Politeness
from freshet.crawler.commands import running
from freshet.crawler.commands.budget import crawls_per_day
from freshet.crawler.commands.console import err, fail, print_json, say
from freshet.crawler.commands.options import DEFAULT_DB, ConfigFile, Json, read_settings
from freshet.crawler.commands.plan_ephemeral import Competing, EphemeralPlan, plan_with_ephemeral
from freshet.crawler.commands.plan_report import PlanReport, make_report, plan_columns
from freshet.crawler.commands.plan_summary import print_plan
from freshet.crawler.commands.sources import files, stored
from freshet.crawler.commands.sources.appearing import EphemeralPages
from freshet.crawler.commands.sources.columns import BadSources, Sources
from freshet.crawler.commands.sources.exchange import exchange_of, relative_delays
from freshet.crawler.commands.sources.spacing import Spacing
from freshet.crawler.commands.sources.stored import Learning
from freshet.scheduler.estimate import ESTIMATORS
from freshet.scheduler.planning import rate_plan
from freshet.scheduler.policy import PolicyError
from freshet.scheduler.sources import SourceTable

_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class PlanOrder:
    """What is to be planned; ``sources`` is None where the store ``db`` has them.

    The pages of a store weigh what they would weigh to a ``daemon`` of these settings.
    """

    db: Path
    sources: Path | None
    budget: float
    policy: str
    estimator: str
    spacing: Spacing
    daemon: Daemon
    ephemeral: Ephemeral
    output: Path | None
    limit: int


def plan_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    budget: Annotated[str, typer.Option(metavar="N/day|N/hour", help="Crawls that may be spent.")],
    db: Annotated[
        Path | None,
        typer.Option(
            "--db",
            metavar="FILE",
            help="The store whose pages are planned for.",
            show_default=str(DEFAULT_DB),
        ),
    ] = None,
    sources: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV or Parquet instead of a store: url, change_rate (per day) and, where "
            "wanted, importance, host, complete_observations.",
        ),
    ] = None,
    policy: Annotated[
        str, typer.Option(metavar="NAME[:OPTION=VALUE,…]", help="What divides the budget.")
    ] = "lambda_crawl",
    estimator: Annotated[
        str,
        typer.Option(
            metavar="NAME", help=f"Learns a store's change rates: {' or '.join(ESTIMATORS)}."
        ),
    ] = "empirical_bayes",
    delay: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.0,
            help="Between two exchanges with any host, whatever is known of it; 0: no limit.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write every page's plan there: .parquet or .csv."),
    ] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Pages and hosts to list, at most.")
    ] = 10,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Divide a crawl budget among pages, and show what each policy would make of it.

    The pages are those of a store, with change rates learned from their histories, or those
    of a file. No host gets more crawls than politeness allows. Costs are sums over the pages,
    weighted with importance: harmonic (each further missed change adds less) and binary
    (whether a page is stale). Rates are per day.
    """
    if sources is not None and db is not None:
        fail("--db and --sources exclude each other", 2)
    if estimator not in ESTIMATORS:
        fail(f"--estimator {estimator}: accepted are {' and '.join(ESTIMATORS)}", 2)
    settings, _ = read_settings(config, {"politeness.delay_s": delay})
    order = PlanOrder(
        db or DEFAULT_DB,
        sources,
        crawls_per_day(budget),
        policy,
        estimator,
        _spacing(settings.politeness, fixed=delay is not None),
        settings.daemon,
        settings.ephemeral,
        output,
        limit,
    )
    with running.told_in_one_line():
        try:
            report, replaced = _plan(order)
        except (BadSources, PolicyError) as error:
            fail(str(error), 2)
    _print(report, order, replaced=replaced, json=json)


def _spacing(politeness: Politeness, *, fixed: bool) -> Spacing:
    return Spacing(politeness.delay_s, politeness.connections_per_host, whatever_was_learnt=fixed)


def _plan(order: PlanOrder) -> tuple[PlanReport, bool]:
    """The report of a plan, and whether the file that it was written to replaced another."""
    if order.output is not None:
        _check_output(order.output, order.sources or order.db)
    with err.status("Reading the sources"):
        sources, delays_s, learning, fading = _read(order)
    with err.status(f"Planning for {len(sources):,} pages"):
        table = _table(sources, order.spacing.capacities(delays_s))
        found = _divided(order, sources, table, delays_s, fading)
        plan = found.plan
        report = make_report(
            str(order.sources or order.db),
            sources,
            table,
            found,
            policy=order.policy,
            limit=order.limit,
            learning=learning,
        )
    replaced = False
    if order.output is not None:
        with err.status("Writing the plan"):
            replaced = files.write_plan(order.output, plan_columns(sources, table, plan))
    return report, replaced


def _divided(
    order: PlanOrder,
    sources: Sources,
    table: SourceTable,
    delays_s: Sequence[float | None],
    fading: EphemeralPages | None,
) -> EphemeralPlan:
    """The plan, with ephemeral sources where there are any."""
    if fading is None or not len(fading):
        plan = rate_plan(order.policy, table, order.budget)
        return EphemeralPlan(plan, plan.price, ())
    cost = relative_delays(delays_s, order.spacing.delay_s)
    on = exchange_of(order.ephemeral, order.daemon)
    return plan_with_ephemeral(
        order.policy, table, order.budget, sources,
        Competing(fading, on, cost, time.time() / _DAY_S),
    )  # fmt: skip


def _table(sources: Sources, host_capacity: NDArray[np.float64]) -> SourceTable:
    return SourceTable.of(
        sources.importance,
        sources.change_rate,
        complete_observations=sources.complete_observations,
        host=sources.host,
        host_capacity=host_capacity,
    )


def _check_output(output: Path, source: Path) -> None:
    """Find out before the work that a plan cannot be written there."""
    files.check_writable(output)
    if output.exists() and source.exists() and output.samefile(source):
        fail(f"--output {output}: would replace what the plan is made from", 2)


def _read(
    order: PlanOrder,
) -> tuple[Sources, list[float | None], Learning | None, EphemeralPages | None]:
    """The sources, the delays of their hosts, how rates were learned, and what is ephemeral."""
    if order.sources is not None:
        sources = files.read_sources(order.sources)
        return sources, [None] * len(sources.hosts), None, None
    history = running.run(stored.read_history(order.db, order.daemon, order.ephemeral))
    sources, learning = stored.sources_of(history, order.estimator, order.daemon.rules)
    return sources, stored.lane_delays_s(history.pages), learning, history.ephemeral


def _print(report: PlanReport, order: PlanOrder, *, replaced: bool, json: bool) -> None:
    if json:
        print_json(report.as_json())
    else:
        print_plan(report)
    if order.output is not None:
        done = "replaced" if replaced else "written"
        say(f"{done}:", "green", str(order.output))
