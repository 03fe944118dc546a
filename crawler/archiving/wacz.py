"""A WACZ package (version 1.1.1): an archive with its index and its pages in one ZIP file.

ReplayWeb.page and its kin open it, also over the network: WARC files and index stand in it
uncompressed, so that any part can be read by its position.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final, NamedTuple
from uuid import uuid4
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from freshet.crawler.archiving.cdxj import CdxEntry, write_cdxj

_CHUNK_BYTES: Final = 1 << 20
_VERSION: Final = "1.1.1"
_PAGE_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
_PAGES: Final = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}


class _Resource(NamedTuple):
    """A file of the package, as its manifest lists it."""

    name: str
    path: str
    hash: str
    bytes: int


def write_wacz(paths: Sequence[Path], target: Path, *, software: str, now: float) -> int:
    """Package some WARC files; how many lines their index has.

    Raises:
        OSError: the target cannot be written.
        UnreadableArchive: one of the files is damaged.
    """
    created = datetime.fromtimestamp(now, UTC)
    with (
        TemporaryFile("w+", encoding="utf-8") as index,
        TemporaryFile("w+", encoding="utf-8") as pages,
    ):
        pages.write(json.dumps(_PAGES) + "\n")
        count = write_cdxj(paths, index, heard=partial(_note_page, pages))
        with target.open("wb") as file, ZipFile(file, "w") as package:
            add = partial(_added, package, created)
            resources = [add(f"archive/{path.name}", _chunks(path)) for path in paths]
            resources.append(add("indexes/index.cdx", _encoded(index)))
            resources.append(add("pages/pages.jsonl", _encoded(pages)))
            manifest = _json(
                {
                    "profile": "data-package", "wacz_version": _VERSION, "software": software,
                    "created": f"{created:%Y-%m-%dT%H:%M:%SZ}",
                    "resources": [each._asdict() for each in resources],
                }
            )  # fmt: skip
            told = add("datapackage.json", [manifest])
            add("datapackage-digest.json", [_json({"path": told.path, "hash": told.hash})])
    return count


def _note_page(pages: IO[str], entry: CdxEntry) -> None:
    if entry.status != "200" or entry.mime not in _PAGE_TYPES:
        return
    stamp = datetime.strptime(entry.timestamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    line = {"id": uuid4().hex, "url": entry.url, "ts": f"{stamp:%Y-%m-%dT%H:%M:%SZ}"}
    pages.write(json.dumps(line) + "\n")


def _added(package: ZipFile, at: datetime, path: str, chunks: Iterable[bytes]) -> _Resource:
    """Add a file, as it is."""
    info = ZipInfo(path, (at.year, at.month, at.day, at.hour, at.minute, at.second))
    info.compress_type = ZIP_STORED
    info.external_attr = 0o644 << 16
    digest, size = sha256(), 0
    with package.open(info, "w", force_zip64=True) as out:
        for chunk in chunks:
            out.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    return _Resource(path.rpartition("/")[2], path, f"sha256:{digest.hexdigest()}", size)


def _chunks(path: Path) -> Iterable[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def _encoded(text: IO[str]) -> Iterable[bytes]:
    text.seek(0)
    return (line.encode() for line in text)


def _json(value: object) -> bytes:
    return json.dumps(value, indent=2).encode()
