"""A page in a browser: its history, versions, links and text, and the way to it."""

import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from freshet.crawler.extensions.dashboard.plots import time_line
from freshet.crawler.run.terminal import changed_share
from freshet.storage.queries.page import PastObservation
from freshet.storage.tables.claims import HeardClaim
from tests.crawler.extensions.dashboard.test_pages import HOSTILE, Reader, shown
from tests.crawler.read.test_library import URLS, shard_of, sharded, shows
from tests.crawler.run.test_forecast import believed, run_daemon
from tests.storage.small_store import HOST, SmallStore
from tests.storage.versioned_store import html, version

AT = 1_790_000_000.0
DAY_S = 86_400.0
WORDS = "The {} words of this sentence are many, so that they are main text."


def path(of: str, **query: object) -> str:
    more = "".join(f"&{name}={value}" for name, value in query.items())
    return f"{of}?url={HOST}/{more}"


@pytest.fixture
async def reader(small: SmallStore) -> AsyncIterator[Reader]:
    """A page with three versions, failures, signals, links and another name; all is hostile."""
    small.run(AT)
    small.host(delay_s=1.0)
    names = ("title", "etag", "last_modified", "language", "canonical_url")
    wrote: dict[str, Any] = dict.fromkeys(names, HOSTILE)
    page = small.page("/", checked_at=AT, last_kind="changed", last_at=AT, **wrote)
    last = 0
    for n, text in enumerate((WORDS.format("old"), WORDS.format("new"), f"Last: {HOSTILE}")):
        body = html("The first sentence of this page stays.", text)
        last = version(small, page, AT + n * DAY_S, body, kind="changed" if n else "new")
    small.execute("UPDATE page SET version_id = ? WHERE id = ?", last, page)
    small.observe(page, AT + 3 * DAY_S, "unchanged", version_id=last)
    small.observe(page, AT + 4 * DAY_S, "failed", reason="http_503", detail=HOSTILE)
    small.observe(page, AT + 5 * DAY_S, "changed", resemblance=0.6, blocks_added=2)
    source = small.insert("claim_source", kind="sitemap", host_id=1, url=f"{HOST}/{HOSTILE}")
    for n in range(2):
        said = {"since": AT + n, "until": AT + n + 9, "received_at": AT + n}
        small.insert("claim", source_id=source, page_id=page, **said)
    small.page("/old", alias_of=page, alias_kind="permanent", alias_at=AT)
    for n in range(60):
        small.link(small.page(f"/{n:02}"), page, AT, anchor=HOSTILE, gone_at=AT if n else None)
    small.link(page, page + 2, AT, anchor="To another page")
    small.link(page, f"http://away.example/{HOSTILE}", AT, anchor=HOSTILE)
    robots = f"User-agent: *\nDisallow: /{HOSTILE}\nCrawl-delay: 7".encode()
    small.insert("robots", host_id=1, standing="parsed", fetched_at=AT, body=robots)
    async with shown(small.path) as url, aiohttp.ClientSession() as client:
        yield Reader(url, client, None)  # type: ignore[arg-type]


async def test_a_page_tells_its_history_in_a_picture_and_in_a_table(reader: Reader) -> None:
    body = await reader.page(path("/page"))
    picture = body.partition("<svg class")[2].partition("</svg>")[0]
    kinds = ("new", "unchanged", "failed", "changed", "signal")
    told = ('role="img"', "6 visits and 2 change signals from 2026-09-21", ": changed, about 40 %")
    for each in (*told, *(f'class="v {kind}"' for kind in kinds)):
        assert each in picture
    rows = body.partition("Table of visits")[2].partition("</table>")[0]
    assert rows.count("<tr>") == 1 + 6
    assert [each for each in ("about 40 %", "+2 −0", "http_503: ", ">3<") if each not in rows] == []


async def test_a_page_tells_its_versions_links_and_robots_txt(reader: Reader) -> None:
    body, here = await reader.page(path("/page")), "url=http%3A%2F%2Fone.example%2F&amp;"
    for told in (
        f"/page/text?{here}version=1", f"/changes/one?{here}before=2&amp;after=3", "7 s",
        'Links in <span class="count">60<', "And 10 that are not listed", "not of this store",
        f"{HOST}/old (permanent)", "It changes about", "To another page", " · gone<",
    ):  # fmt: skip
        assert told in body


