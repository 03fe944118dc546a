"""How long a good new page waits until it is visited as often as its peers, by rules for new pages.

A site of some 240 pages in six sections; pages come and go, after 150 days on the mean. People look
at fifty lists of ten pages of the copy a day, at place i with the probability 1/i, and open a page
with the probability of its appeal, half of that where the copy is out of date. Each day some links
are set to pages in proportion to how often they were opened lately. All pages change once in five
days; a budget of a visit for each page in five days is divided by LambdaCrawl's optimum for the
importances of ``freshet.crawler.importance``, weighed daily. A new page enters by a rule:

    least    the least share of its site, until the next weighing
    median   the median share of its section, until the next weighing
    month    at least that for its first thirty days
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.crawler.audience import section
from freshet.crawler.importance import divided, pagerank
from freshet.scheduler.appeal import Appeal
from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.policies import lambda_crawl
from freshet.storage.queries.link_columns import LinkedPages
from scripts.benchmarks.command import arguments, finish, say

BY: Final = ("pagerank", "depth", "opened")
RULES: Final = ("least", "median", "month")
SECTIONS, PAGES, LIFE = 6, 240, 150.0
LISTS, PLACES = 50, np.arange(1, 11)
LINKS_A_DAY, LINK_LIFE = 6.0, 120.0
CHANGES = BUDGET_A_PAGE = 0.2
STALE_APPEAL = 0.5
#: Days: before anything is measured, until a page has peers, and for which one is followed.
WARM_UP, GROWN, FOLLOWED, MONTH = 100, 60, 60, 30
PEERS, AS_OFTEN = 10, 0.8
GOOD = 0.75


_HOST: Final = "https://site.example"
_COLUMNS: Final = np.dtype(
    [("page_id", np.int64), ("section", np.int64)]
    + [(name, np.float64) for name in
       ("born", "appeal", "depth", "looks", "opens", "popular", "fresh")]
)  # fmt: skip


@dataclass(slots=True)
class Site:
    """The pages of a site on a day, a row each, and the links between them, from ids to ids.

    ``popular`` are the openings of some thirty days. Births and deaths have a generator of their
    own, so that they are the same whatever people do.
    """

    rng: np.random.Generator
    crowd: np.random.Generator
    means: Floats
    pages: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, _COLUMNS))
    links: Ints = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    next_id: int = 1

    def bear(self, count: int, day: float) -> None:
        """Add pages, each with a link from a page of its section."""
        for _ in range(count):
            page = np.zeros(1, _COLUMNS)
            section, pages = int(self.rng.integers(SECTIONS)), self.pages
            a, b = 4 * self.means[section], 4 * (1 - self.means[section])
            page["page_id"], page["section"], page["born"] = self.next_id, section, day
            page["appeal"], page["depth"], page["fresh"] = self.rng.beta(a, b), 1.0, 0.5
            own = np.flatnonzero(pages["section"] == section)
            if len(own):
                parent = self.rng.choice(own)
                page["depth"] = pages["depth"][parent] + 1
                self.links = np.vstack([self.links, [pages["page_id"][parent], self.next_id]])
            self.pages = np.append(pages, page)
            self.next_id += 1

    def live(self, day: float) -> None:
        """Let a day pass: openings, links, deaths and births."""
        rng, pages, n = self.crowd, self.pages, len(self.pages)
        chosen = np.argsort(rng.random((LISTS, n)), axis=1)[:, : len(PLACES)]
        appeal = pages["appeal"] * (pages["fresh"] + (1 - pages["fresh"]) * STALE_APPEAL)
        opened = rng.random(chosen.shape) < appeal[chosen] / PLACES
        opens = np.bincount(chosen[opened], minlength=n)
        pages["looks"] += np.bincount(chosen.ravel(), np.tile(1 / PLACES, LISTS), n)
        pages["opens"] += opens
        pages["popular"] = pages["popular"] * (1 - 1 / 30) + opens
        draw = pages["popular"] + 0.1
        target = rng.choice(n, rng.poisson(LINKS_A_DAY), p=draw / draw.sum())
        source = rng.integers(n, size=len(target))
        np.minimum.at(pages["depth"], target, pages["depth"][source] + 1)
        self.links = np.vstack([self.links, pages["page_id"][np.stack([source, target], axis=1)]])
        self.pages = pages[self.rng.random(n) > 1 / LIFE]
        self.links = _among(self.links, self.pages["page_id"])
        self.links = self.links[rng.random(len(self.links)) > 1 / LINK_LIFE]
        self.bear(self.rng.poisson(PAGES / LIFE), day)


def shares(site: Site, by: str, rule: str, day: float) -> Floats:
    """Return the share of each page in the importance of its site; those born today are new."""
    pages, known = site.pages, site.pages[site.pages["born"] < day]
    weight, young = _weights(known, site.links, by), day - known["born"] < MONTH
    for code in range(SECTIONS) if rule == "month" else ():
        own = known["section"] == code
        if (own & ~young).any():
            weight[own & young] = np.maximum(weight[own & young], np.median(weight[own & ~young]))
    ids, names = known["page_id"], {section(_url(code)): code for code in range(SECTIONS)}
    rows = np.full(ids.max() + 1, -1, np.int32)
    columns = (np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int32), rows)
    linked = LinkedPages(ids, *columns, np.ones(len(ids), np.bool_))
    of_site = np.zeros(len(ids), np.intp), {"site.example": 0}
    found = divided(linked, weight, (known["section"], names), of_site)(
        pages["page_id"], [_url(code) for code in pages["section"].tolist()],
        np.zeros(len(pages), np.intp), [_HOST],
    )  # fmt: skip
    is_new = pages["born"] >= day
    if rule == "least":
        found[is_new] = found[~is_new].min()
    return found


def _url(code: int) -> str:
    return f"{_HOST}/{'abcdef'[code]}/x"


def _weights(known: NDArray[np.void], links: Ints, by: str) -> Floats:
    if by == "depth":
        return np.asarray(0.5 ** known["depth"])
    if by == "opened":
        of_site, lists = np.zeros(len(known), np.int64), known["looks"].sum() / (1 / PLACES).sum()
        looks, opens = known["looks"].copy(), known["opens"].copy()
        return Appeal.learned(looks, opens, known["section"], of_site, lists=lists).mean.copy()
    row = np.searchsorted(known["page_id"], _among(links, known["page_id"]))
    return pagerank(len(known), row[:, 0], row[:, 1])


def _among(links: Ints, ids: Ints) -> Ints:
    """Return the links from and to these pages."""
    is_there = np.isin(links, ids)
    return links[is_there[:, 0] & is_there[:, 1]]


@dataclass(slots=True)
class Followed:
    """The ratio of the visits of each good new page to those of its peers, day by day."""

    ratios: dict[int, list[float]] = field(default_factory=dict)
    stale: list[float] = field(default_factory=list)
    stale_grown: list[float] = field(default_factory=list)

    def note(self, pages: NDArray[np.void], rate: Floats, good: float, day: float) -> None:
        """Note a day's rates of visits."""
        age, appeal = day - pages["born"], pages["appeal"]
        grown = np.flatnonzero(age >= GROWN)
        stale = CHANGES / (rate + CHANGES)
        self.stale.append(float(np.average(stale, weights=appeal)))
        self.stale_grown.append(float(np.average(stale[grown], weights=appeal[grown])))
        young = (appeal >= good) & (age < FOLLOWED) & (pages["born"] >= 0)
        for row in np.flatnonzero(young).tolist():
            peers = grown[np.argsort(np.abs(appeal[grown] - appeal[row]))[:PEERS]]
            ratio = float(rate[row] / np.median(rate[peers]))
            self.ratios.setdefault(int(pages["page_id"][row]), []).append(ratio)

    def measured(self) -> dict[str, float]:
        """Return the means of a run, over the pages that lived on; never counts as 60 days."""
        seen = [np.array(each) for each in self.ratios.values() if len(each) == FOLLOWED]
        reached = [np.append(np.flatnonzero(each >= AS_OFTEN), FOLLOWED)[0] for each in seen]
        return {
            "pages": len(seen),
            "days": float(np.mean(reached)),
            "never": float(np.mean(np.array(reached) == FOLLOWED)),
            "first_day": float(np.mean([each[0] for each in seen])),
            "month": float(np.mean([each[:MONTH].mean() for each in seen])),
            "stale": float(np.mean(self.stale)),
            "stale_grown": float(np.mean(self.stale_grown)),
        }


