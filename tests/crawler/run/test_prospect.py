"""`freshet explain` of a page that a daemon keeps fresh: one true paragraph for every state."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from freshet.crawler.cli.explain import paragraph
from freshet.crawler.run.daemon_state import Prospect, prospect
from freshet.storage.queries.page import snapshot
from tests.storage.small_store import HOST, SmallStore, small_store

DAY_S = 86_400.0
NOW = 1_800_000_000.0
RULES: tuple[dict[str, object], ...] = (
    {"match": "/tag/*", "never": True},
    {"match": "/slow/*", "least_days": 10.0},
    {"match": "/must/*", "most_days": 2.0},
    {"match": "/dear/*", "importance": 7.5},
)


def order(policy: str = "greedy_index", rules: Sequence[dict[str, object]] = RULES) -> str:
    daemon = {"budget": "24/day", "policy": policy, "audit_share": 0.01, "rules": rules}
    polite = {"delay_s": 1.0, "connections_per_host": 1}
    crawl = {"permanent_recheck_days": 30}
    return json.dumps({"daemon": daemon, "politeness": polite, "crawl": crawl})


@pytest.fixture
async def store(tmp_path: Path) -> SmallStore:
    """Two pages that make the price: one changes every day, one hardly ever."""
    store = await small_store(tmp_path / "crawl.db")
    store.run(NOW - 40 * DAY_S, settings=order())
    store.host(lane="one.example", last_exchange_at=NOW - 60, delay_s=1.0)
    store.insert(
        "seed", text="one", url=f"{HOST}/", root_url=f"{HOST}/", importance=1.0, added_at=0.0
    )
    for path, kind in (("/busy", "changed"), ("/quiet", "unchanged")):
        looked_at(store, path, *((day, kind) for day in range(20, 0, -1)))
    return store


def looked_at(
    store: SmallStore,
    path: str,
    *looks: tuple[float, str],
    reason: str | None = None,
    detail: str | None = None,
    found_at: float = NOW - 30 * DAY_S,
) -> int:
    """A page with its visits, so many days ago each; ``reason`` is that of those that failed."""
    answers = {"new", "changed", "unchanged"}
    good = [NOW - days * DAY_S for days, kind in looks if kind in answers]
    last = [(NOW - days * DAY_S, kind) for days, kind in looks[-1:]]
    page = store.page(
        path, found_at=found_at, checked_at=max(good, default=None),
        last_kind=last[0][1] if last else None, last_at=last[0][0] if last else None,
    )  # fmt: skip
    for days, kind in looks:
        why = {} if kind in answers else {"reason": reason, "detail": detail}
        store.observe(page, NOW - days * DAY_S, kind, **why)
    return page


async def ahead(store: SmallStore, page: int) -> Prospect:
    async with snapshot(store.path) as connection:
        found = await prospect(connection, page, NOW)
    assert found is not None
    return found


async def said(store: SmallStore, page: int, obstacle: str | None = None) -> str:
    return paragraph(await ahead(store, page), NOW, obstacle=obstacle, is_running=True)


async def test_a_page_that_is_kept(store: SmallStore) -> None:
    page = looked_at(store, "/page", (6, "new"), (5, "changed"), (3, "changed"), (1, "unchanged"))
    text = await said(store, page)
    assert text.startswith("It changes about every ")
    assert "from 3 comparisons). It was found unchanged 24 h ago, when a look was worth " in text
    assert ": stale by now with " in text
    assert " % Its importance" not in text
    assert "Its importance is 1 (site list “one”). A look is worth " in text
    assert "under 24 requests a day looks are taken at about " in text
    assert text.count("So ") == 1
    assert "host" not in text


async def test_a_page_that_was_found_and_not_fetched_yet(store: SmallStore) -> None:
    page = looked_at(store, "/new", found_at=NOW - 0.25 * DAY_S)
    text = await said(store, page)
    assert text.startswith("Found 6 h ago and not fetched yet. Its importance is 1")
    assert "Without a copy a look is worth the importance times the days that it waits, and" in text
    found = await ahead(store, page)
    # Two captured pages are a turn of two hours.
    assert found.worth == pytest.approx(0.25 + 2 / 24)
    assert "A look is worth 0.333 now" in text


async def test_a_page_that_a_rule_excludes(store: SmallStore) -> None:
    page = looked_at(store, "/tag/x")
    assert await said(store, page) == "Not asked for: the rule for /tag/* says never."


async def test_a_page_whose_importance_a_rule_sets(store: SmallStore) -> None:
    page = looked_at(store, "/dear/x", (6, "new"), (1, "unchanged"))
    assert "Its importance is 7.5 (rule “/dear/*”)." in await said(store, page)


async def test_a_page_that_is_gone(store: SmallStore) -> None:
    page = looked_at(
        store, "/gone", (9, "new"), (4, "gone"), (2, "gone"), reason="http_404", detail="no"
    )
    text = await said(store, page)
    assert text.startswith("It was gone twice (http_404: no), last 2 d ago: each time in a row")
    found = await ahead(store, page)
    assert found.age_days == pytest.approx(2.0)
    again = looked_at(
        store, "/long", (9, "new"), (6, "gone"), (4, "gone"), (2, "gone"), reason="http_404"
    )
    longer = await ahead(store, again)
    assert found.worth
    # It has revealed nothing for longer, so that a little less is expected of it.
    assert longer.worth == pytest.approx(0.1 * found.worth, rel=0.01)
    assert longer.worth is not None
    assert longer.worth < 0.1 * found.worth


async def test_a_page_that_fails_waits_for_its_next_try(store: SmallStore) -> None:
    page = looked_at(store, "/down", (9, "new"), (0.01, "failed"), reason="timeout", detail="slow")
    store.due(page, NOW + 600, attempt=1)
    found = await ahead(store, page)
    assert found.not_before == NOW + 600
    assert found.due_in_days is not None
    assert found.due_in_days >= 600 / DAY_S
    text = await said(store, page)
    assert "It failed once (timeout: slow), last 14 min ago; the copy from before is kept." in text


async def test_a_page_that_never_answered_is_asked_again_when_its_wait_is_over(
    store: SmallStore,
) -> None:
    page = looked_at(store, "/never", (0.2, "failed"), (0.1, "failed"), reason="dns")
    text = await said(store, page)
    assert text.startswith("It failed twice (dns), last 2 h ago; there is no copy yet.")
    assert "It is asked for again from " in text
    assert "worth" not in text


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("redirected", "It led to https://b.example/ when it was asked for 3 d ago"),
        ("refused", "Its host's robots.txt forbade it (https://b.example/) when it was"),
        ("skipped", "It is nothing that is crawled (type: https://b.example/) when it was"),
    ],
)
async def test_a_page_that_is_none_waits_for_a_month(
    store: SmallStore, kind: str, words: str
) -> None:
    page = looked_at(store, "/x", (3, kind), reason="type", detail="https://b.example/")
    text = await said(store, page)
    assert text.startswith(words)
    assert "(in 27 d) on." in text


async def test_a_page_that_was_drawn_at_random(store: SmallStore) -> None:
    page = looked_at(store, "/drawn", (9, "new"), (1, "unchanged"))
    with closing(sqlite3.connect(store.path)) as connection:
        ((seen,),) = connection.execute("SELECT max(id) FROM observation").fetchall()
    store.insert("audit", observation_id=seen, importance=1.0, since=0.0, expected=0.1)
    assert "24 h ago, drawn at random to measure the freshness: stale" in await said(store, page)


async def test_rules_keep_looks_apart_and_let_none_wait_too_long(store: SmallStore) -> None:
    page = looked_at(store, "/slow/x", (9, "new"), (1, "changed"))
    found = await ahead(store, page)
    assert found.not_before == NOW + 9 * DAY_S
    assert found.due_in_days is not None
    assert found.due_in_days >= 9
    assert "A rule keeps looks 10 d apart." in await said(store, page)
    late = looked_at(store, "/must/late", (9, "new"), (3, "unchanged"))
    text = await said(store, late)
    assert (
        "A rule wants it looked at every 2 d: it goes before all others. So its turn is now."
        in text
    )
    soon = looked_at(store, "/must/soon", (9, "new"), (1, "unchanged"))
    assert "A rule wants it looked at every 2 d." in await said(store, soon)
    due = (await ahead(store, soon)).due_in_days
    assert due is not None
    assert due <= 1 + 1e-6


def noted(store: SmallStore, lane: str) -> None:
    """An outlook in which this lane is at its cap."""
    store.insert(
        "outlook", at=NOW - 60, run_id=1, began_at=NOW - DAY_S, fetches=5, budget=24.0,
        policy="greedy_index", flowed=5.0, forgone=0.0, watched=2, captured=2, waiting=0, gone=0,
        price=0.0625, daily=1, weekly=0, monthly=0, yearly=1, rarer=0, clocked=0.0, next_at=NOW,
    )  # fmt: skip
    store.insert(
        "capped_lane", outlook_at=NOW - 60, lane=lane, most=86_400.0, wanted=120_000.0, pages=2
    )


async def test_the_price_is_the_one_that_the_daemon_noted(store: SmallStore) -> None:
    noted(store, "another.example")
    text = await said(store, looked_at(store, "/page", (9, "new"), (5, "changed")))
    assert "requests a day looks are taken at about 0.0625. So its turn is now." in text
    assert "cap" not in text


async def test_at_a_host_at_its_cap_looks_are_taken_at_what_they_are_worth_there(
    store: SmallStore,
) -> None:
    page = looked_at(store, "/page", (9, "new"), (5, "changed"))
    noted(store, "one.example")
    found = await ahead(store, page)
    assert found.price is not None
    assert found.price > 0.0625
    text = await said(store, page)
    assert "looks at the pages of its host are taken at about " in text
    assert "So its turn is when its host is free." in text
    assert "Its host is at its cap: 86,400 looks a day at most, asked for 120,000." in text


async def test_a_page_under_a_rate_policy_has_a_plan_within_the_limits(tmp_path: Path) -> None:
    store = await small_store(tmp_path / "rates.db")
    store.run(NOW - 40 * DAY_S, settings=order("lambda_crawl", []))
    store.host(lane="one.example", last_exchange_at=NOW - 60, delay_s=DAY_S)
    page = looked_at(store, "/page", (9, "new"), (5, "changed"))
    found = await ahead(store, page)
    assert found.planned == pytest.approx(1.0)
    assert found.price is found.worth is None
    text = await said(store, page)
    assert "The plan of lambda_crawl for 24 requests a day gives it a look every 24 h." in text
    assert "So its turn is now." in text
    new = await said(store, looked_at(store, "/new"))
    assert "Without a copy it goes by its importance and the days that it waits." in new


async def test_what_stands_in_the_way_and_that_no_daemon_runs_comes_last(
    store: SmallStore,
) -> None:
    page = looked_at(store, "/page", (9, "new"), (5, "changed"))
    text = paragraph(await ahead(store, page), NOW, obstacle="its host is parked", is_running=False)
    assert text.endswith("Now its host is parked. No daemon is running.")


async def test_of_a_crawl_and_of_what_is_held_back_a_daemon_has_nothing_to_say(
    store: SmallStore, tmp_path: Path
) -> None:
    page = store.page("/kept-out", held_back="nofollow")
    async with snapshot(store.path) as connection:
        assert await prospect(connection, page, NOW) is None
    store.run(NOW - DAY_S)
    async with snapshot(store.path) as connection:
        assert await prospect(connection, 1, NOW) is None


async def test_a_source_of_news_and_its_newest_item_are_told_as_such(store: SmallStore) -> None:
    looks = [(half / 2, "changed") for half in range(40, 0, -1)]
    front = looked_at(store, "/news", *looks, found_at=NOW - 20 * DAY_S)
    for half in range(39, 0, -1):
        at = NOW - half * DAY_S / 2
        store.insert(
            "churn", page_id=front, at=at, since=at - DAY_S / 2, appeared=2, dropped=2, stayed=4
        )
    settings = json.loads(order())
    settings["ephemeral"] = {
        "recognise": True, "half_life_hours": 6.0, "item_worth": 7.0, "cost": "request"
    }  # fmt: skip
    ordinary = await ahead(store, front)
    store.execute("UPDATE crawl_run SET settings = ?", json.dumps(settings))
    item = looked_at(store, "/item", found_at=NOW - DAY_S / 2)
    store.link(front, item, NOW - DAY_S / 2)
    source, new = await ahead(store, front), await ahead(store, item)
    assert (ordinary.arrival_rate, ordinary.urgent) == (None, False)
    assert source.arrival_rate == pytest.approx(4.0, rel=0.1)
    assert source.worth is not None
    assert ordinary.worth is not None
    assert source.worth > ordinary.worth
    words = await said(store, front)
    assert "an ephemeral source: about 4" in words
    assert "half of their worth in 6 h" in words
    assert (new.urgent, new.worth, new.due_in_days) == (True, None, 0.0)
    assert "before all that can wait" in await said(store, item)
