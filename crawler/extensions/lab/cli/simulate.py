"""``freshet simulate``: what policies cost or budgets give.

Policies run on a population whose copies go stale or, with ``--ephemeral``, whose items fade; the
whole daemon runs on a synthetic web with ``--web``.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer

from freshet.config.settings import Settings
from freshet.crawler.cli.options import ConfigFile, Json, read_settings
from freshet.crawler.extensions.lab.daemon_trial import HALF_LIFE_S, Plan, Rehearsal, rehearse
from freshet.crawler.extensions.lab.synthetic_web import web as webs
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb, WebSpec
from freshet.crawler.run import terminal
from freshet.crawler.run.orders import crawls_per_day
from freshet.crawler.run.terminal import (
    Cell,
    amount,
    counted,
    fail,
    lasting,
    percent,
    print_json,
    progress_bars,
    show_line,
    show_list,
    times,
)
from freshet.scheduler import PolicyError
from freshet.scheduler.estimate import ESTIMATORS
from freshet.scheduler.evaluate import changes, news
from freshet.scheduler.evaluate.news import (
    CONTENDERS,
    ITEMS,
    PERIODS_A_DAY,
    budget_a_period,
    news_sources,
    reap,
)
from freshet.scheduler.evaluate.runners import OverBudget
from freshet.scheduler.evaluate.simulate import MEASURED_WHEN_LEARNING, SimulationResult, simulate
from freshet.scheduler.evaluate.world import surrogate
from freshet.scheduler.policy import given

# -- simulating population ---------------------------------------------------
DEFAULT_POLICIES = ("lambda_crawl", "greedy_index")


def _compared(
    policies: Sequence[str], number: int, bandwidth: float, days: float, *,
    seed: int, learn: bool, estimator: str, process: str,
) -> SimulationResult:  # fmt: skip
    """Let all policies crawl sources whose copies go stale; exit at a wrong name.

    ``number`` is that of the sources; ``bandwidth`` is in crawls per source and day.
    """
    if estimator not in ESTIMATORS:
        fail(f"--estimator {estimator}: accepted are {' and '.join(ESTIMATORS)}", 2)
    try:
        changes.load(process)
    except ValueError as error:
        fail(str(error), 2)
    with terminal.told_in_one_line(PolicyError), progress_bars() as progress:
        try:
            return simulate(
                surrogate(number, np.random.default_rng(seed)),
                policies or DEFAULT_POLICIES,
                bandwidth=bandwidth * number,
                days=days,
                seed=seed,
                learn=learn,
                estimator=estimator,
                process=process,
                progress=progress,
            )
        except OverBudget as error:
            fail(f"{error}; name another --policy")


def _show(comparison: SimulationResult) -> None:
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


# -- simulating ephemeral ----------------------------------------------------
def simulate_ephemeral(
    policies: Sequence[str], number: int, bandwidth: float, days: float, *, seed: int, json: bool
) -> None:
    """Let all policies crawl in one world, and print their rewards.

    ``number`` is that of the sources; ``bandwidth`` is in crawls per source and day.
    """
    world, start = np.random.default_rng(seed).spawn(2)
    sources, periods = news_sources(number, start), max(1, round(days * PERIODS_A_DAY))
    try:
        budget = budget_a_period(sources, bandwidth)
        makers = {name: news.load(name) for name in policies or CONTENDERS}
    except ValueError as error:
        fail(f"--{error}", 2)
    with terminal.told_in_one_line(), progress_bars() as tell:
        harvest = reap(
            sources,
            {name: make(sources, budget) for name, make in makers.items()},
            budget,
            periods,
            world,
            law=ITEMS,
            progress=partial(tell, "all policies"),
        )
    days = periods / PERIODS_A_DAY
    if json:
        about = {"sources": number, "bandwidth": bandwidth, "days": days, "seed": seed}
        print_json(about | asdict(harvest))
        return
    show_line(
        f"{counted(number, 'source')} of items that fade, {amount(bandwidth)} crawls "
        f"per source and day, decided each hour, {amount(days)} day{'s' * (days != 1)} measured",
        "bold",
    )
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            amount(reaped.utility),
            amount(reaped.expected),
            percent(reaped.of_bound),
            reaped.items,
            None if reaped.median_age is None else lasting(reaped.median_age),
            reaped.crawls,
            percent(reaped.spent / reaped.budget),
            reaped.uncrawled,
        )
        for name, reaped in harvest.policies.items()
    ]
    bound = ("relaxed bound", None, amount(harvest.bound), percent(1.0))
    show_list(
        f"Utility reaped a day by policy; {amount(harvest.coming)} a day come",
        (
            "policy",
            "reaped",
            "mean",
            "of bound",
            "items",
            "median age",
            "crawls",
            "of budget",
            "not crawled",
        ),
        [*rows, (*bound, *[None] * 5)],
    )


# -- simulated webs ----------------------------------------------------------
#: What makes a web of a seed, a number of days, and its options.
_WEBS: Final[Mapping[str, Callable[..., SyntheticWeb]]] = {
    "synthetic": lambda seed, days, hosts=4, pages=40: webs.mixed(
        WebSpec(hosts, pages, seed, days)
    ),
    "showcase": lambda seed, days, traps=False: webs.showcase(seed, traps=traps, span_days=days),
    "endless": lambda seed, days, pages=60, traps=True: webs.endless(
        WebSpec(1, pages, seed, days), traps=traps
    ),
    "newsroom": lambda seed, days, items=48.0, docs=40: webs.newsroom(
        WebSpec(3, docs, seed, days), items
    ),
}


def load(specification: str, seed: int, days: float) -> SyntheticWeb:
    """Make a web by ``NAME`` or ``NAME:OPTION=VALUE,…`` that changes for some days.

    ``synthetic`` (``hosts``, ``pages`` of each) is news, documentation, shops and wikis in turn;
    ``showcase`` (``traps``) ten small hosts of every character; ``endless`` (``pages``, ``traps``)
    a shop with endless calendars and filters; ``newsroom`` (``items`` a day, ``docs``) news that
    soon leaves all lists, beside a quiet manual of ``docs`` pages.

    Raises:
        ValueError: the name, an option or a value is not accepted.
    """
    name, _, text = specification.partition(":")
    if name not in _WEBS:
        raise ValueError(f"web: {name!r} is not known; accepted are {', '.join(sorted(_WEBS))}")
    make = partial(_WEBS[name], seed, days)
    try:
        return make(**given(make, text))
    except ValueError as error:
        raise ValueError(f"web {name}: {error}") from error


def simulate_web(
    name: str,
    budgets: Sequence[str] | None,
    policies: Sequence[str],
    *,
    days: float,
    seed: int,
    settings: Settings,
    db: Path | None,
    json: bool,
) -> None:
    """Run the daemon for each budget and policy, and print the results.

    ``budgets`` and the web's name are as typed; without ``db`` no store is kept.
    """
    plans = [
        (budget, Plan(crawls_per_day(budget), policy, days, seed))
        for budget in _budgets(budgets, settings.daemon.budget)
        for policy in policies or [settings.daemon.policy]
    ]
    if db is not None:
        _require_new(db, len(plans))
    try:
        web = load(name, seed, days)
    except ValueError as error:
        fail(f"--{error}", 2)
    runs = _rehearsed(plans, web, settings, db)
    if json:
        about = {
            "web": name,
            "sites": len(web.sites),
            "days": days,
            "measured_days": plans[0][1].measured_days,
            "seed": seed,
            "half_life_hours": HALF_LIFE_S / 3_600,
        }
        listed = [{"budget": each, "policy": p.policy} | asdict(it) for each, p, it in runs]
        print_json(about | {"runs": listed})
        return
    _show_web(name, len(web.sites), runs)
    if db is not None:
        show_line(f"{db} is the daemon's store: freshet status --db {db}", "dim")


def _budgets(typed: Sequence[str] | None, of_settings: str | None) -> Sequence[str]:
    """Return the budgets that are simulated; exit (wrong usage) if there is none."""
    if typed:
        return typed
    if not of_settings:
        fail("how many requests may be sent? --budget 2000/day, which may be repeated", 2)
    return [of_settings]


def _require_new(db: Path, simulations: int) -> None:
    """Exit (wrong usage) if a store cannot be that of all simulations."""
    if simulations > 1:
        fail("--db keeps the store of one simulation: name one --budget and one --policy", 2)
    if db.exists():
        fail(f"--db {db}: already exists; a simulation needs a new file", 2)


def _rehearsed(
    plans: Sequence[tuple[str, Plan]], web: SyntheticWeb, settings: Settings, db: Path | None
) -> list[tuple[str, Plan, Rehearsal]]:
    """Run the daemon by each plan, in the store ``db`` if it is given; exit if interrupted."""
    with progress_bars() as tell, tempfile.TemporaryDirectory(prefix="freshet-") as directory:
        runs = []
        for number, (budget, plan) in enumerate(plans):
            progress = partial(tell, f"{budget} {plan.policy}")
            store = db or Path(directory) / f"{number}.db"
            found = terminal.run(rehearse(settings, web, plan, store, progress))
            if found is None:
                fail("interrupted", terminal.INTERRUPTED)
            progress(1.0)
            runs.append((budget, plan, found))
    return runs


def _show_web(name: str, sites: int, runs: Sequence[tuple[str, Plan, Rehearsal]]) -> None:
    _, plan, found = runs[0]
    show_line(
        f"{name}: {counted(sites, 'site')}, {counted(found.pages, 'page')} in the end; "
        f"{amount(plan.days)} days from nothing, the last {amount(plan.measured_days)} measured",
        "bold",
    )
    show_list(
        "Freshness of the copies",
        ("budget", "policy", "fresh", "audited", "", "harmonic", "age", "spent"),
        [_freshness_row(budget, plan.policy, found) for budget, plan, found in runs],
    )
    # Of news the speed of discovery counts.
    fades = name.partition(":")[0] == "newsroom"
    halving = f", utility halves in {HALF_LIFE_S / 3_600:g} h" if fades else ""
    show_list(
        f"Pages found; new pages are those of the measured days{halving}",
        ("budget", "policy", "pages found", "new pages found", "after", "median", "utility"),
        [_discovery_row(budget, plan.policy, found, fades=fades) for budget, plan, found in runs],
    )


def _freshness_row(budget: str, policy: str, found: Rehearsal) -> tuple[Cell, ...]:
    true, audited = found.freshness, found.audited
    return (
        budget,
        policy,
        None if true is None else percent(true.fresh),
        None if audited is None else percent(1 - audited.binary.mean),
        None
        if audited is None
        else f"({1 - audited.binary.upper:.0%} to {1 - audited.binary.lower:.0%})",
        None if true is None else f"{true.harmonic:.3f}",
        None if true is None else lasting(true.age_days),
        percent(found.of_budget),
    )


def _discovery_row(budget: str, policy: str, found: Rehearsal, *, fades: bool) -> tuple[Cell, ...]:
    new = found.new
    mean, median = new.mean_delay_days, new.median_delay_days
    return (
        budget,
        policy,
        f"{found.held:,} of {found.pages:,}",
        f"{new.found:,} of {new.born:,}",
        None if mean is None else lasting(mean),
        None if median is None else lasting(median),
        percent(new.utility) if fades and new.utility is not None else None,
    )


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
            metavar="NAME[:OPTIONS]",
            help="A policy to simulate; may be repeated "
            f"(default: {' and '.join(DEFAULT_POLICIES)}; with --ephemeral "
            f"{', '.join(CONTENDERS)}; with --web that of the settings).",
        ),
    ] = None,
    sources: Annotated[
        int, typer.Option(metavar="N", min=1, max=10**7, help="The number of sources.")
    ] = 20_000,
    bandwidth: Annotated[
        str, typer.Option(metavar="SHARE", help="Crawls per source and day: 0.2 or 20%.")
    ] = "20%",
    days: Annotated[
        float, typer.Option(metavar="D", help="The number of days to simulate.")
    ] = 21.0,
    seed: Annotated[
        int, typer.Option(metavar="S", min=0, help="The seed of the sources and of all chance.")
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
        str, typer.Option(metavar="NAME", help=f"The estimator: {' or '.join(ESTIMATORS)}.")
    ] = "empirical_bayes",
    process: Annotated[
        str,
        typer.Option(
            metavar="NAME[:OPTIONS]", help="How sources change: poisson, bursts, drift or together."
        ),
    ] = "poisson",
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="Sources of items that fade within hours or days.")
    ] = False,
    web: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[:OPTIONS]",
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
    """Simulate policies, or the daemon on a synthetic web.

    All policies decide in the same world. The population is fitted to the figures that the
    LambdaCrawl paper prints of its 18.5 million URLs. Costs are means over the sources, weighted
    with importance: harmonic (each further missed change adds less) and binary (stale or not).

    With --ephemeral, sources publish items that people soon forget, at the rates of news feeds and
    blogs; every hour a policy chooses the sources to crawl, and reaps the remaining worth of their
    items.

    With --web the daemon starts from nothing and runs in virtual time: discovery, politeness,
    change detection and store are the real ones, under the settings of --config. The output is the
    true freshness of its copies over the last half of the days (30 at most), and the estimate of
    its audits, for each budget and policy; of a newsroom also the worth of its new pages at their
    first visit.
    """
    kind = "web" if web is not None else "ephemeral" if ephemeral else ""
    _refuse_what_means_nothing(context, kind)
    if not isfinite(days) or days <= 0:
        fail(f"--days {days:g}: accepted is a number above 0", 2)
    named = policy or []
    if web is not None:
        # The sites of a simulation have no addresses, and registered no domains.
        settings, _ = read_settings(config, {"politeness.key": "host"})
        simulate_web(web, budget, named, days=days, seed=seed, settings=settings, db=db, json=json)
        return
    share = _share(bandwidth)
    if ephemeral:
        simulate_ephemeral(named, sources, share, days, seed=seed, json=json)
        return
    comparison = _compared(
        named, sources, share, days, seed=seed,
        learn=learn, estimator=estimator, process=process,
    )  # fmt: skip
    if json:
        print_json(asdict(comparison))
        return
    measured, learned = days, ""
    if learn:
        measured = min(days, MEASURED_WHEN_LEARNING)
        learned = f", rates learned by {estimator}"
    show_line(
        f"{counted(sources, 'source')}, {bandwidth} of them crawled a day{learned}, "
        f"{amount(measured)} days measured, changes: {process}",
        "bold",
    )
    _show(comparison)


def _refuse_what_means_nothing(context: typer.Context, kind: str) -> None:
    """Exit (wrong usage) at an option of another kind of simulation."""
    for name in dict.fromkeys(name for names in _OF_ONE_KIND.values() for name in names):
        source = context.get_parameter_source(name)
        if name in _OF_ONE_KIND[kind] or source is None or source.name != "COMMANDLINE":
            continue
        fail(
            f"--{name}: has no effect {f'with --{kind}' if kind else 'without --web'}; "
            "leave it out",
            2,
        )


def _share(text: str) -> float:
    """Return crawls per source and day; exit (wrong usage) at another text."""
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
