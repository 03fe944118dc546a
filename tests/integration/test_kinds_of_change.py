"""What differs beside the text of pages, from visits to consumers: changefeed, lists, alerts."""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.read.store import Store
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.storage.records import FetchResult
from tests.console import as_json, freshet, shown
from tests.crawler.stages import HTML
from tests.integration.quick import quick, unwatched
from tests.storage.small_store import rows

SITE = "http://a.localhost/"
TEXT = "".join(
    f"<p>Paragraph {n} is a sentence of some length about the weather of that year.</p>"
    for n in range(9)
)
#: By kind: what stands in a page before and after; "same" is bytes that say nothing.
PAIRS = {
    "words": ("<p>It costs 10 euros.</p>", "<p>It costs 12 euros.</p>"),
    "links": ("<p>See <a href=/x>here</a>.</p>", "<p>See <a href=/y>here</a>.</p>"),
    "images": ("<p>A <img src=/1.png alt=a> b</p>", "<p>A <img src=/1.png alt=c> b</p>"),
    "state": ("<ul><li><input type=checkbox>milk<li>bread</ul>",
              "<ul><li><input type=checkbox checked>milk<li>bread</ul>"),
    "order": ("<ul><li>Anna<li>Bela</ul>", "<ul><li>Bela<li>Anna</ul>"),
    "layout": ("<p>The dam is old.</p>", "<p>The <em>dam</em> is old.</p>"),
    "same": ("<!-- 1 -->", "<!-- 2 -->"),
}  # fmt: skip


def page(title: str, inner: str) -> str:
    start = f"<!doctype html><title>{title}</title><main><h1>{title}</h1>"
    return f"{start}{TEXT.replace('year', title)}{inner}</main>"


class Site:
    """Pages that a test writes, crawled into one store at one time after the other."""

    def __init__(self, db: Path) -> None:
        self.db, self.pages, self.clock = db, dict[str, str](), VirtualClock(1_800_000_000.0)

    async def fetch(self, request: Request) -> FetchResult:
        at, body = self.clock.now(), self.pages.get(request.url.removeprefix(SITE))
        if body is None:
            return FetchResult(request.url, "gone", at, 0.0, 404, "http_404")
        headers = tuple((name.encode(), value.encode()) for name, value in HTML.items())
        return FetchResult(
            request.url, "fetched", at, 0.0, 200, headers=headers, body=body.encode()
        )

    async def visit(self, pages: Mapping[str, str], **changes: object) -> None:
        self.pages |= {name: page(name, inner) for name, inner in pages.items()}
        self.clock.go_on_from(self.clock.now() + 86_400.0)
        order = CrawlOrder(self.db, seeds_from_arguments([SITE + name for name in pages]).seeds)
        settings = quick(crawl__scope="list", **changes)
        await crawl(settings, order, watch=unwatched, fetcher=self, clock=self.clock)

    def feed(self, since: str | None = None, *, noise: bool = False) -> tuple[dict[str, Any], str]:
        """What the changefeed tells of each page, and the cursor after it."""
        with Store(self.db) as store:
            changes = store.changefeed(since, docs=False, all=noise)
            told = {it.id.removeprefix(SITE): (it.kind, *it.kinds) for it in changes}
            return told, changes.cursor

    def documents(self) -> dict[str, str]:
        with Store(self.db) as store:
            return {name: store.page(SITE + name).html for name in self.pages}

    def found(self, name: str) -> list[tuple[Any, ...]]:
        sql = (
            "SELECT f.kind, f.rung, f.kinds FROM finding AS f JOIN page AS p ON p.id = f.page_id "
            f"WHERE p.url = '{SITE + name}' ORDER BY f.id"
        )
        return rows(self.db, sql)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "crawl.db")


def before(*names: str) -> dict[str, str]:
    return {name: PAIRS[name][0] for name in names or PAIRS}


def after(*names: str) -> dict[str, str]:
    return {name: PAIRS[name][1] for name in names or PAIRS}


async def test_what_does_not_count_is_told_as_refreshed_and_shown_where_all_is(site: Site) -> None:
    await site.visit(before())
    stored = "SELECT count(channels), count(*) FROM version"
    assert rows(site.db, stored) == [(0, 7)]
    told, cursor = site.feed()
    assert told == dict.fromkeys(PAIRS, ("new",))
    documents = site.documents()
    await site.visit(after())
    # Of two that differ in words alone no documents are made.
    assert rows(site.db, stored) == [(5, 14)]
    beside = ("links", "images", "state", "layout")
    counting = {name: ("changed", name) for name in ("words", "order")}
    refreshed = {name: ("refreshed", name) for name in beside}
    assert site.feed(cursor)[0] == counting | refreshed
    assert site.feed(cursor, noise=True)[0] == counting | refreshed | {"same": ("noise",)}
    # Of pages that it was not told of yet, a consumer is told that they are new.
    assert {it[0] for name, it in site.feed()[0].items() if name in beside} == {"new"}
    differ = {name for name, document in site.documents().items() if document != documents[name]}
    assert differ >= {*counting, *refreshed} - {"state"}
    for name in PAIRS:
        kind = "changed" if name in counting else "unchanged"
        assert site.found(name)[1][::2] == (kind, None if name == "same" else name)


