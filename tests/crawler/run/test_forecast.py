"""`freshet explain` of a page that a daemon keeps fresh: one true paragraph for every state."""

from collections.abc import Sequence
from dataclasses import replace
from math import expm1

import pytest

from freshet.config.loading import load
from freshet.crawler.run import forecast
from freshet.crawler.run.explanation import sentences
from freshet.crawler.run.forecast import PageForecast, forecast_page, rate_of
from freshet.crawler.run.importance import Importance
from freshet.storage.queries.page import snapshot
from tests.console import as_json
from tests.storage.small_store import HOST, SmallStore, rows

DAY_S = 86_400.0
NOW = 1_800_000_000.0
RULES: tuple[dict[str, object], ...] = (
    {"match": "/tag/*", "never": True}, {"match": "/slow/*", "least_days": 10.0},
    {"match": "/must/*", "most_days": 2.0}, {"match": "/dear/*", "importance": 7.5},
)  # fmt: skip


def order(policy: str = "site_clock", rules: Sequence[dict[str, object]] = RULES) -> str:
    said = {"daemon.budget": "24/day", "daemon.policy": policy, "sites": list(rules)}
    return load(None, said)[0].model_dump_json()


def run_daemon(small: SmallStore, now: float) -> None:
    """A daemon of one site, two of whose pages have a copy; the price is 0.1."""
    small.run(now - 40 * DAY_S, settings=order())
    small.host(queue="one.example", last_exchange_at=now - 60, delay_s=1.0)
    small.insert(
        "seed", text="one", url=f"{HOST}/", root_url=f"{HOST}/", importance=1.0, added_at=0.0
    )
    small.insert(
        "outlook", at=now - 60, run_id=1, began_at=now - DAY_S, fetches=5, budget=24.0,
        policy="greedy_index", flowed=5.0, forgone=0.0, watched=2, captured=2, waiting=0, gone=0,
        price=0.1, daily=1, weekly=0, monthly=0, yearly=1, rarer=0, clocked=0.0, next_at=now,
    )  # fmt: skip


@pytest.fixture
def store(small: SmallStore) -> SmallStore:
    run_daemon(small, NOW)
    return small


def believed(store: SmallStore, page: int, *, days: float = 0.0, **columns: object) -> None:
    """The daemon has valued this page ``days`` ago, after its last visit but for what is said."""
    at = NOW - days * DAY_S
    last = "SELECT coalesce(last_at, found_at) FROM page WHERE id = ?"
    ((visited_at,),) = rows(store.path, last, page)
    plain: dict[str, object] = {
        "page_id": page, "at": at, "visited_at": visited_at, "rate": 0.5, "low": 0.2, "high": 0.9,
        "hazard": 0.5 * max(0.0, at - visited_at) / DAY_S, "importance": 1.0, "clocked": 0.0,
        "urgent": 0, "reveals": 0.0,
    }  # fmt: skip
    store.insert("estimate", **plain | columns)


def page_with(
    store: SmallStore,
    path: str,
    *visits: tuple[float, str],
    reason: str | None = None,
    detail: str | None = None,
    found_at: float = NOW - 30 * DAY_S,
) -> int:
    """A page with its visits, so many days ago each; ``reason`` is that of those that failed."""
    answers = {"new", "changed", "unchanged"}
    good = [NOW - days * DAY_S for days, kind in visits if kind in answers]
    last = [(NOW - days * DAY_S, kind) for days, kind in visits[-1:]]
    page = store.page(
        path, found_at=found_at, checked_at=max(good, default=None),
        last_kind=last[0][1] if last else None, last_at=last[0][0] if last else None,
    )  # fmt: skip
    for days, kind in visits:
        why = {} if kind in answers else {"reason": reason, "detail": detail}
        store.observe(page, NOW - days * DAY_S, kind, **why)
    return page


async def ahead(store: SmallStore, page: int) -> PageForecast:
    async with snapshot(store.path) as connection:
        found = await forecast_page(connection, page, NOW)
    assert found is not None
    return found


async def said(store: SmallStore, page: int, obstacle: str | None = None) -> str:
    return " ".join(sentences(await ahead(store, page), NOW, obstacle=obstacle, is_running=True))


async def test_a_page_that_is_kept(store: SmallStore) -> None:
    page = page_with(store, "/page", (6, "new"), (5, "changed"), (3, "changed"), (1, "unchanged"))
    believed(store, page, days=0.5, worth=0.05, paid=0.2, due_at=NOW + DAY_S)
    text = await said(store, page)
    assert text.startswith("It changes about every 2 days (3 comparisons). It was found unchanged ")
    assert "24 h ago; the chance that it has changed since is 39.3 %. Its importance is 1" in text
    assert "(site list “one”). The next visit is due about " in text
    assert text.endswith("(in 24 h).")
    assert "host" not in text


