"""The sender: what is due goes out in order, once, and no receiver holds up another."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import pytest

from freshet.crawler.extensions.alerts import tables as alerts
from freshet.crawler.extensions.alerts.messages import MessageComposer, stored_importances
from freshet.crawler.extensions.alerts.outbox import Outbox
from freshet.crawler.extensions.alerts.receivers import Delivery
from freshet.crawler.extensions.alerts.recording import AlertRecorder
from freshet.crawler.extensions.alerts.rules import Channel
from freshet.crawler.extensions.alerts.settings import AlertMode, Alerts
from freshet.crawler.extensions.alerts.tables import AlertFilter, Message
from freshet.crawler.extensions.readers.audience import note_opening
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.network import parser_of
from freshet.storage.entries import Kind
from tests.integration.quick import quick
from tests.storage.crawl_store import START, CrawlStore, captured, crawl_store, visit, writing

HOUR_S = 3_600.0
TAKEN = Delivery("taken")
DOWN = Delivery("failed", "HTTP 503")


@dataclass(slots=True)
class Scripted:
    """Takes messages, but for the answers that a test wants first."""

    answers: list[Delivery] = field(default_factory=list)
    heard: list[Message] = field(default_factory=list)
    hangs: asyncio.Event | None = None
    arrived: asyncio.Queue[str] = field(default_factory=asyncio.Queue)

    async def deliver(self, message: Message, now: float) -> Delivery:
        self.heard.append(message)
        self.arrived.put_nowait(message.key)
        if self.hangs is not None:
            await self.hangs.wait()
        return self.answers.pop(0) if self.answers else TAKEN

    async def close(self) -> None: ...

    @property
    def said(self) -> list[dict[str, Any]]:
        return [json.loads(each.body) for each in self.heard]


@dataclass(slots=True)
class Desk:
    """A store with pages, and an outbox for its rules."""

    store: CrawlStore
    outbox: Outbox
    receivers: dict[str, Scripted]
    clock: VirtualClock

    async def see(self, *paths: str, at: float | None = None) -> None:
        """Find new pages."""
        at = self.clock.now() if at is None else at
        await self.store.admit(*paths, at=at)
        for path in paths:
            await self.store.apply(captured(await self.store.taken(path, at), path, at=at))

    async def send(self, later_s: float = 0.0) -> None:
        self.clock.go_on_from(self.clock.now() + later_s)
        await self.outbox.send_due()

    async def states(self) -> list[str]:
        return [row[0] for row in await self.store.rows("SELECT state FROM alert_message")]


def channel(name: str, mode: AlertMode = "immediate", target: str = "") -> Channel:
    return Channel(name, f"https://{target or name}.example/", None, mode)


@asynccontextmanager
async def desk(path: Path, *channels: Channel, **changes: object) -> AsyncIterator[Desk]:
    settings = quick(**{f"alerts__{key}": value for key, value in changes.items()})
    clock = VirtualClock(START)
    receivers: dict[str, Scripted] = {}

    def receiver_of(wanted: Channel) -> Scripted:
        return receivers.setdefault(wanted.url, Scripted())

    async with crawl_store(path) as store:
        store.tables.recorders = [AlertRecorder(rules(channels))]
        parser = parser_of(settings)
        importances = stored_importances(store.database, settings)
        composing = MessageComposer(store.database, parser, importances, clock, settings)
        alerts = settings.group(Alerts)
        outbox = Outbox(store.database, composing, receiver_of, alerts, clock, Random(1))
        outbox.obey(alerts, channels)
        by_name = {each.name: receivers[each.url] for each in channels}
        try:
            yield Desk(store, outbox, by_name, clock)
        finally:
            await outbox.close()
            await parser.close()


def rules(channels: Sequence[Channel]) -> list[AlertFilter]:
    kinds: frozenset[Kind] = frozenset({"new", "gone"})
    return [AlertFilter(each.name, kinds, re.compile(".*")) for each in channels]


async def test_what_was_found_is_told_once_in_its_order(tmp_path: Path) -> None:
    async with desk(tmp_path / "db", channel("a")) as it:
        await it.see("/1", "/2", "/3")
        await it.send()
        await it.send(60)
        heard = it.receivers["a"].said
        assert [each["type"] for each in heard] == ["page.new"] * 3
        assert [each["data"]["url"][-2:] for each in heard] == ["/1", "/2", "/3"]
        assert [each["data"]["id"] for each in heard] == [d.key for d in it.receivers["a"].heard]
        assert await it.states() == ["sent"] * 3
        assert await it.store.rows("SELECT body FROM alert_message") == [(None,)] * 3


async def test_an_alert_says_between_which_looks_it_happened(tmp_path: Path) -> None:
    async with desk(tmp_path / "db", channel("a")) as it:
        await it.see("/1")
        due = await it.store.rows("SELECT id FROM page")
        first = captured(replace(await taken(it.store, "/1"), page_id=due[0][0]), "x")
        await it.store.apply(visit(first.due, "gone", START + 2 * HOUR_S))
        await it.send(2 * HOUR_S)
        new, gone = (each["data"] for each in it.receivers["a"].said)
        assert (new["last_seen"], new["seen"]) == (None, "2027-01-15T08:00:00.000000Z")
        assert (gone["last_seen"], gone["seen"]) == (new["seen"], "2027-01-15T10:00:00.000000Z")
        assert (gone["kind"], gone["status"], gone["importance"]) == ("gone", 200, 1.0)


async def taken(store: CrawlStore, path: str) -> Any:
    before = store.tables.recorders
    await store.new_run(START + 1, START + 1)
    store.tables.recorders = before
    return await store.taken(path, START + 1)


async def test_one_receiver_that_is_down_gets_all_of_it_later_in_order(tmp_path: Path) -> None:
    async with desk(tmp_path / "db", channel("a")) as it:
        it.receivers["a"].answers = [DOWN, DOWN]
        await it.see("/1", "/2")
        await it.send()
        await it.send()
        assert len(it.receivers["a"].heard) == 1
        for _ in range(3):
            await it.send(HOUR_S)
        urls = [each["data"]["url"][-2:] for each in it.receivers["a"].said]
        assert urls == ["/1", "/1", "/1", "/2"]
        assert len({message.key for message in it.receivers["a"].heard}) == 2
        assert await it.states() == ["sent"] * 2


async def test_pauses_grow_and_the_receiver_may_ask_for_longer_ones(tmp_path: Path) -> None:
    async with desk(tmp_path / "db", channel("a"), back_off_jitter=0.0) as it:
        asking = replace(DOWN, retry_after_s=600.0)
        it.receivers["a"].answers = [DOWN, DOWN, asking, replace(DOWN, retry_after_s=1e9)]
        await it.see("/1")
        pauses = []
        for _ in range(4):
            await it.send()
            next_at = float(await it.store.value("SELECT next_at FROM alert_message"))
            pauses.append(next_at - it.clock.now())
            it.clock.go_on_from(next_at)
        assert pauses == [5.0, 20.0, 600.0, HOUR_S]


async def test_a_message_is_given_up_after_its_time_and_sent_when_asked_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with desk(tmp_path / "db", channel("a"), give_up_s=2 * HOUR_S) as it:
        it.receivers["a"].answers = [DOWN] * 4
        await it.see("/1")
        for _ in range(4):
            await it.send(1.5 * HOUR_S)
        assert await it.states() == ["failed"]
        assert caplog.text.count("failed (HTTP 503)") == 1
        assert caplog.text.count("gave up a message (HTTP 503)") == 1
        with writing(it.store.database) as connection:
            assert alerts.requeue(connection, None, it.clock.now()) == 1
        it.receivers["a"].answers = []
        await it.send()
        assert await it.states() == ["sent"]
        assert len({message.key for message in it.receivers["a"].heard}) == 1


async def test_a_message_that_is_refused_does_not_hold_up_the_next(tmp_path: Path) -> None:
    async with desk(tmp_path / "db", channel("a")) as it:
        it.receivers["a"].answers = [Delivery("refused", "HTTP 400")]
        await it.see("/1", "/2")
        await it.send()
        assert await it.states() == ["failed", "sent"]


async def test_a_receiver_that_hangs_holds_up_nobody(tmp_path: Path) -> None:
    async with desk(tmp_path / "db", channel("a"), channel("b")) as it:
        it.receivers["a"].hangs = asyncio.Event()
        it.outbox.start()
        for path in ("/1", "/2"):
            await it.see(path)
            it.outbox.committed()
        await it.receivers["a"].arrived.get()
        for _ in range(2):
            await it.receivers["b"].arrived.get()
        assert len(it.receivers["a"].heard) == 1
        it.receivers["a"].hangs.set()
        await it.outbox.finish(asyncio.Event())
        assert await it.states() == ["sent"] * 4


async def test_who_is_told_to_stop_waits_for_no_more_than_the_message_under_way(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path / "db", channel("a")) as it:
        await it.see("/1", "/2")
        hanging = it.receivers["a"].hangs = asyncio.Event()
        it.outbox.start()
        await it.receivers["a"].arrived.get()
        told_to_stop = asyncio.Event()
        told_to_stop.set()
        finishing = asyncio.create_task(it.outbox.finish(told_to_stop))
        for _ in range(10):
            await asyncio.sleep(0)
        hanging.set()
        await finishing
        assert await it.states() == ["sent"]
        assert len(it.receivers["a"].heard) == 1


async def test_a_change_whose_bytes_are_damaged_is_told_without_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with desk(tmp_path / "db", channel("a")) as it:
        it.store.tables.recorders = [
            AlertRecorder([AlertFilter("a", frozenset({"changed"}), re.compile(".*"))])
        ]
        await it.see("/1")
        first = captured(await taken(it.store, "/1"), "two", at=START + 5)
        await it.store.apply(first)
        await it.send(10)
        assert it.receivers["a"].said[-1]["data"]["summary"] == "words changed within blocks"
        assert "no summary of https://a.example/1" in caplog.text


async def test_killed_between_the_answer_and_its_record_the_same_goes_out_again(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path / "db", channel("a")) as it:
        await it.see("/1")
        it.receivers["a"].hangs = asyncio.Event()
        sending = asyncio.create_task(it.outbox.send_due())
        await it.receivers["a"].arrived.get()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        assert await it.states() == ["pending"]
        it.receivers["a"].hangs = None
        await it.send(30)
        first, again = it.receivers["a"].heard
        assert first == again
        assert await it.states() == ["sent"]


async def test_a_digest_tells_of_an_hour_when_that_is_over(tmp_path: Path) -> None:
    async with desk(tmp_path / "db", channel("a", "hourly")) as it:
        await it.see("/1", "/2")
        await it.send(HOUR_S - 1)
        assert it.receivers["a"].heard == []
        await it.see("/3")
        await it.send(1)
        await it.see("/4")
        await it.send(HOUR_S - 1)
        (message,) = it.receivers["a"].said
        assert message["type"] == "digest"
        assert (message["data"]["from"][11:19], message["data"]["to"][11:19]) == (
            "08:00:00", "09:00:00",
        )  # fmt: skip
        urls = [each["url"][-2:] for each in message["data"]["changes"]]
        assert urls == ["/1", "/2", "/3"]


async def test_a_digest_with_a_limit_has_the_pages_that_were_opened_most(tmp_path: Path) -> None:
    async with desk(tmp_path / "db", replace(channel("a", "hourly"), most=2)) as it:
        it.outbox.composing.settings = quick(presentation__record=True, presentation__links=True)
        await it.see("/a/0", "/b/1", "/a/1")
        await it.send(HOUR_S)
        told = it.receivers["a"].said[0]["data"]
        assert [each["url"][-4:] for each in told["changes"]] == ["/a/0", "/b/1"]
        assert told["left_out"] == 1
        assert [each["is_new"] for each in told["changes"]] == [False, False]
        shown = await it.store.rows("SELECT made_for, place FROM showing ORDER BY place")
        assert [tuple(each) for each in shown] == [("digest", 1), ("digest", 2)]
        name = int(told["changes"][1]["open"].removeprefix("/o/"), 16)
        await note_opening(it.store.database.path, name, it.clock.now())
        # What is new in the section in which somebody opened a page goes first.
        await it.see("/a/2", "/b/2")
        await it.send(HOUR_S)
        assert [each["url"][-4:] for each in it.receivers["a"].said[1]["data"]["changes"]] == [
            "/b/2", "/a/2",
        ]  # fmt: skip


async def test_digests_that_fell_due_while_nobody_sent_go_out_once_each(tmp_path: Path) -> None:
    async with desk(tmp_path / "db", channel("a", "hourly")) as it:
        await it.see("/1", at=START)
        await it.see("/2", at=START + HOUR_S)
        await it.send(50 * HOUR_S)
        await it.send(HOUR_S)
        told = [[c["url"][-2:] for c in m["data"]["changes"]] for m in it.receivers["a"].said]
        assert told == [["/1"], ["/2"]]


async def test_rules_that_go_to_one_receiver_share_its_order(tmp_path: Path) -> None:
    both = (channel("a", target="same"), channel("b", target="same"))
    async with desk(tmp_path / "db", *both) as it:
        it.receivers["a"].answers = [DOWN]
        await it.see("/1")
        await it.send()
        assert len(it.receivers["a"].heard) == 1
        await it.send(HOUR_S)
        assert [each["data"]["rule"] for each in it.receivers["a"].said] == ["a", "a", "b"]


async def test_other_rules_are_obeyed_while_it_runs(tmp_path: Path) -> None:
    async with desk(tmp_path / "db", channel("a"), channel("b")) as it:
        it.outbox.start()
        it.outbox.obey(limits(), [channel("b")])
        await it.see("/1")
        await it.outbox.finish(asyncio.Event())
        assert it.receivers["a"].heard == []
        assert len(it.receivers["b"].heard) == 1
        with writing(it.store.database) as connection:
            waiting = alerts.waiting(connection, "a", inf, 9)
        assert len(waiting) == 1


def limits() -> Alerts:
    return quick().group(Alerts)


async def test_who_reads_for_long_makes_nothing_go_twice(tmp_path: Path) -> None:
    async with desk(tmp_path / "db", channel("a")) as it:
        await it.see("/1", "/2", "/3")
        receiver = it.receivers["a"]
        receiver.hangs = asyncio.Event()
        sending = asyncio.create_task(it.send())
        await receiver.arrived.get()
        # From now on this connection shows the first message as one that has not been sent.
        async with it.store.database.reader.execute("SELECT id FROM page") as cursor:
            await cursor.fetchone()
            receiver.hangs.set()
            for _ in range(2):
                await receiver.arrived.get()
        await sending
        assert [each["data"]["url"][-2:] for each in receiver.said] == ["/1", "/2", "/3"]
