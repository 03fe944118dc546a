"""Charts of what policies foretold, how pages change, and where fetches went."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Final

import numpy as np
from markupsafe import Markup

from freshet.crawler.charts.bars import Shares, histogram, share_chart
from freshet.crawler.charts.frame import Axis
from freshet.crawler.charts.scales import Log
from freshet.crawler.charts.scatter import Outcome, calibration_chart, wilson
from freshet.crawler.commands.figures import amount, counted, every, percent
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
