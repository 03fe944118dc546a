"""Figures of a comparison of policies, drawn with matplotlib (the extra ``plots``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from freshet.crawler.run.terminal import amount
from freshet.scheduler.arrays import Floats
from freshet.scheduler.evaluate.verdicts import (
    RAREST,
    RATE_CLASSES,
    BoundedCost,
    Comparison,
    PolicyVerdict,
)
from freshet.scheduler.queue.audit import wilson

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Points of a line over time: more cannot be told apart.
_POINTS: Final = 120
#: Policies whose ranges can be told apart where they lie over one another.
_RANGES: Final = 3
_DAY_S: Final = 86_400.0
#: Okabe and Ito's colours, which the colour-blind tell apart, and their dashes.
_COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#777777")
_DASHES: Final = ("-", "--", "-.", ":")
_STYLE: Final[dict[Any, Any]] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "font.size": 10,
    "legend.frameon": False,
}
_BOUND: Final[dict[str, Any]] = {"color": "black", "linestyle": ":", "linewidth": 1}


@dataclass(frozen=True, slots=True)
class _Cost:
    """One of the two costs and its place in a verdict; ``scale`` turns it into units."""

    name: str
    scale: float
    of: Callable[[PolicyVerdict], BoundedCost]


_COSTS: Final = (
    _Cost("harmonic cost", 1.0, lambda each: each.harmonic),
    _Cost("stale copies, % of importance", 100.0, lambda each: each.binary),
)


def write_charts(comparison: Comparison, folder: Path) -> list[str]:
    """Draw all figures into a folder as PNG and return their names.

    For each budget: ranges of the costs, costs over time, expected and observed changes, and
    fetches by change rate; of all budgets: costs by budget, and the change rates of the pages.
    """
    import matplotlib as mpl  # noqa: PLC0415 - an extra

    names = list(dict.fromkeys(each.policy for each in comparison.verdicts))
    style = {
        name: {
            "color": _COLOURS[place % len(_COLOURS)],
            "linestyle": _DASHES[place // len(_COLOURS) % len(_DASHES)],
        }
        for place, name in enumerate(names)
    }
    drawing = _Drawing(comparison, folder, style, [])
    with mpl.rc_context(_STYLE):
        drawing.change_rates()
        budgets = groupby(comparison.verdicts, key=lambda each: each.budget)
        groups = [(budget, list(verdicts)) for budget, verdicts in budgets]
        for budget, verdicts in groups:
            drawing.of_budget(budget, verdicts)
        if len(groups) > 1:
            drawing.by_budget()
    return drawing.written


@dataclass(frozen=True, slots=True)
class _Drawing:
    """The figures of one comparison, with each policy's colour and dashes."""

    comparison: Comparison
    folder: Path
    style: dict[str, dict[str, str]]
    written: list[str]

    def of_budget(self, budget: float, verdicts: Sequence[PolicyVerdict]) -> None:
        """Draw the four figures of one budget."""
        ending = f"{budget:.6g}_a_day"
        title = f"with {amount(budget)} fetches a day"
        rows = 1.2 + 0.4 * len(verdicts)
        costs = f"Cost {title} (dotted: lower bound)"
        with self._figure(f"costs_{ending}", costs, 1, 2, rows) as panels:
            for cost, axes in zip(_COSTS, panels, strict=True):
                self._ranges(axes, cost, verdicts)
        with self._figure(f"days_{ending}", f"Cost over time {title}", 2, 1, 6.5) as panels:
            for cost, axes in zip(_COSTS, panels, strict=True):
                self._over_time(axes, cost, verdicts)
        calibrated = [each for each in verdicts if each.calibration.asks.any()]
        if calibrated:
            across = min(len(calibrated), 3)
            down = ceil(len(calibrated) / across)
            name = f"calibration_{ending}"
            expected = f"Expected and observed changes {title}"
            with self._figure(name, expected, down, across, 3.6 * down) as panels:
                for axes, verdict in zip(panels, calibrated, strict=False):
                    self._calibration(axes, verdict)
                for axes in panels[len(calibrated) :]:
                    axes.set_axis_off()
        with self._figure(f"fetches_{ending}", f"Fetches {title}", 1, 1, rows + 0.8) as (axes,):
            self._fetches(axes, verdicts)

    def change_rates(self) -> None:
        """Draw the pages by the change rate that the whole archive shows."""
        from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - an extra

        rate = self.comparison.rate
        rate = rate[np.isfinite(rate) & (rate > 0)]
        with self._figure("change_rates", "Change rates of the pages", 1, 1, 3.4) as (axes,):
            least, most = (rate.min(), rate.max()) if len(rate) else (0.01, 1.0)
            first, last = np.floor(4 * np.log10(least)), np.ceil(4 * np.log10(most) + 1e-9)
            edges = 10 ** (np.arange(first, max(last, first + 1) + 1) / 4)
            axes.hist(rate, edges.tolist(), color=_COLOURS[0], rwidth=0.94)
            axes.set_xscale("log")
            axes.set_xlabel("changes a day")
            axes.set_ylabel("pages")
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))

    def by_budget(self) -> None:
        """Draw each policy's costs against the budget."""
        ordered = sorted(self.comparison.verdicts, key=lambda each: each.budget)
        with self._figure("budgets", "Cost by budget", 1, 2, 4.0) as panels:
            for cost, axes in zip(_COSTS, panels, strict=True):
                for name in self.style:
                    mine = [each for each in ordered if each.policy == name]
                    columns = cost.scale * np.array([_three(cost.of(each)) for each in mine])
                    self._line(axes, name, [each.budget for each in mine], columns)
                least = [cost.scale * cost.of(each).clairvoyant for each in ordered]
                axes.plot([each.budget for each in ordered], least, **_BOUND, label="lower bound")
                axes.set_xscale("log")
                budgets = sorted({each.budget for each in ordered})
                axes.set_xticks(budgets, [amount(budget) for budget in budgets])
                axes.set_xticks([], minor=True)
                axes.set_xlabel("fetches a day")
                axes.set_ylabel(cost.name)
            panels[0].legend(fontsize=8)

    def _ranges(self, axes: Axes, cost: _Cost, verdicts: Sequence[PolicyVerdict]) -> None:
        for place, each in enumerate(verdicts):
            low, high, highest = cost.scale * np.array(_three(cost.of(each)))
            colour = self.style[each.policy]["color"]
            axes.hlines(place, high, highest, color=colour, alpha=0.35, linewidth=2)
            axes.hlines(place, low, high, color=colour, linewidth=6)
            axes.plot(high, place, "o", color=colour)
        axes.axvline(cost.scale * cost.of(verdicts[0]).clairvoyant, **_BOUND)
        axes.set_yticks(range(len(verdicts)), [each.policy for each in verdicts])
        axes.set_ylim(len(verdicts) - 0.5, -0.5)
        axes.set_xlabel(cost.name)

    def _over_time(self, axes: Axes, cost: _Cost, verdicts: Sequence[PolicyVerdict]) -> None:
        for each in verdicts:
            days, columns = thinned(cost.of(each).daily, self.comparison.start)
            dates = [datetime.fromtimestamp(day * _DAY_S, UTC) for day in days]
            self._line(axes, each.policy, dates, cost.scale * columns)
        axes.set_ylabel(cost.name)
        axes.legend(fontsize=8)

    def _line(self, axes: Axes, policy: str, x: Sequence[Any], columns: Floats) -> None:
        """Draw the early cost, with the range below it where few enough policies have one."""
        low, high, _ = columns.T
        # Marks show a day between two gaps, too.
        style: dict[str, Any] = {**self.style[policy]}
        axes.plot(x, high, marker="o", markersize=3, label=policy, **style)
        if len(self.style) <= _RANGES:
            colour = self.style[policy]["color"]
            axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)

    def _calibration(self, axes: Axes, verdict: PolicyVerdict) -> None:
        calibration = verdict.calibration
        used = np.flatnonzero(calibration.asks)
        asks = calibration.asks[used]
        expected, observed = calibration.expected[used] / asks, calibration.changed[used] / asks
        intervals = [wilson(share, n) for share, n in zip(observed, asks, strict=True)]
        low, high = np.array(intervals).T
        colour = self.style[verdict.policy]["color"]
        axes.plot([0, 1], [0, 1], **_BOUND)
        axes.vlines(expected, low, high, color=colour, linewidth=1)
        axes.scatter(expected, observed, 6 + 120 * asks / asks.max(), color=colour, alpha=0.7)
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.set_title(verdict.policy)
        axes.set_xlabel("expected probability of a change")
        axes.set_ylabel("share of visits that found one")

    def _fetches(self, axes: Axes, verdicts: Sequence[PolicyVerdict]) -> None:
        """Draw shares of fetches by the pages' class of change rate, below those of the pages."""
        rows = [("all pages", self.comparison.by_class)]
        rows += [(each.policy, each.by_class) for each in verdicts]
        shares = np.array([list(by_class.values()) for _, by_class in rows], np.float64)
        shares *= 100 / np.maximum(shares.sum(axis=1, keepdims=True), 1)
        left = np.zeros(len(rows))
        for name, part, colour in zip([*RATE_CLASSES, RAREST], shares.T, _COLOURS, strict=False):
            axes.barh(range(len(rows)), part, left=left, color=colour, label=name)
            left += part
        axes.set_yticks(range(len(rows)), [name for name, _ in rows])
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.set_xlim(0, 100)
        axes.set_xlabel("% by change rate of the page")
        axes.legend(ncols=5, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1))

    @contextmanager
    def _figure(
        self, name: str, title: str, down: int, across: int, height: float
    ) -> Iterator[list[Axes]]:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra

        figure = Figure(figsize=(9, height + 0.5), layout="constrained")
        panels = figure.subplots(down, across, squeeze=False)
        yield list(panels.flat)
        figure.suptitle(title, x=0.01, ha="left", fontsize=12)
        figure.savefig(self.folder / f"{name}.png", dpi=120)
        self.written.append(f"{name}.png")


def thinned(daily: Floats, start: float) -> tuple[list[float], Floats]:
    """Return days and costs (k, 3): means of at most 120 groups of as many days each."""
    together = max(ceil(len(daily) / _POINTS), 1)
    rows = ceil(len(daily) / together)
    padded = np.full((rows * together, 3), np.nan)
    padded[: len(daily)] = daily
    groups = padded.reshape(rows, together, 3)
    number = np.isfinite(groups).sum(axis=1)
    means = np.where(number > 0, np.nansum(groups, axis=1) / np.maximum(number, 1), np.nan)
    return [start + (row + 0.5) * together for row in range(rows)], means


def _three(cost: BoundedCost) -> tuple[float, float, float]:
    return cost.optimistic, cost.early, cost.pessimistic
