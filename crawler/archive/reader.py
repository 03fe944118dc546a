"""Reads archived exchanges in the order of an index, and turns them into fetch results.

A record is read by its offset: archives are nearly in the order of time, so the system reads ahead.
Only records that share one compressed stream are read in sequence. Memory holds one exchange.
"""

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from io import BytesIO
from typing import get_args
from urllib.parse import urlsplit

from freshet.crawler.archive.exchanges import IndexEntry
from freshet.crawler.archive.index import ArchiveIndex
from freshet.crawler.archive.inputs import ArchiveFile
from freshet.crawler.archive.records import (
    MAX_HEAD_BYTES,
    ArchivedExchange,
    Damage,
    ExchangeMetadata,
    RecordPlace,
    facts_of,
    header_lines,
    http_status,
    is_chunked,
    named,
    split_message,
    target_url,
    unchunked,
)
from freshet.crawler.archive.scan import OpenRecord, records
from freshet.crawler.errors import Unfetched
from freshet.crawler.fetch.body import Intake
from freshet.crawler.fetch.client import Accept, Request, body_rules
from freshet.crawler.fetch.heads import read_headers
from freshet.crawler.fetch.responses import (
    RawHeaders,
    StatusVerdict,
    all_values,
    first_header,
    judge,
    retry_after_s,
    whole_bytes,
)
from freshet.storage.entries import Outcome
from freshet.storage.records import FetchResult

#: The limit of a sitemap, which is the largest unless a page's is set higher.
MAX_BODY_BYTES = 50 * 1024 * 1024

_OPEN_FILES = 64
#: Reading on up to this distance is faster than a new start.
_NEAR_BYTES = 64 * 1024
_OK, _NOT_MODIFIED = 200, 304
#: Room for the head of the message in a record, and for chunked framing.
_ROOM_BYTES = 2 * MAX_HEAD_BYTES
_CHANGED = "the record is not the one that was indexed: the file has changed since"


class _UnreadableRecord(ValueError):
    """An indexed record that cannot be read now."""


@dataclass(frozen=True, slots=True)
class _StoredRecord:
    """A record read back; ``is_cut``: its block continues."""

    fields: Mapping[str, str]
    block: bytes
    is_cut: bool


@dataclass(frozen=True, slots=True)
class _AnswerContent:
    """The content of an answer, which may be in the record of an earlier one.

    ``truncated`` is that record's WARC-Truncated; ``is_cut``: its block continues.
    """

    status: int | None
    headers: RawHeaders
    body: bytes
    truncated: str | None = None
    is_cut: bool = False


