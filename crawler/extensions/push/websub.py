"""Subscriptions to hubs as a state machine (W3C WebSub, sections 5 and 6).

Invariant: a hub's verification is confirmed only for a pending request of this side with the same
mode and topic. Consequence: no other party can subscribe us, or end our subscriptions.

The time is an argument, in Unix seconds, and ``mint`` gives unguessable tokens. Methods return the
new state of a subscription where something is to be stored.
"""

import asyncio
import hashlib
import hmac
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Final, TypeAlias
from urllib.parse import urlencode

from freshet.crawler.admission.admit import Admission
from freshet.crawler.errors import ParserLost
from freshet.crawler.extensions.push.hints import hint, in_scope
from freshet.crawler.extensions.push.tables import (
    Subscription,
    SubscriptionChange,
    SubscriptionState,
)
from freshet.crawler.fetch.bounds import meet
from freshet.crawler.frontier.frontier import ApiRequest, Frontier
from freshet.crawler.frontier.politeness import HostQueues
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.reduce.sitemaps import looks_like
from freshet.crawler.service.senders import Buckets, Inbox
from freshet.crawler.urls import origin
from freshet.storage.entries import Claim, HubLink, SourceReport
from freshet.storage.records import Acknowledged, Entry, FetchResult, StoreUpdate, Visit

_HOUR_S: Final = 3_600.0
_DAY_S: Final = 24 * _HOUR_S
#: Time for a hub to verify a request; then the request is repeated.
_PENDING_S: Final = _HOUR_S
#: The share of a lease after which it is renewed.
_RENEWED_AT: Final = 0.8
#: Bounds on a hub's lease: a shorter one is renewed after this at the earliest, since the requests
#: are charged to the budget and go before pages.
_LEAST_RENEWAL_S: Final = 6 * _HOUR_S
_LONGEST_LEASE_S: Final = 365 * _DAY_S
_BACK_OFF_S: Final = _HOUR_S
_BACK_OFF_MOST_S: Final = 7 * _DAY_S
_DENIED_S: Final = 7 * _DAY_S
#: A page may change its hub once a day.
_MOVED_AGAIN_S: Final = _DAY_S
_FAREWELLS: Final = 3
#: Successive redirects of a hub that are followed at once.
_HOPS: Final = 3