async def test_a_page_tells_what_the_daemon_expects(small: SmallStore) -> None:
    now = time.time()
    run_daemon(small, now)
    page = small.page("/", checked_at=now, last_kind="new", last_at=now - 9)
    small.observe(page, now - 9, "new")
    believed(small, page, at=now, worth=0.05, due_at=now + 2 * DAY_S + 99, hazard=0.25)
    async with shown(small.path) as url, aiohttp.ClientSession() as client:
        body = await Reader(url, client, None).page(path("/page"))  # type: ignore[arg-type]
    for told in ('class="v next"', "in 2 d", "22.1 %", "as the daemon valued it"):
        assert told in body


async def test_a_page_tells_what_was_set_in_a_browser_and_the_overview_why_hosts_wait(
    small: SmallStore,
) -> None:
    run_daemon(small, now := time.time())
    page = small.page("/", checked_at=now, last_kind="new", title="Right \u202egnp.exe")
    small.observe(page, now - 9, "new")
    believed(small, page, at=now)
    small.insert("site_setting", match=f"{HOST}/", key="importance", value="20.0", at=now)
    small.execute("UPDATE host SET parked_until = ?, parked_reason = 'connect'", now + DAY_S)
    async with shown(small.path) as url, aiohttp.ClientSession() as client:
        reader = Reader(url, client, None)  # type: ignore[arg-type]
        body = await reader.page(path("/page"))
        assert "20 (set in a browser for “http://one.example/”, 1 when the daemon last" in body
        assert "\u202e" not in body + await reader.page("/pages") + await reader.page("/changes")
        assert "it takes no connection" in await reader.page("/")
        small.insert("site_setting", match="one.example", key="never", value="true", at=now)
        assert "until that is taken back: one.example" in await reader.page(path("/page"))
        assert 'href="/pages?prefix=one.example"' in await reader.page("/")


def test_the_size_of_a_change_is_an_estimate_in_whole_per_cent() -> None:
    sizes = [changed_share(1 - steps / 128) for steps in (0, 1, 2, 4, 32, 128)]
    assert sizes == ["under 1 %"] * 2 + [f"about {n} %" for n in (1, 3, 25, 100)]


async def test_another_name_leads_to_the_page_and_an_unknown_url_near(reader: Reader) -> None:
    assert f"{HOST}/old is another name" in await reader.page(path("/page") + "old")
    assert "is another name" not in await reader.page(path("/page"))
    status, _, body = await reader.ask(path("/page") + "0x")
    assert (status, 'href="/page?url=http%3A%2F%2Fone.example%2F09"' in body) == (404, True)
    assert f'name="prefix" value="{HOST}/0x"' in body
    assert "nor any other URL" in (await reader.ask("/page?url=http://none.example/"))[2]
    for wrong in ("", "?url=", "?url=%00"):
        assert (await reader.ask(f"/page{wrong}"))[0] == 400


async def test_the_text_of_each_version_is_shown(reader: Reader) -> None:
    assert "The old words" in (body := await reader.page(path("/page/text", version=1)))
    assert ("earlier</a>" in body, "later</a>" in body) == (False, True)
    assert "version 3 of 3" in await reader.page(path("/page/text"))
    assert (await reader.ask(path("/page/text", version=9)))[0] == 400


async def test_both_texts_of_a_change_stand_side_by_side(reader: Reader) -> None:
    body = await reader.page(path("/changes/one", before=1, after=2, view="texts"))
    edited = body.partition('class="pairs is-edited"')[2]
    before, _, after = edited.partition("</div></div>")[0].partition('class="new"')
    assert ("<del>old</del> words" in before, "<ins>" in before) == (True, False)
    assert ("<ins>new</ins> words" in after, "<del>" in after) == (True, False)
    kept = re.findall(r'is-kept">.*?</div></div>', body, re.DOTALL)
    assert [each.count("The first sentence of this page stays.") for each in kept] == [0, 2]


