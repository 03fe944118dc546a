"""A site: its resources by target, its frame, the histories of its pages, its addresses.

The histories of main content and frame are the truth; all answers of a server are derived from
them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Literal, TypeAlias

from freshet.crawler.extensions.lab.synthetic_web.content import (
    ENGLISH,
    Block,
    Content,
    ContentHistory,
    Form,
    Language,
    Link,
    Revision,
    SyntheticUrl,
    compose,
    generator,
    revise,
    version_at,
)


# -- resources ---------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding of text, and the place where the page names it."""

    codec: str = "utf-8"
    label: str = "utf-8"
    in_header: bool = True
    in_meta: bool = False
    mark: bytes = b""


UTF_8 = Encoding()


@dataclass(frozen=True, slots=True)
class Head:
    """A document's metadata for machines; ``canonical`` and ``refresh`` are targets.

    ``robots`` are the words of a robots meta element, ``robots_header`` of X-Robots-Tag.
    """

    titled: bool = True
    robots: str = ""
    robots_header: str = ""
    canonical: str | None = None
    base: str | None = None
    refresh: str | None = None

    @property
    def nofollow(self) -> bool:
        """True if crawlers should not follow the links of the document."""
        return "nofollow" in f"{self.robots} {self.robots_header}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingPage:
    """An HTML page with a life: after its death the answer is 410, or 301 if it moved."""

    history: ContentHistory
    born_at: float
    died_at: float | None = None
    moved_to: str | None = None
    head: Head = Head()
    encoding: Encoding = UTF_8
    in_sitemap: bool = True

    def is_alive(self, at: float) -> bool:
        """Return whether the page answers 200."""
        return self.born_at <= at and (self.died_at is None or at < self.died_at)

    def content_at(self, at: float) -> Content:
        """Return the main content at a time."""
        return self.history.content(version_at(self.history.revisions, at))

    def changed_at(self, at: float) -> float:
        """Return the start of the main content of a time; at the earliest the birth."""
        version = version_at(self.history.revisions, at)
        revised_at = self.history.revisions[version - 1].at if version else self.born_at
        return max(self.born_at, revised_at)


@dataclass(frozen=True, slots=True)
class Redirect:
    """An answer with a Location (absolute or relative), or without one if ``to`` is None."""

    status: int
    to: SyntheticUrl | None
    relative: bool = False


@dataclass(frozen=True, slots=True)
class File:
    """Bytes that never change."""

    content_type: str
    body: bytes

    @property
    def is_page(self) -> bool:
        """True if a crawler counts it as a page, comparable with another version."""
        return self.content_type.startswith(("text/html", "text/plain", "application/pdf"))


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that answers ``status`` to the first of every ``period`` requests, else ``then``.

    The period 0 means the very first request only. Without ``then`` it never recovers. Retry-After
    comes in seconds, or as a date.
    """

    status: int
    then: LivingPage | None = None
    period: int = 0
    retry_after_s: int | None = None
    as_date: bool = False

    def strikes(self, serial: int) -> bool:
        """Return whether the request after that many others fails."""
        if self.then is None:
            return True
        return serial % self.period == 0 if self.period else serial == 0


#: Files that a site writes about itself for machines.
Manifest: TypeAlias = Literal["robots", "sitemap index", "sitemap", "sitemap gzip", "atom", "rss"]
Resource: TypeAlias = LivingPage | Redirect | File | Fault | Manifest

Trap: TypeAlias = Literal["calendar", "session", "dates", "filters", "facets", "deeper"]
#: Endless sets of pages, and where their targets begin.
#:
#: Months in the path and in the query, sessions, filters in the query and in the path, and relative
#: links that lead ever deeper.
TRAPS: Mapping[Trap, str] = {
    "calendar": "/calendar/",
    "session": "/rooms/",
    "dates": "/dates?",
    "filters": "/wares?",
    "facets": "/shelves/",
    "deeper": "/deeper/",
}

#: The markup of a site's pages after edits of its frame, by their forms.
#:
#: A template with places for the parts of a page, ``{title} {navigation} {main} {build}
#: {revision}``, and for noise, ``{rendered_at} {token} {nonce} {visitors} {advert} {variant}``.
Skin = Callable[[Counter[Form]], str]

_FORM = (
    '<form method="post" action="/subscribe"><input type="hidden" name="csrf_token"'
    ' value="{token}"><button>Subscribe</button></form>'
)
_STAMPS = (
    "<p>Page rendered at {rendered_at}</p><p>{visitors} visitors today</p>"
    "<p>Build {build}, revision {revision}</p>"
)


def semantic(_edited: Counter[Form]) -> str:
    """Mark the parts of a page with landmarks."""
    return f"""<script nonce="{{nonce}}">window.ready = true;</script>
