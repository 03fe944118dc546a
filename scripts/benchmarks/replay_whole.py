"""What it takes to replay an archive into a store, all stages, beside a naive loop.

Real pages (documentation packages, as for bench crawl) are crawled from memory into an archive:
first, and again when a tenth of them was edited and the others are the same bytes (revisits).
``freshet replay`` takes in the files of the first crawl, and those of both, each into a new store:
the CPU time of the process and its children, with the index pass, less that of its start; the
second captures take what the second replay took more. The naive loop reads the same records with
warcio, parses with BeautifulSoup, and sketches with datasketch.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from subprocess import DEVNULL
from time import process_time
from urllib.parse import urljoin

import numpy as np
from bs4 import BeautifulSoup
from datasketch import MinHash
from warcio.archiveiterator import ArchiveIterator

from freshet.config.loading import load
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.fetch.client import Request
from freshet.crawler.run.crawl import CrawlOrder, Live, crawl
from freshet.crawler.run.wiring import Observer
from freshet.storage.records import FetchResult
from scripts.benchmarks.command import say, workspace
from scripts.benchmarks.crawl_from_memory import MemoryFetcher, Page, forget_unfetched, pages_of
from scripts.benchmarks.crawl_tree import Tree, edited

_ORIGIN = "http://docs{}.localhost"
_EDITED = 0.1
_PROGRAM = "from freshet.crawler.cli import run; run()"
_SHINGLE = 8


@dataclass(frozen=True, slots=True)
class Taken:
    """What taking archives in took; ``captures`` of pages, in CPU seconds."""

    captures: int
    cpu_s: float

    def as_json(self) -> dict[str, object]:
        """The same as JSON values."""
        return {
            "captures": self.captures,
            "cpu_seconds": round(self.cpu_s, 2),
            "captures_per_cpu_second": round(self.captures / self.cpu_s),
        }


def figures(tree: Tree, limit: int) -> dict[str, object]:
    """Captures per CPU-second of both archives, by Freshet and by the naive loop."""
    with workspace() as place:
        say(f"crawling {limit} pages from memory, twice")
        first, again = asyncio.run(written(tree, limit, place))
        result: dict[str, object] = {"megabytes_packed": [_megabytes(first), _megabytes(again)]}
        say("replaying the first captures, then both")
        start_s = _start_s()
        once, twice = _replay(place / "one.db", *first), _replay(place / "two.db", *first, *again)
        ours = [
            replace(once, cpu_s=once.cpu_s - start_s),
            replace(twice, cpu_s=twice.cpu_s - once.cpu_s),
        ]
        say("the naive loop")
        theirs = _naive(place, first, again)
        for name, own, naive in zip(("first", "again"), ours, theirs, strict=True):
            assert own.captures == naive.captures, (own, naive)
            result[name] = own.as_json() | {
                "naive": naive.as_json(),
                "ratio": round(naive.cpu_s / own.cpu_s, 1),
            }
        return result


async def written(tree: Tree, limit: int, place: Path) -> tuple[list[Path], list[Path]]:
    """The files of a first crawl and of a second one."""
    folder = place / "archive"
    origins = [_ORIGIN.format(number) for number, _ in enumerate(tree.sites)]
    pages = {page.url: page for page in pages_of(tree, origins)}
    seeds = seeds_from_arguments([f"{origin}/index.html" for origin in origins]).seeds
    order = CrawlOrder(place / "crawl.db", seeds)
    await _crawl(order, pages, folder, limit)
    first = sorted(folder.glob("*.warc.gz"))
    forget_unfetched(order.db)
    chosen = Random(1).sample(sorted(pages), round(_EDITED * len(pages)))
    pages |= {u: Page(u, edited(pages[u].body, 1), pages[u].content_type) for u in chosen}
    again = CrawlOrder(order.db, seeds, resume=False)
    await _crawl(again, pages, folder, 0)
    return first, sorted(set(folder.glob("*.warc.gz")) - set(first))


async def _crawl(order: CrawlOrder, pages: Mapping[str, Page], folder: Path, limit: int) -> None:
    options: dict[str, object] = {
        "crawl.max_pages": limit,
        "archive.dir": str(folder),
        "change.probe": False,
        "politeness.delay_s": 0,
        "politeness.slow_factor": 0,
        "politeness.connections_per_host": 16,
        "network.allow_private_addresses": True,
    }
    settings, _ = load(None, options)
    await crawl(settings, order, watch=_unwatched, fetcher=_Unvalidated(MemoryFetcher(pages)))


@dataclass(frozen=True, slots=True)
class _Unvalidated:
    """A server that knows no validators: what is the same comes again, whole."""

    fetcher: MemoryFetcher

    async def fetch(self, request: Request) -> FetchResult:
        return await self.fetcher.fetch(Request(request.url, request.accept))

    async def close(self) -> None:
        """Nothing is open."""


def _unwatched(_live: Live) -> Observer:
    return lambda _batch: None


def _megabytes(files: Sequence[Path]) -> float:
    return round(sum(path.stat().st_size for path in files) / 1e6, 1)


def _start_s() -> float:
    before = _children_s()
    subprocess.run([sys.executable, "-c", _PROGRAM, "replay", "--help"], check=True, stdout=DEVNULL)
    return _children_s() - before


def _replay(db: Path, *archives: Path) -> Taken:
    """The command of a user, its last run's pages."""
    before = _children_s()
    command = [sys.executable, "-c", _PROGRAM, "replay", *map(str, archives)]
    told = subprocess.run([*command, "--db", str(db), "--json"], check=True, capture_output=True)
    runs = json.loads(told.stdout)["runs"]
    return Taken(runs[-1]["pages"], _children_s() - before)


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _naive(place: Path, *archives: Sequence[Path]) -> list[Taken]:
    with closing(sqlite3.connect(place / "naive.db")) as store:
        store.execute("CREATE TABLE page (url TEXT PRIMARY KEY, sketch BLOB, text TEXT)")
        store.execute("CREATE TABLE link (source TEXT, target TEXT)")
        store.execute("CREATE TABLE observation (url TEXT, at TEXT, resemblance REAL)")
        return [_taken(store, files) for files in archives]


