"""Reduction: a fetch result is reduced to a sketch and compared, and becomes a visit.

The ladder stops at the first rung that decides: a 304 before the digest, the body's
digest before the parse, the text's digest before the last sketch is read.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import zstandard

from freshet.crawler.admission.admit import Admission, Redirection
from freshet.crawler.admission.copies import Copies
from freshet.crawler.compare.ladder import NOT_MODIFIED, Detection, Detector, Verdict, judge_body
from freshet.crawler.compare.not_content.check import Vetted, Vetting
from freshet.crawler.compare.not_content.page import Wall, WallKind
from freshet.crawler.politeness import FailureRetries
from freshet.crawler.reduce.markup import Blocks
from freshet.crawler.reduce.page import ParsedPage
from freshet.crawler.reduce.parser_process import Parser, ParserLost, Unparsable
from freshet.crawler.reduce.sitemaps import looks_like_feed, looks_like_sitemap
from freshet.crawler.reduce.sketch import Sketch, body_digest, sketch
from freshet.crawler.robots.directives import Directives, parse_directives
from freshet.crawler.signals.headers import Hearing, advertised
from freshet.crawler.signals.listings import Listings, SourceDiscovery, SourceListing
from freshet.crawler.urls import canonical, is_http
from freshet.storage.entries import Advertised, ClaimKind
from freshet.storage.records import (
    Capture,
    Digests,
    DueUrl,
    FetchResult,
    Observation,
    PageHistory,
    Validators,
    Visit,
)
from freshet.storage.words import AliasKind, Kind, Outcome, Role, Rung


@dataclass(frozen=True, slots=True)
class ReductionRules:
    """``agent_token`` is the robots token; ``zstd_level`` packs the stored bodies."""

    agent_token: str
    zstd_level: int = 3


@dataclass(frozen=True, slots=True)
class Judges:
    """Who looks at a page's text: has it changed, is it content, and does another page say it?"""

    detector: Detector
    vetting: Vetting
    copies: Copies


@dataclass(frozen=True, slots=True)
class Listener:
    """Who hears what is said of pages, by sitemaps and feeds and by headers, and finds these."""

    listings: Listings
    hearing: Hearing
    discovery: SourceDiscovery


#: A page that asks the browser to go on after at most this many seconds is a redirect.
_REFRESH_IS_REDIRECT_S = 10.0
_PREFIX_BYTES = 2_048
_OK = 200
_PERMANENT = frozenset({301, 308})
_TOO_MANY_REQUESTS = 429
_IN_A_THREAD_BYTES = 256 * 1024
_ANSWERED = frozenset({Outcome.FETCHED, Outcome.NOT_MODIFIED})
#: Walls by which a host says that it is asked too much: it is left alone, and asked again.
TURNED_AWAY = frozenset({str(WallKind.RATE_LIMITED_PAGE), str(WallKind.CAPTCHA)})


