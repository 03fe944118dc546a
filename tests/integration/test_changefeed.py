"""What `freshet changefeed` and `freshet text` print of a site that changes, as they are typed."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.read.documents import cache_of
from freshet.crawler.run.crawl import CrawlOrder, crawl
from tests.console import freshet
from tests.integration.quick import quick, unwatched
from tests.integration.scripted import Page, Scripted, scripted
from tests.storage.small_store import SmallStore

#: Pages that are alike would be taken for error pages.
WORDS = {
    name: f"The {name} stone {verb} where {noun}, and whoever {verb} by {noun} tells of it."
    for name, verb, noun in (
        ("home", "lies", "two rivers meet"), ("edited", "fell", "a mill once ground rye"),
        ("leaving", "sank", "fishermen mend nets"), ("old", "grew", "larches climb the slope"),
        ("kept", "shone", "miners left their lamps"), ("new", "sang", "wind comes off the sea"),
    )
}  # fmt: skip
LINKS = "".join(f'<a href="/{name}">{name}</a> ' for name in ("edited", "leaving", "old", "kept"))


def page(title: str, text: str = "", head: str = "") -> Page:
    return Page(f"<title>{title}</title>{head}<h1>{title}</h1><p>{WORDS[title]} {text}</p>{LINKS}")


EDITED = page("edited", "A new sentence stands here, and it matters.")


@dataclass(slots=True)
class Site:
    """A site that a test edits between crawls."""

    served: Scripted
    pages: dict[str, Page]
    db: Path
    cursor: str = "0"

    def url(self, path: str) -> str:
        return self.served.origin("a") + path

    async def crawl(self) -> None:
        seeds = seeds_from_arguments([self.served.origin("a")]).seeds
        await crawl(quick(), CrawlOrder(self.db, seeds), watch=unwatched)

    async def typed(self, *words: object) -> Result:
        """Invoke a command beside the server; it has an event loop of its own."""
        return await asyncio.to_thread(freshet, *words, "--db", self.db)

    async def told(self, *words: object) -> list[tuple[str, str]]:
        """Path and kind of each change since the last call."""
        result = await self.typed("changefeed", "--since", self.cursor, *words)
        assert result.exit_code == 0, result.output
        *entries, last = map(json.loads, result.stdout.splitlines())
        self.cursor = last["last_seq"]
        return [(each["id"].removeprefix(self.url("")), each["change"]["kind"]) for each in entries]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A site of five pages that was crawled once."""
    pages = {f"/{name}": page(name) for name in ("edited", "leaving", "old", "kept")}
    pages["/"] = page("home")
    async with scripted({"a": pages}) as served:
        found = Site(served, pages, tmp_path / "crawl.db")
        await found.crawl()
        yield found


async def test_each_crawl_tells_what_it_changed(site: Site) -> None:
    assert len(await site.told()) == 5
    await site.crawl()
    assert await site.told() == []
    site.pages["/edited"] = EDITED
    site.pages["/new"] = page("new")
    site.pages["/old"] = Page(status=301, headers={"Location": "/new"})
    site.pages["/kept"] = page("kept", head='<meta name="robots" content="noindex">')
    del site.pages["/leaving"]
    await site.crawl()
    assert sorted(await site.told()) == [
        ("/edited", "changed"), ("/kept", "noindex"), ("/leaving", "gone"), ("/new", "new"),
        ("/old", "moved"),
    ]  # fmt: skip
    site.pages["/leaving"] = page("leaving")
    # A dead link waits as long again as it was dead: it was seen dead at once.
    SmallStore(site.db).execute("UPDATE page SET checked_at = last_at WHERE last_kind = 'gone'")
    await site.crawl()
    assert await site.told("--filter", "*/leaving") == [("/leaving", "new")]


