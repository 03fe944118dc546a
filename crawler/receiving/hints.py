"""Hints: what was pushed becomes claims on known pages, and URLs that may be new.

Only what is in scope counts, and of a new URL nothing is taken but that it may exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from freshet.crawler.admission.admitting import Admission
from freshet.crawler.urls import canonical, without_fragment
from freshet.storage.entries import Claim, ClaimKind
from freshet.storage.records import Announcement, Targets

#: A page that is known by a hint alone is taken to stand one link from a seed.
_DEPTH: Final = 1


class Hints:
    """Makes announcements of URLs; ``admission`` says which are in scope, and crawled."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    def contains(self, url: str) -> bool:
        """Whether a URL is in scope; what is no URL is not."""
        try:
            return self._admission.scope.contains(url)
        except ValueError:
            return False

    def of_pages(
        self, kind: ClaimKind, host_id: int, source: str, urls: Sequence[str], at: float,
        *, changed: bool = True,
    ) -> Announcement:  # fmt: skip
        """These pages are said to have ``changed`` now, or but to exist; those that are in scope.

        Some 20 µs a URL: who has thousands makes several announcements.
        """
        targets, claims = Targets(), []
        for url in urls:
            if not self.contains(url):
                continue
            page = canonical(url)
            self._admission.add(targets, page, without_fragment(url), depth=_DEPTH)
            if changed:
                claims.append(Claim(page, at, at))
        return Announcement(kind, host_id, source, tuple(claims), at, targets=targets)
