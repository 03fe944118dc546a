"""Fetching: requests, the fetcher protocol, and the fetcher over the network.

One call is one request: the caller handles redirects, retries and politeness.
"""

import logging
import ssl
import time
from asyncio import get_running_loop
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from hashlib import blake2b
from ipaddress import ip_address, ip_network
from itertools import takewhile
from math import inf
from math import log as ln
from typing import Literal, NamedTuple, Protocol, TypeAlias

from aiohttp.abc import AbstractResolver
from yarl import URL

from freshet.crawler.errors import NotMade, Unfetched
from freshet.crawler.fetch.addresses import AddressGuard, is_disguised, is_this_machine
from freshet.crawler.fetch.body import BodyPace, BodyRules, HeldBytes, Intake, short_body
from freshet.crawler.fetch.bounds import BAD_PORTS, URL_CHARS, LruCache, meet
from freshet.crawler.fetch.connection import HeadLimits, HttpConnection, field_bytes, request_bytes
from freshet.crawler.fetch.heads import ResponseHead
from freshet.crawler.fetch.responses import (
    PLAIN,
    REPEATED,
    RawHeaders,
    StatusVerdict,
    first_header,
    is_field_value,
    judge,
    media_type,
    retry_after_s,
    whole_bytes,
)
from freshet.crawler.fetch.transport import Access, Connections
from freshet.crawler.frontier.clock import Clock, Standstills, SteadyClock
from freshet.crawler.reduce.formats import no_page_type
from freshet.crawler.urls import origin, registrable_domain
from freshet.storage import value
from freshet.storage.entries import Outcome
from freshet.storage.records import FetchResult, Validators

log = logging.getLogger(__name__)

_ACCEPT_ENCODING = "gzip, deflate, br, zstd"
_NO_VALIDATORS = Validators()


#: The purpose of a request, which decides the accepted content types. ``probe`` requests a page
#: that cannot exist, as a page. A robots.txt is cut at its limit, and the ``answer`` to an API
#: request (a hub, a key file) at 4 KiB; any other body that is too long fails. A ``requisite`` is a
#: resource of a page.
Accept = Literal["page", "sitemap", "robots", "answer", "probe", "requisite"]


