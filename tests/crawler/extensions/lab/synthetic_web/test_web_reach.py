import pytest

from freshet.crawler.extensions.lab.synthetic_web.content import DAY_S
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb, WebSpec, mixed, showcase
from tests.crawler.extensions.lab.synthetic_web.browsing import NaiveCrawl, get, responder_for


@pytest.mark.parametrize("days", [0, 4, 30])
def test_a_crawl_that_reads_only_answers_finds_what_the_truth_says(days: int) -> None:
    web = showcase()
    at = web.start_at + days * DAY_S
    assert NaiveCrawl(web, at).run() == web.crawlable(at)


@pytest.mark.parametrize("seed", [2, 3])
def test_so_it_does_on_other_seeds(seed: int) -> None:
    web = mixed(WebSpec(hosts=4, pages_per_host=15, seed=seed))
    at = web.start_at + 10 * DAY_S
    assert NaiveCrawl(web, at).run() == web.crawlable(at)


@pytest.mark.parametrize("days", [0, 10, 60])
def test_every_crawlable_place_answers_200_at_the_second_try_at_the_latest(days: int) -> None:
    web = showcase()
    at = web.start_at + days * DAY_S
    responder = responder_for(web)
    for place in web.crawlable(at):
        statuses = [get(responder, place, at).status for _ in range(2)]
        assert 200 in statuses, place


def crawled(web: SyntheticWeb, host: str) -> set[str]:
    return {target for name, target in web.crawlable(web.start_at) if name == host}


def test_what_only_nofollow_links_lead_to_is_not_reached() -> None:
    found = crawled(showcase(), "notes")
    assert {"/nofollow", "/noindex", "/duplicate", "/deep/sideways"} <= found
    assert not {target for target in found if "hidden" in target}


def test_chains_are_followed_for_ten_redirects_and_no_more() -> None:
    found = crawled(showcase(), "status")
    assert {"/short/end", "/longest/end"} <= found
    assert "/endless-looking/end" not in found


def test_a_refresh_is_a_redirect_and_no_page() -> None:
    found = crawled(showcase(), "status")
    assert "/refreshed" in found
    assert "/refresh" not in found


def test_an_orphan_is_found_through_the_sitemap() -> None:
    assert "/reference/orphan.html" in crawled(showcase(), "docs")


def test_endless_places_are_flagged_and_left_out() -> None:
    web = showcase()
    trap = web.sites["events"].trap
    assert trap("/calendar/1999/12") == "calendar"
    assert trap("/rooms/2?sid=1") == "session"
    assert trap("/event/1") is None
    assert not any(trap(target) for target in crawled(web, "events"))
