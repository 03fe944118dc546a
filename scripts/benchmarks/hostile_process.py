"""The program of the server of hostile hosts; started by :mod:`scripts.benchmarks.hostile`.

It serves one row (:mod:`scripts.benchmarks.hostile_rows`) on every address of 127.0.0.0/8 at once,
says its port in one line, and ends when its standard input does. Every request is logged.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import IO

from scripts.benchmarks.hostile_rows import ROWS, Request, Row

_BACKLOG = 4_096
_HEAD_BYTES = 1 << 20
_ENDED = (
    asyncio.CancelledError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError,
)  # fmt: skip


async def _main(row: Row, log: IO[str]) -> None:
    row.prepare()
    service = _Service(row, log)
    servers = [
        await asyncio.start_server(service.connected, sock=_everywhere(port), limit=_HEAD_BYTES)
        for port in row.ports
    ]
    sys.stdout.write(f"{servers[0].sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    for server in servers:
        server.close()


def _everywhere(port: int) -> socket.socket:
    """A socket that listens on all addresses of the loopback device, and on no other device."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
    listening.bind(("0.0.0.0", port))
    listening.listen(_BACKLOG)
    return listening


class _Service:
    def __init__(self, row: Row, log: IO[str]) -> None:
        self._row = row
        self._log = log

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(*_ENDED):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                start = monotonic()
                request = _request(writer, head)
                await reader.readexactly(int(request.headers.get("content-length", 0)))
                try:
                    await self._answer(request, writer)
                finally:
                    credentials = request.headers.get("authorization", "")
                    line = (
                        request.host,
                        request.port,
                        request.path,
                        start,
                        monotonic(),
                        credentials,
                    )
                    self._log.write(json.dumps(line) + "\n")
        writer.close()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        for piece in self._row.answer(request):
            if isinstance(piece, bytes):
                writer.write(piece)
                await writer.drain()
            else:
                await asyncio.sleep(piece)


def _request(writer: asyncio.StreamWriter, head: bytes) -> Request:
    host, port = writer.get_extra_info("sockname")
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = (line.partition(":") for line in lines if line)
    return Request(host, port, first.split(" ")[1], {k.lower(): v.strip() for k, _, v in fields})


if __name__ == "__main__":
    # The log outlives the loop, whose end cancels the answers under way: they are logged, too.
    with Path(sys.argv[2]).open("a", encoding="utf-8", buffering=1) as file:
        asyncio.run(_main(ROWS.get(sys.argv[1], Row()), file))
