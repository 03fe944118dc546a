"""The network built from settings: address guard, resolver, fetcher, politeness key, parser."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from aiosqlite import Connection as Reader

from freshet import __version__
from freshet.config.settings import Settings
from freshet.config.sites import Sites, with_stored
from freshet.crawler.errors import CrawlError, ParserLost, UsageError
from freshet.crawler.frontier.clock import Clock, VirtualClock
from freshet.crawler.frontier.politeness import group_of, queue_key
from freshet.crawler.reduce.formats import formats
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.reduce.tree import NO_HINTS, SelectorHints
from freshet.crawler.urls import origin, registrable_domain
from freshet.entry_points import loaded
from freshet.storage.tables import runs
from freshet.storage.tables.runs import SiteSetting

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from contextlib import AsyncExitStack

    from freshet.crawler.fetch.client import Fetcher, Request
    from freshet.crawler.fetch.transport import Access
    from freshet.crawler.frontier.frontier import ApiRequest
    from freshet.crawler.frontier.politeness import HostAnswer
    from freshet.storage.records import FetchResult


class DomainShards(Protocol):
    """A store that is divided by domain."""

    def of(self, name: str) -> int:
        """Return the shard of a registrable domain, or of a group of hosts."""


def shard_of(at_origin: str, shards: DomainShards, groups: Mapping[str, Sequence[str]]) -> int:
    """Return the shard that visits an origin or URL, by its group of hosts or its domain."""
    return shards.of(domain_of(at_origin, groups))


def domain_of(at_origin: str, groups: Mapping[str, Sequence[str]]) -> str:
    """Return the group of hosts of an origin or URL, or else its domain."""
    host = origin(at_origin).host
    return group_of(host, groups) or registrable_domain(host)


class Network:
    """The parts of the network, built once per invocation."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        from freshet.crawler.fetch.addresses import AddressGuard, CachingResolver  # noqa: PLC0415 - slow to import, and not needed to parse
        from freshet.crawler.fetch.client import FetchLimits, NetworkFetcher  # noqa: PLC0415 - likewise

        network, crawl = settings.network, settings.crawl
        self._agent = user_agent(crawl.product, crawl.contact)
        self._contact = crawl.contact
        self._overrides = network.resolve
        self.resolver = CachingResolver(overrides=network.resolve)
        guard = AddressGuard(
            allow_private=network.allow_private_addresses,
            allow_networks=network.allow_networks,
            loopback_only=not crawl.contact,
        )
        limits = settings.fetch.model_dump(
            exclude={"accept_language", "markdown", "excluded_extensions"}
        )
        self.fetcher = NetworkFetcher(
            user_agent=self._agent,
            limits=FetchLimits(**limits),
            guard=guard,
            resolver=self.resolver,
            accept_language=settings.fetch.accept_language,
            access_at=_access_at(settings, self._agent),
            now=clock.now,
        )
        self._politeness = settings.politeness

    def obey(self, settings: Settings) -> None:
        """Apply the [[sites]] tables of these settings to requests from now on.

        Raises:
            CrawlError: as :func:`freshet.crawler.run.access.access_at`; nothing has changed.
        """
        self.fetcher.access_at = _access_at(settings, self._agent)

    async def queue_key(self, url: str) -> str:
        """Return the politeness key of a URL's host."""
        polite = self._politeness
        return await queue_key(url, polite.key, polite.groups, self.resolver.addresses)

    async def require_contact(self, urls: Sequence[str]) -> None:
        """Refuse to visit public hosts without a contact.

        Raises:
            UsageError: no contact is set and some URL is not on loopback.
        """
        for begin in range(0, 0 if self._contact else len(urls), _AT_ONCE):
            if (host := public_host(urls[begin : begin + _AT_ONCE], self._overrides)) is not None:
                raise UsageError(
                    f"{host} is a public host, and a crawler must say who runs it: set a contact "
                    "with --contact you@example.org, FRESHET_CRAWL__CONTACT or crawl.contact in "
                    "freshet.toml"
                )
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Close connections and cancel DNS requests."""
        await self.fetcher.close()
        await self.resolver.close()


def _access_at(settings: Settings, agent: str) -> Callable[[str], Access | None]:
    """Return a function that gives the access of a URL; raise as ``access_at``."""
    if not settings.sites:
        return lambda _url: None
    from freshet.crawler.run.access import access_at  # noqa: PLC0415 - few need it

    return access_at(settings.sites, agent)


def public_host(urls: Iterable[str], resolve: Mapping[str, str]) -> str | None:
    """Return the first host that is not on this machine, or None.

    ``resolve`` maps hosts to fixed addresses.
    """
    from freshet.crawler.fetch.addresses import is_this_machine  # noqa: PLC0415 - see above

    hosts = (origin(url).host for url in urls)
    return next((host for host in hosts if not is_this_machine(resolve.get(host, host))), None)


def user_agent(product: str, contact: str) -> str:
    """Return the User-Agent header: product, version and contact."""
    comment = f" (+{contact})" if contact else ""
    return f"{product}/{__version__}{comment}"


async def with_kept(settings: Settings, db: Reader) -> Settings:
    """Return the settings with the site settings that the store has now."""
    return with_stored(settings, await runs.site_settings(db))


def selector_hints(settings: Settings) -> Callable[..., SelectorHints]:
    """Return a function that gives the CSS selectors for the page at a URL.

    With a tuple of stored site settings, the function uses these instead of the former ones.

    Raises:
        UsageError: a selector is invalid.
    """
    hints, own = lru_cache(maxsize=1_024)(SelectorHints), Sites(settings.sites)
    known = lru_cache(maxsize=8)(lambda kept: Sites(with_stored(settings, kept).sites))
    for each in settings.sites:
        try:
            hints(each.include or (), each.ignore or ())
        except ValueError as error:
            raise UsageError(f"[[sites]], {each.match}: {error}") from error

    def of(url: str, kept: tuple[SiteSetting, ...] | None = None) -> SelectorHints:
        if kept is None and not settings.sites:
            return NO_HINTS
        it = (own if kept is None else known(kept)).at(url)
        return hints(it.include or (), it.ignore or ())

    return of


#: URLs checked in one turn of the event loop.
_AT_ONCE: Final = 256
#: The parser may take this multiple of its CPU limit, and at least this long, to answer.
_WALL_TIMES: Final = 12.0
_WALL_LEAST_S: Final = 60.0


def parser_of(
    settings: Settings, clock: Clock | None = None, network: Network | None = None
) -> Parser:
    """Return a new parser, which the caller closes; ``network`` fetches what it parses.

    With a virtual clock, the wall time of its answers is unlimited, and a single process answers in
    the order of the pages, so that the results of a simulation do not depend on the machine's load.

    Raises:
        UsageError: as :func:`selector_hints`.
    """
    # Report an extension that cannot be loaded before any request.
    formats()
    parse = settings.parse
    is_virtual = isinstance(clock, VirtualClock)
    wall_limit_s = max(_WALL_LEAST_S, _WALL_TIMES * parse.time_limit_s)
    return Parser(
        time_limit_s=parse.time_limit_s,
        wall_limit_s=None if is_virtual else wall_limit_s,
        processes=1 if is_virtual else 2,
        max_links=parse.max_links,
        agent_token=settings.crawl.product.lower(),
        hints=selector_hints(settings),
        set_aside=network.fetcher.held.release if network else None,
    )


async def texts_of(parser: Parser, result: FetchResult) -> Sequence[str]:
    """Return the main text of a fetched page in blocks; empty if it is unparsable."""
    with suppress(ParserLost):
        page = await parser.parse(result.body, result.url, result.header("Content-Type"))
        if not isinstance(page, Unparsable):
            return page.blocks.texts
    return ()


# -- fetchers of extensions around the built-in one ------------------------------------


#: Entry points of :class:`Fetching`.
FETCHERS: Final = "freshet.fetchers"


class LoadRules(Protocol):
    """The rules for the requests that a page makes while it is rendered."""

    @property
    def agent_token(self) -> str:
        """The product token of this crawler in robots.txt files."""

    def needs(self, result: FetchResult, /) -> Awaitable[bool]:
        """Return whether the page is built by scripts."""

    def queue_key(self, url: str, /) -> Awaitable[str]:
        """Return the host queue of a URL."""

    def allows(self, url: str, /) -> bool | None:
        """Return whether a URL may be requested, or None if its robots.txt is unknown."""

    def pause_s(self, queue: str, now: float, /) -> float:
        """Return the seconds for which a host queue must not get requests."""

    def heed(
        self, queue: str, now: float, answer: HostAnswer, retry_after_s: float | None, why: str, /
    ) -> None:
        """Apply an answer of a host queue to its politeness."""

    def now(self) -> float:
        """Return the current time."""

    def request(self, request: ApiRequest, /) -> None:
        """Make a further request, in its host's turn; a check of one page makes none."""

    def texts(self, result: FetchResult, /) -> Awaitable[Sequence[str]]:
        """Return the main text of a page, as :func:`texts_of`."""


