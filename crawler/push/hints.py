"""Hints: what was pushed becomes claims on known pages, and URLs that may be new.

Only what is in scope counts, and of a new URL nothing is taken but that it may exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from freshet.crawler.admission.admit import Admission
from freshet.crawler.lru import LruCache
from freshet.crawler.urls import canonical, without_fragment
from freshet.storage.entries import Claim, ClaimKind
from freshet.storage.records import Acknowledged, Announcement, Entry, Targets

# -- buckets -----------------------------------------------------------------
#
# Token buckets: how much of something may happen. Pure: the time is an argument, in seconds.


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
        self._levels: LruCache[object, tuple[float, float]] = LruCache(room)

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


#: A page that is known by a hint alone is taken to stand one link from a seed.
_DEPTH: Final = 1


class Hints:
    """Makes announcements of URLs; ``admission`` says which are in scope, and crawled."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    def contains(self, url: str) -> bool:
        """Whether a URL is in scope; what is no URL is not."""
        try:
            return self._admission.scope.contains(url)
        except ValueError:
            return False

    def of_pages(
        self, kind: ClaimKind, host_id: int, source: str, urls: Sequence[str], at: float,
        *, changed: bool = True,
    ) -> Announcement:  # fmt: skip
        """These pages are said to have ``changed`` now, or but to exist; those that are in scope.

        Some 20 µs a URL: who has thousands makes several announcements.
        """
        targets, claims = Targets(), []
        for url in urls:
            if not self.contains(url):
                continue
            page = canonical(url)
            self._admission.add(targets, page, without_fragment(url), depth=_DEPTH)
            if changed:
                claims.append(Claim(page, at, at))
        return Announcement(kind, host_id, source, tuple(claims), at, targets=targets)


# -- inbox -------------------------------------------------------------------
#
# What was received and waits for the writer; who brought it hears when it has committed.
#
# Invariant: entries leave in the pool's turn only, while the writer runs. Consequence: nothing is
# handed over between two runs, and what was confirmed to a sender survives kill -9.

_ROOM: Final = 256
#: As long as a sender is kept waiting: through a commit, not through a full disk.
_PATIENCE_S: Final = 5.0


class Inbox:
    """A bounded queue of entries. ``wake`` is called when it has some."""

    def __init__(self, wake: Callable[[], None], *, patience_s: float = _PATIENCE_S) -> None:
        self._wake = wake
        self._patience_s = patience_s
        self._waiting: list[Entry] = []
        self._committing: dict[int, tuple[Entry, asyncio.Future[None]]] = {}

    async def commit(self, entry: Entry) -> bool:
        """Whether the entry has committed; if not in time, it may yet."""
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
        """Have an entry written; nobody waits for it."""
        self._waiting.append(entry)
        self._wake()

    def take(self) -> list[Entry]:
        """All that waits."""
        taken, self._waiting = self._waiting, []
        return taken

    def told(self, batch: Sequence[Acknowledged]) -> None:
        """The writer has committed these."""
        for each in batch:
            _, done = self._committing.pop(id(each.entry), (None, None))
            if done is not None and not done.done():
                done.set_result(None)
