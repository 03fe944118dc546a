"""Crawls of hostile sites over HTTP and TLS, and of names that a hostile name server answers."""

from __future__ import annotations

import asyncio
import sqlite3
import ssl
import struct
import tempfile
from asyncio import CancelledError, StreamReader, StreamWriter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import uvloop

from freshet.config.loading import load
from freshet.config.settings import Settings
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.fetch.addresses import AddressGuard, CachingResolver, DnsLimits
from freshet.crawler.fetch.client import Fetcher, FetchLimits, NetworkFetcher, OursOrTheirs
from freshet.crawler.frontier.clock import SteadyClock
from freshet.crawler.run.crawl import CrawlOrder, crawl
from scripts.benchmarks.fuzz_commands import Case, run_command
from scripts.benchmarks.fuzz_inputs import http_answer, mutated
from scripts.benchmarks.store_inspection import inspect

_CERTIFICATE = Path(__file__).parents[2] / "tests/crawler/fetch/data/loopback.pem"
_QUICK: Mapping[str, object] = {
    "politeness.delay_s": 0.0, "politeness.slow_factor": 0.0, "politeness.crawl_delay_cap_s": 0.01,
    "politeness.back_off_initial_s": 0.02, "politeness.back_off_factor": 8.0,
    "politeness.retry_after_cap_s": 0.05, "crawl.patience_s": 0.3, "crawl.attempts": 2,
    "crawl.max_pages": 150, "crawl.time_limit_s": 20.0, "network.allow_private_addresses": True,
    "fetch.connect_timeout_s": 0.5, "fetch.headers_timeout_s": 0.5, "fetch.body_timeout_s": 1.0,
    "fetch.rate_window_s": 0.5, "parse.time_limit_s": 2.0,
}  # fmt: skip
_LIMITS = FetchLimits(0.5, 0.5, 1.0, 0.0, 0.5)
_HOSTS = 10
#: Rules of the bodies by the target; paths may decide otherwise.
_BODIES = {
    "answers": ("html", "text", "json", "pdf", "feed", "sitemap"),
    "pages": ("html", "html", "html", "json", "text", "pdf"),
    "robots": ("html",),
    "sitemaps": ("html", "sitemap"),
    "feeds": ("feed", "feed", "html"),
    "tls": ("html",),
}


