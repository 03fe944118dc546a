"""Figures 1 to 4 as PNG, and the gap to the relaxed bound by replicas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from scheduler.arguments import Floats
from scheduler.ephemeral.ephemeral_sources import EphemeralSources
from scheduler.ephemeral.periods import Outcome
from scripts.reproductions.drawing import BLUE, GREEN, GREY, ORANGE, STYLE, VERMILION, canvas

_COLOURS: Final = (BLUE, VERMILION, GREEN, ORANGE)
_SHOWN: Final = 30


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
