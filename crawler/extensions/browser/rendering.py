"""Pages that a browser renders. Their requests are made and bounded like all others.

*Invariant.* A page's requests end before its visit does, are counted by host queue, and are never
sent to a parked host. Consequence: politeness and the budget count a load as the many requests that
it is, and a host's answer to one of them applies to all further requests.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from freshet.config.settings import RenderMode, RenderWait
from freshet.crawler.errors import Unfetched
from freshet.crawler.extensions.browser.chromium import Browsers
from freshet.crawler.fetch.bounds import LruCache, meet
from freshet.crawler.fetch.client import Fetcher, Request
from freshet.crawler.fetch.responses import HTML_TYPES, media_type
from freshet.crawler.frontier.politeness import answer_of
from freshet.crawler.robots import RobotsTxt, in_force, record_of
from freshet.crawler.run.network import LoadRules
from freshet.crawler.urls import Origin, is_http, origin, registrable_domain, resolve, robots_url
from freshet.storage.records import FetchResult

#: Hosts outside the crawl with a remembered robots.txt, and the seconds of that.
_HOSTS: Final = 1_024
_REMEMBERED_S: Final = 3_600.0
_MOST_REDIRECTS: Final = 5
#: Types that a page may use, but not read, from another origin, by the kind of request.
_UNREAD: Final[Mapping[str, re.Pattern[str]]] = {
    "script": re.compile(r"(text|application)/(x-)?(java|ecma|live|j)script[0-9.]*"),
    "stylesheet": re.compile(r"text/css"),
}


@dataclass(slots=True, kw_only=True, eq=False)
class RenderingFetcher:
    """Renders pages; ``pages`` makes the requests for them, ``others`` those that they make."""

    pages: Fetcher
    others: Fetcher
    browsers: Browsers
    rules: LoadRules
    robots: LruCache[str, tuple[float, RobotsTxt]] = field(
        default_factory=lambda: LruCache(_HOSTS), init=False
    )

    async def fetch(self, request: Request, mode: RenderMode, wait: RenderWait) -> FetchResult:
        """Make the request for a page, and render the response if it needs that, or always."""
        if mode == "always":
            # What the page loads may have changed where the document has not.
            request = replace(request, validators=None)
        result = await self.pages.fetch(request)
        is_html = media_type(result.header("Content-Type") or "") in HTML_TYPES
        if result.outcome != "fetched" or not is_html:
            return result
        if mode == "when-needed" and not await self.rules.needs(result):
            return result
        load = _Requests(self, result.url, self.browsers.rules.max_bytes)
        try:
            shown = await self.browsers.show(result, load.serve, wait)
        except Unfetched as end:
            shown = _failed(result, end.reason, end.detail)
        if load.trouble is not None:
            shown = _troubled(result, load.trouble)
        return replace(shown, requests=dict(load.requests))


def _is_away(result: FetchResult) -> bool:
    """Return whether a host does not answer now."""
    if result.status is None:
        return result.outcome == "failed"
    return result.status == 429 or result.status >= 500


def _troubled(page: FetchResult, by: FetchResult) -> FetchResult:
    """Return the failure of a page that the failure of one of its requests causes."""
    is_parked = by.reason == "parked_host"
    reason = "parked_host" if is_parked else "browser"
    shown = _failed(page, reason, f"{by.url}: {by.detail or by.status}")
    if is_parked or by.status in (429, 503):
        # Too many requests are too many for the page as well.
        return replace(shown, status=by.status, retry_after_s=by.retry_after_s)
    return shown


def _failed(page: FetchResult, reason: str, detail: str) -> FetchResult:
    return replace(page, outcome="failed", reason=reason, detail=detail, body=b"")


@dataclass(slots=True, eq=False)
class _Requests:
    """The requests of one page.

    ``trouble`` is a failure of its site for now: what the page shows then is not a change.
    """

    by: RenderingFetcher
    url: str
    left_bytes: int
    requests: Counter[str] = field(default_factory=Counter)
    trouble: FetchResult | None = None
    _asking: dict[str, asyncio.Lock] = field(default_factory=dict)

    async def serve(
        self, url: str, kind: str, method: str, headers: Mapping[str, str]
    ) -> FetchResult | None:
        """Make a request of the page, and follow where it leads."""
        if method != "GET" or kind not in self.by.browsers.rules.kinds or not is_http(url):
            return None
        result = await self._followed(resolve(url, self.url), self._passed(url, headers))
        if result is None or result.status is None:
            return None
        # The browser takes what comes for the answer of the URL that the page has asked for, and
        # knows of no redirect.
        hides = self._is_home(url) and not self._is_home(result.url)
        return None if hides and not self._is_shared(result, kind) else result

    async def _followed(
        self, target: str | None, passed: tuple[tuple[str, str], ...]
    ) -> FetchResult | None:
        """Return the answer to which a URL leads, None if it may not be had."""
        is_home = True
        for _ in range(_MOST_REDIRECTS + 1):
            if target is None or not await self._may(target):
                return None
            # A request that has left the page's origin does not return with its credentials.
            is_home = is_home and self._is_home(target)
            wanted = Request(target, "requisite", headers=passed, is_anonymous=not is_home)
            result = await self._fetch(wanted)
            if (target := result.location) is None:
                return result
            passed = ()
        return None

    def _is_home(self, url: str) -> bool:
        return origin(url) == origin(self.url)

    def _is_shared(self, result: FetchResult, kind: str) -> bool:
        """Return whether the page may have what another origin answers to a request of a kind."""
        permission = ", ".join(result.header_values("Access-Control-Allow-Origin")).strip()
        label = media_type(result.header("Content-Type") or "") or ""
        is_usable = kind in _UNREAD and _UNREAD[kind].fullmatch(label) is not None
        return is_usable or permission in ("*", str(origin(self.url)))

    def _passed(self, url: str, headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """Return the headers that a page may choose; for its origin these are more."""
        own = ("authorization", "x-") if self._is_home(url) else ()
        chosen = ("accept", "origin", *own)
        return tuple((name.title(), headers[name]) for name in headers if name.startswith(chosen))

    async def _may(self, url: str) -> bool:
        rules, place = self.by.browsers.rules, origin(url)
        if f".{place.host}".endswith(tuple(f".{each}" for each in rules.blocked_hosts)):
            return False
        if self.left_bytes <= 0 or self.requests.total() >= rules.max_requests:
            meet("requests and bytes of a rendered page", self.url)
            return False
        allowed = self.by.rules.allows(url)
        if allowed is None:
            # One request for all that the page wants of a host.
            async with self._asking.setdefault(str(place), asyncio.Lock()):
                file = await self._robots_of(place)
            allowed = file.allows(self.by.rules.agent_token, url)
        return allowed

    async def _robots_of(self, place: Origin) -> RobotsTxt:
        """Return the robots.txt of an origin outside the crawl, fetched if it is not remembered."""
        by, now = self.by, self.by.rules.now()
        until, file = by.robots.use(str(place)) or (0.0, RobotsTxt())
        if now >= until:
            asked = robots_url(place)
            is_home = self._is_home(asked)
            result = await self._fetch(Request(asked, "robots", is_anonymous=not is_home))
            for _ in range(_MOST_REDIRECTS):
                if result.location is None:
                    break
                is_home = is_home and self._is_home(result.location)
                request = Request(result.location, "robots", is_anonymous=not is_home)
                result = await self._fetch(request)
            file = in_force(record_of(result, now), by.rules.agent_token)
            if not file.closed:
                by.robots[str(place)] = now + _REMEMBERED_S, file
        return file

    async def _fetch(self, request: Request) -> FetchResult:
        by, key = self.by, await self.by.rules.queue_key(request.url)
        if (pause_s := by.rules.pause_s(key, by.rules.now())) > 0:
            result = FetchResult(
                request.url, "failed", by.rules.now(), 0.0, reason="parked_host",
                detail=f"its host is not asked for {pause_s:.0f} s", retry_after_s=pause_s,
            )  # fmt: skip
        else:
            result = await self._asked(request, key)
        same = (registrable_domain(origin(url).host) for url in (result.url, self.url))
        if _is_away(result) and next(same) == next(same):
            self.trouble = self.trouble or result
        return result

    async def _asked(self, request: Request, key: str) -> FetchResult:
        """Make a request, and let its host queue heed the answer."""
        by = self.by
        self.requests[key] += 1
        result = await by.others.fetch(request)
        self.left_bytes -= len(result.body)
        answer, why = answer_of(result.status, result.reason), result.reason or result.status
        if answer == "failed" and request.accept == "robots":
            # Nothing of the host may be asked for.
            answer = "down"
        by.rules.heed(key, by.rules.now(), answer, result.retry_after_s, f"{why}")
        return result