@dataclass(slots=True)
class _Sites:
    """A server whose answers are the case's; ``round`` changes them for a second crawl."""

    case: Case
    round: int = 0
    asked: dict[str, int] = field(default_factory=dict)
    connections: int = 0

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Answer until the client or a whim ends the connection."""
        self.connections += 1
        with suppress(OSError, RuntimeError, asyncio.IncompleteReadError, CancelledError):
            while await self._answer(reader, writer):
                pass
        writer.close()

    async def _answer(self, reader: StreamReader, writer: StreamWriter) -> bool:
        request = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        path = request.split(" ")[1]
        host = request.partition("\r\nHost: ")[2].partition("\r\n")[0]
        key = f"{self.round} {host.partition(':')[0]}{path}"
        self.asked[key] = self.asked.get(key, 0) + 1
        rng = self.case.rng(key, self.asked[key])
        data = http_answer(rng, self._rule(rng, path), host, self._oddness(path))
        self.case.inputs.append((f"{key} {self.asked[key]}", data))
        for _ in range(rng.choice((1, 1, 1, 3))):
            size = rng.randint(1, len(data) or 1)
            writer.write(data[:size])
            await asyncio.sleep(0)
            data = data[size:]
        writer.write(data)
        await writer.drain()
        if rng.random() < 0.003:
            await asyncio.sleep(0.8)
        return rng.random() < 0.7

    def _rule(self, rng: Random, path: str) -> str:
        if path == "/robots.txt":
            return "robots"
        if path.startswith("/sitemap"):
            return "sitemap"
        if path.startswith(("/feed", "/rss", "/atom")):
            return "feed"
        return rng.choice(_BODIES[self.case.target])

    def _oddness(self, path: str) -> float:
        if self.case.target == "answers":
            return 0.2 if path in {"/", "/robots.txt"} else 0.6
        return 0.05


def sites(case: Case) -> None:
    """Two crawls of hosts that answer so, and the commands that read their store."""
    db = case.directory / "crawl.db"
    archive = {"archive.dir": str(case.directory / "warc")} if case.rng("a").random() < 0.2 else {}
    settings, _ = load(None, {**_QUICK, **archive})
    uvloop.run(_crawled(case, settings, db))
    _check_store(case, db)
    origin = f"http://h0.localhost:{_port_of(case)}/"
    for verb in (
        ["status", "--json"], ["changes"], ["signals"], ["duplicates"], ["history", origin],
        ["explain", origin], ["diff", origin], ["export", "pages"], ["rereduce"],
    ):  # fmt: skip
        run_command(case, [*verb, "--db", str(db)])
    if archive:
        run_command(
            case, ["replay", archive["archive.dir"], "--db", str(case.directory / "again.db")]
        )


def _port_of(case: Case) -> str:
    return case.inputs[0][0].split(" ")[0] if case.inputs else "1"


async def _crawled(case: Case, settings: Settings, db: Path) -> None:
    running = _Sites(case)
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0, limit=1 << 20)
    async with server:
        port = server.sockets[0].getsockname()[1]
        case.inputs.append((f"{port} is the port", b""))
        roots = [f"http://h{n}.localhost:{port}/" for n in range(_HOSTS)]
        order = CrawlOrder(db, seeds_from_arguments(roots).seeds)
        for running.round in range(2):
            await crawl(settings, order, watch=lambda _live: lambda _batch: None)
        server.close()


def _check_store(case: Case, db: Path) -> None:
    case.wrong += [f"store: {problem}" for problem in inspect(db).problems]
    query = (
        "SELECT p.url, o.reason, o.detail FROM observation o JOIN page p ON p.id = o.page_id "
        "WHERE o.reason = 'internal' OR o.detail GLOB '[A-Z]*Error: *' "
        "AND o.detail NOT LIKE 'RecursionError: elements nested %'"
    )
    with closing(sqlite3.connect(db)) as connection:
        case.wrong += [f"observation: {row}" for row in connection.execute(query)]


class _GarbledTls:
    """A TLS server whose records are damaged, cut or late; ``mode`` says how else it is odd."""

    def __init__(self, sites_: _Sites, rng: Random) -> None:
        self._sites, self._rng = sites_, rng
        self._mode = rng.choice("good damaged cut garbage alert stall chain sni old".split())

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Shake hands and answer; end without close_notify."""
        with suppress(OSError, RuntimeError, asyncio.IncompleteReadError, CancelledError):
            await self._converse(reader, writer)
        writer.close()
        # The client may reset the connection: that is no fault of ours.
        with suppress(OSError, CancelledError):
            await writer.wait_closed()

    async def _converse(self, reader: StreamReader, writer: StreamWriter) -> None:
        rng, mode = self._rng, self._mode
        if mode in {"garbage", "alert", "stall"}:
            await reader.read(4_096)
            if mode == "stall":
                await asyncio.sleep(0.8)
            alert = bytes((21, 3, rng.randrange(5), 0, 2, rng.randrange(4), rng.randrange(256)))
            writer.write(alert if mode == "alert" else rng.randbytes(rng.randrange(9_000)))
            return
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._sites.case.inputs.append((f"TLS {mode}", b""))
        tls = self._context().wrap_bio(incoming, outgoing, server_side=True)
        answered = False
        while data := await reader.read(65_536):
            incoming.write(data)
            with suppress(ssl.SSLWantReadError):
                tls.do_handshake()
                tls.read(65_536)
                tls.write(http_answer(rng, "html", "localhost", 0.2))
                answered = True
            sent = outgoing.read()
            if mode == "damaged":
                sent = mutated(rng, sent, 0.5)
            writer.write(sent[: rng.randrange(len(sent) + 1)] if mode == "cut" else sent)
            await writer.drain()
            if answered or (mode == "cut" and rng.random() < 0.5):
                return

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(_chain(300) if self._mode == "chain" else _CERTIFICATE)
        if self._mode == "sni":
            context.sni_callback = lambda *_: ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        if self._mode == "old":
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        return context


def _chain(length: int) -> Path:
    text = _CERTIFICATE.read_text("ascii")
    certificate = text[text.index("-----BEGIN CERT") :]
    path = Path(tempfile.gettempdir()) / f"freshet-fuzz-chain-{length}.pem"
    path.write_text(text + certificate * length, "ascii")
    return path


def tls(case: Case) -> None:
    """A crawl of hosts over TLS; half of the cases vouch for their certificate."""
    db = case.directory / "crawl.db"
    uvloop.run(_crawled_over_tls(case, db))
    _check_store(case, db)


async def _crawled_over_tls(case: Case, db: Path) -> None:
    rng = case.rng("tls")
    trusted = ssl.create_default_context(cafile=str(_CERTIFICATE)) if rng.random() < 0.7 else None
    settings, _ = load(None, _QUICK)
    async with AsyncExitStack() as stack:
        ports = []
        for number in range(_HOSTS):
            served = _GarbledTls(_Sites(case), case.rng("host", number))
            server = await asyncio.start_server(served.serve, "127.0.0.1", 0)
            await stack.enter_async_context(server)
            stack.callback(server.close)
            ports.append(server.sockets[0].getsockname()[1])
        resolver = CachingResolver()
        stack.push_async_callback(resolver.close)
        guard = AddressGuard(allow_private=True, loopback_only=True)
        fetcher = NetworkFetcher("fuzz", _LIMITS, guard, resolver, tls=trusted)
        stack.push_async_callback(fetcher.close)
        name = rng.choice(("localhost", "wrong.localhost"))
        await _crawl_by(fetcher, settings, db, [f"https://{name}:{port}/" for port in ports])


