"""The synthetic web behind real sockets on loopback.

One process serves all sites: by name on one port, on a port each, or on an address each.
Its log says when each exchange began and ended at the server, which is what politeness is
judged by: a request is never logged earlier than it was sent, and an end never later than
the client sees it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from socket import create_server, socket

from aiohttp import hdrs, web
from multidict import CIMultiDict

from freshet.crawler.clock import Clock
from freshet.crawler.fetch.client import Accept, Request, request_headers
from freshet.crawler.fetch.responses import Verdict, is_page_type, judge, media_type, retry_after_s
from freshet.crawler.synthetic_web.answers import Answer, Ask, Conditions, Responder, plight
from freshet.crawler.synthetic_web.content import DAY_S, Place
from freshet.crawler.synthetic_web.site import Addresses, authority
from freshet.crawler.synthetic_web.web import (
    SyntheticWeb,
    WebClock,
    WebSpec,
    mixed,
    plain,
    showcase,
)
from freshet.crawler.urls import origin
from freshet.storage.records import FetchResult, Validators
from freshet.storage.words import Outcome

_BACKLOG = 1024


class Placement(StrEnum):
    """How sites are told apart.

    ``NAMES``: 127.0.0.1, one port, ``NAME.localhost``. ``PORTS``: 127.0.0.1, a port each.
    ``ADDRESSES``: 127.0.0.2 and up, a port each; Linux has these addresses, macOS does not.
    """

    NAMES = "names"
    PORTS = "ports"
    ADDRESSES = "addresses"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A line of the log.

    ``host`` is the site's name, or what was asked for where there is no such site.
    ``started_at`` and ``ended_at`` are seconds of the server's clock (monotonic unless
    another was given), ``at`` is the time of the web.
    """

    host: str
    target: str
    status: int
    started_at: float
    ended_at: float
    at: float
    size_bytes: int


class WebServer:
    """A web that is being served. ``log`` holds the exchanges, the oldest give way."""

    def __init__(
        self,
        responder: Responder,
        clock: WebClock,
        latency_s: Mapping[str, float],
        log_size: int,
        seconds: Callable[[], float],
        on_exchange: Callable[[Exchange], None] | None,
    ) -> None:
        self.addresses = responder.addresses
        self.clock = clock
        self.log: deque[Exchange] = deque(maxlen=log_size)
        self._responder = responder
        self._latency_s = latency_s
        self._seconds = seconds
        self._on_exchange = on_exchange

    def url(self, name: str, target: str = "/") -> str:
        """The URL of a target of a site.

        Raises:
            KeyError: if there is no such site.
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
            Exchange(
                name,
                request.raw_path,
                answer.status,
                started_at,
                self._seconds(),
                at,
                len(answer.body),
            )
        )
        return response

    def _answer(self, request: web.BaseRequest, name: str, at: float) -> Answer:
        if request.method not in {hdrs.METH_GET, hdrs.METH_HEAD}:
            return plight(405, at, ("Allow", "GET, HEAD"))
        headers = request.headers
        conditions = Conditions(
            headers.get(hdrs.IF_NONE_MATCH), headers.get(hdrs.IF_MODIFIED_SINCE)
        )
        return self._responder.answer(Ask(name, request.raw_path, conditions), at)

    def _record(self, exchange: Exchange) -> None:
        self.log.append(exchange)
        if self._on_exchange is not None:
            self._on_exchange(exchange)


@asynccontextmanager
async def serve(
    synthetic: SyntheticWeb,
    clock: WebClock | None = None,
    *,
    port: int = 0,
    placement: Placement = Placement.NAMES,
    latency_s: Mapping[str, float] | None = None,
    log_size: int = 100_000,
    seconds: Callable[[], float] = time.monotonic,
    on_exchange: Callable[[Exchange], None] | None = None,
) -> AsyncIterator[WebServer]:
    """Serve a web on loopback while the context lasts.

    The clock stands at the web's start unless one is given. With the port 0 the system
    chooses; of several ports ``port`` is the first. ``latency_s`` delays the answers of
    sites by name; ``on_exchange`` is told of every exchange.

    Raises:
        OSError: if an address is not there to be bound.
    """
    addresses, sockets = _listen(synthetic.sites, placement, port)
    server = WebServer(
        Responder(synthetic, addresses),
        clock or WebClock(synthetic.start_at),
        latency_s or {},
        log_size,
        seconds,
        on_exchange,
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
    names: Iterable[str], placement: Placement, port: int
) -> tuple[Addresses, list[socket]]:
    """Bind what the placement needs."""
    if placement is Placement.NAMES:
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


def _endpoint(placement: Placement, n: int, port: int) -> tuple[str, int]:
    if placement is Placement.PORTS:
        return "127.0.0.1", port + n if port else 0
    return f"127.0.{n // 250}.{n % 250 + 2}", port


# -- fetcher -----------------------------------------------------------------
#
# The synthetic web as a fetcher: the server's answers without a socket.


class SyntheticFetcher:
    """A :class:`crawler.fetch.client.Fetcher` at the web's own time; an exchange takes none of it.

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


