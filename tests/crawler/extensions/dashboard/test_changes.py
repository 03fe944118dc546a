"""The list of changes by words and failures, names as people type them, and wrong parameters."""

import re
from collections.abc import AsyncIterator
from urllib.parse import quote

import aiohttp
import pytest

from freshet.crawler.extensions.dashboard import changes
from tests.crawler.extensions.dashboard.test_pages import Reader, shown
from tests.storage.small_store import SmallStore
from tests.storage.versioned_store import html, version

AT, BOOKS = 1_790_000_000.0, "http://xn--bcher-kva.example:8105"
NAMES = [(f"{scheme}BÜCHER.example{port}", port != ":81")
         for scheme in ("", "http://") for port in ("", ":81", ":8105")]  # fmt: skip


@pytest.fixture
async def reader(small: SmallStore) -> AsyncIterator[Reader]:
    small.run(AT)
    for n, origin in enumerate((BOOKS, "http://one.example", "http://two.example")):
        page = small.page(f"{origin}/", host=small.host(origin, exchanges=1))
        version(small, page, AT + n, html(f"The tariff is number {n}"), kind="new")
        version(small, page, AT + 9 + n, html(f"The tariff is numéro{n}"))
    small.observe(3, AT + 99, "failed", reason="http_429", detail="the server answered 429")
    small.observe(1, AT + 98, "failed", reason="dns")
    async with shown(small.path) as url, aiohttp.ClientSession() as client:
        yield Reader(url, client, None)  # type: ignore[arg-type]


async def test_words_of_differences_failures_and_names_as_typed_are_found(reader: Reader) -> None:
    for query, count in (
        ("words=NUMÉRO1", 1), ("words=number", 3), ("words=tariff", 0), ("words=heading", 0),
        ("words=number two.ex", 1), ("words=number&titles=1", 0), ("words=TWO.EX&titles=1", 2),
        ("kind=failed", 2), ("kind=failed&words=429", 1), ("kind=failed&site=one.example", 0),
        ("kind=failed&site=bücher.example", 1), ("kind=failed&since=2036-01-01", 0),
        *((f"kind=changed&site={name}", known) for name, known in NAMES),
    ):  # fmt: skip
        body = await reader.page(f"/changes?{quote(query, safe='=&')}")
        assert body.count("<li>") == count, query
    for name, known in NAMES:
        status, _, body = await reader.ask(f"/site?origin={quote(name)}")
        assert (status, f"<h1>{BOOKS}</h1>" in body) == (200 if known else 404, known)
    for typed, count in (("bücher", 1), ("http://bücher.example:8105/", 1), ("bücher/x", 0)):
        assert (await reader.page(f"/pages?prefix={quote(typed)}")).count('class="url"') == count


async def test_a_search_goes_on(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_SHOWN", 1)
    asked = "words=num%C3%A9ro0"
    for told in (False, False, True, False):
        body = await reader.page(f"/changes?{asked}")
        assert ("numéro0" in body.partition('class="summary"')[2]) == told
        asked = body.partition('<a href="/changes?')[2].partition('">Older')[0].replace("amp;", "")
        assert ("as far as was searched" in body) == bool(asked)
    assert not asked


async def test_a_wrong_parameter_is_named_with_what_is_accepted(reader: Reader) -> None:
    for asked, why in (
        ("/changes?size=abc", "size=abc: accepted are numbers"), ("/x", "There is no page here"),
        ("/changes?since=then", "since=then: accepted are dates, as 2026-03-31"),
        ("/changes?before=x", "before=x: accepted are those of"), ("/site", "origin=: accepted"),
        ("/changes?kind=x", "kind=x: accepted are changed, new, gone, refreshed, noise, failed"),
        ("/changes?site=a%20b", "site=a b: accepted are"), ("/site?origin=a%20b", "origin=a b: a"),
        ("/sites?value=x&after=y", "value=x: "), ("/policies?seen=x", "seen=x: accepted are 0"),
    ):  # fmt: skip
        status, _, body = await reader.ask(asked)
        assert (400 <= status <= 404, why in body, "To the overview" in body) == (True,) * 3, asked


async def test_both_texts_stand_side_by_side_block_by_block(small: SmallStore) -> None:
    small.run(AT)
    page = small.page(f"{BOOKS}/", host=small.host(BOOKS, exchanges=1))
    stays, ends = "It stays as it is here.", "The last words of the page."
    version(small, page, AT, html(stays, "Some old words are here.", "This goes away.", ends))
    version(small, page, AT + 9, html(stays, "Some new words are here.", ends, "This has come."))
    async with shown(small.path) as url, aiohttp.ClientSession() as client:
        reader = Reader(url, client, None)  # type: ignore[arg-type] # no site is crawled here
        body = await reader.page(f"/changes/one?url={BOOKS}/&before=1&after=2&view=texts")
    found = [
        (kind, *(" ".join(re.sub("<[^>]+>", "", side).split()) for side in sides))
        for kind, *sides in re.findall(
            r'is-(\w+)"><div class="old">(.*?)</div><div class="new">(.*?)</div></div>',
            body, re.DOTALL,
        )
    ]  # fmt: skip
    assert found == [
        ("kept", "Heading", "Heading"), ("kept", stays, stays),
        ("edited", "edited Some old words are here.", "edited Some new words are here."),
        ("removed", "removed This goes away.", ""), ("kept", ends, ends),
        ("added", "", "added This has come."),
    ]  # fmt: skip
