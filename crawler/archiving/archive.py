"""An archive that is written: entries in, WARC files out, in a thread of its own.

*Invariant.* What :meth:`Archive.flush` has returned for is on the disk, in whole records.
Consequence: a store that commits a visit after it never holds what the archive lacks.
"""

from __future__ import annotations

import asyncio
import errno
import sqlite3
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Final
from uuid import uuid4

from freshet.crawler.archiving.originals import Originals
from freshet.crawler.archiving.warc import Entry, Exchange, Fields, records, warcinfo
from freshet.crawler.archiving.warc_output import WarcOutput, finish_what_was_left, member

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class ArchiveUnwritable(Exception):
    """The archive cannot be written now; ``why`` says it in a few words. Nothing is lost."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Archive:
    """Keeps entries until they are flushed.

    A file that has ``max_file_bytes`` or more is followed by another. ``fields`` describe whoever
    writes, ``now`` gives Unix seconds.

    Raises:
        ArchiveInUse: on opening, if another process writes it.
        OSError, sqlite3.Error: on opening, if the folder cannot be made or written.
    """

    def __init__(
        self, folder: Path, fields: Fields, *, max_file_bytes: int, now: Callable[[], float]
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._fields = fields
        self._max_file_bytes = max_file_bytes
        self._now = now
        self._pending: deque[Entry] = deque()
        self._output: WarcOutput | None = None
        self._described: Fields | None = None
        self._originals = recovered(folder)
        # One thread: entries are written in their order.
        self._thread = ThreadPoolExecutor(1, "archive")

    def add(self, entry: Entry) -> None:
        """Keep an entry for the next flush."""
        self._pending.append(entry)

    def describe(self, fields: Fields) -> None:
        """What is written from now on is described by these."""
        self._fields = fields

    async def flush(self) -> None:
        """Return when all that was added is on the disk.

        Raises:
            ArchiveUnwritable: the disk is full or fails; the entries are kept.
        """
        if self._pending:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._write_pending)

    async def close(self) -> None:
        """Flush, give the last file its name, and let others write the archive.

        Raises:
            ArchiveUnwritable: as :meth:`flush` says.
        """
        try:
            await self.flush()
        finally:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
            self._thread.shutdown()

    # -- in the thread -------------------------------------------------------------

    def _write_pending(self) -> None:
        count = len(self._pending)
        output, size = self._output, self._output.size if self._output else 0
        try:
            self._write(count)
        except (OSError, sqlite3.Error) as error:
            self._take_back(output, size)
            raise ArchiveUnwritable(_why(error)) from error
        for _ in range(count):
            self._pending.popleft()

    def _write(self, count: int) -> None:
        if self._output is not None and self._output.size >= self._max_file_bytes:
            full, self._output = self._output, None
            full.close()
        if self._output is None:
            self._output, self._described = WarcOutput(self._folder, self._now()), None
        output = self._output
        self._originals.grown(output.name, output.size)
        if self._described is not self._fields:
            self._described = self._fields
            output.append(member(warcinfo(_new_id(), self._now(), output.name, self._described)))
        for entry in islice(self._pending.copy(), count):
            self._add_to(output, entry)
        output.sync()
        self._originals.grown(output.name, output.size)
        self._originals.commit()

    def _add_to(self, output: WarcOutput, entry: Entry) -> None:
        original = None
        if isinstance(entry, Exchange):
            original = self._originals.of(entry.result.url)
        written = records(entry, original, _new_id)
        output.append(b"".join(map(member, written.records)))
        if isinstance(entry, Exchange) and written.original not in (None, original):
            self._originals.remember(entry.result.url, written.original, output.name)

    def _take_back(self, output: WarcOutput | None, size: int) -> None:
        """Be as before the flush that failed."""
        self._originals.rollback()
        self._described = None
        if self._output is not None:
            self._output.cut(size if self._output is output else 0)

    def _close(self) -> None:
        try:
            if self._output is not None:
                self._output.close()
        finally:
            self._originals.close()


def recovered(folder: Path) -> Originals:
    """What the archive holds, after whatever happened to its files since."""
    originals = Originals(folder)
    try:
        sizes = originals.sizes()
        finish_what_was_left(folder, sizes)
        originals.keep({name for name, size in sizes.items() if _size(folder / name) >= size})
    except BaseException:
        originals.close()
        raise
    return originals


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


def _new_id() -> str:
    return f"<urn:uuid:{uuid4()}>"


def _why(error: OSError | sqlite3.Error) -> str:
    is_full = getattr(error, "errno", None) in _FULL or "full" in str(error)
    return "the disk is full" if is_full else f"the disk failed ({error})"
