"""All records of a file in one pass, whatever is wrong with some of them.

fastwarc reads. It ends where it meets something that is not a record, sometimes without a word,
and where a record has no length it takes it for an empty one. So a record is given out only when
the next one has begun where it ends; where none does, the bytes are walked over once more
(:mod:`freshet.crawler.archive.scan`) to see which of the two is wrong, that is told as a
:class:`Damage`, and the pass goes on at the next place where a record begins.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
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
    Place,
    head_end,
    header_lines,
    is_chunked,
    named,
    read_label,
    unchunked,
    written,
)

# -- slices ------------------------------------------------------------------
#
# A run of bytes in a file: a whole archive, or one that lies in a ZIP as it is.


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


# -- members -----------------------------------------------------------------
#
# Where records begin and end in a file, by its bytes alone: for files that are damaged.
#
# A compressed archive is a chain of members (gzip) or frames (zstd), as a rule one a record; what
# is called a member here is either. Memory holds one slice at a time.

_SLICE_BYTES = 64 * 1024
#: How much of a member is undone to see whether a record begins there.
_PROBE_BYTES = 16
_DIGITS = re.compile(r"\d{1,18}", re.ASCII)
_RECORD = re.compile(rb"WARC/\d\.\d+[ \t]*\r?\n")
#: Two line ends follow every record; those who forget one are forgiven.
_TRAILERS = (b"\r\n\r\n", b"\n\n", b"\r\n", b"\n", b"")
_MAX_DICTIONARY_BYTES = 64 * 1024 * 1024
#: A skippable zstd frame that holds the dictionary of all frames behind it.
_DICTIONARY = b"\x5d\x2a\x4d\x18"
#: Its stubs call the one of isal a value.
_UNDECODABLE = (cast("type[Exception]", isal_zlib.error), zstandard.ZstdError)


class Coding(StrEnum):
    """How the records of a file are stored."""

    PLAIN = "plain"
    GZIP = "gzip"
    ZSTD = "zstd"


#: What a record begins with in each coding.
_MAGIC = {Coding.PLAIN: b"WARC/", Coding.GZIP: b"\x1f\x8b\x08", Coding.ZSTD: b"\x28\xb5\x2f\xfd"}
#: Compressed bytes that are undone at once, so that they make a few MiB at most: a byte of gzip
#: stands for 1,032 at most, four of zstd for 128 KiB.
_STEP_BYTES = {Coding.GZIP: 4096, Coding.ZSTD: 128}


class BrokenMember(ValueError):
    """A member does not decompress, or ends early."""


class _Decoder(Protocol):
    """What the decoders of gzip and zstd have in common."""

    @property
    def eof(self) -> bool:
        """Whether the member has ended."""

    @property
    def unused_data(self) -> bytes:
        """What lies behind its end."""

    def decompress(self, data: bytes, /) -> bytes:
        """The bytes undone."""


class Codec(NamedTuple):
    """How the records of one file are stored.

    A zstd file may begin with a dictionary; ``first`` is where its first record is.
    """

    coding: Coding
    dictionary: bytes | None = None
    first: int = 0

    def decoder(self) -> _Decoder:
        """A decoder of one member."""
        if self.coding is Coding.GZIP:
            return isal_zlib.decompressobj(31)
        known = self.dictionary and zstandard.ZstdCompressionDict(self.dictionary)
        return zstandard.ZstdDecompressor(dict_data=known or None).decompressobj()


class Member:
    """The bytes of the member at an offset; ``end`` is behind what has been used of the file.

    ``length`` is that of the member where it is known, so that no more than that is read.
    """

    def __init__(self, source: Slice, at: int, codec: Codec, length: int = _SLICE_BYTES) -> None:
        self._source = source
        self._codec = codec
        self._slice_bytes = min(length, _SLICE_BYTES)
        self.end = at

    def __iter__(self) -> Iterator[bytes]:
        """The bytes in bounded pieces.

        Raises:
            BrokenMember: where it does not go on.
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
    """How a file is stored, by what it begins with; None if it begins with no record."""
    head = source.read_at(0, 8)
    if head.startswith(_DICTIONARY):
        first = 8 + int.from_bytes(head[4:8], "little")
        if source.read_at(first, 4) == _MAGIC[Coding.ZSTD] and first <= _MAX_DICTIONARY_BYTES:
            return Codec(Coding.ZSTD, _plain_dictionary(source.read_at(8, first - 8)), first)
    return next((Codec(c) for c, magic in _MAGIC.items() if head.startswith(magic)), None)


