"""The CPU time of the checks of differences and of block pages, for this Freshet or another one.

Run with the file of the visits by :mod:`scripts.benchmarks.changes`, by the Python of the checkout
that is measured: it imports nothing but what both have. Prints the seconds of all checks, of
differences and of both; reading a page once more, where a check asks for it, counts.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import zlib
from base64 import b64decode
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from freshet.crawler.compare.detection import Detector, PageHistories
from freshet.crawler.compare.not_content.check import NotContentCheck
from freshet.crawler.reduce import page as reading
from freshet.crawler.reduce.page import parse
from freshet.crawler.reduce.parser_process import Parser
from freshet.crawler.reduce.sketch import sketch
from freshet.storage import records
from freshet.storage.records import Digests, DueUrl, FetchResult, PageHistory

_NAMES = (
    "history", "predecessor", "sample", "not_content", "again", "text", "whole", "content",
    "standing",
)  # fmt: skip
_TYPE = "text/html; charset=utf-8"
#: Older checkouts read all that a page says, or nothing beside its content.
_WHOLE_TEXT: Any = getattr(reading, "whole_text", None)
_STANDING: Any = getattr(reading, "standing", None)


def _blocks(body: bytes, url: str) -> Any:
    return parse(zlib.decompress(body), url, _TYPE).blocks


async def _gone(_host: int, url: str) -> FetchResult:
    return FetchResult(url, "gone", 0.0, 0.0, 404)


class Host:
    """The pages of a host as a store keeps them."""

    def __init__(self) -> None:
        self.pages: dict[int, PageHistory] = {}
        self.digests: dict[int, Digests] = {}
        self.bodies: dict[int, bytes] = {}
        self.doubts: dict[int, Any] = {}
        queries: dict[str, Any] = {
            "history": self._history, "sample": self._sample, "text": self._text,
            "whole": self._whole, "standing": self._standing, "content": self._content,
        }  # fmt: skip
        # An older checkout takes functions.
        histories: Any = PageHistories
        is_old = is_dataclass(histories)
        known = [each.name for each in fields(histories)] if is_old else _NAMES
        queries = {name: queries.get(name, self._nothing) for name in known}
        past: Any = histories(**queries) if is_old else SimpleNamespace(**queries)
        probing: Any = {"ask": _gone} if is_old else {"probes": SimpleNamespace(ask=_gone)}
        self.detector = Detector(past)
        self.check = NotContentCheck(past, Parser(), Random(0), **probing)
        self._takes = {
            "text": "text" in known,
            "content": _WHOLE_TEXT is not None or _STANDING is not None,
        }
        self.seconds = self.both = 0.0

    async def _history(self, page_id: int) -> PageHistory | None:
        return self.pages.get(page_id)

    async def _sample(self, host_id: int, most: int) -> list[PageHistory]:
        return list(self.pages.values())[:most]

    async def _nothing(self, *_: object) -> None:
        return None

    async def _text(self, due: DueUrl, content: tuple[bytes, str] | None = None) -> Any:
        if content is not None:
            return parse(content[0], due.url, _TYPE).blocks
        return _blocks(self.bodies[due.page_id], due.url)

    async def _content(self, page_id: int) -> tuple[bytes, str]:
        return zlib.decompress(self.bodies[page_id]), _TYPE

    async def _standing(self, _: DueUrl, content: tuple[bytes, str], digests: Any) -> Any:
        return _STANDING(*content, digests)

    async def _whole(self, due: DueUrl, content: tuple[bytes, str] | None = None) -> Any:
        body = content[0] if content else zlib.decompress(self.bodies[due.page_id])
        return _WHOLE_TEXT(body, _TYPE)

    async def visit(self, page_id: int, at: float, url: str, body: bytes) -> None:
        """Judge a visit."""
        html = zlib.decompress(body)
        parsed = parse(html, url, _TYPE)
        blocks = parsed.blocks
        new = sketch(blocks.texts, blocks.places)
        due = DueUrl(page_id, url, url, 1, at, digests=self.digests.get(page_id))
        if page_id in self.doubts:
            due = replace(due, doubt=self.doubts[page_id])
        given: dict[str, Any] = {"text": blocks, "content": (html, _TYPE)}
        more = {name: given[name] for name, is_taken in self._takes.items() if is_taken}
        headers = ((b"Content-Type", _TYPE.encode()),)
        result = FetchResult(url, "fetched", at, 0.0, 200, headers=headers, body=html)
        began = time.process_time()
        checked = await self.check.check(due, result, parsed, new)
        self.both += time.process_time() - began
        # An older checkout knows no doubt.
        self.doubts.pop(page_id, None)
        if (doubt := getattr(checked, "doubt", None)) is not None:
            self.doubts[page_id] = records.Doubt(str(doubt.kind), doubt.probability, doubt.why)
        self.detector.visited(1)
        began = time.process_time()
        found = await self.detector.detect(due, new, at, **more)
        took = time.process_time() - began
        self.seconds += took
        self.both += took
        past = self.pages.get(page_id)
        if past is None or found.keeps_sketch:
            still, kept = 0, new.to_bytes()
        else:
            still, kept = past.still + 1, past.sketch
        memory = found.memory or (past.memory if past else None)
        self.pages[page_id] = PageHistory(kept, memory, 0 if found.memory else still)
        self.digests[page_id] = Digests(b"", new.text_digest)
        self.bodies[page_id] = body


async def measured(path: Path) -> dict[str, float]:
    """Judge the visits of a file: each line a list of visits of one host."""
    seconds, both, visits = 0.0, 0.0, 0
    for line in path.read_text("utf-8").splitlines():
        host = Host()
        for page_id, at, url, body in json.loads(line):
            await host.visit(page_id, at, url, b64decode(body))
            visits += 1
        seconds += host.seconds
        both += host.both
    return {"seconds": seconds, "both": both, "visits": visits}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measured(Path(sys.argv[1])))))
