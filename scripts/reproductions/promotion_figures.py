"""Figures 5.2 to 5.12 of Pandey's thesis as PNG, and their numbers as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from freshet.scheduler.arrays import Floats
from scripts.reproductions import promotion
from scripts.reproductions.drawing import BLUE, GREEN, GREY, ORANGE, VERMILION, canvas
from scripts.reproductions.promotion_model import Rule, solve

_QPC = "QPC as a share of ranking by quality"
_COLOURS = (GREY, BLUE, GREEN, ORANGE, VERMILION)
_AXES = {
    "5.7": ("Figure 5.7: size of the community", "pages", 10_000),
    "5.8": ("Figure 5.8: lives of pages", "expected life, years", 1.5),
    "5.9": ("Figure 5.9: visits, one a user and day", "visits a day", 1_000),
    "5.10": ("Figure 5.10: users, with 1,000 visits a day", "users", 1_000),
}


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of a figure and their standard errors, in the style of matplotlib."""

    label: str
    colour: str
    x: Sequence[float] | Floats
    y: Sequence[float] | Floats
    error: Sequence[float] | None = None
    style: str = "o-"


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure of one panel, with logarithmic axes where ``log`` names them."""

    number: str
    title: str
    axes: tuple[str, str]
    curves: Sequence[Curve]
    log: str = ""
    note: str = "simulated, selective, r = 0.1; the thesis prints no values"
    legend: Literal["best", "lower right"] | tuple[float, float] = "best"

    def write(self, folder: Path) -> None:
        """Draw it and write its numbers."""
        name = f"promotion_{self.number.replace('.', '_')}"
        with canvas(folder / f"{name}.png", self.title, self.note) as axes:
            for each in self.curves:
                axes.plot(each.x, each.y, each.style, color=each.colour, label=each.label, ms=5)
                if each.error:
                    axes.errorbar(each.x, each.y, each.error, fmt="none", color=each.colour)
            axes.set(xlabel=self.axes[0], ylabel=self.axes[1])
            axes.set_xscale("log" if "x" in self.log else "linear")
            axes.set_yscale("log" if "y" in self.log else "linear")
            if "y" not in self.log:
                axes.set_ylim(bottom=0)
            axes.legend(fontsize=9, loc=self.legend)
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("curve", *self.axes, "standard error"))
            for each in self.curves:
                errors = each.error or [np.nan] * len(each.x)
                for row in zip(each.x, each.y, errors, strict=True):
                    writer.writerow((each.label, *(float(value) for value in row)))


def draw(folder: Path, laboratory: promotion.Laboratory) -> None:
    """Draw all of them."""
    for each in (*_modelled(), *_degrees(laboratory), *_settings(laboratory), _live(laboratory)):
        each.write(folder)


def _modelled() -> Iterator[Drawing]:
    """Figures 5.2 and 5.3."""
    some = ("none", "sel 1 0.2", "uniform 1 0.2")
    solved = [solve(promotion.DEFAULT, promotion.rule_of(name)) for name in some]
    known, days = np.linspace(0, 1, solved[0].law.shape[1]), np.arange(0.0, 601, 5)
    each = [*zip(some, _COLOURS, solved, strict=False)]
    yield Drawing(
        "5.2", "Figure 5.2: awareness of a page of quality 0.4", ("awareness", "share of time"),
        [Curve(name, colour, known, of.law[0], style="-") for name, colour, of in each[:2]],
        "y", "by the model",
    )  # fmt: skip
    yield Drawing(
        "5.3", "Figure 5.3: popularity of a page of quality 0.4", ("days", "popularity"),
        [Curve(name, colour, days, of.popularity(days), style="-") for name, colour, of in each],
        note="by the model, of a page that lives on", legend=(0.72, 0.7),
    )  # fmt: skip


def _degrees(laboratory: promotion.Laboratory) -> Iterator[Drawing]:
    """Figures 5.4 to 5.6."""
    r, days, qpc = np.linspace(0, 0.2, 21), list[Curve](), list[Curve]()
    for kind, name, colour in (("sel", "selective", BLUE), ("uniform", "uniform", ORANGE)):
        model = [solve(promotion.DEFAULT, Rule(1, x, kind == "uniform")) for x in r.tolist()]
        days.append(Curve(f"{name}, model", colour, r, [each.days for each in model], style="--"))
        qpc.append(Curve(f"{name}, model", colour, r, [each.qpc for each in model], style="--"))
        some = ("none", *(f"{kind} 1 {x}" for x in (0.05, 0.1, 0.2)))
        x = [promotion.rule_of(each).r for each in some]
        y, error, _ = zip(*map(laboratory.popular, some), strict=True)
        days.append(Curve(f"{name}, simulated", colour, x, y, error, "o"))
        found = [laboratory.found(promotion.DEFAULT, promotion.rule_of(each)) for each in some]
        y, error = zip(*((each.qpc, each.error) for each in found), strict=True)
        qpc.append(Curve(f"{name}, simulated", colour, x, y, error, "o"))
    title = "Figure 5.4: days until a page of quality 0.4 is popular"
    yield Drawing("5.4", title, ("r", "days"), days, "y", "k = 1")
    yield Drawing("5.5", "Figure 5.5: quality per click", ("r", _QPC), qpc, note="k = 1")
    grid, starts = (0.1, 0.2, 0.3, 0.4, 0.55, 0.7, 0.85, 1.0), (1, 2, 6, 11, 21)
    none = laboratory.found(promotion.DEFAULT, Rule()).qpc
    curves = [
        Curve(
            f"k = {k}", colour, (0.0, *grid),
            [none, *(laboratory.found(promotion.DEFAULT, Rule(k, x)).qpc for x in grid)],
        )
        for k, colour in zip(starts, (BLUE, GREEN, ORANGE, VERMILION, GREY), strict=True)
    ]  # fmt: skip
    critical = [promotion.DEFAULT.critical(k) for k in starts[:4]]
    curves.append(
        Curve("critical degrees of 1, 2, 6, 11", "black", critical, [0.02] * 4, style="^")
    )
    title = "Figure 5.6: first place and degree of selective promotion"
    yield Drawing("5.6", title, ("r", _QPC), curves, note="simulated, mostly 10,000 days")


def _settings(laboratory: promotion.Laboratory) -> Iterator[Drawing]:
    """Figures 5.7 to 5.11."""
    for number, (title, words, default) in _AXES.items():
        points = {float(default): promotion.DEFAULT} | {
            float(name.split()[1]): community
            for name, community in promotion.communities().items()
            if name.startswith(f"{number} ") and laboratory.includes(community)
        }
        curves = []
        for (name, rule), colour in zip(promotion.COMPARED.items(), _COLOURS, strict=False):
            every = [laboratory.found(points[x], rule) for x in sorted(points)]
            errors = [each.error for each in every]
            curves.append(Curve(name, colour, sorted(points), [f.qpc for f in every], errors))
        yield Drawing(number, title, (words, _QPC), curves, "" if number == "5.8" else "x")
    shares = [float(share) for share in promotion.EXPECTED["surfing"]]
    curves = []
    for (name, rule), colour in zip(promotion.COMPARED.items(), _COLOURS, strict=False):
        found = [laboratory.found(promotion.DEFAULT, rule, x).absolute for x in shares]
        curves.append(Curve(name, colour, shares, found))
    yield Drawing("5.11", "Figure 5.11: surfing", ("share of visits by surfing", "QPC"), curves)


def _live(laboratory: promotion.Laboratory) -> Drawing:
    """Figure 5.12."""
    views, curves = (5.0, 15.0, 40.0), []
    for top, exponent, colour in ((0.4, 2 / 3, BLUE), (0.8, 2 / 3, GREEN), (0.4, 1 / 1.1, ORANGE)):
        found = [promotion.studied(v, top, exponent, laboratory.effort.studies) for v in views]
        gain, error = zip(*found, strict=True)
        name = f"best quality {top:g}, exponent {exponent:.2f}"
        curves.append(Curve(name, colour, views, gain, error))
    curves.append(Curve("thesis", "black", (5, 40), (0.6, 0.6), style="--"))
    title = "Figure 5.12: gain in funny votes by promotion in the live study"
    note = "simulated; the thesis prints neither views nor qualities"
    axes = ("views a person", "gain")
    return Drawing("5.12", title, axes, curves, note=note, legend="lower right")
