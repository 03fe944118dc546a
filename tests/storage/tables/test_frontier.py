"""Table frontier: what is due, in which order, and what a new run makes due."""

from dataclasses import replace

import pytest

from freshet.storage.records import Acknowledged, Alias, Digests, StoreUpdate, Validators, Visit
from freshet.storage.tables import frontier
from tests.storage.crawl_store import (
    DAY_S,
    START,
    CrawlStore,
    captured,
    digest,
    redirected,
    targets,
    url_of,
    visit,
    writing,
)

LATER = START + 7 * DAY_S


async def defer(store: CrawlStore, reasons: dict[int, str]) -> int:
    with writing(store.database) as connection:
        return frontier.defer(connection, reasons)


async def test_what_leaves_is_a_due_url_with_all_that_is_known_of_the_page(
    store: CrawlStore,
) -> None:
    await store.admit("/")
    first = await store.taken("/")
    assert (first.reason, first.digests, first.validators) == ("discovery", None, Validators())
    done = replace(captured(first), validators=Validators('"1"', "yesterday"))
    await store.apply(done)
    await store.new_run(LATER)
    (again,) = await store.due(LATER)
    assert again == replace(
        first, due_at=LATER, reason="refresh", validators=Validators('"1"', "yesterday"),
        digests=Digests(digest("text"), digest("text of text")), read_at=done.at,
    )  # fmt: skip


async def test_shallow_pages_come_first_and_older_before_newer(store: CrawlStore) -> None:
    for depth, path in ((2, "/deep"), (0, "/a"), (1, "/mid"), (0, "/b")):
        await store.apply(StoreUpdate(START, targets=targets(path, depth=depth)))
    assert await store.due_paths() == ["/a", "/b", "/mid", "/deep"]


async def test_a_host_gives_no_more_than_the_limit_and_only_what_is_due(store: CrawlStore) -> None:
    await store.admit(*(f"/{i}" for i in range(9)), *(f"https://b.example/{i}" for i in "xy"))
    first = await store.taken("/0")
    await store.apply(replace(visit(first, "failed"), retry_at=START + 60))
    loaded = await store.due(START, limit=3)
    assert [due.url for due in loaded] == [
        *(url_of(f"/{i}") for i in (1, 2, 3)), "https://b.example/x", "https://b.example/y",
    ]  # fmt: skip
    assert (await store.due(START + 60, limit=3))[0].url == url_of("/0")


async def test_a_page_that_several_seeds_stand_at_is_handed_out_once(store: CrawlStore) -> None:
    await store.admit("/")
    with writing(store.database) as connection:
        for number in (1, 2):
            connection.execute(
                "INSERT INTO seed (text, url, page_id, added_at) VALUES ('', ?, 1, 0)",
                (str(number),),
            )
    assert [due.seed_id for due in await store.due()] == [1]


async def test_a_settled_url_leaves_and_a_retry_waits_for_its_time(store: CrawlStore) -> None:
    await store.admit("/done", "/charged", "/free")
    charged = replace(
        visit(await store.taken("/charged"), "failed"),
        retry_at=START + 5,
        fetch_url=url_of("/charged?x"),
    )
    free = replace(visit(await store.taken("/free"), "failed"), retry_at=START, charged=False)
    await store.apply(visit(await store.taken("/done")), charged, free)
    assert [(d.url, d.attempt) for d in await store.due()] == [(url_of("/free"), 0)]
    again = await store.taken("/charged", START + 5)
    assert (again.attempt, again.fetch_url) == (1, url_of("/charged?x"))


async def back(store: CrawlStore, path: str, to: str) -> Visit:
    """A redirect that leads back to a page with a cookie that it wants."""
    led = redirected(await store.taken(path), to, "temporary")
    return replace(led, alias=Alias(url_of(to), "temporary", again=True))


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("order", [("/", "/check"), ("/check", "/")])
async def test_a_page_that_a_redirect_led_back_to_is_due_whichever_visit_is_committed_first(
    store: CrawlStore, order: tuple[str, str], together: bool
) -> None:
    await store.admit("/", "/check")
    made = {
        "/": redirected(await store.taken("/"), "/check", "temporary"),
        "/check": await back(store, "/check", "/"),
    }
    acknowledged: list[Acknowledged] = []
    batches = [order] if together else [(path,) for path in order]
    for paths in batches:
        acknowledged = await store.apply(*(made[path] for path in paths))
    assert await store.due_paths() == ["/"]
    # The agenda reads the host's URLs again when the last of them is acknowledged.
    assert any(each.supplied for each in acknowledged)
    assert await store.apply(captured(await store.taken("/")))
    assert await store.due() == []


