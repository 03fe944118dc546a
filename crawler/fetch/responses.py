"""A response by RFC 9110: status, dates and media type of the head, content codings."""

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

#: Names and values as received, in order.
RawHeaders = tuple[tuple[bytes, bytes], ...]

#: Media types that browsers show as a page.
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
#: Media types for an unknown type (MIME Sniffing standard, section 7).
_UNKNOWN_TYPES = frozenset({"unknown/unknown", "application/unknown", "httpd/unix-directory"})
#: A type and a subtype (RFC 9110, section 8.3.1).
_MEDIA_TYPE = re.compile(r"[!#$%&'*+\-.^_`|~0-9a-z]+/[!#$%&'*+\-.^_`|~0-9a-z]+")
#: Number of bytes that the MIME Sniffing standard examines (section 5.2).
SNIFFED_BYTES = 1445

_FIELD_VALUE = re.compile(rf"[!-~](?:[ -~]{{0,{VALIDATOR_CHARS - 2}}}[!-~])?")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410})
_WITHOUT_CONTENT = frozenset({204, 205})
#: Statuses that some servers return for the headers Freshet adds (validators, codings), but not for
#: a plain request; and reasons of responses that end early or are invalid.
REPEATED = frozenset({400, 406, 408, 412, 416, 431, 500, 501})
_UNREADABLE = frozenset(
    {"stale", "hung_up", "protocol", "headers_too_large", "encoding", "cut_short"}
)
#: The content coding header of a plain request.
PLAIN = ("Accept-Encoding", "identity")
_CONTENT_RANGE = re.compile(rb"bytes[ \t]+0-(\d{1,18})/(\d{1,18})", re.IGNORECASE)
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")
#: Control characters that text never has (MIME Sniffing standard, section 3).
_BINARY = bytes({*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)})
#: Value for a delay that is too large to represent (RFC 9111, section 1.2.2).
_LONGEST_DELAY_S = float(2**31)


@dataclass(frozen=True, slots=True)
class StatusVerdict:
    """The outcome for a status code; ``fetched`` if the body is complete."""

    outcome: Outcome
    reason: str | None = None
    detail: str | None = None
    location: str | None = None


_FETCHED = StatusVerdict("fetched")


def judge(
    status: int, url: str, location: bytes | None, *, is_conditional: bool, is_whole: bool = False
) -> StatusVerdict:
    """Judge the status, and the Location of a redirect.

    206 is a failure unless the received part ``is_whole``: no part was requested, and a part must
    not count as the whole. 304 is a failure for an unconditional request.
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
    # Octets of a host name that are not UTF-8 cannot be kept.
    kept = resolve(with_octets(location), url) or resolve(reference, url)
    target = kept if reference.strip() else None
    if target is None or not is_http(target):
        detail = f"{status} to {reference[:200]!r}, which is no http or https URL"
        return StatusVerdict("failed", "bad_redirect", detail)
    target = without_credentials(target)
    return StatusVerdict("redirected", f"http_{status}", f"{status} to {target}", target)


def with_octets(reference: bytes) -> str:
    """Return a reference from a header with its octets unchanged, whatever their encoding."""
    return _NOT_ASCII.sub(lambda octet: b"%%%02X" % octet[0][0], reference).decode("ascii")


def _text(value: bytes) -> str:
    """Decode a header value: ASCII by the standard, UTF-8 or Latin-1 in practice."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def whole_bytes(headers: RawHeaders) -> int | None:
    """Return the length of a whole that was sent as its only part, by Content-Range; else None."""
    found = {value.strip() for name, value in headers if name.lower() == b"content-range"}
    range_ = _CONTENT_RANGE.fullmatch(found.pop()) if len(found) == 1 else None
    return int(range_[2]) if range_ is not None and int(range_[1]) + 1 == int(range_[2]) else None


def is_plain(result: FetchResult) -> bool:
    """Return whether the request was a plain one."""
    return PLAIN in result.request_headers


def is_repeatable(result: FetchResult) -> bool:
    """Return whether a plain request for the same URL may succeed.

    The request was sent and was not plain; the server hung up, or its response is an error or
    invalid. A server that sends Retry-After is not asked again before that time.
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
    """Return a header's values as one list (RFC 9110, section 5.3); ``name`` is in lower case."""
    size = len(name)
    values = [value for key, value in headers if len(key) == size and key.lower() == name]
    return b", ".join(values).decode("latin-1")


def retry_after_s(headers: RawHeaders, now: float) -> float | None:
    """Return the seconds to wait by a Retry-After header, or None without a valid one.

    A date (RFC 9110, section 10.2.3) is compared with the server's Date header, or else with
    ``now`` in Unix seconds; a past date gives 0.
    """
    header = first_header(headers, b"retry-after")
    if header is None:
        return None
    value = header.decode("latin-1").strip()
    if value.isascii() and value.isdigit():
        return min(float(value), _LONGEST_DELAY_S)
    at = parse_date(value)
    if at is None:
        return None
    at_server = parse_date((first_header(headers, b"date") or b"").decode("latin-1"))
    return max(0.0, at - (now if at_server is None else at_server))


