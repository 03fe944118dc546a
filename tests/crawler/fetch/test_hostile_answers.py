"""TLS and name servers that lie, loop and stall: each request ends in time, with its reason."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import uvloop

from freshet.crawler.fetch.addresses import AddressGuard, CachingResolver, DnsLimits
from freshet.crawler.fetch.client import FetchLimits, Request
from freshet.storage.records import FetchResult
from tests.crawler.fetch.dns_server import NameServer
from tests.crawler.fetch.hostile_server import CERTIFICATE, closes, hostile, page
from tests.crawler.fetch.test_fetch import fetching

LIMITS = FetchLimits(connect_timeout_s=0.5, headers_timeout_s=0.5, body_timeout_s=0.5)
ALERT = bytes((21, 3, 3, 0, 2, 2, 40))
OPEN_ENDED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>Hello"


def server_context(tmp_path: Path, change: str = "") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    text = CERTIFICATE.read_text("ascii")
    if change == "chain":
        text += text[text.index("-----BEGIN CERT") :] * 300
    chain = tmp_path / "chain.pem"
    chain.write_text(text, "ascii")
    context.load_cert_chain(chain)
    if change == "old":
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if change == "sni":
        context.sni_callback = lambda *_: ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
    return context


async def over_tls(
    context: ssl.SSLContext | bytes, answer: bytes = b"", *, garble: int | None = None
) -> FetchResult:
    """The result where the server shakes hands by hand and ends without close_notify.

    Bytes instead of a context are all that it says; ``garble`` is a byte that it damages.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # It is cancelled with the server, which asyncio takes for an error.
        with suppress(asyncio.CancelledError, ConnectionError):
            await say(reader, writer)
        writer.close()

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if isinstance(context, bytes):
            await reader.read(4_096)
            writer.write(context)
            return
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        while data := await reader.read(65_536):
            incoming.write(data)
            try:
                tls.do_handshake()
                tls.read(4_096)
                tls.write(answer)
                writer.write(outgoing.read())
                break
            except ssl.SSLWantReadError:
                sent = bytearray(outgoing.read())
                if garble is not None and garble < len(sent):
                    sent[garble] ^= 1
                writer.write(sent)
            except ssl.SSLError:
                writer.write(outgoing.read())
                break

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    trusted = ssl.create_default_context(cafile=str(CERTIFICATE))
    trusted.minimum_version = ssl.TLSVersion.TLSv1_3
    async with server, fetching(LIMITS, tls=trusted) as fetcher:
        port = server.sockets[0].getsockname()[1]
        return await fetcher.fetch(Request(f"https://localhost:{port}/"))


@pytest.mark.parametrize(
    ("change", "reason"), [("old", "tls"), ("sni", "tls"), ("chain", "tls"), ("", None)]
)
async def test_an_odd_handshake_is_a_failure_of_tls(
    change: str, reason: str | None, tmp_path: Path
) -> None:
    """No common version, not our name, a chain of 300; and a good one beside them."""
    result = await over_tls(server_context(tmp_path, change), page())
    assert (result.reason, result.body) == (reason, b"" if reason else b"<p>Hello")


@pytest.mark.parametrize(
    ("said", "reason"),
    [(ALERT, "tls"), (bytes(100), "not_tls"), (b"", "connect"), (ALERT[:3], "connect")],
)
async def test_what_is_no_handshake_is_a_failure(said: bytes, reason: str) -> None:
    assert (await over_tls(said)).reason == reason


@pytest.mark.parametrize("place", [0, 5, 20, 60, 90, 200, 700])
async def test_a_damaged_handshake_is_a_failure_of_tls(place: int, tmp_path: Path) -> None:
    result = await over_tls(server_context(tmp_path), page(), garble=place)
    assert result.reason in {"tls", "not_tls", "timeout_connect"}


