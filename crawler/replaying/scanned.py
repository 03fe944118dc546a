"""One record as it goes by: its head, the beginning of its block, and its digests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fastwarc.warc import WarcRecord

from freshet.crawler.replaying.captures import Place
from freshet.crawler.replaying.digests import Label, read_label, written
from freshet.crawler.replaying.members import declared_length
from freshet.crawler.replaying.messages import (
    MAX_HEAD_BYTES,
    head_end,
    header_lines,
    is_chunked,
    unchunked,
)

#: So much of a block is read at once, and kept of it.
_SCAN_BYTES = 2 * MAX_HEAD_BYTES
#: Up to so many bytes, a chunked payload whose digest is wrong is looked at without its framing:
#: the standard wants the digest of that, most tools take what came.
_MAX_UNCHUNKED_BYTES = 16 * 1024 * 1024


class BadRecord(ValueError):
    """The record cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class ScannedRecord:
    """A record that was read to its end.

    ``fields`` are those of its head, names in lower case; ``start`` is the beginning of its
    block. ``digest`` is that of the payload, as labelled or (of an answer) computed, in one
    spelling; ``wrong`` says which label does not fit.
    """

    place: Place
    fields: Mapping[str, str]
    start: bytes
    digest: str | None = None
    wrong: str | None = None

    def ended(self, end: int) -> ScannedRecord:
        """The same, now that it is known where it ends."""
        place = Place(self.place.offset, end - self.place.offset, self.place.nth)
        return ScannedRecord(place, self.fields, self.start, self.digest, self.wrong)


def scanned(record: WarcRecord, offset: int, nth: int = 0) -> ScannedRecord:
    """Read a record to its end.

    Raises:
        BadRecord: its head has no usable length, or its block is not all there.
        OSError: it cannot be read.
    """
    fields: dict[str, str] = {}
    for name, value in record.headers.items_bytes():
        fields.setdefault(name.decode("latin-1").lower(), value.decode("utf-8", "replace"))
    length = declared_length(fields.get("content-length"))
    if isinstance(length, str):
        raise BadRecord(length)
    start = b""
    size = 0
    labels = _Labels(fields)
    for piece in _pieces(record):
        start = start or piece
        size += len(piece)
        labels.update(piece)
    if size != length:
        raise BadRecord(f"the record should have {length} bytes, it has {size}")
    return ScannedRecord(Place(offset, 0, nth), fields, start, labels.digest(), labels.wrong())


def _pieces(record: WarcRecord) -> Iterator[bytes]:
    """The block; all pieces but the last are of the same size."""
    reader = record.reader
    while piece := reader.read(_SCAN_BYTES):
        while len(piece) < _SCAN_BYTES and (more := reader.read(_SCAN_BYTES - len(piece))):
            piece += more
        yield piece


class _Labels:
    """The digests that one record is labelled with, computed piece by piece.

    The payload of an answer is hashed without a label, too: revisits name it.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        kind = fields.get("warc-type")
        has_payload = kind in ("response", "resource")
        self._has_head = kind == "response"
        self._label = fields.get("warc-payload-digest")
        self._block = read_label(fields.get("warc-block-digest"))
        self._payload = read_label(self._label) if has_payload else None
        self._block_hash = self._block and self._block.new()
        self._hash = (self._payload or Label("sha1", None)).new() if has_payload else None
        self._body: list[bytes] | None = None
        self._body_bytes = 0
        self._is_first = True

    def update(self, piece: bytes) -> None:
        """Take the next piece of the block; the first holds the head of a message."""
        if self._block_hash is not None:
            self._block_hash.update(piece)
        if self._hash is None:
            return
        if self._is_first:
            self._is_first = False
            body = (head_end(piece) or 0) if self._has_head else 0
            if self._payload is not None and is_chunked(header_lines(piece[:body])):
                self._body = []
            piece = piece[body:]
        self._hash.update(piece)
        if self._body is not None:
            self._body.append(piece)
            self._body_bytes += len(piece)
            if self._body_bytes > _MAX_UNCHUNKED_BYTES:
                self._body = None

    def digest(self) -> str | None:
        """The payload's digest, as labelled or computed, in one spelling."""
        if self._label is not None:
            known = self._payload or read_label(self._label)
            return self._label if known is None else str(known)
        return None if self._hash is None else written("sha1", self._hash.digest())

    def wrong(self) -> str | None:
        """Which label does not fit, if one does not."""
        block, payload = self._block, self._payload
        if block and self._block_hash and self._block_hash.digest() != block.digest:
            return f"the {block.algorithm} digest of its block is wrong"
        if payload and self._hash and self._hash.digest() != payload.digest:
            wrong = f"the {payload.algorithm} digest of its payload is wrong"
            return None if self._fits_unchunked() else wrong
        return None

    def _fits_unchunked(self) -> bool:
        if self._body is None or self._payload is None:
            return False
        content = self._payload.new()
        content.update(unchunked(b"".join(self._body)))
        return content.digest() == self._payload.digest
