"""The hooks of extensions: entry points by which a package adds to Freshet.

Each hook is a group of entry points in the metadata of any installed package. Freshet's own
extensions, the folders of ``crawler/extensions``, use the same groups (``pyproject.toml``):

- ``freshet.companions``: an :class:`Accompanying`, which runs beside a crawl or a daemon;
- ``freshet.settings``: a table of the settings by its name
  (:class:`freshet.config.settings.SettingsGroup`), with a ``defaults.toml`` in the same folder;
  ``settings.group(TYPE)`` returns its values;
- ``freshet.tables``: tables in the store, with migrations
  (:class:`freshet.storage.extensions.Tables`);
- ``freshet.verbs``: verbs of the command (:class:`freshet.crawler.cli.verbs.Verb`);
- ``freshet.dashboards``: a function that makes :class:`freshet.crawler.service.http.HtmlPages`;
- ``freshet.pages``: a page of the dashboard: a function that makes an
  :class:`freshet.crawler.extensions.dashboard.request.ExtensionPage`;
- ``freshet.comparisons``: a :class:`Comparing`, with which ``freshet replay`` compares policies;
- ``freshet.recorders``: a function of the settings that makes a
  :class:`freshet.storage.extensions.Recording`, which writes rows in the transactions of visits;
- ``freshet.fetchers``: a :class:`freshet.crawler.run.network.Fetching`, whose fetcher wraps the
  built-in one: it renders pages, signs requests, or answers them itself;
- ``freshet.formats``: a :class:`freshet.crawler.reduce.formats.Format` of bodies;
- ``freshet.sharding``: a function that runs a crawl or a daemon on all shards of a store, like
  ``run_sharded`` of the extension shards (each run sees its shard as a :class:`RunShard`);
- ``freshet.indexes``: a :class:`freshet.crawler.run.wiring.Indexing`, a text index of pages;
- ``freshet.searches``: a :class:`Searching`, which finds pages by words;
- ``freshet.routes``: a function that makes an :class:`Answering`: HTTP routes for programs;
- ``freshet.audiences``: :class:`freshet.crawler.read.lists.Audiences`, which arrange result lists
  and record clicks on them;
- ``freshet.interests``: :class:`freshet.crawler.run.importance.Interests`, which learn the value of
  pages to readers;
- ``freshet.meters``: a measure of search quality, for the extension search
  (:class:`freshet.crawler.extensions.search.tables.Metering`);
- ``freshet.status``: a :class:`StatusPart` of ``freshet status`` and of the dashboard, by its key;
- ``freshet.checks``: a function like :class:`Checking`, which adds steps to ``freshet check``;
- ``freshet.examinations``: a function like :class:`Examining`, which adds findings to
  ``freshet doctor``;
- ``freshet.alert_receivers``: a receiver of alerts by the scheme of its URL, for the extension
  alerts (:class:`freshet.crawler.extensions.alerts.receivers.Receiver`);
- ``freshet.connectors``: a function that opens a target of ``freshet sync`` by the scheme of its
  address, for the extension connectors
  (:class:`freshet.crawler.extensions.connectors.targets.Target`);
- ``freshet.visit_costs``: a :class:`freshet.crawler.run.capacities.VisitCosts`, the cost of visits
  to hosts;
- ``freshet.signals``: a :class:`freshet.crawler.signals.headers.SignalReader`, which reads change
  signals from responses;
- ``freshet.policies``: a policy (:mod:`freshet.scheduler.policy`).

Every crawl loads the hooks that a one-shot crawl uses, so their modules should import lazily. A
missing extension causes no message; its store stays readable and writable, and the extension finds
its tables when it is installed again.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from freshet.crawler.errors import UsageError
from freshet.entry_points import loaded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from aiohttp import web
    from aiosqlite import Connection as Reader

    from freshet.config.settings import Settings
    from freshet.crawler.admission.admit import Admission
    from freshet.crawler.frontier.clock import Clock
    from freshet.crawler.frontier.politeness import Pacer
    from freshet.crawler.read.library import Library
    from freshet.crawler.read.lists import SearchResult
    from freshet.crawler.reduce.parser_process import Parser
    from freshet.crawler.run.importance import Importances
    from freshet.crawler.run.network import Network
    from freshet.crawler.run.orders import Reread
    from freshet.crawler.run.pool import FetchPool
    from freshet.crawler.run.state import DaemonState
    from freshet.crawler.run.wiring import Assembly, RunContext
    from freshet.storage.database import Database
    from freshet.storage.records import Acknowledged, FetchResult


#: Entry points of :class:`Accompanying`.
COMPANIONS: Final = "freshet.companions"


class Companion:
    """Work beside the visits of one crawl or daemon; the base class does nothing.

    The methods are called in the order of their definition; ``obey`` may be called at any time
    after ``start``.
    """

    #: The address on which it listens, for the log, or "".
    listens: str = ""

    async def start(
        self, assembly: Assembly, pool: FetchPool, importances: Importances | None
    ) -> None:
        """Begin, before the first visit.

        ``importances`` returns the importance of pages to a daemon; for a crawl it is None.

        Raises:
            CrawlError: it cannot work with the settings.
        """

    def begun(self) -> None:
        """React to the end of the pool's first turn."""

    async def turn(self, now: float) -> None:
        """Do the due work before each turn of the pool; in a daemon at least once a minute."""

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        """Observe entries that have been committed."""

    def obey(self, settings: Settings) -> None:
        """Apply the settings that a daemon has read again.

        Raises:
            CrawlError: the settings cannot be applied; nothing has changed.
        """

    async def stop(self) -> None:
        """Start no more work: the visits have ended, but the store is still written."""

    async def finish(self, told_to_stop: asyncio.Event) -> None:
        """Do the remaining work, for half a minute or until told to stop."""

    async def close(self) -> None:
        """Release all resources; this is always the last call."""


