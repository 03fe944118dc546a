"""Parts of a run that extensions provide: a renderer of pages, and an index of their text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from freshet.crawler.errors import CrawlError
from freshet.entry_points import loaded
from freshet.storage.extensions import INDEXES, Indexed, Recording

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence
    from pathlib import Path

    from freshet.config.settings import Settings
    from freshet.crawler.fetch.client import Fetcher, Request
    from freshet.crawler.politeness import HostAnswer
    from freshet.crawler.reduce.parser_process import Parser
    from freshet.storage.database import Database
    from freshet.storage.records import FetchResult


class RunIndex(Recording):
    """An index of pages by their text, in a run: it follows each visit; by itself there is none."""

    #: Whether it wants the words of captures.
    exists: bool = False

    def lines(self, title: str | None, texts: Sequence[str], kinds: Sequence[str]) -> str:
        """Return the words of a capture, as :meth:`Indexed.lines`; called if it exists."""
        raise NotImplementedError

    async def keep_up(
        self, database: Database, parser: Parser, settings: Settings, now: float
    ) -> None:
        """Index what the index lacks; called now and then, and at the end of a crawl.

        Raises:
            StoreError: the store cannot be read or written.
        """


class Indexing(Indexed, Protocol):
    """An index of pages by their text (entry points ``INDEXES``): a module, or an object."""

    def prepare(self, path: Path, settings: Settings) -> None:
        """Make the index of a store where the settings want one; a verb that writes begins so."""

    async def open_index(self, database: Database, settings: Settings) -> RunIndex:
        """Make, delete or keep the index of a store, as the settings say; return it for a run.

        Raises:
            UsageError: the settings cannot be obeyed.
            StoreError: the store cannot be written.
        """


def indexing() -> Indexing | None:
    """Return the index that an extension keeps, if there is one."""
    return next(iter(loaded(INDEXES).values()), None)


async def open_index(database: Database, settings: Settings) -> RunIndex:
    """Return the index of a store for a run; raises as :meth:`Indexing.open_index`."""
    found = indexing()
    return RunIndex() if found is None else await found.open_index(database, settings)


#: Entry points that give :class:`Rendering`; the first one is used.
RENDERERS: Final = "freshet.renderers"


class LoadRules(Protocol):
    """The rules for the requests that a page makes while it is rendered."""

    @property
    def agent_token(self) -> str:
        """The name by which robots.txt files call this crawler."""

    def needs(self, result: FetchResult, /) -> Awaitable[bool]:
        """Return whether scripts build the page."""

    def queue_key(self, url: str, /) -> Awaitable[str]:
        """Return the host queue of a URL."""

    def allows(self, url: str, /) -> bool | None:
        """Return whether a URL may be requested; None: the robots.txt is not known."""

    def pause_s(self, queue: str, now: float, /) -> float:
        """Return for how long a host queue may not be asked."""

    def heed(
        self, queue: str, now: float, answer: HostAnswer, retry_after_s: float | None, why: str, /
    ) -> None:
        """Take note of an answer of a host queue."""

    def now(self) -> float:
        """Return the time."""


class PageFetcher(Protocol):
    """A fetcher that renders the pages for which the settings say so."""

    async def fetch(self, request: Request) -> FetchResult:
        """Make one request, and render the page that comes if the settings say so."""

    def obey(self, settings: Settings) -> None:
        """Go by other settings from now on."""


class PageRenderer(Protocol):
    """Renders the pages of one invocation; its browsers are started when they are needed."""

    def fetcher(self, pages: Fetcher, others: Fetcher, rules: LoadRules) -> PageFetcher:
        """Return a fetcher of pages; ``others`` makes the requests of the pages themselves."""

    async def close(self) -> None:
        """End all browsers."""


class Rendering(Protocol):
    """Makes the renderer of an invocation: a module with these functions, or an object."""

    def check(self, settings: Settings) -> None:
        """Raise CrawlError if pages are to be rendered and cannot be."""

    def renderer(self, settings: Settings) -> PageRenderer:
        """Return a renderer, which has not started anything."""


def renderer_of(settings: Settings) -> PageRenderer | None:
    """Return the renderer of an invocation, None where no extension has one."""
    return next((each.renderer(settings) for each in _found().values()), None)


def require_renderer(settings: Settings) -> None:
    """Refuse to render pages without an extension or a browser; raises CrawlError."""
    for each in _found().values():
        each.check(settings)
        return
    if any(each.render in {"when-needed", "always"} for each in settings.sites):
        raise CrawlError("sites: render needs the extension browser, which is not installed")


def _found() -> Mapping[str, Rendering]:
    return loaded(RENDERERS)
