"""The synthetic web behind real sockets on loopback, and as a fetcher without sockets.

One process serves all sites: by name on one port, on a port each, or on an address each. Its log
has the start and end of each exchange at the server, by which politeness is judged: a request is
never logged earlier than it was sent, and an end never later than the client sees it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from socket import create_server, socket

from aiohttp import hdrs, web
from multidict import CIMultiDict

from freshet.crawler.clock import Clock
from freshet.crawler.fetch.client import Accept, Request, request_headers
from freshet.crawler.fetch.responses import (
    StatusVerdict,
    is_page_type,
    judge,
    media_type,
    retry_after_s,
)
from freshet.crawler.synthetic_web.answers import (
    Conditions,
    Responder,
    SiteRequest,
    SiteResponse,
    plight,
)
from freshet.crawler.synthetic_web.content import Place
from freshet.crawler.synthetic_web.site import Addresses, authority
from freshet.crawler.synthetic_web.web import SyntheticWeb, WebClock
from freshet.crawler.urls import origin
from freshet.storage.entries import Outcome
from freshet.storage.records import FetchResult, Validators

_BACKLOG = 1024


class SitePlacement(StrEnum):
    """The way in which sites are told apart.

    ``NAMES``: 127.0.0.1, one port, ``NAME.localhost``. ``PORTS``: 127.0.0.1, a port each.
    ``ADDRESSES``: 127.0.0.2 and up, a port each; Linux has these addresses, macOS does not.
    """

    NAMES = "names"
    PORTS = "ports"
    ADDRESSES = "addresses"


@dataclass(frozen=True, slots=True)
class LoggedExchange:
    """A line of the log.

    ``host`` is the site's name, or the requested one if the web has no such site. ``started_at``
    and ``ended_at`` are seconds of the server's clock (monotonic unless another is given), ``at``
    is the time of the web.
    """

    host: str
    target: str
    status: int
    started_at: float
    ended_at: float
    at: float
    size_bytes: int


class WebServer:
    """A web that is being served. ``log`` holds the newest exchanges."""

    def __init__(
        self,
        responder: Responder,
        clock: WebClock,
        latency_s: Mapping[str, float],
        log_size: int,
        seconds: Callable[[], float],
        on_exchange: Callable[[LoggedExchange], None] | None,
    ) -> None:
        self.addresses = responder.addresses
        self.clock = clock
        self.log: deque[LoggedExchange] = deque(maxlen=log_size)
        self._responder = responder
        self._latency_s = latency_s
        self._seconds = seconds
        self._on_exchange = on_exchange

    def url(self, name: str, target: str = "/") -> str:
        """Return the URL of a target of a site.

        Raises:
            KeyError: the web has no such site.
        """
        return self.addresses.url(Place(name, target))

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, and log it when its last byte is on its way."""
        started_at = self._seconds()
        netloc = request.headers.get(hdrs.HOST, "")
        name = self.addresses.name(netloc) or netloc
        if latency_s := self._latency_s.get(name):
            await asyncio.sleep(latency_s)
        at = self.clock.now()
        answer = self._answer(request, name, at)
        response = web.Response(
            status=answer.status, headers=CIMultiDict(answer.headers), body=answer.body
        )
        # A client that has gone has had its exchange all the same.
        with suppress(ConnectionError):
            await response.prepare(request)
            await response.write_eof()
        self._record(
            LoggedExchange(
                host=name,
                target=request.raw_path,
                status=answer.status,
                started_at=started_at,
                ended_at=self._seconds(),
                at=at,
                size_bytes=len(answer.body),
            )
        )
        return response

    def _answer(self, request: web.BaseRequest, name: str, at: float) -> SiteResponse:
        if request.method not in {hdrs.METH_GET, hdrs.METH_HEAD}:
            return plight(405, at, ("Allow", "GET, HEAD"))
        headers = request.headers
        conditions = Conditions(
            headers.get(hdrs.IF_NONE_MATCH), headers.get(hdrs.IF_MODIFIED_SINCE)
        )
        return self._responder.answer(SiteRequest(name, request.raw_path, conditions), at)

    def _record(self, exchange: LoggedExchange) -> None:
        self.log.append(exchange)
        if self._on_exchange is not None:
            self._on_exchange(exchange)


