"""Finding new pages beside keeping known ones fresh; or what learning who reveals them costs.

Without ``--joint`` it measures the daemon's bookkeeping: a site of so many pages is crawled, every
look shows a hundred links, one visit in ten a page that is new. With it, the daemon on recorded
sites is set beside fixed shares (:mod:`scripts.benchmarks.discovery_joint`).
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from random import Random
from time import process_time
from typing import Final

import numpy as np

from freshet.scheduler.queue.new_pages import HubPages
from freshet.scheduler.queue.pages import PageTable
from scripts.benchmarks import command, discovery_joint
from scripts.benchmarks.daemon_recorded import Stretch
from scripts.benchmarks.discovery_joint import Judged, Variant

SHARES: Final = (0.1, 0.25, 0.5)
_LINKS: Final = 100
_LOOKS: Final = 20_000
_NEW_EVERY: Final = 10


def main() -> None:
    """The command ``scripts/bench discovery``."""
    parser = command.arguments(__doc__)
    parser.add_argument("--pages", type=int, default=100_000, help="pages of which is learnt")
    parser.add_argument(
        "--joint", type=Path, metavar="DIR", help="instead, on recorded sites (*.sqlite.zst)"
    )
    parser.add_argument("--begin", type=float, default=0.0, help="with --joint: the first day")
    parser.add_argument("--days", type=float, default=180.0, help="with --joint: how many")
    parser.add_argument(
        "--interval", type=float, action="append", metavar="DAYS",
        help="with --joint: one request a page and so many days; repeatable; default 20 and 5",
    )  # fmt: skip
    parser.add_argument("--figure", type=Path, metavar="PNG", help="with --joint: draw it")
    chosen = parser.parse_args()
    if chosen.joint is None:
        command.finish(updated(chosen.pages), chosen.output)
        return
    stretches = [Stretch(chosen.begin, chosen.days, i) for i in chosen.interval or [20.0, 5.0]]
    variants = [Variant(), *map(Variant, SHARES)]
    with command.workspace() as directory:
        found = discovery_joint.compared(chosen.joint, directory, stretches, variants)
    if chosen.figure is not None:
        from scripts.benchmarks import discovery_drawing

        discovery_drawing.draw(found, chosen.figure)
    command.finish(_told(found, chosen.begin, chosen.days), chosen.output)


def _told(
    found: dict[str, dict[str, dict[str, Judged]]], begin: float, days: float
) -> dict[str, object]:
    beaten = {
        when: discovery_joint.dominated(sites, Variant().name) for when, sites in found.items()
    }
    return {
        "begin": begin,
        "days": days,
        "fixed_shares_better_in_both": beaten,
        "sites": {
            when: {
                site: {name: asdict(it) for name, it in variants.items()}
                for site, variants in sites.items()
            }
            for when, sites in found.items()
        },
    }


def updated(count: int) -> dict[str, object]:
    """What a fetched page costs in the history of who reveals what, and what valuing all costs."""
    rng, pages, hubs = Random(1), PageTable(), HubPages()
    urls = [f"https://site.example/{number}" for number in range(count)]
    _found(pages, hubs, urls, 0, 0.0)
    shown = [rng.choices(urls, k=_LINKS) for _ in range(_LOOKS)]
    took = 0.0
    for number, links in enumerate(shown):
        day = 1.0 + number / _LOOKS
        if number % _NEW_EVERY == 0:
            url = f"https://site.example/new/{number}"
            links[-1] = url
            _found(pages, hubs, [url], len(pages), day)
        began = process_time()
        hubs.visited(rng.randrange(count), 0.0, day, links, pages["found_at"])
        took += process_time() - began
    began = process_time()
    revealing = hubs.revealing(pages, 3.0)
    return {
        "pages": count,
        "links_of_a_page": _LINKS,
        "us_a_fetched_page": {"value": round(1e6 * took / _LOOKS, 1), "goal": 100},
        "ms_to_value_all": round(1e3 * (process_time() - began), 1),
        "new_per_day": round(revealing.per_day, 1),
    }


def _found(pages: PageTable, hubs: HubPages, urls: list[str], first: int, day: float) -> None:
    n = len(urls)
    at, site = np.full(n, day), np.zeros(n, np.intp)
    rows = pages.add(
        np.arange(first, first + n), urls=urls, host=site, importance=np.ones(n),
        found_at=at, since=at, captured=np.ones(n, np.bool_),
    )  # fmt: skip
    hubs.watch(rows, site, urls, at)
