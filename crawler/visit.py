"""The visit pipeline: a due URL is fetched, reduced, compared and recorded.

    fetch     DueUrl      → FetchResult
    reduce    FetchResult → ReducedPage | ReducedFeed | ReducedSitemap | Opaque
                            | RedirectTarget | Verdict
    compare   those       → Verdict: new, changed, unchanged, gone, not content, …
    record    all of them → Visit

Change detection stops at the first stage that decides: a 304 before the digest of the bytes, this
digest before the parse, the text's digest before the last sketch is read.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import zstandard

from freshet.crawler.admission.admit import FoundUrls, Redirects, RedirectTarget
from freshet.crawler.admission.copies import Copies, CopyCandidate
from freshet.crawler.compare.detection import COMPARED, Detector, PageHistories, Verdict
from freshet.crawler.compare.not_content.check import NotContentCheck
from freshet.crawler.compare.not_content.host import RULES
from freshet.crawler.compare.not_content.page import NotContentKind, is_check
from freshet.crawler.errors import NotMade, ParserLost
from freshet.crawler.fetch.bounds import LruCache
from freshet.crawler.fetch.client import Fetcher, Request
from freshet.crawler.fetch.responses import (
    first_header,
    is_binary,
    is_field_value,
    is_repeatable,
    with_octets,
)
from freshet.crawler.frontier.clock import Clock
from freshet.crawler.frontier.frontier import Frontier, PageRequest
from freshet.crawler.frontier.politeness import (
    Retries,
    answer_of,
    is_plain_host,
    is_plain_page,
    may_repeat,
    repeated,
)
from freshet.crawler.reduce.blocks import Blocks
from freshet.crawler.reduce.formats import as_shown, format_of, is_relabelled, no_page_type
from freshet.crawler.reduce.links import MetaRefresh, refresh_of
from freshet.crawler.reduce.page import ParsedPage, is_stub
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.reduce.sitemaps import Feed, looks_like
from freshet.crawler.reduce.sketch import Sketch, body_digest, sketch
from freshet.crawler.robots import Directives, parse_directives
from freshet.crawler.signals.headers import HostHeaders, advertised
from freshet.crawler.signals.listings import (
    Listings,
    SitemapEntries,
    SourceClaims,
    SourceDiscovery,
    is_short,
    off_loop,
)
from freshet.crawler.urls import canonical, is_http
from freshet.storage.entries import (
    DOUBTFUL,
    PREFERENCES,
    REBASED,
    AliasKind,
    Channel,
    CopyFinding,
    HubLink,
    ParameterFinding,
    Retraction,
    Role,
)
from freshet.storage.records import (
    Capture,
    Digests,
    Doubt,
    DueUrl,
    FetchResult,
    Observation,
    PageHistory,
    Rejected,
    StoreUpdate,
    Validators,
    Visit,
)

if TYPE_CHECKING:
    from freshet.crawler.archive.requisites import Requisites

log = logging.getLogger(__name__)


#: A page that redirects the browser within this many seconds counts as a redirect.
_REFRESH_IS_REDIRECT_S: Final = 10.0
_PREFIX_BYTES: Final = 2_048
#: A compressed page takes as much work as a page of this many times its size.
_UNPACKS: Final = 16
_WHITE: Final = b" \t\r\n\f\v\0\xef\xbb\xbf"
#: Redirects that are not temporary; a meta refresh has status 200.
_ALIASES: Final[dict[int | None, AliasKind]] = {301: "permanent", 308: "permanent", 200: "refresh"}
_TOO_MANY_REQUESTS: Final = 429
#: After this many 304s in a row, or this long without a parsed response, a page is requested
#: without validators: some servers always answer 304.
_MOST_NOT_MODIFIED: Final = 50
_READ_AFTER_S: Final = 90 * 86_400.0
_ANSWERED: Final = frozenset({"fetched", "not_modified"})
_NOTHING_LEFT: Final = "the page had content before, and has nothing in it now"
#: The failure of a kept-alive connection, which is unrelated to the request.
_STALE: Final = "stale"
_CONTENT: Final = frozenset({"new", "changed", "unchanged"})
_WITHOUT_CONTENT: Final = frozenset({"failed", "redirected"})
#: Block pages that mean "too many requests": the host is paused, and the page visited again.
_TURNED_AWAY: Final = frozenset(
    {str(NotContentKind.RATE_LIMITED_PAGE), str(NotContentKind.CAPTCHA)}
)
_NOT_CONTENT: Final = frozenset(map(str, NotContentKind))
#: Headers with usage preferences of a page (:mod:`freshet.crawler.robots.preferences`).
_STATING: Final = ("content-usage", "content-signal", "tdm-reservation", "x-robots-tag")
_NO_PAGE: Final = ParsedPage("", None)


# -- results of the reduce stage ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReducedPage:
    """A page with its main text."""

    capture: Capture
    parsed: ParsedPage
    text: Sketch


@dataclass(frozen=True, slots=True)
class ReducedFeed:
    """An RSS or Atom feed with the text of its entries, and its change signals."""

    capture: Capture
    feed: Feed
    text: Sketch
    said: SourceClaims


@dataclass(frozen=True, slots=True)
class ReducedSitemap:
    """A sitemap, or a sitemap index."""

    capture: Capture
    entries: SitemapEntries


@dataclass(frozen=True, slots=True)
class Opaque:
    """Content that cannot be parsed; its bytes are compared.

    ``parsed`` has the readable part of a page, without its text.
    """

    capture: Capture
    why: str
    parsed: ParsedPage = _NO_PAGE


Captured = ReducedPage | ReducedFeed | ReducedSitemap | Opaque
#: A verdict if there is no content to compare: unchanged by a 304 or by the bytes' digest, a
#: failure, a page that is gone, or a missing listing.
Reduced = Captured | RedirectTarget | Verdict
#: The role of a URL by its content, if that differs from its due role.
_ROLES: Final[dict[type, Role]] = {ReducedFeed: "feed", ReducedSitemap: "sitemap", Opaque: "page"}


# -- bodies ------------------------------------------------------------------------

#: Number of hosts whose dictionaries are in memory, about 200 kB each.
_DICTIONARIES: Final = 16
#: The library's default; higher levels take longer than the fetch.
_ZSTD_LEVEL: Final = 3


class _Packing(NamedTuple):
    """A compressor for the event loop's thread; creating one takes half the time of a body."""

    compressor: zstandard.ZstdCompressor
    words: zstandard.ZstdCompressionDict | None = None
    made: int | None = None


