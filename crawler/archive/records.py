"""The text of records: heads of WARC records and of HTTP messages, and lines of facts.

Archives hold what servers sent, so everything here takes any bytes and raises nothing.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from freshet.crawler.fetch.responses import RawHeaders

# -- captures ----------------------------------------------------------------
#
# What an archive holds of one exchange, and where it stands. Pure values.


class CaptureKind(StrEnum):
    """How an exchange stands in an archive.

    ``RESPONSE`` has the answer itself. ``NOT_MODIFIED`` is the revisit of a 304, ``SAME`` that of
    a payload that was archived before. ``BARE`` has no answer, only a crawler's word on why.
    """

    RESPONSE = "response"
    NOT_MODIFIED = "not_modified"
    SAME = "same"
    BARE = "bare"


class Flaw(StrEnum):
    """What can be wrong with a part of an archive."""

    EMPTY = "empty"
    UNREADABLE = "unreadable"
    DAMAGED = "damaged"
    DIGEST = "wrong_digest"
    UNRESOLVED = "unresolved_revisit"


@dataclass(frozen=True, slots=True)
class Damage:
    """A place where an archive could not be read; what was read before it is kept.

    ``offset`` is the byte of the file (of a member, if ``file`` names one in a WACZ).
    """

    file: str
    offset: int
    reason: str
    flaw: Flaw = Flaw.DAMAGED

    def __str__(self) -> str:
        return f"{self.file}: at byte {self.offset}: {self.reason}"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a record is: ``length`` bytes at ``offset``, as they are stored.

    ``nth`` counts the records since ``offset`` where one compressed stream holds several; the
    length is 0 then.
    """

    offset: int
    length: int
    nth: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """What the crawler that wrote the archive says of an exchange beside its bytes.

    The words are those of the lines of its metadata record. ``duration_s`` is ``fetchTimeMs`` in
    seconds; Heritrix writes that, too, and the rest is ours: without an ``outcome`` the record is
    somebody else's. ``is_unasked``: nothing was sent.
    """

    duration_s: float = 0.0
    outcome: str | None = None
    reason: str | None = None
    detail: str | None = None
    retry_after_s: float | None = None
    location: str | None = None
    accept: str | None = None
    truncated: str | None = None
    is_unasked: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Where an exchange stands in the order of the times at which they ended."""

    ended_at: float
    source: int
    offset: int
    nth: int = 0


@dataclass(frozen=True, slots=True)
class ArchiveInfo:
    """What a file says of itself (a ``warcinfo`` record): who wrote it, and how.

    ``fields`` are names and values in order. Our own have the site list and the settings.
    """

    position: Position
    file: str
    fields: RawHeaders


@dataclass(frozen=True, slots=True)
class ArchivedExchange:
    """One exchange, read back.

    ``status``, ``headers`` and ``wire_body`` are those of the answer: the body as it came, its
    content coding kept, without chunked framing; of a ``SAME`` revisit it is the original's.
    ``is_cut`` says that the body was longer than the reader allows, ``truncated`` what the
    archive says of why it is not whole (WARC-Truncated). ``digest`` is the payload's, as
    ``sha1:HEX`` or by the algorithm of its label.
    """

    position: Position
    file: str
    kind: CaptureKind
    url: str
    started_at: float
    status: int | None = None
    headers: RawHeaders = ()
    wire_body: bytes = b""
    request_headers: RawHeaders = ()
    peer: str | None = None
    digest: str | None = None
    truncated: str | None = None
    is_cut: bool = False
    facts: Facts = field(default_factory=Facts)

    @property
    def ended_at(self) -> float:
        """When the exchange was over, in Unix seconds."""
        return self.position.ended_at

    @property
    def place(self) -> str:
        """The file and the byte, for messages."""
        return f"{self.file}: at byte {self.position.offset}"


#: As much as the head of a record, or of a message in it, may take.
MAX_HEAD_BYTES = 64 * 1024

#: A fetch that is said to have taken longer than a week is not believed.
_LONGEST_MS = 7 * 86_400_000.0
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS_LINE = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?!\d)")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\r\n]*)?\r?\n")
_SPACES = (b" ", b"\t")
_LINE_END = re.compile(rb"\r?\n")


def head_end(block: bytes) -> int | None:
    """Where the head of a message ends and its body begins; None if it does not end."""
    found = _HEAD_END.search(block, 0, MAX_HEAD_BYTES)
    return None if found is None else found.end()


def header_lines(head: bytes) -> RawHeaders:
    """The names and values of a head, in order, without its first line's special meaning.

    Lines without a colon are left out; a line that begins with white space goes on with the one
    before (RFC 9112, section 5.2).
    """
    lines: list[tuple[bytes, bytes]] = []
    for line in head.split(b"\n"):
        if line.startswith(_SPACES):
            if lines and line.strip():
                name, value = lines[-1]
                lines[-1] = name, value + b" " + line.strip()
            continue
        name, colon, value = line.partition(b":")
        if colon and name.strip():
            lines.append((name.strip(), value.strip()))
    return tuple(lines)


def http_status(block: bytes) -> int | None:
    """The status of an HTTP answer; None if the block does not begin like one."""
    found = _STATUS_LINE.match(block)
    return None if found is None else int(found[1])


def http_headers(head: bytes) -> RawHeaders:
    """The headers of an HTTP message, the first line left out."""
    return header_lines(head.partition(b"\n")[2])


def named(lines: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The first value of every name; names in lower case."""
    fields: dict[str, str] = {}
    for name, value in lines:
        fields.setdefault(name.decode("latin-1").lower(), value.decode("utf-8", "replace"))
    return fields


