"""Sites on one loopback port, told apart by Host, half of whose links go to another site.

Each page is linked from one page only, so that each link that is lost shows as a missing page. The
server is a process of its own, which ends with its standard input.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, time
from typing import IO

_ROOT = Path(__file__).parents[2]
_WORDS = 120


@dataclass(frozen=True, slots=True)
class LinkedSites:
    """So many ``hosts`` with so many ``pages`` each; one in three pages changes by and by.

    An answer takes ``latency_s``, a version lasts ``version_s``.
    """

    hosts: int
    pages: int
    latency_s: float = 0.02
    version_s: float = 30.0

    @property
    def names(self) -> list[str]:
        """The names of the hosts."""
        return [f"site{host}.example" for host in range(self.hosts)]

    def roots(self, port: int) -> list[str]:
        """The pages from which all others are found."""
        return [f"http://{name}:{port}/" for name in self.names]

    def urls(self, port: int) -> set[str]:
        """All pages."""
        return {f"{root}p{page}" if page else root for root in self.roots(port)
                for page in range(self.pages)}  # fmt: skip

    def settings(self) -> str:
        """What a crawler needs to find them."""
        lines = [f'"{name}" = "127.0.0.1"' for name in self.names]
        private = "[network]\nallow_private_addresses = true\n[network.resolve]\n"
        return private + "\n".join(lines) + "\n"

    def page(self, host: int, page: int, port: int) -> str:
        """A page, which leads to one of its own site and to one of another."""
        links = []
        if (near := 2 * page + 2) < self.pages:
            links.append(f"<a href='/p{near}'>near {near}</a>")
        if (far := 2 * page + 1) < self.pages:
            name = self.names[(host + far) % self.hosts]
            links.append(f"<a href='http://{name}:{port}/p{far}'>far {far}</a>")
        words = " ".join(f"word{(page * 13 + i * 7 + host * 31) % 501}" for i in range(_WORDS))
        version = int(time() / self.version_s) if page % 3 == 0 else 0
        news = " ".join(f"news{version * 5 + i}" for i in range(8))
        return (f"<html><title>Site {host} page {page}</title><body><h1>Page {page} of {host}</h1>"
                f"<p>{words}</p><p>{news}</p>{' '.join(links)}</body></html>")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request: when it came and when it was answered, on which connection, by monotonic time."""

    at: float
    ended_at: float
    connection: int
    host: str
    path: str


@contextmanager
def serving(sites: LinkedSites, log: Path) -> Iterator[int]:
    """Serve on a port, which is yielded, while the block runs."""
    shape = f"{sites.hosts},{sites.pages},{sites.latency_s},{sites.version_s}"
    with subprocess.Popen(
        [sys.executable, "-m", "scripts.benchmarks.linked_sites", shape, str(log)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=_ROOT, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        yield int(process.stdout.readline())
        assert process.stdin is not None
        process.stdin.close()


def arrivals(log: Path) -> list[Arrival]:
    """The requests so far, in the order of their coming."""
    text = log.read_text("utf-8")
    found = []
    for line in text[: text.rfind("\n") + 1].splitlines():
        at, ended_at, connection, host, path = line.split(" ", 4)
        found.append(Arrival(float(at), float(ended_at), int(connection), host, path))
    return sorted(found, key=lambda it: it.at)


class _Server:
    def __init__(self, sites: LinkedSites, log: IO[str]) -> None:
        self._sites, self._log, self._connections = sites, log, 0
        self.port = 0

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        number = self._connections
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                request = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                at = monotonic()
                path = request.split(" ", 2)[1]
                host = request.lower().partition("\r\nhost:")[2].partition("\r\n")[0].strip()
                host = host.partition(":")[0]
                await asyncio.sleep(self._sites.latency_s)
                with suppress(ConnectionError):
                    writer.write(self._answer(host, path))
                    await writer.drain()
                self._log.write(f"{at:.4f} {monotonic():.4f} {number} {host} {path}\n")
        writer.close()

    def _answer(self, host: str, path: str) -> bytes:
        status, kind, body = "200 OK", "text/html", ""
        digits = "0" if path == "/" else path.removeprefix("/p")
        if path == "/robots.txt":
            kind, body = "text/plain", "User-agent: *\nAllow: /\n"
        elif host in self._sites.names and digits.isdecimal() and int(digits) < self._sites.pages:
            number = int(host.removeprefix("site").partition(".")[0])
            body = self._sites.page(number, int(digits), self.port)
        else:
            status = "404 Not Found"
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        return (head + body).encode()


async def _main(shape: str, log: str) -> None:
    hosts, pages, latency, version = shape.split(",")
    sites = LinkedSites(int(hosts), int(pages), float(latency), float(version))
    with Path(log).open("a", encoding="utf-8", buffering=1) as file:  # noqa: ASYNC230 - at start
        service = _Server(sites, file)
        server = await asyncio.start_server(service.connected, "127.0.0.1", 0)
        service.port = server.sockets[0].getsockname()[1]
        sys.stdout.write(f"{service.port}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)
        server.close()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
