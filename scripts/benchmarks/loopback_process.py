"""The program of the loopback server; started by :mod:`scripts.benchmarks.loopback`.

It reads its orders, one line of JSON, from standard input, says its port in one line on
standard output, and ends when standard input does: it cannot outlive whoever started it.

Not on uvloop: asyncio's own transports send at once where the socket takes it, so that the
end of an exchange is stamped when its last piece leaves, not a turn of the loop before.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import IO

from scripts.benchmarks.hostile_sites import Hostile, attacks
from scripts.benchmarks.loopback import Web
from scripts.benchmarks.site_contents import Calm, Site

_PORT_TRIES = 20


async def _main(log: Path) -> None:
    orders = json.loads(sys.stdin.readline())
    web = Web(**orders | {"calm": Calm(**orders["calm"])})
    with log.open("a", encoding="utf-8", buffering=1) as file:
        servers = await _listen(_sites(web), file)
        port = servers[0].sockets[0].getsockname()[1]
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)
        for server in servers:
            server.close()


def _sites(web: Web) -> dict[str, Site]:
    """What answers on each address; the bombs are built here."""
    hostile = attacks(web.bomb_mib) if web.attacks else {}
    return {
        **dict.fromkeys(web.addresses, web.calm),
        **{address: Hostile(hostile[name]) for address, name in web.attacks.items()},
    }


async def _listen(sites: Mapping[str, Site], log: IO[str]) -> list[asyncio.Server]:
    """Listen on every address with one port, which is free on all of them."""
    for _ in range(_PORT_TRIES):
        servers: list[asyncio.Server] = []
        port = 0
        try:
            for address, site in sites.items():
                service = _Service(address, site, log)
                servers.append(await asyncio.start_server(service.connected, address, port))
                port = servers[0].sockets[0].getsockname()[1]
        except OSError:
            for server in servers:
                server.close()
        else:
            return servers
    sys.exit("no port is free on all addresses")


@dataclass(frozen=True, slots=True)
class _Service:
    address: str
    site: Site
    log: IO[str]

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                await self._answer(request, monotonic(), writer)
        writer.close()

    async def _answer(self, request: bytes, start: float, writer: asyncio.StreamWriter) -> None:
        first, *lines = request.decode("latin-1").split("\r\n")
        path = first.split(" ")[1]
        fields = (line.partition(":") for line in lines if line)
        answer = self.site.answer(path, {k.lower(): v.strip() for k, _, v in fields})
        end = start
        try:
            await asyncio.sleep(self.site.latency_s)
            for piece in answer.pieces:
                end = monotonic()
                writer.write(piece)
                await writer.drain()
        finally:
            exchange = (self.address, path, start, end, monotonic(), answer.status)
            self.log.write(json.dumps(exchange) + "\n")


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(_main(Path(sys.argv[1])))
