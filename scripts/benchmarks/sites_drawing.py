"""The costs of recorded sites under all strategies, as PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from scripts.benchmarks.plain_strategies import PLAIN, RIVALS
from scripts.reproductions.drawing import BLUE, GREEN, GREY, ORANGE, STYLE

_MARKS = dict(zip((*RIVALS, *PLAIN), ("P", "X", "o", "s", "^", "v", "D"), strict=True))
#: What the others are shares of.
_BASE = next(iter(RIVALS))
_LOWEST = 0.01


def draw(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw a line of marks for each window, the worst below; a panel for each interval."""
    intervals = sorted({row["interval"] for row in rows}, reverse=True)
    drawn = [
        sorted((r for r in rows if r["interval"] == each), key=_share, reverse=True)
        for each in intervals
    ]
    height = 1.3 + 0.22 * max(map(len, drawn))
    with mpl.rc_context(STYLE | {"font.size": 9}):
        figure = Figure(figsize=(1.5 + 4.2 * len(drawn), height), layout="constrained")
        panels = figure.subplots(1, len(drawn), squeeze=False)[0]
        for axes, some, interval in zip(panels, drawn, intervals, strict=True):
            axes.set_title(f"one request a page and {interval:g} days")
            axes.axvline(1.0, color=GREY, lw=1)
            for place, row in enumerate(some):
                base = row["costs"][_BASE]
                shares = {name: cost / base for name, cost in row["costs"].items() if base}
                for name, mark in _MARKS.items():
                    if name in shares:
                        axes.plot(shares[name], place, mark, mfc="none", mec=GREY, ms=4, mew=0.8)
                for name, mark, colour in (
                    ("rates known", "x", ORANGE),
                    ("clairvoyant", "|", GREEN),
                ):
                    if name in shares:
                        axes.plot(max(shares[name], _LOWEST), place, mark, color=colour, ms=6)
                axes.plot(_share(row), place, "o", color=BLUE, ms=6)
            axes.set_yticks(range(len(some)), [_name(row, some) for row in some])
            axes.set_ylim(-0.6, len(some) - 0.4)
            axes.set_xscale("log")
            axes.set_xlim(_LOWEST * 0.9, 6)
            axes.set_xticks(
                [0.01, 0.03, 0.1, 0.3, 1, 3], ["≤ 0.01", "0.03", "0.1", "0.3", "1", "3"]
            )
            axes.set_xticks([], minor=True)
            axes.set_xlabel(f"harmonic cost, share of {_BASE}")
        _explain(figure)
        figure.savefig(path, dpi=160)


def _share(row: Mapping[str, Any]) -> float:
    return float(row["of_each"].get(_BASE, 1.0))


def _name(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """The site, with the year of the window where there are several of it."""
    site, year = row["site"], row["first_day"] / 360 + 1
    return f"{site}, year {year:g}" if sum(r["site"] == site for r in rows) > 1 else str(site)


def _explain(figure: Figure) -> None:
    marks = [
        mpl.lines.Line2D([], [], ls="", marker="o", color=BLUE, ms=6, label="the daemon"),
        *(
            mpl.lines.Line2D([], [], ls="", marker=mark, mfc="none", mec=GREY, ms=4, label=name)
            for name, mark in _MARKS.items()
        ),
        mpl.lines.Line2D([], [], ls="", marker="x", color=ORANGE, ms=5, label="rates known"),
        mpl.lines.Line2D([], [], ls="", marker="|", color=GREEN, ms=8, label="clairvoyant"),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=4, fontsize=8)
