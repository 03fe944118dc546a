"""CPU time of the not-content check, of this code and of an older checkout, on the same pages.

Each measurement is a process of its own, which imports the code below the root that it is told, so
this file uses only what both have. They take turns, and the least time of each counts: other work
on the machine only adds to it.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import is_dataclass
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scripts.benchmarks.short_pages import RealPage

_ROUNDS = 3
_ROOT = Path(__file__).parents[2]


def costs(pages: Sequence[RealPage], old: Path, work: Path) -> dict[str, float]:
    """Return microseconds a page of this code and of the old, and their ratio."""
    packed = work / "pages.pickle"
    packed.write_bytes(pickle.dumps([(page.host, page.url, page.html) for page in pages]))
    found = {"new": 1e9, "old": 1e9}
    for _ in range(_ROUNDS):
        for name, root in (("old", old), ("new", _ROOT)):
            command = (sys.executable, __file__, str(packed))
            environment = {**os.environ, "PYTHONPATH": str(root)}
            ran = subprocess.run(
                command, env=environment, cwd=root, capture_output=True, check=True
            )
            found[name] = min(found[name], json.loads(ran.stdout))
    us = {name: round(seconds / len(pages) * 1e6, 1) for name, seconds in found.items()}
    return {**us, "ratio": round(us["new"] / us["old"], 3), "pages": len(pages)}


async def _nothing(*_: object) -> None:
    return None


async def _no_pages(*_: object) -> list[object]:
    return []


def measured(pages: Sequence[tuple[str, str, str]]) -> float:
    """Return the CPU seconds of checking these pages, which are parsed before."""
    from freshet.crawler.compare.detection import PageHistories
    from freshet.crawler.compare.not_content.check import NotContentCheck
    from freshet.crawler.reduce.page import parse
    from freshet.crawler.reduce.parser_process import Parser
    from freshet.crawler.reduce.sketch import sketch
    from freshet.storage.records import DueUrl, FetchResult

    async def gone(_host: int, url: str) -> FetchResult:
        return FetchResult(url, "gone", 0.0, 0.0, 404)

    names = "history predecessor sample not_content again text".split()
    queries: dict[str, Any] = {each: _no_pages if each == "sample" else _nothing for each in names}
    # An older checkout takes functions.
    histories: Any = PageHistories
    is_old = is_dataclass(histories)
    past: Any = histories(**queries) if is_old else SimpleNamespace(**queries)
    probing: Any = {"ask": gone} if is_old else {"probes": SimpleNamespace(ask=gone)}
    hosts: dict[str, int] = {}
    visits = []
    for n, (host, url, html) in enumerate(pages):
        body, host_id = html.encode(), hosts.setdefault(host, len(hosts) + 1)
        parsed = parse(body, url, "text/html; charset=utf-8")
        text = sketch(parsed.blocks.texts, parsed.blocks.places)
        headers = ((b"Content-Type", b"text/html; charset=utf-8"),)
        result = FetchResult(url, "fetched", 0.0, 0.0, 200, headers=headers, body=body)
        visits.append((DueUrl(n + 1, url, url, host_id, 0.0), result, parsed, text))

    async def check_all() -> None:
        check = NotContentCheck(past, Parser(), Random(0), **probing)
        for visit in visits:
            await check.check(*visit)

    async def warm_up() -> None:
        check = NotContentCheck(past, Parser(), Random(0), **probing)
        for visit in visits[:20]:
            await check.check(*visit)

    with asyncio.Runner() as runner:
        runner.run(warm_up())
        start = time.process_time()
        runner.run(check_all())
        return time.process_time() - start


if __name__ == "__main__":
    print(measured(pickle.loads(Path(sys.argv[1]).read_bytes())))
