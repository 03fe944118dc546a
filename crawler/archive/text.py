"""The text of an archive: a file, or a part of one, unpacked member by member."""

from __future__ import annotations

import os
import re
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

import zstandard
from isal import isal_zlib

_MAX_DICTIONARY_BYTES = 64 * 1024 * 1024
#: A skippable zstd frame that holds the dictionary of all frames behind it.
_DICTIONARY = b"\x5d\x2a\x4d\x18"
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18(.{4})", re.DOTALL)
_GZIP, _ZSTD = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"
#: Most bytes before a record.
_LEAD_BYTES = 16
_LEAD = re.compile(rb"[\r\n]*(?:\xef\xbb\xbf)?")
#: Compressed bytes that are read at once.
_STEP_BYTES = 16 * 1024
_WHOLE_STEP_BYTES = 4096
#: A block of zstd of four bytes makes 128 KiB, so a step makes 8 MiB at most.
_ZSTD_STEP_BYTES = 256
#: Bytes of text that are made, or read from a file, at once.
_PIECE_BYTES = 64 * 1024
#: The bytes in which the next member is looked for at once.
_SEARCHED_BYTES = 1024 * 1024
#: So many are tried: in random bytes one in 16 MB looks like a member.
_TRIED_MEMBERS = 1000
_ISAL_ERROR: type[Exception] = vars(isal_zlib)["error"]

#: A piece of the text with the position of its member in the file.
_Pieces: TypeAlias = Iterator[tuple[int, bytes]]


class TornError(OSError):
    """A member cannot be unpacked to its end; ``member`` is its position."""

    def __init__(self, member: int, why: str) -> None:
        super().__init__(why)
        self.member = member


class FileSlice:
    """``size`` bytes from ``start`` of a file; offsets count from ``start``.

    ``coding`` is its records' coding, None if it does not begin with one. A zstd file may begin
    with a dictionary; ``first`` is the position of its first record.

    Raises:
        OSError: the file cannot be opened or read.
    """

    def __init__(self, path: Path, start: int = 0, size: int | None = None) -> None:
        self._file = path.open("rb", buffering=0)
        self._start = start
        whole = os.fstat(self._file.fileno()).st_size - start
        self.size = whole if size is None else min(size, whole)
        self._dictionary: zstandard.ZstdCompressionDict | None = None
        self.first = 0
        self.coding = self._coding()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read_at(self, offset: int, size: int) -> bytes:
        """Read up to ``size`` bytes; fewer at the end."""
        wanted = min(size, self.size - offset)
        return os.pread(self._file.fileno(), wanted, self._start + offset) if wanted > 0 else b""

    def pieces(self, offset: int) -> _Pieces:
        """Yield the text from an offset on; the slice must stay open.

        Raises:
            TornError: it is damaged.
        """
        if self.coding == "gzip":
            return self._gunzipped(offset)
        return self._plain(offset) if self.coding == "plain" else self._unzstd(offset)

    def next_member(self, offset: int) -> int | None:
        """Return the position of the next member that begins with a record, None without one."""
        for at in islice(self._marks(offset), _TRIED_MEMBERS):
            # What only looks like a member is damaged.
            with suppress(TornError):
                if begins_record(next(self.pieces(at), (0, b""))[1]):
                    return at
        return None

    def _marks(self, offset: int) -> Iterator[int]:
        """Yield the positions of what looks like the beginning of a member."""
        magic = _GZIP if self.coding == "gzip" else _ZSTD
        while len(data := self.read_at(offset, _SEARCHED_BYTES)) >= len(magic):
            at = data.find(magic)
            while at >= 0:
                yield offset + at
                at = data.find(magic, at + 1)
            offset += len(data) - len(magic) + 1

    def _coding(self) -> Literal["plain", "gzip", "zstd"] | None:
        head = self.read_at(0, 64)
        if head.startswith(_DICTIONARY):
            first = 8 + int.from_bytes(head[4:8], "little")
            if self.read_at(first, 4) == _ZSTD and first <= _MAX_DICTIONARY_BYTES:
                words = _plain_dictionary(self.read_at(8, first - 8))
                self._dictionary, self.first = zstandard.ZstdCompressionDict(words), first
                return "zstd"
        if begins_record(head):
            return "plain"
        if head.startswith(_GZIP):
            return "gzip"
        return "zstd" if head.startswith(_ZSTD) else None

    def _plain(self, at: int) -> _Pieces:
        while piece := self.read_at(at, _PIECE_BYTES):
            yield at, piece
            at += len(piece)

    def _gunzipped(self, at: int) -> _Pieces:
        while at < self.size:
            data = self.read_at(at, _STEP_BYTES)
            if not data.strip(b"\0"):
                at += len(data)  # tapes and file systems fill up with zeros
                continue
            member, inflate = at, isal_zlib.decompressobj(31)
            try:
                while True:
                    at += len(data)
                    while piece := inflate.decompress(data, _PIECE_BYTES):
                        yield member, piece
                        data = inflate.unconsumed_tail
                    if inflate.eof:
                        break
                    if not (data := self.read_at(at, _STEP_BYTES)):
                        raise TornError(member, "the gzip stream ends early")
            except _ISAL_ERROR as error:
                raise TornError(member, f"the gzip stream is damaged: {error}") from error
            at -= len(inflate.unused_data)

    def _unzstd(self, at: int) -> _Pieces:
        zstd = zstandard.ZstdDecompressor(dict_data=self._dictionary)
        while at < self.size:
            if (skipped := _SKIPPABLE.match(self.read_at(at, 8))) is not None:
                at += 8 + int.from_bytes(skipped[1], "little")
                continue
            frame, decoder = at, zstd.decompressobj()
            try:
                while not decoder.eof:
                    data = self.read_at(at, _ZSTD_STEP_BYTES)
                    if not data:
                        raise TornError(frame, "the zstd stream ends early")
                    at += len(data)
                    if piece := decoder.decompress(data):
                        yield frame, piece
            except zstandard.ZstdError as error:
                raise TornError(frame, f"the zstd stream is damaged: {error}") from error
            at -= len(decoder.unused_data)


