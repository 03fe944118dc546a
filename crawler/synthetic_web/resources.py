"""What can stand at a target of a site. Pure values; times are Unix seconds (UTC)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from freshet.crawler.synthetic_web.content import Content, History, Place, version_at


@dataclass(frozen=True, slots=True)
class Encoding:
    """How text becomes bytes, and where the page says so."""

    codec: str = "utf-8"
    label: str = "utf-8"
    in_header: bool = True
    in_meta: bool = False
    mark: bytes = b""


UTF_8 = Encoding()


@dataclass(frozen=True, slots=True)
class Head:
    """What a document says of itself to machines; ``canonical`` and ``refresh`` are targets.

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
        """Whether the links of the document are not to be followed."""
        return "nofollow" in f"{self.robots} {self.robots_header}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """An HTML page with a life: after its death the answer is 410, or 301 if it moved."""

    history: History
    born_at: float
    died_at: float | None = None
    moved_to: str | None = None
    head: Head = Head()
    encoding: Encoding = UTF_8
    in_sitemap: bool = True

    def is_alive(self, at: float) -> bool:
        """Whether the page answers 200."""
        return self.born_at <= at and (self.died_at is None or at < self.died_at)

    def content_at(self, at: float) -> Content:
        """The main content as of a time."""
        return self.history.content(version_at(self.history.revisions, at))

    def changed_at(self, at: float) -> float:
        """When the main content took the form that it has at a time; at the earliest at birth."""
        version = version_at(self.history.revisions, at)
        revised_at = self.history.revisions[version - 1].at if version else self.born_at
        return max(self.born_at, revised_at)


@dataclass(frozen=True, slots=True)
class Redirect:
    """An answer with a Location (absolute or relative), or without one if ``to`` is None."""

    status: int
    to: Place | None
    relative: bool = False


@dataclass(frozen=True, slots=True)
class File:
    """Bytes that never change."""

    content_type: str
    body: bytes

    @property
    def is_page(self) -> bool:
        """Whether a crawler counts it as a page: what it can compare with another version."""
        return self.content_type.startswith(("text/html", "text/plain", "application/pdf"))


@dataclass(frozen=True, slots=True)
class Fault:
    """Answers ``status`` to the first of every ``period`` requests, else as ``then``.

    The period 0 means the very first request only. Without ``then`` it never recovers.
    Retry-After comes in seconds, or as a date.
    """

    status: int
    then: Document | None = None
    period: int = 0
    retry_after_s: int | None = None
    as_date: bool = False

    def strikes(self, serial: int) -> bool:
        """Whether the request with that many before it fails."""
        if self.then is None:
            return True
        return serial % self.period == 0 if self.period else serial == 0


class Manifest(StrEnum):
    """Files that a site writes about itself for machines."""

    ROBOTS = "robots"
    SITEMAP_INDEX = "sitemap index"
    SITEMAP = "sitemap"
    SITEMAP_GZIP = "sitemap gzip"
    ATOM = "atom"
    RSS = "rss"


Resource = Document | Redirect | File | Fault | Manifest
