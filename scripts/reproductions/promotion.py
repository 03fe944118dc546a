"""Chapter 5 of Pandey's thesis: ranking with rank promotion, its model, simulator and live study.

The curves of the thesis have no printed values. Prints what is found beside the values of an
earlier, independent program, with a tolerance; draws figures 5.2 to 5.12. --quick shows the same
with runs that are too short to agree.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from freshet.crawler.run.terminal import Cell, show_line, show_list
from scripts.benchmarks.command import say
from scripts.reproductions.promotion_live import Study, ratios
from scripts.reproductions.promotion_model import (
    Community,
    Form,
    Rule,
    awareness,
    printed_awareness,
    solve,
)
from scripts.reproductions.promotion_simulator import Run, simulate

EXPECTED: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("promotion_expected.toml").read_text("utf-8")
)
COMPARED = {"none": Rule(), "selective, k = 1": Rule(1, 0.1), "selective, k = 2": Rule(2, 0.1)}
DEFAULT = Community()
YEAR = 365.0
_WORDS = """
Theorem 2 as printed has (1 − aᵢ) outside a denominator: it does not sum to 1 and ends in ∞.
The pool is emptied above r_c only, where as many looks are promoted as there are new pages. The \
recommended r = 0.1 is below r_c of k = 1 and 2: many new pages die unseen.
F at 0 as printed gives the unseen pages more visits than their places have. How they tie changes \
the time to become popular, and not how many are seen at all: QPC stays.
In the model a page is not above itself; otherwise ΣV is 2 % too small near r_c.
"""
Row = tuple[str, float, float, float]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is simulated: runs of days after lives, a share of the probes, runs of the study.

    Communities that are ``largest`` times the default or more are left out.
    """

    runs: int = 3
    days: int = 40_000
    burn_in: float = 8.0
    probed: float = 1.0
    studies: int = 60
    largest: float = np.inf

    def of(self, community: Community, rule: Rule, surfing: float) -> tuple[int, int]:
        """Return runs and days: most for the rules of the table, fewer where much is visited."""
        if (size := max(community.pages / 1e4, community.looks / 100)) > 1:
            return 1, round(self.days / size**0.6)
        if community != DEFAULT or surfing:
            return 1, self.days * 3 // 4
        if rule.name not in EXPECTED["rule"]:
            return 1, self.days // 4
        # Without promotion runs differ most.
        return self.runs * (1 + (rule == Rule())), self.days


QUICK = Effort(runs=1, days=400, burn_in=0.5, probed=0.01, studies=2, largest=10)


@dataclass(frozen=True, slots=True)
class Found:
    """Means over runs: normalized QPC with its standard error, QPC, and z."""

    qpc: float
    error: float
    absolute: float
    pool: float


class Laboratory:
    """Simulations of one effort, each run once, and how many values were compared and missed."""

    def __init__(self, effort: Effort) -> None:
        self.effort, self.found, self.popular = effort, cache(self._found), cache(self._popular)
        self.compared = self.missed = 0

    def includes(self, community: Community) -> bool:
        """Whether the effort is enough for this community."""
        return max(community.pages, community.visits) < 1e4 * self.effort.largest

    def _found(self, community: Community, rule: Rule, surfing: float = 0.0) -> Found:
        runs, days = self.effort.of(community, rule, surfing)
        of = f"{community.pages:,} pages of {community.life:g} days, {community.users:,} users"
        visits = f"{community.visits:g} visits a day, {surfing:.0%} by surfing"
        say(f"{rule.name}: {runs} × {days:,} days, {of}, {visits}")
        each = [
            simulate(community, rule, Run(days, seed, self.effort.burn_in, surfing=surfing))
            for seed in range(runs)
        ]
        rest = np.mean([(one.absolute, one.pool) for one in each], axis=0)
        return Found(*mean([one.qpc for one in each]), *rest.tolist())

    def _popular(self, name: str) -> tuple[float, float, int]:
        """TBP of one page after the other, its standard error, and the number of pages."""
        days = self.effort.probed * min(80 * EXPECTED["rule"][name]["days"][0], 80_000)
        say(f"{name}: time to become popular in 2 × {days:.0f} days")
        runs = (Run(round(days), seed, self.effort.burn_in, probe=True) for seed in (99, 100))
        popular = [day for run in runs for day in simulate(DEFAULT, rule_of(name), run).popular]
        return *mean(popular), len(popular)

    def show(self, title: str, rows: Iterable[Row], *, is_simulated: bool = True) -> None:
        """Print names, values found and expected, tolerances, and whether they agree."""
        lines: list[Sequence[Cell]] = []
        for name, *figures in rows:
            agrees = abs(figures[0] - figures[1]) <= figures[2] * (1 + 1e-9)
            word = "yes" if agrees else "no"
            if is_simulated and self.effort == QUICK:
                word = "–"
            else:
                self.compared, self.missed = self.compared + 1, self.missed + (not agrees)
            lines.append((name, *(f"{each:.4g}" for each in figures), word))
        show_list(title, ("", "here", "expected", "±", "agrees"), lines)


