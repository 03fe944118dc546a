"""The requester: performs the frontier's requests, and returns the entries to write."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

from freshet.crawler.admission.admit import Admission, Seeding
from freshet.crawler.compare.not_content.check import Probes
from freshet.crawler.fetch.bounds import FOREIGN_SITEMAPS, SITEMAP_URL_CHARS, SITEMAPS, meet
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import Clock
from freshet.crawler.frontier.frontier import (
    ApiRequest,
    Frontier,
    FrontierRequest,
    PageRequest,
    ProbeRequest,
    Refusal,
    RequisiteUrl,
    RobotsReading,
    RobotsRequest,
)
from freshet.crawler.frontier.politeness import HostQueues, is_plain_host
from freshet.crawler.robots import RobotsTxt, in_force, record_of
from freshet.crawler.robots.cache import RobotsCache, RobotsRules
from freshet.crawler.signals.listings import SourceDiscovery, off_loop
from freshet.crawler.urls import canonical, is_http, origin, resolve
from freshet.crawler.visit import Pipeline, unasked
from freshet.storage.entries import Host, Kind, RobotsRecord
from freshet.storage.records import (
    DueUrl,
    Entry,
    FetchResult,
    Observation,
    StoreUpdate,
    Targets,
    Visit,
)

#: Failures that no retry in the same run can resolve: name, address, certificate or URL.
_HOPELESS: Final = frozenset({"no_such_host", "address", "tls", "url"})
#: Parsing a byte of robots.txt takes as long as this many bytes of other files.
_COSTLY: Final = 16


def _sitemap_urls(named: Iterable[str], base: str) -> Iterator[str]:
    """Yield the valid sitemap URLs that a robots.txt names."""
    for each in named:
        url = resolve(each, base)
        if url is not None and is_http(url) and len(url) <= SITEMAP_URL_CHARS:
            yield url


class StoredHosts(Protocol):
    """The requester's queries to the store."""

    async def hosts(self, host_ids: Sequence[int], /) -> list[Host]:
        """Return hosts with all their stored data."""


