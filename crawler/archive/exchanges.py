"""Groups the records of an archive into exchanges: response, request and metadata.

Records of one exchange name one another (WARC-Concurrent-To) and stand close together. Records
that are not part of an HTTP exchange are counted by kind.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from math import isfinite
from typing import Any

from freshet.crawler.archive.records import (
    ArchiveInfo,
    CaptureKind,
    Damage,
    Facts,
    Flaw,
    RecordPlace,
    facts_of,
    http_status,
    named,
    target_url,
    warc_time,
)
from freshet.crawler.archive.scan import ScannedRecord
from freshet.storage.records import SeedLine

#: So many exchanges may be interleaved in a file.
_OPEN_EXCHANGES = 64
_OK = 200
#: Outcomes that only an answer can have: without it they say nothing.
_ANSWERED = frozenset({"fetched", "not_modified", "redirected", "gone"})
#: A resource is a file that somebody put under a URL, without a message of HTTP around it.
_OF_EXCHANGES = frozenset({"request", "response", "resource", "revisit", "metadata"})
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,20}):")


def key(*words: object) -> int:
    """Hash some words to 64 bits, as a key of the index."""
    text = "\0".join(map(str, words)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big", signed=True)


@dataclass(frozen=True, slots=True)
class Gathered:
    """One exchange, as it is indexed.

    ``answer`` is None for a bare one. ``refers`` has the keys of the record and the URL that a
    revisit names, and the time.
    """

    kind: CaptureKind
    url: str
    started_at: float
    ended_at: float
    status: int | None
    digest: str | None
    outcome: str | None
    accept: str | None
    record: int
    answer: RecordPlace | None
    request: RecordPlace | None
    facts: RecordPlace | None
    refers: tuple[int | None, int | None, float | None] = (None, None, None)

    @property
    def at(self) -> RecordPlace:
        """The position of the exchange: its answer's, or else its metadata's."""
        place = self.answer or self.facts
        assert place is not None  # noqa: S101 - one of the two is why there is an exchange
        return place


@dataclass(frozen=True, slots=True)
class GatheredInfo:
    """The position and time of a file's warcinfo record."""

    place: RecordPlace
    at: float


@dataclass(slots=True)
class _Answer:
    """A response or a revisit."""

    place: RecordPlace
    kind: CaptureKind
    url: str
    at: float
    status: int | None
    digest: str | None
    record: int
    refers: tuple[int | None, int | None, float | None]


@dataclass(slots=True)
class _Group:
    """The records of one exchange so far; the answer of a ``spoiled`` one must not be used."""

    ids: list[str] = field(default_factory=list)
    answer: _Answer | None = None
    request: RecordPlace | None = None
    method: str | None = None
    facts: tuple[RecordPlace, Facts, str, float] | None = None
    spoiled: bool = False


