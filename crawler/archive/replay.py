"""Feeds archived exchanges to the parts of a crawl, in the order in which they ended.

The archive decides what is visited when; robots.txt, reduction, comparison, admission and the store
work as in a crawl.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from freshet.crawler.admission.admit import Admission
from freshet.crawler.clock import VirtualClock
from freshet.crawler.fetch.client import Accept
from freshet.crawler.frontier import Frontier
from freshet.crawler.requester import Requester
from freshet.crawler.requests import Refusal, RobotsRequest
from freshet.crawler.robots.cache import RobotsCache
from freshet.crawler.urls import canonical, origin
from freshet.crawler.visit import unasked
from freshet.storage.entries import Host, Kind, Outcome, Role
from freshet.storage.records import (
    Acknowledged,
    DueUrl,
    Entry,
    FetchResult,
    Note,
    Observation,
    Targets,
    Visit,
)

#: Entries that may wait for their commit: what is read of them meanwhile is as it was before.
_UNCOMMITTED = 64


@dataclass(frozen=True, slots=True)
class Played:
    """One exchange as the fetcher returned it.

    ``is_ours``: Freshet archived it, after it had consulted robots.txt. ``is_unasked``: no request
    was sent, since robots.txt forbade it or the host was given up.
    """

    result: FetchResult
    accept: Accept
    is_ours: bool = False
    is_unasked: bool = False


class Uncommitted:
    """A counter of submitted entries that have not committed."""

    def __init__(self, submit: Callable[[Entry], Awaitable[None]]) -> None:
        self._submit = submit
        self._count = 0
        self._pages: set[int] = set()
        self._done = asyncio.Event()

    def __len__(self) -> int:
        return self._count

    def has(self, page_id: int) -> bool:
        """Return whether a visit of this page has not committed yet."""
        return page_id in self._pages

    async def submit(self, entry: Entry) -> None:
        """Hand an entry to the writer."""
        self._count += 1
        if isinstance(entry, Visit):
            self._pages.add(entry.due.page_id)
        await self._submit(entry)
        if self._count >= _UNCOMMITTED:
            await self.settled()

    def acknowledged(self, batch: Sequence[Acknowledged]) -> None:
        """Count down the entries that the writer has committed."""
        self._count -= len(batch)
        if not self._count:
            self._pages.clear()
            self._done.set()

    async def settled(self) -> None:
        """Wait until all entries have committed."""
        while self._count:
            self._done.clear()
            await self._done.wait()


@dataclass(slots=True)
class Counts:
    """Counts of exchanges that are not visits."""

    probes: int = 0
    calls: int = 0
    #: Of hosts of which no page was ever asked for.
    stray_robots: int = 0
    refused_again: int = 0
    #: What others archived under addresses that are no URLs of http.
    not_http: int = 0


@dataclass(frozen=True, slots=True)
class ReplayQueries:
    """Queries that a replay needs from the store: pages by URL, and hosts.

    ``count_at`` returns the number of observations of a page at that time.
    """

    page: Callable[[str], Awaitable[DueUrl | None]]
    host: Callable[[int], Awaitable[Host]]
    host_at: Callable[[str], Awaitable[Host | None]]
    count_at: Callable[[int, float], Awaitable[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The parts of a crawl that take answers."""

    requester: Requester
    frontier: Frontier
    book: RobotsCache
    admission: Admission
    known: ReplayQueries
    clock: VirtualClock