def run(by: str, rule: str, seed: int, days: int) -> dict[str, float]:
    """Return the measures of a site that is visited by one rule, with this seed."""
    rng = np.random.default_rng(seed)
    means = np.clip(rng.beta(0.8, 4, SECTIONS), 0.02, 0.9)
    draws = rng.beta(4 * means, 4 * (1 - means), (2_000, SECTIONS))
    good = float(np.quantile(draws, GOOD))
    site, followed = Site(rng, np.random.default_rng([seed, 1]), means), Followed()
    site.bear(PAGES, -1e3)
    for day in range(-WARM_UP, days):
        site.live(day)
        n = len(site.pages)
        share, changes = shares(site, by, rule, day), np.full(n, CHANGES)
        rate = lambda_crawl.solve(share, changes, BUDGET_A_PAGE * n).crawl_rate
        site.pages["fresh"] = rate / (rate + CHANGES)
        if day >= 0:
            followed.note(site.pages, rate, good, day)
    return followed.measured()


def table(seeds: Sequence[int], days: int) -> list[dict[str, object]]:
    """Return a row for each importance and rule: means over seeds, and half of their intervals.

    ``costs`` compares the staleness, weighed by the true appeal, with that of ``least``.
    """
    rows: list[dict[str, object]] = []
    for by in BY:
        runs = {rule: [run(by, rule, seed, days) for seed in seeds] for rule in RULES}
        for rule in RULES:
            row: dict[str, object] = {"importance": by, "rule": rule}
            for name in runs[rule][0]:
                row[name] = _interval([each[name] for each in runs[rule]])
            for name in ("stale", "stale_grown"):
                pairs = zip(runs[rule], runs["least"], strict=True)
                row[f"{name}_beside_least"] = _interval([a[name] / b[name] for a, b in pairs])
            rows.append(row)
    return rows


def _interval(values: Sequence[float]) -> list[float]:
    half = 1.96 * np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return [round(float(np.mean(values)), 4), round(float(half), 4)]


def main() -> None:
    """Print the table."""
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=8, help="Sites for each row.")
    parser.add_argument("--days", type=int, default=240, help="Days that are measured.")
    given = parser.parse_args()
    rows = table(range(given.seeds), given.days)
    for row in rows:
        say(" ".join(str(row[name]) for name in ("importance", "rule", "days", "never", "stale")))
    finish({"rows": rows}, given.output)
