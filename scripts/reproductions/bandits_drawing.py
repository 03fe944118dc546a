"""Figures 6.3 to 6.6 as PNG."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from scripts.reproductions.drawing import BLUE, GREEN, GREY, ORANGE, STYLE, VERMILION, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Shares of the bound by what was varied, its value, and the policy.
Shares: TypeAlias = Mapping[tuple[str, tuple[float, ...], str], float]

THREE = {"BMIX-E": (BLUE, "-"), "BMIX": (ORANGE, "-"), "GREEDY": (VERMILION, "-")}
_DAYS = {"known c": (GREY, ":"), "KL-UCB, learnt prior": (GREEN, "-"), "BMIX-ET": (BLUE, "--")}
_DAYS |= THREE | {"BMIX-T": (ORANGE, "--")}
_SHARE = "earnings, share of the bound"


def _curves(axes: Axes, shares: Shares, what: str, *fixed: float) -> None:
    """Draw policies against the first of the values, at the others."""
    for name, (colour, line) in ({"bound": (GREY, ":")} | THREE).items():
        points = [
            (value[0], share)
            for (varied, value, policy), share in shares.items()
            if (varied, policy) == (what, name) and value[1:] == fixed
        ]
        if points:
            x, y = zip(*sorted(points), strict=True)
            axes.plot(x, y, line, marker="o", ms=4, color=colour, label=name)


def days(path: Path, shares: Shares) -> None:
    """Shares by day, the mean of the markets, and for two policies the range of them."""
    note = "synthetic markets; bands: all markets"
    with canvas(path, "Figure 6.3: what policies earn, day by day", note) as axes:
        for name, (colour, line) in _DAYS.items():
            of_name = [
                (day, share)
                for (what, (*_, day), policy), share in shares.items()
                if (what, policy) == ("market", name)
            ]
            x, y = np.array(sorted(of_name)).T
            x, y = np.unique(x), y.reshape(len(np.unique(x)), -1)
            axes.plot(x, y.mean(axis=1), line, color=colour, label=name)
            if name in ("BMIX-E", "GREEDY"):
                axes.fill_between(x, y.min(axis=1), y.max(axis=1), color=colour, alpha=0.12, lw=0)
        axes.set(xlabel="day", ylabel=_SHARE, ylim=(None, 1.0))
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


def places(path: Path, shares: Shares) -> None:
    """Shares by the number of advertisements shown."""
    note = "synthetic market; shares of the bound with one advertisement"
    with canvas(path, "Figure 6.4: advertisements shown a query", note) as axes:
        _curves(axes, shares, "C")
        axes.set(xlabel="C, advertisements a query", ylabel=_SHARE, ylim=(0, None))
        axes.legend()


def priors(path: Path, shares: Shares) -> None:
    """Shares by the share of advertisements with a prior, a panel for each confidence."""
    confidences = sorted({value[1] for what, value, _ in shares if what == "prior"})
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2.6 * len(confidences), 3.6), layout="constrained")
        panels = figure.subplots(1, len(confidences), sharey=True)
        for axes, confidence in zip(panels, confidences, strict=True):
            _curves(axes, shares, "prior", confidence)
            axes.set(title=f"confidence v = {confidence:g}", xlabel="p, share with a prior")
        panels[0].set_ylabel(_SHARE)
        panels[0].legend(loc="upper left")
        figure.suptitle("Figure 6.5: what priors are worth")
        figure.savefig(path, dpi=130)


def lives(path: Path, shares: Shares) -> None:
    """Shares by the mean life of advertisements."""
    note = "synthetic market; the second half of 36 days"
    with canvas(path, "Figure 6.6: how long advertisements live", note) as axes:
        axes.set_xscale("log")
        _curves(axes, shares, "life")
        axes.set_xticks([1, 3, 10, 30], ["1", "3", "10", "30"])
        axes.set_xticks([], minor=True)
        axes.set(xlabel="mean life, days", ylabel=_SHARE)
        axes.legend()


FIGURES = (days, places, priors, lives)
