"""Token buckets: how much of something may happen. Pure: the time is an argument, in seconds."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Flow:
    """``burst`` at once, and ``per_s`` more every second."""

    burst: float
    per_s: float


class Buckets:
    """A bucket for each key, full where a key is new.

    At most ``room`` keys are remembered, those used last: who comes from ever new addresses
    costs no more memory, and is held by the bucket of all.
    """

    def __init__(self, flow: Flow, room: int) -> None:
        self._flow = flow
        self._room = room
        self._levels: OrderedDict[object, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._levels)

    def level(self, key: object, now: float) -> float:
        """How much is left."""
        level, at = self._levels.get(key, (self._flow.burst, now))
        return min(self._flow.burst, level + max(0.0, now - at) * self._flow.per_s)

    def take(self, key: object, now: float, amount: float = 1.0) -> bool:
        """Take so much, if there is as much."""
        level = self.level(key, now)
        if level < amount:
            return False
        self._set(key, level - amount, now)
        return True

    def drain(self, key: object, now: float) -> None:
        """Take all that is left."""
        self._set(key, 0.0, now)

    def _set(self, key: object, level: float, now: float) -> None:
        self._levels[key] = (level, now)
        self._levels.move_to_end(key)
        if len(self._levels) > self._room:
            self._levels.popitem(last=False)
