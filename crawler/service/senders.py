"""Requests of other programs: token buckets that bound them, and their way to the writer."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from freshet.crawler.fetch.bounds import LruCache
from freshet.storage.records import Acknowledged, Entry

# -- buckets -----------------------------------------------------------------


class Buckets:
    """Token buckets, one a key, full where a key is new; times are in seconds.

    A bucket gives ``burst`` at once, and ``per_s`` more every second. At most ``room`` keys are
    remembered, those used last: a sender with ever new addresses costs no more memory, and is held
    by the bucket of all.
    """

    def __init__(self, burst: float, per_s: float, *, room: int) -> None:
        self._burst = burst
        self._per_s = per_s
        self._levels: LruCache[object, tuple[float, float]] = LruCache(room)

    def level(self, key: object, now: float) -> float:
        """Return the tokens that are left."""
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
        """Take all tokens that are left."""
        self._levels[key] = (0.0, now)


# -- inbox -------------------------------------------------------------------

_ROOM: Final = 256
#: Seconds that a sender waits: through a commit, not through a full disk.
_PATIENCE_S: Final = 5.0


class Inbox:
    """A bounded queue of received entries for the writer; ``wake`` is called when it has some.

    Invariant: entries leave in the pool's turn only, while the writer runs. Consequence: nothing is
    handed over between two runs, and a confirmed entry survives kill -9.
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