class Reduction:
    """Turns results into visits."""

    def __init__(
        self,
        parser: Parser,
        admission: Admission,
        redirection: Redirection,
        retrying: FailureRetries,
        judges: Judges,
        listener: Listener,
        rules: ReductionRules,
    ) -> None:
        self._parser = parser
        self._admission = admission
        self._redirection = redirection
        self._retrying = retrying
        self._judges = judges
        self._listings = listener.listings
        self._hearing = listener.hearing
        self._discovery = listener.discovery
        self._rules = rules

    async def visit(self, due: DueUrl, result: FetchResult, now: float) -> Visit:
        """What the store is to learn from this result, observed at ``now``."""
        try:
            visit = await self._visit(due, result, now)
        except ParserLost as error:
            # Our failure, not the page's: nothing of this response is kept, it is asked for again.
            lost = replace(result, status=None, reason="parser", detail=str(error))
            return self._retrying.visit(due, lost, now)
        return self._hearing.listen(visit, result)

    async def _visit(self, due: DueUrl, result: FetchResult, now: float) -> Visit:
        if due.role is Role.PAGE and result.outcome in _ANSWERED:
            self._judges.detector.visited(due.host_id)
        match result.outcome:
            case Outcome.FETCHED:
                return await self._fetched(due, result, now)
            case Outcome.NOT_MODIFIED:
                return Visit(due, _observation(due, result, now, NOT_MODIFIED), role=due.role)
            case Outcome.REDIRECTED if result.location is not None:
                alias_kind = _alias_kind(result.status)
                return await self._redirection.visit(due, result, result.location, alias_kind, now)
            case Outcome.GONE if due.role is not Role.PAGE and due.digests is None:
                return _none_at_all(due, result, now, result.detail)
            case Outcome.FAILED:
                return self._retrying.visit(due, result, now)
            case _:
                kind = Kind(result.outcome)
                return Visit(due, _observation(due, result, now, Verdict(kind)), role=due.role)

    async def _fetched(self, due: DueUrl, result: FetchResult, now: float) -> Visit:
        digest = body_digest(result.body)
        validators = Validators(result.header("ETag"), result.header("Last-Modified"))
        verdict = judge_body(due.digests, digest)
        if verdict is not None and verdict.kind is Kind.UNCHANGED:
            observation = _observation(due, result, now, verdict)
            return Visit(due, observation, role=due.role, validators=validators)
        visit = await self._read(due, result, digest, now)
        return replace(visit, validators=validators)

    async def _read(self, due: DueUrl, result: FetchResult, digest: bytes, now: float) -> Visit:
        prefix = result.body[:_PREFIX_BYTES]
        if due.role is Role.SITEMAP or looks_like_sitemap(prefix):
            return await self._sitemap(due, result, digest, now)
        if looks_like_feed(prefix):
            return await self._feed(due, result, digest, now)
        if due.role is Role.FEED and due.digests is None:
            return _none_at_all(due, result, now, "what came is no feed")
        parsed = await self._parser.parse(result.body, due.fetch_url, _content_type(result))
        if isinstance(parsed, Unparsable):
            return await self._opaque(due, result, digest, now, parsed.reason)
        refresh = parsed.meta_refresh
        if refresh is not None and self._leads_away(due, refresh.url, refresh.delay_s):
            return await self._redirection.visit(due, result, refresh.url, AliasKind.REFRESH, now)
        return await self._page(due, result, digest, parsed, now)

    def _leads_away(self, due: DueUrl, url: str, delay_s: float) -> bool:
        return is_http(url) and delay_s <= _REFRESH_IS_REDIRECT_S and canonical(url) != due.url

    # -- pages -------------------------------------------------------------------

    async def _page(
        self, due: DueUrl, result: FetchResult, digest: bytes, parsed: ParsedPage, now: float
    ) -> Visit:
        new = await self._sketch(parsed.blocks)
        known = due
        if due.digests is not None and not due.digests.is_comparable(self._text_version(due)):
            known = replace(due, digests=None)
        vetted = await self._judges.vetting.vet(known, result, parsed, new, now)
        if vetted.wall is not None:
            return self._walled(due, result, vetted.wall, vetted, now)
        directives = self._directives(result, parsed)
        targets, offsite = self._admission.links(
            parsed.links, due.depth, nofollow=directives.nofollow
        )
        if not directives.nofollow:
            self._discovery.feeds(targets, due, parsed.feeds, result.header_values("Link"))
        capture = replace(
            await self._capture(result, digest, keep_body=not directives.noarchive),
            encoding=parsed.encoding,
            title=parsed.title,
            language=parsed.language,
            canonical_url=parsed.canonical,
            noindex=directives.noindex,
            noarchive=directives.noarchive,
            nofollow=directives.nofollow,
        )
        visit = await self._compared(due, result, capture, new, now, vetted.history)
        if parsed.links_truncated:
            taken = f"only its first {len(parsed.links):,} links were taken (parse.max_links)"
            visit = replace(visit, observation=replace(visit.observation, detail=taken))
        return replace(
            visit, links=parsed.links, offsite=offsite, targets=targets, walls=vetted.walls,
            retractions=vetted.retractions,
            copies=await self._judges.copies.find(due, new),
            advertised=_advertised(due, result, parsed.hub_links),
        )  # fmt: skip

    def _walled(
        self, due: DueUrl, result: FetchResult, wall: Wall, vetted: Vetted, now: float
    ) -> Visit:
        """A page that is no content: a failure, of which nothing is kept or followed."""
        status = _TOO_MANY_REQUESTS if wall.kind in TURNED_AWAY else result.status
        failed = replace(result, status=status, reason=str(wall.kind), detail=wall.why)
        visit = self._retrying.visit(due, failed, now)
        observation = replace(visit.observation, status=result.status)
        return replace(
            visit, observation=observation, walls=vetted.walls, retractions=vetted.retractions
        )

    async def _compared(
        self,
        due: DueUrl,
        result: FetchResult,
        capture: Capture,
        new: Sketch,
        now: float,
        history: PageHistory | None = None,
    ) -> Visit:
        """A visit that found a text, with the verdict on it; ``history`` if it has been read."""
        text_version = self._text_version(due)
        found = await self._judges.detector.detect(
            due, new, now, history, text_version=text_version
        )
        capture = replace(
            capture,
            digests=Digests(capture.digests.body, new.text_digest, text_version),
            sketch=new.to_bytes() if found.keeps_sketch else None,
        )
        return Visit(
            due, _detected(due, result, now, found), role=due.role, capture=capture,
            memory=found.memory, amendments=found.amendments,
        )  # fmt: skip

    def _text_version(self, due: DueUrl) -> str:
        return self._parser.text_version(due.fetch_url)

    async def _sketch(self, blocks: Blocks) -> Sketch:
        if sum(map(len, blocks.texts)) <= _IN_A_THREAD_BYTES:
            return sketch(blocks.texts, blocks.places)
        return await asyncio.to_thread(sketch, blocks.texts, blocks.places)

    def _directives(self, result: FetchResult, parsed: ParsedPage) -> Directives:
        token = self._rules.agent_token
        header = parse_directives(result.header_values("X-Robots-Tag"), token, is_header=True)
        meta = parse_directives(parsed.robots_meta, token, is_header=False)
        return Directives(
            header.nofollow or meta.nofollow,
            header.noindex or meta.noindex,
            header.noarchive or meta.noarchive,
        )

    # -- what has no main text ---------------------------------------------------

    async def _opaque(
        self, due: DueUrl, result: FetchResult, digest: bytes, now: float, why: str
    ) -> Visit:
        """Content that cannot be parsed is known by its bytes alone, and leads nowhere."""
        observation = replace(
            _observation(due, result, now, _by_digest(due)), reason="unparsable", detail=why
        )
        capture = await self._capture(result, digest, keep_body=True)
        return Visit(due, observation, capture=capture)

    async def _feed(self, due: DueUrl, result: FetchResult, digest: bytes, now: float) -> Visit:
        feed = await self._parser.parse_feed(result.body, due.fetch_url)
        if isinstance(feed, Unparsable):
            return await self._opaque(due, result, digest, now, feed.reason)
        found = self._listings.feed(due, feed, now, self._hearing.skew_s(due.host_id))
        capture = await self._capture(result, digest, keep_body=True)
        visit = await self._compared(due, result, capture, await self._sketch(feed.blocks), now)
        advert = _advertised(due, result, feed.hub_links)
        return replace(_listing(visit, Role.FEED, found), advertised=advert)

    async def _sitemap(self, due: DueUrl, result: FetchResult, digest: bytes, now: float) -> Visit:
        skew_s = self._hearing.skew_s(due.host_id)
        found = await self._listings.sitemap(due, result.body, now, skew_s)
        if not found.is_one and due.digests is None:
            return _none_at_all(due, result, now, found.problem)
        observation = replace(_observation(due, result, now, _by_digest(due)), detail=found.problem)
        capture = await self._capture(result, digest, keep_body=True)
        return _listing(Visit(due, observation, capture=capture), Role.SITEMAP, found)

    async def _capture(self, result: FetchResult, digest: bytes, *, keep_body: bool) -> Capture:
        body = await self._packed(result.body) if keep_body else None
        return Capture(
            Digests(digest, None), len(result.body), content_type=_content_type(result), body=body
        )

    async def _packed(self, body: bytes) -> bytes:
        if len(body) <= _IN_A_THREAD_BYTES:
            return zstandard.compress(body, self._rules.zstd_level)
        return await asyncio.to_thread(zstandard.compress, body, self._rules.zstd_level)


