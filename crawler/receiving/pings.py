"""IndexNow-style pings as they come: which URLs changed, and which key speaks for them.

The protocol is that of indexnow.org: one URL in a query, or up to 10,000 of one host in JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from freshet.crawler.urls import origin, without_fragment

MAX_URLS: Final = 10_000
_MAX_URL: Final = 4_096
_KEY: Final = re.compile(r"[A-Za-z0-9-]{8,128}")


class PingRefused(Exception):
    """A ping that is not accepted: the ``status`` to answer, and why in two or three words."""

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
        """The directory of the key: it speaks for URLs below it."""
        return self.location[: self.location.rindex("/") + 1]


def from_query(query: Mapping[str, str]) -> Ping:
    """The ping of a GET request.

    Raises:
        PingRefused: it is none.
    """
    if not query.get("url") or not query.get("key"):
        raise PingRefused(400, "no url or no key")
    return _ping(None, query["key"], query.get("keyLocation"), (query["url"],))


def from_json(body: bytes) -> Ping:
    """The ping of a POST request.

    Raises:
        PingRefused: it is none.
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
        raise PingRefused(400, f"{name} is no text")
    return value


def _ping(host: str | None, key: str, location: str | None, urls: tuple[str, ...]) -> Ping:
    if not _KEY.fullmatch(key):
        raise PingRefused(422, "no key of the protocol")
    home = _origin(urls[0], "no URL")
    place = f"{home}/{key}.txt" if not location else without_fragment(location)
    if _origin(place, "key on another host") != home:
        raise PingRefused(422, "key on another host")
    if len(place) > _MAX_URL or not place.partition("?")[0].endswith(".txt"):
        raise PingRefused(422, "no place for a key")
    if host is not None and host not in _names(home):
        raise PingRefused(422, "URLs of another host")
    ping = Ping(home, key, place.partition("?")[0], urls)
    head = ping.authority
    for url in urls:
        # Nearly all begin as the key's place does; the others are worth a parser.
        if not url.startswith(head) and _origin(url, "no URL") != home:
            raise PingRefused(422, "URLs of another host")
        if len(url) > _MAX_URL or not (url.startswith(head) or head == f"{home}/"):
            raise PingRefused(422, "URLs outside the key's place")
    return ping


def _names(home: str) -> frozenset[str]:
    """How a ping may name the host of an origin: with its port, or without."""
    place = origin(home)
    return frozenset({place.netloc, place.host, f"{place.host}:{place.port}"})


def _origin(url: str, why: str) -> str:
    try:
        return str(origin(url))
    except ValueError as error:
        raise PingRefused(422, why) from error
