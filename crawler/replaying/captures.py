"""What an archive holds of one exchange, and where it stands. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from freshet.crawler.network.responses import RawHeaders


class CaptureKind(StrEnum):
    """How an exchange stands in an archive.

    ``RESPONSE`` has the answer itself. ``NOT_MODIFIED`` is the revisit of a 304, ``SAME`` that of
    a payload that was archived before. ``BARE`` has no answer, only a crawler's word on why.
    """

    RESPONSE = "response"
    NOT_MODIFIED = "not_modified"
    SAME = "same"
    BARE = "bare"


class Flaw(StrEnum):
    """What can be wrong with a part of an archive."""

    EMPTY = "empty"
    UNREADABLE = "unreadable"
    DAMAGED = "damaged"
    DIGEST = "wrong_digest"
    UNRESOLVED = "unresolved_revisit"


@dataclass(frozen=True, slots=True)
class Damage:
    """A place where an archive could not be read; the records around it are kept.

    ``offset`` is the byte of the file (of a member, if ``file`` names one in a WACZ).
    """

    file: str
    offset: int
    reason: str
    flaw: Flaw = Flaw.DAMAGED

    def __str__(self) -> str:
        return f"{self.file}: at byte {self.offset}: {self.reason}"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a record is: ``length`` bytes at ``offset``, as they are stored.

    ``nth`` counts the records since ``offset`` where one compressed stream holds several; the
    length is 0 then.
    """

    offset: int
    length: int
    nth: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """What the crawler that wrote the archive says of an exchange beside its bytes.

    The words are those of the lines of its metadata record. ``duration_s`` is ``fetchTimeMs`` in
    seconds; Heritrix writes that, too, and the rest is ours: without an ``outcome`` the record is
    somebody else's. ``is_unasked``: nothing was sent.
    """

    duration_s: float = 0.0
    outcome: str | None = None
    reason: str | None = None
    detail: str | None = None
    retry_after_s: float | None = None
    location: str | None = None
    accept: str | None = None
    truncated: str | None = None
    is_unasked: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Where an exchange stands in the order of the times at which they ended."""

    ended_at: float
    source: int
    offset: int
    nth: int = 0


@dataclass(frozen=True, slots=True)
class ArchiveInfo:
    """What a file says of itself (a ``warcinfo`` record): who wrote it, and how.

    ``fields`` are names and values in order. Our own have the site list and the settings.
    """

    position: Position
    file: str
    fields: RawHeaders


@dataclass(frozen=True, slots=True)
class ArchivedExchange:
    """One exchange, read back.

    ``status``, ``headers`` and ``wire_body`` are those of the answer: the body as it came, its
    content coding kept, without chunked framing; of a ``SAME`` revisit it is the original's.
    ``is_cut`` says that the body was longer than the reader allows, ``truncated`` what the
    archive says of why it is not whole (WARC-Truncated). ``digest`` is the payload's, as
    ``sha1:HEX`` or by the algorithm of its label.
    """

    position: Position
    file: str
    kind: CaptureKind
    url: str
    started_at: float
    status: int | None = None
    headers: RawHeaders = ()
    wire_body: bytes = b""
    request_headers: RawHeaders = ()
    peer: str | None = None
    digest: str | None = None
    truncated: str | None = None
    is_cut: bool = False
    facts: Facts = field(default_factory=Facts)

    @property
    def ended_at(self) -> float:
        """When the exchange was over, in Unix seconds."""
        return self.position.ended_at

    @property
    def place(self) -> str:
        """The file and the byte, for messages."""
        return f"{self.file}: at byte {self.position.offset}"
