"""The importance of a page: by table of sites, by site list, by links or depth.

The site list (``daemon.importance = "list"``) gives the importance of a site's pages. ``pagerank``,
``depth`` and ``opened`` divide that among the pages of the site, so that it is their mean; a page
that was found since counts as the median of its section, and by links and depth as no less for its
first month, for few lead to it yet. Of near-duplicates the representative keeps its importance; the
others each get that, divided by the pages of the group, so that all together weigh less than two
pages. The copies of a pattern of URLs that was closed divide the importance of one, for it gives
only copies. The value of a table of sites (``[[sites]]``) holds unchanged.
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
_SAID = {"browser": "set in a browser for", "table": "set in the file for"}
_NAMES = {"pagerank": "PageRank", "opened": "opens"}


#: Gives the appeal of pages, by their ids and URLs.
Appeals: TypeAlias = Callable[[Sequence[int], Sequence[str]], Floats]
#: Entry points that give :class:`Interests`; the first one is used.
INTERESTS: Final = "freshet.interests"


class Interests(Protocol):
    """Learns from readers what pages are worth to them: a module, or an object."""

    async def appeals(self, db: aiosqlite.Connection) -> Appeals | None:
        """Return a function of ids and URLs of pages that gives their appeal; None: not known."""

    async def marks(self, db: aiosqlite.Connection) -> Mapping[int, float]:
        """Return factors of the importances of pages, by their ids."""

    async def told(
        self, db: aiosqlite.Connection, page_id: int, host_id: int, now: float, *, decides: bool
    ) -> str | None:
        """Say in a sentence what is known of a page; ``decides``: marks count."""

    async def judge_next(self, database: Database, now: float) -> None:
        """Judge what is to be judged anew, if it is time."""

    async def items(self, db: aiosqlite.Connection) -> tuple[Ints, Floats, Floats, Bools] | None:
        """Return of the items of sources that were shown (j,) each, None without any opening.

        They are the ids of the sources, the ages in seconds, the probabilities that the items were
        seen, and whether they were opened.
        """


def interests() -> Interests | None:
    """Return what learns from readers, if an extension does."""
    return next(iter(loaded(INTERESTS).values()), None)


class ListedPage(Protocol):
    """A page of a list, such as one that an alert is about."""

    @property
    def page_id(self) -> int:
        """Its number."""

    @property
    def url(self) -> str:
        """The URL of the page."""

    @property
    def origin(self) -> str:
        """The origin of its host."""


#: Returns how much each of these pages is worth.
Importances: TypeAlias = Callable[[Sequence[ListedPage]], Awaitable[Sequence[float]]]


@dataclass(frozen=True, slots=True)
class Importance:
    """A page's importance μ, and its origin.

    Attributes:
        value: μ.
        origin: ``table`` (one of ``[[sites]]``), ``browser`` (one that was set there),
            ``site list``, ``constant``, or ``default`` for a page without a seed.
        source: the ``match`` of the table, or the line of the site list.
        site: the importance that the site list gives the page's part of its site.
        divided_by: ``depth``, ``pagerank`` or ``opened``, where that divides the importance of a
            site.
        share: the factor of that division, as a multiple of the mean of its site.
        near_duplicates: the other pages of its group of near-duplicates, or of copies.
        is_whole: whether it keeps its importance beside them.
        valued: what the daemon took at its last valuation, where a table or a browser sets it.
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
        origin = _SAID.get(self.origin, self.origin)
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
    """The rows of the seeds of a site, by URL and by directory; the first named counts."""

    urls: dict[str, int] = field(default_factory=dict)
    directories: dict[str, int] = field(default_factory=dict)

    def add(self, url: str, seed: int) -> None:
        self.urls.setdefault(url, seed)
        self.directories.setdefault(_directory(url), seed)

    def first(self) -> int:
        return next(iter(self.directories.values()))

    def of(self, url: str) -> int:
        """Return the row of the URL itself, or else of the nearest directory above it."""
        if url in self.urls:
            return self.urls[url]
        directory = _directory(url)
        while directory not in self.directories and len(directory) > 1:
            directory = directory[: directory.rindex("/", 0, -1) + 1]
        return self.directories.get(directory, self.first())


