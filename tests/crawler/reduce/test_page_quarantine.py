"""Parsing never stops the event loop, and what cannot be parsed is a value."""

import asyncio
import os
import signal
import sys
import threading
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Sequence
from copy import copy
from functools import partial
from pathlib import Path

import pytest
import uvloop

from freshet.crawler.errors import ParserLost
from freshet.crawler.reduce import parser_process
from freshet.crawler.reduce.document import Document
from freshet.crawler.reduce.page import ParsedPage, parse
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.reduce.sitemaps import Feed
from freshet.crawler.reduce.tree import SelectorHints
from freshet.storage.records import Links

URL = "https://h.example/"
SMALL = b"<title>Small</title><a href=x>x</a>"
LARGE = b"<title>Large</title>" + b"<p>Some text with a <a href=x>link</a>.</p>" * 13_000
#: Too long for the second process.
LONG = LARGE + b" " * (2 << 20)
#: 600 formatting elements that each later block would open anew: a tree of 10 GB.
HUNGRY = b"".join(b"<p><b a=%d>" % i for i in range(10_000))
#: A tag of so many attributes that comparing each with each takes minutes.
SLOW = b"<p " + b"".join(b"a%d " % i for i in range(300_000)) + b">"


def process_of(parser: Parser) -> int | None:
    process = parser._first._process
    return process.pid if process is not None else None