async def test_a_chance_is_carried_on_to_the_moment_of_the_question(store: SmallStore) -> None:
    page = page_with(store, "/page", (6, "new"), (4, "changed"))
    believed(store, page, days=2.0, worth=0.05, due_at=NOW - DAY_S)
    found = await ahead(store, page)
    assert found.stale == pytest.approx(-expm1(-0.5 * 4))
    assert found.estimated_at == NOW - 2 * DAY_S
    assert found.due_in_days == 0.0
    assert "It is next in line." in await said(store, page)


async def test_after_a_visit_that_the_estimate_does_not_know_its_rate_and_interval_hold(
    store: SmallStore,
) -> None:
    page = page_with(store, "/page", (6, "new"), (4, "changed"), (1, "unchanged"))
    believed(
        store, page, days=2.0, visited_at=NOW - 4 * DAY_S, hazard=1.0, worth=0.05, paid=0.3,
        due_at=NOW,
    )  # fmt: skip
    found = await ahead(store, page)
    assert found.rate.per_day == 0.5
    assert found.stale == pytest.approx(-expm1(-0.5))
    assert (found.value, found.due_in_days, found.estimated_at) == (None, 3.0, None)
    assert found.last is not None
    assert found.last.value is None


async def test_without_an_estimate_the_rate_is_that_of_its_own_visits(store: SmallStore) -> None:
    visits = [(float(day), "changed") for day in range(40, 1, -2)]
    page = page_with(store, "/page", (42.0, "new"), *visits)
    found = await ahead(store, page)
    assert (found.estimated_at, found.value, found.due_in_days) == (None, None, None)
    assert found.rate.lower < found.rate.per_day < found.rate.upper
    assert found.rate.per_day > 0.5
    assert found.rate.compared == 20
    assert found.stale == pytest.approx(-expm1(-2 * found.rate.per_day))
    async with snapshot(store.path) as connection:
        assert await rate_of(connection, page) == found.rate


async def test_a_page_that_was_found_and_not_fetched_yet(store: SmallStore) -> None:
    page = page_with(store, "/new", found_at=NOW - 0.25 * DAY_S)
    believed(store, page, rate=0.0, low=0.0, high=0.0, worth=1 / 3)
    text = await said(store, page)
    assert text.startswith("Found 6 h ago and not fetched yet. Its importance is 1")
    assert (
        "Without a copy, the value of a visit is its importance times the days of waiting" in text
    )
    assert text.endswith(
        "With 24 requests a day it is not visited now: other pages change more for the cost of a "
        "visit. A spot check may visit it."
    )


async def test_a_page_that_a_rule_excludes(store: SmallStore) -> None:
    page = page_with(store, "/tag/x")
    assert await said(store, page) == "Not visited: the [[sites]] table /tag/* sets never = true."


def test_a_page_that_somebody_excluded_in_a_browser(store: SmallStore) -> None:
    page_with(store, "/page")
    asked = "explain", f"{HOST}/page", "--db", store.path
    assert as_json(*asked)["prospect"]["excluded_by"] is None
    store.insert("site_setting", match="one.example", key="never", value="true", at=NOW)
    assert as_json(*asked)["prospect"]["excluded_by"] == "one.example"


async def test_a_page_whose_importance_a_table_sets(store: SmallStore) -> None:
    page = page_with(store, "/dear/x", (6, "new"), (1, "unchanged"))
    assert "Its importance is 7.5 (set in the file for “/dear/*”)." in await said(store, page)


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("list", "1.5 (site list “one”)."),
        ("constant", "1.5 (constant)."),
        ("pagerank", "1.5 (site list “one”: 1, by PageRank 1.5 times that)."),
        ("opened", "1.5 (site list “one”: 1, by opens 1.5 times that)."),
    ],
)
async def test_an_importance_comes_with_its_origin(store: SmallStore, by: str, words: str) -> None:
    settings, _ = load(None, {"daemon.budget": "24/day", "daemon.importance": by})
    store.execute("UPDATE crawl_run SET settings = ?", settings.model_dump_json())
    page = page_with(store, "/page", (6, "new"))
    believed(store, page, importance=1.5)
    assert f"Its importance is {words}" in await said(store, page)
    store.execute("DELETE FROM seed")
    origin = (await ahead(store, page)).importance.origin
    assert origin == ("constant" if by == "constant" else "default")