class Accompanying(Protocol):
    """Factory of a run's companion: a module with these functions, or an object."""

    def check(self, settings: Settings) -> None:
        """Raise CrawlError if the settings cannot be applied; no store is open yet."""

    def accompany(self, context: RunContext, network: Network) -> Companion | None:
        """Return the companion of a run that has not begun, or None if it needs none."""


#: Entry points of :class:`Searching`; the first one is used.
SEARCHES: Final = "freshet.searches"


class Searching(Protocol):
    """Search for :meth:`freshet.Store.search`: a module with this function, or an object."""

    async def found(
        self, library: Library, settings: Settings, asked: SearchRequest
    ) -> tuple[list[SearchResult], dict[int, str]]:
        """Return the best matches, and the shards that could not be searched with the reason.

        Raises:
            StoreError: the store has no index.
            UsageError: the query is invalid.
        """


class SearchRequest(NamedTuple):
    """A query as typed, with more conditions; ``now`` in Unix seconds."""

    query: str
    now: float
    site: str | None = None
    since: str | None = None
    limit: int = 10
    offset: int = 0
    by_importance: bool = False


def searching() -> Searching:
    """Return the search extension; raise UsageError without one."""
    for each in loaded(SEARCHES).values():
        found: Searching = each
        return found
    raise UsageError("search needs the extension search, which is not installed")


#: Entry points of functions that make an :class:`Answering` from a
#: :class:`freshet.crawler.read.api.StoreApi` and the settings.
ROUTES: Final = "freshet.routes"


class Answering(Protocol):
    """HTTP routes for programs, in addition to the core's ``/v1``.

    The folder of its module has an ``openapi.toml`` with ``paths`` and ``components.schemas``.
    """

    @property
    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """The routes for aiohttp: ``[web.get("/v1/search", self.search)]``."""


#: Entry points of :class:`Comparing`; the first one is used.
COMPARISONS: Final = "freshet.comparisons"


class ComparisonRequest(NamedTuple):
    """A comparison of policies: budgets in requests a day, and where results go.

    Policies see the share ``shown`` of the time before they are scored.
    """

    budgets: Sequence[float]
    shown: float
    plots: Path | None
    parquet: Path | None
    json: bool


class Comparing(Protocol):
    """Compares policies on the history of a store: a module with these functions, or an object."""

    @property
    def DEFAULT_POLICIES(self) -> Sequence[str]:  # noqa: N802 - a constant of a module
        """The policies that are compared by default."""

    def check(self, plots: Path | None, parquet: Path | None) -> None:
        """Exit with one line if results cannot be written to these folders."""

    def compare(
        self, store: Path, policies: Sequence[str], settings: Settings, asked: ComparisonRequest
    ) -> None:
        """Compare policies, print the result, and write the files."""


#: Entry points of :class:`StatusPart`; the name is the key in JSON.
STATUS: Final = "freshet.status"


