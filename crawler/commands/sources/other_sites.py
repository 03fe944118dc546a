"""The other sites to which the pages of a site led, and since when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Final

import aiosqlite
import numpy as np

from freshet.crawler.urls import site_key
from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.discovery.new_sites import SiteSightings
from freshet.scheduler.discovery.reveals import Reveals, Sightings
from freshet.storage.queries import link_columns
from freshet.storage.queries.link_columns import SitePages
from freshet.storage.tables import hosts

_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class OtherSites:
    """Links of a site to others; times in Unix days.

    Attributes:
        sites: those that the store does not crawl itself.
        first_at: when any page of the store first led to each.
        source, target, seen_at: a row for each page and site that it led to, and since when.
    """

    sites: Sequence[str]
    first_at: Floats
    source: Ints
    target: Ints
    seen_at: Floats

    def windows(self, pages: Sightings, times: Floats) -> list[Reveals]:
        """What each step between two times brought."""
        links = SiteSightings(pages, self.first_at, self.source, self.target, self.seen_at)
        return [links.between(start, end) for start, end in pairwise(times.tolist())]

    def since(self, times: Floats) -> dict[str, float]:
        """The sites that were first seen in these steps, the first one first."""
        if not times.size:
            return {}
        is_new = (times[0] < self.first_at) & (self.first_at <= times[-1])
        order = np.flatnonzero(is_new)[np.argsort(self.first_at[is_new], kind="stable")]
        return {self.sites[n]: float(self.first_at[n]) for n in order.tolist()}


async def other_sites(
    connection: aiosqlite.Connection, host_ids: Sequence[int], pages: SitePages
) -> OtherSites:
    """What is known of the sites to which pages of some hosts led out of scope."""
    crawled = {_site(origin) for origin in (await hosts.origins(connection)).values()}
    first: dict[str, float] = {}
    for origin, at in (await link_columns.first_seen(connection)).items():
        site = _site(origin)
        first[site] = min(first.get(site, inf), at)
    row_of = {int(page): row for row, page in enumerate(pages.page_id)}
    links: dict[tuple[int, str], float] = {}
    for link in await link_columns.read_offsite(connection, host_ids):
        site, row = _site(link.origin), row_of.get(link.page_id)
        if row is not None and site and site not in crawled:
            links[row, site] = min(links.get((row, site), inf), link.seen_at)
    sites = sorted({site for _, site in links})
    number = {site: n for n, site in enumerate(sites)}
    return OtherSites(
        sites,
        np.array([first[site] / _DAY_S for site in sites], np.float64),
        np.array([row for row, _ in links], np.int64),
        np.array([number[site] for _, site in links], np.int64),
        np.array([at / _DAY_S for at in links.values()], np.float64),
    )


def _site(origin: str) -> str:
    """The site of an origin; none of what is no web address."""
    try:
        return site_key(f"{origin}/")
    except ValueError:
        return ""