class StoredDictionaries(Protocol):
    """The stored compression dictionaries of hosts."""

    async def dictionary(self, host_id: int) -> zstandard.ZstdCompressionDict | None:
        """Return the newest dictionary of a host."""


@dataclass(slots=True, eq=False)
class Packer:
    """Compresses stored bodies, with the newest dictionary of their host.

    ``made`` has the ids of the dictionaries made in this run, by host.
    """

    stored: StoredDictionaries | None = None
    made: Mapping[int, int] = field(default_factory=dict)
    _hosts: LruCache[int, _Packing] = field(
        default_factory=lambda: LruCache(_DICTIONARIES), init=False
    )
    _without: set[int] = field(default_factory=set, init=False)
    _plain: _Packing = field(init=False)

    def __post_init__(self) -> None:
        self._plain = self._packing()

    async def pack(self, host_id: int, body: bytes) -> bytes:
        """Return a body of a host as it is stored."""
        packing = await self._of(host_id)
        if is_short(len(body)):
            return packing.compressor.compress(body)
        compressor = self._packing(packing.words).compressor
        return await off_loop(len(body), partial(compressor.compress, body))

    async def _of(self, host_id: int) -> _Packing:
        made = self.made.get(host_id)
        if self.stored is None or (made is None and host_id in self._without):
            return self._plain
        packing = self._hosts.use(host_id)
        if packing is None or packing.made != made:
            found = await self.stored.dictionary(host_id)
            if found is None:
                self._without.add(host_id)
                return self._plain
            found.precompute_compress(level=_ZSTD_LEVEL)
            packing = self._hosts[host_id] = self._packing(found, made)
        return packing

    def _packing(
        self, words: zstandard.ZstdCompressionDict | None = None, made: int | None = None
    ) -> _Packing:
        return _Packing(zstandard.ZstdCompressor(_ZSTD_LEVEL, dict_data=words), words, made)