async def test_entries_have_documents_and_say_where_pages_went(site: Site) -> None:
    site.pages["/old"] = Page(status=308, headers={"Location": "/kept"})
    await site.crawl()
    result = await site.typed("changefeed", "--include-docs")
    entries: dict[str, Any] = {
        each["id"]: each for each in map(json.loads, result.stdout.splitlines()) if "id" in each
    }
    assert entries[site.url("/old")]["moved_to"] == site.url("/kept")
    document = entries[site.url("/edited")]["doc"]
    assert document["title"] == "edited"
    assert document["markdown"].startswith(f"# edited\n\n{WORDS['edited']}")
    assert [each["markdown"] for each in document["blocks"][:2]] == ["# edited", WORDS["edited"]]
    alone = await site.typed("text", site.url("/edited"), "--format", "json")
    assert json.loads(alone.stdout) == document
    cache_of(site.db).write_bytes(b"damaged")
    assert (await site.typed("changefeed", "--include-docs")).stdout == result.stdout
    sql = "UPDATE body SET zstd = x'00' WHERE digest = ?"
    SmallStore(site.db).execute(sql, bytes.fromhex(document["digest"]))
    cache_of(site.db).unlink()
    lines = (await site.typed("changefeed", "--include-docs")).stdout.splitlines()
    assert (len(lines), sum("are damaged" in each for each in lines)) == (len(entries) + 1, 1)


@pytest.mark.parametrize("status", [200, 304])
async def test_noindex_beside_the_same_bytes_is_told(site: Site, status: int) -> None:
    known = replace(site.pages["/kept"], headers={"ETag": '"1"'})
    hidden = Page(known.body if status == 200 else "", status, {"X-Robots-Tag": "noindex"})
    await site.told()
    for page, kinds in ((known, []), (hidden, ["noindex"]), (known, ["new"]), (known, [])):
        site.pages["/kept"] = page
        await site.crawl()
        assert await site.told() == [("/kept", kind) for kind in kinds]


async def test_a_cursor_file_goes_on_and_what_cannot_be_followed_is_one_line(site: Site) -> None:
    place = site.db.with_name("place")
    seen = []
    for _ in range(4):
        result = await site.typed("changefeed", "--cursor-file", place, "--limit", "2")
        *entries, _ = map(json.loads, result.stdout.splitlines())
        seen += [each["id"] for each in entries]
    assert len(seen) == len(set(seen)) == 5
    place.write_text("")
    empty = await site.typed("changefeed", "--cursor-file", place)
    assert (empty.exit_code, "'' is no cursor" in empty.stderr) == (2, True)
    await site.told()
    other = "0" * 16 + site.cursor[16:]
    for cursor, code, why in ((other, 1, "start anew"), ("nonsense", 2, "accepted are")):
        result = await site.typed("changefeed", "--since", cursor)
        (line,) = result.stderr.splitlines()
        assert (result.exit_code, why in line) == (code, True), result.output


async def test_a_waiting_consumer_is_told_at_the_commit(site: Site) -> None:
    await site.told()
    # By a cursor: "now" may be after the crawl.
    words = ("changefeed", "--since", site.cursor, "--feed", "longpoll")
    waiting = asyncio.create_task(site.typed(*words))
    site.pages["/edited"] = EDITED
    await site.crawl()
    first, *_ = map(json.loads, (await waiting).stdout.splitlines())
    assert first["id"] == site.url("/edited")


async def test_versions_of_a_text_are_read_by_number_and_by_time(site: Site) -> None:
    async def text(*options: str) -> Result:
        return await site.typed("text", site.url("/edited"), *options)

    first = (await text()).stdout
    site.pages["/edited"] = EDITED
    await site.crawl()
    now = (await text()).stdout
    assert "it matters" in now
    assert (await text("--version", "1")).stdout == first
    assert (await text("--version", "-1")).stdout == now
    assert "<h1>" in (await text("--format", "html")).stdout
    wrong, long_ago = await text("--version", "7"), await text("--as-of", "2001-01-01")
    assert (wrong.exit_code, "1 to 2" in wrong.stderr) == (2, True)
    assert "not a time" in (await text("--as-of", "1")).stderr
    assert (long_ago.exit_code, "the first is of" in long_ago.stderr) == (1, True)


#: Two sentences of no other page of a site.
SENTENCES = (
    "Stone {n} of the old wall was cut in the year {n}5. Whoever seeks word w{n} finds it here."
)


def built(n: int, words: str = "", top: str = "", end: str = "", extra: str = "") -> Page:
    """A page of a site: its own words, and lines that all pages may have."""
    links = "".join(f'<a href="/{i}">page {i}</a> ' for i in range(int(words or 0)))
    text = SENTENCES.format(n=f"{n}{chr(97 + n % 26)}{chr(97 + n // 26)}")
    return Page(
        f"<title>Page {n}</title><body><div>{top}</div><h1>Page {n}</h1><p>{text}</p>"
        f"<p>{extra}</p><div>{end}</div>{links}"
    )


