"""IndexNow pings: changed URLs, and the keys that authorise them.

The protocol is that of indexnow.org: one URL in a query, or up to 10,000 of one host in JSON.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from freshet.crawler.frontier import Frontier
from freshet.crawler.lru import LruCache
from freshet.crawler.push.hints import Buckets, Flow, Hints, Inbox
from freshet.crawler.requests import ApiRequests
from freshet.crawler.urls import origin, without_fragment
from freshet.storage.entries import Outcome
from freshet.storage.records import Entry, FetchResult

MAX_URLS: Final = 10_000
_MAX_URL: Final = 4_096
_KEY: Final = re.compile(r"[A-Za-z0-9-]{8,128}")


class PingRefused(Exception):
    """A ping that is not accepted: the ``status`` of the answer, and the reason in a few words."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


@dataclass(frozen=True, slots=True)
class Ping:
    """URLs of one origin that are said to have changed.

    ``location`` is where the key must stand for the ping to count; ``urls`` are as written.
    """

    origin: str
    key: str
    location: str
    urls: tuple[str, ...]

    @property
    def authority(self) -> str:
        """Return the directory of the key: it speaks for URLs below it."""
        return self.location[: self.location.rindex("/") + 1]


def from_query(query: Mapping[str, str]) -> Ping:
    """Read the ping of a GET request.

    Raises:
        PingRefused: it is not valid.
    """
    if not query.get("url") or not query.get("key"):
        raise PingRefused(400, "no url or no key")
    return _ping(None, query["key"], query.get("keyLocation"), (query["url"],))


def from_json(body: bytes) -> Ping:
    """Read the ping of a POST request.

    Raises:
        PingRefused: it is not valid.
    """
    try:
        said = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise PingRefused(400, "not JSON") from error
    if not isinstance(said, dict):
        raise PingRefused(400, "no JSON object")
    host, key, location = (_text(said, name) for name in ("host", "key", "keyLocation"))
    urls = said.get("urlList")
    if not host or not key:
        raise PingRefused(400, "no host or no key")
    if not isinstance(urls, list) or not urls or not all(isinstance(url, str) for url in urls):
        raise PingRefused(400, "no list of URLs")
    if len(urls) > MAX_URLS:
        raise PingRefused(400, "more than 10,000 URLs")
    return _ping(host.lower(), key, location, tuple(urls))


def _text(said: Mapping[str, Any], name: str) -> str | None:
    value = said.get(name)
    if value is not None and not isinstance(value, str):
        raise PingRefused(400, f"{name} is not a string")
    return value


def _ping(host: str | None, key: str, location: str | None, urls: tuple[str, ...]) -> Ping:
    if not _KEY.fullmatch(key):
        raise PingRefused(422, "no key of the protocol")
    home = _origin(urls[0], "no URL")
    place = f"{home}/{key}.txt" if not location else without_fragment(location)
    if _origin(place, "key of another host") != home:
        raise PingRefused(422, "key of another host")
    if len(place) > _MAX_URL or not place.partition("?")[0].endswith(".txt"):
        raise PingRefused(422, "invalid key location")
    if host is not None and host not in _names(home):
        raise PingRefused(422, "URLs of another host")
    ping = Ping(home, key, place.partition("?")[0], urls)
    head = ping.authority
    for url in urls:
        # Nearly all begin like the key's place; only the others need a parser.
        if not url.startswith(head) and _origin(url, "no URL") != home:
            raise PingRefused(422, "URLs of another host")
        if len(url) > _MAX_URL or not (url.startswith(head) or head == f"{home}/"):
            raise PingRefused(422, "URLs outside the key's directory")
    return ping


def _names(home: str) -> frozenset[str]:
    """Return the names of an origin's host that a ping may use: with its port, or without."""
    place = origin(home)
    return frozenset({place.netloc, place.host, f"{place.host}:{place.port}"})


def _origin(url: str, why: str) -> str:
    try:
        return str(origin(url))
    except ValueError as error:
        raise PingRefused(422, why) from error


# -- key cache ---------------------------------------------------------------
# *Invariant.* At most ``_ASKING`` keys of one host are requested. Consequence: pings with made-up
# keys cost their host a few requests an hour; its own first ping may then have to wait.

_HOUR_S: Final = 3_600.0
#: Requests for a key file of one host: three at once, three an hour.
_ASKING: Final = Flow(3.0, 3.0 / _HOUR_S)
#: A proven key has an allowance of its own, which no forger can use up.
_RENEWING: Final = Flow(2.0, 2.0 / _HOUR_S)
_VALID_S: Final = 24 * _HOUR_S
#: A missing key is requested again after this, then after four times it.
_INVALID_S: Final = _HOUR_S
_INVALID_MOST_S: Final = 24 * _HOUR_S
#: Wait after the host could not be reached.
_UNREACHED_S: Final = 900.0
_ROOM: Final = 10_000


#: The status of a key.
KeyStatus: TypeAlias = Literal["valid", "invalid", "unknown"]


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """A key, and the URL at which it must stand."""

    host_id: int
    key: str
    location: str


@dataclass(frozen=True, slots=True)
class _Entry:
    is_valid: bool
    until: float
    failures: int = 0
    ever_valid: bool = False


