"""A daemon that is stopped (SIGSTOP) while requests are under way, and goes on a day later."""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from tests.crawler.fetch.hostile_server import page

HOSTS = tuple("abcdef")
DELAY_S = 1.0
BUDGET_PER_S = 5.0
STOP_S = 4.0


def _body(host: str) -> bytes:
    links = "".join(f"<p>The <a href='/{n}'>page {n}</a> of {host} is new.</p>" for n in range(99))
    return f"<title>{host}</title><main>{links}</main>".encode()


@dataclass
class Web:
    """Sites that answer after some seconds. ``fate`` says how requests end during the stop."""

    fate: str
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[tuple[float, str]] = field(default_factory=list)
    under_way: int = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        host = head.split(b"Host: ")[1][:1].decode()
        self.asked.append((asyncio.get_running_loop().time(), host))
        self.under_way += 1
        try:
            await self._answer(host, writer, is_robots=b"/robots.txt" in head)
        finally:
            self.under_way -= 1
            writer.close()

    async def _answer(self, host: str, writer: asyncio.StreamWriter, *, is_robots: bool) -> None:
        if is_robots:
            writer.write(page(b"", status="404 Not Found"))
            return
        body = page(_body(host), "Content-Type: text/html", "Connection: close")
        try:
            async with asyncio.timeout(1.0):
                await self.stopped.wait()
        except TimeoutError:
            writer.write(body)
            return
        match self.fate:
            case "reset":
                writer.transport.abort()
            case "half a head":
                writer.write(body[:20])
            case "half a body":
                writer.write(body[: len(body) // 2])
            case "silence":
                await asyncio.sleep(60.0)
            case _:
                writer.write(body)

    def since(self, at: float) -> list[tuple[float, str]]:
        return [each for each in self.asked if each[0] >= at]


@asynccontextmanager
async def keeping(db: Path, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    config = db.with_name("freshet.toml")
    config.write_text(
        "[politeness]\nslow_factor = 0.0\n[daemon]\naudit_share = 0.0\n"
        f"[fetch]\nheaders_timeout_s = {STOP_S - 1}\n"
    )
    with db.with_name("said.log").open("wb") as said:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.integration.slept", "daemon", "--db", str(db),
            "--config", str(config), "--allow-private-addresses", "--delay", str(DELAY_S),
            "--budget", f"{BUDGET_PER_S * 3_600:g}/hour",
            *(f"http://{host}.localhost:{port}/" for host in HOSTS),
            stdout=asyncio.subprocess.DEVNULL, stderr=said,
        )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


async def until(web: Web, number: int, at: float = 0.0) -> None:
    async with asyncio.timeout(60.0):
        while len(web.since(at)) < number:  # noqa: ASYNC110 - another process asks
            await asyncio.sleep(0.05)


@pytest.mark.long
@pytest.mark.parametrize("fate", ["reset", "half a head", "half a body", "silence", "answered"])
async def test_a_daemon_that_was_stopped_for_a_day_charges_nobody(
    tmp_path: Path, fate: str
) -> None:
    web, db = Web(fate), tmp_path / "crawl.db"
    server = await asyncio.start_server(web.answer, "127.0.0.1", 0)
    loop = asyncio.get_running_loop()
    async with server, keeping(db, server.sockets[0].getsockname()[1]) as process:
        await until(web, 40)
        while web.under_way < 3:  # noqa: ASYNC110 - another process asks
            await asyncio.sleep(0.01)
        os.kill(process.pid, signal.SIGSTOP)
        web.stopped.set()
        await asyncio.sleep(STOP_S)
        web.stopped.clear()
        woken_at = loop.time()
        os.kill(process.pid, signal.SIGCONT)
        await until(web, 40, woken_at)
    after = web.since(woken_at)
    assert after[0][0] - woken_at < 5.0
    for host in HOSTS:
        gaps = [b - a for a, b in pairwise(at for at, each in after if each == host)]
        assert min(gaps) >= DELAY_S * 0.95
        # Nobody is punished: each host is asked about as often as its delay allows.
        assert max(gaps) < 8.0
    times = [at for at, _ in after]
    assert all(b - a >= 0.9 * 20 / BUDGET_PER_S for a, b in zip(times, times[21:], strict=False))
    with closing(sqlite3.connect(db)) as store:
        failed = "SELECT reason, detail FROM observation WHERE kind = 'failed'"
        assert store.execute(failed).fetchall() == []
        assert store.execute("SELECT origin FROM host WHERE failures > 0").fetchall() == []
        slow = "SELECT count(*) FROM observation WHERE duration_s > 30"
        assert store.execute(slow).fetchone() == (0,)