def _plain_dictionary(stored: bytes) -> bytes:
    """A dictionary may be compressed itself."""
    if not stored.startswith(_MAGIC[Coding.ZSTD]):
        return stored
    try:
        decoder = zstandard.ZstdDecompressor()
        return decoder.decompress(stored, max_output_size=_MAX_DICTIONARY_BYTES)
    except zstandard.ZstdError:
        return stored


@dataclass(frozen=True, slots=True)
class Frame:
    """One record by its bytes: where it ends, and what is wrong with it, if anything.

    ``is_stream`` says that more records follow in the same member, where ``end`` is.
    """

    end: int
    problem: str | None = None
    is_stream: bool = False


def frame_at(source: Slice, at: int, codec: Codec) -> Frame:
    """Walk over the record at an offset."""
    return _plain_frame(source, at) if codec.coding is Coding.PLAIN else _member(source, at, codec)


def declared_size(head: bytes) -> int | str:
    """The bytes of a record without the line ends behind it, or what is wrong with its head."""
    start = _RECORD.match(head)
    if start is None:
        return "no WARC record begins here"
    end = head_end(head)
    if end is None:
        return "the head of the record does not end"
    length = declared_length(named(header_lines(head[start.end() : end])).get("content-length"))
    return length if isinstance(length, str) else end + length


def declared_length(text: str | None) -> int | str:
    """A Content-Length as a number, or what is wrong with it."""
    if text is None:
        return "the record has no Content-Length"
    if not _DIGITS.fullmatch(text.strip()):
        return f"the record has an impossible Content-Length, {text[:30]!r}"
    return int(text)


def _plain_frame(source: Slice, at: int) -> Frame:
    size = declared_size(source.read_at(at, MAX_HEAD_BYTES))
    if isinstance(size, str):
        return Frame(at, size)
    if at + size > source.size:
        return Frame(at, f"the record should have {size} bytes, {source.size - at} are left")
    behind = source.read_at(at + size, 4)
    trailer = next(each for each in _TRAILERS if behind.startswith(each))
    end = at + size + len(trailer)
    if not trailer and behind:
        return Frame(at, "the record does not end where its Content-Length says")
    return Frame(end)


def _member(source: Slice, at: int, codec: Codec) -> Frame:
    member, head, size, tail = Member(source, at, codec), b"", 0, b""
    declared: int | str | None = None
    try:
        for piece in member:
            if len(head) < MAX_HEAD_BYTES:
                head += piece[: MAX_HEAD_BYTES - len(head)]
                declared = None
            if declared is None and head_end(head) is not None:
                declared = declared_size(head)
            if isinstance(declared, int) and len(tail) < 16 and size + len(piece) > declared:
                tail += piece[max(0, declared - size) :][:16]
            size += len(piece)
    except BrokenMember as error:
        return Frame(member.end, str(error))
    declared = declared_size(head)
    if isinstance(declared, str):
        return Frame(member.end, declared)
    if declared > size:
        return Frame(member.end, f"the record should have {declared} bytes, it has {size}")
    if _RECORD.match(tail.lstrip(b"\r\n")):
        return Frame(member.end, is_stream=True)
    if size - declared > 4:
        return Frame(member.end, "the record does not end where its Content-Length says")
    return Frame(member.end)


def next_record(source: Slice, at: int, codec: Codec) -> int | None:
    """The first offset from ``at`` where a record begins, None if there is none."""
    magic = _MAGIC[codec.coding]
    keep = len(magic) - 1
    while window := source.read_at(at, _SLICE_BYTES + keep):
        found = window.find(magic)
        while found >= 0:
            if _begins(source, at + found, codec):
                return at + found
            found = window.find(magic, found + 1)
        at += _SLICE_BYTES
    return None


def _begins(source: Slice, at: int, codec: Codec) -> bool:
    if codec.coding is Coding.PLAIN:
        return _RECORD.match(source.read_at(at, 32)) is not None
    start = b""
    try:
        for piece in Member(source, at, codec):
            start += piece
            if len(start) >= _PROBE_BYTES:
                break
    except BrokenMember:
        pass
    return _RECORD.match(start) is not None


