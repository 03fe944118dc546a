"""What each page weighs: the site list's word, divided by links or depth, and shared by copies.

The site list (``daemon.importance = "list"``) says what a page of a site is worth. ``pagerank``
and ``depth`` divide that among the pages of the site, so that it is their mean; a page that was
found since counts as the least of its site. Near-duplicates share the importance of one page, and
so do all copies of a pattern of URLs that was closed, for it gives nothing but copies. What a rule
(``daemon.rules``) says holds as it is said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import aiosqlite
import numpy as np

from freshet.config.settings import Daemon
from freshet.crawler.commands.sources.importance import (
    DEFAULT,
    Importance,
    importances,
    shared,
    speaking,
)
from freshet.crawler.commands.sources.page_rules import ruling
from freshet.crawler.commands.sources.pagerank import pagerank
from freshet.crawler.urls import canonical, site_key
from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.sources import Rows
from freshet.storage.queries import link_columns
from freshet.storage.queries.link_columns import LinkedPages
from freshet.storage.records import StoredSeed
from freshet.storage.tables import hosts, near_duplicates, runs, url_patterns

_DIVIDING: Final = frozenset({"depth", "pagerank"})
#: A link deeper, a page is worth so much less.
_DEPTH_FACTOR: Final = 0.5
_DEEPEST: Final = 500
_DAY_HOURS: Final = 24.0


@dataclass(frozen=True, slots=True)
class Shares:
    """How the importance of sites is divided among their pages: 1 is the mean of a site.

    ``page_id`` ascends; ``least`` are the smallest shares by :func:`~crawler.urls.site_key`, which
    count for what has come after the id ``newest``. Sitemaps and feeds are as good as the mean.
    """

    page_id: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    share: Floats = field(default_factory=lambda: np.empty(0))
    least: Mapping[str, float] = field(default_factory=dict)
    newest: int = 0

    def of(self, page_id: Ints, host: Rows, origins: Sequence[str]) -> Floats:
        """(m,), the share of each page; ``host`` are rows of ``origins``."""
        least = np.array([self.least.get(site_key(place), 1.0) for place in origins])
        others = np.where(page_id > self.newest, least[host], 1.0)
        if not len(self.page_id):
            return others
        row = np.minimum(np.searchsorted(self.page_id, page_id), len(self.page_id) - 1)
        return np.where(self.page_id[row] == page_id, self.share[row], others)


@dataclass(frozen=True, slots=True)
class Weighing:
    """What is known at one moment of the importance of pages.

    ``by`` is ``daemon.importance``, ``representatives`` are by the ids of their duplicates.
    """

    by: str
    seeds: Sequence[StoredSeed]
    shares: Shares = field(default_factory=Shares)
    representatives: Mapping[int, int] = field(default_factory=dict)

    def importances(
        self, page_id: Ints, urls: Sequence[str], host: Rows, origins: Sequence[str]
    ) -> Floats:
        """(m,), what these pages weigh but for rules; ``host`` are rows of ``origins``.

        Near-duplicates share where their representative is among these pages.
        """
        own = self._of_sites(urls, host, origins) * self.shares.of(page_id, host, origins)
        return shared(own, page_id, self.representatives)

    def half_lives(self, page_id: Ints, urls: Sequence[str]) -> Floats:
        """(m,), the days in which what appears at these pages loses half of its worth; nan: unsaid.

        That is for the page of the line in the site list, where that has moved, too.
        """
        said = [
            (seed, seed.half_life_hours / _DAY_HOURS)
            for seed in self.seeds
            if seed.half_life_hours is not None
        ]
        if not said:
            return np.full(len(urls), np.nan)
        by_url = {canonical(seed.root_url or seed.url): days for seed, days in said}
        by_id = {seed.page_id: days for seed, days in said if seed.page_id is not None}
        found = np.array([by_url.get(url, np.nan) for url in urls], np.float64)
        for row in np.flatnonzero(np.isin(page_id, list(by_id))).tolist():
            found[row] = by_id[int(page_id[row])]
        return found

    def touched(self, before: Weighing) -> list[int] | None:
        """The ids of all pages that may weigh something else than ``before``; None: any may."""
        unlike = (self.by, list(self.seeds)) != (before.by, list(before.seeds))
        if unlike or self.by in _DIVIDING:
            return None
        both = self.representatives, before.representatives
        turned = {leader for _, leader in both[0].items() ^ both[1].items()}
        followers = {page for each in both for page, leader in each.items() if leader in turned}
        return sorted(turned | followers)

    def _of_sites(self, urls: Sequence[str], host: Rows, origins: Sequence[str]) -> Floats:
        if self.by == "constant":
            return np.full(len(urls), DEFAULT)
        return importances(urls, host, origins, self.seeds)

    def told(self, page_id: int, url: str, origin: str, value: float, daemon: Daemon) -> Importance:
        """Where the importance of a page comes from, which is this value."""
        rule = ruling(url, daemon.rules, "importance")
        if rule is not None:
            return Importance(value, "rule", rule.match)
        representative = self.representatives.get(page_id, page_id)
        group = sum(each == representative for each in self.representatives.values())
        if self.by == "constant":
            return Importance(value, "constant", near_duplicates=group)
        host = np.zeros(1, np.intp)
        seed = int(speaking([url], host, [origin], self.seeds)[0])
        share = self.shares.of(np.array([page_id]), host, [origin])
        return Importance(
            value,
            "default" if seed < 0 else "site list",
            None if seed < 0 else self.seeds[seed].text,
            DEFAULT if seed < 0 else self.seeds[seed].importance,
            None if self.by == "list" else self.by,
            float(share[0]),
            group,
        )


async def weigh(connection: aiosqlite.Connection, by: str) -> Weighing:
    """Weigh the pages of a store by what is known of them now; PageRank in a thread."""
    stored = await runs.load(connection)
    same = await near_duplicates.one_of_group(connection)
    endless = await url_patterns.representatives(connection)
    # Whoever follows a page that has come to follow another one follows that.
    same = {page: endless.get(leader, leader) for page, leader in same.items()} | endless
    return Weighing(by, stored, await _shares(connection, by), same)


async def _shares(connection: aiosqlite.Connection, by: str) -> Shares:
    if by not in _DIVIDING:
        return Shares()
    pages = await link_columns.pages(connection)
    if by == "depth":
        weights = _DEPTH_FACTOR ** np.minimum(pages.depth, _DEEPEST).astype(np.float64)
    else:
        source, target = await link_columns.links(connection, pages)
        weights = await asyncio.to_thread(pagerank, len(pages), source, target)
    host_ids, host = np.unique(pages.host_id, return_inverse=True)
    found = await hosts.load(connection, host_ids.tolist())
    origin_of = {each.host_id: each.origin for each in found}
    return divided(pages, weights, host, [origin_of[each] for each in host_ids.tolist()])


def divided(pages: LinkedPages, weights: Floats, host: Rows, origins: Sequence[str]) -> Shares:
    """The shares that pages of these weights have; ``host`` are rows of ``origins``."""
    codes: dict[str, int] = {}
    site = np.array([codes.setdefault(site_key(o), len(codes)) for o in origins], np.intp)[host]
    size, total = np.bincount(site), np.bincount(site, weights)
    share = weights * (size / total)[site]
    least = np.full(len(codes), np.inf)
    np.minimum.at(least, site, share)
    found = dict(zip(codes, least.tolist(), strict=True))
    return Shares(pages.page_id, share, found, newest=len(pages.row_of) - 1)
