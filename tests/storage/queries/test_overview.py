"""The overview counts what is there, and names the hosts that wait."""

from pathlib import Path

from freshet.storage.database import reading
from freshet.storage.queries import overview
from freshet.storage.queries.overview import Holdings, WaitingHost
from freshet.storage.tables import hosts
from freshet.storage.tables.observations import COLUMNS
from tests.storage.small_store import HOST, SmallStore, small_store

NOW = 1_000_000.0


async def test_an_empty_store_holds_nothing(tmp_path: Path) -> None:
    empty = await small_store(tmp_path / "empty.db")
    async with reading(empty.path) as connection:
        assert await overview.holdings(connection) == Holdings(*[0] * 11)
        assert await overview.frontier_counts(connection, NOW) == {
            "due": 0, "waiting": 0, "deferred": 0,
        }  # fmt: skip


async def test_pages_are_captured_urls_that_are_no_alias_sitemap_or_mere_link(
    site: SmallStore,
) -> None:
    page = site.page("/", checked_at=NOW)
    site.page("/old", alias_of=page, alias_kind="permanent", checked_at=NOW)
    site.page("/sitemap.xml", role="sitemap", checked_at=NOW)
    site.page("/never-asked")
    async with reading(site.path) as connection:
        held = await overview.holdings(connection)
    assert (held.urls, held.pages, held.aliases, held.hosts) == (4, 1, 1, 1)


async def test_only_current_links_count(site: SmallStore) -> None:
    page, other, third = site.page("/"), site.page("/a"), site.page("/b")
    site.link(page, other, NOW)
    site.link(page, third, NOW - 10, gone_at=NOW)
    site.link(page, "http://elsewhere.example/", NOW)
    async with reading(site.path) as connection:
        held = await overview.holdings(connection)
    assert (held.links, held.offsite_links) == (1, 1)


async def test_bodies_are_counted_with_their_size_before_and_after_compression(
    site: SmallStore,
) -> None:
    site.insert("body", digest=b"a" * 16, stored_at=NOW, size_bytes=1_000, zstd=b"x" * 300)
    site.insert("body", digest=b"b" * 16, stored_at=NOW, size_bytes=500, zstd=b"y" * 100)
    async with reading(site.path) as connection:
        held = await overview.holdings(connection)
    assert (held.bodies, held.body_bytes, held.stored_bytes) == (2, 1_500, 400)


async def test_the_frontier_is_split_into_due_waiting_and_deferred(site: SmallStore) -> None:
    for i, (due_at, deferred) in enumerate(
        [(NOW - 1, None), (NOW, None), (NOW + 1, None), (NOW - 1, "http_503")]
    ):
        site.due(site.page(f"/{i}"), due_at, deferred=deferred)
    async with reading(site.path) as connection:
        counts = await overview.frontier_counts(connection, NOW)
        assert await overview.to_come(connection) == 3
    assert counts == {"due": 2, "waiting": 1, "deferred": 1}


async def test_the_busiest_hosts_come_first_and_waiting_urls_do_not_count(site: SmallStore) -> None:
    two = site.host("http://two.example")
    site.due(site.page("/"), NOW)
    site.due(site.page("/later"), NOW + 1)
    for path in ("a", "b"):
        site.due(site.page(f"http://two.example/{path}", host=two), NOW, host=two)
    async with reading(site.path) as connection:
        busiest = await overview.busiest(connection, NOW, 9)
        assert await overview.busiest(connection, NOW, 1) == busiest[:1]
    assert busiest == [("http://two.example", 2), (HOST, 1)]


async def test_hosts_are_parked_until_their_time_has_come(site: SmallStore) -> None:
    site.host("http://free.example", parked_until=NOW, parked_reason="http_429")
    site.host("http://later.example", parked_until=NOW + 60, parked_reason="http_503")
    host = site.host("http://sooner.example", parked_until=NOW + 5, parked_reason="http_429")
    site.due(site.page("http://sooner.example/", host=host), NOW, host=host)
    async with reading(site.path) as connection:
        assert await overview.parked(connection, NOW) == [
            WaitingHost("http://sooner.example", NOW + 5, "http_429", 1),
            WaitingHost("http://later.example", NOW + 60, "http_503", 0),
        ]


async def test_robots_that_cannot_be_reached_are_listed_with_and_without_a_copy(
    site: SmallStore,
) -> None:
    rows = [
        ("http://closed.example", "unreachable", None, "timeout"),
        ("http://copied.example", "parsed", NOW - 50, "http_500"),
        ("http://open.example", "allow_all", None, None),
    ]
    for origin, standing, stale_since, reason in rows:
        site.insert(
            "robots", host_id=site.host(origin), standing=standing, fetched_at=NOW - 99,
            stale_since=stale_since, reason=reason, body=b"",
        )  # fmt: skip
    async with reading(site.path) as connection:
        found = await hosts.unreachable_robots(connection)
    assert [(origin, r.standing, r.stale_since, r.reason) for origin, r in found] == rows[:2]


async def test_a_sign_of_life_is_the_newest_observation_of_that_very_run(site: SmallStore) -> None:
    page = site.page("/")
    second = site.run(NOW)
    async with reading(site.path) as connection:
        assert await overview.last_sign_of_life(connection, 1) is None
    site.observe(page, NOW - 10, "new")
    site.observe(page, NOW - 5, "unchanged")
    async with reading(site.path) as connection:
        assert await overview.last_sign_of_life(connection, 1) == NOW - 5
        assert await overview.last_sign_of_life(connection, second) is None


async def test_the_size_on_disk_includes_the_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / "crawl.db"
    path.write_bytes(b"x" * 10)
    assert overview.file_bytes(path) == 10
    path.with_name("crawl.db-wal").write_bytes(b"x" * 5)
    assert overview.file_bytes(path) == 15


def test_an_export_of_estimates_has_all_that_is_stored_of_them() -> None:
    assert list(overview.EXPORTS["estimates"]["columns"])[1:] == list(COLUMNS[1:])
