"""Feeds archived exchanges to the stages of a crawl, in the order in which they ended.

The archive determines which page is visited when. robots.txt, reduction, comparison, admission and
the store work as in a crawl.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from freshet.crawler.fetch.client import Accept
from freshet.crawler.fetch.responses import is_plain, is_repeatable
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.frontier.frontier import Refusal, RobotsRequest
from freshet.crawler.run.pool import Submitting
from freshet.crawler.run.requester import Requester
from freshet.crawler.urls import canonical, origin
from freshet.crawler.visit import unasked
from freshet.storage.entries import Host, Role
from freshet.storage.records import (
    Acknowledged,
    DueUrl,
    Entry,
    FetchResult,
    Observation,
    StoreUpdate,
    Targets,
    Visit,
)

#: Entries in one transaction; until it commits, reads of their pages return the old state.
_BATCH = 64


@dataclass(frozen=True, slots=True)
class PlayedExchange:
    """One exchange as the fetcher returned it.

    ``is_ours``: Freshet archived it, after it had checked robots.txt. ``is_unasked``: no request
    was sent, because robots.txt forbade it or the host was given up.
    """

    result: FetchResult
    accept: Accept
    is_ours: bool = False
    is_unasked: bool = False


@dataclass(slots=True)
class ReplayCounts:
    """Counts of exchanges that are not visits."""

    probes: int = 0
    calls: int = 0
    #: robots.txt files of hosts without any page request.
    stray_robots: int = 0
    refused_again: int = 0
    #: Records that other programs archived with a URL that is not HTTP.
    not_http: int = 0


class PlayedStore(Protocol):
    """The queries of a replay to the store that it fills."""

    async def find_pages(self, urls: Collection[str], /) -> Sequence[DueUrl]:
        """Return the pages with these URLs."""

    async def find_host(self, host_id: int, /) -> Host:
        """Return a host."""

    async def host_at(self, origin: str, /) -> Host | None:
        """Return the host of an origin, if it is known."""

    async def count_at(self, page_id: int, at: float, /) -> int:
        """Return the number of observations of a page at a time."""


@dataclass(slots=True, kw_only=True)
class ArchivePlayer:
    """Feeds exchanges one by one to the stages that process responses.

    *Invariant.* Before an exchange is processed, the results of earlier ones about its page, and
    the page itself, are committed. Consequence: a replay has the same result as the crawl.

    The writer commits a batch in one transaction. The pages of the ``coming`` exchanges are read
    together, and read again after each commit. ``done_at`` is the time of the last observation of
    an earlier replay.
    """

    requester: Requester
    clock: VirtualClock
    writer: Submitting
    store: PlayedStore
    counts: ReplayCounts
    done_at: float
    coming: deque[PlayedExchange] = field(default_factory=deque, init=False)
    _read: dict[str, DueUrl | None] = field(default_factory=dict, init=False)
    _batch: list[Entry] = field(default_factory=list, init=False)
    _waiting: int = field(default=0, init=False)
    _waiting_pages: set[int] = field(default_factory=set, init=False)
    _done: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _passed: Counter[tuple[int, float]] = field(default_factory=Counter, init=False)
    _hops: dict[str, RobotsRequest] = field(default_factory=dict, init=False)
    _early_robots: dict[str, list[PlayedExchange]] = field(default_factory=dict, init=False)
    # URLs whose next exchange repeats the last one, with the reason of that failure.
    _repeats: dict[str, str | None] = field(default_factory=dict, init=False)

    # -- writing -----------------------------------------------------------------

    async def submit(self, entry: Entry) -> None:
        """Add an entry to the batch, which is written when it is full or before a read."""
        self._batch.append(entry)
        self._waiting += 1
        if isinstance(entry, Visit):
            self._waiting_pages.add(entry.due.page_id)
        if len(self._batch) >= _BATCH:
            await self.settled()

    def acknowledged(self, batch: Sequence[Acknowledged]) -> None:
        """Count the entries that the writer has committed."""
        self._waiting -= len(batch)
        if not self._waiting:
            self._waiting_pages.clear()
            self._done.set()

    async def settled(self) -> None:
        """Write the batch, and wait until all entries are committed."""
        batch, self._batch = self._batch, []
        self._read.clear()
        for entry in batch:
            await self.writer.submit(entry)
        self.writer.hurry()
        while self._waiting:
            self._done.clear()
            await self._done.wait()

    # -- pages -------------------------------------------------------------------

    async def take(self, played: PlayedExchange) -> None:
        """Process one exchange and set the clock to its end."""
        result = played.result
        self.clock.go_on_from(result.ended_at)
        try:
            url = canonical(result.url)
        except ValueError:
            self.counts.not_http += 1
            return
        match played.accept:
            case "robots":
                await self._robots(played)
            case "probe":
                self.counts.probes += 1
            case "answer":
                self.counts.calls += 1
            case _:
                await self._page(played, url)

    async def finish(self) -> None:
        """Wait until everything has committed."""
        self.counts.stray_robots += sum(map(len, self._early_robots.values()))
        await self.settled()

    async def _page(self, played: PlayedExchange, url: str) -> None:
        result = played.result
        if result.outcome == "redirected":
            # A redirect loop shows only when the targets of other pages are stored.
            await self.settled()
        due = await self._due(url) or await self._admitted(url, played)
        await self._know_host(due.host_id, str(origin(url)))
        if await self._is_taken(due, result):
            return
        repeat_of = self._repeats.pop(result.url, None)
        if _starts_over(result):
            repeat_of = None
        if played.is_ours and self._is_repeated(due, repeat_of, result):
            # This was not a visit: a plain request follows.
            self._repeats[result.url] = result.reason
            return
        due = replace(due, fetch_url=result.url, due_at=result.started_at, repeat_of=repeat_of)
        await self.requester.read_robots(due.host_id)
        await self.submit(await self._visit(due, played))

    def _is_repeated(self, due: DueUrl, repeat_of: str | None, result: FetchResult) -> bool:
        """Return whether Freshet repeated its request plainly; learn whether that helped."""
        pipeline = self.requester.pipeline
        pipeline.recorder.learn_repeats(due.host_id, repeat_of, result)
        may_repeat = pipeline.may_repeat(due.host_id, repeat_of, result)
        # An earlier replay stored no visit for it, by the host's state at that time.
        return is_repeatable(result) if result.ended_at <= self.done_at else may_repeat

    async def _visit(self, due: DueUrl, played: PlayedExchange) -> Visit:
        """Return the visit of a page under the current rules."""
        result = played.result
        rule = self._forbidden(due) if not played.is_ours else None
        if result.outcome == "refused" and result.status is None:
            return self._refusal(due, result.detail or "")
        if played.is_unasked:
            observation = Observation(
                due.page_id, result.ended_at, "failed", reason=result.reason, detail=result.detail
            )
            return unasked(due, observation)
        if rule is not None:
            self.counts.refused_again += 1
            return self._refusal(due, rule)
        return await self.requester.pipeline.take(due, result)

    async def _is_taken(self, due: DueUrl, result: FetchResult) -> bool:
        """Return whether an earlier, killed replay has already processed the exchange."""
        if result.ended_at > self.done_at:
            return False
        # An archive may hold several captures of one second, some of them processed.
        capture = due.page_id, result.ended_at
        self._passed[capture] += 1
        return await self.store.count_at(*capture) >= self._passed[capture]

    def _refusal(self, due: DueUrl, rule: str) -> Visit:
        return self.requester.refuse(Refusal(due, rule))

    def _forbidden(self, due: DueUrl) -> str | None:
        """Return the rule of the archived robots.txt that forbids a URL, or None."""
        verdict = self.requester.robots.verdict(due.host_id, due.fetch_url)
        return None if verdict.allowed else verdict.rule

    async def _due(self, url: str) -> DueUrl | None:
        due = await self._stored(url)
        if self._waiting and (due is None or due.page_id in self._waiting_pages):
            await self.settled()
            due = await self._stored(url)
        return due

    async def _stored(self, url: str) -> DueUrl | None:
        """Return the stored page of a URL, or None."""
        if url not in self._read:
            self._read = {url: None}
            for each in self.coming:
                with suppress(ValueError):
                    self._read[canonical(each.result.url)] = None
            found = await self.store.find_pages(self._read)
            self._read.update({due.url: due for due in found})
        return self._read[url]

    async def _admitted(self, url: str, played: PlayedExchange) -> DueUrl:
        """Admit a page without a link from a replayed page: the crawl's user named it."""
        result, targets = played.result, Targets()
        role: Role = "sitemap" if played.accept == "sitemap" else "page"
        if not self.requester.admission.scope.contains(url):
            self.requester.admission.scope.add_seed(url)
        self.requester.admission.add(targets, url, result.url, depth=0, role=role)
        await self.submit(StoreUpdate(result.started_at, targets=targets))
        await self.settled()
        due = await self._stored(url)
        if due is None:
            raise LookupError(f"{url} was admitted and is not there")
        return due

    # -- hosts -------------------------------------------------------------------

    async def _know_host(self, host_id: int, at_origin: str) -> None:
        if self.requester.frontier.knows(host_id):
            return
        host = await self.store.find_host(host_id)
        self.requester.frontier.add_host(host, host.origin)
        for played in self._early_robots.pop(at_origin, ()):
            await self._robots(played)

    async def _robots(self, played: PlayedExchange) -> None:
        result = played.result
        request = self._hops.pop(result.url, None) or await self._robots_request(result)
        if request is not None and _starts_over(result):
            request = replace(request, repeat_of=None)
        if request is None:
            self._early_robots.setdefault(str(origin(result.url)), []).append(played)
            return
        pipeline = self.requester.pipeline
        if played.is_ours:
            pipeline.recorder.learn_repeats(request.host_id, request.repeat_of, result)
        if played.is_ours and pipeline.may_repeat(request.host_id, request.repeat_of, result):
            self._hops[result.url] = replace(request, repeat_of=result.reason)
            return
        hop = await self.requester.next_hop(request, result)
        if hop is not None:
            self._hops[hop.url] = hop
            return
        for entry in await self.requester.robots_answered(request, result):
            await self.submit(entry)

    async def _robots_request(self, result: FetchResult) -> RobotsRequest | None:
        """Return the request for a robots.txt, or None if its host is not known yet."""
        at_origin = str(origin(result.url))
        known = self.requester.frontier.host_of(at_origin)
        if known is None:
            await self.settled()
            host = await self.store.host_at(at_origin)
            if host is None:
                return None
            self.requester.frontier.add_host(host, at_origin)
            known = host.host_id, at_origin
        return RobotsRequest(known[0], at_origin, result.url, known[1])


def _starts_over(result: FetchResult) -> bool:
    """Return whether a killed crawl had not repeated the request before this one.

    Only failed exchanges are tested, and only by whether they were plain.
    """
    return result.outcome == "failed" and not is_plain(result)
