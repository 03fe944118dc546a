"""What was received and waits for the writer; who brought it hears when it has committed.

Invariant: entries leave in the pool's turn only, while the writer runs. Consequence: nothing is
handed over between two runs, and what was confirmed to a sender survives kill -9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from freshet.storage.records import Acknowledged, Entry

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
