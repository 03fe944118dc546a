"""Complete observations in a daemon: what LambdaCrawl pays a URL with them and without.

The population is that of the paper on 25 hosts. One of them, with 4 % of the pages, has a sitemap
that tells of every change, as the paper's sources of complete observations do. Daemons that follow
the policy begin with empty stores: one reads no sitemaps, one has to find out what the sitemap is
worth, one is told by ``[[sites]] signals = "complete"``, and one finds two more sitemaps that stamp
all pages every day. What they pay over the last days, polls and robots.txt included, is set beside
the optimum with known rates on the same pages, with these signals and without, at the same
requests. How many pages are believed to be complete, by right and wrongly, is what ``plan --db``
finds in the store.
"""

from __future__ import annotations

from math import inf
from time import perf_counter
from typing import Any, Final

from freshet.crawler.extensions.lab.plan_sources import read_store
from freshet.scheduler.evaluate.simulate import lambda_crawl_optimum
from scripts.benchmarks import command
from scripts.benchmarks.signals_daemon import kept, settings
from scripts.benchmarks.signals_surrogate import SHARE, Judge, placed_on_hosts
from scripts.benchmarks.signals_web import origin

PAGES: Final = 500
_SITES: Final = 25
_TRUE: Final = 0
_DAYS: Final = 1 / SHARE + 20.0
_MEASURED: Final = 8.0
_LYING: Final = (1, 2)
_TOLD: Final = {_TRUE: inf}
_SET: Final = ({"match": origin(_TRUE).removeprefix("http://"), "signals": "complete"},)
#: The sitemaps, and what else is set.
RUNS: Final[dict[str, tuple[dict[int, float], dict[str, Any]]]] = {
    "without": ({}, {"robots__sitemaps": False}),
    "learnt": (_TOLD, {}),
    "set": (_TOLD, {"sites": _SET}),
    "lying": (_TOLD | dict.fromkeys(_LYING, -inf), {}),
}


def figures(
    pages: int = PAGES, seed: int = 1, policy: str = "lambda_crawl", days: float = _DAYS
) -> dict[str, object]:
    """Return what each daemon pays a URL, what of it is for the pages that signal, and requests."""
    stage, hosts = placed_on_hosts(pages, seed, "complete", days, sites=_SITES, true=(_TRUE,))
    budget = SHARE * pages
    judge = Judge(stage, hosts.with_sitemaps(_TOLD), days - _MEASURED)
    runs: dict[str, dict[str, float]] = {}
    for name, (sitemaps, given) in RUNS.items():
        begun, mapped = perf_counter(), hosts.with_sitemaps(sitemaps)
        with command.workspace() as directory:
            db = directory / "crawl.db"
            run = kept(stage, mapped, budget, db, policy=policy, **given)
            sources, *_ = read_store(db, "empirical_bayes", settings(**given))
        believed = [
            f"http://h{_TRUE}." in url
            for url, is_complete in zip(sources.url, sources.complete_observations, strict=True)
            if is_complete
        ]
        costs, requests = judge.costs(run.crawls), judge.requests(run)
        runs[name] = {
            "cost": costs["all"], "signalling": costs["signalling"],
            "believed_rightly": sum(believed), "wrongly": len(believed) - sum(believed),
            "pages_a_day": requests["pages"], "polls_a_day": requests["sitemaps"],
        }  # fmt: skip
        command.say(f"{name}: {runs[name]} in {perf_counter() - begun:.0f} s")
    return {
        "pages": pages, "seed": seed, "policy": policy, "requests_a_day": budget, "daemons": runs,
        "optimum": {
            "without": round(lambda_crawl_optimum(stage.silent(), budget).harmonic_cost, 1),
            "complete": round(lambda_crawl_optimum(stage.table, budget).harmonic_cost, 1),
        },
    }  # fmt: skip
