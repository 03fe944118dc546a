"""Builders of ordinary sites from a plot: documentation, wiki, shop, news; their manifests."""

import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import formatdate
from itertools import groupby
from math import cos, pi
from random import Random
from typing import Final, NamedTuple, TypedDict, Unpack
from xml.sax.saxutils import escape

from freshet.crawler.extensions.lab.synthetic_web.content import (
    DATE_MIX,
    DAY_S,
    ENGLISH,
    FIGURE_MIX,
    GERMAN,
    PROSE_MIX,
    ContentHistory,
    Form,
    Language,
    Link,
    Revision,
    SyntheticUrl,
    generator,
    plan,
    poisson_times,
)
from freshet.crawler.extensions.lab.synthetic_web.site import (
    Addresses,
    Frame,
    LivingPage,
    Manifest,
    Resource,
    SyntheticSite,
    link_list,
    soup,
    story,
)

# -- manifests ---------------------------------------------------------------
# robots.txt, sitemaps (https://www.sitemaps.org/protocol.html) and feeds (Atom: RFC 4287; RSS
# 2.0).
CONTENT_TYPES: Mapping[Manifest, str] = {
    "robots": "text/plain; charset=utf-8",
    "sitemap index": "application/xml",
    "sitemap": "application/xml",
    "sitemap gzip": "application/gzip",
    "atom": "application/atom+xml",
    "rss": "application/rss+xml",
}
#: The targets of a site that has sitemaps: an index, and its two parts.
SITEMAPS: Mapping[str, Manifest] = {
    "/sitemap.xml": "sitemap index",
    "/sitemap-pages.xml": "sitemap",
    "/sitemap-more.xml.gz": "sitemap gzip",
}
_SITEMAP_XMLNS = "http://www.sitemaps.org/schemas/sitemap/0.9"
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
_FEED_ENTRIES = 15


def _sitemap_index(site: SyntheticSite, addresses: Addresses) -> bytes:
    parts = (target for target, kind in SITEMAPS.items() if kind != "sitemap index")
    places = (escape(addresses.url(SyntheticUrl(site.name, target))) for target in parts)
    entries = "".join(f"<sitemap><loc>{place}</loc></sitemap>\n" for place in places)
    opened = f'{_XML}<sitemapindex xmlns="{_SITEMAP_XMLNS}">'
    return f"{opened}\n{entries}</sitemapindex>\n".encode()


def manifest_bytes(
    site: SyntheticSite, manifest: Manifest, at: float, addresses: Addresses
) -> bytes:
    """Return the body of a manifest at a time."""
    match manifest:
        case "robots":
            return (site.robots or "").replace("{origin}", addresses.origin(site.name)).encode()
        case "sitemap index":
            return _sitemap_index(site, addresses)
        case "sitemap":
            return _sitemap(site, listed(site, at)[::2], at, addresses)
        case "sitemap gzip":
            return gzip.compress(_sitemap(site, listed(site, at)[1::2], at, addresses), mtime=0)
        case "atom":
            return _atom(site, at, addresses)
        case "rss":
            return _rss(site, at, addresses)


def listed(site: SyntheticSite, at: float) -> list[tuple[str, LivingPage]]:
    """Return the targets that the sitemaps of a site list."""
    return [
        (target, page)
        for target, page in site.documents()
        if page.is_alive(at) and page.in_sitemap and target not in site.forbidden
    ]


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _sitemap(
    site: SyntheticSite, pages: list[tuple[str, LivingPage]], at: float, addresses: Addresses
) -> bytes:
    entries = "".join(
        f"<url><loc>{escape(addresses.url(SyntheticUrl(site.name, target)))}</loc>"
        f"<lastmod>{_iso(page.changed_at(at))}</lastmod></url>\n"
        for target, page in pages
    )
    return f'{_XML}<urlset xmlns="{_SITEMAP_XMLNS}">\n{entries}</urlset>\n'.encode()


def _feed_entries(site: SyntheticSite, at: float) -> list[tuple[str, LivingPage, float]]:
    entries = [(target, page, page.changed_at(at)) for target, page in listed(site, at)]
    return sorted(entries, key=lambda entry: (-entry[2], entry[0]))[:_FEED_ENTRIES]


