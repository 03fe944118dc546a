"""Table 4.1 and figures 4.2 to 4.4 of Pandey's thesis, chapter 4, and what is wrong with them.

Which pages to look at again so that searchers are served best, on a synthetic set and, where
FRESHET_EVOLUTION_DIR names a directory with them, on recorded sites. The thesis' data (boston.com
and 15 sites of 2004) and its query log are not at hand and its curves have no printed values: its
statements are reproduced. Beside its policies there are uniform looks and the threshold τ = 0,
which it does not have. Prints tables, writes figures as PNG and all numbers as CSV.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from freshet.crawler.run.terminal import Cell, show_line, show_list
from scripts.benchmarks.command import say
from scripts.reproductions import search_drawing as drawing
from scripts.reproductions.discovery_recorded import directory
from scripts.reproductions.search_measures import (
    BUDGETS,
    UNIFORM,
    Compared,
    Losses,
    compared,
    example,
    needed,
)
from scripts.reproductions.search_overhead import Overhead, overhead
from scripts.reproductions.search_snapshots import WEEKS, Snapshots, recorded, synthetic

#: Budgets of --quick, and those of which a table is printed; the figure has all.
QUICK_BUDGETS = (0.05, 0.2)
SHOWN = (0.05, 0.2, 0.35)
_WORDS = """
The claim of figure 4.4, substantially fewer looks than SBR and EBR, holds where the loss of the \
thesis is below both with the best τ.
The best τ is an oracle's choice, and parameters are fitted on the weeks on which they are judged: \
these gains are no evidence for a crawler that has to learn. On line they are below.
The priority δτ is myopic: where quality is lost evenly it costs what uniform looks cost. It gains \
by pages of which no change matters. The saving δτ²/2 is the optimum of that model.
On line the priority starves pages: one whose first looks found nothing is not looked at again.
Σ k^(−3/2) from i to j is not 2 (1/√i − 1/√(j − 1)), as printed: for i = j = 4 that is −0.155, and \
the sum is 0.125. Sums are exact here.
The mean of ratios is biased: at 0.3 equal changes a week it is 0.47 where 0.26 accrues.
A score moves when only a count or the length changes, not only with a posting. Idf is frozen, \
for otherwise every change moves all scores.
The best quality, by which (4.6) is divided, is the same for all pages at one time only; δQ_A \
means quality changes of many times. These sets do not grow, so that it matters little.
"""


def sets(given: argparse.Namespace) -> Iterator[tuple[Snapshots, tuple[str, ...]]]:
    """The sets to compare on, and by which scores."""
    queries, seed = given.queries, given.seed
    say(f"synthetic: {given.pages} pages")
    yield synthetic(given.pages, WEEKS, queries, seed), ("tf-idf",)
    if given.recorded is None:
        show_line("Recorded sites are left out: FRESHET_EVOLUTION_DIR names none.", "dim")
        return
    sites = {each.name.split(".")[0]: each for each in sorted(given.recorded.glob("*.sqlite.zst"))}
    for name in ("lean", "ada"):
        if name in sites:
            yield (
                recorded([sites[name]], queries=queries, seed=seed, full=True, name=name),
                ("tf-idf", "inlinks"),
            )
    together = f"{len(sites)} sites"
    yield (
        recorded([*sites.values()], queries=queries, seed=seed, full=False, name=together),
        ("tf-idf", "inlinks"),
    )


def show_example() -> None:
    """Table 4.1."""
    rows: list[Sequence[Cell]] = [
        (last, answer, f"{quality:.3f}") for last, answer, quality in example()
    ]
    show_list('Table 4.1: the query "cancer"', ("brought up to date", "answer", "Q"), rows)


def show_overhead(found: Overhead) -> None:
    """Figure 4.2."""
    rows: list[Sequence[Cell]] = [
        (f"{queries:,}", *(f"{each:.3f}" for each in seconds), f"{found.share(queries):+.0%}")
        for queries, seconds in found.seconds.items()
    ]
    header = ("queries", *(f"{size / 1e6:.2f} MB" for size in found.size), "added")
    show_list("Figure 4.2: seconds to index a batch (in the thesis +7 to 8 %)", header, rows)


def show_losses(
    title: str, found: Sequence[Compared], losses: Callable[[Compared], Losses]
) -> None:
    """Losses beside those of uniform looks at the same budget."""
    for budget in (each for each in SHOWN if each in losses(found[0])[UNIFORM]):
        bars = [losses(of)[UNIFORM][budget] for of in found]
        rows: list[Sequence[Cell]] = [("uniform, 1 − Q", *(f"{bar:.4f}" for bar in bars))]
        rows += [
            (p, *(share(losses(of)[p][budget], bar) for of, bar in zip(found, bars, strict=True)))
            for p in losses(found[0])
            if p != UNIFORM
        ]
        header = ("as multiples of uniform", *(of.name for of in found))
        show_list(f"{title}: {budget:.0%} of the pages a week", header, rows)


def share(loss: float, of_uniform: float) -> str:
    """A loss as a multiple of uniform's, for people."""
    return f"{loss / of_uniform:.2f}" if of_uniform > 0 else "–"