class Leases:
    """All subscriptions, by the token in their callback.

    ``lease_s`` is the lease to request; ``most`` limits the subscriptions in all, ``of_a_host`` per
    host.
    """

    def __init__(
        self, mint: Callable[[], str], stored: Iterable[Subscription] = (), *,
        lease_s: float = 10 * _DAY_S, most: int = 1_000, of_a_host: int = 20,
    ) -> None:  # fmt: skip
        self._mint = mint
        self._lease_s = lease_s
        self._most = most
        self._at_most_of_a_host = of_a_host
        self._by_token = {each.token: each for each in stored}
        self._by_page = {each.page_id: each.token for each in self._by_token.values()}
        self._of_host = Counter(each.host_id for each in self._by_token.values())
        self._moved_at: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._by_token)

    def of(self, token: str) -> Subscription | None:
        """Return the subscription with this token in its callback."""
        return self._by_token.get(token)

    def urls(self) -> list[str]:
        """Return the subscribed pages."""
        return [each.url for each in self._by_token.values()]

    # -- wanted subscriptions ----------------------------------------------------

    def advertised(
        self, page_id: int, host_id: int, url: str, said: HubLink, now: float
    ) -> Subscription | None:
        """Return the new subscription for a page's hub, if it is new or another hub than before."""
        token = self._by_page.get(page_id)
        if token is not None:
            return self._moved(self._by_token[token], said, now)
        if len(self) >= self._most or self._of_host[host_id] >= self._at_most_of_a_host:
            return None
        self._of_host[host_id] += 1
        return self._new(page_id, host_id, url, said, now)

    def _new(self, page_id: int, host_id: int, url: str, said: HubLink, now: float) -> Subscription:
        self._by_page[page_id] = token = self._mint()
        new = Subscription(
            page_id, host_id, url, hub=said.hub, topic=said.topic, token=token,
            secret=self._mint(), next_at=now,
        )  # fmt: skip
        return self.put(new)

    def _moved(self, known: Subscription, said: HubLink, now: float) -> Subscription | None:
        if known.state == "leaving" or said == HubLink(known.hub, known.topic):
            return None
        if now < self._moved_at.get(known.page_id, -_MOVED_AGAIN_S) + _MOVED_AGAIN_S:
            return None
        self._moved_at[known.page_id] = now
        # The former hub's secret must be of no use with another.
        del self._by_token[known.token]
        return self._new(known.page_id, known.host_id, known.url, said, now)

    def leave(self, is_wanted: Callable[[str], bool], now: float) -> list[Subscription]:
        """End the subscriptions of unwanted pages, and resume the others."""
        changed = []
        for each in list(self._by_token.values()):
            leaving = each.state == "leaving"
            if is_wanted(each.url) is leaving:
                state: SubscriptionState = "wanted" if leaving else "leaving"
                changed.append(self.put(replace(each, state=state, next_at=now, failures=0)))
        return changed

    # -- asking hubs -------------------------------------------------------------

    def due(self, now: float) -> list[Subscription]:
        """Return the subscriptions with a due request to the hub, the longest due first."""
        found = [each for each in self._by_token.values() if each.next_at <= now]
        return sorted(found, key=lambda each: (each.next_at, each.page_id))

    def requested(self, token: str, now: float) -> Subscription:
        """Record a request to the hub: from now on it may verify, also before it has answered.

        Whatever it answers, the next request waits for a pause that grows until it verifies.
        """
        known = self._by_token[token]
        failures = known.failures + 1
        new = replace(
            known, pending_until=now + _PENDING_S, failures=failures,
            next_at=now + min(_BACK_OFF_MOST_S, _BACK_OFF_S * 4.0 ** min(failures - 1, 8)),
        )  # fmt: skip
        return self.put(new)

    def answered(
        self, token: str, now: float, failure: str | None, moved_to: str | None = None
    ) -> Subscription | None:
        """Record the hub's answer to the request: accepted, moved, or a failure with its reason.

        None if the subscription has ended since, or the store need not change.
        """
        known = self._by_token.get(token)
        if known is None or (failure is None and moved_to is None):
            return None
        follow = moved_to is not None and known.failures <= _HOPS
        new = replace(
            known, hub=moved_to or known.hub, next_at=now if follow else known.next_at,
            pending_until=None, detail=failure,
        )  # fmt: skip
        return self.put(new)

    def has_ended(self, subscription: Subscription) -> bool:
        """Return whether the unsubscription was confirmed or sent often enough: leases run out."""
        return subscription.state == "leaving" and subscription.failures >= _FAREWELLS

    def forget(self, token: str) -> None:
        """Remove a subscription."""
        gone = self._by_token.pop(token)
        del self._by_page[gone.page_id]
        self._of_host[gone.host_id] -= 1

    # -- answers of hubs ---------------------------------------------------------

    def verified(
        self, token: str, mode: str, topic: str, lease_s: float | None, now: float
    ) -> Subscription | None:
        """Confirm a hub's verification; None without such a request.

        ``lease_s`` is the hub's grant, None if it is not stated, as for an unsubscription.
        """
        known = self._by_token.get(token)
        if known is None or topic != known.topic or mode != _mode(known):
            return None
        if known.pending_until is None or now > known.pending_until:
            return None
        if mode == "unsubscribe":
            return replace(known, state="leaving", failures=_FAREWELLS)
        lease_s = min(self._lease_s if lease_s is None else lease_s, _LONGEST_LEASE_S)
        if not lease_s > 0:
            return None
        if _RENEWED_AT * lease_s < _LEAST_RENEWAL_S:
            meet("renewals of a subscription", known.hub)
        new = replace(
            known, state="active", pending_until=None,
            lease_until=now + lease_s, failures=0, detail=None,
            next_at=now + max(_RENEWED_AT * lease_s, _LEAST_RENEWAL_S),
        )  # fmt: skip
        return self.put(new)

    def denied(self, token: str, topic: str, reason: str, now: float) -> Subscription | None:
        """Record a hub's denial, at once or later; None if the subscription is unknown."""
        known = self._by_token.get(token)
        if known is None or topic != known.topic:
            return None
        failures = known.failures + 1
        new = replace(
            known, state="denied", pending_until=None, lease_until=None,
            failures=failures, detail=reason or "the hub gave no reason",
            next_at=now + _DENIED_S * min(failures, 8),
        )  # fmt: skip
        return self.put(new)

    def request(self, subscription: Subscription, callback: str) -> dict[str, str]:
        """Return the form fields of the request to the hub."""
        fields = {
            "hub.callback": callback,
            "hub.mode": _mode(subscription),
            "hub.topic": subscription.topic,
        }
        if subscription.state != "leaving":
            fields["hub.lease_seconds"] = f"{self._lease_s:.0f}"
            if signs(subscription):
                fields["hub.secret"] = subscription.secret
        return fields

    def put(self, subscription: Subscription) -> Subscription:
        """Store the state of a known subscription."""
        self._by_token[subscription.token] = subscription
        return subscription