class StatusTable(NamedTuple):
    """A table of ``freshet status``."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


class StatusPart(Protocol):
    """Reads and shows the state of an extension: a module with these functions, or an object."""

    async def read(self, db: Reader) -> Any:
        """Return the state in a store: dataclasses, lists and plain values."""

    def merged(self, found: Iterable[Any]) -> Any:
        """Return the merged state of several stores, each as returned by :meth:`read`."""

    def lines(self, state: Any) -> Mapping[str, str | None]:
        """Return lines that the verb shows among the figures of the store, by name."""

    def table(self, state: Any) -> StatusTable | None:
        """Return a table that the verb shows, or None."""

    def troubles(self, state: Any) -> Iterable[tuple[str, str]]:
        """Return problems for the operator, each with what to do."""


def status_parts() -> dict[str, StatusPart]:
    """Return the status parts of extensions."""
    return loaded(STATUS)


async def parts_of(db: Reader) -> dict[str, Any]:
    """Return the state of all extensions in a store, by key."""
    return {name: await part.read(db) for name, part in status_parts().items()}


def merged_parts(stores: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the merged state of all extensions in several stores."""
    return {
        name: part.merged([each[name] for each in stores]) for name, part in status_parts().items()
    }


#: Entry points of :class:`Checking`.
CHECKS: Final = "freshet.checks"


class Checking(Protocol):
    """Function that adds steps to ``freshet check``."""

    async def __call__(
        self, parser: Parser, settings: Settings, page: FetchedPage
    ) -> Sequence[tuple[str, str, str]]:
        """Return steps: name, result in a word, and reason."""


#: Entry points of :class:`Examining`.
EXAMINATIONS: Final = "freshet.examinations"


class Examining(Protocol):
    """Function that adds findings to ``freshet doctor``."""

    async def __call__(
        self, settings: Settings, now: float
    ) -> Sequence[tuple[str, Literal["fine", "warning", "problem"], str, str | None]]:
        """Return findings: name, result, what was found, and what to do."""


class FetchedPage(NamedTuple):
    """A page that was just fetched, with its text blocks."""

    url: str
    result: FetchResult
    texts: Sequence[str]


class RunShard(Protocol):
    """A shard of a store, as seen by the crawl or daemon that visits its pages."""

    @property
    def number(self) -> int:
        """Its number, counted from 0."""

    @property
    def least_per_day(self) -> float:
        """Requests per day of a daemon until it gets its share of the budget."""

    def is_ours(self, at_origin: str) -> bool:
        """Return whether this shard visits the pages of an origin."""

    def may_get_more(self) -> bool:
        """Return whether another shard may still find pages of this one."""

    def attend(
        self,
        *,
        pool: FetchPool,
        admission: Admission,
        database: Database,
        clock: Clock,
        pacer: Pacer | None = None,
        state: DaemonState | None = None,
        reload: Callable[[Reread], None] | None = None,
    ) -> None:
        """Work with these parts of a run, from its first turn on."""

    async def turn(self) -> None:
        """Do the due work before each turn of the pool."""

    def committed(self, batch: Sequence[Acknowledged], /) -> None:
        """Observe a committed batch."""

    def leave(self) -> None:
        """Drop the parts, which are about to be closed."""


def check_companions(settings: Settings) -> None:
    """Raise CrawlError if an extension cannot do what the settings ask for."""
    for each in _accompanying():
        each.check(settings)


class Companions:
    """All companions of a run, in the order of their names."""

    def __init__(self, context: RunContext, network: Network) -> None:
        made = [each.accompany(context, network) for each in _accompanying()]
        self._all: list[Companion] = [each for each in made if each is not None]

    @property
    def listens(self) -> list[str]:
        """The addresses on which they listen."""
        return [each.listens for each in self._all if each.listens]

    @asynccontextmanager
    async def beside(
        self, assembly: Assembly, pool: FetchPool, importances: Importances | None = None
    ) -> AsyncIterator[None]:
        """Run all companions while the block visits pages."""
        started: list[Companion] = []
        try:
            for each in self._all:
                await each.start(assembly, pool, importances)
                started.append(each)
            yield
        finally:
            for each in reversed(started):
                await each.stop()

    def begun(self) -> None:
        """Notify all of the end of the first turn."""
        for each in self._all:
            each.begun()

    async def turn(self, now: float) -> None:
        """Call :meth:`Companion.turn` of each."""
        for each in self._all:
            await each.turn(now)

    def committed(self, batch: Sequence[Acknowledged] = ()) -> None:
        """Pass committed entries to each."""
        for each in self._all:
            each.committed(batch)

    def obey(self, settings: Settings) -> None:
        """Apply settings to each."""
        for each in self._all:
            each.obey(settings)

    async def finish(self, told_to_stop: asyncio.Event) -> None:
        """Call :meth:`Companion.finish` of all, concurrently."""
        await asyncio.gather(*(each.finish(told_to_stop) for each in self._all))

    async def close(self) -> None:
        """Close all of them."""
        for each in self._all:
            await each.close()


def _accompanying() -> list[Accompanying]:
    return list(loaded(COMPANIONS).values())
