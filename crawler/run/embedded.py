"""A crawl or daemon inside another program, which keeps its signals, logs and exit handling."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TypeAlias

from freshet.config.loading import load
from freshet.config.settings import Settings
from freshet.crawler.admission.site_lists import read_sites, seeds_from_arguments
from freshet.crawler.run.crawl import CrawlOrder, Live
from freshet.crawler.run.crawl import crawl as crawl_until_done
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import CrawlReport, DaemonOrder, budget_of
from freshet.crawler.run.pool import FetchPool
from freshet.crawler.run.wiring import Observer
from freshet.storage.queries import page
from freshet.storage.records import Acknowledged, Observation, StoredSeed, Visit
from freshet.storage.tables import runs

log = logging.getLogger(__name__)

#: One or several hosts or URLs, or the path of a site list; empty: the sites of the store.
Sites: TypeAlias = Iterable[str] | str | Path
#: Called in the event loop after the commit of a page visit, with its URL and its result.
OnVisit: TypeAlias = Callable[[str, Observation], object]


async def crawl(
    sites: Sites = (),
    *,
    store: str | Path = "crawl.db",
    contact: str | None = None,
    on_visit: OnVisit | None = None,
    settings: Mapping[str, object] | None = None,
    config: str | Path | None = None,
) -> CrawlReport:
    """Crawl like ``freshet crawl``, and return its report; a second call continues the crawl.

    ``settings``, by dotted names, override the environment and the settings file ``config`` (by
    default the usual files). Raises ConfigError (a ValueError) for an invalid setting, ValueError
    for an invalid site, CrawlError without a contact beyond loopback, and StoreError.
    """
    chosen = await _loaded(Path(store), {"crawl.contact": contact}, settings, config)
    order = CrawlOrder(Path(store), _seeds(sites))
    return await crawl_until_done(
        chosen, order, watch=lambda _live: _calling(on_visit), embedded=True
    )


@dataclass(slots=True, eq=False)
class Daemon:
    """A daemon like ``freshet daemon``; run it once, by :meth:`run` or as a context manager.

    The fields are the arguments of :func:`crawl`. Settings of ``operation`` have no effect.
    ``report`` is set at the end.
    """

    sites: Sites = ()
    _: KW_ONLY
    store: str | Path = "crawl.db"
    budget: str | None = None
    policy: str | None = None
    contact: str | None = None
    on_visit: OnVisit | None = None
    settings: Mapping[str, object] | None = None
    config: str | Path | None = None
    report: CrawlReport | None = field(default=None, init=False)
    _work: asyncio.Task[CrawlReport] | None = field(default=None, init=False)
    _pool: FetchPool | None = field(default=None, init=False)
    _begun: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _is_stopping: bool = field(default=False, init=False)

    async def run(self) -> CrawlReport:
        """Keep pages fresh until :meth:`stop`, and return the report; raise as :func:`crawl`."""
        self._work = asyncio.create_task(self._keep())
        return await self._work

    async def stop(self) -> None:
        """Start no more requests, and wait until those under way are committed."""
        self._is_stopping = True
        if self._pool is not None:
            self._pool.stop()
        if self._work is not None:
            await asyncio.wait([self._work])

    async def __aenter__(self) -> "Daemon":
        self._work = asyncio.create_task(self._keep())
        try:
            await self._begun.wait()
        except asyncio.CancelledError:
            self._work.cancel()
            await asyncio.wait([self._work])
            raise
        if self._work.done():
            await self._work
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.stop()
        if self._work is not None:
            await self._work

    async def _keep(self) -> CrawlReport:
        given = {
            "daemon.budget": self.budget,
            "daemon.policy": self.policy,
            "crawl.contact": self.contact,
        }
        try:
            db = Path(self.store)
            chosen = await _loaded(db, given, self.settings, self.config)
            per_day, policy = budget_of(chosen.daemon.budget), chosen.daemon.policy
            order = DaemonOrder(db, _seeds(self.sites), per_day, policy)
            self.report = await keep(chosen, order, watch=self._watch, embedded=True)
            return self.report
        finally:
            self._begun.set()

    def _watch(self, live: Live) -> Observer:
        self._pool = live.pool
        if self._is_stopping:
            live.pool.stop()
        self._begun.set()
        return _calling(self.on_visit)


async def _loaded(
    store: Path,
    given: Mapping[str, object],
    settings: Mapping[str, object] | None,
    config: str | Path | None,
) -> Settings:
    """Return the settings; the scope is the store's, unless one is given."""
    chosen = {name: value for name, value in given.items() if value is not None}
    if store.exists():
        async with page.snapshot(store) as db:
            scope = await runs.latest_scope(db)
        chosen |= {} if scope is None else {"crawl.scope": scope}
    file = None if config is None else Path(config)
    return load(file, chosen | dict(settings or {}), "settings")[0]


def _seeds(sites: Sites) -> Sequence[StoredSeed]:
    if isinstance(sites, Path):
        found = read_sites(sites.read_bytes(), sites.name)
    else:
        found = seeds_from_arguments([sites] if isinstance(sites, str) else list(sites))
    for problem in found.problems:
        raise ValueError(f"{problem.text}: {problem.message}")
    return found.seeds


def _calling(on_visit: OnVisit | None) -> Observer:
    """Return an observer that calls ``on_visit``; it logs only the first exception."""
    has_failed = False

    def committed(batch: Sequence[Acknowledged]) -> None:
        nonlocal has_failed
        visits = [each.entry for each in batch if isinstance(each.entry, Visit)]
        for visit in visits:
            try:
                if on_visit is not None and visit.role == "page":
                    on_visit(visit.due.url, visit.observation)
            except Exception:
                if not has_failed:
                    log.exception("on_visit failed; the crawl goes on, and calls it again")
                has_failed = True

    return committed
