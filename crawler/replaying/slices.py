"""A run of bytes in a file: a whole archive, or one that lies in a ZIP as it is."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import IO, Self, cast


class Slice:
    """Reads ``size`` bytes from ``start`` of a file; offsets count from ``start``.

    Raises:
        OSError: the file cannot be opened or read.
    """

    def __init__(self, path: Path, start: int = 0, size: int | None = None) -> None:
        self._file = path.open("rb", buffering=0)
        self._start = start
        whole = os.fstat(self._file.fileno()).st_size - start
        self.size = whole if size is None else min(size, whole)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes; fewer at the end."""
        wanted = min(size, self.size - offset)
        return os.pread(self._file.fileno(), wanted, self._start + offset) if wanted > 0 else b""

    def stream(self, offset: int) -> IO[bytes]:
        """The bytes from ``offset`` on; the slice must stay open."""
        return cast(IO[bytes], _Stream(self, offset))


class _Stream(io.RawIOBase):
    """A position in a slice, for readers that want a file."""

    def __init__(self, source: Slice, offset: int) -> None:
        self._source = source
        self._at = offset

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        left = self._source.size - self._at
        piece = self._source.read_at(self._at, left if size is None or size < 0 else size)
        self._at += len(piece)
        return piece

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at