# -- the stages --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Reducer:
    """The reduce stage: parses the response, and sketches its text.

    ``agent_token`` is the robots.txt product token; ``packer`` compresses stored bodies.
    """

    parser: Parser
    listings: Listings
    headers: HostHeaders
    agent_token: str
    packer: Packer = field(default_factory=Packer)

    async def reduce(self, due: DueUrl, result: FetchResult) -> Reduced:
        """Reduce a fetch result to its content, or to a verdict without content."""
        match result.outcome:
            case "fetched" if (refresh := _refresh(due, result)) is not None:
                return refresh
            case "fetched":
                return await self._body(due, result)
            case "not_modified" if due.rejected is not None:
                why = "not modified since it was found to be no content"
                return Verdict("failed", reason=due.rejected.reason, detail=why)
            case "not_modified":
                return Verdict("unchanged", "304")
            case "redirected" if result.location is not None:
                kind = _ALIASES.get(result.status, "temporary")
                return _leading(result, result.location, kind)
            case "gone" if due.role != "page" and due.digests is None:
                return _no_listing(due, result.detail)
            case "skipped" if _had_text(due):
                return _lost(result.reason, result.detail)
            case outcome:
                return Verdict(outcome, reason=result.reason, detail=result.detail)

    async def _body(self, due: DueUrl, result: FetchResult) -> Reduced:
        if due.digests is not None and due.digests.body == body_digest(result.body):
            return Verdict("unchanged", "body")
        prefix = result.body[:_PREFIX_BYTES]
        shown = looks_like(prefix, is_feed_due=due.role == "feed")
        is_feed, is_sitemap = shown == "feed", due.role == "sitemap" or shown == "sitemap"
        unread = _unread(due, result, is_listing=is_feed or is_sitemap)
        if unread is not None:
            return unread
        if is_sitemap:
            return await self._sitemap(due, result)
        if is_feed:
            return await self._feed(due, result)
        if due.role == "feed" and due.digests is None:
            return _no_listing(due, "the response is not a feed")
        return await self._page(due, result)

    async def _page(self, due: DueUrl, result: FetchResult) -> Reduced:
        content_type = result.header("Content-Type")
        parsed = await self.parser.parse(result.body, due.fetch_url, content_type)
        if isinstance(parsed, Unparsable):
            return await self._beginning(due, result, parsed)
        refresh = parsed.meta_refresh
        if refresh is not None and _leads_away(due, refresh):
            return _leading(result, refresh[1], "refresh")
        text = parsed.sketch or await sketch_of(parsed.blocks)
        is_bare = not (any(parsed.blocks.texts) or parsed.links or parsed.feeds)
        if (
            is_bare
            and _had_text(due)
            and is_stub(result.body, content_type, is_plain=parsed.is_plain)
        ):
            return Verdict("failed", reason="stub", detail=_NOTHING_LEFT)
        return ReducedPage(await self._captured(due, result, text, parsed), parsed, text)

    async def _beginning(self, due: DueUrl, result: FetchResult, parsed: Unparsable) -> Opaque:
        """Return a page that cannot be parsed, with the links of its readable part."""
        if (page := parsed.beginning) is None:
            return Opaque(await self._captured(due, result), parsed.reason)
        why = f"{parsed.reason}; of its beginning {len(page.links):,} links were read"
        return Opaque(await self._captured(due, result, parsed=page), why, page)

    async def _sitemap(self, due: DueUrl, result: FetchResult) -> Reduced:
        skew_s = self.headers.skew_s(due.host_id)
        entries = await self.listings.read(due, result.body, result.ended_at, skew_s)
        if not entries.is_one and due.digests is None:
            return _no_listing(due, entries.problem)
        return ReducedSitemap(await self._captured(due, result), entries)

    async def _feed(self, due: DueUrl, result: FetchResult) -> Reduced:
        feed = await self.parser.parse_feed(result.body, due.fetch_url)
        if isinstance(feed, Unparsable):
            return Opaque(await self._captured(due, result), feed.reason)
        skew_s = self.headers.skew_s(due.host_id)
        said = self.listings.claims(due, feed, result.ended_at, skew_s)
        text = await sketch_of(feed.blocks)
        return ReducedFeed(await self._captured(due, result, text), feed, text, said)

    async def _captured(
        self,
        due: DueUrl,
        result: FetchResult,
        text: Sketch | None = None,
        parsed: ParsedPage = _NO_PAGE,
    ) -> Capture:
        content_type, text_digest, version = result.header("Content-Type"), None, None
        if text is not None:
            text_digest = text.text_digest
            version = self.parser.text_version(due.fetch_url, content_type)
        directives = Directives() if parsed is _NO_PAGE else self._directives(result, parsed)
        return Capture(
            digests=Digests(body_digest(result.body), text_digest, version),
            size_bytes=len(result.body),
            content_type=content_type,
            encoding=parsed.encoding,
            sketch=None if text is None else text.to_bytes(),
            body=None if directives.noarchive else await self.packer.pack(due.host_id, result.body),
            title=parsed.title,
            language=parsed.language,
            canonical_url=parsed.canonical,
            noindex=directives.noindex,
            noarchive=directives.noarchive,
            nofollow=directives.nofollow,
        )

    def _directives(self, result: FetchResult, parsed: ParsedPage) -> Directives:
        header = _header_directives(result, self.agent_token)
        meta = parse_directives(parsed.robots_meta, self.agent_token, is_header=False)
        nofollow, noarchive = header.nofollow or meta.nofollow, header.noarchive or meta.noarchive
        return Directives(nofollow, meta.noindex, noarchive)