def _atom(site: SyntheticSite, at: float, addresses: Addresses) -> bytes:
    home = addresses.url(SyntheticUrl(site.name, "/"))
    entries = _feed_entries(site, at)
    updated = _iso(max((changed_at for *_, changed_at in entries), default=0.0))
    lines = [
        f'{_XML}<feed xmlns="http://www.w3.org/2005/Atom"><title>{escape(site.title)}</title>',
        f"<id>{home}</id><updated>{updated}</updated><author><name>{site.name}</name></author>",
    ]
    for target, page, changed_at in entries:
        url = escape(addresses.url(SyntheticUrl(site.name, target)))
        title = escape(page.content_at(at).title)
        lines += [
            f'<entry><title>{title}</title><id>{url}</id><link href="{url}"/>',
            f"<published>{_iso(page.born_at)}</published>",
            f"<updated>{_iso(changed_at)}</updated></entry>",
        ]
    return "\n".join((*lines, "</feed>\n")).encode()


def _rss(site: SyntheticSite, at: float, addresses: Addresses) -> bytes:
    home = addresses.url(SyntheticUrl(site.name, "/"))
    lines = [
        f'{_XML}<rss version="2.0"><channel><title>{escape(site.title)}</title>',
        f"<link>{home}</link><description>{escape(site.title)}</description>",
    ]
    for target, page, changed_at in _feed_entries(site, at):
        url = escape(addresses.url(SyntheticUrl(site.name, target)))
        title = escape(page.content_at(at).title)
        lines += [
            f"<item><title>{title}</title><link>{url}</link><guid>{url}</guid>",
            f"<pubDate>{formatdate(changed_at, usegmt=True)}</pubDate></item>",
        ]
    return "\n".join((*lines, "</channel></rss>\n")).encode()


#: A robots.txt that forbids nothing, and one that names the sitemap, too.
NOTHING_FORBIDDEN: Final = "User-agent: *\nDisallow:\n"
OPEN_ROBOTS: Final = f"{NOTHING_FORBIDDEN}\nSitemap: {{origin}}/sitemap.xml\n"
#: What a rebuild of a whole site touches: nearly always the stamp in the footer alone.
_FRAME_FORMS: tuple[Form, ...] = ("footer", "footer", "footer", "advert", "navigation")


class Prose(TypedDict, total=False):
    """Arguments of a story; see :func:`story`."""

    language: Language
    title: str | None
    paragraphs: int
    figure: bool
    dated: bool
    links: Sequence[Link]


@dataclass(frozen=True, slots=True)
class Plot:
    """A site's name, seed and size, and the time in which it changes (Unix seconds).

    ``pages`` is roughly the number of its pages at the start.
    """

    name: str
    seed: int
    pages: int
    start_at: float
    end_at: float

    def rng(self, *key: object) -> Random:
        """Return the generator for a part of the site."""
        return generator(self.seed, self.name, *key)

    def place(self, target: str) -> SyntheticUrl:
        """Return a place on the site."""
        return SyntheticUrl(self.name, target)

    def link(
        self, text: str, target: str, *, rel: str = "", note: str = "", born_at: float = 0.0,
        died_at: float | None = None,
    ) -> Link:  # fmt: skip
        """Return a plain link within the site."""
        place = self.place(target)
        return Link(text, place, rel=rel, note=note, born_at=born_at, died_at=died_at)

    def earlier(self, *key: object) -> float:
        """Draw a whole second in the two months before the start."""
        return self.start_at - 1 - self.rng(*key, "earlier").randrange(60 * int(DAY_S))

    def later(self, *key: object) -> float:
        """Draw a whole second in the first quarter of the time in which the site changes."""
        quarter = int(self.end_at - self.start_at) // 4
        return self.start_at + 1 + self.rng(*key, "later").randrange(quarter)

    def story(
        self, key: str, edits: tuple[Revision, ...] = (), **prose: Unpack[Prose]
    ) -> ContentHistory:
        """Write prose that is drawn from the key."""
        return story((self.seed, self.name, key), revisions=edits, **prose)

    def page(
        self, key: str, per_day: float = 0.0, *, born_at: float | None = None,
        in_sitemap: bool = True, **prose: Unpack[Prose],
    ) -> LivingPage:  # fmt: skip
        """Make a page of prose with that many edits; by default it lives from the start."""
        figure, dated = prose.get("figure", False), prose.get("dated", False)
        edits = self.edits(key, per_day, since=born_at, figure=figure, dated=dated)
        born_at = self.earlier(key) if born_at is None else born_at
        history = self.story(key, edits, **prose)
        return LivingPage(history=history, born_at=born_at, in_sitemap=in_sitemap)

    def edits(
        self, key: str, per_day: float, *, since: float | None = None, until: float | None = None,
        figure: bool = False, dated: bool = False,
    ) -> tuple[Revision, ...]:  # fmt: skip
        """Draw edits at Poisson times, for a story of five paragraphs."""
        rng = self.rng(key, "edits")
        start_at = self.start_at if since is None else max(since, self.start_at)
        end_at = self.end_at if until is None else min(until, self.end_at)
        times = poisson_times(rng, per_day, start_at, end_at)
        mix = FIGURE_MIX if figure else DATE_MIX if dated else PROSE_MIX
        return plan(rng, times, mix, 5)

    def frame(
        self, rebuilds_per_day: float, *links: Link, forms: Sequence[Form] = _FRAME_FORMS
    ) -> Frame:
        """Make a frame with these links that is rebuilt at Poisson times, in one of these ways."""
        rng = self.rng("frame")
        times = poisson_times(rng, rebuilds_per_day, self.start_at, self.end_at)
        return Frame(links, tuple(Revision(at, rng.choice(forms)) for at in times))


