"""The synthetic web as a fetcher, without sockets."""

from collections.abc import Callable

from freshet.crawler.errors import Unfetched
from freshet.crawler.extensions.lab.synthetic_web.answers import Responder, SiteResponse
from freshet.crawler.extensions.lab.synthetic_web.site import Addresses
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb
from freshet.crawler.fetch.body import Intake
from freshet.crawler.fetch.client import Request, body_rules, request_headers
from freshet.crawler.fetch.responses import StatusVerdict, judge, retry_after_s
from freshet.crawler.urls import origin
from freshet.storage.records import FetchResult, Validators


class SyntheticFetcher:
    """A :class:`crawler.fetch.client.Fetcher` at the web's time ``now``; an exchange takes none.

    ``addresses`` are ``NAME.localhost`` on port 80 unless others are given.
    """

    def __init__(
        self, web: SyntheticWeb, now: Callable[[], float], addresses: Addresses | None = None
    ) -> None:
        self.addresses = Addresses.named(web.sites) if addresses is None else addresses
        self._now = now
        self._responder = Responder(web, self.addresses)

    async def fetch(self, request: Request) -> FetchResult:
        """Answer as the server would; hosts outside this web do not exist."""
        at = self._now()
        place = self.addresses.place(request.url)
        if place is None:
            return _failed(request, at, None, "no_such_host", "not a host of the synthetic web")
        if request.form is not None:
            return _failed(request, at, 405, "http_405", "the server answered 405")
        answer = self._responder.answer(place, at, request.validators or Validators())
        return _result(request, answer, at)


def _failed(
    request: Request, at: float, status: int | None, reason: str, detail: str
) -> FetchResult:
    return FetchResult(
        url=request.url,
        outcome="failed",
        started_at=at,
        duration_s=0.0,
        status=status,
        reason=reason,
        detail=detail,
    )


def _result(request: Request, answer: SiteResponse, at: float) -> FetchResult:
    headers = tuple((name.encode(), value.encode()) for name, value in answer.headers)
    location = answer.header("Location")
    to = None if location is None else location.encode()
    verdict = judge(answer.status, request.url, to, is_conditional=request.is_conditional)
    verdict, body = _limited(request, answer, verdict)
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


def _truncated(request: Request, answer: SiteResponse, body: bytes) -> str | None:
    """Say why this is not the whole body, or return None."""
    if len(body) == len(answer.body):
        return None
    return "length" if body and request.accept == "robots" else "unspecified"


def _limited(
    request: Request, answer: SiteResponse, verdict: StatusVerdict
) -> tuple[StatusVerdict, bytes]:
    """Return the verdict and body within the request's own limits."""
    if verdict.outcome != "fetched":
        return verdict, b""
    size, kind = len(answer.body), answer.header("Content-Type") or ""
    try:
        intake = Intake("", body_rules(request, size, content_type=kind, announced_bytes=size))
        intake.take_whole(answer.body)
    except Unfetched as end:
        return StatusVerdict(end.outcome, end.reason, end.detail), b""
    return verdict, intake.result()[1]
