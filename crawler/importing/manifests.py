"""The pages of a sitemap, also gzipped, and those of the sitemaps that an index names.

Nothing is fetched: the sitemaps of an index are read where they lie beside it under the names
that their URLs end in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import urlsplit

from freshet.crawler.importing.entries import Entry, Site, Skipped, Unreadable
from freshet.crawler.parsing.sitemaps import Sitemap, SitemapKind, SitemapLimits, parse_sitemap

#: The protocol's bound, packed or not.
MANIFEST_MAX_BYTES: Final = SitemapLimits().max_bytes
_MAX_SITEMAPS: Final = 1_000
#: A file beside the index: no folder, nothing hidden, no way up.
_PLAIN_NAME: Final = re.compile(r"[\w-][\w.-]*")


def read_manifest(data: bytes, beside: Callable[[str], bytes | None]) -> list[Entry]:
    """The pages, in the order of the file; ``beside`` gives the file of a name, if there is one.

    Raises:
        Unreadable: it is no sitemap, or nothing of it can be read.
    """
    sitemap = _parsed_yaml(data)
    if sitemap.kind is not SitemapKind.INDEX:
        return list(_pages(sitemap, ""))
    found: list[Entry] = []
    for number, entry in enumerate(sitemap.entries, 1):
        where = f"sitemap {number}"
        if number > _MAX_SITEMAPS:
            found.append(Skipped(where, entry.url, f"an index of more than {_MAX_SITEMAPS:,}"))
            break
        found.extend(_named(where, entry.url, beside))
    return [*found, *_trouble(sitemap, "index")]


def _named(where: str, url: str, beside: Callable[[str], bytes | None]) -> Iterator[Entry]:
    """The pages of a sitemap that an index names."""
    name = urlsplit(url).path.rpartition("/")[2]
    data = beside(name) if _PLAIN_NAME.fullmatch(name) else None
    if data is None:
        yield Skipped(where, url, "not beside the index; nothing is fetched")
        return
    try:
        sitemap = _parsed_yaml(data)
    except Unreadable as reason:
        yield Skipped(where, url, str(reason))
        return
    if sitemap.kind is SitemapKind.INDEX:
        yield Skipped(where, url, "an index in an index")
        return
    yield from _pages(sitemap, f"{name}, ")


def _parsed_yaml(data: bytes) -> Sitemap:
    sitemap = parse_sitemap(data)
    if sitemap.kind is SitemapKind.UNKNOWN or (sitemap.problem and not sitemap.entries):
        raise Unreadable(f"not a sitemap: {sitemap.problem or 'it has no entries'}")
    return sitemap


def _pages(sitemap: Sitemap, prefix: str) -> Iterator[Entry]:
    for number, entry in enumerate(sitemap.entries, 1):
        yield Site(f"{prefix}entry {number}", entry.url)
    yield from _trouble(sitemap, f"{prefix}the end")


def _trouble(sitemap: Sitemap, where: str) -> Iterator[Entry]:
    """What of it could not be read."""
    if sitemap.truncated:
        yield Skipped(where, "", "the rest is longer than a sitemap may be")
    if sitemap.problem:
        yield Skipped(where, "", f"the rest: {sitemap.problem}")
    if sitemap.rejected:
        yield Skipped(where, "", f"{sitemap.rejected:,} entries without a usable URL")