def is_chunked(headers: RawHeaders) -> bool:
    """Whether the headers announce chunked framing."""
    return any(n.lower() == b"transfer-encoding" and b"chunked" in v.lower() for n, v in headers)


def unchunked(body: bytes) -> bytes:
    """A body without its chunked framing (RFC 9112, section 7.1).

    Crawlers leave the header where they have undone the framing: a body that does not begin like
    a chunk is given back as it is. One that breaks off ends with the bytes that are there.
    """
    pieces: list[bytes] = []
    at = 0
    while (line := _CHUNK.match(body, at)) is not None:
        size = int(line[1], 16)
        piece = body[line.end() : line.end() + size]
        pieces.append(piece)
        if size == 0 or len(piece) < size:
            return b"".join(pieces)
        end = _LINE_END.match(body, line.end() + size)
        if end is None:
            # What looked like a chunk is text.
            return body if line.end() + size < len(body) else b"".join(pieces)
        at = end.end()
    return b"".join(pieces) if pieces and at == len(body) else body


def warc_time(text: str | None) -> float | None:
    """A WARC-Date as Unix seconds; None if it is none."""
    try:
        moment = datetime.fromisoformat((text or "").strip())
        seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds


def target_url(text: str | None) -> str:
    """A WARC-Target-URI, without the angle brackets that wget puts around it."""
    url = (text or "").strip()
    return url[1:-1] if url.startswith("<") and url.endswith(">") else url


def facts_of(block: bytes) -> Facts:
    """The facts in a metadata record (application/warc-fields)."""
    fields = named(header_lines(block))
    return Facts(
        duration_s=_duration_s(fields.get("fetchtimems")),
        outcome=fields.get("outcome"),
        reason=fields.get("reason"),
        detail=fields.get("detail"),
        retry_after_s=_number(fields.get("retryafter")),
        location=fields.get("location"),
        accept=fields.get("accept"),
        truncated=fields.get("truncated"),
        is_unasked=fields.get("fetches") == "0",
    )


def _duration_s(text: str | None) -> float:
    milliseconds = _number(text) or 0.0
    return milliseconds / 1000 if milliseconds <= _LONGEST_MS else 0.0


def _number(text: str | None) -> float | None:
    """A non-negative number, None for anything else."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


# -- digests -----------------------------------------------------------------
#
# The digests that WARC records are labelled with, computed as the bytes go by.
#
# A label is ``algorithm:digest``. The standard's example is SHA-1 in base 32; tools also write
# SHA-256 and MD5, in hexadecimal or base 64.

#: What hashlib calls the algorithms, and the size in bytes, by the letters and digits of their
#: names.
_ALGORITHMS = {
    "sha1": ("sha1", 20),
    "sha256": ("sha256", 32),
    "sha512": ("sha512", 64),
    "md5": ("md5", 16),
}
_BASE32 = re.compile("[A-Za-z2-7]+")
#: The digits of base 32 as Python's integers have them.
_DIGITS = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz234567",
    "0123456789abcdefghijklmnop0123456789abcdefghijklmnopqrstuv",
)
_URL_SAFE = str.maketrans("-_", "+/")


class Label(NamedTuple):
    """A digest as labelled; ``digest`` is None where the text cannot be one."""

    algorithm: str
    digest: bytes | None

    def __str__(self) -> str:
        return written(self.algorithm, self.digest or b"")

    def new(self) -> hashlib._Hash:
        """A computation of that kind."""
        return hashlib.new(self.algorithm, usedforsecurity=False)


def read_label(text: str | None) -> Label | None:
    """The label, or None if there is none or its algorithm is not one that is verified."""
    if text is None:
        return None
    name, colon, value = text.strip().partition(":")
    known = _ALGORITHMS.get(name.strip().lower().replace("-", ""))
    if not colon or known is None:
        return None
    algorithm, size = known
    return Label(algorithm, _decoded(value.strip(), size))


def written(algorithm: str, digest: bytes) -> str:
    """A digest in one spelling, so that texts can be compared."""
    return f"{algorithm}:{digest.hex()}"


def _decoded(value: str, size: int) -> bytes | None:
    bare = value.rstrip("=")
    try:
        if len(value) == 2 * size:
            return bytes.fromhex(value)
        if len(bare) == -(-size * 8 // 5):
            return _from_base32(bare, size)
        digest = base64.b64decode(bare.translate(_URL_SAFE) + "=" * (-len(bare) % 4), validate=True)
    except (ValueError, OverflowError):
        return None
    return digest if len(digest) == size else None


def _from_base32(text: str, size: int) -> bytes:
    """RFC 4648, section 6, by way of an integer: Python's own takes as long as the digest."""
    if not _BASE32.fullmatch(text):
        raise ValueError("not base 32")
    spare_bits = len(text) * 5 - size * 8
    return (int(text.translate(_DIGITS), 32) >> spare_bits).to_bytes(size, "big")
