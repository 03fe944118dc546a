"""The importance of a page: that of the seed in whose part of the web it lies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from freshet.crawler.urls import canonical, site_key
from freshet.storage.records import StoredSeed

#: Of the pages that no seed speaks for.
DEFAULT = 1.0
_NAMES = {"pagerank": "PageRank"}


@dataclass(frozen=True, slots=True)
class Importance:
    """A page's importance μ, and where it comes from.

    Attributes:
        value: μ.
        origin: ``rule`` (one of ``daemon.rules``), ``site list``, ``constant``, or ``default``
            where no seed speaks for the page.
        source: the pattern of the rule, or the line of the site list.
        site: the importance that the site list gives the page's part of its site.
        divided_by: ``depth`` or ``pagerank``, where that divides the importance of a site.
        share: by this, as a multiple of the mean of its site.
        near_duplicates: the pages with which it shares the importance of one.
    """

    value: float
    origin: str
    source: str | None = None
    site: float = DEFAULT
    divided_by: str | None = None
    share: float = 1.0
    near_duplicates: int = 0

    def said(self) -> str:
        """Where it comes from, in words."""
        words = [f"{self.origin} “{self.source}”" if self.source is not None else self.origin]
        if self.divided_by is not None:
            by = _NAMES.get(self.divided_by, self.divided_by)
            words = [f"{words[0]}: {self.site:g}", f"by {by} {self.share:.3g} times that"]
        if self.near_duplicates:
            pages = "page" if self.near_duplicates == 1 else "pages"
            words.append(f"shared with {self.near_duplicates} {pages} that say the same")
        return ", ".join(words)


@dataclass(slots=True)
class _Site:
    """The rows of the seeds of a site, by URL and by directory; the first named counts."""

    urls: dict[str, int] = field(default_factory=dict)
    directories: dict[str, int] = field(default_factory=dict)

    def add(self, url: str, seed: int) -> None:
        self.urls.setdefault(url, seed)
        self.directories.setdefault(_directory(url), seed)

    def first(self) -> int:
        return next(iter(self.directories.values()))

    def of(self, url: str) -> int:
        """That of the URL itself, or else of the nearest directory above it."""
        if url in self.urls:
            return self.urls[url]
        directory = _directory(url)
        while directory not in self.directories and len(directory) > 1:
            directory = directory[: directory.rindex("/", 0, -1) + 1]
        return self.directories.get(directory, self.first())


def speaking(
    urls: Sequence[str],
    host: NDArray[np.intp],
    origins: Sequence[str],
    seeds: Sequence[StoredSeed],
) -> NDArray[np.intp]:
    """(n,), the row of the seed that speaks for each page, or −1; ``host`` are rows of ``origins``.

    A seed speaks for itself, and for the pages of its site (http, https and ``www.`` count as
    one). Of several on one site that one does whose directory is the longest on the page's path;
    where none is on it, the first of the list.
    """
    sites = _sites(seeds)
    of_host = [sites.get(site_key(place)) for place in origins]
    alone = [-1 if site is None else site.first() for site in of_host]
    found = np.array(alone, np.intp)[host]
    several = np.array([site is not None and len(site.urls) > 1 for site in of_host], np.bool_)
    for row in np.flatnonzero(several[host]).tolist():
        site = of_host[host[row]]
        if site is not None:
            found[row] = site.of(urls[row])
    return found


def importances(
    urls: Sequence[str],
    host: NDArray[np.intp],
    origins: Sequence[str],
    seeds: Sequence[StoredSeed],
) -> NDArray[np.float64]:
    """(n,), the importance of each page by the site list: that of the seed that speaks for it."""
    values = np.array([seed.importance for seed in seeds] + [DEFAULT])
    found: NDArray[np.float64] = values[speaking(urls, host, origins, seeds)]
    return found


def shared(
    importance: NDArray[np.float64], page_id: NDArray[np.int64], representatives: Mapping[int, int]
) -> NDArray[np.float64]:
    """(n,), the importances where near-duplicates count as one page.

    ``representatives`` by the ids of their duplicates. The pages of a group divide the
    importance of their representative, so that each is still looked at now and then.
    """
    if not representatives:
        return importance
    rows = {page: row for row, page in enumerate(page_id.tolist())}
    leader = np.arange(len(page_id))
    for page, representative in representatives.items():
        if page in rows and representative in rows:
            leader[rows[page]] = rows[representative]
    size = np.bincount(leader, minlength=len(page_id))
    whole: NDArray[np.float64] = importance[leader] / size[leader]
    return whole


def _sites(seeds: Sequence[StoredSeed]) -> dict[str, _Site]:
    sites: defaultdict[str, _Site] = defaultdict(_Site)
    for row, seed in enumerate(seeds):
        url = canonical(seed.root_url or seed.url)
        sites[site_key(url)].add(url, row)
    return dict(sites)


def _directory(url: str) -> str:
    """The path up to its last '/', as scope ``prefix`` has it."""
    path = _path(url)
    return path[: path.rindex("/") + 1]


def _path(url: str) -> str:
    return "/" + url.partition("?")[0].split("/", 3)[3]