class Gathering:
    """The exchanges of one file; ``skipped`` counts other records by kind."""

    def __init__(self, file: str, *, keep_wrong_digests: bool = False) -> None:
        self._file = file
        self._keeps_wrong = keep_wrong_digests
        self._open: dict[str, _Group] = {}
        self._groups: dict[int, _Group] = {}
        self.skipped: Counter[str] = Counter()

    def add(self, record: ScannedRecord) -> Iterator[Gathered | GatheredInfo | Damage]:
        """Take a record and yield the exchanges that it completes."""
        kind = record.fields.get("warc-type", "").lower()
        if kind == "warcinfo":
            at = warc_time(record.fields.get("warc-date"))
            yield GatheredInfo(record.place, -math.inf if at is None else at)
        if kind not in _OF_EXCHANGES:
            self.skipped[kind or "untyped"] += 1
            return
        url = target_url(record.fields.get("warc-target-uri"))
        if not url.startswith(("http://", "https://")):
            found = _SCHEME.match(url)
            self.skipped[f"{found[1].lower()}:" if found else f"{kind} without a URL"] += 1
            return
        at = warc_time(record.fields.get("warc-date"))
        if at is None:
            yield Damage(self._file, record.place.offset, "the record has no usable WARC-Date")
            return
        if record.wrong is not None:
            yield Damage(self._file, record.place.offset, record.wrong, Flaw.DIGEST)
        yield from self._join(kind, url, at, record)

    def close(self) -> Iterator[Gathered]:
        """Yield the exchanges that are still open at the end of the file."""
        for number in list(self._groups):
            yield from self._ended(number)

    def _join(self, kind: str, url: str, at: float, record: ScannedRecord) -> Iterator[Gathered]:
        names = ("warc-record-id", "warc-concurrent-to")
        ids = [record.fields[name] for name in names if name in record.fields]
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
        if record.wrong is not None and not self._keeps_wrong:
            group.spoiled |= kind in ("response", "resource", "revisit")
        elif kind == "request":
            group.request = record.place
            group.method = record.start[:20].partition(b" ")[0].decode("latin-1")
        elif kind == "metadata":
            group.facts = record.place, facts_of(record.start), url, at
        else:
            group.answer = self._answer(kind, url, at, record)
            group.spoiled |= group.answer is None

    def _answer(self, kind: str, url: str, at: float, record: ScannedRecord) -> _Answer | None:
        fields = record.fields
        status = _OK if kind == "resource" else http_status(record.start)
        how = _revisit_kind(fields, status) if kind == "revisit" else CaptureKind.RESPONSE
        if status is None and how is CaptureKind.RESPONSE:
            self.skipped["response that is not HTTP"] += 1
            return None
        if "warc-segment-number" in fields:
            self.skipped["response in segments"] += 1
            return None
        number = key(fields.get("warc-record-id", ""))
        refers = _refers(fields, url) if how is CaptureKind.SAME else (None, None, None)
        return _Answer(
            place=record.place,
            kind=how,
            url=url,
            at=at,
            status=status,
            digest=record.digest,
            record=number,
            refers=refers,
        )

    def _ended(self, number: int) -> Iterator[Gathered]:
        group = self._groups.pop(number)
        for each in group.ids:
            if self._open.get(each) is group:
                del self._open[each]
        if group.spoiled:
            return
        answer, facts = group.answer, group.facts
        if answer is None:
            yield from self._bare(group)
        elif group.method not in (None, "GET") and (facts is None or facts[1].accept is None):
            self.skipped[f"answer to {group.method}"] += 1
        else:
            known = Facts() if facts is None else facts[1]
            yield Gathered(
                kind=answer.kind, url=answer.url, started_at=answer.at,
                ended_at=answer.at + known.duration_s, status=answer.status, digest=answer.digest,
                outcome=known.outcome, accept=known.accept, record=answer.record,
                answer=answer.place, request=group.request,
                facts=None if facts is None else facts[0], refers=answer.refers,
            )  # fmt: skip

    def _bare(self, group: _Group) -> Iterator[Gathered]:
        """Yield an exchange without an answer if its metadata says how it ended."""
        if group.facts is None:
            self.skipped["request without an answer"] += 1
            return
        place, facts, url, at = group.facts
        if facts.outcome is None:
            self.skipped["metadata"] += 1
        elif facts.outcome in _ANSWERED or (facts.reason or "").startswith("http_"):
            self.skipped["metadata of an answer that is lost"] += 1
        else:
            yield Gathered(
                kind=CaptureKind.BARE, url=url, started_at=at, ended_at=at + facts.duration_s,
                status=None, digest=None, outcome=facts.outcome, accept=facts.accept, record=0,
                answer=None, request=group.request, facts=place,
            )  # fmt: skip


def _is_taken(group: _Group, kind: str) -> bool:
    """Return whether a group already has a record of that kind."""
    if kind == "request":
        return group.request is not None
    if kind == "metadata":
        return group.facts is not None
    return group.answer is not None or group.spoiled


def _revisit_kind(fields: Mapping[str, str], status: int | None) -> CaptureKind:
    profile = fields.get("warc-profile", "")
    is_304 = "not-modified" in profile or ("identical" not in profile and status == 304)
    return CaptureKind.NOT_MODIFIED if is_304 else CaptureKind.SAME


def _refers(fields: Mapping[str, str], url: str) -> tuple[int | None, int | None, float | None]:
    record = fields.get("warc-refers-to")
    target = target_url(fields.get("warc-refers-to-target-uri")) or url
    at = warc_time(fields.get("warc-refers-to-date"))
    return (None if record is None else key(record), None if at is None else key(target), at)


# -- accounts ----------------------------------------------------------------
# Freshet's own archives describe, in the warcinfo of each file, the run that wrote it.
@dataclass(frozen=True, slots=True)
class Account:
    """A run: its start (Unix seconds), whether a daemon made it, and its site list."""

    began_at: float
    is_lasting: bool
    seeds: tuple[SeedLine, ...]


def accounts_of(infos: Iterable[ArchiveInfo]) -> list[Account]:
    """Return the runs in the order of their start; foreign archives have none.

    If a run wrote several files, the last one's seeds hold.
    """
    found = {}
    for info in infos:
        if (account := _account(info)) is not None:
            found[account.began_at] = account
    return [found[at] for at in sorted(found)]


def _account(info: ArchiveInfo) -> Account | None:
    """Return None for a damaged or foreign description: its exchanges are read as foreign ones."""
    fields = named(info.fields)
    try:
        run, seeds = json.loads(fields["freshet-run"]), json.loads(fields["freshet-seeds"])
        return Account(_moment(run["began"]), bool(run["lasting"]), tuple(map(_seed, seeds)))
    except (KeyError, TypeError, ValueError):
        return None


def _moment(value: Any) -> float:
    at = float(value)
    if not isfinite(at):
        raise ValueError("not a time")
    return at


def _seed(line: Any) -> SeedLine:
    # An archive of before half-lives does not say one.
    fallback, half_life = line["fallback_url"], line.get("half_life_hours")
    return SeedLine(
        str(line["text"]), str(line["url"]), None if fallback is None else str(fallback),
        float(line["importance"]), None if half_life is None else float(half_life),
    )  # fmt: skip
