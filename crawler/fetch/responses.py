"""A response by RFC 9110: status, dates and media type of its head, codings of its content."""

from __future__ import annotations

import codecs
import re
import zlib
from calendar import timegm
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_tz
from functools import lru_cache
from itertools import chain
from typing import ClassVar, NamedTuple, TypeAlias, TypeGuard

import brotli
import zstandard
from isal import isal_zlib

from freshet.crawler.errors import Unfetched
from freshet.crawler.fetch.bounds import GZIP_MEMBERS, VALIDATOR_CHARS, meet
from freshet.crawler.urls import is_http, resolve, without_credentials
from freshet.storage.entries import Outcome
from freshet.storage.records import FetchResult

#: Names and values as they came, in order.
RawHeaders = tuple[tuple[bytes, bytes], ...]

#: Media types of what browsers show as a page.
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
#: They say that the type is not known (MIME Sniffing standard, section 7).
_UNKNOWN_TYPES = frozenset({"unknown/unknown", "application/unknown", "httpd/unix-directory"})
#: A type and a subtype (RFC 9110, section 8.3.1).
_MEDIA_TYPE = re.compile(r"[!#$%&'*+\-.^_`|~0-9a-z]+/[!#$%&'*+\-.^_`|~0-9a-z]+")
#: The number of bytes that the MIME Sniffing standard examines (section 5.2).
SNIFFED_BYTES = 1445

_FIELD_VALUE = re.compile(rf"[!-~](?:[ -~]{{0,{VALIDATOR_CHARS - 2}}}[!-~])?")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410})
_WITHOUT_CONTENT = frozenset({204, 205})
#: Answers that some servers give to what we add to a request (validators, codings), but not to a
#: plain one; and the words for responses that end early or cannot be read.
REPEATED = frozenset({400, 406, 408, 412, 416, 431, 500, 501})
_UNREADABLE = frozenset(
    {"stale", "hung_up", "protocol", "headers_too_large", "encoding", "cut_short"}
)
#: The coding of a plain request.
PLAIN = ("Accept-Encoding", "identity")
_CONTENT_RANGE = re.compile(rb"bytes[ \t]+0-(\d{1,18})/(\d{1,18})", re.IGNORECASE)
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")
#: Control characters that text never holds (MIME Sniffing standard, section 3).
_BINARY = bytes({*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)})
#: The value for a delay too large to represent (RFC 9111, section 1.2.2).
_LONGEST_DELAY_S = float(2**31)


@dataclass(frozen=True, slots=True)
class StatusVerdict:
    """The outcome that a status code stands for; ``fetched`` if its body is whole."""

    outcome: Outcome
    reason: str | None = None
    detail: str | None = None
    location: str | None = None


_FETCHED = StatusVerdict("fetched")


def judge(
    status: int, url: str, location: bytes | None, *, is_conditional: bool, is_whole: bool = False
) -> StatusVerdict:
    """Judge the status, and the Location where it counts.

    206 is a failure unless the part that came ``is_whole``: nobody requested a part, and it must
    not pass for the whole. So is 304 in answer to an unconditional request.
    """
    if status in _WITHOUT_CONTENT:
        return StatusVerdict("skipped", f"http_{status}", "the server has no content here")
    if 200 <= status < 300 and (status != 206 or is_whole):
        return _FETCHED
    if status in _REDIRECTS:
        return _redirect(status, url, location)
    if status == 304 and is_conditional:
        return StatusVerdict("not_modified")
    outcome: Outcome = "gone" if status in _GONE else "failed"
    who = "the proxy" if status == 407 else "the server"
    return StatusVerdict(outcome, f"http_{status}", f"{who} answered {status}")


