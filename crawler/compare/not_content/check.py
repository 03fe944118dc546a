"""Vetting: whether a page that was answered with 200 is content, or a wall in its place.

Only pages of few words are looked at twice. What a host has shown is held for a run, and
kept in the store where it was worth a request or a verdict. A page that proves later to have
been a wall is taken back by the visit that proves it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from freshet.crawler.compare.not_content.cues import is_short, tells
from freshet.crawler.compare.not_content.host import (
    MOST_PENDING,
    HonestAnswer,
    ProbeAnswer,
    SiteWalls,
    probe_url,
)
from freshet.crawler.compare.not_content.page import PageLook, Wall, is_another_text, read_signs
from freshet.crawler.reduce.page import ParsedPage, is_plain
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.reduce.sketch import Sketch, sketch
from freshet.storage.entries import Retraction
from freshet.storage.records import Digests, DueUrl, FetchResult, PageHistory
from freshet.storage.words import Outcome

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
    """The verdict, and the host's walls in bytes where they are to be kept.

    ``retractions`` are of captures that prove to be walls, ``history`` is the page's own where
    it had to be read.
    """

    wall: Wall | None = None
    walls: bytes | None = None
    retractions: tuple[Retraction, ...] = ()
    history: PageHistory | None = None


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


@dataclass(slots=True)
class _Host:
    """``turn``: its pages are judged one after the other, so that one probe serves them all.

    ``taken`` are the visits that were taken for content, by URL: page id and Unix seconds.
    """

    walls: SiteWalls
    pages: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    taken: OrderedDict[str, tuple[int, float]] = field(default_factory=OrderedDict)

    def judge(self, due: DueUrl, seen: _Seen, at: float) -> Wall | None:
        """The verdict on a page; a visit is held as long as the walls hold what it showed."""
        self.taken.pop(due.fetch_url, None)
        wall = self.walls.judge(seen.look(due.fetch_url), at)
        if wall is None:
            self.taken[due.fetch_url] = due.page_id, at
            if len(self.taken) > MOST_PENDING:
                self.taken.popitem(last=False)
        return wall

    def retractions(self, walls: Mapping[str, Wall], by: str) -> Iterator[Retraction]:
        """What is known of these URLs' visits since the page at ``by`` was seen."""
        for url, wall in walls.items():
            visit = self.taken.pop(url, None)
            if visit is not None:
                yield Retraction(*visit, str(wall.kind), f"known since {by} was seen: {wall.why}")


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
        had_content, history = None, None
        if due.digests is not None and is_short(texts, had_content=True):
            had_content, history = await self._before(due, due.digests, new)
        if not is_short(texts, had_content=had_content):
            return Vetted(history=history)
        host = await self._host(due.host_id)
        async with host.turn:
            host.pages += 1
            seen = _Seen(result, parsed, new, had_content)
            return replace(await self._judged(host, due, seen, now), history=history)

    async def _judged(self, host: _Host, due: DueUrl, seen: _Seen, now: float) -> Vetted:
        """The verdict; what shows no sign of a wall is compared with what the host shows only."""
        walls, wall, shown = host.walls, None, None
        several = host.pages >= _PROBED_FROM
        # Of the first page, too, a probe may tell that the next one leads to.
        is_first = not several and walls.wants_probe(now)
        if seen.is_suspicious or is_first or walls.shows_pages(now):
            wall = host.judge(due, seen, now)
        if wall is None and walls.wants_probe(now, several=several):
            answer = await self._probe(due)
            if answer is not None:
                shown = walls.learn_probe(answer, now)
                if walls.shows_pages(now):
                    wall = host.judge(due, seen, now)
        known = {**(shown or {}), **(dict.fromkeys(wall.earlier, wall) if wall else {})}
        retractions = (*host.retractions(known, due.url), *_own(due, seen, wall))
        keeps = shown is not None or wall is not None
        return Vetted(wall, walls.to_bytes() if keeps else None, retractions)

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

    async def _before(
        self, due: DueUrl, old: Digests, new: Sketch
    ) -> tuple[bool | None, PageHistory | None]:
        """Whether the page had another text before, and its history if that had to be read."""
        if old.text == new.text_digest:
            return False, None
        history = await self._recall.page(due.page_id)
        if history is None:
            return None, None
        return is_another_text(Sketch.from_bytes(history.sketch), new), history

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


def _own(due: DueUrl, seen: _Seen, wall: Wall | None) -> Iterator[Retraction]:
    """A wall of the very text that the page's last capture has: that was one, too.

    What shows no text at all may have been content then, and is told by its markup only.
    """
    known = due.digests.text if due.digests is not None else None
    if wall is not None and known == seen.new.text_digest and any(seen.parsed.blocks.texts):
        why = f"known since its next visit: {wall.why}"
        yield Retraction(due.page_id, None, str(wall.kind), why)


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
