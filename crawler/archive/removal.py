"""Records of forgotten pages in an archive: find them, and write the files without them."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from freshet.crawler.archive.records import Damage
from freshet.crawler.archive.scan import ScannedRecord, Slice, scan
from freshet.crawler.urls import canonical

_PIECE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class DoomedRecord:
    """A record to remove: its file, its place there, its kind and its address."""

    file: str
    offset: int
    kind: str
    url: str


class CannotRemove(ValueError):
    """A file out of which no record can be cut; the message says why."""


def doomed_records(file: Path, forgotten: Callable[[str], bool]) -> list[DoomedRecord]:
    """Return the records of a WARC file about addresses that are ``forgotten`` (canonical URLs).

    Of a damaged file these are the ones before the damage. Raises OSError.
    """
    with closing(Slice(file)) as source:
        found = (each for each in scan(source, file.name) if isinstance(each, ScannedRecord))
        return [
            DoomedRecord(file.name, each.place.offset, each.fields["warc-type"], url)
            for each in found
            if forgotten(url := _url(each))
        ]


def remove_records(file: Path, target: Path, forgotten: Callable[[str], bool]) -> None:
    """Write a WARC file without such records; all others stay byte for byte.

    Raises:
        CannotRemove: the file is damaged, or its records are compressed together.
        OSError: the file cannot be read, or the target not written.
    """
    with closing(Slice(file)) as source, target.open("wb") as out:
        start, is_kept = 0, True
        for each in scan(source, file.name):
            if isinstance(each, Damage):
                raise CannotRemove(f"{file}: it is damaged at byte {each.offset} ({each.reason})")
            if each.place.nth:
                raise CannotRemove(f"{file}: its records are compressed together")
            if is_kept:
                _copy(source, start, each.place.offset, out)
            start, is_kept = each.place.offset, not forgotten(_url(each))
        if is_kept:
            _copy(source, start, source.size, out)


def _copy(source: Slice, start: int, end: int, out: IO[bytes]) -> None:
    while start < end:
        piece = source.read_at(start, min(_PIECE_BYTES, end - start))
        out.write(piece)
        start += len(piece)


def _url(record: ScannedRecord) -> str:
    """Return the canonical address of a record, which may stand in angle brackets."""
    url = record.fields.get("warc-target-uri", "").strip("<>")
    try:
        return canonical(url)
    except ValueError:
        return url
