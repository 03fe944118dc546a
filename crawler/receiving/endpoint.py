"""What is answered to whom: the callbacks of subscriptions, and pings.

Refusing must be cheaper than asking. Hence the order: what the path and the headers say, then
what the sender has used up, and a body last, for those who may know something. What is unknown
or forged is counted and told once a minute, never logged by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from freshet.crawler.receiving.buckets import Buckets, Flow
from freshet.crawler.receiving.bulletins import Bulletins
from freshet.crawler.receiving.leases import is_live
from freshet.crawler.receiving.pinging import Pinging
from freshet.crawler.receiving.pings import PingRefused, from_json, from_query
from freshet.crawler.receiving.refusals import Refusals
from freshet.crawler.receiving.signatures import is_authentic, parse_signature
from freshet.crawler.receiving.subscriber import Subscriber
from freshet.storage.entries import Subscription, SubscriptionState

_WEBSUB: Final = "/websub/"
_PING: Final = "/indexnow"
#: Refused pings of one address: so many at once, then one in two seconds.
_PATIENCE: Final = Flow(20.0, 0.5)
#: Bytes of the bodies of pings, which anybody may send, from all addresses together.
_BYTES: Final = Flow(2.0 * 2**20, 2.0 * 2**20)
#: Notifications of one subscription.
_NOTIFICATIONS: Final = Flow(60.0, 1.0)
_ADDRESSES: Final = 4_096
#: Bodies that are read at once: of those who know a callback, and of pings, one of an address.
_BODIES: Final = 16
_RETRY_AFTER_S: Final = 60


@dataclass(frozen=True, slots=True)
class Pushed:
    """A request. ``headers`` are by lower-case name, ``length`` is what Content-Length says.

    ``read`` gives the body, None where it is longer than the given number of bytes.

    Raises (``read``):
        TimeoutError: the body did not come in time.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    length: int | None
    source: str
    read: Callable[[int], Awaitable[bytes | None]]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; ``retry`` says that it may be tried again later."""

    status: int
    body: str = ""
    retry: bool = False

    @property
    def retry_after_s(self) -> int | None:
        """When to try again, in seconds."""
        return _RETRY_AFTER_S if self.retry else None


class Refused(Exception):
    """The request is refused: what to answer, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.reply = Reply(status, why, retry=status in {429, 503})
        self.why = why


