"""Where a page leads: its links, and URLs for the frontier. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field

from freshet.storage.words import AliasKind, Role


@dataclass(frozen=True, slots=True)
class Links:
    """The links of one page in document order, as columns of equal length.

    ``urls`` are canonical, ``fetch_urls`` resolved as found, without the fragment,
    ``rels`` lower-case, space-separated and sorted, ``anchors`` the text.
    """

    urls: tuple[str, ...] = ()
    fetch_urls: tuple[str, ...] = ()
    rels: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.urls)


@dataclass(frozen=True, slots=True)
class Targets:
    """URLs for the frontier, as columns of equal length.

    ``held_back`` says why a URL is known but not crawled (``nofollow``, ``depth`` …) or
    is None; ``trap_shapes`` name the bounded pattern that a URL falls under, with its
    kind in ``trap_kinds`` and the number of its URLs that are crawled in ``trap_caps``.
    ``patterns`` name what is closed where its pages turn out to be copies.
    """

    urls: list[str] = field(default_factory=list)
    fetch_urls: list[str] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    roles: list[Role] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    redirects: list[int] = field(default_factory=list)
    held_back: list[str | None] = field(default_factory=list)
    trap_shapes: list[str | None] = field(default_factory=list)
    trap_kinds: list[str | None] = field(default_factory=list)
    trap_caps: list[int] = field(default_factory=list)
    patterns: list[str | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.urls)


@dataclass(frozen=True, slots=True)
class Alias:
    """The visited URL is another name of the page at ``url``."""

    url: str
    kind: AliasKind


@dataclass(frozen=True, slots=True)
class Churn:
    """What a look at a page showed of how its links come and go.

    ``since`` is the look before, in Unix seconds; ``appeared`` counts links to pages that were not
    known then, ``dropped`` those that are not there any more, ``stayed`` what appeared since the
    first look and is still there.
    """

    since: float
    appeared: int
    dropped: int
    stayed: int