def guessed_codec(source: Slice) -> Codec:
    """The coding of a file that begins with something else: that of its first record."""
    codecs = [Codec(coding) for coding in Coding]
    firsts = [next_record(source, 1, codec) for codec in codecs]
    found = [(at, codec) for at, codec in zip(firsts, codecs, strict=True) if at is not None]
    return min(found, default=(0, codecs[0]), key=lambda pair: pair[0])[1]


# -- scanned -----------------------------------------------------------------
#
# One record as it goes by: its head, the beginning of its block, and its digests.

#: So much of a block is read at once, and kept of it.
_SCAN_BYTES = 2 * MAX_HEAD_BYTES
#: Up to so many bytes, a chunked payload whose digest is wrong is looked at without its framing:
#: the standard wants the digest of that, most tools take what came.
_MAX_UNCHUNKED_BYTES = 16 * 1024 * 1024


class BadRecord(ValueError):
    """The record cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class ScannedRecord:
    """A record that was read to its end.

    ``fields`` are those of its head, names in lower case; ``start`` is the beginning of its
    block. ``digest`` is that of the payload, as labelled or (of an answer) computed, in one
    spelling; ``wrong`` says which label does not fit.
    """

    place: Place
    fields: Mapping[str, str]
    start: bytes
    digest: str | None = None
    wrong: str | None = None

    def ended(self, end: int) -> ScannedRecord:
        """The same, now that it is known where it ends."""
        place = Place(self.place.offset, end - self.place.offset, self.place.nth)
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
        raise BadRecord(length)
    start = b""
    size = 0
    labels = _Labels(fields)
    for piece in _pieces(record):
        start = start or piece
        size += len(piece)
        labels.update(piece)
    if size != length:
        raise BadRecord(f"the record should have {length} bytes, it has {size}")
    return ScannedRecord(Place(offset, 0, nth), fields, start, labels.digest(), labels.wrong())


def _pieces(record: WarcRecord) -> Iterator[bytes]:
    """The block; all pieces but the last are of the same size."""
    reader = record.reader
    while piece := reader.read(_SCAN_BYTES):
        while len(piece) < _SCAN_BYTES and (more := reader.read(_SCAN_BYTES - len(piece))):
            piece += more
        yield piece


class _Labels:
    """The digests that one record is labelled with, computed piece by piece.

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
        """Take the next piece of the block; the first holds the head of a message."""
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
        """The payload's digest, as labelled or computed, in one spelling."""
        if self._label is not None:
            known = self._payload or read_label(self._label)
            return self._label if known is None else str(known)
        return None if self._hash is None else written("sha1", self._hash.digest())

    def wrong(self) -> str | None:
        """Which label does not fit, if one does not."""
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

_Records = Generator[ScannedRecord | Damage, None, int | None]


class SeveralPerMember(Exception):
    """A member holds several records, which only showed on the way: read the file as a stream."""


def warc_records(source: Slice, at: int, codec: Codec) -> Iterator[WarcRecord]:
    """The records from an offset on, as fastwarc reads them; HTTP is left as it is.

    Raises:
        OSError: on the way, where it does not go on.
    """
    stream = source.stream(at)
    reader = ZstdReader(stream, dictionary=codec.dictionary) if codec.dictionary else stream
    yield from ArchiveIterator(
        reader, parse_http=False, strict_mode=False, max_header_len=_MAX_HEADER_BYTES
    )


def scan(source: Slice, file: str, *, as_stream: bool = False) -> Iterator[ScannedRecord | Damage]:
    """Every record that can be read, and a word on each place that cannot.

    ``file`` is what messages call the source. ``as_stream`` counts the records of compressed
    members instead of noting where they begin.

    Raises:
        SeveralPerMember: that is what is needed, and nothing that was given out holds.
    """
    if source.size == 0:
        yield Damage(file, 0, "the file is empty", Flaw.EMPTY)
        return
    codec = codec_of(source)
    at: int | None = 0 if codec is None else codec.first
    if codec is None:
        codec = guessed_codec(source)
        at = next_record(source, 1, codec)
        yield Damage(file, 0, _no_record(0, at, source), Flaw.UNREADABLE)
    elif codec.coding is not Coding.PLAIN and frame_at(source, codec.first, codec).is_stream:
        as_stream = True
    walk = _Walk(source, file, codec)
    while at is not None:
        at = yield from walk.stream(at) if as_stream else walk.members(at)


