"""The CDXJ index of an archive: where each record stands, sorted by its key and time.

A line is ``KEY TIMESTAMP {JSON}`` with the fields that pywb and ReplayWeb.page look for. Indexed
is what can be shown: responses and revisits, but no 304. Programs that look a page up take the
nearest line, and would show its empty answer instead of the page that it confirms.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from heapq import merge
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from freshet.crawler.archiving.surt import surt
from freshet.crawler.network.responses import media_type

_REVISIT: Final = "warc/revisit"
_NOT_MODIFIED: Final = "304"
_SHOWN: Final = WarcRecordType.response | WarcRecordType.revisit


@dataclass(frozen=True, slots=True)
class CdxEntry:
    """A response or revisit, and where it stands.

    ``timestamp`` has 14 digits; ``mime`` is the media type that the server named, ``status`` its
    status code as text.
    """

    url: str
    timestamp: str
    mime: str
    status: str
    digest: str
    offset: int
    length: int
    file: str

    @property
    def is_revisit(self) -> bool:
        """Whether the payload stands in another record."""
        return self.mime == _REVISIT

    def line(self) -> str:
        """The line of the index, with its end."""
        fields = {
            "url": self.url, "mime": self.mime, "status": self.status, "digest": self.digest,
            "length": str(self.length), "offset": str(self.offset), "filename": self.file,
        }  # fmt: skip
        return f"{surt(self.url)} {self.timestamp} {json.dumps(fields)}\n"


class UnreadableArchive(Exception):
    """A file cannot be read on; the message says which, where and why."""


def entries(path: Path) -> Iterator[CdxEntry]:
    """The entries of a WARC file, in its order.

    Raises:
        UnreadableArchive: the file is damaged, or none of WARC.
    """
    awaited: CdxEntry | None = None
    count = 0
    try:
        for record in ArchiveIterator(path, parse_http=True):
            count += 1
            if awaited is not None:
                yield _ended(awaited, record.stream_pos)
            awaited = _entry(record, path.name) if record.record_type & _SHOWN else None
    except (OSError, EOFError, RuntimeError, ValueError) as error:
        raise UnreadableArchive(f"{path}: {error}") from error
    if not count:
        raise UnreadableArchive(f"{path}: there is no WARC record in it")
    if awaited is not None:
        yield _ended(awaited, path.stat().st_size)


def write_cdxj(
    paths: Iterable[Path], out: IO[str], *, heard: Callable[[CdxEntry], None] | None = None
) -> int:
    """Write the index of some WARC files; how many lines it has.

    Sorted is a file at a time, what is sorted waits on the disk. ``heard`` is told of each.

    Raises:
        UnreadableArchive: one of the files is damaged.
    """
    count = 0
    with ExitStack() as stack:
        parts: list[IO[str]] = []
        for path in paths:
            lines = []
            for each in entries(path):
                if each.status == _NOT_MODIFIED:
                    continue
                lines.append(each.line())
                if heard is not None:
                    heard(each)
            lines.sort()
            count += len(lines)
            part = stack.enter_context(TemporaryFile("w+", encoding="ascii"))
            part.writelines(lines)
            part.seek(0)
            parts.append(part)
        out.writelines(merge(*parts))
    return count


def _entry(record: WarcRecord, file: str) -> CdxEntry:
    """The entry, without its length, which the next record shows."""
    headers = record.headers
    is_revisit = record.record_type is WarcRecordType.revisit
    label = record.http_headers.get("Content-Type") or "" if record.is_http_parsed else ""
    status = record.http_headers.status_code if record.is_http_parsed else None
    return CdxEntry(
        url=headers.get("WARC-Target-URI") or "",
        timestamp="".join(c for c in headers.get("WARC-Date") or "" if c.isdigit())[:14],
        mime=_REVISIT if is_revisit else media_type(label) or "unk",
        status=str(status or ""),
        digest=headers.get("WARC-Payload-Digest") or "",
        offset=record.stream_pos,
        length=0,
        file=file,
    )


def _ended(entry: CdxEntry, at: int) -> CdxEntry:
    return replace(entry, length=at - entry.offset)
