import gzip

import feedparser
import pytest
from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.extensions.lab.synthetic_web.content import DAY_S, SyntheticUrl
from freshet.crawler.extensions.lab.synthetic_web.site import Addresses, Manifest
from freshet.crawler.extensions.lab.synthetic_web.sites import SITEMAPS, listed, manifest_bytes
from freshet.crawler.extensions.lab.synthetic_web.web import showcase
from scripts.synthetic_truth import Truth
from tests.crawler.extensions.lab.synthetic_web.browsing import get, responder_for

WEB = showcase()
ADDRESSES = Addresses.named(WEB.sites, 8000)
AT = WEB.start_at + 2 * DAY_S


def entries(manifest: Manifest, at: float, name: str = "news") -> dict[str, str | None]:
    body = manifest_bytes(WEB.sites[name], manifest, at, ADDRESSES)
    xml = gzip.decompress(body) if manifest == "sitemap gzip" else body
    tree = LexborHTMLParser(xml)
    locations = [node.text() for node in tree.css("loc")]
    dates: list[str | None] = [node.text() for node in tree.css("lastmod")]
    return dict(zip(locations, dates or [None] * len(locations), strict=True))


def test_the_index_names_the_other_sitemaps() -> None:
    names = {f"http://news.localhost:8000{target}" for target in list(SITEMAPS)[1:]}
    assert entries("sitemap index", AT).keys() == names


def test_both_sitemaps_together_list_what_is_alive_and_when_it_changed() -> None:
    both = {**entries("sitemap", AT), **entries("sitemap gzip", AT)}
    site = WEB.sites["news"]
    assert both.keys() == {
        ADDRESSES.url(SyntheticUrl("news", target)) for target, _ in listed(site, AT)
    }
    assert len(both) > 30
    for url, lastmod in both.items():
        place = ADDRESSES.place(url)
        assert place is not None
        assert place in Truth(WEB).alive(AT)
        day = lastmod.partition("T")[0] if lastmod else ""
        assert "2025-11" <= day[:7] <= "2026-01"


def test_a_parameter_in_a_url_is_escaped_in_xml() -> None:
    body = manifest_bytes(WEB.sites["shop"], "sitemap", AT, ADDRESSES)
    assert b"/product?id=" in body
    assert all(url.startswith("http://shop.") for url in entries("sitemap", AT, "shop"))


def test_robots_txt_names_the_sitemap_under_the_sites_own_address() -> None:
    body = manifest_bytes(WEB.sites["wiki"], "robots", AT, ADDRESSES)
    assert b"Sitemap: http://wiki.localhost:8000/sitemap.xml" in body.splitlines()


@pytest.mark.parametrize(("name", "version"), [("news", "atom10"), ("wiki", "rss20")])
def test_a_feed_lists_the_latest_changes_first(name: str, version: str) -> None:
    site = WEB.sites[name]
    assert site.feed is not None
    feed = feedparser.parse(manifest_bytes(site, site.feed[1], AT, ADDRESSES))
    assert not feed.bozo
    assert feed.version == version
    places = [ADDRESSES.place(entry.link) for entry in feed.entries]
    documents = dict(WEB.documents())
    changes = [documents[place].changed_at(AT) for place in places if place is not None]
    assert len(changes) == 15
    assert changes == sorted(changes, reverse=True)


def test_forbidden_pages_are_in_no_list() -> None:
    site = WEB.sites["guarded"]
    assert not site.forbidden & {target for target, _ in listed(site, AT)}


def test_a_list_is_served_with_a_tag_that_changes_with_it() -> None:
    responder = responder_for(WEB)
    place = SyntheticUrl("news", "/feed.atom")
    answers = [get(responder, place, WEB.start_at + days * DAY_S) for days in (0, 0, 2)]
    first, again, later = (answer.header("ETag") for answer in answers)
    assert first == again != later
