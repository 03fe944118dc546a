"""Values of an archive, and the text of its records: heads, HTTP messages, metadata, digests.

Archives hold what servers sent, so the parsers take any bytes and raise nothing.
"""

import base64
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from typing import Literal, NamedTuple

from freshet.crawler.fetch.heads import head_end
from freshet.crawler.fetch.responses import RawHeaders, with_octets

# -- captures ----------------------------------------------------------------
#: The form of an exchange in an archive: with the answer itself, as the revisit of a 304 or of a
#: payload that was archived before, or without an answer, with metadata that has the reason. The
#: last one is the description of a file (``warcinfo``).
CaptureKind = Literal["response", "not_modified", "same", "bare", "info"]

#: A kind of damage to a part of an archive.
Flaw = Literal["empty", "unreadable", "damaged", "wrong_digest", "unresolved_revisit"]


@dataclass(frozen=True, slots=True)
class Damage:
    """An unreadable place of an archive; what precedes it is kept.

    ``offset`` is the byte of the file (of a member, if ``file`` names one in a WACZ).
    """

    file: str
    offset: int
    reason: str
    flaw: Flaw = "damaged"

    def __str__(self) -> str:
        return f"{self.file}: at byte {self.offset}: {self.reason}"


class RecordPlace(NamedTuple):
    """The position of a record: ``nth`` of those in the compressed stream at ``offset``."""

    offset: int
    nth: int = 0


@dataclass(frozen=True, slots=True)
class ExchangeMetadata:
    """An exchange's metadata record.

    ``duration_s`` is ``fetchTimeMs`` in seconds, as Heritrix writes it. The other fields are
    Freshet's: a record without an ``outcome`` is foreign. ``is_unasked``: no request was sent.
    """

    duration_s: float = 0.0
    outcome: str | None = None
    reason: str | None = None
    detail: str | None = None
    retry_after_s: float | None = None
    location: str | None = None
    accept: str | None = None
    is_unasked: bool = False


@dataclass(frozen=True, slots=True)
class ArchivedExchange:
    """One exchange, read back from ``file``.

    ``status``, ``headers`` and ``wire_body`` are the answer's: the body with its content
    coding, without chunked framing; a revisit of kind ``same`` has the original's. ``is_cut``: the
    body was longer than the reader allows. ``truncated`` is WARC-Truncated. ``rendered`` is the
    document that a browser made of the body.
    """

    file: str
    kind: CaptureKind
    url: str
    started_at: float
    ended_at: float
    status: int | None = None
    headers: RawHeaders = ()
    wire_body: bytes = b""
    request_headers: RawHeaders = ()
    peer: str | None = None
    truncated: str | None = None
    is_cut: bool = False
    facts: ExchangeMetadata = ExchangeMetadata()
    rendered: bytes | None = None


#: As much as the head of a record, or of a message in it, may take.
MAX_HEAD_BYTES = 64 * 1024

#: Longer durations, above a week, are ignored as wrong.
_LONGEST_MS = 7 * 86_400_000.0
_STATUS_LINE = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?!\d)([^\n]*)", re.IGNORECASE)
#: Most heads that are skipped before the response's.
_MOST_PRELIMINARY = 64
#: What a proxy answers before it hands the connection over.
_TUNNEL = b"connection established"
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\r\n]*)?\r?\n")
_SPACES = (b" ", b"\t")
_LINE_END = re.compile(rb"\r?\n")


def split_message(block: bytes) -> tuple[bytes, memoryview]:
    """Return the head of an HTTP message, and the rest.

    Heads before the response's are skipped: of interim responses (1xx), of a proxy that opened a
    tunnel, and heads that were written twice. A head that does not end has no body.
    """
    text = block[: 2 * MAX_HEAD_BYTES]
    at = len(text) - len(text.lstrip(b"\r\n"))
    end = head_end(text, at)
    for _ in range(_MOST_PRELIMINARY):
        head = text[at:end]
        if end < 0 or not _is_preliminary(head, text[end : end + len(head)]):
            break
        at, end = end, head_end(text, end)
    if not at < end <= at + MAX_HEAD_BYTES:
        return text[at : at + MAX_HEAD_BYTES], memoryview(b"")
    return text[at:end], memoryview(block)[end:]


def _is_preliminary(head: bytes, behind: bytes) -> bool:
    """Return whether the head of the response follows this one."""
    said = _STATUS_LINE.match(head)
    if said is None or _STATUS_LINE.match(behind) is None:
        return False
    return said[1].startswith(b"1") or _TUNNEL in said[2].lower() or head == behind


def header_lines(head: bytes) -> RawHeaders:
    """Return the names and values of a head, in order, up to the bound of a head.

    Lines without a colon are left out; a line that begins with white space continues the one before
    (RFC 9112, section 5.2).
    """
    lines: list[tuple[bytes, bytes]] = []
    for line in head[:MAX_HEAD_BYTES].split(b"\n"):
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
    """Return the status of an HTTP answer; None if the block has no usable head of one."""
    head, _ = split_message(block)
    found = _STATUS_LINE.match(head)
    is_endless = len(head) >= MAX_HEAD_BYTES
    return None if found is None or is_endless else int(found[1])


