"""Orders of a small search, where what is not shown is not opened.

200 pages in 10 sections live for 90 days; a search shows ten, place i is seen with probability
1/i, and what is seen is opened with the page's appeal. How much of the opens that an oracle
would get does each order get? There is no such study in Pandey's thesis; the figures beside ours
are an earlier study's. Then: other attention than assumed, noisy opens, a community whose likes are
seen, and a household that searches for a week. Prints tables, writes a figure and a CSV.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from freshet.crawler.extensions.readers.appeal import Appeal, Attention, kl_upper_bound
from freshet.crawler.run.terminal import Cell, show_line, show_list
from freshet.scheduler.arrays import Bools, Floats, Ints
from scripts.benchmarks.command import say
from scripts.reproductions.drawing import BLUE, GREEN, GREY, ORANGE, STYLE, VERMILION
from scripts.reproductions.small_search_audience import COMMUNITY, HOUSEHOLD, community, household

PLACES, SECTIONS, PAGES = 10, 10, 200
_PLACE = np.arange(1, PLACES + 1)
LIFE_DAYS = 90.0
#: A step of the simulation, after which an order learns, is at most this part of a day.
STEPS_A_DAY = 10


@dataclass(frozen=True, slots=True)
class Setting:
    """What searchers do, and how long; days before ``counted_from`` are not counted."""

    searches: int = 10
    exponent: float = 1.0
    noise: float = 0.0
    runs: int = 8
    days: int = 540
    counted_from: int = 180
    seed: int = 1


@dataclass(slots=True)
class Seen:
    """What an order may know, for each of r runs, and what it learnt last."""

    section: Ints
    #: (r, pages, places) how often each page was shown at each place, and (r, pages) opened.
    shown: Floats
    opens: Floats
    #: (r, places) the attention that is assumed.
    attention: Floats
    #: (r, places) promoted items that were shown, and opened.
    promoted: Floats
    promoted_opens: Floats
    lists: int = 0
    day: int = 0
    #: (r, pages) means before a page is shown, and (r, 1) the views that they are worth.
    prior: Floats = field(default_factory=lambda: np.zeros(0))
    strength: Floats = field(default_factory=lambda: np.zeros(0))

    def views(self) -> Floats:
        """Return (r, pages), expected views."""
        return np.asarray(np.einsum("rpi,ri->rp", self.shown, self.attention))


def little_seen(seen: Seen) -> Bools:
    """Pages that less than one view is expected to have met."""
    return np.asarray(seen.views() < 1)


@dataclass(frozen=True, slots=True)
class Order:
    """An order of results: worth (r, pages) of what was seen, and promotion (k, r)."""

    name: str
    worth: Callable[[Seen], Floats]
    sheet: tuple[float, ...] = ()
    promotion: tuple[int, float] | None = None
    pool: Callable[[Seen], Bools] = little_seen
    fits: bool = False
    learns_attention: bool = False


def of_all(seen: Seen) -> Floats:
    """Opens per expected view, drawn to the mean of all pages by 4 views."""
    views = seen.views()
    return np.asarray((4 * _mean_of_all(seen, views) + seen.opens) / (4 + views))


def of_section(seen: Seen) -> Floats:
    """Opens per expected view, drawn to the mean of its section by 6, that to the mean by 4."""
    views = seen.views()
    member = np.eye(SECTIONS)[seen.section]
    mean = 4 * _mean_of_all(seen, views) + seen.opens @ member
    mean /= 4 + views @ member
    return np.asarray((6 * mean[:, seen.section] + seen.opens) / (6 + views))


def _mean_of_all(seen: Seen, views: Floats) -> Floats:
    total = views.sum(axis=1, keepdims=True) + 2
    return np.asarray((seen.opens.sum(axis=1, keepdims=True) + 1) / total)


def index(seen: Seen) -> Floats:
    """The KL-UCB index of that."""
    level = 0.3 * np.log(max(seen.lists, 1)) / (seen.views() + 6)
    return kl_upper_bound(np.minimum(of_section(seen), 1.0), level)


def freshet_mean(seen: Seen) -> Floats:
    """The mean of Freshet's appeal, as fitted last."""
    weight = seen.strength + np.maximum(seen.views(), seen.opens)
    return np.asarray((seen.prior * seen.strength + seen.opens) / weight)


