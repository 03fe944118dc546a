"""A daemon on a synthetic web in virtual time, evaluated against the web's truth."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Final

import numpy as np

from freshet.config.settings import Settings
from freshet.config.sites import Sites
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.extensions.lab.synthetic_web.content import SyntheticUrl
from freshet.crawler.extensions.lab.synthetic_web.fetcher import SyntheticFetcher
from freshet.crawler.extensions.lab.synthetic_web.site import without_utm
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.daemon_status import measured
from freshet.crawler.run.importance import terms
from freshet.crawler.run.orders import DaemonOrder
from freshet.crawler.urls import canonical
from freshet.scheduler.costs import stale_days
from freshet.scheduler.evaluate.serving import Progress, silent
from freshet.scheduler.queue.audit import Staleness
from freshet.storage.database import reading
from freshet.storage.records import FetchResult

# -- evaluation against the truth --------------------------------------------
# A *copy* lasts from the first answered visit of a page to the first one after the page's
# death, or to the end. It is stale from the page's first change, or death, to the next visit.
# All means are over the time of copies, weighted with importance.
_DAY_S: Final = 86_400.0
#: The time in which a new page loses half of its worth, if it is one of those that soon do.
HALF_LIFE_S: Final = 6 * 3_600.0


@dataclass(frozen=True, slots=True)
class TruePage:
    """The true life of a page in Unix seconds; ``died_at`` is inf if it does not die."""

    importance: float
    born_at: float
    died_at: float
    changed_at: Sequence[float]


@dataclass(frozen=True, slots=True)
class _Freshness:
    """The freshness of copies.

    ``binary`` is the share of time that they were stale, ``harmonic`` the mean harmonic number of
    missed changes, ``age_days`` the mean time since the last visit, ``stale_days`` the mean time
    for which stale ones had been stale.
    """

    fresh: float
    binary: float
    harmonic: float
    age_days: float
    stale_days: float


@dataclass(frozen=True, slots=True)
class FoundPages:
    """The pages ``born`` in a span: how many were found by its end, and after how many days.

    ``utility`` is the mean worth of all of them at their first visit: 1 at birth, half of it after
    :data:`HALF_LIFE_S`, 0 for a page that was not found.
    """

    born: int
    found: int
    mean_delay_days: float | None
    median_delay_days: float | None
    utility: float | None


def freshness(
    pages: Iterable[tuple[TruePage, Sequence[float]]], begin: float, end: float
) -> _Freshness | None:
    """Return the freshness of copies in a span; ``pages`` with the times of their visits, rising.

    None if there was no copy.
    """
    stretches: list[tuple[float, float, float, float]] = []
    missed: list[list[float]] = []
    for page, visits in pages:
        for since, until in _kept(page, visits, end):
            if until > begin:
                stretches.append((page.importance, since, max(since, begin), until))
                missed.append(_missed(page, since, until))
    if not stretches:
        return None
    weight, since_, begin_, end_ = np.array(stretches).T
    number = np.array([len(each) for each in missed])
    first = np.cumsum(number) - number
    changed = np.array([at for each in missed for at in each])
    harmonic, stale = stale_days(changed, first, number, begin_, end_)
    stale_since = end_.copy()
    stale_since[number > 0] = changed[first[number > 0]]
    lived, was_stale = float(weight @ (end_ - begin_)), float(weight @ stale)
    if not lived:
        return None
    age = weight @ ((end_ - since_) ** 2 - (begin_ - since_) ** 2) / 2
    # From the first change on, or from the beginning where that came before.
    before = np.maximum(begin_ - stale_since, 0.0)
    behind = weight @ ((end_ - stale_since) ** 2 - before**2) / 2
    return _Freshness(
        fresh=1 - was_stale / lived,
        binary=was_stale / lived,
        harmonic=float(weight @ harmonic) / lived,
        age_days=float(age) / lived / _DAY_S,
        stale_days=float(behind) / was_stale / _DAY_S if was_stale else 0.0,
    )


def discovery(
    pages: Iterable[tuple[TruePage, Sequence[float]]], begin: float, end: float
) -> FoundPages:
    """Evaluate how the pages born in (``begin``, ``end``] were found."""
    born = [(page, visits) for page, visits in pages if begin < page.born_at <= end]
    first = [(next(iter(_answered(page, visits)), inf), page.born_at) for page, visits in born]
    delays = [(at - born_at) / _DAY_S for at, born_at in first if at <= end]
    return FoundPages(
        len(born),
        len(delays),
        fmean(delays) if delays else None,
        median(delays) if delays else None,
        sum(0.5 ** (days * _DAY_S / HALF_LIFE_S) for days in delays) / len(born) if born else None,
    )


def held(pages: Iterable[tuple[TruePage, Sequence[float]]], at: float) -> int:
    """Count the pages alive at a time that have a copy."""
    return sum(
        page.born_at <= at < page.died_at and any(visit <= at for visit in _answered(page, visits))
        for page, visits in pages
    )


def _answered(page: TruePage, visits: Sequence[float]) -> Iterator[float]:
    return (at for at in visits if page.born_at <= at < page.died_at)


def _kept(page: TruePage, visits: Sequence[float], end: float) -> Iterator[tuple[float, float]]:
    """Yield the copies of a page, from visit to visit."""
    answered = list(_answered(page, visits))
    if answered:
        found_dead = next((at for at in visits if at >= page.died_at), end)
        yield from pairwise([*answered, min(found_dead, end)])


def _missed(page: TruePage, since: float, until: float) -> list[float]:
    """Return when a copy of ``since`` missed changes, or its page's death, before ``until``."""
    first = bisect_right(page.changed_at, since)
    missed = [at for at in page.changed_at[first:] if at < until]
    if since < page.died_at < until:
        missed.append(page.died_at)
    return missed


