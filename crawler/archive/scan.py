"""Reads all records of a file in one pass, up to the first damage.

fastwarc reads. At something that is not a whole record the pass ends with one :class:`Damage`,
which says where and why. A record is yielded when the next one has begun; the last one when its
member is whole, and, before a damage, only if its digest can be checked.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple, Protocol, Self, cast

import zstandard
from fastwarc.stream_io import ZstdReader
from fastwarc.warc import ArchiveIterator, WarcRecord
from isal import isal_zlib

from freshet.crawler.archive.records import (
    MAX_HEAD_BYTES,
    Damage,
    Flaw,
    Label,
    RecordPlace,
    head_end,
    header_lines,
    is_chunked,
    read_label,
    unchunked,
    written,
)


# -- slices ------------------------------------------------------------------
class Slice:
    """``size`` bytes from ``start`` of a file; offsets count from ``start``.

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
        """Close the file."""
        self._file.close()

    def read_at(self, offset: int, size: int) -> bytes:
        """Read up to ``size`` bytes; fewer at the end."""
        wanted = min(size, self.size - offset)
        return os.pread(self._file.fileno(), wanted, self._start + offset) if wanted > 0 else b""

    def stream(self, offset: int) -> IO[bytes]:
        """Return a stream of the bytes from ``offset`` on; the slice must stay open."""
        return cast(IO[bytes], _Stream(self, offset))


class _Stream(io.RawIOBase):
    """A position in a slice, as a file object."""

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


# -- members -----------------------------------------------------------------
# A compressed archive is a chain of gzip members or zstd frames, usually one for each record;
# "member" stands for both. Memory holds one slice at a time.
_SLICE_BYTES = 64 * 1024
_DIGITS = re.compile(r"\d{1,18}", re.ASCII)
_MAX_DICTIONARY_BYTES = 64 * 1024 * 1024
#: A skippable zstd frame that holds the dictionary of all frames behind it.
_DICTIONARY = b"\x5d\x2a\x4d\x18"
#: Its stubs call the one of isal a value.
_UNDECODABLE = (cast("type[Exception]", isal_zlib.error), zstandard.ZstdError)


class Coding(StrEnum):
    """The coding in which the records of a file are stored."""

    PLAIN = "plain"
    GZIP = "gzip"
    ZSTD = "zstd"


#: What a record begins with in each coding.
_MAGIC = {Coding.PLAIN: b"WARC/", Coding.GZIP: b"\x1f\x8b\x08", Coding.ZSTD: b"\x28\xb5\x2f\xfd"}
#: Compressed bytes that are undone at once, so that they make a few MiB at most: a byte of gzip
#: stands for 1,032 at most, four of zstd for 128 KiB.
_STEP_BYTES = {Coding.GZIP: 4096, Coding.ZSTD: 128}


class BrokenMember(ValueError):
    """A member that does not decompress, or ends early."""


class _Decoder(Protocol):
    """The common interface of gzip and zstd decoders."""

    @property
    def eof(self) -> bool:
        """True if the member has ended."""

    @property
    def unused_data(self) -> bytes:
        """The bytes behind the member's end."""

    def decompress(self, data: bytes, /) -> bytes:
        """Decompress some bytes."""


class Codec(NamedTuple):
    """The coding of one file's records.

    A zstd file may begin with a dictionary; ``first`` is the position of its first record.
    """

    coding: Coding
    dictionary: bytes | None = None
    first: int = 0

    def decoder(self) -> _Decoder:
        """Return a decoder of one member."""
        if self.coding is Coding.GZIP:
            return isal_zlib.decompressobj(31)
        known = self.dictionary and zstandard.ZstdCompressionDict(self.dictionary)
        return zstandard.ZstdDecompressor(dict_data=known or None).decompressobj()


