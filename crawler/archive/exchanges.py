"""Groups the records of an archive into exchanges: response, request and metadata.

Records of one exchange name one another (WARC-Concurrent-To) and are close together. Records
that are not part of an HTTP exchange are counted by kind.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple

from pydantic import FiniteFloat, TypeAdapter, ValidationError

from freshet.crawler.archive.records import (
    CaptureKind,
    Damage,
    ExchangeMetadata,
    RecordPlace,
    bracketless,
    facts_of,
    http_status,
    target_url,
    warc_time,
)
from freshet.crawler.archive.scan import ScannedRecord
from freshet.crawler.archive.warc import RENDERED
from freshet.storage.records import StoredSeed

#: So many exchanges may be interleaved in a file.
_OPEN_EXCHANGES = 64
_OK = 200
#: Outcomes that need an answer: without one they mean nothing.
_ANSWERED = frozenset({"fetched", "not_modified", "redirected", "gone"})
#: A resource is a file that somebody put under a URL, without a message of HTTP around it.
_OF_EXCHANGES = frozenset({"request", "response", "resource", "revisit", "metadata"})
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,20}):")


def key(*words: object) -> int:
    """Hash some words to 64 bits, as a key of the index."""
    text = "\0".join(map(str, words)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big", signed=True)


class IndexEntry(NamedTuple):
    """One exchange as it is indexed; its fields are the columns.

    Its position is its answer's, else its metadata's. ``refers_…`` are keys of the record and
    the URL that a revisit names, and the time; ``original_…`` tell another record that holds the
    body.
    """

    ended_at: float
    source: int
    offset: int
    nth: int
    kind: CaptureKind
    url: str
    started_at: float
    status: int | None = None
    digest: str | None = None
    outcome: str | None = None
    accept: str | None = None
    request_offset: int | None = None
    request_nth: int | None = None
    facts_offset: int | None = None
    facts_nth: int | None = None
    rendered_offset: int | None = None
    rendered_nth: int | None = None
    record_key: int = 0
    url_key: int = 0
    refers_record: int | None = None
    refers_url: int | None = None
    refers_started: float | None = None
    original_source: int | None = None
    original_offset: int | None = None
    original_nth: int | None = None


@dataclass(slots=True)
class _Group:
    """The records of one exchange so far; the answer of a ``spoiled`` one must not be used."""

    ids: list[str] = field(default_factory=list)
    answer: IndexEntry | None = None
    request: RecordPlace | None = None
    rendered: RecordPlace | None = None
    method: str | None = None
    #: With the exchange that the metadata would be without an answer.
    facts: tuple[ExchangeMetadata, IndexEntry] | None = None
    spoiled: bool = False


class ExchangeGatherer:
    """The exchanges of one file; ``skipped`` counts other records by kind."""

    def __init__(self, source: int, file: str) -> None:
        self._source = source
        self._file = file
        self._open: dict[str, _Group] = {}
        self._groups: dict[int, _Group] = {}
        self.skipped: Counter[str] = Counter()

    def add(self, record: ScannedRecord) -> Iterator[IndexEntry | Damage]:
        """Take a record and yield the exchanges that it completes."""
        kind = record.fields.get("warc-type", "").lower()
        at = warc_time(record.fields.get("warc-date"))
        if kind == "warcinfo":
            yield self._entry(record, "info", "", -math.inf if at is None else at)
        if kind not in _OF_EXCHANGES:
            yield from self._other(kind, record)
            return
        url = target_url(record.fields.get("warc-target-uri"))
        if self._is_beside(record, url):
            return
        if not url.startswith(("http://", "https://")):
            self.skipped[_unlike_http(kind, url)] += 1
            return
        if at is None:
            yield Damage(self._file, record.place.offset, "the record has no usable WARC-Date")
            return
        if record.wrong is not None:
            why = f"{record.wrong}; what it holds is read all the same"
            yield Damage(self._file, record.place.offset, why, "wrong_digest")
        yield from self._join(kind, url, at, record)

    def close(self) -> Iterator[IndexEntry]:
        """Yield the exchanges that are still open at the end of the file."""
        for number in list(self._groups):
            yield from self._ended(number)

    def _entry(self, record: ScannedRecord, kind: CaptureKind, url: str, at: float) -> IndexEntry:
        return IndexEntry(at, self._source, *record.place, kind=kind, url=url, started_at=at)

    def _join(self, kind: str, url: str, at: float, record: ScannedRecord) -> Iterator[IndexEntry]:
        names = ("warc-record-id", "warc-concurrent-to")
        ids = [bracketless(record.fields[name]) for name in names if name in record.fields]
        group = next((self._open[each] for each in ids if each in self._open), None)
        if group is not None and _is_taken(group, kind):
            yield from self._ended(id(group))
            group = None
        if group is None:
            group = _Group()
            self._groups[id(group)] = group
        for each in ids:
            self._open[each] = group
            group.ids.append(each)
        self._fill(group, kind, url, at, record)
        if len(self._groups) > _OPEN_EXCHANGES:
            yield from self._ended(next(iter(self._groups)))

    def _fill(self, group: _Group, kind: str, url: str, at: float, record: ScannedRecord) -> None:
        if kind == "request":
            group.request = record.place
            group.method = record.start[:20].partition(b" ")[0].decode("latin-1")
        elif kind == "metadata":
            group.facts = facts_of(record.start), self._entry(record, "bare", url, at)
        else:
            group.answer = self._answer(kind, url, at, record)
            group.spoiled |= group.answer is None

    def _answer(self, kind: str, url: str, at: float, record: ScannedRecord) -> IndexEntry | None:
        fields = record.fields
        status = _OK if kind == "resource" else http_status(record.start)
        how: CaptureKind = "response"
        if kind == "revisit":
            profile = fields.get("warc-profile", "")
            is_304 = "not-modified" in profile or ("identical" not in profile and status == 304)
            how = "not_modified" if is_304 else "same"
        if status is None and how == "response":
            self.skipped["response that is not HTTP"] += 1
            return None
        if "warc-segment-number" in fields:
            self.skipped["response in segments"] += 1
            return None
        entry = self._entry(record, how, url, at)._replace(
            status=status,
            digest=record.digest,
            record_key=key(bracketless(fields.get("warc-record-id"))),
            url_key=key(url),
        )
        return _referring(entry, fields) if how == "same" else entry

    def _other(self, kind: str, record: ScannedRecord) -> Iterator[Damage]:
        """Count a record outside of exchanges; yield one with an invalid type."""
        if kind and not (kind.isascii() and kind.isalnum()):
            yield Damage(self._file, record.place.offset, "the WARC-Type is no word")
        else:
            self.skipped[kind or "untyped"] += 1

    def _is_beside(self, record: ScannedRecord, url: str) -> bool:
        """Return whether a record is the rendered page of an open exchange, and note it there."""
        beside = self._open.get(bracketless(record.fields.get("warc-concurrent-to")))
        if beside is None or not url.startswith(RENDERED):
            return False
        beside.rendered = record.place
        return True

    def _ended(self, number: int) -> Iterator[IndexEntry]:
        group = self._groups.pop(number)
        for each in group.ids:
            if self._open.get(each) is group:
                del self._open[each]
        if group.spoiled:
            return
        if (why := _why_skipped(group)) is not None:
            self.skipped[why] += 1
        elif (entry := _joined(group)) is not None:
            yield entry


def _is_taken(group: _Group, kind: str) -> bool:
    """Return whether a group already has a record of that kind."""
    if kind == "request":
        return group.request is not None
    if kind == "metadata":
        return group.facts is not None
    return group.answer is not None or group.spoiled


def _unlike_http(kind: str, url: str) -> str:
    """Return the name under which a record of another scheme is counted."""
    found = _SCHEME.match(url)
    return f"{found[1].lower()}:" if found else f"{kind} without a URL"


def _why_skipped(group: _Group) -> str | None:
    """Return why the records of a group are not an exchange; None if they are one."""
    if group.answer is None:
        return _unanswered(group)
    if group.method in {None, "GET"} or (group.facts and group.facts[0].accept is not None):
        return None
    # The answer to a POST belongs to a form, not to a URL; our own requests are kept.
    return f"answer to {group.method}"


def _place_of(found: RecordPlace | IndexEntry | None) -> tuple[int | None, int | None]:
    """Return the offset of a record and its number there."""
    return (None, None) if found is None else (found.offset, found.nth)


def _joined(group: _Group) -> IndexEntry | None:
    """Return the exchange of all records of a group; None: there is neither answer nor facts."""
    facts, bare = group.facts or (ExchangeMetadata(), None)
    entry = group.answer or bare
    if entry is None:
        return None
    request_offset, request_nth = _place_of(group.request)
    facts_offset, facts_nth = _place_of(bare)
    rendered_offset, rendered_nth = _place_of(group.rendered)
    return entry._replace(
        ended_at=entry.started_at + facts.duration_s,
        outcome=facts.outcome,
        accept=facts.accept,
        request_offset=request_offset,
        request_nth=request_nth,
        facts_offset=facts_offset,
        facts_nth=facts_nth,
        rendered_offset=rendered_offset,
        rendered_nth=rendered_nth,
    )


def _unanswered(group: _Group) -> str | None:
    """Return why records without an answer are not an exchange; None if they record its end."""
    if group.facts is None:
        return "request without an answer"
    facts = group.facts[0]
    if facts.outcome is None:
        return "metadata"
    is_lost = facts.outcome in _ANSWERED or (facts.reason or "").startswith("http_")
    return "metadata of an answer that is lost" if is_lost else None


def _referring(entry: IndexEntry, fields: Mapping[str, str]) -> IndexEntry:
    record = fields.get("warc-refers-to")
    target = target_url(fields.get("warc-refers-to-target-uri")) or entry.url
    at = warc_time(fields.get("warc-refers-to-date"))
    return entry._replace(
        refers_record=None if record is None else key(bracketless(record)),
        refers_url=None if at is None else key(target),
        refers_started=at,
    )


# -- accounts ----------------------------------------------------------------
# Freshet's own archives describe, in the warcinfo of each file, the run that wrote it.
@dataclass(frozen=True, slots=True)
class ArchivedRun:
    """A run: its start (Unix seconds), whether a daemon made it, and its site list."""

    began_at: float
    is_lasting: bool
    seeds: tuple[StoredSeed, ...]


@dataclass(frozen=True, slots=True)
class _Run:
    began: FiniteFloat
    lasting: bool


_RUN: Final = TypeAdapter(_Run)
_SEEDS: Final = TypeAdapter(tuple[StoredSeed, ...])


def accounts_of(descriptions: Iterable[Mapping[str, str]]) -> list[ArchivedRun]:
    """Return the runs in the order of their start; foreign archives do not record runs.

    ``descriptions`` are the fields of the files' warcinfo records. If a run wrote several files,
    the last one's seeds hold.
    """
    found = {}
    for fields in descriptions:
        # The exchanges of a damaged or foreign description are read as foreign ones.
        with suppress(KeyError, ValidationError):
            run = _RUN.validate_json(fields["freshet-run"])
            seeds = _SEEDS.validate_json(fields["freshet-seeds"])
            found[run.began] = ArchivedRun(run.began, run.lasting, seeds)
    return [found[at] for at in sorted(found)]