def freshet(seen: Seen) -> Floats:
    """The index of Freshet's appeal, as fitted last."""
    weight = seen.strength + np.maximum(seen.views(), seen.opens)
    return kl_upper_bound(freshet_mean(seen), 0.3 * np.log(max(seen.lists, 1)) / weight)


def bmix(seen: Seen, *, tuned: bool = False) -> Floats:
    """BMIX or BMIX-E of chapter 6, a showing at any place an attempt."""
    n = seen.shown.sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, logarithm = seen.opens / n, np.log(max(seen.lists, 1)) / n
        spread = np.minimum(0.25, mean * (1 - mean) + np.sqrt(2 * logarithm)) if tuned else 2.0
        return np.where(n > 0, mean + np.sqrt(logarithm * spread), np.inf)


def by_opens(seen: Seen) -> Floats:
    """The number of opens."""
    return seen.opens


ORDERS = (
    Order("number of opens", by_opens, (0.50, 0.60, 0.70)),
    Order("that + sel 2 0.1", by_opens, (0.46, 0.60, 0.67), (2, 0.1)),
    Order("that + sel 1 0.3", by_opens, (0.44, 0.64, 0.74), (1, 0.3)),
    Order("that + sel 1 0.3, pool: never opened", by_opens, (), (1, 0.3), lambda s: s.opens == 0),
    Order("opens per view, prior of all", of_all, (0.59, 0.84, 0.92)),
    Order("opens per view, prior of the section", of_section, (0.71, 0.72, 0.89)),
    Order("KL-UCB, prior of the section", index, (0.69, 0.87, 0.95)),
    Order("BMIX-E on showings", lambda seen: bmix(seen, tuned=True), (0.24, 0.46, 0.72)),
    Order("BMIX on showings", bmix, (0.20, 0.25, 0.45)),
    Order("Freshet's mean", freshet_mean, fits=True),
    Order("Freshet's index", freshet, fits=True),
    Order("Freshet's index + sel 2 0.1", freshet, promotion=(2, 0.1), fits=True),
    Order("Freshet, attention learnt", freshet, (), (2, 0.1), fits=True, learns_attention=True),
)


