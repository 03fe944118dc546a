"""Vetting: whether a page that was answered with 200 is content, or a wall in its place.

Only pages of few words are looked at twice. What a host has shown is held for a run, and
kept in the store where it was worth a request or a verdict.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from crawler.detection.sketch import Sketch, sketch
from crawler.detection.walls.look import PageLook, Wall, is_another_text
from crawler.detection.walls.probing import HonestAnswer, ProbeAnswer, probe_url
from crawler.detection.walls.sieve import is_short, tells
from crawler.detection.walls.signs import read_signs
from crawler.detection.walls.site import SiteWalls
from crawler.parsing.page import ParsedPage, is_plain
from crawler.parsing.quarantine import Parser, Unparsable
from storage.records import Digests, DueUrl, FetchResult, Outcome, PageHistory

#: Hosts of which it is held what they have shown, those used last.
_HOSTS: Final = 512
#: A host that shows a single page is not asked for another that cannot exist.
_PROBED_FROM: Final = 2


@dataclass(frozen=True, slots=True)
class WallRecall:
    """What the store is asked: a host's walls (versioned bytes), and a page's history."""

    host: Callable[[int], Awaitable[bytes | None]]
    page: Callable[[int], Awaitable[PageHistory | None]]


@dataclass(frozen=True, slots=True)
class Vetted:
    """The verdict, and the host's walls in bytes where they are to be kept."""

    wall: Wall | None = None
    walls: bytes | None = None


@dataclass(slots=True)
class _Host:
    """``turn``: its pages are judged one after the other, so that one probe serves them all."""

    walls: SiteWalls
    pages: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A page of few words as it came."""

    result: FetchResult
    parsed: ParsedPage
    new: Sketch
    had_content: bool | None

    @property
    def is_suspicious(self) -> bool:
        """Whether it is worth the time to weigh what the page says."""
        page = self.parsed
        return bool(self.had_content) or tells(page.title, page.blocks.texts, self.result.body)

    def look(self, url: str) -> PageLook:
        return look_at(self.result, url, self.parsed, self.new, self.had_content)


_CONTENT: Final = Vetted()


class Vetting:
    """Judges pages for one run. ``ask`` sends a probe and waits for its answer."""

    def __init__(
        self,
        recall: WallRecall,
        ask: Callable[[int, str], Awaitable[FetchResult | None]],
        parser: Parser,
        rng: Random,
    ) -> None:
        self._recall = recall
        self._ask = ask
        self._parser = parser
        self._rng = rng
        self._hosts: OrderedDict[int, _Host] = OrderedDict()

    async def vet(
        self, due: DueUrl, result: FetchResult, parsed: ParsedPage, new: Sketch, now: float
    ) -> Vetted:
        """Judge a page by its main text (``new`` is its sketch) and what its host has shown."""
        content_type = result.header("Content-Type")
        if is_plain(content_type):
            return _CONTENT
        texts = parsed.blocks.texts
        had_content = None
        if due.digests is not None and is_short(texts, had_content=True):
            had_content = await self._had_content(due, due.digests, new)
        if not is_short(texts, had_content=had_content):
            return _CONTENT
        host = await self._host(due.host_id)
        async with host.turn:
            host.pages += 1
            return await self._judged(host, due, _Seen(result, parsed, new, had_content), now)

    async def _judged(self, host: _Host, due: DueUrl, seen: _Seen, now: float) -> Vetted:
        """The verdict; what shows no sign of a wall is compared with what the host shows only."""
        walls, wall, probed = host.walls, None, False
        if seen.is_suspicious or walls.shows_pages(now):
            wall = walls.judge(seen.look(due.fetch_url), now)
        if wall is None and walls.wants_probe(now, several=host.pages >= _PROBED_FROM):
            answer = await self._probe(due)
            if answer is not None:
                probed = True
                walls.learn_probe(answer, now)
                if walls.shows_pages(now):
                    wall = walls.judge(seen.look(due.fetch_url), now)
        return Vetted(wall, walls.to_bytes() if probed or wall is not None else None)

    async def _host(self, host_id: int) -> _Host:
        host = self._hosts.get(host_id)
        if host is None:
            stored = await self._recall.host(host_id)
            # Another page of the host may have come while this waited.
            host = self._hosts.setdefault(host_id, _Host(walls_of(stored)))
            if len(self._hosts) > _HOSTS:
                self._hosts.popitem(last=False)
        self._hosts.move_to_end(host_id)
        return host

    async def _had_content(self, due: DueUrl, old: Digests, new: Sketch) -> bool | None:
        if old.text == new.text_digest:
            return False
        history = await self._recall.page(due.page_id)
        return None if history is None else is_another_text(Sketch.from_bytes(history.sketch), new)

    async def _probe(self, due: DueUrl) -> ProbeAnswer | None:
        """How the host answers for a URL beside this one that cannot exist."""
        url = probe_url(due.fetch_url, f"{self._rng.getrandbits(64):016x}")
        result = await self._ask(due.host_id, url)
        if result is None:
            return None
        if result.outcome is not Outcome.FETCHED:
            return HonestAnswer(result.status)
        parsed = await self._parser.parse(result.body, url, result.header("Content-Type"))
        if isinstance(parsed, Unparsable):
            return HonestAnswer(result.status)
        return look_at(result, url, parsed, sketch(parsed.blocks.texts, parsed.blocks.places))


def walls_of(stored: bytes | None) -> SiteWalls:
    """What a host has shown, as stored (versioned bytes), or nothing."""
    return SiteWalls() if stored is None else SiteWalls.from_bytes(stored)


def look_at(
    result: FetchResult,
    url: str,
    parsed: ParsedPage,
    new: Sketch,
    had_content: bool | None = None,
) -> PageLook:
    """All that a page shows of itself, before anything is known of its host."""
    signs = read_signs(result.body, result.header("Content-Type"))
    retry_after = result.header("Retry-After") is not None
    return PageLook(url, parsed.title, parsed.blocks, new, signs, had_content, retry_after)
