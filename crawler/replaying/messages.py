"""The text of records: heads of WARC records and of HTTP messages, and lines of facts.

Archives hold what servers sent, so everything here takes any bytes and raises nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime

from freshet.crawler.network.responses import RawHeaders
from freshet.crawler.replaying.captures import Facts

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
