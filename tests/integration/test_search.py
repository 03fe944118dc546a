"""Search over a site of several languages, crawled, indexed later, killed and forgotten."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import zstandard

import freshet
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.extensions.search import building, queries
from freshet.crawler.extensions.search.words import normalised
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.crawler.run.wiring import Observer
from freshet.storage.records import Acknowledged, Visit
from tests.console import as_json
from tests.console import freshet as console
from tests.crawler.read.test_api import serving
from tests.integration.quick import assert_consistent, quick
from tests.integration.scripted import Page, Scripted, scripted
from tests.storage.small_store import rows

ROOT = Path(__file__).parents[2]
TEXTS = {
    "/": ("Crawling documentation", "Links", "All pages of this documentation in one list."),
    "/async": ("Run in an executor", "Threads", "Await run_in_executor() to call a blocking task."),
    "/locks": ("Locks", "Dead locks", "Two tasks that wait for one another's lock wait for ever."),
    "/secret": ("A secret", "Hidden", "Nobody archives this quokka, and everybody finds it."),
    "/de": ("Wörterbuch", "Straßenbahn", "Die Straßenbahn fährt über die große Brücke."),
    "/fr": ("Référence", "Crème", "Le rôle de l'ordonnanceur est décrit ci-après."),
    "/zh": ("机器学习入门", "概述", "本教程介绍机器学习的基本概念和常用方法。"),
    "/ja": ("日本語の検索", "はじめに", "東京タワーで機械学習の勉強会を開きます。"),
}
#: What is searched, the page that is found first, and the marked parts of its snippet.
SEARCHES = [
    ("run_in_executor", "/async", ["run_in_executor"]),
    ('"wait for ever"', "/locks", ["wait for ever"]),
    ("dead -executor", "/locks", ["Dead"]),
    ("document*", "/", ["documentation"]),
    ("STRASSENBAHN", "/de", ["Straßenbahn"]),
    ("große brucke", "/de", ["große", "Brücke"]),
    ("role decrit", "/fr", ["rôle", "décrit"]),
    ("机器学习", "/zh", ["机器学习"]),
    ("概念", "/zh", ["概念"]),
    ("東京", "/ja", ["東京"]),
    ("勉強会 東京", "/ja", ["東京", "勉強会"]),
]


def page(path: str, *, head: str = "", more: str = "") -> Page:
    title, heading, text = TEXTS[path]
    links = "".join(f'<a href="{each}">to {each[1:]}</a> ' for each in TEXTS if path == "/")
    return Page(
        f"<title>{title}</title>{head}<main><h1>{heading}</h1><p>{text} {more}</p>{links}</main>"
    )


def site_of() -> dict[str, dict[str, Page]]:
    archived = page("/secret", head='<meta name="robots" content="noarchive">')
    return {"docs": {path: page(path) for path in TEXTS} | {"/secret": archived}}


async def crawled(
    site: Scripted, db: Path, index: str, watch: Observer = lambda _batch: None
) -> None:
    settings = quick(search__index=index)
    order = CrawlOrder(db, seeds_from_arguments([site.origin("docs")]).seeds, resume=False)
    await crawl(settings, order, watch=lambda _live: watch)


def content(db: Path) -> tuple[Any, Any]:
    """The words of each page as they are kept, and the postings of the index."""
    with closing(sqlite3.connect(db)) as connection:
        connection.execute(
            "CREATE VIRTUAL TABLE temp.v USING fts5vocab(main, search_words, instance)"
        )
        urls = dict(connection.execute("SELECT id, url FROM page"))
        words = connection.execute("SELECT page_id, words FROM search_page").fetchall()
        postings = connection.execute("SELECT doc, term, col, offset FROM temp.v").fetchall()
    unpacked = zstandard.ZstdDecompressor().decompress
    return (
        {urls[page_id]: unpacked(packed) for page_id, packed in words},
        Counter((urls[page_id], *rest) for page_id, *rest in postings),
    )


def found(db: Path, typed: str, *options: object) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = as_json("search", typed, "--db", db, *options)["results"]
    return results


async def test_three_scripts_are_searched_in_the_terminal_over_http_and_in_python(
    tmp_path: Path,
) -> None:
    db = tmp_path / "crawl.db"
    async with scripted(site_of()) as site:
        await crawled(site, db, "on")
    told = await asyncio.to_thread(as_json, "status", "--db", db)
    assert told["search"] == {"indexed": len(TEXTS), "not_indexed": 0, "quality": None}
    async with serving(db) as url, aiohttp.ClientSession() as client:
        with freshet.Store(db) as store:
            for typed, path, marked in SEARCHES:
                first, *_ = await asyncio.to_thread(found, db, typed)
                parts = [first["snippet"][begin:end] for begin, end in first["marks"]]
                assert (first["url"], parts) == (site.origin("docs") + path, marked), typed
                assert first["title"] == TEXTS[path][0]
                async with client.get(f"{url}/v1/search", params={"q": typed}) as response:
                    assert (await response.json())["results"][0] == first
                assert store.search(typed)[0].as_json() == json.loads(
                    json.dumps(first), object_hook=_with_tuples
                )
    shown = (await asyncio.to_thread(console, "search", "机器学习", "--db", db)).stdout
    assert "机器学习入门" in shown
    # A noarchive page is found, without a snippet; one condition more excludes it.
    (hidden,) = await asyncio.to_thread(found, db, "quokka")
    assert (hidden["snippet"], hidden["marks"]) == ("", [])
    for options in (["--site", "other.example"], ["--since", "2099-01-01"]):
        assert await asyncio.to_thread(found, db, "quokka", *options) == []
    assert await asyncio.to_thread(found, db, "quokka", "--site", "localhost/secret") == [hidden]


def _with_tuples(values: dict[str, Any]) -> dict[str, Any]:
    return values | {"marks": tuple(map(tuple, values["marks"]))}


async def test_a_page_is_found_from_its_commit_on_until_it_is_gone(tmp_path: Path) -> None:
    db, served = tmp_path / "crawl.db", site_of()
    seen = Counter[bool]()

    def watch(batch: Sequence[Acknowledged]) -> None:
        """Count the acknowledged pages that a search finds at once."""
        with closing(sqlite3.connect(db)) as connection:
            for each in batch:
                visit = each.entry
                path = visit.due.url.removeprefix(origin) if isinstance(visit, Visit) else ""
                if path in TEXTS and isinstance(visit, Visit):
                    word = normalised(TEXTS[path][0]).split()[0]
                    scores, _ = queries.now(connection, queries.scoring([f'"{word}"']))
                    seen[visit.due.page_id in scores] += 1

    async with scripted(served) as site:
        origin = site.origin("docs")
        await crawled(site, db, "on", watch)
        assert seen == {True: len(TEXTS)}
        pages = served["docs"]
        pages["/locks"] = Page("gone", 410)
        pages["/de"] = page("/de", head='<meta name="robots" content="noindex">')
        pages["/fr"] = Page("", 301, {"Location": "/async"})
        pages["/zh"] = page("/zh", more="新增的句子。")
        pages["/async"] = Page(str(pages["/async"].body).replace("blocking", "patient"))
        await crawled(site, db, "keep")
    for typed, paths in {
        "ever": [], "strassenbahn": [], "ordonnanceur": [], "blocking": [],
        "新增": ["/zh"], "patient": ["/async"], "東京": ["/ja"],
    }.items():  # fmt: skip
        urls = [each["url"] for each in await asyncio.to_thread(found, db, typed)]
        assert urls == [site.origin("docs") + path for path in paths], typed
    assert_consistent(db)


def killed_after_two_batches(db: str) -> None:
    """Index a store until this process is killed."""
    building._BATCH = 2  # type: ignore[misc]
    told = 0

    def tell(_what: str, _share: float) -> None:
        nonlocal told
        told += 1
        if told == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    from freshet.crawler.extensions.search.cli import search as verb

    asyncio.run(verb._keep_index(Path(db), quick(search__index="on"), tell))


async def test_a_store_that_is_indexed_later_is_as_one_that_was_crawled_with_an_index(
    tmp_path: Path,
) -> None:
    """Also after kill -9 in the middle, a backup, and compaction."""
    early, late, copy = (tmp_path / name for name in ("early.db", "late.db", "copy.db"))
    async with scripted(site_of()) as site:
        await crawled(site, early, "on")
        await crawled(site, late, "keep")
    no_index = await asyncio.to_thread(console, "search", "locks", "--db", late)
    assert (no_index.exit_code, "`freshet search --index on` makes one" in no_index.stderr) == (
        1,
        True,
    )
    program = (
        "import sys; from tests.integration.test_search import killed_after_two_batches as main; "
        "main(sys.argv[1])"
    )
    killed = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program, str(late)], cwd=ROOT, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    told = await asyncio.to_thread(as_json, "search", "locks", "--db", late)
    assert (told["indexed"], told["not_indexed"]) == (4, 4)
    shown = (await asyncio.to_thread(console, "search", "locks", "--db", late)).stdout
    assert "4 pages not indexed yet: `freshet search --index on` goes on" in shown
    shown = (await asyncio.to_thread(console, "search", "--index", "on", "--db", late)).stderr
    assert "4 pages indexed, 8 in all" in shown
    # Of a noarchive page only the title can be indexed later.
    words, postings = content(early)
    hidden = site.origin("docs") + "/secret"
    assert content(late)[0] | {hidden: b""} == words | {hidden: b""}
    commands = [
        ("backup", copy, "--db", early), ("gc", "--db", copy),
        ("doctor", "--db", copy), ("rereduce", "--db", copy), ("export", "pages", "--db", copy),
    ]  # fmt: skip
    for command in commands:
        ended = await asyncio.to_thread(console, *command)
        assert ended.exit_code == 0 or command[0] == "doctor", ended.output
        assert "malformed" not in ended.output
    assert content(copy) == (words, postings)
    off = await asyncio.to_thread(console, "search", "--index", "off", "--db", copy)
    assert "the index is deleted" in off.stderr
    assert rows(copy, "SELECT name FROM sqlite_master WHERE name LIKE 'search_%'") == []
    assert_consistent(copy)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "there is nothing to search: name a word"),
        (["--", "-only"], 2, "'-only': it names no word to look for"),
        (["a", "--since", "soon"], 2, "changed: soon: not a moment; accepted are 90min, 12h"),
        (["a", "site:?"], 2, "site:?: not a host such as example.org"),
        (["a", "changed:2026"], 2, "changed:2026: accepted are changed:>DATE and changed:<DATE"),
        (["a", "--index", "yes"], 2, "search.index"),
        (["a"], 1, "there is no such file"),
        (["--index", "on"], 1, "there is no such file"),
    ],
)
def test_a_wrong_search_is_one_line(tmp_path: Path, words: list[str], code: int, said: str) -> None:
    ended = console("search", "--db", tmp_path / "none.db", *words)
    assert (ended.exit_code, said in ended.stderr) == (code, True), ended.stderr
    assert ended.stderr.count("\n") == 1
