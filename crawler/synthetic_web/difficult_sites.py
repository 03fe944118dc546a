"""A shop that gives each of its pages many URLs: orders, printer versions and sessions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from freshet.crawler.synthetic_web.content import (
    DAY_S,
    ENGLISH,
    GERMAN,
    JAPANESE,
    RUSSIAN,
    Content,
    Form,
    History,
    Language,
    Link,
    Revision,
    poisson_times,
)
from freshet.crawler.synthetic_web.site import (
    UTF_8,
    Clutter,
    Document,
    Encoding,
    Entry,
    Fault,
    File,
    Head,
    Listing,
    Redirect,
    Resource,
    Site,
    Skin,
    Trap,
    Validation,
)
from freshet.crawler.synthetic_web.sites import OPEN_ROBOTS, SITEMAPS, Plot
from freshet.crawler.synthetic_web.traps import ENTRANCES, WARE

#: What is appended to the URL of a page of the shop: none of it makes a page of its own.
ORDERS = ("&sort=name", "&sort=price", "&sort=new")
PRINTED = ("&print=1",)
_SESSIONS = 3

_PER_CATEGORY = 3


@dataclass(frozen=True, slots=True)
class _Reordered:
    """The blocks of another history from the last to the first."""

    of: History

    @property
    def revisions(self) -> Sequence[Revision]:
        return self.of.revisions

    def content(self, version: int) -> Content:
        found = self.of.content(version)
        return Content(found.title, found.blocks[::-1], found.links)


def outlet(plot: Plot) -> Site:
    """Categories and products, each under many URLs, and pages of news; without validators.

    ``plot.pages`` are the pages that there are, under however many URLs.
    """
    news = max(2, plot.pages // 5)
    categories = max(1, (plot.pages - news - 1) // (_PER_CATEGORY + 1))
    resources: dict[str, Resource] = {}
    links = []
    for n in range(categories):
        products = range(n * _PER_CATEGORY, (n + 1) * _PER_CATEGORY)
        shelf = [plot.link(f"Product {i}", f"/product?id={i}") for i in products]
        resources |= _variants(plot, f"/list?category={n}", (*ORDERS, *PRINTED), shelf)
        for i in products:
            resources |= _variants(plot, f"/product?id={i}", PRINTED, ())
        links.append(plot.link(f"Category {n}", f"/list?category={n}"))
    for n in range(1, news + 1):
        older = [plot.link("Older news", f"/news?page={n + 1}")] if n < news else []
        resources |= _variants(plot, f"/news?page={n}", (), older, sessions=0)
    home = plot.story("home", title="Outlet", links=[*links, plot.link("News", "/news?page=1")])
    resources["/"] = Document(history=home, born_at=plot.earlier("home"))
    return Site(
        name=plot.name,
        title="Outlet",
        resources=resources,
        validation=Validation.NONE,
        robots="User-agent: *\nDisallow:\n",
    )


def _variants(
    plot: Plot,
    target: str,
    suffixes: Sequence[str],
    links: Sequence[Link],
    sessions: int = _SESSIONS,
) -> Iterator[tuple[str, Resource]]:
    """A page, and the same under other URLs, all of which it links to."""
    tokens = (f"&sid={plot.rng(target, n).getrandbits(128):032x}" for n in range(sessions))
    others = [target + suffix for suffix in (*suffixes, *tokens)]
    story = plot.story(target, links=[*links, *(plot.link("See also", each) for each in others)])
    for each in (target, *others):
        history: History = _Reordered(story) if "sort=" in each else story
        yield each, Document(history=history, born_at=plot.earlier(target), in_sitemap=False)


def is_variant(target: str) -> bool:
    """Whether a target of such a shop is another URL of a page, and no page of its own."""
    return any(name in target for name in ("&sort=", "&print=", "&sid="))


# -- statuses ----------------------------------------------------------------
#
# A site with every status that a crawler meets: redirects, refreshes, errors.

#: Hops from the head of each chain to its end.
CHAINS = {"short": 3, "longest": 10, "endless-looking": 12}


def statuses(plot: Plot) -> Site:
    """No robots.txt. 302, 303, 307 and 308, a loop, chains, faults that pass or stay."""
    resources = {
        **dict(_redirects(plot)),
        **dict(_faults(plot)),
        "/refresh": _status_page(plot, "/refresh", refresh="/refreshed"),
        "/refreshed": _status_page(plot, "/refreshed"),
        "/gone": Document(history=plot.story("/gone"), born_at=0.0, died_at=1.0),
    }
    for name, hops in CHAINS.items():
        resources |= _chain(plot, name, hops)
    linked = [*resources, "/missing"]
    links = [plot.link(t, t) for t in linked if t not in _ENDS and "/hop-" not in t]
    home = plot.story("home", title="Every status", paragraphs=3, links=links)
    resources["/"] = Document(history=home, born_at=plot.earlier("home"))
    return Site(
        name=plot.name,
        title="Status board",
        resources=resources,
        frame=plot.frame(0.1, plot.link("Home", "/")),
    )


#: What is reached by a redirect only.
_ENDS = frozenset({"/found", "/refreshed", *(f"/{name}/end" for name in CHAINS)})


def _redirects(plot: Plot) -> Iterator[tuple[str, Resource]]:
    found = plot.place("/found")
    yield "/found", _status_page(plot, "/found")
    for status in (301, 302, 303, 307, 308):
        yield f"/moved-{status}", Redirect(status, found, relative=status % 2 == 0)
    yield "/loop-a", Redirect(302, plot.place("/loop-b"))
    yield "/loop-b", Redirect(302, plot.place("/loop-a"))
    yield "/self", Redirect(301, plot.place("/self"))
    yield "/nowhere", Redirect(302, None)


def _chain(plot: Plot, name: str, hops: int) -> dict[str, Resource]:
    stations = [f"/{name}", *(f"/{name}/hop-{n}" for n in range(1, hops)), f"/{name}/end"]
    chain: dict[str, Resource] = {
        here: Redirect((301, 302, 307, 308)[n % 4], plot.place(there), relative=n % 2 == 0)
        for n, (here, there) in enumerate(pairwise(stations))
    }
    return {**chain, stations[-1]: _status_page(plot, stations[-1])}


def _faults(plot: Plot) -> Iterator[tuple[str, Resource]]:
    yield "/broken", Fault(500)
    yield "/forbidden", Fault(403)
    yield "/now-and-then", Fault(500, _status_page(plot, "/now-and-then"), period=4)
    yield "/busy", Fault(503, _status_page(plot, "/busy"), retry_after_s=1)
    yield "/too-many", Fault(429, _status_page(plot, "/too-many"), retry_after_s=1, as_date=True)


def _status_page(plot: Plot, target: str, refresh: str | None = None) -> Document:
    return Document(
        history=plot.story(target),
        born_at=plot.earlier(target),
        head=Head(refresh=refresh),
        in_sitemap=refresh is None,
    )


# -- guarded -----------------------------------------------------------------
#
# A site whose robots.txt has rules of every kind.

_ROBOTS = """\
# Rules of the house
User-agent: OtherBot
Disallow: /