@asynccontextmanager
async def serve(
    synthetic: SyntheticWeb,
    clock: WebClock | None = None,
    *,
    port: int = 0,
    placement: SitePlacement = SitePlacement.NAMES,
    latency_s: Mapping[str, float] | None = None,
    log_size: int = 100_000,
    seconds: Callable[[], float] = time.monotonic,
    on_exchange: Callable[[LoggedExchange], None] | None = None,
) -> AsyncIterator[WebServer]:
    """Serve a web on loopback while the context lasts.

    The clock stands at the web's start unless one is given. With port 0 the system chooses; of
    several ports ``port`` is the first. ``latency_s`` delays the answers of sites by name;
    ``on_exchange`` receives every exchange.

    Raises:
        OSError: an address cannot be bound.
    """
    addresses, sockets = _listen(synthetic.sites, placement, port)
    server = WebServer(
        responder=Responder(synthetic, addresses),
        clock=clock or WebClock(synthetic.start_at),
        latency_s=latency_s or {},
        log_size=log_size,
        seconds=seconds,
        on_exchange=on_exchange,
    )
    runner = web.ServerRunner(web.Server(server.handle, access_log=None))
    await runner.setup()
    try:
        for sock in sockets:
            await web.SockSite(runner, sock, backlog=_BACKLOG).start()
        yield server
    finally:
        await runner.cleanup()


def _listen(
    names: Iterable[str], placement: SitePlacement, port: int
) -> tuple[Addresses, list[socket]]:
    """Bind the sockets of the placement."""
    if placement is SitePlacement.NAMES:
        sock = create_server(("127.0.0.1", port), backlog=_BACKLOG)
        return Addresses.named(names, sock.getsockname()[1]), [sock]
    authorities: dict[str, str] = {}
    sockets: list[socket] = []
    try:
        for n, name in enumerate(names):
            sockets.append(create_server(_endpoint(placement, n, port), backlog=_BACKLOG))
            authorities[name] = authority(*sockets[-1].getsockname())
    except OSError:
        for sock in sockets:
            sock.close()
        raise
    return Addresses(authorities), sockets


def _endpoint(placement: SitePlacement, n: int, port: int) -> tuple[str, int]:
    if placement is SitePlacement.PORTS:
        return "127.0.0.1", port + n if port else 0
    return f"127.0.{n // 250}.{n % 250 + 2}", port


# -- fetcher -----------------------------------------------------------------
class SyntheticFetcher:
    """A :class:`crawler.fetch.client.Fetcher` at the web's own time; an exchange takes none.

    ``addresses`` are ``NAME.localhost`` on port 80 unless others are given.
    """

    def __init__(
        self, web: SyntheticWeb, clock: WebClock | Clock, addresses: Addresses | None = None
    ) -> None:
        self.addresses = Addresses.named(web.sites) if addresses is None else addresses
        self._clock = clock
        self._responder = Responder(web, self.addresses)

    async def fetch(self, request: Request) -> FetchResult:
        """Answer as the server would; hosts outside this web do not exist."""
        at = self._clock.now()
        place = self.addresses.place(request.url)
        if place is None:
            detail = "not a host of the synthetic web"
            return FetchResult(
                url=request.url,
                outcome=Outcome.FAILED,
                started_at=at,
                duration_s=0.0,
                status=None,
                reason="no_such_host",
                detail=detail,
            )
        if request.form is not None:
            detail = "the server answered 405"
            return FetchResult(
                url=request.url,
                outcome=Outcome.FAILED,
                started_at=at,
                duration_s=0.0,
                status=405,
                reason="http_405",
                detail=detail,
            )
        known = request.validators or Validators()
        conditions = Conditions(known.etag, known.last_modified)
        return _result(request, self._responder.answer(SiteRequest(*place, conditions), at), at)

    async def close(self) -> None:
        """Close nothing."""


def _result(request: Request, answer: SiteResponse, at: float) -> FetchResult:
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


def _truncated(request: Request, answer: SiteResponse, body: bytes) -> str | None:
    """Say why this is not the whole body, or return None."""
    if len(body) == len(answer.body):
        return None
    return "length" if body and request.accept is Accept.ROBOTS else "unspecified"


def _limited(
    request: Request, answer: SiteResponse, verdict: StatusVerdict
) -> tuple[StatusVerdict, bytes]:
    """Return the verdict and body within the request's own limits."""
    if verdict.outcome is not Outcome.FETCHED:
        return verdict, b""
    label = media_type(answer.header("Content-Type") or "")
    is_typed = request.accept in {Accept.PAGE, Accept.PROBE}
    if is_typed and label is not None and not is_page_type(label):
        return StatusVerdict(Outcome.SKIPPED, "content_type", f"the server sent {label}"), b""
    limit = request.max_body_bytes
    if limit is None or len(answer.body) <= limit:
        return verdict, answer.body
    if request.accept is Accept.ROBOTS:
        return verdict, answer.body[:limit]
    detail = f"{len(answer.body)} bytes are announced"
    return StatusVerdict(Outcome.FAILED, "too_large", detail), b""