class ExchangeReader:
    """Reads the exchanges of an index; keep it open while its exchanges are used.

    ``max_body_bytes`` is the largest limit of any stored body, ``page_bytes`` that of a page, which
    every foreign one is; the rest is not read. Without ``requests``, only requests that decide
    about a response are read: those of a failure, and of a foreign 304.
    """

    def __init__(
        self, order: ArchiveIndex, max_body_bytes: int = MAX_BODY_BYTES, *,
        page_bytes: int | None = None, requests: bool = True,
    ) -> None:  # fmt: skip
        self._order = order
        self._requests = requests
        self._limits = page_bytes or max_body_bytes, max_body_bytes
        self._files = order.sources
        self._open: OrderedDict[int, _OpenFile] = OrderedDict()

    def close(self) -> None:
        """Close the files."""
        while self._open:
            self._open.popitem()[1].close()

    def exchanges(self, since: float = -math.inf) -> Iterator[ArchivedExchange | Damage]:
        """Yield all exchanges that ended at a time or later; a damage replaces a lost one."""
        for entry in self._order.entries(since):
            try:
                yield self.exchange(entry)
            except (_UnreadableRecord, OSError) as error:
                file = self._files[entry.source].name
                yield Damage(file, entry.offset, str(error), "unreadable")

    def infos(self) -> Iterator[Mapping[str, str]]:
        """Yield the files' descriptions of themselves, in the order of time, if readable."""
        for entry in self._order.infos():
            with suppress(_UnreadableRecord, OSError):
                record = self._record(entry.source, entry.offset, entry.nth)
                yield named(header_lines(record.block))

    def _request(self, entry: IndexEntry) -> _StoredRecord | None:
        """Read the request of an exchange, if it is wanted, or decides about the response."""
        is_foreign_304 = entry.status == _NOT_MODIFIED and not entry.outcome
        if self._requests or entry.outcome == "failed" or is_foreign_304:
            return self._optional(entry, entry.request_offset, entry.request_nth)
        return None

    def _content(
        self, entry: IndexEntry, answer: _StoredRecord | None, limit: int
    ) -> _AnswerContent:
        """Return the content of an answer, from the original record where it repeats one."""
        headers, body = _answered(answer, limit + 1) if answer else ((), b"")
        status, holder = entry.status, answer
        if entry.original_source is not None:
            original = (entry.original_source, entry.original_offset or 0, entry.original_nth or 0)
            holder = self._record(*original, limit)
            lines, body = _answered(holder, limit + 1)
            headers = headers or lines
            if status is None:
                status = _OK if _is_resource(holder) else http_status(holder.block)
        if holder is None:
            return _AnswerContent(status, headers, body)
        truncated = holder.fields.get("warc-truncated")
        return _AnswerContent(status, headers, body, truncated, holder.is_cut)

    def exchange(self, entry: IndexEntry) -> ArchivedExchange:
        """Read one exchange; ValueError: its file has changed, OSError: it cannot be read."""
        # In the order in which crawlers write them, for the files that are streams.
        request = self._request(entry)
        limit = self._limits[entry.facts_offset is not None]
        answer = None
        if entry.kind != "bare":
            answer = self._record(entry.source, entry.offset, entry.nth, limit)
        facts = self._optional(entry, entry.facts_offset, entry.facts_nth)
        rendered = self._optional(entry, entry.rendered_offset, entry.rendered_nth, limit)
        witness = answer or facts
        if witness is None or target_url(witness.fields.get("warc-target-uri")) != entry.url:
            raise _UnreadableRecord(_CHANGED)
        content = self._content(entry, answer, limit)
        return ArchivedExchange(
            file=self._files[entry.source].name,
            kind=entry.kind,
            url=entry.url,
            started_at=entry.started_at,
            ended_at=entry.ended_at,
            status=content.status,
            headers=content.headers,
            wire_body=content.body[: limit + 1],
            request_headers=_message(request.block, 0)[0] if request else (),
            peer=witness.fields.get("warc-ip-address"),
            truncated=content.truncated,
            is_cut=len(content.body) > limit or content.is_cut,
            facts=facts_of(facts.block) if facts else ExchangeMetadata(),
            rendered=None if rendered is None else rendered.block,
        )

    def _optional(
        self, entry: IndexEntry, offset: int | None, nth: int | None, limit: int = 0
    ) -> _StoredRecord | None:
        return None if offset is None else self._record(entry.source, offset, nth or 0, limit)

    def _record(self, source: int, offset: int, nth: int, limit: int = 0) -> _StoredRecord:
        if source not in self._open:
            self._open[source] = _OpenFile(self._files[source])
            if len(self._open) > _OPEN_FILES:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(source)
        record = self._open[source].record(RecordPlace(offset, nth))
        return _read(record, limit + _ROOM_BYTES)


