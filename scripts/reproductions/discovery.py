"""Table 3.2 and figures 3.2 to 3.6 of Pandey's thesis: covers that discover new pages.

On synthetic sites (scheduler.evaluate.world) and, where FRESHET_EVOLUTION_DIR names a
directory of recorded sites, on these, in weekly steps; NOT on the 42 sites of the thesis, which
are not at hand. Prints the table with the thesis's numbers beside ours, and the bounds of whatever
goes by history; writes figures as PNG and everything as discovery.json.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final

import numpy as np

from freshet.crawler.run.terminal import Cell, counted, show_line, show_list
from freshet.scheduler.arrays import Floats
from scripts.benchmarks.command import say
from scripts.reproductions import discovery_drawing as drawing
from scripts.reproductions import discovery_measures as measures
from scripts.reproductions import discovery_online as online
from scripts.reproductions import discovery_online_table as online_table
from scripts.reproductions import discovery_weekly as weekly
from scripts.reproductions.discovery_measures import BUDGETS, Row
from scripts.reproductions.discovery_recorded import directory, recorded, watched
from scripts.reproductions.growing_site import growing_sites
from scripts.reproductions.link_history import LinkHistory

THESIS: Final = Path(__file__).with_name("discovery_thesis.toml")
WORDS: Final = Path(__file__).with_name("discovery_words.toml")
SYNTHETIC, RECORDED = "synthetic sites", "recorded sites"
_COLUMNS: Final = ("depth", "overhead", "coverage")
#: Pages of the smallest synthetic site.
_SMALLEST: Final = 500
#: Weeks between full recrawls in figures 3.5 and 3.6.
FIGURES: Final = {1: "3.5", 4: "3.6"}


@dataclass(frozen=True, slots=True)
class Collection:
    """What was found on some sites together.

    Attributes:
        facts: what the sites are like.
        table: by algorithm and budget.
        limits: by weeks between full recrawls.
        greedy: budgets, new pages covered (mean), overhead over all, and coverage (figure 3.2).
        overlaps: share of pairs by Jaccard coefficient (3.3).
        everywhere: coverage and overhead (3.4).
        curves: depth and coverage of each algorithm, by weeks between recrawls (3.5 and 3.6).
    """

    name: str
    facts: Mapping[str, float]
    table: Mapping[str, Mapping[int, Row]]
    limits: Mapping[int, Row]
    greedy: tuple[Floats, Floats, Floats, Floats]
    overlaps: Floats
    everywhere: tuple[Floats, Floats]
    curves: Mapping[int, drawing.Lines]


def measured(name: str, histories: Sequence[LinkHistory]) -> Collection:
    """All tables and curves of some sites."""
    say(f"{name}: {', '.join(each.name for each in histories)}")
    everything = [each.recrawls() for each in histories]
    sites = [measures.weeks(each) for each in everything]
    knowing = [trace for site in sites for trace in measures.optimal(site)]
    new = sum(week.new for site in everything for week in site)
    facts = {
        "sites": len(histories),
        "pages at the first step": sum(int((each.born == 0).sum()) for each in histories),
        "new pages": new,
        "orphans": sum(week.orphans for site in everything for week in site),
        "linked directly": sum(each.linked_directly() for each in histories),
        "weeks judged": len(knowing),
        "of these without a new page": sum(not each.new for each in knowing),
        "weeks of rebuilds, left out": sum(
            not measures.is_judged(week) for site in sites for week in site[measures.FIRST :]
        ),
    }
    return Collection(
        name, facts, measures.table(sites), measures.limits(sites), by_size(knowing),
        measures.overlaps(week for site in sites for week in site if measures.is_judged(week)),
        measures.everywhere(knowing), {every: measures.curves(sites, every) for every in FIGURES},
    )  # fmt: skip


def by_size(knowing: Sequence[measures.Trace]) -> tuple[Floats, Floats, Floats, Floats]:
    """Figure 3.2: budgets; pages covered, overhead and coverage with each."""
    longest = max((each.found.size - 1 for each in knowing), default=1)
    budgets = np.arange(1.0, max(longest, 1) + 1)
    rows = [measures.row(knowing, budget) for budget in budgets.tolist()]
    weeks = [each.new for each in knowing if each.new]
    coverage = np.array([each.coverage for each in rows])
    overall = np.array([each.overall for each in rows])
    return budgets, coverage * float(np.mean(weeks or [0])), overall, coverage


def show_table(found: Collection, printed: dict[str, Any]) -> None:
    """Table 3.2, with the thesis's numbers beside ours."""
    header = ("algorithm", "budget", "depth", "thesis", "overhead", "thesis", "overall",
              "coverage", "thesis")  # fmt: skip
    rows: list[Sequence[Cell]] = []
    for name, by_budget in found.table.items():
        theirs = printed["table"].get(name)
        for place, budget in enumerate(BUDGETS):
            ours = by_budget[budget]
            said = [theirs[key][place] if theirs else None for key in _COLUMNS]
            rows.append((
                name, f"{budget:,}", number(ours.depth), number(said[0]), percent(ours.overhead),
                number(said[1], " %"), percent(ours.overall), percent(ours.coverage),
                number(said[2], " %"),
            ))  # fmt: skip
    show_list(f"Table 3.2 on {found.name}", header, rows)