<div class="cookie-banner" role="dialog">We use cookies. <button>OK</button></div>
<header><p>{{title}}</p><nav>{{navigation}}</nav></header>
<main><article data-token="{{nonce}}">
{{main}}</article></main>
<aside class="advert"><p>{{advert}}</p></aside>
<footer>{_FORM}{_STAMPS}</footer>
"""


def soup(_edited: Counter[Form]) -> str:
    """Mark the parts of a page with class names of ``div``."""
    return f"""<div class="header"><div class="logo">{{title}}</div>\
<div class="navigation">{{navigation}}</div></div>
<div class="content" data-token="{{nonce}}">
{{main}}</div>
<div class="sidebar"><div class="ad">{{advert}}</div>\
<div class="cookie-notice">This shop uses cookies.</div></div>
<div class="footer">{_FORM}{_STAMPS}</div>
"""


#: The validators that a site's pages carry (RFC 9110, section 8.8).
#:
#: "bytes": a strong ETag that differs with any byte, noise included. "content": ETag and
#: Last-Modified that change with main content and frame only. "date": Last-Modified alone.
Validation: TypeAlias = Literal["none", "bytes", "content", "date"]


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame around all pages of a site: its links, and its changes."""

    links: tuple[Link, ...] = ()
    revisions: tuple[Revision, ...] = ()


@dataclass(frozen=True, slots=True)
class SyntheticSite:
    """One host. Its robots.txt closes the ``forbidden`` targets for everybody.

    ``robots`` is the text of robots.txt, in which ``{origin}`` stands for the site's own; None is a
    404. ``moved_to`` is the site to which every request is redirected.
    """

    name: str
    title: str
    resources: Mapping[str, Resource] = field(default_factory=dict)
    frame: Frame = Frame()
    _: KW_ONLY
    language: Language = ENGLISH
    skin: Skin = semantic
    validation: Validation = "content"
    robots: str | None = None
    forbidden: frozenset[str] = frozenset()
    traps: tuple[Trap, ...] = ()
    moved_to: str | None = None

    def find(self, target: str) -> Resource | None:
        """Return the resource at a target; parameters of the ``utm_`` family do not matter."""
        if target == "/robots.txt":
            return "robots" if self.robots is not None else None
        return self.resources.get(without_utm(target))

    def trap(self, target: str) -> Trap | None:
        """Return the endless set to which a target belongs."""
        return next((trap for trap in self.traps if target.startswith(TRAPS[trap])), None)

    def documents(self) -> list[tuple[str, LivingPage]]:
        """Return all documents that ever live, with their targets."""
        found = ((t, r.then if isinstance(r, Fault) else r) for t, r in self.resources.items())
        return [(target, page) for target, page in found if isinstance(page, LivingPage)]

    @property
    def feed(self) -> tuple[str, Manifest] | None:
        """The target and the format of the feed."""
        for target, resource in self.resources.items():
            if isinstance(resource, str) and resource in {"atom", "rss"}:
                return target, resource
        return None


def without_utm(target: str) -> str:
    """Return a target without the parameters that say how a visitor came."""
    if "utm_" not in target:
        return target
    path, _, query = target.partition("?")
    kept = "&".join(p for p in query.split("&") if not p.startswith("utm_"))
    return f"{path}?{kept}" if kept else path


