"""The figures as PNG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from scripts.reproductions.lambdacrawl import Bar, Budgeted
    from scripts.reproductions.learning import Runs

# Okabe and Ito's colours, which the colour-blind tell apart.
BLUE, ORANGE, GREEN, VERMILION, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#777777"
STYLE: dict[Any, Any] = {
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
SURROGATE = "surrogate population"
MARKED = f"{SURROGATE}; the paper's values as open marks"


def bars(path: Path, title: str, drawn: Sequence[Bar]) -> None:
    """Harmonic and binary cost of each policy, beside the paper's."""
    with canvas(path, title, MARKED) as axes:
        place = np.arange(len(drawn))
        columns = (
            (
                -0.2,
                BLUE,
                "harmonic $J_h$",
                [b.harmonic for b in drawn],
                [b.paper_harmonic for b in drawn],
            ),
            (
                0.2,
                ORANGE,
                "binary $J_b$",
                [b.binary for b in drawn],
                [b.paper_binary for b in drawn],
            ),
        )
        shown = [b.harmonic for b in drawn[:4]] + [b.binary for b in drawn[:4]]
        top = 1.25 * max(value for value in shown if np.isfinite(value))
        for shift, colour, label, ours, theirs in columns:
            heights = np.minimum(np.array(ours, float), top)
            axes.bar(place + shift, heights, 0.38, color=colour, label=label)
            marks = np.array([np.nan if value is None else value for value in theirs], float)
            marks[~(marks <= top)] = np.nan
            axes.plot(place + shift, marks, "D", mfc="white", mec="black", ms=5, label=None)
            for x, value in zip(place + shift, ours, strict=True):
                if value > top:
                    word = "∞" if np.isinf(value) else f"{value:,.0f}"
                    axes.annotate(word, (x, top), ha="center", va="bottom", fontsize=9)
        axes.plot([], [], "D", mfc="white", mec="black", ms=5, label="the paper's")
        axes.set_xticks(place, [b.policy for b in drawn])
        axes.set_ylim(0, top * 1.08)
        axes.set_ylabel("cost per URL")
        axes.grid(visible=False, axis="x")
        axes.legend(loc="upper left")


def curves(path: Path, runs: Runs, paper: dict[str, Any]) -> None:
    """Harmonic cost by epoch while change rates are learned, with 95 % intervals."""
    with canvas(path, "Figure 3: change rates learned while crawling", MARKED) as axes:
        for (name, mean), colour in zip(runs.mean.items(), (BLUE, VERMILION, ORANGE), strict=True):
            epochs = np.arange(len(mean))
            axes.plot(epochs, mean, color=colour, label=name)
            axes.fill_between(
                epochs,
                mean - runs.half_width[name],
                mean + runs.half_width[name],
                color=colour,
                alpha=0.25,
                lw=0,
            )
            axes.axhline(runs.known[name], color=colour, ls="--", lw=1)
            axes.plot(paper["epochs"], paper[name], "D", mfc="white", mec=colour, ms=5)
        axes.set_xticks(range(0, len(next(iter(runs.mean.values()))), 5))
        axes.set_xlabel("epochs (days)")
        axes.set_ylabel("harmonic cost $J_h$ per URL")
        axes.set_ylim(bottom=0)
        axes.legend(loc="lower right", title="dashed: rates known", ncols=3)


def budgets(path: Path, rows: Sequence[Budgeted]) -> None:
    """Cost against budget, as a share of LambdaCrawl's."""
    title = "Figure 4: the same fetches, scheduled better"
    with canvas(path, title, f"{SURROGATE}; no such figure in the paper") as axes:
        share = [100 * row.bandwidth for row in rows]
        base = np.array([row.lambda_crawl for row in rows])
        lines = (
            ("LambdaCrawl (Poisson)", GREY, "-", "", base),
            ("its rates, periodic", ORANGE, "-", "o", np.array([r.periodic for r in rows])),
            ("greedy_index, simulated", BLUE, "-", "s", np.array([r.greedy_index for r in rows])),
            ("relaxed lower bound", GREEN, "--", "", np.array([r.relaxed_bound for r in rows])),
        )
        for label, colour, line, mark, values in lines:
            axes.plot(share, values / base, line, color=colour, marker=mark, ms=5, label=label)
        axes.set_xscale("log")
        axes.set_xticks(share, [f"{value:g} %" for value in share], minor=False)
        axes.set_xticks([], minor=True)
        axes.set_ylim(0, 1.1)
        axes.set_xlabel("budget, crawls per day as a share of the URLs")
        axes.set_ylabel("harmonic cost / LambdaCrawl's")
        axes.legend(loc="lower left")


@contextmanager
def canvas(path: Path, title: str, note: str) -> Iterator[Axes]:
    """Axes that are saved when the block ends."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 4.3), layout="constrained")
        axes = figure.subplots()
        axes.set_title(title)
        yield axes
        figure.supxlabel(note, fontsize=8, color=GREY, x=0.99, ha="right")
        figure.savefig(path, dpi=160)
