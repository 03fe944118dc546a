"""`freshet discover` chooses the pages that reveal a site's new ones."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from freshet.scheduler.discovery.thesis import ALGORITHMS
from tests.console import app
from tests.storage.small_store import SmallStore, small_store

DAY_S = 86_400.0
WEEKS = 6


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    return asyncio.run(small_store(tmp_path / "crawl.db"))


def fill(store: SmallStore, weeks: int = WEEKS) -> None:
    """A site that is recrawled each week.

    `/news` links to two new pages a week, its mirror to the same; each of these leads to a third.
    """
    store.run(0.0)
    store.host()
    pages = [add(store, path, 0.0) for path in ("/", "/news", "/mirror", "/quiet", "/still")]
    for week in range(1, weeks + 1):
        at = week * 7 * DAY_S
        for page in pages[:5]:
            store.observe(page, at, "changed")
        new = [add(store, f"/{week}/{name}", at) for name in ("a", "b", "behind")]
        for target in new[:2]:
            store.link(pages[1], target, at)
            store.link(pages[2], target, at)
        store.link(new[0], new[2], at)
        pages += new


def add(store: SmallStore, path: str, at: float) -> int:
    page = store.page(path, found_at=at, version_id=1, checked_at=at)
    store.observe(page, at, "new")
    return page


def discover(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["discover", *map(str, arguments)])


def test_the_pages_that_reveal_the_new_ones_are_chosen(store: SmallStore) -> None:
    fill(store)
    result = discover("one.example", "--db", store.path, "--budget", 1, "--json")
    assert result.exit_code == 0, result.output
    found: Any = json.loads(result.stdout, parse_constant=pytest.fail)
    assert (found["pages"], found["new"], found["orphans"]) == (23, 18, 0)
    assert found["new_per_day"] == pytest.approx(3 / 7)
    (chosen,) = found["cover"]
    assert chosen["url"] == "http://one.example/news"
    assert chosen["share"] == pytest.approx(1.0)
    assert chosen["looked_at"] == WEEKS * 7 * DAY_S
    assert found["past"]["od_win"] == {
        "coverage": 1.0,
        "overhead": pytest.approx(1 / 3),
        "depth": 1,
    }
    assert found["past"]["greedy with hindsight"]["coverage"] == 1.0


def test_pages_that_reveal_the_same_are_shown_as_alike(store: SmallStore) -> None:
    fill(store)
    found = json.loads(discover("one.example", "--db", store.path, "--json").stdout)
    assert [page["url"][-7:] for page in found["cover"]] == ["le/news", "/mirror"]
    assert len({page["cluster"] for page in found["cover"]}) == 1
    one = json.loads(
        discover("one.example", "--db", store.path, "--json", "--algorithm", "cliq_1").stdout
    )
    assert [page["url"][-5:] for page in one["cover"]] == ["/news"]


def test_the_tables_say_what_was_found_and_at_what_price(store: SmallStore) -> None:
    fill(store)
    result = discover("http://one.example/anything", "--db", store.path)
    assert result.exit_code == 0, result.output
    for words in (
        "23 pages, 18 of them found in 6 steps of 7 days",
        "/mirror",
        "cliq_win",
        "100.0 %",
    ):
        assert words in result.stdout


def test_a_date_is_shown_not_how_long_ago(store: SmallStore) -> None:
    fill(store)
    shown = discover("one.example", "--db", store.path).stdout
    assert f"{datetime.fromtimestamp(WEEKS * 7 * DAY_S, UTC).astimezone():%Y-%m-%d %H:%M}" in shown
    assert "ago" not in shown


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_can_be_asked(store: SmallStore, algorithm: str) -> None:
    fill(store)
    result = discover("one.example", "--db", store.path, "--json", "--algorithm", algorithm)
    found = json.loads(result.stdout)
    assert found["cover"][0]["url"] == "http://one.example/news"
    assert found["past"][algorithm]["coverage"] > 0


def test_without_an_algorithm_overlaps_come_last(store: SmallStore) -> None:
    fill(store)
    other = store.page("/other", found_at=0.0, version_id=1)
    store.observe(other, 0.0, "new")
    store.link(other, add(store, "/late", 6 * 7 * DAY_S), 6 * 7 * DAY_S)
    found = json.loads(discover("one.example", "--db", store.path, "--json").stdout)
    assert found["algorithm"] == "cov_win"
    assert [page["url"][18:] for page in found["cover"]] == ["/news", "/other", "/mirror"]


def gone(store: SmallStore, path: str, at: float) -> None:
    store.execute("UPDATE page SET last_kind = 'gone' WHERE url LIKE ?", f"%{path}")
    store.execute(
        "INSERT INTO observation (page_id, run_id, at, kind, duration_s) "
        "SELECT id, 1, ?, 'gone', 0.1 FROM page WHERE url LIKE ?", at, f"%{path}",
    )  # fmt: skip


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_page_that_is_gone_is_not_chosen(store: SmallStore, algorithm: str) -> None:
    fill(store)
    gone(store, "/news", (WEEKS * 7 + 1) * DAY_S)
    found = json.loads(
        discover("one.example", "--db", store.path, "--json", "--algorithm", algorithm).stdout
    )
    assert found["cover"][0]["url"] == "http://one.example/mirror"
    assert "http://one.example/news" not in {page["url"] for page in found["cover"]}
    assert found["past"]["od_win"]["coverage"] == 1.0


def test_where_all_that_revealed_is_gone_it_is_said(store: SmallStore) -> None:
    fill(store)
    for path in ("/news", "/mirror"):
        gone(store, path, (WEEKS * 7 + 1) * DAY_S)
    result = discover("one.example", "--db", store.path)
    assert result.exit_code == 0
    assert "All pages that revealed any are gone" in result.stdout


def test_where_nothing_led_to_what_is_new_it_is_said(store: SmallStore) -> None:
    store.run(0.0)
    store.host()
    pages = [add(store, "/", 0.0), add(store, "/about", 0.0)]
    for week in range(1, 5):
        for page in pages[:2]:
            store.observe(page, week * 7 * DAY_S, "unchanged")
    add(store, "/orphan", 7 * DAY_S)
    result = discover("one.example", "--db", store.path)
    assert result.exit_code == 0
    assert "No known page led to any of them" in result.stdout


def test_an_algorithm_that_knows_the_last_step_only_says_so_after_a_quiet_one(
    store: SmallStore,
) -> None:
    fill(store)
    for page in (1, 2, 3):
        store.observe(page, (WEEKS + 1) * 7 * DAY_S, "unchanged")
    result = discover("one.example", "--db", store.path, "--algorithm", "cov")
    assert "cov uses only the last step" in result.stdout
    assert "/news" in discover("one.example", "--db", store.path, "--algorithm", "greedy").stdout


def test_a_site_of_one_page_is_no_error(store: SmallStore) -> None:
    store.run(0.0)
    store.host()
    page = add(store, "/", 0.0)
    assert "1 page, and no step" in discover("one.example", "--db", store.path).stdout
    for day in range(1, 40):
        store.observe(page, day * DAY_S, "unchanged")
    assert "1 page, and no new page" in discover("one.example", "--db", store.path).stdout


def test_a_site_without_a_history_is_no_error(store: SmallStore) -> None:
    fill(store, weeks=0)
    result = discover("one.example", "--db", store.path)
    assert result.exit_code == 0
    assert "no step after the first crawl" in result.stdout
    assert json.loads(discover("one.example", "--db", store.path, "--json").stdout)["cover"] == []


def test_a_site_with_no_page_that_had_content_is_no_error(store: SmallStore) -> None:
    store.run(0.0)
    store.host()
    result = discover("one.example", "--db", store.path)
    assert result.exit_code == 0
    assert "no page of the site has had content yet" in result.stdout


@pytest.mark.parametrize("step", [1e9, float("inf")])
def test_a_step_longer_than_the_past_is_no_error(store: SmallStore, step: float) -> None:
    fill(store)
    result = discover("one.example", "--db", store.path, "--step", step)
    assert result.exit_code == 0
    assert "--step is too long" in result.stdout


def test_a_step_too_short_is_refused_in_one_line(store: SmallStore) -> None:
    fill(store)
    result = discover("one.example", "--db", store.path, "--step", 0.002)
    assert result.exit_code == 1
    assert result.stderr == "freshet: --step 0.002: 21,000 steps in 42 days; at most 1,000\n"


def test_what_is_not_known_is_said_in_one_line(store: SmallStore) -> None:
    for arguments, code, words in (
        (("two.example",), 1, "the store does not know the site two.example"),
        (("one.example", "--algorithm", "best"), 2, "there are cov_win, greedy, od,"),
        (("http://[",), 2, "http://["),
    ):
        result = discover(*arguments, "--db", store.path)
        assert result.exit_code == code, result.output
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