async def test_a_brief_forecast_reads_the_page_alone(
    store: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = page_with(store, "/page", (6, "new"), (5, "changed"))
    believed(store, page, days=0.5, worth=0.05, due_at=NOW + DAY_S, arrival_rate=2.0)
    whole = await ahead(store, page)
    for name in ("interests", "learnt_items", "ImportanceData"):
        monkeypatch.setattr(forecast, name, None)
    async with snapshot(store.path) as db:
        found = await forecast.forecast_page(db, page, NOW, brief=True)
    noted = Importance(1.0, "as the daemon valued it")
    assert found == replace(whole, importance=noted)


async def test_copies_share_the_importance_of_one_page_which_keeps_it(store: SmallStore) -> None:
    pages = [page_with(store, f"/copy{n}", (6, "new")) for n in range(3)]
    for page in pages:
        version = store.insert("version", page_id=page, at=NOW - 6 * DAY_S, body_digest=b"d" * 16)
        store.insert("lsh_page", page_id=page, version_id=version, leader_id=pages[0])
    found = (await ahead(store, pages[1])).importance
    assert (found.near_duplicates, found.is_whole) == (2, False)
    assert found.value == pytest.approx(1 / 3)
    assert "shared with 2 pages with nearly the same text" in found.said()
    store.insert("lsh_group", leader_id=pages[0], representative_id=pages[2])
    found = (await ahead(store, pages[2])).importance
    assert (found.near_duplicates, found.is_whole, found.value) == (2, True, 1.0)
    assert "whole beside 2 pages with nearly the same text" in found.said()


async def test_a_page_that_is_gone(store: SmallStore) -> None:
    page = page_with(
        store, "/gone", (9, "new"), (4, "gone"), (2, "gone"), reason="http_404", detail="no"
    )
    text = await said(store, page)
    assert text.startswith("It was gone twice (http_404: no), last 2 d ago; each time in a row")
    assert (await ahead(store, page)).age_days == pytest.approx(2.0)


async def test_a_page_that_fails_waits_for_its_next_try(store: SmallStore) -> None:
    page = page_with(store, "/down", (9, "new"), (0.01, "failed"), reason="timeout", detail="slow")
    store.due(page, NOW + 600, attempt=1)
    believed(store, page, worth=5.0, hazard=4.5, due_at=NOW)
    found = await ahead(store, page)
    assert found.not_before == NOW + 600
    assert found.due_in_days == pytest.approx(600 / DAY_S)
    text = await said(store, page)
    assert (
        "Visits failed once (timeout: slow), last 14 min ago; the copy from before is kept." in text
    )


async def test_a_page_that_never_answered_is_visited_again_when_its_wait_is_over(
    store: SmallStore,
) -> None:
    page = page_with(store, "/never", (0.2, "failed"), (0.1, "failed"), reason="dns")
    believed(store, page, rate=0.0, not_before=NOW + 3_600)
    text = await said(store, page)
    assert text.startswith("Visits failed twice (dns), last 2 h ago; there is no copy yet.")
    assert "It is visited again from " in text
    assert "worth" not in text


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("redirected", "It redirected to https://b.example/ when it was visited 3 d ago"),
        ("refused", "Its host's robots.txt forbade it (https://b.example/) when it was"),
        ("skipped", "It is not crawled (type: https://b.example/) when it was"),
    ],
)
async def test_a_page_that_is_none_waits(store: SmallStore, kind: str, words: str) -> None:
    page = page_with(store, "/x", (3, kind), reason="type", detail="https://b.example/")
    believed(store, page, rate=0.0, not_before=NOW + 27 * DAY_S)
    text = await said(store, page)
    assert text.startswith(words)
    assert "(in 27 d) on." in text


async def test_a_page_that_was_drawn_at_random(store: SmallStore) -> None:
    page = page_with(store, "/drawn", (9, "new"), (1, "unchanged"))
    ((seen,),) = rows(store.path, "SELECT max(id) FROM observation")
    store.insert("audit", observation_id=seen, importance=1.0, since=0.0, expected=0.1)
    assert "24 h ago, by a spot check; the" in await said(store, page)


async def test_rules_keep_visits_apart_and_let_none_wait_too_long(store: SmallStore) -> None:
    page = page_with(store, "/slow/x", (9, "new"), (1, "changed"))
    believed(store, page, worth=1.0, not_before=NOW + 9 * DAY_S, due_at=NOW)
    found = await ahead(store, page)
    assert found.not_before == NOW + 9 * DAY_S
    assert found.due_in_days == pytest.approx(9)
    assert "The settings keep visits at least 10 d apart." in await said(store, page)
    late = page_with(store, "/must/late", (9, "new"), (3, "unchanged"))
    believed(store, late, due_at=NOW - DAY_S)
    text = await said(store, late)
    assert (
        "The settings ask for a visit every 2 d: it is overdue, so first. It is next in line."
        in text
    )
    soon = page_with(store, "/must/soon", (9, "new"), (1, "unchanged"))
    assert "The settings ask for a visit every 2 d." in await said(store, soon)


