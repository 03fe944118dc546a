"""The importance of a page: from ``[[sites]]``, the site list, links, depth or clicks.

The site list (``daemon.importance = "list"``) gives the importance of a site's pages. ``pagerank``,
``depth`` and ``opened`` distribute that importance over the pages of the site, so that it is their
mean. Pages found later get the median of their section; under ``pagerank`` and ``depth`` they also
get at least the median of older pages for their first month, because few links lead to them yet.

The representative of a near-duplicate group keeps its importance. Each other page gets that
importance divided by the pages of the group, so that all together weigh less than two pages. The
copies under a closed URL pattern share the importance of one page. A value in ``[[sites]]`` is used
unchanged.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import isnan
from typing import Final, Protocol, TypeAlias

import aiosqlite
import numpy as np
from numpy.typing import NDArray

from freshet.config.settings import Ephemeral, SiteSettings
from freshet.config.sites import Sites
from freshet.crawler.run.pagerank import ranked
from freshet.crawler.urls import canonical, site_key
from freshet.entry_points import loaded
from freshet.scheduler.arrays import Bools, Floats, Ints, rows_among
from freshet.scheduler.ephemeral.openings import NOTHING, LearntItems, learned
from freshet.scheduler.queue.page_rules import PageRules
from freshet.scheduler.sources import AREAS, Rows
from freshet.storage.database import Database
from freshet.storage.queries import link_columns
from freshet.storage.records import StoredSeed
from freshet.storage.tables import hosts, runs, url_patterns
from freshet.storage.tables import near_duplicates as near_duplicates_tables

#: Importance of pages without a seed.
DEFAULT = 1.0
_ORIGINS = {"browser": "set in a browser for", "table": "set in the file for"}
_NAMES = {"pagerank": "PageRank", "opened": "opens"}


#: Returns the click-through rates of pages, given their ids and URLs.
Appeals: TypeAlias = Callable[[Sequence[int], Sequence[str]], Floats]
#: Entry points of :class:`Interests`; the first one is used.
INTERESTS: Final = "freshet.interests"


class Interests(Protocol):
    """Learns the value of pages to readers: a module with these functions, or an object."""

    async def appeals(self, db: aiosqlite.Connection) -> Appeals | None:
        """Return a function for the click-through rates of pages, or None if they are unknown."""

    async def marks(self, db: aiosqlite.Connection) -> Mapping[int, float]:
        """Return factors on the importance of pages, by page id."""

    async def told(
        self, db: aiosqlite.Connection, page_id: int, host_id: int, now: float, *, decides: bool
    ) -> str | None:
        """Describe what is known of a page in a sentence; ``decides``: marks change importance."""

    async def judge_next(self, database: Database, now: float) -> None:
        """Judge the next marks, if it is time."""

    async def items(self, db: aiosqlite.Connection) -> tuple[Ints, Floats, Floats, Bools] | None:
        """Return data (j,) on the shown items of ephemeral sources, or None without any click.

        These are the page ids of the sources, the ages in seconds, the probabilities that the items
        were seen, and whether they were clicked.
        """


def interests() -> Interests | None:
    """Return the extension that learns from readers, or None."""
    return next(iter(loaded(INTERESTS).values()), None)


class ListedPage(Protocol):
    """A page in a list, such as the page of an alert."""

    @property
    def page_id(self) -> int:
        """The page id."""

    @property
    def url(self) -> str:
        """The URL of the page."""

    @property
    def origin(self) -> str:
        """The origin of its host."""


#: Returns the importance of these pages.
Importances: TypeAlias = Callable[[Sequence[ListedPage]], Awaitable[Sequence[float]]]


@dataclass(frozen=True, slots=True)
class Importance:
    """A page's importance μ, and its origin.

    Attributes:
        value: μ.
        origin: ``table`` (a ``[[sites]]`` table), ``browser`` (a setting made there),
            ``site list``, ``constant``, or ``default`` for a page without a seed.
        source: the ``match`` of the table, or the line of the site list.
        site: the importance that the site list gives to the page's part of its site.
        divided_by: ``depth``, ``pagerank`` or ``opened``, if that distributes the site's
            importance.
        share: the page's share in that, as a multiple of the site's mean.
        near_duplicates: the number of other pages in its group of near-duplicates or copies.
        is_whole: whether it keeps its importance in that group.
        valued: the importance at the daemon's last valuation, if a table or a browser sets it now.
    """

    value: float
    origin: str
    source: str | None = None
    site: float = DEFAULT
    divided_by: str | None = None
    share: float = 1.0
    near_duplicates: int = 0
    is_whole: bool = False
    valued: float | None = None

    def said(self) -> str:
        """Describe the origin in words."""
        origin = _ORIGINS.get(self.origin, self.origin)
        words = [f"{origin} “{self.source}”" if self.source is not None else origin]
        if self.divided_by is not None:
            by = _NAMES.get(self.divided_by, self.divided_by)
            words = [f"{words[0]}: {self.site:g}", f"by {by} {self.share:.3g} times that"]
        if self.near_duplicates:
            pages = "page" if self.near_duplicates == 1 else "pages"
            counted = f"{self.near_duplicates} {pages} with nearly the same text"
            words.append(f"{'whole beside' if self.is_whole else 'shared with'} {counted}")
        if self.valued not in {None, self.value}:
            words.append(f"{self.valued:.3g} when the daemon last valued the page")
        return ", ".join(words)


@dataclass(slots=True)
class _Site:
    """The seeds of a site (rows), by URL and by directory; the first one counts."""

    urls: dict[str, int] = field(default_factory=dict)
    directories: dict[str, int] = field(default_factory=dict)

    def add(self, url: str, seed: int) -> None:
        self.urls.setdefault(url, seed)
        self.directories.setdefault(_directory(url), seed)

    def first(self) -> int:
        return next(iter(self.directories.values()))

    def of(self, url: str) -> int:
        """Return the seed of the URL itself, or of the nearest directory above it."""
        if url in self.urls:
            return self.urls[url]
        directory = _directory(url)
        while directory not in self.directories and len(directory) > 1:
            directory = directory[: directory.rindex("/", 0, -1) + 1]
        return self.directories.get(directory, self.first())


def seed_rows(
    urls: Sequence[str], host: NDArray[np.intp], origins: Sequence[str], seeds: Sequence[StoredSeed]
) -> NDArray[np.intp]:
    """Return (n,), the row of each page's seed, or −1; ``host`` are rows of ``origins``.

    A seed covers the pages of its site (http, https and ``www.`` count as one). Of several seeds of
    a site, the one with the longest directory on the page's path covers the page, or else the first
    in the list.
    """
    sites: defaultdict[str, _Site] = defaultdict(_Site)
    for row, seed in enumerate(seeds):
        url = canonical(seed.root_url or seed.url)
        sites[site_key(url)].add(url, row)
    of_host = [sites.get(site_key(place)) for place in origins]
    alone = [-1 if site is None else site.first() for site in of_host]
    found = np.array(alone, np.intp)[host]
    several = np.array([site is not None and len(site.urls) > 1 for site in of_host], np.bool_)
    for row in np.flatnonzero(several[host]).tolist():
        site = of_host[host[row]]
        if site is not None:
            found[row] = site.of(urls[row])
    return found


def shared(
    importance: NDArray[np.float64], page_id: NDArray[np.int64], representatives: Mapping[int, int]
) -> NDArray[np.float64]:
    """Return (n,), the importances with a reduced share for near-duplicates.

    ``representatives`` maps duplicates to representatives, by id. A representative keeps its
    importance. Each duplicate gets that importance divided by the pages of the group, so that it is
    still visited now and then: it may cease to be a duplicate. A representative that is also a key
    is a copy, and gets no more than the others.
    """
    if not representatives:
        return importance
    rows = {page: row for row, page in enumerate(page_id.tolist())}
    leader = np.arange(len(page_id))
    for page, representative in representatives.items():
        if page in rows and representative in rows:
            leader[rows[page]] = rows[representative]
    size = np.bincount(leader, minlength=len(page_id))
    part: NDArray[np.float64] = importance[leader] / size[leader]
    follows = (leader != np.arange(len(page_id))) | np.isin(page_id, list(representatives))
    return np.where(follows, part, importance)


def _directory(url: str) -> str:
    """Return the path up to its last '/', like scope ``prefix``."""
    path = "/" + url.partition("?")[0].split("/", 3)[3]
    return path[: path.rindex("/") + 1]


# -- weighing ----------------------------------------------------------------

_DIVIDING: Final = frozenset({"depth", "pagerank", "opened"})
#: Factor on the importance per link of depth.
_DEPTH_FACTOR: Final = 0.5
_DEEPEST: Final = 500
#: Fewest pages of a section for a median.
_FEWEST: Final = 3
#: Days for which few links do not count against a page, and days of a site's first crawl.
_YOUNG_DAYS: Final = 30.0
_FIRST_DAYS: Final = 7.0
_DAY_HOURS: Final = 24.0
_DAY_S: Final = 86_400.0


#: Returns (m,), the share of pages in their sites' importance, with mean 1 per site; given page
#: ids, URLs, hosts (rows) and origins.
Shares: TypeAlias = Callable[[Ints, Sequence[str], Rows, Sequence[str]], Floats]


def _even(page_id: Ints, _urls: Sequence[str], _host: Rows, _origins: Sequence[str]) -> Floats:
    return np.ones(len(page_id))


@dataclass(frozen=True, slots=True)
class ImportanceData:
    """The data on the importance of pages at one moment.

    ``by`` is ``daemon.importance``. ``representatives`` maps duplicates to representatives, by id.
    ``marks`` are factors on the importance of pages, by id.
    """

    by: str
    seeds: Sequence[StoredSeed]
    shares: Shares = _even
    representatives: Mapping[int, int] = field(default_factory=dict)
    marks: Mapping[int, float] = field(default_factory=dict)

    def importances(
        self, page_id: Ints, urls: Sequence[str], host: Rows, origins: Sequence[str]
    ) -> Floats:
        """Return (m,), the importance without ``[[sites]]``; ``host`` are rows of ``origins``.

        Near-duplicates are reduced if their representative is among these pages.
        """
        own = np.full(len(urls), DEFAULT)
        if self.by != "constant":
            values = np.array([seed.importance for seed in self.seeds] + [DEFAULT])
            own = values[seed_rows(urls, host, origins, self.seeds)]
        own = own * self.shares(page_id, urls, host, origins)
        if self.marks:
            own = own * np.array([self.marks.get(page, 1.0) for page in page_id.tolist()])
        return shared(own, page_id, self.representatives)

    def half_lives(self, page_id: Ints, urls: Sequence[str]) -> Floats:
        """Return (m,), the half-lives in days of the value of these pages' items, or nan.

        The site list gives it for the page of its line, even after a move of that page.
        """
        given = [
            (seed, seed.half_life_hours / _DAY_HOURS)
            for seed in self.seeds
            if seed.half_life_hours is not None
        ]
        if not given:
            return np.full(len(urls), np.nan)
        by_url = {canonical(seed.root_url or seed.url): days for seed, days in given}
        by_id = {seed.page_id: days for seed, days in given if seed.page_id is not None}
        found = np.array([by_url.get(url, np.nan) for url in urls], np.float64)
        for row in np.flatnonzero(np.isin(page_id, list(by_id))).tolist():
            found[row] = by_id[int(page_id[row])]
        return found

    def touched(self, before: ImportanceData) -> list[int] | None:
        """Return the ids of pages whose importance may differ from ``before``; None: all may."""
        unlike = (self.by, list(self.seeds)) != (before.by, list(before.seeds))
        if unlike or self.by in _DIVIDING:
            return None
        both = self.representatives, before.representatives
        turned = {leader for _, leader in both[0].items() ^ both[1].items()}
        followers = {page for each in both for page, leader in each.items() if leader in turned}
        marked = {page for page, _ in self.marks.items() ^ before.marks.items()}
        return sorted(turned | followers | marked)


async def weigh(
    connection: aiosqlite.Connection, by: str, marks: Mapping[int, float] | None = None
) -> ImportanceData:
    """Compute the importance of a store's pages; PageRank runs in a thread."""
    stored = await runs.load(connection)
    same = await near_duplicates_tables.one_of_group(connection)
    endless = await url_patterns.representatives(connection)
    # If a representative represents another page's copy, its followers follow that page.
    same = {page: endless.get(leader, leader) for page, leader in same.items()} | endless
    return ImportanceData(by, stored, await _shares(connection, by), same, marks or {})


