"""Does a thinned archive put policies in the order in which the whole history puts them?

The whole is a visit to each page every day. Of these captures a share is kept, at random, and the
first and the last one of each page. The truth is the complete history, where the bounds close.
Kendall's τ compares the orders by harmonic cost: 1 is the same order, −1 the opposite one. An
order is that of one end of the ranges (``optimistic``, ``early``), or of their ``middle``; what
the policy that comes first there costs in truth is told as a multiple of the least cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

from freshet.crawler.run.importance import Areas
from freshet.scheduler.evaluate.captures import GONE, Captures
from freshet.scheduler.evaluate.counterfactual import ReplayTerms
from freshet.scheduler.evaluate.verdicts import BoundedCost, compare
from scripts.benchmarks.command import say, workspace
from scripts.benchmarks.daemon_sites import Page, load, looks_a_day, recorded

POLICIES = (
    "site_clock", "lambda_crawl", "optimal_intervals", "uniform", "change_rate",
    "nutch_adaptive",
)  # fmt: skip
SHARES = (1.0, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01)
FIGURES = ("optimistic", "early", "middle")
_EVERY = 20.0


def figures(directory: Path, seeds: int) -> dict[str, object]:
    """Kendall's τ by site and share of the captures kept, by each figure of the thinned archive."""
    sites = {}
    with workspace() as folder:
        for path in recorded(directory, folder):
            sites[path.stem] = of_site(load(path), seeds)
            say(f"{path.stem}: {sites[path.stem]}")
    return {"every_days": _EVERY, "policies": POLICIES, "seeds": seeds, "sites": sites}


def of_site(pages: Sequence[Page], seeds: int) -> dict[str, object]:
    """The figures of one recorded site."""
    end = max(page.death for page in pages)
    terms = ReplayTerms(looks_a_day(pages, _EVERY), 0.0, end, given=True)
    true = {name: cost.early for name, cost in _costs(complete(pages), terms).items()}
    daily = visited(pages, 1.0)
    by_share = {}
    for share in SHARES:
        drawn = [kept(daily, share, seed=seed) for seed in range(seeds if share < 1 else 1)]
        costs = [_costs(thinned(daily, each), terms) for each in drawn]
        by_share[f"{share:g}"] = {
            "captures": round(float(np.mean([each.sum() for each in drawn]))),
            **{figure: beside(true, costs, figure) for figure in FIGURES},
        }
    return {"true": true, "thinned": by_share}


def beside(
    true: dict[str, float], thinned: Sequence[dict[str, BoundedCost]], figure: str
) -> dict[str, list[float]]:
    """Of each draw: how far its order is the true one, and what the first of it costs in truth."""
    orders = [{name: _read(cost, figure) for name, cost in each.items()} for each in thinned]
    least = min(true.values())
    return {
        "tau": [round(_tau(true, order), 3) for order in orders],
        "cost": [round(true[min(order, key=order.__getitem__)] / least, 3) for order in orders],
    }


def _read(cost: BoundedCost, figure: str) -> float:
    return (cost.optimistic + cost.early) / 2 if figure == "middle" else getattr(cost, figure)


def _tau(true: dict[str, float], order: dict[str, float]) -> float:
    names = list(true)
    return float(kendalltau([true[n] for n in names], [order[n] for n in names]).statistic)


def complete(pages: Sequence[Page]) -> Captures:
    """The complete history of a site."""
    end = max(page.death for page in pages)
    rows = []
    for row, page in enumerate(pages):
        days = [max(page.birth, 0.0), *(day for day in page.changes if day > 0)]
        rows += [
            (row, day, number, until)
            for number, (day, until) in enumerate(zip(days, [*days[1:], page.death], strict=True))
        ]
        if page.death < end:
            rows.append((row, page.death, GONE, page.death))
    columns = zip(*rows, strict=True)
    row_of, at, content, until = (np.array(column) for column in columns)
    return _captures(pages, row_of, at, content, until)


def visited(pages: Sequence[Page], every: float) -> Captures:
    """What visits to every page would have seen, from its birth on and so many days apart."""
    whole, end = complete(pages), max(page.death for page in pages)
    days = [
        np.unique(np.append(np.arange(max(page.birth, 0.0), page.death, every), page.death))
        for page in pages
    ]
    row = np.repeat(np.arange(len(pages)), [len(each) for each in days])
    at = np.minimum(np.concatenate(days), end)
    content = whole.content[whole.latest(row, at)]
    return _captures(pages, row, at, content, at)


def kept(
    captures: Captures, share: float, *, seed: int
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which captures are kept: a share, and each page's first and last one."""
    chosen = np.random.default_rng(seed).random(len(captures.at)) < share
    chosen[captures.offsets[:-1]] = True
    chosen[captures.offsets[1:] - 1] = True
    return chosen


def thinned(captures: Captures, kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Captures:
    """These captures as visits: nothing is known between them; pages keep their rows."""
    number = np.bincount(captures.page[kept], minlength=len(captures))
    return replace(
        captures,
        offsets=np.append(0, np.cumsum(number)),
        at=captures.at[kept],
        until=captures.at[kept],
        content=captures.content[kept],
    )


def _captures(pages, row, at, content, until) -> Captures:  # type: ignore[no-untyped-def]
    urls = [page.url for page in pages]
    area_of = Areas()
    # As a crawl does, it begins with the page under which all others stand.
    area_of([min(urls, key=len)])
    return Captures.of(
        row, at, content, until=until, importance=np.ones(len(pages)), area=area_of(urls)
    )


def _costs(captures: Captures, terms: ReplayTerms) -> dict[str, BoundedCost]:
    verdicts = compare(captures, POLICIES, [terms]).verdicts
    return {verdict.policy: verdict.harmonic for verdict in verdicts}