def _redirect(status: int, url: str, location: bytes | None) -> StatusVerdict:
    if location is None:
        return StatusVerdict("failed", "bad_redirect", f"{status} without a Location")
    reference = _text(location)
    # The octets of a host name that are not UTF-8 cannot be kept.
    kept = resolve(with_octets(location), url) or resolve(reference, url)
    target = kept if reference.strip() else None
    if target is None or not is_http(target):
        detail = f"{status} to {reference[:200]!r}, which is no http or https URL"
        return StatusVerdict("failed", "bad_redirect", detail)
    target = without_credentials(target)
    return StatusVerdict("redirected", f"http_{status}", f"{status} to {target}", target)


def with_octets(reference: bytes) -> str:
    """Return a reference in a header; its octets are the server's own, whatever they encode."""
    return _NOT_ASCII.sub(lambda octet: b"%%%02X" % octet[0][0], reference).decode("ascii")


def _text(value: bytes) -> str:
    """Decode a header value: ASCII by the standard, UTF-8 or Latin-1 in the wild."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def whole_bytes(headers: RawHeaders) -> int | None:
    """Return the length of a whole that came as its only part, by Content-Range; else None."""
    found = {value.strip() for name, value in headers if name.lower() == b"content-range"}
    said = _CONTENT_RANGE.fullmatch(found.pop()) if len(found) == 1 else None
    return int(said[2]) if said is not None and int(said[1]) + 1 == int(said[2]) else None


def is_plain(result: FetchResult) -> bool:
    """Return whether the request was a plain one."""
    return PLAIN in result.request_headers


def is_repeatable(result: FetchResult) -> bool:
    """Return whether a plain request for the same URL may have an answer.

    The request was sent and was not plain; the server hung up, or its response is an error or
    cannot be read. A server that says when to come back is not asked again before.
    """
    was_full = bool(result.request_headers) and not is_plain(result)
    if result.outcome != "failed" or not was_full or result.requests is not None:
        return False
    if result.header("Retry-After") is not None:
        return False
    is_error = result.status is not None and result.status >= 400
    return result.status in REPEATED if is_error else result.reason in _UNREADABLE


def is_field_value(value: str | None) -> TypeGuard[str]:
    """Return whether a validator can be sent back: visible ASCII and blanks, and not too long."""
    return value is not None and _FIELD_VALUE.fullmatch(value) is not None


def first_header(headers: RawHeaders, name: bytes) -> bytes | None:
    """Return the first value of a header; ``name`` is in lower case."""
    size = len(name)
    for key, value in headers:
        if len(key) == size and key.lower() == name:
            return value
    return None


def all_values(headers: RawHeaders, name: bytes) -> str:
    """Return the values of a header as one list (RFC 9110, section 5.3); ``name`` as above."""
    size = len(name)
    values = [value for key, value in headers if len(key) == size and key.lower() == name]
    return b", ".join(values).decode("latin-1")


def retry_after_s(headers: RawHeaders, now: float) -> float | None:
    """Return the seconds to wait by a Retry-After header, None without a valid one.

    A date (RFC 9110, 10.2.3) is read against the server's own clock where its Date header shows it,
    else against ``now``, in Unix seconds; one in the past gives 0.
    """
    said = first_header(headers, b"retry-after")
    if said is None:
        return None
    value = said.decode("latin-1").strip()
    if value.isascii() and value.isdigit():
        return min(float(value), _LONGEST_DELAY_S)
    at = parse_date(value)
    if at is None:
        return None
    at_server = parse_date((first_header(headers, b"date") or b"").decode("latin-1"))
    return max(0.0, at - (now if at_server is None else at_server))


def parse_date(value: str) -> float | None:
    """Parse an HTTP date in any of its three formats as Unix seconds (RFC 9110, 5.6.7)."""
    try:
        parsed = parsedate_tz(value)
        # Without a zone, as in the asctime format, it is UTC.
        return None if parsed is None else float(timegm(parsed[:9]) - (parsed[9] or 0))
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=256)
def media_type(content_type: str) -> str | None:
    """Return ``type/subtype`` in lower case; None if it is missing or names no type.

    What is none by its form is not looked at, as by browsers: quoted, or with blanks, say.
    """
    name = content_type.partition(";")[0].strip().lower()
    major, _, minor = name.partition("/")
    is_type = _MEDIA_TYPE.fullmatch(name) is not None and name not in _UNKNOWN_TYPES
    is_named = is_type and major.strip("*") and minor.strip("*")
    return name if is_named else None


def looks_binary(head: bytes) -> bool:
    """Return whether the first bytes of an unlabelled body are not text in any encoding."""
    if head.startswith(_BYTE_ORDER_MARKS):
        return False
    sample = head[:SNIFFED_BYTES]
    return len(sample.translate(None, _BINARY)) < len(sample)


def is_evidently_text(head: bytes) -> bool:
    """Return whether the first bytes are those of a text, and of nothing that is encoded."""
    sample = head[:SNIFFED_BYTES]
    if not sample or looks_binary(sample):
        return False
    if sample.startswith(_BYTE_ORDER_MARKS):
        return True
    try:
        # The last character may be cut.
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return sample.lstrip().startswith(b"<")
    return True


# -- what a body is, whatever its label says -----------------------------------

PACKED_MAGIC = {b"\x1f\x8b\x08": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
#: First bytes that no text begins with (MIME Sniffing standard, section 6, and common archives).
_BINARY_MAGIC = re.compile(
    rb"""
      \x89PNG\r\n\x1a\n | \xff\xd8\xff | GIF8[79]a | RIFF.{4}(?:WEBP|WAVE|AVI\x20)
    | \x00\x00[\x01\x02]\x00 | II\*\x00 | MM\x00\* | 8BPS\x00 | .{4}ftyp[a-zA-Z0-9 ]{4} | OggS\x00
    | \x1a\x45\xdf\xa3 | FLV\x01 | ID3[\x02-\x04]\x00 | fLaC\x00 | PK\x03\x04 | Rar!\x1a\x07
    | 7z\xbc\xaf\x27\x1c | BZh[1-9]1AY&SY | \xfd7zXZ\x00 | \x1f\x8b\x08 | \x28\xb5\x2f\xfd
    | \x7fELF | \xca\xfe\xba\xbe | \x00asm | wOF[F2]\x00\x01
    | \x00\x01\x00\x00\x00 | OTTO\x00 | SQLite\ format\ 3\x00 | \xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1
    | .{257}ustar
    """,
    re.VERBOSE | re.DOTALL,
)
_MARKUP_START = re.compile(
    rb"<(?:!doctype|html|head|body|title|meta|table|script|\?xml)[\s>]", re.IGNORECASE
)
#: Bytes that are looked at, and one in so many that is a control character in binary data: in
#: random bytes one in ten is, in the worst texts one in some hundreds.
_SAMPLE_BYTES = 16_384
_ONE_IN = 20
#: Those of ISO 2022 and UTF-16 are text.
_CONTROLS = bytes({*_BINARY} - {0x0E, 0x0F})
_WIDE = re.compile(r"charset\s*=\s*[\"']?(?:utf-?(?:16|32)|ucs-|unicode|iso-10646)", re.IGNORECASE)


def is_binary(body: bytes, content_type: str | None) -> bool:
    """Return whether a body that is labelled as text is none: another format, or random bytes.

    A doubtful one is text.
    """
    if body.startswith(_BYTE_ORDER_MARKS) or _WIDE.search(content_type or ""):
        return False
    if _BINARY_MAGIC.match(body) and looks_binary(body):
        return True
    sample = body[:_SAMPLE_BYTES]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if controls * _ONE_IN <= len(sample) or _MARKUP_START.search(sample) is not None:
        return False
    # Nearly every other byte of UTF-16 is zero in a text of the West.
    zeros = sorted(half.count(0) for half in (sample[::2], sample[1::2]))
    return not zeros[0] * _ONE_IN < zeros[1] > len(sample) // 8


def unpacked(body: bytes, max_bytes: int) -> bytes:
    """Return what is packed in a body, ``max_bytes`` at most, by its first bytes; else the body."""
    for _ in range(MAX_LAYERS):
        coding = packed_coding(body)
        inner = None if coding is None else _unpacked(body, coding, max_bytes)
        if inner is None:
            break
        body = inner
    return body


def packed_coding(body: bytes) -> str | None:
    """Return the coding of a packed body by its first bytes, None of any other."""
    return next((coding for magic, coding in PACKED_MAGIC.items() if body.startswith(magic)), None)


def _unpacked(body: bytes, coding: str, max_bytes: int) -> bytes | None:
    """Return what a packed body holds, None if it is damaged or holds too much."""
    decoder = BoundedDecoder(coding, max_bytes)
    try:
        unpacked = b"".join(decoder.decode(body))
    except Unfetched:
        return None
    return unpacked if decoder.is_complete and not decoder.is_overdrawn else None


# -- decoding ----------------------------------------------------------------
# RFC 9110, section 8.4.1. A compressed body is a program that writes memory: 66 kB of zstd can
# stand for 8 GB. So no step here makes more than a few MiB, and the total has a hard limit, between
# two layers as well as for the output.

#: Decoded bytes in one step of gzip, deflate and brotli (brotli may go over it by half).
_STEP_BYTES = 65_536
#: Encoded bytes per step of zstd, which has no limit of its own: a block of
#: four bytes makes 128 KiB, so a step makes 4 MiB at most.
_ZSTD_STEP_BYTES = 128
#: The window that encoders must not exceed, 8 MiB (RFC 9659, section 3).
_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
GZIP_MAGIC = b"\x1f\x8b"
#: ``wbits`` of zlib for the three formats that it reads.
_GZIP, _ZLIB, _RAW = 31, 15, -15
MAX_LAYERS = 2
#: Its stub says OSError, and mistakes its kind.
_ISAL_ERROR: type[Exception] = vars(isal_zlib)["error"]


def _inflate(stream: zlib._Decompress | isal_zlib.Decompress, data: bytes) -> Iterator[bytes]:
    """Yield all output of a stream for the data; behind its end see ``unused_data``.

    Raises:
        zlib.error: the data is damaged.
    """
    try:
        piece = stream.decompress(data, _STEP_BYTES)
        while piece:
            yield piece
            # With an empty tail there may still be output that had no room.
            piece = stream.decompress(stream.unconsumed_tail, _STEP_BYTES)
    except _ISAL_ERROR as error:
        raise zlib.error(*error.args) from error


class Gzip:
    """Members one after the other (RFC 1952, section 2.2); anything after them is ignored."""

    def __init__(self) -> None:
        self._member: isal_zlib.Decompress | None = None
        self._held = b""
        self._in_garbage = False
        self._members = 0

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield what the next bytes stand for, at most 64 KiB at once; raises zlib.error."""
        while data and not self._in_garbage:
            member = self._member
            if member is None or member.eof:
                data = self._held + data
                member = self._next_member(data)
                if member is None:
                    return
            yield from _inflate(member, data)
            data = member.unused_data

    def _next_member(self, data: bytes) -> isal_zlib.Decompress | None:
        begins = data.startswith(GZIP_MAGIC)
        self._held = data if data == GZIP_MAGIC[:1] else b""
        self._in_garbage = not begins and not self._held
        if self._in_garbage and not self._members:
            raise zlib.error("incorrect header check")
        if not begins:
            return None
        # A quarter of the time of zlib's own.
        self._member = isal_zlib.decompressobj(_GZIP)
        self._members += 1
        if self._members > GZIP_MEMBERS:
            meet("members of a gzip stream")
            raise zlib.error(f"more than {GZIP_MEMBERS:,} members")
        return self._member

    @property
    def is_complete(self) -> bool:
        """Return whether the last member has ended."""
        return self._member is not None and self._member.eof


