"""The one writer task: a bounded queue in, batched transactions, acknowledgements out.

Invariant: an entry is acknowledged after the transaction that holds it has committed.
Consequence: whatever was counted, shown or logged survives kill -9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from freshet.storage.database import Database
from freshet.storage.errors import StoreUnavailable
from freshet.storage.records import Acknowledged, Entry
from freshet.storage.visits import VisitTables


class Writer:
    """Gathers entries into transactions of at most ``batch``; a full queue holds senders up.

    A transaction takes what has come in while the one before it was committing, so that
    batches grow with the load and an idle writer adds no delay. Where the store is unavailable,
    ``patience`` is awaited and the batch tried again; it may raise the error that it is given.
    Before each transaction ``secure`` sees to what must not be behind the store, an archive.
    """

    def __init__(
        self,
        database: Database,
        tables: VisitTables,
        acknowledge: Callable[[Sequence[Acknowledged]], None],
        *,
        batch: int,
        patience: Callable[[StoreUnavailable], Awaitable[None]] | None = None,
        secure: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._database = database
        self._tables = tables
        self._acknowledge = acknowledge
        self._batch = batch
        self._patience = patience
        self._secure = secure
        self._queue: asyncio.Queue[Entry | None] = asyncio.Queue(maxsize=batch)

    async def submit(self, entry: Entry) -> None:
        """Hand over an entry; waits while the queue is full."""
        await self._queue.put(entry)

    async def run(self) -> None:
        """Write until :meth:`finish`; raises StoreError when the store fails."""
        while (first := await self._queue.get()) is not None:
            entries, ended = self._gather(first)
            await self._write(entries)
            if ended:
                return

    async def finish(self) -> None:
        """Ask :meth:`run` to write what has been submitted and return."""
        await self._queue.put(None)

    def _gather(self, first: Entry) -> tuple[list[Entry], bool]:
        entries = [first]
        while len(entries) < self._batch and not self._queue.empty():
            entry = self._queue.get_nowait()
            if entry is None:
                return entries, True
            entries.append(entry)
        return entries, False

    async def _write(self, entries: list[Entry]) -> None:
        while True:
            try:
                acknowledged = await self._committed(entries)
            except StoreUnavailable as error:
                if self._patience is None:
                    raise
                await self._patience(error)
            else:
                self._acknowledge(acknowledged)
                return

    async def _committed(self, entries: list[Entry]) -> list[Acknowledged]:
        has_begun = False
        if self._secure is not None:
            await self._secure()
        try:
            async with self._database.transaction() as connection:
                has_begun = True
                return await self._tables.apply(connection, entries)
        except BaseException:
            if has_begun:
                self._tables.forget()
            raise
