"""Figures 3.2 to 3.6 as PNG: one column of panels for each collection of sites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from freshet.scheduler.arrays import Floats
from scripts.reproductions.discovery_measures import OPTIMAL
from scripts.reproductions.drawing import BLUE, GREEN, GREY, ORANGE, STYLE, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from scripts.reproductions.discovery import Collection

Lines = Mapping[str, tuple[Floats, Floats]]
_SKY, _PURPLE = "#56B4E9", "#CC79A7"
_LINES: Final = {
    OPTIMAL: (GREY, "--"),
    "OD-WIN": (BLUE, "-"),
    "CLIQ-WIN": (_SKY, ":"),
    "OD-1": (ORANGE, "-"),
    "CLIQ-1": (_PURPLE, "-"),
    "COV": (VERMILION, ":"),
}
_MARKED: Final = "open marks: the thesis's values"


def sizes(path: Path, found: Sequence[Collection], printed: dict[str, Any]) -> None:
    """Figure 3.2: what GREEDY finds, knowing, by the largest cover allowed."""
    title = "Figure 3.2: GREEDY, knowing, by the largest cover allowed"
    with panels(path, title, found, 2, _MARKED) as rows:
        for each, above, below in zip(found, *rows, strict=True):
            budget, pages, overhead, coverage = each.greedy
            above.plot(budget, pages, color=BLUE)
            above.set_ylim(0, 1.08 * float(pages.max(initial=1.0)))
            above.set_ylabel("new pages covered, mean", color=BLUE)
            other = above.twinx()
            other.plot(budget, 100 * overhead, color=VERMILION)
            other.set_ylim(0, 1.08 * 100 * float(overhead.max(initial=0.01)))
            other.set_ylabel("overhead, %", color=VERMILION)
            other.spines["right"].set_visible(True)
            other.grid(visible=False)
            below.plot(budget, 100 * coverage, color=BLUE)
            below.plot(*np.transpose(printed["sizes"]), "D", mfc="white", mec="black", ms=5)
            below.set_ylim(0, 105)
            below.set_ylabel("coverage, %")
            below.set_xlabel("largest cover, pages")
            for axes in (above, below):
                axes.set_xscale("log")
                axes.set_xlim(0.9, 1.2 * max(float(budget.max(initial=1)), 200))
                axes.xaxis.set_major_formatter("{x:,.0f}")


def overlaps(path: Path, found: Sequence[Collection]) -> None:
    """Figure 3.3: how alike pages are that reveal anything."""
    with panels(path, "Figure 3.3: overlap of what two pages reveal", found, 1, "") as rows:
        for each, axes in zip(found, rows[0], strict=True):
            bins = each.overlaps.size
            middles = (np.arange(bins) + 0.5) / bins
            axes.bar(middles, 100 * each.overlaps, 0.9 / bins, color=BLUE)
            axes.set_xlabel("Jaccard coefficient")
            axes.set_ylabel("pairs of pages, %")
            axes.set_ylim(0, 100)
            axes.grid(visible=False, axis="x")


def everywhere(path: Path, found: Sequence[Collection], printed: dict[str, Any]) -> None:
    """Figure 3.4: the overhead of one cover of all sites and weeks."""
    title = "Figure 3.4: one GREEDY cover of all sites and weeks"
    with panels(path, title, found, 1, _MARKED) as rows:
        for each, axes in zip(found, rows[0], strict=True):
            coverage, overhead = each.everywhere
            axes.plot(100 * coverage, 100 * overhead, color=BLUE)
            marks = np.transpose(printed["overhead"])
            axes.plot(*marks, "D", mfc="white", mec="black", ms=5, clip_on=False)
            axes.set_xlim(0, 100)
            axes.set_ylim(0, 1.1 * max(float(marks[1].max()), 100 * overhead.max(initial=0)))
            axes.set_xlabel("coverage, %")
            axes.set_ylabel("overhead, %")


def depths(path: Path, title: str, found: Sequence[Collection], every: int) -> None:
    """Figures 3.5 and 3.6: coverage against depth."""
    with panels(path, title, found, 1, "") as rows:
        for each, axes in zip(found, rows[0], strict=True):
            for name, (depth, coverage) in each.curves[every].items():
                colour, line = _LINES[name]
                width = 2.6 if line == ":" else 1.6
                axes.plot(depth, 100 * coverage, line, color=colour, lw=width, label=name)
                axes.plot(depth[-1:], 100 * coverage[-1:], "o", color=colour, ms=4)
            bound = 100 * each.limits[every].coverage
            axes.axhline(bound, color=GREEN, lw=1)
            label = f"bound {bound:.0f} %"
            axes.annotate(
                label, (1, bound), (-2, 4), xycoords=("axes fraction", "data"),
                textcoords="offset points", color=GREEN, fontsize=9, ha="right",
            )  # fmt: skip
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:,g}")
            axes.set_ylim(0, 105)
            axes.set_xlabel("average cover size, pages")
            axes.set_ylabel("coverage, %")
        handles, names = rows[0][0].get_legend_handles_labels()
        place = rows[0][0].get_figure()
        if place is not None:
            place.legend(handles, names, loc="outside lower left", ncols=6, fontsize=9)


@contextmanager
def panels(
    path: Path, title: str, found: Sequence[Collection], rows: int, note: str
) -> Iterator[list[list[Axes]]]:
    """Rows of axes, a column for each collection, saved when the block ends."""
    with mpl.rc_context(STYLE):
        columns = len(found)
        figure = Figure(figsize=(1.2 + 4.4 * columns, 0.9 + 3.0 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
        figure.suptitle(title, x=0.01, ha="left", fontsize=12)
        for each, first in zip(found, axes[0], strict=True):
            first.set_title(each.name)
        yield axes.tolist()
        if note:
            figure.supxlabel(note, fontsize=8, color=GREY, x=0.99, ha="right")
        figure.savefig(path, dpi=130)
