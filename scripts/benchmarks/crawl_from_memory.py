"""The benchmark's pages without the network: a fetcher that answers from memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import time

from freshet.crawler.fetch.client import Request
from freshet.storage.records import FetchResult
from scripts.benchmarks.crawl_tree import Tree

_TYPES = {".txt": "text/plain"}
_ETAG = '"same"'


@dataclass(frozen=True, slots=True)
class Page:
    """A page as a server sends it."""

    url: str
    body: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class MemoryFetcher:
    """Answers at once, 304 where the validator is known; what is not there is gone."""

    pages: Mapping[str, Page]

    async def fetch(self, request: Request) -> FetchResult:
        """Make one exchange."""
        page, now = self.pages.get(request.url), time()
        if page is None:
            return FetchResult(request.url, "gone", now, 0, 404, "http_404")
        headers = ((b"Content-Type", page.content_type.encode()), (b"ETag", _ETAG.encode()))
        if request.validators is not None and request.validators.etag == _ETAG:
            return FetchResult(request.url, "not_modified", now, 0, 304, headers=headers)
        return FetchResult(
            request.url, "fetched", now, 0, 200, headers=headers, wire_body=page.body,
            body=page.body,
        )  # fmt: skip

    async def close(self) -> None:
        """Nothing is open."""


def pages_of(tree: Tree, origins: Sequence[str]) -> list[Page]:
    """The pages of the sites, under these origins."""
    return [
        Page(
            f"{origin}/{path.relative_to(site).as_posix()}",
            path.read_bytes(),
            _TYPES.get(path.suffix, "text/html"),
        )
        for site, origin in zip(tree.sites, origins, strict=True)
        for path in tree.pages
        if path.is_relative_to(site)
    ]


def forget_unfetched(store: Path) -> None:
    """Let nothing be due but the pages that have been fetched."""
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE page SET held_back = 'sample' WHERE last_kind IS NULL")
        connection.execute(
            "DELETE FROM frontier WHERE page_id IN (SELECT id FROM page WHERE last_kind IS NULL)"
        )
