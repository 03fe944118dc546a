"""Search in a store: how long queries take, what the index weighs, and what it costs a crawl.

``queries``: a store of pages that are made of the blocks of real documentation, in the order of a
seed. Words that stand on one page are searched in pairs: drawn by the number of pages that hold
them (``common``), or so that each power of two of that number is as likely (``even``); with ten
snippets, and on the store without bodies, which has none. ``weights``: bytes of the index by bytes
of text, of those pages and of the documentation itself. ``crawl``: pairs of crawls of documentation
against nginx, with an index and without, then of recrawls in which nothing has changed.
``--words``: scripts without spaces. ``--collection``: what is ranked first, see
:mod:`.search_ranking`.

Pages: apt-get install nginx python3.11-doc postgresql-doc-15 libstdc++-12-doc
"""

from __future__ import annotations

import asyncio
import html
import sqlite3
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from math import log2
from pathlib import Path
from random import Random
from statistics import median, quantiles
from time import perf_counter, process_time

import zstandard

from freshet.crawler.extensions.search import searching, tables
from freshet.crawler.extensions.search.searching import Query
from freshet.crawler.extensions.search.words import index_lines, normalised
from freshet.crawler.read.library import Library
from freshet.crawler.reduce.page import parse
from freshet.crawler.reduce.parser_process import Parser
from freshet.storage.database import open_store
from scripts.benchmarks import command, crawl_tree
from scripts.benchmarks.crawl_competitors import Concurrency, Crawler, freshet, prepared, run
from scripts.benchmarks.crawl_figures import spread
from scripts.benchmarks.crawl_nginx import NoNginx, Served, serving
from scripts.benchmarks.crawl_tree import NoTree

_ORIGIN = "http://search.example"
_AT = 1.8e9
_BATCH = 500
#: Characters of a made page, at most.
_LONGEST = 20_000
_RESULTS = 10


@dataclass(frozen=True, slots=True)
class Written:
    """A page that is made or read: its title, its blocks with their kinds, and its directory."""

    title: str
    texts: tuple[str, ...]
    kinds: tuple[str, ...]
    directory: str = ""

    def lines(self) -> str:
        """What the index has of it."""
        return index_lines(self.title, self.texts, self.kinds)

    def body(self) -> bytes:
        """The page in HTML."""
        tags = ("h2" if kind == "heading" else "p" for kind in self.kinds)
        blocks = (f"<{t}>{html.escape(x)}</{t}>" for t, x in zip(tags, self.texts, strict=True))
        title = html.escape(self.title)
        return f"<title>{title}</title><main>{''.join(blocks)}</main>".encode()


def read(tree_pages: Sequence[Path]) -> list[Written]:
    """The main texts of documentation pages."""
    found = []
    for path in tree_pages:
        parsed = parse(path.read_bytes(), f"{_ORIGIN}/{path.name}", "text/html")
        if sum(map(len, parsed.blocks.texts)) > 200:
            blocks = parsed.blocks
            found.append(Written(parsed.title or path.stem, blocks.texts, blocks.kinds))
    return found


def made(pool: Sequence[Written], number: int) -> Written:
    """Page ``number``: runs of blocks of two pages, all in all as long as a third one."""
    rng = Random(number)
    one, other, third = rng.choices(pool, k=3)
    length = min(sum(map(len, third.texts)), _LONGEST)
    texts, kinds = list[str](), list[str]()
    for source in (one, other):
        start, size = rng.randrange(len(source.texts)), 0
        blocks = list(zip(source.texts, source.kinds, strict=True))
        for text, kind in blocks[start:] + blocks[:start]:
            if size >= length / 2:
                break
            texts.append(text[:2_000])
            kinds.append(kind)
            size += len(texts[-1])
    return Written(f"{one.title} {number}", tuple(texts), tuple(kinds))


def filled(store: Path, pages: Iterable[Written]) -> dict[str, float]:
    """Make a store of pages with bodies; the megabytes of their texts and bodies."""
    asyncio.run(_opened(store))
    texts = bodies = 0
    pack = zstandard.ZstdCompressor(3).compress
    with closing(sqlite3.connect(store)) as db, db:
        db.execute(
            "INSERT INTO crawl_run (started_at, state, settings) VALUES (?, 'ended', '{}')", (_AT,)
        )
        db.execute("INSERT INTO host (origin) VALUES (?)", (_ORIGIN,))
        for n, it in enumerate(pages, 1):
            body, digest, url = it.body(), n.to_bytes(16, "big"), f"{_ORIGIN}/{it.directory}{n}"
            texts += len(f"{it.title} {' '.join(it.texts)}".encode())
            packed = pack(body)
            bodies += len(packed)
            db.execute(
                "INSERT INTO page (url, fetch_url, host_id, depth, found_at, found_run_id, title, "
                "last_kind, last_at, checked_at, body_digest, version_id) "
                "VALUES (?, ?, 1, 1, ?, 1, ?, 'new', ?, ?, ?, ?)",
                (url, url, _AT, it.title, _AT, _AT, digest, n),
            )
            db.execute(
                "INSERT INTO version (page_id, at, body_digest, content_type) "
                "VALUES (?, ?, ?, 'text/html; charset=utf-8')", (n, _AT, digest),
            )  # fmt: skip
            db.execute("INSERT INTO body VALUES (?, ?, ?, ?)", (digest, _AT, len(body), packed))
            db.execute(
                "INSERT INTO change (page_id, kind, at, version_id, title) "
                "VALUES (?, 'new', ?, ?, ?)", (n, _AT + n, n, it.title),
            )  # fmt: skip
    return {"texts_mb": texts / 1e6, "bodies_mb": bodies / 1e6}