async def _appeals(connection: aiosqlite.Connection) -> Appeals | None:
    readers = interests()
    return None if readers is None else await readers.appeals(connection)


async def _sites_of(connection: aiosqlite.Connection, host_id: Ints) -> tuple[Rows, dict[str, int]]:
    """Return the site codes (n,) of these hosts, and the codes by site."""
    host_ids, host = np.unique(host_id, return_inverse=True)
    origin_of = {it.host_id: it.origin for it in await hosts.load(connection, host_ids.tolist())}
    sites: dict[str, int] = {}
    site = [sites.setdefault(site_key(origin_of[each]), len(sites)) for each in host_ids.tolist()]
    return np.array(site, np.intp)[host], sites


def _young(pages: link_columns.LinkedPages, of_site: Rows, sites: int) -> Bools:
    """Return (n,), which pages are new, except those of a site's first crawl."""
    first = np.full(sites, np.inf)
    np.minimum.at(first, of_site, pages.found_at)
    found: Bools = pages.found_at > np.maximum(
        pages.last_visit_at - _YOUNG_DAYS * _DAY_S, first[of_site] + _FIRST_DAYS * _DAY_S
    )
    return found


async def _shares(connection: aiosqlite.Connection, by: str) -> Shares:
    if by not in _DIVIDING:
        return _even
    pages = await link_columns.pages(connection)
    appeals = await _appeals(connection) if by == "opened" else None
    if by == "opened" and appeals is None:
        return _even
    codes: dict[str, int] = {}
    sections, weights = np.zeros(len(pages), np.intp), np.ones(len(pages))
    async for found in link_columns.urls(connection):
        ids, urls = zip(*found, strict=True)
        row, is_known = rows_among(pages.page_id, np.array(ids))
        sections[row] = (await asyncio.to_thread(_codes, urls, codes))[is_known]
        if appeals is not None:
            weights[row] = (await asyncio.to_thread(appeals, ids, urls))[is_known]
    if by == "depth":
        weights = _DEPTH_FACTOR ** np.minimum(pages.depth, _DEEPEST).astype(np.float64)
    elif by == "pagerank":
        linked, ranks = await ranked(connection)
        row, is_known = rows_among(linked.page_id, pages.page_id)
        weights[is_known] = ranks[row]
    of_site, sites = await _sites_of(connection, pages.host_id)
    young = np.zeros(len(pages), np.bool_) if by == "opened" else _young(pages, of_site, len(sites))
    work = partial(divided, known=pages.page_id, newest=len(pages.row_of) - 1)
    return await asyncio.to_thread(work, weights, (sections, codes), (of_site, sites), young)


