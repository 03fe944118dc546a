"""Exchanges read back from their places, in the order of an index.

A record is fetched by its offset, without looking at others: archives are nearly in the order of
time, so the system's read-ahead has it by then. Only where one stream holds several records are
they read one after the other. Memory holds one exchange, its body cut at the limit.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fastwarc.warc import WarcRecord

from freshet.crawler.network.responses import RawHeaders
from freshet.crawler.replaying.captures import (
    ArchivedExchange,
    ArchiveInfo,
    CaptureKind,
    Damage,
    Facts,
    Flaw,
    Place,
    Position,
)
from freshet.crawler.replaying.inputs import ArchiveFile
from freshet.crawler.replaying.members import (
    BrokenMember,
    Codec,
    Coding,
    Member,
    codec_of,
    declared_length,
    guessed_codec,
)
from freshet.crawler.replaying.messages import (
    MAX_HEAD_BYTES,
    facts_of,
    head_end,
    header_lines,
    http_headers,
    http_status,
    is_chunked,
    named,
    target_url,
    unchunked,
)
from freshet.crawler.replaying.order import START, Entry, Order
from freshet.crawler.replaying.slices import Slice
from freshet.crawler.replaying.warc_files import warc_records

#: The limit of a sitemap, which is the largest unless a page's is set higher.
MAX_BODY_BYTES = 50 * 1024 * 1024

_OPEN_FILES = 64
_OK, _NOT_MODIFIED = 200, 304
#: Room for the heads of the record and of the message in it, and for chunked framing.
_ROOM_BYTES = 2 * MAX_HEAD_BYTES
_CHANGED = "the record is not the one that was indexed: the file has changed since"


class Unreadable(ValueError):
    """A record that was indexed cannot be read now."""


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record read back; ``is_cut`` says that its block goes on."""

    fields: Mapping[str, str]
    block: bytes
    is_cut: bool


class Reading:
    """Reads the exchanges of an index; keep it open while its exchanges are wanted.

    ``max_body_bytes`` bounds a body as it is stored; more of it is not read. Give the largest
    limit that any of them may have. Without ``requests`` those are read only where an answer
    cannot be told without them: to a 304 that others wrote.
    """

    def __init__(
        self, order: Order, max_body_bytes: int = MAX_BODY_BYTES, *, requests: bool = True
    ) -> None:
        self._order = order
        self._requests = requests
        self._max_bytes = max_body_bytes + _ROOM_BYTES
        self._max_body_bytes = max_body_bytes
        self._files = order.sources
        self._open: OrderedDict[int, _OpenFile] = OrderedDict()

    def close(self) -> None:
        """Close the files."""
        while self._open:
            self._open.popitem()[1].close()

    def exchanges(self, after: Position = START) -> Iterator[ArchivedExchange | Damage]:
        """All exchanges behind a position in order; a damage in the place of one that is lost.

        Raises:
            CrawlError: the index cannot be read.
        """
        for entry in self._order.entries(after):
            try:
                yield self.exchange(entry)
            except (Unreadable, BrokenMember, OSError) as error:
                yield self._lost(entry.position, error)

    def infos(self) -> Iterator[ArchiveInfo | Damage]:
        """What the files say of themselves, in the order of time, or that it is lost."""
        for position, place in self._order.infos():
            try:
                record = self._file(position.source).record(place, self._max_bytes)
            except (Unreadable, BrokenMember, OSError) as error:
                yield self._lost(position, error)
            else:
                file = self._files[position.source].name
                yield ArchiveInfo(position, file, header_lines(record.block))

    def exchange(self, entry: Entry) -> ArchivedExchange:
        """One exchange.

        Raises:
            Unreadable: its file has changed.
            BrokenMember, OSError: it cannot be read.
        """
        source = entry.position.source
        # In the order in which crawlers write them, for the files that are streams.
        is_plain = not self._requests and (entry.status != _NOT_MODIFIED or entry.outcome)
        request = None if is_plain else self._record(source, entry.request)
        answer = self._record(source, entry.answer)
        facts = self._record(source, entry.facts)
        witness = answer or facts
        if witness is None or target_url(witness.fields.get("warc-target-uri")) != entry.url:
            raise Unreadable(_CHANGED)
        headers: RawHeaders = ()
        body, is_cut = b"", False
        if answer is not None:
            headers, body = _answered(answer)
            is_cut = answer.is_cut
        status = entry.status
        truncated = None if answer is None else answer.fields.get("warc-truncated")
        if entry.kind is CaptureKind.SAME and entry.original is not None:
            original = self._original(*entry.original)
            lines, body = _answered(original)
            is_cut, truncated = original.is_cut, original.fields.get("warc-truncated")
            headers = headers or lines
            status = _status(original) if status is None else status
        return ArchivedExchange(
            position=entry.position,
            file=self._files[source].name,
            kind=entry.kind,
            url=entry.url,
            started_at=entry.started_at,
            status=status,
            headers=headers,
            wire_body=body[: self._max_body_bytes + 1],
            request_headers=() if request is None else _message(request.block)[0],
            peer=witness.fields.get("warc-ip-address"),
            digest=entry.digest,
            truncated=truncated,
            is_cut=is_cut or len(body) > self._max_body_bytes,
            facts=Facts() if facts is None else facts_of(facts.block),
        )

    def _lost(self, position: Position, error: Exception) -> Damage:
        file = self._files[position.source].name
        return Damage(file, position.offset, str(error), Flaw.UNREADABLE)

    def _record(self, source: int, place: Place | None) -> StoredRecord | None:
        return None if place is None else self._file(source).record(place, self._max_bytes)

    def _original(self, source: int, place: Place) -> StoredRecord:
        return self._file(source).record(place, self._max_bytes)

    def _file(self, source: int) -> _OpenFile:
        if source not in self._open:
            self._open[source] = _OpenFile(self._files[source])
            if len(self._open) > _OPEN_FILES:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(source)
        return self._open[source]


