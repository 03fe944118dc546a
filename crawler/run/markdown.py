"""Markdown in place of HTML, from hosts that offer it (``fetch.markdown``).

A host offers Markdown if a response varies by ``Accept``, names an alternate form of type
``text/markdown``, or is its llms.txt. One of its pages is then requested in that form as well, in
the host's turn and charged to the budget. If the Markdown has the same words in fewer bytes, pages
of the host are requested as Markdown for a month, and then compared again.

This is kept in memory only, so each run compares once per host.

Source: Cloudflare, *Markdown for Agents*, and llmstxt.org, both as of 2026-12-01.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Final, Protocol

from freshet.crawler.fetch.bounds import LruCache
from freshet.crawler.fetch.responses import media_type
from freshet.crawler.frontier.frontier import ApiRequest
from freshet.crawler.reduce.formats import as_shown, format_of
from freshet.crawler.urls import origin

if TYPE_CHECKING:
    from freshet.config.settings import Settings
    from freshet.crawler.fetch.client import Fetcher, Request
    from freshet.storage.records import Entry, FetchResult

log = logging.getLogger(__name__)

#: HTML is accepted for pages without Markdown.
ACCEPT: Final = (
    "Accept", "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, */*;q=0.1",
)  # fmt: skip
_COMPARED_EACH_S: Final = 30 * 86_400.0
#: Minimum share of the words of each form that the other one has. It is not fitted: forms of one
#: text differ in a few labels of links and buttons.
_LEAST_SHARED: Final = 0.9
#: Longer pages are not compared; another page of the host may be.
_MOST_BYTES: Final = 1 << 20
_MOST_HOSTS: Final = 4_096
_ALTERNATE: Final = re.compile(rb"<link\b[^>]{0,500}\btext/markdown\b", re.IGNORECASE)
_HEAD_BYTES: Final = 1 << 16


class ComparisonRules(Protocol):
    """The part of :class:`freshet.crawler.run.network.LoadRules` that is needed here."""

    def now(self) -> float:
        """Return the current time."""

    def queue_key(self, url: str, /) -> Awaitable[str]:
        """Return the host queue of a URL."""

    def request(self, request: ApiRequest, /) -> None:
        """Make a further request, in its host's turn."""

    def texts(self, result: FetchResult, /) -> Awaitable[Sequence[str]]:
        """Return the main text of a page in blocks."""


@dataclass(slots=True)
class _Host:
    """A host: whether Markdown is used, and in ``html`` the words and bytes it is compared with."""

    is_used: bool = False
    offers: bool = False
    compared_at: float = -inf
    html: tuple[Counter[str], int] = (Counter(), 0)
    markdown: FetchResult | None = None


class MarkdownLayer:
    """Makes the fetchers that request Markdown."""

    def around(self, inner: Fetcher, _others: Fetcher, rules: ComparisonRules) -> MarkdownFetcher:
        """Return a fetcher around another one."""
        return MarkdownFetcher(inner, rules)

    async def close(self) -> None:
        """Do nothing: there are no resources to release."""


class MarkdownFetcher:
    """Fetcher that requests Markdown from hosts where it is the same text in fewer bytes."""

    def __init__(self, inner: Fetcher, rules: ComparisonRules) -> None:
        self._inner, self._rules = inner, rules
        self._hosts = LruCache[str, _Host](_MOST_HOSTS)

    def obey(self, _settings: Settings) -> None:
        """Ignore the settings: ``fetch.markdown`` is read at the start only."""

    async def fetch(self, request: Request) -> FetchResult:
        """Make one request; for a page it may request Markdown."""
        if request.accept != "page" or request.is_plain or _names_accept(request):
            return await self._inner.fetch(request)
        place = str(origin(request.url))
        host = self._hosts.get(place)
        if host is None:
            host = self._hosts[place] = _Host()
        await self._compare(host, place)
        is_due = self._rules.now() - host.compared_at >= _COMPARED_EACH_S
        if host.is_used and not is_due:
            request = replace(request, headers=(*request.headers, ACCEPT))
        result = await self._inner.fetch(request)
        if is_due and result.outcome == "fetched":
            await self._take(host, request, result)
        return result

    async def _take(self, host: _Host, request: Request, result: FetchResult) -> None:
        """Request a fetched HTML page as Markdown as well, if its host offers it."""
        host.offers = host.offers or _offers(result)
        is_html = media_type(result.header("Content-Type") or "") == "text/html"
        if not (host.offers and is_html and len(result.body) <= _MOST_BYTES):
            return

        def answered(came: FetchResult, _now: float) -> Sequence[Entry]:
            host.markdown = came
            return ()

        host.compared_at = self._rules.now()
        host.html = words(await self._rules.texts(result)), _size(result)
        queue = await self._rules.queue_key(request.url)
        self._rules.request(
            ApiRequest(request.url, queue, answered, headers=(ACCEPT,), max_body_bytes=_MOST_BYTES)
        )

    async def _compare(self, host: _Host, place: str) -> None:
        """Compare the received Markdown with the HTML of the same page."""
        came, host.markdown = host.markdown, None
        if came is None:
            return
        (html, size), host.html = host.html, (Counter(), 0)
        came = as_shown(came, _MOST_BYTES)
        is_markdown = format_of(came.header("Content-Type")).label == "text/markdown"
        if came.outcome == "fetched" and is_markdown and _size(came) < size:
            host.is_used = are_same(html, words(await self._rules.texts(came)))
        else:
            host.is_used = False
        log.info("%s: pages are asked for as %s", place, "Markdown" if host.is_used else "HTML")


def _names_accept(request: Request) -> bool:
    """Return whether a request has its Accept header set, or posts a form."""
    return request.form is not None or any(name == "Accept" for name, _ in request.headers)


def _size(result: FetchResult) -> int:
    """Return the bytes of a body on the wire."""
    return len(result.wire_body or result.body)


def _offers(result: FetchResult) -> bool:
    """Return whether a response shows that its host offers Markdown."""
    if result.url.endswith(("/llms.txt", "/llms-full.txt")):
        return media_type(result.header("Content-Type") or "") != "text/html"
    if any("text/markdown" in value.lower() for value in result.header_values("Link")):
        return True
    varies = ",".join(result.header_values("Vary")).lower().split(",")
    if "accept" in (each.strip() for each in varies):
        return True
    return _ALTERNATE.search(result.body, 0, _HEAD_BYTES) is not None


def words(texts: Iterable[str]) -> Counter[str]:
    """Return the words of a text, in lower case."""
    return Counter(word for text in texts for word in re.findall(r"\w+", text.lower()))


def are_same(one: Counter[str], other: Counter[str]) -> bool:
    """Return whether each of two texts has nearly all words of the other."""
    shared = (one & other).total()
    most = max(one.total(), other.total())
    return shared > 0 and shared >= _LEAST_SHARED * most
