"""A look that a store has written down, as the exchange that it came of.

A store keeps what was found, not what went over the wire. Given back is what it knows: outcome,
status and words as they were observed; the bytes of a content with its Content-Type, of which its
encoding follows as before; ETag and Last-Modified of the page's last answer, and what its last
content asks of crawlers. Date, Cache-Control and Link are not known, and so not given.
"""

from __future__ import annotations

from typing import Final

from freshet.crawler.network.fetch import Accept
from freshet.crawler.replaying.playing import Played
from freshet.crawler.urls import canonical
from freshet.storage.entries import RobotsRecord
from freshet.storage.queries.replay import Look, LookPage
from freshet.storage.records import FetchResult
from freshet.storage.words import Kind, Outcome, RobotsStanding, Role, Rung

#: The reason of a redirect to another spelling of the same URL.
_RESPELLED: Final = "respelled"
_CONTENT: Final = frozenset({str(Kind.NEW), str(Kind.CHANGED), str(Kind.UNCHANGED)})
_OTHERS: Final = {
    str(outcome): outcome
    for outcome in (
        Outcome.REDIRECTED, Outcome.GONE, Outcome.REFUSED, Outcome.SKIPPED, Outcome.FAILED
    )
}  # fmt: skip


def outcome_of(look: Look) -> Outcome | None:
    """How the exchange ended; None where it cannot be given back.

    That is where it saw content that is not kept, or is of no kind.
    """
    if look.is_taken_back:
        return Outcome.FAILED
    if look.kind not in _CONTENT:
        return _OTHERS.get(look.kind)
    if look.version is None or not look.version.is_kept:
        return None
    return Outcome.NOT_MODIFIED if look.rung == Rung.NOT_MODIFIED else Outcome.FETCHED


def played_of(look: Look, outcome: Outcome, body: bytes = b"") -> Played:
    """The exchange; ``body`` are the bytes of what was fetched, decoded."""
    page, has_ended_well = look.page, outcome in (Outcome.FETCHED, Outcome.NOT_MODIFIED)
    result = FetchResult(
        _asked(look),
        outcome,
        look.at - look.duration_s,
        look.duration_s,
        status=look.status,
        reason=None if has_ended_well else look.reason,
        detail=None if has_ended_well else look.detail,
        headers=_headers(look, outcome),
        wire_body=body,
        body=body,
        location=(look.target or look.detail) if outcome is Outcome.REDIRECTED else None,
    )
    # Whatever was sent took its time, or had an answer.
    is_unasked = outcome is Outcome.FAILED and look.status is None and not look.duration_s
    accept = Accept.SITEMAP if page.role is Role.SITEMAP else Accept.PAGE
    return Played(
        result, accept, is_ours=True, is_unasked=is_unasked, depth=page.depth, role=page.role
    )


def robots_of(origin: str, known: RobotsRecord, at: float, *, no_https: bool = False) -> Played:
    """The exchange of a host's robots.txt; ``no_https``: nothing spoke TLS there."""
    url = f"{origin}/robots.txt"
    if no_https:
        result = FetchResult(url, Outcome.FAILED, at, 0.0, reason="connect", detail=known.reason)
    elif known.standing is RobotsStanding.PARSED:
        result = FetchResult(url, Outcome.FETCHED, at, 0.0, status=200, body=known.body)
    elif known.standing is RobotsStanding.ALLOW_ALL:
        result = FetchResult(url, Outcome.GONE, at, 0.0, status=404)
    else:
        reason = str(RobotsStanding.UNREACHABLE)
        result = FetchResult(url, Outcome.FAILED, at, 0.0, reason=reason, detail=known.reason)
    return Played(result, Accept.ROBOTS, is_ours=True)


def _asked(look: Look) -> str:
    """What went on the wire: as far as is known what does now."""
    if look.kind == Kind.REDIRECTED and look.reason == _RESPELLED:
        # Another spelling than the one that it led to; which, is not known.
        return look.page.url if look.page.url != look.detail else f"{look.page.url}#"
    return look.page.fetch_url if _names(look.page.fetch_url, look.page) else look.page.url


def _names(url: str, page: LookPage) -> bool:
    try:
        return canonical(url) == page.url
    except ValueError:
        return False


def _headers(look: Look, outcome: Outcome) -> tuple[tuple[bytes, bytes], ...]:
    version = look.version
    if outcome is not Outcome.FETCHED or version is None:
        return ()
    known = {
        "Content-Type": version.content_type,
        "ETag": look.validators.etag,
        "Last-Modified": look.validators.last_modified,
        "X-Robots-Tag": ", ".join(version.directives) or None,
    }
    return tuple(
        (name.encode("latin-1"), value.encode("latin-1", "replace"))
        for name, value in known.items()
        if value is not None
    )
