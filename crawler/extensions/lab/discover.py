"""Covers of a site's new pages: the chosen hub pages, why, and their yield in the past."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Final

import aiosqlite
import numpy as np

from freshet.crawler.admission.site_lists import spellings
from freshet.crawler.admission.traps import TrapLimits, classify
from freshet.crawler.errors import CrawlError
from freshet.crawler.run.upkeep import require_readable
from freshet.crawler.urls import site_key
from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.discovery.covers import (
    CoverRecord,
    RecrawlHistory,
    SiteSightings,
    greedy,
    judged,
)
from freshet.scheduler.discovery.reveal_graph import Reveals, Sightings, yields
from freshet.scheduler.discovery.thesis_covers import ALGORITHMS, Algorithm, clusters
from freshet.storage.queries import link_columns
from freshet.storage.queries import page as page_queries
from freshet.storage.queries.link_columns import STAYS, SitePages
from freshet.storage.tables import hosts, url_patterns
from freshet.storage.tables.url_patterns import PatternYield, Throttle

# -- other sites -------------------------------------------------------------
_DAY_S: Final = 86_400.0


async def other_sites(
    connection: aiosqlite.Connection, host_ids: Sequence[int], pages: SitePages, history: Sightings
) -> tuple[list[str], SiteSightings]:
    """Return the sites that the store does not crawl, and the links of some hosts' pages to them.

    Times are in Unix days; a site is first seen with the first link of any page of the store.
    """
    crawled = {_site(origin) for origin in (await hosts.origins(connection)).values()}
    first = await _first_links(connection)
    links = await _links_to_sites(connection, host_ids, pages, crawled)
    sites = sorted({site for _, site in links})
    number = {site: n for n, site in enumerate(sites)}
    return sites, SiteSightings(
        history,
        np.array([first[site] / _DAY_S for site in sites], np.float64),
        np.array([row for row, _ in links], np.int64),
        np.array([number[site] for _, site in links], np.int64),
        np.array([at / _DAY_S for at in links.values()], np.float64),
    )


async def _first_links(connection: aiosqlite.Connection) -> Mapping[str, float]:
    """Return when the first link to each site was seen, on any page of the store."""
    first: dict[str, float] = {}
    for origin, at in (await link_columns.first_seen(connection)).items():
        site = _site(origin)
        first[site] = min(first.get(site, inf), at)
    return first


async def _links_to_sites(
    connection: aiosqlite.Connection, host_ids: Sequence[int], pages: SitePages,
    crawled: Container[str],
) -> Mapping[tuple[int, str], float]:  # fmt: skip
    """Return when each page, by its row, was first seen to link to a site that is not crawled."""
    row_of = {int(page): row for row, page in enumerate(pages.page_id)}
    links: dict[tuple[int, str], float] = {}
    for page_id, origin, seen_at in await link_columns.read_offsite(connection, host_ids):
        site, row = _site(origin), row_of.get(page_id)
        if row is not None and site and site not in crawled:
            links[row, site] = min(links.get((row, site), inf), seen_at)
    return links


def _site(origin: str) -> str:
    """Return the site of an origin; an empty text if it is not a web address."""
    try:
        return site_key(f"{origin}/")
    except ValueError:
        return ""


def _since(sites: Sequence[str], first_at: Floats, times: Floats) -> dict[str, float]:
    """Return the sites that were first seen in these steps, oldest first."""
    if not times.size:
        return {}
    is_new = (times[0] < first_at) & (first_at <= times[-1])
    order = np.flatnonzero(is_new)[np.argsort(first_at[is_new], kind="stable")]
    return {sites[n]: float(first_at[n]) for n in order.tolist()}


# -- site history ------------------------------------------------------------
#: A step where nothing else is said, in days, from so many weeks on; before there are ten.
_WEEK, _WEEKS, _STEPS = 7.0, 4, 10
#: Before each of them every algorithm visits all the others.
MOST_STEPS: Final = 1_000
#: An hour.
_SHORTEST: Final = 1 / 24


@dataclass(frozen=True, slots=True)
class _SiteHistory:
    """The pages of a site, and its history in steps; times in Unix days.

    ``recrawls`` has one entry for each step between two ``times``. ``new_sites`` are the other
    sites that were new in these steps, with the day on which each was first seen, if sites are
    looked for instead of pages.
    """

    site: str
    pages: SitePages
    sightings: Sightings
    times: Floats
    recrawls: list[Reveals]
    new_sites: dict[str, float] | None = None

    def alive(self, step: int) -> Bools:
        """Return which of the pages found by then were alive at the start of a step."""
        begin = float(self.times[step])
        known = int(np.searchsorted(self.sightings.found_at, begin, "right"))
        return self.pages.gone_at[:known] > begin * _DAY_S

    @property
    def alive_now(self) -> Bools:
        """The pages that were alive at their last visit."""
        return np.asarray(self.pages.gone_at == STAYS, np.bool_)

    @property
    def new_per_day(self) -> float:
        """The new pages (or sites) per day since the first step began."""
        span = float(self.times[-1] - self.times[0]) if self.times.size else 0.0
        return sum(each.new for each in self.recrawls) / span if span else 0.0


async def read_site(
    db: Path, site: str, step: float | None, *, is_of_sites: bool = False
) -> _SiteHistory:
    """Read the history of a site (a host or URL) in steps of some days (None: a suitable length).

    ``is_of_sites``: a step reveals sites that no page had linked to, instead of pages.

    Raises:
        CrawlError: the store does not know the site, or its past has too many steps of this length.
    """
    async with page_queries.snapshot(db) as connection:
        await require_readable(connection, db)
        host_ids = await hosts_of(connection, db, site)
        pages = await link_columns.read(connection, host_ids)
        history = Sightings(
            found_at=pages.found_at / _DAY_S, source=pages.source, target=pages.target,
            seen_at=pages.seen_at / _DAY_S, visit_page=pages.visit_page,
            visit_at=pages.visit_at / _DAY_S,
        )  # fmt: skip
        others = await other_sites(connection, host_ids, pages, history) if is_of_sites else None
    times = _times(history, step)
    windows = [history.between(a, b) for a, b in pairwise(times.tolist())]
    # A site that more than doubles in a step is crawled for the first time.
    first = next((n for n, each in enumerate(windows) if each.new <= each.old), len(windows))
    times, windows = times[first:], windows[first:]
    if others is None:
        return _SiteHistory(site, pages, history, times, windows)
    sites, links = others
    windows = [links.between(a, b) for a, b in pairwise(times.tolist())]
    new_sites = _since(sites, links.first_at, times)
    return _SiteHistory(site, pages, history, times, windows, new_sites=new_sites)


async def hosts_of(connection: aiosqlite.Connection, db: Path, site: str) -> list[int]:
    """Return the ids of the hosts of a site (a host or URL)."""
    keys = {site_key(url) for url in spellings(site)}
    known = await hosts.origins(connection)
    found = [number for number, origin in known.items() if site_key(f"{origin}/") in keys]
    if not found:
        raise CrawlError(
            f"{db}: the store does not know the site {site}; `freshet crawl {site}` adds it"
        )
    return found


def _times(history: Sightings, step: float | None) -> Floats:
    """Return the bounds of the steps; the last step ends with the last visit."""
    if not history.visit_at.size:
        return np.zeros(0)
    begin, end = float(history.visit_at[0]), float(history.visit_at[-1])
    suits = _WEEK if end - begin >= _WEEKS * _WEEK else max((end - begin) / _STEPS, _SHORTEST)
    length = step or suits
    steps = int((end - begin) / length + 1e-9)
    if steps > MOST_STEPS:
        raise CrawlError(
            f"--step {length:g}: {steps:,} steps in {end - begin:,.0f} days, more than "
            f"{MOST_STEPS:,}; give a longer one"
        )
    if not steps:
        return np.array([end])
    return np.asarray(end - length * np.arange(steps, -1, -1), np.float64)


#: What the algorithms are set beside: one that knew, and one that visits all that ever paid.
KNEW: Final = "greedy with hindsight"
EVER: Final = "all hub pages"


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A page of a cover.

    ``share`` is the share of the site's new pages that it reveals (p_x), ``expected`` the number
    that it would reveal now, ``revealed`` the number so far. Pages of one ``cluster`` revealed
    nearly the same in the last step; None if the page revealed nothing then.
    """

    url: str
    role: str
    share: float
    expected: float
    revealed: int
    visits: int
    visited_at: float
    cluster: int | None


