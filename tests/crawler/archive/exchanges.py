"""Exchanges for tests of archives, and archives read back by other people's programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fastwarc.warc import ArchiveIterator
from warcio.checker import Checker

from freshet.crawler.archive.warc import WireExchange
from freshet.crawler.fetch.client import Accept, Request
from freshet.storage.records import FetchResult, Validators

URL = "http://news.localhost/a?b=1"
START_AT = 1_767_225_600.123456
Headers = tuple[tuple[bytes, bytes], ...]
TAGGED: Headers = ((b"Content-Type", b"text/html"), (b"ETag", b'"1"'))


def fetched(
    body: bytes = b"<p>Hello",
    *,
    url: str = URL,
    at: float = START_AT,
    headers: Headers = TAGGED,
    accept: Accept = "page",
) -> WireExchange:
    result = FetchResult(
        url, "fetched", at, 0.25, 200, request_headers=(("Host", "news.localhost"),),
        headers=headers, wire_body=body, body=body, peer="127.0.0.1",
        status_line=b"HTTP/1.1 200 OK",
    )  # fmt: skip
    return WireExchange(Request(url, accept), result)


def not_modified(
    *, url: str = URL, at: float = START_AT + 60, validators: Validators | None = None
) -> WireExchange:
    result = FetchResult(
        url, "not_modified", at, 0.25, 304, request_headers=(("Host", "news.localhost"),),
        headers=((b"ETag", b'"1"'),),
    )  # fmt: skip
    return WireExchange(Request(url, validators=validators or Validators('"1"')), result)


@dataclass(frozen=True, slots=True)
class Record:
    """A record as fastwarc reads it; ``http`` are the lines of a message's head."""

    kind: str
    headers: dict[str, str]
    status_line: bytes | None
    http: Headers
    body: bytes

    @property
    def fields(self) -> dict[str, str]:
        """The lines of a body of fields."""
        lines = self.body.decode().splitlines()
        return dict(line.split(": ", 1) for line in lines)


def read(path: Path) -> list[Record]:
    """All records of a file, in their order."""
    found = []
    for record in ArchiveIterator(path, parse_http=True):
        is_http = record.is_http_parsed
        found.append(
            Record(
                str(record.record_type),
                record.headers.to_dict(),
                record.http_headers.status_line_bytes if is_http else None,
                record.http_headers.items_bytes() if is_http else (),
                record.reader.read(),
            )
        )
    return found


def kinds(path: Path) -> list[str]:
    return [record.kind for record in read(path)]


def whole(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.warc.gz"))


@dataclass(slots=True)
class _Command:
    inputs: list[str]
    verbose: bool = False


def check(files: Sequence[Path]) -> int:
    """The exit code of ``warcio check``."""
    assert files
    return int(Checker(_Command([str(file) for file in files])).process_all())
