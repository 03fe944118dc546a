"""A store read from programs: by any thread, in an event loop, beside its writer."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from asyncio import base_events, tasks
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import _base as futures_base
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import AsyncMock

import pytest

import freshet
from freshet.crawler.compare.near_duplicates import optimal_banding
from freshet.crawler.read import documents
from freshet.crawler.read import store as store_module
from freshet.crawler.reduce.formats import format_of
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.reduce.sketch import sketch
from freshet.storage.queries import page
from tests.console import freshet as console
from tests.storage.sketched_store import sketched_store
from tests.storage.small_store import HOST, SmallStore, rows
from tests.storage.versioned_store import html, version, versioned_store

T0 = 1_760_000_000.0
START = datetime.fromtimestamp(T0, UTC)
OLD = html("It costs 10.99 today.", "Delivery takes two days.")
NEW = html("It costs 11.49 today.", "Delivery takes two days.")
NOISE = NEW.replace(b"<title>T", b"<title>N")


@pytest.fixture
def crawled(tmp_path: Path) -> SmallStore:
    """A page of three versions, of which the last is noise, one without bytes, and one gone."""
    small = versioned_store(tmp_path / "crawl.db", T0)
    page = small.page("/offer")
    version(small, page, T0, OLD, kind="new")
    second = version(small, page, T0 + 86_400, NEW)
    version(small, page, T0 + 172_800, NOISE, kind="unchanged")
    small.page("/old-offer", alias_of=page, alias_kind="permanent", alias_at=T0)
    tell(small, page, "changed", second)
    pruned = small.page("/pruned")
    tell(small, pruned, "new", version(small, pruned, T0, html("gone"), keep=False, kind="new"))
    tell(small, small.page("/gone"), "gone", None)
    return small


def tell(small: SmallStore, page: int, kind: str, version_id: int | None) -> None:
    small.insert("change", page_id=page, kind=kind, version_id=version_id, at=T0)


async def fill(path: Path, texts: Mapping[str, str]) -> None:
    async with sketched_store(path) as store:
        for url, word in texts.items():
            text = " ".join(f"{word}{n}" for n in range(60)) if word else "few words"
            store.page(url, sketch([text]).to_bytes())


def store_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "freshet-store"]


def test_pages_are_told_apart_by_datasketchs_objects(tmp_path: Path) -> None:
    texts = {"/a": "alpha", "/b": "alpha", "/c": "gamma", "/short": ""}
    asyncio.run(fill(tmp_path / "crawl.db", texts))
    with freshet.Store(tmp_path / "crawl.db") as store:
        sketches, index = store.sketches(), store.lsh()
        assert set(sketches) == {f"{HOST}{path}" for path in texts}
        a, c = (sketches[f"{HOST}{path}"].minhash() for path in ("/a", "/c"))
        assert set(index.query(a)) == {f"{HOST}/a", f"{HOST}/b"}
        assert index.query(c) == [f"{HOST}/c"]
        assert a.jaccard(sketches[f"{HOST}/b"].minhash()) == 1.0
        assert (index.b, index.r) == (9, 14)
        assert (store.lsh(0.5).b, store.lsh(0.5).r) == optimal_banding(0.5)
        with pytest.raises(ValueError, match="one band is best"):
            store.lsh(1.0)


def test_a_document_has_what_the_page_says_and_when_it_was_fetched(
    crawled: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with freshet.Store(crawled.path) as store:
        page = store.page(f"{HOST}/offer")
        assert (page.url, page.title, page.version) == (f"{HOST}/offer", "T", 2)
        assert page.fetched_at == START + timedelta(days=1)
        assert page.markdown == store.text(f"{HOST}/offer")
        assert "It costs 11.49 today." in page.markdown
        assert list(page.by_id().values()) == list(page.blocks)
        assert page.as_json()["blocks"][0]["id"] in page.by_id()
        lacking = replace(format_of("application/pdf"), lacks=("the text of PDF", "pdf"))
        monkeypatch.setattr(documents, "format_of", lambda _type: lacking)
        crawled.execute("UPDATE version SET content_type = 'application/pdf'")
        assert "needs the extra 'pdf'" in (store.page(f"{HOST}/offer").missing or "")


def test_pages_changes_and_chunks_are_listed(crawled: SmallStore) -> None:
    crawled.execute("UPDATE page SET title = 'An offer' WHERE url LIKE '%/offer'")
    with freshet.Store(crawled.path) as store:
        assert repr(store) == f"<Store {crawled.path}>"
        listed = {each.url.removeprefix(HOST): each.has_document for each in store.pages()}
        assert listed == {"/offer": True, "/old-offer": False, "/pruned": True, "/gone": False}
        (offer,) = store.pages(f"{HOST}/of")
        (chunk,) = store.chunks(f"{HOST}/of")
        assert (offer.title, offer.visited_at) == ("An offer", None)
        assert chunk == store.page(f"{HOST}/offer").chunks[0]
        assert repr(chunk).startswith(f"<Chunk {chunk.id} of {HOST}/offer#")
        assert len(repr(store.page(f"{HOST}/offer"))) < 120
        (change,) = store.changes(START)
        assert (change.url, change.changed_at) == (f"{HOST}/offer", START + timedelta(days=1))
        assert len(store.changes(START - timedelta(days=1), all=True)) > 1
        with pytest.raises(ValueError, match="nonsense"):
            store.changes("nonsense")


def test_all_pages_are_listed_in_parts(
    crawled: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freshet.crawler.read.store._LISTED", 1)
    with freshet.Store(crawled.path) as store:
        assert len([*store.pages()]) == 4


@pytest.mark.parametrize(("meanwhile", "made"), [("SELECT 1", 1), ("DELETE FROM version", 0)])
def test_what_cannot_be_parsed_is_cached_but_not_what_is_forgotten_meanwhile(
    crawled: SmallStore, monkeypatch: pytest.MonkeyPatch, meanwhile: str, made: int
) -> None:
    async def parsed(*_: object) -> Unparsable:
        crawled.execute(meanwhile)
        return Unparsable("too long")

    monkeypatch.setattr(Parser, "document", parsed)
    for _ in range(made + 1):
        with freshet.Store(crawled.path) as store:
            assert "too long" in (store.page(f"{HOST}/offer").missing or "")
        monkeypatch.setattr(Parser, "document", AsyncMock(side_effect=AssertionError))
    assert len(rows(documents.cache_of(crawled.path), "SELECT * FROM document")) == made


def test_a_lack_of_memory_or_time_is_not_cached(
    crawled: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks = AsyncMock(return_value=Unparsable("MemoryError: ", is_lack=True))
    with monkeypatch.context() as patch, freshet.Store(crawled.path) as store:
        patch.setattr(Parser, "document", lacks)
        for _ in range(2):
            assert "MemoryError" in (store.page(f"{HOST}/offer").missing or "")
    # One reader does not try again and again.
    assert lacks.await_count == 1
    assert rows(documents.cache_of(crawled.path), "SELECT * FROM document") == []
    with freshet.Store(crawled.path) as store:
        assert store.page(f"{HOST}/offer").missing is None


def test_a_document_follows_the_selectors_of_its_site(crawled: SmallStore, tmp_path: Path) -> None:
    def told(**selectors: list[str]) -> str:
        config = tmp_path / "freshet.toml"
        table = "\n".join(f"{name} = {value}" for name, value in selectors.items())
        config.write_text(f"[[sites]]\nmatch = 'one.example'\n{table}\n")
        with freshet.Store(crawled.path, config=config) as store:
            (change,) = [it for it in store.changefeed(docs=True) if it.id == f"{HOST}/offer"]
            assert change.doc is not None
            assert change.doc.text == store.page(f"{HOST}/offer").text
            return change.doc.text

    whole = told()
    assert "Delivery" in whole
    # The cache knows by which selectors a document was made.
    assert told(include=["p:first-of-type"]) == "It costs 11.49 today."
    assert "Delivery" not in told(ignore=["p:last-of-type"])
    assert told() == whole
    # What a button in a browser keeps in the store counts, too.
    crawled.insert("site_setting", match="one.example", key="ignore", value='["h1"]', at=T0)
    assert "Heading" in whole
    assert "Heading" not in told()


@pytest.mark.parametrize(
    ("wanted", "number"),
    [(1, 1), (3, 3), (-1, 2), (-2, 1), (START + timedelta(hours=30), 2), ("2025-10-09T12:00Z", 1)],
)
def test_a_version_is_a_number_or_a_moment(
    crawled: SmallStore, wanted: int | str | datetime, number: int
) -> None:
    with freshet.Store(crawled.path) as store:
        assert store.page(f"{HOST}/offer", wanted).version == number
        assert store.page(f"{HOST}/old-offer", version=wanted).version == number


def test_a_search_finds_what_is_indexed_and_needs_an_index(crawled: SmallStore) -> None:
    with freshet.Store(crawled.path) as store:
        with pytest.raises(freshet.StoreError, match="`freshet search --index on` makes one"):
            store.search("costs")
        assert console("search", "--index", "on", "--db", crawled.path).exit_code == 0
        (found,) = store.search("it COSTS 11", site="one.example", since=START - timedelta(1))
        assert (found.url, found.title, found.changed_at) == (f"{HOST}/offer", "", START)
        assert [found.snippet[begin:end] for begin, end in found.marks] == ["It", "costs", "11"]
        assert store.search("delivery", since=START + timedelta(1)) == []
        assert store.search("delivery", limit=1, by_importance=True)[0].url == found.url
        for wrong in ({"limit": 0}, {"since": "soon"}, {"site": "?"}):
            with pytest.raises(ValueError, match=r"limit=0: at least 1|not a moment|not a host"):
                store.search("a", **wrong)


def test_a_history_is_newest_first_and_a_difference_that_of_the_last_change(
    crawled: SmallStore,
) -> None:
    with freshet.Store(crawled.path) as store:
        visits = store.history(f"{HOST}/old-offer")
        assert [each.kind for each in visits] == ["unchanged", "changed", "new"]
        assert visits[-1].visited_at == START
        assert store.history(f"{HOST}/offer", limit=1) == visits[:1]
        last = store.diff(f"{HOST}/offer")
        assert (last.before.number, last.after.number) == (1, 2)
        assert last.after.fetched_at == START + timedelta(days=1)
        assert [each.change for each in last.blocks] == ["kept", "edited", "kept"]
        assert store.diff(f"{HOST}/offer", all=True).after.number == 3
        assert store.diff(f"{HOST}/offer", 2, 3).is_empty


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda it: it.page(f"{HOST}/off"), freshet.UnknownPage, "the nearest on that host"),
        (lambda it: it.page("ftp://one.example"), ValueError, "ftp"),
        (lambda it: it.page(f"{HOST}/offer", 4), ValueError, "accepted are 1 to 3, or from"),
        (lambda it: it.page(f"{HOST}/offer", 0), ValueError, "version 0: accepted"),
        (lambda it: it.page(f"{HOST}/offer", "1999-01-01"), freshet.UnknownPage, "the first is of"),
        (lambda it: it.text(f"{HOST}/pruned"), freshet.UnknownPage, "are not kept"),
        (lambda it: it.diff(f"{HOST}/pruned"), freshet.UnknownPage, "a diff needs two"),
        (lambda it: list(it.changefeed("yesterday")), ValueError, "is no cursor"),
        (lambda it: list(it.changefeed(f"{'0' * 16}-1")), freshet.CursorGone, "another store"),
    ],
)
def test_an_error_is_one_line(
    crawled: SmallStore,
    call: Callable[[freshet.Store], object],
    error: type[Exception],
    message: str,
) -> None:
    with freshet.Store(crawled.path) as store, pytest.raises(error, match=message) as caught:
        call(store)
    assert "\n" not in str(caught.value)


def test_a_store_that_cannot_be_opened_leaves_no_thread(tmp_path: Path) -> None:
    with pytest.raises(freshet.StoreError, match="there is no such file"):
        freshet.Store(tmp_path / "none.db")
    (tmp_path / "other.db").write_bytes(b"text")
    with pytest.raises(freshet.StoreError, match="it is not a Freshet store"):
        freshet.Store(tmp_path / "other.db")
    (config := tmp_path / "wrong.toml").write_text("[parse]\ntime_limit_s = -1\n")
    with pytest.raises(freshet.ConfigError) as caught:
        freshet.Store(tmp_path / "other.db", config=config)
    result = console("text", HOST, "--db", tmp_path / "other.db", "--config", config)
    assert (result.exit_code, result.stderr) == (2, f"freshet: {caught.value}\n")
    assert store_threads() == []
    assert sorted(each.name for each in tmp_path.iterdir()) == ["other.db", "wrong.toml"]


def test_the_store_is_opened_read_only(crawled: SmallStore) -> None:
    async def write(made, typed):  # type: ignore[no-untyped-def]
        async with page.snapshot(made.path) as db:
            await db.execute("PRAGMA query_only = OFF")
            await db.execute("DELETE FROM page")

    with (
        freshet.Store(crawled.path) as store,
        pytest.raises(freshet.StoreError, match="it may not be written"),
    ):
        store._read("", write)


def test_many_threads_may_read_at_once(crawled: SmallStore) -> None:
    with freshet.Store(crawled.path) as store, ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(
                lambda n: (store.page(f"{HOST}/offer", n % 3 + 1).version, *store.changefeed()),
                range(48),
            )
        )
    assert [(first, len(rest)) for first, *rest in found] == [(n % 3 + 1, 3) for n in range(48)]


def test_changes_come_in_order_and_go_on_from_a_cursor(crawled: SmallStore) -> None:
    with freshet.Store(crawled.path) as store:
        changed, pruned, gone = store.changefeed()
        assert (changed.id, changed.kind, changed.deleted) == (f"{HOST}/offer", "changed", False)
        assert changed.at == START
        assert changed.doc is not None
        assert changed.doc == store.page(f"{HOST}/offer")
        assert pruned.doc is not None
        assert "are not kept" in str(pruned.doc.missing)
        assert (gone.deleted, gone.doc) == (True, None)
        assert list(store.changefeed(changed.seq)) == [pruned, gone]
        assert list(store.changefeed("now")) == []
        assert [each.doc for each in store.changefeed(docs=False)] == [None] * 3
        assert [each.id for each in store.changefeed(match="*/go*")] == [f"{HOST}/gone"]
        # Iterated again, it goes on after the last change that was handed out.
        changes = store.changefeed(match="*e*")
        for first in changes:
            assert changes.cursor == first.seq
            break
        assert [each.kind for each in changes] == ["new", "gone"]
        assert list(changes) == []
        tell(crawled, crawled.page("/later"), "gone", None)
        assert [each.id for each in changes] == [f"{HOST}/later"]


async def test_coroutines_wait_for_commits_and_hold_up_nobody(crawled: SmallStore) -> None:
    with freshet.Store(crawled.path) as store:
        emptied: list[str] = []
        lost = store.changefeed(f"{'0' * 16}-1", start_anew=lambda: emptied.append("once"))
        before = [each async for each in lost]
        assert ([each.kind for each in before], emptied) == (["changed", "new", "gone"], ["once"])
        turns = 0

        async def beside() -> None:
            nonlocal turns
            while turns < 3:
                turns += 1
                await asyncio.sleep(0)
            tell(crawled, crawled.page("/later"), "gone", None)

        task = asyncio.create_task(beside())
        async with asyncio.timeout(60):
            async for change in store.changefeed(before[-1].seq, wait=True):
                assert change.id == f"{HOST}/later"
                break
        await task
        assert turns == 3


async def test_a_cancelled_consumer_leaves_the_store_as_it_was(crawled: SmallStore) -> None:
    with freshet.Store(crawled.path) as store:
        task = asyncio.ensure_future(anext(aiter(store.changefeed("now", wait=True))))
        await asyncio.sleep(0)
        assert store.page(f"{HOST}/offer").version == 2
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert store.page(f"{HOST}/offer").version == 2
    assert store_threads() == []


async def test_closing_ends_threads_and_coroutines_that_wait(crawled: SmallStore) -> None:
    store = freshet.Store(crawled.path)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(list, store.changefeed("now", wait=True))
        while not waiting.running():
            pass
        store.page(f"{HOST}/offer")
        task = asyncio.ensure_future(anext(aiter(store.changefeed("now", wait=True))))
        await asyncio.sleep(0)
        store.close()
        with pytest.raises(freshet.StoreError, match="was closed"):
            waiting.result()
    with pytest.raises(freshet.StoreError, match="was closed"):
        await task
    with pytest.raises(freshet.StoreError, match="was closed"):
        store.page(f"{HOST}/offer")
    store.close()


def test_a_forgotten_store_leaves_no_thread_and_no_process(crawled: SmallStore) -> None:
    store = freshet.Store(crawled.path)
    store.page(f"{HOST}/offer")
    process = store._worker._parser._first._process
    assert process is not None
    changes = iter(store.changefeed())
    assert next(changes).kind == "changed"
    assert store_threads()
    del store, changes
    gc.collect()
    assert store_threads() == []
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


#: Every so many instructions of a wait is interrupted: all of them take a minute.
STEP = 5


@pytest.mark.filterwarnings("ignore:.*was never awaited", "ignore:.*coroutine object _Worker")
def test_an_interrupt_at_any_instruction_of_a_wait_stops_no_other_thread(
    crawled: SmallStore,
) -> None:
    hit = STEP
    while interrupted(crawled.path, hit):
        hit += STEP
    assert hit > 40 * STEP


def interrupted(path: Path, hit: int) -> bool:
    """Wait for changes, interrupted at an instruction; return whether there were so many."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        nonlocal count
        if frame.f_code.co_filename not in INTERRUPTED:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            count += 1
            if count == hit:
                raise KeyboardInterrupt
        return trace

    store, answers = freshet.Store(path), threading.Event()
    changes = store.changefeed("now", wait=0.01)
    sys.settrace(trace)
    try:
        # RuntimeError: a lock of a library that the interrupt caught half taken.
        with suppress(KeyboardInterrupt, RuntimeError):
            list(changes)
    finally:
        sys.settrace(None)
    store._worker._loop.call_soon_threadsafe(answers.set)
    if not answers.wait(30):
        store.close.detach()  # It would wait for ever.
        pytest.fail(f"after instruction {hit} the worker's thread stands still")
    store.close()
    return count >= hit


INTERRUPTED = {
    module.__file__ for module in (store_module, futures_base, threading, tasks, base_events)
}


PROGRAM = """
import sys, freshet
store = freshet.Store(sys.argv[1])
print(len(list(store.changefeed())), store._worker._parser._first._process.pid, flush=True)
if sys.argv[2] == "wait":
    for change in store.changefeed("now", wait=True):
        pass
"""


@pytest.mark.parametrize(("what", "code"), [("wait", -signal.SIGINT), ("end", 0)])
def test_a_program_ends_at_once_also_by_ctrl_c_and_without_closing(
    crawled: SmallStore, what: str, code: int
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, crawled.path, what],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stdout is not None
        count, parser = map(int, program.stdout.readline().split())
        assert count == 3
        if what == "wait":
            program.send_signal(signal.SIGINT)
        try:
            _, errors = program.communicate(timeout=60)
        finally:
            program.kill()
    assert program.returncode == code
    assert errors.count("Traceback") == errors.count("\nKeyboardInterrupt\n") == (what == "wait")
    with pytest.raises(ProcessLookupError):
        os.kill(parser, 0)
