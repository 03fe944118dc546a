"""TLS and name servers that lie, loop and stall: each request ends in time, with its reason."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from freshet.crawler.fetch import addresses
from freshet.crawler.fetch.addresses import AddressGuard, CachingResolver, DnsLimits
from freshet.crawler.fetch.client import FetchLimits, Request
from tests.crawler.fetch.dns_server import NameServer, name_server
from tests.crawler.fetch.hostile_server import closes, hostile, page
from tests.crawler.fetch.test_client import fetching

LIMITS = FetchLimits(connect_timeout_s=0.5, headers_timeout_s=0.5, body_timeout_s=0.5)
#: Fatal alerts in the handshake: it fails, no common version, no such name.
ALERTS = [bytes((21, 3, 3, 0, 2, 2, what)) for what in (40, 70, 112)]


@pytest.mark.parametrize(
    ("said", "reason"),
    [*((alert, "tls") for alert in ALERTS), (bytes(100), "not_tls"),
     (b"", "connect"), (ALERTS[0][:3], "connect")],
)  # fmt: skip
async def test_an_odd_handshake_is_a_failure(said: bytes, reason: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4_096)
        writer.write(said)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, fetching(LIMITS) as fetcher:
        port = server.sockets[0].getsockname()[1]
        result = await fetcher.fetch(Request(f"https://localhost:{port}/"))
    assert (result.outcome, result.reason) == ("failed", reason)


HERE = bytes((127, 0, 0, 1))
POINTER = b"\xc0\x0c"
A, CNAME = 1, 5


def record(data: bytes = HERE, kind: int = A, owner: bytes = POINTER) -> bytes:
    return owner + struct.pack("!HHIH", kind, 1, 2**32 - 1, len(data)) + data


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
        pytest.param((), {}, "no_such_host", id="nothing, and no error"),
        pytest.param((record(),), {"identity_off": 1}, "no_resolver", id="another's answer"),
        pytest.param((record(),), {"flags": 0x8380}, "no_resolver", id="cut, and no TCP"),
        pytest.param((record(),), {}, "address", id="our own machine"),
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


async def test_answers_are_not_kept_twice_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """c-ares has an own cache without a bound: it answers until it is emptied."""
    monkeypatch.setattr(addresses, "_EMPTIED_AFTER", 5)
    async with name_server({"shop.example": ["127.0.0.1"]}) as server:
        resolver = CachingResolver(
            DnsLimits(dns_min_ttl_s=0.0, dns_max_ttl_s=0.0), nameservers=[server.address]
        )
        async with asyncio.timeout(5.0):
            while server.asked["shop.example"] < 2:
                assert await resolver.addresses("shop.example") == ["127.0.0.1"]
        await resolver.close()
