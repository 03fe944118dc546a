"""Builds the parts of a crawl, a daemon or a replay, and connects them."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from freshet import __version__
from freshet.config.settings import Settings
from freshet.crawler.admission.admit import Admission, HasRoom, Redirects, Scope, Seeding
from freshet.crawler.admission.copies import Copies, ParameterPairs
from freshet.crawler.admission.traps import TrapLimits
from freshet.crawler.compare.detection import Detector
from freshet.crawler.compare.not_content.check import (
    NotContentCheck,
    Probes,
    ProbeSender,
    waits_for_scripts,
)
from freshet.crawler.errors import ArchiveInUse, ArchiveUnwritable, CrawlError, UsageError
from freshet.crawler.fetch.bounds import met
from freshet.crawler.fetch.client import Fetcher
from freshet.crawler.frontier.clock import Clock
from freshet.crawler.frontier.frontier import Frontier
from freshet.crawler.frontier.politeness import HostQueues, Pacer, Retries
from freshet.crawler.reduce.parser_process import Parser
from freshet.crawler.reduce.sitemaps import SitemapLimits
from freshet.crawler.robots.cache import RobotsCache, RobotsRules
from freshet.crawler.run.network import (
    FetcherLayer,
    OuterFetcher,
    require_fetchers,
    selector_hints,
    texts_of,
    user_agent,
)
from freshet.crawler.run.pool import Ending, FetchPool, PoolRules, Supervisor
from freshet.crawler.run.requester import Requester
from freshet.crawler.run.rules import (
    copy_rule,
    counts_at,
    depth_at,
    never_at,
    nowhere,
    politeness_rules,
    rules_at,
    scope_at,
)
from freshet.crawler.run.stored_past import StoredPast
from freshet.crawler.signals.headers import HostHeaders
from freshet.crawler.signals.listings import Complaints, Listings, SourceDiscovery
from freshet.crawler.urls import origin
from freshet.crawler.visit import Comparer, Packer, Pipeline, Recorder, Reducer
from freshet.entry_points import loaded
from freshet.storage.database import Database, sqlite_errors
from freshet.storage.entries import Host
from freshet.storage.errors import StoreUnavailable
from freshet.storage.extensions import INDEXES, Indexed, Recording, recorders
from freshet.storage.records import Acknowledged, Agenda, StoredSeed, WriterHost
from freshet.storage.tables import hosts, pages, runs
from freshet.storage.writer import VisitTables, Writer

if TYPE_CHECKING:
    from freshet.crawler.archive.requisites import Requisites
    from freshet.crawler.archive.warc import Fields
    from freshet.crawler.archive.writer import ArchiveWriter

T = TypeVar("T")
_DAY_S: Final = 86_400.0
Observer = Callable[[Sequence[Acknowledged]], None]
#: Settings that decide how a response is processed; others may hold secrets.
_DESCRIBED: Final[dict[str, Any]] = {
    **dict.fromkeys(
        ("crawl", "fetch", "robots", "sitemaps", "signals", "traps", "change", "parse"), True
    ),
    "sites": {"__all__": {"match", "include", "ignore", "counts"}},
}


class _OpenAgenda(Agenda, Protocol):
    """A crawl queue that reads the store when it is opened."""

    async def open(self) -> None:
        """Read the store; call this once, before any other method."""


class RunIndex(Recording):
    """The text index of a run, updated by each visit; the base class is no index."""

    #: Whether it needs the text of captures.
    exists: bool = False

    def lines(self, title: str | None, texts: Sequence[str], kinds: Sequence[str]) -> str:
        """Return the text of a capture, as :meth:`Indexed.lines`; called only if it exists."""
        raise NotImplementedError

    async def keep_up(
        self, database: Database, parser: Parser, settings: Settings, now: float
    ) -> None:
        """Index the pages that the index lacks; called at intervals, and at the end of a crawl.

        Raises:
            StoreError: the store cannot be read or written.
        """


class Indexing(Indexed, Protocol):
    """A text index of pages (entry points ``INDEXES``): a module or object with these functions."""

    def prepare(self, path: Path, settings: Settings) -> None:
        """Create a store's index if the settings ask for one; verbs that write call it first."""

    async def open_index(self, database: Database, settings: Settings) -> RunIndex:
        """Create, delete or keep the index of a store, as the settings ask; return it for a run.

        Raises:
            UsageError: the settings cannot be applied.
            StoreError: the store cannot be written.
        """


