"""A recording of a web site, made from the git repository that holds it as published.

Each commit of a branch's first-parent history is a state of the site. The recording has every
version of every page, feed, sitemap and robots.txt, as :mod:`scripts.benchmarks.recorded_web`
reads it. Labels say what changed: ``text_hash`` of all visible text, ``main_hash`` of the main
text, ``jac_main`` its resemblance to that of the version before. The main text is what the
crawler's reducer finds, without the blocks that ever stood on many pages at once.
"""

from __future__ import annotations

import argparse
import re
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from posixpath import split
from urllib.parse import quote, unquote, urlsplit

import zstandard
from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.reduce.charset import decode
from freshet.crawler.reduce.page import parse
from scripts.benchmarks.command import arguments, finish

#: Git's name of the tree without files.
_NO_FILES = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
#: What a file must end with to be a page, or may be a list of pages with.
_RECORDED = (".html", ".htm", ".xml", ".rss", ".atom", ".rdf", "robots.txt")
_LISTS = re.compile(rb"<(?:\w+:)?(?:urlset|sitemapindex|rss|feed|RDF)\b")
#: Pages, and the share of all, on which a block is frame.
_FRAME_PAGES, _FRAME_SHARE = 10, 0.1
#: Blobs that are read before one: each has another as its dictionary.
_LONGEST_CHAIN = 24
_NEVER = float("inf")
_SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE pages(id INTEGER PRIMARY KEY, url TEXT UNIQUE, kind TEXT, first_seen INT,
    last_seen INT, initial INT, n_versions INT);
CREATE TABLE versions(page INT, time INT, blob INT, size INT, text_hash INT, main_hash INT,
    jac_main REAL, PRIMARY KEY(page, time)) WITHOUT ROWID;
CREATE TABLE blobs(id INTEGER PRIMARY KEY, sha BLOB, size INT, base INT, data BLOB);
CREATE TABLE links(src INT, dst INT, t0 INT, t1 INT, PRIMARY KEY(src, dst, t0)) WITHOUT ROWID;
CREATE TABLE commits(time INT, n_changed INT, n_new INT, n_deleted INT);
"""


class Repository:
    """A git repository, with or without a work tree."""

    def __init__(self, path: Path) -> None:
        self._git = ("git", "-C", str(path))
        words, pipe = [*self._git, "cat-file", "--batch"], subprocess.PIPE
        self._blobs = subprocess.Popen(words, stdin=pipe, stdout=pipe)

    def close(self) -> None:
        """End the process that reads files."""
        self._blobs.communicate()

    def commits(self, branch: str) -> Iterator[tuple[int, str]]:
        """Yield the first-parent history, oldest first; times strictly increase."""
        at = 0
        words = self._said("log", "--reverse", "--first-parent", "--format=%ct %H", branch).split()
        for said, name in zip(words[::2], words[1::2], strict=True):
            at = max(int(said), at + 1)
            yield at, name

    def difference(self, old: str, new: str, under: str) -> Iterator[tuple[str, str | None]]:
        """Yield the files of a folder that differ and what they are now; None: deleted."""
        words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new)
        fields = self._said(*words, "--", under or ".").split("\0")
        for said, path in zip(fields[::2], fields[1::2], strict=False):
            _, mode, _, name, _ = said.split()
            yield path.removeprefix(under), name if mode.startswith("100") else None

    def body(self, name: str) -> bytes | None:
        """Return the bytes of a file; None: there is none, or none in this copy."""
        ask, answer = self._blobs.stdin, self._blobs.stdout
        assert ask is not None
        assert answer is not None
        ask.write(f"{name}\n".encode())
        ask.flush()
        size = answer.readline().split()[-1]
        return answer.read(int(size) + 1)[:-1] if size.isdigit() else None

    def _said(self, *words: str) -> str:
        done = subprocess.run([*self._git, *words], stdout=subprocess.PIPE, check=True)
        return done.stdout.decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class Version:
    """What a file was from a time on; ``blocks`` are the numbers of those of its main text."""

    at: int
    blob: int | None = None
    size: int = 0
    text: int | None = None
    blocks: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored file: its blob, how many are read before it is, and its bytes."""

    blob: int | None = None
    chain: int = 0
    body: bytes = b""


@dataclass(slots=True)
class Page:
    """A page, or by its kind a list of pages; of each path that it links to, since when."""

    kind: str
    versions: list[Version] = field(default_factory=list)
    links: dict[str, int] = field(default_factory=dict)
    past_links: list[tuple[str, int, float]] = field(default_factory=list)
    stored: Stored = Stored()

    @property
    def is_there(self) -> bool:
        """Whether the last version is not its deletion."""
        return bool(self.versions) and self.versions[-1].blob is not None


