"""Exchanges as records of WARC 1.1 (ISO 28500:2017), and the files that hold them.

Each exchange is a ``request``, a ``response`` (or a ``revisit``) and a ``metadata`` record with its
duration and outcome; a rendered document is a ``resource`` beside them. An unanswered one has no
response, an unsent one no request. Digests are SHA-1
in Base32: readers of archives check no others. They detect damage, not forgery.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from http import HTTPStatus
from pathlib import Path
from struct import Struct
from typing import Final

from isal import isal_zlib

from freshet.crawler.archive.text import FileSlice, whole_until
from freshet.crawler.fetch.client import Request
from freshet.crawler.fetch.responses import first_header
from freshet.storage.records import FetchResult, Validators

#: Names and values of a record's header, or of its fields.
Fields = Sequence[tuple[str, str]]

#: Prefix of the URL of a rendered document, as other crawlers name derived documents.
RENDERED: Final = "urn:dom:"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PROFILES = "http://netpreserve.org/warc/1.1/revisit/"
_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")
#: The framing that readers would look for in vain, for the body is kept without it.
_FRAMING = b"transfer-encoding"
_RENAMED = b"X-Archive-Orig-"
_FRAMING_LINE = re.compile(rb"^transfer-encoding[ \t]*:", re.IGNORECASE | re.MULTILINE)
_WARC_FIELDS = "application/warc-fields"
#: Path and query of a URL.
_TARGET = re.compile(r"[^/?#]*//[^/?#]*([^?#]*)(\?[^#]+)?")
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
#: The Base32 pair of each ten bits (RFC 4648, section 6); a digest is four times forty bits.
_PAIRS = [first + second for first in _BASE32 for second in _BASE32]
_FORTIES = Struct(">BIBIBIBI")


@dataclass(frozen=True, slots=True)
class WireExchange:
    """A request, and how it ended; or one that was not made (``is_asked``), with the reason."""

    request: Request
    result: FetchResult
    is_asked: bool = True


@dataclass(frozen=True, slots=True)
class OriginalRecord:
    """A response record that later ones of its URL may refer to; ``date`` is its WARC-Date.

    ``validators`` are the server's current ones for this payload.
    """

    record_id: str
    date: str
    payload_digest: str
    validators: Validators


def warcinfo(record_id: str, at: float, filename: str, fields: Fields) -> bytes:
    """Return the record that describes the file's writer."""
    return _record(
        "warcinfo", record_id, warc_date(at), _fields(fields),
        {"WARC-Filename": filename, "Content-Type": _WARC_FIELDS},
    )  # fmt: skip


def records(
    exchange: WireExchange, original: OriginalRecord | None, new_id: Callable[[], str]
) -> tuple[list[bytes], OriginalRecord | None]:
    """Return the records of an exchange in their order, and the original of its URL from now on.

    That is None if the exchange does not concern it. ``original`` is the archive's for this URL,
    ``new_id`` makes a record id.
    """
    return _ExchangeRecords(exchange, original, new_id).written()


def warc_date(at: float) -> str:
    """Write Unix seconds as a WARC-Date, to the microsecond."""
    moment = _EPOCH + timedelta(microseconds=round(at * 1e6))
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond:06}Z"


def digest(data: bytes) -> str:
    """Return the labelled digest of some bytes."""
    a, b, c, d, e, f, g, h = _FORTIES.unpack(sha1(data, usedforsecurity=False).digest())
    forties = a << 32 | b, c << 32 | d, e << 32 | f, g << 32 | h
    # A fifth of the time of base64.b32encode.
    text = "".join([_PAIRS[bits >> at & 1023] for bits in forties for at in (30, 20, 10, 0)])
    return f"sha1:{text}"