def test_a_body_that_ends_without_close_notify_is_whole_only_if_its_length_says_so(
    tmp_path: Path,
) -> None:
    """Servers that close without saying so are too many to lose their pages."""
    for answer in (page(), OPEN_ENDED):
        result = uvloop.run(over_tls(server_context(tmp_path), answer))
        assert (result.reason, result.body) == (None, b"<p>Hello")
    cut = uvloop.run(over_tls(server_context(tmp_path), page()[:-1]))
    assert cut.reason == "cut_short"


HERE = bytes((127, 0, 0, 1))
POINTER = b"\xc0\x0c"
A, CNAME = 1, 5


def record(data: bytes = HERE, kind: int = A, owner: bytes = POINTER, ttl_s: int = 0) -> bytes:
    return owner + struct.pack("!HHIH", kind, 1, ttl_s, len(data)) + data


class Liar(NameServer):
    """Every answer has these records, whatever was asked; ``flags`` are those of the header."""

    flags: int
    said: tuple[bytes, ...]
    identity_off: int

    def _answer(self, query_id: bytes, question: bytes, name: str, kind: int) -> bytes:
        identity = (int.from_bytes(query_id) + self.identity_off) % 65_536
        counts = struct.pack("!HHHHHH", identity, self.flags, 1, len(self.said), 0, 0)
        return (counts + question + b"".join(self.said))[:60_000]


@asynccontextmanager
async def lying(
    *said: bytes, flags: int = 0x8180, identity_off: int = 0
) -> AsyncIterator[CachingResolver]:
    liar = Liar({})
    liar.flags, liar.said, liar.identity_off = flags, said, identity_off
    loop = asyncio.get_running_loop()
    liar.transport, _ = await loop.create_datagram_endpoint(lambda: liar, ("127.0.0.1", 0))
    limits = DnsLimits(dns_timeout_s=0.05, dns_tries=1)
    resolver = CachingResolver(limits, nameservers=[liar.address])
    try:
        yield resolver
    finally:
        await resolver.close()
        liar.transport.close()


@pytest.mark.parametrize(
    ("said", "header", "reason"),
    [
        pytest.param((record(POINTER, CNAME),), {}, "no_such_host", id="a name that is its own"),
        pytest.param((record(b"\xc0\xff", CNAME),), {}, "dns", id="a pointer to nowhere"),
        pytest.param((record(b"\x7f"),), {}, "dns", id="an address of one byte"),
        pytest.param((), {}, "no_such_host", id="nothing, and no error"),
        pytest.param((record(),), {"identity_off": 1}, "no_resolver", id="another's answer"),
        pytest.param((record(),), {"flags": 0x8380}, "no_resolver", id="cut, and no TCP"),
        pytest.param((record(),), {}, "address", id="our own machine"),
        pytest.param((record(ttl_s=2**32 - 1),), {}, "address", id="our machine for ever"),
        pytest.param((record(owner=b"\x03a\0b\0"),), {}, "address", id="ours by an odd name"),
        pytest.param((record(bytes((10, 0, 0, 1))), record()), {}, "address", id="two inner ones"),
    ],
)
async def test_an_odd_answer_of_a_name_server_is_a_failure_without_a_connection(
    said: tuple[bytes, ...], header: dict[str, int], reason: str
) -> None:
    async with (
        lying(*said, **header) as resolver,
        hostile(closes(page())) as server,
        fetching(LIMITS, guard=AddressGuard(), resolver=resolver) as fetcher,
    ):
        result = await fetcher.fetch(Request(f"http://shop.example:{server.port}/"))
    assert (result.outcome, result.reason, server.connections) == ("failed", reason, 0)


async def test_of_thousands_of_addresses_a_few_are_kept_and_tried() -> None:
    said = (record(bytes((127, 0, n // 256, n % 256))) for n in range(3_000))
    async with lying(*said) as resolver:
        assert 1 <= len(await resolver.addresses("shop.example")) <= 16
