"""The whole daemon with sitemaps, true and lying, on a surrogate population in virtual time.

The pages lie on 50 hosts. Two of them, 4 % of the pages, have a true sitemap; in a second run two
more have one that stamps every page every day. A daemon begins with an empty store; what it pays
over the last 5 days, after the 5 in which all pages could be visited once and 14 more, is set
beside others, on the same changes:

- the greedy index that knows all rates and which signals are true, and hears them at once for
  nothing; also with no more visits than the daemon had left when it had paid for polls and
  robots.txt, and, of these, hearing a change only when the daemon polled: so one sees what of the
  difference are polls, what their delay, and what is left for misjudgement;
- the daemon's learning where it is known which signals are true, and these cost nothing;
- the same daemon that reads no sitemaps;
- LambdaCrawl's optimum with known rates, with signals and without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from time import perf_counter
from typing import Any

import numpy as np

from freshet.scheduler.arrays import Floats
from freshet.scheduler.evaluate.changes import poisson
from freshet.scheduler.evaluate.crawl_costs import Crawls
from freshet.scheduler.evaluate.simulate import lambda_crawl_optimum
from freshet.scheduler.evaluate.world import surrogate
from freshet.scheduler.sources import Rows, SourceTable
from scripts.benchmarks import command
from scripts.benchmarks.signals_daemon import Kept, kept
from scripts.benchmarks.signals_oracle import learning
from scripts.benchmarks.signals_reference import Stage, informed, received_at, uninformed
from scripts.benchmarks.signals_web import Hosts

HOSTS = 50
TRUE = (0, 1)
LYING = (2, 3)
PAGES = 10_000
LEARNING = 14.0
MEASURED = 5.0
SHARE = 0.2
_DAYS = 1 / SHARE + LEARNING + MEASURED
_NEVER, _ALWAYS = inf, -inf
#: The sitemaps, and what else is set.
RUNS: dict[str, tuple[dict[int, float], dict[str, Any]]] = {
    "without": ({}, {"robots__sitemaps": False}),
    "true": (dict.fromkeys(TRUE, _NEVER), {}),
    "lying": (dict.fromkeys(TRUE, _NEVER) | dict.fromkeys(LYING, _ALWAYS), {}),
}
#: Days between polls that know what they are worth: the best of these is told.
_PERIODS = (1 / 48, 1 / 24, 1 / 16, 1 / 12, 1 / 8, 1 / 6, 1 / 4)


def figures(pages: int = PAGES, seeds: int = 1, *, dated: bool = False) -> dict[str, object]:
    """Costs and beliefs, by which pages are on the hosts whose sitemaps are true.

    ``dated``: all pages have a true Last-Modified.
    """
    return {
        "pages": pages,
        "hosts": hosts_of(pages),
        "dated": dated,
        "looks_a_day": SHARE * pages,
        "goals": {"true_of_index": 1.05, "lying_of_true": 1.03, "lying_recognised_in_days": 7},
        "placed": {
            placed: [
                compared(placed_on_hosts(pages, seed, placed, _DAYS, dated=dated), seed)
                for seed in range(1, seeds + 1)
            ]
            for placed in ("complete", "random")
        },
    }


def compared(world: tuple[Stage, Hosts], seed: int, measured: float = MEASURED) -> dict[str, Any]:
    """One web, kept by three daemons, and by those that know more; the last days are measured."""
    stage, hosts = world
    begun, budget = perf_counter(), SHARE * len(stage.table)
    with command.workspace() as directory:
        runs = {
            name: kept(
                stage, hosts.with_sitemaps(sitemaps), budget, directory / f"{name}.db", **given
            )
            for name, (sitemaps, given) in RUNS.items()
        }
    judge = Judge(stage, hosts.with_sitemaps(RUNS["lying"][0]), stage.days - measured)
    found: dict[str, Any] = {"seed": seed, **judge.beside(runs, budget)}
    found["seconds"] = round(perf_counter() - begun, 1)
    command.say(
        f"seed {seed}: true/index {found['true_of_index']}, lying/true {found['lying_of_true']}"
    )
    return found


def _ratio(one: dict[str, float], other: dict[str, float]) -> float:
    return round(one["all"] / other["all"], 4)


def hosts_of(pages: int) -> int:
    """50, or fewer for a trial, so that robots.txt does not take the budget."""
    return min(HOSTS, max(pages // 20, 2 * len(TRUE + LYING)))


def placed_on_hosts(
    pages: int, seed: int, placed: str, days: float, *, dated: bool = False,
    sites: int | None = None, true: Sequence[int] = TRUE,
) -> tuple[Stage, Hosts]:  # fmt: skip
    """A population, its changes and its hosts, so many ``sites``, of which some are ``true``.

    The first hosts have the population's sources of complete observations, or, ``random``, any.
    """
    rng = np.random.default_rng(seed)
    drawn = surrogate(pages, rng)
    order = rng.permutation(pages)
    if placed == "complete":
        order = order[np.argsort(~drawn.complete_observations[order], kind="stable")]
    of = np.empty(pages, np.intp)
    of[order] = np.arange(pages) * (sites or hosts_of(pages)) // pages
    table = SourceTable.of(
        drawn.importance, drawn.change_rate, complete_observations=np.isin(of, true)
    )
    changes = poisson(table, days, rng)
    return Stage(table, changes, days), Hosts(of, {}, dated)


class Judge:
    """Says what runs cost from a day on, by groups of hosts."""

    def __init__(self, stage: Stage, hosts: Hosts, start: float) -> None:
        self._stage = stage
        self._hosts = hosts
        self._start = start
        signalling, lying = hosts.on(lying=False), hosts.on(lying=True)
        others = np.setdiff1d(np.arange(len(stage.table)), np.concatenate([signalling, lying]))
        self._groups: dict[str, Rows] = {
            "signalling": signalling, "lying": lying, "others": others,
        }  # fmt: skip

    def beside(self, runs: Mapping[str, Kept], budget: float) -> dict[str, Any]:
        """What runs cost beside those who know more, and what they believed."""
        stage, true = self._stage, runs["true"]
        costs = {name: self.costs(run.crawls) for name, run in runs.items()}
        costs |= self.knowing(budget, true)
        return {
            "true_of_index": _ratio(costs["true"], costs["index"]),
            "lying_of_true": _ratio(costs["lying"], costs["true"]),
            "true_of_learning": _ratio(costs["true"], costs["learning"]),
            "true_of_learning_fewer_looks": _ratio(costs["true"], costs["learning_fewer_looks"]),
            "true_of_best_polling": _ratio(costs["true"], costs["index_best_polling"]),
            "without_of_index_without": _ratio(costs["without"], costs["index_without"]),
            "true_of_without": _ratio(costs["true"], costs["without"]),
            "costs": costs,
            "lambda_crawl": {
                "with_signals": round(lambda_crawl_optimum(stage.table, budget).harmonic_cost, 3),
                "without": round(lambda_crawl_optimum(stage.silent(), budget).harmonic_cost, 3),
            },
            "by_day_true_of_index": self.by_day(true.crawls, informed(stage, budget)),
            "by_day_lying_of_true": self.by_day(runs["lying"].crawls, true.crawls),
            "requests_a_day": {name: self.requests(run) for name, run in runs.items()},
            "sources": {
                name: {host: self.source(runs[name], host) for host in RUNS[name][0]}
                for name in ("true", "lying")
            },
        }

    def costs(self, crawls: Crawls) -> dict[str, float]:
        """The mean over all pages, and what the pages of each group add to it."""
        return self._parts(self._stage.costs(crawls, self._start, self._stage.days))

    def _parts(self, costs: Floats) -> dict[str, float]:
        n = len(costs)
        parts = {name: float(costs[rows].sum() / n) for name, rows in self._groups.items()}
        return {
            name: round(cost, 3) for name, cost in ({"all": sum(parts.values())} | parts).items()
        }

    def by_day(self, crawls: Crawls, reference: Crawls) -> list[float]:
        """The costs of each day since the first complete crawl, as ratios."""
        found = []
        for day in range(round(1 / SHARE), round(self._stage.days)):
            one, other = (
                float(self._stage.costs(each, day, day + 1).mean()) for each in (crawls, reference)
            )
            found.append(round(one / other, 3))
        return found

    def knowing(self, budget: float, run: Kept) -> dict[str, dict[str, float]]:
        """The costs of those who know rates and signals."""
        stage = self._stage
        visits = run.crawls.within(1 / SHARE, stage.days) / (stage.days - 1 / SHARE)
        return {
            "index": self.costs(informed(stage, budget)),
            "index_fewer_looks": self.costs(informed(stage, visits)),
            "index_fewer_looks_polling": self.costs(informed(stage, visits, self._received(run))),
            "index_best_polling": self._polling(budget),
            "learning": self.costs(learning(stage, self._hosts, budget)),
            "learning_fewer_looks": self.costs(learning(stage, self._hosts, visits)),
            "index_without": self.costs(uninformed(stage, budget)),
            "index_without_fewer_looks": self.costs(uninformed(stage, visits)),
        }

    def _polling(self, budget: float) -> dict[str, float]:
        """With the best of some periods of polls, which are paid."""
        _, changed = self._stage.changed()
        found = []
        for period in _PERIODS:
            received = np.ceil(changed / period) * period
            visits = budget - len(TRUE) / period
            if visits > 0:
                crawls = informed(self._stage, visits, received)
                found.append({"period_hours": round(period * 24, 2)} | self.costs(crawls))
        return min(found, key=lambda each: each["all"])

    def _received(self, run: Kept) -> Floats:
        """(m,), the days on which the daemon heard of each change."""
        source, changed = self._stage.changed()
        host = run.web.hosts.of[source]
        received = np.empty(len(changed))
        for each in TRUE:
            received[host == each] = received_at(changed[host == each], run.polls_of(each))
        return received

    def requests(self, run: Kept) -> dict[str, float]:
        """A day, over all."""
        web, days = run.web, self._stage.days
        asked = {
            "pages": web.pages.requests, "sitemaps": len(web.polls), "robots": web.robots,
            "others": web.others,
        }  # fmt: skip
        return {name: round(count / days, 2) for name, count in asked.items()}

    def source(self, run: Kept, host: int) -> dict[str, object]:
        """What a host's sitemap was thought of, and how often it was asked for, day by day."""
        days = round(self._stage.days)
        polls = np.bincount(run.polls_of(host).astype(np.intp), minlength=days)[:days]
        beliefs = run.beliefs.get(host, [])
        believed = [belief.day for belief in beliefs if belief.proven]
        return {
            "polls": polls.tolist(),
            "loss_of_loss_without": {
                belief.day: round(belief.loss / belief.loss_without, 3)
                for belief in beliefs if belief.loss_without
            },
            "share_of_last_event": {belief.day: round(belief.share, 3) for belief in beliefs},
            "believed_on": believed,
            "recognised_on": recognised(polls, believed),
        }  # fmt: skip


def recognised(polls: Rows, believed: list[int]) -> int | None:
    """From which day on a source is not believed and asked less than once a day; None: never.

    Not before it was asked first: until then nothing is known of it.
    """
    asked = np.flatnonzero(polls)
    first = max(int(asked[0]) if len(asked) else len(polls), max(believed, default=-1) + 1)
    days = [day for day in range(first, len(polls)) if polls[day:].mean() < 1]
    return next(iter(days), None)
