"""How long a good new page waits until it is visited as often as its peers, by rules for new pages.

A site of some 240 pages in six sections; pages come and go, after 150 days on the mean. People see
lists of ten pages of the copy each day, at place i with the probability 1/i, and open a page
with the probability of its appeal, half of that where the copy is out of date. Each day some links
are set to pages in proportion to how often they were opened lately. All pages change once in five
days; a budget of a visit for each page in five days is divided by LambdaCrawl's optimum for the
importances of ``freshet.crawler.run.importance``, weighed daily. A new page enters by a rule:

    least    the least share of its site, until the next weighing
    median   the median share of its section, until the next weighing
    month    at least that for its first thirty days
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.crawler.extensions.readers.appeal import Appeal
from freshet.crawler.run.importance import divided, section
from freshet.crawler.run.pagerank import pagerank
from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.policies import lambda_crawl
from scripts.benchmarks.command import arguments, finish, say

BY: Final = ("pagerank", "depth", "opened")
RULES: Final = ("least", "median", "month")
SECTIONS, PAGES, LIFE = 6, 240, 150.0
PLACES: Final = np.arange(1, 11)
LINKS_A_DAY, LINK_LIFE = 6.0, 120.0
CHANGES = BUDGET_A_PAGE = 0.2
STALE_APPEAL = 0.5
#: Days: before anything is measured, until a page has peers, and for which one is followed.
WARM_UP, GROWN, FOLLOWED, MONTH, WEEK = 60, 60, 60, 30, 7
PEERS, AS_OFTEN = 10, 0.8
GOOD = 0.75
STALE: Final = ("stale", "stale_grown")
#: The first page of each section.
URLS: Final = [f"https://site.example/{name}/x" for name in "abcdef"]
_FLOATS: Final = ("born", "appeal", "depth", "views", "opens", "popular", "fresh")
_IDS: Final = [("page_id", np.int64), ("section", np.int64)]
_COLUMNS: Final = np.dtype(_IDS + [(name, np.float64) for name in _FLOATS])


@dataclass(slots=True)
class Site:
    """The pages of a site on a day, a row each, and the links between them, from ids to ids.

    ``popular`` are the openings of some thirty days. Births and deaths have a generator of their
    own, so that they are the same whatever people do.
    """

    rng: np.random.Generator
    crowd: np.random.Generator
    means: Floats
    lists: int
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
            if (own := pages[pages["section"] == section]).size:
                parent = self.rng.choice(own)
                page["depth"] = parent["depth"] + 1
                self.links = np.vstack([self.links, [parent["page_id"], self.next_id]])
            self.pages = np.append(pages, page)
            self.next_id += 1

    def live(self, day: float) -> None:
        """Let a day pass: openings, links, deaths and births."""
        rng, pages, n = self.crowd, self.pages, len(self.pages)
        chosen = np.argsort(rng.random((self.lists, n)), axis=1)[:, : len(PLACES)]
        appeal = pages["appeal"] * (pages["fresh"] + (1 - pages["fresh"]) * STALE_APPEAL)
        opened = rng.random(chosen.shape) < appeal[chosen] / PLACES
        opens = np.bincount(chosen[opened], minlength=n)
        pages["views"] += np.bincount(chosen.ravel(), np.tile(1 / PLACES, self.lists), n)
        pages["opens"] += opens
        pages["popular"] = pages["popular"] * (1 - 1 / 30) + opens
        draw = pages["popular"] + 0.1
        target = rng.choice(n, rng.poisson(LINKS_A_DAY), p=draw / draw.sum())
        source = rng.integers(n, size=len(target))
        np.minimum.at(pages["depth"], target, pages["depth"][source] + 1)
        self.links = np.vstack([self.links, pages["page_id"][np.stack([source, target], axis=1)]])
        self.pages = pages[self.rng.random(n) > 1 / LIFE]
        self.links = self.links[np.isin(self.links, self.pages["page_id"]).min(axis=1)]
        self.links = self.links[rng.random(len(self.links)) > 1 / LINK_LIFE]
        self.bear(self.rng.poisson(PAGES / LIFE), day)


def shares(site: Site, by: str, rule: str, day: float) -> Floats:
    """Return the share of each page in the importance of its site; those born today are new."""
    pages, known = site.pages, site.pages[site.pages["born"] < day]
    young = (day - known["born"] < MONTH) & (rule == "month")
    ids, sites = known["page_id"].copy(), (np.zeros(len(known), np.intp), {"site.example": 0})
    sections = known["section"], {section(url): code for code, url in enumerate(URLS)}
    weights = _weights(known, site.links, by)
    of_page = divided(weights, sections, sites, young, known=ids, newest=int(ids.max()))
    urls = [URLS[code] for code in pages["section"].tolist()]
    host, is_new = np.zeros(len(pages), np.intp), pages["born"] >= day
    found = of_page(pages["page_id"], urls, host, ["https://site.example"])
    if rule == "least":
        found[is_new] = found[~is_new].min()
    return found


def _weights(known: NDArray[np.void], links: Ints, by: str) -> Floats:
    if by == "depth":
        return np.asarray(0.5 ** known["depth"])
    if by == "opened":
        counts, of_site = (known["views"].copy(), known["opens"].copy()), np.zeros(len(known), int)
        return Appeal.learned(*counts, known["section"], of_site, lists=LIFE).mean
    links = links[np.isin(links, known["page_id"]).min(axis=1)]
    row = np.searchsorted(known["page_id"], links)
    return pagerank(np.ones(len(known)), row[:, 0], row[:, 1])


def beside_peers(
    pages: NDArray[np.void], rate: Floats, good: float, day: float
) -> dict[int, float]:
    """Return the visits of each good young page, by id, as a share of those of its peers."""
    age, appeal = day - pages["born"], pages["appeal"]
    grown, found = np.flatnonzero(age >= GROWN), {}
    young = (appeal >= good) & (age < FOLLOWED) & (pages["born"] >= 0)
    for row in np.flatnonzero(young).tolist():
        peers = grown[np.argsort(np.abs(appeal[grown] - appeal[row]))[:PEERS]]
        found[int(pages["page_id"][row])] = float(rate[row] / np.median(rate[peers]))
    return found


def measured(ratios: Mapping[int, list[float]]) -> dict[str, float]:
    """Return the means over the pages that lived on.

    ``days`` pass until a page has in a week eight tenths of the visits of its peers; ``never``
    counts as 60. ``first_day`` and ``month`` are shares of the visits of its peers.
    """
    seen = np.array([each for each in ratios.values() if len(each) == FOLLOWED])
    weeks = np.lib.stride_tricks.sliding_window_view(seen, WEEK, axis=1).mean(axis=2)
    reached = np.argmax(np.c_[weeks >= AS_OFTEN, np.ones(len(seen))], axis=1)
    never = reached == weeks.shape[1]
    days, first, month = np.where(never, FOLLOWED, reached), seen[:, 0], seen[:, :MONTH]
    found = {"days": days, "never": never, "first_day": first, "month": month}
    return {"pages": len(seen)} | {name: float(np.mean(each)) for name, each in found.items()}


def run(by: str, rule: str, seed: int, days: int, lists: int = 50) -> dict[str, float]:
    """Return the measures of a site that is visited by one rule, with this seed."""
    rng = np.random.default_rng(seed)
    means = np.clip(rng.beta(0.8, 4, SECTIONS), 0.02, 0.9)
    draws = rng.beta(4 * means, 4 * (1 - means), (2_000, SECTIONS))
    good = float(np.quantile(draws, GOOD))
    site = Site(rng, np.random.default_rng([seed, 1]), means, lists)
    site.bear(PAGES, -1e3)
    ratios, stale = defaultdict[int, list[float]](list), []
    for day in range(-WARM_UP, days):
        site.live(day)
        share, n = shares(site, by, rule, day), len(site.pages)
        rate = lambda_crawl.solve(share, np.full(n, CHANGES), BUDGET_A_PAGE * n).crawl_rate
        site.pages["fresh"] = rate / (rate + CHANGES)
        if day >= 0:
            appeal, born = site.pages["appeal"], site.pages["born"]
            weight = np.stack([appeal, appeal * (day - born >= GROWN)])
            stale.append(weight @ (1 - site.pages["fresh"]) / weight.sum(axis=1))
            for page, ratio in beside_peers(site.pages, rate, good, day).items():
                ratios[page].append(ratio)
    return measured(ratios) | dict(zip(STALE, np.mean(stale, axis=0).tolist(), strict=True))


def table(seeds: Sequence[int], days: int, lists: int) -> list[dict[str, object]]:
    """Return a row for each importance and rule: means over seeds, and half of their intervals.

    ``stale`` is the share of copies that are out of date, weighed by their true appeal,
    ``stale_grown`` that of pages older than 60 days; both also beside those of ``least``.
    """
    rows: list[dict[str, object]] = []
    for by in BY:
        say(by)
        runs = {rule: [run(by, rule, seed, days, lists) for seed in seeds] for rule in RULES}
        for rule in RULES:
            beside = [
                each | {f"{name}_beside_least": each[name] / least[name] for name in STALE}
                for each, least in zip(runs[rule], runs["least"], strict=True)
            ]
            found = {name: _interval([each[name] for each in beside]) for name in beside[0]}
            rows.append({"importance": by, "rule": rule, **found})
    return rows


def _interval(values: Sequence[float]) -> list[float]:
    half = 1.96 * np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return [round(float(np.mean(values)), 4), round(float(half), 4)]


def main() -> None:
    """Print the table."""
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=8, help="Sites for each row.")
    parser.add_argument("--first-seed", type=int, default=100, help="The seed of the first one.")
    parser.add_argument("--days", type=int, default=180, help="Days that are measured.")
    parser.add_argument("--lists", type=int, default=50, help="Lists that people see a day.")
    given = parser.parse_args()
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    finish({"rows": table(seeds, given.days, given.lists)}, given.output)
