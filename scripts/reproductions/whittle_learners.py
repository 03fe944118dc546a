"""What learners earn: tables, a figure, and the numbers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from freshet.crawler.run.terminal import Cell, show_line, show_list
from freshet.scheduler.ephemeral.policies import round_robin, whittle_by_age
from scripts.benchmarks.command import say
from scripts.reproductions import whittle_drawing as drawing
from scripts.reproductions import whittle_learning as learning
from scripts.reproductions.whittle_learning import Earned, Lspe
from scripts.reproductions.whittle_lspe import Settings
from scripts.reproductions.whittle_measures import TABLE_1

#: Without clicks there is less to learn: so many times fewer steps.
_SHORTER = 5
#: Other readings and the grid take fewer seeds, and random tables half as many.
_FEWER = 5
#: "About one crawl a period", of the paper.
_ABOUT_ONE = (0.8, 1.2)


def learners(given: argparse.Namespace, paper: dict[str, Any]) -> dict[str, Any]:
    """Everything of learners; what is printed of the paper's beside it."""
    printed = paper["learner"]["reward"]
    ours = {budget: of_example(given, budget) for budget in (1, 2)}
    theirs = of_the_paper(given)
    show_example(given, ours)
    show_paper(theirs, printed)
    found = {
        "example": {
            str(budget): {name: each.figures() for name, each in some.items()}
            for budget, some in ours.items()
        },
        "random": of_random_tables(given),
        "lspe": {name: each.figures() for name, each in theirs.items()},
        "grid": of_grid(given),
    }
    drawing.courses(
        given.output / "whittle_learners.png",
        {
            "ours, clicks seen": ours[1][learning.CLICKS].course,
            "LSPE(0), as printed": theirs[learning.AS_PRINTED].earned.course,
        },
        {
            "index, all known": learning.of_all(whittle_by_age(TABLE_1), 1, given.steps),
            "round robin": learning.of_all(round_robin, 1, given.steps),
        },
        printed,
    )
    return found


def of_example(given: argparse.Namespace, budget: int) -> dict[str, Earned]:
    """Our learner on Table 1, by what it is told."""
    found = {}
    for variant in learning.VARIANTS:
        say(f"learning, {budget} a period: {variant}")
        steps = steps_of(given, variant)
        found[variant] = learning.plug_in(
            learning.example(budget), variant, steps, range(given.learner_seeds)
        )
    return found


def steps_of(given: argparse.Namespace, variant: str) -> int:
    """All with clicks, else a fifth."""
    return int(given.steps) // (1 if variant == learning.CLICKS else _SHORTER)


def show_example(given: argparse.Namespace, ours: dict[int, dict[str, Earned]]) -> None:
    """Our learner beside the index that knows all."""
    rows: list[Sequence[Cell]] = [
        (
            variant,
            str(budget),
            f"{each.course.shape[1]:,}",
            f"{each.whole.mean():.1f}",
            f"{100 * each.share.mean():.2f}",
            f"{100 * each.share.min():.2f}",
        )
        for budget, some in ours.items()
        for variant, each in some.items()
    ]
    header = ("told", "M", "steps", "reward a period", "% of all known", "worst seed, %")
    show_list(
        f"Learning Table 1 from nothing, plugged in the index, {given.learner_seeds} seeds",
        header,
        rows,
    )


def of_random_tables(given: argparse.Namespace) -> dict[str, dict[str, dict[str, float]]]:
    """Our learner on tables of which each seed draws one."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    rows: list[Sequence[Cell]] = []
    seeds = -(-given.learner_seeds // 2)
    for wide, name in ((False, "Λ from 1 to 10"), (True, "Λ from 0.1 to 1,000")):
        found[name] = {}
        for variant in learning.VARIANTS[:3]:
            say(f"learning random tables, {name}: {variant}")
            steps = steps_of(given, variant)
            each = learning.plug_in(learning.random_tables(wide), variant, steps, range(seeds))
            found[name][variant] = each.figures()
            share = 100 * each.share
            rows.append((variant, name, f"{steps:,}", f"{share.mean():.2f}", f"{share.min():.2f}"))
    header = ("told", "tables", "steps", "% of all known", "worst table, %")
    show_list(f"Learning {seeds} random tables of 3 to 10 sources from nothing", header, rows)
    return found


def of_the_paper(given: argparse.Namespace) -> dict[str, Lspe]:
    """LSPE(0) on Table 1, as printed and by other readings."""
    found = {}
    for name, settings in learning.READINGS.items():
        say(f"LSPE(0): {name}")
        seeds = given.learner_seeds if name == learning.AS_PRINTED else fewer(given)
        found[name] = learning.paper_learner(settings, given.steps, range(seeds))
    return found


def fewer(given: argparse.Namespace) -> int:
    """Seeds of what is tried by the way."""
    return max(2, int(given.learner_seeds) // _FEWER)


def show_paper(found: dict[str, Lspe], printed: float) -> None:
    """LSPE(0) by reading, beside the printed reward."""
    rows: list[Sequence[Cell]] = []
    for name, each in found.items():
        figures, earned = each.figures(), each.earned
        rows.append(
            (
                name,
                f"{figures['whole']:.1f} ± {figures['whole_spread']:.1f}",
                f"{earned.whole.min():.0f} – {earned.whole.max():.0f}",
                f"{figures['last']:.1f} ± {figures['last_spread']:.1f}",
                f"{figures['crawls']:.2f}",
                f"{100 * each.held:.0f} %",
                f"{each.diverged} of {len(earned.whole)}",
                str(printed) if name == learning.AS_PRINTED else None,
            )
        )
    header = (
        "reading", "reward a period", "by seed", "last fifth", "crawls a period", "thresholds held",
        "diverged",
        "printed",
    )  # fmt: skip
    settings = Settings()
    show_list(
        f"LSPE(0) on Table 1, c = {settings.step}, δ = {settings.regularisation:g}", header, rows
    )
    text = found[learning.AS_PRINTED].earned
    near = (text.crawls >= _ABOUT_ONE[0]) & (text.crawls <= _ABOUT_ONE[1])
    if near.any():
        show_line(
            f"The paper has one crawl a period on average. Of the runs as printed, {near.sum()} "
            f"have {_ABOUT_ONE[0]} to {_ABOUT_ONE[1]}; these earn {text.whole[near].mean():.1f}."
        )


def of_grid(given: argparse.Namespace) -> dict[str, dict[str, float]]:
    """LSPE(0) as printed, by what the paper leaves open."""
    seeds = fewer(given)
    say(f"LSPE(0) by c and δ: {seeds} seeds")
    found = learning.grid(given.steps, range(seeds))
    rows: list[Sequence[Cell]] = [
        (str(c), *(of_cell(found[c, delta]) for delta in learning.REGULARISATIONS))
        for c in learning.STEPS_C
    ]
    header = ("c", *(f"δ = {delta:g}" for delta in learning.REGULARISATIONS))
    show_list(f"LSPE(0): reward (crawls) a period, ± over {seeds} seeds", header, rows)
    return {f"c={c:g} delta={delta:g}": each.figures() for (c, delta), each in found.items()}


def of_cell(each: Lspe) -> str:
    """Reward and crawls."""
    figures = each.figures()
    shown = f"{figures['whole']:.0f} ± {figures['whole_spread']:.0f} ({figures['crawls']:.2f})"
    return f"{shown}, {each.diverged} diverged" if each.diverged else shown