class _ExchangeRecords:
    """Builder of the records of one exchange."""

    def __init__(
        self, exchange: WireExchange, original: OriginalRecord | None, new_id: Callable[[], str]
    ) -> None:
        self._is_asked = exchange.is_asked
        self._asked = exchange.request
        self._result = exchange.result
        self._original = original
        self._new_id = new_id
        self._date = warc_date(exchange.result.started_at)
        self._url = _one_line(exchange.result.url)
        peer = exchange.result.peer
        self._peer = {} if peer is None else {"WARC-IP-Address": peer}

    def written(self) -> tuple[list[bytes], OriginalRecord | None]:
        kinds = self._kinds()
        ids = [self._new_id() for _ in kinds]
        # The first names the one behind it, the others name the first.
        near = [*ids[1:2], *ids[:1] * (len(ids) - 1)]
        make = {
            "request": self._request, "metadata": self._metadata, "resource": self._rendered,
        }  # fmt: skip
        made, remembered = [], None
        for number, kind in enumerate(kinds):
            common = {"WARC-Target-URI": self._url}
            if near:
                common["WARC-Concurrent-To"] = near[number]
            if kind == "response":
                record, remembered = self._response(ids[number], common)
                made.append(record)
            else:
                made.append(make[kind](ids[number], common))
        return made, remembered

    def _kinds(self) -> list[str]:
        """Return the types of the records in their order."""
        result = self._result
        kinds = ["request"] if result.request_headers else []
        if result.status is not None:
            kinds.append("response")
            if result.requests is not None and result.outcome == "fetched":
                kinds.append("resource")
        return [*kinds, "metadata"]

    def _rendered(self, record_id: str, common: dict[str, str]) -> bytes:
        """Return the record of the rendered page."""
        common |= {"WARC-Target-URI": RENDERED + common["WARC-Target-URI"]}
        common |= {"Content-Type": "text/html; charset=utf-8"}
        return _record("resource", record_id, self._date, self._result.body, common)

    def _request(self, record_id: str, common: Mapping[str, str]) -> bytes:
        form = self._asked.form
        found = _TARGET.match(self._url)
        path, query = found.groups("") if found is not None else ("", "")
        line = f"{'GET' if form is None else 'POST'} {path or '/'}{query} HTTP/1.1"
        lines = [line, *[f"{name}: {value}" for name, value in self._result.request_headers]]
        head = "\r\n".join((*lines, "\r\n")).encode("utf-8", "surrogateescape")
        return _record(
            "request", record_id, self._date, head + (form or "").encode(),
            {**common, **self._peer, "Content-Type": "application/http;msgtype=request"},
        )  # fmt: skip

    def _response(
        self, record_id: str, common: Mapping[str, str]
    ) -> tuple[bytes, OriginalRecord | None]:
        result, original = self._result, self._original
        head = _response_head(result)
        named = {**common, **self._peer, "Content-Type": "application/http;msgtype=response"}
        payload = digest(result.wire_body)
        if self._asked.form is not None:
            # What is posted is answered for that form, not for the URL.
            return self._full(record_id, head, named, payload), None
        if result.outcome == "not_modified":
            if original is None or self._asked.validators != original.validators:
                return self._full(record_id, head, named, payload), None
            named |= _revisiting("server-not-modified", original, result.url)
            return _record("revisit", record_id, self._date, head, named), None
        if result.outcome != "fetched" or result.truncated:
            return self._full(record_id, head, named, payload), None
        validators = Validators(result.header("ETag"), result.header("Last-Modified"))
        # Empty bodies are all alike, and take no room.
        if original is not None and original.payload_digest == payload and result.wire_body:
            named |= _revisiting("identical-payload-digest", original, result.url)
            record = _record("revisit", record_id, self._date, head, named)
            return record, replace(original, validators=validators)
        record = self._full(record_id, head, named, payload)
        return record, OriginalRecord(record_id, self._date, payload, validators)

    def _full(
        self, record_id: str, head: bytes, named: Mapping[str, str], payload_digest: str
    ) -> bytes:
        named = {**named, "WARC-Payload-Digest": payload_digest}
        if self._result.truncated is not None:
            named["WARC-Truncated"] = self._result.truncated
        return _record("response", record_id, self._date, head + self._result.wire_body, named)

    def _metadata(self, record_id: str, common: Mapping[str, str]) -> bytes:
        result = self._result
        said = {
            "fetchTimeMs": f"{round(result.duration_s * 1e6) / 1e3:.3f}",
            "outcome": str(result.outcome),
            "reason": result.reason,
            "detail": result.detail,
            "retryAfter": None if result.retry_after_s is None else f"{result.retry_after_s!r}",
            "location": result.location,
            "accept": self._asked.accept,
            "truncated": result.truncated,
            "fetches": None if self._is_asked else "0",
        }
        block = _fields([(name, value) for name, value in said.items() if value is not None])
        return _record(
            "metadata", record_id, self._date, block, {**common, "Content-Type": _WARC_FIELDS}
        )


def _revisiting(profile: str, original: OriginalRecord, url: str) -> dict[str, str]:
    return {
        "WARC-Profile": _PROFILES + profile,
        "WARC-Refers-To": original.record_id,
        "WARC-Refers-To-Target-URI": _one_line(url),
        "WARC-Refers-To-Date": original.date,
        "WARC-Payload-Digest": original.payload_digest,
    }


def _record(kind: str, record_id: str, date: str, block: bytes, named: Mapping[str, str]) -> bytes:
    lines = (
        "WARC/1.1",
        f"WARC-Type: {kind}",
        f"WARC-Record-ID: {record_id}",
        f"WARC-Date: {date}",
        *[f"{name}: {value}" for name, value in named.items()],
        f"WARC-Block-Digest: {digest(block)}",
        f"Content-Length: {len(block)}",
        "\r\n",
    )
    return b"".join(("\r\n".join(lines).encode("utf-8", "replace"), block, b"\r\n\r\n"))