async def _opened(store: Path) -> None:
    await (await open_store(store)).close()


async def indexed(store: Path, pages: Iterable[Written]) -> dict[str, float]:
    """Index the store's pages, as a crawl does; the CPU seconds of words and of rows."""
    spent = {"words_cpu_s": 0.0, "rows_cpu_s": 0.0}
    database = await open_store(store)
    try:
        await database.write(tables.create)
        numbered = enumerate(pages, 1)
        while some := list(islice(numbered, _BATCH)):
            began = process_time()
            lines = [(n, n, it.lines()) for n, it in some]
            between = process_time()
            await database.write(partial(tables.fill, pages=lines))
            spent["words_cpu_s"] += between - began
            spent["rows_cpu_s"] += process_time() - between
    finally:
        await database.close()
    return spent


def weights(store: Path) -> dict[str, float]:
    """The megabytes of the index's tables."""
    with closing(sqlite3.connect(store)) as db:
        rows = db.execute(
            "SELECT name, sum(pgsize) / 1e6 FROM dbstat WHERE name LIKE 'search%' GROUP BY name"
        )
        return dict(rows.fetchall())


# -- queries -----------------------------------------------------------------


def drawn(store: Path, queries: int, *, evenly: bool) -> list[str]:
    """Pairs of words that stand on one page, by the number of pages that hold them."""
    rng = Random(1)
    with closing(sqlite3.connect(store)) as db:
        db.execute("CREATE VIRTUAL TABLE temp.v USING fts5vocab(main, search_words, row)")
        held = dict(db.execute("SELECT term, doc FROM temp.v").fetchall())
        per_level = Counter(int(log2(count)) for count in held.values())
        pages = db.execute("SELECT count(*) FROM search_page").fetchone()[0]
        found = list[str]()
        while len(found) < queries:
            row = db.execute(
                "SELECT words FROM search_page WHERE page_id = ?", (rng.randint(1, pages),)
            ).fetchone()
            words = sorted(set(" ".join(tables.unpacked(row[0]).split("\n")).split()))
            words = [w for w in words if w.isalpha() and len(w) > 1]
            if len(words) > 10:
                # Within a page a word is there by its pages; else each power of two is as likely.
                by = [1 / per_level[int(log2(held[w]))] / held[w] if evenly else 1.0 for w in words]
                one, other = rng.choices(words, by, k=2)
                found += [f"{one} {other}"] * (one != other)
    return found


async def timed(store: Path, typed: Sequence[str]) -> dict[str, dict[str, float]]:
    """The milliseconds of queries with ten results, and this process's CPU time of that."""
    parser, spent, cpu = Parser(), list[float](), list[float]()
    try:
        library = Library(store, parser)
        for text in typed:
            query, began, working = Query.parse(text, _AT), perf_counter(), process_time()
            await searching.search(library, query, _RESULTS)
            spent.append(1e3 * (perf_counter() - began))
            cpu.append(1e3 * (process_time() - working))
    finally:
        await parser.close()
    return {"elapsed": _spread(spent), "cpu": _spread(cpu)}


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"median": round(median(values), 1), "p90": round(quantiles(values, n=10)[-1], 1)}


def asked(store: Path, queries: int) -> dict[str, object]:
    """The milliseconds of queries, with snippets and then without."""
    typed = {
        "common": drawn(store, queries, evenly=False),
        "even": drawn(store, queries, evenly=True),
    }
    found = {"with_ten_snippets": {k: asyncio.run(timed(store, q)) for k, q in typed.items()}}
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("DELETE FROM body")
    found["without"] = {k: asyncio.run(timed(store, q)) for k, q in typed.items()}
    return {"queries": queries, "ms": found}


def weighed(store: Path, pages: Sequence[Written] | Iterable[Written]) -> dict[str, object]:
    """What an index of these pages takes, made in a new store."""
    pages = list(pages)
    sizes = filled(store, pages)
    spent = asyncio.run(indexed(store, pages))
    tables_mb = weights(store)
    packed_mb = tables_mb["search_page"]
    words_mb = sum(tables_mb.values()) - packed_mb
    return {
        "pages": len(pages),
        **{name: round(value, 1) for name, value in (sizes | spent).items()},
        "words_by_text": round(words_mb / sizes["texts_mb"], 3),
        "packed_by_text": round(packed_mb / sizes["texts_mb"], 3),
    }


# -- scripts without spaces --------------------------------------------------

_MADE_CHARACTERS = 1_000_000


