"""A visit: one errand performed, from the exchange to the entry for the store.

This is the data flow's shell: fetch politely, then reduce and compare (``reduction``).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from freshet.crawler.admission.admit import Admission, Seeding
from freshet.crawler.clock import Clock
from freshet.crawler.fetch.client import Accept, Fetcher, Request
from freshet.crawler.frontier import (
    CallErrand,
    Frontier,
    PageErrand,
    ProbeErrand,
    Refusal,
    RobotsErrand,
)
from freshet.crawler.politeness import answer_of
from freshet.crawler.reduction import TURNED_AWAY, Reduction
from freshet.crawler.requests import Calls, Probing
from freshet.crawler.robots.cache import Bar, RobotsCache, RobotsRules
from freshet.crawler.robots.parser import cut_at_line_end, standing
from freshet.crawler.signals.listings import SourceDiscovery
from freshet.crawler.urls import canonical, is_http, resolve
from freshet.storage.entries import Called, RobotsRecord
from freshet.storage.records import (
    DueUrl,
    Entry,
    FetchResult,
    Observation,
    Probed,
    RobotsVisit,
    Targets,
    Visit,
)
from freshet.storage.words import Kind, Outcome, RobotsStanding, Role

log = logging.getLogger(__name__)

#: Failures that no later try in the same run can mend: the name, address or certificate.
_HOPELESS = frozenset({"no_such_host", "address", "tls", "url"})
_REDIRECTS = 300


@dataclass(frozen=True, slots=True)
class Visiting:
    """Performs errands; owns no state of its own.

    ``offsite_at`` reads which URLs of an origin a known page leads to out of its scope, and
    that page's depth. ``unasked`` is told of what is due and not asked for. A ``lasting`` run has
    no end in which hosts could be tried again: none is hopeless.
    """

    fetcher: Fetcher
    frontier: Frontier
    probing: Probing
    calls: Calls
    book: RobotsCache
    reduction: Reduction
    admission: Admission
    discovery: SourceDiscovery
    seeding: Seeding
    lane_key: Callable[[str], Awaitable[str]]
    clock: Clock
    rules: RobotsRules
    sitemap_max_bytes: int
    offsite_at: Callable[[str, str], Awaitable[list[tuple[str, int]]]]
    unasked: Callable[[DueUrl, Observation], None]
    lasting: bool = False

    async def page(self, errand: PageErrand) -> Visit:
        """Fetch a due URL and reduce what came."""
        due = errand.due
        validators = due.validators if due.digests is not None else None
        request = Request(due.fetch_url, validators=validators)
        if due.role is Role.SITEMAP:
            request = replace(request, accept=Accept.SITEMAP, max_body_bytes=self.sitemap_max_bytes)
        return await self.page_answered(due, await self._exchange(errand.lane, request))

    async def page_answered(self, due: DueUrl, result: FetchResult) -> Visit:
        """Reduce what came for a due URL."""
        visit = await self._reduce(due, result)
        reason = visit.observation.reason
        if reason in TURNED_AWAY and result.outcome is Outcome.FETCHED:
            now = self.clock.now()
            self.frontier.turned_away(due.host_id, now, result.retry_after_s, reason or "")
        return replace(visit, host=self.frontier.host_state(due.host_id))

    def refusal(self, refusal: Refusal) -> Visit:
        """Record a URL that is not asked for, with the reason."""
        due, now = refusal.due, self.clock.now()
        barred = self.book.barred(due.host_id)
        if barred is None:
            observation = Observation(
                due.page_id, now, Kind.REFUSED, reason="robots", detail=refusal.rule
            )
        else:
            observation = Observation(
                due.page_id, now, Kind.FAILED, reason=barred.reason, detail=barred.detail
            )
        self.unasked(due, observation)
        return Visit(due, observation, role=due.role, fetches=0)

    async def probe(self, errand: ProbeErrand) -> Probed:
        """Ask for what cannot exist, and pass the answer on to the visits that wait for it."""
        result = await self._exchange(errand.lane, Request(errand.url, Accept.PROBE))
        self.probing.answered(errand.host_id, result)
        host = self.frontier.host_state(errand.host_id)
        return Probed(errand.host_id, self.clock.now(), host=host)

    async def call(self, errand: CallErrand) -> list[Entry]:
        """Ask for what is no page, and let the asker hear the answer."""
        request = Request(errand.url, Accept.ANSWER, form=errand.form)
        result = await self._exchange(errand.lane, request)
        now = self.clock.now()
        return [Called(now), *self.calls.answered(errand, result, now)]

    async def robots(self, errand: RobotsErrand) -> list[Entry]:
        """Fetch a robots.txt, or one hop of it; what is known when the last hop is done."""
        result = await self._exchange(
            errand.lane, Request(errand.url, Accept.ROBOTS, max_body_bytes=self.rules.max_bytes + 1)
        )
        hop = await self.next_hop(errand, result)
        if hop is not None:
            self.frontier.follow(hop)
            return []
        return await self.robots_answered(errand, result)

    async def robots_answered(self, errand: RobotsErrand, result: FetchResult) -> list[Entry]:
        """What is known of a host's robots.txt now that its last hop is done."""
        now = self.clock.now()
        self._bar_if_hopeless(errand.host_id, result)
        fetched = self._record(result, now)
        record = self.book.settle(errand.host_id, errand.origin, fetched, now)
        self.frontier.robots_known(errand.host_id, now)
        visit = RobotsVisit(
            errand.host_id,
            record,
            now,
            fetches=errand.redirects + 1,
            targets=await self._sitemaps(errand, record),
            host=self.frontier.host_state(errand.host_id),
        )
        return [visit, *self.seeding.settle(errand.origin, result, now)]

    async def _exchange(self, lane: str, request: Request) -> FetchResult:
        """One exchange on a lane that the frontier has started."""
        result = await self.fetcher.fetch(request)
        answer = answer_of(result.status, result.reason, lasting=self.lasting)
        why = f"{result.reason or result.status}"
        self.frontier.ended(
            lane, self.clock.now(), result.duration_s, answer, result.retry_after_s, why
        )
        return result

    async def _reduce(self, due: DueUrl, result: FetchResult) -> Visit:
        """Contain what a hostile page may do to us: its visit fails, the crawl goes on."""
        try:
            return await self.reduction.visit(due, result, result.ended_at)
        except Exception as error:
            log.exception("%s could not be processed", due.url)
            observation = Observation(
                due.page_id, result.ended_at, Kind.FAILED, status=result.status,
                reason="internal", detail=repr(error), duration_s=result.duration_s,
            )  # fmt: skip
            return Visit(due, observation, role=due.role)

    async def next_hop(self, errand: RobotsErrand, result: FetchResult) -> RobotsErrand | None:
        """Where a redirected robots.txt leads, if it is followed (RFC 9309, section 2.3.1.2)."""
        if result.outcome is not Outcome.REDIRECTED or result.location is None:
            return None
        if errand.redirects >= self.rules.max_redirects:
            return None
        lane = await self.lane_key(result.location)
        return replace(errand, url=result.location, lane=lane, redirects=errand.redirects + 1)

    async def _sitemaps(self, errand: RobotsErrand, record: RobotsRecord) -> Targets:
        """The sitemaps that a robots.txt names, where its origin is in scope.

        A sitemap on another host may have been read before it was known that it may speak
        for this one: what it lists here was kept, and is admitted now.
        """
        targets = Targets()
        if not self.rules.sitemaps or not self.admission.scope.contains(errand.origin):
            return targets
        for named in self.book.sitemaps(errand.host_id):
            url = resolve(named, errand.url)
            if url is None or not is_http(url):
                continue
            sitemap_url = canonical(url)
            self.admission.add(targets, sitemap_url, url, depth=0, role=Role.SITEMAP)
            for listed, depth in await self.offsite_at(sitemap_url, errand.origin):
                self.admission.add(targets, listed, listed, depth=depth + 1)
        if not targets and record.standing is not RobotsStanding.UNREACHABLE:
            self.discovery.sitemap(targets, errand.origin)
        return targets

    def _bar_if_hopeless(self, host_id: int, result: FetchResult) -> None:
        if result.reason in _HOPELESS and not self.lasting:
            self.book.bar(host_id, Bar(result.reason or "", result.detail or ""))

    def _record(self, result: FetchResult, now: float) -> RobotsRecord:
        # A body that broke off comes with the status 200, which says nothing of the file.
        broken = result.outcome is not Outcome.FETCHED and (result.status or 0) < _REDIRECTS
        state = standing(result.status, result.reason if broken else None)
        parsed = state is RobotsStanding.PARSED
        body = cut_at_line_end(result.body, self.rules.max_bytes) if parsed else b""
        unreachable = state is RobotsStanding.UNREACHABLE
        return RobotsRecord(
            state, now, body, (result.detail or result.reason) if unreachable else None
        )