def begins_as_zlib(data: bytes) -> bool:
    """Return whether data has the header of RFC 1950, as one of 500 others has by chance."""
    return len(data) > 1 and data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0


class _Deflate:
    """The zlib format (RFC 1950), or bare deflate (RFC 1951), which some servers send."""

    is_checked: ClassVar = True

    def __init__(self) -> None:
        self._held = b""
        self._stream: zlib._Decompress | None = None

    def decode(self, data: bytes) -> Iterator[bytes]:
        if self._stream is None:
            self._held += data
            if len(self._held) < 2:
                return
            data = self._held
            is_zlib = begins_as_zlib(data)
            self._stream = zlib.decompressobj(_ZLIB if is_zlib and self.is_checked else _RAW)
            data = data[2:] if is_zlib and not self.is_checked else data
        if not self._stream.eof:
            yield from _inflate(self._stream, data)

    @property
    def is_complete(self) -> bool:
        return self._stream is not None and self._stream.eof


class _UncheckedDeflate(_Deflate):
    """The same; the checksum is not looked at, and may be missing."""

    is_checked = False


class _Brotli:
    """RFC 7932."""

    def __init__(self) -> None:
        self._stream = brotli.Decompressor()

    def decode(self, data: bytes) -> Iterator[bytes]:
        # can_accept_more_data() turns true while output still waits, so drain it all.
        piece: bytes = self._stream.process(data, output_buffer_limit=_STEP_BYTES)
        while piece:
            yield piece
            piece = self._stream.process(b"", output_buffer_limit=_STEP_BYTES)

    @property
    def is_complete(self) -> bool:
        return bool(self._stream.is_finished())