def moved(old: LivingPage, moved_at: float, target: str) -> tuple[LivingPage, LivingPage]:
    """Split a page into the one that redirects from a time on, and its successor at ``target``."""
    before = replace(old, died_at=moved_at, moved_to=target)
    return before, LivingPage(history=old.history, born_at=moved_at)


_CHAPTERS: Final = ("guide", "reference", "howto")
#: A page that no link leads to: only the sitemap knows it.
ORPHAN: Final = "/reference/orphan.html"


def documentation(plot: Plot) -> SyntheticSite:
    """Build a stable tree, rarely edited, often rebuilt: each rebuild touches every frame.

    Weak ETag and Last-Modified; one page moves.
    """
    pages = max(1, (plot.pages - len(_CHAPTERS) - 2) // len(_CHAPTERS))
    links = [plot.link(c.title(), f"/{c}/") for c in _CHAPTERS]
    chapters: dict[str, LivingPage] = {}
    for chapter in _CHAPTERS:
        targets = [f"/{chapter}/page-{n}.html" for n in range(1, pages + 1)]
        index = [plot.link(f"Page {n}", target) for n, target in enumerate(targets, start=1)]
        chapters[f"/{chapter}/"] = plot.page(
            chapter, title=chapter.title(), paragraphs=3, links=index
        )
        for n, target in enumerate(targets):
            chapters[target] = plot.page(target, 0.02, links=index[n + 1 : n + 2])
    old, new = "/guide/page-1.html", "/guide/getting-started.html"
    chapters[old], chapters[new] = moved(chapters[old], plot.later("move"), new)
    resources: dict[str, Resource] = {
        "/": plot.page("home", title="Documentation", links=links),
        **chapters,
        ORPHAN: plot.page(ORPHAN, 0.02),
        **SITEMAPS,
    }
    frame = plot.frame(0.7, plot.link("Home", "/"), *links)
    return SyntheticSite(plot.name, "Freshet Handbook", resources, frame, robots=OPEN_ROBOTS)


#: Edits per day of the pages of a wiki, in turn: a third of them makes nearly all of the edits.
RATES_PER_DAY: Final = (6.0, 0.0, 0.5, 0.02, 0.1, 0.0, 1.5, 0.05, 0.0)


def wiki(plot: Plot) -> SyntheticSite:
    """Build pages linked from their parents in a tree, and from others; RSS; Last-Modified.

    Some pages are renamed: the links to the old name stay, and are redirected.
    """
    targets = ["/"] + [f"/wiki/Topic_{n}" for n in range(1, max(2, plot.pages))]
    resources: dict[str, Resource] = {**SITEMAPS, "/recent.rss": "rss"}
    for n, target in enumerate(targets):
        others = plot.rng("links", n).sample(targets, min(3, len(targets)))
        names = dict.fromkeys((*targets[n * 5 + 1 : n * 5 + 6], *others))
        links = [plot.link(name.rpartition("/")[2] or "Main page", name) for name in names]
        title = None if n else "Main page"
        page = plot.page(target, RATES_PER_DAY[n % len(RATES_PER_DAY)], title=title, links=links)
        resources[target] = page
        if n % 15 == 12:
            name = f"{target}_renamed"
            resources[target], resources[name] = moved(page, plot.later(target), name)
    frame = plot.frame(0.2, plot.link("Main page", "/"))
    return SyntheticSite(
        plot.name, "Freshet Wiki", resources, frame, validation="date", robots=OPEN_ROBOTS
    )


_PER_CATEGORY: Final = 8
#: Every sixth product is sold out one day.
_SOLD_OUT: Final = 6


def shop(plot: Plot) -> SyntheticSite:
    """Build German ``div`` soup without validators, whose links carry ``utm_`` parameters.

    Prices change, from every other day to once in three weeks, and products come to an end.
    """
    # A category has its products in two orders: two pages more.
    products = max(2, (plot.pages - 1) * _PER_CATEGORY // (_PER_CATEGORY + 2))
    resources: dict[str, Resource] = dict(SITEMAPS)
    categories = []
    for category, first in enumerate(range(0, products, _PER_CATEGORY), start=1):
        shelf: dict[str, LivingPage] = {}
        for n in range(first, min(products, first + _PER_CATEGORY)):
            target = f"/product?id={n}"
            page = plot.page(target, 0.5 / (1 + n % 10), language=GERMAN, figure=True)
            died_at = plot.later(target) if n % _SOLD_OUT == 1 else None
            shelf[target] = replace(page, died_at=died_at)
        resources |= shelf
        resources |= _category(plot, category, shelf)
        categories.append(plot.link(f"Kategorie {category}", f"/list?category={category}"))
    resources["/"] = plot.page("home", language=GERMAN, title="Willkommen", links=categories)
    frame = plot.frame(0.3, plot.link("Start", "/"), *categories)
    return SyntheticSite(
        plot.name,
        "Kaufhaus am Bach",
        resources,
        frame,
        language=GERMAN,
        skin=soup,
        validation="none",
        robots=OPEN_ROBOTS,
    )


def _category(
    plot: Plot, category: int, shelf: dict[str, LivingPage]
) -> Iterator[tuple[str, LivingPage]]:
    entries = []
    for target, page in shelf.items():
        href = f"{target}&utm_source=list&utm_medium=web"
        link = plot.link(
            page.history.content(0).title, target, born_at=page.born_at, died_at=page.died_at
        )
        entries.append(replace(link, href=href))
    by_name = sorted(entries, key=lambda entry: entry.text)
    first, by = f"/list?category={category}", f"/list?category={category}&sort=name"
    for target, other, shown in ((first, by, entries), (by, first, by_name)):
        switch = plot.link("Andere Reihenfolge", other)
        listing = link_list(f"Kategorie {category}", shown, tail=(switch,))
        yield target, LivingPage(history=listing, born_at=plot.earlier(first), in_sitemap=False)


#: Of the list of newest articles; older ones are in the archive only.
_PER_PAGE: Final = 10
_LIST_PAGES: Final = 3


def news(plot: Plot) -> SyntheticSite:
    """Build lists that shift with each article; strong ETags that match no second answer; Atom.

    Articles appear all day, leave the front page, and stay in the archive.
    """
    articles = sorted(_articles(plot), key=lambda article: article[1].born_at)
    news_links = [link for *_, link in articles]
    months = dict(_months(news_links))
    archive = link_list(
        "Archive",
        [plot.link(t.removeprefix("/archive/"), t, born_at=page.born_at)
         for t, page in months.items()],
    )  # fmt: skip
    born_at = min(page.born_at for page in months.values())
    resources: dict[str, Resource] = {**SITEMAPS, "/feed.atom": "atom"}
    resources |= {target: page for target, page, _ in articles}
    resources |= months
    resources |= _lists(plot, news_links)
    resources["/archive/"] = LivingPage(history=archive, born_at=born_at, in_sitemap=False)
    resources["/about"] = plot.page("about", title="About us", born_at=plot.start_at - DAY_S)
    links = {"Home": "/", "Archive": "/archive/", "About": "/about"}
    frame = plot.frame(0.5, *(plot.link(text, target) for text, target in links.items()))
    return SyntheticSite(
        plot.name, "The Daily Freshet", resources, frame, validation="bytes", robots=OPEN_ROBOTS
    )


def _articles(plot: Plot) -> Iterator[tuple[str, LivingPage, Link]]:
    """Yield articles with their links, corrected for three days; one in twenty is withdrawn."""
    at_start = max(3, plot.pages - _LIST_PAGES - 4)
    births = [plot.earlier("article", n) for n in range(at_start)]
    births += poisson_times(plot.rng("births"), at_start / 8, plot.start_at, plot.end_at)
    for n, born_at in enumerate(births):
        target = f"/{_date(born_at):%Y/%m/%d}/article-{n}"
        died_at = plot.later("withdrawn", n) if n % 20 == 7 else None
        if died_at is not None and died_at <= born_at:
            died_at = None
        edits = plot.edits(target, 0.4, since=born_at, until=born_at + 3 * DAY_S)
        history = plot.story(target, edits, links=(plot.link("All articles", "/archive/"),))
        page = LivingPage(history=history, born_at=born_at, died_at=died_at)
        title, teaser = history.content(0).title, ENGLISH.sentence(plot.rng(target, "teaser"))
        link = plot.link(title, target, note=teaser, born_at=born_at, died_at=died_at)
        yield target, page, link


def _months(links: Iterable[Link]) -> Iterator[tuple[str, LivingPage]]:
    for month, run in groupby(links, key=lambda link: f"{_date(link.born_at):%Y-%m}"):
        entries = list(run)
        listing = link_list(f"Archive of {month}", reversed(entries))
        page = LivingPage(history=listing, born_at=entries[0].born_at, in_sitemap=False)
        yield f"/archive/{month}", page


def _lists(plot: Plot, links: Sequence[Link]) -> Iterator[tuple[str, LivingPage]]:
    """Yield the front page and those after it, each from when there is something to list."""
    entries = links[::-1]
    after: list[Link] = []
    for n in reversed(range(min(_LIST_PAGES, -(-len(entries) // _PER_PAGE)))):
        first = n * _PER_PAGE
        born_at = links[first].born_at
        title = f"News, page {n + 1}" if n else "News"
        listing = link_list(title, entries, first=first, count=_PER_PAGE, tail=after)
        target = f"/?page={n + 1}" if n else "/"
        after = [plot.link("Older news", target, born_at=born_at)]
        yield target, LivingPage(history=listing, born_at=born_at, in_sitemap=False)


def _date(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


#: The sections of a newsroom, and the share of the items that each gets.
_SECTIONS: Final = {"world": 8, "sport": 4, "culture": 2, "science": 1}
#: Of the items, which stand on the front page as well as in their section.
_LEADING: Final = 0.6
_ON_FRONT, _IN_SECTION = 15, 12
#: The rate at midnight is this much below the mean, and at noon as much above, UTC.
_SWING: Final = 0.8
#: The lists are as full at the start as if the host had been there for so long.
_BEFORE_DAYS: Final = 4.0


class _Item(NamedTuple):
    target: str
    section: str
    leads: bool
    page: LivingPage
    link: Link


def newsroom(plot: Plot, per_day: float) -> SyntheticSite:
    """Build a front page, sections and a feed that list the newest items; nothing lists others.

    An item stands in its section, and perhaps on the front page. It always answers, but no link
    leads to it once newer items have pushed it from the lists. ``plot.pages`` does not count:
    ``per_day`` and the days give the number of items.
    """
    items = sorted(_items(plot, per_day), key=lambda item: item.page.born_at, reverse=True)
    lists = {"/": ("Front page", [item.link for item in items if item.leads], _ON_FRONT)}
    for name in _SECTIONS:
        entries = [item.link for item in items if item.section == name]
        lists[f"/{name}/"] = (name.title(), entries, _IN_SECTION)
    since = plot.start_at - _BEFORE_DAYS * DAY_S
    resources: dict[str, Resource] = {}
    for target, (title, entries, count) in lists.items():
        history = link_list(title, entries, count=count)
        resources[target] = LivingPage(history=history, born_at=since, in_sitemap=False)
    resources |= {item.target: item.page for item in items}
    sections = [plot.link(name.title(), f"/{name}/") for name in _SECTIONS]
    frame = plot.frame(0.5, plot.link("Home", "/"), *sections)
    return SyntheticSite(
        plot.name,
        "The Freshet Courier",
        {**resources, "/feed.atom": "atom"},
        frame,
        validation="bytes",
        robots=NOTHING_FORBIDDEN,
    )


def _items(plot: Plot, per_day: float) -> Iterator[_Item]:
    """Yield items, which are corrected in their first day."""
    names, shares = list(_SECTIONS), list(_SECTIONS.values())
    for n, born_at in enumerate(_births(plot, per_day)):
        rng = plot.rng("item", n)
        (section,) = rng.choices(names, shares)
        target = f"/{section}/item-{n}"
        history = plot.story(target, plot.edits(target, 0.4, since=born_at, until=born_at + DAY_S))
        title, teaser = history.content(0).title, ENGLISH.sentence(rng)
        link = plot.link(title, target, note=teaser, born_at=born_at)
        page = LivingPage(history=history, born_at=born_at)
        yield _Item(target, section, rng.random() < _LEADING, page, link)


def _births(plot: Plot, per_day: float) -> list[float]:
    """Draw Poisson times whose rate swings with the hour, by thinning those of the highest rate."""
    rng = plot.rng("births")
    since = plot.start_at - _BEFORE_DAYS * DAY_S
    candidates = poisson_times(rng, per_day * (1 + _SWING), since, plot.end_at)
    # −1 at midnight, 1 at noon, UTC.
    hours = [(at, -cos(2 * pi * at / DAY_S)) for at in candidates]
    return [at for at, hour in hours if rng.random() * (1 + _SWING) < 1 + _SWING * hour]
