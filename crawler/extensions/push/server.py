"""The listener for pushes: answers that are cheap to refuse."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address
from math import inf
from typing import Final

from aiohttp import web

from freshet.crawler.errors import CrawlError, Refused
from freshet.crawler.extensions.push.indexnow import Pinging, from_json, from_query
from freshet.crawler.extensions.push.tables import Subscription
from freshet.crawler.extensions.push.websub import (
    Subscriber,
    is_authentic,
    is_live,
    parse_signature,
    signs,
)
from freshet.crawler.service.listening import BoundedServer
from freshet.crawler.service.senders import Buckets

# -- refusals ----------------------------------------------------------------

log = logging.getLogger(__name__)

_EVERY_S = 60.0


class Refusals:
    """Counts of refused requests."""

    def __init__(self) -> None:
        self._unreported: Counter[str] = Counter()
        self._example: dict[str, str] = {}
        self._reported_at = -inf

    def count(self, why: str, source: str) -> None:
        """Count a refusal of this address."""
        self._unreported[why] += 1
        self._example[why] = source

    def tell(self, now: float, *, at_once: bool = False) -> None:
        """Log the refusals since the last line, at most one line a minute."""
        if not self._unreported or (now < self._reported_at + _EVERY_S and not at_once):
            return
        reasons = ", ".join(
            f"{why} {count:,} (last from {self._example[why]})"
            for why, count in self._unreported.most_common()
        )
        log.warning("refused pushed requests: %s", reasons)
        self._reported_at = now
        self._unreported.clear()
        self._example.clear()


# -- endpoint ----------------------------------------------------------------

_WEBSUB: Final = "/websub/"
_PING: Final = "/indexnow"
#: Refused pings of one address: this number at once, then one in two seconds.
_PATIENCE: Final = (20.0, 0.5)
#: Bytes of the bodies of pings, which anyone may send, from all addresses together.
_BYTES: Final = (2.0 * 2**20, 2.0 * 2**20)
#: Notifications of one subscription.
_NOTIFICATIONS: Final = (60.0, 1.0)
_ADDRESSES: Final = 4_096
#: Bodies read at once: from senders who know a callback; and of pings, one of an address.
_BODIES: Final = 16
_RETRY_AFTER_S: Final = 60


@dataclass(frozen=True, slots=True)
class PushRequest:
    """A request. ``headers`` are by lower-case name, ``length`` is its Content-Length.

    ``read`` gives the body, None where it is longer than the given number of bytes.

    Raises (``read``):
        TimeoutError: the body did not arrive in time.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    length: int | None
    source: str
    read: Callable[[int], Awaitable[bytes | None]]


@dataclass(frozen=True, slots=True)
class PushResponse:
    """An answer; after 429 and 503 the sender may try again later."""

    status: int
    body: str = ""


@dataclass(slots=True, eq=False)
class Endpoint:
    """Answers to requests. ``subscriber`` is None where no hub could reach us.

    Refusing must be cheaper than asking. Hence the order: first path and headers, then the
    sender's allowance, and the body last, for senders who may know a secret. Unknown and forged
    requests are counted and logged once a minute.
    """

    subscriber: Subscriber | None
    pinging: Pinging
    refusals: Refusals
    now: Callable[[], float]
    max_body_bytes: int
    _patience: Buckets = field(default_factory=lambda: Buckets(*_PATIENCE, room=_ADDRESSES))
    _bytes: Buckets = field(default_factory=lambda: Buckets(*_BYTES, room=1))
    _notifications: Buckets = field(default_factory=lambda: Buckets(*_NOTIFICATIONS, room=10_000))
    _reading: dict[bool, Counter[str]] = field(
        default_factory=lambda: {True: Counter(), False: Counter()}
    )

    async def answer(self, pushed: PushRequest) -> PushResponse:
        """Answer any request."""
        try:
            return await self._routed(pushed)
        except Refused as refused:
            self.refusals.count(refused.why, pushed.source)
            return PushResponse(refused.status, refused.why)

    async def _routed(self, pushed: PushRequest) -> PushResponse:
        _, found, token = pushed.path.rpartition(_WEBSUB)
        if found:
            return await self._callback(token, pushed)
        if pushed.path.endswith(_PING):
            return await self._ping(pushed)
        raise Refused(404, "unknown path")

    # -- callbacks of subscriptions ----------------------------------------------

    async def _callback(self, token: str, pushed: PushRequest) -> PushResponse:
        known = self.subscriber.leases.of(token) if self.subscriber is not None else None
        if known is None or self.subscriber is None:
            raise Refused(404, "unknown callback")
        if pushed.method == "GET":
            return await self._verified(self.subscriber, token, pushed.query)
        if pushed.method == "POST":
            return await self._notified(self.subscriber, known, pushed)
        raise Refused(405, "unknown method")

    async def _verified(
        self, subscriber: Subscriber, token: str, query: Mapping[str, str]
    ) -> PushResponse:
        mode, topic = query.get("hub.mode", ""), query.get("hub.topic", "")
        if mode == "denied":
            if subscriber.deny(token, topic, query.get("hub.reason", "")[:200], self.now()):
                return PushResponse(200)
            raise Refused(404, "denial of another topic")
        challenge = query.get("hub.challenge")
        if not challenge:
            raise Refused(400, "verification without a challenge")
        lease_s = _seconds(query.get("hub.lease_seconds"))
        is_asked = await subscriber.verify(token, mode, topic, lease_s, self.now())
        if is_asked is None:
            raise Refused(503, "the store is busy")
        if not is_asked:
            raise Refused(404, "verification without a request")
        return PushResponse(200, challenge)

    async def _notified(
        self, subscriber: Subscriber, known: Subscription, pushed: PushRequest
    ) -> PushResponse:
        now = self.now()
        if known.state == "leaving" or not is_live(known, now):
            raise Refused(410, "notification without a lease")
        self._check_size(pushed)
        signature = parse_signature(pushed.headers.get("x-hub-signature"))
        if signature is None and signs(known):
            # By the recommendation: acknowledge, and ignore.
            raise Refused(202, "notification without a signature")
        if not self._notifications.take(known.page_id, now):
            raise Refused(429, "too many notifications")
        body = await self._body(pushed, is_callback=True)
        if signature is not None and not is_authentic(known.secret, body, signature):
            raise Refused(202, "wrong signature")
        if not await subscriber.notified(known, now):
            raise Refused(503, "the store is busy")
        if signature is not None:
            subscriber.read(known, body, now)
        return PushResponse(202)

    # -- pings -------------------------------------------------------------------

    async def _ping(self, pushed: PushRequest) -> PushResponse:
        now = self.now()
        if self._patience.level(pushed.source, now) < 1.0:
            raise Refused(429, "too many refused pings")
        try:
            return await self._heard(pushed, now)
        except Refused as refused:
            if refused.status != 503:
                self._patience.take(pushed.source, now)
            raise

    async def _heard(self, pushed: PushRequest, now: float) -> PushResponse:
        if pushed.method == "GET":
            return PushResponse(await self.pinging.received(from_query(pushed.query), now))
        if pushed.method != "POST":
            raise Refused(405, "unknown method")
        self._check_size(pushed)
        size = self.max_body_bytes if pushed.length is None else pushed.length
        if not self._bytes.take(None, now, size):
            raise Refused(429, "too many bytes of pings")
        ping = from_json(await self._body(pushed, is_callback=False))
        return PushResponse(await self.pinging.received(ping, now))

    # -- bodies ------------------------------------------------------------------

    def _check_size(self, pushed: PushRequest) -> None:
        if (pushed.length or 0) > self.max_body_bytes:
            raise Refused(413, "body too large")
        if pushed.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refused(415, "encoded body")

    async def _body(self, pushed: PushRequest, *, is_callback: bool) -> bytes:
        """Read the body; a slow sender delays only himself and other unknown senders."""
        reading, source = self._reading[is_callback], pushed.source
        of_address = _BODIES if is_callback else 1
        if reading.total() >= _BODIES or reading[source] >= of_address:
            raise Refused(429, "too many bodies at once")
        reading[source] += 1
        try:
            body = await pushed.read(self.max_body_bytes)
        except TimeoutError as error:
            self._patience.drain(source, self.now())
            raise Refused(408, "body too slow") from error
        except ConnectionError as error:
            raise Refused(400, "broken body") from error
        finally:
            reading[source] -= 1
            if not reading[source]:
                del reading[source]
        if body is None:
            raise Refused(413, "body too large")
        return body


