"""Does a thinned archive put policies in the order in which the whole history puts them?

The whole is a visit to each page every day. Of these captures a share is kept, at random, and the
first and the last one of each page. The truth is the complete history, where the bounds close.
Kendall's τ compares the orders by harmonic cost: 1 is the same order, −1 the opposite one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

from crawler.commands.sources.areas import Areas
from scheduler.counterfactual.captures import GONE, Captures
from scheduler.counterfactual.comparing import compare
from scheduler.counterfactual.running import Terms
from scheduler.counterfactual.verdicts import Bounded
from tests.benchmarks.command import say, workspace
from tests.benchmarks.daemon_sites import Page, load, looks_a_day, recorded

POLICIES = (
    "greedy_index", "lambda_crawl", "optimal_intervals", "uniform", "change_rate",
    "nutch_adaptive",
)  # fmt: skip
SHARES = (1.0, 0.3, 0.1, 0.03, 0.01)
_EVERY = 20.0


def figures(directory: Path) -> dict[str, object]:
    """Kendall's τ by site and share of the captures kept, by each figure of the thinned archive."""
    sites = {}
    with workspace() as folder:
        for path in recorded(directory, folder):
            sites[path.stem] = of_site(load(path))
            say(f"{path.stem}: {sites[path.stem]}")
    return {"every_days": _EVERY, "policies": POLICIES, "sites": sites}


def of_site(pages: Sequence[Page]) -> dict[str, object]:
    """The figures of one recorded site."""
    end = max(page.death for page in pages)
    terms = Terms(looks_a_day(pages, _EVERY), 0.0, end, given=True)
    true = _costs(complete(pages), terms)
    daily = visited(pages, 1.0)
    found: dict[str, object] = {"true": {name: c.early for name, c in true.items()}}
    for share in SHARES:
        thin = _costs(daily.thinned(kept(daily, share, seed=1)), terms)
        found[f"{share:.0%}"] = {
            "captures": int(share * len(daily.at)),
            "tau": {
                name: round(float(kendalltau(*_orders(true, thin, name)).statistic), 3)
                for name in ("optimistic", "early")
            },
        }
    return found


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


def _captures(pages, row, at, content, until) -> Captures:  # type: ignore[no-untyped-def]
    urls = [page.url for page in pages]
    areas = Areas()
    # As a crawl does, it begins with the page under which all others stand.
    areas.codes([min(urls, key=len)])
    return Captures.of(
        row, at, content, until=until, importance=np.ones(len(pages)), area=areas.codes(urls)
    )


def _costs(captures: Captures, terms: Terms) -> dict[str, Bounded]:
    verdicts = compare(captures, POLICIES, [terms]).verdicts
    return {verdict.policy: verdict.harmonic for verdict in verdicts}


def _orders(
    true: dict[str, Bounded], thin: dict[str, Bounded], figure: str
) -> tuple[list[float], list[float]]:
    return [true[name].early for name in true], [getattr(thin[name], figure) for name in true]
