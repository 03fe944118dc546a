"""A web: its sites, the lives of its pages, and the webs for tests, simulations and the demo."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf

from freshet.crawler.extensions.lab.synthetic_web.content import DAY_S, SyntheticUrl
from freshet.crawler.extensions.lab.synthetic_web.difficult_sites import (
    EVENT_TRAPS,
    bazaar,
    events,
    guarded,
    notes,
    statuses,
    zoo,
)
from freshet.crawler.extensions.lab.synthetic_web.site import (
    TRAPS,
    Fault,
    File,
    LivingPage,
    Redirect,
    SyntheticSite,
)
from freshet.crawler.extensions.lab.synthetic_web.sites import (
    Plot,
    documentation,
    listed,
    news,
    shop,
    wiki,
)
from freshet.crawler.extensions.lab.synthetic_web.sites import newsroom as newsroom_site


@dataclass(frozen=True, slots=True)
class PageLifetime:
    """A page's birth and death, and the times of the changes of its main content, in order.

    An edit and its reversal count as two changes. ``died_at`` None: it does not die.
    """

    place: SyntheticUrl
    born_at: float
    died_at: float | None
    changed_at: tuple[float, ...]


# -- reach -------------------------------------------------------------------
#: Redirects in a row that are followed.
MAX_REDIRECTS = 10


class _Walk:
    """Places to visit, with the smallest number of redirects that led there."""

    def __init__(self, sites: Mapping[str, SyntheticSite], at: float) -> None:
        self._sites = sites
        self._at = at
        self._open = [(SyntheticUrl(name, "/"), 0) for name in sites]
        self._open += [
            (SyntheticUrl(name, target), 0)
            for name, site in sites.items()
            if "sitemap index" in site.resources.values()
            for target, _ in listed(site, at)
        ]
        self._hops: dict[SyntheticUrl, int] = {}
        self._pages: set[SyntheticUrl] = set()

    def finish(self) -> frozenset[SyntheticUrl]:
        while self._open:
            place, hops = self._open.pop()
            site = self._sites.get(place.host)
            if site is None or hops >= self._hops.get(place, MAX_REDIRECTS + 1):
                continue
            if place.target not in site.forbidden and site.trap(place.target) is None:
                self._hops[place] = hops
                self._visit(place, hops)
        return frozenset(self._pages)

    def _visit(self, place: SyntheticUrl, hops: int) -> None:
        site = self._sites[place.host]
        if site.moved_to is not None:
            self._follow(SyntheticUrl(site.moved_to, place.target), hops)
            return
        match site.find(place.target):
            case Redirect(to=to):
                self._follow(to, hops)
            case File() as file if file.is_page:
                self._pages.add(place)
            case (LivingPage() as page) | Fault(then=LivingPage() as page):
                self._read(site, place, page, hops)

    def _read(self, site: SyntheticSite, place: SyntheticUrl, page: LivingPage, hops: int) -> None:
        if not page.is_alive(self._at):
            if page.moved_to is not None and self._at >= page.born_at:
                self._follow(SyntheticUrl(site.name, page.moved_to), hops)
        elif page.head.refresh is not None:
            self._follow(SyntheticUrl(site.name, page.head.refresh), hops)
        else:
            self._pages.add(place)
            links = () if page.head.nofollow else page.content_at(self._at).links + site.frame.links
            self._open += (
                (link.leads_to, 0)
                for link in links
                if link.leads_to is not None and "nofollow" not in link.rel
            )

    def _follow(self, place: SyntheticUrl | None, hops: int) -> None:
        if place is not None:
            self._open.append((place, hops + 1))


@dataclass(frozen=True, slots=True)
class SyntheticWeb:
    """Sites that change between two times (Unix seconds); afterwards they stand still."""

    seed: int
    sites: Mapping[str, SyntheticSite]
    start_at: float
    end_at: float

    def crawlable(self, at: float) -> frozenset[SyntheticUrl]:
        """Return the pages that a complete polite crawl from the roots of the sites finds.

        It follows links, sitemaps, redirects and immediate refreshes, of the latter two up to
        :data:`MAX_REDIRECTS` in a row; neither URLs that robots.txt forbids nor nofollow links; it
        retries after a fault. Pages answer 200 with text or PDF and do not refresh to another
        place. The pages of endless sets are left out.
        """
        return _Walk(self.sites, at).finish()

    def lives(self) -> Iterator[PageLifetime]:
        """Yield the lives of all pages, from the generator that made the edits."""
        for place, page in self.documents():
            changed_at = tuple(
                revision.at
                for version, revision in enumerate(page.history.revisions)
                if page.born_at < revision.at
                and page.is_alive(revision.at)
                and page.history.content(version).text != page.history.content(version + 1).text
            )
            yield PageLifetime(place, page.born_at, page.died_at, changed_at)

    def documents(self) -> Iterator[tuple[SyntheticUrl, LivingPage]]:
        """Yield all documents that ever live, with their places."""
        for site in self.sites.values():
            for target, document in site.documents():
                yield SyntheticUrl(site.name, target), document


# -- presets -----------------------------------------------------------------
#: 2026-01-01, 00:00 UTC: when webs start to change.
START_AT = 1_767_225_600.0

Builder = Callable[[Plot], SyntheticSite]
_LARGE: dict[str, Builder] = {"news": news, "docs": documentation, "shop": shop, "wiki": wiki}


@dataclass(frozen=True, slots=True)
class WebSpec:
    """The size of a web, and the number of days for which it changes.

    Raises:
        ValueError: the web would have no host, page or day.
    """

    hosts: int = 4
    pages_per_host: int = 40
    seed: int = 1
    span_days: float = 60.0

    def __post_init__(self) -> None:
        if min(self.hosts, self.pages_per_host, self.span_days) <= 0:
            raise ValueError("a web has at least one host, one page and one day")

    def plot(self, name: str, pages: int | None = None) -> Plot:
        """Return the plot of one site of the web."""
        end_at = START_AT + self.span_days * DAY_S
        return Plot(name, self.seed, pages or self.pages_per_host, START_AT, end_at)

    def web(self, sites: list[SyntheticSite]) -> SyntheticWeb:
        """Return the web of these sites."""
        by_name = {site.name: site for site in sites}
        return SyntheticWeb(self.seed, by_name, START_AT, START_AT + self.span_days * DAY_S)


def mixed(spec: WebSpec) -> SyntheticWeb:
    """Make news, documentation, shop and wiki in turn: ``news docs shop wiki news2 docs2 …``."""
    sites = []
    for n in range(spec.hosts):
        name = list(_LARGE)[n % len(_LARGE)]
        suffix = str(n // len(_LARGE) + 1) if n >= len(_LARGE) else ""
        sites.append(_LARGE[name](spec.plot(name + suffix)))
    return spec.web(sites)


def endless(spec: WebSpec, *, traps: bool = True) -> SyntheticWeb:
    """Make one shop, ``bazaar``, whose calendars, filters, sessions and depth never end.

    Without ``traps`` it has its ordinary pages only.
    """
    return spec.web([bazaar(spec.plot("bazaar"), traps=tuple(TRAPS) if traps else ())])


def newsroom(spec: WebSpec, items: float) -> SyntheticWeb:
    """Make two hosts of news, ``courier`` with 3/4 of the items a day, and ``gazette``; ``docs``.

    The pages of the spec are those of ``docs``, which hardly changes.

    Raises:
        ValueError: the web would have no items.
    """
    if not 0 < items < inf:
        raise ValueError(f"items is {items:g}; accepted is a number above 0, of a day")
    courier = newsroom_site(spec.plot("courier"), items * 3 / 4)
    gazette = newsroom_site(spec.plot("gazette"), items / 4)
    return spec.web([courier, gazette, documentation(spec.plot("docs"))])


def showcase(seed: int = 1, *, traps: bool = True, span_days: float = 60.0) -> SyntheticWeb:
    """Make ten hosts of every character with some 220 pages.

    ``old`` redirects as a whole to ``docs``. Without ``traps`` there are no endless sets.
    """
    spec = WebSpec(hosts=10, seed=seed, span_days=span_days)
    sites = [build(spec.plot(name)) for name, build in _LARGE.items()]
    sites += [
        SyntheticSite(name="old", title="Old Handbook", moved_to="docs"),
        statuses(spec.plot("status")),
        guarded(spec.plot("guarded", pages=14)),
        notes(spec.plot("notes", pages=18)),
        zoo(spec.plot("zoo")),
        events(spec.plot("events", pages=10), traps=EVENT_TRAPS if traps else ()),
    ]
    return spec.web(sites)