def merged(
    ranked: Ints, pool: Bools, lists: int, promotion: tuple[int, float], rng: np.random.Generator
) -> tuple[Ints, Bools]:
    """Return (r, lists, places) pages and whether they were promoted, of ``ranked`` (r, pages).

    The merge of chapter 5 for many lists at once; a page of the pool stands where it comes first.
    """
    k, degree = promotion
    shape = (len(ranked), lists, PLACES)
    key = rng.random((len(ranked), lists, ranked.shape[1])) + ~pool[:, None]
    queue = np.argsort(key, axis=2)[:, :, :PLACES]
    queue = np.where(np.take_along_axis(key, queue, axis=2) < 1, queue, -1)
    rest = np.broadcast_to(ranked[:, None, :PLACES], shape)
    coin = (rng.random(shape) < degree) & (k <= _PLACE)
    shown = np.full(shape, -1)
    for i in range(PLACES):
        free = [(each[..., None] != shown[:, :, None]).all(axis=3) for each in (queue, rest)]
        first = [
            np.take_along_axis(each, one.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
            for each, one in zip((queue, rest), free, strict=True)
        ]
        coin[:, :, i] &= free[0].any(axis=2)
        shown[:, :, i] = np.where(coin[:, :, i], *first)
    return shown, coin


def simulate(order: Order, setting: Setting) -> Floats:
    """Return (r,), the share of an oracle's opens in each run."""
    world, rng = (np.random.default_rng([setting.seed, each]) for each in range(2))
    section = np.repeat(np.arange(SECTIONS), PAGES // SECTIONS)
    mean = world.beta(0.8, 4.0, (setting.runs, SECTIONS)).clip(1e-6)[:, section]
    appeal = world.beta(4 * mean, 4 * (1 - mean))
    attention = _PLACE**-setting.exponent
    none = np.zeros((setting.runs, PLACES))
    seen = Seen(
        section, shown=np.zeros((*appeal.shape, PLACES)), opens=np.zeros(appeal.shape),
        attention=none + 1.0 / _PLACE, promoted=none.copy(), promoted_opens=none.copy(),
    )  # fmt: skip
    steps = min(setting.searches, STEPS_A_DAY)
    lists, run = setting.searches // steps, np.arange(setting.runs)[:, None, None]
    earned = np.zeros((2, setting.runs))
    for seen.day in range(setting.days):
        if order.fits and (seen.day < 30 or seen.day % 7 == 0):
            fit(seen, learns_attention=order.learns_attention)
        for _ in range(steps):
            ranked = np.argsort(-order.worth(seen) + 1e-9 * rng.random(appeal.shape), axis=1)
            if order.promotion:
                pages, new = merged(ranked, order.pool(seen), lists, order.promotion, rng)
            else:
                pages = np.repeat(ranked[:, None, :PLACES], lists, axis=1)
                new = np.zeros(pages.shape, bool)
            chance = (1 - setting.noise) * appeal[run, pages] + setting.noise * appeal.mean()
            opened = rng.random(pages.shape) < attention * chance
            np.add.at(seen.shown, (run, pages, _PLACE - 1), 1.0)
            np.add.at(seen.opens, (run, pages), opened)
            seen.promoted += new.sum(axis=1)
            seen.promoted_opens += (new & opened).sum(axis=1)
            seen.lists += lists
            if seen.day >= setting.counted_from:
                earned[0] += (attention * appeal[run, pages]).sum(axis=(1, 2))
                best = np.sort(appeal, axis=1)[:, : -PLACES - 1 : -1]
                earned[1] += lists * (attention * best).sum(axis=1)
        died = world.random(appeal.shape) < -np.expm1(-1 / LIFE_DAYS)
        appeal = np.where(died, world.beta(4 * mean, 4 * (1 - mean)), appeal)
        seen.shown[died], seen.opens[died] = 0.0, 0.0
    return np.asarray(earned[0] / earned[1])


def fit(seen: Seen, *, learns_attention: bool) -> None:
    """Fit Freshet's appeal to each run, and the attention to what was promoted."""
    site = np.zeros(PAGES, np.int64)
    if learns_attention:
        counts = zip(seen.promoted, seen.promoted_opens, strict=True)
        seen.attention = np.array([Attention.fitted(_PLACE, *each).of(_PLACE) for each in counts])
    found = [
        Appeal.learned(views, opens, seen.section, site, lists=seen.lists)
        for views, opens in zip(seen.views(), seen.opens, strict=True)
    ]
    seen.prior = np.array([each.prior_of(seen.section, site)[0] for each in found])
    seen.strength = np.array([each.strengths[:1] for each in found])


#: Which orders are measured where attention, or what an open says, is not as assumed.
ROBUST = tuple(ORDERS[i] for i in (0, 4, 6, 10, 11, 12))
TRUTHS = ((0.5, 0.0), (1.0, 0.0), (1.5, 0.0), (1.0, 0.3))
_DRAWN = {
    "number of opens": GREY,
    "opens per view, prior of all": BLUE,
    "KL-UCB, prior of the section": GREEN,
    "BMIX-E on showings": ORANGE,
    "Freshet's index": VERMILION,
}
#: Table, row, value and its standard error, and the earlier study's value.
Row = tuple[str, str, float, float, str]


def row(table: str, name: str, values: Floats, sheet: object = "") -> Row:
    """Return the mean of independent values with its error."""
    error = float(values.std(ddof=1)) / len(values) ** 0.5
    return table, name, float(values.mean()), error, str(sheet)


def measured(given: Setting, orders: Sequence[Order]) -> list[Row]:
    """Return the rows of the small search."""
    rows = []
    for order in orders:
        say(order.name)
        for i, searches in enumerate((1, 10, 100)):
            shares = simulate(order, replace(given, searches=searches))
            rows.append(row(f"{searches} a day", order.name, shares, (*order.sheet, "", "", "")[i]))
    return rows


def robust(given: Setting) -> list[Row]:
    """Return the rows of other attention, and of noisy opens."""
    rows = []
    for exponent, noise in TRUTHS:
        table = f"i^-{exponent:g}" + (f", {noise:.0%} noise" if noise else "")
        say(table)
        setting = replace(given, exponent=exponent, noise=noise)
        rows += [row(table, order.name, simulate(order, setting)) for order in ROBUST]
    return rows


def communities(given: Setting) -> list[Row]:
    """Return the rows of the community."""
    say("community")
    days = {"days": given.days * 10, "counted_from": given.days * 3}
    return [
        row("share", rule, community(rule, runs=3, seed=given.seed, **days), sheet)
        for rule, sheet in COMMUNITY.items()
    ]


def households(given: Setting) -> list[Row]:
    """Return the rows of the household."""
    rows = []
    for rule in HOUSEHOLD:
        say(f"household: {rule}")
        seeds = range(1000 * given.seed, 1000 * given.seed + 3 * given.runs)
        opens = np.array([household(rule, weeks=13, seed=seed) for seed in seeds])
        rows += [row(f"week {week}", rule, opens[:, week - 1]) for week in (1, 4, 13)]
    return rows


def show(title: str, rows: Sequence[Row]) -> None:
    """Print rows as a table whose columns are their tables."""
    columns = list(dict.fromkeys(each[0] for each in rows))
    cells: dict[str, list[Cell]] = {each[1]: [each[1]] for each in rows}
    for _, name, mean, error, sheet in rows:
        cells[name].append(f"{mean:.2f} ± {error:.2f}" + (f" ({sheet})" if sheet else ""))
    show_list(title, ("order by", *columns), list(cells.values()))


def draw(path: Path, rows: Sequence[Row]) -> None:
    """Shares by searches a day, and by the true attention."""
    searches = [f"{each} a day" for each in (1, 10, 100)]
    truths = [f"i^-{each:g}" for each in (0.5, 1, 1.5)]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 4), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for axes, tables in ((left, searches), (right, truths)):
            for name, colour in {**_DRAWN, "Freshet, attention learnt": "black"}.items():
                found = {table: (mean, error) for table, row, mean, error, _ in rows if row == name}
                places = [i for i, table in enumerate(tables) if table in found]
                values = np.array([found[tables[i]] for i in places]).reshape(-1, 2).T
                axes.errorbar(places, values[0], values[1], color=colour, marker="o", label=name)
            axes.set_xticks(range(3), tables)
            axes.margins(x=0.15)
        left.set(
            xlabel="searches",
            ylabel="share of an oracle's opens",
            ylim=(0, 1),
            title="Place i is seen with 1/i",
        )
        right.set(xlabel="true attention, 10 searches a day", title="1/i is assumed")
        left.legend(loc="lower right", fontsize=8)
        figure.savefig(path, dpi=160)


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("reproduction"), metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="fewer runs of fewer days")
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--days", type=int, default=180)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.runs < 2 or given.days < 10:
        parser.error("--runs must be at least 2, --days 10")
    if given.quick:
        given.runs, given.days = min(given.runs, 2), min(given.days, 30)
    given.output.mkdir(parents=True, exist_ok=True)
    days = {"days": given.days, "counted_from": given.days // 3}
    setting = Setting(runs=given.runs, seed=given.seed, **days)
    rows = measured(setting, ORDERS)
    show("Share of an oracle's opens, by searches a day (earlier study)", rows)
    others = robust(setting)
    show("10 searches a day, other attention than the 1/i assumed", others)
    homes = households(setting)
    show("A household, 5 searches a day: opens per search", homes)
    likes = communities(setting)
    show("Community of 3,000 pages: share of the best quality", likes)
    rows += others + homes + likes
    draw(given.output / "small_search.png", rows)
    with (given.output / "small_search.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("table", "order", "mean", "standard error", "earlier study"))
        writer.writerows(rows)
    show_line(f"Figures and numbers are in {given.output}/")