class _Zstd:
    """Frames one after the other (RFC 8878, section 3.1)."""

    def __init__(self) -> None:
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
        self._frame = self._decompressor.decompressobj()

    def decode(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _ZSTD_STEP_BYTES):
            rest = data[start : start + _ZSTD_STEP_BYTES]
            while rest:
                if self._frame.eof:
                    self._frame = self._decompressor.decompressobj()
                yield self._frame.decompress(rest)
                rest = self._frame.unused_data

    @property
    def is_complete(self) -> bool:
        return self._frame.eof


class _UncheckedGzip:
    """Members of gzip whose checksums are not looked at, and may be missing.

    Anything after them is ignored.
    """

    def __init__(self) -> None:
        self._held = b""
        self._stream: zlib._Decompress | None = None
        self._members = 0
        self.is_complete = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        self._held += data
        while self._stream is not None or self._begin():
            assert self._stream is not None  # noqa: S101 - narrows the type
            data, self._held = self._held, b""
            yield from _inflate(self._stream, data)
            if not self._stream.eof:
                return
            self._held, self.is_complete = self._stream.unused_data, True
            if len(self._held) < _TRAILER_BYTES:
                return
            self._held, self._stream = self._held[_TRAILER_BYTES:], None

    def _begin(self) -> bool:
        """Begin a member, if one does."""
        header = _GZIP_HEADER.match(self._held)
        if header is None or self._members == GZIP_MEMBERS:
            return False
        self._members += 1
        self._held = self._held[header.end() :]
        self._stream, self.is_complete = zlib.decompressobj(_RAW), False
        return True