def _codes(urls: Sequence[str], codes: dict[str, int]) -> Rows:
    """Return (m,), the section codes of pages; new sections get new codes."""
    return np.array([codes.setdefault(section(url), len(codes)) for url in urls], np.intp)


def section(url: str) -> str:
    """Return the section of a page: its site, and the first two directories with numbers as '#'.

    >>> section("https://www.example.org/2026/news/11/a.html")
    'example.org/#/news'
    """
    return _section_of(url.partition("?")[0].rpartition("/")[0])


@lru_cache(maxsize=1 << 14)
def _section_of(directory: str) -> str:
    parts = directory.split("/")[3:][:2]
    return "/".join([site_key(f"{directory}/"), *(_DIGITS.sub("#", each) for each in parts)])


#: Codes of pages (n,), and the codes by name.
_Coded: TypeAlias = tuple[Rows, Mapping[str, int]]


def divided(
    weights: Floats, sections: _Coded, sites: _Coded, young: Bools, *, known: Ints, newest: int
) -> Shares:
    """Return the shares by the weights (n,) of ``known`` pages, whose ids ascend.

    A page with an id above ``newest`` gets the median of its section, or of its site if the section
    has fewer than three pages. A ``young`` page (n,) gets at least the median of older pages. So
    neither is visited late for being new. Sitemaps and feeds get the mean.
    """
    (section_of, names), (site_of, site_names) = sections, sites
    grown = _medians(section_of[~young], weights[~young], len(names), _FEWEST)
    weights = np.where(young, np.fmax(weights, grown[section_of]), weights)
    share = weights / (np.bincount(site_of, weights) / np.bincount(site_of))[site_of]
    in_section = _medians(section_of, share, len(names), _FEWEST).tolist()
    median_of = {name: in_section[k] for name, k in names.items() if not isnan(in_section[k])}
    in_site = _medians(site_of, share, len(site_names), 1).tolist()

    def shares(page_id: Ints, urls: Sequence[str], host: Rows, origins: Sequence[str]) -> Floats:
        found = np.ones(len(page_id))
        row, is_known = rows_among(known, page_id)
        found[is_known] = share[row]
        codes = [site_names.get(site_key(origin)) for origin in origins]
        of_host = [1.0 if code is None else in_site[code] for code in codes]
        for k in np.flatnonzero(page_id > newest).tolist():
            found[k] = median_of.get(section(urls[k]), of_host[host[k]])
        return found

    return shares