class _OpenFile:
    """A file whose records are read by their places."""

    def __init__(self, file: ArchiveFile) -> None:
        self._source = file.open()
        self._codec = codec_of(self._source) or guessed_codec(self._source)
        self._stream: _Stream | None = None

    def close(self) -> None:
        self._stream = None
        self._source.close()

    def record(self, place: Place, max_bytes: int) -> StoredRecord:
        if place.length:
            return _parsed(self._stored(place, max_bytes))
        if self._stream is None or not self._stream.is_before(place):
            self._stream = _Stream(self._source, self._codec, place.offset)
        return self._stream.record(place.nth, max_bytes)

    def _stored(self, place: Place, max_bytes: int) -> bytes:
        """The record as text, cut at the limit."""
        if self._codec.coding is Coding.PLAIN:
            return self._source.read_at(place.offset, min(place.length, max_bytes))
        pieces, size = [], 0
        for piece in Member(self._source, place.offset, self._codec, place.length):
            pieces.append(piece)
            size += len(piece)
            if size >= max_bytes:
                break
        return b"".join(pieces)


class _Stream:
    """Records that have no places of their own, read one after the other."""

    def __init__(self, source: Slice, codec: Codec, start: int) -> None:
        self._start = start
        self._next = 0
        self._records = warc_records(source, start, codec)

    def is_before(self, place: Place) -> bool:
        """Whether the record is yet to come."""
        return place.offset == self._start and place.nth >= self._next

    def record(self, nth: int, max_bytes: int) -> StoredRecord:
        """A record that is yet to come."""
        for record in self._records:
            self._next += 1
            if self._next > nth:
                return _read(record, max_bytes)
        raise Unreadable(_CHANGED)


def _read(record: WarcRecord, max_bytes: int) -> StoredRecord:
    pieces, left = [], max_bytes
    while left > 0 and (piece := record.reader.read(left)):
        pieces.append(piece)
        left -= len(piece)
    fields = named(record.headers.items_bytes())
    return StoredRecord(fields, b"".join(pieces), record.content_length > max_bytes)


def _parsed(text: bytes) -> StoredRecord:
    end = head_end(text)
    if end is None:
        raise Unreadable(_CHANGED)
    fields = named(header_lines(text[:end]))
    length = declared_length(fields.get("content-length"))
    if isinstance(length, str):
        raise Unreadable(_CHANGED)
    return StoredRecord(fields, text[end : end + length], end + length > len(text))


def _is_resource(record: StoredRecord) -> bool:
    return record.fields.get("warc-type", "").lower() == "resource"


def _status(record: StoredRecord) -> int | None:
    return _OK if _is_resource(record) else http_status(record.block)


def _answered(record: StoredRecord) -> tuple[RawHeaders, bytes]:
    """The headers and the body of an answer."""
    if not _is_resource(record):
        return _message(record.block)
    content_type = record.fields.get("content-type", "application/octet-stream")
    return ((b"Content-Type", content_type.encode("latin-1", "replace")),), record.block


def _message(block: bytes) -> tuple[RawHeaders, bytes]:
    """The headers and the body of an HTTP message, without chunked framing."""
    end = head_end(block)
    head, body = (block, b"") if end is None else (block[:end], block[end:])
    headers = http_headers(head)
    return headers, unchunked(body) if is_chunked(headers) else body
