"""How far the order of policies on a thinned archive is the true one, drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from scripts.benchmarks.replay_thinned import SHARES
from scripts.reproductions.drawing import BLUE, GREEN, ORANGE, VERMILION, canvas

_MARKS = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "^"), (VERMILION, "D"))


def draw(thin: dict[str, Any], path: Path) -> None:
    """Kendall's τ by the share of daily captures kept: means over the draws, and their range."""
    note = f"{len(thin['policies'])} policies; means and ranges of {thin['seeds']} draws"
    with canvas(
        path, "The order of policies on a thinned archive, beside the true one", note
    ) as axes:
        days = [1 / share for share in SHARES]
        for (site, found), (colour, mark) in zip(thin["sites"].items(), _MARKS, strict=False):
            thinned = found["thinned"]
            drawn = [each["middle"]["tau"] for each in thinned.values()]
            axes.plot(
                days, [np.mean(tau) for tau in drawn], color=colour, marker=mark, ms=5, label=site
            )
            lowest, highest = [min(tau) for tau in drawn], [max(tau) for tau in drawn]
            axes.fill_between(days, lowest, highest, color=colour, alpha=0.12, lw=0)
        axes.set_xscale("log")
        axes.set_xticks(days, [f"{each:g}" for each in days])
        axes.set_xticks([], minor=True)
        axes.set_ylim(top=1.05)
        axes.set_xlabel("days from one capture of a page to the next, on average")
        axes.set_ylabel("Kendall's τ of the harmonic costs")
        axes.legend(loc="lower left")
