"""Subscriptions in the store: as they stood last, with the page that they are for."""

from dataclasses import replace
from pathlib import Path

from freshet.crawler.extensions.push.tables import (
    Subscription,
    SubscriptionChange,
    load_subscriptions,
)
from freshet.storage.database import open_store
from freshet.storage.records import StoreUpdate
from freshet.storage.writer import VisitTables
from tests.storage.crawl_store import writing
from tests.storage.small_store import SmallStore

WANTED = Subscription(
    1, 1, "http://one.example/", "https://hub.example/", "http://one.example/feed", "t", "s", 5.0
)


async def test_a_subscription_is_loaded_as_it_was_noted_last(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    database = await open_store(path)
    store = SmallStore(path)
    store.run(0.0)
    store.host()
    store.page("/")
    tables = VisitTables(1)
    active = replace(
        WANTED, state="active", lease_until=9.0, pending_until=8.0, failures=2,
        detail="late",
    )  # fmt: skip
    for entries in ([WANTED], [active, replace(active, failures=0)]):
        with writing(database) as connection:
            noted = [StoreUpdate(1.0, change=SubscriptionChange(each)) for each in entries]
            acknowledged = tables.apply(connection, noted)
        assert [each.entry for each in acknowledged] == noted
    assert await load_subscriptions(database.reader) == [replace(active, failures=0)]
    with writing(database) as connection:
        tables.apply(connection, [StoreUpdate(2.0, change=SubscriptionChange(active, ended=True))])
    assert await load_subscriptions(database.reader) == []
    await database.close()