class KeyCache:
    """Cache of key checks by place; the ones settled last are kept."""

    def __init__(self) -> None:
        self._entries: LruCache[KeyPlace, _Entry] = LruCache(_ROOM)
        self._asking = Buckets(_ASKING, _ROOM)
        self._renewing = Buckets(_RENEWING, _ROOM)

    def standing(self, place: KeyPlace, now: float) -> KeyStatus:
        """Return the status of a key."""
        entry = self._entries.get(place)
        if entry is None or now >= entry.until:
            return "unknown"
        return "valid" if entry.is_valid else "invalid"

    def may_request(self, place: KeyPlace, now: float) -> bool:
        """Return whether the key may be requested; if so, count the request."""
        entry = self._entries.get(place)
        if entry is not None and entry.ever_valid:
            return self._renewing.take(place, now)
        return self._asking.take(place.host_id, now)

    def settle(self, place: KeyPlace, now: float, *, is_valid: bool | None) -> None:
        """Record that the key stands there, or does not; None: the host did not answer."""
        before = self._entries.get(place)
        failures = 0 if is_valid else (before.failures if before else 0) + 1
        known = bool(is_valid) or (before is not None and before.ever_valid)
        if is_valid:
            pause = _VALID_S
        elif is_valid is None:
            pause = _UNREACHED_S
        else:
            pause = min(_INVALID_MOST_S, _INVALID_S * 4.0 ** min(failures - 1, 8))
        self._entries[place] = _Entry(bool(is_valid), now + pause, failures, known)


def holds_key(body: bytes, key: str) -> bool:
    """Return whether a key file contains this key alone."""
    return body.removeprefix(b"\xef\xbb\xbf").strip() == key.encode("ascii")


# -- pinging -----------------------------------------------------------------
# A key is requested as politely as a page, and only of known hosts in scope; a ping of another host
# is refused without a request. Pings that wait for a key are held in memory.

#: URLs in one announcement: some 5 ms of work.
_SLICE: Final = 250
#: URLs of one host: a full list at once, and as many again every day.
_URLS: Final = Flow(2.0 * MAX_URLS, MAX_URLS / 43_200.0)
#: URLs that wait for their keys, in all.
_HELD: Final = 100_000
#: A key that could not be requested by then is given up.
_ASKED_WITHIN_S: Final = 600.0


@dataclass(slots=True)
class _Held:
    """Pings that wait for a key; ``is_asked``: the request is under way."""

    origin: str
    since: float
    urls: dict[str, None] = field(default_factory=dict)
    is_requested: bool = False


class Pinging:
    """Shell over :class:`KeyCache`."""

    def __init__(self, frontier: Frontier, calls: ApiRequests, hints: Hints, inbox: Inbox) -> None:
        self._frontier = frontier
        self._calls = calls
        self._hints = hints
        self._inbox = inbox
        self.book = KeyCache()
        self._held: dict[KeyPlace, _Held] = {}
        self._verified: deque[tuple[int, str, Sequence[str]]] = deque()
        self._urls = Buckets(_URLS, 10_000)

    async def heard(self, ping: Ping, now: float) -> int:
        """Accept a ping; return the status of the answer.

        Raises:
            PingRefused: it does not count.
        """
        known = self._frontier.host_of(ping.origin)
        if known is None or not any(map(self._hints.contains, ping.urls[:_SLICE])):
            raise PingRefused(422, "unknown host")
        place = KeyPlace(known[0], ping.key, ping.location)
        standing = self.book.standing(place, now)
        if standing == "invalid":
            raise PingRefused(403, "wrong key")
        if standing == "unknown":
            self._hold(place, ping, now)
            return 202
        self._count(place, len(ping.urls), now)
        for first in range(0, len(ping.urls), _SLICE):
            urls = ping.urls[first : first + _SLICE]
            hint = self._hints.of_pages("ping", place.host_id, ping.origin, urls, now)
            if not await self._inbox.commit(hint):
                raise PingRefused(503, "the store is busy")
        return 200

    def _hold(self, place: KeyPlace, ping: Ping, now: float) -> None:
        held = self._held.get(place)
        room = _HELD - sum(len(each.urls) for each in self._held.values())
        if len(ping.urls) > room:
            raise PingRefused(429, "too many unverified")
        if held is None:
            if not self.book.may_request(place, now):
                raise PingRefused(429, "too many keys of a host")
            held = self._held[place] = _Held(ping.origin, now)
        if len(held.urls) + len(ping.urls) > MAX_URLS:
            raise PingRefused(429, "too many unverified")
        held.urls.update(dict.fromkeys(ping.urls))

    def _count(self, place: KeyPlace, urls: int, now: float) -> None:
        if not self._urls.take(place.host_id, now, urls):
            raise PingRefused(429, "too many URLs of a host")

    def ask(self, now: float) -> list[Entry]:
        """Request the keys that may be requested; announce the hints of the proven ones."""
        for place, held in list(self._held.items()):
            if held.is_requested:
                continue
            allowed = self._frontier.permits(place.host_id, place.location, now)
            known = self._frontier.host_of(held.origin)
            if allowed and known is not None:
                held.is_requested = True
                self._calls.place(known[1], place.location, partial(self._answered, place))
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
        """Return a slice of the waiting hints; its commit brings the next turn of the pool."""
        if not self._verified:
            return []
        host_id, origin, urls = self._verified.popleft()
        if len(urls) > _SLICE:
            self._verified.appendleft((host_id, origin, urls[_SLICE:]))
        return [self._hints.of_pages("ping", host_id, origin, urls[:_SLICE], now)]
