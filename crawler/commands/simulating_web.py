"""``freshet simulate --web``: what budgets give, by the whole daemon on a synthetic web."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from freshet.config.settings import Settings
from freshet.crawler.commands import running, simulated_webs
from freshet.crawler.commands.bars import Tell, progress_bars
from freshet.crawler.commands.budget import crawls_per_day
from freshet.crawler.commands.console import fail, print_json
from freshet.crawler.commands.display import Cell, show_line, show_list
from freshet.crawler.commands.figures import amount, counted, lasting, percent
from freshet.crawler.commands.hindsight import HALF_LIFE_S
from freshet.crawler.commands.options import read_settings
from freshet.crawler.commands.rehearsal import Plan, Rehearsal, rehearse
from freshet.crawler.synthetic_web.web import SyntheticWeb
from freshet.scheduler.agenda.audit import Estimate

#: The sites of a simulation have no addresses, and registered no domains.
_EACH_HOST = {"politeness.key": "host"}


@dataclass(frozen=True, slots=True)
class WebOrder:
    """What the user wants simulated; ``budgets`` in the user's words, ``db`` None: none is kept."""

    web: str
    budgets: Sequence[str]
    policies: Sequence[str]
    days: float
    seed: int
    config: Path | None
    db: Path | None


def simulate_web(order: WebOrder, *, json: bool) -> None:
    """Run the daemon for each budget and policy, and print what came of it."""
    settings, _ = read_settings(order.config, _EACH_HOST)
    plans = _plans(order, settings)
    if order.db is not None:
        _require_one_new_store(order.db, plans)
    try:
        web = simulated_webs.load(order.web, order.seed, order.days)
    except ValueError as error:
        fail(f"--{error}", 2)
    with progress_bars() as tell, tempfile.TemporaryDirectory(prefix="freshet-") as directory:
        runs = []
        for number, (budget, plan) in enumerate(plans):
            db = order.db or Path(directory) / f"{number}.db"
            runs.append((budget, plan, _run(settings, web, budget, plan, db, tell)))
    if json:
        print_json(_web_as_json(order, web, runs))
        return
    _show_web(order, web, runs)


def _plans(order: WebOrder, settings: Settings) -> list[tuple[str, Plan]]:
    """Each budget with each policy, the budget as it was named."""
    budgets = order.budgets or ([settings.daemon.budget] if settings.daemon.budget else [])
    if not budgets:
        fail("how many requests may be sent? --budget 2000/day, which may be repeated", 2)
    policies = order.policies or [settings.daemon.policy]
    return [
        (budget, Plan(crawls_per_day(budget), policy, order.days, order.seed))
        for budget in budgets
        for policy in policies
    ]


def _require_one_new_store(db: Path, plans: Sequence[object]) -> None:
    if len(plans) > 1:
        fail("--db keeps the store of one simulation: name one --budget and one --policy", 2)
    if db.exists():
        fail(f"--db {db}: is there already; a simulation goes into a new file", 2)


def _run(
    settings: Settings, web: SyntheticWeb, budget: str, plan: Plan, db: Path, tell: Tell | None
) -> Rehearsal:
    def progress(done: float) -> None:
        if tell is not None:
            tell(f"{budget} {plan.policy}", done)

    found = running.run(rehearse(settings, web, plan, db, progress))
    if found is None:
        fail("interrupted", running.INTERRUPTED)
    progress(1.0)
    return found


def _web_as_json(
    order: WebOrder, web: SyntheticWeb, runs: Sequence[tuple[str, Plan, Rehearsal]]
) -> dict[str, object]:
    return {
        "web": order.web,
        "sites": len(web.sites),
        "days": order.days,
        "measured_days": runs[0][1].measured_days,
        "seed": order.seed,
        "half_life_hours": HALF_LIFE_S / 3_600,
        "runs": [
            {"budget": budget, "policy": plan.policy} | found.as_json()
            for budget, plan, found in runs
        ],
    }


def _show_web(
    order: WebOrder, web: SyntheticWeb, runs: Sequence[tuple[str, Plan, Rehearsal]]
) -> None:
    _, plan, found = runs[0]
    size = f"{counted(len(web.sites), 'site')}, {counted(found.pages, 'page')} in the end"
    show_line(
        f"{order.web}: {size}; {amount(order.days)} days from nothing, "
        f"the last {amount(plan.measured_days)} measured",
        "bold",
    )
    show_list(
        "How fresh the copies were",
        ("budget", "policy", "fresh", "audited", "", "harmonic", "age", "spent"),
        [_freshness_row(budget, plan.policy, found) for budget, plan, found in runs],
    )
    fades = simulated_webs.is_ephemeral(order.web)
    halving = f", utility halves in {HALF_LIFE_S / 3_600:g} h" if fades else ""
    show_list(
        f"What was found; new pages are those of the measured days{halving}",
        ("budget", "policy", "pages found", "new pages found", "after", "median", "utility"),
        [_discovery_row(budget, plan.policy, found, fades=fades) for budget, plan, found in runs],
    )
    if order.db is not None:
        show_line(f"{order.db} holds what the daemon saw: freshet status --db {order.db}", "dim")


def _freshness_row(budget: str, policy: str, found: Rehearsal) -> tuple[Cell, ...]:
    true, audited = found.freshness, found.audited
    return (
        budget,
        policy,
        None if true is None else percent(true.fresh),
        None if audited is None else percent(1 - audited.binary.mean),
        None if audited is None else _between(audited.binary),
        None if true is None else f"{true.harmonic:.3f}",
        None if true is None else lasting(true.age_days),
        percent(found.of_budget),
    )


def _between(stale: Estimate) -> str:
    return f"({1 - stale.upper:.0%} to {1 - stale.lower:.0%})"


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
