"""Archives as input: a WARC file, a WACZ, a list of them, a folder, or a CDXJ index.

The first bytes of a file decide, not its name. A WACZ is read in place, without unpacking.
"""

import json
import os
import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from freshet.crawler.archive.text import FileSlice
from freshet.crawler.errors import BrokenFile, CrawlError
from freshet.crawler.reduce.sitemaps import gunzipped
from freshet.storage.errors import trouble

_ENDINGS = (".warc", ".warc.gz", ".warc.zst", ".wacz")
#: Some crawlers give a file its name only when it is complete.
_UNFINISHED = ".open"
_ZIP = b"PK\x03\x04"
_CDX_LINE = re.compile(rb"\S+ \d{4,14} \{|!meta |\{\"")
_ARC_OR_CDX = re.compile(rb"filedesc:| CDX |\S+ \d{14} \S+ \S+/\S+ \d{3} ")
#: Bytes of a file that decide its format.
_HEAD_BYTES = 4096
#: What a local file header of a ZIP has before its name.
_LOCAL_HEADER_BYTES = 30
_MAX_LISTS = 5


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """A WARC file, or ``size`` bytes from ``start`` of a WACZ.

    ``is_list``: a CDXJ file, which may be gzipped; only the captures that it lists are read.
    """

    path: Path
    member: str | None = None
    start: int = 0
    size: int | None = None
    is_list: bool = False

    @property
    def name(self) -> str:
        """The file's name in messages."""
        return str(self.path) if self.member is None else f"{self.path}!{self.member}"

    def open(self) -> FileSlice:
        """Open the archive."""
        return FileSlice(self.path, self.start, self.size)


def inputs_of(paths: Iterable[Path]) -> list[ArchiveFile]:
    """Return the archives at these paths in the given order; in a folder, by name.

    A file that is reached twice counts once.

    Raises:
        CrawlError: a path is not an archive, or leads to one that is missing.
    """
    found: dict[ArchiveFile, None] = {}
    for path in paths:
        found.update(dict.fromkeys(_expanded(Path(os.path.realpath(path)), 0)))
    return list(found)


def _expanded(path: Path, depth: int) -> Iterator[ArchiveFile]:
    try:
        if path.is_dir():
            yield from _in_folder(path, depth)
        else:
            yield from _in_file(path, depth)
    except OSError as error:
        raise CrawlError(trouble(path, error)) from error


def _in_folder(path: Path, depth: int) -> Iterator[ArchiveFile]:
    archives = [
        each
        for each in sorted(path.rglob("*"))
        if each.name.removesuffix(_UNFINISHED).endswith(_ENDINGS) and each.is_file()
    ]
    if not archives:
        endings = ", ".join(f"*{ending}" for ending in _ENDINGS)
        raise CrawlError(f"{path}: the folder holds no archive ({endings}); name another")
    for each in archives:
        yield from _in_file(each, depth)


def _in_file(path: Path, depth: int) -> Iterator[ArchiveFile]:
    with closing(FileSlice(path)) as source:
        head = source.read_at(0, _HEAD_BYTES)
    if head.startswith(_ZIP):
        yield from _in_wacz(path)
        return
    text = _beginning_of(head)
    if _ARC_OR_CDX.match(text):
        raise CrawlError(f"{path}: ARC and classic CDX are not read; convert it to WARC or CDXJ")
    if _CDX_LINE.match(text):
        yield ArchiveFile(path, is_list=True)
    # A damaged archive: named like one, and not just text.
    elif source.coding or not head or (path.name.endswith(_ENDINGS) and not _is_text(head)):
        yield ArchiveFile(path)
    else:
        yield from _in_list(path, head, depth)


def _beginning_of(head: bytes) -> bytes:
    """Return the first bytes of a file, undone if they are gzip."""
    try:
        return next(gunzipped(head, _HEAD_BYTES), b"")
    except BrokenFile:
        return b""


def _is_text(head: bytes) -> bool:
    try:
        return b"\0" not in head and bool(head.decode("utf-8", "strict").strip())
    except UnicodeDecodeError as error:
        # The end of the head may cut a character.
        return error.start > len(head) - 4 and b"\0" not in head


def _in_wacz(path: Path) -> Iterator[ArchiveFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [each for each in archive.infolist() if each.filename.endswith(_ENDINGS[:3])]
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError) as error:
        raise CrawlError(f"{path}: not a readable WACZ: {error}; copy it again") from error
    if not members:
        raise CrawlError(f"{path}: the ZIP holds no WARC; name another file")
    with closing(FileSlice(path)) as source:
        for each in members:
            yield ArchiveFile(path, each.filename, _data_start(source, path, each), each.file_size)