def test_lists_show_refreshed_pages_where_all_is_wanted(site: Site) -> None:
    asyncio.run(site.visit(before()))
    asyncio.run(site.visit(after()))

    def listed(*options: str) -> Any:
        found = as_json("changes", "--db", site.db, "--since", "2020-01-01", *options)["changes"]
        told = [(it["kind"], it["kinds"]) for it in found if it["kind"] != "new"]
        return sorted(told, key=str)

    assert listed() == [("changed", "order"), ("changed", "words")]
    told_of = [("refreshed", name) for name in ("images", "layout", "links", "state")]
    assert listed("--all") == [*listed(), *told_of, ("unchanged", None)]

    def visits(*options: str) -> str:
        return shown("history", f"{SITE}links", "--db", site.db, *options)

    assert ("refreshed" in visits(), "links\n" in visits("--all")) == (False, True)
    assert "refreshed" in visits("--all")


#: Differences without an edit of the page, with a word of the reason.
MINOR = {
    "views": ("<p>Total number of views (4,099)</p>",
              "<p>Total number of views (4,101)</p>", "count of visits"),
    "dates": ("<ul><li>24 nov. 2021<li>30 nov. 2021<li>3 déc. 2021</ul>",
              "<ul><li>25 nov. 2021<li>1 déc. 2021<li>4 déc. 2021</ul>", "dates of a list"),
    "quotes": ("<p>We’re “here”.</p>", "<p>We're \"here\".</p>", "quotation marks"),
    "tab": ("<p>See the policy</p>", "<p>See the policy (opens in new tab)</p>", "link opens"),
    "build": ("<p>Version 1.266.0.349</p>", "<p>Version 1.267.0.351</p>", "version"),
}  # fmt: skip


def test_a_minor_difference_is_told_as_refreshed_with_its_reason(site: Site) -> None:
    asyncio.run(site.visit({name: old for name, (old, _, _) in MINOR.items()}))
    cursor = site.feed()[1]
    asyncio.run(site.visit({name: new for name, (_, new, _) in MINOR.items()}))
    assert site.feed(cursor)[0] == dict.fromkeys(MINOR, ("refreshed", "words"))
    assert {site.found(name)[1] for name in MINOR} == {("unchanged", "minor", "words")}
    listed = as_json("changes", "--db", site.db, "--since", "2020-01-01")["changes"]
    assert {it["kind"] for it in listed} <= {"new"}
    listed = as_json("changes", "--db", site.db, "--since", "2020-01-01", "--all")["changes"]
    said = {it["url"].removeprefix(SITE): it["summary"] for it in listed if it["kind"] != "new"}
    for name, (_, _, why) in MINOR.items():
        assert why in said[name]
        assert why in shown("history", SITE + name, "--db", site.db, "--all")
        assert why in shown("diff", SITE + name, "--db", site.db, "--all")
    documents = site.documents()
    assert "4,101" in documents["views"]
    # What stands in the content beside it is a change.
    moved = "<p>Total number of views (4,102)</p><p>The office has moved.</p>"
    asyncio.run(site.visit({"views": moved}))
    assert site.found("views")[2] == ("changed", "blocks", "words")


async def test_without_the_last_bytes_a_difference_is_a_change(site: Site) -> None:
    await site.visit({"views": MINOR["views"][0]})
    with closing(sqlite3.connect(site.db)) as db, db:
        db.execute("DELETE FROM body")
    await site.visit({"views": MINOR["views"][1]})
    assert site.found("views")[1][:2] == ("changed", "blocks")


def test_a_return_to_an_older_text_is_told_as_one(site: Site) -> None:
    for inner in ("<p>The clause.</p>", "", "<p>The clause.</p>"):
        asyncio.run(site.visit({"p": inner}))
    assert [kind for kind, _, _ in site.found("p")] == ["new", "changed", "changed"]
    assert "is again one that the page had before" in shown("diff", f"{SITE}p", "--db", site.db)
    listed = shown("changes", "--db", site.db, "--since", "2020-01-01")
    assert listed.count("again") == 1


async def test_a_setting_says_what_counts_for_all_sites_and_for_some(site: Site) -> None:
    names = ("words", "links", "images", "order")
    await site.visit(before(*names))
    cursor = site.feed()[1]
    table = {"match": "a.localhost/images", "counts": ["images"]}
    await site.visit(after(*names), change__counts=["links", "words"], sites=[table])
    assert site.feed(cursor)[0] == {
        "words": ("changed", "words"), "links": ("changed", "links"),
        "images": ("changed", "images"), "order": ("refreshed", "order"),
    }  # fmt: skip
    assert site.found("links")[1] == ("changed", "document", "links")
    assert site.found("order")[1] == ("unchanged", "blocks", "order")