async def test_a_page_that_was_led_back_to_is_visited_once_more_and_not_for_ever(
    store: CrawlStore,
) -> None:
    await store.admit("/", "/check")
    daemon = await store.taken("/")
    await store.apply(await back(store, "/check", "/"))
    for left in (["/"], []):
        await store.apply(captured(daemon))
        assert await store.due_paths() == left


async def test_hosts_are_woken_for_their_first_url_and_for_every_retry(store: CrawlStore) -> None:
    await store.admit("/1", "/2", "/3", "https://b.example/")
    for path, wait in (("/2", 60.0), ("/3", 600.0)):
        failed = visit(await store.taken(path), "failed")
        await store.apply(replace(failed, retry_at=START + wait))
    assert sorted(await frontier.wake_times(store.database.reader)) == [
        (1, START), (1, START + 60.0), (1, START + 600.0), (2, START),
    ]  # fmt: skip


async def test_a_new_run_makes_every_known_page_due(store: CrawlStore) -> None:
    await store.admit("/", "/gone")
    await store.apply(StoreUpdate(START, targets=targets("/map.xml", role="sitemap")))
    await store.apply(StoreUpdate(START, targets=targets("/hidden", held_back="nofollow")))
    await store.apply(
        captured(await store.taken("/")),
        visit(await store.taken("/gone"), "gone"),
        visit(await store.taken("/map.xml"), "new"),
    )
    assert await store.due() == []
    await store.new_run(LATER)
    again = await store.due(LATER)
    assert [d.url for d in again] == [url_of(p) for p in ("/", "/gone", "/map.xml")]
    assert [d.reason for d in again] == ["refresh", "discovery", "refresh"]


async def test_dead_links_are_asked_after_pauses_that_double_and_what_was_named_always(
    store: CrawlStore,
) -> None:
    await store.admit("/named", "/dead")
    with writing(store.database) as connection:
        connection.execute(
            "INSERT INTO seed (text, url, page_id, added_at) "
            "SELECT url, url, id, 0 FROM page ORDER BY id LIMIT 1"
        )
    asked = []
    for week in range(20):
        now = START + (7 * week - (week % 2) / 24) * DAY_S
        if week:
            await store.new_run(now)
        paths = await store.due_paths(now)
        assert "/named" in paths
        if "/dead" in paths:
            asked.append(week)
        for path in paths:
            gone = visit(await store.taken(path, now), "gone")
            at = replace(gone.observation, at=now + 60)
            await store.apply(replace(gone, observation=at))
    assert asked == [0, 1, 2, 4, 8, 15]


async def test_what_a_run_deferred_is_due_first_in_the_next(store: CrawlStore) -> None:
    await store.admit("/a", "/b", "https://down.example/x")
    await store.apply(StoreUpdate(START, targets=targets("/deep", depth=9)))
    for path in ("/a", "/b"):
        await store.apply(captured(await store.taken(path)))
    failed = visit(await store.taken("/deep"), "failed")
    await store.apply(replace(failed, retry_at=START + 900))
    assert await defer(store, {2: "http_503"}) == 2
    assert await store.rows("SELECT host_id, deferred FROM frontier ORDER BY host_id") == [
        (1, "retry is not due yet"),
        (2, "http_503"),
    ]
    await store.new_run(START + 10)
    due = await store.due(START + 10)
    assert [d.url.rpartition("/")[2] for d in due] == ["deep", "a", "b", "x"]
    assert [d.attempt for d in due] == [0, 0, 0, 0]
    assert await store.value("SELECT count(*) FROM frontier WHERE deferred NOT NULL") == 0


async def test_resuming_makes_the_deferred_due_again_and_leaves_the_others(
    store: CrawlStore,
) -> None:
    await store.admit("/waits", "/deferred")
    for path in ("/waits", "/deferred"):
        failed = visit(await store.taken(path), "failed")
        await store.apply(replace(failed, retry_at=START + 900))
    with writing(store.database) as connection:
        connection.execute("UPDATE frontier SET deferred = 'dns' WHERE page_id = 2")
        frontier.resume_run(connection, START + 1)
    assert [(d.url, d.attempt) for d in await store.due(START + 1)] == [(url_of("/deferred"), 0)]
    assert await store.due_paths(START + 900) == ["/deferred", "/waits"]


async def test_a_fresh_permanent_alias_is_taken_as_still_standing(store: CrawlStore) -> None:
    await store.admit("/forever", "/today", "/looping")
    await store.apply(
        redirected(await store.taken("/forever"), "/page"),
        redirected(await store.taken("/today"), "/page", "temporary"),
        redirected(await store.taken("/looping"), "/looping"),
    )
    await store.apply(captured(await store.taken("/page")))
    await store.new_run(LATER, recheck_before=START)
    assert await store.due_paths(LATER) == ["/today", "/looping", "/page"]
    await store.new_run(LATER, recheck_before=START + 1)
    assert "/forever" in await store.due_paths(LATER)
