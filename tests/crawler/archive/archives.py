"""Archives for tests: records by hand, so that they can also be wrong."""

import gzip
import io
from base64 import b32encode
from collections.abc import Iterable, Mapping
from contextlib import closing
from hashlib import sha1
from pathlib import Path

import zstandard
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from freshet.crawler.archive.index import ArchiveIndex
from freshet.crawler.archive.inputs import inputs_of
from freshet.crawler.archive.reader import ExchangeReader
from freshet.crawler.archive.records import ArchivedExchange, Damage

DATE = "2026-03-01T12:00:00Z"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def digest(data: bytes) -> str:
    return f"sha1:{b32encode(sha1(data).digest()).decode()}"


def record(
    kind: str,
    block: bytes = b"",
    *,
    url: str | None = "http://a.test/",
    date: str = DATE,
    length: object = None,
    version: str = "1.1",
    more: Mapping[str, str] | None = None,
) -> bytes:
    """One record as text."""
    fields = {"WARC-Type": kind, "WARC-Date": date} | dict(more or {})
    if url is not None:
        fields["WARC-Target-URI"] = url
    if length is not False:
        fields["Content-Length"] = str(len(block) if length is None else length)
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"WARC/{version}\r\n{head}\r\n".encode() + block + b"\r\n\r\n"


def page(
    number: int, *, body: bytes | None = None, date: str = DATE, length: object = None
) -> bytes:
    """A response without digests."""
    content = f"<p>page {number}".encode() if body is None else body
    return record("response", OK + content, url=f"http://a.test/{number}", date=date, length=length)


def gzipped(*records: bytes) -> bytes:
    return b"".join(gzip.compress(each, mtime=0) for each in records)


def zstandardised(*records: bytes) -> bytes:
    return b"".join(zstandard.ZstdCompressor().compress(each) for each in records)


def by_warcio(path: Path, pages: Iterable[tuple[str, bytes]], *, gzip: bool = True) -> None:
    """What warcio writes, digests and all."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=gzip, warc_version="1.1")
        writer.write_record(writer.create_warcinfo_record(path.name, {"software": "warcio"}))
        for url, body in pages:
            headers = StatusAndHeaders(
                "200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1"
            )
            made = writer.create_warc_record(
                url, "response", payload=io.BytesIO(body), http_headers=headers
            )
            writer.write_record(made)
            # It holds a temporary file for its digests.
            made.raw_stream.close()


class Read:
    """An archive, indexed and read back."""

    def __init__(self, place: Path, *paths: Path) -> None:
        with closing(ArchiveIndex(place / "index.db")) as order:
            order.build(inputs_of(paths))
            reading = ExchangeReader(order, 1024 * 1024)
            found = list(reading.exchanges())
            reading.close()
            self.damages = list(order.damages())
            self.skipped = order.skipped()
        self.exchanges = [each for each in found if isinstance(each, ArchivedExchange)]
        self.lost = [each for each in found if isinstance(each, Damage)]

    @property
    def urls(self) -> list[str]:
        return [each.url for each in self.exchanges]
