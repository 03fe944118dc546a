"""The writer acknowledges what has committed, and nothing else."""

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from freshet.storage.connection import encodable
from freshet.storage.errors import StoreError, StoreUnavailable
from freshet.storage.records import Acknowledged, Entry, StoreUpdate, Validators, Visit, WriterHost
from freshet.storage.tables import observations
from freshet.storage.writer import Writer
from tests.storage.crawl_store import START, CrawlStore, captured, crawl_store, visit
from tests.storage.small_store import rows

T = TypeVar("T")


def committed(store: CrawlStore) -> int:
    """The observations that anybody else can see, read over a connection of its own."""
    return len(rows(store.database.path, "SELECT 1 FROM observation"))


async def visits(store: CrawlStore, n: int) -> list[Visit]:
    await store.admit(*(f"/{i}" for i in range(n)))
    return [visit(due) for due in await store.due()]


async def write_all(writer: Writer, entries: Sequence[Entry]) -> None:
    for entry in entries:
        await writer.submit(entry)
    writer.finish()
    await writer.run()


class Ledger(WriterHost):
    """What was acknowledged, and how much had been committed by then."""

    def __init__(self, store: CrawlStore) -> None:
        self._store = store
        self.pages: list[int] = []
        self.entries: list[Entry] = []
        self.batches: list[int] = []
        self._grew = asyncio.Event()

    async def has(self, pages: int) -> None:
        """Wait until so many pages were acknowledged."""
        while len(self.pages) < pages:
            self._grew.clear()
            await self._grew.wait()

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        self.pages += [a.entry.due.page_id for a in batch if isinstance(a.entry, Visit)]
        self.entries += [a.entry for a in batch]
        self.batches.append(len(batch))
        self._grew.set()
        assert committed(self._store) == len(self.pages)


async def test_every_entry_is_acknowledged_in_order_after_its_commit(store: CrawlStore) -> None:
    entries, ledger = await visits(store, 25), Ledger(store)
    writer = Writer(store.database, store.tables, ledger, batch=4)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(writer.run())
        for entry in entries:
            await writer.submit(entry)
        writer.finish()
    assert ledger.pages == [entry.due.page_id for entry in entries]
    assert max(ledger.batches) <= 4
    assert await store.due() == []


async def test_what_has_come_in_meanwhile_is_one_transaction(store: CrawlStore) -> None:
    entries, ledger = await visits(store, 9), Ledger(store)
    writer = Writer(store.database, store.tables, ledger, batch=10)
    await write_all(writer, entries)
    assert ledger.batches == [9]


@pytest.mark.parametrize(("most", "batches"), [(9, [7]), (3, [3, 3, 1])])
async def test_a_batch_grows_until_it_is_full_or_somebody_waits_for_it(
    store: CrawlStore, monkeypatch: pytest.MonkeyPatch, most: int, batches: list[int]
) -> None:
    entries, ledger = await visits(store, 7), Ledger(store)
    monkeypatch.setattr("freshet.storage.writer._GROWS_S", 3_600.0)
    monkeypatch.setattr("freshet.storage.writer._SOON_S", 1_800.0)
    writer = Writer(store.database, store.tables, ledger, batch=most)
    # Nobody waits yet: the next batch grows all the same.
    writer.hurry()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(writer.run())
        for entry in entries:
            await writer.submit(entry)
            for _ in range(9):
                await asyncio.sleep(0)
        assert len(ledger.batches) <= len(entries) // most
        writer.hurry()
        await ledger.has(len(entries))
        writer.finish()
    assert ledger.batches == batches


