"""What a store has seen of one site, as the history from which covers are chosen."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import aiosqlite
import numpy as np

from freshet.crawler.commands.formats import require_readable
from freshet.crawler.commands.lookup import spellings
from freshet.crawler.commands.sources.other_sites import other_sites
from freshet.crawler.errors import CrawlError
from freshet.crawler.urls import site_key
from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.discovery.reveals import Reveals, Sightings
from freshet.storage.queries import link_columns, page
from freshet.storage.queries.link_columns import STAYS, SitePages
from freshet.storage.tables import hosts

_DAY_S: Final = 86_400.0
#: A step where nothing else is said, in days, from so many weeks on; before there are ten.
_WEEK, _WEEKS, _STEPS = 7.0, 4, 10
#: Before each of them every algorithm looks at all the others.
MOST_STEPS: Final = 1_000
#: An hour.
_SHORTEST: Final = 1 / 24


@dataclass(frozen=True, slots=True)
class SiteHistory:
    """The pages of a site, and its history in steps; times in Unix days.

    ``recrawls`` are what each step between two ``times`` brought: one less than there are times.
    ``new_sites`` are the other sites that were new in these steps, where those are looked for in
    the place of pages, with the day on which each was first seen.
    """

    site: str
    pages: SitePages
    sightings: Sightings
    times: Floats
    recrawls: list[Reveals]
    new_sites: dict[str, float] | None = None

    def alive(self, step: int) -> Bools:
        """Which of the pages found by then were there when a step began."""
        begin = float(self.times[step])
        known = int(np.searchsorted(self.sightings.found_at, begin, "right"))
        return self.pages.gone_at[:known] > begin * _DAY_S

    @property
    def alive_now(self) -> Bools:
        """Which of the pages were there when last looked at."""
        return np.asarray(self.pages.gone_at == STAYS, np.bool_)

    @property
    def new_per_day(self) -> float:
        """What was new since the first step began, for each day."""
        span = float(self.times[-1] - self.times[0]) if self.times.size else 0.0
        return sum(each.new for each in self.recrawls) / span if span else 0.0


async def read_site(
    db: Path, site: str, step: float | None, *, is_of_sites: bool = False
) -> SiteHistory:
    """What a store knows of a site (a host or URL); a ``step`` in days, or what suits it.

    ``is_of_sites``: what its steps brought are sites that no page had led to, not pages.

    Raises:
        CrawlError: the store knows no such site, or its past has too many steps of this length.
        StoreError: there is no such file, or it is not a store of this schema.
    """
    async with page.snapshot(db) as connection:
        await require_readable(connection, db)
        host_ids = await hosts_of(connection, db, site)
        pages = await link_columns.read(connection, host_ids)
        others = await other_sites(connection, host_ids, pages) if is_of_sites else None
    history = Sightings(
        pages.found_at / _DAY_S, pages.source, pages.target, pages.seen_at / _DAY_S,
        pages.look_page, pages.look_at / _DAY_S,
    )  # fmt: skip
    times = _times(history, step)
    windows = [history.between(a, b) for a, b in pairwise(times.tolist())]
    # A site that more than doubles in a step is crawled for the first time.
    first = next((n for n, each in enumerate(windows) if each.new <= each.old), len(windows))
    times, windows = times[first:], windows[first:]
    if others is None:
        return SiteHistory(site, pages, history, times, windows)
    return SiteHistory(
        site, pages, history, times, others.windows(history, times), others.since(times)
    )


async def hosts_of(connection: aiosqlite.Connection, db: Path, site: str) -> list[int]:
    """The ids of the hosts of a site (a host or URL).

    Raises:
        CrawlError: the store knows no such site.
    """
    keys = {site_key(url) for url in spellings(site)}
    known = await hosts.origins(connection)
    found = [number for number, origin in known.items() if site_key(f"{origin}/") in keys]
    if not found:
        raise CrawlError(f"{db}: knows no site {site}")
    return found


def _times(history: Sightings, step: float | None) -> Floats:
    """When the steps begin and end; the last ends with the last look."""
    if not history.look_at.size:
        return np.zeros(0)
    begin, end = float(history.look_at[0]), float(history.look_at[-1])
    suits = _WEEK if end - begin >= _WEEKS * _WEEK else max((end - begin) / _STEPS, _SHORTEST)
    length = step or suits
    steps = int((end - begin) / length + 1e-9)
    if steps > MOST_STEPS:
        raise CrawlError(
            f"--step {length:g}: {steps:,} steps in {end - begin:,.0f} days; at most {MOST_STEPS:,}"
        )
    if not steps:
        return np.array([end])
    return np.asarray(end - length * np.arange(steps, -1, -1), np.float64)
