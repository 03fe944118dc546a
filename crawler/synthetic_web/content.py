"""Main content and its history. Pure values; times are Unix seconds (UTC).

A page's main content changes by edits, of which each has a form, and a kind: edits of the
frame around the content belong to the site.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol


class Place(NamedTuple):
    """A site's name, and a path with its query in the spelling of the WHATWG URL standard."""

    host: str
    target: str


@dataclass(frozen=True, slots=True)
class Link:
    """An anchor. ``leads_to`` is the truth about where, None where no crawler should follow.

    ``href`` is what the page says, None for the plain spelling; ``{authority}`` in it stands
    for the site's own host and port, ``{AUTHORITY}`` for the same in capitals. ``note`` is
    text beside the anchor.
    """

    text: str
    leads_to: Place | None
    href: str | None = None
    rel: str = ""
    note: str = ""


class BlockKind(StrEnum):
    """What a block of main content is; a figure states a number, a date when something is."""

    PARAGRAPH = "paragraph"
    FIGURE = "figure"
    DATE = "date"


@dataclass(frozen=True, slots=True)
class Block:
    """One block of main content."""

    kind: BlockKind
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentences in a row."""
        return " ".join(self.sentences)


@dataclass(frozen=True, slots=True)
class Content:
    """The main content of one version of a page."""

    title: str
    blocks: tuple[Block, ...] = ()
    links: tuple[Link, ...] = ()

    @property
    def text(self) -> str:
        """All that a reader sees of it: two versions are the same if and only if this is."""
        entries = (f"{link.text} {link.note}" for link in self.links)
        return "\n".join((self.title, *(block.text for block in self.blocks), *entries))


class EditKind(StrEnum):
    """Whether an edit touches the main content, or only the frame around it."""

    MAIN = "main"
    FRAME = "frame"


class Form(StrEnum):
    """What an edit does."""

    WORD = "word"
    NUMBER = "number"
    DATE = "date"
    SENTENCE_ADDED = "sentence_added"
    PARAGRAPH_ADDED = "paragraph_added"
    PARAGRAPH_REMOVED = "paragraph_removed"
    REWRITE = "rewrite"
    LISTING = "listing"
    FOOTER = "footer"
    NAVIGATION = "navigation"
    ADVERT = "advert"
    BANNER = "banner"
    REBUILD = "rebuild"

    @property
    def kind(self) -> EditKind:
        """The part of the page that is touched."""
        return EditKind.FRAME if self in _FRAME_FORMS else EditKind.MAIN


_FRAME_FORMS = frozenset({Form.FOOTER, Form.NAVIGATION, Form.ADVERT, Form.BANNER, Form.REBUILD})


@dataclass(frozen=True, slots=True)
class Revision:
    """A change at a time (in whole seconds)."""

    at: float
    form: Form


class History(Protocol):
    """What the main content of a document was when.

    Version 0 is the first; version n follows the n-th revision.
    """

    @property
    def revisions(self) -> Sequence[Revision]:
        """All changes, in order of time, no two in one second."""

    def content(self, version: int) -> Content:
        """The main content of a version."""


def version_at(revisions: Sequence[Revision], at: float) -> int:
    """The number of revisions up to and at a time."""
    return bisect_right(revisions, at, key=lambda revision: revision.at)