class OuterFetcher(Protocol):
    """A fetcher around another one, which may change requests and responses, or answer itself."""

    async def fetch(self, request: Request) -> FetchResult:
        """Make one request of any kind, including robots.txt; failures are results with an outcome.

        ``requests`` of the result counts the requests to other host queues.
        """

    def obey(self, settings: Settings) -> None:
        """Apply other settings from now on."""


class FetcherLayer(Protocol):
    """Makes the outer fetchers of one invocation, and starts what they need on demand."""

    def around(self, inner: Fetcher, others: Fetcher, rules: LoadRules) -> OuterFetcher:
        """Return a fetcher around ``inner``; it makes further requests of pages by ``others``."""

    async def close(self) -> None:
        """Stop everything that was started."""


class Fetching(Protocol):
    """Factory of an invocation's layer: a module with these names, or an object."""

    @property
    def RENDERS(self) -> bool:  # noqa: N802 - a constant of a module
        """True if it renders the pages that ``render`` selects."""

    def check(self, settings: Settings) -> None:
        """Raise CrawlError if the settings cannot be applied."""

    def layer(self, settings: Settings) -> FetcherLayer:
        """Return a layer that has started nothing yet."""


def fetcher_layers(settings: Settings, closed_by: AsyncExitStack) -> list[FetcherLayer]:
    """Return the layers of an invocation, the innermost first."""
    layers = [each.layer(settings) for each in _found()]
    if settings.fetch.markdown:
        from freshet.crawler.run.markdown import MarkdownLayer  # noqa: PLC0415 - off by default

        layers.append(MarkdownLayer())
    for layer in layers:
        closed_by.push_async_callback(layer.close)
    return layers


def require_fetchers(settings: Settings) -> None:
    """Raise CrawlError for settings that no fetcher can apply."""
    for each in _found():
        each.check(settings)
    renders = any(each.render in {"when-needed", "always"} for each in settings.sites)
    if renders and not any(each.RENDERS for each in _found()):
        raise CrawlError("sites: render needs the extension browser, which is not installed")


def _found() -> list[Fetching]:
    return list(loaded(FETCHERS).values())