def signs(subscription: Subscription) -> bool:
    """Return whether the hub knows a secret: over plain http anyone on the way would read it."""
    return subscription.hub.lower().startswith("https:")


def is_live(subscription: Subscription, now: float) -> bool:
    """Return whether the hub may send: the lease runs, until its very end."""
    return subscription.lease_until is not None and now <= subscription.lease_until


def _mode(subscription: Subscription) -> str:
    return "unsubscribe" if subscription.state == "leaving" else "subscribe"


# -- subscriber --------------------------------------------------------------
# A notification is a hint: its page is worth a visit. A hub with a valid secret may send anything:
# its body is not trusted. It is read out of the event loop's process, one at a time, and of a feed
# only the URLs of possible pages; no page is missed, because the topic itself is fetched.

log = logging.getLogger(__name__)

#: Of a subscription one body is read in five minutes.
_READ: Final = (1.0, 1.0 / 300.0)
_PREFIX_BYTES: Final = 2_048
#: Entries of a longer feed that are read, from its front, where new entries are.
_ENTRIES: Final = 500
#: Concurrent API requests of any kind: subscriptions are never urgent.
_CALLS: Final = 8
_MOVED: Final = frozenset({307, 308})
#: Time out of scope after which a subscription ends: seeds may be undecided.
_SCOPE_EVERY_S: Final = 3_600.0


