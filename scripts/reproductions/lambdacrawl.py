"""Figures 1 to 3 of the LambdaCrawl paper, and cost against budget.

All on the surrogate population of freshet.scheduler.evaluate.world, NOT on the paper's 18.5
million URLs, which are not at hand: ratios between policies are comparable, absolute costs
roughly. Prints a table for each figure, with the paper's numbers in a column of their own,
and writes each figure as PNG and CSV.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from freshet.crawler.run.terminal import Cell, show_line, show_list
from freshet.scheduler.costs import plan_costs
from freshet.scheduler.evaluate.simulate import simulate
from freshet.scheduler.evaluate.world import surrogate
from freshet.scheduler.policies.binary_lambda_crawl import BinaryLambdaCrawl, BinaryLambdaCrawlFloor
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl, LambdaCrawlApprox
from freshet.scheduler.policies.uniform import ChangeRateCrawl, UniformCrawl
from freshet.scheduler.policy import RatePolicy
from freshet.scheduler.sources import SourceTable
from scripts.benchmarks.command import say
from scripts.reproductions import drawing, learning
from scripts.reproductions.relaxed_bound import relaxed_bound

PAPER = Path(__file__).with_name("lambdacrawl_paper.toml")
#: R, crawls per day and URL, in figures 1 to 3.
BANDWIDTH = 0.2
BUDGETS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
FIGURE_1: dict[str, RatePolicy] = {
    "LC": LambdaCrawl(),
    "LCA": LambdaCrawlApprox(),
    "BLCε": BinaryLambdaCrawlFloor(),
    "BLC": BinaryLambdaCrawl(),
    "CC": ChangeRateCrawl(),
    "UC": UniformCrawl(),
}


@dataclass(frozen=True, slots=True)
class Bar:
    """A policy's costs per URL, and what the paper prints (None: nothing)."""

    policy: str
    harmonic: float
    binary: float
    paper_harmonic: float | None
    paper_binary: float | None


@dataclass(frozen=True, slots=True)
class Budgeted:
    """Harmonic costs per URL at one budget, in crawls per day and URL."""

    bandwidth: float
    lambda_crawl: float
    periodic: float
    greedy_index: float
    relaxed_bound: float


def figure_1(table: SourceTable, paper: dict[str, Any]) -> list[Bar]:
    """Known change rates, all URLs."""
    return [bar(name, policy, table, paper) for name, policy in FIGURE_1.items()]


def figure_2(table: SourceTable, paper: dict[str, Any]) -> list[Bar]:
    """Only the URLs with complete observations, heeded (LC-CO) and ignored (the others)."""
    received = table.take(table.complete_observations)
    ignored = SourceTable.of(received.importance, received.change_rate)
    return [
        bar("LC-CO", LambdaCrawl(), received, paper),
        bar("LC-IO", LambdaCrawl(), ignored, paper),
        bar("BLCε", BinaryLambdaCrawlFloor(), ignored, paper),
        bar("BLC", BinaryLambdaCrawl(), ignored, paper),
    ]


def bar(name: str, policy: RatePolicy, table: SourceTable, paper: dict[str, Any]) -> Bar:
    """One policy with R = 20 % of these URLs a day."""
    costs = plan_costs(table, policy.rates(table, BANDWIDTH * len(table)))
    printed = (paper["harmonic"].get(name), paper["binary"].get(name))
    return Bar(name, float(costs.harmonic.mean()), float(costs.binary.mean()), *printed)


def figure_4(table: SourceTable, days: float, seed: int) -> list[Budgeted]:
    """LambdaCrawl, its rates executed periodically, and the index policy, simulated."""
    rows = []
    for share in BUDGETS:
        say(f"figure 4: budget {share:.0%}")
        budget = share * len(table)
        realised = simulate(table, ["greedy_index"], bandwidth=budget, days=days, seed=seed)
        poisson, periodic = (
            float(plan_costs(table, LambdaCrawl(crawling).rates(table, budget)).harmonic.mean())
            for crawling in ("poisson", "periodic")
        )
        index = realised.policies["greedy_index"].harmonic_cost
        bound = relaxed_bound(table, budget) / len(table)
        rows.append(Budgeted(share, poisson, periodic, index, bound))
    return rows


def show_bars(title: str, bars: Sequence[Bar]) -> None:
    """Costs, and ratios to the first policy, beside the paper's."""
    first = bars[0]
    header = ("policy", "J_h", "J_h / first", "paper", "paper's ratio", "J_b", "paper")
    rows: list[Sequence[Cell]] = [
        (
            each.policy,
            number(each.harmonic),
            number(each.harmonic / first.harmonic, 2),
            number(each.paper_harmonic),
            number(ratio(each.paper_harmonic, first.paper_harmonic), 2),
            number(each.binary),
            number(each.paper_binary),
        )
        for each in bars
    ]
    show_list(title, header, rows)