#: The span over which freshness is measured is the last half, and so many days at most.
_MEASURED_DAYS: Final = 30.0
_ANSWERS: Final = frozenset({200, 304})
_ENDS: Final = frozenset({301, 404, 410})


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a rehearsal: ``budget`` requests a day for some days."""

    budget: float
    policy: str
    days: float
    seed: int

    @property
    def measured_days(self) -> float:
        """The number of days at the end that are measured."""
        return min(self.days / 2, _MEASURED_DAYS)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The result of a budget. ``of_budget`` is the share of it that was spent.

    ``freshness`` and ``new`` are the truth of the measured days; ``audited`` is the daemon's own
    measurement. ``pages`` are those that a complete crawl would find at the end; ``held`` of them
    have a copy.
    """

    requests: int
    of_budget: float
    pages: int
    held: int
    freshness: _Freshness | None
    audited: Staleness | None
    new: FoundPages


@dataclass(slots=True)
class _Watched:
    """A fetcher that records which places it visited when, and whether they answered."""

    inner: SyntheticFetcher
    requests: int = 0
    visits: defaultdict[SyntheticUrl, list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )

    async def fetch(self, request: Request) -> FetchResult:
        """Make the request and record it."""
        self.requests += 1
        result = await self.inner.fetch(request)
        place = self.inner.addresses.place(request.url)
        if place is not None and result.status in _ANSWERS | _ENDS:
            self.visits[place._replace(target=without_utm(place.target))].append(result.started_at)
        return result


async def rehearse(
    settings: Settings, web: SyntheticWeb, plan: Plan, db: Path, tell: Progress = silent
) -> Rehearsal | None:
    """Keep a web fresh from the day on which it starts to change; None if a signal ended it.

    ``tell`` receives the share of the time that has passed.
    """
    from freshet.crawler.run.crawl import Live  # noqa: PLC0415 - slow to import
    from freshet.crawler.run.daemon import keep  # noqa: PLC0415 - likewise
    from freshet.crawler.run.wiring import Observer  # noqa: PLC0415 - likewise

    # What happens on a made-up web is nobody's news.
    settings = settings.silent()
    clock = VirtualClock(web.start_at)
    fetcher = _Watched(SyntheticFetcher(web, clock.now))
    roots = [fetcher.inner.addresses.origin(name) + "/" for name in web.sites]
    order = DaemonOrder(
        db, seeds_from_arguments(roots).seeds, plan.budget, plan.policy, plan.days * _DAY_S
    )

    def watch(_live: Live) -> Observer:
        return lambda _batch: tell((clock.now() - web.start_at) / (plan.days * _DAY_S))

    report = await keep(
        settings, order, watch=watch, fetcher=fetcher, clock=clock, rng=Random(plan.seed)
    )
    if report.ending == "interrupted":
        return None
    end = web.start_at + plan.days * _DAY_S
    begin = end - plan.measured_days * _DAY_S
    pages = _pages(settings, web, fetcher, end)
    there = web.crawlable(end)
    async with reading(db) as connection:
        audited = await measured(connection, begin)
    alive = {place: page for place, page in pages.items() if place in there}
    return Rehearsal(
        requests=fetcher.requests,
        of_budget=fetcher.requests / (plan.budget * plan.days),
        pages=len(alive),
        held=held(alive.values(), end),
        freshness=freshness(pages.values(), begin, end),
        audited=audited,
        new=discovery(pages.values(), begin, end),
    )


def _pages(
    settings: Settings, web: SyntheticWeb, fetcher: _Watched, end: float
) -> Mapping[SyntheticUrl, tuple[TruePage, Sequence[float]]]:
    """Return the pages that a crawl on some day would have found, with their visits.

    A page may leave all lists on the day of its birth, so the births are days of such crawls, too.
    """
    days = np.arange(web.start_at, end + 1, _DAY_S).tolist()
    lives = list(web.lives())
    births = (life.born_at for life in lives if web.start_at < life.born_at <= end)
    wanted = frozenset[SyntheticUrl]().union(*(web.crawlable(at) for at in {*days, *births}))
    lives = [life for life in lives if life.place in wanted]
    urls = [canonical(fetcher.inner.addresses.url(life.place)) for life in lives]
    ruled = terms(urls, np.zeros(len(urls), np.intp), np.ones(len(urls)), Sites(settings.sites))
    return {
        life.place: (
            TruePage(float(importance), life.born_at, life.died_at or inf, life.changed_at),
            fetcher.visits.get(life.place, []),
        )
        for life, importance, never in zip(lives, ruled.importance, ruled.never, strict=True)
        if not never
    }
