"""A name server on loopback that says what the test tells it, and counts the questions."""

import asyncio
import struct
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address

_A, _AAAA = 1, 28
NXDOMAIN, SERVFAIL, REFUSED = 3, 2, 5


@dataclass
class NameServer(asyncio.DatagramProtocol):
    """``records`` map a name to its addresses, or to the error code of the answer."""

    records: dict[str, list[str] | int]
    ttl_s: int = 300
    silent: bool = False
    asked: Counter[str] = field(default_factory=Counter)
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    transport: asyncio.DatagramTransport | None = None

    @property
    def address(self) -> str:
        assert self.transport is not None
        return "{}:{}".format(*self.transport.get_extra_info("sockname"))

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        name, end = _name(data, 12)
        kind = struct.unpack_from("!H", data, end)[0]
        self.asked[name] += kind == _A  # and AAAA beside it
        self.heard.set()
        if self.transport is not None and not self.silent:
            self.transport.sendto(self._answer(data[:2], data[12 : end + 4], name, kind), addr)

    def _answer(self, query_id: bytes, question: bytes, name: str, kind: int) -> bytes:
        known = self.records.get(name, NXDOMAIN)
        code, found = (known, []) if isinstance(known, int) else (0, known)
        version = {_A: 4, _AAAA: 6}.get(kind)
        packed = [a.packed for a in map(ip_address, found) if a.version == version]
        head = query_id + struct.pack("!HHHHH", 0x8180 | code, 1, len(packed), 0, 0)
        return (
            head
            + question
            + b"".join(
                b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, self.ttl_s, len(p)) + p for p in packed
            )
        )


def _name(data: bytes, at: int) -> tuple[str, int]:
    labels = []
    while data[at]:
        labels.append(data[at + 1 : at + 1 + data[at]].decode("ascii").lower())
        at += 1 + data[at]
    return ".".join(labels), at + 1


@asynccontextmanager
async def name_server(records: dict[str, list[str] | int]) -> AsyncIterator[NameServer]:
    server = NameServer(records)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: server, ("127.0.0.1", 0))
    server.transport = transport
    try:
        yield server
    finally:
        transport.close()