def show_learning(runs: learning.Runs, paper: dict[str, Any]) -> None:
    """Figure 3 at the paper's epochs."""
    header = ("policy", *(f"{e} d" for e in paper["epochs"]), "known rates", "paper", "asymptote")
    rows: list[Sequence[Cell]] = [
        (
            name,
            *(number(runs.mean[name][epoch]) for epoch in paper["epochs"]),
            number(runs.known[name]),
            " → ".join(str(value) for value in paper[name]),
            str(paper["asymptote"][name]),
        )
        for name in runs.mean
    ]
    show_list("Figure 3: rates learned from 1 a day (J_h after so many days)", header, rows)


def show_budgets(rows: Sequence[Budgeted]) -> None:
    """Figure 4, as ratios to LambdaCrawl."""
    header = ("budget", "LambdaCrawl J_h", "periodic", "greedy_index", "relaxed bound")
    cells: list[Sequence[Cell]] = [
        (
            f"{row.bandwidth:.0%}",
            number(row.lambda_crawl),
            number(row.periodic / row.lambda_crawl, 3),
            number(row.greedy_index / row.lambda_crawl, 3),
            number(row.relaxed_bound / row.lambda_crawl, 3),
        )
        for row in rows
    ]
    show_list("Figure 4: cost against budget (as ratios to LambdaCrawl)", header, cells)


def number(value: float | None, digits: int = 0) -> str | None:
    """A number for people; None stays None."""
    if value is None:
        return None
    return "∞" if np.isinf(value) else f"{value:,.{digits}f}"


def ratio(value: float | None, of: float | None) -> float | None:
    """Their ratio, where both are printed."""
    return None if value is None or of is None else value / of


def write(path: Path, row: type[object], rows: Sequence[object]) -> None:
    """A table as CSV, its columns named after the fields of a ``row``."""
    names = [field.name for field in dataclasses.fields(row)]  # type: ignore[arg-type]
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = ([getattr(each, name) for name in names] for each in rows)
        csv.writer(file, lineterminator="\n").writerows([names, *lines])


def options() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("reproduction"), metavar="DIR")
    parser.add_argument("--sources", type=int, default=1_000_000, help="figures 1 and 2")
    parser.add_argument("--runs", type=int, default=5, help="figure 3; the paper has 20")
    parser.add_argument("--run-sources", type=int, default=100_000, help="figure 3, each run")
    parser.add_argument("--index-sources", type=int, default=20_000, help="figure 4")
    parser.add_argument("--days", type=float, default=21, help="figure 4, measured")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    """Compute, print, draw."""
    given = options()
    paper = tomllib.loads(PAPER.read_text("utf-8"))
    given.output.mkdir(parents=True, exist_ok=True)
    show_line("A surrogate population, not the paper's data; the paper's numbers beside it.")
    known_rates(given, paper)
    learned_rates(given, paper["figure_3"])
    other_budgets(given)
    show_line(f"Figures and tables are in {given.output}/")


def known_rates(given: argparse.Namespace, paper: dict[str, Any]) -> None:
    """Figures 1 and 2."""
    table = surrogate(given.sources, np.random.default_rng(given.seed))
    for title, name, compute in (
        ("Figure 1: known change rates, R = 20 %", "figure_1", figure_1),
        ("Figure 2: URLs with complete observations only", "figure_2", figure_2),
    ):
        bars = compute(table, paper[name])
        show_bars(title, bars)
        write(given.output / f"{name}.csv", Bar, bars)
        drawing.bars(given.output / f"{name}.png", title, bars)


def learned_rates(given: argparse.Namespace, paper: dict[str, Any]) -> None:
    """Figure 3."""
    runs = learning.runs(given.runs, given.run_sources, BANDWIDTH, given.seed)
    show_learning(runs, paper)
    write(given.output / "figure_3.csv", learning.Epoch, list(runs.rows()))
    drawing.curves(given.output / "figure_3.png", runs, paper)


def other_budgets(given: argparse.Namespace) -> None:
    """Figure 4."""
    table = surrogate(given.index_sources, np.random.default_rng(given.seed))
    rows = figure_4(table, given.days, given.seed)
    show_budgets(rows)
    write(given.output / "figure_4.csv", Budgeted, rows)
    drawing.budgets(given.output / "figure_4.png", rows)