@dataclass(slots=True, eq=False)
class Subscriber:
    """Shell over :class:`Leases`; ``callback_base`` is the URL before the token."""

    leases: Leases
    frontier: Frontier
    admission: Admission
    inbox: Inbox
    parser: Parser
    queues: HostQueues
    callback_base: str
    _reads: Buckets = field(default_factory=lambda: Buckets(*_READ, room=10_000), init=False)
    _reading: asyncio.Task[None] | None = field(default=None, init=False)
    _scope_at: float | None = field(default=None, init=False)
    _outside: frozenset[str] = field(default=frozenset(), init=False)
    #: By page, the time of a notification that no visit has answered yet.
    _unanswered: dict[int, float] = field(default_factory=dict, init=False)

    def acknowledged(self, batch: Sequence[Acknowledged]) -> None:
        """Note committed visits: some pages may have named their hub."""
        for each in batch:
            visit = each.entry
            if not isinstance(visit, Visit):
                continue
            due, at = visit.due, visit.observation.at
            if at >= self._unanswered.get(due.page_id, inf):
                del self._unanswered[due.page_id]
            if (said := visit.advertised) is not None:
                new = self.leases.advertised(due.page_id, due.host_id, due.url, said, at)
                if new is not None:
                    self.inbox.post(StoreUpdate(at, change=SubscriptionChange(new)))

    async def ask(self, now: float) -> list[Entry]:
        """Send the requests that are due to hubs; return what to store before that."""
        self._look_at_scope(now)
        noted: list[Entry] = []
        for each in self.leases.due(now):
            if self.leases.has_ended(each):
                self.leases.forget(each.token)
                noted.append(StoreUpdate(now, change=SubscriptionChange(each, True)))
            elif self.frontier.api_requests < _CALLS:
                requested = self.leases.requested(each.token, now)
                to = await self.queues.queue_key(each.hub)
                form = urlencode(self.leases.request(requested, self.callback_base + each.token))
                answered = partial(self._answered, each.token)
                self.frontier.queue(ApiRequest(each.hub, to, answered, form))
                noted.append(StoreUpdate(now, change=SubscriptionChange(requested)))
        return noted

    def _answered(self, token: str, result: FetchResult, now: float) -> list[Entry]:
        is_moved = result.outcome == "redirected" and result.status in _MOVED
        moved_to = result.location if is_moved else None
        accepted = result.status is not None and 200 <= result.status < 300
        failure = None if accepted else result.detail or result.reason
        known = self.leases.of(token)
        if failure is not None and moved_to is None and known is not None:
            log.info("the hub %s of %s: %s", known.hub, known.url, failure)
        noted = self.leases.answered(token, now, failure, moved_to)
        return [] if noted is None else [StoreUpdate(now, change=SubscriptionChange(noted))]

    def _look_at_scope(self, now: float) -> None:
        if self._scope_at is not None and now < self._scope_at + _SCOPE_EVERY_S:
            return
        self._scope_at = now
        before, urls = self._outside, self.leases.urls()
        self._outside = frozenset(url for url in urls if not in_scope(self.admission, url))
        gone = before & self._outside
        for each in self.leases.leave(lambda url: url not in gone, now):
            self.inbox.post(StoreUpdate(now, change=SubscriptionChange(each)))

    async def verify(
        self, token: str, mode: str, topic: str, lease_s: float | None, now: float
    ) -> bool | None:
        """Return whether the hub's verification is right; None: right, but not storable now."""
        before = self.leases.of(token)
        noted = self.leases.verified(token, mode, topic, lease_s, now)
        if noted is None or before is None:
            return False
        ended = mode == "unsubscribe"
        if await self.inbox.commit(StoreUpdate(now, change=SubscriptionChange(noted, ended))):
            if ended and self.leases.of(token) is not None:
                self.leases.forget(token)
            return True
        if self.leases.of(token) is not None:
            # The hub takes silence for a no; it may send the request again.
            self.inbox.post(StoreUpdate(now, change=SubscriptionChange(self.leases.put(before))))
        return None

    def deny(self, token: str, topic: str, reason: str, now: float) -> bool:
        """Handle a denial; return whether it concerns one of our subscriptions."""
        noted = self.leases.denied(token, topic, reason, now)
        if noted is None:
            return False
        log.info("the hub %s denies %s: %s", noted.hub, topic, noted.detail)
        self.inbox.post(StoreUpdate(now, change=SubscriptionChange(noted)))
        return True

    async def notified(self, known: Subscription, now: float) -> bool:
        """Handle a notification that the topic has changed; return whether it is kept.

        Until a visit has answered it, further ones add no information.
        """
        if known.page_id in self._unanswered:
            return True
        said = SourceReport("websub", known.host_id, known.topic, (Claim(known.url, now, now),))
        is_kept = await self.inbox.commit(StoreUpdate(now, said=said))
        if is_kept:
            self._unanswered[known.page_id] = now
        return is_kept

    def read(self, known: Subscription, body: bytes, now: float) -> None:
        """Read a pushed feed for its URLs, unless too many are waiting."""
        is_busy = self._reading is not None and not self._reading.done()
        if is_busy or looks_like(body[:_PREFIX_BYTES]) != "feed":
            return
        if self._reads.take(known.page_id, now):
            self._reading = asyncio.create_task(self._read(known, body, now))

    async def _read(self, known: Subscription, body: bytes, now: float) -> None:
        """Announce the entries of a pushed feed: possible new pages of the topic's own host."""
        try:
            feed = await self.parser.parse_feed(body, known.topic)
        except ParserLost:
            return
        if isinstance(feed, Unparsable):
            return
        home = origin(known.url)
        urls = [url for url in feed.links.fetch_urls if origin(url) == home]
        found = hint(
            self.admission, "websub", known.host_id, known.topic, urls=urls[:_ENTRIES],
            at=now, changed=False,
        )  # fmt: skip
        if len(found.targets):
            self.inbox.post(found)

    async def close(self) -> None:
        """Cancel the reading under way."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])


# -- signatures --------------------------------------------------------------
# W3C WebSub, section 7.1.

_METHODS: Final = frozenset({"sha1", "sha256", "sha384", "sha512"})
_FORM: Final = re.compile(r"\s*([A-Za-z0-9]{1,16})=([0-9A-Fa-f]{1,128})\s*")

#: The name of a hash and the digest of the body under it, from the header.
Signature: TypeAlias = tuple[str, bytes]


def parse_signature(header: str | None) -> Signature | None:
    """Parse an ``X-Hub-Signature`` header; None if it is malformed or its hash unknown."""
    match = _FORM.fullmatch(header or "")
    if match is None or match[1].lower() not in _METHODS or len(match[2]) % 2:
        return None
    method, digest = match[1].lower(), bytes.fromhex(match[2])
    return (method, digest) if len(digest) == hashlib.new(method).digest_size else None


def is_authentic(secret: str, body: bytes, signature: Signature) -> bool:
    """Return whether the body's signer knows the secret, in constant time."""
    method, digest = signature
    return hmac.compare_digest(hmac.digest(secret.encode(), body, method), digest)
