"""Hosts that answer byte for byte as they are told, and what a crawl reads of them."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path

from scripts.benchmarks.odd_responses import Odd

_LATER_S = 0.02


@asynccontextmanager
async def serving(response_to: Callable[[str], Odd]) -> AsyncIterator[str]:
    """Yield the origin of a server that answers a path, until the block ends."""
    tasks, writers = set[asyncio.Task[None]](), set[asyncio.StreamWriter]()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        tasks.add(asyncio.create_task(serve(reader, writer)))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while not writer.is_closing():
                request = await reader.readuntil(b"\r\n\r\n")
                odd = response_to(request.split()[1].decode("ascii"))
                writer.write(odd.data)
                await writer.drain()
                if odd.later:
                    await asyncio.sleep(_LATER_S)
                    writer.write(odd.later)
                if odd.ends:
                    writer.close()
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.gather(*tasks, return_exceptions=True)


#: One odd header, on all responses of a host, those for robots.txt as well.
KINDS = {
    "a blank before the colon": (b"X-Powered-By : PHP",),
    "a line without a colon": (b"Notice Undefined index",),
    "the same length twice": (b"Content-Length: %d",),
    "a list of one length": (b"X-List: yes",),
    "chunks with a length": (b"Transfer-Encoding: chunked",),
    "a header of 20 kB": (b"X-Long: " + b"a" * 20_000,),
    "Content-Encoding: UTF-8": (b"Content-Encoding: UTF-8",),
    "gzip said, text sent": (b"Content-Encoding: gzip",),
}
_PAGES = 7
_TIME_LIMIT_S = 60


async def crawled() -> dict[str, object]:
    """The pages that a crawl reads of a host of each kind, of seven."""
    async with AsyncExitStack() as stack:
        origins = {
            kind: await stack.enter_async_context(serving(partial(_answer, kind))) for kind in KINDS
        }
        with tempfile.TemporaryDirectory(prefix="freshet-bench-") as directory:
            store, settings = Path(directory, "crawl.db"), Path(directory, "freshet.toml")
            settings.write_text("[politeness]\ndelay_s = 0\nslow_factor = 0\n")
            process = await asyncio.create_subprocess_exec(
                str(Path(sys.executable).with_name("freshet")), "crawl", *origins.values(),
                "--db", str(store), "--config", str(settings), "--allow-private-addresses",
                "--time-limit", str(_TIME_LIMIT_S), "--json",
                stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            await process.wait()
            with closing(sqlite3.connect(store)) as connection:
                rows = connection.execute(
                    "SELECT url FROM page WHERE version_id IS NOT NULL AND role = 'page'"
                ).fetchall()
    read = {kind: sum(url.startswith(f"{origin}/") for (url,) in rows)
            for kind, origin in origins.items()}  # fmt: skip
    return {"of": _PAGES, "hosts": sum(n == _PAGES for n in read.values()), "pages": read}


def _answer(kind: str, path: str) -> Odd:
    """The response of a host for a path: seven pages that link to each other, and robots.txt."""
    name, status = path.strip("/") or "0", b"200 OK"
    if path == "/robots.txt":
        body, label = b"User-agent: *\nDisallow: /private/\n", b"text/plain"
    elif not (name.isdecimal() and int(name) < _PAGES):
        # A crawler asks for what cannot exist, to see how the host says so.
        body, label, status = b"<p>No such page.", b"text/html", b"404 Not Found"
    else:
        number = int(name)
        links = b"".join(b'<p><a href="/%d">page %d</a>' % (n, n) for n in range(1, _PAGES))
        said = b" ".join(b"word%d" % (number * 100 + n) for n in range(60))
        body = b"<!doctype html><title>Page %d</title><p>%b.%b" % (number, said, links)
        label = b"text/html"
    length = b"Content-Length: %d" % len(body)
    lines = [b"HTTP/1.1 " + status, b"Content-Type: " + label, length]
    lines += [line % len(body) if b"%d" in line else line for line in KINDS[kind]]
    if kind == "a list of one length":
        lines[2] = b"Content-Length: %d, %d" % (len(body), len(body))
    if kind == "chunks with a length":
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return Odd(kind, b"\r\n".join((*lines, b"", body)))