def speaking(
    urls: Sequence[str], host: NDArray[np.intp], origins: Sequence[str], seeds: Sequence[StoredSeed]
) -> NDArray[np.intp]:
    """Return (n,), the row of each page's seed, or −1; ``host`` are rows of ``origins``.

    A seed covers itself, and the pages of its site (http, https and ``www.`` count as
    one). Of several on one site the one with the longest directory on the page's path counts;
    where none is on it, the first of the list.
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
    """Return (n,), the importances where near-duplicates weigh little beside one page.

    ``representatives`` by the ids of their duplicates. A representative keeps its importance. Each
    of its duplicates gets that, divided by the pages of the group, so that it is still visited now
    and then: it may cease to be a duplicate. A representative that is a key, too, is a mere copy,
    and gets no more than the others.
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
    """Return the path up to its last '/', as scope ``prefix`` has it."""
    path = "/" + url.partition("?")[0].split("/", 3)[3]
    return path[: path.rindex("/") + 1]


# -- weighing ----------------------------------------------------------------

_DIVIDING: Final = frozenset({"depth", "pagerank", "opened"})
#: Factor of importance for each link deeper.
_DEPTH_FACTOR: Final = 0.5
_DEEPEST: Final = 500
#: Pages of a section whose median counts.
_FEWEST: Final = 3
#: For which links do not count against a page, and in which a site is found at first.
_YOUNG_DAYS: Final = 30.0
_FIRST_DAYS: Final = 7.0
_DAY_HOURS: Final = 24.0
_DAY_S: Final = 86_400.0


#: Returns (m,), the share of pages in the importance of their sites, 1 on the mean of a site, by
#: page id, URL and host; these are rows of the origins.
Shares: TypeAlias = Callable[[Ints, Sequence[str], Rows, Sequence[str]], Floats]


def _even(page_id: Ints, _urls: Sequence[str], _host: Rows, _origins: Sequence[str]) -> Floats:
    return np.ones(len(page_id))


@dataclass(frozen=True, slots=True)
class ImportanceData:
    """The data on the importance of pages at one moment.

    ``by`` is ``daemon.importance``, ``representatives`` are by the ids of their duplicates;
    ``marks`` multiply the importances of pages, by their ids.
    """

    by: str
    seeds: Sequence[StoredSeed]
    shares: Shares = _even
    representatives: Mapping[int, int] = field(default_factory=dict)
    marks: Mapping[int, float] = field(default_factory=dict)

    def importances(
        self, page_id: Ints, urls: Sequence[str], host: Rows, origins: Sequence[str]
    ) -> Floats:
        """Return (m,), these pages' importance without tables; ``host`` are rows of ``origins``.

        Near-duplicates share where their representative is among these pages.
        """
        own = np.full(len(urls), DEFAULT)
        if self.by != "constant":
            values = np.array([seed.importance for seed in self.seeds] + [DEFAULT])
            own = values[speaking(urls, host, origins, self.seeds)]
        own = own * self.shares(page_id, urls, host, origins)
        if self.marks:
            own = own * np.array([self.marks.get(page, 1.0) for page in page_id.tolist()])
        return shared(own, page_id, self.representatives)

    def half_lives(self, page_id: Ints, urls: Sequence[str]) -> Floats:
        """Return (m,), the days in which items of these pages lose half of their worth, or nan.

        The site list gives it for the page of its line, also where that has moved.
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

    def touched(self, before: ImportanceData) -> list[int] | None:
        """Return the ids of pages whose importance may differ from ``before``; None: any may."""
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
    """Weigh the pages of a store by its current data; PageRank in a thread."""
    stored = await runs.load(connection)
    same = await near_duplicates_tables.one_of_group(connection)
    endless = await url_patterns.representatives(connection)
    # Whoever follows a page that has come to follow another one follows that.
    same = {page: endless.get(leader, leader) for page, leader in same.items()} | endless
    return ImportanceData(by, stored, await _shares(connection, by), same, marks or {})


async def _appeals(connection: aiosqlite.Connection) -> Appeals | None:
    readers = interests()
    return None if readers is None else await readers.appeals(connection)


async def _sites_of(connection: aiosqlite.Connection, host_id: Ints) -> tuple[Rows, dict[str, int]]:
    """Return the codes of the sites of these hosts, (n,), and the codes by site."""
    host_ids, host = np.unique(host_id, return_inverse=True)
    origin_of = {it.host_id: it.origin for it in await hosts.load(connection, host_ids.tolist())}
    sites: dict[str, int] = {}
    site = [sites.setdefault(site_key(origin_of[each]), len(sites)) for each in host_ids.tolist()]
    return np.array(site, np.intp)[host], sites


def _young(pages: link_columns.LinkedPages, of_site: Rows, sites: int) -> Bools:
    """Return (n,), which pages are new: what was there at a site's first crawl is not."""
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
    """Return (m,), the codes of the sections of pages; new ones are added."""
    return np.array([codes.setdefault(section(url), len(codes)) for url in urls], np.intp)