@value(frozen=True, slots=True)
class Request:
    """One GET, or a POST of ``form`` (encoded as by browsers), with additional ``headers``.

    ``max_body_bytes`` (decoded) replaces the limit of its kind. An ``is_anonymous`` request has no
    header of a site's table that identifies the crawler's user. An ``is_plain`` request uses a new
    connection, without validators and codings. For an ``is_any_type`` request, text of any media
    type is read.
    """

    url: str
    accept: Accept = "page"
    validators: Validators | None = None
    max_body_bytes: int | None = None
    form: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    is_anonymous: bool = False
    is_plain: bool = False
    is_any_type: bool = False

    @property
    def is_unusual(self) -> bool:
        """True if it is more than a GET with additional ``headers``."""
        if self.is_plain or self.form is not None:
            return True
        return bool(self.headers) and not _NOT_BESIDE.isdisjoint(
            it.lower() for it, _ in self.headers
        )

    @property
    def is_conditional(self) -> bool:
        """True if the response may be 304."""
        known = self.validators
        return known is not None and not self.is_plain and known != _NO_VALIDATORS


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits of time and size for one request.

    ``headers_timeout_s`` counts from the request to the end of the headers. ``body_timeout_s``
    limits the whole body (a robots.txt gets at most two ``rate_window_s``), which must also keep
    ``min_rate_bytes_per_s`` on average over each ``rate_window_s``. ``max_header_bytes`` counts the
    whole head, ``max_body_bytes`` a page's body, decoded and on the wire.
    """

    connect_timeout_s: float = 10.0
    headers_timeout_s: float = 30.0
    body_timeout_s: float = 300.0
    min_rate_bytes_per_s: float = 128.0
    rate_window_s: float = 20.0
    max_headers: int = 1000
    max_header_bytes: int = 65_536
    max_body_bytes: int = 10 * 1024 * 1024


class Fetcher(Protocol):
    """The network, an archive or the synthetic web."""

    async def fetch(self, request: Request) -> FetchResult:
        """Make one request; a failure is a result with an outcome, not an exception.

        Raises:
            NotMade: by :class:`OursOrTheirs` only.
        """


class _Kind(NamedTuple):
    """Rules for one kind of request.

    ``is_typed``: only bodies with a page's media type are read. ``is_unpacked``: a body that its
    first bytes show to be compressed is decoded, even if its headers do not mention that.
    """

    accept: str
    is_typed: bool = False
    max_body_bytes: int | None = None
    may_cut: bool = False
    is_unpacked: bool = False


_PAGE = _Kind(
    "text/html, application/xhtml+xml, application/xml;q=0.9, text/plain;q=0.8, */*;q=0.1",
    is_typed=True,
)
_KINDS: Mapping[Accept, _Kind] = {
    "page": _PAGE,
    "probe": _PAGE,
    # 50 MiB is the limit of the sitemaps protocol.
    "sitemap": _Kind("application/xml, text/xml, text/plain, */*;q=0.5", max_body_bytes=50 * 2**20),
    # RFC 9309, section 2.5, demands 500 KiB; one more byte shows that the file is longer.
    "robots": _Kind(
        "text/plain, */*;q=0.5", max_body_bytes=500 * 1024 + 1, may_cut=True, is_unpacked=True
    ),
    "answer": _Kind("text/plain, */*;q=0.5", max_body_bytes=4 * 1024, may_cut=True),
    "requisite": _Kind("*/*"),
}

#: Reason for a truncated body, in WARC's terms, by the reason of the failure.
_TRUNCATED_BY: Mapping[str, str] = {
    "too_large": "length",
    "timeout_body": "time",
    "too_slow": "time",
    "cut_short": "disconnect",
}
_UNREAD = "unspecified"


#: Windows of the minimum rate that a body may take if it is cut at its limit.
_SHORT_WINDOWS = 2
#: A body that ended early this often at the same byte is complete; number of bodies remembered.
_ALIKE_TIMES = 3
_CUT_BODIES = 4_096
_USUAL = 1_024
_Fields: TypeAlias = tuple[tuple[str, str], ...]
#: Request header fields whose values are never archived.
_CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie"})
#: Fields that replace usual ones, or must not be shown.
_NOT_BESIDE = _CREDENTIALS | {
    "host", "user-agent", "accept", "accept-encoding", "accept-language", "if-none-match",
    "if-modified-since",
}  # fmt: skip


@dataclass(slots=True)
class _Transfer:
    """The request and response in progress, as far as they are known."""

    url: str
    started_at: float
    request_headers: tuple[tuple[str, str], ...] = ()
    head: ResponseHead | None = None
    peer: str | None = None
    wire_body: bytes = b""
    body: bytes = b""
    truncated: str | None = None
    repairs: tuple[str, ...] = ()
    head_bytes: bytes = b""

    @property
    def status(self) -> int | None:
        """The status of the response, once its head has arrived."""
        return None if self.head is None else self.head.status

    def failed(self, outcome: Outcome, reason: str, detail: str) -> StatusVerdict:
        """Return a failure, and mark the received part as truncated."""
        if self.head is not None:
            self.truncated = _TRUNCATED_BY.get(reason, _UNREAD)
        return StatusVerdict(outcome, reason, detail)

    def take_short(self, wire: bytes, rules: BodyRules) -> bool:
        """Take a body that has arrived completely; return False if it needs an Intake."""
        body = None if self.head is None else short_body(wire, self.head.codings, rules)
        if body is None:
            return False
        self.wire_body, self.body = wire, body
        return True

    def is_part(self) -> bool:
        """Return whether a complete response is only a part of the server's content."""
        head = self.head
        if head is None or head.status != 206 or self.truncated is not None:
            return False
        return whole_bytes(head.headers) != len(self.wire_body)

    def result(self, verdict: StatusVerdict, now: float) -> FetchResult:
        """Return the result of the request, which ends now."""
        head = self.head
        status, headers = (None, ()) if head is None else (head.status, head.headers)
        return FetchResult(
            url=self.url,
            outcome=verdict.outcome,
            started_at=self.started_at,
            duration_s=now - self.started_at,
            status=status,
            reason=verdict.reason,
            detail=verdict.detail,
            request_headers=self.request_headers,
            headers=headers,
            wire_body=self.wire_body,
            body=self.body,
            peer=self.peer,
            location=verdict.location,
            retry_after_s=None if status is None or status < 300 else retry_after_s(headers, now),
            status_line=b"" if head is None else head.status_line,
            truncated=self.truncated,
            repairs=self.repairs,
            head=self.head_bytes,
        )