def show_limits(found: Sequence[Collection], printed: dict[str, Any]) -> None:
    """The bounds of section 3.6.5."""
    header = ("full recrawls", *(each.name for each in found), "thesis")
    names = {1: "every week (full)", 2: "every 2 weeks", 4: "every 4 weeks"}
    rows: list[Sequence[Cell]] = [
        (name, *(percent(each.limits[every].coverage) for each in found),
         f"{printed['limits'][str(every)]} %")
        for every, name in names.items()
    ]  # fmt: skip
    show_list("Coverage by every page that ever revealed a new one", header, rows)


def show_sites(sites: Sequence[Collection]) -> None:
    """Each recorded site for itself, with ten visits a week."""
    names = ("OD-WIN", "CLIQ-WIN", "COV", measures.OPTIMAL)
    header = ("site", "new pages", "weeks", "without any",
              *(part for name in names for part in (name, "overall")), "bound")  # fmt: skip
    rows: list[Sequence[Cell]] = [
        (
            each.name, f"{each.facts['new pages']:,}", f"{each.facts['weeks judged']:,}",
            f"{each.facts['of these without a new page']:,}",
            *(cell for name in names for cell in
              (percent(each.table[name][10].coverage), percent(each.table[name][10].overall))),
            percent(each.limits[1].coverage),
        )
        for each in sites
    ]  # fmt: skip
    show_list("Each recorded site with a budget of 10: coverage and overhead", header, rows)


def show_weekly(found: Mapping[str, weekly.Rows]) -> None:
    """What each algorithm finds of a week's new pages by the end of it."""
    header = (
        "site",
        "algorithm",
        *(part for budget in weekly.BUDGETS for part in (f"{budget} a week", "overhead")),
    )
    rows: list[Sequence[Cell]] = [
        (
            site, name,
            *(cell for budget in weekly.BUDGETS for cell in
              (percent(by_budget[budget].coverage), percent(by_budget[budget].overall))),
        )
        for site, table in found.items()
        for name, by_budget in table.items()
    ]  # fmt: skip
    show_list("New pages found within seven days, after full recrawls every week", header, rows)
    for budget in weekly.BUDGETS:
        leads = {site: weekly.lead(table, budget) for site, table in found.items()}
        dearer = [site for site, table in found.items() if weekly.is_dearer(table, budget)]
        show_line(
            f"COV-WIN and the best of {', '.join(weekly.RIVALS)}, {budget} a week: above on "
            f"{_named(site for site, each in leads.items() if each > 0)}; below on "
            f"{_named(site for site, each in leads.items() if each < 0)}; dearer than OD-WIN on "
            f"{_named(dearer)}",
            "dim",
        )


def show_singly(found: Sequence[weekly.Rows]) -> None:
    """On how many of the synthetic sites, each for itself, COV-WIN is ahead and behind."""
    for budget in weekly.BUDGETS:
        leads = [weekly.lead(each, budget) for each in found]
        above, below = sum(each > 0 for each in leads), sum(each < 0 for each in leads)
        show_line(
            f"Each of {len(found)} synthetic sites for itself, {budget} a week: above the best of "
            f"them on {above}, below on {below}; by {100 * float(np.median(leads)):.1f} points in "
            "the median",
            "dim",
        )


def _named(sites: Iterable[str]) -> str:
    return ", ".join(sites) or "none"


def show_facts(found: Collection, printed: dict[str, Any]) -> None:
    """What the sites are like, in a line."""
    facts = found.facts
    new = max(facts["new pages"], 1)
    show_line(
        f"{found.name.capitalize()}: {counted(int(facts['sites']), 'site')}, "
        f"{facts['pages at the first step']:,} pages at first, {facts['new pages']:,} new ones "
        f"({facts['orphans'] / new:.0%} orphans, {facts['linked directly'] / new:.0%} linked by an "
        f"old page; in the thesis under {printed['greedy']['orphans']} % and about "
        f"{printed['greedy']['linked_directly']} %), {facts['weeks judged']:,} weeks judged, "
        f"nothing new in {facts['of these without a new page']:,} of them.",
        "bold",
    )


def percent(share: float) -> str:
    """A share for people."""
    if not isfinite(share):
        return "∞" if share == float("inf") else "–"
    return f"{100 * share:,.1f} %" if share < 1 else f"{100 * share:,.0f} %"


def number(value: float | None, unit: str = "") -> str | None:
    """A number for people; None stays None."""
    return None if value is None else f"{value:,.1f}{unit}"


