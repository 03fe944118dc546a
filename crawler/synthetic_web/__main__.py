"""Serve a synthetic web: ``python -m freshet.crawler.synthetic_web --hosts 5 --pages 40``.

Prints one JSON line with the roots of the sites, then serves until SIGINT, SIGTERM or the end of
``--duration``. The same arguments always make the same web.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from freshet.crawler.synthetic_web.content import DAY_S
from freshet.crawler.synthetic_web.server import LoggedExchange, SitePlacement, WebServer, serve
from freshet.crawler.synthetic_web.web import (
    SyntheticWeb,
    WebClock,
    WebSpec,
    mixed,
    plain,
    showcase,
)


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