def indexing() -> Indexing | None:
    """Return the index extension, or None."""
    return next(iter(loaded(INDEXES).values()), None)


async def open_index(database: Database, settings: Settings) -> RunIndex:
    """Return the index of a store for a run; raise as :meth:`Indexing.open_index`."""
    found = indexing()
    return RunIndex() if found is None else await found.open_index(database, settings)


class OwnPages(Protocol):
    """A shard, which visits a part of the pages."""

    def is_ours(self, at_origin: str, /) -> bool:
        """Return whether this shard visits the pages of an origin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Resources of a run; the owner opens and closes them.

    A ``lasting`` run has no end. ``archive`` keeps all fetch results. ``probes`` answers probes in
    a replay. ``was_killed``: requests of the last run may have been in progress until now. An
    ``embedded`` run leaves the signals of the host program untouched. ``has_room`` tests the page
    limits of sites, ``shard`` which origins belong to it. ``index`` is the text index. ``layers``
    wrap the fetcher, the innermost first.
    """

    settings: Settings
    database: Database
    run_id: int
    clock: Clock
    fetcher: Fetcher
    queues: HostQueues
    parser: Parser
    rng: Random
    lasting: bool = False
    was_killed: bool = False
    embedded: bool = False
    index: RunIndex = field(default_factory=RunIndex)
    has_room: HasRoom | None = None
    shard: OwnPages | None = None
    archive: ArchiveWriter | None = None
    layers: Sequence[FetcherLayer] = ()
    probes: ProbeSender | None = None


