"""Charts of what policies foretold, how pages change, and where fetches went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil, floor, log10
from typing import Final

import numpy as np
from markupsafe import Markup

from freshet.crawler.lab.charts import (
    Axis,
    Log,
    Outcome,
    Shares,
    calibration_chart,
    histogram,
    share_chart,
    wilson,
)
from freshet.crawler.lab.counterfactual import Answer
from freshet.crawler.terminal import amount, counted, every, percent
from freshet.scheduler.evaluate.verdicts import RAREST, RATE_CLASSES, Comparison, Verdict

#: Changes a day that have names.
_NAMED_RATES: Final = {
    1 / 36_525: "a century",
    1 / 3_652.5: "10 years",
    1 / 365.25: "year",
    1 / 30.4: "month",
    1 / 7: "week",
    1.0: "day",
    24.0: "hour",
}
#: The classes of change rates, as they are written.
RATE_NAMES: Final = (*(f"{name} or more" if name == "daily" else name for name in RATE_CLASSES),
                     f"{RAREST} than yearly")  # fmt: skip
#: Bins of a factor of ten.
_BINS: Final = 4


def calibration(verdict: Verdict, style: int) -> Markup | None:
    """What one policy foretold against what came; None where it foretells nothing."""
    told = verdict.calibration
    outcomes = [
        _outcome(float(told.expected[place]), int(told.changed[place]), int(told.asks[place]))
        for place in np.flatnonzero(told.asks).tolist()
    ]
    if not outcomes:
        return None
    return calibration_chart(
        f"{verdict.policy}: foretold and found",
        "; ".join(outcome.tip for outcome in outcomes),
        style,
        outcomes,
        ("probability of change foretold", "share of looks that found a change"),
    )


def rates(comparison: Comparison) -> Markup:
    """Pages by the change rates that the whole archive shows."""
    rate = comparison.rate[np.isfinite(comparison.rate) & (comparison.rate > 0)]
    edges = _edges(rate.tolist())
    counts, _ = np.histogram(np.log10(rate), np.log10(edges))
    ticks = [(each, name) for each, name in _NAMED_RATES.items() if edges[0] <= each <= edges[-1]]

    def tip(place: int) -> str:
        return (
            f"{counted(int(counts[place]), 'page')}: one change {every(1 / edges[place + 1])} to "
            f"{every(1 / edges[place]).removeprefix('every ')}"
        )

    classes = zip(RATE_NAMES, comparison.by_class.values(), strict=True)
    return histogram(
        "Distribution of change rates",
        "; ".join(f"{name}: {counted(number, 'page')}" for name, number in classes),
        Axis("one change in a …", Log.around(edges), ticks),
        edges,
        counts.tolist(),
        axis="pages",
        tips=tip,
    )


def spending(comparison: Comparison, verdicts: Sequence[Verdict]) -> Markup:
    """Fetches of each policy by the pages' class of change rate, below the pages themselves."""
    rows = [
        Shares("all pages", list(comparison.by_class.values())),
        *(Shares(each.policy, list(each.by_class.values())) for each in verdicts),
    ]
    return share_chart(
        f"Fetches by change rate with {amount(verdicts[0].budget)} a day",
        "; ".join(
            f"{row.name}: "
            + ", ".join(f"{n} {part:,}" for n, part in zip(RATE_NAMES, row.parts, strict=True))
            for row in rows
        ),
        RATE_NAMES,
        rows,
    )


def _outcome(expected: float, changed: int, asks: int) -> Outcome:
    low, high = wilson(changed, asks)
    tip = (
        f"{counted(asks, 'look')}, of which {percent(expected / asks)} were to find a change: "
        f"{percent(changed / asks)} did"
    )
    return Outcome(expected / asks, changed / asks, low, high, asks, tip)


def _edges(rates: Sequence[float]) -> list[float]:
    """Edges of bins of equal ratios, around all rates."""
    least, most = (min(rates), max(rates)) if rates else (0.01, 1.0)
    first, last = floor(log10(least) * _BINS), ceil(log10(most) * _BINS + 1e-9)
    return [10 ** (place / _BINS) for place in range(first, max(last, first + 1) + 1)]


# -- unknowns ----------------------------------------------------------------
#
# What a page says of its archive: what it holds, what it cannot know, and how it was asked.

#: Rows of lists that may be as long as an archive.
_MOST: Final = 25
_DAY_S: Final = 86_400.0


def facts(answer: Answer) -> str:
    """The size of the archive, and the time that is judged."""
    comparison = answer.comparison
    return (
        f"{counted(comparison.pages, 'page')} of {counted(len(answer.past.origin), 'host')}, "
        f"{counted(comparison.captures, 'capture')}, judged from {_date(comparison.start)} to "
        f"{_date(comparison.end)} ({amount(comparison.end - comparison.start)} days)"
    )


def unknown(answer: Answer) -> list[str]:
    """What the archive does not say, in sentences."""
    comparison = answer.comparison
    misses = [
        f"{each.policy} {each.misses:,} times with {amount(each.budget)} fetches a day"
        for each in comparison.verdicts
        if each.misses
    ]
    failed = comparison.failed
    between = (
        "What pages were between two captures. Half of all captures came within "
        f"{amount(comparison.capture_gap_days)} days of the one before. So every cost is a range: "
        "from each change as late as the captures allow to each change as early as they allow. "
        "Beyond it, drawn faintly and in brackets, pages were others, too, whenever the archive "
        "did not look, which no archive can deny."
    )
    said = [between]
    if failed:
        said.append(
            f"What visits that failed would have found: {failed:,} of "
            f"{counted(comparison.captures, 'capture')}."
        )
    if misses:
        said.append(
            "What was there before a page’s first capture, and behind visits that failed. Fetches "
            f"that asked for it missed, and taught nothing: {'; '.join(misses[:_MOST])}"
            f"{'; and others' if len(misses) > _MOST else ''}."
        )
    said.append("What signals and limits of hosts would have done: none were heard or applied.")
    return said


@dataclass(frozen=True, slots=True)
class Flagged:
    """Pages that were asked for more often than the archive sampled them, the most often first.

    ``rows`` are URL, captures, and by how many of the ``of`` verdicts; ``left`` are not listed.
    """

    rows: Sequence[tuple[str, str, str]]
    left: int
    of: int


def flagged(answer: Answer) -> Flagged:
    """The pages that the page lists."""
    verdicts = answer.comparison.verdicts
    often = Counter(row for each in verdicts for row in each.flagged.tolist())
    number = np.diff(answer.past.captures.offsets)
    rows = [
        (answer.past.url[row], f"{number[row]:,}", f"{count:,}")
        for row, count in sorted(often.items(), key=lambda item: (-item[1], item[0]))[:_MOST]
    ]
    return Flagged(rows, len(often) - len(rows), len(verdicts))


def settings(answer: Answer) -> Mapping[str, str]:
    """How it was asked, by name."""
    question, comparison = answer.question, answer.comparison
    budgets = dict.fromkeys(amount(each.budget) for each in comparison.verdicts)
    rules = len(question.daemon.rules)
    return {
        "store": str(question.db),
        "policies": ", ".join(question.policies),
        "fetches a day": "; ".join(budgets)
        + ("" if question.budgets else " (what the store spent itself)"),
        "seen before it is judged": f"{percent(question.shown)} of the store's time",
        "importance of pages": question.daemon.importance
        + (f", with {counted(rules, 'page rule')}" if rules else ""),
    }


def _date(day: float) -> str:
    return f"{datetime.fromtimestamp(day * _DAY_S, UTC):%Y-%m-%d %H:%M} UTC"