def show_needed(found: Sequence[Compared]) -> None:
    """Budgets for a quality."""
    for quality in (0.99, 0.995):
        rows: list[Sequence[Cell]] = [
            (policy, *(of_budget(needed(of.losses[policy], 1 - quality)) for of in found))
            for policy in found[0].losses
        ]
        header = ("", *(of.name for of in found))
        show_list(f"Figure 4.4: B/n for a quality of {quality}", header, rows)


def of_budget(budget: float | None) -> str:
    """B/n for people."""
    return "–" if budget is None else f"{budget:.3f}"


def show_facts(found: Sequence[Compared]) -> None:
    """What quality changes of single updates are like, and figure 4.3."""
    rows: list[Sequence[Cell]] = [
        (fact, *(f"{of.facts[fact]:.2f}" for of in found)) for fact in found[0].facts
    ]
    show_list("Measured quality changes", ("", *(of.name for of in found)), rows)


def write(folder: Path, cost: Overhead, found: Sequence[Compared]) -> None:
    """The figures and all numbers."""
    drawing.overhead(folder / "search_4_2.png", cost)
    drawing.halves(folder / "search_4_3.png", found)
    drawing.budgets(folder / "search_4_4.png", found)
    _csv(
        folder / "search_4_2.csv",
        ("queries", "bytes", "seconds"),
        (
            (queries, *each)
            for queries, seconds in cost.seconds.items()
            for each in zip(cost.size, seconds, strict=True)
        ),
    )
    _csv(
        folder / "search_4_3.csv",
        ("set", "page", "weeks 1-24", "weeks 25-48"),
        ((of.name, page, *half) for of in found for page, half in enumerate(of.halves.T)),
    )
    kinds: tuple[tuple[str, Callable[[Compared], Losses]], ...] = (
        ("fitted", lambda of: of.losses),
        ("on line", lambda of: of.on_line),
    )
    _csv(
        folder / "search_4_4.csv",
        ("set", "pages", "parameters", "policy", "looks a week and page", "loss"),
        (
            (of.name, of.pages, kind, policy, budget, loss)
            for of in found
            for kind, losses in kinds
            for policy, by_budget in losses(of).items()
            for budget, loss in by_budget.items()
        ),
    )


def _csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def options() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("reproduction"), metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="a small synthetic set only")
    parser.add_argument("--pages", type=int, default=600, help="of the synthetic set")
    parser.add_argument("--queries", type=int, default=1000, help="of each set")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--recorded", type=Path, default=directory(), metavar="DIR",
        help="recorded sites (*.sqlite.zst); by default those of FRESHET_EVOLUTION_DIR",
    )  # fmt: skip
    given = parser.parse_args()
    if given.pages < 20 or given.queries < 10:
        parser.error("--pages must be at least 20, --queries 10")
    try:
        given.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--output {given.output}: {error.strerror}")
    if given.recorded is not None and not list(given.recorded.glob("*.sqlite.zst")):
        parser.error(f"--recorded {given.recorded}: no *.sqlite.zst is there")
    if given.quick:
        given.pages, given.queries, given.recorded = min(given.pages, 150), 200, None
    return given


def main() -> None:
    """Measure, print, draw."""
    given = options()
    budgets = QUICK_BUDGETS if given.quick else BUDGETS
    show_example()
    say("index: batches without measuring, and with")
    cost = overhead(300, given.seed, (0, 100)) if given.quick else overhead(5_000, given.seed)
    show_overhead(cost)
    found = [
        compared(snapshots, by=by, budgets=budgets, say=say)
        for snapshots, scores in sets(given)
        for by in scores
    ]
    show_facts(found)
    show_losses("Fitted as in the thesis", found, lambda of: of.losses)
    show_needed(found)
    show_losses("Learnt on line", found, lambda of: of.on_line)
    for sentence in _WORDS.strip().splitlines():
        show_line(f"- {sentence}")
    write(given.output, cost, found)
    show_line(f"Figures and numbers are in {given.output}/")
