"""Readers of the changefeed that wait: the memory of the server, and what others get meanwhile.

``freshet serve`` runs with a limit of open files; so many long polls wait. ``/healthz`` is asked
again and again meanwhile; a change then wakes all of them. The store is the one of the consumer.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

from scripts.benchmarks.memory_watch import resident

_AT = 1.8e9
_LOOKS = 100
_LOOK_EVERY_S = 0.05
_PATH = b"/v1/changefeed?feed=longpoll&since=now&heartbeat=300000"
_POLL = b"GET " + _PATH + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
_HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
#: The limit that scripts/deploy/freshet.service sets.
_FILES = 8_192


def waited(store: Path, readers: int) -> dict[str, Any]:
    """Let so many readers wait for a change."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, readers + 1_000), hard))
    files = min(hard, _FILES)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = str(Path(sys.executable).with_name("freshet"))
    words = [program, "serve", "--db", str(store), "--listen", f"127.0.0.1:{port}"]
    process = subprocess.Popen(
        ["/bin/sh", "-c", f'ulimit -Sn 1024; ulimit -Hn {files}; exec "$@"', "sh", *words],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        return asyncio.run(_waiting(store, readers, port, process.pid)) | {"files": files}
    finally:
        process.terminate()
        process.wait()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def _waiting(store: Path, readers: int, port: int, pid: int) -> dict[str, Any]:
    await _begun(port)
    before = resident(pid)
    polls = [await _opened(port, _POLL) for _ in range(readers)]
    heads = await asyncio.gather(*(reader.readuntil(b"\r\n\r\n") for reader, _ in polls))
    open_files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    took = [(await _asked(port, _HEALTH, pause_s=_LOOK_EVERY_S)) for _ in range(_LOOKS)]
    grown = resident(pid) - before
    answers = [asyncio.create_task(_told(reader)) for reader, _ in polls]
    await asyncio.sleep(1.0)
    waiting = sum(not answer.done() for answer in answers)
    began_at = monotonic()
    _change(store)
    told = await asyncio.gather(*answers)
    woken_s = monotonic() - began_at
    for _, writer in polls:
        writer.close()
    return {
        "readers": readers,
        "accepted": sum(head.startswith(b"HTTP/1.1 200") for head in heads),
        "waiting": waiting,
        "open_files": open_files,
        "grown_mb": round(grown / 1e6, 1),
        "goal_mb": 60,
        "healthz_ok": sum(status == b"200" for status, _ in took),
        "healthz_ms": {
            "median": round(1e3 * median(s for _, s in took), 1),
            "longest": round(1e3 * max(s for _, s in took), 1),
        },
        "told_of_the_change": sum(b'"seq"' in answer for answer in told),
        "all_woken_after_s": round(woken_s, 2),
    }


async def _begun(port: int) -> None:
    """Wait until the server answers, and has answered often."""
    async with asyncio.timeout(60.0):
        while True:
            with suppress(ConnectionError):
                for _ in range(20):
                    await _asked(port, _HEALTH)
                return
            await asyncio.sleep(0.1)


async def _opened(port: int, request: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    return reader, writer


async def _told(reader: asyncio.StreamReader) -> bytes:
    """Return the rest of an answer, when it comes."""
    return await reader.read()


async def _asked(port: int, request: bytes, *, pause_s: float = 0.0) -> tuple[bytes, float]:
    """Return the status of an answer, and the seconds that it took."""
    await asyncio.sleep(pause_s)
    began_at = monotonic()
    reader, writer = await _opened(port, request)
    answer = await reader.read()
    writer.close()
    return answer.split(b" ", 2)[1], monotonic() - began_at


def _change(store: Path) -> None:
    """Report a change of the first page, as a crawl beside the server does."""
    with closing(sqlite3.connect(store)) as db, db:
        seen = db.execute(
            "INSERT INTO observation (page_id, run_id, at, kind, duration_s, version_id) "
            "VALUES (1, 1, ?, 'changed', 0.1, 1)", (_AT + 1,),
        )  # fmt: skip
        db.execute(
            "INSERT OR REPLACE INTO change (page_id, kind, at, version_id, observation_id) "
            "VALUES (1, 'changed', ?, 1, ?)", (_AT + 1, seen.lastrowid),
        )  # fmt: skip