# -- histories ---------------------------------------------------------------
def story(
    key: tuple[object, ...],
    language: Language = ENGLISH,
    revisions: tuple[Revision, ...] = (),
    *,
    title: str | None = None,
    paragraphs: int = 5,
    figure: bool = False,
    dated: bool = False,
    links: Sequence[Link] = (),
) -> ContentHistory:
    """Write prose under one title; each version is the one before it with one edit.

    ``key`` names the generators that the text and the edits are drawn from.
    """
    heading = language.title(generator(*key, "title")) if title is None else title
    versions: list[tuple[Block, ...]] = []

    def content(version: int) -> Content:
        if not versions:
            rng = generator(*key, "text")
            versions.append(compose(rng, language, paragraphs, figure=figure, dated=dated))
        for n in range(len(versions), version + 1):
            rng = generator(*key, "edit", n)
            versions.append(revise(versions[-1], revisions[n - 1].form, rng, language))
        return Content(heading, versions[version], tuple(links))

    return ContentHistory(revisions, content)


def link_list(
    title: str, links: Iterable[Link], *, first: int = 0, count: int | None = None,
    tail: Iterable[Link] = (),
) -> ContentHistory:  # fmt: skip
    """List a stretch of links in their order, then a tail of others.

    A revision stands exactly where the visible links change. Hence a new article changes the front
    page, and those pages of the list to which it pushes others.
    """
    stretch = tuple(links)
    every = (*stretch, *tail)
    moves = [(link.born_at, n) for n, link in enumerate(every)]
    moves += [(link.died_at, n) for n, link in enumerate(every) if link.died_at is not None]
    alive: list[int] = []
    versions: list[tuple[Link, ...]] = [()]
    revisions: list[Revision] = []
    for at, run in groupby(sorted(moves), key=itemgetter(0)):
        for _, n in run:
            if every[n].is_shown(at):
                insort(alive, n)
            elif n in alive:
                alive.remove(n)
        end = bisect_left(alive, len(stretch))
        last = end if count is None else min(end, first + count)
        visible = tuple(every[n] for n in (*alive[first:last], *alive[end:]))
        if visible != versions[-1]:
            versions.append(visible)
            revisions.append(Revision(at, "listing"))
    return ContentHistory(revisions, lambda version: Content(title, (), versions[version]))


# -- addresses ---------------------------------------------------------------
def authority(host: str, port: int) -> str:
    """Write host and port as in URLs and Host headers of plain http."""
    return host if port == 80 else f"{host}:{port}"


@dataclass(frozen=True, slots=True)
class Addresses:
    """The authority of each site; plain http."""

    authorities: Mapping[str, str]
    _names: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = {netloc: name for name, netloc in self.authorities.items()}
        object.__setattr__(self, "_names", names)

    @classmethod
    def named(cls, names: Iterable[str], port: int = 80) -> Addresses:
        """Name each site ``NAME.localhost``, which is loopback everywhere (RFC 6761)."""
        return cls({name: authority(f"{name}.localhost", port) for name in names})

    def origin(self, name: str) -> str:
        """Return ``http://HOST:PORT`` of a site.

        Raises:
            KeyError: the web has no such site.
        """
        return f"http://{self.authorities[name]}"

    def url(self, place: SyntheticUrl) -> str:
        """Return the URL of a place; raises as :meth:`origin`."""
        return self.origin(place.host) + place.target

    def name(self, netloc: str) -> str | None:
        """Return the site that a Host header names."""
        return self._names.get(netloc.lower())

    def place(self, url: str) -> SyntheticUrl | None:
        """Return the place of an http URL, without its fragment; None outside this web."""
        scheme, _, rest = url.partition("#")[0].partition("://")
        end = min((rest.find(mark) for mark in "/?" if mark in rest), default=len(rest))
        name = self.name(rest[:end])
        if name is None or scheme.lower() != "http":
            return None
        target = rest[end:]
        return SyntheticUrl(name, target if target.startswith("/") else f"/{target}")
