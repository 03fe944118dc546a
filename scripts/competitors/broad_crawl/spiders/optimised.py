"""What an expert makes of Scrapy: everything that costs is replaced or left out.

Lexbor instead of lxml and parsel, a seen-set of strings instead of request fingerprints, one
resolution for each href of a directory, one Request for each page instead of one for each
link, and none of the middlewares and extensions that this crawl can do without. The benchmark
runs it on uvloop, which only the command line can ask for. It stores and compares nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import ClassVar
from urllib.parse import urljoin, urlsplit

from scrapy import Request, Spider
from scrapy.http import Response
from selectolax.lexbor import LexborHTMLParser

from broad_crawl.spiders import seeds_in

_MIDDLEWARES = "scrapy.downloadermiddlewares"
_NOT_PAGES = (
    *(".avif", ".bmp", ".gif", ".ico", ".jpeg", ".jpg", ".png", ".svg", ".webp"),
    *(".css", ".js", ".mjs", ".wasm", ".woff", ".woff2", ".ttf", ".eot"),
    *(".7z", ".bz2", ".deb", ".gz", ".rar", ".tar", ".tgz", ".xz", ".zip", ".mp3", ".mp4"),
)


class Optimised(Spider):
    """Follows every link within the seeds' hosts."""

    name = "optimised"
    custom_settings: ClassVar[dict[str, object]] = {
        "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter",
        "STATS_CLASS": "scrapy.statscollectors.DummyStatsCollector",
        "EXTENSIONS_BASE": {},
        "SPIDER_MIDDLEWARES_BASE": {
            "scrapy.spidermiddlewares.start.StartSpiderMiddleware": 25,
            "scrapy.spidermiddlewares.httperror.HttpErrorMiddleware": 50,
        },
        "DOWNLOADER_MIDDLEWARES_BASE": {
            f"{_MIDDLEWARES}.robotstxt.RobotsTxtMiddleware": 100,
            f"{_MIDDLEWARES}.useragent.UserAgentMiddleware": 500,
            f"{_MIDDLEWARES}.httpcompression.HttpCompressionMiddleware": 590,
        },
        "LOG_ENABLED": False,
    }

    def __init__(self, seeds: str, **arguments: object) -> None:
        super().__init__(**arguments)
        self._seeds = seeds_in(seeds)
        self._origins = tuple(f"http://{urlsplit(url).netloc}/" for url in self._seeds)
        self._seen = set(self._seeds)
        self._resolved: dict[tuple[str, str], str] = {}

    async def start(self) -> AsyncIterator[Request]:
        """The seeds."""
        for url in self._seeds:
            yield Request(url)

    def parse(self, response: Response) -> Iterator[Request]:
        """Follow what has not been seen."""
        if b"html" not in (response.headers.get("Content-Type") or b""):
            return
        seen = self._seen
        for url in self._targets(response):
            if url not in seen:
                seen.add(url)
                yield Request(url)

    def _targets(self, response: Response) -> Iterator[str]:
        """The page's links within the seeds' hosts, each href resolved once a directory."""
        directory = response.url[: response.url.rindex("/") + 1]
        links = LexborHTMLParser(response.body).css("a[href], area[href]")
        hrefs = {(node.attributes["href"] or "").partition("#")[0] for node in links}
        for href in hrefs:
            url = self._resolved.get((directory, href))
            if url is None:
                url = self._resolved[directory, href] = self._target(directory, href)
            if url:
                yield url

    def _target(self, directory: str, href: str) -> str:
        """The URL that an href leads to; empty where it is not to be followed."""
        try:
            url = urljoin(directory, href.strip()) if href else ""
        except ValueError:
            return ""
        is_page = url.startswith(self._origins) and not url.lower().endswith(_NOT_PAGES)
        return url if is_page else ""
