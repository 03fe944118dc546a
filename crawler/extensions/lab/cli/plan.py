"""``freshet plan``: divide a crawl budget among pages, and show the gain."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

import typer

from freshet.config.settings import Politeness, Settings
from freshet.crawler.cli.options import ConfigFile, Json, read_settings
from freshet.crawler.extensions.lab import plan_sources
from freshet.crawler.extensions.lab.plan import (
    NO_HISTORY,
    Division,
    PlannedEphemeral,
    PlannedSource,
    PlanReport,
    make_report,
    plan_columns,
    plan_with_ephemeral,
)
from freshet.crawler.extensions.lab.plan_sources import EphemeralPages, PlanSources, RateLearning
from freshet.crawler.run import terminal
from freshet.crawler.run.capacities import capacities, exchange_of, relative_delays
from freshet.crawler.run.orders import crawls_per_day
from freshet.crawler.run.terminal import (
    Cell,
    amount,
    counted,
    err,
    every,
    fail,
    joined,
    on_changes,
    percent,
    print_json,
    relative,
    say,
    show_facts,
    show_line,
    show_list,
    span,
    times,
)
from freshet.scheduler import PolicyError
from freshet.scheduler.estimate import ESTIMATORS
from freshet.scheduler.planning import HARDLY, rate_plan
from freshet.scheduler.sources import SourceTable


# -- plan summary ------------------------------------------------------------
def print_plan(report: PlanReport) -> None:
    """Print the report for people."""
    if not report.sources:
        why = f"{NO_HISTORY}, no page of it has content and still exists"
        show_line(f"{report.read_from}: {why}")
        return
    crawls = f"{amount(report.budget)} crawls a day"
    pages = f"{counted(report.sources, 'page')} on {counted(report.hosts, 'host')}"
    show_line(f"{report.read_from}: {crawls} for {pages}, by {report.policy}", "bold")
    _print_outcome(report)
    _print_policies(report)
    show_list(
        "Ephemeral sources (reward: 1 is an item when it appears)",
        ("source", "items/day", "half-life", "index", "next crawl", "due", "reward", "a day"),
        [_ephemeral(each) for each in report.ephemeral],
    )
    _print_split(report)
    _print_sources(report)


def _print_outcome(report: PlanReport) -> None:
    own = report.policies[report.policy]
    show_facts(
        "Plan",
        {
            "spent": _spent(report),
            "price": None
            if report.price is None
            else f"{amount(report.price)}: the saving by one more crawl a day",
            "fresh": None
            if own.fresh is None
            else f"{percent(own.fresh)} at a random moment, pages weighted with their importance",
            "due": _due_in_general(report),
            "change rates": _learned(report.learning),
            "left out": f"{counted(report.learning.gone, 'page')}, gone at the last visit"
            if report.learning is not None and report.learning.gone
            else None,
        },
    )


def _spent(report: PlanReport) -> str:
    spent = f"{amount(report.policies[report.policy].crawl_rate)} crawls a day"
    if not report.left_over > report.budget * 1e-9:
        return f"{spent}, all of the budget"
    why = "no page can use them"
    if report.price:
        why = "crawls answer every k-th change, and no further whole step fits"
    elif report.capped_hosts:
        why = "the hosts that could use them are at their politeness limit"
    return f"{spent}; {amount(report.left_over)} are left over, for {why}"


def _due_in_general(report: PlanReport) -> str | None:
    days = report.interval_days
    if days is None:
        return "no page is ever crawled"
    words = f"half of the pages {every(days.median)} or more often"
    if days.tenth < days.ninetieth:
        words += f"; a tenth {every(days.tenth)}, nine tenths {every(days.ninetieth)}"
    return words


def _learned(learning: RateLearning | None) -> str | None:
    if learning is None:
        return None
    if not learning.intervals:
        return f"{NO_HISTORY}: no page was captured twice, so all get the same rate"
    source = f"{learning.estimator} from {counted(learning.intervals, 'interval')} between captures"
    if not learning.without_evidence:
        return source
    others = counted(learning.without_evidence, "page")
    return f"{source}; {others} without one: the others' average"


def _print_policies(report: PlanReport) -> None:
    show_list(
        "Expected cost by policy (× is that of lambda_crawl)",
        ("policy", "harmonic", "×", "binary", "×", "fresh"),
        [
            (
                name,
                _cost(cost.harmonic_cost),
                _times(cost.harmonic_ratio, cost.harmonic_cost),
                _cost(cost.binary_cost),
                _times(cost.binary_ratio, cost.binary_cost),
                None if cost.fresh is None else percent(cost.fresh),
            )
            for name, cost in report.policies.items()
        ],
    )


def _ephemeral(source: PlannedEphemeral) -> tuple[Cell, ...]:
    half_life = span(source.half_life_hours * 3_600)
    if source.learnt_from is not None:
        half_life += " (learnt)"
    known = (source.url, amount(source.arrival_rate), half_life, amount(source.index))
    at, reward, per_day = source.next_crawl_at, source.expected_reward, source.reward_per_day
    if at is None or reward is None or per_day is None:
        return (*known, "as any page", None, None, None)
    due = every(source.interval_days)
    return (*known, relative(at, time.time()), due, amount(reward), amount(per_day))


def _print_split(report: PlanReport) -> None:
    if report.complete_observations.sources:
        classes = {
            "incomplete": report.incomplete_observations,
            "complete (every change is signalled)": report.complete_observations,
        }
        show_list(
            "Split of the budget",
            ("observations", "pages", "crawls/day", "share"),
            [
                (name, of.sources, amount(of.crawl_rate), percent(of.crawl_rate / report.budget))
                for name, of in classes.items()
            ],
        )
    capped = len(report.capped_hosts)
    rows: list[tuple[Cell, ...]] = []
    for host in report.by_host:
        allowed = None if host.capacity is None else amount(host.capacity)
        reached = joined((allowed, "reached" if host.capped else None))
        rows.append((host.host, host.sources, amount(host.crawl_rate), reached))
    show_list(
        "Hosts with the most crawls"
        + (f" ({capped:,} of {report.hosts:,} at their politeness limit)" if capped else ""),
        ("host", "pages", "crawls/day", "allowed"),
        rows,
    )


def _print_sources(report: PlanReport) -> None:
    header = ("page", "importance", "changes/day", "due")
    show_list("Most crawled", header, [_source(each, report.crawling) for each in report.top])
    never, hardly = counted(report.never_crawled, "page"), counted(report.hardly_crawled, "page")
    often = f"{hardly} with {HARDLY:g} changes or more from one crawl to the next"
    starved = joined(
        (
            f"{never} never crawled" if report.never_crawled else None,
            often if report.hardly_crawled else None,
        )
    )
    rows = [_source(each, report.crawling) for each in report.starved]
    show_list(f"Starved: {starved}", header, rows)
    if report.nothing_to_gain:
        idle = counted(report.nothing_to_gain, "page")
        show_line(f"{idle} not crawled, because they have no importance or no changes", "dim")


def _source(source: PlannedSource, crawling: str) -> tuple[Cell, ...]:
    answers = source.on_signals and source.crawl_rate > 0
    due = on_changes(source.crawl_probability, crawling) if answers else every(source.interval_days)
    return source.url, amount(source.importance), amount(source.change_rate), due


def _cost(value: float | None) -> str:
    return "∞" if value is None else amount(value)


def _times(ratio: float | None, cost: float | None) -> str | None:
    """Format a ratio; it is undefined if LambdaCrawl costs nothing."""
    return None if ratio is None and cost is not None else times(ratio)


@dataclass(frozen=True, slots=True)
class _Read:
    """Pages to plan for; of a store, with what it learnt of hosts, of changes and of items."""

    sources: PlanSources
    delays_s: Sequence[float | None]
    learning: RateLearning | None = None
    ephemeral: EphemeralPages | None = None

    @classmethod
    def of(cls, file: Path | None, store: Path, estimator: str, settings: Settings) -> Self:
        """Return the pages of a file, if one is given, or else those of a store."""
        if file is None:
            return cls(*plan_sources.read_store(store, estimator, settings))
        found = plan_sources.read_sources(file)
        return cls(found, [None] * len(found.hosts))

    def table(self, polite: Politeness, delay: float | None) -> SourceTable:
        """Return the pages as policies see them; a given delay is that of every host."""
        return SourceTable.of(
            self.sources.importance,
            self.sources.change_rate,
            complete_observations=self.sources.complete_observations,
            host=self.sources.host,
            host_capacity=capacities(
                # A given delay holds whatever was learnt of a host.
                self.delays_s if delay is None else [None] * len(self.delays_s),
                polite.delay_s,
                polite.connections_per_host,
            ),
        )

    def division(
        self, policy: str, table: SourceTable, per_day: float, settings: Settings
    ) -> Division:
        """Divide a budget among these pages, and with them among the ephemeral ones."""
        if self.ephemeral is None or not len(self.ephemeral):
            plan = rate_plan(policy, table, per_day)
            return plan, plan.price, ()
        return plan_with_ephemeral(
            policy,
            table,
            per_day,
            self.sources,
            pages=self.ephemeral,
            exchange=exchange_of(settings.ephemeral, settings.daemon),
            cost=relative_delays(self.delays_s, settings.politeness.delay_s),
            day=time.time() / 86_400.0,
        )


def plan_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    budget: Annotated[
        str, typer.Option(metavar="N/day|N/hour", help="The budget of crawls (500/day, 20/hour).")
    ],
    db: Annotated[
        Path | None,
        typer.Option(
            "--db",
            metavar="FILE",
            help="The store whose pages are planned for.",
            show_default="FRESHET_DB, or db in freshet.toml",
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
        str, typer.Option(metavar="NAME[:OPTIONS]", help="The policy that divides the budget.")
    ] = "lambda_crawl",
    estimator: Annotated[
        str,
        typer.Option(
            metavar="NAME", help=f"Estimator of a store's change rates: {' or '.join(ESTIMATORS)}."
        ),
    ] = "empirical_bayes",
    delay: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", min=0.0, help="Seconds between two crawls of any host; 0: no limit."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write every page's plan there: .parquet or .csv."),
    ] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="List at most N pages and hosts.")
    ] = 10,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Divide a budget among pages, and compare policies.

    The pages are those of a store, with change rates learned from their histories, or those of a
    file. No host gets more crawls than politeness allows. Costs are sums over the pages, weighted
    with importance: harmonic (each further missed change adds less) and binary (stale or not).
    Rates are per day.
    """
    if sources is not None and db is not None:
        fail("give --db or --sources, not both", 2)
    if estimator not in ESTIMATORS:
        fail(f"--estimator {estimator}: accepted are {' and '.join(ESTIMATORS)}", 2)
    settings, _ = read_settings(config, {"politeness.delay_s": delay})
    store, per_day = db or settings.db, crawls_per_day(budget)
    origin = sources or store
    with terminal.told_in_one_line(PolicyError):
        if output is not None:
            _check_output(output, origin)
        with err.status("Reading the sources"):
            read = _Read.of(sources, store, estimator, settings)
        found, learning = read.sources, read.learning
        with err.status(f"Planning for {counted(len(found), 'page')}"):
            table = read.table(settings.politeness, delay)
            division = read.division(policy, table, per_day, settings)
            report = make_report(
                str(origin), found, table, division, policy=policy, limit=limit, learning=learning
            )
        word = "" if output is None else _written(output, found, table, division)
    if json:
        print_json(report.as_json())
    else:
        print_plan(report)
    if output is not None:
        say(word, "green", str(output))


def _written(output: Path, found: PlanSources, table: SourceTable, division: Division) -> str:
    """Write every page's plan, and return whether it replaced a file, in a word."""
    with err.status("Writing the plan"):
        columns = plan_columns(found, table, division[0])
        return "replaced:" if plan_sources.write_plan(output, columns) else "written:"


def _check_output(output: Path, source: Path) -> None:
    """Check before the work that a plan can be written there."""
    plan_sources.check_writable(output)
    if output.exists() and source.exists() and output.samefile(source):
        fail(f"--output {output}: would replace the plan's own input; name another file", 2)
