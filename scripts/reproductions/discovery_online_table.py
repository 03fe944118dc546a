"""What visits spread over the week find within seven days of birth, as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Final

import numpy as np

from freshet.crawler.run.terminal import Cell, show_line, show_list
from scripts.reproductions.courses import spread
from scripts.reproductions.discovery_online import (
    BUDGETS,
    PRECEDENTS,
    RIVALS,
    Score,
    Scores,
    compared,
    is_dearer,
    lead,
)
from scripts.reproductions.link_history import LinkHistory

SYNTHETIC: Final = "synthetic"


def synthetic(histories: Iterable[LinkHistory], seed: int) -> dict[str, Scores]:
    """Synthetic sites, whose pages are born at random in their weeks."""
    return {
        f"{SYNTHETIC} {each.name}": compared(spread(each, np.random.default_rng([seed, number])))
        for number, each in enumerate(histories)
    }


def show(found: Mapping[str, Scores]) -> None:
    """Each recorded site, the median of these and of the synthetic ones, and who is ahead."""
    drawn = {name: each for name, each in found.items() if name.startswith(SYNTHETIC)}
    single = {name: each for name, each in found.items() if name not in drawn}
    groups = {name: each for name, each in (("recorded", single), (SYNTHETIC, drawn)) if each}
    header = ("site", "chosen by", *(part for k in BUDGETS for part in (f"{k} a week", "each")))
    rows: list[Sequence[Cell]] = [
        (site, name, *(cell for k in BUDGETS for cell in cells(by_budget[k])))
        for site, scores in single.items()
        for name, by_budget in scores.items()
    ]
    for kind, sites in groups.items():
        rows += [
            (
                f"median, {kind}",
                name,
                *(cell for k in BUDGETS for cell in (_median(sites, name, k), None)),
            )
            for name in next(iter(sites.values()))
        ]
    show_list(
        "New pages found within seven days of birth by visits spread over the week, and looks for "
        "each page found", header, rows,
    )  # fmt: skip
    show_line(
        "Full recrawls of all weeks are told a week late. Precedents choose at each visit; the "
        "others at the start of a week, for the whole of it (at once: all visits at its start).",
        "dim",
    )
    for kind, sites in groups.items():
        for k in BUDGETS:
            _show_leads(kind, sites, k)


def _show_leads(kind: str, several: Mapping[str, Scores], budget: int) -> None:
    leads = {name: lead(each, budget) for name, each in several.items()}
    above = [name for name, each in leads.items() if each > 0]
    below = [name for name, each in leads.items() if each < 0]
    dearer = [name for name, each in several.items() if is_dearer(each, budget)]
    show_line(
        f"{kind.capitalize()} sites, {budget} a week: {PRECEDENTS} and the best of "
        f"{', '.join(RIVALS)}: above on {_named(above)}; below on {_named(below)}; more looks for "
        f"a page than OD-WIN on {_named(dearer)}",
        "dim",
    )


def _median(sites: Mapping[str, Scores], name: str, budget: int) -> str:
    shares = [each[name][budget].coverage for each in sites.values()]
    return f"{100 * float(np.median(shares)):.1f} %"


def cells(score: Score) -> tuple[str, str]:
    """Coverage and overhead for people."""
    each = f"{score.overhead:,.2f}" if isfinite(score.overhead) else "∞"
    return f"{100 * score.coverage:.1f} %" if score.new else "–", each


def _named(names: Sequence[str]) -> str:
    """Synthetic sites have numbers only, so they are counted."""
    if names and names[0].startswith(SYNTHETIC):
        return str(len(names))
    return ", ".join(names) or "none"
