"""Hosts that answer byte for byte as they are told, and what a crawl reads of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from scripts.benchmarks.odd_responses import Odd

_LATER_S = 0.02


@asynccontextmanager
async def serving(response_to: Callable[[str], Odd]) -> AsyncIterator[str]:
    """Yield the origin of a server that answers a path, until the block ends."""
    tasks = set[asyncio.Task[None] | None]()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
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
        for task in tasks:
            if task is not None:
                task.cancel()
        await asyncio.gather(*filter(None, tasks), return_exceptions=True)


def crawled() -> dict[str, int]:
    return {}