def named(lines: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the first value of every name; names in lower case.

    A value that is not UTF-8 keeps its octets, as escapes of a URL.
    """
    fields: dict[str, str] = {}
    for name, value in lines:
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            text = with_octets(value)
        fields.setdefault(name.decode("latin-1").lower(), text)
    return fields


def is_chunked(headers: RawHeaders) -> bool:
    """Return whether the headers announce chunked framing."""
    return any(n.lower() == b"transfer-encoding" and b"chunked" in v.lower() for n, v in headers)


def unchunked(body: bytes | memoryview) -> bytes:
    """Remove the chunked framing of a body (RFC 9112, section 7.1).

    Some crawlers remove the framing and keep the header: a body that does not begin like a chunk is
    returned unchanged. A body that breaks off ends there.
    """
    pieces = BytesIO()  # no list, for a chunk may be a byte
    at = 0
    while (line := _CHUNK.match(body, at)) is not None:
        size = int(line[1], 16)
        piece = body[line.end() : line.end() + size]
        pieces.write(piece)
        if size == 0 or len(piece) < size:
            return pieces.getvalue()
        end = _LINE_END.match(body, line.end() + size)
        if end is None:
            # What looked like a chunk is text.
            return bytes(body) if line.end() + size < len(body) else pieces.getvalue()
        at = end.end()
    return pieces.getvalue() if pieces.tell() and at == len(body) else bytes(body)


def warc_time(text: str | None) -> float | None:
    """Return a WARC-Date as Unix seconds; None if it is not a date.

    Some programs write 14 digits, as in an index.
    """
    said = (text or "").strip()
    if len(said) == 14 and said.isascii() and said.isdigit():
        said = f"{said[:8]}T{said[8:]}"
    try:
        moment = datetime.fromisoformat(said)
        return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError):
        return None


def target_url(text: str | None) -> str:
    """Return a WARC-Target-URI, without the angle brackets that wget puts around it.

    The scheme is in lower case.
    """
    scheme, colon, rest = bracketless(text).partition(":")
    return f"{scheme.lower()}{colon}{rest}"


def bracketless(text: str | None) -> str:
    """Return a URI of a record, which may be in angle brackets."""
    uri = (text or "").strip()
    return uri[1:-1].strip() if uri.startswith("<") and uri.endswith(">") else uri


def facts_of(block: bytes) -> ExchangeMetadata:
    """Read the facts of a metadata record (application/warc-fields)."""
    fields = named(header_lines(block))
    milliseconds = _number(fields.get("fetchtimems")) or 0.0
    return ExchangeMetadata(
        duration_s=milliseconds / 1000 if milliseconds <= _LONGEST_MS else 0.0,
        outcome=fields.get("outcome"),
        reason=fields.get("reason"),
        detail=fields.get("detail"),
        retry_after_s=_number(fields.get("retryafter")),
        location=fields.get("location"),
        accept=fields.get("accept"),
        is_unasked=fields.get("fetches") == "0",
    )


def _number(text: str | None) -> float | None:
    """Return a non-negative number, None for anything else."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


# -- digests -----------------------------------------------------------------
# A label is ``algorithm:digest``. The standard's example is SHA-1 in base 32; tools also write
# SHA-256 and MD5, in hexadecimal or base 64.
#: The size in bytes by the letters and digits of the name, which is hashlib's.
_SIZES = {"sha1": 20, "sha256": 32, "sha512": 64, "md5": 16}
_URL_SAFE = str.maketrans("-_", "+/")


def read_label(text: str | None) -> tuple[str, bytes | None] | None:
    """Return the algorithm and the digest of a label; None if it is missing or not verified.

    The digest is None if the text cannot be one.
    """
    name, colon, value = (text or "").strip().partition(":")
    algorithm = name.strip().lower().replace("-", "")
    if not colon or algorithm not in _SIZES:
        return None
    return algorithm, _decoded(value.strip(), _SIZES[algorithm])


def written(algorithm: str, digest: bytes) -> str:
    """Write a digest in one spelling, so that texts can be compared."""
    return f"{algorithm}:{digest.hex()}"


def _decoded(value: str, size: int) -> bytes | None:
    bare = value.rstrip("=")
    try:
        if len(bare) == 2 * size:
            return bytes.fromhex(bare)
        if len(bare) == -(-size * 8 // 5):
            return base64.b32decode(bare + "=" * (-len(bare) % 8), casefold=True)
        digest = base64.b64decode(bare.translate(_URL_SAFE) + "=" * (-len(bare) % 4), validate=True)
    except ValueError:
        return None
    return digest if len(digest) == size else None