@dataclass(slots=True, kw_only=True, eq=False)
class Comparer:
    """The compare stage: decides whether a page is content, and whether it has changed.

    ``counts`` returns the kinds of difference that count as a change at a URL.
    """

    detector: Detector
    check: NotContentCheck
    redirects: Redirects
    past: PageHistories
    counts: Callable[[str], Collection[Channel]]

    async def compare(self, due: DueUrl, result: FetchResult, content: Reduced) -> Verdict:
        """Compare content with the page's last version in the store."""
        if due.role == "page" and result.outcome in _ANSWERED:
            self.detector.visited(due.host_id)
        if result.outcome != "failed" and not isinstance(content, RedirectTarget):
            self.redirects.end(due)
        match content:
            case ReducedPage():
                return await self._kinds(due, result, await self._page(due, result, content))
            case ReducedFeed():
                return await self._judged(due, result, content)
            case ReducedSitemap() | Opaque():
                return _by_digest(due, content)
            case RedirectTarget():
                return await self.redirects.judge(due, content, result.ended_at)
            case Verdict(kind="unchanged") if due.doubt is not None:
                return _doubtful(content, due.doubt)
        return content

    async def _kinds(self, due: DueUrl, result: FetchResult, found: Verdict) -> Verdict:
        """Judge the differences beside the text of a page that was compared."""
        if found.kind not in COMPARED:
            return found
        from freshet.crawler.compare.kinds import ChangeKinds  # noqa: PLC0415 - no first crawl asks

        kinds = ChangeKinds(self.check.parser, self.past, self.counts(due.url))
        return await kinds.judge(due, result, found)

    async def _page(self, due: DueUrl, result: FetchResult, page: ReducedPage) -> Verdict:
        """Judge a page; a block page is a failure, and its content is not stored."""
        known = due
        if due.digests is not None and not due.digests.is_comparable(_text_version(page)):
            # The last text is of another extraction, so the two are not comparable.
            known = replace(due, digests=None)
        checked = await self.check.check(known, result, page.parsed, page.text)
        if checked.verdict is not None:
            found = Verdict("failed", reason=str(checked.verdict.kind), detail=checked.verdict.why)
        else:
            found = await self._judged(due, result, page, checked.history)
            found = _remarked(found, page.parsed)
        retractions = checked.retractions
        if checked.doubt is not None:
            doubt = checked.doubt
            found = _doubtful(found, Doubt(str(doubt.kind), doubt.probability, doubt.why))
            found = replace(found, may_be_copy=doubt.is_of_names)
        elif checked.verdict is None and due.doubt is not None and found.kind == "changed":
            # If the page shows its former content again, the doubtful page in between was a block
            # page.
            why = "the page shows again what it showed before"
            retractions += (Retraction(due.page_id, None, due.doubt.kind, why, returns=True),)
        if checked.not_content is None and not retractions:
            return found
        return replace(found, not_content=checked.not_content, retractions=retractions)

    async def _judged(
        self,
        due: DueUrl,
        result: FetchResult,
        content: ReducedPage | ReducedFeed,
        history: PageHistory | None = None,
    ) -> Verdict:
        return await self.detector.detect(
            due,
            content.text,
            result.ended_at,
            history,
            text_version=_text_version(content),
            text=content.parsed.blocks if isinstance(content, ReducedPage) else None,
            rels=content.parsed.links.rels if isinstance(content, ReducedPage) else (),
            content=(result.body, result.header("Content-Type"))
            if isinstance(content, ReducedPage)
            else None,
        )