@pytest.fixture
async def parser() -> AsyncIterator[Parser]:
    parser = Parser()
    yield parser
    await parser.close()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Limits of memory in MiB of the processes that were started."""
    limits, start = list[int](), parser_process._started

    async def noted(
        wall_limit_s: float | None, memory_limit_bytes: int, modules: Sequence[str]
    ) -> Process:
        limits.append(memory_limit_bytes >> 20)
        return await start(wall_limit_s, memory_limit_bytes, modules)

    monkeypatch.setattr(parser_process, "_started", noted)
    return limits


def test_a_calm_page_needs_no_process() -> None:
    async def scenario() -> None:
        parser = Parser()
        assert await parser.parse(SMALL, URL, None) == parse(SMALL, URL, None)
        assert process_of(parser) is None
        await parser.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
def test_other_bodies_are_read_by_one_process_that_ends_with_the_parser(
    new_loop: Callable[[], asyncio.AbstractEventLoop], started: list[int]
) -> None:
    async def scenario() -> int | None:
        parser = Parser(max_links=7, agent_token="bot")
        found = await parser.parse(LARGE, URL, "text/html")
        assert found == parse(LARGE, URL, None, "bot", 7)
        pid = process_of(parser)
        assert isinstance(await parser.parse(LARGE + b"x", URL, None), ParsedPage)
        feed = b"<rss><channel><item><link>/1</link></item></channel></rss>"
        entries = await parser.parse_feed(feed, URL)
        assert isinstance(entries, Feed)
        assert entries.links == Links((URL + "1",), (URL + "1",), ("",), ("",))
        assert process_of(parser) == pid
        await parser.close()
        await parser.close()
        return pid

    with asyncio.Runner(loop_factory=new_loop) as runner:
        pid = runner.run(scenario())
    assert pid is not None
    assert not Path(f"/proc/{pid}").exists()
    # One after the other they need no second one.
    assert started == [180]


async def test_a_large_page_is_read_while_another_one_hangs(
    parser: Parser, started: list[int]
) -> None:
    undisturbed = await parser.parse(LARGE, URL, None)
    first = process_of(parser)
    assert first is not None
    os.kill(first, signal.SIGSTOP)
    hanging = asyncio.create_task(parser.parse(LARGE, URL, None))
    await asyncio.sleep(0)
    assert [await parser.parse(LARGE, URL, None) for _ in range(2)] == [undisturbed] * 2
    assert started == [180, 44]
    # What may need more memory waits.
    later = [
        asyncio.create_task(each)
        for each in (parser.parse(LONG, URL, None), parser.document(LARGE, URL, None))
    ]
    await asyncio.sleep(0)
    second = parser._second
    assert second is not None
    assert second._process is not None
    assert not second.is_busy
    assert not hanging.done()
    os.kill(first, signal.SIGCONT)
    assert await hanging == undisturbed
    assert isinstance(await later[0], ParsedPage)
    assert isinstance(await later[1], Document)
    await parser.close()
    assert second._process is None


async def test_a_page_that_the_second_process_has_no_memory_for_is_read_by_the_first(
    started: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser_process, "_SECOND_LIMIT_BYTES", 14 << 20)
    parser = Parser()
    both = await asyncio.gather(*(parser.parse(LARGE, URL, None) for _ in range(2)))
    assert both == [parse(LARGE, URL, None)] * 2
    assert started == [180, 14]
    await parser.close()


def test_selectors_of_a_site_make_its_texts_those_of_another_extraction() -> None:
    def hinting(hints: SelectorHints) -> Parser:
        return Parser(hints=lambda url: hints if "news.example" in url else SelectorHints())

    plain, hinted = Parser(), hinting(SelectorHints(include=("article",)))
    assert hinted.text_version(URL) == plain.text_version(URL)
    assert hinted.text_version("https://www.news.example/1") != plain.text_version(URL)
    ignoring = hinting(SelectorHints(ignore=("article",)))
    names = {parser.text_version("https://news.example/") for parser in (plain, hinted, ignoring)}
    assert len(names) == 3


async def test_a_hopelessly_deep_page_is_refused_without_trying(parser: Parser) -> None:
    found = await parser.parse(b"<div>" * 100_000, URL, "text/html")
    assert isinstance(found, Unparsable)
    assert found.reason == "RecursionError: elements nested 100,000 deep"
    assert isinstance(await parser.parse(b"<div>" * 100_000, URL, "text/plain"), ParsedPage)


async def test_a_page_that_takes_too_long_is_given_up_and_the_next_is_parsed() -> None:
    parser = Parser(time_limit_s=0.5)
    slow = asyncio.create_task(parser.parse(SLOW, URL, None))
    waiting = asyncio.create_task(parser.parse(LARGE, URL, None))
    await asyncio.sleep(0)
    # A small page does not wait for either.
    assert isinstance(await parser.parse(SMALL, URL, None), ParsedPage)
    assert not slow.done()
    assert await slow == Unparsable("parsing took more than 0.5 s of processor time", is_lack=True)
    assert isinstance(await waiting, ParsedPage)
    await parser.close()


@pytest.mark.parametrize(
    "said",
    [
        b"nonsense",
        b"\xff",
        b"[{}, null, false, 0]",
        b"[[1], null, false, 0]",
        b"[1, 2]",
        b"{}",
        b"3",
    ],
)
async def test_what_the_process_says_is_believed_for_its_types_only(
    parser: Parser, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    async def says(_worker: object, _process: object, _call: bytes) -> bytes:
        return said

    monkeypatch.setattr(parser_process._Worker, "_exchange", says)
    with pytest.raises(ParserLost, match="answered nonsense"):
        await parser.parse(LARGE, URL, None)


async def test_a_page_comes_out_of_the_process_as_it_is(parser: Parser) -> None:
    page = ParsedPage(URL, None, title="\ud800", meta_refresh=(1.0, URL), hub_links=(("a", "b"),))
    assert await parser._first.call(ParsedPage, partial(copy, page), 5.0) == page


@pytest.mark.long
async def test_slow_pages_wait_behind_others_which_wait_for_one_at_most() -> None:
    aside, ends = list[asyncio.Task[object] | None](), list[str]()
    parser = Parser(time_limit_s=2.0, set_aside=lambda: aside.append(asyncio.current_task()))

    async def parse(body: bytes, host: str) -> None:
        await parser.parse(body, f"https://{host}.example/", None)
        ends.append(host)

    slow = [asyncio.create_task(parse(SLOW, f"slow{n}")) for n in range(3)]
    await asyncio.gather(parse(LARGE, "honest"), *slow)
    assert ends == ["honest", "slow0", "slow1", "slow2"]
    # What a slow page holds is no longer that of the pages that are read.
    assert set(aside) == set(slow)
    later = parse(LONG, "longer"), parse(LARGE, "honest")
    await asyncio.gather(parse(SLOW, "slow0"), parse(SLOW, "slow1"), *later)
    # What is only large waits for none.
    assert ends[4:] == ["honest", "longer", "slow0", "slow1"]
    # A host whose pages are quick again is a host like others.
    parser._quick_s = 60.0
    await parse(LARGE, "slow0")
    assert len(parser._slow_hosts) == 2
    await parser.close()


async def test_of_slow_pages_only_a_few_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser_process, "SLOW_BYTES", 2 * len(SLOW))
    parser = Parser(time_limit_s=0.5)
    calls = (parser.parse(SLOW, f"https://{n}.example/", None) for n in range(3))
    *slow, refused = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(each, Unparsable) for each in slow)
    assert str(refused) == "too many slow pages wait for the parser"
    await parser.close()


async def test_a_page_that_wants_too_much_memory_is_given_up_and_the_next_is_parsed(
    parser: Parser,
) -> None:
    assert isinstance(await parser.parse(HUNGRY, URL, None), Unparsable)
    assert isinstance(await parser.parse(LARGE, URL, None), ParsedPage)


_LINKS = b"".join(b"<li><a href=/p/%d>Page %d</a>" % (i, i) for i in range(2_000))
#: Pages beyond the limits, with a title and links before what makes them so.
BEYOND = {
    "formatting elements": b"".join(b"<p><b a=%d>" % i for i in range(10_000)),
    "fonts": b"<font><p>" * 200_000,
    "underlined": b"".join(b"<u id=%d><p>" % i for i in range(10_000)),
    "links": b"".join(b"<li><a href=/q/%d>Page %d</a>" % (i, i) for i in range(300_000)),
    "attributes": (b"<p " + b" ".join(b"a%d" % i for i in range(60)) + b">") * 40_000,
    "cells": b"<table>" + b"<tr><td>1<td>2<td>3" * 200_000,
    "options": b"<select>" + b"<option>x" * 500_000,
    "spans": b"<span class=x>1</span>" * 300_000,
    "depth": b"<div>" * 100_000,
    "lists": b"<ul><li>" * 100_000,
    "quotes": b"<blockquote>" * 50_000,
}


@pytest.mark.parametrize(
    "what",
    ["depth", *(pytest.param(each, marks=pytest.mark.long) for each in BEYOND if each != "depth")],
)
async def test_a_page_beyond_the_limits_yields_its_title_and_the_links_of_its_beginning(
    parser: Parser, what: str
) -> None:
    start = b"<meta name=robots content=nofollow><title>Many</title><base href=/b/><ul>" + _LINKS
    found = await parser.parse(start + BEYOND[what], URL, None)
    assert isinstance(found, Unparsable)
    page = found.beginning
    assert page is not None
    assert (page.title, page.robots_meta, page.base_url) == ("Many", ("nofollow",), f"{URL}b/")
    assert page.links.urls[:2_000] == tuple(f"{URL}p/{i}" for i in range(2_000))
    assert page.links.anchors[7] == "Page 7"
    assert len(page.links) <= 50_000
    assert page.blocks.texts == ()
    if what == "links":
        assert len(page.links) == 50_000
    # The process goes on.
    assert isinstance(await parser.parse(LARGE, URL, None), ParsedPage)


#: Pieces of manuals.
MANUALS = {
    "paragraphs": b"<p>A paragraph of <b>some</b> words, and <a href=x>a link</a>.</p>",
    "code": b"<pre><span class=k>def</span> <span class=n>f</span>(<i>x</i>): ...</pre>",
    "definitions": b"<dl><dt id=a>name</dt><dd><p>What it <em>means</em>.</p></dd></dl>",
    "items": b"<ul><li>one <code>word</code></li><li>another</li></ul>",
    "tables": b"<table><tr><td>a</td><td>b</td></tr><tr><td>1</td><td>2</td></tr></table>",
    "headings": b"<h2><a href=#s>1.</a> Section</h2><p>Text.</p>",
    "quotes": b"<blockquote><p>What <q>she</q> said.</p></blockquote>",
    "links": b"<p><a href=a1>one</a> <a href=b2>two</a> <a href=c3>three</a></p>",
    "words": b"<p><i>a</i> <i>b</i> <i>c</i> <i>d</i> <i>e</i> <i>f</i></p>",
    "entries": b"<div><span>name</span> <span>12</span>, <span>13</span></div>",
}


@pytest.mark.parametrize(
    "kind",
    ["words", *(pytest.param(kind, marks=pytest.mark.long) for kind in MANUALS if kind != "words")],
)
async def test_a_document_is_read_whatever_was_read_before_it(kind: str) -> None:
    body = b"<title>T</title><main>" + MANUALS[kind] * (150_000 // len(MANUALS[kind]))
    parser = Parser(time_limit_s=60.0)
    alone = await parser.document(body, URL, None)
    assert isinstance(alone, Document)
    first = process_of(parser)
    # What others left in the process, though little of it is resident.
    held = partial(eval, "[setattr(__import__('json'), 'held', bytearray(174 << 20)), {}][1]")
    assert await parser._first.call(dict, held, 5.0) == {}
    used = process_of(parser)
    assert await parser.document(body, URL, None) == alone
    assert len({first, used, process_of(parser)}) == 3
    await parser.close()


async def test_what_a_fresh_process_has_no_memory_for_either_is_a_lack(parser: Parser) -> None:
    found = await parser.document(HUNGRY, URL, None)
    assert isinstance(found, Unparsable)
    assert found.is_lack
    deep = await parser.document(b"<div>" * 100_000, URL, None)
    assert deep == Unparsable("RecursionError: elements nested 100,000 deep")


async def test_a_process_without_memory_for_a_call_is_no_failure_of_the_crawler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parser_process, "_FIRST_LIMIT_BYTES", 16 << 20)
    parser = Parser()
    # It is read before a function of it is called.
    call = partial(len, bytes(40 << 20))
    found = await parser._first.call(int, call, 60.0)
    assert found == Unparsable("the parser's process ran out of memory", is_lack=True)
    assert isinstance(await parser.parse_feed(b"<rss></rss>", URL), Feed)
    await parser.close()


@pytest.mark.long
async def test_a_stopped_process_does_not_use_up_the_time_of_a_page() -> None:
    parser = Parser(time_limit_s=2.5)
    undisturbed = await parser.parse(LARGE, URL, None)
    pid = process_of(parser)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    call = asyncio.create_task(parser.parse(LARGE, URL, None))
    done, _ = await asyncio.wait([call], timeout=3.0)
    assert not done
    os.kill(pid, signal.SIGCONT)
    assert await call == undisturbed
    assert process_of(parser) == pid
    await parser.close()


async def test_a_process_that_gives_no_answer_for_too_long_is_not_the_page_s_fault(
    parser: Parser,
) -> None:
    await parser.parse(SMALL * 10_000, URL, None)
    pid = process_of(parser)
    assert pid is not None
    # Not from the start on: the process may take longer to start.
    parser._first._wall_limit_s = 0.3
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(ParserLost, match=r"no answer within 0\.3 s"):
        await parser.parse(SMALL * 10_000, URL, None)
    assert not Path(f"/proc/{pid}").exists()


async def test_a_crash_is_the_page_s_doing(parser: Parser) -> None:
    abort: Callable[[], dict[str, str]] = os.abort
    assert await parser._first.call(dict, partial(abort), 5.0) == Unparsable(
        "the parser's process crashed, most likely for want of memory", is_lack=True
    )


async def test_a_process_that_is_killed_is_replaced_and_the_page_is_not_blamed(
    parser: Parser,
) -> None:
    await parser.parse(LARGE, URL, None)
    pid = process_of(parser)
    assert pid is not None
    os.kill(pid, 9)
    with pytest.raises(ParserLost, match="status -9"):
        await parser.parse(LARGE, URL, None)
    assert isinstance(await parser.parse(LARGE, URL, None), ParsedPage)


async def test_a_large_parent_does_not_make_the_process_look_large(parser: Parser) -> None:
    ballast = b"x" * (200 << 20)
    await parser.parse(LARGE, URL, None)
    assert process_of(parser) is not None
    assert ballast


async def test_the_answer_to_a_cancelled_call_is_not_taken_for_the_next(parser: Parser) -> None:
    await parser.parse(LARGE, URL, None)
    cancelled = asyncio.create_task(parser.parse(SLOW, URL, None))
    await asyncio.sleep(0)
    assert parser._first.is_busy
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    found = await parser.parse(LARGE, URL, None)
    assert isinstance(found, ParsedPage)
    assert found.title == "Large"


async def test_closing_ends_the_calls_that_are_under_way(parser: Parser) -> None:
    await asyncio.gather(*(parser.parse(LARGE, URL, None) for _ in range(2)))
    for worker in (parser._first, parser._second):
        assert worker is not None
        assert worker._process is not None
        os.kill(worker._process.pid, signal.SIGSTOP)
    calls = [asyncio.create_task(parser.parse(LARGE, URL, None)) for _ in range(2)]
    await asyncio.sleep(0)
    await parser.close()
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(each) for each in ends] == [ParserLost] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="sees a process end without taking its end")
async def test_the_end_of_the_process_is_left_to_who_waits_for_it(
    parser: Parser, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    may_take = threading.Event()
    waitpid = os.waitpid

    def late(pid: int, options: int) -> tuple[int, int]:
        # From Python 3.12 on the loop itself takes the end, when it hears of it.
        if threading.current_thread() is not threading.main_thread():
            may_take.wait()
        return waitpid(pid, options)

    monkeypatch.setattr(os, "waitpid", late)
    await parser.parse(LARGE, URL, None)
    process = parser._first._process
    assert process is not None
    parser_process._kill(process)
    # The loop must not take its end yet.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222
    parser_process._kill(process)
    may_take.set()
    await parser.close()
    assert process.returncode == -signal.SIGKILL
    assert caplog.text == ""
