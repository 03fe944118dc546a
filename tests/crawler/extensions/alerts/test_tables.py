"""What is to be told is written with what it tells of, and follows what is known better."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.crawler.extensions.alerts import tables as alerts
from freshet.crawler.extensions.alerts.recording import AlertRecorder
from freshet.crawler.extensions.alerts.tables import AlertFilter, Message
from freshet.storage import maintenance
from freshet.storage.entries import REBASED, Amendment, Kind, Retraction, Rung
from freshet.storage.maintenance import Retention
from freshet.storage.records import Visit
from freshet.storage.tables import observations
from tests.storage.crawl_store import (
    SITE,
    START,
    CrawlStore,
    captured,
    crawl_store,
    doubtful,
    redirected,
    visit,
    writing,
)

ALL = AlertFilter("all", frozenset({"new", "changed", "gone"}), re.compile(".*"))
CHANGES = AlertFilter("changes", frozenset({"changed"}), re.compile(f"{SITE}/a.*"))


def changed(before: Visit, at: float) -> Visit:
    """The visit after another one, which found the page changed."""
    after = captured(before.due, f"text at {at}", at=at)
    return replace(after, observation=replace(after.observation, kind="changed", rung="blocks"))


async def changed_once(store: CrawlStore, path: str = "/a") -> Visit:
    """A page that was new, then changed at ``START + 1``."""
    await store.admit(path)
    first = captured(await store.taken(path), "one")
    await store.apply(first)
    second = changed(first, START + 1)
    await store.apply(second)
    return second


async def told(store: CrawlStore, rule: str = "changes") -> list[tuple[str, float, bool]]:
    """The alerts of a rule: kind, time, and whether it is in a message."""
    rows = await store.rows(
        "SELECT kind, at, message_id IS NOT NULL FROM alert WHERE rule = ? ORDER BY id", rule
    )
    return [(kind, at, bool(sent)) for kind, at, sent in rows]


async def put_into_message(store: CrawlStore, rule: str = "changes") -> bool:
    with writing(store.database) as connection:
        waiting = alerts.waiting(connection, rule, inf, 100)
    message = Message(0, "-".join(each.key for each in waiting), rule, "{}", START, 0, START)
    with writing(store.database) as connection:
        return bool(waiting) and alerts.compose(connection, message, waiting)


async def amend(
    store: CrawlStore,
    seen: Visit,
    kind: Kind,
    rules: Sequence[AlertFilter] = (ALL, CHANGES),
    now: float = START + 9,
) -> None:
    amendment = Amendment(seen.observation.at, kind, "frame", "known better")
    with writing(store.database) as connection:
        observations.amend(connection, seen.due.page_id, amendment, now)
        alerts.review(connection, rules, now)


async def test_each_rule_is_told_of_what_it_asks_for(store: CrawlStore) -> None:
    store.tables.recorders = [AlertRecorder((ALL, CHANGES))]
    await changed_once(store, "/a")
    await changed_once(store, "/b")
    assert await told(store) == [("changed", START + 1, False)]
    assert [kind for kind, *_ in await told(store, "all")] == ["new", "changed"] * 2
    keys = await store.rows("SELECT key FROM alert")
    assert len(set(keys)) == 5


WATCHED = {
    "words": ("words",),
    "order": ("order",),
    "both": ("words", "order"),
    "beside changes": ("changed", "words"),
    "beside what appears": ("new", "words"),
}


@pytest.mark.parametrize("watched", WATCHED)
@pytest.mark.parametrize(
    ("kinds", "rung", "is_told"),
    [
        (("words",), "minor", False),
        (("order",), "minor", False),
        (("words", "links"), "minor", False),
        (("words",), "blocks", True),
        (("order", "words"), "blocks", True),
    ],
)
async def test_a_rule_on_words_is_silent_where_nobody_edited_them(
    store: CrawlStore, watched: str, kinds: tuple[str, ...], rung: Rung, is_told: bool
) -> None:
    rule = AlertFilter("words", frozenset(WATCHED[watched]), re.compile(".*"))
    every = AlertFilter("refreshed", frozenset({"refreshed"}), re.compile(".*"))
    store.tables.recorders = [AlertRecorder((rule, every))]
    await store.admit("/a")
    first = captured(await store.taken("/a"), "one")
    await store.apply(first)
    seen = replace(
        changed(first, START + 1).observation, kind="unchanged", rung=rung, kinds=" ".join(kinds)
    )
    await store.apply(replace(changed(first, START + 1), observation=seen))
    found = [kind for kind, at, _ in await told(store, "words") if at > START]
    differs = not frozenset(kinds).isdisjoint(WATCHED[watched])
    assert found == (["refreshed"] if is_told and differs else [])
    assert [kind for kind, *_ in await told(store, "refreshed")] == ["refreshed"]


async def test_a_batch_that_fails_leaves_no_alert(store: CrawlStore) -> None:
    store.tables.recorders = [AlertRecorder((ALL,))]
    await store.admit("/a")
    seen = captured(await store.taken("/a"), "one")
    with pytest.raises(AttributeError):
        await store.apply(seen, None)  # type: ignore[arg-type]
    assert await told(store, "all") == []
    await store.apply(seen)
    assert await told(store, "all") == [("new", START, False)]


async def test_a_page_is_gone_once_until_it_is_back(store: CrawlStore) -> None:
    store.tables.recorders = [
        AlertRecorder((AlertFilter("all", frozenset({"gone"}), re.compile(".*")),))
    ]
    seen = await changed_once(store)
    for at in (2, 3):
        await store.apply(visit(seen.due, "gone", START + at))
    await store.apply(visit(seen.due, "unchanged", START + 4))
    await store.apply(visit(seen.due, "gone", START + 5))
    assert await told(store, "all") == [("gone", START + 2, False), ("gone", START + 5, False)]


async def test_a_page_that_never_was_there_is_not_gone(store: CrawlStore) -> None:
    store.tables.recorders = [AlertRecorder((ALL,))]
    await store.admit("/a", "/b")
    await store.apply(visit(await store.taken("/a"), "gone"))
    await store.apply(redirected(await store.taken("/b"), "/c"))
    assert await told(store, "all") == []


async def test_a_change_that_was_none_is_not_told_unless_it_was_told_already(
    store: CrawlStore,
) -> None:
    store.tables.recorders = [AlertRecorder((CHANGES,))]
    unsent, sent = await changed_once(store, "/a1"), None
    await amend(store, unsent, "unchanged")
    assert await told(store) == []
    sent = await changed_once(store, "/a2")
    assert await put_into_message(store)
    await amend(store, sent, "unchanged")
    assert await told(store) == [("changed", START + 1, True), ("withdrawn", START + 9, False)]
    with writing(store.database) as connection:
        (withdrawal,) = alerts.waiting(connection, "changes", inf, 9)
    assert withdrawal.reason == "known better"
    assert withdrawal.withdraws == await store.value("SELECT key FROM alert WHERE kind <> "
                                                     "'withdrawn'")  # fmt: skip


async def test_what_turns_out_to_be_a_change_is_told_when_it_is_known(store: CrawlStore) -> None:
    store.tables.recorders = [AlertRecorder((CHANGES,))]
    await store.admit("/a")
    first = captured(await store.taken("/a"), "one")
    await store.apply(first)
    seen = visit(first.due, "unchanged", START + 1)
    await store.apply(seen)
    await amend(store, seen, "changed")
    assert await told(store) == [("changed", START + 9, False)]


async def test_what_is_amended_by_its_own_batch_is_told_as_amended(store: CrawlStore) -> None:
    store.tables.recorders = [AlertRecorder((CHANGES,))]
    await store.admit("/a")
    first = captured(await store.taken("/a"), "one")
    await store.apply(first)
    second = changed(first, START + 1)
    amendment = Amendment(START + 1, "unchanged", "volatile", "it differs each time")
    third = replace(visit(first.due, at=START + 2), amendments=(amendment,))
    await store.apply(second, third)
    assert await told(store) == []


async def test_a_wall_that_was_taken_for_a_new_page_is_withdrawn(store: CrawlStore) -> None:
    store.tables.recorders = [AlertRecorder((ALL,))]
    await store.admit("/a", "/b")
    block_page, other = captured(await store.taken("/a"), "wall"), await store.taken("/b")
    await store.apply(doubtful(block_page))
    assert await put_into_message(store, "all")
    taken_back = Retraction(block_page.due.page_id, START, "captcha", "like others")
    await store.apply(replace(captured(other, "b", at=START + 1), retractions=(taken_back,)))
    assert [kind for kind, *_ in await told(store, "all")] == ["new", "new", "withdrawn"]


async def test_a_message_is_not_made_of_what_was_taken_back_meanwhile(store: CrawlStore) -> None:
    store.tables.recorders = [AlertRecorder((CHANGES,))]
    seen = await changed_once(store)
    with writing(store.database) as connection:
        waiting = alerts.waiting(connection, "changes", inf, 9)
    await amend(store, seen, "unchanged")
    await amend(store, seen, "changed")
    with writing(store.database) as connection:
        message = Message(0, "key", "changes", "{}", START, 0, START)
        assert not alerts.compose(connection, message, waiting)
    assert await store.rows("SELECT * FROM alert_message") == []
    assert await told(store) == [("changed", START + 9, False)]


async def test_a_rule_that_is_gone_hears_only_that_something_was_wrong(store: CrawlStore) -> None:
    store.tables.recorders = [AlertRecorder((CHANGES,))]
    seen = await changed_once(store)
    assert await put_into_message(store)
    await amend(store, seen, "changed", rules=())
    assert len(await told(store)) == 1
    await amend(store, seen, "unchanged", rules=())
    assert [kind for kind, *_ in await told(store)] == ["changed", "withdrawn"]


KINDS = ("new", "changed", "unchanged", "failed")


@settings(max_examples=30)
@given(st.lists(st.one_of(st.sampled_from(KINDS), st.none()), max_size=12))
def test_whatever_is_amended_and_sent_the_last_word_is_what_is_seen_today(
    steps: list[Kind | None],
) -> None:
    """None stands for sending what waits."""

    async def play() -> None:
        with TemporaryDirectory() as directory:
            async with crawl_store(Path(directory) / "db") as store:
                store.tables.recorders = [AlertRecorder((ALL,))]
                seen, now = await changed_once(store), "changed"
                for number, step in enumerate(steps):
                    if step is None:
                        await put_into_message(store, "all")
                    else:
                        now = step
                        await amend(store, seen, step, (ALL,), START + 9 + number)
                rows = await store.rows(
                    "SELECT a.kind, a.message_id IS NOT NULL FROM alert AS a JOIN observation AS o "
                    "ON o.id = a.observation_id WHERE o.at > ? ORDER BY a.id", START
                )  # fmt: skip
                kinds = [kind for kind, _ in rows]
                last = kinds[-1] if kinds and kinds[-1] != "withdrawn" else None
                assert last == (str(now) if now in {"new", "changed"} else None)
                # What was told is taken back before something else is told.
                pairs = list(pairwise(kinds))
                assert all((a == "withdrawn") != (b == "withdrawn") for a, b in pairs)
                # What is sent comes before what is not.
                assert [sent for _, sent in rows] == sorted((s for _, s in rows), reverse=True)

    asyncio.run(play())


async def test_what_is_seen_otherwise_after_its_alerts_are_gone_is_not_told_again(
    store: CrawlStore,
) -> None:
    store.tables.recorders = [AlertRecorder((CHANGES,))]
    seen = await changed_once(store)
    assert await put_into_message(store)
    sent_at, late = START + 60, START + 40 * 86_400.0
    with writing(store.database) as connection:
        (message,) = connection.execute("SELECT id FROM alert_message").fetchall()
        alerts.sent(connection, message[0], sent_at)
    await maintenance.prune(store.database, Retention(1, inf, alert_age_s=30 * 86_400.0), late)
    assert await told(store) == []
    await amend(store, seen, "changed", now=late)
    assert await told(store) == []


async def test_a_new_baseline_of_a_known_page_is_told_nobody(store: CrawlStore) -> None:
    store.tables.recorders = [AlertRecorder((ALL,))]
    second = await changed_once(store)
    rebased = captured(second.due, "read otherwise", at=START + 2)
    observation = replace(rebased.observation, kind="new", reason=REBASED)
    await store.apply(replace(rebased, observation=observation))
    assert [kind for kind, _, _ in await told(store, "all")] == ["new", "changed"]
