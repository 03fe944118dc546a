"""Proxies on loopback: HTTP with CONNECT, and SOCKS 5, that note what they were asked for."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from typing import TypeAlias


async def _piped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _joined(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    port: int,
    first: bytes,
    hello: bytes,
) -> None:
    """Send ``first`` to a port of this machine, answer ``hello``, and pass on what follows."""
    there, back = await asyncio.open_connection("127.0.0.1", port)
    with closing(back):
        back.write(first)
        writer.write(hello)
        await asyncio.gather(_piped(reader, back), _piped(there, writer))


_Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(serve: _Serve) -> AsyncIterator[int]:
    """Yield the port of a server that hangs up when ``serve`` returns or the client hangs up."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(asyncio.IncompleteReadError, ConnectionError):
            await serve(reader, writer)

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def http_proxy() -> AsyncIterator[tuple[int, list[bytes]]]:
    """Yield its port and the heads of requests; every name stands for this machine."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        heads.append(head)
        method, target, _ = head.split(b" ", 2)
        place = target if method == b"CONNECT" else target.split(b"/")[2]
        port = int(place.rpartition(b":")[2])
        if method == b"CONNECT":
            await _joined(reader, writer, port, b"", b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            await _joined(reader, writer, port, head, b"")

    async with serving(serve) as port:
        yield port, heads


@asynccontextmanager
async def socks_proxy() -> AsyncIterator[tuple[int, list[bytes]]]:
    """Yield its port and the names that it was to connect to (RFC 1928, without a password).

    It hangs up on a client that speaks another protocol.
    """
    names: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        version, methods = await reader.readexactly(2)
        if version != 5:
            return
        await reader.readexactly(methods)
        writer.write(b"\x05\x00")
        kind = (await reader.readexactly(4))[3]
        size = (await reader.readexactly(1))[0] if kind == 3 else 4
        names.append(await reader.readexactly(size))
        port = int.from_bytes(await reader.readexactly(2), "big")
        await _joined(reader, writer, port, b"", b"\x05\x00\x00\x01" + bytes(6))

    async with serving(serve) as port:
        yield port, names
