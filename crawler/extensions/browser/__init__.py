"""Pages that a browser renders. Every crawl loads this module, which is short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from freshet.config.settings import (
    Count,
    Number,
    Positive,
    PositiveSeconds,
    RenderMode,
    RenderWait,
    SettingsGroup,
    Text,
)
from freshet.crawler.run.network import user_agent
from freshet.crawler.run.rules import key_at

if TYPE_CHECKING:
    from freshet.config.settings import Settings
    from freshet.crawler.extensions.browser.chromium import Browsers
    from freshet.crawler.extensions.browser.rendering import RenderingFetcher
    from freshet.crawler.fetch.client import Fetcher, Request
    from freshet.crawler.run.network import LoadRules
    from freshet.storage.records import FetchResult


class BrowserSettings(SettingsGroup):
    """``[browser]``: pages that a browser renders."""

    executable: str
    render: RenderMode
    wait: RenderWait
    pages: Annotated[int, Number, Field(ge=1, le=64)]
    time_limit_s: PositiveSeconds
    max_requests: Count
    max_bytes: Positive
    memory_bytes: Annotated[int, Number, Field(ge=256 * 2**20, le=10**15)]
    kinds: Annotated[tuple[str, ...], Text]
    blocked_hosts: Annotated[tuple[str, ...], Text]


RENDERS: Final = True


def check(settings: Settings) -> None:
    """Refuse to render pages without a browser; raises CrawlError."""
    said = settings.group(BrowserSettings)
    if {said.render, *(each.render for each in settings.sites)} & {"when-needed", "always"}:
        from freshet.crawler.extensions.browser.chromium import browser_program  # noqa: PLC0415 - or not

        browser_program(said.executable)


def layer(settings: Settings) -> BrowserRenderer:
    """Return the renderer of an invocation."""
    return BrowserRenderer(settings)


class BrowserRenderer:
    """Browsers by the settings, which are started when a page is to be rendered."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._browsers: Browsers | None = None

    def around(self, inner: Fetcher, others: Fetcher, rules: LoadRules) -> RenderedPages:
        """Return a fetcher that renders some pages."""
        return RenderedPages(self, inner, others, rules)

    @property
    def settings(self) -> Settings:
        """The settings of the invocation."""
        return self._settings

    @property
    def browsers(self) -> Browsers:
        """The browsers of all fetchers."""
        if self._browsers is None:
            from freshet.crawler.extensions.browser.chromium import BrowserRules, Browsers  # noqa: PLC0415 - few need it

            settings, crawl = self._settings, self._settings.crawl
            said = settings.group(BrowserSettings)
            language = settings.fetch.accept_language.partition(",")[0].partition(";")[0].strip()
            rules = BrowserRules(
                user_agent=user_agent(crawl.product, crawl.contact), language=language,
                max_body_bytes=settings.fetch.max_body_bytes,
                **said.model_dump(exclude={"render", "wait", "pages"}),
            )  # fmt: skip
            self._browsers = Browsers(rules, said.pages)
        return self._browsers

    async def close(self) -> None:
        """End all browsers."""
        if self._browsers is not None:
            await self._browsers.close()


class RenderedPages:
    """A fetcher that renders pages, and passes other requests on."""

    def __init__(
        self, by: BrowserRenderer, pages: Fetcher, others: Fetcher, rules: LoadRules
    ) -> None:
        self._by, self._pages, self._others, self._rules = by, pages, others, rules
        self._rendering: RenderingFetcher | None = None
        self.obey(by.settings)

    def obey(self, settings: Settings) -> None:
        """Apply the settings: they select the pages to render from now on."""
        said = settings.group(BrowserSettings)
        self._mode_at = key_at(settings, "render", said.render)
        self._wait_at = key_at(settings, "render_wait", said.wait)

    async def fetch(self, request: Request) -> FetchResult:
        """Make one request, and render the page if the settings select it."""
        mode = self._mode_at(request.url)
        if mode == "never" or request.accept != "page":
            return await self._pages.fetch(request)
        if self._rendering is None:
            from freshet.crawler.extensions.browser.rendering import RenderingFetcher  # noqa: PLC0415 - few need it

            self._rendering = RenderingFetcher(
                pages=self._pages, others=self._others, browsers=self._by.browsers,
                rules=self._rules,
            )  # fmt: skip
        return await self._rendering.fetch(request, mode, self._wait_at(request.url))
