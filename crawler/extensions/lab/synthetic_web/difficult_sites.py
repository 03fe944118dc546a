"""Builders of difficult sites: copies, redirects, faults, rules, charsets, noise, endless sets."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import chain, pairwise
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from freshet.crawler.extensions.lab.synthetic_web.content import (
    DAY_S,
    GERMAN,
    JAPANESE,
    RUSSIAN,
    Content,
    Language,
    Link,
    SyntheticUrl,
    compose,
    generator,
    poisson_times,
)
from freshet.crawler.extensions.lab.synthetic_web.site import (
    TRAPS,
    Encoding,
    Fault,
    File,
    Head,
    LivingPage,
    Redirect,
    Resource,
    SyntheticSite,
    Trap,
    link_list,
)
from freshet.crawler.extensions.lab.synthetic_web.sites import NOTHING_FORBIDDEN, SITEMAPS, Plot

_DATA: Final[dict[str, Any]] = tomllib.loads(
    (files(__package__) / "difficult_sites.toml").read_text(encoding="utf-8")
)

# -- traps -------------------------------------------------------------------
#
# Endless sets of pages: every page leads to another that nobody has seen.

# -- wares -------------------------------------------------------------------
# Every list shows wares that others show, too; each filter can be added to every list, and a
# filter in the query always has a next page.
#: Where wares stand that are pages of their own.
WARE: Final = "/ware/"
_FILTERS: Final[Mapping[str, Sequence[str]]] = {
    "colour": ("red", "green", "blue", "white", "black"),
    "size": ("small", "medium", "large", "huge"),
    "fabric": ("cotton", "linen", "wool", "silk"),
    "sort": ("name", "price", "newest"),
}
#: Filters in a path; an order is none.
_SHELVES: Final = tuple(chain.from_iterable(v for k, v in _FILTERS.items() if k != "sort"))
_PER_PAGE: Final = 8
#: So many in a hundred wares have each property.
_SHARE: Final = 60


def filtered(site: SyntheticSite, target: str, at: float) -> Content | None:
    """Return the list at a target such as ``/wares?colour=red&page=2``, None without a filter."""
    chosen = dict(parse_qsl(target.partition("?")[2]))
    page = chosen.pop("page", "1")
    if not page.isdecimal() or any(v not in _FILTERS.get(k, ()) for k, v in chosen.items()):
        return None
    wares = _wares(site, [v for k, v in chosen.items() if k != "sort"], at)
    if chosen.get("sort") == "price":
        wares.reverse()
    # After the last page comes the first one again.
    first = (int(page) - 1) * _PER_PAGE % max(len(wares), 1)
    links = wares[first : first + _PER_PAGE]
    links += [
        Link(value.title(), _query(site, {**chosen, name: value}))
        for name, values in _FILTERS.items()
        for value in values
        if chosen.get(name) != value
    ]
    links.append(Link("Next page", _query(site, {**chosen, "page": str(int(page) + 1)})))
    return Content(_title(list(chosen.values())), (), tuple(links))


def shelved(site: SyntheticSite, target: str, at: float) -> Content | None:
    """Return the list at a target such as ``/shelves/red/large``, None without a filter."""
    chosen = [each for each in target.removeprefix("/shelves/").split("/") if each]
    if not set(chosen) <= set(_SHELVES):
        return None
    path = target.removesuffix("/")
    links = _wares(site, chosen, at)[:_PER_PAGE]
    links += [
        Link(value.title(), SyntheticUrl(site.name, f"{path}/{value}"))
        for value in _SHELVES
        if value not in chosen
    ]
    return Content(_title(chosen), (), tuple(links))


def _title(chosen: Sequence[str]) -> str:
    return " ".join(("Wares", *chosen))


def _query(site: SyntheticSite, chosen: Mapping[str, str]) -> SyntheticUrl:
    return SyntheticUrl(site.name, f"/wares?{urlencode(sorted(chosen.items()))}")


def _wares(site: SyntheticSite, wanted: Sequence[str], at: float) -> list[Link]:
    """Return the wares with all wanted properties, in the same order on every list."""
    return [
        Link(
            ware.history.content(0).title,
            SyntheticUrl(site.name, target),
            note="in stock, sent at once",
        )
        for target, ware in site.resources.items()
        if target.startswith(WARE) and isinstance(ware, LivingPage) and ware.is_alive(at)
        if all(generator(site.name, target, v).randrange(100) < _SHARE for v in wanted)
    ]


#: The first page of each trap.
ENTRANCES: Final[Mapping[Trap, str]] = {
    "calendar": "/calendar/2026/01",
    "session": f"/rooms/1?sid={'5f1e' * 8}",
    "dates": "/dates?month=2026-01",
    "filters": "/wares?sort=name",
    "facets": "/shelves/",
    "deeper": "/deeper/",
}
_ROOMS = 4
#: Relative links of every page under ``/deeper/``.
_DEEPER: Final = ("further", "onward", "beyond", "below", "within", "yonder")


def trap_content(
    site: SyntheticSite, trap: Trap, target: str, session: str, at: float
) -> Content | None:
    """Return the page at a target of an endless set, None if it belongs to none.

    ``session`` is fresh in every answer.
    """
    match trap:
        case "calendar":
            found = re.fullmatch(r"/calendar/(\d{1,6})/(\d\d)", target)
            return found and _month(site, found, "/calendar/{}/{:02}")
        case "dates":
            found = re.fullmatch(r"/dates\?month=(\d{1,6})-(\d\d)", target)
            return found and _month(site, found, "/dates?month={}-{:02}")
        case "session":
            found = re.fullmatch(r"/rooms/(\d)(?:\?.*)?", target)
            return found and _room(site, found[1], session)
        case "filters":
            return filtered(site, target, at)
        case "facets":
            return shelved(site, target, at)
        case "deeper":
            return _deeper(site, target)


def _month(site: SyntheticSite, found: re.Match[str], form: str) -> Content:
    """Make a month without events, with links to its neighbours: years go on for ever."""
    year, month = int(found[1]), int(found[2])
    number = year * 12 + month - 1
    links = tuple(
        Link(text, SyntheticUrl(site.name, form.format(n // 12, n % 12 + 1)))
        for text, n in (("Previous month", number - 1), ("Next month", number + 1))
        if n >= 0
    )
    return Content(f"Calendar of {year}-{month:02}", (), links)


def _room(site: SyntheticSite, room: str, session: str) -> Content:
    """Make one of a few pages; each link to one carries a new session."""
    blocks = compose(generator(site.name, "room", room), site.language, 3, figure=False)
    links = tuple(
        Link(f"Room {n}", SyntheticUrl(site.name, f"/rooms/{n}?sid={session}{n}"))
        for n in range(1, _ROOMS + 1)
    )
    return Content(f"Room {room}", blocks, links)


def _deeper(site: SyntheticSite, target: str) -> Content | None:
    """Make the page of every directory, with relative links to directories in it."""
    if not target.endswith("/") or set(target.split("/")[2:-1]) - set(_DEEPER):
        return None
    blocks = compose(generator(site.name, "deeper"), site.language, 3, figure=False)
    links = (
        Link(word.title(), SyntheticUrl(site.name, f"{target}{word}/"), href=f"{word}/")
        for word in _DEEPER
    )
    return Content("Deeper", blocks, tuple(links))


#: Hops from the head of each chain to its end.
CHAINS: Final = {"short": 3, "longest": 10, "endless-looking": 12}
#: Redirects: the status, and the target, None for an answer without a Location.
_REDIRECTS: Final = {
    **{f"/moved-{status}": (status, "/found") for status in (301, 302, 303, 307, 308)},
    "/loop-a": (302, "/loop-b"),
    "/loop-b": (302, "/loop-a"),
    "/self": (301, "/self"),
    "/nowhere": (302, None),
}
#: Faults that stay, and those that pass, for which there is a page.
_FAULTS: Final = {"/broken": Fault(500), "/forbidden": Fault(403)}
_PASSING: Final = {
    "/now-and-then": Fault(500, period=4),
    "/busy": Fault(503, retry_after_s=1),
    "/too-many": Fault(429, retry_after_s=1, as_date=True),
}
#: What is reached by a redirect only.
_ENDS: Final = frozenset({"/found", "/refreshed", *(f"/{name}/end" for name in CHAINS)})


def statuses(plot: Plot) -> SyntheticSite:
    """Build every status that a crawler meets: redirects, a refresh, faults; no robots.txt."""
    resources: dict[str, Resource] = {"/found": plot.page("/found")}
    for target, (status, to) in _REDIRECTS.items():
        place = None if to is None else plot.place(to)
        resources[target] = Redirect(status, place, relative=to == "/found" and status % 2 == 0)
    resources |= _FAULTS
    resources |= {t: replace(fault, then=plot.page(t)) for t, fault in _PASSING.items()}
    refresh = plot.page("/refresh", in_sitemap=False)
    resources["/refresh"] = replace(refresh, head=Head(refresh="/refreshed"))
    resources["/refreshed"] = plot.page("/refreshed")
    resources["/gone"] = LivingPage(history=plot.story("/gone"), born_at=0.0, died_at=1.0)
    for name, hops in CHAINS.items():
        stations = [f"/{name}", *(f"/{name}/hop-{n}" for n in range(1, hops)), f"/{name}/end"]
        for n, (here, there) in enumerate(pairwise(stations)):
            status = (301, 302, 307, 308)[n % 4]
            resources[here] = Redirect(status, plot.place(there), relative=n % 2 == 0)
        resources[stations[-1]] = plot.page(stations[-1])
    linked = [*resources, "/missing"]
    links = [plot.link(t, t) for t in linked if t not in _ENDS and "/hop-" not in t]
    resources["/"] = plot.page("home", title="Every status", paragraphs=3, links=links)
    frame = plot.frame(0.1, plot.link("Home", "/"))
    return SyntheticSite(plot.name, "Status board", resources, frame)


_ALLOWED: Final[list[str]] = _DATA["allowed"]
_FORBIDDEN: Final[list[str]] = _DATA["forbidden"]
#: Linked from a forbidden page only.
_BEHIND: Final = "/behind-the-wall"


def guarded(plot: Plot) -> SyntheticSite:
    """Build a site whose robots.txt has rules of every kind, with text like Chinese or Japanese.

    A directory with an exception, wildcards, a Crawl-delay of 0.2 s. Pages behind a forbidden page
    are not in the sitemap.
    """
    targets = [*_ALLOWED, *_FORBIDDEN]
    targets += [f"/hall/{n}" for n in range(1, plot.pages - len(_ALLOWED))]
    behind = plot.page(_BEHIND, language=JAPANESE, in_sitemap=False)
    resources: dict[str, Resource] = {**SITEMAPS, _BEHIND: behind}
    for target in targets:
        links = [plot.link("Secret", _BEHIND)] if target in _FORBIDDEN else []
        resources[target] = plot.page(target, 0.1, language=JAPANESE, links=links)
    links = [plot.link(target, target) for target in targets]
    resources["/"] = plot.page("home", language=JAPANESE, links=links)
    frame = plot.frame(0.1, plot.link("Home", "/"))
    return SyntheticSite(
        plot.name,
        "門",
        resources,
        frame,
        language=JAPANESE,
        validation="date",
        robots=_DATA["robots"],
        forbidden=frozenset(_FORBIDDEN),
    )


#: Pages that only nofollow links lead to.
_HIDDEN: Final = ("/hidden-by-link", "/hidden-by-meta", "/hidden-by-header")
#: Pages that only the page with a base element leads to.
_BELOW: Final = ("/deep/below/relative", "/deep/sideways")
_HEADS: Final = {
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
#: Links of single pages: text, target, and reference where it is not the plain one.
_OUTGOING: Final[dict[str, list[tuple[str, str, str | None]]]] = {
    "/nofollow": [("Hidden", "/hidden-by-meta", None)],
    "/nofollow-by-header": [("Hidden", "/hidden-by-header", None)],
    "/based": [("relative", _BELOW[0], "relative"), ("../sideways", _BELOW[1], "../sideways")],
}


def notes(plot: Plot) -> SyntheticSite:
    """Build pages that speak to crawlers: robots directives, canonical, base.

    robots.txt is a 404; noindex, nofollow and noarchive stand in meta elements and headers.
    """
    extra = [f"/note-{n}" for n in range(1, plot.pages - len(_HEADS))]
    heads = {**_HEADS, **{target: Head() for target in extra}}
    links = [plot.link(t, t) for t in heads if t not in {*_HIDDEN, *_BELOW}]
    links.append(plot.link("Not for crawlers", "/hidden-by-link", rel="nofollow ugc"))
    resources: dict[str, Resource] = {"/": plot.page("home", title="Notes", links=links)}
    for target, head in heads.items():
        # Duplicates show what the original shows.
        key = head.canonical or target
        outgoing = [
            Link(text, plot.place(to), href=href) for text, to, href in _OUTGOING.get(target, ())
        ]
        page = plot.page(key, 0.1, links=outgoing)
        resources[target] = replace(page, head=head, born_at=plot.earlier(target))
    return SyntheticSite(plot.name, "Notebook", resources, plot.frame(0.1), validation="none")


_CHARSETS: Final[dict[str, tuple[Encoding, Language]]] = {
    "/charset/windows-1252": (Encoding("cp1252", "windows-1252"), GERMAN),
    "/charset/shift-jis": (
        Encoding("shift_jis", "Shift_JIS", in_header=False, in_meta=True),
        JAPANESE,
    ),
    "/charset/utf-8-bom": (Encoding(in_header=False, mark=b"\xef\xbb\xbf"), JAPANESE),
    "/charset/utf-16": (Encoding("utf-16-le", "utf-16", in_header=False, mark=b"\xff\xfe"), GERMAN),
    "/charset/koi8-r": (Encoding("koi8_r", "koi8-r", in_header=False), RUSSIAN),
}
#: Spellings that lead to a page, and its target in the spelling of the URL standard.
_LONG: Final = "/" + "long-" * 300 + "path"
_SPELLINGS: Final[Mapping[str, str]] = {**_DATA["spellings"], _LONG: _LONG}
_FILES: Final = {
    "/files/pixel.png": File("image/png", bytes.fromhex(_DATA["pixel"])),
    "/files/paper.pdf": File("application/pdf", b"%PDF-1.4\n%%EOF\n"),
    "/files/readme.txt": File("text/plain; charset=utf-8", b"Nothing but text.\n"),
    "/files/empty": File("text/html; charset=utf-8", b""),
}


def zoo(plot: Plot) -> SyntheticSite:
    """Build a zoo of charsets, awkward links, and bodies of strange size and type.

    robots.txt is a 404. The large page has some 400 kB.
    """
    resources: dict[str, Resource] = {}
    for target, (encoding, language) in _CHARSETS.items():
        resources[target] = replace(plot.page(target, 0.3, language=language), encoding=encoding)
    resources |= {target: plot.page(target) for target in _SPELLINGS.values()}
    resources |= _FILES
    resources["/large"] = plot.page("/large", paragraphs=1600)
    resources["/untitled"] = replace(plot.page("/untitled"), head=Head(titled=False))
    references = [(f"Animal {n}", each) for n, each in enumerate(_SPELLINGS.items())]
    references += [("Top of this page", ("#top", "/links/")), ("This page", ("", "/links/"))]
    awkward = [Link(text, plot.place(target), href=href) for text, (href, target) in references]
    awkward += [Link("No animal", None, href=href) for href in _DATA["dead_ends"]]
    resources["/links/"] = plot.page("links", title="Awkward links", links=awkward)
    listed = [*_CHARSETS, *_FILES, "/large", "/untitled", "/links/"]
    links = [plot.link(target, target) for target in listed]
    resources["/"] = plot.page("home", title="Zoo", links=links)
    frame = plot.frame(0.1, plot.link("Home", "/"))
    return SyntheticSite(plot.name, "Zoo", resources, frame)


#: The traps of a site of events.
EVENT_TRAPS: Final[tuple[Trap, ...]] = ("calendar", "session")


def events(plot: Plot, *, traps: tuple[Trap, ...] = EVENT_TRAPS) -> SyntheticSite:
    """Build honest event pages beside endless calendars and sessions, where home leads, too."""
    targets = [f"/event/{n}" for n in range(1, plot.pages)]
    links = [plot.link(target, target) for target in targets]
    links += [plot.link(trap.title(), ENTRANCES[trap]) for trap in traps]
    resources: dict[str, Resource] = {target: plot.page(target, 0.2) for target in targets}
    resources["/"] = plot.page("home", title="Events", links=links)
    frame = plot.frame(0.3, plot.link("Home", "/"))
    return SyntheticSite(
        plot.name, "What is on", resources, frame, robots=NOTHING_FORBIDDEN, traps=traps
    )


#: Wares on a page of the bazaar's list, and the days in which as many come as were at the start.
_SHOWN_PER_PAGE: Final = 20
_RENEWED_DAYS: Final = 60.0


def bazaar(plot: Plot, *, traps: tuple[Trap, ...] = tuple(TRAPS)) -> SyntheticSite:
    """Build a shop with wares that come, in endless listings.

    The start page shows the newest wares and leads into the traps; older pages follow.
    """
    births = sorted(plot.earlier("ware", n) for n in range(max(1, plot.pages - 3)))
    rate = len(births) / _RENEWED_DAYS
    births += poisson_times(plot.rng("births"), rate, plot.start_at, plot.end_at)
    entries = []
    resources: dict[str, Resource] = {}
    for n, born_at in enumerate(births):
        target = f"{WARE}{n}"
        page = resources[target] = plot.page(target, 0.05, born_at=born_at)
        title = page.history.content(0).title
        entries.append(plot.link(title, target, note="in stock, sent at once", born_at=born_at))
    resources |= _lists(plot, entries[::-1], traps)
    frame = plot.frame(0.1, plot.link("Home", "/"))
    return SyntheticSite(
        plot.name, "Bazaar", resources, frame, robots=NOTHING_FORBIDDEN, traps=traps
    )


def _lists(
    plot: Plot, entries: Sequence[Link], traps: Sequence[Trap]
) -> Iterator[tuple[str, LivingPage]]:
    """Yield the start page, and the pages behind it to which older wares are pushed."""
    links = [plot.link(trap.title(), ENTRANCES[trap]) for trap in traps]
    born_at = plot.start_at - 61 * DAY_S
    for n, first in enumerate(range(0, len(entries), _SHOWN_PER_PAGE)):
        following = first + _SHOWN_PER_PAGE
        behind_at = entries[-following - 1].born_at if following < len(entries) else None
        if behind_at is not None:
            links = [plot.link("Older wares", f"/all/{n + 2}", born_at=behind_at), *links]
        listing = link_list(
            f"Wares, page {n + 1}", entries, first=first, count=_SHOWN_PER_PAGE, tail=links
        )
        yield f"/all/{n + 1}" if n else "/", LivingPage(history=listing, born_at=born_at)
        links, born_at = [], behind_at or born_at
