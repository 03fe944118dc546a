"""The importance of a page: that of the seed in whose part of the web it lies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crawler.urls import canonical, site_key
from storage.records import StoredSeed

#: Of the pages that no seed speaks for.
DEFAULT = 1.0

#: The directories of the seeds of a site with their importance, in the order of the list.
_Directories: TypeAlias = list[tuple[str, float]]


def importances(
    urls: Sequence[str],
    host: NDArray[np.intp],
    origins: Sequence[str],
    seeds: Sequence[StoredSeed],
) -> NDArray[np.float64]:
    """(n,), the importance of each page; ``host`` are rows of ``origins``.

    A seed speaks for the pages of its site (http, https and ``www.`` count as one). Of
    several on one site that one does whose directory is the longest on the page's path; where
    none is on it, the first of the list.
    """
    sites = _sites(seeds)
    of_host = [sites.get(site_key(place), []) for place in origins]
    found = np.array([_alone(directories) for directories in of_host], np.float64)[host]
    shared = np.array([len(directories) > 1 for directories in of_host], np.bool_)[host]
    for row in np.flatnonzero(shared).tolist():
        found[row] = _nearest(urls[row], of_host[host[row]])
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


def _sites(seeds: Sequence[StoredSeed]) -> dict[str, _Directories]:
    sites: defaultdict[str, _Directories] = defaultdict(list)
    for seed in seeds:
        url = canonical(seed.root_url or seed.url)
        sites[site_key(url)].append((_directory(url), seed.importance))
    return dict(sites)


def _alone(directories: _Directories) -> float:
    return directories[0][1] if directories else DEFAULT


def _nearest(url: str, directories: _Directories) -> float:
    path = _path(url)
    holding = [each for each in directories if path.startswith(each[0])]
    return max(holding, key=lambda each: len(each[0]), default=directories[0])[1]


def _directory(url: str) -> str:
    """The path up to its last '/', as scope ``prefix`` has it."""
    path = _path(url)
    return path[: path.rindex("/") + 1]


def _path(url: str) -> str:
    return "/" + url.partition("?")[0].split("/", 3)[3]