@pytest.mark.parametrize(("seconds", "soon"), [(0.0, False), (3_600.0, True)])
async def test_a_batch_does_not_grow_for_long(
    store: CrawlStore, monkeypatch: pytest.MonkeyPatch, seconds: float, soon: bool
) -> None:
    entries, ledger = await visits(store, 2), Ledger(store)
    monkeypatch.setattr("freshet.storage.writer._SOON_S", 0.0)
    monkeypatch.setattr("freshet.storage.writer._GROWS_S", seconds)
    writer = Writer(store.database, store.tables, ledger, batch=9)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(writer.run())
        for number, entry in enumerate(entries, 1):
            await writer.submit(entry)
            # The first is wanted before it may grow, the second while it grows.
            for _ in range(9 * number - 9):
                await asyncio.sleep(0)
            if soon:
                writer.hurry(soon=True)
            await ledger.has(number)
        writer.finish()
    assert ledger.batches == [1, 1]


async def test_a_full_queue_holds_its_senders_up(store: CrawlStore) -> None:
    entries, ledger = await visits(store, 4), Ledger(store)
    writer = Writer(store.database, store.tables, ledger, batch=3)
    for entry in entries[:3]:
        await writer.submit(entry)
    fourth = asyncio.create_task(writer.submit(entries[3]))
    await asyncio.sleep(0)
    assert not fourth.done()
    running = asyncio.create_task(writer.run())
    await fourth
    writer.finish()
    await running
    assert len(ledger.pages) == 4


