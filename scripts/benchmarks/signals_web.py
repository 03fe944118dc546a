"""A web of pages that change at Poisson times, on hosts some of which have a sitemap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from math import floor, inf

import numpy as np

from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import Clock
from freshet.scheduler.evaluate.changes import ChangeTimes
from freshet.scheduler.sources import Rows
from freshet.storage.records import FetchResult, Validators
from scripts.benchmarks import daemon_web
from scripts.benchmarks.daemon_web import DAY_S, PoissonWeb

_EXCHANGE_S = 0.05
_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
#: By how much of a day each host rebuilds later than the one before it: the golden section.
_LATER = 0.618


@dataclass(frozen=True, slots=True)
class Hosts:
    """Where pages are.

    Attributes:
        of: (n,), the host of each page.
        sitemaps: by host the day from which its sitemap lies; inf: never, −inf: always.
        dated: whether pages say when they were modified last.
    """

    of: Rows
    sitemaps: Mapping[int, float]
    dated: bool = False

    def url(self, row: int) -> str:
        """The address of a page."""
        return f"{origin(int(self.of[row]))}/p/{row}"

    def with_sitemaps(self, sitemaps: Mapping[int, float]) -> Hosts:
        """The same pages, but other sitemaps."""
        return replace(self, sitemaps=sitemaps)

    def on(self, *, lying: bool) -> Rows:
        """The pages that are on hosts with a true sitemap, or on those with a lying one."""
        wanted = [host for host, day in self.sitemaps.items() if (day < inf) == lying]
        return np.flatnonzero(np.isin(self.of, wanted))


def origin(host: int) -> str:
    """The address of a host."""
    return f"http://h{host}.localhost"


@dataclass(slots=True)
class SignallingWeb:
    """A :class:`freshet.crawler.fetch.client.Fetcher`; ``begin`` is day 0 in Unix seconds.

    A true sitemap says of each page when it changed last, to the second; a lying one, which is
    rebuilt every day at an hour of its host's own, that all pages changed then. The robots.txt of
    such hosts names it. Sitemaps that say what they said are answered with 304.

    Attributes:
        pages: the pages, and what was asked of them.
        polls: host and day of each request for a sitemap that there is.
        robots, others: requests for robots.txt, and for what there is not.
    """

    changes: ChangeTimes
    hosts: Hosts
    begin: float
    clock: Clock
    pages: PoissonWeb = field(init=False)
    polls: list[tuple[int, float]] = field(default_factory=list)
    robots: int = 0
    others: int = 0

    def __post_init__(self) -> None:
        self.pages = PoissonWeb(self.changes, self.begin, self.clock, self.hosts.dated)

    async def fetch(self, request: Request) -> FetchResult:
        """Answer at the clock's time; an exchange takes none of it."""
        name, _, path = request.url.removeprefix("http://h").partition("/")
        host = int(name.split(".")[0])
        if path.startswith("p/"):
            asked = replace(request, url=f"{daemon_web.ORIGIN}/{path}")
            return replace(await self.pages.fetch(asked), url=request.url)
        self.robots += path == "robots.txt"
        if host in self.hosts.sitemaps and path == "robots.txt":
            body = f"User-agent: *\nDisallow:\nSitemap: {origin(host)}/sitemap.xml\n"
            return self._answer(request, "text/plain", body.encode())
        if host in self.hosts.sitemaps and path == "sitemap.xml":
            day = (self.clock.now() - self.begin) / DAY_S
            self.polls.append((host, day))
            return self._answer(request, "application/xml", self._sitemap(host, day))
        self.others += path != "robots.txt"
        now = self.clock.now()
        return FetchResult(request.url, "gone", now, _EXCHANGE_S, 404, "http_404")

    async def close(self) -> None:
        """Do nothing: nothing is open."""

    def _answer(self, request: Request, kind: str, body: bytes) -> FetchResult:
        now, tag = self.clock.now(), f'"{blake2b(body, digest_size=8).hexdigest()}"'
        headers = ((b"Content-Type", kind.encode()), (b"ETag", tag.encode()))
        if (request.validators or Validators()).etag == tag:
            return FetchResult(request.url, "not_modified", now, _EXCHANGE_S, 304, headers=headers)
        return FetchResult(
            request.url, "fetched", now, _EXCHANGE_S, 200, headers=headers, wire_body=body,
            body=body,
        )  # fmt: skip

    def _sitemap(self, host: int, day: float) -> bytes:
        rows = np.flatnonzero(self.hosts.of == host)
        if day >= self.hosts.sitemaps[host]:
            said = np.full(len(rows), rebuilt(host, day))
        else:
            said = self.pages.last_changes(rows, day)
        entries = "".join(
            f"<url><loc>{self.hosts.url(row)}</loc><lastmod>{self._date(at)}</lastmod></url>"
            for row, at in zip(rows.tolist(), said.tolist(), strict=True)
        )
        return f'<urlset xmlns="{_NAMESPACE}">{entries}</urlset>'.encode()

    def _date(self, day: float) -> str:
        at = datetime.fromtimestamp(floor(self.begin + day * DAY_S), UTC)
        return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def rebuilt(host: int, day: float) -> float:
    """The day on which a host was rebuilt last: once a day, at an hour of its own."""
    hour = (host * _LATER) % 1.0
    return floor(day - hour) + hour
