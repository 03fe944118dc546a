"""Table 1's example and figures 1 to 4 of Avrachenkov and Borkar (2018).

Long-run averages of the model as it is stated, with what the papers print in a column of its own
and whether it can be derived. The law of the random utilities is not in the papers: several are
tried. Then how near the index policy comes to the optimum, on random tables, and what is left of
its reward if the parameters have to be learnt, by the learner of the 2019 paper and by our own.
Prints tables, writes each figure as PNG and all numbers as JSON.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from freshet.crawler.run.terminal import Cell, show_line, show_list
from freshet.scheduler.ephemeral.policies import dual, relaxed, whittle_by_age
from scripts.benchmarks.command import say
from scripts.reproductions import whittle_drawing as drawing
from scripts.reproductions import whittle_learners
from scripts.reproductions import whittle_measures as measures
from scripts.reproductions.whittle_bounds import descend
from scripts.reproductions.whittle_items import arriving
from scripts.reproductions.whittle_observed import WhittleByState
from scripts.reproductions.whittle_periods import run

PAPER = Path(__file__).with_name("whittle_paper.toml")
#: The σ was chosen so that the random figures come near to those printed; figure 4 is drawn so.
NEAREST = "log-normal, σ = 0.8, one draw a period"
_LEAST = {"periods": 100, "instances": 1, "tables": 1, "steps": 50, "learner_seeds": 1}
#: M, crawls a period.
_BUDGETS = (1, 2)
_REMARKS = {
    ("Whittle", "1"): "not derivable: sources 1 and 2 in turn earn (u₁(1+α₁) + u₂(1+α₂))/2",
    ("best sources", "1"): "derivable: u₁",
}


def example(paper: dict[str, Any]) -> dict[str, Any]:
    """The deterministic example with one and two crawls a period."""
    found = {}
    for budget in _BUDGETS:
        outcomes = measures.deterministic(budget)
        printed = paper["deterministic"].get(str(budget), {})
        show_example(budget, outcomes, printed)
        bound = relaxed(measures.TABLE_1, budget)
        price = float(descend(measures.TABLE_1, budget, 6000)[-3000:].mean())
        show_line(
            f"No policy earns more than {bound.bound:.2f}, at the price {bound.price:.2f} a crawl; "
            f"online dual descent comes to {price:.2f}, where the dual is "
            f"{dual(measures.TABLE_1, budget, price):.2f}."
        )
        found[str(budget)] = {
            "means": {name: outcome.mean for name, outcome in outcomes.items()},
            "shares": {name: outcome.shares.tolist() for name, outcome in outcomes.items()},
            "bound": bound.bound,
            "price": bound.price,
            "descended": price,
        }
    return found


def show_example(budget: int, outcomes: dict[str, Any], printed: dict[str, Any]) -> None:
    """A table with the papers' column."""
    rows: list[Sequence[Cell]] = [
        (
            name,
            f"{outcome.mean:.2f}",
            " ".join(f"{share:.3f}" for share in outcome.shares),
            str(printed[name]["value"]) if name in printed else None,
            _REMARKS.get((name, str(budget))),
        )
        for name, outcome in outcomes.items()
    ]
    header = ("policy", "reward a period", "crawl shares", "printed", "the printed number")
    show_list(f"Table 1, deterministic, M = {budget}", header, rows)


def random_utilities(given: argparse.Namespace, paper: dict[str, Any]) -> dict[str, Any]:
    """One and two crawls a period, under each law."""
    by_law = []
    for name in measures.LAWS:
        say(f"random utilities: {name}")
        by_law.append(measures.stochastic(name, _BUDGETS, given.periods, given.seed))
    by_budget = dict(zip(map(str, _BUDGETS), zip(*by_law, strict=True), strict=True))
    for budget, found in by_budget.items():
        show_random(budget, found, paper["stochastic"].get(budget, {}))
    for number, name in enumerate(measures.LAWS, 1):
        show_line(f"({number}) {name}")
    show_line(
        "Policies that see no state earn their deterministic averages under any law (but for "
        "chance), as is printed. What seeing adds is a matter of the law: items that differ one by "
        "one hardly make periods of 250 items differ. What is printed is met nearest by "
        f"({list(measures.LAWS).index(NEAREST) + 1})."
    )
    return {
        budget: [
            {"law": r.law, "means": r.means, "margin": r.margin, "spread": r.spread} for r in found
        ]
        for budget, found in by_budget.items()
    }