@dataclass(frozen=True, slots=True)
class Cover:
    """A cover, and the yield of all algorithms; ``past`` is empty without a history."""

    history: _SiteHistory
    algorithm: str
    budget: int
    pages: list[_Chosen]
    past: Mapping[str, CoverRecord]

    @property
    def orphans(self) -> int:
        """New pages to which no link led, which were found by other means."""
        return sum(each.orphans for each in self.history.recrawls)

    @property
    def new(self) -> int:
        """Pages that were found after the first crawl."""
        return sum(each.new for each in self.history.recrawls)


def cover_of(history: _SiteHistory, algorithm: str, budget: int) -> Cover:
    """Choose a cover of at most ``budget`` pages for the next step."""
    recrawls = history.recrawls
    past = RecrawlHistory(history.sightings.found_at.size, recrawls).of_living(history.alive_now)
    cover = ALGORITHMS[algorithm](past, budget)
    return Cover(
        history, algorithm, budget, _chosen(history, cover, past.fractions()),
        _judged(history, budget),
    )  # fmt: skip


def _judged(history: _SiteHistory, budget: int) -> Mapping[str, CoverRecord]:
    recrawls = history.recrawls
    if not any(each.new for each in recrawls[1:]):
        return {}
    alive = [history.alive(step) for step in range(len(recrawls))]
    found = {
        name: judged(recrawls, _choosing(choose, budget), alive)
        for name, choose in ALGORITHMS.items()
    }
    found[EVER] = judged(recrawls, lambda past, _now: past.ever(), alive)
    found[KNEW] = judged(recrawls, lambda _past, now: greedy(now, budget), alive)
    return found


