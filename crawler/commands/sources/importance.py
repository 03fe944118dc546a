"""The importance of a page: that of the seed in whose part of the web it lies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from crawler.urls import canonical, site_key
from storage.records import StoredSeed

#: Of the pages that no seed speaks for.
DEFAULT = 1.0


@dataclass(slots=True)
class _Site:
    """The importance of the seeds of a site, by URL and by directory; the first named counts."""

    urls: dict[str, float] = field(default_factory=dict)
    directories: dict[str, float] = field(default_factory=dict)

    def add(self, url: str, importance: float) -> None:
        self.urls.setdefault(url, importance)
        self.directories.setdefault(_directory(url), importance)

    def first(self) -> float:
        return next(iter(self.directories.values()))

    def of(self, url: str) -> float:
        """That of the URL itself, or else of the nearest directory above it."""
        if url in self.urls:
            return self.urls[url]
        directory = _directory(url)
        while directory not in self.directories and len(directory) > 1:
            directory = directory[: directory.rindex("/", 0, -1) + 1]
        return self.directories.get(directory, self.first())


def importances(
    urls: Sequence[str],
    host: NDArray[np.intp],
    origins: Sequence[str],
    seeds: Sequence[StoredSeed],
) -> NDArray[np.float64]:
    """(n,), the importance of each page; ``host`` are rows of ``origins``.

    A seed speaks for itself, and for the pages of its site (http, https and ``www.`` count as
    one). Of several on one site that one does whose directory is the longest on the page's path;
    where none is on it, the first of the list.
    """
    sites = _sites(seeds)
    of_host = [sites.get(site_key(place)) for place in origins]
    alone = [DEFAULT if site is None else site.first() for site in of_host]
    found = np.array(alone, np.float64)[host]
    shared = np.array([site is not None and len(site.urls) > 1 for site in of_host], np.bool_)
    for row in np.flatnonzero(shared[host]).tolist():
        site = of_host[host[row]]
        if site is not None:
            found[row] = site.of(urls[row])
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
    for seed in seeds:
        url = canonical(seed.root_url or seed.url)
        sites[site_key(url)].add(url, seed.importance)
    return dict(sites)


def _directory(url: str) -> str:
    """The path up to its last '/', as scope ``prefix`` has it."""
    path = _path(url)
    return path[: path.rindex("/") + 1]


def _path(url: str) -> str:
    return "/" + url.partition("?")[0].split("/", 3)[3]
