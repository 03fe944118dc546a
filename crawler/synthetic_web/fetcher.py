"""The synthetic web as a fetcher: the server's answers without a socket."""

from __future__ import annotations

from freshet.crawler.clock import Clock
from freshet.crawler.network.fetch import Accept, Request, request_headers
from freshet.crawler.network.responses import (
    Verdict,
    is_page_type,
    judge,
    media_type,
    retry_after_s,
)
from freshet.crawler.synthetic_web.addresses import Addresses
from freshet.crawler.synthetic_web.answers import Answer, Ask
from freshet.crawler.synthetic_web.clock import WebClock
from freshet.crawler.synthetic_web.conditional import Conditions
from freshet.crawler.synthetic_web.responder import Responder
from freshet.crawler.synthetic_web.web import SyntheticWeb
from freshet.crawler.urls import origin
from freshet.storage.records import FetchResult, Validators
from freshet.storage.words import Outcome


class SyntheticFetcher:
    """A :class:`crawler.network.fetch.Fetcher` at the web's own time; an exchange takes none of it.

    ``addresses`` are ``NAME.localhost`` on port 80 unless others are given.
    """

    def __init__(
        self, web: SyntheticWeb, clock: WebClock | Clock, addresses: Addresses | None = None
    ) -> None:
        self.addresses = Addresses.named(web.sites) if addresses is None else addresses
        self._clock = clock
        self._responder = Responder(web, self.addresses)

    async def fetch(self, request: Request) -> FetchResult:
        """Answer as the server would; other hosts than those of this web do not exist."""
        at = self._clock.now()
        place = self.addresses.place(request.url)
        if place is None:
            detail = "not a host of the synthetic web"
            return FetchResult(request.url, Outcome.FAILED, at, 0.0, None, "no_such_host", detail)
        if request.form is not None:
            detail = "the server answered 405"
            return FetchResult(request.url, Outcome.FAILED, at, 0.0, 405, "http_405", detail)
        known = request.validators or Validators()
        conditions = Conditions(known.etag, known.last_modified)
        return _result(request, self._responder.answer(Ask(*place, conditions), at), at)

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def _result(request: Request, answer: Answer, at: float) -> FetchResult:
    headers = tuple((name.encode(), value.encode()) for name, value in answer.headers)
    location = answer.header("Location")
    verdict, body = _limited(
        request,
        answer,
        judge(
            answer.status,
            request.url,
            None if location is None else location.encode(),
            is_conditional=request.validators not in (None, Validators()),
        ),
    )
    return FetchResult(
        url=request.url,
        outcome=verdict.outcome,
        started_at=at,
        duration_s=0.0,
        status=answer.status,
        reason=verdict.reason,
        detail=verdict.detail,
        request_headers=(("Host", origin(request.url).netloc), *request_headers(request).items()),
        headers=headers,
        wire_body=body,
        body=body,
        location=verdict.location,
        retry_after_s=retry_after_s(headers, at),
        truncated=_truncated(request, answer, body),
    )


def _truncated(request: Request, answer: Answer, body: bytes) -> str | None:
    """Why this is not all of the body, None if it is."""
    if len(body) == len(answer.body):
        return None
    return "length" if body and request.accept is Accept.ROBOTS else "unspecified"


def _limited(request: Request, answer: Answer, verdict: Verdict) -> tuple[Verdict, bytes]:
    """The verdict and body that are left after the request's own limits."""
    if verdict.outcome is not Outcome.FETCHED:
        return verdict, b""
    label = media_type(answer.header("Content-Type") or "")
    is_typed = request.accept in {Accept.PAGE, Accept.PROBE}
    if is_typed and label is not None and not is_page_type(label):
        return Verdict(Outcome.SKIPPED, "content_type", f"the server sent {label}"), b""
    limit = request.max_body_bytes
    if limit is None or len(answer.body) <= limit:
        return verdict, answer.body
    if request.accept is Accept.ROBOTS:
        return verdict, answer.body[:limit]
    detail = f"{len(answer.body)} bytes are announced"
    return Verdict(Outcome.FAILED, "too_large", detail), b""
