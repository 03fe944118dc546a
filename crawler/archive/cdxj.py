"""The CDXJ index of an archive and its WACZ package.

A line is ``KEY TIMESTAMP {JSON}`` with the fields that pywb and ReplayWeb.page read. It lists
responses and revisits except for 304s: a reader takes the line nearest to a time, and would show
an empty answer.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from heapq import merge
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit
from uuid import NAMESPACE_URL, uuid5
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from freshet.crawler.errors import CrawlError
from freshet.crawler.fetch.responses import HTML_TYPES, media_type

# -- surt --------------------------------------------------------------------
# Keys are Sort-friendly URLs by the rules of the Internet Archive's canonicaliser, which other
# programs follow; the crawl's canonical URLs differ.
# ``https://www.Example.org:443/News/?b=2&a=1`` becomes ``org,example)/news?a=1&b=2``.
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_WWW: Final = re.compile(r"^www\d*\.")
#: Everything printable but blanks, # and %.
_SAFE: Final = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
#: Sessions in a path, as ASP.NET puts them, and in a query.
_PATH_SESSIONS: Final = (
    re.compile(r"(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)", re.I),
    re.compile(r"(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)", re.I),
)
_QUERY_SESSIONS: Final = tuple(
    re.compile(rf"(.*){session}(?:&(.*))?", re.I)
    for session in (
        "jsessionid=[0-9a-z]{32}", "phpsessid=[0-9a-z]{32}", "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}", "cfid=[^&]+&cftoken=[^&]+",
    )
)  # fmt: skip


def surt(url: str) -> str:
    """Return the key of an http or https URL; the key of an unreadable URL is the URL."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").strip("."), parts.port
    except ValueError:
        return url
    if not host:
        return url
    host = ",".join(reversed(_WWW.sub("", host).split(".")))
    place = host if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f"{host}:{port}"
    query = _query(parts.query)
    return f"{place}){_path(parts.path)}{'?' if query else ''}{query}"


def _path(path: str) -> str:
    kept: list[bytes] = []
    for each in _unescaped(path).split(b"/")[1:]:
        if each == b".." and kept:
            kept.pop()
        elif each != b".":
            kept.append(each)
    folders = b"".join(b"/" + each for each in kept[:-1] if each)
    path = _escaped(folders + b"/" + b"".join(kept[-1:])).lower()
    for session in _PATH_SESSIONS:
        if found := session.fullmatch(path):
            path = found[1] + found[2]
    return path.removesuffix("/") or "/"


def _query(query: str) -> str:
    query = _escaped(_unescaped(query))
    for session in _QUERY_SESSIONS:
        if found := session.fullmatch(query):
            query = found[1] + (found[2] or "")
    if len(query) <= 1:
        return query.lower()
    pairs = sorted(each.split("=", 1) for each in query.lower().split("&"))
    return "&".join(map("=".join, pairs))


def _unescaped(text: str) -> bytes:
    """Undo percent-encoding, however often it was applied."""
    before, after = text.encode("utf-8", "surrogatepass"), unquote_to_bytes(text)
    while after != before:
        before, after = after, unquote_to_bytes(after)
    return after


def _escaped(data: bytes) -> str:
    return quote_from_bytes(data, safe=_SAFE)


_REVISIT: Final = "warc/revisit"
_NOT_MODIFIED: Final = "304"
_SHOWN: Final = WarcRecordType.response | WarcRecordType.revisit


@dataclass(frozen=True, slots=True)
class _CdxEntry:
    """A response or revisit and its position.

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
        """True if another record holds the payload."""
        return self.mime == _REVISIT

    def line(self) -> str:
        """Return the line of the index, with its line end."""
        fields = {
            "url": self.url, "mime": self.mime, "status": self.status, "digest": self.digest,
            "length": str(self.length), "offset": str(self.offset), "filename": self.file,
        }  # fmt: skip
        return f"{surt(self.url)} {self.timestamp} {json.dumps(fields)}\n"


def entries(path: Path) -> Iterator[_CdxEntry]:
    """Yield the entries of a WARC file in its order.

    Raises:
        CrawlError: the file is damaged, or not a WARC file.
    """
    awaited: _CdxEntry | None = None
    count = 0
    try:
        for record in ArchiveIterator(path, parse_http=True):
            count += 1
            if awaited is not None:
                yield replace(awaited, length=record.stream_pos - awaited.offset)
            awaited = _entry(record, path.name) if record.record_type & _SHOWN else None
    except (OSError, EOFError, RuntimeError, ValueError) as error:
        raise CrawlError(f"{path}: it is no sound WARC file ({error}); leave it out") from error
    if not count:
        raise CrawlError(f"{path}: no WARC record in it; leave it out")
    if awaited is not None:
        yield replace(awaited, length=path.stat().st_size - awaited.offset)


def write_cdxj(
    paths: Iterable[Path], out: IO[str], *, note: Callable[[_CdxEntry], None] | None = None
) -> int:
    """Write the index of some WARC files and return its number of lines.

    One file is sorted at a time; sorted entries wait on the disk. ``note`` is called with each.
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
                if note is not None:
                    note(each)
            lines.sort()
            count += len(lines)
            part = stack.enter_context(TemporaryFile("w+", encoding="utf-8"))
            part.writelines(lines)
            part.seek(0)
            parts.append(part)
        out.writelines(merge(*parts))
    return count


