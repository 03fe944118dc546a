"""All records of a file in one pass, whatever is wrong with some of them.

fastwarc reads. It ends where it meets something that is not a record, sometimes without a word,
and where a record has no length it takes it for an empty one. So a record is given out only when
the next one has begun where it ends; where none does, the bytes are walked over once more
(:mod:`freshet.crawler.replaying.members`) to see which of the two is wrong, that is told as a
:class:`Damage`, and the pass goes on at the next place where a record begins.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import islice

from fastwarc.stream_io import ZstdReader
from fastwarc.warc import ArchiveIterator, WarcRecord

from freshet.crawler.replaying.captures import Damage, Flaw
from freshet.crawler.replaying.members import (
    BrokenMember,
    Codec,
    Coding,
    Member,
    codec_of,
    frame_at,
    guessed_codec,
    next_record,
)
from freshet.crawler.replaying.scanned import BadRecord, ScannedRecord, scanned
from freshet.crawler.replaying.slices import Slice

#: A record's head may be as long as a message's.
_MAX_HEADER_BYTES = 64 * 1024

_Records = Generator[ScannedRecord | Damage, None, int | None]


class SeveralPerMember(Exception):
    """A member holds several records, which only showed on the way: read the file as a stream."""


def warc_records(source: Slice, at: int, codec: Codec) -> Iterator[WarcRecord]:
    """The records from an offset on, as fastwarc reads them; HTTP is left as it is.

    Raises:
        OSError: on the way, where it does not go on.
    """
    stream = source.stream(at)
    reader = ZstdReader(stream, dictionary=codec.dictionary) if codec.dictionary else stream
    yield from ArchiveIterator(
        reader, parse_http=False, strict_mode=False, max_header_len=_MAX_HEADER_BYTES
    )


def scan(source: Slice, file: str, *, as_stream: bool = False) -> Iterator[ScannedRecord | Damage]:
    """Every record that can be read, and a word on each place that cannot.

    ``file`` is what messages call the source. ``as_stream`` counts the records of compressed
    members instead of noting where they begin.

    Raises:
        SeveralPerMember: that is what is needed, and nothing that was given out holds.
    """
    if source.size == 0:
        yield Damage(file, 0, "the file is empty", Flaw.EMPTY)
        return
    codec = codec_of(source)
    at: int | None = 0 if codec is None else codec.first
    if codec is None:
        codec = guessed_codec(source)
        at = next_record(source, 1, codec)
        yield Damage(file, 0, _no_record(0, at, source), Flaw.UNREADABLE)
    elif codec.coding is not Coding.PLAIN and frame_at(source, codec.first, codec).is_stream:
        as_stream = True
    walk = _Walk(source, file, codec)
    while at is not None:
        at = yield from walk.stream(at) if as_stream else walk.members(at)


def scan_listed(
    source: Slice, file: str, places: Iterable[tuple[int, int]]
) -> Iterator[ScannedRecord | Damage]:
    """The records at these offsets; a length of 0 is not known."""
    codec = codec_of(source)
    for at, length in places:
        if codec is None or not 0 <= at < source.size:
            yield Damage(file, at, "no WARC record begins here", Flaw.UNREADABLE)
            continue
        try:
            for record in islice(warc_records(source, at, codec), 1):
                held = scanned(record, at)
                yield held.ended(at + length if length else frame_at(source, at, codec).end)
        except (BadRecord, OSError) as error:
            yield Damage(file, at, str(error))


def _no_record(at: int, end: int | None, source: Slice) -> str:
    size = (source.size if end is None else end) - at
    return f"no WARC record begins here, {size} bytes are skipped"


class _Walk:
    """Runs of records between damages; each gives back where the next run begins, if any does.

    Every run ends behind where it began, so the walk ends.
    """

    def __init__(self, source: Slice, file: str, codec: Codec) -> None:
        self._source = source
        self._file = file
        self._codec = codec

    def members(self, start: int) -> _Records:
        """A run of records, each of which has a place of its own."""
        held: ScannedRecord | None = None
        at, problem, is_first = start, "the record cannot be read", True
        try:
            for record in warc_records(self._source, start, self._codec):
                began = start if is_first else record.stream_pos
                if began <= at and not is_first:
                    raise SeveralPerMember
                if held is not None:
                    yield held.ended(began)
                held, at, is_first = None, began, False
                held = scanned(record, at)
        except (BadRecord, OSError) as error:
            problem = str(error)
        return (yield from self._settle(at, held, problem))

    def _settle(self, at: int, held: ScannedRecord | None, problem: str) -> _Records:
        """See what is wrong where a run has ended: the record at ``at``, or what follows it."""
        frame = frame_at(self._source, at, self._codec)
        if frame.is_stream:
            raise SeveralPerMember
        if frame.problem is None and held is not None:
            yield held.ended(frame.end)
            return (yield from self._gap(frame.end))
        yield Damage(self._file, at, frame.problem or problem)
        return next_record(self._source, at + 1, self._codec)

    def _gap(self, end: int) -> _Records:
        """Skip what lies between the end of a record and the next one."""
        if end >= self._source.size:
            return None
        found = next_record(self._source, end, self._codec)
        if found != end:
            problem = frame_at(self._source, end, self._codec).problem or "no record begins here"
            size = (self._source.size if found is None else found) - end
            yield Damage(self._file, end, f"{problem}; {size} bytes are skipped")
        return found

    def stream(self, start: int) -> _Records:
        """A run of records that are counted from ``start``."""
        held: ScannedRecord | None = None
        problem: str | None = None
        nth = 0
        try:
            for nth, record in enumerate(warc_records(self._source, start, self._codec)):
                if held is not None:
                    yield held
                held = None
                held = scanned(record, start, nth)
        except (BadRecord, OSError) as error:
            problem = str(error)
        if held is not None and (problem is None or "warc-block-digest" in held.fields):
            yield held
        at, end, broken = self._members_end(start)
        if broken is not None:
            yield Damage(self._file, at, f"{broken}; what stands behind record {nth} is lost")
            return next_record(self._source, end, self._codec)
        if problem is not None:
            reason = f"{problem}, behind record {nth} of this stream; the rest of it is lost"
            yield Damage(self._file, start, reason)
        return None

    def _members_end(self, at: int) -> tuple[int, int, str | None]:
        """The last of the members that follow one another, where it ends, and what is wrong."""
        last = at
        while at < self._source.size:
            member, last = Member(self._source, at, self._codec), at
            try:
                for _ in member:
                    pass
            except BrokenMember as error:
                # The next one to be tried is behind the one that broke.
                return last, max(member.end, at + 1), str(error)
            at = member.end
        return last, at, None
