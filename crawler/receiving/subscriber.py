"""The subscriber of WebSub: hubs are asked politely, verify, and say when a topic has changed.

A notification is a hint: its page is worth a look. Its body is believed in nothing; of a feed it
is read which pages there may be.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final
from urllib.parse import urlencode

from freshet.crawler.calling import Calls
from freshet.crawler.receiving.hints import Hints
from freshet.crawler.receiving.inbox import Inbox
from freshet.crawler.receiving.leases import Leases
from freshet.storage.entries import Claim, ClaimKind, Subscription, SubscriptionNoted
from freshet.storage.records import Acknowledged, Announcement, Entry, FetchResult, Visit
from freshet.storage.words import Outcome

log = logging.getLogger(__name__)

#: Calls at once, of whatever kind: subscriptions are never urgent.
_CALLS: Final = 8
_MOVED: Final = frozenset({307, 308})
#: What has left the scope is left when it is out of it for so long: seeds may be undecided.
_SCOPE_EVERY_S: Final = 3_600.0


class Subscriber:
    """Shell over :class:`Leases`; ``callback_base`` is the URL before the token."""

    def __init__(
        self,
        leases: Leases,
        calls: Calls,
        hints: Hints,
        inbox: Inbox,
        lane_key: Callable[[str], Awaitable[str]],
        callback_base: str,
    ) -> None:
        self.leases = leases
        self._calls = calls
        self._hints = hints
        self._inbox = inbox
        self._lane_key = lane_key
        self._callback_base = callback_base
        self._scope_at: float | None = None
        self._outside: frozenset[str] = frozenset()

    def told(self, batch: Sequence[Acknowledged]) -> None:
        """Visits have committed: some pages may have named their hub."""
        for each in batch:
            visit = each.entry
            if isinstance(visit, Visit) and visit.advertised is not None:
                due, at = visit.due, visit.observation.at
                new = self.leases.advertised(
                    due.page_id, due.host_id, due.url, visit.advertised, at
                )
                if new is not None:
                    self._inbox.post(SubscriptionNoted(new, at))

    async def ask(self, now: float) -> list[Entry]:
        """Ask the hubs whose time has come; what is to be noted before that."""
        self._look_at_scope(now)
        noted: list[Entry] = []
        for each in self.leases.due(now):
            if self.leases.has_ended(each):
                self.leases.forget(each.token)
                noted.append(SubscriptionNoted(each, now, ended=True))
            elif len(self._calls) < _CALLS:
                asked = self.leases.asked(each.token, now)
                lane = await self._lane_key(each.hub)
                form = urlencode(self.leases.request(asked, self._callback_base + each.token))
                self._calls.place(lane, each.hub, partial(self._answered, each.token), form=form)
                noted.append(SubscriptionNoted(asked, now))
        return noted

    def _answered(self, token: str, result: FetchResult, now: float) -> list[Entry]:
        moved_to = None
        if result.outcome is Outcome.REDIRECTED and result.status in _MOVED:
            moved_to = result.location
        accepted = result.status is not None and 200 <= result.status < 300
        failure = None if accepted else result.detail or result.reason
        known = self.leases.of(token)
        if failure is not None and moved_to is None and known is not None:
            log.info("the hub %s of %s: %s", known.hub, known.url, failure)
        noted = self.leases.answered(token, now, failure, moved_to)
        return [] if noted is None else [SubscriptionNoted(noted, now)]

    def _look_at_scope(self, now: float) -> None:
        if self._scope_at is not None and now < self._scope_at + _SCOPE_EVERY_S:
            return
        self._scope_at = now
        urls = self.leases.urls()
        before, self._outside = self._outside, frozenset(
            url for url in urls if not self._hints.contains(url)
        )  # fmt: skip
        gone = before & self._outside
        for each in self.leases.leave(lambda url: url not in gone, now):
            self._inbox.post(SubscriptionNoted(each, now))

    async def verify(
        self, token: str, mode: str, topic: str, lease_s: float | None, now: float
    ) -> bool | None:
        """Whether the hub asks for what it was asked for; None: yes, but it cannot be noted now."""
        before = self.leases.of(token)
        noted = self.leases.verified(token, mode, topic, lease_s, now)
        if noted is None or before is None:
            return False
        ended = mode == "unsubscribe"
        if await self._inbox.commit(SubscriptionNoted(noted, now, ended=ended)):
            if ended and self.leases.of(token) is not None:
                self.leases.forget(token)
            return True
        if self.leases.of(token) is not None:
            # The hub takes the silence for a no; it may ask again.
            self._inbox.post(SubscriptionNoted(self.leases.put(before), now))
        return None

    def deny(self, token: str, topic: str, reason: str, now: float) -> bool:
        """The hub denies; whether that is about something of ours."""
        noted = self.leases.denied(token, topic, reason, now)
        if noted is None:
            return False
        log.info("the hub %s denies %s: %s", noted.hub, topic, noted.detail)
        self._inbox.post(SubscriptionNoted(noted, now))
        return True

    async def notified(self, known: Subscription, now: float) -> bool:
        """The hub says that the topic has changed; whether that is kept."""
        hint = Announcement(
            ClaimKind.WEBSUB, known.host_id, known.topic, (Claim(known.url, now, now),), now
        )
        return await self._inbox.commit(hint)

    def lists(self, known: Subscription, urls: Sequence[str], now: float) -> None:
        """Entries of a feed that was sent: pages that may be new, of the topic's own host."""
        found = self._hints.of_pages(
            ClaimKind.WEBSUB, known.host_id, known.topic, urls, now, changed=False
        )
        if found.targets is not None and len(found.targets):
            self._inbox.post(found)
