"""CDXJ: lines that say in which file, and where in it, each capture stands.

A line is a key, a time and an object of JSON with ``filename``, ``offset`` and ``length``, as
pywb and Common Crawl write it. Of an archive that comes with one, only what it lists is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from freshet.crawler.errors import CrawlError
from freshet.crawler.parsing.gunzip import BrokenGzip, gunzipped

_SLICE_BYTES = 64 * 1024
_MAX_LINE_BYTES = 1024 * 1024
#: Members of gzip that follow one another make one text; this is more than any disk has.
_NO_LIMIT = 2**62


class ListedCapture(NamedTuple):
    """A line: the file as it is named there, and the place; a length of 0 is not known."""

    line: int
    filename: str
    offset: int
    length: int


def listed_captures(path: Path) -> Iterator[ListedCapture]:
    """The captures that a list names, in its order.

    Raises:
        CrawlError: a line cannot be read.
    """
    for number, line in enumerate(_lines(path), 1):
        start = line.find(b"{")
        if start < 0 or line.startswith(b"!"):
            if line.strip() and not line.startswith(b"!"):
                raise CrawlError(f"{path}: line {number}: no object of JSON")
            continue
        yield _capture(path, number, line[start:])


def _capture(path: Path, number: int, text: bytes) -> ListedCapture:
    try:
        fields = json.loads(text)
        filename, offset = str(fields["filename"]), int(fields["offset"])
        length = int(fields.get("length") or 0)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        wanted = "filename, offset and length"
        raise CrawlError(f"{path}: line {number}: no capture with {wanted}") from error
    if not (0 <= offset < 2**62 and 0 <= length < 2**62):
        raise CrawlError(f"{path}: line {number}: an impossible offset or length")
    return ListedCapture(number, filename, offset, length)


def _lines(path: Path) -> Iterator[bytes]:
    rest = b""
    try:
        with path.open("rb") as file:
            slices = iter(lambda: file.read(_SLICE_BYTES), b"")
            for piece in gunzipped(slices, _NO_LIMIT):
                *lines, rest = (rest + piece).split(b"\n")
                if len(rest) > _MAX_LINE_BYTES:
                    raise CrawlError(f"{path}: a line is longer than {_MAX_LINE_BYTES} bytes")
                yield from lines
    except BrokenGzip as error:
        raise CrawlError(f"{path}: {error}") from error
    except OSError as error:
        raise CrawlError(f"{path}: {error.strerror or error}") from error
    if rest:
        yield rest


def located(path: Path, capture: ListedCapture) -> Path:
    """The file that a line means: from the list's folder, beside it, or in its ``archive``.

    Raises:
        CrawlError: there is none.
    """
    name = Path(capture.filename)
    folder = path.parent
    places = (folder / name, folder / name.name, folder.parent / "archive" / name.name)
    for place in chain(places, (folder / "archive" / name.name,)):
        if place.is_file():
            return place.resolve()
    raise CrawlError(f"{path}: line {capture.line}: no file {capture.filename[:200]!r}")
