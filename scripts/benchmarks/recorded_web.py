"""A recorded site as a fetcher: its pages as they were at the clock's time.

The recording is SQLite: ``pages``, their ``versions`` (a blob, or none from the deletion on),
``blobs`` (zstd, each with the one it is based on as dictionary), ``links``.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from posixpath import splitext
from urllib.parse import quote, unquote, urlsplit

import zstandard

from freshet.crawler.clock import Clock
from freshet.crawler.fetch.client import Request
from freshet.crawler.fetch.responses import judge
from freshet.storage.records import FetchResult, Validators

_EXCHANGE_S = 0.05
_TYPES = {
    ".txt": "text/plain; charset=utf-8",
    ".xml": "application/xml",
    ".rss": "application/rss+xml",
    ".atom": "application/atom+xml",
    ".rdf": "application/rdf+xml",
}
_NOT_FOUND = b"<!doctype html><title>Not found</title><h1>Not found</h1>"


@dataclass(frozen=True, slots=True)
class Version:
    """What a page was from a time on; ``blob`` None: gone."""

    at: int
    blob: int | None


class Recording:
    """A recorded site, unpacked.

    Attributes:
        origin: https and the site's own host.
        start: the URL of its start page.
        begin, end: Unix seconds that it covers.
        ids: of pages and other files, by path.
        versions: by id, in order.
    """

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path)
        said = dict(self._connection.execute("SELECT key, value FROM meta"))
        self.hosts = frozenset(said["hosts"].split(","))
        self.origin = f"https://{said['hosts'].split(',')[0]}"
        self.root = said.get("entry") or f"{said.get('base', '')}/"
        self.start = self.origin + self.root
        self.begin, self.end = float(said["t_start"]), float(said["t_end"])
        rows = self._connection.execute("SELECT url, id FROM pages")
        self.ids: dict[str, int] = dict(rows)
        self.versions: defaultdict[int, list[Version]] = defaultdict(list)
        for page, at, blob in self._connection.execute(
            "SELECT page, time, blob FROM versions ORDER BY page, time"
        ):
            self.versions[page].append(Version(at, blob))
        self._body = lru_cache(maxsize=512)(self._decoded)

    def close(self) -> None:
        """Give the file back."""
        self._connection.close()

    def at(self, page: int, now: float) -> Version | None:
        """The version that stands at a time; None before the first."""
        versions = self.versions[page]
        number = bisect_right(versions, now, key=lambda version: version.at)
        return versions[number - 1] if number else None

    def exists(self, path: str, now: float) -> bool:
        """Whether there is a page at a path."""
        version = self.at(self.ids[path], now) if path in self.ids else None
        return version is not None and version.blob is not None

    def body(self, blob: int) -> bytes:
        """The bytes of a blob."""
        return self._body(blob)

    def reachable(self, now: float) -> set[int]:
        """The pages that can be reached by links from the start page."""
        leads_to = defaultdict(list)
        for page, target in self._connection.execute(
            "SELECT src, dst FROM links WHERE t0 <= :now AND coalesce(t1 > :now, 1)", {"now": now}
        ):
            leads_to[page].append(target)
        found, open_ = set(), [self.ids[self.root]]
        while open_:
            page = open_.pop()
            version = self.at(page, now)
            if page not in found and version is not None and version.blob is not None:
                found.add(page)
                open_ += leads_to[page]
        return found

    def _decoded(self, blob: int) -> bytes:
        base, packed = self._connection.execute(
            "SELECT base, data FROM blobs WHERE id = ?", (blob,)
        ).fetchone()
        raw = zstandard.DICT_TYPE_RAWCONTENT
        # An empty base is none: zstd has no dictionary without content.
        like = b"" if base is None else self._body(base)
        words = zstandard.ZstdCompressionDict(like, dict_type=raw) if like else None
        done: bytes = zstandard.ZstdDecompressor(words, max_window_size=2**27).decompress(packed)
        return done


@dataclass(frozen=True, slots=True)
class _Answer:
    """``page`` is what was shown, None where nothing of the recording was."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    page: int | None = None


class RecordedWeb:
    """A :class:`freshet.crawler.fetch.client.Fetcher`; an exchange takes none of the clock's time.

    Answers carry ETag and Last-Modified, and conditional requests are heeded.

    Attributes:
        asked: Unix seconds of all requests.
        shown: the page and the Unix seconds of those that showed one (200 or 304).
        statuses: how often each was the answer; those for robots.txt count apart, in ``robots``.
    """

    def __init__(self, recording: Recording, clock: Clock) -> None:
        self._recording = recording
        self._clock = clock
        self.asked: list[float] = []
        self.shown: list[tuple[int, float]] = []
        self.statuses: Counter[int] = Counter()
        self.robots = 0

    async def fetch(self, request: Request) -> FetchResult:
        """Answer as the site would have."""
        now = self._clock.now()
        self.asked.append(now)
        parts = urlsplit(request.url)
        if parts.hostname not in self._recording.hosts:
            return FetchResult(
                request.url, "failed", now, _EXCHANGE_S, None, "no_such_host",
                "not a host of this recording",
            )  # fmt: skip
        validators = request.validators or Validators()
        if parts.scheme == "https":
            answer = self._answer(unquote(parts.path or "/"), validators, now)
        else:
            answer = _moved(f"https{request.url.removeprefix('http')}")
        if parts.path == "/robots.txt":
            self.robots += 1
        else:
            self.statuses[answer.status] += 1
        if answer.page is not None:
            self.shown.append((answer.page, now))
        headers = tuple((name.encode(), value.encode()) for name, value in answer.headers)
        location = dict(headers).get(b"Location")
        conditional = validators != Validators()
        verdict = judge(answer.status, request.url, location, is_conditional=conditional)
        body = answer.body if verdict.outcome == "fetched" else b""
        return FetchResult(
            request.url, verdict.outcome, now, _EXCHANGE_S, answer.status, verdict.reason,
            verdict.detail, headers=headers, wire_body=body, body=body, location=verdict.location,
        )  # fmt: skip

    async def close(self) -> None:
        """Do nothing: nothing is open."""

    def _answer(self, path: str, validators: Validators, now: float) -> _Answer:
        site = self._recording
        if path != site.root and path in {"/", site.root.rsplit("/", 1)[0]}:
            return _moved(site.root)
        if path not in site.ids:
            for other in (path.removesuffix("index.html"), f"{path}/"):
                if other != path and site.exists(other, now):
                    return _moved(quote(other))
            path = f"{path}.html"
        version = site.at(site.ids[path], now) if path in site.ids else None
        if version is None or version.blob is None:
            status = 404 if version is None else 410
            return _Answer(status, (("Content-Type", "text/html; charset=utf-8"),), _NOT_FOUND)
        tag, date = f'"{version.blob}"', formatdate(version.at, usegmt=True)
        kind = _TYPES.get(splitext(path)[1], "text/html; charset=utf-8")
        headers = (("Content-Type", kind), ("ETag", tag), ("Last-Modified", date))
        if _still(validators, tag, version.at):
            return _Answer(304, headers, page=site.ids[path])
        return _Answer(200, headers, site.body(version.blob), site.ids[path])


def _moved(to: str) -> _Answer:
    return _Answer(301, (("Location", to),))


def _still(validators: Validators, tag: str, modified_at: int) -> bool:
    """RFC 9110, section 13.2.2: the ETag decides where there is one."""
    if validators.etag is not None:
        return validators.etag == tag
    since = validators.last_modified
    return since is not None and modified_at <= parsedate_to_datetime(since).timestamp()