def begins_record(text: bytes) -> bool:
    """Return whether a text begins with the head of a record."""
    found = _LEAD.match(text)
    return text.startswith(b"WARC/", found.end() if found else 0)


def _plain_dictionary(stored: bytes) -> bytes:
    """Return the dictionary, which may itself be compressed."""
    if not stored.startswith(_ZSTD):
        return stored
    try:
        decoder = zstandard.ZstdDecompressor()
        return decoder.decompress(stored, max_output_size=_MAX_DICTIONARY_BYTES)
    except zstandard.ZstdError:
        return stored


def whole_until(source: FileSlice, start: int) -> int:
    """Return the end of the last whole gzip member, at ``start`` or behind it."""
    ends = at = start
    inflate = zlib.decompressobj(31)
    # Bytes that are not a member raise, which ends the search.
    with suppress(zlib.error):
        # A byte of gzip expands to 1,032 at most.
        while data := source.read_at(at, _WHOLE_STEP_BYTES):
            inflate.decompress(data)
            at += len(data) - len(inflate.unused_data)
            if inflate.eof:
                ends, inflate = at, zlib.decompressobj(31)
    return ends


class Text:
    """A position in the text of a slice, from a member on.

    ``torn`` is the reason why the text ends before the file.
    """

    def __init__(self, source: FileSlice, offset: int) -> None:
        self._source = source
        self._is_plain = source.coding == "plain"
        self._pieces = source.pieces(offset)
        self._held = b""
        self._used = 0
        #: Length of the text before the held part.
        self._before = 0
        #: Members that begin at the position or behind it, and the one that holds the position.
        self._starts: deque[tuple[int, int]] = deque([(0, offset)])
        self._offset = offset
        self.torn: TornError | None = None

    @property
    def member(self) -> int:
        """The position in the file of the member that holds the text behind the position."""
        return self._offset + self._at if self._is_plain else self._start()[1]

    @property
    def within(self) -> int:
        """The bytes between the beginning of the member and the position."""
        return 0 if self._is_plain else self._at - self._start()[0]

    @property
    def begins_member(self) -> bool:
        """Return whether a compressed member begins here."""
        return not self._is_plain and self.within == 0

    @property
    def _at(self) -> int:
        return self._before + self._used

    def _start(self) -> tuple[int, int]:
        while len(self._starts) > 1 and self._starts[1][0] <= self._at:
            self._starts.popleft()
        return self._starts[0]

    def pass_lead(self) -> None:
        """Go on behind empty lines, and a byte order mark where files were joined."""
        while (found := _LEAD.match(self.peek(_LEAD_BYTES))) is not None and found.end():
            self._used += found.end()

    def peek(self, size: int) -> bytes:
        """Return up to ``size`` bytes; fewer at the end."""
        while len(self._held) - self._used < size and self._grow():
            pass
        return self._held[self._used : self._used + size]

    def take(self, size: int) -> bytes:
        """Return up to ``size`` bytes, and go on behind them; fewer at the end."""
        piece = self.peek(size)
        self._used += len(piece)
        return piece

    def skip(self, size: int) -> int:
        """Go on by ``size`` bytes; return how many there were."""
        left = size
        while left > 0 and (piece := self.take(min(left, _PIECE_BYTES))):
            left -= len(piece)
        return size - left

    def member_ahead(self, size: int) -> int:
        """Return the bytes up to a member that begins with a record, ``size`` if it is farther."""
        if self._is_plain:
            return size
        self.peek(size)
        for start, _ in self._starts:
            ahead = start - self._at
            if 0 < ahead < size and begins_record(self.peek(ahead + 16)[ahead:]):
                return ahead
        return size

    def find(self, pattern: re.Pattern[bytes], most: int) -> bool:
        """Go on to the next match, which has ``most`` bytes at most, or to the end."""
        while True:
            data = self.peek(_PIECE_BYTES)
            found = pattern.search(data)
            if found is not None:
                self._used += found.start()
                return True
            if len(data) < _PIECE_BYTES:
                self._used += len(data)
                return False
            self._used += len(data) - most

    def _grow(self) -> bool:
        if self.torn is not None:
            return False
        try:
            member, piece = next(self._pieces, (0, b""))
        except TornError as error:
            self.torn = error
            return False
        if not piece:
            return False
        if not self._is_plain and member != self._starts[-1][1]:
            self._starts.append((self._before + len(self._held), member))
        self._before += self._used
        self._held = self._held[self._used :] + piece
        self._used = 0
        return True
