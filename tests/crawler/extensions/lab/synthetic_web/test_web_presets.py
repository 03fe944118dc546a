from collections import Counter

import pytest

from freshet.crawler.extensions.lab.synthetic_web.content import DAY_S
from freshet.crawler.extensions.lab.synthetic_web.web import (
    START_AT,
    WebSpec,
    mixed,
    newsroom,
    showcase,
)
from scripts.synthetic_server import plain
from scripts.synthetic_truth import Truth
from tests.crawler.extensions.lab.synthetic_web.browsing import get, responder_for


def test_the_same_seed_makes_the_same_web_to_the_byte() -> None:
    one, two = showcase(7), showcase(7)
    later = START_AT + 5 * DAY_S
    assert one.crawlable(later) == two.crawlable(later)
    assert Truth(one).edits_between(0.0, later) == Truth(two).edits_between(0.0, later)
    responders = responder_for(one), responder_for(two)
    for place in sorted(one.crawlable(later)):
        first, second = (get(responder, place, later) for responder in responders)
        assert first == second


def test_another_seed_makes_another_web() -> None:
    one, two = mixed(WebSpec(seed=1)), mixed(WebSpec(seed=2))
    assert Truth(one).edits_between(0.0, one.end_at) != Truth(two).edits_between(0.0, two.end_at)


def test_the_showcase_has_ten_hosts_and_about_two_hundred_pages() -> None:
    web = showcase()
    pages = Counter(place.host for place in web.crawlable(web.start_at))
    assert len(web.sites) == 10
    assert pages.keys() == web.sites.keys() - {"old"}
    assert 150 <= pages.total() <= 250
    # The largest host decides how long a polite crawl takes.
    assert max(pages.values()) <= 45


def test_a_showcase_without_traps_has_no_endless_places() -> None:
    web = showcase(traps=False)
    assert all(not site.traps for site in web.sites.values())
    assert all(site.traps for site in showcase().sites.values() if site.name == "events")


def test_a_mixed_web_has_hosts_and_pages_as_asked() -> None:
    web = mixed(WebSpec(hosts=6, pages_per_host=20))
    assert list(web.sites) == ["news", "docs", "shop", "wiki", "news2", "docs2"]
    pages = Counter(place.host for place in web.crawlable(web.start_at))
    assert all(16 <= n <= 25 for n in pages.values())


def test_a_plain_web_has_exactly_the_pages_asked_for() -> None:
    web = plain(3, 25)
    pages = Counter(place.host for place in web.crawlable(web.start_at))
    assert pages == {"h1": 25, "h2": 25, "h3": 25}
    assert Truth(web).edits_between(0.0, web.end_at) == []


@pytest.mark.parametrize(("hosts", "pages"), [(1, 1), (4, 1), (4, 2), (4, 3), (4, 7)])
def test_the_smallest_webs_can_be_made_too(hosts: int, pages: int) -> None:
    web = mixed(WebSpec(hosts, pages, span_days=1.0))
    assert {place.host for place in web.crawlable(web.end_at)} == set(web.sites)
    assert len(plain(hosts, pages).crawlable(START_AT)) == hosts * pages


def test_a_newsroom_has_two_hosts_of_news_and_a_quiet_one() -> None:
    web = newsroom(WebSpec(pages_per_host=20, span_days=10.0), 40)
    born = Counter(life.place.host for life in web.lives() if life.born_at > web.start_at)
    assert list(web.sites) == ["courier", "gazette", "docs"]
    assert born["courier"] == pytest.approx(300, rel=0.2)
    assert born["gazette"] == pytest.approx(100, rel=0.3)
    assert born["docs"] <= 1
    docs = [place for place in web.crawlable(web.start_at) if place.host == "docs"]
    assert 16 <= len(docs) <= 22


@pytest.mark.parametrize("items", [0.0, -3.0, float("inf"), float("nan")])
def test_a_newsroom_without_items_is_refused(items: float) -> None:
    with pytest.raises(ValueError, match=r"items is .*; accepted is a number above 0"):
        newsroom(WebSpec(), items)


def test_an_empty_web_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        WebSpec(hosts=0)