# -- main --------------------------------------------------------------------
#
# Serve a synthetic web: ``python -m freshet.crawler.synthetic_web --hosts 5 --pages 40``.
#
# Prints one JSON line with the roots of the sites, then serves until SIGINT, SIGTERM or the
# end of ``--duration``. The same arguments make the same web in any other process.


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError("must be positive")
    return number


def _positive_count(text: str) -> int:
    return int(_positive(str(int(text))))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m crawler.synthetic_web", description="Serve an evolving web on loopback."
    )
    add = parser.add_argument
    add("--preset", choices=("showcase", "mixed", "plain"), default="mixed", help="kind of web")
    add("--hosts", type=_positive_count, default=4, help="hosts (mixed, plain)")
    add(
        "--pages",
        type=_positive_count,
        default=40,
        help="pages per host at the start (mixed, plain)",
    )
    add("--seed", type=int, default=1, help="the same seed makes the same web")
    add("--span-days", type=_positive, default=60.0, help="days for which it changes (mixed)")
    add("--no-traps", action="store_true", help="without endless pages (showcase)")
    add("--port", type=int, default=0, help="port, or the first of several; 0: any")
    add(
        "--placement",
        type=Placement,
        choices=list(Placement),
        default=Placement.NAMES,
        help="all on one port by name, a port each, or an address and port each",
    )
    add("--speed", type=float, default=0.0, help="virtual seconds per second; 86400: a day")
    add("--advance-days", type=float, default=0.0, help="start so many days after the beginning")
    add("--latency", type=float, default=0.0, help="seconds before each answer")
    add("--duration", type=float, help="seconds after which to stop")
    add("--log", type=Path, help="file to which exchanges are appended, a JSON object a line")
    return parser


def _web(args: argparse.Namespace) -> SyntheticWeb:
    if args.preset == "showcase":
        return showcase(args.seed, traps=not args.no_traps)
    if args.preset == "plain":
        return plain(args.hosts, args.pages, args.seed)
    return mixed(WebSpec(args.hosts, args.pages, args.seed, args.span_days))


@contextmanager
def _written_to(path: Path | None) -> Iterator[Callable[[Exchange], None] | None]:
    """What writes exchanges to a file, line by line."""
    if path is None:
        yield None
        return
    with path.open("a", encoding="utf-8", buffering=1) as file:
        yield lambda exchange: print(json.dumps(asdict(exchange)), file=file)


def _announcement(server: WebServer) -> str:
    roots = {name: server.url(name) for name in server.addresses.authorities}
    return json.dumps({"sites": roots, "at": server.clock.now()})


async def _run(args: argparse.Namespace) -> None:
    web = _web(args)
    clock = WebClock(web.start_at + args.advance_days * DAY_S, speed=args.speed)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    latency_s = dict.fromkeys(web.sites, args.latency)
    with _written_to(args.log) as on_exchange:
        async with serve(
            web,
            clock,
            port=args.port,
            placement=args.placement,
            latency_s=latency_s,
            on_exchange=on_exchange,
        ) as server:
            print(_announcement(server), flush=True)  # noqa: T201
            with suppress(TimeoutError):
                async with asyncio.timeout(args.duration):
                    await stop.wait()


def main(argv: Sequence[str] | None = None) -> None:
    """Run until told to stop; wrong usage exits with 2, an address that is taken with 1."""
    args = _parser().parse_args(argv)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_run(args))
    except OSError as error:
        sys.exit(f"cannot serve: {error}")


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop  # noqa: PLC0415 - not there on Windows

    return uvloop.new_event_loop


if __name__ == "__main__":
    main()