def scan_listed(
    source: Slice, file: str, places: Iterable[tuple[int, int]]
) -> Iterator[ScannedRecord | Damage]:
    """The records at these offsets; a length of 0 is not known."""
    codec = codec_of(source)
    for at, length in places:
        if codec is None or not 0 <= at < source.size:
            yield Damage(file, at, "no WARC record begins here", Flaw.UNREADABLE)
            continue
        try:
            for record in islice(warc_records(source, at, codec), 1):
                held = scanned(record, at)
                yield held.ended(at + length if length else frame_at(source, at, codec).end)
        except (BadRecord, OSError) as error:
            yield Damage(file, at, str(error))


def _no_record(at: int, end: int | None, source: Slice) -> str:
    size = (source.size if end is None else end) - at
    return f"no WARC record begins here, {size} bytes are skipped"


class _Walk:
    """Runs of records between damages; each gives back where the next run begins, if any does.

    Every run ends behind where it began, so the walk ends.
    """

    def __init__(self, source: Slice, file: str, codec: Codec) -> None:
        self._source = source
        self._file = file
        self._codec = codec

    def members(self, start: int) -> _Records:
        """A run of records, each of which has a place of its own."""
        held: ScannedRecord | None = None
        at, problem, is_first = start, "the record cannot be read", True
        try:
            for record in warc_records(self._source, start, self._codec):
                began = start if is_first else record.stream_pos
                if began <= at and not is_first:
                    raise SeveralPerMember
                if held is not None:
                    yield held.ended(began)
                held, at, is_first = None, began, False
                held = scanned(record, at)
        except (BadRecord, OSError) as error:
            problem = str(error)
        return (yield from self._settle(at, held, problem))

    def _settle(self, at: int, held: ScannedRecord | None, problem: str) -> _Records:
        """See what is wrong where a run has ended: the record at ``at``, or what follows it."""
        frame = frame_at(self._source, at, self._codec)
        if frame.is_stream:
            raise SeveralPerMember
        if frame.problem is None and held is not None:
            yield held.ended(frame.end)
            return (yield from self._gap(frame.end))
        yield Damage(self._file, at, frame.problem or problem)
        return next_record(self._source, at + 1, self._codec)

    def _gap(self, end: int) -> _Records:
        """Skip what lies between the end of a record and the next one."""
        if end >= self._source.size:
            return None
        found = next_record(self._source, end, self._codec)
        if found != end:
            problem = frame_at(self._source, end, self._codec).problem or "no record begins here"
            size = (self._source.size if found is None else found) - end
            yield Damage(self._file, end, f"{problem}; {size} bytes are skipped")
        return found

    def stream(self, start: int) -> _Records:
        """A run of records that are counted from ``start``."""
        held: ScannedRecord | None = None
        problem: str | None = None
        nth = 0
        try:
            for nth, record in enumerate(warc_records(self._source, start, self._codec)):
                if held is not None:
                    yield held
                held = None
                held = scanned(record, start, nth)
        except (BadRecord, OSError) as error:
            problem = str(error)
        if held is not None and (problem is None or "warc-block-digest" in held.fields):
            yield held
        at, end, broken = self._members_end(start)
        if broken is not None:
            yield Damage(self._file, at, f"{broken}; what stands behind record {nth} is lost")
            return next_record(self._source, end, self._codec)
        if problem is not None:
            reason = f"{problem}, behind record {nth} of this stream; the rest of it is lost"
            yield Damage(self._file, start, reason)
        return None

    def _members_end(self, at: int) -> tuple[int, int, str | None]:
        """The last of the members that follow one another, where it ends, and what is wrong."""
        last = at
        while at < self._source.size:
            member, last = Member(self._source, at, self._codec), at
            try:
                for _ in member:
                    pass
            except BrokenMember as error:
                # The next one to be tried is behind the one that broke.
                return last, max(member.end, at + 1), str(error)
            at = member.end
        return last, at, None