def _replaced(fields: Mapping[str, str], by: Mapping[str, str]) -> dict[str, str]:
    """Return the fields with some replaced; names are compared without case."""
    names = {name.lower() for name in by}
    return {**{name: value for name, value in fields.items() if name.lower() not in names}, **by}


def _without_secrets(
    fields: Iterable[tuple[str, str]], own: Collection[str]
) -> tuple[tuple[str, str], ...]:
    """Return the fields of a request with secret values masked.

    Fields of a site's table are secret, except the user agent.
    """
    from freshet.crawler.fetch.masking import MASK  # noqa: PLC0415 - usual requests have no secrets

    hidden = {*_CREDENTIALS, *map(str.lower, own)} - {"user-agent"}
    return tuple((name, MASK if name.lower() in hidden else value) for name, value in fields)


class NetworkFetcher:
    """Fetcher over HTTP/1.1, with and without TLS.

    Connections are kept alive and reused; the caller's politeness limits their number. The address
    guard checks every connection. Cookies of sites are not stored, proxies of the environment not
    used, and certificates are always verified. ``tls`` replaces the default context. ``access_at``
    returns the access of a URL.

    Create it inside the running event loop. The caller closes the resolver.
    """

    def __init__(
        self,
        user_agent: str,
        limits: FetchLimits,
        guard: AddressGuard,
        resolver: AbstractResolver,
        *,
        accept_language: str = "",
        tls: ssl.SSLContext | None = None,
        access_at: Callable[[str], Access | None] = lambda _url: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._limits = limits
        self.held = HeldBytes()
        #: Request header fields by host and kind: as values, and as sent.
        self._usual = LruCache[tuple[str, Accept], tuple[_Fields, bytes]](_USUAL)
        #: Digests of bodies that ended early, by URL, and how often each occurred in a row.
        self._cut = LruCache[str, tuple[bytes, int]](_CUT_BODIES)
        self._now = now
        self.access_at = access_at
        self._fields = {"User-Agent": user_agent, "Accept-Encoding": _ACCEPT_ENCODING}
        if accept_language:
            self._fields["Accept-Language"] = accept_language
        heads = HeadLimits(limits.headers_timeout_s, limits.max_header_bytes, limits.max_headers)
        self._connections = Connections(guard, resolver, tls, heads, limits.connect_timeout_s)

    async def fetch(self, request: Request) -> FetchResult:
        """Make one request; any failure is in the result."""
        transfer = _Transfer(request.url, self._now())
        try:
            verdict = await self._converse(request, transfer)
        except Unfetched as end:
            verdict = transfer.failed(end.outcome, end.reason, end.detail)
        except Exception as error:
            log.exception("fetching %s failed with an unexpected error", request.url)
            verdict = transfer.failed("failed", "internal", repr(error))
        return transfer.result(verdict, self._now())

    async def close(self) -> None:
        """Close all connections."""
        await self._connections.close()

    async def _converse(self, request: Request, transfer: _Transfer) -> StatusVerdict:
        url, access = _wire_url(request.url), self.access_at(request.url)
        if access is not None and request.is_anonymous:
            access = access.public
        channel = await self._connections.get(url, access, is_fresh=request.is_plain)
        is_read = False
        try:
            sent = self._request(request, url, access, channel, transfer)
            head = await channel.ask(sent)
            verdict, intake = self._take(request, channel, head, transfer)
            if intake is not None:
                await self._read_body(request, channel, intake, transfer)
            is_read = True
        except Unfetched as end:
            if end.reason == "stale":
                self._connections.leave(channel)
            raise
        finally:
            transfer.repairs = tuple(channel.repairs)
            if not is_read or request.is_plain or transfer.status in REPEATED:
                # The request may be repeated, which needs another connection.
                channel.close()
            else:
                self._connections.put_back(channel)
        return verdict

    def _request(
        self, request: Request, url: URL, access: Access | None, channel: HttpConnection,
        transfer: _Transfer,
    ) -> bytes:  # fmt: skip
        """Return a request as sent, and record it, because a response may never arrive."""
        own = access.fields_for(request.url) if access is not None else {}
        target, proxy_fields = self._connections.way(channel, url)
        host = url.host_port_subcomponent or ""
        if not (own or proxy_fields or request.is_unusual):
            transfer.request_headers, fields = self._usual_fields(host, request)
            return request_bytes("GET", target, fields)
        method, body, length = "GET", b"", {}
        if request.form is not None:
            method, body = "POST", request.form.encode()
            length = {"Content-Length": str(len(body))}
        merged = {"Host": host, **self._fields, **request_headers(request)}
        for some in (own, proxy_fields, length):
            merged = _replaced(merged, some)
        sent = tuple(merged.items())
        transfer.request_headers = _without_secrets(sent, own)
        return request_bytes(method, target, field_bytes(sent), body)

    def _usual_fields(self, host: str, request: Request) -> tuple[_Fields, bytes]:
        """Return the usual fields with the request's own fields and validators.

        They are returned as values, and as sent.
        """
        usual = self._usual.get((host, request.accept))
        if usual is None:
            accept = ("Accept", _KINDS[request.accept].accept)
            sent: _Fields = (("Host", host), *self._fields.items(), accept)
            usual = self._usual[host, request.accept] = sent, field_bytes(sent)
        if request.validators is None and not request.headers:
            return usual
        more = (*request.headers, *_validator_fields(request.validators or _NO_VALIDATORS))
        return (*usual[0], *more), usual[1] + field_bytes(more)

    def _take(
        self, request: Request, channel: HttpConnection, head: ResponseHead, transfer: _Transfer
    ) -> tuple[StatusVerdict, Intake | None]:
        """Process a response's head; return the reader for a body that must be read."""
        transfer.head, transfer.peer, transfer.head_bytes = head, channel.peer, channel.head_bytes
        status = head.status
        verdict = judge(
            status,
            request.url,
            first_header(head.headers, b"location") if status >= 300 else None,
            is_conditional=request.is_conditional,
            is_whole=status == 206 and whole_bytes(head.headers) is not None,
        )
        if verdict.outcome == "fetched":
            rules = body_rules(
                request,
                self._limits.max_body_bytes,
                content_type=head.content_type,
                announced_bytes=head.length,
            )
            # Most bodies have arrived completely: there is no need to wait.
            if channel.is_ended and status != 206 and transfer.take_short(channel.peek(), rules):
                return verdict, None
            return verdict, Intake(head.codings, rules, announced_bytes=head.length)
        if channel.is_ended:
            transfer.wire_body = channel.take()
        else:
            # Do not wait for the body of an error or a redirect.
            transfer.truncated = _UNREAD
        if verdict.reason == "http_402":
            verdict = _priced(verdict, head.headers, transfer.wire_body)
        return verdict, None

    async def _read_body(
        self, request: Request, channel: HttpConnection, intake: Intake, transfer: _Transfer
    ) -> None:
        limits, now = self._limits, get_running_loop().time()
        most_s = limits.body_timeout_s
        if _KINDS[request.accept].may_cut:
            # These files are short: one that takes longer never ends, or is too slow.
            most_s = min(most_s, _SHORT_WINDOWS * limits.rate_window_s)
        pace = BodyPace(limits.min_rate_bytes_per_s, limits.rate_window_s, most_s, now)
        await intake.read(channel.pieces(), pace, self.held)
        if (
            channel.cut is not None
            and not intake.is_cut
            and not self._is_alike(request, channel, intake)
            and not intake.is_proven_whole()
        ):
            raise Unfetched("cut_short", channel.cut)
        channel.repairs += intake.repairs
        transfer.wire_body, transfer.body = intake.result()
        transfer.truncated = "length" if intake.is_cut else None
        if transfer.is_part():
            raise Unfetched("http_206", "the server sent a part of what it has")

    def _is_alike(self, request: Request, channel: HttpConnection, intake: Intake) -> bool:
        """Return whether a body ended early at the same byte as before, and counts as complete.

        A server that repeatedly closes the connection in an orderly way at the same byte has
        announced a wrong length, or omits the last chunk.
        """
        body = intake.plain
        if not (body and channel.is_orderly):
            return False
        digest = blake2b(body, digest_size=16).digest()
        known, times = self._cut.use(request.url) or (b"", 0)
        times = times + 1 if known == digest else 1
        self._cut[request.url] = digest, times
        if times < _ALIKE_TIMES:
            return False
        intake.repairs.append("cut_alike")
        return True


def _priced(verdict: StatusVerdict, headers: RawHeaders, body: bytes) -> StatusVerdict:
    """Return the verdict, with the price that the server asks for, if any."""
    from freshet.crawler.fetch.prices import asked_for  # noqa: PLC0415 - few servers do

    price = asked_for(partial(first_header, headers), body)
    return verdict if price is None else replace(verdict, detail=f"the server asks for {price}")


#: Seconds to wait after a failure of this machine, by reason.
_HOLD_S: Mapping[str, float] = {
    "stale": 0.0,
    "no_descriptors": 1.0,
    "no_resolver": 5.0,
    "no_network": 5.0,
    "dns": 5.0,
    "timeout_connect": 5.0,
}
_SURELY_LOCAL = frozenset({"stale", "no_descriptors"})
_NO_WAY = frozenset({"no_resolver", "no_network"})
#: These are failures of the host, unless several hosts in a row have them.
_RARELY_LOCAL = frozenset({"dns", "timeout_connect"})
_HOSTS_IN_A_ROW = 3
#: Reasons of requests that end without a route to a server (the first two after sending), and
#: statuses of gateways and proxies without one.
_SENT = frozenset({"hung_up", "timeout_headers"})
_SILENT = _SENT | _NO_WAY | _RARELY_LOCAL | {"connect", "tls", "not_tls", "no_such_host"}
_NO_GATEWAY = frozenset({502, 503, 504, 511})
#: Failures without a status although bytes arrived: a server is reachable.
_BYTES_ARRIVED = frozenset({"protocol", "headers_too_large", "cut_short"})
#: Without a network, one request is made per ``_PROBE_S`` (more often in the first minute, if
#: requests cannot leave this machine), each to another host if one is due within ``_ROUND_S``.
#: After ``_LONGEST_S``, hosts are blamed again.
_PROBE_S = 30.0
_BRIEF_S = 60.0
_ROUND_S = 300.0
_LONGEST_S = 6 * 3_600.0
#: Hosts that answered within this time before the last answer count as reachable; number
#: remembered.
_LATELY_S = 3_600.0
_OF_FEW_S = 86_400.0
_MOST_KNOWN = 4_096
#: This many failing known hosts show that the network is away. The chance that a known host fails
#: by itself is taken as 1/16; for other hosts it is the share of the last requests that failed.
_HOSTS_GONE = 5
_CHANCE = 1 / 16
_REMEMBERED = 64
_MOST_COUNTED = 64


class _Known(NamedTuple):
    """A host that answered at a time: its domain, and the network of its address if known."""

    at: float
    domain: str
    network: str | None


# A crawl uses few addresses within a while, each for many answers.
@lru_cache(maxsize=256)
def _network_of(peer: str | None) -> str | None:
    """Return the smallest network that is announced for an address: a /24, or a /48 for IPv6."""
    if peer is None or is_this_machine(peer):
        return None
    address = ip_address(peer.partition("%")[0])
    return str(ip_network((address, 24 if address.version == 4 else 48), strict=False))


def _is_silent(result: FetchResult) -> bool:
    """Return whether a missing network may have caused this result."""
    if result.status is None:
        return result.outcome == "failed" and result.reason in _SILENT
    return result.status in _NO_GATEWAY and result.retry_after_s is None


def _while_awake(result: FetchResult, stood_s: float) -> FetchResult:
    """Return a result without the time for which this process was suspended.

    Raises:
        NotMade: the request failed during that time.
    """
    if result.outcome == "failed" and (result.status is None or result.reason in _TRUNCATED_BY):
        raise NotMade("this process was suspended meanwhile", 0.0, is_sent=True)
    return replace(result, duration_s=max(0.0, result.duration_s - stood_s))


@dataclass(slots=True, eq=False)
class OursOrTheirs:
    """A fetcher that raises :class:`NotMade` for failures of this machine: network, DNS, files.

    The network counts as away if hosts of five domains and networks that answered within an hour
    fail in a row, for any reason, and no host answers in between; other hosts count less. With
    fewer known hosts, but at least three, all that answered within the hour must fail. A failure
    without a route or a name server also counts if no host has answered, neither during the request
    nor since the host's previous failure.

    *Invariant.* While the network is away, no failure is blamed on a host; after six hours all are,
    until a host answers. The first failure of a host is deferred if it may be the first of many. A
    failure during a suspension of this process is never blamed on the host.
    """

    fetcher: Fetcher
    clock: Clock = field(default_factory=SteadyClock)
    standstills: Standstills = field(default_factory=Standstills)
    _answered_at: float = field(default=-inf, init=False)
    # Ordered by the last answer or failure.
    _known: LruCache[str, _Known] = field(default_factory=lambda: LruCache(_MOST_KNOWN), init=False)
    _failed_at: LruCache[str, float] = field(
        default_factory=lambda: LruCache(_MOST_KNOWN), init=False
    )
    # Hosts with a deferred failure that have not answered since.
    _put_off: LruCache[str, bool] = field(default_factory=lambda: LruCache(_MOST_KNOWN), init=False)
    _share: float = field(default=0.5, init=False)
    _silent_since: float | None = field(default=None, init=False)
    _is_gone: bool = field(default=False, init=False)
    _lost_since: float | None = field(default=None, init=False)
    _is_given_up: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Follow the jumps of the clock."""
        self.clock.on_step(self._shift)

    async def fetch(self, request: Request) -> FetchResult:
        """Make one request.

        Raises:
            NotMade: record no result, and make the request again.
        """
        began_at = self.clock.now()
        standstills = self.standstills
        before = standstills.begin()
        try:
            result = await self.fetcher.fetch(request)
        finally:
            standstills.end()
        if standstills.total_s != before:
            result = _while_awake(result, standstills.total_s - before)
        reason = result.reason or ""
        # A server that closes a kept-alive connection at a conditional request usually does so
        # because of it.
        if reason in _SURELY_LOCAL and not (reason == "stale" and request.is_conditional):
            raise NotMade(result.detail or reason, _HOLD_S[reason])
        if reason != "stale":
            self._judge(origin(request.url).host, result, began_at)
        return result

    def _judge(self, host: str, result: FetchResult, began_at: float) -> None:
        """Learn from the end of a request.

        Raises:
            NotMade: the failure is or may be this machine's.
        """
        reason = result.reason or ""
        if _is_silent(result) and (reason != "no_such_host" or host in self._known):
            self._failed(host, reason, began_at)
        elif result.status is not None or result.outcome != "failed" or reason in _BYTES_ARRIVED:
            self._answered(host, result.peer)
        elif self._lost_since is not None and not self._is_given_up:
            raise NotMade(reason, _PROBE_S, rest_s=_ROUND_S, since=self._lost_since)

    def _shift(self, by: float) -> None:
        """Adapt to a jump of the clock."""
        self._answered_at += by
        for host, it in list(self._known.items()):
            self._known[host] = it._replace(at=it.at + by)
        for host, at in list(self._failed_at.items()):
            self._failed_at[host] = at + by
        self._silent_since = None if self._silent_since is None else self._silent_since + by
        self._lost_since = None if self._lost_since is None else self._lost_since + by

    def _answered(self, host: str, peer: str | None) -> None:
        now = self._answered_at = self.clock.now()
        if self._lost_since is not None:
            log.warning("the network is back after %.0f s", now - self._lost_since)
        self._silent_since = self._lost_since = None
        self._is_gone = self._is_given_up = False
        self._share -= self._share / _REMEMBERED
        self._put_off.pop(host, None)
        known = self._known.get(host)
        domain = registrable_domain(host) if known is None else known.domain
        self._known[host] = _Known(now, domain, _network_of(peer))

    def _failed(self, host: str, reason: str, began_at: float) -> None:
        """Record a host that did not answer.

        Raises:
            NotMade: the failure is or may be this machine's.
        """
        now = self.clock.now()
        before = self._failed_at.get(host, now)
        self._failed_at[host] = now
        self._silent_since = self._silent_since or now
        is_sent = reason in _SENT or reason not in _SILENT
        if self._is_ours(reason, nobody=self._answered_at < min(began_at, before)):
            since = self._lost_since or now
            is_brief = not self._is_gone and now - since < _BRIEF_S
            hold_s = _HOLD_S[reason] if is_brief else _PROBE_S
            raise NotMade(reason, hold_s, rest_s=_ROUND_S, since=since, is_sent=is_sent)
        is_first = host not in self._put_off and self._answered_at < max(began_at, now - 1.0)
        if is_first and self._there():
            self._put_off[host] = True
            raise NotMade(reason, 0.0, rest_s=_PROBE_S, is_sent=is_sent)
        self._share += (1 - self._share) / _REMEMBERED

    def _is_ours(self, reason: str, *, nobody: bool) -> bool:
        """Return whether a failure is this machine's; ``nobody``: no host answered meanwhile."""
        if self._is_given_up:
            return False
        self._is_gone = self._is_gone or self._all_fail()
        if not self._is_gone and not (nobody and self._is_cut_off(reason)):
            return False
        now = self.clock.now()
        if self._lost_since is None:
            self._lost_since = self._silent_since
            log.warning("the network is away (%s); the crawl waits for it", reason)
        self._is_given_up = now - (self._lost_since or now) > _LONGEST_S
        if self._is_given_up:
            log.warning("no network for six hours: from now on failures count as the hosts'")
        return not self._is_given_up

    def _is_cut_off(self, reason: str) -> bool:
        """Return whether a reason shows that this machine has no route or name server."""
        in_a_row = len(self._apart(self._failing(), _HOSTS_IN_A_ROW)) == _HOSTS_IN_A_ROW
        return reason in _NO_WAY or (reason in _RARELY_LOCAL and in_a_row)

    def _failing(self) -> Iterator[str]:
        """Yield the hosts that have failed since the last answer, the latest first."""
        failed_at, since = self._failed_at, self._answered_at
        return takewhile(lambda host: failed_at[host] > since, reversed(failed_at))

    def _lately(self, within_s: float = _LATELY_S) -> Iterator[str]:
        """Yield the hosts that answered within this time before the last answer, latest first."""
        known, since = self._known, self._answered_at - within_s
        return takewhile(lambda host: known[host].at > since, reversed(known))

    def _apart(self, hosts: Iterable[str], most: int) -> list[str]:
        """Return the first ``most`` of these hosts on different domains and networks."""
        seen: set[str] = set()
        found: list[str] = []
        for host in hosts:
            known = self._known.get(host)
            domain = registrable_domain(host) if known is None else known.domain
            places = {domain, (known and known.network) or domain}
            if seen.isdisjoint(places):
                seen |= places
                found.append(host)
                if len(found) == most:
                    break
        return found

    def _there(self) -> list[str]:
        """Return the reachable hosts on different networks, or [] if they are too few to judge by.

        Of three sites one may be visited less often; then two are enough. If the third answers, the
        next probe shows it.
        """
        there = self._apart(self._lately(), _HOSTS_GONE)
        today = self._apart(self._lately(_OF_FEW_S), _HOSTS_IN_A_ROW)
        tells = len(there) >= _HOSTS_IN_A_ROW - 1 and len(today) == _HOSTS_IN_A_ROW
        return there if tells else []

    def _all_fail(self) -> bool:
        """Return whether the hosts that fail have only this machine's network in common."""
        there = self._there()
        if not there:
            return False
        if len(there) < _HOSTS_GONE:
            return set(there) <= set(self._failing())
        since, other = self._answered_at - _LATELY_S, ln(max(self._share, _CHANCE)) / ln(_CHANCE)
        failing = (self._known.get(it) for it in self._apart(self._failing(), _MOST_COUNTED))
        return sum(1 if it and it.at > since else other for it in failing) > _HOSTS_GONE - 0.5


def body_rules(
    request: Request, max_body_bytes: int, *, content_type: str, announced_bytes: int
) -> BodyRules:
    """Return the rules for reading a response's body, according to its headers.

    ``max_body_bytes`` is the limit of a page; ``announced_bytes`` of 0 means unknown.

    Raises:
        Unfetched: the body should not be read.
    """
    rules = _rules_of(request.accept, content_type, request.max_body_bytes or 0, max_body_bytes)
    if rules.no_page is not None and not request.is_any_type:
        raise Unfetched("content_type", rules.no_page, "skipped")
    if announced_bytes > rules.max_bytes and not rules.may_cut:
        raise Unfetched("too_large", f"{announced_bytes} bytes are announced")
    return rules


@lru_cache(maxsize=64)
def _rules_of(
    accept: Accept, content_type: str, own_max_bytes: int, page_max_bytes: int
) -> BodyRules:
    kind = _KINDS[accept]
    no_page = no_page_type(content_type) if kind.is_typed else None
    return BodyRules(
        own_max_bytes or kind.max_body_bytes or page_max_bytes,
        may_cut=kind.may_cut,
        is_sniffed=kind.is_typed and (no_page is not None or media_type(content_type) is None),
        is_unpacked=kind.is_unpacked,
        no_page=no_page,
    )


def _wire_url(url: str) -> URL:
    """Return the URL unchanged, byte for byte."""
    try:
        parsed = URL(url, encoded=True)
        host = parsed.raw_host or ""
    except ValueError as error:
        raise Unfetched("url", f"not a URL that can be fetched: {error}") from error
    if parsed.scheme not in ("http", "https"):
        raise Unfetched("url", "not an http or https URL")
    if len(url) > URL_CHARS:
        meet("characters of a URL", host)
        raise Unfetched("url", f"the URL has more than {URL_CHARS:,} characters")
    if parsed.port in BAD_PORTS:
        meet("ports of other services", host)
        raise Unfetched("url", f"port {parsed.port} is not one of web servers")
    if is_disguised(host):
        raise Unfetched("address", f"{host} is an address in disguise")
    # Credentials in a URL can only come from a page's author (RFC 9110, section 4.2.4).
    return parsed.with_user(None) if parsed.raw_user is not None else parsed


def request_headers(request: Request) -> dict[str, str]:
    """Return the headers of this request, in addition to those of every request."""
    headers = {"Accept": _KINDS[request.accept].accept}
    if request.headers:
        headers = _replaced(headers, dict(request.headers))
    if request.form is not None:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    if request.is_plain:
        return headers | dict([("Accept", "*/*"), PLAIN, ("Connection", "close")])
    return headers | dict(_validator_fields(request.validators or _NO_VALIDATORS))


def _validator_fields(known: Validators) -> Iterator[tuple[str, str]]:
    if is_field_value(known.etag):
        yield "If-None-Match", known.etag
    if is_field_value(known.last_modified):
        yield "If-Modified-Since", known.last_modified