def _choosing(choose: Algorithm, budget: int) -> Callable[[RecrawlHistory, Reveals], Ints]:
    return lambda past, _now: choose(past, budget)


def _chosen(history: _SiteHistory, cover: Ints, share: Floats) -> list[_Chosen]:
    visits, revealed = yields(history.sightings)
    if history.new_sites is not None:
        revealed = _revealed(history)
    pages, now = history.pages, float(history.times[-1]) if history.times.size else 0.0
    visited_at = history.sightings.visited_before(cover, np.full(cover.size, np.inf))
    cluster_of = _clusters(history, cover)
    return [
        _Chosen(
            url=pages.url[page], role=pages.role[page], share=float(share[page]),
            expected=float(share[page]) * history.new_per_day * max(now - float(at), 0.0),
            revealed=int(revealed[page]), visits=int(visits[page]) + 1, visited_at=float(at),
            cluster=cluster,
        )
        for page, at, cluster in zip(cover.tolist(), visited_at, cluster_of, strict=True)
    ]  # fmt: skip


def _revealed(history: _SiteHistory) -> Ints:
    """Count the new things that each page led to, in all steps."""
    found = np.zeros(history.sightings.found_at.size, np.int64)
    for each in history.recrawls:
        found[: each.old] += each.degrees
    return found


def _clusters(history: _SiteHistory, cover: Ints) -> list[int | None]:
    """Return the cluster of each page in the last step that found anything new."""
    last = next((each for each in reversed(history.recrawls) if each.members.size), None)
    if last is None:
        return [None] * cover.size
    of_set = clusters(last)
    sets = [int(last.set_of[page]) if page < last.old else -1 for page in cover.tolist()]
    return [int(of_set[number]) if number >= 0 else None for number in sets]


# -- throttled ---------------------------------------------------------------
#: URLs of one reason that are read for an example of each shape.
_EXAMPLES: Final = 5_000
_WHY: Final = {
    "session": "a session id tells them apart",
    "calendar": "a date alone tells them apart",
    "query": "they differ only in the values of their parameters",
    "feeds": "the limit of feeds for a site",
}
_WITHOUT_SHAPE: Final = {
    "nofollow": "all links to them are nofollow (crawl.follow_nofollow)",
    "depth": "they lie deeper than crawl.max_depth, or their site's",
    "never": "a table of sites says that they are never visited",
    "extension": "their ending is in fetch.excluded_extensions",
}


@dataclass(frozen=True, slots=True)
class HeldBackUrls:
    """URLs of a site that are held back; ``origins`` are by host id.

    ``yields`` are the results of the site's patterns, throttled or not.
    """

    site: str
    origins: dict[int, str]
    reach: dict[str, int]
    throttles: list[Throttle]
    yields: list[PatternYield]


async def throttled(db: Path, site: str) -> HeldBackUrls:
    """Read which URLs of a site (a host or URL) are held back."""
    async with page_queries.snapshot(db) as connection:
        await require_readable(connection, db)
        host_ids = await hosts_of(connection, db, site)
        origins = await hosts.origins(connection)
        return HeldBackUrls(
            site,
            {host_id: origins[host_id] for host_id in host_ids},
            await url_patterns.reach(connection, host_ids),
            await _with_examples(connection, await url_patterns.throttles(connection, host_ids)),
            await url_patterns.yields(connection, host_ids),
        )


def why(throttle: Throttle) -> str:
    """Say in a few words why URLs are held back."""
    if throttle.shape is None:
        return _WITHOUT_SHAPE.get(throttle.kind, throttle.kind)
    if throttle.kind == url_patterns.BY_PART and throttle.closed_at is not None:
        return f"{throttle.copies:,} or more pairs that differ in it alone show the same"
    if throttle.closed_at is not None:
        return f"{throttle.copies:,} of {throttle.crawled:,} read showed nothing of their own"
    kind = throttle.kind.removeprefix("trap: ")
    if kind == "path":
        return "endless depth"
    return f"{_WHY.get(kind, kind)}; the first {throttle.crawled:,} may be crawled"


def still(throttle: Throttle) -> str | None:
    """Say which of the held-back URLs are requested all the same, or None."""
    if throttle.closed_at is None:
        return None
    share = url_patterns.sampling(throttle.held)
    return f"one in {share:,} is visited ({throttle.sampled:,} so far)"


async def _with_examples(
    connection: aiosqlite.Connection, found: Sequence[Throttle]
) -> list[Throttle]:
    """Add to each one of the URLs that it holds back, if the first ones include any."""
    wanted = {(each.host_id, each.kind) for each in found if each.example is None and each.held}
    examples: dict[tuple[int, str, str | None], str] = {}
    for host_id, kind in sorted(wanted):
        urls = await url_patterns.held(connection, host_id, kind, _EXAMPLES)
        # What is past today may have been held back as a day to come.
        for today in (None, lambda: datetime.now(UTC).date()):
            for url in reversed(urls):
                sign = classify(url, TrapLimits(), today)
                examples[host_id, kind, sign.shape if sign is not None else None] = url
    return [
        replace(each, example=each.example or examples.get((each.host_id, each.kind, each.shape)))
        for each in found
    ]