class _OpenFile:
    """A file with records that are read by position; close ones are read in sequence."""

    def __init__(self, file: ArchiveFile) -> None:
        self._source = file.open()
        self._at = RecordPlace(0)
        self._records: Iterator[OpenRecord] = iter(())

    def close(self) -> None:
        self._records = iter(())
        self._source.close()

    def record(self, place: RecordPlace) -> OpenRecord:
        is_near = self._at < place and place.offset - self._at.offset <= _NEAR_BYTES
        found = self._further(place) if is_near else None
        if found is None:
            every = records(self._source, place.offset)
            # What is damaged on the way is not this record.
            self._records = (each for each in every if isinstance(each, OpenRecord))
            found = self._further(place)
        if found is None:
            raise _UnreadableRecord(_CHANGED)
        return found

    def _further(self, place: RecordPlace) -> OpenRecord | None:
        for each in self._records:
            self._at = each.place
            if each.place >= place:
                return each if each.place == place else None
        return None


def _read(record: OpenRecord, max_bytes: int) -> _StoredRecord:
    # A list of pieces, joined, would take the memory twice.
    block, left = BytesIO(), max_bytes
    while left > 0 and (piece := record.read(min(left, _ROOM_BYTES))):
        left -= block.write(piece)
    return _StoredRecord(record.fields, block.getvalue(), record.length > max_bytes)


def _is_resource(record: _StoredRecord) -> bool:
    return record.fields.get("warc-type", "").lower() == "resource"


def _answered(record: _StoredRecord, most: int) -> tuple[RawHeaders, bytes]:
    """Return the headers and the body of an answer; it may end after ``most`` bytes."""
    if not _is_resource(record):
        return _message(record.block, most)
    content_type = record.fields.get("content-type", "application/octet-stream")
    return ((b"Content-Type", content_type.encode("latin-1", "replace")),), record.block


def _message(block: bytes, most: int) -> tuple[RawHeaders, bytes]:
    """Return the headers and the body of an HTTP message; it may end after ``most`` bytes."""
    head, body = split_message(block)
    headers = read_headers(head)
    # Bodies are large: they are copied once.
    return headers, unchunked(body) if is_chunked(headers) else bytes(body[:most])


# -- results -----------------------------------------------------------------
# Freshet's archives record how each exchange ended. A foreign exchange is judged by its
# content and the limits of a fetch, so that a replay decides as a crawl would have decided.
#: Prefix of headers that an archive renames because the stored body has another form.
_RENAMED = b"x-archive-orig-"
_ROBOTS_PATH = "/robots.txt"
_ACCEPTS: dict[str, Accept] = {each: each for each in get_args(Accept)}
_OUTCOMES: dict[str, Outcome] = {each: each for each in get_args(Outcome)}
_NO_BODY = b"", b""
_CONDITIONS = (b"if-none-match", b"if-modified-since")


def is_ours(exchange: ArchivedExchange) -> bool:
    """Return whether Freshet wrote it: its outcome is recorded."""
    return exchange.facts.outcome in _OUTCOMES


def accept_of(exchange: ArchivedExchange) -> Accept:
    """Return what the request accepted: recorded in own archives, guessed in foreign ones."""
    said = exchange.facts.accept
    if said is not None and said in _ACCEPTS:
        return _ACCEPTS[said]
    if not exchange.url.endswith(_ROBOTS_PATH):
        return "page"
    try:
        path = urlsplit(exchange.url).path
    except ValueError:
        return "page"
    return "robots" if path == _ROBOTS_PATH else "page"


def fetch_result(exchange: ArchivedExchange, max_body_bytes: int) -> FetchResult:
    """Return the exchange as a fetch result; trouble is an outcome, never an exception.

    ``max_body_bytes`` is the limit of a page.
    """
    facts = exchange.facts
    if is_ours(exchange):
        exchange = replace(exchange, headers=_as_they_came(exchange.headers))
    verdict, (wire_body, body) = _judged(exchange, max_body_bytes)
    if verdict.outcome == "fetched" and exchange.rendered is not None:
        body = exchange.rendered
    wait_s = facts.retry_after_s
    if wait_s is None:
        wait_s = retry_after_s(exchange.headers, exchange.ended_at)
    return FetchResult(
        url=exchange.url,
        outcome=verdict.outcome,
        started_at=exchange.started_at,
        duration_s=facts.duration_s,
        status=exchange.status,
        reason=verdict.reason,
        detail=verdict.detail,
        request_headers=tuple(
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in exchange.request_headers
        ),
        headers=exchange.headers,
        wire_body=wire_body,
        body=body,
        peer=exchange.peer,
        location=verdict.location,
        retry_after_s=wait_s,
        requests=None if exchange.rendered is None else {},
    )


