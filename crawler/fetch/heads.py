"""The head of a response, and the chunks of its body, read as other clients read them.

RFC 9112 lets a client mend much of what servers send. What may be mended is in :data:`REPAIRS`; a
head or a body whose end is not sure is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from freshet.crawler.errors import Unfetched
from freshet.crawler.fetch.responses import RawHeaders

#: What is mended, by its name, in words for people.
REPAIRS: Final[Mapping[str, str]] = {
    "status_line": "the status line is none of HTTP/1.0 or 1.1: its status is taken",
    "carriage_return": "a line of the head has a carriage return too many: read as a blank",
    "no_header": "a line of the head is no header: dropped",
    "blank_before_colon": "a header has a blank before its colon: removed",
    "same_length": "the same Content-Length came more than once: read as one",
    "huge_length": "Content-Length is larger than any body: read to the end of the connection",
    "length_and_chunks": "Transfer-Encoding came with Content-Length: the length is ignored",
    "chunked_twice": "Transfer-Encoding says chunked more than once: read as once",
    "no_content": "a body followed a status that has none: dropped",
    "coding_words": "Content-Encoding has a word that names no coding: ignored",
    "not_encoded": "the body has not the coding that Content-Encoding names: read as it is",
    "other_coding": "the body has another coding than Content-Encoding names: decoded by that",
    "checksum": "the checksum of the packed body is wrong or missing: all was decoded, and is kept",
    "packed": "robots.txt is packed, though Content-Encoding does not say so: unpacked",
    "length": "the body had another length than announced; its coding proves that it is whole",
    "cut_alike": "the body ended early, three times at the same byte: taken for the whole",
}

#: How the end of a body is found.
Framing = Literal["none", "length", "chunked", "close"]


class ResponseHead(NamedTuple):
    """A head. ``headers`` are those that count, with their values as received.

    ``length`` is that of the body, if the ``framing`` is "length". ``codings`` are those of the
    content and then those under the chunks, in the order in which they were applied, with commas
    between. Unless it ``is_kept``, the connection ends with this response.
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


#: Values of headers by their names in lower case.
_Frames: TypeAlias = dict[bytes, list[bytes]]
_STATUS_LINE = re.compile(rb"(HTTP/1\.([01])[ \t]+([1-9]\d\d)(?:[ \t][^\n\0]*?)?)\r*\n")
#: One of another version up to 3, with small letters, or with a sign or a word behind the status.
_ODD_STATUS_LINE = re.compile(
    rb"(HTTP/(?:0?1(?:\.\d\d?)?|0\.9|[23](?:\.0)?)()[ \t]+([1-9]\d\d)(?!\d)[^\n\r\0]*?)\r*\n",
    re.IGNORECASE,
)
#: Programs that write text files to the network end each line with two carriage returns.
_EMPTY_LINE = re.compile(rb"\n\r{0,2}\n")
_LINE_END = re.compile(rb"\r*\n")
#: A recipient reads it as a blank, or refuses it (RFC 9112, section 2.2).
_BARE_CR = re.compile(rb"\r(?!\r*\n)")
#: A header as most are; a tab, and a value that ends with a blank, take the longer way.
_WELL_FORMED = re.compile(
    rb"^([!#$%&'*+\-.^_`|~0-9A-Za-z]++): *+([^\r\n\t\0]*+)(?<! )\r\n", re.MULTILINE
)
#: What decides how a response is read, in a head in lower case.
_FRAMES = re.compile(
    rb"\n(content-(?:length|type|encoding)|transfer-encoding|connection|location):[ \t]*([^\r\n]*)"
)
_TOKEN = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#: Codings of a transfer by RFC 9112, section 7, beside chunked.
_TRANSFER_CODINGS = frozenset({"gzip", "x-gzip", "deflate", "compress", "x-compress"})
_NO_CODINGS = frozenset({"", "identity", "none"})
#: Statuses whose responses end with their heads (RFC 9112, section 6.3).
_WITHOUT_BODY = frozenset({101, 204, 304})
#: Clients count bytes in 64 bits; such a number has 19 digits.
_LONGEST, _MOST_DIGITS = 2**63 - 1, 19


def head_end(data: bytes, start: int = 0) -> int:
    """Return the end of the first head, behind its empty line, -1 if it has not come yet.

    Lines may end with LF only.
    """
    found = _EMPTY_LINE.search(data, start)
    return -1 if found is None else found.end()


