"""Where the feeds and sitemaps of a host are: what it links, and where they usually stand.

A page of the host's own may name a feed of each of its articles: of the feeds that are linked on a
host only so many are asked for. Where none is, the well-known places are tried, each once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from freshet.crawler.admission.admitting import Admission
from freshet.crawler.parsing.link_headers import header_links
from freshet.crawler.parsing.references import is_feed
from freshet.crawler.urls import canonical, is_http, origin, resolve, without_fragment
from freshet.storage.records import DueUrl, Targets
from freshet.storage.words import Role

#: Under which the feeds of a host are bounded, as the patterns of traps are.
FEEDS_SHAPE: Final = "linked feeds"
_FEEDS_KIND: Final = "trap: feeds"
_WELL_KNOWN_SHAPE: Final = "well-known feeds"
WELL_KNOWN_FEEDS: Final = ("/feed", "/rss.xml", "/atom.xml", "/feed.xml", "/index.xml")
WELL_KNOWN_SITEMAP: Final = "/sitemap.xml"
#: Of the links in headers so many are looked at.
_LINKS: Final = 32


class Discovery:
    """Admits feeds; what is tried unasked only where a run is ``lasting``.

    ``most`` feeds of a host are taken from its links; ``well_known`` says whether the usual
    places are tried as well.
    """

    def __init__(self, admission: Admission, *, most: int, well_known: bool) -> None:
        self._admission = admission
        self._most = most
        self._well_known = well_known

    def feeds(
        self, targets: Targets, due: DueUrl, linked: Sequence[str], headers: Iterable[str]
    ) -> None:
        """Append the feeds of a page: those it links in its head, those that Link headers name.

        Where the page is a host's own (``/``) and names none, those of the well-known places.
        """
        named = [*linked, *header_feeds(headers, due.fetch_url)] if self._most else []
        for url in named:
            self._add(targets, url, due.depth, FEEDS_SHAPE, self._most)
        if self._well_known and not named and due.url.split("/", 3)[3] == "":
            usual, most = str(origin(due.url)), len(WELL_KNOWN_FEEDS)
            for path in WELL_KNOWN_FEEDS:
                self._add(targets, usual + path, due.depth, _WELL_KNOWN_SHAPE, most)

    def sitemap(self, targets: Targets, host_origin: str) -> None:
        """Append the well-known sitemap of a host whose robots.txt names none."""
        if self._well_known:
            url = f"{host_origin}{WELL_KNOWN_SITEMAP}"
            self._admission.add(targets, canonical(url), url, depth=0, role=Role.SITEMAP)

    def _add(self, targets: Targets, url: str, depth: int, shape: str, most: int) -> None:
        page = canonical(url)
        if not self._admission.scope.contains(page):
            return
        self._admission.add(targets, page, url, depth=depth + 1, role=Role.FEED)
        targets.trap_shapes[-1], targets.trap_kinds[-1] = shape, _FEEDS_KIND
        targets.trap_caps[-1] = most


def header_feeds(headers: Iterable[str], base: str) -> list[str]:
    """The feeds that Link headers (RFC 8288) name, resolved, each once."""
    found: dict[str, None] = {}
    for target, parameters in islice(header_links(headers), _LINKS):
        url = resolve(target, base) if is_feed(parameters) else None
        if url is not None and is_http(url):
            found.setdefault(without_fragment(url))
    return list(found)