def _seconds(text: str | None) -> float | None:
    """Parse a number of seconds; None if it is missing, 0 if it is invalid."""
    if text is None:
        return None
    return float(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0.0


#: Time for a body, less than for a page: 1 MiB at 350 kB/s.
_BODY_S: Final = 3.0

Networks = Sequence[IPv4Network | IPv6Network]


class PushListener:
    """Server at ``host`` and ``port``; ``proxies`` may name the sender."""

    def __init__(
        self,
        answer: Callable[[PushRequest], Awaitable[PushResponse]],
        refusals: Refusals,
        *,
        proxies: Networks = (),
        most: int = 256,
    ) -> None:
        self._answer = answer
        self._proxies = proxies
        self._server = BoundedServer(self._handle, most, refusals.count)

    async def open(self, host: str, port: int) -> int:
        """Listen as :class:`BoundedServer`, with CrawlError for OSError; return the port."""
        try:
            return (await self._server.open(host, port))[1]
        except OSError as error:
            why = error.strerror or str(error)
            raise CrawlError(
                f"receiver.listen: cannot listen at {host}:{port}: {why}; name another place"
            ) from error

    async def close(self) -> None:
        """Stop listening, and close all connections."""
        await self._server.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            reply = await self._answer(self._pushed(request))
        except Exception:  # the next request must be answered after any error
            log.exception("a pushed request could not be answered")
            reply = PushResponse(500)
        headers = {"X-Content-Type-Options": "nosniff"}
        if reply.status in {429, 503}:
            headers["Retry-After"] = str(_RETRY_AFTER_S)
        return web.Response(
            status=reply.status, text=reply.body, content_type="text/plain", headers=headers
        )

    def _pushed(self, request: web.BaseRequest) -> PushRequest:
        async def read(most: int) -> bytes | None:
            try:
                async with asyncio.timeout(_BODY_S):
                    return await _bounded(request, most)
            except web.RequestPayloadError as error:
                raise ConnectionError("the body contradicts its headers") from error

        headers = {name.lower(): value for name, value in request.headers.items()}
        return PushRequest(
            method=request.method, path=request.path, query=request.query, headers=headers,
            length=request.content_length, read=read,
            source=self._source(request.remote or "", headers.get("x-forwarded-for", "")),
        )  # fmt: skip

    def _source(self, peer: str, forwarded: str) -> str:
        """Return the sender of a request: a trusted proxy names it in the header's last place."""
        if not forwarded or not self._proxies:
            return peer
        try:
            address = ip_address(peer)
        except ValueError:
            return peer
        if not any(address in network for network in self._proxies):
            return peer
        return forwarded.rpartition(",")[2].strip()[:64] or peer


async def _bounded(request: web.BaseRequest, most: int) -> bytes | None:
    parts, size = [], 0
    async for chunk in request.content.iter_any():
        size += len(chunk)
        if size > most:
            return None
        parts.append(chunk)
    return b"".join(parts)
