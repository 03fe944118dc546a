"""Where records begin and end in a file, by its bytes alone: for files that are damaged.

A compressed archive is a chain of members (gzip) or frames (zstd), as a rule one a record; what
is called a member here is either. Memory holds one slice at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol, cast

import zstandard
from isal import isal_zlib

from freshet.crawler.replaying.messages import MAX_HEAD_BYTES, head_end, header_lines, named
from freshet.crawler.replaying.slices import Slice

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
