"""`freshet discover` chooses the pages that reveal a site's new ones."""

import json
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from freshet.crawler.frontier.clock import iso
from freshet.scheduler.discovery.thesis_covers import ALGORITHMS
from tests.console import as_json, freshet
from tests.storage.small_store import SmallStore

DAY_S = 86_400.0
WEEKS = 6
discover = partial(freshet, "discover")


def fill(small: SmallStore, weeks: int = WEEKS) -> None:
    """A site that is recrawled each week.

    `/news` links to two new pages a week, its mirror to the same; each of these leads to a third.
    """
    small.run(0.0)
    small.host()
    pages = [add(small, path, 0.0) for path in ("/", "/news", "/mirror", "/quiet", "/still")]
    for week in range(1, weeks + 1):
        at = week * 7 * DAY_S
        for page in pages[:5]:
            small.observe(page, at, "changed")
        new = [add(small, f"/{week}/{name}", at) for name in ("a", "b", "behind")]
        for target in new[:2]:
            small.link(pages[1], target, at)
            small.link(pages[2], target, at)
        small.link(new[0], new[2], at)
        pages += new


def add(small: SmallStore, path: str, at: float) -> int:
    page = small.page(path, found_at=at, version_id=1, checked_at=at)
    small.observe(page, at, "new")
    return page


@pytest.fixture
def weekly(small: SmallStore) -> SmallStore:
    """A site that was recrawled in each of six weeks."""
    fill(small)
    return small


def told(store: SmallStore, *options: object) -> Any:
    return json.loads(discover("one.example", "--db", store.path, "--json", *options).stdout)


def test_the_pages_that_reveal_the_new_ones_are_chosen(weekly: SmallStore) -> None:
    found = as_json("discover", "one.example", "--db", weekly.path, "--budget", 1)
    assert (found["pages"], found["new"], found["orphans"]) == (23, 18, 0)
    assert found["new_per_day"] == pytest.approx(3 / 7)
    (chosen,) = found["cover"]
    assert chosen["url"] == "http://one.example/news"
    assert chosen["share"] == pytest.approx(1.0)
    assert chosen["visited_at"] == iso(WEEKS * 7 * DAY_S)
    assert found["past"]["od_win"] == {
        "coverage": 1.0, "overhead": pytest.approx(1 / 3), "depth": 1,
    }  # fmt: skip
    assert found["past"]["greedy with hindsight"]["coverage"] == 1.0


def test_pages_that_reveal_the_same_are_shown_as_alike(weekly: SmallStore) -> None:
    found = told(weekly)
    assert [page["url"][-7:] for page in found["cover"]] == ["le/news", "/mirror"]
    assert len({page["cluster"] for page in found["cover"]}) == 1
    one = told(weekly, "--algorithm", "cliq_1")
    assert [page["url"][-5:] for page in one["cover"]] == ["/news"]


def test_the_tables_say_what_was_found_and_at_what_price(weekly: SmallStore) -> None:
    result = discover("http://one.example/anything", "--db", weekly.path)
    assert result.exit_code == 0, result.output
    for words in (
        "23 pages, 18 of them found in 6 steps of 7 days", "/mirror", "cliq_win", "100.0 %",
    ):  # fmt: skip
        assert words in result.stdout


def test_a_date_is_shown_not_how_long_ago(weekly: SmallStore) -> None:
    shown = discover("one.example", "--db", weekly.path).stdout
    assert f"{datetime.fromtimestamp(WEEKS * 7 * DAY_S, UTC).astimezone():%Y-%m-%d %H:%M}" in shown
    assert "ago" not in shown


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_can_be_asked(weekly: SmallStore, algorithm: str) -> None:
    found = as_json("discover", "one.example", "--db", weekly.path, "--algorithm", algorithm)
    assert found["cover"][0]["url"] == "http://one.example/news"
    assert found["past"][algorithm]["coverage"] > 0


def test_without_an_algorithm_overlaps_come_last(weekly: SmallStore) -> None:
    other = weekly.page("/other", found_at=0.0, version_id=1)
    weekly.observe(other, 0.0, "new")
    weekly.link(other, add(weekly, "/late", 6 * 7 * DAY_S), 6 * 7 * DAY_S)
    found = told(weekly)
    assert found["algorithm"] == "cov_win"
    assert [page["url"][18:] for page in found["cover"]] == ["/news", "/other", "/mirror"]