async def test_after_a_failure_nothing_is_acknowledged_or_taken_for_known(
    store: CrawlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.admit("/")
    seen, ledger = captured(await store.taken("/"), to=["https://new.example/"]), Ledger(store)
    writer = Writer(store.database, store.tables, ledger, batch=4)

    def disk_full(*_: object) -> None:
        raise sqlite3.OperationalError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(observations, "append", disk_full)
        await writer.submit(seen)
        with pytest.raises(StoreError):
            await writer.run()
    assert (ledger.pages, committed(store)) == ([], 0)
    assert "https://new.example/" not in store.tables.settled
    await write_all(writer, [seen])
    assert "https://new.example/" in store.tables.settled
    assert ledger.pages == [seen.due.page_id]
    assert await store.value("SELECT origin FROM host WHERE id = 2") == "https://new.example"


@pytest.mark.parametrize("poison", [2**70, object()])
async def test_an_entry_that_cannot_be_written_takes_no_other_with_it(
    store: CrawlStore, poison: Any, caplog: pytest.LogCaptureFixture
) -> None:
    entries, ledger = await visits(store, 3), Ledger(store)
    bad = replace(entries[1].observation, size_bytes=poison)
    note = StoreUpdate(START, fetches=7, seeds=((poison, "x"),))
    writer = Writer(store.database, store.tables, ledger, batch=9)
    await write_all(writer, (entries[0], replace(entries[1], observation=bad), note, entries[2]))
    kinds = await store.rows("SELECT kind, reason = 'internal' FROM observation ORDER BY id")
    assert kinds == [("unchanged", None), ("failed", 1), ("unchanged", None)]
    assert await store.value("SELECT fetches FROM crawl_run") == 10
    assert ledger.entries[2] is note
    assert [r.getMessage().partition(" (")[0] for r in caplog.records] == [
        f"the visit to {entries[1].due.url} cannot be stored",
        "a note of the crawler cannot be stored",
    ]


@example("a\0\\\0\ud800")
@given(st.text(st.characters(), min_size=1))
@settings(max_examples=25, deadline=None)
def test_any_text_of_a_visit_can_be_stored_and_read(text: str) -> None:
    async def stored(folder: str) -> None:
        async with crawl_store(Path(folder, "db")) as store:
            await store.admit("/", "/a")
            seen = captured(await store.taken("/"), to=["/a"])
            assert seen.capture is not None
            assert seen.links is not None
            names = "content_type", "encoding", "title", "language", "canonical_url"
            texts: dict[str, Any] = dict.fromkeys(names, text)
            entry = replace(
                seen,
                observation=replace(seen.observation, reason=text, detail=text),
                capture=replace(seen.capture, **texts),
                links=replace(seen.links, rels=(text,), anchors=(text,)),
                validators=Validators(text, text),
                retry_at=START + 1,
            )
            await store.apply(entry)
            kept = encodable(text)
            rows = await store.rows("SELECT title, etag, language FROM page WHERE id = 1")
            assert rows == [(kept, kept, kept)]
            assert await store.rows("SELECT rel, anchor FROM link") == [(kept, kept)]
            assert await store.value("SELECT detail FROM observation") == kept
            assert (await store.due(START + 1))[0].validators.etag == kept

    with TemporaryDirectory() as folder:
        asyncio.run(stored(folder))


def room(pages: int) -> Callable[[sqlite3.Connection], object]:
    return lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()


async def test_a_store_that_is_unavailable_is_waited_for_and_the_batch_tried_again(
    store: CrawlStore, tmp_path: Path
) -> None:
    waits: list[str] = []

    class Patient(Ledger):
        async def endure(self, work: Callable[[], Awaitable[T]]) -> T:
            try:
                return await work()
            except StoreUnavailable as error:
                waits.append(error.why)
                assert self.pages == []
            if len(waits) == 2:
                await store.database.at_once(room(1 << 30))
            return await self.endure(work)

    entries, ledger = await visits(store, 3), Patient(store)
    writer = Writer(store.database, store.tables, ledger, batch=4)
    await store.database.at_once(room(1))
    await write_all(writer, (replace(entries[0], memory=bytes(100_000)), *entries[1:]))
    assert waits == [f"{tmp_path / 'db'}: the disk is full"] * 2
    assert ledger.batches == [3]


async def test_what_must_not_be_behind_the_store_is_secured_before_each_commit(
    store: CrawlStore, tmp_path: Path
) -> None:
    seen: list[int] = []

    class Archiving(Ledger):
        async def secure(self) -> None:
            seen.append(committed(store))
            if len(seen) < 3:
                raise StoreUnavailable(tmp_path, "the disk is full")

        async def endure(self, work: Callable[[], Awaitable[T]]) -> T:
            try:
                return await work()
            except StoreUnavailable:
                assert self.pages == []
            return await self.endure(work)

    entries, ledger = await visits(store, 3), Archiving(store)
    writer = Writer(store.database, store.tables, ledger, batch=4)
    await write_all(writer, entries)
    assert seen == [0, 0, 0]
    assert ledger.batches == [3]


async def test_a_writer_that_is_cancelled_in_a_transaction_rolls_it_back(
    store: CrawlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (entry,), ledger = await visits(store, 1), Ledger(store)
    writer = Writer(store.database, store.tables, ledger, batch=4)
    reached, may_end = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def hang(*_: object) -> None:
        loop.call_soon_threadsafe(reached.set)
        may_end.wait()

    with monkeypatch.context() as patched:
        patched.setattr(observations, "append", hang)
        running = asyncio.create_task(writer.run())
        await writer.submit(entry)
        await reached.wait()
        running.cancel()
        loop.call_soon(may_end.set)
        with pytest.raises(asyncio.CancelledError):
            await running
    assert ledger.pages == []
    assert [due.page_id for due in await store.due()] == [entry.due.page_id]
    await store.apply(replace(entry))
    assert committed(store) == 1


async def test_a_batch_is_written_in_one_call_on_the_writers_thread(
    store: CrawlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.admit("/", "/a", "/b")
    entries = [captured(due, due.url, to=["/a", "/new"]) for due in await store.due()]
    ledger, calls = Ledger(store), list[object]()
    submit = store.database.thread.submit

    def counted(work: Callable[..., object], *rest: object) -> object:
        calls.append(work)
        return submit(work, *rest)

    monkeypatch.setattr(store.database.thread, "submit", counted)
    writer = Writer(store.database, store.tables, ledger, batch=4)
    await write_all(writer, entries)
    assert ledger.batches == [3]
    assert len(calls) == 1