class Endpoint:
    """Answers requests. ``subscriber`` is None where no hub could reach us."""

    def __init__(
        self,
        subscriber: Subscriber | None,
        pinging: Pinging,
        bulletins: Bulletins,
        refusals: Refusals,
        now: Callable[[], float],
        *,
        max_body_bytes: int,
    ) -> None:
        self._subscriber = subscriber
        self._pinging = pinging
        self._bulletins = bulletins
        self._refusals = refusals
        self._now = now
        self._max_body_bytes = max_body_bytes
        self._patience = Buckets(_PATIENCE, _ADDRESSES)
        self._bytes = Buckets(_BYTES, 1)
        self._notifications = Buckets(_NOTIFICATIONS, 10_000)
        self._reading: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}

    async def answer(self, pushed: Pushed) -> Reply:
        """Answer a request, whatever it is."""
        try:
            return await self._routed(pushed)
        except Refused as refused:
            self._refusals.count(refused.why, pushed.source)
            return refused.reply

    async def _routed(self, pushed: Pushed) -> Reply:
        _, found, token = pushed.path.rpartition(_WEBSUB)
        if found:
            return await self._callback(token, pushed)
        if pushed.path.endswith(_PING):
            return await self._ping(pushed)
        raise Refused(404, "unknown path")

    # -- callbacks of subscriptions ----------------------------------------------

    async def _callback(self, token: str, pushed: Pushed) -> Reply:
        known = self._subscriber.leases.of(token) if self._subscriber is not None else None
        if known is None or self._subscriber is None:
            raise Refused(404, "unknown callback")
        if pushed.method == "GET":
            return await self._verified(self._subscriber, token, pushed.query)
        if pushed.method == "POST":
            return await self._notified(self._subscriber, known, pushed)
        raise Refused(405, "unknown method")

    async def _verified(
        self, subscriber: Subscriber, token: str, query: Mapping[str, str]
    ) -> Reply:
        mode, topic = query.get("hub.mode", ""), query.get("hub.topic", "")
        if mode == "denied":
            if subscriber.deny(token, topic, query.get("hub.reason", "")[:200], self._now()):
                return Reply(200)
            raise Refused(404, "denial of another topic")
        challenge = query.get("hub.challenge")
        if not challenge:
            raise Refused(400, "verification without a challenge")
        lease_s = _seconds(query.get("hub.lease_seconds"))
        is_asked = await subscriber.verify(token, mode, topic, lease_s, self._now())
        if is_asked is None:
            raise Refused(503, "the store is busy")
        if not is_asked:
            raise Refused(404, "verification of what was not asked for")
        return Reply(200, challenge)

    async def _notified(self, subscriber: Subscriber, known: Subscription, pushed: Pushed) -> Reply:
        now = self._now()
        if known.state is SubscriptionState.LEAVING or not is_live(known, now):
            raise Refused(410, "notification without a lease")
        self._check_size(pushed)
        signature = parse_signature(pushed.headers.get("x-hub-signature"))
        if signature is None:
            # As the recommendation says: received, and of no effect.
            raise Refused(202, "notification without a signature")
        if not self._notifications.take(known.page_id, now):
            raise Refused(429, "too many notifications")
        body = await self._body(pushed, is_callback=True)
        if not is_authentic(known.secret, body, signature):
            raise Refused(202, "wrong signature")
        if not await subscriber.notified(known, now):
            raise Refused(503, "the store is busy")
        self._bulletins.read(subscriber, known, body)
        return Reply(202)

    # -- pings -------------------------------------------------------------------

    async def _ping(self, pushed: Pushed) -> Reply:
        now = self._now()
        if self._patience.level(pushed.source, now) < 1.0:
            raise Refused(429, "too many refused pings")
        try:
            return await self._heard(pushed, now)
        except Refused as refused:
            if refused.reply.status != 503:
                self._patience.take(pushed.source, now)
            raise

    async def _heard(self, pushed: Pushed, now: float) -> Reply:
        try:
            if pushed.method == "GET":
                return Reply(await self._pinging.heard(from_query(pushed.query), now))
            if pushed.method != "POST":
                raise Refused(405, "unknown method")
            self._check_size(pushed)
            size = self._max_body_bytes if pushed.length is None else pushed.length
            if not self._bytes.take(None, now, size):
                raise Refused(429, "too many bytes of pings")
            ping = from_json(await self._body(pushed, is_callback=False))
            return Reply(await self._pinging.heard(ping, now))
        except PingRefused as refused:
            raise Refused(refused.status, f"ping: {refused.why}") from refused

    # -- bodies ------------------------------------------------------------------

    def _check_size(self, pushed: Pushed) -> None:
        if (pushed.length or 0) > self._max_body_bytes:
            raise Refused(413, "too large a body")
        if pushed.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refused(415, "encoded body")

    async def _body(self, pushed: Pushed, *, is_callback: bool) -> bytes:
        """The body; who sends slowly holds up only himself and others who may know nothing."""
        reading, source = self._reading[is_callback], pushed.source
        of_address = _BODIES if is_callback else 1
        if reading.total() >= _BODIES or reading[source] >= of_address:
            raise Refused(429, "too many bodies at once")
        reading[source] += 1
        try:
            body = await pushed.read(self._max_body_bytes)
        except TimeoutError as error:
            self._patience.drain(source, self._now())
            raise Refused(408, "too slow a body") from error
        except ConnectionError as error:
            raise Refused(400, "broken body") from error
        finally:
            reading[source] -= 1
            if not reading[source]:
                del reading[source]
        if body is None:
            raise Refused(413, "too large a body")
        return body


def _seconds(text: str | None) -> float | None:
    """A number of seconds; None where nothing is said, 0 where it is no number."""
    if text is None:
        return None
    return float(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0.0