def _taken(store: sqlite3.Connection, files: Sequence[Path]) -> Taken:
    began = process_time()
    return Taken(_take_in(store, files), process_time() - began)


def _take_in(store: sqlite3.Connection, files: Sequence[Path]) -> int:
    """What a script of an afternoon does with each answer of an archive."""
    captures = 0
    for path in files:
        with path.open("rb") as file:
            for each in ArchiveIterator(file):
                if each.rec_type not in ("response", "revisit"):
                    continue
                url = each.rec_headers.get_header("WARC-Target-URI")
                at = each.rec_headers.get_header("WARC-Date")
                if url.endswith("/robots.txt") or each.http_headers.get_statuscode() != "200":
                    continue
                captures += 1
                if each.rec_type == "revisit":
                    store.execute("INSERT INTO observation VALUES (?, ?, 1)", (url, at))
                    continue
                _compare(store, url, at, each.content_stream().read())
                store.commit()
    return captures


def _compare(store: sqlite3.Connection, url: str, at: str, body: bytes) -> None:
    soup = BeautifulSoup(body, "html.parser")
    words = soup.get_text(" ").split()
    sketch = MinHash(num_perm=128)
    for start in range(max(1, len(words) - _SHINGLE + 1)):
        sketch.update(" ".join(words[start : start + _SHINGLE]).encode())
    row = store.execute("SELECT sketch FROM page WHERE url = ?", (url,)).fetchone()
    resemblance = 0.0 if row is None else _sketch(row[0], sketch).jaccard(sketch)
    store.execute("INSERT INTO observation VALUES (?, ?, ?)", (url, at, resemblance))
    values = sketch.hashvalues.tobytes()
    store.execute("INSERT OR REPLACE INTO page VALUES (?, ?, ?)", (url, values, " ".join(words)))
    store.execute("DELETE FROM link WHERE source = ?", (url,))
    links = [(url, urljoin(url, str(a["href"]))) for a in soup.find_all("a", href=True)]
    store.executemany("INSERT INTO link VALUES (?, ?)", links)


def _sketch(values: bytes, like: MinHash) -> MinHash:
    hashes = np.frombuffer(values, like.hashvalues.dtype)
    return MinHash(num_perm=128, hashvalues=hashes, scheme=like.scheme)