def draw(folder: Path, found: Sequence[Collection], printed: dict[str, Any]) -> None:
    """All figures."""
    drawing.sizes(folder / "discovery_3_2.png", found, printed["greedy"])
    drawing.overlaps(folder / "discovery_3_3.png", found)
    drawing.everywhere(folder / "discovery_3_4.png", found, printed["greedy"])
    for every, figure in FIGURES.items():
        weeks = "every week" if every == 1 else f"every {every} weeks"
        title = f"Figure {figure}: coverage and depth, full recrawls {weeks}"
        drawing.depths(
            folder / f"discovery_{figure.replace('.', '_')}.png", title, found, every
        )  # fmt: skip


def as_json(
    found: Sequence[Collection],
    by_site: Mapping[str, weekly.Rows],
    spread: Mapping[str, online.Scores],
    printed: dict[str, Any],
) -> dict[str, Any]:
    """Everything as JSON values; shares, not per cent, but for what the thesis prints."""
    return {
        "collections": [plain(asdict(each)) for each in found],
        "within_seven_days": plain(by_site),
        "by_single_looks": plain(spread),
        "thesis": printed,
    }


def plain(value: Any) -> Any:
    """The same without arrays and classes, and with null for what is no finite number."""
    if isinstance(value, measures.Row | online.Score):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    return None if isinstance(value, float) and not isfinite(value) else value


def options() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("reproduction"), metavar="DIR")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--quick", action="store_true", help="three small synthetic sites only")
    parser.add_argument("--sites", type=int, default=12, help="synthetic ones")
    parser.add_argument("--largest", type=int, default=30_000, help="pages of the largest of them")
    parser.add_argument("--weeks", type=int, default=24, help="of the synthetic sites")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--recorded", type=Path, default=directory(), metavar="DIR",
        help="recorded sites (*.sqlite.zst); by default those of FRESHET_EVOLUTION_DIR",
    )  # fmt: skip
    given = parser.parse_args()
    check(parser, given)
    if given.quick:
        given.sites, given.largest, given.weeks, given.recorded = 3, 800, 14, None
    return given


def check(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Refuse in a line what makes no sense."""
    if given.sites < 1 or given.largest < _SMALLEST or given.weeks <= measures.FIRST + 1:
        parser.error(
            f"--sites must be at least 1, --largest {_SMALLEST}, --weeks {measures.FIRST + 2}"
        )
    try:
        given.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--output {given.output}: {error.strerror}")
    if given.recorded is not None and not list(given.recorded.glob("*.sqlite.zst")):
        parser.error(f"--recorded {given.recorded}: no *.sqlite.zst is there")


def main() -> None:
    """Measure, print, draw."""
    given = options()
    printed = tomllib.loads(THESIS.read_text("utf-8"))
    drawn = growing_sites(given.sites, _SMALLEST, given.largest, given.weeks, given.seed)
    found = [measured(SYNTHETIC, drawn)]
    by_site = {SYNTHETIC: weekly.compared(drawn)}
    singly = [weekly.compared([each]) for each in drawn]
    single: list[Collection] = []
    if given.recorded is not None:
        histories = list(recorded(given.recorded))
        found.append(measured(RECORDED, histories))
        single = [measured(each.name, [each]) for each in histories]
        by_site |= {each.name: weekly.compared([each]) for each in histories}
    draw(given.output, found, printed)
    spread = online_table.synthetic(drawn, given.seed)
    if given.recorded is not None:
        spread |= {site.name: online.compared(site) for site in watched(given.recorded)}
    text = json.dumps(as_json([*found, *single], by_site, spread, printed), indent=1) + "\n"
    (given.output / "discovery.json").write_text(text, "utf-8")
    if given.json:
        print(text, end="")
    else:
        show(found, single, printed)
        show_weekly(by_site)
        show_singly(singly)
        online_table.show(spread)
        show_words(has_recorded=bool(single))
        show_line(f"Figures and discovery.json are in {given.output}/")


def show(
    found: Sequence[Collection], single: Sequence[Collection], printed: dict[str, Any]
) -> None:
    """The thesis's tables."""
    show_line("Not the sites of the thesis; its numbers beside ours.")
    for each in found:
        show_facts(each, printed)
        show_table(each, printed)
    show_line(
        "OD-WIN, CLIQ-WIN and COV-WIN (ours): means over full recrawls every 2 to 6 weeks; OD-1, "
        "OD-ALL-1, CLIQ-1 and COV: every week. Overhead: the mean, over sites and weeks, of visits "
        "for each new page found, where any was. Overall: all looks for all pages found.",
        "dim",
    )
    show_limits(found, printed)
    if single:
        show_sites(single)


def show_words(*, has_recorded: bool) -> None:
    """What differs from the thesis."""
    show_line("What differs, and why (with the default sites and seed)", "bold")
    words = tomllib.loads(WORDS.read_text("utf-8"))
    for sentence in (
        *words["synthetic"],
        *(words["recorded"] if has_recorded else ()),
        words["new_sites"],
    ):
        show_line(f"- {sentence}")