class Words(Protocol):
    """A text index of pages."""

    def lines(self, title: str | None, texts: Sequence[str], kinds: Sequence[str]) -> str:
        """Return the lines to index for a title and text blocks with their kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """The record stage: collects all changes that a visit makes in the store.

    ``index``, if any, gets the lines of new text.
    """

    discovery: SourceDiscovery
    listings: Listings
    redirects: Redirects
    copies: Copies
    headers: HostHeaders
    agent_token: str
    retries: Retries
    frontier: Frontier
    clock: Clock
    index: Words | None = None

    async def record(
        self, due: DueUrl, result: FetchResult, content: Reduced, verdict: Verdict
    ) -> Visit:
        """Return the visit; pause a host that turned the crawler away."""
        is_shell = verdict.reason == NotContentKind.NEEDS_JAVASCRIPT
        if verdict.kind == "failed" and not is_shell:
            # No content is stored, and no link followed.
            content = verdict
        found = await self._found(due, result, content, verdict)
        if is_shell:
            # Its links lead to readable pages, but a browser may add more.
            content, found = verdict, FoundUrls(targets=found.targets)
        seen = _observation(due, result, verdict)
        role = _ROLES.get(type(content), due.role)
        copies, parameters = await self._copies(due, result, content, verdict)
        signs, wish_s, said = self.headers.signals(due, role, seen, result, _said(content))
        retry_at, charged = self._retry(due, seen, found)
        is_page = role == "page"
        noindex = self._noindex(result, verdict) if is_page else None
        preferences = self._preferences(due, result, content, verdict) if is_page else None
        seen = _restated(seen, preferences)
        self._pause_host(due, result, seen)
        return Visit(
            due=due,
            observation=seen,
            role=role,
            fetches=1 + sum((result.requests or {}).values()),
            # Without validators, the server also shows when the header is removed.
            validators=Validators() if noindex else _validators(due, result, verdict),
            noindex=noindex,
            capture=_kept(content, verdict, self.index),
            links=found.links,
            offsite=found.offsite,
            targets=found.targets,
            alias=found.alias,
            new_root=found.new_root,
            fetch_url=found.fetch_url,
            retry_at=retry_at,
            charged=charged,
            host=self.frontier.host_state(due.host_id),
            memory=verdict.memory,
            amendments=verdict.amendments,
            not_content=verdict.not_content,
            retractions=verdict.retractions,
            copies=copies,
            parameters=parameters,
            said=said,
            signs=signs,
            wish_s=wish_s,
            advertised=_advertised(due, result, content),
            rejected=_rejected(due, result, verdict),
            doubt=verdict.doubt,
            preferences=preferences,
            plain_at=_plain_at(due, result),
            repeats=self.frontier.new_repeats(due.host_id),
            rest=self._rest(due, content),
        )

    async def _copies(
        self, due: DueUrl, result: FetchResult, content: Reduced, verdict: Verdict
    ) -> tuple[tuple[CopyFinding, ...], tuple[ParameterFinding, ...]]:
        """Return the evidence about copies in a page, after its links were admitted.

        The links show in which combinations values recur. A doubtful page is no evidence about
        others, unless the doubt is that it may be a copy.
        """
        if not isinstance(content, ReducedPage) or (verdict.doubt and not verdict.may_be_copy):
            return (), ()
        kind = result.header("Content-Type")
        shown = CopyCandidate(due.url, content.parsed.blocks.texts, result.body, kind)
        return await self.copies.find(due, content.text, shown)

    def _rest(self, due: DueUrl, content: Reduced) -> AsyncIterator[StoreUpdate] | None:
        """Return the entries of the remaining parts of a long sitemap."""
        if not isinstance(content, ReducedSitemap) or content.entries.more is None:
            return None
        return self.listings.more(content.entries.more, due, self.clock.now)

    def _pause_host(self, due: DueUrl, result: FetchResult, seen: Observation) -> None:
        """Pause a host whose page turned the crawler away."""
        if seen.reason in _TURNED_AWAY and result.outcome == "fetched":
            queue, now = self.frontier.host_state(due.host_id).queue, self.clock.now()
            self.frontier.heed(queue, now, "throttled", result.retry_after_s, seen.reason or "")

    def learn_repeats(self, host_id: int, repeat_of: str | None, result: FetchResult) -> None:
        """Learn what a host answers from the end of a request, before the next one begins."""
        known = self.frontier.repeats(host_id)
        if repeat_of is not None and (result.outcome == "failed" or repeat_of != _STALE):
            helped = result.outcome != "failed"
            self.frontier.learn_repeats(
                host_id, repeated(known, helped=helped, now=result.ended_at)
            )
        elif result.outcome == "not_modified":
            # The host accepts conditional requests.
            self.frontier.learn_repeats(host_id, replace(known, helped=0))

    async def _found(
        self, due: DueUrl, result: FetchResult, content: Reduced, verdict: Verdict
    ) -> FoundUrls:
        match content:
            case ReducedPage(parsed=parsed) | Opaque(parsed=parsed) if parsed is not _NO_PAGE:
                follow, nofollow = self.listings.follow, content.capture.nofollow
                found = await follow(parsed.links, due.depth, nofollow=nofollow)
                if found.targets is not None and not nofollow:
                    headers = result.header_values("Link")
                    self.discovery.feeds(found.targets, due, parsed.feeds, headers)
                return found
            case ReducedFeed(feed=feed):
                return await self.listings.follow(feed.links, due.depth)
            case ReducedSitemap(entries=entries):
                return await self.listings.admit(entries, due.depth)
            case RedirectTarget():
                found = self.redirects.found(due, content, verdict)
                if due.role == "sitemap" and found.targets is not None:
                    await self.listings.redirected(due, found.targets)
                return found
            case _:
                return FoundUrls()

    def _noindex(self, result: FetchResult, verdict: Verdict) -> bool | None:
        """Return whether headers of content forbid indexing, or None; a 304 may omit them."""
        if verdict.kind not in _CONTENT:
            return None
        noindex = _header_directives(result, self.agent_token).noindex
        return noindex if noindex or result.outcome == "fetched" else None

    def _preferences(
        self, due: DueUrl, result: FetchResult, content: Reduced, verdict: Verdict
    ) -> str | None:
        """Return the usage preferences of the page, or None if they are unchanged."""
        if verdict.kind not in _CONTENT:
            return None
        cache = self.frontier.robots
        robots = cache.usage(due.host_id, due.fetch_url)
        reserved = cache.reservation(due.host_id, due.fetch_url)
        has_header = any(map(result.header_values, _STATING))
        page = content.parsed.robots_meta if isinstance(content, ReducedPage) else None
        if not (robots or reserved or has_header or page or due.preferences):
            return None
        from freshet.crawler.robots.preferences import restated  # noqa: PLC0415 - few pages state any

        # A 304 may omit the headers of the content.
        is_read = has_header or result.outcome == "fetched"
        headers = result.header_values if is_read else None
        agent = self.agent_token
        return restated(
            due.preferences, agent, robots=robots, reserved=reserved, headers=headers, contents=page
        )

    def _retry(self, due: DueUrl, seen: Observation, found: FoundUrls) -> tuple[float | None, bool]:
        """Return the time of the next attempt, and whether this one counts."""
        if seen.kind != "failed":
            return None if found.fetch_url is None else seen.at, True
        status = _TOO_MANY_REQUESTS if seen.reason in _TURNED_AWAY else seen.status
        return self.retries.after(due, status, seen.reason, seen.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The stages of a visit, in order; ``requisites`` gets the URLs of a page's resources.

    In a ``lasting`` run, a host without an address counts as down: it may get one again.
    """

    fetcher: Fetcher
    reducer: Reducer
    comparer: Comparer
    recorder: Recorder
    sitemap_max_bytes: int | None = None
    max_body_bytes: int = 10 * 1024 * 1024
    lasting: bool = False
    requisites: Requisites | None = None

    async def visit(self, request: PageRequest) -> Visit | StoreUpdate:
        """Visit a due URL, or only count a request that must be repeated as a plain one.

        In the latter case the URL waits for its host's next turn.
        """
        due, now = request.due, self.recorder.clock.now()
        validators, plain = _known_validators(due, now), self.is_plain(due, now)
        # A feed or seed is identified by its content, whatever its media type.
        is_named = due.role == "feed" or due.seed_id is not None
        wanted = Request(due.fetch_url, validators=validators, is_plain=plain, is_any_type=is_named)
        if cookies := self.comparer.redirects.cookies(due, now):
            wanted = replace(wanted, headers=(("Cookie", cookies),))
        if due.role == "sitemap":
            wanted = replace(wanted, accept="sitemap", max_body_bytes=self.sitemap_max_bytes)
        result = await self.fetch(request.queue, wanted)
        self.recorder.learn_repeats(due.host_id, due.repeat_of, result)
        return self.put_back(due, result) or await self.take(due, result)

    def is_plain(self, due: DueUrl, now: float) -> bool:
        """Return whether a URL must be requested plainly."""
        repeats = self.recorder.frontier.repeats(due.host_id)
        return is_plain_page(due, now) or is_plain_host(repeats, now)

    def may_repeat(self, host_id: int, repeat_of: str | None, result: FetchResult) -> bool:
        """Return whether to repeat a request once as a plain one."""
        known = self.recorder.frontier.repeats(host_id)
        may = repeat_of is None and is_repeatable(result)
        return may and may_repeat(known, result.ended_at)

    def put_back(self, due: DueUrl, result: FetchResult) -> StoreUpdate | None:
        """Requeue a URL whose request must be repeated, and return its entry; else return None."""
        if not self.may_repeat(due.host_id, due.repeat_of, result):
            return None
        frontier = self.recorder.frontier
        frontier.put_back(replace(due, repeat_of=result.reason))
        return StoreUpdate(result.ended_at, fetches=1, host=frontier.host_state(due.host_id))

    async def fetch(self, queue: str, request: Request) -> FetchResult:
        """Make a request that the frontier has started, and report its end to the frontier.

        Raises:
            NotMade: no server answered, through a fault of this machine.
        """
        frontier, clock = self.recorder.frontier, self.recorder.clock
        try:
            result = await self.fetcher.fetch(request)
        except NotMade as own:
            frontier.ended(queue, clock.now(), 0.0, answer="ours", retry_after_s=None, why=str(own))
            raise
        answer = answer_of(result.status, result.reason, lasting=self.lasting)
        frontier.ended(
            queue,
            clock.now(),
            response_s=result.duration_s,
            answer=answer,
            retry_after_s=result.retry_after_s,
            why=f"{result.reason or result.status}",
        )
        for key, requests in (result.requests or {}).items():
            frontier.owe(key, clock.now(), requests)
        return result

    async def take(self, due: DueUrl, result: FetchResult) -> Visit:
        """Reduce, compare and record a fetch result, of this crawl or of an archive.

        If a hostile page makes a stage raise an exception, only its visit fails. If the parser
        process is lost, the response is parsed again in a new one. If that is lost as well, the
        response is dropped, and the page is requested again.

        Raises:
            NotMade: no more files can be opened.
        """
        try:
            if due.role != "sitemap" and is_relabelled(result):
                work = partial(as_shown, result, self.max_body_bytes)
                result = await off_loop(_UNPACKS * len(result.body), work)
            try:
                judged = await self._judged(due, result)
            except ParserLost as error:
                log.warning("%s: %s; it is parsed again", due.url, error)
                judged = await self._judged(due, result)
            return await self.recorder.record(due, result, *judged)
        except ParserLost as error:
            why = str(error)
            lost = replace(result, outcome="failed", status=None, reason="parser", detail=why)
            verdict = Verdict("failed", reason="parser", detail=why)
            return await self.recorder.record(due, lost, verdict, verdict)
        except Exception as error:
            if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
                raise NotMade(str(error), 1.0) from error
            log.exception("%s could not be processed", due.url)
            failed = Verdict("failed", reason="internal", detail=repr(error))
            seen = _observation(due, result, failed)
            host = self.recorder.frontier.host_state(due.host_id)
            return Visit(due=due, observation=seen, role=due.role, host=host)

    async def _judged(self, due: DueUrl, result: FetchResult) -> tuple[Reduced, Verdict]:
        content = await self.reducer.reduce(due, result)
        verdict = await self.comparer.compare(due, result, content)
        if self.requisites is not None and result.outcome == "fetched" and verdict.kind in _CONTENT:
            self.requisites.need(await self._needed(due, result, content), due.fetch_url)
        return content, verdict

    async def _needed(self, due: DueUrl, result: FetchResult, content: Reduced) -> Sequence[str]:
        """Return the resources that a page needs; an unchanged page is parsed for that only."""
        parsed: object = content.parsed if isinstance(content, ReducedPage) else None
        if isinstance(content, Verdict) and due.role == "page":
            parse, content_type = self.reducer.parser.parse, result.header("Content-Type")
            # The visit is valid without them.
            with suppress(ParserLost):
                parsed = await parse(result.body, due.fetch_url, content_type)
        return parsed.requisites if isinstance(parsed, ParsedPage) else ()


