"""The hooks of extensions, by which a package adds to Freshet.

Each hook is a group of entry points in the metadata of any installed package. Freshet's own
extensions, the folders of ``crawler/extensions``, use the same ones (``pyproject.toml``):

- ``freshet.companions``: an :class:`Accompanying`, which runs beside a crawl or a daemon;
- ``freshet.settings``: a table of the settings by its name
  (:class:`freshet.config.settings.SettingsGroup`), with a
  ``defaults.toml`` in the same folder; ``settings.group(TYPE)`` gives its values;
- ``freshet.tables``: tables in the store, with migrations
  (:class:`freshet.storage.extensions.Tables`);
- ``freshet.verbs``: verbs of the command (:class:`freshet.crawler.cli.verbs.Verb`);
- ``freshet.dashboards``: a function that makes :class:`freshet.crawler.service.http.HtmlPages`;
- ``freshet.pages``: a page of the dashboard, of a function that makes an
  :class:`freshet.crawler.extensions.dashboard.request.ExtensionPage`;
- ``freshet.comparisons``: a :class:`Comparing`, what ``freshet replay`` compares policies with;
- ``freshet.recorders``: a function of the settings that makes a
  :class:`freshet.storage.extensions.Recording`, which writes rows in the transactions of visits;
- ``freshet.fetchers``: a :class:`freshet.crawler.run.network.Fetching`, whose fetcher stands around
  ours: it renders pages, signs requests, or answers them by itself;
- ``freshet.formats``: a :class:`freshet.crawler.reduce.formats.Format` of bodies;
- ``freshet.sharding``: a function that runs a crawl or a daemon on all shards of a store, like
  ``run_sharded`` of the extension shards (:class:`RunShard` is what each of them sees);
- ``freshet.indexes``: :class:`freshet.crawler.run.wiring.Indexing`, which keeps an index of
  pages
  by their text;
- ``freshet.searches``: a :class:`Searching`, which finds pages by words;
- ``freshet.routes``: a function that makes an :class:`Answering`, which answers programs;
- ``freshet.audiences``: :class:`freshet.crawler.read.lists.Audiences`, who arrange lists, and note
  them;
- ``freshet.interests``: :class:`freshet.crawler.run.importance.Interests`, which say what pages are
  worth to readers;
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
- ``freshet.visit_costs``: a :class:`freshet.crawler.run.capacities.VisitCosts`, what visits to
  hosts cost;
- ``freshet.signals``: a :class:`freshet.crawler.signals.headers.SignalReader`, which reads of
  responses when pages changed;
- ``freshet.policies``: a policy (:mod:`freshet.scheduler.policy`).

The hook of a one-shot crawl is loaded by every crawl: its module imports what it needs when it is
needed. Of an extension that is missing the crawler says nothing; a store that it wrote is read and
written on, and it finds its tables again later.
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


#: Entry points that give :class:`Accompanying`.
COMPANIONS: Final = "freshet.companions"


class Companion:
    """Runs beside the visits of one crawl or daemon; by itself it does nothing.

    The calls come in the order of these methods; ``obey`` may come at any time after ``start``.
    """

    #: The address at which it listens, for the log, or "".
    listens: str = ""

    async def start(
        self, assembly: Assembly, pool: FetchPool, importances: Importances | None
    ) -> None:
        """Begin, before the first visit.

        ``importances`` returns how much pages are worth to a daemon; a crawl has none.

        Raises:
            CrawlError: it cannot begin as the settings say.
        """

    def begun(self) -> None:
        """Note that the first turn of the pool is over."""

    async def turn(self, now: float) -> None:
        """Do what is due, before each turn of the pool: in a daemon at least once a minute."""

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        """Take note of entries that are in the store now."""

    def obey(self, settings: Settings) -> None:
        """Go by other settings from now on, which a daemon has read again.

        Raises:
            CrawlError: it cannot; nothing has changed then.
        """

    async def stop(self) -> None:
        """Take no more work: the visits have ended, but the store is still written."""

    async def finish(self, told_to_stop: asyncio.Event) -> None:
        """Do what is left, for half a minute or until told to stop."""

    async def close(self) -> None:
        """Give back what is held; the last call, whatever happened."""


class Accompanying(Protocol):
    """Makes the companion of a run: a module with these functions, or an object."""

    def check(self, settings: Settings) -> None:
        """Raise CrawlError where settings cannot be obeyed; no store is open yet."""

    def accompany(self, context: RunContext, network: Network) -> Companion | None:
        """Return the companion of a run, which has not begun yet; None if it needs none."""


#: Entry points that give :class:`Searching`; the first one is used.
SEARCHES: Final = "freshet.searches"


class Searching(Protocol):
    """Finds pages by words, for :meth:`freshet.Store.search`: a module, or an object."""

    async def found(
        self, library: Library, settings: Settings, asked: SearchRequest
    ) -> tuple[list[SearchResult], dict[int, str]]:
        """Return the pages that match best, and which shards could not be searched, and why.

        Raises:
            StoreError: the store has no index.
            UsageError: the query cannot be read.
        """


class SearchRequest(NamedTuple):
    """A search as it was typed, with further conditions; ``now`` in Unix seconds."""

    query: str
    now: float
    site: str | None = None
    since: str | None = None
    limit: int = 10
    offset: int = 0
    by_importance: bool = False


def searching() -> Searching:
    """Return what searches; raises UsageError without an extension that does."""
    for each in loaded(SEARCHES).values():
        found: Searching = each
        return found
    raise UsageError("nothing here can search: the extension search is missing")


#: Entry points that give a function of a :class:`freshet.crawler.read.api.StoreApi` and the
#: settings, which returns :class:`Answering`.
ROUTES: Final = "freshet.routes"


class Answering(Protocol):
    """Answers programs over HTTP, beside ``/v1`` of the core.

    The folder of its module has an ``openapi.toml``: its ``paths`` and ``components.schemas``.
    """

    @property
    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """The routes, as aiohttp has them: ``[web.get("/v1/search", self.search)]``."""


#: Entry points that give :class:`Comparing`; the first one is used.
COMPARISONS: Final = "freshet.comparisons"


class ComparisonRequest(NamedTuple):
    """A comparison that is asked for: budgets a day, and where its result goes.

    The policies see the share ``shown`` of the time before they are judged.
    """

    budgets: Sequence[float]
    shown: float
    plots: Path | None
    parquet: Path | None
    json: bool


class Comparing(Protocol):
    """Compares policies on the past of a store: a module with these functions, or an object."""

    @property
    def DEFAULT_POLICIES(self) -> Sequence[str]:  # noqa: N802 - a constant of a module
        """The policies that are compared where none is named."""

    def check(self, plots: Path | None, parquet: Path | None) -> None:
        """Exit with one line where results could not be written to these folders."""

    def compare(
        self, store: Path, policies: Sequence[str], settings: Settings, asked: ComparisonRequest
    ) -> None:
        """Compare them, print the result, and write the files."""


#: Entry points that give :class:`StatusPart`; the name is the key in JSON.
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
        """Return the state in several stores together, each as :meth:`read` returned it."""

    def lines(self, state: Any) -> Mapping[str, str | None]:
        """Return what the verb says of it among the figures of the store, by their names."""

    def table(self, state: Any) -> StatusTable | None:
        """Return a table that the verb shows of it."""

    def troubles(self, state: Any) -> Iterable[tuple[str, str]]:
        """Return what an operator has to know, each with what to do."""


def status_parts() -> dict[str, StatusPart]:
    """Return the parts of the status that extensions add."""
    return loaded(STATUS)


async def parts_of(db: Reader) -> dict[str, Any]:
    """Return the state of all extensions in a store, by their keys."""
    return {name: await part.read(db) for name, part in status_parts().items()}


def merged_parts(stores: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the state of all extensions in several stores together."""
    return {
        name: part.merged([each[name] for each in stores]) for name, part in status_parts().items()
    }