async def test_what_a_site_wrote_does_nothing_on_any_page(reader: Reader) -> None:
    hostile = "%22%3E%3Cscript%3Ealert%281%29%3C/script%3E"
    for asked in (
        path("/page"), path("/page/text"), path("/changes/one", after=3, view="texts"),
        path("/page") + hostile, f"/page?url={hostile}", path("/page/text", version=hostile),
        f"/pages?prefix={hostile}", "/pages", f"/changes?words={hostile}&site={hostile}",
        f"/changes?kind={hostile}", f"/changes?words={hostile}", f"/changes?since={hostile}",
    ):  # fmt: skip
        body = (await reader.ask(asked))[2]
        found = [each in body for each in ("<main", "<script>alert", "<img src=x", "&gt; 49")]
        assert found == [True, False, False, False], asked


async def test_urls_are_found_by_how_they_begin(reader: Reader) -> None:
    for query, count, more in (
        ("prefix=one.example/0", 10, False), ("", 50, True), ("prefix=none", 0, False),
        ("after=http://one.example/47", 13, False),
    ):  # fmt: skip
        body = await reader.page(f"/pages?{query}")
        assert (body.count('class="url"'), "Next</a>" in body) == (count, more)


async def test_filters_choose_changes_and_each_comes_once(tmp_path: Path) -> None:
    async with sharded(tmp_path, indexed=False) as stores, shown(tmp_path) as url:
        for n in range(10):
            for at in URLS:
                await shows(stores[shard_of(at)], at, f"text {n}", AT + 100 + n // 4)
        async with aiohttp.ClientSession() as client:
            reader = Reader(url, client, None)  # type: ignore[arg-type]
            seen, asked = list[str](), "/changes"
            while asked:
                body = await reader.page(asked)
                seen += [part.partition("</li>")[0] for part in body.split("<li>")[1:]]
                href = body.partition('<a href="/changes?')[2].partition('">Older')
                asked = f"/changes?{href[0]}".replace("&amp;", "&") if href[1] else ""
            links = {one.partition('href="')[2].partition('"')[0] for one in seen}
            assert len(links) == len(seen) == len(URLS) * 10
            for query, count in (
                ("kind=new", len(URLS)), ("kind=changed&site=site0.example", 9), ("kind=gone", 0),
                ("site=none.example", 0), ("size=1", 0), ("since=2099-01-01", 0),
                ("since=2026-09-20&words=site2.&titles=1", 10), ("words=site0.example&kind=new", 1),
            ):  # fmt: skip
                assert (await reader.page(f"/changes?{query}")).count("<li>") == count, query
            for wrong in ("kind=x", "size=much", "since=then", "before=x", "before=1_2_x"):
                assert (await reader.ask(f"/changes?{wrong}"))[0] == 400
            for at in URLS:
                assert "10 versions" in await reader.page(f"/page?url={at}")


def test_marks_stand_where_the_time_is_and_are_as_high_as_the_change() -> None:
    visits = [
        PastObservation(1, AT + 1_000, "unchanged"),
        PastObservation(1, AT + 501, "changed", resemblance=0.0),
        PastObservation(1, AT + 500, "changed", resemblance=1.0),
        PastObservation(1, AT, "new"),
    ]
    heard = [HeardClaim("feed", "f", AT - 900, AT + 2_000, AT)]
    line = time_line(visits, heard, AT + 1_000) or {}
    assert [(mark.x, mark.kind, mark.size) for mark in line["visits"]] == [
        (70, "new", 0.0), (500, "changed", 8.0), (501, "changed", 44.0), (930, "unchanged", 0.0)
    ]  # fmt: skip
    assert [(mark.x, mark.size) for mark in line["signals"]] == [(70, 860)]
    assert time_line([], heard, AT) is None
    often = [PastObservation(1, AT + n, "gone") for n in range(2_000, 0, -1)]
    many = time_line(often, [], AT + 2_000 * DAY_S) or {}
    (mark,) = many["visits"]
    assert mark.title == "2026-09-21 14:13: gone, 2000 visits until 2026-09-21 14:46"
    assert 2 < len(many["ticks"]) <= 8
