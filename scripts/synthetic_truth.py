"""The truth about a synthetic web: the edits of its pages, and which are alive.

Labels come from the generator that made the edits, never from a detector.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from freshet.crawler.extensions.lab.synthetic_web.content import Form, Revision, SyntheticUrl
from freshet.crawler.extensions.lab.synthetic_web.site import LivingPage
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb

_OF_FRAME = frozenset({"footer", "navigation", "advert", "banner", "rebuild"})


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a page that was alive. An edit of the frame counts once for each page."""

    place: SyntheticUrl
    at: float
    form: Form

    @property
    def is_of_frame(self) -> bool:
        """True if only the frame around the main content was touched."""
        return is_of_frame(self.form)


def is_of_frame(form: Form) -> bool:
    """Return whether an edit touches only the frame around the main content."""
    return form in _OF_FRAME


class Truth:
    """Questions about the past and future of a web; intervals are (after, until]."""

    def __init__(self, web: SyntheticWeb) -> None:
        self._sites = web.sites
        self._documents = dict(web.documents())

    def alive(self, at: float) -> frozenset[SyntheticUrl]:
        """Return the documents that answer 200, reachable or not."""
        return frozenset(place for place, page in self._documents.items() if page.is_alive(at))

    def edits_between(self, after: float, until: float) -> list[Edit]:
        """Return all edits in order of time; a birth is not an edit."""
        edits = [
            edit
            for place, page in self._documents.items()
            for edit in self._edits(place, page)
            if after < edit.at <= until
        ]
        return sorted(edits, key=lambda edit: (edit.at, edit.place))

    def changed_significantly(self, place: SyntheticUrl, first: float, second: float) -> bool:
        """Return whether the visible main content differs between two times.

        An edit that was reversed in between does not count.

        Raises:
            KeyError: the web has no such document.
        """
        page = self._documents[place]
        return page.content_at(first).text != page.content_at(second).text

    def _edits(self, place: SyntheticUrl, page: LivingPage) -> Iterator[Edit]:
        revisions: tuple[Revision, ...] = (
            *page.history.revisions,
            *self._sites[place.host].frame.revisions,
        )
        for revision in revisions:
            if page.born_at < revision.at and page.is_alive(revision.at):
                yield Edit(place, revision.at, revision.form)
