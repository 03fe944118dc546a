"""Serve a synthetic web: ``python -m scripts.synthetic_server --hosts 5 --pages 40``.

Prints one JSON line with the roots of the sites, then serves until SIGINT, SIGTERM or the end of
``--duration``. The same arguments always make the same web.

One process serves all sites: by name on one port, on a port each, or on an address each. Its log
has the start and end of each exchange at the server, by which politeness is judged: a request is
never logged earlier than it was sent, and an end never later than the client sees it.
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

from freshet.crawler.extensions.lab.synthetic_web.answers import Responder, SiteResponse, plight
from freshet.crawler.extensions.lab.synthetic_web.content import DAY_S, SyntheticUrl
from freshet.crawler.extensions.lab.synthetic_web.site import (
    Addresses,
    Resource,
    SyntheticSite,
    authority,
)
from freshet.crawler.extensions.lab.synthetic_web.sites import NOTHING_FORBIDDEN, Plot
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb, WebSpec, mixed, showcase
from freshet.storage.records import Validators

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
        return self.addresses.url(SyntheticUrl(name, target))

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
        known = Validators(headers.get(hdrs.IF_NONE_MATCH), headers.get(hdrs.IF_MODIFIED_SINCE))
        return self._responder.answer(SyntheticUrl(name, request.raw_path), at, known)

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


class WebClock:
    """Virtual Unix seconds that stand still, or run ``speed`` times as fast as real time.

    Time never goes back; ``monotonic`` is the source of real time.
    """

    def __init__(
        self, at: float, *, speed: float = 0.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._at = at
        self._speed = speed
        self._monotonic = monotonic
        self._since = monotonic()

    def now(self) -> float:
        """Return the virtual time in Unix seconds."""
        if self._speed == 0:
            return self._at
        return self._at + (self._monotonic() - self._since) * self._speed

    def advance(self, seconds: float) -> float:
        """Advance the time by some virtual seconds and return it.

        Raises:
            ValueError: the time would go back.
        """
        if seconds < 0:
            raise ValueError(f"the web's time does not go back by {-seconds} s")
        self._at += seconds
        return self.now()

    def set(self, at: float) -> float:
        """Set the time to Unix seconds and return it.

        Raises:
            ValueError: the time would go back.
        """
        return self.advance(at - self.now())


def _plain_site(plot: Plot) -> SyntheticSite:
    """Build a tree of pages that never change; no noise, so its ETags are strong."""
    targets = ["/", *(f"/page-{n}" for n in range(1, plot.pages))]
    resources: dict[str, Resource] = {}
    for n, target in enumerate(targets):
        children = targets[n * 10 + 1 : n * 10 + 11]
        links = [plot.link(child[1:], child) for child in children]
        resources[target] = plot.page(target, paragraphs=2, links=links)
    return SyntheticSite(
        name=plot.name, title=plot.name, resources=resources, skin=lambda _edited: "{main}",
        robots=NOTHING_FORBIDDEN,
    )  # fmt: skip


def plain(hosts: int, pages_per_host: int, seed: int = 1) -> SyntheticWeb:
    """Make tiny well-behaved hosts ``h1 h2 …`` that never change."""
    spec = WebSpec(hosts, pages_per_host, seed)
    return spec.web([_plain_site(spec.plot(f"h{n}")) for n in range(1, hosts + 1)])


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError("must be positive")
    return number


def _positive_count(text: str) -> int:
    return int(_positive(str(int(text))))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.synthetic_server", description="Serve an evolving web on loopback."
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
        type=SitePlacement,
        choices=list(SitePlacement),
        default=SitePlacement.NAMES,
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
def _written_to(path: Path | None) -> Iterator[Callable[[LoggedExchange], None] | None]:
    """Yield a function that writes exchanges to a file, line by line."""
    if path is None:
        yield None
        return
    with path.open("a", encoding="utf-8", buffering=1) as file:
        yield lambda exchange: print(json.dumps(asdict(exchange)), file=file)


def _announcement(server: WebServer) -> str:
    roots = {name: server.url(name) for name in server.addresses.authorities}
    return json.dumps({"sites": roots, "at": server.clock.now()})


async def _run(args: argparse.Namespace) -> None:
    synthetic = _web(args)
    clock = WebClock(synthetic.start_at + args.advance_days * DAY_S, speed=args.speed)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    latency_s = dict.fromkeys(synthetic.sites, args.latency)
    with _written_to(args.log) as on_exchange:
        async with serve(
            synthetic,
            clock,
            port=args.port,
            placement=args.placement,
            latency_s=latency_s,
            on_exchange=on_exchange,
        ) as server:
            print(_announcement(server), flush=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(args.duration):
                    await stop.wait()


def main(argv: Sequence[str] | None = None) -> None:
    """Run until stopped; wrong usage exits with 2, an address in use with 1."""
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