def spaceless(dictionary: Path) -> dict[str, object]:
    """Characters as words beside trigrams: how much of what is written each can find, and bytes.

    ``dictionary`` has a word and its frequency a line, as that of jieba. The text is made of them.
    """
    lines = (line.split() for line in dictionary.read_text("utf-8").splitlines())
    held = {word: int(count) for word, count, *_ in lines if len(word) > 1}
    total = sum(held.values())
    longer = sum(count for word, count in held.items() if len(word) > 2)
    chosen = Random(1).choices(list(held), list(held.values()), k=_MADE_CHARACTERS // 2)
    text = "".join(chosen)[:_MADE_CHARACTERS]
    pages = [text[at : at + 2_000] for at in range(0, len(text), 2_000)]
    size = len(text.encode())
    return {
        "words": len(held),
        "uses_found_by_trigrams": round(longer / total, 3),
        "bytes_by_text": {
            "trigrams": round(_fts_bytes("trigram", pages) / size, 2),
            "characters": round(_fts_bytes("ascii", map(normalised, pages)) / size, 2),
        },
    }


def _fts_bytes(tokenizer: str, pages: Iterable[str]) -> int:
    with closing(sqlite3.connect(":memory:")) as db:
        options = f"content = '', tokenize = '{tokenizer}'"
        db.execute(f"CREATE VIRTUAL TABLE words USING fts5 (body, {options})")
        db.executemany("INSERT INTO words (body) VALUES (?)", ((each,) for each in pages))
        db.execute("INSERT INTO words (words) VALUES ('optimize')")
        sql = "SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'words%'"
        return int(db.execute(sql).fetchone()[0])


# -- crawls ------------------------------------------------------------------


def crawled(served: Served, rounds: int, directory: Path) -> dict[str, object]:
    """CPU time of first crawls and of unchanged recrawls, with an index by that without."""
    first, again = list[float](), list[float]()
    for number in range(1, rounds + 1):
        spent = {}
        for name in ("on", "off") if number % 2 else ("off", "on"):
            place = directory / f"round-{number}-{name}"
            crawler = freshet(place, prepared(place, served), Concurrency())
            made_ = replace(crawler, command=(*crawler.command, "--index", name))
            spent[name] = _cpu_s(made_, served), _cpu_s(crawler, served)
            command.say(f"round {number}, index {name}: {spent[name]} CPU-s")
        first.append(spent["on"][0] / spent["off"][0])
        again.append(spent["on"][1] / spent["off"][1])
    return {
        "rounds": rounds, "first_crawl": spread(first, 3), "unchanged_recrawl": spread(again, 3),
    }  # fmt: skip


def _cpu_s(crawler: Crawler, served: Served) -> float:
    return round(run(crawler, served, crawler.directory / "errors.log").cpu_s, 2)


def _measured(chosen: Namespace, directory: Path) -> dict[str, object]:
    result: dict[str, object] = {}
    if chosen.collection:
        # Its reference is not among the project's dependencies.
        from scripts.benchmarks.search_ranking import ranked

        return {"rankings": [ranked(folder) for folder in chosen.collection]}
    if chosen.words is not None:
        return {"spaceless": spaceless(chosen.words)}
    sources = crawl_tree.sources(chosen.tree, quick=chosen.quick)
    tree = crawl_tree.copied(sources, directory / "sites")
    if "queries" in chosen.what:
        pool = read(tree.pages)
        made_pages = (made(pool, n) for n in range(1, chosen.pages + 1))
        result["documentation"] = weighed(directory / "documentation.db", pool)
        result["made"] = weighed(store := directory / "made.db", made_pages)
        command.say("the index is made")
        result["asked"] = asked(store, chosen.queries)
    if "crawl" in chosen.what:
        with serving(tree.sites, directory) as served:
            result["crawls"] = tree.summary() | crawled(served, chosen.rounds, directory)
    return result


def main() -> None:
    """The command ``scripts/bench search``."""
    parser = command.arguments(__doc__)
    parser.add_argument("what", nargs="*", default=["queries", "crawl"], help="queries, crawl")
    parser.add_argument("--pages", type=int, default=100_000, help="that are made")
    parser.add_argument("--queries", type=int, default=300, help="of each kind")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of crawls")
    parser.add_argument("--quick", action="store_true", help="one small site")
    parser.add_argument(
        "--tree", type=Path, metavar="DIR", action="append", default=[],
        help="a directory with an index.html, a site (repeatable); not the Debian packages",
    )  # fmt: skip
    parser.add_argument(
        "--collection", type=Path, metavar="DIR", action="append", default=[],
        help="a judged collection (repeatable); nothing else is measured then",
    )  # fmt: skip
    parser.add_argument(
        "--words", type=Path, metavar="FILE",
        help="words without spaces and their frequencies (jieba's dict.txt); nothing else then",
    )  # fmt: skip
    chosen = parser.parse_args()
    with command.workspace() as directory:
        try:
            result = _measured(chosen, directory)
        except (NoTree, NoNginx) as error:
            sys.exit(f"bench search: {error}")
    command.finish(result, chosen.output)
