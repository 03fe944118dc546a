"""The head of a response and the chunks of its body, parsed as leniently as other clients do.

RFC 9112 allows clients to repair many faults of servers; :data:`REPAIRS` lists those repaired here.
A head or body with an ambiguous end is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from freshet.crawler.errors import Unfetched
from freshet.crawler.fetch.responses import RawHeaders

#: Repairs by name, described for people.
REPAIRS: Final[Mapping[str, str]] = {
    "status_line": "the status line is not HTTP/1.0 or 1.1: only its status is used",
    "carriage_return": "a line of the head has an extra carriage return: read as a blank",
    "no_header": "a line of the head is not a header: ignored",
    "blank_before_colon": "a header has a blank before its colon: removed",
    "same_length": "the same Content-Length was sent more than once: read as one",
    "huge_length": "Content-Length is larger than any body: read to the end of the connection",
    "length_and_chunks": "Transfer-Encoding was sent with Content-Length: the length is ignored",
    "chunked_twice": "Transfer-Encoding has chunked more than once: read as once",
    "no_content": "a body followed a status that has none: ignored",
    "coding_words": "Content-Encoding has a word that is not a coding: ignored",
    "not_encoded": "the body is not encoded as Content-Encoding says: read without decoding",
    "other_coding": "the body is encoded in another way than Content-Encoding says: decoded so",
    "checksum": "the checksum of the compressed body is wrong or missing: the whole body is kept",
    "packed": "robots.txt is compressed, although Content-Encoding does not say so: decompressed",
    "length": "the body's length differs from the announced one; its coding proves it complete",
    "cut_alike": "the body ended early, three times at the same byte: read as complete",
}

#: How the end of a body is determined.
Framing = Literal["none", "length", "chunked", "close"]


class ResponseHead(NamedTuple):
    """A parsed head. ``headers`` are the valid ones, with their values as received.

    ``length`` is the body's length if ``framing`` is "length". ``codings`` are the content codings
    and then the transfer codings under the chunks, in the order of their application, separated by
    commas. Unless ``is_kept``, the connection ends with this response.
    """

    status: int
    status_line: bytes
    headers: RawHeaders
    framing: Framing
    length: int
    content_type: str
    codings: str
    is_kept: bool
    repairs: tuple[str, ...]


#: Header values by name in lower case.
_Frames: TypeAlias = dict[bytes, list[bytes]]
_STATUS_LINE = re.compile(rb"(HTTP/1\.([01])[ \t]+([1-9]\d\d)(?:[ \t][^\n\0]*?)?)\r*\n")
#: Another version up to 3, lower case, or a sign or word directly behind the status.
_ODD_STATUS_LINE = re.compile(
    rb"(HTTP/(?:0?1(?:\.\d\d?)?|0\.9|[23](?:\.0)?)()[ \t]+([1-9]\d\d)(?!\d)[^\n\r\0]*?)\r*\n",
    re.IGNORECASE,
)
#: Programs that send text files over the network end each line with two carriage returns.
_EMPTY_LINE = re.compile(rb"\n\r{0,2}\n")
_LINE_END = re.compile(rb"\r*\n")
#: A recipient reads it as a blank, or rejects it (RFC 9112, section 2.2).
_BARE_CR = re.compile(rb"\r(?!\r*\n)")
#: A usual header; tabs, and values that end with a blank, are handled by the slower code.
_WELL_FORMED = re.compile(
    rb"^([!#$%&'*+\-.^_`|~0-9A-Za-z]++): *+([^\r\n\t\0]*+)(?<! )\r\n", re.MULTILINE
)
#: Headers that determine how a response is read, in a lower-case head.
_FRAMES = re.compile(
    rb"\n(content-(?:length|type|encoding)|transfer-encoding|connection|location):[ \t]*([^\r\n]*)"
)
_TOKEN = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#: Transfer codings of RFC 9112, section 7, other than chunked.
_TRANSFER_CODINGS = frozenset({"gzip", "x-gzip", "deflate", "compress", "x-compress"})
_NO_CODINGS = frozenset({"", "identity", "none"})
#: Statuses of responses without a body (RFC 9112, section 6.3).
_WITHOUT_BODY = frozenset({101, 204, 304})
#: Clients count bytes in 64 bits; such a number has 19 digits.
_LONGEST, _MOST_DIGITS = 2**63 - 1, 19


def head_end(data: bytes, start: int = 0) -> int:
    """Return the end of the first head, behind its empty line, or -1 if it is incomplete.

    Lines may end with LF only.
    """
    found = _EMPTY_LINE.search(data, start)
    return -1 if found is None else found.end()


def read_head(head: bytes, max_headers: int = 256) -> ResponseHead:
    """Parse a head, which ends with an empty line.

    Raises:
        Unfetched: it is invalid, has too many headers, or the body's end is ambiguous.
    """
    repairs: dict[str, None] = {}
    found = _STATUS_LINE.match(head) or _odd_status_line(head, repairs)
    headers = _WELL_FORMED.findall(head, found.end())
    is_odd = len(headers) != head.count(b"\n") - 2 or repairs
    if is_odd:
        headers = _mended(_without_returns(head, repairs), repairs)
    if len(headers) > max_headers:
        raise Unfetched("headers_too_large", f"more than {max_headers} headers")
    plain = None if is_odd else _plain_head(head, found, headers)
    return plain or _unusual_head(found, headers, repairs)


def _plain_head(
    head: bytes, found: re.Match[bytes], headers: list[tuple[bytes, bytes]]
) -> ResponseHead | None:
    """Return a usual head; None for any other."""
    line, minor, code = found.groups()
    status = int(code)
    pairs = _FRAMES.findall(head.lower())
    named = dict(pairs)
    if status < 200 or status in _WITHOUT_BODY or len(named) != len(pairs):
        return None
    connection, framed = named.get(b"connection"), _plainly_framed(named)
    if framed is None or (connection is not None and connection != b"keep-alive"):
        return None
    kind, codings = named.get(b"content-type", b""), named.get(b"content-encoding", b"")
    # Calling the class takes several times as long.
    return ResponseHead._make((
        status, line, tuple(headers), *framed, kind.decode("latin-1"),
        codings.decode("latin-1"), minor == b"1" or connection is not None, (),
    ))  # fmt: skip


def _plainly_framed(named: Mapping[bytes, bytes]) -> tuple[Framing, int] | None:
    """Return the framing and length of a usual response; None for any other."""
    coding, length = named.get(b"transfer-encoding"), named.get(b"content-length")
    if coding is None and length is not None and length.isdigit() and len(length) < _MOST_DIGITS:
        return "length", int(length)
    return ("chunked", 0) if coding == b"chunked" and length is None else None


def _odd_status_line(head: bytes, repairs: dict[str, None]) -> re.Match[bytes]:
    if found := _ODD_STATUS_LINE.match(head):
        repairs["status_line"] = None
        return found
    shown = head[:100].partition(b"\n")[0]
    raise Unfetched("protocol", f"not a status line of HTTP/1: {shown!r}")


def _without_returns(head: bytes, repairs: dict[str, None]) -> bytes:
    """Return a head without carriage returns within its lines.

    Raises:
        Unfetched: it has a NUL.
    """
    if b"\0" in head:
        raise Unfetched("protocol", "a NUL in the head of the response")
    if b"\r\r" in head:
        repairs["carriage_return"] = None
    if not _BARE_CR.search(head):
        return head
    repairs["carriage_return"] = None
    return _BARE_CR.sub(b" ", head)


def _unusual_head(
    found: re.Match[bytes], headers: list[tuple[bytes, bytes]], repairs: dict[str, None]
) -> ResponseHead:
    """Return a head by the complete rules; ``found`` is its status line."""
    status, frames = int(found[3]), _Frames()
    for name, value in headers:
        frames.setdefault(name.lower(), []).append(value)
    if 200 <= status < 400 and len(set(frames.get(b"location", ()))) > 1:
        # Browsers and curl reject this even for a page: somebody else may have injected one of
        # them.
        raise Unfetched("protocol", "the head has two different values of Location")
    framing, size, codings = _framing(status, frames, repairs)
    kind = frames.get(b"content-type", [b""])[0].decode("latin-1")
    coded = b", ".join(frames.get(b"content-encoding", ())).decode("latin-1")
    is_kept = framing != "close" and not repairs and _is_kept(found[2], frames)
    # A server may send the announced body after a status without one.
    is_kept = is_kept and not (framing == "none" and _is_announced(frames))
    return ResponseHead(
        status, found[1], tuple(headers),
        framing=framing, length=size, content_type=kind,
        codings=", ".join((coded, *codings)), is_kept=is_kept, repairs=tuple(repairs),
    )  # fmt: skip


def read_headers(head: bytes) -> RawHeaders:
    """Return the headers of a stored message, whose end is known by other means.

    The first line is the request or status line; an empty line may be missing.
    """
    _, newline, lines = head.partition(b"\n")
    if not newline:
        return ()
    headers = _WELL_FORMED.findall(lines)
    return tuple(_mended(head, {}) if _is_odd(head, headers) else headers)


def _is_odd(head: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
    """Return whether a head needs the slower code."""
    return len(headers) != head.count(b"\n") - 2


def _mended(head: bytes, repairs: dict[str, None]) -> list[tuple[bytes, bytes]]:
    """Return the headers of a head of any form."""
    headers: list[tuple[bytes, bytes]] = []
    is_header = False
    for line in _LINE_END.split(head.rstrip(b"\r\n"))[1:]:
        name, colon, value = line.partition(b":")
        if line.startswith((b" ", b"\t")) and is_header:
            # A continuation of the value (RFC 9112, section 5.2).
            known, before = headers[-1]
            headers[-1] = known, b" ".join(filter(None, (before, line.strip(b" \t"))))
            continue
        bare = name.rstrip(b" \t")
        is_header = bool(colon and bare and not bare.translate(None, _TOKEN))
        if not is_header:
            repairs["no_header"] = None
            continue
        if bare != name:
            repairs["blank_before_colon"] = None
        headers.append((bare, value.strip(b" \t")))
    return headers


def _is_kept(minor: bytes, frames: _Frames) -> bool:
    """Return whether the server keeps the connection open (RFC 9112, section 9.3)."""
    options = b",".join(frames.get(b"connection", ())).lower().split(b",")
    words = {word.strip(b" \t") for word in options}
    return b"close" not in words and (minor == b"1" or b"keep-alive" in words)


def _framing(
    status: int, frames: _Frames, repairs: dict[str, None]
) -> tuple[Framing, int, tuple[str, ...]]:
    """Return the framing, the length, and the codings under the chunks (RFC 9112, section 6.3)."""
    codings, is_chunked = _transfer_codings(frames.get(b"transfer-encoding", []), repairs)
    length, lengths = None, frames.get(b"content-length")
    if lengths and (is_chunked or codings):
        repairs["length_and_chunks"] = None
    elif lengths:
        length = _length(lengths, repairs)
    if status in _WITHOUT_BODY or status < 200:
        return "none", 0, ()
    if is_chunked:
        return "chunked", 0, codings
    if length is None or codings:
        return "close", 0, codings
    return "length", length, ()


def _length(values: list[bytes], repairs: dict[str, None]) -> int | None:
    lengths = [value.strip(b" \t") for value in b",".join(values).rstrip(b", \t").split(b",")]
    if len(lengths) > 1:
        repairs["same_length"] = None
    digits = {each.lstrip(b"0") or each[:1] for each in lengths}
    if len(digits) > 1 or not lengths[0].isdigit():
        shown = b", ".join(values)[:100]
        raise Unfetched("protocol", f"the end of the body is not sure: Content-Length {shown!r}")
    length = int(digits.pop()[: _MOST_DIGITS + 1])
    if length <= _LONGEST:
        return length
    repairs["huge_length"] = None
    return None


def _transfer_codings(
    values: list[bytes], repairs: dict[str, None]
) -> tuple[tuple[str, ...], bool]:
    codings_named = b",".join(values).decode("latin-1").lower().split(",")
    words = [word for each in codings_named if (word := each.strip(" \t")) not in _NO_CODINGS]
    while words[-2:] == ["chunked", "chunked"]:
        repairs["chunked_twice"] = None
        words.pop()
    is_chunked = words[-1:] == ["chunked"]
    codings = tuple(words[:-1] if is_chunked else words)
    if not _TRANSFER_CODINGS.issuperset(codings):
        shown = b", ".join(values)[:100]
        raise Unfetched("protocol", f"the end of the body is not sure: Transfer-Encoding {shown!r}")
    return codings, is_chunked


def _is_announced(frames: _Frames) -> bool:
    return b"transfer-encoding" in frames or any(
        value.strip(b"0 \t,") for value in frames.get(b"content-length", ())
    )


_SIZE_LINE = re.compile(rb"0*([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\n]*)?\r{0,2}\n")
_HEX = b"0123456789ABCDEFabcdef"


class Chunks:
    """Reader of a chunked body (RFC 9112, section 7.1); ``most`` limits the lines in between."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = b""
        self._left = 0
        self._state: Literal["size", "data", "end", "trailers"] = "size"
        self._trailer_bytes = 0
        self.is_ended = False

    def feed(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Return the pieces of the body in the data, and the bytes behind its end.

        Raises:
            Unfetched: a chunk is damaged.
        """
        data, at, pieces = self._held + data, 0, list[bytes]()
        self._held = b""
        while not self.is_ended and at < len(data):
            if self._state == "data":
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                self._state = "data" if self._left else "end"
                continue
            found = data.find(b"\n", at)
            line = data[at:] if found < 0 else data[at : found + 1]
            self._check(line)
            if found < 0:
                self._held = line
                return pieces, b""
            at = found + 1
            self._take_line(line)
        return pieces, data[at:]

    def _check(self, line: bytes) -> None:
        """Raise an error for a line that no continuation can make valid."""
        is_size = self._state != "size" or line[0] in _HEX
        is_end = self._state != "end" or line in (b"\r", b"\n", b"\r\n")
        is_end = is_end and b"\0" not in line
        if not (is_size and is_end):
            raise Unfetched("protocol", f"a chunk of the body is damaged at {line[:50]!r}")
        if len(line) + self._trailer_bytes > self._most:
            raise Unfetched("protocol", "a line between the chunks of the body is too long")

    def _take_line(self, line: bytes) -> None:
        if self._state == "size":
            size = _SIZE_LINE.fullmatch(line)
            if size is None:
                raise Unfetched("protocol", f"a chunk of the body is damaged at {line[:50]!r}")
            self._left = int(size[1], 16)
            self._state = "data" if self._left else "trailers"
        elif self._state == "end":
            self._state = "size"
        elif line in (b"\n", b"\r\n"):
            self.is_ended = True
        else:
            self._trailer_bytes += len(line)