class Member:
    """The bytes of the member at an offset; ``end`` follows the bytes used so far.

    ``length`` is the member's, if known: no more is read.
    """

    def __init__(self, source: Slice, at: int, codec: Codec, length: int = _SLICE_BYTES) -> None:
        self._source = source
        self._codec = codec
        self._slice_bytes = min(length, _SLICE_BYTES)
        self.end = at

    def __iter__(self) -> Iterator[bytes]:
        """Yield the bytes in bounded pieces.

        Raises:
            BrokenMember: the member is broken.
        """
        decoder, step = self._codec.decoder(), _STEP_BYTES[self._codec.coding]
        while data := self._source.read_at(self.end, self._slice_bytes):
            for start in range(0, len(data), step):
                part = data[start : start + step]
                try:
                    piece = decoder.decompress(part)
                except _UNDECODABLE as error:
                    raise BrokenMember(f"{self._codec.coding}: {error}") from error
                self.end += len(part) - len(decoder.unused_data if decoder.eof else b"")
                if piece:
                    yield piece
                if decoder.eof:
                    return
        raise BrokenMember(f"the {self._codec.coding} stream ends early")


def codec_of(source: Slice) -> Codec | None:
    """Return a file's coding by its first bytes; None if it does not begin with a record."""
    head = source.read_at(0, 8)
    if head.startswith(_DICTIONARY):
        first = 8 + int.from_bytes(head[4:8], "little")
        if source.read_at(first, 4) == _MAGIC[Coding.ZSTD] and first <= _MAX_DICTIONARY_BYTES:
            return Codec(Coding.ZSTD, _plain_dictionary(source.read_at(8, first - 8)), first)
    return next((Codec(c) for c, magic in _MAGIC.items() if head.startswith(magic)), None)


def _plain_dictionary(stored: bytes) -> bytes:
    """Return the dictionary, which may itself be compressed."""
    if not stored.startswith(_MAGIC[Coding.ZSTD]):
        return stored
    try:
        decoder = zstandard.ZstdDecompressor()
        return decoder.decompress(stored, max_output_size=_MAX_DICTIONARY_BYTES)
    except zstandard.ZstdError:
        return stored


def declared_length(text: str | None) -> int | str:
    """Return a Content-Length as a number, or the reason why it is wrong."""
    if text is None:
        return "the record has no Content-Length"
    if not _DIGITS.fullmatch(text.strip()):
        return f"the record has an impossible Content-Length, {text[:30]!r}"
    return int(text)


# -- scanned -----------------------------------------------------------------
#: So much of a block is read at once, and kept of it.
_SCAN_BYTES = 2 * MAX_HEAD_BYTES
#: Up to so many bytes, a chunked payload whose digest is wrong is looked at without its framing:
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

    def ended(self, end: int) -> ScannedRecord:
        """Return the record with its end."""
        place = RecordPlace(self.place.offset, end - self.place.offset, self.place.nth)
        return ScannedRecord(place, self.fields, self.start, self.digest, self.wrong)


def scanned(record: WarcRecord, offset: int, nth: int = 0) -> ScannedRecord:
    """Read a record to its end.

    Raises:
        BadRecord: its head has no usable length, or its block is not all there.
        OSError: it cannot be read.
    """
    fields: dict[str, str] = {}
    for name, value in record.headers.items_bytes():
        fields.setdefault(name.decode("latin-1").lower(), value.decode("utf-8", "replace"))
    length = declared_length(fields.get("content-length"))
    if isinstance(length, str):
        raise _BadRecord(length)
    start = b""
    size = 0
    labels = _Labels(fields)
    for piece in _pieces(record):
        start = start or piece
        size += len(piece)
        labels.update(piece)
    if size != length:
        raise _BadRecord(f"the record should have {length} bytes, it has {size}")
    return ScannedRecord(
        RecordPlace(offset, 0, nth), fields, start, labels.digest(), labels.wrong()
    )


def _pieces(record: WarcRecord) -> Iterator[bytes]:
    """Yield the block in pieces; all but the last have the same size."""
    reader = record.reader
    while piece := reader.read(_SCAN_BYTES):
        while len(piece) < _SCAN_BYTES and (more := reader.read(_SCAN_BYTES - len(piece))):
            piece += more
        yield piece


