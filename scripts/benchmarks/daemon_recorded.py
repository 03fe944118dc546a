"""The whole daemon on recorded sites in virtual time, judged by their true history.

It begins with an empty store and each site's start page. Staleness is that of the pages it has
found, from the first visit to them to their end; changes are significant ones, as for visits
without fetching (:mod:`scripts.benchmarks.daemon_sites`). Beside it stand uniform periodic visits
to the same pages from the same days on, one for each request that the daemon sent: whatever it
spends on robots.txt, redirects, audits and pages that are not there is to its own account; and as
many visits as it had requests answered by pages. A recording ends where its repository did: links
to what else stood on the host lead nowhere. Pages that live under 30 days are left out.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean, geometric_mean, median
from time import perf_counter

import uvloop

from freshet.config.loading import load
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from scripts.benchmarks import command
from scripts.benchmarks.daemon_sites import Costs, Page, load_pages, recorded, uniform
from scripts.benchmarks.recorded_web import RecordedWeb, Recording
from tests.integration.quick import unwatched

_DAY_S = 86_400.0
#: The network is not used, but a crawler beyond loopback must say who it is.
_CONTACT = "https://example.org/bench"
_SHARES = (
    "harmonic_of_uniform",
    "binary_of_uniform",
    "harmonic_of_as_many_looks",
    "binary_of_as_many_looks",
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """From which day of a recording on, for how many days, one request a page and so many days."""

    begin: float
    days: float
    interval: float


def compared(
    directory: Path, workspace: Path, stretches: Sequence[Stretch], policy: str
) -> dict[str, object]:
    """What the daemon made of every site, by interval, and the geometric means over the sites."""
    found: dict[str, dict[str, dict[str, object]]] = {}
    for path in recorded(directory, workspace):
        with closing(Recording(path)) as recording:
            for stretch in stretches:
                result = _kept(recording, path, stretch, policy)
                command.say(f"{path.stem}: {result}")
                found.setdefault(f"{stretch.interval:g} days", {})[path.stem] = result
    return {
        "days": stretches[0].days,
        "begin": stretches[0].begin,
        "policy": policy,
        "geometric_means": {
            when: {
                cost: round(geometric_mean(float(str(s[cost])) for s in sites.values()), 4)
                for cost in _SHARES
            }
            for when, sites in found.items()
        },
        "sites": found,
    }


def _kept(recording: Recording, path: Path, stretch: Stretch, policy: str) -> dict[str, object]:
    pages = within(load_pages(path), stretch)
    lived = sum(page.death - max(page.birth, 0.0) for page in pages.values())
    budget = lived / stretch.days / stretch.interval
    begin = recording.begin + stretch.begin * _DAY_S
    clock = VirtualClock(begin)
    web = RecordedWeb(recording, clock)
    db = path.with_name(f"{path.stem}-{stretch.interval:g}.db")
    seeds = seeds_from_arguments([recording.start]).seeds
    order = DaemonOrder(db, seeds, budget, policy, stretch.days * _DAY_S)
    settings, _ = load(None, {"crawl.contact": _CONTACT, "store.bodies_per_page": 2})
    started = perf_counter()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        report = runner.run(
            keep(settings, order, watch=unwatched, fetcher=web, clock=clock, rng=Random(1))
        )
    took = perf_counter() - started
    visits: defaultdict[int, list[float]] = defaultdict(list)
    for page, at in web.shown:
        visits[page].append((at - begin) / _DAY_S)
    requests = len(web.asked)
    return {
        "budget_a_day": round(budget, 2),
        "requests": requests,
        "requests_of_budget": round(requests / (budget * stretch.days), 4),
        "requests_by_status": dict(sorted(web.statuses.items())),
        "requests_for_robots": web.robots,
        **staleness(pages, visits, requests, stretch.days),
        **discovery(
            pages, visits, recording.reachable(begin + stretch.days * _DAY_S), stretch.days
        ),
        "changes_told": report.changed,
        "ms_a_request": round(1e3 * took / requests, 2),
    }


def within(pages: Mapping[int, Page], stretch: Stretch) -> dict[int, Page]:
    """Those that live within a stretch, with their days counted from its first."""
    first, last = stretch.begin, stretch.begin + stretch.days
    return {
        number: replace(
            page,
            birth=page.birth - first,
            death=min(page.death, last) - first,
            changes=tuple(at - first for at in page.changes if first < at < last),
        )
        for number, page in pages.items()
        if page.birth < last and page.death > first
    }


def staleness(
    pages: Mapping[int, Page], visits: Mapping[int, Sequence[float]], requests: int, days: float
) -> dict[str, object]:
    """Costs of the pages that were found, and what uniform visits to these would have cost."""
    ours, known, number_of_looks, to_be_told = Costs(), [], 0, 0
    for number, page in pages.items():
        seen = [day for day in visits.get(number, ()) if page.birth <= day < page.death]
        if not seen:
            continue
        known.append(replace(page, birth=seen[0]))
        number_of_looks += len(seen)
        to_be_told += sum([ours.add(page, since, until) for since, until in pairwise(seen)])
        ours.add(page, seen[-1], page.death)
    even, fewer = (uniform(known, count / days, 1) for count in (requests, number_of_looks))
    lived = sum(page.death - page.birth for page in known)
    return {
        "fresh": round(float(1 - ours.binary / lived), 4),
        "fresh_if_uniform": round(float(1 - even.binary / lived), 4),
        "harmonic_of_uniform": round(float(ours.harmonic / even.harmonic), 4),
        "binary_of_uniform": round(float(ours.binary / even.binary), 4),
        "changes_to_be_told": to_be_told,
        "looks_of_requests": round(number_of_looks / requests, 4),
        "harmonic_of_as_many_looks": round(float(ours.harmonic / fewer.harmonic), 4),
        "binary_of_as_many_looks": round(float(ours.binary / fewer.binary), 4),
    }


def discovery(
    pages: Mapping[int, Page],
    visits: Mapping[int, Sequence[float]],
    reachable: set[int],
    days: float,
) -> dict[str, object]:
    """Which pages were found, and after how many days those that came later."""
    alive = {number for number, page in pages.items() if page.death >= days}
    born = {number: page for number, page in pages.items() if page.birth > 0}
    first = {number: min(days_) for number, days_ in visits.items()}
    delays = [first[n] - page.birth for n, page in born.items() if n in first]
    return {
        "alive_at_end": len(alive),
        "found_of_alive": round(len(alive & visits.keys()) / len(alive), 4),
        "linked_at_end": len(alive & reachable),
        "found_of_linked": round(
            len(alive & reachable & visits.keys()) / max(1, len(alive & reachable)), 4
        ),
        "new_pages": len(born),
        "new_found": len(delays),
        "delay_days": {"mean": round(fmean(delays), 2), "median": round(median(delays), 2)}
        if delays
        else None,
    }
