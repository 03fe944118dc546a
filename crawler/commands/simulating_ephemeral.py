"""``freshet simulate --ephemeral``: what policies reap of items that fade within hours or days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from freshet.crawler.commands import running
from freshet.crawler.commands.bars import progress_bars
from freshet.crawler.commands.console import fail, print_json
from freshet.crawler.commands.display import Cell, show_line, show_list
from freshet.crawler.commands.figures import amount, counted, lasting, percent
from freshet.scheduler.evaluate import news
from freshet.scheduler.evaluate.news import (
    CONTENDERS,
    ITEMS,
    PERIODS_A_DAY,
    Harvest,
    budget_a_period,
    news_sources,
    reap,
)


@dataclass(frozen=True, slots=True)
class EphemeralOrder:
    """What the user wants simulated; ``bandwidth`` is in crawls per source and day."""

    policies: Sequence[str]
    sources: int
    bandwidth: float
    days: float
    seed: int


def simulate_ephemeral(order: EphemeralOrder, *, json: bool) -> None:
    """Let all policies crawl in one world, and print what they reaped."""
    world, start = np.random.default_rng(order.seed).spawn(2)
    sources = news_sources(order.sources, start)
    try:
        budget = budget_a_period(sources, order.bandwidth)
        makers = {name: news.load(name) for name in order.policies or CONTENDERS}
    except ValueError as error:
        fail(f"--{error}", 2)
    with running.told_in_one_line(), progress_bars() as tell:
        harvest = reap(
            sources,
            {name: make(sources, budget) for name, make in makers.items()},
            budget,
            _periods(order.days),
            world,
            law=ITEMS,
            progress=None if tell is None else lambda done: tell("all policies", done),
        )
    if json:
        print_json(_as_json(order, harvest))
        return
    _show_ephemeral(order, harvest)


def _periods(days: float) -> int:
    return max(1, round(days * PERIODS_A_DAY))


def _as_json(order: EphemeralOrder, harvest: Harvest) -> dict[str, object]:
    return {
        "sources": order.sources,
        "bandwidth": order.bandwidth,
        "days": _periods(order.days) / PERIODS_A_DAY,
        "seed": order.seed,
        **asdict(harvest),
    }


def _show_ephemeral(order: EphemeralOrder, harvest: Harvest) -> None:
    days = _periods(order.days) / PERIODS_A_DAY
    show_line(
        f"{counted(order.sources, 'source')} of items that fade, {amount(order.bandwidth)} crawls "
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