def show_random(budget: str, found: Sequence[measures.Random], printed: dict[str, Any]) -> None:
    """A table with a column for each law, and the papers'."""
    policies = list(found[0].means)
    header = ("policy", *(f"({number})" for number in range(1, len(found) + 1)), "printed")
    rows: list[Sequence[Cell]] = [
        (
            policy,
            *(f"{each.means[policy]:.1f}" for each in found),
            str(printed[policy]["value"]) if policy in printed else None,
        )
        for policy in policies
    ]
    rows.append(
        ("stochastic index gains, %", *(f"{100 * each.margin:.2f}" for each in found), None)
    )
    rows.append(("  ±", *(f"{100 * each.spread:.2f}" for each in found), None))
    rows.append(("deviation of U over its mean", *(f"{r.variation:.2f}" for r in found), None))
    show_list(f"Table 1, random utilities, M = {budget}, by the law of ξ", header, rows)


def optimality(given: argparse.Namespace) -> dict[str, Any]:
    """Random tables beside the optimum and the relaxed bound."""
    say(f"optimality: {given.instances} tables beside dynamic programming")
    gaps = measures.gaps_to_optimum(given.instances, given.seed)
    say(f"replication: {given.tables} tables")
    copies = measures.gaps_by_replicas(given.tables, given.seed)
    drawing.replicas(given.output / "whittle_replicas.png", measures.REPLICAS, copies)
    rows: list[Sequence[Cell]] = [
        (
            f"below the optimum, {len(gaps)} tables of 3 to 6 sources",
            f"{100 * gaps.mean():.3f}",
            f"{100 * gaps.max():.3f}",
        )
    ]
    rows += [
        (
            f"below the relaxed bound, {len(copies)} tables ×{times}",
            f"{100 * column.mean():.3f}",
            f"{100 * column.max():.3f}",
        )
        for times, column in zip(measures.REPLICAS, copies.T, strict=True)
    ]
    show_list("How near the index policy comes", ("", "mean, %", "worst, %"), rows)
    return {
        "optimum": {"mean": float(gaps.mean()), "worst": float(gaps.max()), "tables": len(gaps)},
        "replicas": {
            str(times): {"mean": float(column.mean()), "worst": float(column.max())}
            for times, column in zip(measures.REPLICAS, copies.T, strict=True)
        },
    }


def figures(given: argparse.Namespace) -> None:
    """Figures 1 to 4."""
    table = measures.TABLE_1
    drawing.values(given.output / "whittle_1.png", table)
    for number, budget in ((2, 1), (3, 2)):
        title = f"Figure {number}: states under the Whittle index, M = {budget}"
        outcome = run(table, whittle_by_age(table), budget, 40)
        drawing.evolution(given.output / f"whittle_{number}.png", title, outcome)
    coming = arriving(table, measures.LAWS[NEAREST], 40, np.random.default_rng(given.seed))
    outcome = run(table, WhittleByState(table), 2, 40, arriving=coming)
    title = f"Figure 4: random utilities that are seen, M = 2 ({NEAREST})"
    drawing.evolution(given.output / "whittle_4.png", title, outcome)


def options() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("reproduction"), metavar="DIR")
    parser.add_argument("--periods", type=int, default=10_000, help="random utilities")
    parser.add_argument("--instances", type=int, default=200, help="beside the optimum")
    parser.add_argument("--tables", type=int, default=20, help="replicated")
    parser.add_argument("--steps", type=int, default=10_000, help="of a learner")
    parser.add_argument("--learner-seeds", type=int, default=20, help="runs of a learner")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for name, least in _LEAST.items():
        if getattr(given, name) < least:
            parser.error(f"--{name.replace('_', '-')} must be at least {least}")
    return given


def main() -> None:
    """Compute, print, draw."""
    given = options()
    paper = tomllib.loads(PAPER.read_text("utf-8"))
    try:
        given.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SystemExit(f"--output {given.output}: {error.strerror}") from error
    found: dict[str, Any] = {"deterministic": example(paper)}
    figures(given)
    found["random"] = random_utilities(given, paper)
    found |= optimality(given)
    found["learners"] = whittle_learners.learners(given, paper)
    text = json.dumps(found, indent=1, ensure_ascii=False)
    (given.output / "whittle.json").write_text(text + "\n", "utf-8")
    show_line(f"Figures and numbers are in {given.output}/")
