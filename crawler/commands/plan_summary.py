"""The plan on a screen: what it comes to, then who gets how much, then who gets too little."""

from __future__ import annotations

import time

from freshet.crawler.commands.display import (
    Cell,
    joined,
    relative,
    show_facts,
    show_line,
    show_list,
    span,
)
from freshet.crawler.commands.figures import amount, counted, every, on_changes, percent, times
from freshet.crawler.commands.plan_ephemeral import PlannedEphemeral
from freshet.crawler.commands.plan_report import (
    NO_HISTORY,
    PlannedHost,
    PlannedSource,
    PlanReport,
    PolicyCost,
)
from freshet.crawler.commands.sources.stored import Learning
from freshet.scheduler.planning import HARDLY, Share


def print_plan(report: PlanReport) -> None:
    """Print the report for people."""
    if not report.sources:
        why = f"{NO_HISTORY}, for no page of it has been captured and is still there"
        show_line(f"{report.read_from}: {why}")
        return
    crawls = f"{amount(report.budget)} crawls a day"
    pages = f"{counted(report.sources, 'page')} on {counted(report.hosts, 'host')}"
    show_line(f"{report.read_from}: {crawls} for {pages}, by {report.policy}", "bold")
    _print_outcome(report)
    _print_policies(report)
    _print_ephemeral(report)
    _print_split(report)
    _print_sources(report)


def _print_outcome(report: PlanReport) -> None:
    own = report.policies[report.policy]
    show_facts(
        "Plan",
        {
            "spent": _spent(report),
            "price": _price(report),
            "fresh": _fresh(own),
            "due": _due_in_general(report),
            "change rates": _learned(report.learning),
            "left out": _left_out(report.learning),
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
        why = "the hosts that could use them are at what politeness allows"
    return f"{spent}; {amount(report.left_over)} are left over, for {why}"


def _price(report: PlanReport) -> str | None:
    if report.price is None:
        return None
    return f"{amount(report.price)}: what one more crawl a day would take off the cost"


def _fresh(cost: PolicyCost) -> str | None:
    if cost.fresh is None:
        return None
    return f"{percent(cost.fresh)} at a random moment, pages weighted with their importance"


def _due_in_general(report: PlanReport) -> str | None:
    days = report.interval_days
    if days is None:
        return "no page is ever crawled"
    words = f"half of the pages {every(days.median)} or more often"
    if days.tenth < days.ninetieth:
        words += f"; a tenth {every(days.tenth)}, nine tenths {every(days.ninetieth)}"
    return words


def _learned(learning: Learning | None) -> str | None:
    if learning is None:
        return None
    if not learning.intervals:
        return f"{NO_HISTORY}: no page was captured twice, so all are taken to be alike"
    source = f"{learning.estimator} from {learning.intervals:,} intervals between captures"
    if not learning.without_evidence:
        return source
    return f"{source}; {learning.without_evidence:,} pages without one are taken to be like others"


def _left_out(learning: Learning | None) -> str | None:
    if learning is None or not learning.gone:
        return None
    return f"{counted(learning.gone, 'page')}, gone when last asked"


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
    if "optimal_intervals" in report.policies:
        show_line("greedy_index, crawl by crawl, comes within 1 % of optimal_intervals", "dim")


def _print_ephemeral(report: PlanReport) -> None:
    show_list(
        "Ephemeral sources (reward: 1 is an item when it appears)",
        ("source", "items/day", "half-life", "index", "next crawl", "due", "reward", "a day"),
        [_ephemeral(each) for each in report.ephemeral],
    )


def _ephemeral(source: PlannedEphemeral) -> tuple[Cell, ...]:
    half_life = span(source.half_life_hours * 3_600)
    known = (source.url, amount(source.arrival_rate), half_life, amount(source.index))
    at, reward, per_day = source.next_crawl_at, source.expected_reward, source.reward_per_day
    if at is None or reward is None or per_day is None:
        return (*known, "as any page", None, None, None)
    due = every(source.interval_days)
    return (*known, relative(at, time.time()), due, amount(reward), amount(per_day))


def _print_split(report: PlanReport) -> None:
    if report.complete_observations.sources:
        show_list(
            "Split of the budget",
            ("observations", "pages", "crawls/day", "share"),
            [
                _class("incomplete", report.incomplete_observations, report),
                _class(
                    "complete (every change is signalled)", report.complete_observations, report
                ),
            ],
        )
    capped = len(report.capped_hosts)
    show_list(
        "Hosts with the most crawls"
        + (f" ({capped:,} of {report.hosts:,} at what politeness allows)" if capped else ""),
        ("host", "pages", "crawls/day", "allowed"),
        [_host(host) for host in report.by_host],
    )


def _class(name: str, share: Share, report: PlanReport) -> tuple[Cell, ...]:
    part = share.crawl_rate / report.budget
    return name, share.sources, amount(share.crawl_rate), percent(part)


def _host(host: PlannedHost) -> tuple[Cell, ...]:
    allowed = None if host.capacity is None else amount(host.capacity)
    reached = ("reached" if host.capped else None,)
    return host.host, host.sources, amount(host.crawl_rate), joined((allowed, *reached))


def _print_sources(report: PlanReport) -> None:
    header = ("page", "importance", "changes/day", "due")
    show_list("Most crawled", header, [_source(each, report.crawling) for each in report.top])
    show_list(
        f"Starved: {_starved(report)}",
        header,
        [_source(each, report.crawling) for each in report.starved],
    )
    if report.nothing_to_gain:
        idle = counted(report.nothing_to_gain, "page")
        show_line(f"{idle} not crawled, for want of importance or of changes", "dim")


def _starved(report: PlanReport) -> str | None:
    never, hardly = report.never_crawled, report.hardly_crawled
    return joined(
        (
            f"{counted(never, 'page')} never crawled" if never else None,
            f"{counted(hardly, 'page')} with {HARDLY:g} changes or more from one crawl to the next"
            if hardly
            else None,
        )
    )


def _source(source: PlannedSource, crawling: str) -> tuple[Cell, ...]:
    answers = source.on_signals and source.crawl_rate > 0
    due = on_changes(source.crawl_probability, crawling) if answers else every(source.interval_days)
    return source.url, amount(source.importance), amount(source.change_rate), due


def _cost(value: float | None) -> str:
    return "∞" if value is None else amount(value)


def _times(ratio: float | None, cost: float | None) -> str | None:
    """A ratio; it has no meaning where LambdaCrawl costs nothing."""
    return None if ratio is None and cost is not None else times(ratio)