def parse_date(value: str) -> float | None:
    """Parse an HTTP date in any of its three formats into Unix seconds (RFC 9110, 5.6.7)."""
    try:
        parsed = parsedate_tz(value)
        # Without a zone, as in the asctime format, it is UTC.
        return None if parsed is None else float(timegm(parsed[:9]) - (parsed[9] or 0))
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=256)
def media_type(content_type: str) -> str | None:
    """Return ``type/subtype`` in lower case, or None if it is missing or unknown.

    Like browsers, it ignores malformed values, such as quoted ones or values with blanks.
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
    """Return whether the first bytes are unencoded text."""
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


# -- the real format of a body ------------------------------------------------------

PACKED_MAGIC = {b"\x1f\x8b\x08": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
#: First bytes that no text starts with (MIME Sniffing standard, section 6, and common archives).
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
#: Examined bytes, and the share of control characters (one in _ONE_IN) that marks binary data:
#: random bytes have one in ten, the worst texts one in some hundreds.
_SAMPLE_BYTES = 16_384
_ONE_IN = 20
#: ISO 2022 and UTF-16 use the others in text.
_CONTROLS = bytes({*_BINARY} - {0x0E, 0x0F})
_WIDE = re.compile(r"charset\s*=\s*[\"']?(?:utf-?(?:16|32)|ucs-|unicode|iso-10646)", re.IGNORECASE)


def is_binary(body: bytes, content_type: str | None) -> bool:
    """Return whether a body labelled as text is another format, or random bytes.

    A doubtful body counts as text.
    """
    if body.startswith(_BYTE_ORDER_MARKS) or _WIDE.search(content_type or ""):
        return False
    if _BINARY_MAGIC.match(body) and looks_binary(body):
        return True
    sample = body[:_SAMPLE_BYTES]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if controls * _ONE_IN <= len(sample) or _MARKUP_START.search(sample) is not None:
        return False
    # In UTF-16, nearly every other byte of a Western text is zero.
    zeros = sorted(half.count(0) for half in (sample[::2], sample[1::2]))
    return not zeros[0] * _ONE_IN < zeros[1] > len(sample) // 8


def unpacked(body: bytes, max_bytes: int) -> bytes:
    """Return the content of a body that is compressed by its first bytes, or else the body.

    At most ``max_bytes`` are decoded.
    """
    for _ in range(MAX_LAYERS):
        coding = packed_coding(body)
        inner = None if coding is None else _unpacked(body, coding, max_bytes)
        if inner is None:
            break
        body = inner
    return body


def packed_coding(body: bytes) -> str | None:
    """Return the coding of a compressed body by its first bytes, or None."""
    return next((coding for magic, coding in PACKED_MAGIC.items() if body.startswith(magic)), None)


def _unpacked(body: bytes, coding: str, max_bytes: int) -> bytes | None:
    """Return the content of a compressed body; None if it is damaged or too large."""
    decoder = BoundedDecoder(coding, max_bytes)
    try:
        unpacked = b"".join(decoder.decode(body))
    except Unfetched:
        return None
    return unpacked if decoder.is_complete and not decoder.is_overdrawn else None


# -- decoding ----------------------------------------------------------------
# RFC 9110, section 8.4.1. A compressed body is a program that writes memory: 66 kB of zstd can
# expand to 8 GB. So each step here makes at most a few MiB, and the total has a hard limit, for the
# output as well as between two layers.

#: Decoded bytes in one step of gzip, deflate and brotli (brotli may exceed it by half).
_STEP_BYTES = 65_536
#: Encoded bytes per step of zstd, which has no limit of the output: a block of four bytes makes 128
#: KiB, so a step makes at most 4 MiB.
_ZSTD_STEP_BYTES = 128
#: The window that encoders must not exceed, 8 MiB (RFC 9659, section 3).
_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
GZIP_MAGIC = b"\x1f\x8b"
#: ``wbits`` of zlib for its three formats.
_GZIP, _ZLIB, _RAW = 31, 15, -15
MAX_LAYERS = 2
#: The stub wrongly declares OSError.
_ISAL_ERROR: type[Exception] = vars(isal_zlib)["error"]


def _inflate(stream: zlib._Decompress | isal_zlib.Decompress, data: bytes) -> Iterator[bytes]:
    """Yield all output of a stream for the data; ``unused_data`` has the bytes behind its end.

    Raises:
        zlib.error: the data is damaged.
    """
    try:
        piece = stream.decompress(data, _STEP_BYTES)
        while piece:
            yield piece
            # Even with an empty tail, some output may be pending.
            piece = stream.decompress(stream.unconsumed_tail, _STEP_BYTES)
    except _ISAL_ERROR as error:
        raise zlib.error(*error.args) from error


class Gzip:
    """Concatenated gzip members (RFC 1952, section 2.2); anything behind them is ignored."""

    def __init__(self) -> None:
        self._member: isal_zlib.Decompress | None = None
        self._held = b""
        self._in_garbage = False
        self._members = 0

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded next bytes, at most 64 KiB at once; raise zlib.error."""
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
        # isal takes a quarter of zlib's time.
        self._member = isal_zlib.decompressobj(_GZIP)
        self._members += 1
        if self._members > GZIP_MEMBERS:
            meet("members of a gzip stream")
            raise zlib.error(f"more than {GZIP_MEMBERS:,} members")
        return self._member

    @property
    def is_complete(self) -> bool:
        """True if the last member has ended."""
        return self._member is not None and self._member.eof