def _judged(
    exchange: ArchivedExchange, max_body_bytes: int
) -> tuple[StatusVerdict, tuple[bytes, bytes]]:
    """Return the verdict, and the body on the wire and decoded, if it counts."""
    facts, known = exchange.facts, _OUTCOMES.get(exchange.facts.outcome or "")
    if known is None:
        verdict = _by_status(exchange)
    else:
        verdict = StatusVerdict(known, facts.reason, facts.detail, facts.location)
    if verdict.outcome != "fetched":
        return verdict, _NO_BODY
    try:
        return verdict, _body(exchange, max_body_bytes, is_known=known is not None)
    except Unfetched as end:
        return StatusVerdict(end.outcome, end.reason, end.detail), _NO_BODY


def _by_status(exchange: ArchivedExchange) -> StatusVerdict:
    if exchange.kind == "not_modified":
        return StatusVerdict("not_modified")
    if exchange.status is None:
        return StatusVerdict("failed", "protocol", "the archive holds no HTTP status")
    requested = exchange.request_headers
    # Who wrote no requests down may have asked on a condition.
    is_conditional = not requested or any(first_header(requested, c) for c in _CONDITIONS)
    return judge(
        exchange.status,
        exchange.url,
        first_header(exchange.headers, b"location"),
        is_conditional=is_conditional,
        is_whole=whole_bytes(exchange.headers) is not None,
    )


def _body(
    exchange: ArchivedExchange, max_body_bytes: int, *, is_known: bool
) -> tuple[bytes, bytes]:
    """Return the body, decoded within the limits."""
    announced = _announced_bytes(exchange.headers)
    rules = body_rules(
        Request(exchange.url, accept_of(exchange), is_any_type=is_known),
        max_body_bytes,
        content_type=_text(exchange.headers, b"content-type"),
        announced_bytes=announced,
    )
    # Of the codings of the transfer the archive has undone the chunks only.
    names = b"content-encoding", b"transfer-encoding"
    intake = Intake(", ".join(all_values(exchange.headers, name) for name in names), rules)
    intake.take_whole(exchange.wire_body)
    # The program that undid the coding kept the length of the received body.
    if not is_known and "not_encoded" not in intake.repairs:
        _check_whole(exchange, 0 if intake.is_proven_whole() else announced)
    return intake.result()


def _check_whole(exchange: ArchivedExchange, announced: int) -> None:
    """Refuse a part of a body: it must not pass for the whole."""
    if exchange.truncated is not None:
        reason = "too_large" if exchange.truncated == "length" else "cut_short"
        detail = f"the archive has only a part of the body: {exchange.truncated[:50]}"
        raise Unfetched(reason, detail)
    size = len(exchange.wire_body)
    if announced > size and not exchange.is_cut and exchange.kind != "same":
        raise Unfetched("cut_short", f"{announced} bytes were announced, the archive holds {size}")


def _announced_bytes(headers: RawHeaders) -> int:
    if first_header(headers, b"transfer-encoding") is not None:
        return 0
    text = _text(headers, b"content-length")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _text(headers: RawHeaders, name: bytes) -> str:
    return (first_header(headers, name) or b"").decode("latin-1")


def _as_they_came(headers: RawHeaders) -> RawHeaders:
    """Return the headers under the names that the server sent."""
    return tuple(
        (name[len(_RENAMED) :] if name.lower().startswith(_RENAMED) else name, value)
        for name, value in headers
    )