async def _crawl_by(fetcher: Fetcher, settings: Settings, db: Path, roots: Sequence[str]) -> None:
    order = CrawlOrder(db, seeds_from_arguments(roots).seeds)
    theirs = OursOrTheirs(fetcher)
    await crawl(
        settings, order, watch=lambda _: lambda _: None, fetcher=theirs, clock=SteadyClock()
    )


def names(case: Case) -> None:
    """A crawl of names that a hostile name server answers; nobody else is ever contacted."""
    db = case.directory / "crawl.db"
    uvloop.run(_crawled_by_name(case, db))
    _check_store(case, db)


async def _crawled_by_name(case: Case, db: Path) -> None:
    rng = case.rng("names")
    settings, _ = load(None, {**_QUICK, "crawl.contact": "https://fuzz.example/"})
    is_open, site = rng.random() < 0.5, _Sites(Case("pages", case.seed, case.directory))
    async with AsyncExitStack() as stack:
        server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
        await stack.enter_async_context(server)
        stack.callback(server.close)
        port = server.sockets[0].getsockname()[1]
        answers = await stack.enter_async_context(_listening(_HostileNames(rng, case)))
        limits = DnsLimits(0.0, 1.0, 1.0, 0.5, dns_timeout_s=0.1, dns_tries=1)
        resolver = CachingResolver(limits, nameservers=[answers])
        stack.push_async_callback(resolver.close)
        guard = AddressGuard(allow_private=is_open, loopback_only=True)
        fetcher = NetworkFetcher("fuzz", _LIMITS, guard, resolver)
        stack.push_async_callback(fetcher.close)
        hosts = [f"h{n}.fuzz.example" for n in range(5 * _HOSTS)]
        await _crawl_by(fetcher, settings, db, [f"http://{host}:{port}/" for host in hosts])
    if site.connections and not is_open:
        case.wrong.append(f"{site.connections} connections to a private address")


class _HostileNames(asyncio.DatagramProtocol):
    """A name server that loops, lies, floods and stammers; never twice the same."""

    def __init__(self, rng: Random, case: Case) -> None:
        self._rng, self._case = rng, case
        self.transport: asyncio.DatagramTransport | None = None

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer, or not."""
        answer = self._answer(data)
        self._case.inputs.append((f"DNS {data!r}", answer))
        if self.transport is not None and self._rng.random() < 0.99:
            self.transport.sendto(answer[:60_000], addr)

    def _answer(self, query: bytes) -> bytes:
        rng = self._rng
        end = query.index(b"\0", 12) + 5
        question, kind = query[12:end], int.from_bytes(query[end - 4 : end - 2])
        flags = 0x8180 | rng.choice((0, 0, 0, 0, 2, 3, 5, 9)) | rng.choice((0, 0, 0, 0, 0x200))
        identity = query[:2] if rng.random() < 0.9 else rng.randbytes(2)
        records = [self._record(kind) for _ in range(rng.choice((0, 1, 1, 2, 5, 40, 2_000)))]
        said = len(records) if rng.random() < 0.9 else rng.randrange(65_536)
        head = identity + struct.pack("!HHHHH", flags, 1, said, 0, 0)
        return mutated(rng, head + question + b"".join(records), 0.3)

    def _record(self, kind: int) -> bytes:
        rng = self._rng
        owner = rng.choice((b"\xc0\x0c", b"\xc0\x0c", b"\x01\0\0", b"\xc0\xff", b"\x03\xff.\n\0"))
        ttl = rng.choice((0, 1, 300, 2**31 - 1, 2**31, 2**32 - 1))
        if rng.random() < 0.15:
            kind = rng.choice((5, 5, 5, 1, 28, 16, 65_535))
        own, loop = b"\xc0\x0c", b"\x04loop\xc0\x0c"
        data = {
            1: bytes((rng.choice((127, 127, 127, 10, 192, 169, 0, 255)), 0, 0, 1)),
            28: rng.choice((bytes(15) + b"\1", b"\xfe\x80" + rng.randbytes(14), rng.randbytes(16))),
            5: rng.choice((own, loop, b"\x09local\0host\0", b"\x3f" + b"x" * 63 + b"\0")),
        }.get(kind, rng.randbytes(rng.randrange(300)))
        size = len(data) if rng.random() < 0.95 else rng.randrange(65_536)
        return owner + struct.pack("!HHIH", kind, 1, ttl, size) + data


@asynccontextmanager
async def _listening(names_: _HostileNames) -> AsyncIterator[str]:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: names_, ("127.0.0.1", 0))
    names_.transport = transport
    yield "{}:{}".format(*transport.get_extra_info("sockname"))
    transport.close()
