"""A site: resources by target, inside one frame. Pure values.

Its documents have histories of main content, it has one of the frame around them; together
they are the truth, and whatever a server says is derived from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from freshet.crawler.synthetic_web.content import Link, Revision
from freshet.crawler.synthetic_web.languages import ENGLISH, Language
from freshet.crawler.synthetic_web.resources import Document, Fault, Manifest, Resource


class Trap(StrEnum):
    """Endless sets of pages, by what their targets begin with.

    Months in the path and in the query, sessions, filters in the query and in the path, and
    relative links that lead ever deeper.
    """

    CALENDAR = "/calendar/"
    SESSION = "/rooms/"
    DATES = "/dates?"
    FILTERS = "/wares?"
    FACETS = "/shelves/"
    DEEPER = "/deeper/"


class Skin(StrEnum):
    """How pages are marked up: landmarks, ``div`` and class names, or the bare content.

    In ``CLUTTERED`` ones noise and frame stand amid the content, and no name tells.
    """

    SEMANTIC = "semantic"
    SOUP = "soup"
    BARE = "bare"
    CLUTTERED = "cluttered"


class Clutter(StrEnum):
    """Noise amid the content: what stands in the answers of a cluttered site."""

    STAMPS = "stamps"
    ADVERTS = "adverts"
    VARIANTS = "variants"


class Validation(StrEnum):
    """Which validators a site's pages carry (RFC 9110, section 8.8).

    ``BYTES``: a strong ETag that differs with any byte, noise included. ``CONTENT``: ETag
    and Last-Modified that change with main content and frame only. ``DATE``: Last-Modified
    alone.
    """

    NONE = "none"
    BYTES = "bytes"
    CONTENT = "content"
    DATE = "date"


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame around all pages of a site: its links, and its changes."""

    links: tuple[Link, ...] = ()
    revisions: tuple[Revision, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One host. ``forbidden`` targets are those that its robots.txt closes for everybody.

    ``clutter`` is for the skin of that name. ``robots`` is the text of robots.txt, in which
    ``{origin}`` stands for the site's own; None is a 404. ``moved_to`` is the site to which
    every request is redirected.
    """

    name: str
    title: str
    resources: Mapping[str, Resource] = field(default_factory=dict)
    language: Language = ENGLISH
    skin: Skin = Skin.SEMANTIC
    clutter: frozenset[Clutter] = frozenset()
    validation: Validation = Validation.CONTENT
    frame: Frame = Frame()
    robots: str | None = None
    forbidden: frozenset[str] = frozenset()
    traps: tuple[Trap, ...] = ()
    moved_to: str | None = None

    def find(self, target: str) -> Resource | None:
        """What is at a target; parameters of the ``utm_`` family do not matter."""
        if target == "/robots.txt":
            return Manifest.ROBOTS if self.robots is not None else None
        return self.resources.get(without_utm(target))

    def trap(self, target: str) -> Trap | None:
        """The endless set to which a target belongs."""
        return next((trap for trap in self.traps if target.startswith(trap)), None)

    def documents(self) -> list[tuple[str, Document]]:
        """All documents that ever are, with their targets."""
        found = []
        for target, resource in self.resources.items():
            page = resource.then if isinstance(resource, Fault) else resource
            if isinstance(page, Document):
                found.append((target, page))
        return found

    @property
    def feed(self) -> tuple[str, Manifest] | None:
        """Where the feed is, and in which format."""
        for target, resource in self.resources.items():
            if isinstance(resource, Manifest) and resource in {Manifest.ATOM, Manifest.RSS}:
                return target, resource
        return None


def without_utm(target: str) -> str:
    """A target without the parameters that say how a visitor came."""
    if "utm_" not in target:
        return target
    path, _, query = target.partition("?")
    kept = "&".join(p for p in query.split("&") if not p.startswith("utm_"))
    return f"{path}?{kept}" if kept else path