class RefusalLog(Protocol):
    """An archive that records why URLs were not requested."""

    def unasked(self, due: DueUrl, observation: Observation, /) -> None:
        """Record why a URL is not requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """Performs requests: pages by the ``pipeline``; robots.txt, probes and API requests itself.

    In a ``lasting`` run no host is given up. With ``reserves``, sites are asked for the file that
    reserves text and data mining.
    """

    pipeline: Pipeline
    frontier: Frontier
    clock: Clock
    probes: Probes
    robots: RobotsCache
    rules: RobotsRules
    admission: Admission
    discovery: SourceDiscovery
    seeding: Seeding
    queues: HostQueues
    past: StoredHosts
    archive: RefusalLog | None = None
    lasting: bool = False
    reserves: bool = False

    async def perform(self, request: FrontierRequest) -> Sequence[Entry]:
        """Perform one request, and return the entries to write."""
        match request:
            case PageRequest(due=RequisiteUrl() as due):
                return [await self._requisite(due, request.queue)]
            case PageRequest(due=due):
                entry = await self.pipeline.visit(request)
                if _is_answer(entry):
                    self.frontier.answered(due.host_id)
                return [entry]
            case RobotsRequest():
                return await self._robots(request)
            case ProbeRequest():
                return [await self._probe(request)]
            case ApiRequest():
                return await self._call(request)
            case RobotsReading():
                await self.read_robots(request.host_id)
                self.frontier.robots_known(request.host_id, self.clock.now())
                return []
            case Refusal(due=RequisiteUrl() as due):
                due.owner.denied(due, self._why_not(request))
                return []
            case Refusal():
                return [self.refuse(request)]

    def refuse(self, refusal: Refusal) -> Visit:
        """Return the visit of a URL that is not requested, with the reason."""
        observation = self._why_not(refusal)
        if self.archive is not None:
            self.archive.unasked(refusal.due, observation)
        return unasked(refusal.due, observation)

    def _why_not(self, refusal: Refusal) -> Observation:
        due, now = refusal.due, self.clock.now()
        barred = self.robots.barred(due.host_id)
        kind: Kind = "refused" if barred is None else "failed"
        reason, detail = ("robots", refusal.rule) if barred is None else barred
        return Observation(due.page_id, now, kind, reason=reason, detail=detail)

    async def _requisite(self, due: RequisiteUrl, queue: str) -> StoreUpdate:
        """Fetch a resource that an archived page needs, and pass it to the archive."""
        is_plain = self.pipeline.is_plain(due, self.clock.now())
        wanted = Request(
            due.url, "requisite", due.validators, is_plain=is_plain, is_anonymous=due.is_anonymous
        )
        result = await self.pipeline.fetch(queue, wanted)
        if (counted := self.pipeline.put_back(due, result)) is not None:
            return counted
        await due.owner.took(due, result)
        host = self.frontier.host_state(due.host_id)
        return StoreUpdate(self.clock.now(), fetches=1, host=host)

    async def _probe(self, request: ProbeRequest) -> StoreUpdate:
        """Request a page that cannot exist, for the visits that wait for the response."""
        plain = is_plain_host(self.frontier.repeats(request.host_id), self.clock.now())
        wanted = Request(request.url, "probe", is_plain=plain)
        result = await self.pipeline.fetch(request.queue, wanted)
        self.probes.answered(request.host_id, result)
        host = self.frontier.host_state(request.host_id)
        return StoreUpdate(self.clock.now(), fetches=1, host=host)

    async def _call(self, request: ApiRequest) -> Sequence[Entry]:
        wanted = Request(
            request.url, "answer", form=request.form, headers=request.headers,
            max_body_bytes=request.max_body_bytes, is_anonymous=True,
        )  # fmt: skip
        result = await self.pipeline.fetch(request.queue, wanted)
        self.frontier.api_requests -= 1
        now = self.clock.now()
        return [StoreUpdate(now, fetches=1), *request.handle(result, now)]

    # -- robots.txt ----------------------------------------------------------------

    async def _robots(self, request: RobotsRequest) -> Sequence[Entry]:
        """Fetch a robots.txt, or one redirect hop; the last hop returns the entries.

        A failed request is repeated like a page's.
        """
        plain = request.repeat_of is not None or is_plain_host(
            self.frontier.repeats(request.host_id), self.clock.now()
        )
        most = self.rules.max_bytes + 1
        wanted = Request(
            request.url, "robots", max_body_bytes=most, is_plain=plain,
            is_anonymous=request.is_anonymous,
        )  # fmt: skip
        result = await self.pipeline.fetch(request.queue, wanted)
        self.pipeline.recorder.learn_repeats(request.host_id, request.repeat_of, result)
        if self.pipeline.may_repeat(request.host_id, request.repeat_of, result):
            self.frontier.again(replace(request, repeat_of=result.reason))
            host = self.frontier.host_state(request.host_id)
            return [StoreUpdate(result.ended_at, fetches=1, host=host)]
        hop = await self.next_hop(request, result)
        if hop is None:
            return await self.robots_answered(request, result)
        known = await self._known(hop)
        if known is not None:
            return await self._settled(hop, result, known, hop.redirects)
        self.frontier.follow(hop)
        return []

    async def _known(self, hop: RobotsRequest) -> RobotsRecord | None:
        """Return a redirect's target file if another known host has it, still fresh."""
        place, now = hop.url.removesuffix("/robots.txt"), self.clock.now()
        host = self.frontier.host_of(place)
        if host is None or f"{place}/robots.txt" != hop.url:
            return None
        if not self.robots.is_fresh(host[0], now) or self.robots.barred(host[0]):
            return None
        (stored,) = await self.past.hosts([host[0]])
        return stored.robots if stored.robots and not stored.robots.stale_since else None

    async def next_hop(self, request: RobotsRequest, result: FetchResult) -> RobotsRequest | None:
        """Return the next request of a redirect chain, or None (RFC 9309, section 2.3.1.2)."""
        if result.outcome != "redirected" or result.location is None:
            return None
        if request.redirects >= self.rules.max_redirects:
            return None
        queue = await self.queues.queue_key(result.location)
        leaves = request.is_anonymous or str(origin(result.location)) != request.origin
        return replace(
            request, url=result.location, queue=queue, redirects=request.redirects + 1,
            repeat_of=None, is_anonymous=leaves,
        )  # fmt: skip

    async def robots_answered(self, request: RobotsRequest, result: FetchResult) -> Sequence[Entry]:
        """Record a host's robots.txt after the last hop."""
        now = self.clock.now()
        if result.reason in _HOPELESS and not self.lasting:
            self.robots.bar(request.host_id, result.reason or "", result.detail or "")
        fetched = record_of(result, now, self.rules.max_bytes)
        return await self._settled(request, result, fetched, request.redirects + 1)

    async def _settled(
        self, request: RobotsRequest, result: FetchResult, fetched: RobotsRecord, fetches: int
    ) -> Sequence[Entry]:
        """Put a robots.txt into force, and return the entries to write."""
        now, file = self.clock.now(), await self._file(fetched)
        record = self.robots.settle(request.host_id, request.origin, fetched, now, file)
        if self.reserves and fetched.standing != "unreachable":
            self._request_reservations(request.host_id, request.origin)
        self.frontier.robots_known(request.host_id, now)
        note = StoreUpdate(
            at=now,
            robots=(request.host_id, record),
            fetches=fetches,
            targets=await self._sitemaps(request, record),
            host=self.frontier.host_state(request.host_id),
            repeats=self.frontier.new_repeats(request.host_id),
        )
        return [note, *self.seeding.settle(request.origin, result, now)]

    def _request_reservations(self, host_id: int, place: str) -> None:
        """Request the site's file that reserves text and data mining, before its pages."""
        from freshet.crawler.robots.preferences import TDM_FILE, reservations  # noqa: PLC0415 - few ask

        def answered(result: FetchResult, _now: float) -> Sequence[Entry]:
            # After a failure, the former statement stays in force.
            if result.outcome in {"fetched", "gone"}:
                body = result.body if result.outcome == "fetched" else b""
                self.robots.reserve(host_id, reservations(body))
            return ()

        url = f"{place}{TDM_FILE}"
        if self.robots.verdict(host_id, url).allowed:
            queue = self.frontier.host_state(host_id).queue
            self.frontier.queue(ApiRequest(url, queue, answered))

    async def read_robots(self, host_id: int) -> None:
        """Load the robots.txt of a host from the store if it was dropped from memory."""
        if self.robots.is_put_away(host_id):
            (host,) = await self.past.hosts([host_id])
            self.robots.restore(host, await self._file(host.robots))

    async def _file(self, record: RobotsRecord | None) -> RobotsTxt:
        size = len(record.body) if record else 0
        return await off_loop(_COSTLY * size, partial(in_force, record, self.robots.agent))

    async def _sitemaps(self, request: RobotsRequest, record: RobotsRecord) -> Targets:
        """Admit the sitemaps that a robots.txt names, if its origin is in scope.

        A sitemap on another host may have been read before this robots.txt named it. Its URLs of
        this host were kept, and are admitted now.
        """
        targets = Targets()
        if not self.rules.sitemaps or not self.admission.scope.contains(request.origin):
            return targets
        left = {True: SITEMAPS, False: FOREIGN_SITEMAPS}
        listings = self.pipeline.recorder.listings
        async for some in listings.slices(self.robots.sitemaps(request.host_id)):
            for url in _sitemap_urls(some, request.url):
                sitemap_url = canonical(url)
                is_own = self.admission.scope.contains(sitemap_url)
                if not left[is_own]:
                    meet("sitemaps that a robots.txt names", request.origin)
                    continue
                left[is_own] -= 1
                self.admission.add(targets, sitemap_url, url, depth=0, role="sitemap")
                await listings.listed(targets, sitemap_url, [request.origin])
        if not targets and record.standing != "unreachable":
            self.discovery.sitemap(targets, request.origin)
        return targets


def _is_answer(entry: Visit | StoreUpdate) -> bool:
    """Return whether a URL answered itself, possibly with a meta refresh."""
    if not isinstance(entry, Visit):
        return False
    if entry.alias is not None:
        return entry.alias.kind == "refresh"
    return entry.observation.kind not in ("redirected", "failed", "refused")