def unasked(due: DueUrl, observation: Observation) -> Visit:
    """Return the visit of a URL that was not requested."""
    return Visit(due=due, observation=observation, role=due.role, fetches=0)


def _had_text(due: DueUrl) -> bool:
    """Return whether a page's last version has text, or may have."""
    return due.digests is not None and due.digests.text != _empty_text()


@cache
def _empty_text() -> bytes:
    return sketch(()).text_digest


def _unread(due: DueUrl, result: FetchResult, *, is_listing: bool) -> Verdict | None:
    """Return the verdict on a response that is not parsed, or None."""
    no_page = no_page_type(result.header("Content-Type"))
    if no_page is not None and not is_listing:
        skipped = Verdict("skipped", reason="content_type", detail=no_page)
        return _lost("content_type", no_page) if _had_text(due) else skipped
    return absence(result, had_text=_had_text(due), is_sitemap=due.role == "sitemap")


def _lost(reason: str | None, detail: str | None) -> Verdict:
    """Return the failure of a page that had text and now claims to have none."""
    return Verdict("failed", reason=reason, detail=f"{detail}; the page had a text before")


def absence(result: FetchResult, *, had_text: bool, is_sitemap: bool = False) -> Verdict | None:
    """Return the failure of a response without any text, or None.

    A page that never had text may be empty, and a sitemap may be compressed.
    """
    if not result.body.strip(_WHITE):
        lost = Verdict("failed", reason="empty", detail="the response is empty")
        return lost if had_text else None
    content_type = result.header("Content-Type")
    if is_sitemap or format_of(content_type).is_binary:
        return None
    if is_binary(result.body, content_type):
        label = f"labelled {content_type[:100]}" if content_type else "without a label"
        return Verdict("failed", reason="binary", detail=f"the response is no text, though {label}")
    return None


