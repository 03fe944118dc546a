"""The politeness key: which hosts share one lane, and so one delay."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase

from freshet.crawler.urls import origin, registrable_domain

_DEFAULT_PORTS = frozenset({80, 443})


class LaneKind(StrEnum):
    """What a lane is shared by."""

    HOST = "host"
    DOMAIN = "domain"
    IP = "ip"


class LaneKeys:
    """Maps origins to lanes: a custom group first, then the chosen kind of key.

    ``groups`` name host patterns (``*.example.org``); ``addresses`` resolves a host name,
    and its first address in sorted order is the key, so that the answer's rotation does
    not matter.
    """

    def __init__(
        self,
        kind: LaneKind,
        groups: Mapping[str, Sequence[str]],
        addresses: Callable[[str], Awaitable[list[str]]],
    ) -> None:
        self._kind = kind
        self._groups = groups
        self._addresses = addresses

    async def key(self, url: str) -> str:
        """The lane of a URL's (or origin's) host."""
        place = origin(url)
        for name, patterns in self._groups.items():
            if any(fnmatchcase(place.host, pattern.lower()) for pattern in patterns):
                return f"group {name}"
        match self._kind:
            case LaneKind.DOMAIN:
                return registrable_domain(place.host)
            case LaneKind.IP:
                return min(await self._addresses(place.host), default=place.host)
            case _:
                # http and https of one name share a lane; another port is another server.
                return place.host if place.port in _DEFAULT_PORTS else f"{place.host}:{place.port}"
