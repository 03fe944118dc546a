"""The entries of feeds as links."""

from pathlib import Path

import pytest

from freshet.crawler.reduce.sitemaps import MAX_FEED_BYTES, read_feed
from freshet.storage.records import Links

URL = "https://h.example/blog/feed.xml"


def entry_links(body: bytes, url: str) -> Links:
    return read_feed(body, url).links


def rss(*items: str) -> bytes:
    return f"<rss version='2.0'><channel><title>t</title>{''.join(items)}</channel></rss>".encode()


def test_the_items_of_an_rss_feed_are_links_with_their_titles() -> None:
    found = entry_links(
        rss(
            "<item><title>One &amp; first</title><link>https://h.example/1?utm_source=rss</link></item>",
            *["<item><title>Two</title><link>/2#top</link></item>"] * 2,
            "<item><title>No link</title></item>",
        ),
        URL,
    )
    assert found == Links(
        urls=("https://h.example/1", "https://h.example/2"),
        fetch_urls=("https://h.example/1?utm_source=rss", "https://h.example/2"),
        rels=("", ""),
        anchors=("One & first", "Two"),
    )


def test_a_guid_is_the_link_of_an_item_without_one_unless_it_is_no_permalink() -> None:
    guids = ("<guid>https://h.example/1</guid>", "<guid isPermaLink='true'>http://h.example/2</guid>",
             "<guid isPermaLink='false'>https://h.example/3</guid>", "<guid>4711</guid>",
             "<guid>https://h.example/g</guid><link>/5</link>")  # fmt: skip
    feed = read_feed(rss(*(f"<item>{guid}</item>" for guid in guids)), URL)
    expected = ("https://h.example/1", "http://h.example/2", "https://h.example/5")
    assert feed.links.fetch_urls == expected
    assert [page for page, _ in feed.dated] == list(feed.links.urls)


def test_the_entries_of_an_atom_feed_are_resolved_against_its_base() -> None:
    body = b"""<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://o.example/b/">
        <link href="/self"/><entry><title type="html">&lt;b&gt;A&lt;/b&gt;</title>
        <link href="a"/><link rel="edit" href="e"/><link rel="replies" href="r"/></entry></feed>"""
    found = entry_links(body, URL)
    assert (found.urls, found.anchors) == (("https://o.example/b/a",), ("A",))


def test_the_items_of_an_rdf_feed_are_links() -> None:
    body = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
        xmlns="http://purl.org/rss/1.0/"><item><title>A</title><link>a</link></item></rdf:RDF>"""
    assert entry_links(body, URL).urls == ("https://h.example/blog/a",)


@pytest.mark.parametrize("body", [b"", b"no feed", b"<html><a href=x>", b"\xff\xfe<", b"feed.xml"])
def test_what_is_no_feed_has_no_entries(body: bytes) -> None:
    assert entry_links(body, URL) == Links()


def test_a_feed_cut_short_or_ill_formed_gives_the_entries_that_it_has() -> None:
    body = rss("<item><title>A & B</title><link>/1</link></item>", "<item><link>/2</link></item>")
    assert entry_links(body[:-30], URL).urls[:1] == ("https://h.example/1",)


def test_what_feedparser_fails_at_is_no_feed() -> None:
    body = rss("<item><title>a</title><link>/1</link></item>")
    said = b'<?xml version="1.0" encoding="undefined"?>'
    assert not read_feed(said + body, URL).links.urls


@pytest.mark.parametrize("number", ["x110000", "xD800", "99999999999999999999", "0055296"])
def test_references_to_no_character_cost_no_entry_of_an_ill_formed_feed(number: str) -> None:
    found = entry_links(rss(f"<item><title>a &#{number}; & b</title><link>/1</link></item>"), URL)
    assert found.anchors == ("a \ufffd & b",)


def test_entities_reach_no_file_and_do_not_multiply(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    body = rss("<item><title>x&e;y</title><link>/1</link></item>")
    doctype = f'<!DOCTYPE rss [<!ENTITY e SYSTEM "{secret.as_uri()}">]>'.encode()
    assert "secret" not in entry_links(doctype + body, URL).anchors[0]


def test_a_feed_beyond_the_limit_is_cut_there() -> None:
    padding = "<!--" + "x" * MAX_FEED_BYTES + "-->"
    body = rss("<item><link>/1</link></item>", padding, "<item><link>/2</link></item>")
    assert entry_links(body, URL).urls == ("https://h.example/1",)


def test_each_entry_is_a_block_of_its_id_title_and_content() -> None:
    body = rss(
        "<lastBuildDate>Thu, 01 Jan 2026 00:00:00 GMT</lastBuildDate>",
        "<item><guid>tag:1</guid><title>One</title><description>&lt;p&gt;Some &lt;b&gt;bold"
        "&lt;/b&gt; words&lt;/p&gt;</description><pubDate>Thu, 01 Jan 2026</pubDate></item>",
        "<item><title>Two</title></item>",
    )
    assert read_feed(body, URL).blocks.texts == ("tag:1 One Some bold words", "Two")
