"""The daemon kept on a synthetic web in virtual time, and what the web's truth says of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from random import Random
from typing import Final

import numpy as np

from freshet.config.settings import Settings
from freshet.crawler.admission.sites import seeds_from_arguments
from freshet.crawler.clock import VirtualClock
from freshet.crawler.commands.assembly import Observer
from freshet.crawler.commands.crawling import Live
from freshet.crawler.commands.daemon_order import DaemonOrder
from freshet.crawler.commands.hindsight import (
    Discovery,
    Freshness,
    Known,
    discovery,
    freshness,
    held,
)
from freshet.crawler.commands.keeping import keep
from freshet.crawler.commands.sources.page_rules import terms
from freshet.crawler.network.fetch import Request
from freshet.crawler.pool import Ending
from freshet.crawler.synthetic_web.content import Place
from freshet.crawler.synthetic_web.fetcher import SyntheticFetcher
from freshet.crawler.synthetic_web.site import without_utm
from freshet.crawler.synthetic_web.web import SyntheticWeb
from freshet.crawler.urls import canonical
from freshet.scheduler.agenda.audit import Staleness, staleness
from freshet.storage.database import reading
from freshet.storage.records import Acknowledged, FetchResult
from freshet.storage.tables import observations

_DAY_S: Final = 86_400.0
#: The span over which freshness is measured is the last half, and so many days at most.
_MEASURED_DAYS: Final = 30.0
_ANSWERS: Final = frozenset({200, 304})
_ENDS: Final = frozenset({301, 404, 410})


@dataclass(frozen=True, slots=True)
class Plan:
    """What is rehearsed: ``budget`` requests a day for so many days."""

    budget: float
    policy: str
    days: float
    seed: int

    @property
    def measured_days(self) -> float:
        """How many of the last days are measured."""
        return min(self.days / 2, _MEASURED_DAYS)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a budget gave. ``of_budget`` is the share of it that was spent.

    ``freshness`` and ``new`` are those of the measured days, as truly was; ``audited`` is what
    the daemon itself measured in them. ``pages`` are those that a complete crawl would find at
    the end, ``held`` those of them of which there is a copy.
    """

    requests: int
    of_budget: float
    pages: int
    held: int
    freshness: Freshness | None
    audited: Staleness | None
    new: Discovery

    def as_json(self) -> dict[str, object]:
        """The figures as JSON values."""
        return asdict(self)


@dataclass(slots=True)
class _Watched:
    """A fetcher that notes when it was asked for which place, and got an answer."""

    inner: SyntheticFetcher
    clock: VirtualClock
    requests: int = 0
    looks: defaultdict[Place, list[float]] = field(default_factory=lambda: defaultdict(list))

    async def fetch(self, request: Request) -> FetchResult:
        """Pass it on."""
        self.requests += 1
        result = await self.inner.fetch(request)
        place = self.inner.addresses.place(request.url)
        if place is not None and result.status in _ANSWERS | _ENDS:
            self.looks[place._replace(target=without_utm(place.target))].append(result.started_at)
        return result

    async def close(self) -> None:
        """Nothing is open."""


async def rehearse(
    settings: Settings,
    web: SyntheticWeb,
    plan: Plan,
    db: Path,
    tell: Callable[[float], None] | None = None,
) -> Rehearsal | None:
    """Keep a web fresh from the day on which it starts to change; None if a signal ended it.

    ``tell`` is told which share of the time has passed.

    Raises:
        CrawlError: the policy is none that a daemon can follow.
        StoreError: the store cannot be opened, read or written.
    """
    # What happens on a made-up web is nobody's news.
    quiet = settings.alerts.model_copy(update={"rules": ()})
    settings = settings.model_copy(update={"alerts": quiet})
    clock = VirtualClock(web.start_at)
    fetcher = _Watched(SyntheticFetcher(web, clock), clock)
    roots = [fetcher.inner.addresses.origin(name) + "/" for name in web.sites]
    order = DaemonOrder(
        db, seeds_from_arguments(roots).seeds, plan.budget, plan.policy, plan.days * _DAY_S
    )

    def watch(live: Live) -> Observer:
        def progress(_batch: Sequence[Acknowledged]) -> None:
            if tell is not None:
                tell((live.clock.now() - web.start_at) / (plan.days * _DAY_S))

        return progress

    report = await keep(
        settings, order, watch=watch, fetcher=fetcher, clock=clock, rng=Random(plan.seed)
    )
    if report.ending is Ending.INTERRUPTED:
        return None
    end = web.start_at + plan.days * _DAY_S
    begin = end - plan.measured_days * _DAY_S
    pages = _pages(settings, web, fetcher, end)
    there = web.crawlable(end)
    alive = {place: page for place, page in pages.items() if place in there}
    return Rehearsal(
        requests=fetcher.requests,
        of_budget=fetcher.requests / (plan.budget * plan.days),
        pages=len(alive),
        held=held(alive.values(), end),
        freshness=freshness(pages.values(), begin, end),
        audited=await _audited(db, begin),
        new=discovery(pages.values(), begin, end),
    )


def _pages(
    settings: Settings, web: SyntheticWeb, fetcher: _Watched, end: float
) -> Mapping[Place, tuple[Known, Sequence[float]]]:
    """The pages that a crawl on some day would have found, with the looks at them.

    Crawls when pages are born are asked, too: a page may leave all lists the same day.
    """
    days = np.arange(web.start_at, end + 1, _DAY_S).tolist()
    births = (birth.at for birth in web.truth.births(web.start_at, end))
    wanted = frozenset[Place]().union(*(web.crawlable(at) for at in {*days, *births}))
    lives = [life for life in web.truth.lives() if life.place in wanted]
    urls = [canonical(fetcher.inner.addresses.url(life.place)) for life in lives]
    ruled = terms(urls, np.zeros(len(urls), np.intp), np.ones(len(urls)), settings.daemon.rules)
    return {
        life.place: (
            Known(
                float(importance),
                life.born_at,
                inf if life.died_at is None else life.died_at,
                life.changed_at,
            ),
            fetcher.looks.get(life.place, []),
        )
        for life, importance, never in zip(lives, ruled.importance, ruled.never, strict=True)
        if not never
    }


async def _audited(db: Path, since: float) -> Staleness | None:
    """What the daemon's looks at pages drawn at random say."""
    async with reading(db) as connection:
        found = await observations.results(connection, since)
    return staleness(
        [a.importance for a in found], [a.stale for a in found], [a.hazard for a in found]
    )