class Player:
    """Feeds exchanges to a crawl, one after the other.

    *Invariant.* An exchange is processed when everything that earlier ones found about its page,
    and that the page exists at all, has committed. Consequence: a replay gives what the crawl gave.

    ``done_at`` is the time of the last observation of an earlier replay.
    """

    def __init__(
        self, stage: Stage, uncommitted: Uncommitted, counts: Counts, done_at: float
    ) -> None:
        self._stage = stage
        self._done_at = done_at
        self._uncommitted = uncommitted
        self._passed: Counter[tuple[int, float]] = Counter()
        self._hops: dict[str, RobotsRequest] = {}
        self._early_robots: dict[str, list[FetchResult]] = {}
        self.counts = counts

    async def take(self, played: Played) -> None:
        """Process one exchange and set the clock to its end."""
        result = played.result
        self._stage.clock.go_on_from(result.ended_at)
        try:
            url = canonical(result.url)
        except ValueError:
            self.counts.not_http += 1
            return
        match played.accept:
            case Accept.ROBOTS:
                await self._robots(result)
            case Accept.PROBE:
                self.counts.probes += 1
            case Accept.ANSWER:
                self.counts.calls += 1
            case _:
                await self._page(played, url)

    async def finish(self) -> None:
        """Wait until everything has committed."""
        self.counts.stray_robots += sum(map(len, self._early_robots.values()))
        await self._uncommitted.settled()

    # -- pages -------------------------------------------------------------------

    async def _page(self, played: Played, url: str) -> None:
        result = played.result
        if result.outcome is Outcome.REDIRECTED:
            # Whether it leads in a circle shows in what other pages lead to.
            await self._uncommitted.settled()
        due = await self._due(url) or await self._admitted(url, played)
        await self._know_host(due.host_id, str(origin(url)))
        if await self._is_taken(due, result):
            return
        due = replace(due, fetch_url=result.url, due_at=result.started_at)
        rule = self._forbidden(due) if not played.is_ours else None
        if result.outcome is Outcome.REFUSED and result.status is None:
            await self._uncommitted.submit(self._refusal(due, result.detail or ""))
        elif played.is_unasked:
            await self._uncommitted.submit(self._given_up(due, result))
        elif rule is not None:
            self.counts.refused_again += 1
            await self._uncommitted.submit(self._refusal(due, rule))
        else:
            await self._uncommitted.submit(await self._stage.requester.pipeline.take(due, result))

    async def _is_taken(self, due: DueUrl, result: FetchResult) -> bool:
        """Return whether an earlier replay, which was killed, has already processed it."""
        if result.ended_at > self._done_at:
            return False
        # An archive may hold several captures of one second, of which some were taken in.
        capture = due.page_id, result.ended_at
        self._passed[capture] += 1
        return await self._stage.known.count_at(*capture) >= self._passed[capture]

    def _given_up(self, due: DueUrl, result: FetchResult) -> Visit:
        observation = Observation(
            due.page_id, result.ended_at, Kind.FAILED, reason=result.reason, detail=result.detail
        )
        return unasked(due, observation)

    def _refusal(self, due: DueUrl, rule: str) -> Visit:
        return self._stage.requester.refuse(Refusal(due, rule))

    def _forbidden(self, due: DueUrl) -> str | None:
        """Return the rule of the archived robots.txt that forbids a URL."""
        verdict = self._stage.book.verdict(due.host_id, due.fetch_url)
        return None if verdict.allowed else verdict.rule

    async def _due(self, url: str) -> DueUrl | None:
        due = await self._stage.known.page(url)
        if len(self._uncommitted) and (due is None or self._uncommitted.has(due.page_id)):
            await self._uncommitted.settled()
            due = await self._stage.known.page(url)
        return due

    async def _admitted(self, url: str, played: Played) -> DueUrl:
        """Admit a page that no replayed page links to: the crawl's user named it."""
        result, targets = played.result, Targets()
        role = Role.SITEMAP if played.accept is Accept.SITEMAP else Role.PAGE
        if not self._stage.admission.scope.contains(url):
            self._stage.admission.scope.add_seed(url)
        self._stage.admission.add(targets, url, result.url, depth=0, role=role)
        await self._uncommitted.submit(Note(result.started_at, targets=targets))
        await self._uncommitted.settled()
        due = await self._stage.known.page(url)
        if due is None:
            raise LookupError(f"{url} was admitted and is not there")
        return due

    # -- hosts -------------------------------------------------------------------

    async def _know_host(self, host_id: int, at_origin: str) -> None:
        if self._stage.frontier.knows(host_id):
            return
        host = await self._stage.known.host(host_id)
        self._stage.frontier.add_host(host, host.origin)
        for result in self._early_robots.pop(at_origin, ()):
            await self._robots(result)

    async def _robots(self, result: FetchResult) -> None:
        request = self._hops.pop(result.url, None) or await self._robots_request(result)
        if request is None:
            self._early_robots.setdefault(str(origin(result.url)), []).append(result)
            return
        hop = await self._stage.requester.next_hop(request, result)
        if hop is not None:
            self._hops[hop.url] = hop
            return
        for entry in await self._stage.requester.robots_answered(request, result):
            await self._uncommitted.submit(entry)

    async def _robots_request(self, result: FetchResult) -> RobotsRequest | None:
        """Return the request of a robots.txt; None if its host is not known yet."""
        at_origin = str(origin(result.url))
        known = self._stage.frontier.host_of(at_origin)
        if known is None:
            await self._uncommitted.settled()
            host = await self._stage.known.host_at(at_origin)
            if host is None:
                return None
            self._stage.frontier.add_host(host, at_origin)
            known = host.host_id, at_origin
        return RobotsRequest(known[0], at_origin, result.url, known[1])
