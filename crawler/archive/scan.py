"""Reads all records of a file in one pass, past damaged parts.

A damage costs its record: reading continues with the next record that can be found, and one
:class:`Damage` gives the place and the reason. A record is yielded when the bytes after it show
that it is whole.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from freshet.crawler.archive.records import (
    MAX_HEAD_BYTES,
    Damage,
    RecordPlace,
    header_lines,
    is_chunked,
    named,
    read_label,
    split_message,
    unchunked,
    written,
)
from freshet.crawler.archive.text import FileSlice, Text, begins_record
from freshet.crawler.fetch.heads import head_end, read_headers

_NO_RECORD = "no WARC record begins here"
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
#: What is taken for the beginning of a record behind a damage.
_BEGINNING = re.compile(rb"WARC/\d\.\d{1,2}[ \t]{0,8}\r?\n[A-Za-z][A-Za-z-]{0,40}[ \t]{0,8}:")
_LONGEST_BEGINNING = 80
_BLANK = (b"\r\n\r\n", b"\n\n", b"\n\r\n")
#: The next record is looked for from the damage on, so a file of damages only would be read often.
_MAX_DAMAGES = 100
#: Most heads of records are shorter.
_MOST_HEADS_BYTES = 2048
#: Bytes of a block that are read at once, and kept.
_SCAN_BYTES = 2 * MAX_HEAD_BYTES
#: Up to this size, a chunked payload with a wrong digest is tried without its framing: the
#: standard wants the digest of that, most tools take the bytes as received.
_MAX_UNCHUNKED_BYTES = 16 * 1024 * 1024


# -- records -----------------------------------------------------------------
class _BadRecord(ValueError):
    """An unusable record; the message gives the reason."""


class OpenRecord:
    """A record while it is read; ``length`` is the length of its block."""

    def __init__(
        self, place: RecordPlace, fields: Mapping[str, str], length: int, text: Text
    ) -> None:
        self.place = place
        self.fields = fields
        self.length = length
        self._text = text
        self._left = length

    def read(self, size: int) -> bytes:
        """Read up to ``size`` bytes of the block; fewer at its end."""
        size = min(size, self._left)
        # A block never extends into the member of the next record, even if its length is larger.
        piece = self._text.take(self._text.member_ahead(size)) if size else b""
        self._left -= len(piece)
        return piece

    def problem(self) -> str | None:
        """Read the block to its end; return the fault at its end, None if it is whole."""
        while self.read(_SCAN_BYTES):
            pass
        if self._left:
            return f"the record should have {self.length} bytes, it has {self.length - self._left}"
        behind = self._text.peek(_LONGEST_BEGINNING)
        is_end = not behind or self._text.begins_member or behind.startswith(_BLANK)
        if is_end or begins_record(behind) or not behind.strip(b"\r\n"):
            return None
        return f"the record has more than the {self.length} bytes of its Content-Length"


class BrokenRecord(NamedTuple):
    """A damage; ``spoils``: the record before it is not whole."""

    offset: int
    reason: str
    spoils: bool = False


def records(source: FileSlice, offset: int) -> Iterator[OpenRecord | BrokenRecord]:
    """Yield the records from an offset on, in sequence, and the damages between them.

    A record that begins a member has its place there; another one is counted from the last that
    does.

    Raises:
        OSError: the file cannot be read.
    """
    text, place, damages = Text(source, offset), RecordPlace(offset, -1), 0
    #: The member of the record before; and whether the damage that the text ends with is known.
    last_member, is_known = -1, False
    while damages < _MAX_DAMAGES:
        text.pass_lead()
        if not text.peek(1):
            if (torn := text.torn) is None:
                return
            if not is_known:
                damages += 1
                yield BrokenRecord(torn.member, str(torn), torn.member == last_member)
            if (at := source.next_member(torn.member + 1)) is None:
                return
            text, is_known = Text(source, at), False
            continue
        member, within = text.member, text.within
        place = RecordPlace(place.offset, place.nth + 1) if within else RecordPlace(member)
        try:
            record = _begun(text, place)
        except _BadRecord as error:
            damages += 1
            yield BrokenRecord(member, str(error))
            place = place._replace(nth=place.nth - 1)
            text.skip(1)
        else:
            block = text.member, text.within
            yield record
            last_member, problem = member, record.problem()
            if problem is None:
                continue
            damages += 1
            yield BrokenRecord(member, problem, spoils=True)
            text = Text(source, block[0])
            text.skip(block[1])
        last_member = -1
        is_known = not text.find(_BEGINNING, _LONGEST_BEGINNING)
    yield BrokenRecord(text.member, f"the reading ends here, after {damages} damages")


def _begun(text: Text, place: RecordPlace) -> OpenRecord:
    """Read the head of a record.

    Raises:
        _BadRecord: no record begins here, or it has no usable length.
    """
    start = text.peek(_MOST_HEADS_BYTES)
    if not start.startswith(b"WARC/"):
        raise _BadRecord(_NO_RECORD)
    end = head_end(start)
    if end < 0:
        start = text.peek(MAX_HEAD_BYTES)
        end = head_end(start)
    if end < 0:
        raise _BadRecord(f"the head of the record does not end within {MAX_HEAD_BYTES} bytes")
    fields = named(header_lines(start[:end].partition(b"\n")[2]))
    length = fields.get("content-length")
    if length is None:
        raise _BadRecord("the record has no Content-Length")
    if not _LENGTH.fullmatch(length):
        raise _BadRecord(f"the record has an impossible Content-Length, {length[:30]!r}")
    text.skip(end)
    return OpenRecord(place, fields, int(length), text)


# -- scanned -----------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ScannedRecord:
    """A record that was read to its end.

    ``fields`` are the head's fields, names in lower case; ``start`` is the beginning of its block.
    ``digest`` is the payload's, as labelled or (of an answer) computed, in one spelling; ``wrong``
    names a label that does not match.
    """

    place: RecordPlace
    fields: Mapping[str, str]
    start: bytes
    digest: str | None = None
    wrong: str | None = None


def scan(source: FileSlice, file: str) -> Iterator[ScannedRecord | Damage]:
    """Yield every whole record and every damage; ``file`` is named in messages."""
    if source.coding is None:
        empty = Damage(file, 0, "the file is empty", "empty")
        yield Damage(file, 0, _NO_RECORD, "unreadable") if source.size else empty
        return
    is_empty = True
    for found in _scanned(source, file, source.first):
        is_empty = False
        yield found
    if is_empty:
        yield Damage(file, 0, _NO_RECORD)


def scan_listed(
    source: FileSlice, file: str, offsets: Iterable[int]
) -> Iterator[ScannedRecord | Damage]:
    """Yield the records at these offsets."""
    for at in offsets:
        is_inside = source.coding is not None and 0 <= at < source.size
        found = next(_scanned(source, file, at), None) if is_inside else None
        where = found.place.offset if isinstance(found, ScannedRecord) else found and found.offset
        yield found if found and where == at else Damage(file, at, _NO_RECORD, "unreadable")


def _scanned(source: FileSlice, file: str, offset: int) -> Iterator[ScannedRecord | Damage]:
    held: ScannedRecord | None = None
    for found in records(source, offset):
        # A digest of the block proves more than the bytes after it.
        is_proven = held is not None and "warc-block-digest" in held.fields and held.wrong is None
        if held is not None and not (
            isinstance(found, BrokenRecord) and found.spoils and not is_proven
        ):
            yield held
        held = None
        if isinstance(found, BrokenRecord):
            yield Damage(file, found.offset, found.reason)
        else:
            held = _read(found)
    if held is not None:
        yield held


def _read(record: OpenRecord) -> ScannedRecord:
    """Read a record to its end."""
    start, digests = b"", _Digests(record.fields)
    while piece := record.read(_SCAN_BYTES):
        start = start or piece
        digests.update(piece)
    return ScannedRecord(record.place, record.fields, start, digests.payload(), digests.wrong())


class _Digests:
    """The digests of one record, computed piece by piece and compared with its labels.

    The payload of an answer is hashed even without a label, because revisits name it.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        kind = fields.get("warc-type", "").lower()
        has_payload = kind in ("response", "resource")
        self._has_head = kind == "response"
        self._label = fields.get("warc-payload-digest")
        self._block = read_label(fields.get("warc-block-digest"))
        self._payload = read_label(self._label)
        self._block_hash = _hash(self._block[0]) if self._block else None
        self._hash = _hash(self._payload[0] if self._payload else "sha1") if has_payload else None
        self._body: list[bytes] | None = None
        self._body_bytes = 0
        self._is_first = True

    def update(self, piece: bytes) -> None:
        """Add the next piece of the block; the first holds the head of a message."""
        if self._block_hash is not None:
            self._block_hash.update(piece)
        if self._hash is None:
            return
        if self._is_first:
            self._is_first = False
            if self._has_head:
                head, body = split_message(piece)
                piece = bytes(body)
                if self._payload is not None and is_chunked(read_headers(head)):
                    self._body = []
        self._hash.update(piece)
        if self._body is not None:
            self._body.append(piece)
            self._body_bytes += len(piece)
            if self._body_bytes > _MAX_UNCHUNKED_BYTES:
                self._body = None

    def payload(self) -> str | None:
        """Return the payload's digest, as labelled or computed, in one spelling."""
        if self._payload is not None and self._payload[1] is not None:
            return written(self._payload[0], self._payload[1])
        if self._label is not None:
            return self._label
        return None if self._hash is None else written("sha1", self._hash.digest())

    def wrong(self) -> str | None:
        """Return the label that does not match, or None."""
        if self._block and self._block_hash and self._block_hash.digest() != self._block[1]:
            return f"the {self._block[0]} digest of its block is wrong"
        if self._payload is None or self._hash is None or self._hash.digest() == self._payload[1]:
            return None
        algorithm, digest = self._payload
        content = None if self._body is None else unchunked(b"".join(self._body))
        if content is not None and _hash(algorithm, content).digest() == digest:
            return None
        return f"the {algorithm} digest of its payload is wrong"


def _hash(algorithm: str, data: bytes = b"") -> hashlib._Hash:
    return hashlib.new(algorithm, data, usedforsecurity=False)