class _Labels:
    """The labelled digests of one record, computed piece by piece.

    The payload of an answer is hashed without a label, too: revisits name it.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        kind = fields.get("warc-type")
        has_payload = kind in ("response", "resource")
        self._has_head = kind == "response"
        self._label = fields.get("warc-payload-digest")
        self._block = read_label(fields.get("warc-block-digest"))
        self._payload = read_label(self._label) if has_payload else None
        self._block_hash = self._block and self._block.new()
        self._hash = (self._payload or Label("sha1", None)).new() if has_payload else None
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

    def digest(self) -> str | None:
        """Return the payload's digest, as labelled or computed, in one spelling."""
        if self._label is not None:
            known = self._payload or read_label(self._label)
            return self._label if known is None else str(known)
        return None if self._hash is None else written("sha1", self._hash.digest())

    def wrong(self) -> str | None:
        """Return the label that does not match, or None."""
        block, payload = self._block, self._payload
        if block and self._block_hash and self._block_hash.digest() != block.digest:
            return f"the {block.algorithm} digest of its block is wrong"
        if payload and self._hash and self._hash.digest() != payload.digest:
            wrong = f"the {payload.algorithm} digest of its payload is wrong"
            return None if self._fits_unchunked() else wrong
        return None

    def _fits_unchunked(self) -> bool:
        if self._body is None or self._payload is None:
            return False
        content = self._payload.new()
        content.update(unchunked(b"".join(self._body)))
        return content.digest() == self._payload.digest


#: A record's head may be as long as a message's.
_MAX_HEADER_BYTES = 64 * 1024
_NO_RECORD = "no WARC record begins here"


class SeveralPerMember(Exception):
    """Several records in one member, found on the way: read the file as a stream."""


def warc_records(source: Slice, at: int, codec: Codec) -> Iterator[WarcRecord]:
    """Yield the records from an offset on, as fastwarc reads them; HTTP is not parsed.

    Raises:
        OSError: the file cannot be read further.
    """
    stream = source.stream(at)
    reader = ZstdReader(stream, dictionary=codec.dictionary) if codec.dictionary else stream
    yield from ArchiveIterator(
        reader, parse_http=False, strict_mode=False, max_header_len=_MAX_HEADER_BYTES
    )


def scan(source: Slice, file: str, *, as_stream: bool = False) -> Iterator[ScannedRecord | Damage]:
    """Yield every record up to the first damage, and the damage.

    ``file`` is the name in messages. ``as_stream`` counts the records of compressed members instead
    of noting their offsets.

    Raises:
        SeveralPerMember: scan again with ``as_stream``, and discard what was yielded.
    """
    codec = codec_of(source)
    if codec is None:
        flaw = Flaw.UNREADABLE if source.size else Flaw.EMPTY
        yield Damage(file, 0, _NO_RECORD if source.size else "the file is empty", flaw)
        return
    held: ScannedRecord | None = None
    at, given, problem = codec.first, 0, ""
    try:
        for nth, record in enumerate(warc_records(source, codec.first, codec)):
            began = record.stream_pos if nth else codec.first
            if nth and began <= at and not as_stream:
                raise SeveralPerMember
            if held is not None:
                yield held if as_stream else held.ended(began)
                given += 1
            held, at = None, began
            held = scanned(record, codec.first, nth) if as_stream else scanned(record, at)
        # fastwarc takes a member that is cut short for a whole one.
        end = codec.first if as_stream else at
        while end < source.size:
            end = _end_of(source, end, codec)
    except (_BadRecord, BrokenMember, OSError) as error:
        problem, end = str(error), source.size
    if held is not None and (not problem or "warc-block-digest" in held.fields):
        yield held if as_stream else held.ended(end)
        given += 1
    if problem or not given:
        reason = f"{problem or _NO_RECORD}; the reading ends at this record or behind it"
        yield Damage(file, at, f"{reason}, {given:,} records were read")


def scan_listed(
    source: Slice, file: str, places: Iterable[tuple[int, int]]
) -> Iterator[ScannedRecord | Damage]:
    """Yield the records at these offsets; a length of 0 is unknown."""
    codec = codec_of(source)
    for at, length in places:
        if codec is None or not 0 <= at < source.size:
            yield Damage(file, at, _NO_RECORD, Flaw.UNREADABLE)
            continue
        try:
            for record in islice(warc_records(source, at, codec), 1):
                held = scanned(record, at)
                yield held.ended(at + length if length else _end_of(source, at, codec))
        except (_BadRecord, BrokenMember, OSError) as error:
            yield Damage(file, at, str(error))


def _end_of(source: Slice, at: int, codec: Codec) -> int:
    """Return the end of the member at an offset; an uncompressed file is one member.

    Raises:
        BrokenMember: the member is not whole.
    """
    if codec.coding is Coding.PLAIN:
        return source.size
    member = Member(source, at, codec)
    for _ in member:
        pass
    return member.end
