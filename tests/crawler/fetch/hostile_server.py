"""A server on loopback that answers byte for byte what a test tells it to, however wrong."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

#: A key and a certificate of its own making for 127.0.0.1 and localhost.
CERTIFICATE = Path(__file__).with_name("data") / "loopback.pem"

#: Answers one request on a connection; the connection lives on until it is closed.
Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class HostileServer:
    """``requests`` are the heads that came, ``connections`` counts what was opened."""

    answer: Answer
    scheme: str = "http"
    netloc: str = ""
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def url(self, path: str = "/") -> str:
        return f"{self.scheme}://{self.netloc}{path}"

    @property
    def port(self) -> int:
        return int(self.netloc.rpartition(":")[2])

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            try:
                while not writer.is_closing():
                    self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                    await self.answer(writer)
            finally:
                writer.transport.abort()


@asynccontextmanager
async def hostile(
    answer: Answer, *, host: str = "127.0.0.1", tls: bool | ssl.SSLContext = False
) -> AsyncIterator[HostileServer]:
    """Serve until the block ends."""
    hostile_server = HostileServer(answer, "https" if tls else "http")
    context = tls if isinstance(tls, ssl.SSLContext) else None
    if tls is True:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(CERTIFICATE)
    server = await asyncio.start_server(hostile_server.connected, host, 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    hostile_server.netloc = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        yield hostile_server
    finally:
        server.close()
        tasks = list(hostile_server.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def page(body: bytes = b"<p>Hello", *headers: str, status: str = "200 OK") -> bytes:
    """A well-made answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    if not any(line.lower().startswith("content-type") for line in headers):
        lines.append("Content-Type: text/html")
    return "\r\n".join([*lines, *headers, "", ""]).encode("latin-1") + body


def sends(data: bytes) -> Answer:
    """Send the bytes and keep the connection."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return answer


def closes(data: bytes = b"") -> Answer:
    """Send the bytes and hang up."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    return answer


def resets(data: bytes = b"") -> Answer:
    """Send the bytes, let the client (on the same loop) read them, and break off."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        for _ in range(500):
            await asyncio.sleep(0)
        # Without lingering, closing sends a reset instead of the orderly end.
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    return answer


def repeats(head: bytes, piece: bytes) -> Answer:
    """Send the head, then the piece again and again for as long as anybody listens."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()

    return answer
