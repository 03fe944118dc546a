"""A recorded site as a fetcher: its pages as they were at the clock's time.

The recording is SQLite: ``pages``, their ``versions`` (a blob, or none from the deletion on),
``blobs`` (zstd, each with the one it is based on as dictionary), ``links``.
"""

from __future__ import annotations

import sqlite3
import zlib
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate, parsedate_to_datetime
from functools import cached_property, lru_cache
from math import inf
from pathlib import Path
from posixpath import splitext
from urllib.parse import quote, unquote, urlsplit

import zstandard

from freshet.crawler.fetch.client import Accept, Request
from freshet.crawler.fetch.responses import judge
from freshet.crawler.frontier.clock import Clock
from freshet.storage.records import FetchResult, Validators

#: A page is due from the time of the answer that named it: at once, in a time that stands still.
_EXCHANGE_S = 0.0
_TYPES = {
    ".txt": "text/plain; charset=utf-8",
    ".xml": "application/xml",
    ".rss": "application/rss+xml",
    ".atom": "application/atom+xml",
    ".rdf": "application/rdf+xml",
}
_SITEMAP = "/sitemap.xml"
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
        ids: of pages and other files, by path; ``pages`` are those of pages.
        versions: by id, in order.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = sqlite3.connect(path)
        said = dict(self._connection.execute("SELECT key, value FROM meta"))
        self.hosts = frozenset(said["hosts"].split(","))
        self.origin = f"https://{said['hosts'].split(',')[0]}"
        self.root = said.get("entry") or f"{said.get('base', '')}/"
        self.start = self.origin + self.root
        self.begin, self.end = float(said["t_start"]), float(said["t_end"])
        rows = self._connection.execute("SELECT url, id, kind FROM pages").fetchall()
        self.ids: dict[str, int] = {url: number for url, number, _ in rows}
        self.pages = frozenset(number for _, number, kind in rows if kind == "html")
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

    @cached_property
    def _links(self) -> Mapping[int, Sequence[tuple[int, float, float]]]:
        """The links of each page: the target, and from when to when."""
        found = defaultdict(list)
        for page, target, since, until in self._connection.execute("SELECT * FROM links"):
            found[page].append((target, since, inf if until is None else until))
        return found

    def reachable(self, now: float) -> set[int]:
        """The pages that can be reached by links from the start page."""
        found, open_ = set(), [self.ids[self.root]]
        while open_:
            page = open_.pop()
            version = self.at(page, now)
            if page not in found and version is not None and version.blob is not None:
                found.add(page)
                open_ += self.linked(page, now)
        return found

    def linked(self, page: int, now: float) -> Sequence[int]:
        """The pages to which a page has links at a time."""
        return [to for to, since, until in self._links.get(page, ()) if since <= now < until]

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
class Answer:
    """``page`` is what was shown, ``blob`` its bytes; None where nothing of the recording was."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    page: int | None = None
    blob: int | None = None


class RecordedWeb:
    """A :class:`freshet.crawler.fetch.client.Fetcher`; an exchange takes none of the clock's time.

    Answers carry ETag and Last-Modified, and conditional requests are heeded. The recording is
    ``ahead`` of the clock by so many seconds. Its ``sitemap`` is its own one, if any, or it names
    all pages: ``honest`` with the time of each one's last version, or ``daily`` with midnight.
    What is no more there answers 404, as most servers do.

    Attributes:
        asked: Unix seconds of all requests.
        shown: the page and the Unix seconds of those that showed one (200 or 304).
        page_at: the page that a request for a URL at some Unix seconds showed.
        statuses: how often each was the answer; those for robots.txt count apart, in ``robots``.
        kinds: requests by what they met.
    """

    def __init__(
        self, recording: Recording, clock: Clock, *, ahead: float = 0.0, sitemap: str = "own"
    ) -> None:
        self.recording = recording
        self._clock = clock
        self._ahead = ahead
        self._sitemap = sitemap
        self.asked: list[float] = []
        self.shown: list[tuple[int, float]] = []
        self.page_at: dict[tuple[str, float], int] = {}
        self.statuses: Counter[int] = Counter()
        self.robots = 0
        self.kinds: Counter[str] = Counter()

    def forget(self) -> None:
        """Count from now on."""
        for each in (self.asked, self.statuses, self.kinds):
            each.clear()
        self.robots = 0

    async def fetch(self, request: Request) -> FetchResult:
        """Answer as the site would have."""
        validators = request.validators or Validators()
        answer, now = self.answer(request.url, validators, request.accept), self._clock.now()
        if answer is None:
            return FetchResult(
                request.url, "failed", now, _EXCHANGE_S, None, "no_such_host",
                "not a host of this recording",
            )  # fmt: skip
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

    def answer(
        self, url: str, validators: Validators | None = None, accept: Accept = "page"
    ) -> Answer | None:
        """Count a request for a purpose and answer it; None: there is no such host."""
        now = self._clock.now()
        self.asked.append(now)
        parts = urlsplit(url)
        if parts.hostname not in self.recording.hosts:
            self.kinds["no such host"] += 1
            return None
        if parts.scheme == "https":
            path = unquote(parts.path or "/")
            answer = self._answer(path, validators or Validators(), now + self._ahead)
        else:
            answer = _moved(f"https{url.removeprefix('http')}")
        if parts.path == "/robots.txt":
            self.robots += 1
        else:
            self.statuses[answer.status] += 1
        if answer.page is not None:
            self.shown.append((answer.page, now))
            self.page_at[url, now] = answer.page
        self.kinds[self._kind(parts.path, answer, accept)] += 1
        return answer

    def _kind(self, path: str, answer: Answer, accept: Accept) -> str:
        if path == "/robots.txt":
            return "robots.txt"
        if accept == "probe":
            return "probes"
        if answer.status >= 400:
            # A list that is not there was guessed, or is dead as a page may be.
            return "guesses" if accept != "page" else "missing"
        if answer.status == 301:
            return "redirects"
        return "pages" if answer.page in self.recording.pages else "sitemaps and feeds"

    def _answer(self, path: str, validators: Validators, now: float) -> Answer:
        site = self.recording
        if self._sitemap != "own" and path in {"/robots.txt", _SITEMAP}:
            return self._announced(path, validators, now)
        if path != site.root and path in {"/", site.root.rsplit("/", 1)[0]}:
            return _moved(site.root)
        if path not in site.ids:
            for other in (path.removesuffix("index.html"), f"{path}/"):
                if other != path and site.exists(other, now):
                    return _moved(quote(other))
            path = f"{path}.html"
        version = site.at(site.ids[path], now) if path in site.ids else None
        if version is None or version.blob is None:
            return Answer(404, (("Content-Type", "text/html; charset=utf-8"),), _NOT_FOUND)
        kind = _TYPES.get(splitext(path)[1], "text/html; charset=utf-8")
        page, blob = site.ids[path], version.blob
        return self._shown(
            kind, f'"{blob}"', version.at, validators, lambda: site.body(blob), page, blob
        )

    def _shown(
        self, kind: str, tag: str, at: float, validators: Validators,
        body: Callable[[], bytes], page: int | None = None, blob: int | None = None,
    ) -> Answer:  # fmt: skip
        date = formatdate(at - self._ahead, usegmt=True)
        headers = (("Content-Type", kind), ("ETag", tag), ("Last-Modified", date))
        if _still(validators, tag, at - self._ahead):
            return Answer(304, headers, page=page, blob=blob)
        return Answer(200, headers, body(), page, blob)

    def _announced(self, path: str, validators: Validators, now: float) -> Answer:
        """The robots.txt that names the sitemap, and the sitemap."""
        site = self.recording
        if path == "/robots.txt":
            text = f"User-agent: *\nDisallow:\nSitemap: {site.origin}{_SITEMAP}\n"
            return Answer(200, (("Content-Type", "text/plain"),), text.encode())
        alive = {url: site.at(page, now) for url, page in site.ids.items() if page in site.pages}
        lines = [
            f"<url><loc>{site.origin}{quote(url)}</loc>"
            f"<lastmod>{self._stamp(it.at, now)}</lastmod></url>"
            for url, it in sorted(alive.items())
            if it is not None and it.blob is not None
        ]
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        text = f'<?xml version="1.0"?>\n<urlset xmlns="{space}">{"".join(lines)}</urlset>'
        last = max((it.at for it in alive.values() if it is not None), default=0)
        tag = f'"{zlib.crc32(text.encode()):x}"'
        return self._shown("application/xml", tag, last, validators, text.encode)

    def _stamp(self, at: float, now: float) -> str:
        shown = now - now % 86_400 if self._sitemap == "daily" else at
        return datetime.fromtimestamp(shown - self._ahead, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _moved(to: str) -> Answer:
    return Answer(301, (("Location", to),))


def _still(validators: Validators, tag: str, modified_at: float) -> bool:
    """RFC 9110, section 13.2.2: the ETag decides where there is one."""
    if validators.etag is not None:
        return validators.etag == tag
    since = validators.last_modified
    return since is not None and modified_at <= parsedate_to_datetime(since).timestamp()
