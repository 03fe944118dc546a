"""Figures 4.2 to 4.4 as PNG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from scripts.reproductions.drawing import BLUE, GREEN, GREY, ORANGE, STYLE, VERMILION, canvas
from scripts.reproductions.search_measures import BEST, UNIFORM, Compared
from scripts.reproductions.search_overhead import Overhead

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = {
    UNIFORM: (GREY, "-"),
    BEST[0]: (ORANGE, "-"),
    BEST[1]: (VERMILION, "-"),
    "thesis": (BLUE, "-"),
    "δτ²/2": (GREEN, "--"),
}


@contextmanager
def _panels(path: Path, title: str, found: Sequence[Compared]) -> Iterator[list[Axes]]:
    columns = min(len(found), 4)
    rows = -(-len(found) // columns)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4 * columns, 3.6 * rows + 0.4), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
        for each, of in zip_longest(axes, found):
            each.set_title(of.name) if of else each.set_axis_off()
        figure.suptitle(title)
        yield axes
        figure.savefig(path, dpi=90)


def overhead(path: Path, found: Overhead) -> None:
    """Time to index a batch, without measuring and with."""
    title = "Figure 4.2: processor time to index a batch of changed pages"
    with canvas(path, title, "an index in memory, pages of 400 words, 5 % of them changed") as axes:
        for (queries, seconds), colour in zip(
            found.seconds.items(), (GREY, GREEN, BLUE, ORANGE), strict=False
        ):
            label = f"measured by {queries:,} queries" if queries else "not measured"
            axes.plot(np.array(found.size) / 1e6, seconds, "o-", color=colour, label=label)
        axes.set_xlabel("batch, MB of text")
        axes.set_ylabel("seconds")
        axes.legend()


def halves(path: Path, found: Sequence[Compared]) -> None:
    """δQ_A of each page in both halves; where one is 0, at the edge."""
    title = "Figure 4.3: δQ_A of weeks 1–24 and 25–48, a dot a page"
    with _panels(path, title, found) as axes:
        for axis, of in zip(axes, found, strict=False):
            some = of.halves[:, (of.halves > 0).any(axis=0)]
            if not some.size:
                continue
            least = some[some > 0].min()
            x, y = np.where(some > 0, some, least / 3)
            axis.loglog(x, y, ".", color=BLUE, ms=4)
            axis.loglog([least / 3, some.max()], [least / 3, some.max()], color=GREY, lw=1)
            axis.set_xlabel("weeks 1–24")
            axis.set_ylabel("weeks 25–48")


def budgets(path: Path, found: Sequence[Compared]) -> None:
    """Looks a week and page against the loss, as in the thesis with the quality on the abscissa."""
    title = "Figure 4.4: looks for a quality (uniform looks and δτ²/2 are not in the thesis)"
    with _panels(path, title, found) as axes:
        for axis, of in zip(axes, found, strict=False):
            for name, (colour, line) in _SHOWN.items():
                budget, loss = np.array(sorted(of.losses[name].items())).T
                axis.loglog(np.maximum(loss, 1e-5), budget, line, color=colour, label=name)
            axis.invert_xaxis()
            axis.set_xlabel("1 − Q")
            axis.set_ylabel("B/n")
        axes[0].legend(fontsize=8)