def _text_version(content: ReducedPage | ReducedFeed) -> str | None:
    return content.capture.digests.text_version


def _no_listing(due: DueUrl, detail: str | None) -> Verdict:
    """Return the verdict for a sitemap or feed that is missing at a usual URL.

    It does not count as a page that is gone, because no page or robots.txt had named it.
    """
    return Verdict("skipped", reason=f"no_{due.role}", detail=detail)


def _refresh(due: DueUrl, result: FetchResult) -> RedirectTarget | None:
    """Return the target of a ``Refresh`` header, which browsers treat like a meta refresh."""
    if due.role != "page" or result.header("Refresh") is None:
        return None
    header = first_header(result.headers, b"refresh")
    refresh = None if header is None else refresh_of(with_octets(header), due.fetch_url)
    if refresh is None or not _leads_away(due, refresh):
        return None
    return _leading(result, refresh[1], "refresh")


def _leading(result: FetchResult, location: str, kind: AliasKind) -> RedirectTarget:
    had_cookie = any(name.lower() == "cookie" for name, _ in result.request_headers)
    return RedirectTarget(location, kind, tuple(result.header_values("Set-Cookie")), had_cookie)


def _leads_away(due: DueUrl, refresh: MetaRefresh) -> bool:
    delay_s, url = refresh
    if not is_http(url) or is_check(url):
        return False
    return delay_s <= _REFRESH_IS_REDIRECT_S and canonical(url) != due.url


async def sketch_of(blocks: Blocks) -> Sketch:
    """Return the sketch of a text; a long one is computed outside of the event loop."""
    work = partial(sketch, blocks.texts, blocks.places)
    return await off_loop(sum(map(len, blocks.texts)), work)


def _remarked(found: Verdict, page: ParsedPage) -> Verdict:
    """Return the verdict with the page's remark, unless it has a detail."""
    remark = page.remark
    if not any(page.blocks.texts):
        remark = remark or "the page shows no text"
    return replace(found, detail=remark) if remark and not found.detail else found


def _by_digest(due: DueUrl, content: ReducedSitemap | Opaque) -> Verdict:
    """Return the verdict on content of which only the bytes are compared."""
    found = Verdict("new") if due.digests is None else Verdict("changed", "body")
    if isinstance(content, Opaque):
        return replace(found, reason="unparsable", detail=content.why)
    return replace(found, detail=content.entries.problem)


