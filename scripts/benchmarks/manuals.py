"""What documents keep of manuals, and whether each of them is read, whoever was read before.

``MANUALS`` is a folder of HTML files, such as those of Debian's packages python3-doc,
postgresql-doc and debian-reference. All of them go into one store and are read through one
``Store`` so many times, each time in another order and without what was remembered. Counted are
documents that are ``missing``, and reads that raise. ``kept`` is the mean share of the words of a
page's own main element that its document has; pages without such an element are left out.
"""

from __future__ import annotations

import asyncio
import random
import re
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from statistics import fmean

import zstandard
from selectolax.lexbor import LexborHTMLParser

import freshet
from freshet.crawler.read.documents import cache_of
from freshet.storage.database import open_store
from freshet.storage.errors import StoreError
from scripts.benchmarks.command import arguments, finish

_HOST = "http://manuals.example"
_WORD = re.compile(r"\w+")
#: The element with the content: by the standard, and as DocBook and Sphinx write it.
_MAIN = "main, [role=main], article, body > div.book, body > div.chapter, body > div.sect1, "
_MAIN += "body > div.refentry, body > div.preface, body > div.appendix, body > div.part"
_INVISIBLE = ["script", "style", "template", "svg"]


def pages(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the URL and the body of each HTML file."""
    for path in sorted(folder.rglob("*.html")):
        if path.is_file() and not path.is_symlink():
            yield f"{_HOST}/{path.relative_to(folder).as_posix()}", path.read_bytes()


def filled(path: Path, bodies: dict[str, bytes]) -> None:
    """Make a store that has read each page once."""
    asyncio.run(_made(path))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO crawl_run (started_at, state, settings) VALUES (0, 'ended', '{}')")
        db.execute("INSERT INTO host (origin) VALUES (?)", (_HOST,))
        for number, (url, body) in enumerate(bodies.items(), 1):
            digest = blake2b(body, digest_size=16).digest()
            db.execute(
                "INSERT OR IGNORE INTO body (digest, stored_at, size_bytes, zstd) "
                "VALUES (?, 0, ?, ?)",
                (digest, len(body), zstandard.compress(body)),
            )
            db.execute(
                "INSERT INTO page (url, fetch_url, host_id, depth, found_at, found_run_id) "
                "VALUES (?, ?, 1, 0, 0, 1)",
                (url, url),
            )
            db.execute(
                "INSERT INTO version (page_id, at, body_digest, text_digest, content_type) "
                "VALUES (?, 0, ?, ?, 'text/html')",
                (number, digest, digest),
            )
            db.execute(
                "INSERT INTO observation (page_id, run_id, at, kind, duration_s, version_id) "
                "VALUES (?, 1, 0, 'new', 0, ?)",
                (number, number),
            )


async def _made(path: Path) -> None:
    await (await open_store(path)).close()


def words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))


def main_element(body: bytes) -> Counter[str]:
    """The words of the page's own main element; none where it has none."""
    tree = LexborHTMLParser(body.decode("utf-8", "replace"))
    tree.strip_tags(_INVISIBLE)
    node = tree.css_first(_MAIN)
    return words(node.text(separator=" ")) if node is not None else Counter()


def main() -> None:
    """Read all documents so many times, and print what was missing, and what was kept."""
    parser = arguments(__doc__)
    parser.add_argument("manuals", type=Path, metavar="MANUALS")
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    bodies = dict(pages(options.manuals))
    missing, raised = Counter[str](), Counter[str]()
    texts = dict[str, str]()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "manuals.db")
        filled(path, bodies)
        with freshet.Store(path) as store:
            for turn in range(options.times):
                urls = list(bodies)
                random.Random(turn).shuffle(urls)  # an order, no secret
                for url in urls:
                    try:
                        found = store.page(url)
                    except StoreError as error:
                        raised[f"{url}: {error}"] += 1
                        continue
                    if found.missing:
                        missing[f"{url}: {found.missing}"] += 1
                    texts[url] = max(texts.get(url, ""), found.text, key=len)
                with closing(sqlite3.connect(cache_of(path))) as cache, cache:
                    cache.execute("DELETE FROM document")
    wanted = {url: of for url, body in bodies.items() if (of := main_element(body))}
    kept = {
        url: (words(texts.get(url, "")) & of).total() / of.total() for url, of in wanted.items()
    }
    by_manual = dict[str, list[float]]()
    for url, share in kept.items():
        by_manual.setdefault(url.removeprefix(f"{_HOST}/").partition("/html")[0], []).append(share)
    result = {
        "documents": len(bodies),
        "times": options.times,
        "seconds": round(time.perf_counter() - began, 1),
        "missing": missing.total(),
        "raised": raised.total(),
        "which": sorted([*missing, *raised]),
        "with_main_element": len(kept),
        "kept": round(fmean(kept.values()), 4) if kept else None,
        "lose_over_a_tenth": sum(share < 0.9 for share in kept.values()),
        "lose_over_half": sum(share < 0.5 for share in kept.values()),
        "kept_by_manual": {name: round(fmean(all_), 4) for name, all_ in by_manual.items()},
    }
    finish(result, options.output)