class Assembly(WriterHost):
    """The parts of one invocation.

    A redirect seen in the run is trusted for ``alias_age_s``.

    Attributes:
        frontier: chooses the next request.
        admission: chooses the URLs to crawl.
        robots: the robots cache.
        writer: accepts entries, and commits them in batches.
    """

    def __init__(
        self,
        context: RunContext,
        agenda: _OpenAgenda,
        supervisor: Supervisor,
        *,
        alias_age_s: float = inf,
    ) -> None:
        self._context, self._supervisor = context, supervisor
        self._pool: FetchPool | None = None
        self._no_network_since: float | None = None
        settings, rng = context.settings, context.rng
        most_requests = settings.crawl.concurrent_requests
        self._agenda = agenda
        self.requisites = self._requisites(agenda)
        rules = politeness_rules(settings)
        self._robots_rules = RobotsRules(**settings.robots.model_dump())
        self.agent_token = settings.crawl.product.lower()
        uses = settings.crawl.purpose if settings.crawl.skip_forbidden else ()
        self.robots = RobotsCache(self.agent_token, self._robots_rules, rules, rng, uses=uses)
        self.frontier = Frontier(
            self.requisites or agenda, self.robots, rules, rng,
            held_at=context.clock.now() if context.was_killed else -inf,
            share_of=lambda url: self.admission.scope.share_of(url, most_requests),
            rules_at=rules_at(settings),
        )  # fmt: skip
        context.clock.on_step(self.frontier.shift)
        self._tables = VisitTables(
            context.run_id, copy_rule(settings), [*recorders(settings), context.index], met
        )
        self.admission = Admission(
            Scope(scope_at(settings)),
            TrapLimits(
                **settings.traps.model_dump(
                    exclude={"min_copy_urls", "copy_share", "min_copy_pairs"}
                )
            ),
            depth_at=depth_at(settings),
            excluded_extensions=settings.fetch.excluded_extensions,
            is_never=None if context.lasting else never_at(settings),
            has_room=context.has_room,
            is_ours=None if context.shard is None else context.shard.is_ours,
            now=context.clock.now,
        )
        self.admission.settled = self._tables.settled
        self.admission.follow_nofollow = settings.crawl.follow_nofollow
        signals = settings.signals
        self._discovery = SourceDiscovery(
            self.admission,
            most=signals.max_feeds,
            well_known=signals.well_known and context.lasting,
        )
        self._probes = Probes(self.frontier.probe)
        self._retries = Retries(rules, settings.crawl.attempts, rng, lasting=context.lasting)
        self._is_never = never_at(settings) or nowhere
        self._outer = list(self._around_the_fetcher())
        self._past = StoredPast(
            context.database.reader, context.parser, self._tables,
            clock=context.clock, alias_age_s=alias_age_s,
        )  # fmt: skip
        self._pipeline = self._stages()
        self.writer = Writer(context.database, self._tables, self, batch=settings.store.batch)

    # -- callbacks of the writer (:class:`WriterHost`)

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        """Notify the pool first, then the supervisor."""
        if self._pool is not None:
            self._pool.acknowledged(batch)
        self._supervisor.committed(batch)

    async def secure(self) -> None:
        """Flush the archive."""
        if self._context.archive is not None:
            await secure(self._context.archive.flush)

    async def endure(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do some work on the store, with the supervisor's handling of outages."""
        return await self._supervisor.endure(work)

    @property
    def context(self) -> RunContext:
        """The resources of the run."""
        return self._context

    def _requisites(self, agenda: _OpenAgenda) -> Requisites | None:
        """Return the queue of the resources that archived pages need, around the queue of pages."""
        context, archive = self._context, self._context.settings.archive
        if context.archive is None or not archive.requisites:
            return None
        from freshet.crawler.archive.requisites import Requisites  # noqa: PLC0415 - few archive

        context.parser.requisites = True
        return Requisites(
            agenda=agenda,
            archive=context.archive,
            per_page=archive.requisites_per_page,
            share=archive.requisites_share,
            age_s=archive.requisites_age_days * _DAY_S,
            attempts=context.settings.crawl.attempts,
            max_redirects=context.settings.crawl.max_redirects,
            lasting=context.lasting,
            is_never=never_at(context.settings) or nowhere,
            store=self,
        )

    def counted_requisites(self) -> dict[str, int] | None:
        """Return the counts of fetched resources by outcome, or None if none are fetched."""
        return None if self.requisites is None else self.requisites.counted()

    async def refused(self, urls: Collection[str]) -> Collection[str]:
        """Return the URLs that the user refuses."""
        return await pages.refused(self._context.database.reader, urls)

    async def hosts_of(self, origins: Collection[str]) -> Sequence[Host]:
        """Return the hosts of origins; missing ones are created."""
        database = self._context.database
        making = partial(database.write, partial(hosts.ensure, origins=origins))
        ids = await self.endure(making)
        return await hosts.load(database.reader, list(ids.values()))

    def _stages(self) -> Pipeline:
        """Build the stages of a visit."""
        context, settings = self._context, self._context.settings
        past, complaints = self._past, Complaints()
        limits = SitemapLimits(settings.sitemaps.max_bytes, settings.sitemaps.max_entries)
        listings = Listings(self.admission, self.robots, limits, complaints, past)
        headers = HostHeaders(complaints)
        redirects = Redirects(self.admission, past, max_redirects=settings.crawl.max_redirects)
        probes = context.probes or self._probes
        fetcher: Fetcher = self._outer[-1] if self._outer else context.fetcher
        if context.archive is not None:
            fetcher = context.archive.keeping(fetcher)
        return Pipeline(
            fetcher=fetcher,
            reducer=Reducer(
                parser=context.parser,
                listings=listings,
                headers=headers,
                agent_token=self.agent_token,
                packer=Packer(past, self._tables.dictionaries.made),
            ),
            comparer=Comparer(
                detector=Detector(past, significant_below=settings.change.significant_below),
                check=NotContentCheck(
                    past,
                    context.parser,
                    context.rng,
                    probes=probes if settings.change.probe else None,
                ),
                redirects=redirects,
                past=past,
                counts=counts_at(settings),
            ),
            recorder=Recorder(
                discovery=self._discovery,
                listings=listings,
                redirects=redirects,
                copies=Copies(
                    self.admission, past, ParameterPairs(settings.traps.min_copy_pairs, past.shown)
                ),
                headers=headers,
                agent_token=self.agent_token,
                retries=self._retries,
                frontier=self.frontier,
                clock=context.clock,
                index=context.index if context.index.exists else None,
            ),
            sitemap_max_bytes=settings.sitemaps.max_bytes,
            max_body_bytes=settings.fetch.max_body_bytes,
            lasting=context.lasting,
            requisites=self.requisites,
        )

    def _around_the_fetcher(self) -> Iterator[OuterFetcher]:
        """Yield the fetchers of extensions, each around the previous one."""
        context, archive, rules = self._context, self._context.archive, _LoadRules(self)
        fetcher: Fetcher = context.fetcher
        for layer in context.layers:
            others = fetcher if archive is None else archive.keeping(fetcher)
            outer = layer.around(fetcher, others, rules)
            yield outer
            fetcher = outer

    def allows(self, url: str) -> bool | None:
        """Return whether a rendered page may request a URL; None if its robots.txt is unknown."""
        host = self.frontier.host_of(str(origin(url)))
        if self._is_never(url):
            return False
        if host is None or not self.robots.is_fresh(host[0], self._context.clock.now()):
            return None
        return self.robots.verdict(host[0], url).allowed

    def obey(self, settings: Settings) -> None:
        """Apply the politeness, selectors and rules of these settings from now on.

        Scopes apply to the seeds that are set next.

        Raises:
            CrawlError: a selector is invalid, or a browser is missing; nothing has changed.
        """
        require_fetchers(settings)
        self._context.parser.hints = selector_hints(settings)
        rules = politeness_rules(settings)
        self.frontier.obey(rules, rules_at(settings))
        self.admission.depth_at = depth_at(settings)
        self.admission.follow_nofollow = settings.crawl.follow_nofollow
        self.admission.scope.kind_at = scope_at(settings)
        self._tables.recorders = [*recorders(settings), self._context.index]
        self.robots.politeness = rules
        self._retries.rules = rules
        self._is_never = never_at(settings) or nowhere
        self._pipeline.comparer.counts = counts_at(settings)
        if self.requisites is not None:
            self.requisites.is_never = self._is_never
        for fetcher in self._outer:
            fetcher.obey(settings)

    def pool(self, seeding: Seeding, rules: PoolRules, pacer: Pacer) -> FetchPool:
        """Return the fetch pool, which observes committed batches first."""
        context = self._context
        pool = self._pool = FetchPool(
            frontier=self.frontier,
            agenda=self.requisites or self._agenda,
            requester=self.requester(seeding),
            probes=self._probes,
            writer=self.writer,
            queues=context.queues,
            clock=context.clock,
            rules=rules,
            pacer=pacer,
            supervisor=self._supervisor,
            requisites=self.requisites,
        )
        for shift in (pool.shift, pacer.shift):
            context.clock.on_step(shift)
        return pool

    def requester(self, seeding: Seeding) -> Requester:
        """Return the requester of the pool."""
        context = self._context
        return Requester(
            pipeline=self._pipeline,
            frontier=self.frontier,
            clock=context.clock,
            probes=self._probes,
            robots=self.robots,
            rules=self._robots_rules,
            admission=self.admission,
            discovery=self._discovery,
            seeding=seeding,
            queues=context.queues,
            past=self._past,
            archive=context.archive,
            lasting=context.lasting,
            reserves=not {"tdm", "ai-train"}.isdisjoint(context.settings.crawl.purpose),
        )

    async def ask_schemes(self, seeding: Seeding) -> None:
        """Queue robots.txt requests to hosts whose answer decides the scheme of seeds.

        The rows of the hosts are written before the writer starts, so this is the only writer.
        """
        origins = seeding.open_origins()
        if not origins:
            return
        ids = await self._context.database.write(partial(hosts.ensure, origins=origins))
        for host in await hosts.load(self._context.database.reader, list(ids.values())):
            self.frontier.add_host(host, await self._context.queues.queue_key(host.origin))
            self.frontier.ask_robots(host.host_id)

    async def note_network(self) -> None:
        """Record in the run since when no host answers, or that hosts answer again."""
        since = None if self._pool is None else self._pool.no_network_since
        if since != self._no_network_since:
            database, run_id = self._context.database, self._context.run_id
            await database.write(partial(runs.note_network, run_id=run_id, since=since))
            self._no_network_since = since

    async def run(self, pool: FetchPool, seeding: Seeding, *, time_limit_s: float = 0.0) -> Ending:
        """Visit pages; works and raises as :meth:`beside_writer`."""
        return await self.beside_writer(lambda: self._feed(pool, seeding, time_limit_s))

    async def beside_writer(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do some work that submits entries; all are committed when this returns.

        Raises:
            StoreError: the store cannot be read or written.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.writer.run())
                done = await work()
                self.writer.finish()
                return done
        except BaseExceptionGroup as group:
            with sqlite_errors(self._context.database.path):
                raise _first(group) from group

    async def _feed(self, pool: FetchPool, seeding: Seeding, time_limit_s: float) -> Ending:
        # This sets the scope, on which the first pages of the agenda may depend.
        settled = []
        for note in seeding.decided(self._context.clock.now()):
            settled.append(note)
            # Give other tasks a turn.
            await asyncio.sleep(0)
        await self._agenda.open()
        for note in settled:
            await pool.submit(note)
        return await pool.run(time_limit_s=time_limit_s)


class _LoadRules:
    """The run's rules for the requests of rendered pages."""

    def __init__(self, of: Assembly) -> None:
        self.agent_token = of.agent_token
        context, frontier = of.context, of.frontier
        self.needs = partial(waits_for_scripts, context.parser)
        self.queue_key = context.queues.queue_key
        self.allows = of.allows
        self.pause_s, self.heed = frontier.pause_s, frontier.heed
        self.now = context.clock.now
        self.request = frontier.queue
        self.texts = partial(texts_of, context.parser)


@contextmanager
def stopping_on_signals(pool: FetchPool, context: RunContext) -> Iterator[None]:
    """Drain at the first SIGINT or SIGTERM, cancel requests in progress at the second.

    Do not nest it: the end of the inner block would end both.
    """
    if context.embedded:
        yield
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, lambda: pool.stop(at_once=pool.stopping))
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error to report: the first one, because the others have the same cause."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