def mean(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard error; nan where there are too few."""
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
    return float(np.mean(values)) if values else np.nan, float(error)


def rule_of(name: str) -> Rule:
    """Return the rule of this name."""
    if name.startswith("none"):
        return Rule(older_first="older" in name)
    pool, k, r = name.split()
    return Rule(int(k), float(r), uniform=pool == "uniform")


def communities() -> dict[str, Community]:
    """The settings of figures 5.7 to 5.10, by figure and value."""
    settings = {f"5.7 {n}": Community(n, n // 10, n / 10) for n in (1_000, 100_000)}
    settings |= {f"5.8 {y}": Community(life=y * YEAR) for y in (0.5, 2.5, 4.5)}
    settings |= {f"5.9 {v}": Community(users=v, visits=v) for v in (100, 10_000, 100_000)}
    return settings | {f"5.10 {u}": Community(users=u) for u in (100, 100_000)}


def example() -> tuple[list[float], list[float], float]:
    """The chain of ten users, F = 0.05 + 2x: corrected and printed law, and TBP."""
    known = np.arange(11) / 10
    visits = 0.05 + 2 * 0.4 * known
    rates = visits * (1 - known)
    printed = printed_awareness(visits, 0.1)
    return awareness(rates, 0.1).tolist(), printed.tolist(), float((1 / rates[:10]).sum())


def exact() -> Iterator[Row]:
    """What needs neither model nor simulator."""
    law, printed, days = example()
    yield "θ", DEFAULT.theta, 38.57, 0.01
    yield "QPC of ranking by quality", DEFAULT.best, 0.2333, 1e-4
    yield "the same, exponent 1/1.1", Community(exponent=1 / 1.1).best, 0.2128, 1e-4
    for k, expected in ((1, 0.183), (2, 0.297), (6, 0.569), (11, 0.793)):
        yield f"r_c, k = {k}", DEFAULT.critical(k), expected, 1e-3
    for i, expected in ((0, 0.6667), (1, 0.1536), (2, 0.0671), (9, 0.0052), (10, 0.0040)):
        yield f"example, f({i / 10:g})", law[i], expected, 1e-4
    yield "example, sum as printed, without f(1)", sum(printed), 1.132, 1e-3
    yield "example, TBP", days, 78.79, 0.01


def modelled() -> Iterator[Row]:
    """The fixpoint in all forms."""
    of_rules = {name: each["model"] for name, each in EXPECTED["rule"].items() if "model" in each}
    fitted = {name: values[2:] for name, values in EXPECTED["printed"].items()}
    kinds: tuple[tuple[str, Community, Form, dict[str, Sequence[float]]], ...] = (
        ("", DEFAULT, "law", of_rules),
        ("1/1.1: ", Community(exponent=1 / 1.1), "law", EXPECTED["steep"]),
        ("as printed: ", DEFAULT, "printed", EXPECTED["printed"]),
        ("fitted: ", DEFAULT, "fitted", fitted),
    )
    for words, community, form, values in kinds:
        for name, (qpc, days, *_) in values.items():
            found = solve(community, rule_of(name), form)
            yield f"{words}{name}, QPC", found.qpc, qpc, 0.003
            yield f"{words}{name}, TBP", found.days, days, days / 100
            if form == "law":
                yield f"{words}{name}, all visits", found.total, community.looks, 1.0


def shares() -> Iterator[Row]:
    """Figures 5.2 and 5.3 by the model."""
    none, some = (solve(DEFAULT, rule).law[0] for rule in (Rule(), Rule(1, 0.2)))
    yield "5.2, none: time at A ≤ 0.1", none[:11].sum(), 0.91, 0.005
    yield "5.2, sel 1 0.2: time at A ≥ 0.9", some[90:].sum(), 0.87, 0.005
    yield "5.2, sel 1 0.2: time between", some[11:90].sum(), 0.04, 0.005
    days = np.array([100.0, 547.0])
    values = {"sel 1 0.2": (0.370, 0.400), "uniform 1 0.2": (0.047, 0.259), "none": (0.007, 0.039)}
    for name, expected in values.items():
        found = solve(DEFAULT, rule_of(name)).popularity(days)
        for day, value, other in zip(days, found, expected, strict=True):
            yield f"5.3, {name}: popularity after {day:g} days", value, other, 0.003


def simulated(laboratory: Laboratory) -> Iterator[Row]:
    """The rules in the default community."""
    for name, each in EXPECTED["rule"].items():
        found = laboratory.found(DEFAULT, rule_of(name))
        yield f"{name}, QPC", found.qpc, *each["simulated"]
        if "pool" in each:
            yield f"{name}, z", found.pool, *each["pool"]


def probed(laboratory: Laboratory) -> Iterator[Row]:
    """Time to become popular; the tolerance is two standard errors of the difference."""
    for name, each in EXPECTED["rule"].items():
        if "days" in each:
            expected, other = each["days"]
            found, error, number = laboratory.popular(name)
            words = f"{name}, TBP ± {error:.3g} of {number}"
            yield words, found, expected, 2 * float(np.hypot(error, other))


def settings(laboratory: Laboratory) -> Iterator[Row]:
    """Figures 5.7 to 5.11."""
    for name, community in communities().items():
        *values, tolerance = [*EXPECTED["figures"][name], 0.05][:4]
        if laboratory.includes(community):
            for (rule, of), expected in zip(COMPARED.items(), values, strict=True):
                yield f"{name}, {rule}", laboratory.found(community, of).qpc, expected, tolerance
    for share, values in EXPECTED["surfing"].items():
        for (rule, of), expected in zip(COMPARED.items(), values, strict=False):
            found = laboratory.found(DEFAULT, of, float(share)).absolute
            yield f"5.11 {share}, {rule}", found, expected, 0.012


@cache
def studied(views: float, top: float, exponent: float, runs: int) -> tuple[float, float]:
    """Figure 5.12: the gain in funny votes, with its standard error."""
    say(f"live study, {views:g} views a person, top {top:g}, exponent {exponent:.3g}: {runs} runs")
    without, promoted = ratios(Study(views, top, exponent), range(runs)).T
    if not without.any() or not promoted.any():
        return np.nan, np.nan
    gain = promoted.mean() / without.mean()
    error = np.hypot(*(mean(each.tolist())[1] / each.mean() for each in (without, promoted)))
    return float(gain - 1), float(gain * error)


def live(runs: int) -> Iterator[Row]:
    """The gain for the qualities that come near to the thesis; its tolerance is two errors."""
    for views, expected in EXPECTED["live"].items():
        gain, error = studied(float(views), 0.4, 2 / 3, runs)
        yield f"5.12, {views} views a person", gain, expected, 2 * error * (1 + runs / 30) ** 0.5


def options() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("reproduction"), metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="short runs, a minute in all")
    given = parser.parse_args()
    try:
        given.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--output {given.output}: {error.strerror}")
    return given


def main() -> None:
    """Measure, print, draw."""
    given = options()
    laboratory = Laboratory(QUICK if given.quick else Effort())
    laboratory.show("Exact", exact(), is_simulated=False)
    laboratory.show("The model", modelled(), is_simulated=False)
    laboratory.show("Figures 5.2 and 5.3", shares(), is_simulated=False)
    laboratory.show("The simulator", simulated(laboratory))
    laboratory.show("Time to become popular, simulated", probed(laboratory))
    laboratory.show("Figures 5.7 to 5.11, simulated", settings(laboratory))
    laboratory.show("Figure 5.12", live(laboratory.effort.studies))
    show_line(f"{laboratory.missed} of {laboratory.compared} values do not agree.")
    for sentence in _WORDS.strip().splitlines():
        show_line(f"- {sentence}")
    from scripts.reproductions.promotion_figures import draw  # noqa: PLC0415 - it imports this

    draw(given.output, laboratory)
    show_line(f"Figures and numbers are in {given.output}/")
