"""Tables host and robots: what politeness finds again after a restart."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from sqlite3 import Connection

from freshet.crawler.extensions.alerts import tables as alerts
from freshet.storage.database import reading
from freshet.storage.entries import Host, HostState, RobotsRecord
from freshet.storage.records import StoreUpdate
from freshet.storage.tables import hosts
from tests.storage.crawl_store import SITE, START, CrawlStore, visit
from tests.storage.small_store import small_store

ROBOTS = RobotsRecord("parsed", START, b"User-agent: *\n", None, None)


async def load(store: CrawlStore, *host_ids: int) -> dict[int, Host]:
    found = await hosts.load(store.database.reader, host_ids)
    return {host.host_id: host for host in found}


async def test_a_new_host_has_neither_state_nor_robots(store: CrawlStore) -> None:
    await store.admit("/")
    assert await load(store, 1, 2) == {1: Host(1, SITE)}
    assert await hosts.find(store.database.reader, SITE) == Host(1, SITE)
    assert await hosts.find(store.database.reader, "https://none.example") is None


async def test_state_and_robots_come_back_as_they_were_stored(store: CrawlStore) -> None:
    await store.admit("/")
    state = HostState(1, "a.example", START, 2.5, 3, START + 60, "http_429")
    await store.apply(StoreUpdate(START, robots=(1, ROBOTS), host=state))
    assert await load(store, 1) == {1: Host(1, SITE, state, ROBOTS)}
    stale = replace(ROBOTS, stale_since=START + 1, reason="dns")
    await store.apply(StoreUpdate(START + 1, robots=(1, replace(stale, body=b"")), host=state))
    assert (await load(store, 1))[1].robots == stale
    large = replace(ROBOTS, body=b"#" * 5_000)
    await store.apply(StoreUpdate(START, robots=(1, large)))
    assert (await load(store, 1))[1].robots == replace(large, body=b"")
    assert (await hosts.load(store.database.reader, [1], whole=True))[0].robots == large


async def test_of_several_states_in_a_batch_the_last_holds_and_all_exchanges_count(
    store: CrawlStore,
) -> None:
    await store.admit("/")
    due = await store.taken("/")
    first, last = HostState(1, "a", START, 1.0), HostState(1, "a", START + 5, 2.0)
    await store.apply(
        replace(visit(due), host=first, fetches=3), replace(visit(due), host=last), visit(due)
    )
    assert (await load(store, 1))[1].state == last
    assert await store.value("SELECT exchanges FROM host") == 4


async def test_a_host_finds_what_was_last_stored_for_its_queue(store: CrawlStore) -> None:
    await store.admit("/", "http://a.example/", "https://other.example/", "https://c.example/")
    secure, plain, other, _ = await store.due()
    parked = HostState(plain.host_id, "a.example", START + 9, 1.0, 2, START + 3600, "http_429")
    await store.apply(
        replace(visit(secure), host=HostState(secure.host_id, "a.example", START, 1.0)),
        replace(visit(other), host=HostState(other.host_id, "other.example", START + 99, 1.0)),
        replace(visit(plain), host=parked),
    )
    loaded = await load(store, 1, 2, 3, 4)
    assert loaded[secure.host_id].state == replace(parked, host_id=secure.host_id)
    assert loaded[plain.host_id].state == parked
    assert loaded[4].state is None


async def test_how_long_exchanges_take_is_a_mean_by_host_of_those_that_were_made(
    tmp_path: Path,
) -> None:
    store = await small_store(tmp_path / "small.db")
    store.run(START)
    one, other = store.host("https://a.example"), store.host("https://b.example")
    page, silent = store.page("/a", host=one), store.page("/b", host=other)
    for seconds in (0.5, 1.5):
        store.observe(page, START, "unchanged", duration_s=seconds)
    store.observe(page, START, "refused", duration_s=0.0)
    store.observe(silent, START, "refused", duration_s=0.0)
    async with reading(store.path) as connection:
        assert await hosts.exchange_s(connection) == {one: 1.0}


async def test_a_clock_that_was_ahead_holds_back_no_alert_and_no_hub(store: CrawlStore) -> None:
    def ahead(db: Connection) -> None:
        db.execute("INSERT INTO alert VALUES (1, 'a', 'news', 1, 'new', 9e9, NULL)")
        db.execute("INSERT INTO alert_message VALUES (1,'m','news',0,'','pending',9e9,0,9e9,0,'')")
        db.execute(
            "INSERT INTO subscription VALUES (1,'hub','topic','t','','active',9e9,0,9e9,0,'')"
        )
        hosts.bring_back(db, START)

    await store.admit("/")
    await store.apply(visit(await store.taken("/")))
    await store.database.write(ahead)
    message = await store.database.write(partial(alerts.head, rules=["news"]))
    assert message is not None
    assert await store.database.write(partial(alerts.oldest_waiting, rule="news")) == START
    (hub,) = await store.database.reader.execute_fetchall("SELECT next_at FROM subscription")
    assert (message.since, message.next_at, hub[0]) == (START, START, START)