def _data_start(source: FileSlice, path: Path, member: zipfile.ZipInfo) -> int:
    if member.compress_type != zipfile.ZIP_STORED:
        raise CrawlError(
            f"{path}: {member.filename} is compressed within the ZIP; unpack it"
            " (unzip) and give the folder"
        )
    header = source.read_at(member.header_offset, _LOCAL_HEADER_BYTES)
    if not header.startswith(_ZIP) or len(header) < _LOCAL_HEADER_BYTES:
        raise CrawlError(
            f"{path}: at byte {member.header_offset}: the ZIP is damaged; copy it again"
        )
    lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    return member.header_offset + _LOCAL_HEADER_BYTES + lengths


def _in_list(path: Path, head: bytes, depth: int) -> Iterator[ArchiveFile]:
    """Yield the files that a text names, one a line, relative to its folder."""
    if depth >= _MAX_LISTS:
        raise CrawlError(f"{path}: the list is named by a list {depth} deep; name the archives")
    if not _is_text(head) or not _first_is_file(path, head):
        first = (head[:60].splitlines() or [b""])[0].decode("utf-8", "replace")
        raise CrawlError(
            f"{path}: neither an archive nor a list of archives; it begins {first!r}; name another"
        )
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            text = line.decode("utf-8", "replace").strip()
            if not text or text.startswith("#"):
                continue
            target = _named(path, text)
            if target is None:
                advice = "download it first" if "://" in text else "put it beside the list"
                raise CrawlError(f"{path}: line {number}: no file {text[:200]!r}; {advice}")
            yield from _expanded(target, depth + 1)


def _first_is_file(path: Path, head: bytes) -> bool:
    lines = (line.strip() for line in head.decode("utf-8", "replace").splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return first.endswith((*_ENDINGS, ".cdxj", _UNFINISHED)) or _named(path, first) is not None


def _named(path: Path, text: str) -> Path | None:
    """Return the file that a line names, in the list's folder or beside it."""
    try:
        candidates = [path.parent / text, path.parent / Path(text).name]
        return next((each.resolve() for each in candidates if each.exists() and each != path), None)
    except (OSError, ValueError):
        return None


# -- capture lists -----------------------------------------------------------
# CDXJ as pywb and Common Crawl write it: a key, a time and a JSON object with ``filename`` and
# ``offset``.
_SLICE_BYTES = 64 * 1024
_MAX_LINE_BYTES = 1024 * 1024
#: Members of gzip that follow one another make one text; this is more than any disk has.
_NO_LIMIT = 2**62


class _ListedCapture(NamedTuple):
    """A line, the file as named there, and the position."""

    line: int
    filename: str
    offset: int


def listed_captures(path: Path) -> Iterator[_ListedCapture]:
    """Yield the captures of a list in its order, without answers to POST and the like.

    Raises:
        CrawlError: a line cannot be read.
    """
    for number, line in enumerate(_lines(path), 1):
        start = line.find(b"{")
        if start < 0 or line.startswith(b"!"):
            if line.strip() and not line.startswith(b"!"):
                raise _unusable(path, number, "no JSON object")
            continue
        if (found := _capture(path, number, line[start:])) is not None:
            yield found


def _capture(path: Path, number: int, text: bytes) -> _ListedCapture | None:
    """Return the capture of a line; None if its answer depends on more than the URL."""
    try:
        fields = json.loads(text)
        if fields.get("method", "GET") != "GET" or "__wb_method=" in str(fields.get("url")):
            return None
        found = _ListedCapture(number, str(fields["filename"]), int(fields["offset"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _unusable(path, number, "no capture with filename and offset") from error
    if not 0 <= found.offset < 2**62:
        raise _unusable(path, number, "an impossible offset")
    return found


def _unusable(path: Path, number: int, why: str) -> CrawlError:
    """Return the error about a line of a list of captures."""
    advice = "`freshet archive --cdxj` writes such a list"
    return CrawlError(f"{path}: line {number}: {why}; {advice}")


def _lines(path: Path) -> Iterator[bytes]:
    rest = b""
    try:
        with path.open("rb") as file:
            slices = iter(lambda: file.read(_SLICE_BYTES), b"")
            for piece in gunzipped(slices, _NO_LIMIT):
                *lines, rest = (rest + piece).split(b"\n")
                if len(rest) > _MAX_LINE_BYTES:
                    why = f"a line is longer than {_MAX_LINE_BYTES} bytes"
                    raise CrawlError(f"{path}: {why}; name another list")
                yield from lines
    except BrokenFile as error:
        raise CrawlError(f"{path}: {error}; copy it again") from error
    except OSError as error:
        raise CrawlError(trouble(path, error)) from error
    if rest:
        yield rest


def located(path: Path, capture: _ListedCapture) -> Path:
    """Return the file that a line names: in the list's folder or its ``archive``, or beside it.

    Raises:
        CrawlError: the file does not exist.
    """
    name = Path(capture.filename)
    folder = path.parent
    beside = (parent / "archive" / name.name for parent in (folder.parent, folder))
    for place in (folder / name, folder / name.name, *beside):
        if place.is_file():
            return place.resolve()
    advice = "put it beside the list"
    raise CrawlError(f"{path}: line {capture.line}: no file {capture.filename[:200]!r}; {advice}")