def _alias_kind(status: int | None) -> AliasKind:
    """What kind of redirect it is; one with 200 asked the browser to go on, and is replayed."""
    if status in _PERMANENT:
        return AliasKind.PERMANENT
    return AliasKind.REFRESH if status == _OK else AliasKind.TEMPORARY


def _none_at_all(due: DueUrl, result: FetchResult, now: float, detail: str | None) -> Visit:
    """What was taken for a sitemap or feed, unseen, and is not there or something else.

    It is no page that has gone: what is looked for at the usual places was never promised.
    """
    observation = _observation(due, result, now, Verdict(Kind.SKIPPED))
    return Visit(due, replace(observation, reason=f"no_{due.role}", detail=detail), role=due.role)


def _listing(visit: Visit, role: Role, found: SourceListing) -> Visit:
    """The visit of a sitemap or feed that says this."""
    return replace(
        visit, role=role, links=found.links, offsite=found.offsite, targets=found.targets,
        claim_kind=ClaimKind(role), claims=found.said.claims, claims_rejected=found.said.rejected,
    )  # fmt: skip


def _advertised(
    due: DueUrl, result: FetchResult, links: tuple[tuple[str, str], ...]
) -> Advertised | None:
    return advertised(result.header_values("Link"), links, due.fetch_url)


def _content_type(result: FetchResult) -> str | None:
    return result.header("Content-Type")


def _by_digest(due: DueUrl) -> Verdict:
    return Verdict(Kind.NEW) if due.digests is None else Verdict(Kind.CHANGED, Rung.BODY)


def _detected(due: DueUrl, result: FetchResult, now: float, found: Detection) -> Observation:
    observation = _observation(due, result, now, found.verdict)
    return replace(
        observation,
        reason=found.reason or observation.reason,
        detail=found.detail or observation.detail,
    )


def _observation(due: DueUrl, result: FetchResult, now: float, verdict: Verdict) -> Observation:
    return Observation(
        due.page_id,
        now,
        verdict.kind,
        verdict.rung,
        status=result.status,
        reason=result.reason,
        detail=result.detail,
        resemblance=verdict.resemblance,
        resemblance_se=verdict.resemblance_se,
        blocks_added=verdict.blocks_added,
        blocks_removed=verdict.blocks_removed,
        duration_s=result.duration_s,
        size_bytes=len(result.body) or None,
    )