def gone(small: SmallStore, path: str, at: float) -> None:
    small.execute("UPDATE page SET last_kind = 'gone' WHERE url LIKE ?", f"%{path}")
    small.execute(
        "INSERT INTO observation (page_id, run_id, at, kind, duration_s) "
        "SELECT id, 1, ?, 'gone', 0.1 FROM page WHERE url LIKE ?", at, f"%{path}",
    )  # fmt: skip


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_page_that_is_gone_is_not_chosen(weekly: SmallStore, algorithm: str) -> None:
    gone(weekly, "/news", (WEEKS * 7 + 1) * DAY_S)
    found = told(weekly, "--algorithm", algorithm)
    assert found["cover"][0]["url"] == "http://one.example/mirror"
    assert "http://one.example/news" not in {page["url"] for page in found["cover"]}
    assert found["past"]["od_win"]["coverage"] == 1.0


def test_where_all_that_revealed_is_gone_it_is_said(weekly: SmallStore) -> None:
    for path in ("/news", "/mirror"):
        gone(weekly, path, (WEEKS * 7 + 1) * DAY_S)
    result = discover("one.example", "--db", weekly.path)
    assert result.exit_code == 0
    assert "All pages that revealed any are gone" in result.stdout


def test_where_nothing_led_to_what_is_new_it_is_said(site: SmallStore) -> None:
    pages = [add(site, "/", 0.0), add(site, "/about", 0.0)]
    for week in range(1, 5):
        for page in pages[:2]:
            site.observe(page, week * 7 * DAY_S, "unchanged")
    add(site, "/orphan", 7 * DAY_S)
    result = discover("one.example", "--db", site.path)
    assert result.exit_code == 0
    assert "No known page led to any of them" in result.stdout


def test_an_algorithm_that_knows_the_last_step_only_says_so_after_a_quiet_one(
    weekly: SmallStore,
) -> None:
    for page in (1, 2, 3):
        weekly.observe(page, (WEEKS + 1) * 7 * DAY_S, "unchanged")
    result = discover("one.example", "--db", weekly.path, "--algorithm", "cov")
    assert "cov uses only the last step" in result.stdout
    assert "/news" in discover("one.example", "--db", weekly.path, "--algorithm", "greedy").stdout


def test_a_site_of_one_page_is_no_error(site: SmallStore) -> None:
    page = add(site, "/", 0.0)
    assert "1 page, and no step" in discover("one.example", "--db", site.path).stdout
    for day in range(1, 40):
        site.observe(page, day * DAY_S, "unchanged")
    assert "1 page, and no new page" in discover("one.example", "--db", site.path).stdout


def test_a_site_without_a_history_is_no_error(small: SmallStore) -> None:
    fill(small, weeks=0)
    result = discover("one.example", "--db", small.path)
    assert result.exit_code == 0
    assert "no step after the first crawl" in result.stdout
    assert told(small)["cover"] == []


def test_a_site_with_no_page_that_had_content_is_no_error(site: SmallStore) -> None:
    result = discover("one.example", "--db", site.path)
    assert result.exit_code == 0
    assert "no page of the site has had content yet" in result.stdout


@pytest.mark.parametrize("step", [1e9, float("inf")])
def test_a_step_longer_than_the_past_is_no_error(weekly: SmallStore, step: float) -> None:
    result = discover("one.example", "--db", weekly.path, "--step", step)
    assert result.exit_code == 0
    assert "--step is too long" in result.stdout


def test_a_step_too_short_is_refused_in_one_line(weekly: SmallStore) -> None:
    result = discover("one.example", "--db", weekly.path, "--step", 0.002)
    assert result.exit_code == 1
    assert (
        result.stderr
        == "freshet: --step 0.002: 21,000 steps in 42 days, more than 1,000; give a longer one\n"
    )


def test_what_is_not_known_is_said_in_one_line(small: SmallStore) -> None:
    for arguments, code, words in (
        (("two.example",), 1, "the store does not know the site two.example"),
        (("one.example", "--algorithm", "best"), 2, "there are cov_win, greedy, od,"),
        (("http://[",), 2, "http://["),
    ):
        result = discover(*arguments, "--db", small.path)
        assert result.exit_code == code, result.output
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
