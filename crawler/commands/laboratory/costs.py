"""Charts of what policies cost: in all, over budgets, and over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np
from markupsafe import Markup

from freshet.crawler.charts.dates import date_ticks
from freshet.crawler.charts.frame import Axis, Frame
from freshet.crawler.charts.intervals import Interval, interval_chart
from freshet.crawler.charts.lines import Band, Bound, Line, line_chart
from freshet.crawler.charts.scales import Linear, scale_of_budgets
from freshet.crawler.commands.figures import amount
from freshet.scheduler.arrays import Floats
from freshet.scheduler.evaluate.verdicts import Bounded, Daily, Verdict

#: Points of a line over time: more cannot be told apart.
_POINTS: Final = 120
#: So many policies' bands can be told apart where they lie over one another.
BANDS: Final = 3


@dataclass(frozen=True, slots=True)
class Measure:
    """One of the costs: what it is called, how it is written, and where it is in a verdict."""

    name: str
    axis: str
    shown: Callable[[float], str]
    cost: Callable[[Verdict], Bounded]
    least: Callable[[Verdict], float]
    daily: Callable[[Daily], Floats]


def _share(value: float) -> str:
    return f"{amount(100 * value)} %"


HARMONIC: Final = Measure(
    "Harmonic cost",
    "harmonic cost (each further missed change adds less)",
    amount,
    lambda verdict: verdict.harmonic,
    lambda verdict: verdict.least_harmonic,
    lambda daily: daily.harmonic,
)
BINARY: Final = Measure(
    "Stale copies",
    "stale copies (share of importance)",
    _share,
    lambda verdict: verdict.binary,
    lambda verdict: verdict.least_binary,
    lambda daily: daily.binary,
)
#: The places of a policy in the order of colours, dashes and marks, by its name.
Styles = Mapping[str, int]


def in_all(measure: Measure, verdicts: Sequence[Verdict], styles: Styles) -> Markup:
    """The range of each policy with one budget."""
    rows = [
        Interval(
            each.policy,
            styles[each.policy],
            cost.optimistic,
            cost.early,
            cost.pessimistic,
            tip_of(measure, each),
        )
        for each in verdicts
        for cost in (measure.cost(each),)
    ]
    budget = amount(verdicts[0].budget)
    return interval_chart(
        f"{measure.name} with {budget} fetches a day",
        "; ".join(tip_of(measure, each) for each in verdicts),
        rows,
        axis=measure.axis,
        shown=measure.shown,
        bound=measure.least(verdicts[0]),
    )


def over_budgets(measure: Measure, verdicts: Sequence[Verdict], styles: Styles) -> Markup:
    """A line for each policy through the most that the archive proves, with each budget."""
    by_budget = sorted(verdicts, key=lambda each: each.budget)
    budgets = [each.budget for each in by_budget]
    costs = [measure.cost(each) for each in by_budget]
    scale = Linear.around([cost.early for cost in costs])
    asked = list(dict.fromkeys(budgets))
    x = Axis("fetches a day", scale_of_budgets(budgets), _told_apart(asked))
    frame = Frame(x, Axis.of(measure.axis, scale, measure.shown))
    marks: list[Line | Band | Bound] = []
    for name, style in styles.items():
        mine = [each for each in by_budget if each.policy == name]
        days, mine_cost = [each.budget for each in mine], [measure.cost(each) for each in mine]
        high = [cost.early for cost in mine_cost]
        if len(styles) <= BANDS:
            low = [cost.optimistic for cost in mine_cost]
            marks.append(Band(style, days, low, high, edged=True))
        tips = [tip_of(measure, each) for each in mine]
        marks.append(Line(name, style, days, high, tips))
    least = {each.budget: measure.least(each) for each in by_budget}
    marks.append(Bound(list(least), list(least.values())))
    title = f"{measure.name} against budget"
    told = "; ".join(tip_of(measure, each) for each in by_budget)
    # Bands first: no line is hidden by one.
    marks.sort(key=lambda mark: not isinstance(mark, Band))
    return line_chart(title, told, frame, marks)


def over_time(
    measure: Measure, verdicts: Sequence[Verdict], styles: Styles, start: float, end: float
) -> Markup:
    """A line for each policy through the most that the archive proves of each day."""
    means = [thinned(measure.daily(each.daily), start) for each in verdicts]
    frame = _time_frame(measure, [column[:, 1] for _, column in means], start, end)
    marks = [
        Line(each.policy, styles[each.policy], days, column[:, 1].tolist())
        for each, (days, column) in zip(verdicts, means, strict=True)
    ]
    title = f"{measure.name} over time with {amount(verdicts[0].budget)} fetches a day"
    names = ", ".join(each.policy for each in verdicts)
    return line_chart(title, f"One line for each of {names}.", frame, marks)


def range_over_time(
    measure: Measure, verdict: Verdict, others: Sequence[Verdict], style: int,
    span: tuple[float, float],
) -> Markup:  # fmt: skip
    """One policy's ranges of each day, on the axes of all ``others`` with its budget."""
    start, end = span
    days, column = thinned(measure.daily(verdict.daily), start)
    every = [thinned(measure.daily(each.daily), start)[1] for each in (verdict, *others)]
    frame = _time_frame(measure, [values.ravel() for values in every], start, end)
    low, high, highest = column.T.tolist()
    marks: list[Band | Line] = [
        Band(style, days, high, highest, faint=True),
        Band(style, days, low, high),
        Line(verdict.policy, style, days, high),
    ]
    title = f"{measure.name} of {verdict.policy} over time"
    return line_chart(title, tip_of(measure, verdict), frame, marks)


def thinned(daily: Floats, start: float) -> tuple[list[float], Floats]:
    """Days and costs (k, 3) of at most 120 groups of as many days each, which are averaged."""
    together = group_of(len(daily))
    rows = ceil(len(daily) / together)
    padded = np.full((rows * together, 3), np.nan)
    padded[: len(daily)] = daily
    groups = padded.reshape(rows, together, 3)
    number = np.isfinite(groups).sum(axis=1)
    total = np.nansum(groups, axis=1)
    means = np.where(number > 0, total / np.maximum(number, 1), np.nan)
    return [start + (row + 0.5) * together for row in range(rows)], means


def group_of(days: int) -> int:
    """How many days are averaged for one point."""
    return max(ceil(days / _POINTS), 1)


def tip_of(measure: Measure, verdict: Verdict) -> str:
    """A policy's cost with its budget, in words."""
    cost = measure.cost(verdict)
    return (
        f"{verdict.policy}, {amount(verdict.budget)} fetches a day: "
        f"{measure.shown(cost.optimistic)} – {measure.shown(cost.early)} "
        f"(at worst {measure.shown(cost.pessimistic)})"
    )


def _time_frame(measure: Measure, values: Sequence[Floats], start: float, end: float) -> Frame:
    scale = Linear.around(np.concatenate(values).tolist())
    # A last group may reach beyond the end.
    x = Axis("day (UTC)", Linear(start, max(end, start + 1)), date_ticks(start, end, 5))
    return Frame(x, Axis.of(measure.axis, scale, measure.shown))


def _told_apart(budgets: Sequence[float]) -> list[tuple[float, str]]:
    """The budgets as ticks, without those that would be written over others."""
    scale, ticks = scale_of_budgets(budgets), list[tuple[float, str]]()
    for budget in budgets:
        if not ticks or scale(budget) - scale(ticks[-1][0]) > 0.14:
            ticks.append((budget, amount(budget)))
    return ticks
