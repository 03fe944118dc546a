"""A comparison of policies on an archive, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import groupby
from math import isfinite
from typing import Final

import numpy as np

from freshet.crawler.lab.counterfactual import StoreComparison
from freshet.crawler.terminal import Cell, amount, counted, percent, show_line, show_list
from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.evaluate.verdicts import Bounded, Verdict

_DAY_S = 86_400.0
#: What is told of a verdict in a table.
HEADER: Final = (
    "policy", "harmonic", "binary", "age", "new pages", "after", "fetches", "missed", "flagged",
)  # fmt: skip


def print_answer(answer: StoreComparison) -> None:
    """Print a table for each budget."""
    comparison = answer.comparison
    show_line(
        f"{answer.question.db}: {counted(comparison.pages, 'page')}, "
        f"{counted(comparison.captures, 'capture')}, every {amount(comparison.capture_gap_days)} "
        f"days a page (median); judged {date_of(comparison.start)} to {date_of(comparison.end)} "
        f"({amount(comparison.end - comparison.start)} days)",
        "bold",
    )
    for budget, verdicts in groupby(comparison.verdicts, key=lambda verdict: verdict.budget):
        of_budget = list(verdicts)
        least = of_budget[0]
        show_list(
            f"With {amount(budget)} fetches a day; knowing all captures: harmonic at least "
            f"{amount(least.least_harmonic)}, binary at least {percent(least.least_binary)}",
            HEADER,
            [row_of(verdict) for verdict in of_budget],
        )
    show_line("")
    show_line(
        "Ranges: each change that the archive shows came as late, or as early, as its captures "
        "allow. In brackets: pages also changed whenever the archive did not visit.",
        "dim",
    )
    if any(len(verdict.flagged) for verdict in comparison.verdicts):
        show_line(
            "Flagged: pages that a policy visited more often than the archive; more than half of "
            "the visits got the same version. These figures are less reliable.",
            "dim",
        )


def as_json(answer: StoreComparison) -> dict[str, object]:
    """Return all figures except those of single pages; times in Unix seconds."""
    comparison = answer.comparison
    return {
        "store": str(answer.question.db),
        "from": comparison.start * _DAY_S,
        "until": comparison.end * _DAY_S,
        "pages": comparison.pages,
        "captures": comparison.captures,
        "failed_captures": comparison.failed,
        "capture_gap_days": _number(comparison.capture_gap_days),
        "pages_by_rate": comparison.by_class,
        "verdicts": [_verdict(verdict, answer) for verdict in comparison.verdicts],
    }


def row_of(verdict: Verdict) -> tuple[Cell, ...]:
    """Return the row under :data:`HEADER`; None if nothing is known."""
    new = verdict.discovery
    return (
        verdict.policy,
        _range(verdict.harmonic, amount),
        _range(verdict.binary, percent),
        f"{amount(verdict.age_days)} days" if isfinite(verdict.age_days) else None,
        f"{new.found:,} of {new.appeared:,}" if new.appeared else None,
        f"{amount(new.delay_days)} days" if isfinite(new.delay_days) else None,
        f"{verdict.fetches:,} ({percent(verdict.fetches / verdict.paid)})",
        verdict.misses or None,
        f"{counted(len(verdict.flagged), 'page')} ({percent(verdict.again)} of visits)"
        if len(verdict.flagged)
        else None,
    )


def _range(cost: Bounded, shown: Callable[[float], str]) -> str:
    between = f"{shown(cost.optimistic)} – {shown(cost.early)}"
    if shown(cost.optimistic) == shown(cost.early):
        between = shown(cost.early)
    if shown(cost.pessimistic) == shown(cost.early):
        return between
    return f"{between} ({shown(cost.pessimistic)})"


def _verdict(verdict: Verdict, answer: StoreComparison) -> dict[str, object]:
    new, told = verdict.discovery, verdict.calibration
    return {
        "policy": verdict.policy,
        "budget_per_day": verdict.budget,
        "harmonic": asdict(verdict.harmonic) | {"clairvoyant": verdict.least_harmonic},
        "binary": asdict(verdict.binary) | {"clairvoyant": verdict.least_binary},
        "age_days": _number(verdict.age_days),
        "new_pages": {
            "appeared": new.appeared,
            "found": new.found,
            "delay_days": _number(new.delay_days),
        },
        "fetches": verdict.fetches,
        "budget": verdict.paid,
        "misses": verdict.misses,
        "asks_without_news": verdict.again,
        "flagged": len(verdict.flagged),
        "flagged_pages": [answer.past.url[row] for row in verdict.flagged.tolist()],
        "fetches_by_rate": verdict.by_class,
        "fetches_by_host": dict(zip(answer.past.origin, verdict.by_host.tolist(), strict=True)),
        "calibration": {
            "asks": told.asks.tolist(),
            "expected": _column(told.expected),
            "changed": told.changed.tolist(),
        },
        "daily": {
            "harmonic": [_column(day) for day in verdict.daily.harmonic],
            "binary": [_column(day) for day in verdict.daily.binary],
        },
    }


def _column(values: Floats | Ints) -> list[float | None]:
    return [_number(value) for value in np.asarray(values, np.float64).tolist()]


def _number(value: float) -> float | None:
    """Return a number, or None for NaN, which JSON does not have."""
    return round(value, 6) if isfinite(value) else None


def date_of(day: float) -> str:
    """Format a day (Unix) on the local calendar."""
    return f"{datetime.fromtimestamp(day * _DAY_S, UTC).astimezone():%Y-%m-%d}"
