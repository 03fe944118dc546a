"""IndexNow pings: changed URLs, and the keys that authorise them.

The protocol is indexnow.org's: one URL in a query, or up to 10,000 of one host in JSON.
"""

import json
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from freshet.crawler.admission.admit import Admission
from freshet.crawler.errors import Refused
from freshet.crawler.extensions.push.hints import hint, in_scope
from freshet.crawler.fetch.bounds import LruCache
from freshet.crawler.frontier.frontier import ApiRequest, Frontier
from freshet.crawler.service.senders import Buckets, Inbox
from freshet.crawler.urls import origin, without_fragment
from freshet.storage.records import Entry, FetchResult

MAX_URLS: Final = 10_000
_MAX_URL: Final = 4_096
_KEY: Final = re.compile(r"[A-Za-z0-9-]{8,128}")
#: JSON may hold half a character, which no URL can.
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """The key of an origin, and the URL that must serve it for pings to count."""

    origin: str
    key: str
    location: str

    @property
    def authority(self) -> str:
        """Return the directory of the key: it speaks for URLs below it."""
        return self.location[: self.location.rindex("/") + 1]


#: A key, and the URLs of its origin that a ping reports as changed, as written. An invalid ping
#: raises :class:`Refused`.
Ping: TypeAlias = tuple[KeyPlace, tuple[str, ...]]


def from_query(query: Mapping[str, str]) -> Ping:
    """Read the ping of a GET request."""
    if not query.get("url") or not query.get("key"):
        raise Refused(400, "ping: no url or no key")
    return _ping(None, query["key"], query.get("keyLocation"), (query["url"],))


def from_json(body: bytes) -> Ping:
    """Read the ping of a POST request."""
    said = _object(body)
    host, key, location = (_text(said, name) for name in ("host", "key", "keyLocation"))
    urls = said.get("urlList")
    if not host or not key:
        raise Refused(400, "ping: no host or no key")
    if not isinstance(urls, list) or not urls or not all(isinstance(url, str) for url in urls):
        raise Refused(400, "ping: no list of URLs")
    if len(urls) > MAX_URLS:
        raise Refused(400, "ping: more than 10,000 URLs")
    return _ping(host.lower(), key, location, tuple(urls))


def _text(said: Mapping[str, Any], name: str) -> str | None:
    value = said.get(name)
    if value is not None and not isinstance(value, str):
        raise Refused(400, f"ping: {name} is not a string")
    return value


