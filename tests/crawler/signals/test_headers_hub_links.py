"""Which hub a page names: Link headers first, then the document."""

import pytest

from freshet.crawler.reduce.page import parse
from freshet.crawler.reduce.sitemaps import read_feed
from freshet.crawler.signals.headers import advertised
from freshet.storage.entries import HubLink

URL = "https://a.example/feed"


@pytest.mark.parametrize(
    ("headers", "hub", "topic"),
    [
        (['<https://hub.example/>; rel="hub"'], "https://hub.example/", URL),
        (["<https://hub.example/>; rel=hub, <https://a.example/x>; rel=self"],
         "https://hub.example/", "https://a.example/x"),
        (['</hub>; title="a;b,c"; rel="alternate HUB"'], "https://a.example/hub", URL),
        (["<https://h.example/>;rel=hub", "<https://i.example/>;rel=hub"],
         "https://h.example/", URL),
        (["<https://h.example/#x>;rel=hub"], "https://h.example/", URL),
    ],
)  # fmt: skip
def test_a_link_header_names_hub_and_topic(headers: list[str], hub: str, topic: str) -> None:
    assert advertised(headers, (), URL) == HubLink(hub, topic)


def test_without_a_hub_nothing_is_advertised() -> None:
    for header in ("", "<https://h.example/>; rel=next", "<mailto:x>; rel=hub", "h; rel=hub"):
        assert advertised([header] if header else [], (("self", URL),), URL) is None


def test_a_page_names_them_in_its_head() -> None:
    html = b'<html><head><link rel="hub" href="/h"><link rel="self" href="/s"></head></html>'
    links = parse(html, URL, "text/html").hub_links
    assert advertised((), links, URL) == HubLink("https://a.example/h", "https://a.example/s")
    over, hub = ["<https://other.example/>; rel=hub"], "https://other.example/"
    assert advertised(over, links, URL) == HubLink(hub, "https://a.example/s")


@pytest.mark.parametrize(
    "feed",
    [
        (
            b'<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title>'
            b'<link rel="hub" href="https://h.example/"/><link rel="self" href="https://a.example/s"/>'
            b"<entry><title>e</title></entry></feed>"
        ),
        (
            b'<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>t</title>'
            b'<atom:link rel="hub" href="https://h.example/"/>'
            b'<atom:link rel="self" href="https://a.example/s"/><item><title>e</title></item>'
            b"</channel></rss>"
        ),
    ],
)
def test_a_feed_names_them_among_its_links(feed: bytes) -> None:
    links = read_feed(feed, URL).hub_links
    assert advertised((), links, URL) == HubLink("https://h.example/", "https://a.example/s")
