"""Pings: heard, held until their key is verified, and passed on as hints.

A key is asked for as politely as a page, and only of hosts that are known and in scope; who is
not known is refused without a request. What waits for its key is held in memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from freshet.crawler.calling import Calls
from freshet.crawler.frontier import Frontier
from freshet.crawler.receiving.buckets import Buckets, Flow
from freshet.crawler.receiving.hints import Hints
from freshet.crawler.receiving.inbox import Inbox
from freshet.crawler.receiving.key_book import KeyBook, KeyPlace, Standing, holds_key
from freshet.crawler.receiving.pings import MAX_URLS, Ping, PingRefused
from freshet.storage.entries import ClaimKind
from freshet.storage.records import Entry, FetchResult
from freshet.storage.words import Outcome

#: URLs in one announcement: some 5 ms of work.
_SLICE: Final = 250
#: URLs of one host: a full list at once, and as many again every day.
_URLS: Final = Flow(2.0 * MAX_URLS, MAX_URLS / 43_200.0)
#: URLs that wait for their keys, in all.
_HELD: Final = 100_000
#: A key that cannot even be asked for by then is given up.
_ASKED_WITHIN_S: Final = 600.0


@dataclass(slots=True)
class _Held:
    """Pings that wait for a key; ``is_asked``: it is on its way."""

    origin: str
    since: float
    urls: dict[str, None] = field(default_factory=dict)
    is_asked: bool = False


class Pinging:
    """Shell over :class:`KeyBook`."""

    def __init__(self, frontier: Frontier, calls: Calls, hints: Hints, inbox: Inbox) -> None:
        self._frontier = frontier
        self._calls = calls
        self._hints = hints
        self._inbox = inbox
        self.book = KeyBook()
        self._held: dict[KeyPlace, _Held] = {}
        self._verified: deque[tuple[int, str, Sequence[str]]] = deque()
        self._urls = Buckets(_URLS, 10_000)

    async def heard(self, ping: Ping, now: float) -> int:
        """Take in a ping; the status to answer.

        Raises:
            PingRefused: it does not count.
        """
        known = self._frontier.host_of(ping.origin)
        if known is None or not any(map(self._hints.contains, ping.urls[:_SLICE])):
            raise PingRefused(422, "a host that is not watched")
        place = KeyPlace(known[0], ping.key, ping.location)
        standing = self.book.standing(place, now)
        if standing is Standing.INVALID:
            raise PingRefused(403, "wrong key")
        if standing is Standing.UNKNOWN:
            self._hold(place, ping, now)
            return 202
        self._count(place, len(ping.urls), now)
        for first in range(0, len(ping.urls), _SLICE):
            urls = ping.urls[first : first + _SLICE]
            hint = self._hints.of_pages(ClaimKind.PING, place.host_id, ping.origin, urls, now)
            if not await self._inbox.commit(hint):
                raise PingRefused(503, "the store is busy")
        return 200

    def _hold(self, place: KeyPlace, ping: Ping, now: float) -> None:
        held = self._held.get(place)
        room = _HELD - sum(len(each.urls) for each in self._held.values())
        if len(ping.urls) > room:
            raise PingRefused(429, "too many unverified")
        if held is None:
            if not self.book.may_ask(place, now):
                raise PingRefused(429, "too many keys of a host")
            held = self._held[place] = _Held(ping.origin, now)
        if len(held.urls) + len(ping.urls) > MAX_URLS:
            raise PingRefused(429, "too many unverified")
        held.urls.update(dict.fromkeys(ping.urls))

    def _count(self, place: KeyPlace, urls: int, now: float) -> None:
        if not self._urls.take(place.host_id, now, urls):
            raise PingRefused(429, "too many URLs of a host")

    def ask(self, now: float) -> list[Entry]:
        """Ask for the keys that can be asked for; the hints of those that have proved right."""
        for place, held in list(self._held.items()):
            if held.is_asked:
                continue
            allowed = self._frontier.permits(place.host_id, place.location, now)
            lane = self._frontier.host_of(held.origin)
            if allowed and lane is not None:
                held.is_asked = True
                self._calls.place(lane[1], place.location, partial(self._answered, place))
            elif allowed is False or now > held.since + _ASKED_WITHIN_S:
                self._settle(place, now, is_valid=None)
        return self._released(now)

    def _answered(self, place: KeyPlace, result: FetchResult, now: float) -> list[Entry]:
        is_there = result.outcome is Outcome.FETCHED
        is_missing = result.outcome is Outcome.GONE or result.status in (401, 403)
        known = is_there or is_missing
        is_right = is_there and holds_key(result.body, place.key)
        self._settle(place, now, is_valid=is_right if known else None)
        return []

    def _settle(self, place: KeyPlace, now: float, *, is_valid: bool | None) -> None:
        self.book.settle(place, now, is_valid=is_valid)
        held = self._held.pop(place)
        if is_valid and self._urls.take(place.host_id, now, len(held.urls)):
            self._verified.append((place.host_id, held.origin, tuple(held.urls)))

    def _released(self, now: float) -> list[Entry]:
        """A slice of what waited: what has committed brings the pool's next turn, and the next."""
        if not self._verified:
            return []
        host_id, origin, urls = self._verified.popleft()
        if len(urls) > _SLICE:
            self._verified.appendleft((host_id, origin, urls[_SLICE:]))
        return [self._hints.of_pages(ClaimKind.PING, host_id, origin, urls[:_SLICE], now)]
