"""Hints: pushed URLs become claims on known pages, and URLs that may be new.

Only URLs in scope count, and of a new URL only its possible existence.
"""

from collections.abc import Sequence
from typing import Final

from freshet.crawler.admission.admit import Admission
from freshet.crawler.urls import canonical, without_fragment
from freshet.storage.entries import Claim, ClaimKind, SourceReport
from freshet.storage.records import StoreUpdate, Targets

#: Depth of a page that is known by a hint alone: as if a seed linked it.
_DEPTH: Final = 1


def in_scope(admission: Admission, url: str) -> bool:
    """Return whether a text is a URL in scope."""
    try:
        return admission.scope.contains(url)
    except ValueError:
        return False


def hint(
    admission: Admission, kind: ClaimKind, host_id: int, source: str, *, urls: Sequence[str],
    at: float, changed: bool = True,
) -> StoreUpdate:  # fmt: skip
    """Announce those URLs in scope as ``changed`` now, or merely as existing.

    Some 20 µs a URL: callers with thousands make several notes.
    """
    targets, claims = Targets(), []
    for url in urls:
        if not in_scope(admission, url):
            continue
        try:
            page = canonical(url)
        except ValueError:
            continue
        admission.add(targets, page, without_fragment(url), depth=_DEPTH)
        if changed:
            claims.append(Claim(page, at, at))
    return StoreUpdate(at, targets=targets, said=SourceReport(kind, host_id, source, tuple(claims)))
