"""Requests from other programs: token buckets that limit them, and the queue to the writer."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from freshet.crawler.fetch.bounds import LruCache
from freshet.storage.records import Acknowledged, Entry

# -- buckets -----------------------------------------------------------------


class Buckets:
    """Token buckets by key; a new key has a full bucket. Times are in seconds.

    A bucket has ``burst`` tokens at first, and gets ``per_s`` more every second. The ``room`` most
    recently used keys are remembered, so a client with ever new addresses takes no more memory; a
    bucket for all clients limits it.
    """

    def __init__(self, burst: float, per_s: float, *, room: int) -> None:
        self._burst = burst
        self._per_s = per_s
        self._levels: LruCache[object, tuple[float, float]] = LruCache(room)

    def level(self, key: object, now: float) -> float:
        """Return the number of remaining tokens."""
        level, at = self._levels.get(key, (self._burst, now))
        return min(self._burst, level + abs(now - at) * self._per_s)

    def take(self, key: object, now: float, amount: float = 1.0) -> bool:
        """Take that many tokens, if there are enough."""
        level = self.level(key, now)
        if level < amount:
            return False
        self._levels[key] = (level - amount, now)
        return True

    def drain(self, key: object, now: float) -> None:
        """Take all remaining tokens."""
        self._levels[key] = (0.0, now)


# -- inbox -------------------------------------------------------------------

_ROOM: Final = 256
#: Seconds that a client waits: longer than a commit, shorter than a full disk lasts.
_PATIENCE_S: Final = 5.0


class Inbox:
    """A bounded queue of received entries for the writer; ``wake`` is called for each.

    Invariant: entries leave only in the pool's turn, while the writer runs. Consequence: no entry
    is handed over between two runs, and a confirmed entry survives kill -9.
    """

    def __init__(self, wake: Callable[[], None], *, patience_s: float = _PATIENCE_S) -> None:
        self._wake = wake
        self._patience_s = patience_s
        self._waiting: list[Entry] = []
        self._committing: dict[int, tuple[Entry, asyncio.Future[None]]] = {}

    async def commit(self, entry: Entry) -> bool:
        """Return whether the entry has committed; after a time-out it still may."""
        if len(self._committing) >= _ROOM:
            return False
        done = asyncio.get_running_loop().create_future()
        self._committing[id(entry)] = (entry, done)
        self.post(entry)
        try:
            async with asyncio.timeout(self._patience_s):
                await asyncio.shield(done)
        except TimeoutError:
            return False
        return True

    def post(self, entry: Entry) -> None:
        """Queue an entry without waiting for its commit."""
        self._waiting.append(entry)
        self._wake()

    def take(self) -> list[Entry]:
        """Take all waiting entries."""
        taken, self._waiting = self._waiting, []
        return taken

    def acknowledged(self, batch: Sequence[Acknowledged]) -> None:
        """Confirm entries that the writer has committed."""
        for each in batch:
            _, done = self._committing.pop(id(each.entry), (None, None))
            if done is not None and not done.done():
                done.set_result(None)
