"""Freshness beside the delay of new pages, for each way of sharing the visits, drawn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scripts.benchmarks.discovery_joint import Judged
from scripts.reproductions.drawing import BLUE, GREY, STYLE, VERMILION


def draw(found: Mapping[str, Mapping[str, Mapping[str, Judged]]], path: Path) -> None:
    """One panel for each site (columns) and budget (rows)."""
    sites = list(next(iter(found.values())))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2.9 * len(sites), 3.1 * len(found)), layout="constrained")
        grid = figure.subplots(len(found), len(sites), squeeze=False)
        for row, (when, of_sites) in zip(grid, found.items(), strict=True):
            for axes, site in zip(row, sites, strict=True):
                _panel(axes, of_sites[site])
                axes.set_title(f"{site}, a visit per page and {when}", fontsize=9)
            row[0].set_ylabel("mean H(missed changes)")
        for axes in grid[-1]:
            axes.set_xlabel("days that a new page is missing")
        figure.suptitle(
            "What copies cost, and how long new pages are missing: one price (star) beside fixed "
            "shares (discovery/refresh) of the same budget",
            x=0.01, ha="left", fontsize=11,
        )  # fmt: skip
        figure.savefig(path, dpi=110)


def _panel(axes: Axes, variants: Mapping[str, Judged]) -> None:
    fixed = [(it.delay, it.freshness, name) for name, it in variants.items() if "/" in name]
    axes.plot([x for x, _, _ in fixed], [y for _, y, _ in fixed], color=GREY, lw=1, zorder=1)
    axes.scatter([x for x, _, _ in fixed], [y for _, y, _ in fixed], color=BLUE, s=26, zorder=2)
    for x, y, name in fixed:
        axes.annotate(name, (x, y), textcoords="offset points", xytext=(5, 5), fontsize=8)
    ours = next(it for name, it in variants.items() if "/" not in name)
    axes.scatter([ours.delay], [ours.freshness], color=VERMILION, marker="*", s=130, zorder=3)
    axes.set_xlim(left=0, right=axes.get_xlim()[1] * 1.12)
    axes.set_ylim(bottom=0, top=axes.get_ylim()[1] * 1.08)