# -- the archive, which is written before the store -----------------------------
async def archiving(
    settings: Settings,
    seeds: Sequence[StoredSeed],
    clock: Clock,
    *,
    began_at: float,
    lasting: bool,
    closed_by: AsyncExitStack,
) -> ArchiveWriter | None:
    """Open the archive of the settings, if any, for a run begun at ``began_at``.

    Raises:
        CrawlError: the archive cannot be written, or another process writes it.
    """
    if not settings.archive.dir:
        if settings.archive.requisites:
            raise UsageError("requisites are archived: name the folder with --archive DIR")
        return None
    from freshet.crawler.archive.writer import ArchiveWriter  # noqa: PLC0415 - see above

    folder = Path(settings.archive.dir)
    try:
        archive = await asyncio.to_thread(
            ArchiveWriter,
            folder,
            described(settings, seeds, began_at=began_at, lasting=lasting),
            max_file_bytes=settings.archive.max_file_bytes,
            now=clock.now,
        )
    except ArchiveInUse as error:
        raise CrawlError(
            f"{folder}: another process writes this archive; name another folder"
        ) from error
    except (OSError, sqlite3.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise CrawlError(
            f"{folder}: the archive cannot be written: {why}; --archive names another folder"
        ) from error
    closed_by.push_async_callback(secure, archive.close)
    return archive


async def secure(write: Callable[[], Awaitable[None]]) -> None:
    """Flush or close an archive.

    Raises:
        StoreUnavailable: the archive cannot be written now; nothing is lost.
    """
    try:
        await write()
    except ArchiveUnwritable as error:
        advice = "free some space and run the same command again"
        raise StoreUnavailable(error.folder, error.why, advice) from error


def described(
    settings: Settings, seeds: Sequence[StoredSeed], *, began_at: float, lasting: bool
) -> Fields:
    """Return the software, settings and seeds of a run, which a replay needs."""
    columns = ("text", "url", "fallback_url", "importance", "half_life_hours")
    listed = [{name: getattr(seed, name) for name in columns} for seed in seeds]
    return (
        ("software", f"Freshet/{__version__}"),
        ("format", "WARC File Format 1.1"),
        (
            "conformsTo",
            "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        ),
        ("isPartOf", settings.crawl.product),
        ("robots", "obey"),
        ("http-header-user-agent", user_agent(settings.crawl.product, settings.crawl.contact)),
        ("freshet-run", json.dumps({"began": began_at, "lasting": lasting})),
        ("freshet-seeds", json.dumps(listed, ensure_ascii=False)),
        ("freshet-settings", settings.model_dump_json(include=_DESCRIBED)),
    )
