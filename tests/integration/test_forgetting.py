"""What was forgotten is in no file, is told as deleted, and is not fetched again if so asked."""

import asyncio
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from typer.testing import Result

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.storage.tables.observations import dictionary_id, unpacked
from tests.console import as_json, freshet
from tests.integration.quick import assert_consistent, quick, unwatched
from tests.integration.scripted import Page, Scripted, scripted
from tests.storage.small_store import rows

LONG = " and some words more that make a paragraph of it"


def page(title: str, text: str, *links: str) -> Page:
    return Page(f"<title>{title}</title><h1>Of {title}</h1><p>{text}{LONG}</p>" + "".join(links))


HOSTS = {
    "a": {
        "/": page("home", "walrus", '<a href="/doomed">the quokka</a> <a href="/stays">it</a>'),
        "/doomed": page("capybara", "pangolin", '<a href="/stays">it</a>'),
        "/stays": page("stays", "ocelot"),
    }
}


async def visit(site: Scripted, folder: Path) -> None:
    """Crawl the site into ``crawl.db`` and an archive."""
    settings = quick(archive__dir=str(folder / "archive"))
    seeds = seeds_from_arguments([site.origin("a")]).seeds
    await crawl(settings, CrawlOrder(folder / "crawl.db", seeds), watch=unwatched)


async def typed(*words: object) -> Result:
    """Invoke a command beside the server; it has an event loop of its own."""
    return await asyncio.to_thread(freshet, *words)


def contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """All bytes under a folder, also those that are compressed."""
    for file in (each for each in folder.rglob("*") if each.is_file()):
        data = file.read_bytes()
        yield file, gzip.decompress(data) if file.suffix == ".gz" else data
        if data.startswith(b"SQLite"):
            tables = {row[0] for row in rows(file, "SELECT name FROM sqlite_master")}
            for table in tables & {"document", "dictionary"}:
                for (packed,) in rows(file, f"SELECT zstd FROM {table}"):
                    yield file, zstandard.decompress(packed)
            if "body" in tables:
                words = dict(rows(file, "SELECT id, zstd FROM dictionary"))
                for frame, size in rows(file, "SELECT zstd, size_bytes FROM body"):
                    yield file, unpacked(frame, size, words.get(dictionary_id(frame)))


def holding(folder: Path, word: bytes) -> set[str]:
    return {file.name for file, data in contents(folder) if word in data}


async def test_a_page_that_others_are_packed_with_is_in_no_file_when_forgotten(
    tmp_path: Path,
) -> None:
    links = "".join(f'<a href="/{n}">page {n} of all</a> ' for n in range(99))
    pages = {
        f"/{n}": page(f"chapter {n}", f"This is about capybara{n}x. {links}") for n in range(99)
    }
    async with scripted({"a": {"/": page("home", links)} | pages}) as site:
        await visit(site, tmp_path)
    db = tmp_path / "crawl.db"
    ((words,),) = rows(db, "SELECT zstd FROM dictionary")
    inside = [n for n in range(99) if b"capybara%dx" % n in zstandard.decompress(words)]
    url = site.origin("a") + f"/{inside[0]}"
    await asyncio.to_thread(as_json, "forget", url, "--db", db, "--archives")
    assert holding(tmp_path, b"capybara%dx" % inside[0]) == set()
    assert rows(db, "SELECT count(*) FROM dictionary") == [(0,)]
    for other in inside[1:]:
        assert holding(tmp_path, b"capybara%dx" % other) >= {"crawl.db"}
    assert_consistent(db)


async def test_a_forgotten_page_is_in_no_file(tmp_path: Path) -> None:
    async with scripted(HOSTS) as site:
        await visit(site, tmp_path)
    db, url = tmp_path / "crawl.db", site.origin("a") + "/doomed"
    await typed("changefeed", "--db", db, "--include-docs")
    assert len(holding(tmp_path, b"pangolin")) == 3
    found = await asyncio.to_thread(as_json, "forget", url, "--db", db, "--archives")
    assert [each["url"] for each in found["pages"]] == [url]
    assert sorted(each["kind"] for each in found["records"]) == ["metadata", "request", "response"]
    assert holding(tmp_path, b"pangolin") == holding(tmp_path, b"capybara") == set()
    # Of the link to it only what the other page's own text has.
    assert rows(db, "SELECT anchor FROM link") == [("it",)]
    for table in ("observation", "version", "memory", "frontier"):
        sql = f"SELECT 1 FROM {table} JOIN page ON page.id = page_id WHERE url = ?"
        assert rows(db, sql, url) == []
    assert_consistent(db)
    lines = (await typed("changefeed", "--db", db)).stdout.splitlines()
    told = [each for each in map(json.loads, lines) if each.get("deleted")]
    assert [(each["id"], each["change"]["kind"]) for each in told] == [(url, "forgotten")]


@pytest.mark.parametrize("refused", [True, False])
async def test_what_is_refused_is_not_fetched_again_nor_what_begins_so(
    tmp_path: Path, refused: bool
) -> None:
    pages = dict(HOSTS["a"])
    async with scripted({"a": pages}) as site:
        await visit(site, tmp_path)
        doomed = ("--prefix", site.origin("a") + "/doomed", "--db", tmp_path / "crawl.db")
        result = await typed("forget", *doomed, *(["--keep-refusing"] if refused else []))
        assert result.exit_code == 0, result.output
        assert "Forgot 1 page\n" in result.stdout
        assert "to be removed with --archives" in result.stdout
        pages["/stays"] = page("stays", "ocelot", '<a href="/doomed/new">new</a>')
        pages["/doomed/new"] = page("new", "gecko")
        site.log.clear()
        await visit(site, tmp_path)
        again = {target for target in site.asked("a") if target.startswith("/doomed")}
        assert again == (set() if refused else {"/doomed", "/doomed/new"})


async def test_a_damaged_archive_is_left_as_it_is(tmp_path: Path) -> None:
    async with scripted(HOSTS) as site:
        await visit(site, tmp_path)
    (file,) = (tmp_path / "archive").glob("*.warc.gz")
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    url = site.origin("a") + "/doomed"
    result = await typed("forget", url, "--db", tmp_path / "crawl.db", "--archives")
    assert result.exit_code == 1
    assert "is damaged at byte" in result.stderr
    assert file.read_bytes() == whole[:-9]


@pytest.mark.parametrize(
    "words", [(), ("http://a.example/", "--site", "a.example"), ("--prefix", "nonsense")]
)
def test_pages_are_named_in_one_way(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert freshet("forget", *words, "--db", tmp_path / "crawl.db").exit_code == 2