async def test_refreshed_entries_that_were_not_read_are_one_and_hide_no_change(site: Site) -> None:
    await site.visit({"p": "<p>one <a href=/1>x</a></p>"})
    first = site.feed()[1]
    await site.visit({"p": "<p>two <a href=/1>x</a></p>"})
    second = site.feed(first)[1]
    await site.visit({"p": "<p>two <a href=/2>x</a></p>"})
    third = site.feed(second)[1]
    await site.visit({"p": "<p>two <a href=/2>x</a> <img src=/i.png alt=i></p>"})
    seen = [site.feed(each)[0]["p"] for each in (first, second, third)]
    assert seen == [
        ("changed", "words", "links", "images"), ("refreshed", "links", "images"),
        ("refreshed", "images"),
    ]  # fmt: skip
    assert [kind for kind, _, _ in site.found("p")] == ["new", "changed", "unchanged", "unchanged"]
    with Store(site.db) as store:
        # It is as of the change, not of what refreshed it.
        assert store.page(f"{SITE}p").changed_at == store.history(f"{SITE}p")[2].visited_at


async def test_the_same_bytes_or_a_304_are_not_compared(site: Site) -> None:
    for _ in range(3):
        await site.visit(before("links"))
    assert rows(site.db, "SELECT count(*), count(channels) FROM version") == [(1, 0)]
    assert [it[0] for it in site.found("links")] == ["new", "unchanged", "unchanged"]


async def test_what_was_made_in_another_way_is_made_anew_from_the_kept_bytes(site: Site) -> None:
    """As after an upgrade: what differs by the extraction is no change of the page."""
    await site.visit(before("links", "same"))
    await site.visit({"links": PAIRS["links"][0] + "<!-- -->", "same": PAIRS["same"][1]})
    cursor = site.feed(noise=True)[1]
    with closing(sqlite3.connect(site.db)) as db, db:
        db.execute("UPDATE version SET channels = zeroblob(96)")
    await site.visit({"links": PAIRS["links"][1], "same": "<!-- 3 -->"})
    assert site.feed(cursor)[0] == {"links": ("refreshed", "links")}


async def test_without_kept_bytes_the_next_version_is_a_baseline(site: Site) -> None:
    await site.visit(before("links"))
    with closing(sqlite3.connect(site.db)) as db, db:
        db.execute("DELETE FROM body")
    await site.visit(after("links"))
    assert site.found("links")[1] == ("unchanged", "text", None)
    await site.visit(before("links"))
    assert site.found("links")[2] == ("unchanged", "text", "links")


async def test_links_beside_a_stamp_that_always_moves_are_told(site: Site) -> None:
    def stamped(n: int, link: str) -> dict[str, str]:
        return {
            "p": f"<p>Reading {n * 7919 % 1000} of the gauge</p><p>See <a href={link}>x</a></p>"
        }

    for n in range(6):
        await site.visit(stamped(n, "/1"))
    cursor = site.feed()[1]
    assert {it[:2] for it in site.found("p")[1:]} == {("unchanged", "volatile")}
    await site.visit(stamped(6, "/1"))
    assert site.feed(cursor)[0] == {}
    await site.visit(stamped(7, "/2"))
    assert site.feed(cursor)[0] == {"p": ("refreshed", "links")}


async def test_a_rule_that_names_a_kind_is_told_whether_it_counts_or_not(site: Site) -> None:
    names = ("words", "links", "images")
    rules = [
        {"name": name, "match": f"{SITE}*", "url": "http://127.0.0.1:9/", "kinds": kinds}
        for name, kinds in (("plain", ["changed"]), ("links", ["links"]), ("all", ["refreshed"]))
    ]
    await site.visit(before(*names), alerts__rules=rules)
    await site.visit(after(*names), alerts__rules=rules)
    sql = (
        "SELECT a.rule, a.kind, p.url FROM alert AS a JOIN observation AS o "
        "ON o.id = a.observation_id JOIN page AS p ON p.id = o.page_id ORDER BY 1, 3"
    )
    assert [(rule, kind, url.removeprefix(SITE)) for rule, kind, url in rows(site.db, sql)] == [
        ("all", "refreshed", "images"), ("all", "refreshed", "links"),
        ("links", "refreshed", "links"), ("plain", "changed", "words"),
    ]  # fmt: skip


@pytest.mark.parametrize("value", ['["word"]', "[]", '["words", 1]', "links"])
def test_a_kind_that_does_not_exist_is_refused_in_one_line(tmp_path: Path, value: str) -> None:
    for table in ("[change]", '[[sites]]\nmatch = "a.example"'):
        (tmp_path / "freshet.toml").write_text(f"{table}\ncounts = {value}\n", "utf-8")
        done = freshet("config", "show", "--config", tmp_path / "freshet.toml")
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.output