def _kept(content: Reduced, verdict: Verdict, index: Words | None) -> Capture | None:
    if not isinstance(content, Captured):
        return None
    kept, changes = content.capture, dict[str, Any]()
    if not verdict.keeps_sketch:
        changes["sketch"] = None
    if verdict.channels is not None:
        changes["channels"] = verdict.channels
    is_as_indexed = verdict.kind == "unchanged" and not verdict.kinds
    if index is not None and not is_as_indexed and not isinstance(content, ReducedFeed):
        blocks = content.parsed.blocks if isinstance(content, ReducedPage) else Blocks()
        changes["words"] = index.lines(kept.title, blocks.texts, blocks.kinds)
    return replace(kept, **changes) if changes else kept


def _doubtful(found: Verdict, doubt: Doubt) -> Verdict:
    """Return the verdict on content that may be a block page, with the doubt as its reason."""
    words = f"it may be no content ({doubt.kind}, {doubt.probability:.2f}): {doubt.why}"
    reason = found.reason if found.reason == REBASED else DOUBTFUL
    return replace(found, doubt=doubt, reason=reason, detail=words)


def _said(content: Reduced) -> SourceClaims | None:
    match content:
        case ReducedFeed(said=said) | ReducedSitemap(entries=SitemapEntries(said=said)):
            return said
        case _:
            return None


def _header_directives(result: FetchResult, token: str) -> Directives:
    return parse_directives(result.header_values("X-Robots-Tag"), token, is_header=True)


def _rejected(due: DueUrl, result: FetchResult, verdict: Verdict) -> Rejected | None:
    """Return the record of a block page, or None for any other response."""
    if verdict.reason not in _NOT_CONTENT or result.outcome not in _ANSWERED:
        return None
    known = due.rejected
    if known is not None and result.outcome == "not_modified":
        return known
    digest = RULES + body_digest(result.body)
    is_known = known is not None and known.digest == digest
    since = known.since if known is not None and is_known else result.ended_at
    return Rejected(digest, verdict.reason or "", since)


def _plain_at(due: DueUrl, result: FetchResult) -> float | None:
    """Return when a plain request succeeded after another one had failed, or None."""
    is_help = due.repeat_of not in (None, _STALE) and result.outcome != "failed"
    return result.ended_at if is_help else None


def _known_validators(due: DueUrl, now: float) -> Validators | None:
    """Return the validators of the last response, if a 304 would be informative.

    At intervals the page itself is requested instead.
    """
    is_old = due.read_at is not None and now >= due.read_at + _READ_AFTER_S
    if is_old or due.not_modified >= _MOST_NOT_MODIFIED:
        return None
    if due.rejected is None:
        return due.validators if due.digests is not None else None
    return due.validators if due.rejected.digest.startswith(RULES) else None


def _validators(due: DueUrl, result: FetchResult, verdict: Verdict) -> Validators | None:
    """Return the validators to store, or None to keep the stored ones."""
    if result.outcome == "not_modified" and due.rejected is not None:
        # Some servers answer 304 by the older time of the content, so request the next one in full.
        return replace(due.validators, last_modified=None)
    if result.outcome != "fetched" or (
        verdict.kind == "failed" and verdict.reason not in _NOT_CONTENT
    ):
        return None
    if result.requests is not None or verdict.reason == NotContentKind.NEEDS_JAVASCRIPT:
        # Validators do not cover what the page loads, and a browser may build it next time.
        return Validators()
    etag, modified = result.header("ETag"), result.header("Last-Modified")
    return Validators(
        etag if is_field_value(etag) else None, modified if is_field_value(modified) else None
    )


def _advertised(due: DueUrl, result: FetchResult, content: Reduced) -> HubLink | None:
    match content:
        case (
            ReducedPage(parsed=ParsedPage(hub_links=hubs)) | ReducedFeed(feed=Feed(hub_links=hubs))
        ):
            return advertised(result.header_values("Link"), hubs, due.fetch_url)
        case _:
            return None


def _repetition(due: DueUrl) -> str | None:
    """Return the remark that only the second, plain request was answered."""
    return due.repeat_of and f"answered a plain request only; before: {due.repeat_of}"


def _restated(seen: Observation, preferences: str | None) -> Observation:
    """Return the observation, with a mark if the usage preferences have changed."""
    if preferences is None or seen.kind == "new":
        return seen
    return replace(seen, kinds=" ".join(filter(None, (seen.kinds, PREFERENCES))))


def _observation(due: DueUrl, result: FetchResult, verdict: Verdict) -> Observation:
    has_content = verdict.kind not in _WITHOUT_CONTENT
    return Observation(
        page_id=due.page_id,
        at=result.ended_at,
        kind=verdict.kind,
        rung=verdict.rung,
        status=result.status,
        reason=verdict.reason or result.reason,
        detail=verdict.detail or result.detail or _repetition(due),
        resemblance=verdict.resemblance,
        resemblance_se=verdict.resemblance_se,
        blocks_added=verdict.blocks_added,
        blocks_removed=verdict.blocks_removed,
        duration_s=result.duration_s,
        size_bytes=(len(result.body) or None) if has_content else None,
        kinds=" ".join(verdict.kinds) or None,
    )
