"""What is known of the keys of pings. Pure: the time is an argument, in Unix seconds.

*Invariant.* For one host no more keys are asked for than ``_ASKING`` lets. Consequence: however
many pings with made-up keys come, their host feels a few requests an hour; the price is that its
own first ping may have to wait for a while.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from freshet.crawler.receiving.buckets import Buckets, Flow

_HOUR_S: Final = 3_600.0
#: Requests for a key file of one host: three at once, three an hour.
_ASKING: Final = Flow(3.0, 3.0 / _HOUR_S)
#: A key that held is asked for by an allowance of its own, which no forger can use up.
_RENEWING: Final = Flow(2.0, 2.0 / _HOUR_S)
_VALID_S: Final = 24 * _HOUR_S
#: A key that does not stand where it should is asked for again after this, then four times it.
_INVALID_S: Final = _HOUR_S
_INVALID_MOST_S: Final = 24 * _HOUR_S
#: Where the host could not be reached.
_UNREACHED_S: Final = 900.0
_ROOM: Final = 10_000


class Standing(StrEnum):
    """How a key stands."""

    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """A key, and where on which host it must stand."""

    host_id: int
    key: str
    location: str


@dataclass(frozen=True, slots=True)
class _Entry:
    is_valid: bool
    until: float
    failures: int = 0
    ever_valid: bool = False


class KeyBook:
    """Keys by place; the ones settled last are remembered."""

    def __init__(self) -> None:
        self._entries: OrderedDict[KeyPlace, _Entry] = OrderedDict()
        self._asking = Buckets(_ASKING, _ROOM)
        self._renewing = Buckets(_RENEWING, _ROOM)

    def standing(self, place: KeyPlace, now: float) -> Standing:
        """What is known of a key now."""
        entry = self._entries.get(place)
        if entry is None or now >= entry.until:
            return Standing.UNKNOWN
        return Standing.VALID if entry.is_valid else Standing.INVALID

    def may_ask(self, place: KeyPlace, now: float) -> bool:
        """Whether the key may be asked for; it counts as asked for then."""
        entry = self._entries.get(place)
        if entry is not None and entry.ever_valid:
            return self._renewing.take(place, now)
        return self._asking.take(place.host_id, now)

    def settle(self, place: KeyPlace, now: float, *, is_valid: bool | None) -> None:
        """The key stands there, or does not; None: the host could not be asked."""
        before = self._entries.pop(place, None)
        failures = 0 if is_valid else (before.failures if before else 0) + 1
        known = bool(is_valid) or (before is not None and before.ever_valid)
        if is_valid:
            pause = _VALID_S
        elif is_valid is None:
            pause = _UNREACHED_S
        else:
            pause = min(_INVALID_MOST_S, _INVALID_S * 4.0 ** min(failures - 1, 8))
        self._entries[place] = _Entry(bool(is_valid), now + pause, failures, known)
        if len(self._entries) > _ROOM:
            self._entries.popitem(last=False)


def holds_key(body: bytes, key: str) -> bool:
    """Whether a key file says this key, and nothing else."""
    return body.removeprefix(b"\xef\xbb\xbf").strip() == key.encode("ascii")