def _mime_and_status(record: WarcRecord) -> tuple[str, str]:
    """Return the media type and the status of a record's HTTP response, as CDXJ writes them."""
    label, status = "", None
    if record.is_http_parsed:
        label = record.http_headers.get("Content-Type") or ""
        status = record.http_headers.status_code
    is_revisit = record.record_type is WarcRecordType.revisit
    return _REVISIT if is_revisit else media_type(label) or "unk", str(status or "")


def _entry(record: WarcRecord, file: str) -> _CdxEntry:
    """Return the entry without its length, which only the next record shows."""
    mime, status = _mime_and_status(record)

    def field(name: str) -> str:
        return record.headers.get(name) or ""

    return _CdxEntry(
        url=field("WARC-Target-URI"),
        timestamp="".join(c for c in field("WARC-Date") if c in "0123456789")[:14],
        mime=mime,
        status=status,
        digest=field("WARC-Payload-Digest"),
        offset=record.stream_pos,
        length=0,
        file=file,
    )


# -- wacz --------------------------------------------------------------------
# A WACZ package (version 1.1.1) holds WARC files and their index uncompressed in one ZIP file,
# so that ReplayWeb.page can read any part by its position, also over the network.
_CHUNK_BYTES: Final = 1 << 20
_VERSION: Final = "1.1.1"
_PAGES: Final = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}


def write_wacz(
    paths: Sequence[Path], target: Path, *, software: str, now: float | None = None
) -> int:
    """Package some WARC files and return the number of lines of their index.

    Packages of the same files are the same, byte for byte: one is created when its last response
    was, or ``now``.
    """
    with (
        TemporaryFile("w+", encoding="utf-8") as index,
        TemporaryFile("w+", encoding="utf-8") as pages,
    ):
        pages.write(json.dumps(_PAGES) + "\n")
        seen = _Pages(pages)
        count = write_cdxj(paths, index, note=seen.note)
        created = _moment(seen.newest) if now is None else datetime.fromtimestamp(now, UTC)
        with target.open("wb") as file, ZipFile(file, "w") as package:
            add = partial(_added, package, created)
            resources = [add(f"archive/{path.name}", _chunks(path)) for path in paths]
            resources.append(add("indexes/index.cdx", _encoded(index)))
            resources.append(add("pages/pages.jsonl", _encoded(pages)))
            manifest = _json(
                {
                    "profile": "data-package", "wacz_version": _VERSION, "software": software,
                    "created": f"{created:%Y-%m-%dT%H:%M:%SZ}",
                    "resources": resources,
                }
            )  # fmt: skip
            entry = add("datapackage.json", [manifest])
            digest = _json({"path": entry["path"], "hash": entry["hash"]})
            add("datapackage-digest.json", [digest])
    return count


@dataclass(slots=True)
class _Pages:
    """The list of pages that is written to ``file``, and the ``newest`` time of any response."""

    file: IO[str]
    newest: str = "19800101000000"  # ZIP knows no earlier time.

    def note(self, entry: _CdxEntry) -> None:
        self.newest = max(self.newest, entry.timestamp)
        if entry.status != "200" or entry.mime not in HTML_TYPES:
            return
        stamp = _moment(entry.timestamp)
        # Where it lies makes it another one than a page with the same URL and second.
        name = f"{entry.url} {entry.timestamp} {entry.file} {entry.offset}"
        line = {
            "id": uuid5(NAMESPACE_URL, name).hex, "url": entry.url,
            "ts": f"{stamp:%Y-%m-%dT%H:%M:%SZ}",
        }  # fmt: skip
        self.file.write(json.dumps(line) + "\n")


def _moment(timestamp: str) -> datetime:
    return datetime.strptime(timestamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC)


def _added(
    package: ZipFile, at: datetime, path: str, chunks: Iterable[bytes]
) -> dict[str, str | int]:
    """Add a file unchanged; return it as the manifest lists it."""
    info = ZipInfo(path, (at.year, at.month, at.day, at.hour, at.minute, at.second))
    info.compress_type = ZIP_STORED
    info.external_attr = 0o644 << 16
    digest, size = sha256(), 0
    with package.open(info, "w", force_zip64=True) as out:
        for chunk in chunks:
            out.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    name, hashed = path.rpartition("/")[2], f"sha256:{digest.hexdigest()}"
    return {"name": name, "path": path, "hash": hashed, "bytes": size}


def _chunks(path: Path) -> Iterable[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def _encoded(text: IO[str]) -> Iterable[bytes]:
    text.seek(0)
    return (line.encode() for line in text)


def _json(value: object) -> bytes:
    return json.dumps(value, indent=2).encode()