async def test_of_a_host_at_its_cap_that_is_told(store: SmallStore) -> None:
    page = page_with(store, "/page", (9, "new"), (5, "changed"))
    believed(store, page, worth=0.5, paid=0.3, due_at=NOW)
    cap = {"outlook_at": NOW - 60, "most": 86_400.0, "wanted": 120_000.0, "pages": 2}
    store.insert("capped_queue", queue="another.example", **cap)
    assert "cap" not in await said(store, page)
    store.insert("capped_queue", queue="one.example", **cap)
    text = await said(store, page)
    assert "It is next when its host allows a request." in text
    assert "Its host allows 86,400 visits a day; 120,000 are wanted." in text


async def test_a_page_under_a_rate_policy_has_a_plan(store: SmallStore) -> None:
    store.execute("UPDATE crawl_run SET settings = ?", order("lambda_crawl", []))
    store.execute("UPDATE outlook SET price = NULL")
    page = page_with(store, "/page", (9, "new"), (0.5, "changed"))
    believed(store, page, planned=1.0, due_at=NOW + DAY_S / 2)
    found = await ahead(store, page)
    assert found.due_in_days == pytest.approx(0.5)
    assert found.price is found.value is None
    text = await said(store, page)
    assert "The plan of lambda_crawl for 24 requests a day visits it about once a day." in text
    none = page_with(store, "/none", (9, "new"), (0.5, "changed"))
    believed(store, none, planned=0.0)
    assert "gives it no visits: other pages gain more." in await said(store, none)
    new = page_with(store, "/new")
    believed(store, new, rate=0.0, planned=0.0)
    assert "Without a copy, it is chosen by its importance and its" in await said(store, new)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"claimed": 1}, ", by its change signals, which have been reliable."),
        ({"clocked": 1.0}, ", by the rhythm of its site."),
        ({"clocked": 1.0, "claimed": 0}, "its site; its change signals have been unreliable."),
    ],
)
async def test_the_basis_of_a_chance_is_told(
    store: SmallStore, columns: dict[str, float], words: str
) -> None:
    page = page_with(store, "/page", (9, "new"), (5, "changed"))
    believed(store, page, **columns)
    assert words in await said(store, page)


async def test_what_stands_in_the_way_and_that_no_daemon_runs_comes_last(store: SmallStore) -> None:
    page = page_with(store, "/page", (9, "new"), (5, "changed"))
    believed(store, page)
    forecast = await ahead(store, page)
    *_, one, last = sentences(forecast, NOW, obstacle="its host is parked", is_running=False)
    assert (one, last) == ("Now its host is parked.", "No daemon is running.")


async def test_of_a_crawl_and_of_what_is_held_back_a_daemon_has_nothing_to_say(
    store: SmallStore,
) -> None:
    page = store.page("/kept-out", held_back="nofollow")
    async with snapshot(store.path) as connection:
        assert await forecast_page(connection, page, NOW) is None
    store.run(NOW - DAY_S)
    async with snapshot(store.path) as connection:
        assert await forecast_page(connection, 1, NOW) is None


async def test_a_source_of_news_and_its_newest_item_are_told_as_such(store: SmallStore) -> None:
    front = page_with(store, "/news", (2, "new"), (0.5, "changed"))
    believed(store, front, arrival_rate=4.0, half_life_hours=6.0, worth=1.0)
    words = await said(store, front)
    assert "an ephemeral source: about 4 new items appear a day, which lose half of" in words
    assert "of their value in 6 h." in words
    item = page_with(store, "/item", found_at=NOW - DAY_S / 2)
    believed(store, item, rate=0.0, urgent=1, due_at=NOW - 60)
    new = await ahead(store, item)
    assert (new.urgent, new.value, new.due_in_days) == (True, None, 0.0)
    assert "it is visited before other pages" in await said(store, item)
    assert "learnt" not in words
    store.items(front, [NOW - 9 * DAY_S + n for n in range(12)], [0.0, 3_600.0, DAY_S])
    assert "This is learnt from 24 clicks on its items" in await said(store, front)
    assert "an item is worth 1.00 times the configured value." in await said(store, front)
