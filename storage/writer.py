"""The one writer task: a bounded queue in, batched transactions, acknowledgements out.

Invariant: an entry is acknowledged after the transaction that holds it has committed.
Consequence: whatever was counted, shown or logged survives kill -9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from storage.database import Database
from storage.records import Acknowledged, Entry
from storage.visits import VisitTables


class Writer:
    """Gathers entries into transactions of at most ``batch``; a full queue holds senders up.

    A transaction takes what has come in while the one before it was committing, so that
    batches grow with the load and an idle writer adds no delay.
    """

    def __init__(
        self,
        database: Database,
        tables: VisitTables,
        acknowledge: Callable[[Sequence[Acknowledged]], None],
        *,
        batch: int,
    ) -> None:
        self._database = database
        self._tables = tables
        self._acknowledge = acknowledge
        self._batch = batch
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
        try:
            async with self._database.transaction() as connection:
                acknowledged = await self._tables.apply(connection, entries)
        except BaseException:
            self._tables.forget()
            raise
        self._acknowledge(acknowledged)
