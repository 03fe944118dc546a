"""Reads all records of a file in one pass, up to the first damage.

fastwarc reads. At something that is not a whole record the pass ends with one :class:`Damage`,
which says where and why. A record is yielded when the next one has begun; the last one when it is
whole, or has a digest to be checked.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import zstandard
from fastwarc.stream_io import GzipReader, ZstdReader
from fastwarc.warc import ArchiveIterator, WarcRecord

from freshet.crawler.archive.records import (
    MAX_HEAD_BYTES,
    Damage,
    RecordPlace,
    head_end,
    header_lines,
    is_chunked,
    named,
    read_label,
    unchunked,
    written,
)

_MAX_DICTIONARY_BYTES = 64 * 1024 * 1024
#: A skippable zstd frame that holds the dictionary of all frames behind it.
_DICTIONARY = b"\x5d\x2a\x4d\x18"
_ZSTD = b"\x28\xb5\x2f\xfd"
#: Compressed bytes that are undone at once: a byte of gzip stands for 1,032 at most.
_STEP_BYTES = 4096


# -- files -------------------------------------------------------------------
class Slice:
    """``size`` bytes from ``start`` of a file; offsets count from ``start``.

    ``coding`` is that of its records, None if it does not begin with one. A zstd file may begin
    with a dictionary; ``first`` is the position of its first record.

    Raises:
        OSError: the file cannot be opened or read.
    """

    def __init__(self, path: Path, start: int = 0, size: int | None = None) -> None:
        self._file = path.open("rb", buffering=0)
        self._start = start
        whole = os.fstat(self._file.fileno()).st_size - start
        self.size = whole if size is None else min(size, whole)
        self._dictionary: bytes | None = None
        self.first = 0
        self.coding = self._coding()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read_at(self, offset: int, size: int) -> bytes:
        """Read up to ``size`` bytes; fewer at the end."""
        wanted = min(size, self.size - offset)
        return os.pread(self._file.fileno(), wanted, self._start + offset) if wanted > 0 else b""

    def reader(self, offset: int) -> _Reader:
        """Return a reader of the bytes from an offset on, as text; the slice must stay open."""
        stream = _Stream(self, offset)
        if self.coding == "gzip":
            return GzipReader(stream)
        if self.coding == "zstd":
            return ZstdReader(stream, dictionary=self._dictionary)
        return stream

    def _coding(self) -> Literal["plain", "gzip", "zstd"] | None:
        head = self.read_at(0, 8)
        if head.startswith(_DICTIONARY):
            first = 8 + int.from_bytes(head[4:8], "little")
            if self.read_at(first, 4) == _ZSTD and first <= _MAX_DICTIONARY_BYTES:
                self._dictionary, self.first = _plain_dictionary(self.read_at(8, first - 8)), first
                return "zstd"
        if head.startswith(b"WARC/"):
            return "plain"
        if head.startswith(b"\x1f\x8b\x08"):
            return "gzip"
        return "zstd" if head.startswith(_ZSTD) else None


class _Stream:
    """A position in a slice, as fastwarc wants a file."""

    def __init__(self, source: Slice, offset: int) -> None:
        self._source = source
        self._at = offset

    def read(self, size: int = -1, /) -> bytes:
        left = self._source.size - self._at
        piece = self._source.read_at(self._at, left if size < 0 else size)
        self._at += len(piece)
        return piece

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        """Do nothing: the slice stays open."""

    def frame_start_position(self) -> None:
        """Return None, as there are no gzip members or zstd frames."""


_Reader: TypeAlias = GzipReader | ZstdReader | _Stream


def _plain_dictionary(stored: bytes) -> bytes:
    """Return the dictionary, which may itself be compressed."""
    if not stored.startswith(_ZSTD):
        return stored
    try:
        decoder = zstandard.ZstdDecompressor()
        return decoder.decompress(stored, max_output_size=_MAX_DICTIONARY_BYTES)
    except zstandard.ZstdError:
        return stored


def whole_until(source: Slice, start: int) -> int:
    """Return the end of the last whole gzip member, at ``start`` or behind it."""
    ends = at = start
    inflate = zlib.decompressobj(31)
    # What is no member raises: that is what is looked for.
    with suppress(zlib.error):
        while data := source.read_at(at, _STEP_BYTES):
            inflate.decompress(data)
            at += len(data) - len(inflate.unused_data)
            if inflate.eof:
                ends, inflate = at, zlib.decompressobj(31)
    return ends


def warc_records(reader: _Reader) -> Iterator[WarcRecord]:
    """Return the records as fastwarc reads them; HTTP is not parsed.

    Raises:
        OSError: on iteration, if the file cannot be read further.
    """
    return iter(
        ArchiveIterator(reader, parse_http=False, strict_mode=False, max_header_len=MAX_HEAD_BYTES)
    )


# -- scanned -----------------------------------------------------------------
_NO_RECORD = "no WARC record begins here"
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
#: So much of a block is read at once, and kept of it.
_SCAN_BYTES = 2 * MAX_HEAD_BYTES
#: Up to so many bytes, a chunked payload whose digest is wrong is tried without its framing:
#: the standard wants the digest of that, most tools take what came.
_MAX_UNCHUNKED_BYTES = 16 * 1024 * 1024


class _BadRecord(ValueError):
    """An unusable record; the message says why."""


@dataclass(frozen=True, slots=True)
class ScannedRecord:
    """A record that was read to its end.

    ``fields`` are those of its head, names in lower case; ``start`` is the beginning of its block.
    ``digest`` is the payload's, as labelled or (of an answer) computed, in one spelling; ``wrong``
    names a label that does not match.
    """

    place: RecordPlace
    fields: Mapping[str, str]
    start: bytes
    digest: str | None = None
    wrong: str | None = None


def scan(source: Slice, file: str) -> Iterator[ScannedRecord | Damage]:
    """Yield every record up to the first damage, and the damage; ``file`` is named in messages."""
    if source.coding is None:
        empty = Damage(file, 0, "the file is empty", "empty")
        yield Damage(file, 0, _NO_RECORD, "unreadable") if source.size else empty
        return
    held: ScannedRecord | None = None
    at = member = behind = source.first
    reader, given, problem = source.reader(at), 0, ""
    try:
        for place, record in placed(reader):
            if held is not None:
                yield held
                given += 1
            held, at = None, place.offset
            held = _scanned(record, place)
            member = reader.frame_start_position() or at
        _require_whole(source, member)
    except (_BadRecord, OSError) as error:
        problem, behind = str(error), _behind(source, reader, held, member)
    if held is not None and (not problem or behind > member or "warc-block-digest" in held.fields):
        yield held
        given += 1
    if problem or not given:
        reason = f"{problem or _NO_RECORD}; the reading ends at this record or behind it"
        yield Damage(file, max(at, behind), f"{reason}, {given:,} records were read")


def placed(reader: _Reader) -> Iterator[tuple[RecordPlace, WarcRecord]]:
    """Yield the records with their places.

    From the first one that shares its member on they are counted: a later member need not begin
    with a record.
    """
    place, is_counted = RecordPlace(-1), False
    for record in warc_records(reader):
        member = reader.frame_start_position()
        is_counted = is_counted or (member is not None and member <= place.offset)
        if is_counted:
            place = RecordPlace(place.offset, place.nth + 1)
        else:
            place = RecordPlace(record.stream_pos if member is None else member)
        yield place, record
        is_counted = is_counted or reader.frame_start_position() != member


def _require_whole(source: Slice, member: int) -> None:
    """Raise _BadRecord if the last gzip member is cut short, which fastwarc takes for whole."""
    if source.coding == "gzip" and whole_until(source, member) < source.size:
        raise _BadRecord("the gzip stream ends early")


def _behind(source: Slice, reader: _Reader, held: ScannedRecord | None, member: int) -> int:
    """Return the end of the record before a damage, or of its member; ``member`` if not whole."""
    if held is None:
        return member
    if source.coding != "plain":
        return reader.frame_start_position() or member
    head = head_end(source.read_at(member, MAX_HEAD_BYTES)) or 0
    end = member + head + int(held.fields["content-length"])
    return end + 4 if source.read_at(end, 4) == b"\r\n\r\n" else member


def scan_listed(
    source: Slice, file: str, offsets: Iterable[int]
) -> Iterator[ScannedRecord | Damage]:
    """Yield the records at these offsets."""
    for at in offsets:
        try:
            is_inside = source.coding is not None and 0 <= at < source.size
            record = next(warc_records(source.reader(at)), None) if is_inside else None
            if record is None:
                yield Damage(file, at, _NO_RECORD, "unreadable")
            else:
                yield _scanned(record, RecordPlace(at))
        except (_BadRecord, OSError) as error:
            yield Damage(file, at, str(error))


def _scanned(record: WarcRecord, place: RecordPlace) -> ScannedRecord:
    """Read a record to its end.

    Raises:
        _BadRecord: its head has no usable length, or its block is not all there.
        OSError: it cannot be read.
    """
    fields = named(record.headers.items_bytes())
    text = fields.get("content-length")
    if text is None:
        raise _BadRecord("the record has no Content-Length, or its lines do not end with CR LF")
    if not _LENGTH.fullmatch(text.strip()):
        raise _BadRecord(f"the record has an impossible Content-Length, {text[:30]!r}")
    start, size, digests = b"", 0, _Digests(fields)
    for piece in _pieces(record):
        start = start or piece
        size += len(piece)
        digests.update(piece)
    if size != int(text):
        raise _BadRecord(f"the record should have {int(text)} bytes, it has {size}")
    return ScannedRecord(place, fields, start, digests.payload(), digests.wrong())


def _pieces(record: WarcRecord) -> Iterator[bytes]:
    """Yield the block in pieces; all but the last have the same size."""
    reader = record.reader
    while piece := reader.read(_SCAN_BYTES):
        while len(piece) < _SCAN_BYTES and (more := reader.read(_SCAN_BYTES - len(piece))):
            piece += more
        yield piece


class _Digests:
    """The digests of one record, computed piece by piece and compared with its labels.

    The payload of an answer is hashed without a label, too: revisits name it.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        kind = fields.get("warc-type")
        has_payload = kind in ("response", "resource")
        self._has_head = kind == "response"
        self._label = fields.get("warc-payload-digest")
        self._block = read_label(fields.get("warc-block-digest"))
        self._payload = read_label(self._label)
        self._block_hash = _hash(self._block[0]) if self._block else None
        self._hash = _hash(self._payload[0] if self._payload else "sha1") if has_payload else None
        self._body: list[bytes] | None = None
        self._body_bytes = 0
        self._is_first = True

    def update(self, piece: bytes) -> None:
        """Add the next piece of the block; the first holds the head of a message."""
        if self._block_hash is not None:
            self._block_hash.update(piece)
        if self._hash is None:
            return
        if self._is_first:
            self._is_first = False
            body = (head_end(piece) or 0) if self._has_head else 0
            if self._payload is not None and is_chunked(header_lines(piece[:body])):
                self._body = []
            piece = piece[body:]
        self._hash.update(piece)
        if self._body is not None:
            self._body.append(piece)
            self._body_bytes += len(piece)
            if self._body_bytes > _MAX_UNCHUNKED_BYTES:
                self._body = None

    def payload(self) -> str | None:
        """Return the payload's digest, as labelled or computed, in one spelling."""
        if self._payload is not None and self._payload[1] is not None:
            return written(self._payload[0], self._payload[1])
        if self._label is not None:
            return self._label
        return None if self._hash is None else written("sha1", self._hash.digest())

    def wrong(self) -> str | None:
        """Return the label that does not match, or None."""
        if self._block and self._block_hash and self._block_hash.digest() != self._block[1]:
            return f"the {self._block[0]} digest of its block is wrong"
        if self._payload is None or self._hash is None or self._hash.digest() == self._payload[1]:
            return None
        algorithm, digest = self._payload
        content = None if self._body is None else unchunked(b"".join(self._body))
        if content is not None and _hash(algorithm, content).digest() == digest:
            return None
        return f"the {algorithm} digest of its payload is wrong"


def _hash(algorithm: str, data: bytes = b"") -> hashlib._Hash:
    return hashlib.new(algorithm, data, usedforsecurity=False)
