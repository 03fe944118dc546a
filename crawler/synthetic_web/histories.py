"""What the main content of a page was when: edited prose, and lists of other pages.

Deterministic, and pure to the outside: versions are composed when first asked for and kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from freshet.crawler.synthetic_web.chance import generator
from freshet.crawler.synthetic_web.content import Block, Content, Form, Link, Revision
from freshet.crawler.synthetic_web.edits import compose, revise
from freshet.crawler.synthetic_web.languages import Language


class Story:
    """Prose under one title; each version is the one before it with one edit.

    ``key`` names the generators that the text and the edits are drawn from.
    """

    def __init__(
        self,
        key: tuple[object, ...],
        language: Language,
        revisions: tuple[Revision, ...] = (),
        *,
        title: str | None = None,
        paragraphs: int = 5,
        figure: bool = False,
        dated: bool = False,
        links: Sequence[Link] = (),
    ) -> None:
        self.title = language.title(generator(*key, "title")) if title is None else title
        self.revisions: Sequence[Revision] = revisions
        self._key = key
        self._language = language
        self._paragraphs = paragraphs
        self._figure = figure
        self._dated = dated
        self._links = tuple(links)
        self._blocks: list[tuple[Block, ...]] = []

    def content(self, version: int) -> Content:
        """The main content of a version."""
        if not self._blocks:
            rng = generator(*self._key, "text")
            first = compose(
                rng, self._language, self._paragraphs, figure=self._figure, dated=self._dated
            )
            self._blocks.append(first)
        for n in range(len(self._blocks), version + 1):
            rng = generator(*self._key, "edit", n)
            form = self.revisions[n - 1].form
            self._blocks.append(revise(self._blocks[-1], form, rng, self._language))
        return Content(self.title, self._blocks[version], self._links)


@dataclass(frozen=True, slots=True)
class Entry:
    """A link with the time during which lists show it."""

    link: Link
    born_at: float
    died_at: float | None = None

    def is_alive(self, at: float) -> bool:
        """Whether lists show it."""
        return self.born_at <= at and (self.died_at is None or at < self.died_at)


class Listing:
    """A stretch of a list of entries in their order, then a tail of other entries.

    Invariant: a revision stands exactly where the links shown change. Hence a new article
    changes the front page, and those pages of the list to which it pushes others.
    """

    def __init__(
        self,
        title: str,
        entries: Iterable[Entry],
        *,
        first: int = 0,
        count: int | None = None,
        tail: Iterable[Entry] = (),
    ) -> None:
        self._title = title
        self._entries = tuple(entries)
        self._shown = slice(first, None if count is None else first + count)
        self._tail = tuple(tail)
        self._versions: list[tuple[Link, ...]] = []
        self._revisions: list[Revision] = []

    @property
    def revisions(self) -> Sequence[Revision]:
        """All changes of what is shown, in order of time."""
        self._look_back()
        return self._revisions

    def content(self, version: int) -> Content:
        """The main content of a version."""
        self._look_back()
        return Content(self._title, (), self._versions[version])

    def _look_back(self) -> None:
        """Find all versions, once."""
        if self._versions:
            return
        entries = (*self._entries, *self._tail)
        events = {entry.born_at for entry in entries}
        events |= {entry.died_at for entry in entries if entry.died_at is not None}
        self._versions = [self._links_at(float("-inf"))]
        for at in sorted(events):
            links = self._links_at(at)
            if links != self._versions[-1]:
                self._versions.append(links)
                self._revisions.append(Revision(at, Form.LISTING))

    def _links_at(self, at: float) -> tuple[Link, ...]:
        shown = [entry.link for entry in self._entries if entry.is_alive(at)][self._shown]
        return (*shown, *(entry.link for entry in self._tail if entry.is_alive(at)))