def begins_as_zlib(data: bytes) -> bool:
    """Return whether data has an RFC 1950 header; other data has one once in 500 cases."""
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
    """Deflate whose checksum is ignored, and may be missing."""

    is_checked = False


class _Brotli:
    """Brotli (RFC 7932)."""

    def __init__(self) -> None:
        self._stream = brotli.Decompressor()

    def decode(self, data: bytes) -> Iterator[bytes]:
        # can_accept_more_data() turns true while output is pending, so drain it all.
        piece: bytes = self._stream.process(data, output_buffer_limit=_STEP_BYTES)
        while piece:
            yield piece
            piece = self._stream.process(b"", output_buffer_limit=_STEP_BYTES)

    @property
    def is_complete(self) -> bool:
        return bool(self._stream.is_finished())


class _Zstd:
    """Concatenated zstd frames (RFC 8878, section 3.1)."""

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
    """Gzip members whose checksums are ignored, and may be missing.

    Anything behind them is ignored.
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
        """Begin the next member, if there is one."""
        header = _GZIP_HEADER.match(self._held)
        if header is None or self._members == GZIP_MEMBERS:
            return False
        self._members += 1
        self._held = self._held[header.end() :]
        self._stream, self.is_complete = zlib.decompressobj(_RAW), False
        return True


#: Checksum and length at the end of a gzip member.
_TRAILER_BYTES = 8
#: A header without extra fields except a name, as servers write it.
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
#: Registered codings (IANA, HTTP Content Coding Registry) that are not supported.
_NOT_READ = frozenset({"aes128gcm", "compress", "x-compress", "dcb", "dcz", "exi", "pack200-gzip"})


class BoundedDecoder:
    """Decoder of the codings of one body, limited to ``max_bytes``.

    Feed the received bytes to :meth:`decode` in pieces of any size. Stop when ``is_overdrawn``:
    there was more than ``max_bytes``, of the body or between two layers. ``is_identity``: the body
    has no coding. ``is_unchecked``: the checksums of gzip and deflate are ignored.

    Raises:
        Unfetched: on construction, for a registered coding other than gzip, deflate, br and zstd,
            and for more than two codings.
    """

    def __init__(
        self, content_encoding: str, max_bytes: int, *, is_unchecked: bool = False
    ) -> None:
        names = codings_of(content_encoding).applied[::-1]
        self.is_identity = not names
        layers = _LAYERS if not is_unchecked else {**_LAYERS, **_UNCHECKED}
        self._layers: list[_Layer] = [layers[name]() for name in names]
        #: The bytes that each layer may still output.
        self._left = [max_bytes] * max(1, len(names))
        self._is_empty = True
        self.is_overdrawn = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Decode the next received bytes in bounded steps.

        Raises:
            Unfetched: if the bytes cannot be decoded; the iteration cannot continue.
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
        """Yield the output of a layer, up to its limit, and b"" after each piece of input."""
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
        """True if the body may end here; an empty body may, whatever its coding."""
        return self._is_empty or all(layer.is_complete for layer in self._layers)


class Codings(NamedTuple):
    """Codings of a body, as applied. ``has_other_words``: some words are not codings.

    ``is_light``: their decoders take little time and about 50 KB of memory. ``is_gzip``: gzip is
    the only coding.
    """

    applied: tuple[str, ...]
    has_other_words: bool
    is_light: bool
    is_gzip: bool


@lru_cache(maxsize=64)
def codings_of(content_encoding: str) -> Codings:
    """Return the codings of a Content-Encoding value.

    A word that is not a coding (``utf-8``, ``none``) is ignored.

    Raises:
        Unfetched: for a registered coding other than gzip, deflate, br and zstd, and for more than
            two codings.
    """
    words = [word.strip().lower() for word in content_encoding.split(",")]
    named = [word for word in words if word not in ("", "identity")]
    applied = tuple(word for word in named if word in _LAYERS or word in _NOT_READ)
    unread = [word for word in applied if word in _NOT_READ]
    if unread:
        raise Unfetched("encoding", f"content coding {unread[0]!r} is not supported")
    if len(applied) > MAX_LAYERS:
        raise Unfetched("encoding", f"{len(applied)} content codings on top of each other")
    is_light = all(_LAYERS[name] in (Gzip, _Deflate) for name in applied)
    is_gzip = len(applied) == 1 and _LAYERS[applied[0]] is Gzip
    return Codings(applied, len(applied) < len(named), is_light, is_gzip)


def gunzip_short(data: bytes, most: int) -> bytes | None:
    """Return the content of one gzip member; None if it is incomplete or over ``most`` bytes."""
    member = isal_zlib.decompressobj(_GZIP)
    try:
        text = member.decompress(data, most)
    except _ISAL_ERROR:
        return None
    return text if member.eof and not member.unused_data else None