#: Entry points that give :class:`Checking`.
CHECKS: Final = "freshet.checks"


class Checking(Protocol):
    """Adds steps to ``freshet check``: a function."""

    async def __call__(
        self, parser: Parser, settings: Settings, page: FetchedPage
    ) -> Sequence[tuple[str, str, str]]:
        """Return steps: the name of each, its answer in a word, and the reason."""


#: Entry points that give :class:`Examining`.
EXAMINATIONS: Final = "freshet.examinations"


class Examining(Protocol):
    """Adds findings to ``freshet doctor``: a function."""

    async def __call__(
        self, settings: Settings, now: float
    ) -> Sequence[tuple[str, Literal["fine", "warning", "problem"], str, str | None]]:
        """Return findings: the name of each, how it stands, what was found, and what to do."""


class FetchedPage(NamedTuple):
    """A page that was just fetched, with the blocks of its text."""

    url: str
    result: FetchResult
    texts: Sequence[str]


class RunShard(Protocol):
    """A shard of a store, as the crawl or daemon that visits its pages sees it."""

    @property
    def number(self) -> int:
        """Its number, from 0 on."""

    @property
    def least_per_day(self) -> float:
        """Requests a day of a daemon before it was told its share of the budget."""

    def is_ours(self, at_origin: str) -> bool:
        """Return whether it visits the pages of an origin."""

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
        """Work with these parts of a run from its first turn on."""

    async def turn(self) -> None:
        """Do what is due, before each turn of the pool."""

    def committed(self, batch: Sequence[Acknowledged], /) -> None:
        """Observe a batch that is in the store now."""

    def leave(self) -> None:
        """Forget the parts, which are about to be closed."""


def check_companions(settings: Settings) -> None:
    """Raise CrawlError where an extension cannot do what the settings ask for."""
    for each in _accompanying():
        each.check(settings)


class Companions:
    """All companions of a run together, in the order of their names."""

    def __init__(self, context: RunContext, network: Network) -> None:
        made = [each.accompany(context, network) for each in _accompanying()]
        self._all: list[Companion] = [each for each in made if each is not None]

    @property
    def listens(self) -> list[str]:
        """The addresses at which they listen."""
        return [each.listens for each in self._all if each.listens]

    @asynccontextmanager
    async def beside(
        self, assembly: Assembly, pool: FetchPool, importances: Importances | None = None
    ) -> AsyncIterator[None]:
        """Let them run while the block visits pages."""
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
        """Tell them that the first turn is over."""
        for each in self._all:
            each.begun()

    async def turn(self, now: float) -> None:
        """Let them do what is due."""
        for each in self._all:
            await each.turn(now)

    def committed(self, batch: Sequence[Acknowledged] = ()) -> None:
        """Tell them of entries that are in the store now."""
        for each in self._all:
            each.committed(batch)

    def obey(self, settings: Settings) -> None:
        """Let them go by other settings from now on."""
        for each in self._all:
            each.obey(settings)

    async def finish(self, told_to_stop: asyncio.Event) -> None:
        """Let them do what is left."""
        await asyncio.gather(*(each.finish(told_to_stop) for each in self._all))

    async def close(self) -> None:
        """Close all of them."""
        for each in self._all:
            await each.close()


def _accompanying() -> list[Accompanying]:
    return list(loaded(COMPANIONS).values())
