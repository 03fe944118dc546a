"""What the store says of one URL is what the visits put there."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiosqlite
import pytest

from freshet.storage.database import Database, open_store
from freshet.storage.errors import StoreError
from freshet.storage.queries import page as page_queries
from freshet.storage.queries.page import FrontierPlace, InLink, KnownUrl, snapshot
from freshet.storage.records import (
    Alias,
    Capture,
    Digests,
    DueUrl,
    Entry,
    Links,
    Observation,
    Targets,
    Validators,
    Visit,
)
from freshet.storage.tables import frontier, hosts, runs
from freshet.storage.writer import VisitTables
from tests.storage.crawl_store import writing
from tests.storage.small_store import HOST, SmallStore

NOW = 1_000_000.0


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await open_store(tmp_path / "visited.db")
    with writing(database) as connection:
        runs.start(connection, NOW, "{}")
        hosts.ensure(connection, [HOST])
    yield database
    await database.close()


async def known(connection: aiosqlite.Connection, url: str) -> KnownUrl:
    found = await page_queries.find(connection, [url])
    assert found is not None
    return found


async def write(database: Database, *entries: Entry) -> None:
    with writing(database) as connection:
        VisitTables(1).apply(connection, entries)


def targets(*paths: str) -> Targets:
    rest = None, None, None, 0, None
    return Targets((HOST + path, HOST + path, HOST, "page", 1, 0, *rest) for path in paths)


async def due(database: Database, path: str) -> DueUrl:
    rows = await frontier.load(database.reader, [1], NOW + 99, 99)
    return next(each for each in rows if each.url == HOST + path)


async def test_a_captured_page_is_told_as_its_visit_wrote_it(database: Database) -> None:
    with writing(database) as connection:
        connection.execute(
            "INSERT INTO page (url, fetch_url, host_id, depth, found_at, found_run_id)"
            f" VALUES ('{HOST}/', '{HOST}/?', 1, 0, {NOW}, 1)"
        )
        frontier.add(connection, [1], NOW, "discovery")
    home = await due(database, "/")
    capture = Capture(
        Digests(b"b" * 16, b"t" * 16), 1_234, "text/html", "utf-8", b"sketch", b"packed",
        title="Home", language="en", canonical_url=f"{HOST}/home", noindex=True,
    )  # fmt: skip
    observation = Observation(1, NOW + 1, "new", status=200, size_bytes=1_234)
    links = Links((f"{HOST}/a",), (f"{HOST}/a",), ("nofollow",), ("An anchor",))
    validators = Validators('"etag"', "yesterday")
    await write(
        database,
        Visit(
            home, observation, validators=validators, capture=capture, links=links,
            targets=targets("/a"),
        ),
    )  # fmt: skip
    reader = database.reader
    page = await known(reader, f"{HOST}/")
    assert page.validators == validators
    assert (page.fetch_url, page.visited_at, page.alias) == (f"{HOST}/?", NOW + 1, None)
    content = await page_queries.good_capture(reader, 1)
    assert content is not None
    assert (content.checked_at, content.since, content.size_bytes) == (NOW + 1, NOW + 1, 1_234)
    assert (content.title, content.language, content.noindex) == ("Home", "en", True)
    assert (content.versions, content.body_kept) == (1, True)
    assert [o.kind for o in await page_queries.observations(reader, 1, 5)] == ["new"]
    assert await page_queries.frontier_place(reader, 1) is None
    linked = await known(reader, f"{HOST}/a")
    assert await page_queries.first_link(reader, linked.page_id) == InLink(
        f"{HOST}/", "page", "nofollow", "An anchor", NOW + 1, None
    )
    place = await page_queries.frontier_place(reader, linked.page_id)
    assert place == FrontierPlace(NOW + 1, "discovery", 0, None)


async def test_an_alias_and_its_page_know_each_other(database: Database) -> None:
    with writing(database) as connection:
        connection.execute(
            "INSERT INTO page (url, fetch_url, host_id, depth, found_at, found_run_id)"
            f" VALUES ('{HOST}/old', '{HOST}/old', 1, 0, {NOW}, 1)"
        )
        frontier.add(connection, [1], NOW, "discovery")
    visit = Visit(
        await due(database, "/old"),
        Observation(1, NOW + 1, "redirected", status=301, detail=f"{HOST}/new"),
        targets=targets("/new"),
        alias=Alias(f"{HOST}/new", "permanent"),
    )
    await write(database, visit)
    old = await known(database.reader, f"{HOST}/old")
    assert old.alias is not None
    assert (old.alias.url, old.alias.kind) == (f"{HOST}/new", "permanent")
    names = await page_queries.other_names(database.reader, old.alias.page_id, 5)
    assert [(name.url, name.at) for name in names] == [(f"{HOST}/old", NOW + 1)]


async def test_the_first_spelling_that_is_known_wins(site: SmallStore) -> None:
    site.page("/a")
    site.page("/b")
    async with snapshot(site.path) as connection:
        found = await page_queries.find(connection, [f"{HOST}/z", f"{HOST}/b", f"{HOST}/a"])
        assert found is not None
        assert found.url == f"{HOST}/b"
        assert await page_queries.find(connection, [f"{HOST}/z"]) is None


async def test_a_page_that_was_never_captured_has_no_capture(site: SmallStore) -> None:
    page = site.page("/")
    async with snapshot(site.path) as connection:
        assert await page_queries.good_capture(connection, page) is None


async def test_the_size_of_a_pruned_body_is_that_of_the_observation(site: SmallStore) -> None:
    version = site.insert("version", page_id=1, at=NOW - 9, body_digest=b"b" * 16)
    page = site.page("/", version_id=version, checked_at=NOW)
    site.observe(page, NOW - 9, "new", size_bytes=77, version_id=version)
    site.observe(page, NOW, "unchanged", rung="304", version_id=version)
    async with snapshot(site.path) as connection:
        content = await page_queries.good_capture(connection, page)
    assert content is not None
    assert (content.size_bytes, content.body_kept) == (77, False)
    assert (content.since, content.checked_at) == (NOW - 9, NOW)


async def test_observations_come_newest_first_up_to_a_limit(site: SmallStore) -> None:
    page = site.page("/")
    for i in range(4):
        site.observe(page, NOW + i, "changed", rung="blocks", resemblance=0.5, resemblance_se=0.04)
    async with snapshot(site.path) as connection:
        seen = await page_queries.observations(connection, page, 2)
        assert await page_queries.observation_count(connection, page) == 4
    assert [o.at for o in seen] == [NOW + 3, NOW + 2]
    assert (seen[0].rung, seen[0].resemblance, seen[0].run) == ("blocks", 0.5, 1)


async def test_the_first_link_is_the_earliest_and_never_the_pages_own(site: SmallStore) -> None:
    page, early, late = site.page("/"), site.page("/early"), site.page("/late")
    site.link(page, page, NOW - 50, anchor="itself")
    site.link(late, page, NOW, anchor="late")
    site.link(early, page, NOW - 9, anchor="early", gone_at=NOW)
    async with snapshot(site.path) as connection:
        link = await page_queries.first_link(connection, page)
        assert await page_queries.first_link(connection, early) is None
    assert link is not None
    assert (link.anchor, link.gone_at) == ("early", NOW)


async def test_a_link_out_of_scope_is_found_by_its_target(site: SmallStore) -> None:
    page = site.page("/")
    site.link(page, "http://far.example/", NOW, anchor="Far")
    async with snapshot(site.path) as connection:
        link = await page_queries.first_link_out_of_scope(connection, "http://far.example/")
        assert await page_queries.first_link_out_of_scope(connection, f"{HOST}/") is None
    assert link is not None
    assert (link.url, link.anchor) == (f"{HOST}/", "Far")


@pytest.mark.parametrize(
    "seed",
    [
        {"url": "http://moved.example/", "page_id": 1},
        {"url": f"{HOST}/"},
        {"url": "https://one.example/", "fallback_url": f"{HOST}/"},
    ],
)
async def test_a_seed_is_known_by_its_page_its_url_or_its_fallback(
    site: SmallStore, seed: dict[str, object]
) -> None:
    site.page("/")
    site.page("/other")
    site.insert("seed", **{"text": "one.example", "added_at": NOW} | seed)
    async with snapshot(site.path) as connection:
        home = await known(connection, f"{HOST}/")
        assert await page_queries.seed_text(connection, home) == "one.example"
        assert (
            await page_queries.seed_text(connection, await known(connection, f"{HOST}/other"))
            is None
        )


async def test_neighbours_stand_next_to_a_url_and_on_its_host(site: SmallStore) -> None:
    for path in ("/", "/b", "/c"):
        site.page(path)
    for other in ("http://one.example.net/", "http://one.example:81/", "https://one.example/"):
        site.page(other, host=site.host(other[:-1]))
    async with snapshot(site.path) as connection:
        assert await page_queries.neighbours(connection, HOST, f"{HOST}/bb") == [
            f"{HOST}/b", f"{HOST}/", f"{HOST}/c",
        ]  # fmt: skip


async def test_answers_from_one_snapshot_fit_together_whatever_is_written_meanwhile(
    site: SmallStore,
) -> None:
    page = site.page("/")
    async with snapshot(site.path) as connection:
        assert await page_queries.observation_count(connection, page) == 0
        site.observe(page, 0.0, "new")
        assert await page_queries.observation_count(connection, page) == 0
    async with snapshot(site.path) as connection:
        assert await page_queries.observation_count(connection, page) == 1


async def test_a_snapshot_of_no_store_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no such file"):
        async with snapshot(tmp_path / "none.db"):
            pass