User-agent: *
Crawl-delay: 0.2
Disallow: /members/
Allow: /members/open/
Disallow: /*.draft$
Disallow: /*?print=
Disallow: /search
Allow: /searching-tips

Sitemap: {origin}/sitemap.xml
"""
_ALLOWED = ("/members/open/1", "/members/open/2", "/notes.draft.html", "/searching-tips", "/guide")
_FORBIDDEN = ("/members/1", "/members/", "/notes.draft", "/guide?print=1", "/search?q=river")
#: Linked from a forbidden page only.
_BEHIND = "/behind-the-wall"


def guarded(plot: Plot) -> Site:
    """CJK-like text; a directory with an exception, wildcards, a Crawl-delay of 0.2 s."""
    targets = [*_ALLOWED, *_FORBIDDEN]
    targets += [f"/hall/{n}" for n in range(1, plot.pages - len(_ALLOWED))]
    behind = plot.link("Secret", _BEHIND)
    resources: dict[str, Resource] = {**SITEMAPS, _BEHIND: _guarded_page(plot, _BEHIND)}
    for target in targets:
        story = plot.story(
            target,
            language=JAPANESE,
            edits=plot.edits(target, 0.1),
            links=(behind,) if target in _FORBIDDEN else (),
        )
        resources[target] = Document(history=story, born_at=plot.earlier(target))
    links = [plot.link(target, target) for target in targets]
    home = plot.story("home", language=JAPANESE, links=links)
    resources["/"] = Document(history=home, born_at=plot.earlier("home"))
    return Site(
        name=plot.name,
        title="門",
        resources=resources,
        language=JAPANESE,
        validation=Validation.DATE,
        frame=plot.frame(0.1, plot.link("Home", "/")),
        robots=_ROBOTS,
        forbidden=frozenset(_FORBIDDEN),
    )


def _guarded_page(plot: Plot, target: str) -> Document:
    """Not in the sitemap: who never goes behind the wall never hears of it."""
    story = plot.story(target, language=JAPANESE)
    return Document(history=story, born_at=plot.earlier(target), in_sitemap=False)


# -- notes -------------------------------------------------------------------
#
# A notebook whose pages speak to crawlers: robots directives, canonical, base.

#: Pages that only nofollow links lead to.
_HIDDEN = ("/hidden-by-link", "/hidden-by-meta", "/hidden-by-header")
#: Pages that only the page with a base element leads to.
_BELOW = ("/deep/below/relative", "/deep/sideways")
_HEADS = {
    "/noindex": Head(robots="noindex"),
    "/noarchive": Head(robots="noarchive"),
    "/noindex-by-header": Head(robots_header="noindex, noarchive"),
    "/nofollow": Head(robots="noindex, nofollow"),
    "/nofollow-by-header": Head(robots_header="nofollow"),
    "/duplicate": Head(canonical="/original"),
    "/duplicate?view=wide": Head(canonical="/original"),
    "/original": Head(canonical="/original"),
    "/based": Head(base="/deep/below/"),
    **{target: Head() for target in (*_BELOW, *_HIDDEN)},
}


def notes(plot: Plot) -> Site:
    """robots.txt is a 404; noindex, nofollow and noarchive in meta elements and headers."""
    extra = [f"/note-{n}" for n in range(1, plot.pages - len(_HEADS))]
    heads = {**_HEADS, **{target: Head() for target in extra}}
    links = [plot.link(t, t) for t in heads if t not in {*_HIDDEN, *_BELOW}]
    links.append(plot.link("Not for crawlers", "/hidden-by-link", rel="nofollow ugc"))
    home = plot.story("home", title="Notes", links=links)
    resources: dict[str, Resource] = {
        "/": Document(history=home, born_at=plot.earlier("home")),
        **{target: _note_page(plot, target, head) for target, head in heads.items()},
    }
    return Site(
        name=plot.name,
        title="Notebook",
        resources=resources,
        validation=Validation.NONE,
        frame=plot.frame(0.1),
    )


def _note_page(plot: Plot, target: str, head: Head) -> Document:
    # Duplicates show what the original shows.
    key = head.canonical or target
    story = plot.story(key, edits=plot.edits(key, 0.1), links=_outgoing(plot, target))
    return Document(history=story, born_at=plot.earlier(target), head=head)


def _outgoing(plot: Plot, target: str) -> tuple[Link, ...]:
    match target:
        case "/nofollow":
            return (plot.link("Hidden", "/hidden-by-meta"),)
        case "/nofollow-by-header":
            return (plot.link("Hidden", "/hidden-by-header"),)
        case "/based":
            hrefs = ("relative", "../sideways")
            places = map(plot.place, _BELOW)
            return tuple(Link(h, p, href=h) for h, p in zip(hrefs, places, strict=True))
    return ()


# -- zoo ---------------------------------------------------------------------
#
# A zoo of charsets, awkward links, and bodies of strange size and type.

_CHARSETS: dict[str, tuple[Encoding, Language]] = {
    "/charset/windows-1252": (Encoding("cp1252", "windows-1252"), GERMAN),
    "/charset/shift-jis": (
        Encoding("shift_jis", "Shift_JIS", in_header=False, in_meta=True),
        JAPANESE,
    ),
    "/charset/utf-8-bom": (Encoding(in_header=False, mark=b"\xef\xbb\xbf"), JAPANESE),
    "/charset/utf-16": (
        Encoding("utf-16-le", "utf-16", in_header=False, mark=b"\xff\xfe"),
        GERMAN,
    ),
    "/charset/koi8-r": (Encoding("koi8_r", "koi8-r", in_header=False), RUSSIAN),
}
#: Spellings that lead to a page, and its target in the spelling of the URL standard.
_SPELLINGS = {
    "relative": "/links/relative",
    "./dotted": "/links/dotted",
    "../above": "/above",
    "/x/./y/../z": "/x/z",
    "//{authority}/no-scheme": "/no-scheme",
    "HTTP://{AUTHORITY}/Loud": "/Loud",
    "?only=query": "/links/?only=query",
    "/with-fragment#part": "/with-fragment",
    "  /surrounded-by-space\n": "/surrounded-by-space",
    "/with space/inside": "/with%20space/inside",
    "/tab\tand\nbreak": "/tabandbreak",
    "\\back\\slash": "/back/slash",
    "/entities?a=1&b=2": "/entities?a=1&b=2",
    "/%7Euser/percent%2Dencoded": "/%7Euser/percent%2Dencoded",
    "/straße/日本": "/stra%C3%9Fe/%E6%97%A5%E6%9C%AC",
    "/query?q=ü ä": "/query?q=%C3%BC%20%C3%A4",
    "/double//slash/": "/double//slash/",
    "/" + "long-" * 300 + "path": "/" + "long-" * 300 + "path",
}
#: References that lead to no page.
_DEAD_ENDS = (
    "javascript:void(0)",
    "mailto:zoo@example.org",
    "tel:+4912345",
    "data:text/html,hello",
    "JavaScript:alert(1)",
    "http://",
    "http://[broken/",
)
_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8"
    "cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
_FILES = {
    "/files/pixel.png": File("image/png", _PIXEL),
    "/files/paper.pdf": File("application/pdf", b"%PDF-1.4\n%%EOF\n"),
    "/files/readme.txt": File("text/plain; charset=utf-8", b"Nothing but text.\n"),
    "/files/empty": File("text/html; charset=utf-8", b""),
}


def zoo(plot: Plot) -> Site:
    """robots.txt is a 404. The large page has some 400 kB."""
    resources: dict[str, Resource] = {
        **{
            target: _zoo_page(plot, target, language, encoding=encoding, edits_per_day=0.3)
            for target, (encoding, language) in _CHARSETS.items()
        },
        **{target: _zoo_page(plot, target) for target in _SPELLINGS.values()},
        **_FILES,
        "/large": _zoo_page(plot, "/large", paragraphs=1600),
        "/untitled": _zoo_page(plot, "/untitled", titled=False),
        "/links/": Document(
            history=plot.story("links", title="Awkward links", links=tuple(_awkward(plot))),
            born_at=plot.earlier("links"),
        ),
    }
    listed = [*_CHARSETS, *_FILES, "/large", "/untitled", "/links/"]
    home = plot.story("home", title="Zoo", links=[plot.link(target, target) for target in listed])
    resources["/"] = Document(history=home, born_at=plot.earlier("home"))
    return Site(
        name=plot.name,
        title="Zoo",
        resources=resources,
        frame=plot.frame(0.1, plot.link("Home", "/")),
    )


def _awkward(plot: Plot) -> Iterator[Link]:
    for n, (href, target) in enumerate(_SPELLINGS.items()):
        yield Link(f"Animal {n}", plot.place(target), href=href)
    yield Link("Top of this page", plot.place("/links/"), href="#top")
    yield Link("This page", plot.place("/links/"), href="")
    for href in _DEAD_ENDS:
        yield Link("No animal", None, href=href)


def _zoo_page(
    plot: Plot,
    target: str,
    language: Language = ENGLISH,
    *,
    edits_per_day: float = 0.0,
    paragraphs: int = 5,
    encoding: Encoding = UTF_8,
    titled: bool = True,
) -> Document:
    edits = plot.edits(target, edits_per_day)
    story = plot.story(target, language=language, paragraphs=paragraphs, edits=edits)
    return Document(
        history=story, born_at=plot.earlier(target), encoding=encoding, head=Head(titled=titled)
    )


# -- events ------------------------------------------------------------------
#
# A site with endless calendars and sessions beside a few honest pages.

#: The traps of such a site.
EVENT_TRAPS: Final = (Trap.CALENDAR, Trap.SESSION)


def events(plot: Plot, *, traps: tuple[Trap, ...] = EVENT_TRAPS) -> Site:
    """The start page leads into both traps; event pages are honest."""
    targets = [f"/event/{n}" for n in range(1, plot.pages)]
    resources: dict[str, Resource] = {}
    for target in targets:
        story = plot.story(target, edits=plot.edits(target, 0.2))
        resources[target] = Document(history=story, born_at=plot.earlier(target))
    links = [plot.link(target, target) for target in targets]
    links += [plot.link(trap.name.title(), ENTRANCES[trap]) for trap in traps]
    home = plot.story("home", title="Events", links=links)
    resources["/"] = Document(history=home, born_at=plot.earlier("home"))
    return Site(
        name=plot.name,
        title="What is on",
        resources=resources,
        validation=Validation.CONTENT,
        frame=plot.frame(0.3, plot.link("Home", "/")),
        robots="User-agent: *\nDisallow:\n",
        traps=traps,
    )


# -- board -------------------------------------------------------------------
#
# A notice board: prices, dates and prose, with frame and noise amid the content.

#: Edits per day, in turn.
_RATES_PER_DAY = (0.3, 0.05, 0.0, 0.15, 0.02)
_FRAME_FORMS = (Form.FOOTER, Form.ADVERT, Form.BANNER, Form.REBUILD)


def board(plot: Plot, clutter: Collection[Clutter]) -> Site:
    """A third of the pages states a price, a third a date; nothing names the frame."""
    targets = [f"/notice/{n}" for n in range(1, plot.pages)]
    resources: dict[str, Resource] = dict(SITEMAPS)
    for n, target in enumerate(targets):
        figure, dated = n % 3 == 0, n % 3 == 1
        rate = _RATES_PER_DAY[n % len(_RATES_PER_DAY)]
        edits = plot.edits(target, rate, figure=figure, dated=dated)
        story = plot.story(target, figure=figure, dated=dated, edits=edits)
        resources[target] = Document(history=story, born_at=plot.earlier(target))
    links = [plot.link(target.strip("/"), target) for target in targets]
    home = plot.story("home", title="Notices", links=links)
    resources["/"] = Document(history=home, born_at=plot.earlier("home"))
    return Site(
        name=plot.name,
        title=f"Board of {plot.name}",
        resources=resources,
        skin=Skin.CLUTTERED,
        clutter=frozenset(clutter),
        validation=Validation.NONE,
        frame=plot.frame(0.15, forms=_FRAME_FORMS),
        robots=OPEN_ROBOTS,
    )


# -- bazaar ------------------------------------------------------------------
#
# A shop with wares that come, listed in ways that never end, beside calendars and sessions.

_PER_PAGE = 20
#: In so many days as many wares come as there were at the start.
_RENEWED_DAYS = 60.0


def bazaar(plot: Plot, *, traps: tuple[Trap, ...] = tuple(Trap)) -> Site:
    """The start page shows the newest wares and leads into the traps; older pages follow."""
    births = sorted(plot.earlier("ware", n) for n in range(max(1, plot.pages - 3)))
    rate = len(births) / _RENEWED_DAYS
    births += poisson_times(plot.rng("births"), rate, plot.start_at, plot.end_at)
    entries = []
    resources: dict[str, Resource] = {}
    for n, born_at in enumerate(births):
        target = f"{WARE}{n}"
        story = plot.story(target, edits=plot.edits(target, 0.05, since=born_at))
        resources[target] = Document(history=story, born_at=born_at)
        entries.append(
            Entry(plot.link(story.title, target, note="in stock, sent at once"), born_at)
        )
    resources |= _lists(plot, entries[::-1], traps)
    return Site(
        name=plot.name,
        title="Bazaar",
        resources=resources,
        validation=Validation.CONTENT,
        frame=plot.frame(0.1, plot.link("Home", "/")),
        robots="User-agent: *\nDisallow:\n",
        traps=traps,
    )


def _lists(plot: Plot, entries: list[Entry], traps: tuple[Trap, ...]) -> dict[str, Resource]:
    """The start page, and the pages behind it to which older wares are pushed."""
    tail = [Entry(plot.link(trap.name.title(), ENTRANCES[trap]), 0.0) for trap in traps]
    lists: dict[str, Resource] = {}
    born_at = plot.start_at - 61 * DAY_S
    for n, first in enumerate(range(0, len(entries), _PER_PAGE)):
        target, links = f"/all/{n + 1}" if n else "/", [] if n else tail
        following = first + _PER_PAGE
        behind_at = entries[-following - 1].born_at if following < len(entries) else None
        if behind_at is not None:
            links = [Entry(plot.link("Older wares", f"/all/{n + 2}"), behind_at), *links]
        listing = Listing(f"Wares, page {n + 1}", entries, first=first, count=_PER_PAGE, tail=links)
        lists[target] = Document(history=listing, born_at=born_at)
        born_at = behind_at or born_at
    return lists