class Recorder:
    """Writes a recording, state by state.

    Attributes:
        pages: by path, all that there ever were.
        skipped: files that the repository names and does not have.
        frame: the numbers of the blocks that stood on many pages.
    """

    def __init__(self, connection: sqlite3.Connection, host: str) -> None:
        self._connection = connection
        self._host = host
        self.pages: dict[str, Page] = {}
        self.skipped = 0
        self.frame: set[int] = set()
        self._blobs: dict[str, tuple[int, int]] = {}
        self._last = Stored()
        self._numbers: dict[str, int] = {}
        self._standing: Counter[int] = Counter()

    def state(
        self, at: int, files: Iterable[tuple[str, str | None]], repository: Repository
    ) -> None:
        """Record what a commit made of these files, by their URL's path."""
        counts, seen = Counter[str](), set[int]()
        for url, name in files:
            page, body = self.pages.get(url), repository.body(name) if name else b""
            kind = page.kind if page else _kind(url, body or b"")
            if body is None:
                self.skipped += 1
            elif name is None and page is not None and page.is_there:
                self._replace(page, Version(at), frozenset())
                counts["gone"] += 1
            elif name is not None and kind:
                page = self.pages.setdefault(url, Page(kind))
                counts["changed" if page.is_there else "new"] += 1
                version, links = self._version(at, self._blob(page, name, body), url, page)
                self._replace(page, version, links)
                seen.update(version.blocks or ())
        least = max(_FRAME_PAGES, _FRAME_SHARE * sum(p.is_there for p in self.pages.values()))
        self.frame.update(block for block in seen if self._standing[block] >= least)
        row = (at, counts["changed"], counts["new"], counts["gone"])
        if counts:
            self._connection.execute("INSERT INTO commits VALUES (?, ?, ?, ?)", row)

    def _version(self, at: int, blob: int, url: str, page: Page) -> tuple[Version, frozenset[str]]:
        body = page.stored.body
        if page.kind != "html":
            return Version(at, blob, len(body)), frozenset()
        tree = LexborHTMLParser(decode(body, "text/html")[0])
        tree.strip_tags(["script", "style", "template"])
        visible = " ".join(tree.body.text(separator=" ").split()) if tree.body else ""
        parsed = parse(body, f"https://{self._host}{quote(url)}", "text/html")
        blocks = tuple(self._numbers.setdefault(t, len(self._numbers)) for t in parsed.blocks.texts)
        forward = parsed.meta_refresh[1:] if parsed.meta_refresh else ()
        targets = map(urlsplit, (*parsed.links.urls, *forward))
        links = frozenset(unquote(t.path or "/") for t in targets if t.hostname == self._host)
        return Version(at, blob, len(body), _hash(visible), blocks), links

    def _replace(self, page: Page, new: Version, links: frozenset[str]) -> None:
        if page.versions:
            self._standing.subtract(set(page.versions[-1].blocks or ()))
        self._standing.update(set(new.blocks or ()))
        page.versions.append(new)
        for gone in page.links.keys() - links:
            page.past_links.append((gone, page.links.pop(gone), new.at))
        page.links = dict.fromkeys(links, new.at) | page.links

    def _blob(self, page: Page, name: str, body: bytes) -> int:
        """Store a file once, based on the page's one before, else on the last of another page."""
        known = self._blobs.get(name)
        if known is None:
            like = page.stored if page.stored.body else self._last
            like = like if like.body and like.chain < _LONGEST_CHAIN else Stored()
            raw = zstandard.ZstdCompressionDict(like.body, zstandard.DICT_TYPE_RAWCONTENT)
            packed = zstandard.ZstdCompressor(9, dict_data=raw if like.body else None).compress(
                body
            )
            known = self._blobs[name] = (len(self._blobs) + 1, like.chain + 1)
            row = (known[0], bytes.fromhex(name), len(body), like.blob, packed)
            self._connection.execute("INSERT INTO blobs VALUES (?, ?, ?, ?, ?)", row)
        page.stored = self._last = Stored(*known, body)
        return known[0]

    def finish(self, begin: int) -> None:
        """Write the pages, with the labels of their versions, and the links."""
        texts = list(self._numbers)
        ids = {url: number for number, url in enumerate(sorted(self.pages), 1)}
        spans: defaultdict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)
        for url, page in self.pages.items():
            first, last = page.versions[0].at, None if page.is_there else page.versions[-1].at
            count = sum(version.blob is not None for version in page.versions)
            row = (ids[url], url, page.kind, first, last, int(first == begin), count)
            self._connection.execute("INSERT INTO pages VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            labelled = ((ids[url], *values) for values in self._labelled(page, texts))
            self._connection.executemany("INSERT INTO versions VALUES (?,?,?,?,?,?,?)", labelled)
            still = [(target, since, _NEVER) for target, since in page.links.items()]
            for target, since, until in page.past_links + still:
                other = self._served(target)
                if other is not None and other != url:
                    spans[ids[url], ids[other]].append((since, until))
        links = ((*ends, *span) for ends, found in spans.items() for span in _joined(found))
        self._connection.executemany("INSERT INTO links VALUES (?, ?, ?, ?)", links)

    def _served(self, path: str) -> str | None:
        """Return the page that a link's path leads to, on a server as GitHub Pages."""
        tries = (path, path.removesuffix("index.html"), f"{path}/", f"{path}.html")
        found = (url for url in tries if url in self.pages and self.pages[url].kind == "html")
        return next(found, None)

    def _labelled(self, page: Page, texts: Sequence[str]) -> Iterator[tuple[object, ...]]:
        """Yield rows; the first version, also after a deletion, resembles none."""
        before: str | None = None
        for version in page.versions:
            main = None
            if version.blocks is not None:
                main = " ".join(texts[b] for b in version.blocks if b not in self.frame)
            alike = None if main is None or before is None else _resemblance(before, main)
            label = None if main is None else _hash(main)
            yield version.at, version.blob, version.size, version.text, label, alike
            before = main


def _kind(url: str, body: bytes) -> str | None:
    if url.endswith(("/", ".html", ".htm")):
        return "html"
    return "aux" if url.endswith("/robots.txt") or _LISTS.search(body[:4096]) else None


def _hash(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _resemblance(old: str, new: str) -> float:
    """Return the share of 4-word shingles that two texts have in common."""
    if old == new:
        return 1.0
    words = (re.findall(r"\w+", text.lower()) for text in (old, new))
    one, other = ({tuple(w[n : n + 4]) for n in range(max(1, len(w) - 3))} for w in words)
    return round(len(one & other) / len(one | other), 5)


def _joined(spans: list[tuple[int, float]]) -> Iterator[tuple[int, float | None]]:
    """Yield the union of intervals: a page may be linked by several paths."""
    begin, end = min(spans)
    for since, until in sorted(spans):
        if since > end:
            yield begin, end
            begin = since
        end = max(end, until)
    yield begin, None if end == _NEVER else end


def _url(root: str, path: str) -> str:
    folder, name = split(path)
    return f"{root}{folder}/".replace("//", "/") + ("" if name == "index.html" else name)


def record(repository: Repository, into: Path, options: argparse.Namespace) -> dict[str, object]:
    """Record a site from the first state that has its start page."""
    host, _, base = options.host.partition("/")
    root, under = f"/{base}/".replace("//", "/"), options.under and f"{options.under}/"
    commits = list(repository.commits(options.branch))
    early = [name for at, name in commits if at <= _seconds(options.since)]
    # The last of the earlier states stood at that time.
    states = [(_seconds(options.since), name) for name in early[-1:]]
    states += [c for c in commits[len(early) :] if c[0] < _seconds(options.until)]
    while repository.body(f"{states[0][1]}:{under}{options.start}") is None:
        states.pop(0)
    begin = end = states[0][0]
    last, left_out = _NO_FILES, re.compile(options.exclude or "(?!)")
    with closing(sqlite3.connect(into)) as connection:
        connection.executescript(_SCHEMA)
        recorder = Recorder(connection, host)
        for at, name in states:
            found = repository.difference(last, name, under)
            served = [(_url(root, path), file) for path, file in found if path.endswith(_RECORDED)]
            files = [(url, file) for url, file in served if not left_out.search(url)]
            if len(recorder.pages.keys() | dict(files).keys()) > options.most_pages:
                if last == _NO_FILES:
                    sys.exit(
                        f"{len(files):,} files at the start; --exclude some, or raise --most-pages"
                    )
                break
            recorder.state(at, files, repository)
            last, end = name, at
        recorder.finish(begin)
        meta = {"hosts": host, "base": root[:-1], "entry": _url(root, options.start)}
        times = {"t_start": begin, "t_end": end}
        place = {"branch": options.branch, "prefix": under, "exclude": options.exclude}
        rows = [(name, str(value)) for name, value in (meta | times | place).items()]
        connection.executemany("INSERT INTO meta VALUES (?, ?)", rows)
        connection.commit()
    pages = recorder.pages.values()
    return {
        "pages": len(pages),
        "there_at_the_end": sum(page.is_there for page in pages),
        "versions": sum(len(page.versions) for page in pages),
        "states": len(states),
        "until": f"{datetime.fromtimestamp(end, UTC):%Y-%m-%d}",
        "frame_blocks": len(recorder.frame),
        "skipped": recorder.skipped,
    }


def _seconds(day: str) -> int:
    return int(datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp())


def main(words: Sequence[str] | None = None) -> None:
    """Record the site that a repository holds."""
    parser = arguments(__doc__)
    parser.add_argument("repository", type=Path, help="the git repository")
    parser.add_argument("recording", type=Path, help="the SQLite file to write")
    parser.add_argument("--host", required=True, help="HOST or HOST/FOLDER that serves it")
    parser.add_argument("--branch", default="HEAD", help="where it is published")
    parser.add_argument("--under", default="", help="the folder of the repository that is served")
    parser.add_argument("--start", default="index.html", help="the file of its start page")
    parser.add_argument("--exclude", default="", help="a pattern of URL paths to leave out")
    parser.add_argument("--since", default="1970-01-02", help="a day")
    parser.add_argument("--until", default="9999-01-01", help="the day after the last")
    parser.add_argument("--most-pages", type=int, default=2_500, help="end before it has more")
    options = parser.parse_args(words)
    with closing(Repository(options.repository)) as repository:
        finish(record(repository, options.recording, options), options.output)
