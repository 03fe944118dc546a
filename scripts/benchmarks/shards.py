"""Shards that agree on one price, beside one daemon that has all pages; JSON on stdout.

``cost``: a population of ``--pages`` (that of the simulations, its sites of very unequal size and
rate), in 1 part and in 2, 8 and 64, each with the daemon's own ranker, which knows nothing at the
start. Every four hours each part tells its demand curve by what it believes, and gets its share
until the next time. Harmonic cost over the second half of the days, by that of one part.

The rest goes through the daemon's coordinator, to which parts report in turn, once a minute.
``spending``: requests that the parts' pacers let start in the second and third hour, by the budget,
where what each wants drifts. ``tripled``: the change rates of the largest part triple at once, and
it knows; its share by that of the optimum, minute by minute from the one before. ``cpu_ms``: of its
curve and its report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import process_time

import numpy as np

from freshet.crawler.extensions.shards.shard import Coordinator
from freshet.crawler.frontier.politeness import Pacer
from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate.evidence import VisitResults
from freshet.scheduler.evaluate import crawl_costs
from freshet.scheduler.evaluate.changes import poisson
from freshet.scheduler.evaluate.crawl_costs import Crawls
from freshet.scheduler.evaluate.runners import RandomWorld
from freshet.scheduler.evaluate.serving import best_rows
from freshet.scheduler.evaluate.world import World, surrogate
from freshet.scheduler.queue.ranker import Ranker
from freshet.scheduler.queue.rankers import ranker_of
from freshet.scheduler.solve.demand import IntervalDemand
from freshet.scheduler.solve.shared_price import PRICES, DemandCurve, divide
from freshet.scheduler.sources import Rows, SourceTable
from scripts.benchmarks import command

PARTS = (2, 8, 64)
_SITES = 256
_HOUR, _MINUTE = 1 / 24, 1 / 1440
_DAY_S = 86_400.0
#: Parts tell their curves every so many hours; a daemon values its pages as often, or more often.
_AGREEING_HOURS = 4
#: A part is valued anew for so many visits at a time.
_BATCH = 8


def sites_of(pages: int, rng: np.random.Generator) -> Rows:
    """The site of each page: their sizes fall as one over their rank."""
    weight = 1 / np.arange(1.0, _SITES + 1)
    return rng.choice(_SITES, pages, p=weight / weight.sum())


def population(pages: int, seed: int) -> tuple[SourceTable, Rows]:
    """Pages with sites, some of which change ten times as fast as others."""
    rng = np.random.default_rng(seed)
    table, site = surrogate(pages, rng), sites_of(pages, rng)
    pace = rng.lognormal(0.0, 1.0, _SITES)
    nothing = np.zeros(pages, np.bool_)
    faster = replace(table, change_rate=table.change_rate * pace[site])
    return replace(faster, complete_observations=nothing, signal_rate=np.zeros(pages)), site


@dataclass(slots=True)
class Part:
    """A shard: its rows of the world, its ranker, and the requests that it may still make."""

    rows: Rows
    importance: Floats
    ranker: Ranker
    tokens: float = 0.0
    share: float = 0.0
    captured: Rows = field(default_factory=lambda: np.empty(0, np.intp))

    def curve(self, now: float) -> DemandCurve:
        """Tell how many requests a day it would make at each price, by what it believes."""
        rate = np.nan_to_num(self.ranker.beliefs(now).rate)
        return DemandCurve.of(IntervalDemand(self.importance, rate))


def simulated(world: World, site: Rows, parts: int, budget: float, start: Floats) -> Crawls:
    """All crawls of a run in so many parts."""
    environment = RandomWorld(world, start)
    # The largest sites are in parts of their own, as hashes may have it.
    place = np.random.default_rng(parts).permutation(_SITES) % parts
    some = list[Part]()
    for code in range(parts):
        rows = np.flatnonzero(place[site] == code)
        ranker = ranker_of("site_clock", budget / parts)
        codes = np.unique(site[rows], return_inverse=True)[1].astype(np.intp)
        ranker.add(codes, np.zeros(len(rows), np.intp), world.table.importance[rows], start[rows])
        some.append(Part(rows, world.table.importance[rows], ranker))
    # Each page was captured once, and nothing is known of it.
    for part in some:
        order = np.argsort(start[part.rows], kind="stable")
        part.ranker.learn(_first(part.rows[order], start, order))
    share = np.zeros(parts)
    hours = int(world.days / _HOUR)
    for hour in range(hours):
        now = hour * _HOUR
        if hour % _AGREEING_HOURS == 0:
            curves = [DemandCurve.read(part.curve(now).message()) for part in some]
            share = divide(curves, budget)[1]
        for part, one in zip(some, share.tolist(), strict=True):
            part.share = one
            _spend(part, environment, now)
    return environment.crawls()


def _first(rows: Rows, start: Floats, order: Rows) -> VisitResults:
    n = len(rows)
    nothing = np.zeros(n, np.bool_)
    return VisitResults(
        order, start[rows], compared=nothing, changed=nothing, gone=nothing, moved=nothing
    )


def _spend(part: Part, environment: RandomWorld, now: float) -> None:
    """Make the requests of an hour, evenly, the worthiest pages first."""
    wanted = part.share * _HOUR
    part.tokens += wanted
    count = int(part.tokens)
    part.tokens -= count
    done = 0
    while done < count:
        size = min(_BATCH, count - done)
        at = now + _HOUR * (done + 0.5 + np.arange(size)) / count
        rows = best_rows(part.ranker.values(float(at[0])), size)
        found = environment.visit(part.rows[rows], at[: len(rows)])
        part.ranker.learn(replace(found, row=rows))
        done += size


def costs(pages: int, days: float, seeds: Sequence[int]) -> dict[str, object]:
    """Harmonic costs by those of one part."""
    found: dict[int, list[float]] = {parts: [] for parts in PARTS}
    for seed in seeds:
        table, site = population(pages, seed)
        rng = np.random.default_rng([seed, 1])
        budget = 0.2 * pages
        start = -rng.uniform(0.0, 5.0, pages)
        world = World.draw(table, poisson, 10.0, days, rng)
        cost = dict[int, float]()
        for parts in (1, *PARTS):
            crawls = simulated(world, site, parts, budget, start)
            judged = crawl_costs.expected_costs(
                replace(table, last_crawl=start), crawls, days / 2, days,
                changes=world.changes, signalled=table.complete_observations,
            )  # fmt: skip
            cost[parts] = float(judged.harmonic.mean())
            command.say(f"seed {seed}, {parts} parts: {cost[parts]:.1f}")
        for parts in PARTS:
            found[parts].append(cost[parts] / cost[1])
    return {
        f"{parts}": {"by_one": round(float(np.mean(values)), 4), "worst": round(max(values), 4)}
        for parts, values in found.items()
    }


def agreed(
    curves: Callable[[int], Sequence[DemandCurve]], parts: int, per_day: float, minutes: int
) -> Iterator[tuple[int, int, float]]:
    """Yield minute, part and new share of each report to the daemon's coordinator.

    Parts report in turn, once a minute each; ``curves`` returns what they want from a minute on.
    """
    coordinator, shares = Coordinator(per_day, parts, 0.0), dict[int, float]()
    for minute in range(minutes):
        wanted = curves(minute)
        for part in range(parts):
            now = 60.0 * (minute + part / parts)
            answer = coordinator.report(part, wanted[part].message(), shares.get(part), now)
            if answer is not None:
                shares[part] = answer[1]
                yield minute, part, answer[1]


def spending(parts: int, per_hour: float, drift: float) -> dict[str, float]:
    """Requests that start in an hour, by the budget, where each part always has some to make.

    Each minute what a part wants changes by ``drift``, as a share of itself.
    """
    rng = np.random.default_rng(parts)
    pacers, last = [Pacer(1.0, 0.0) for _ in range(parts)], [0.0] * parts
    weight, hours = rng.lognormal(0.0, 2.0, parts), np.zeros(4)

    def curves(_minute: int) -> list[DemandCurve]:
        nonlocal weight
        weight = weight * rng.lognormal(0.0, drift, parts)
        return [DemandCurve(per_hour * float(each) / PRICES / 1e9) for each in weight]

    for minute, part, share in agreed(curves, parts, 24 * per_hour, 240):
        now, pacer = 60.0 * (minute + part / parts), pacers[part]
        while (at := pacer.allows_at(last[part])) < now:
            pacer.started()
            hours[int(at // 3_600)] += 1
            last[part] = at
        last[part] = now
        pacer.change(share, now)
    # The first hour begins without shares, and the last report ends the last one early.
    return {"least": round(float(hours[1:3].min() / per_hour), 4),
            "most": round(float(hours[1:3].max() / per_hour), 4)}  # fmt: skip


def tripled(pages: int, parts: int) -> list[float]:
    """The share of the largest part by that of the optimum, minutes after its rates tripled."""
    table, site = population(pages, 1)
    place = np.arange(_SITES) % parts
    rate = table.change_rate.copy()
    split = [np.flatnonzero(place[site] == part) for part in range(parts)]

    def wanted(rates: Floats) -> list[DemandCurve]:
        return [DemandCurve.of(IntervalDemand(table.importance[r], rates[r])) for r in split]

    before = wanted(rate)
    rate[split[0]] *= 3
    after = wanted(rate)
    best = divide(after, 0.2 * pages)[1][0]
    known = 60
    shares = agreed(lambda m: before if m < known else after, parts, 0.2 * pages, known + 11)
    return [round(share / best, 4) for m, part, share in shares if not part and m >= known - 1]


def agreeing(pages: int, parts: int) -> float:
    """CPU milliseconds a part and minute: its curve, of so many pages, and the report."""
    table, _ = population(pages, 2)
    demand = IntervalDemand(table.importance, table.change_rate)
    message = DemandCurve.of(demand).message()
    coordinator, began = Coordinator(0.2 * pages, parts, 0.0), process_time()
    for minute in range(10):
        for part in range(parts):
            coordinator.report(part, message, 1.0, 60.0 * minute)
    reports, began = process_time() - began, process_time()
    for _ in range(10):
        DemandCurve.of(demand).message()
    return round(1e3 * (process_time() - began + reports / parts) / 10, 3)


def main() -> None:
    """The command."""
    parser = command.arguments(__doc__)
    parser.add_argument("--pages", type=int, default=6_000, help="in the simulation")
    parser.add_argument("--days", type=float, default=40.0, help="of the simulation")
    parser.add_argument("--seeds", type=int, default=3, help="as many populations")
    given = parser.parse_args()
    result: dict[str, object] = {
        "bytes_of_a_message": len(DemandCurve(np.ones(161)).message()),
        "cpu_ms_a_shard_and_minute": {
            f"{pages} pages, {parts} shards": agreeing(pages, parts)
            for pages in (10_000, 1_000_000)
            for parts in (2, 64, 1_000)
        },
        "spending": {
            f"{parts} shards, {drift} a minute": spending(parts, 20_000.0, drift)
            for drift in (0.01, 0.05, 0.3)
            for parts in PARTS
        },
        "tripled": tripled(given.pages, 8),
        "cost": costs(given.pages, given.days, range(given.seeds)),
    }
    command.finish(result, given.output)
