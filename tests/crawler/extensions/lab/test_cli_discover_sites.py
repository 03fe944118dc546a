"""`freshet discover --new-sites` chooses the pages that lead to sites nobody knew."""

from typing import Any

import pytest

from tests.console import as_json, unix
from tests.crawler.extensions.lab.test_cli_discover import DAY_S, WEEKS, discover, fill
from tests.storage.small_store import SmallStore


@pytest.fixture
def store(small: SmallStore) -> SmallStore:
    fill(small)
    return small


def lead_out(store: SmallStore) -> None:
    """`/quiet` links to a blog a week, `/news` to one that was known, `/1/behind` to one more."""
    store.link(4, "https://known.example/", 0.0)
    for week in range(1, WEEKS + 1):
        at = week * 7 * DAY_S
        store.link(4, f"https://www.blog-{week}.example/post", at)
        store.link(4, f"http://blog-{week}.example/other", at)
        store.link(2, f"https://known.example/{week}", at)
    store.link(8, "https://behind.example", 7 * DAY_S)
    store.link(3, "http://one.example/private", 14 * DAY_S)
    store.link(3, "http://[broken", 14 * DAY_S)


def found(store: SmallStore, *options: object) -> Any:
    return as_json("discover", "one.example", "--new-sites", "--db", store.path, *options)


def test_the_page_that_leads_to_new_sites_is_chosen(store: SmallStore) -> None:
    lead_out(store)
    told = found(store, "--budget", 1)
    assert [page["url"] for page in told["cover"]] == ["http://one.example/quiet"]
    assert told["cover"][0]["revealed"] == WEEKS
    assert (told["new"], told["orphans"]) == (WEEKS + 1, 0)
    assert told["new_per_day"] == pytest.approx((WEEKS + 1) / WEEKS / 7)
    # After the first step `/news`, too, led to one site, by a new page, and is the first of equals.
    assert told["past"]["cov_win"]["coverage"] == pytest.approx(4 / 5)


def test_sites_are_named_once_with_when_they_were_first_seen(store: SmallStore) -> None:
    lead_out(store)
    told = found(store)
    sites = {each["site"]: unix(each["seen_at"]) / DAY_S / 7 for each in told["new_sites"]}
    blogs = {f"blog-{week}.example": week for week in range(1, WEEKS + 1)}
    assert sites == pytest.approx(blogs | {"behind.example": 1})
    shown = discover("one.example", "--new-sites", "--db", store.path).stdout
    assert f"first led to {WEEKS + 1} other sites in 6 steps" in shown
    assert "blog-6.example" in shown
    assert "visits for each site found" in shown


def test_a_site_that_the_store_crawls_is_not_new(store: SmallStore) -> None:
    lead_out(store)
    store.host("https://blog-2.example")
    assert found(store)["new"] == WEEKS


def test_a_site_that_another_one_led_to_before_is_not_new(store: SmallStore) -> None:
    lead_out(store)
    store.host("http://two.example")
    other = store.page("http://two.example/", host=2, version_id=1)
    store.link(other, "https://blog-3.example/", 0.0)
    assert found(store)["new"] == WEEKS


def test_what_only_a_page_nobody_links_to_led_to_is_an_orphan(store: SmallStore) -> None:
    lead_out(store)
    page = store.page("/orphan", found_at=21 * DAY_S, version_id=1)
    store.observe(page, 21 * DAY_S, "new")
    store.link(page, "https://far.example/", 21 * DAY_S)
    assert found(store)["orphans"] == 1


def test_a_site_that_led_nowhere_is_no_error(store: SmallStore) -> None:
    told = found(store)
    assert (told["new"], told["cover"], told["new_sites"]) == (0, [], [])
    result = discover("one.example", "--new-sites", "--db", store.path)
    assert result.exit_code == 0
    assert "none led to a new site" in result.stdout


def test_without_it_pages_are_what_is_new(store: SmallStore) -> None:
    lead_out(store)
    told = as_json("discover", "one.example", "--db", store.path)
    assert told["new_sites"] is None
    assert told["new"] == 18