def _object(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(400, "ping: not JSON") from error
    if not isinstance(said, dict):
        raise Refused(400, "ping: no JSON object")
    return said


def _ping(host: str | None, key: str, location: str | None, urls: tuple[str, ...]) -> Ping:
    if not _KEY.fullmatch(key):
        raise Refused(422, "ping: no key of the protocol")
    if any(_SURROGATE.search(text) for text in (location or "", *urls)):
        raise Refused(422, "ping: no URL")
    held_at = _place_of(_origin(urls[0], "no URL"), key, location)
    if host is not None and host not in _names(held_at.origin):
        raise Refused(422, "ping: URLs of another host")
    for url in urls:
        _require_below(held_at, url)
    return held_at, urls


def _place_of(home: str, key: str, location: str | None) -> KeyPlace:
    """Return the URL of an origin's key: at its root, unless a ping names another place."""
    place = f"{home}/{key}.txt" if not location else without_fragment(location)
    if _origin(place, "key of another host") != home:
        raise Refused(422, "ping: key of another host")
    path = place.partition("?")[0]
    if len(place) > _MAX_URL or not path.endswith(".txt"):
        raise Refused(422, "ping: invalid key location")
    return KeyPlace(home, key, path)


def _require_below(held_at: KeyPlace, url: str) -> None:
    """Refuse a ping with a URL that is not of the host, or not in the directory, of its key."""
    head, home = held_at.authority, held_at.origin
    # Nearly all begin like the key's place; only the others need a parser.
    if not url.startswith(head) and _origin(url, "no URL") != home:
        raise Refused(422, "ping: URLs of another host")
    if len(url) > _MAX_URL or not (url.startswith(head) or head == f"{home}/"):
        raise Refused(422, "ping: URLs outside the key's directory")


def _names(home: str) -> frozenset[str]:
    """Return the names of an origin's host that a ping may use: with its port, or without."""
    place = origin(home)
    return frozenset({place.netloc, place.host, f"{place.host}:{place.port}"})


def _origin(url: str, why: str) -> str:
    try:
        return str(origin(url))
    except ValueError as error:
        raise Refused(422, f"ping: {why}") from error


# -- key cache ---------------------------------------------------------------
# *Invariant.* At most ``_ASKING`` keys of one host are requested. Consequence: pings with made-up
# keys cost their host a few requests an hour; its first true ping may then have to wait.

_HOUR_S: Final = 3_600.0
#: Requests for a key file of one host: three at once, three an hour.
_ASKING: Final = (3.0, 3.0 / _HOUR_S)
#: A proven key has a separate allowance, which no forger can use up.
_RENEWING: Final = (2.0, 2.0 / _HOUR_S)
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
class _Entry:
    is_valid: bool
    until: float
    failures: int = 0
    ever_valid: bool = False


class KeyCache:
    """Cache of key checks by place; the ones settled last are kept."""

    def __init__(self) -> None:
        self._entries: LruCache[KeyPlace, _Entry] = LruCache(_ROOM)
        self._asking = Buckets(*_ASKING, room=_ROOM)
        self._renewing = Buckets(*_RENEWING, room=_ROOM)

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
        return self._asking.take(place.origin, now)

    def settle(self, place: KeyPlace, now: float, *, is_valid: bool | None) -> None:
        """Record whether the URL serves the key; None: the host did not answer."""
        before = self._entries.get(place)
        failures = 0 if is_valid else (before.failures if before else 0) + 1
        known = bool(is_valid) or (before is not None and before.ever_valid)
        pause = _VALID_S if is_valid else _UNREACHED_S
        if is_valid is False:
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
_URLS: Final = (2.0 * MAX_URLS, MAX_URLS / 43_200.0)
#: URLs that wait for their keys, in all.
_HELD: Final = 100_000
#: A key that could not be requested by then is given up.
_ASKED_WITHIN_S: Final = 600.0


@dataclass(slots=True)
class _Held:
    """Pings that wait for a key; ``is_requested``: the request is under way."""

    since: float
    urls: dict[str, None] = field(default_factory=dict)
    is_requested: bool = False


@dataclass(slots=True, eq=False)
class Pinging:
    """Shell over :class:`KeyCache`."""

    frontier: Frontier
    admission: Admission
    inbox: Inbox
    book: KeyCache = field(default_factory=KeyCache, init=False)
    _held: dict[KeyPlace, _Held] = field(default_factory=dict, init=False)
    _verified: deque[tuple[int, str, Sequence[str]]] = field(default_factory=deque, init=False)
    _urls: Buckets = field(default_factory=lambda: Buckets(*_URLS, room=10_000), init=False)

    async def received(self, ping: Ping, now: float) -> int:
        """Accept a ping; return the status of the answer.

        Raises:
            Refused: it does not count.
        """
        place, urls = ping
        known = self.frontier.host_of(place.origin)
        if known is None or not any(in_scope(self.admission, url) for url in urls[:_SLICE]):
            raise Refused(422, "ping: unknown host")
        standing = self.book.standing(place, now)
        if standing == "invalid":
            raise Refused(403, "ping: wrong key")
        if standing == "unknown":
            self._hold(place, urls, now)
            return 202
        if not self._urls.take(place.origin, now, len(urls)):
            raise Refused(429, "ping: too many URLs of a host")
        for first in range(0, len(urls), _SLICE):
            some = urls[first : first + _SLICE]
            note = hint(self.admission, "ping", known[0], place.origin, urls=some, at=now)
            if not await self.inbox.commit(note):
                raise Refused(503, "ping: the store is busy")
        return 200

    def _hold(self, place: KeyPlace, urls: Sequence[str], now: float) -> None:
        held = self._held.get(place)
        if len(urls) > _HELD - sum(len(each.urls) for each in self._held.values()):
            raise Refused(429, "ping: too many unverified")
        if held is None:
            if not self.book.may_request(place, now):
                raise Refused(429, "ping: too many keys of a host")
            held = self._held[place] = _Held(now)
        if len(held.urls) + len(urls) > MAX_URLS:
            raise Refused(429, "ping: too many unverified")
        held.urls.update(dict.fromkeys(urls))

    def ask(self, now: float) -> list[Entry]:
        """Request the keys that may be requested; announce the hints of the proven ones."""
        for place, held in list(self._held.items()):
            if held.is_requested:
                continue
            known = self.frontier.host_of(place.origin)
            allowed = known is not None and self.frontier.permits(known[0], place.location, now)
            if allowed and known is not None:
                held.is_requested = True
                answered = partial(self._answered, place)
                self.frontier.queue(ApiRequest(place.location, known[1], answered))
            elif allowed is False or now > held.since + _ASKED_WITHIN_S:
                self._settle(place, now, is_valid=None)
        return self._released(now)

    def _answered(self, place: KeyPlace, result: FetchResult, now: float) -> list[Entry]:
        is_there = result.outcome == "fetched"
        known = is_there or result.outcome == "gone" or result.status in (401, 403)
        is_right = is_there and holds_key(result.body, place.key)
        self._settle(place, now, is_valid=is_right if known else None)
        return []

    def _settle(self, place: KeyPlace, now: float, *, is_valid: bool | None) -> None:
        self.book.settle(place, now, is_valid=is_valid)
        held, known = self._held.pop(place), self.frontier.host_of(place.origin)
        if is_valid and known is not None and self._urls.take(place.origin, now, len(held.urls)):
            self._verified.append((known[0], place.origin, tuple(held.urls)))

    def _released(self, now: float) -> list[Entry]:
        """Return a slice of the waiting hints; its commit brings the next turn of the pool."""
        if not self._verified:
            return []
        host_id, origin, urls = self._verified.popleft()
        if len(urls) > _SLICE:
            self._verified.appendleft((host_id, origin, urls[_SLICE:]))
        return [hint(self.admission, "ping", host_id, origin, urls=urls[:_SLICE], at=now)]