def section(url: str) -> str:
    """Return the section of a page: its site, and the first two directories without numbers.

    >>> section("https://www.example.org/2026/news/11/a.html")
    'example.org/#/news'
    """
    return _section_of(url.partition("?")[0].rpartition("/")[0])


@lru_cache(maxsize=1 << 14)
def _section_of(directory: str) -> str:
    parts = directory.split("/")[3:][:2]
    return "/".join([site_key(f"{directory}/"), *(_DIGITS.sub("#", each) for each in parts)])


#: Codes of pages (n,), and these by name.
_Coded: TypeAlias = tuple[Rows, Mapping[str, int]]


def divided(
    weights: Floats, sections: _Coded, sites: _Coded, young: Bools, *, known: Ints, newest: int
) -> Shares:
    """Return the shares by these weights (n,) of the ``known`` pages, whose ids ascend.

    A page with an id above ``newest`` counts as the median of its section, or of its site where
    that has fewer than three pages, and a ``young`` one (n,) as no less than the others' median, so
    that neither is visited late for being new; sitemaps and feeds count as the mean.
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
    """Return (groups,), the median of the values of each group; nan: it has fewer than these."""
    ordered, size = values[np.lexsort((values, group))], np.bincount(group, minlength=groups)
    found, enough, first = np.full(groups, np.nan), size >= fewest, np.cumsum(size) - size
    low, high = (first + (size - 1) // 2)[enough], (first + size // 2)[enough]
    found[enough] = (ordered[low] + ordered[high]) / 2
    return found


async def learnt_items(connection: aiosqlite.Connection, said: Ephemeral) -> LearntItems:
    """Return what openings teach of the items of ephemeral sources; nothing without openings."""
    readers = interests()
    shown = None if readers is None else await readers.items(connection)
    if shown is None:
        return NOTHING
    source, age_s, view, opened = shown
    age = np.maximum(age_s, 0.0) / _DAY_S
    work = partial(learned, half_life=said.half_life_hours / _DAY_HOURS)
    return await asyncio.to_thread(work, source, age, view, opened)


# -- tables of sites ---------------------------------------------------------


def terms(
    urls: Sequence[str],
    area: Rows,
    importance: Floats,
    sites: Sites,
    half_life_days: Floats | None = None,
) -> PageRules:
    """Return the terms of pages of these importances, by the nearest tables of ``sites``.

    ``half_life_days`` (m,) are those of the site list, None where it has none.
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
        # From the farthest to the nearest, which overrides.
        for table in reversed(sites.matching(url)):
            for term in ("importance", "never", "least_days", "most_days"):
                if (value := getattr(table, term)) is not None:
                    getattr(found, term)[row] = value
            _declare(found.half_life_days, row, table)
            if table.signals is not None:
                found.complete[row] = table.signals == "complete"
    return found


def _declare(half_life: Floats, row: int, table: SiteSettings) -> None:
    """Say what a table says of whether a page is an ephemeral source."""
    if table.ephemeral is False:
        half_life[row] = 0.0
    elif table.half_life_hours is not None:
        half_life[row] = table.half_life_hours / _DAY_HOURS
    elif table.ephemeral and not 0 < half_life[row] < np.inf:
        # A farther table, or the site list, may have said how fast.
        half_life[row] = np.inf


# -- areas -------------------------------------------------------------------

_DIGITS = re.compile(r"\d+")


class Areas:
    """The areas of sites: directories below a site's first page, numbered.

    A site is rebuilt or moved by such areas. They are numbered as their first pages come; later
    ones share the last number. The same URLs in the same order give the same numbers.

    Attributes:
        roots: of each origin, the directory of its first page.
        codes: of each origin, the numbers of its areas.
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
