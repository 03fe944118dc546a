"""An archived exchange as the fetcher would have given it.

Our own archives say how each exchange ended; of others it is judged by what they hold, with the
limits of a fetch, so that a replay decides as a crawl would have decided.
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

from freshet.crawler.network.body import Body
from freshet.crawler.network.fetch import Accept, Request, intake_of
from freshet.crawler.network.responses import (
    RawHeaders,
    Verdict,
    first_header,
    judge,
    retry_after_s,
)
from freshet.crawler.network.transport import Unfetched, own_failures
from freshet.crawler.replaying.captures import ArchivedExchange, CaptureKind
from freshet.storage.records import FetchResult
from freshet.storage.words import Outcome

#: Headers that an archive renames because the body is kept in another form than they say.
_RENAMED = b"x-archive-orig-"
_ROBOTS_PATH = "/robots.txt"
_ACCEPTS = {str(each): each for each in Accept}
_OUTCOMES = {str(each): each for each in Outcome}
_NO_BODY = Body(b"", b"")
_CONDITIONS = (b"if-none-match", b"if-modified-since")


def is_ours(exchange: ArchivedExchange) -> bool:
    """Whether Freshet wrote it: its outcome is known, not judged."""
    return _known_outcome(exchange) is not None


def accept_of(exchange: ArchivedExchange) -> Accept:
    """What the request wanted, as said by our own archives; what it will have been, of others."""
    said = exchange.facts.accept
    if said is not None and said in _ACCEPTS:
        return _ACCEPTS[said]
    if not exchange.url.endswith(_ROBOTS_PATH):
        return Accept.PAGE
    try:
        path = urlsplit(exchange.url).path
    except ValueError:
        return Accept.PAGE
    return Accept.ROBOTS if path == _ROBOTS_PATH else Accept.PAGE


def fetch_result(
    exchange: ArchivedExchange, max_body_bytes: int, accept: Accept | None = None
) -> FetchResult:
    """The exchange as a value of the crawl; trouble is an outcome, never an exception.

    ``max_body_bytes`` is the limit of a page; ``accept`` replaces what :func:`accept_of` says,
    for a sitemap in a foreign archive.
    """
    facts = exchange.facts
    headers = exchange.headers
    if is_ours(exchange):
        headers = _as_they_came(headers)
        exchange = replace(exchange, headers=headers)
    verdict, body = _judged(exchange, max_body_bytes, accept or accept_of(exchange))
    wait_s = facts.retry_after_s
    if wait_s is None:
        wait_s = retry_after_s(headers, exchange.ended_at)
    return FetchResult(
        url=exchange.url,
        outcome=verdict.outcome,
        started_at=exchange.started_at,
        duration_s=facts.duration_s,
        status=exchange.status,
        reason=verdict.reason,
        detail=verdict.detail,
        request_headers=tuple(
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in exchange.request_headers
        ),
        headers=headers,
        wire_body=body.wire,
        body=body.decoded,
        peer=exchange.peer,
        location=verdict.location,
        retry_after_s=wait_s,
    )


def _judged(
    exchange: ArchivedExchange, max_body_bytes: int, accept: Accept
) -> tuple[Verdict, Body]:
    """How it ended, and its body if that counts."""
    known = _known(exchange)
    if known is not None and known.outcome is not Outcome.FETCHED:
        return known, _NO_BODY
    verdict = known or _by_status(exchange)
    if verdict.outcome is not Outcome.FETCHED:
        return verdict, _NO_BODY
    try:
        with own_failures():
            return verdict, _body(exchange, max_body_bytes, accept, is_known=known is not None)
    except Unfetched as end:
        return Verdict(end.outcome, end.reason, end.detail), _NO_BODY


def _known_outcome(exchange: ArchivedExchange) -> Outcome | None:
    said = exchange.facts.outcome
    return None if said is None else _OUTCOMES.get(said)


def _known(exchange: ArchivedExchange) -> Verdict | None:
    """What the archive says of the outcome."""
    outcome, facts = _known_outcome(exchange), exchange.facts
    if outcome is None:
        return None
    return Verdict(outcome, facts.reason, facts.detail, facts.location)


def _by_status(exchange: ArchivedExchange) -> Verdict:
    if exchange.kind is CaptureKind.NOT_MODIFIED:
        return Verdict(Outcome.NOT_MODIFIED)
    if exchange.status is None:
        return Verdict(Outcome.FAILED, "protocol", "the archive holds no HTTP status")
    requested = exchange.request_headers
    # Who wrote no requests down may have asked on a condition.
    is_conditional = not requested or any(first_header(requested, c) for c in _CONDITIONS)
    location = first_header(exchange.headers, b"location")
    return judge(exchange.status, exchange.url, location, is_conditional=is_conditional)


def _body(
    exchange: ArchivedExchange, max_body_bytes: int, accept: Accept, *, is_known: bool
) -> Body:
    """The body, decoded within the limits.

    Raises:
        Unfetched: it is not worth reading, or not all there.
        CorruptBody, UnsupportedCoding: it cannot be decoded.
    """
    announced = _announced_bytes(exchange.headers)
    intake = intake_of(
        Request(exchange.url, accept),
        max_body_bytes,
        content_type=_text(exchange.headers, b"content-type"),
        content_encoding=", ".join(
            value.decode("latin-1")
            for name, value in exchange.headers
            if name.lower() == b"content-encoding"
        ),
        announced_bytes=announced,
    )
    intake.take_whole(exchange.wire_body)
    if not is_known:
        _check_whole(exchange, announced)
    return intake.result()


def _check_whole(exchange: ArchivedExchange, announced: int) -> None:
    """A part must not pass for the whole."""
    if exchange.truncated is not None:
        reason = "too_large" if exchange.truncated == "length" else "cut_short"
        detail = f"the archive holds a part of the body: {exchange.truncated[:50]}"
        raise Unfetched(reason, detail)
    size = len(exchange.wire_body)
    if announced > size and not exchange.is_cut and exchange.kind is not CaptureKind.SAME:
        raise Unfetched("cut_short", f"{announced} bytes were announced, the archive holds {size}")


def _announced_bytes(headers: RawHeaders) -> int:
    if first_header(headers, b"transfer-encoding") is not None:
        return 0
    text = _text(headers, b"content-length")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _text(headers: RawHeaders, name: bytes) -> str:
    return (first_header(headers, name) or b"").decode("latin-1")


def _as_they_came(headers: RawHeaders) -> RawHeaders:
    """The names as the server sent them."""
    return tuple(
        (name[len(_RENAMED) :] if name.lower().startswith(_RENAMED) else name, value)
        for name, value in headers
    )
