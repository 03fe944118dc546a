"""Figures 1 to 4 as PNG, the gap to the relaxed bound by replicas, and what learners earn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from freshet.scheduler.arrays import Floats
from freshet.scheduler.ephemeral.sources import EphemeralSources
from scripts.reproductions.drawing import BLUE, GREEN, GREY, ORANGE, STYLE, VERMILION, canvas
from scripts.reproductions.whittle_periods import Outcome

_COLOURS: Final = (BLUE, VERMILION, GREEN, ORANGE)
_SHOWN: Final = 30
#: Blocks of steps in the figure of learners, each longer than the last.
_BLOCKS: Final = 28


def values(path: Path, sources: EphemeralSources) -> None:
    """Figure 1: what an item is worth by its age."""
    with canvas(path, "Figure 1: content value as a function of time", "") as axes:
        ages = np.linspace(0, 10, 200)
        for row, colour in enumerate(_COLOURS):
            worth = sources.mean_utility[row] * np.exp(-sources.decay[row] * ages)
            axes.plot(ages, worth, color=colour, label=f"source {row + 1}")
        axes.set_xlabel("time since publication, periods")
        axes.set_ylabel("value")
        axes.set_xlim(0, 10)
        axes.set_ylim(bottom=0)
        axes.legend()


def evolution(path: Path, title: str, outcome: Outcome) -> None:
    """Figures 2 to 4: the state of each source, and when it is crawled."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 5.6), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        panels = figure.subplots(outcome.states.shape[1], 1, sharex=True, squeeze=False)[:, 0]
        for row, (axes, colour) in enumerate(zip(panels, _COLOURS, strict=True)):
            states = outcome.states[:_SHOWN, row]
            when = np.flatnonzero(outcome.crawled[:_SHOWN, row])
            axes.plot(states, color=colour, lw=1.2)
            axes.plot(when, states[when], "o", color=colour, ms=5)
            axes.set_ylim(0, 1.15 * float(states.max()))
            axes.set_ylabel(f"source {row + 1}")
        panels[-1].set_xlabel("period; dots: crawled")
        figure.savefig(path, dpi=150)


def replicas(path: Path, times: Sequence[int], gaps: Floats) -> None:
    """The gap to the relaxed bound as sources are replicated; one line a table."""
    title = "The index policy nears the relaxed bound as sources are replicated"
    with canvas(path, title, "random tables of four sources; bold: their mean") as axes:
        shown = 100 * np.maximum(gaps, 0)
        axes.plot(times, shown.T, color=GREY, lw=0.7, alpha=0.6)
        axes.plot(times, shown.mean(axis=0), "o-", color=BLUE, lw=2.5)
        axes.set_xscale("log")
        axes.set_xticks(times, [f"×{each}" for each in times])
        axes.set_xticks([], minor=True)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("copies of each source, and crawls a period")
        axes.set_ylabel("below the relaxed bound, %")


def courses(path: Path, learnt: dict[str, Floats], known: dict[str, float], printed: float) -> None:
    """Reward by step, of learners in growing blocks of steps, of the others a line."""
    title = "What learners earn of Table 1, M = 1, by step"
    note = "mean over seeds, shaded: the middle half of them; LSPE(0) is not held to M"
    with canvas(path, title, note) as axes:
        for (name, course), colour in zip(learnt.items(), (BLUE, VERMILION), strict=True):
            edges = np.unique(np.geomspace(1, course.shape[1], _BLOCKS).astype(int))
            blocks = [course[:, start - 1 : end] for start, end in pairwise(edges)]
            means = np.array([block.mean(axis=1) for block in blocks])
            middle = np.sqrt(edges[:-1] * edges[1:])
            low, high = np.quantile(means, (0.25, 0.75), axis=1)
            axes.fill_between(middle, low, high, color=colour, alpha=0.2, lw=0)
            axes.plot(middle, means.mean(axis=1), color=colour, label=name)
        for (name, height), colour in zip(known.items(), ("black", GREY), strict=True):
            axes.axhline(height, color=colour, lw=1.2, ls="--", label=name)
        axes.axhline(printed, color=ORANGE, lw=1.2, ls=":", label="LSPE(0), as the paper prints")
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.set_xlabel("step")
        axes.set_ylabel("utility per period")
        axes.legend(loc="lower right")