def _medians(group: Rows, values: Floats, groups: int, fewest: int) -> Floats:
    """Return (groups,), the median of each group; nan for a group of fewer than ``fewest``."""
    ordered, size = values[np.lexsort((values, group))], np.bincount(group, minlength=groups)
    found, enough, first = np.full(groups, np.nan), size >= fewest, np.cumsum(size) - size
    low, high = (first + (size - 1) // 2)[enough], (first + size // 2)[enough]
    found[enough] = (ordered[low] + ordered[high]) / 2
    return found


async def learnt_items(connection: aiosqlite.Connection, ephemeral: Ephemeral) -> LearntItems:
    """Return what clicks teach of the items of ephemeral sources; nothing without clicks."""
    readers = interests()
    shown = None if readers is None else await readers.items(connection)
    if shown is None:
        return NOTHING
    source, age_s, view, opened = shown
    age = np.maximum(age_s, 0.0) / _DAY_S
    work = partial(learned, half_life=ephemeral.half_life_hours / _DAY_HOURS)
    return await asyncio.to_thread(work, source, age, view, opened)


# -- tables of sites ---------------------------------------------------------


def terms(
    urls: Sequence[str],
    area: Rows,
    importance: Floats,
    sites: Sites,
    half_life_days: Floats | None = None,
) -> PageRules:
    """Return the rules of pages of these importances, by the most specific tables of ``sites``.

    ``half_life_days`` (m,) are the values of the site list.
    """
    n = len(urls)
    found = PageRules(
        area=area, importance=importance.copy(), never=np.zeros(n, np.bool_),
        least_days=np.zeros(n), most_days=np.full(n, np.inf),
        half_life_days=np.full(n, np.nan) if half_life_days is None else half_life_days.copy(),
        complete=np.zeros(n, np.bool_),
    )  # fmt: skip
    if not sites:
        return found
    for row, url in enumerate(urls):
        # From the least to the most specific table, which overrides.
        for table in reversed(sites.matching(url)):
            for term in ("importance", "never", "least_days", "most_days"):
                if (value := getattr(table, term)) is not None:
                    getattr(found, term)[row] = value
            _declare(found.half_life_days, row, table)
            if table.signals is not None:
                found.complete[row] = table.signals == "complete"
    return found


def _declare(half_life: Floats, row: int, table: SiteSettings) -> None:
    """Set the half-life that a table declares for an ephemeral source."""
    if table.ephemeral is False:
        half_life[row] = 0.0
    elif table.half_life_hours is not None:
        half_life[row] = table.half_life_hours / _DAY_HOURS
    elif table.ephemeral and not 0 < half_life[row] < np.inf:
        # A less specific table, or the site list, may have set the half-life.
        half_life[row] = np.inf


# -- areas -------------------------------------------------------------------

_DIGITS = re.compile(r"\d+")


class Areas:
    """The areas of sites, numbered: the directories below a site's first page.

    Sites are rebuilt or moved by area. Areas are numbered in the order of their first pages; those
    beyond the limit share the last number. The same URLs in the same order give the same numbers.

    Attributes:
        roots: for each origin, the directory of its first page.
        codes: for each origin, the numbers of its areas.
    """

    def __init__(self) -> None:
        self.roots: dict[str, str] = {}
        self.codes: dict[str, dict[str, int]] = {}

    def __call__(self, urls: Sequence[str]) -> Rows:
        """Return (m,), the area of each page within its site."""
        return np.array([self._code(url) for url in urls], np.intp)

    def _code(self, url: str) -> int:
        scheme, _, host, path = url.split("?", maxsplit=1)[0].split("/", 3)
        origin = f"{scheme}//{host}"
        root = self.roots.setdefault(origin, path[: path.rfind("/") + 1])
        inside, slash, _ = path.removeprefix(root).partition("/")
        area = _DIGITS.sub("#", inside) if slash and path.startswith(root) else ""
        codes = self.codes.setdefault(origin, {})
        return codes.setdefault(area, min(len(codes), AREAS - 1))