#: Checksum and length behind a member of gzip.
_TRAILER_BYTES = 8
#: A header without extra fields but a name, as servers write it.
_GZIP_HEADER = re.compile(rb"\x1f\x8b\x08(?:[\0\1].{6}|\x08.{6}[^\0]*\0)", re.DOTALL)
_LAYERS: Mapping[str, type[Gzip | _Deflate | _Brotli | _Zstd]] = {
    "gzip": Gzip,
    "x-gzip": Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}


_Layer: TypeAlias = Gzip | _Deflate | _Brotli | _Zstd | _UncheckedGzip
_UNCHECKED: Mapping[str, type[_UncheckedGzip | _UncheckedDeflate]] = {
    "gzip": _UncheckedGzip, "x-gzip": _UncheckedGzip, "deflate": _UncheckedDeflate,
}  # fmt: skip
#: Codings that are registered (IANA, HTTP Content Coding Registry) and not read.
_NOT_READ = frozenset({"aes128gcm", "compress", "x-compress", "dcb", "dcz", "exi", "pack200-gzip"})


class BoundedDecoder:
    """Decoder of the codings of one body, ``max_bytes`` at most.

    Feed the wire's bytes with :meth:`decode` in any pieces. When
    ``is_overdrawn``, there was more than ``max_bytes`` (of the body, or between two
    layers): stop. ``is_identity`` says that there is no coding, ``is_light`` that the decoder takes
    little time and memory: some 50 KB. ``has_other_words`` tells of words that name no coding;
    ``is_unchecked``: the checksums of gzip and deflate are not looked at.

    Raises:
        Unfetched: on construction, for a registered coding other than gzip, deflate, br and zstd,
            and for more than two.
    """

    def __init__(
        self, content_encoding: str, max_bytes: int, *, is_unchecked: bool = False
    ) -> None:
        names = codings_of(content_encoding).applied[::-1]
        self.is_identity = not names
        layers = _LAYERS if not is_unchecked else {**_LAYERS, **_UNCHECKED}
        self._layers: list[_Layer] = [layers[name]() for name in names]
        #: The bytes that may still leave each layer.
        self._left = [max_bytes] * max(1, len(names))
        self._is_empty = True
        self.is_overdrawn = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Decode the next bytes from the wire in bounded steps.

        Raises:
            Unfetched: if the bytes do not decode; the iteration cannot go on.
        """
        self._is_empty = self._is_empty and not data
        pieces: Iterable[bytes] = (data,)
        for number in range(len(self._left)):
            pieces = self._granted(number, pieces)
        try:
            yield from pieces
        except (zlib.error, brotli.error, zstandard.ZstdError) as error:
            raise Unfetched("encoding", str(error)) from error

    def _granted(self, number: int, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield what a layer makes, up to the limit, and nothing where it has taken a piece."""
        for taken in pieces:
            layer = (taken,) if self.is_identity else self._layers[number].decode(taken)
            for piece in chain(layer, (b"",)):
                granted = piece[: self._left[number]]
                self._left[number] -= len(granted)
                yield granted
                if len(granted) < len(piece):
                    self.is_overdrawn = True
                    return

    @property
    def is_complete(self) -> bool:
        """Return whether the body may end here. An empty one may, whatever its coding."""
        return self._is_empty or all(layer.is_complete for layer in self._layers)