def _fields(fields: Fields) -> bytes:
    lines = [f"{name}: {value}\r\n" for name, value in fields]
    text = "".join(lines)
    if text.count("\n") > len(lines) or not text.replace("\r\n", "").isprintable():
        text = "".join([f"{name}: {_one_line(value)}\r\n" for name, value in fields])
    return text.encode("utf-8", "replace")


def _one_line(value: str) -> str:
    return " ".join(value.splitlines()) if not value.isprintable() else value


def _http_head(line: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    lines = [line, *[b"%s: %s" % header for header in headers]]
    head = b"\r\n".join(lines)
    if head.count(b"\n") + head.count(b"\r") > 2 * len(lines) - 2:
        # Whoever made up this answer put line breaks into its headers.
        head = b"\r\n".join(each.translate(_LINE_BREAKS) for each in lines)
    return head + b"\r\n\r\n"


def _response_head(result: FetchResult) -> bytes:
    """Return the head of a response, as received if that is known."""
    if result.head:
        return _FRAMING_LINE.sub(_RENAMED + rb"\g<0>", result.head)
    headers = result.headers
    if first_header(headers, _FRAMING) is not None:
        headers = tuple(
            (_RENAMED + name if name.lower() == _FRAMING else name, value)
            for name, value in headers
        )
    return _http_head(_status_line(result), headers)


def _status_line(result: FetchResult) -> bytes:
    if result.status_line or result.status is None:
        return result.status_line
    try:
        phrase = HTTPStatus(result.status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {result.status:03} {phrase}".encode()


# -- warc output -------------------------------------------------------------
# A file is called ``NAME.warc.gz.open`` until it is whole. It grows by whole gzip members, each
# in one write, so that a killed writer leaves a readable file; the next writer cuts off an
# incomplete member and renames it.
#: The ends of the names of files that are whole, and of those that still grow.
WHOLE: Final = ".warc.gz"
OPEN: Final = ".warc.gz.open"
_PREFIX: Final = "freshet"
_GZIP: Final = 31
#: Of igzip: a tenth of the time of zlib's level 6, for files that are 7 % larger.
_LEVEL: Final = 3

_sync_data = getattr(os, "fdatasync", os.fsync)  # macOS lacks it


def member(record: bytes) -> bytes:
    """Compress a record to a separate gzip member, to which readers can seek."""
    return isal_zlib.compress(record, _LEVEL, _GZIP)


class WarcOutput:
    """The growing file.

    *Invariant.* Up to ``size`` it consists of whole members, after any fault. Consequence: the next
    write overwrites the remains of a failed one.

    Attributes:
        name: the file's name once it is whole.
        size: its length in bytes.
    """

    def __init__(self, folder: Path, at: float) -> None:
        stamp = datetime.fromtimestamp(at, UTC).strftime("%Y%m%d%H%M%S%f")[:17]
        for name in (f"{_PREFIX}-{stamp}-{number:05}{WHOLE}" for number in range(100_000)):
            path = folder / name.replace(WHOLE, OPEN)
            if (folder / name).exists():
                continue
            try:
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                continue
            break
        else:
            raise FileExistsError(f"{folder}: no name is left for a file of {stamp}")
        self.name = name
        self.size = 0
        self._path = path
        _sync_folder(folder)

    def append(self, data: bytes) -> None:
        """Add whole members.

        Raises:
            OSError: the disk is full or fails; the file is as before.
        """
        rest, at = memoryview(data), self.size
        while rest:
            written = os.pwrite(self._file, rest, at)
            rest, at = rest[written:], at + written
        self.size = at

    def sync(self) -> None:
        """Wait until all bytes are on the disk."""
        _sync_data(self._file)

    def cut(self, size: int) -> None:
        """Discard the bytes behind ``size``."""
        self.size = size
        # Where even that fails it is written over, and cut off at the end.
        with suppress(OSError):
            os.ftruncate(self._file, size)

    def close(self) -> None:
        """Close the file and give it its name; delete a file without members."""
        try:
            os.ftruncate(self._file, self.size)
            self.sync()
        finally:
            os.close(self._file)
        _finished(self._path, self.size)


def finish_what_was_left(folder: Path, sizes: Mapping[str, int]) -> None:
    """Close the files that a killed writer left open.

    ``sizes`` has the number of bytes of each that are known to be whole; the rest is checked.
    """
    for path in sorted(folder.glob(f"{_PREFIX}-*{OPEN}")):
        known = sizes.get(path.name.removesuffix(OPEN) + WHOLE, 0)
        length = path.stat().st_size
        with closing(FileSlice(path)) as source:
            size = whole_until(source, known if known <= length else 0)
        if size < length:
            os.truncate(path, size)
        _finished(path, size)


def _finished(path: Path, size: int) -> None:
    if size:
        path.rename(path.with_name(path.name.removesuffix(OPEN) + WHOLE))
    else:
        path.unlink()
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