LINE = "<p>Our offices stay closed on all the holidays of this winter.</p>"
OTHER = "<p>Every order of this spring comes with a small book of recipes.</p>"


@pytest.mark.parametrize(
    "steps",
    [
        [{}, {"top": LINE}],
        [{}, {"end": LINE}],
        [{"end": LINE}, {}],
        [{"end": LINE}, {"end": OTHER}],
        [{}, {"top": LINE, "end": OTHER}],
        [{}, {"end": LINE}, {"end": LINE + OTHER}],
        [{}, {"end": LINE}, {}],
        [{}, {"end": f"<header>{LINE}</header>"}],
        [{}, {"end": f"<footer>{LINE}</footer>"}],
        [{}, {"end": f"<aside>{LINE}</aside>"}],
        [{"end": f"<nav>{LINE}</nav>"}, {"end": f"<nav>{OTHER}</nav>"}],
        [{}, {"end": f"<ul><li>{LINE}<li>{OTHER}</ul>"}],
    ],
    ids=["top", "end", "removed", "edited", "both", "twice", "and-back", "header", "footer",
         "aside", "nav", "list"],
)  # fmt: skip
@pytest.mark.parametrize(
    ("count", "edited"),
    [
        (8, True),
        pytest.param(3, False, marks=pytest.mark.long),
        pytest.param(60, True, marks=pytest.mark.long),
    ],
    ids=["8-one-edited", "3", "60-one-edited"],
)
async def test_a_line_of_all_pages_is_no_change_of_any(
    tmp_path: Path, steps: list[dict[str, str]], count: int, edited: bool
) -> None:
    pages: dict[str, Page] = {}
    async with scripted({"a": pages}) as served:
        site = Site(served, pages, tmp_path / "crawl.db")
        for step, lines in enumerate(steps):
            extra = "This very sentence stands on one page only." * (edited and step > 0)
            made = [
                built(n, words=str(count), **lines, extra=extra * (n == 1)) for n in range(count)
            ]
            pages |= {f"/{n}" if n else "/": page for n, page in enumerate(made)}
            pages["/0"] = pages["/"]
            await site.crawl()
            # A document may have the line where the compared text has not: that is no change.
            beside = {"new", "refreshed"}
            told = {(path, kind) for path, kind in await site.told() if kind not in beside}
            changed = {("/1", "changed")} if edited and step == 1 else set()
            # A change that was told before may come once more when a later one is taken back.
            again = {("/1", "changed")} if edited and step > 1 else set()
            assert changed <= told <= changed | again


async def test_chunks_are_told_with_the_ids_that_are_gone(site: Site) -> None:
    async def chunks(*words: object) -> list[dict[str, Any]]:
        result = await site.typed("changefeed", "--chunks", "--since", site.cursor, *words)
        assert result.exit_code == 0, result.output
        *entries, last = map(json.loads, result.stdout.splitlines())
        site.cursor = last["last_seq"]
        return entries

    first = {each["id"]: each for each in await chunks()}
    assert [each["removed"] for each in first.values()] == [[]] * 5
    doc = first[site.url("/edited")]["doc"]
    assert "markdown" not in doc
    (chunk,) = doc["chunks"]
    assert chunk["markdown"].startswith(f"# edited\n\n{WORDS['edited']}")
    assert chunk["headings"] == ["edited"]
    alone = await site.typed("text", site.url("/edited"), "--chunks")
    assert [*map(json.loads, alone.stdout.splitlines())] == [chunk]
    site.pages["/edited"] = EDITED
    site.pages["/old"] = Page(status=308, headers={"Location": "/kept"})
    await site.crawl()
    told = {each["id"]: each for each in await chunks()}
    assert told[site.url("/edited")]["removed"] == [chunk["id"]]
    assert "removed" not in told[site.url("/old")]
    # The document of now is cached, not that which was read to compare.
    with closing(sqlite3.connect(cache_of(site.db))) as cache:
        kept = cache.execute("SELECT count(*) FROM document").fetchone()
    assert kept == (5,)
    refused = await site.typed("changefeed", "--chunks", "--chunk-chars", "199")
    assert refused.exit_code == 2