def read_head(head: bytes, max_headers: int = 256) -> ResponseHead:
    """Read a head, which ends with an empty line.

    Raises:
        Unfetched: it is no head, has too many headers, or the end of the body is not sure.
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
    """Return a head as most are; None of any other."""
    line, minor, code = found.groups()
    status = int(code)
    said = _FRAMES.findall(head.lower())
    named = dict(said)
    if status < 200 or status in _WITHOUT_BODY or len(named) != len(said):
        return None
    connection, framed = named.get(b"connection"), _plainly_framed(named)
    if framed is None or (connection is not None and connection != b"keep-alive"):
        return None
    kind, codings = named.get(b"content-type", b""), named.get(b"content-encoding", b"")
    # A call of the class takes several times as long.
    return ResponseHead._make((
        status, line, tuple(headers), *framed, kind.decode("latin-1"),
        codings.decode("latin-1"), minor == b"1" or connection is not None, (),
    ))  # fmt: skip


def _plainly_framed(named: Mapping[bytes, bytes]) -> tuple[Framing, int] | None:
    """Return how the body of a usual response ends, and its length; None of an unusual one."""
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
    """Return a head by all rules; ``found`` is its status line."""
    status, frames = int(found[3]), _Frames()
    for name, value in headers:
        frames.setdefault(name.lower(), []).append(value)
    if 200 <= status < 400 and len(set(frames.get(b"location", ()))) > 1:
        # As browsers and curl, of a page as well: somebody else may have written one of them.
        raise Unfetched("protocol", "the head has two different values of Location")
    framing, size, codings = _framing(status, frames, repairs)
    kind = frames.get(b"content-type", [b""])[0].decode("latin-1")
    coded = b", ".join(frames.get(b"content-encoding", ())).decode("latin-1")
    is_kept = framing != "close" and not repairs and _is_kept(found[2], frames)
    # What a server announces for a status without a body it may send, too.
    is_kept = is_kept and not (framing == "none" and _is_announced(frames))
    return ResponseHead(
        status, found[1], tuple(headers),
        framing=framing, length=size, content_type=kind,
        codings=", ".join((coded, *codings)), is_kept=is_kept, repairs=tuple(repairs),
    )  # fmt: skip


def read_headers(head: bytes) -> RawHeaders:
    """Return the headers of a message that somebody kept, whose end is known by other means.

    The first line is that of the request or the status; an empty line may be missing.
    """
    _, newline, lines = head.partition(b"\n")
    if not newline:
        return ()
    headers = _WELL_FORMED.findall(lines)
    return tuple(_mended(head, {}) if _is_odd(head, headers) else headers)


def _is_odd(head: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
    """Return whether a head needs more than the short way."""
    return len(headers) != head.count(b"\n") - 2


def _mended(head: bytes, repairs: dict[str, None]) -> list[tuple[bytes, bytes]]:
    """Return the headers of a head of any form."""
    headers: list[tuple[bytes, bytes]] = []
    is_header = False
    for line in _LINE_END.split(head.rstrip(b"\r\n"))[1:]:
        name, colon, value = line.partition(b":")
        if line.startswith((b" ", b"\t")) and is_header:
            # The value goes on (RFC 9112, section 5.2).
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
    said = b",".join(frames.get(b"connection", ())).lower().split(b",")
    words = {word.strip(b" \t") for word in said}
    return b"close" not in words and (minor == b"1" or b"keep-alive" in words)


def _framing(
    status: int, frames: _Frames, repairs: dict[str, None]
) -> tuple[Framing, int, tuple[str, ...]]:
    """Return how the body ends, its length, and the codings under its chunks (RFC 9112, 6.3)."""
    codings, is_chunked = _transfer_codings(frames.get(b"transfer-encoding", []), repairs)
    length, said = None, frames.get(b"content-length")
    if said and (is_chunked or codings):
        repairs["length_and_chunks"] = None
    elif said:
        length = _length(said, repairs)
    if status in _WITHOUT_BODY or status < 200:
        return "none", 0, ()
    if is_chunked:
        return "chunked", 0, codings
    if length is None or codings:
        return "close", 0, codings
    return "length", length, ()


def _length(values: list[bytes], repairs: dict[str, None]) -> int | None:
    said = [value.strip(b" \t") for value in b",".join(values).rstrip(b", \t").split(b",")]
    if len(said) > 1:
        repairs["same_length"] = None
    digits = {each.lstrip(b"0") or each[:1] for each in said}
    if len(digits) > 1 or not said[0].isdigit():
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
    said = b",".join(values).decode("latin-1").lower().split(",")
    words = [word for each in said if (word := each.strip(" \t")) not in _NO_CODINGS]
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
    """Reader of a chunked body (RFC 9112, section 7.1); the lines between are ``most`` at most."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = b""
        self._left = 0
        self._state: Literal["size", "data", "end", "trailers"] = "size"
        self._trailer_bytes = 0
        self.is_ended = False

    def feed(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Return the pieces of the body in the data, and what follows its end.

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
        """Refuse a line that cannot become right, however much follows."""
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
