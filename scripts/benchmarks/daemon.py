"""How fresh the daemon keeps a web whose changes are known, in virtual time.

The whole daemon (agenda, politeness, detector, store) keeps a surrogate population of pages that
change at Poisson times, beginning with an empty store. What it pays is the harmonic cost over the
last days, as expected given when it fetched, beside the optimum of LambdaCrawl with known rates,
no signals and as many requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import perf_counter

import numpy as np

from freshet.config.loading import load
from freshet.config.settings import Settings
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.crawl import Live
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.crawler.run.wiring import Observer
from freshet.scheduler.evaluate.changes import ChangeTimes, poisson
from freshet.scheduler.evaluate.crawl_costs import Crawls, expected_costs
from freshet.scheduler.evaluate.simulate import lambda_crawl_optimum
from freshet.scheduler.evaluate.world import surrogate
from freshet.scheduler.sources import SourceTable
from freshet.storage.records import Acknowledged, StoredSeed
from scripts.benchmarks import command, daemon_learning, daemon_recorded, daemon_sites, daemon_soak
from scripts.benchmarks.daemon_recorded import Stretch
from scripts.benchmarks.daemon_web import DAY_S, PoissonWeb, url

_BEGIN = 1_800_000_000.0
_DAYS_AFTER = 21.0
_MEASURED = 5.0
_SHARE = 0.2


def settings() -> Settings:
    """Defaults, without what would keep a single host from taking the budget."""
    given = {
        "crawl.scope": "list", "politeness.delay_s": 0.0, "politeness.slow_factor": 0.0,
        "change.probe": False, "store.bodies_per_page": 2,
    }  # fmt: skip
    return load(None, given)[0]


def run(pages: int, seed: int, policy: str, directory: Path) -> dict[str, object]:
    """One daemon from nothing; its costs over the last days."""
    rng = np.random.default_rng(seed)
    drawn = surrogate(pages, rng)
    table = SourceTable.of(drawn.importance, drawn.change_rate)
    budget = _SHARE * pages
    days = pages / budget + _DAYS_AFTER
    changes = poisson(table, days, rng)
    clock = VirtualClock(_BEGIN)
    web = PoissonWeb(changes, _BEGIN, clock)
    seeds = [
        StoredSeed(url(row), url(row), None, importance)
        for row, importance in enumerate(table.importance.tolist())
    ]
    order = DaemonOrder(directory / f"{seed}.db", seeds, budget, policy, days * DAY_S)
    started = perf_counter()
    report = asyncio.run(
        keep(settings(), order, watch=_watch, fetcher=web, clock=clock, rng=Random(seed))
    )
    took = perf_counter() - started
    costs = _costs(table, changes, web, days)
    optimum = lambda_crawl_optimum(table, budget)
    found: dict[str, object] = {
        "seed": seed,
        "harmonic_cost": costs[0],
        "binary_cost": costs[1],
        "of_lambda_crawl": round(costs[0] / optimum.harmonic_cost, 4),
        "binary_of_lambda_crawl": round(costs[1] / optimum.binary_cost, 4),
        "requests": web.requests,
        "requests_of_budget": round(web.requests / (budget * days), 4),
        "changes_found": report.changed,
        "ms_a_request": round(1e3 * took / web.requests, 2),
    }
    command.say(f"seed {seed}: {found}")
    return found


def _watch(_live: Live) -> Observer:
    return _ignore


def _ignore(_batch: Sequence[Acknowledged]) -> None:
    """Nothing is shown while it runs."""


def _costs(
    table: SourceTable, changes: ChangeTimes, web: PoissonWeb, days: float
) -> tuple[float, float]:
    crawls = Crawls(np.array(web.rows, np.intp), np.array(web.days))
    start = days - _MEASURED
    last = np.full(len(table), 0.0)
    before = crawls.at <= start
    np.maximum.at(last, crawls.source[before], crawls.at[before])
    table.last_crawl[:] = last
    within = Crawls(crawls.source[~before], crawls.at[~before])
    unsignalled = np.zeros(len(table), np.bool_)
    costs = expected_costs(table, within, start, days, changes=changes, signalled=unsignalled)
    return float(costs.harmonic.mean()), float(costs.binary.mean())


def main() -> None:
    """The command ``scripts/bench daemon``."""
    parser = command.arguments(__doc__)
    parser.add_argument("--pages", type=int, default=10_000, help="pages of the web")
    parser.add_argument("--seeds", type=int, default=5, help="webs, each kept from nothing")
    parser.add_argument(
        "--sites", type=Path, metavar="DIR", help="instead, recorded sites (*.sqlite.zst)"
    )
    daemon_learning.add_options(parser)
    parser.add_argument(
        "--rivals", action="store_true", help="with --sites: beside what other crawlers would do"
    )
    parser.add_argument(
        "--recorded", type=Path, metavar="DIR", help="instead, the whole daemon on such sites"
    )
    parser.add_argument("--begin", type=float, default=0.0, help="with --recorded: its first day")
    parser.add_argument("--days", type=float, default=180.0, help="with --recorded: how many")
    parser.add_argument(
        "--interval",
        type=float,
        action="append",
        metavar="DAYS",
        help="with --recorded: one request a page and so many days; repeatable; default 5",
    )
    parser.add_argument("--policy", default="site_clock", help="how pages are ranked")
    parser.add_argument(
        "--soak", type=float, nargs="?", const=3_600.0, metavar="SECONDS",
        help="instead, a daemon in real time under load: its memory and its file",
    )  # fmt: skip
    parser.add_argument(
        "--fixed", action="store_true", help="with --soak: pages that do not change"
    )
    chosen = parser.parse_args()
    if chosen.soak is not None:
        daemon_soak.main(chosen.soak, chosen.policy, chosen.output, is_fixed=chosen.fixed)
        return
    if chosen.sites is not None:
        with command.workspace() as directory:
            result = daemon_sites.compared(
                chosen.sites, directory, chosen.seeds, rivals=chosen.rivals
            )
        command.finish(result, chosen.output)
        return
    if chosen.recorded is not None:
        stretches = [Stretch(chosen.begin, chosen.days, i) for i in chosen.interval or [5.0]]
        with command.workspace() as directory:
            result = daemon_recorded.compared(chosen.recorded, directory, stretches, chosen.policy)
        command.finish(result, chosen.output)
        return
    if chosen.learning:
        with command.workspace() as directory:
            result = daemon_learning.measured(
                chosen.learning, chosen.policy, directory,
                visits=chosen.visits, budget=chosen.budget, kept=chosen.store,
            )  # fmt: skip
        command.finish(result, chosen.output)
        return
    with command.workspace() as directory:
        runs = [run(chosen.pages, n + 1, chosen.policy, directory) for n in range(chosen.seeds)]
    shares = [float(str(found["of_lambda_crawl"])) for found in runs]
    command.finish(
        {
            "pages": chosen.pages,
            "policy": chosen.policy,
            "of_lambda_crawl": {
                "mean": round(sum(shares) / len(shares), 4), "max": max(shares), "goal": 0.76,
            },
            "runs": runs,
        },
        chosen.output,
    )  # fmt: skip