class Codings(NamedTuple):
    """Codings of a body, as applied. ``has_other_words``: there are words that name no coding.

    ``is_light``: their decoders take little time and memory, some 50 KB. ``is_gzip``: it is the
    only one.
    """

    applied: tuple[str, ...]
    has_other_words: bool
    is_light: bool
    is_gzip: bool


@lru_cache(maxsize=64)
def codings_of(content_encoding: str) -> Codings:
    """Return the codings of a Content-Encoding value.

    A word that names no coding (``utf-8``, ``none``) says nothing of the body.

    Raises:
        Unfetched: for a registered coding other than gzip, deflate, br and zstd, and for more than
            two.
    """
    words = [word.strip().lower() for word in content_encoding.split(",")]
    said = [word for word in words if word not in ("", "identity")]
    applied = tuple(word for word in said if word in _LAYERS or word in _NOT_READ)
    unread = [word for word in applied if word in _NOT_READ]
    if unread:
        raise Unfetched("encoding", f"content coding {unread[0]!r} is not supported")
    if len(applied) > MAX_LAYERS:
        raise Unfetched("encoding", f"{len(applied)} content codings on top of each other")
    is_light = all(_LAYERS[name] in (Gzip, _Deflate) for name in applied)
    is_gzip = len(applied) == 1 and _LAYERS[applied[0]] is Gzip
    return Codings(applied, len(applied) < len(said), is_light, is_gzip)


def gunzip_short(data: bytes, most: int) -> bytes | None:
    """Return what one member of gzip stands for, None unless it is whole and has ``most`` bytes."""
    member = isal_zlib.decompressobj(_GZIP)
    try:
        text = member.decompress(data, most)
    except _ISAL_ERROR:
        return None
    return text if member.eof and not member.unused_data else None
