"""Forged signals at a steady rate, from many addresses, as a process of its own.

Of every 50 requests 20 go to callbacks that nobody has, 12 to one that is somebody's with a wrong
signature, 10 are pings with made-up keys, 5 lists of URLs with such a key, 2 announce a body of
100 MB, and one begins a body and never ends it. Half of the connections are for one request.
Reads its order (JSON) from standard input, and prints what was answered.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from time import perf_counter
from typing import Any

_ADDRESSES = 200
_KEPT = 40
_AT_ONCE = 500
_SLOW_S = 5.0


@dataclass(slots=True)
class Flood:
    """What is sent where, and what came back."""

    port: int
    callback: str
    site: str
    statuses: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    numbers: Any = field(default_factory=lambda: count(1))

    def request(self, number: int) -> tuple[bytes, bool]:
        """The bytes of a request, and whether it never ends."""
        kind = number % 50
        body = b""
        signature = f"X-Hub-Signature: sha256={number:064x}"
        if kind < 20:
            line, body = f"POST /websub/{number:043} HTTP/1.1\r\n{signature}", b"x" * 512
        elif kind < 32:
            line, body = f"POST {self.callback} HTTP/1.1\r\n{signature}", b"x" * 2_048
        elif kind < 42:
            line = f"GET /indexnow?key={number:08}&url={self.site} HTTP/1.1"
        elif kind < 47:
            urls = [f"{self.site}{n}" for n in range(100)]
            said = {"host": self.site.split("/")[2], "key": f"{number:08}", "urlList": urls}
            line, body = "POST /indexnow HTTP/1.1", json.dumps(said).encode()
        else:
            line = f"POST {self.callback} HTTP/1.1\r\n{signature}"
        if kind == 49:
            head = "POST /indexnow HTTP/1.1\r\nHost: f\r\nContent-Length: 50000\r\n\r\n"
            return head.encode() + b"{", True
        length = 100_000_000 if kind in {47, 48} else len(body)
        return f"{line}\r\nHost: f\r\nContent-Length: {length}\r\n\r\n".encode() + body, False

    async def send(self, kept: asyncio.Queue[tuple[Any, Any]] | None) -> None:
        """One request; on a kept connection if there is one."""
        number = next(self.numbers)
        data, is_slow = self.request(number)
        begun = perf_counter()
        try:
            if kept is not None and not kept.empty() and not is_slow:
                reader, writer = kept.get_nowait()
            else:
                n = number % _ADDRESSES
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", self.port, local_addr=(f"127.0.{1 + n // 100}.{1 + n % 100}", 0)
                )
            writer.write(data)
            async with asyncio.timeout(_SLOW_S):
                head = await reader.readuntil(b"\r\n\r\n")
            status = head.split(b" ", 2)[1].decode()
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r", 1)[0] or b"0")
            await reader.readexactly(length)
            self.latencies.append(perf_counter() - begun)
            if kept is not None and b"close" not in head.lower() and kept.qsize() < _KEPT:
                kept.put_nowait((reader, writer))
            else:
                writer.close()
        except (OSError, EOFError, TimeoutError) as error:
            status = "slow" if is_slow else type(error).__name__
        self.statuses[status] += 1


async def _flood(order: Mapping[str, Any]) -> dict[str, object]:
    flood = Flood(order["port"], order["callback"], order["site"])
    kept: asyncio.Queue[tuple[Any, Any]] = asyncio.Queue()
    begun, sent = perf_counter(), 0
    tasks: set[asyncio.Task[None]] = set()
    while (passed := perf_counter() - begun) < order["seconds"]:
        while sent < passed * order["rate"] and len(tasks) < _AT_ONCE:
            task = asyncio.create_task(flood.send(kept if sent % 2 else None))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            sent += 1
        await asyncio.sleep(0.001)
    await asyncio.wait(tasks, timeout=2 * _SLOW_S)
    latencies = sorted(flood.latencies) or [0.0]
    return {
        "sent": sent,
        "sent_per_s": round(sent / order["seconds"], 1),
        "answers": dict(flood.statuses.most_common()),
        "answer_ms_p50": round(1e3 * latencies[len(latencies) // 2], 2),
        "answer_ms_p99": round(1e3 * latencies[len(latencies) * 99 // 100], 2),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(_flood(json.load(sys.stdin)))) + "\n")
