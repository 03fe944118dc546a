import gzip
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce.sitemaps import (
    Sitemap,
    SitemapLimits,
    entry_allowed,
    looks_like_feed,
    looks_like_sitemap,
    parse_sitemap,
)

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*paths: str) -> bytes:
    urls = "".join(f"<url><loc>https://h/{path}</loc></url>\n" for path in paths)
    return f'<?xml version="1.0"?>\n<urlset {NAMESPACE}>\n{urls}</urlset>\n'.encode()


def urls_of(sitemap: Sitemap) -> list[str]:
    return [url for url, _ in sitemap.entries]


def test_a_urlset_and_an_index_give_their_urls_with_their_dates() -> None:
    body = f"""<?xml version="1.0" encoding="UTF-8"?>
<urlset {NAMESPACE}>
  <url><loc> https://h/?a=1&amp;b=é </loc><lastmod>2030-01-31</lastmod></url>
  <url><priority>0.5</priority><loc><![CDATA[https://h/<2>]]></loc><lastmod/></url>
</urlset>"""
    assert parse_sitemap(body.encode()) == Sitemap(
        "urlset", (("https://h/?a=1&b=é", "2030-01-31"), ("https://h/<2>", None))
    )
    body = f"<sitemapindex {NAMESPACE}><sitemap><loc>https://h/1.xml.gz</loc>"
    body += "<lastmod>2030-01-31T12:00:00+01:00</lastmod></sitemap></sitemapindex>"
    assert parse_sitemap(body.encode()) == Sitemap(
        "index", (("https://h/1.xml.gz", "2030-01-31T12:00:00+01:00"),)
    )


def test_a_text_sitemap_gives_a_url_for_each_line() -> None:
    body = b"\xef\xbb\xbfhttps://h/1\r\n\r\n  https://h/\xc3\xa9 \nno url\rHTTP://h/3"
    assert parse_sitemap(body) == Sitemap(
        "text", (("https://h/1", None), ("https://h/é", None), ("HTTP://h/3", None)), rejected=1
    )


@pytest.mark.parametrize(
    ("root", "prefix"),
    [
        ("urlset", ""),
        ("urlset xmlns='http://www.google.com/schemas/sitemap/0.84'", ""),
        ("s:urlset xmlns:s='http://www.sitemaps.org/schemas/sitemap/0.9'", "s:"),
        ("undeclared:urlset", "undeclared:"),
    ],
)
def test_any_namespace_is_taken_or_none(root: str, prefix: str) -> None:
    body = f"<{root}><{prefix}url><{prefix}loc>https://h/1</{prefix}loc></{prefix}url>"
    body += f"</{root.split(maxsplit=1)[0]}>"
    assert parse_sitemap(body.encode()) == Sitemap("urlset", (("https://h/1", None),))


def test_the_locations_of_images_are_not_those_of_pages() -> None:
    body = b"<urlset><url><image:image><image:loc>https://h/i.png</image:loc></image:image>"
    body += b"<loc>https://h/1</loc><image:loc>https://h/j.png</image:loc></url></urlset>"
    assert urls_of(parse_sitemap(body)) == ["https://h/1"]


@given(st.lists(st.integers(0, 99).map(str), max_size=9), st.integers(1, 50), st.booleans())
def test_pieces_of_any_size_gzipped_or_not_give_the_same_sitemap(
    paths: list[str], size: int, zipped: bool
) -> None:
    plain = urlset(*paths)
    body = gzip.compress(plain) if zipped else plain
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    assert parse_sitemap(pieces) == parse_sitemap(plain)
    assert urls_of(parse_sitemap(pieces)) == [f"https://h/{path}" for path in paths]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_encodings_are_those_that_the_file_declares(encoding: str) -> None:
    name = encoding.removesuffix("-sig")
    body = f"<?xml version='1.0' encoding='{name}'?><urlset><url><loc>https://h/é</loc></url>"
    assert urls_of(parse_sitemap(f"{body}</urlset>".encode(encoding))) == ["https://h/é"]
    # Blank lines before the declaration are borne.
    assert urls_of(parse_sitemap(b"\xef\xbb\xbf\n\n " + urlset("1"))) == ["https://h/1"]


@pytest.mark.parametrize(
    ("tail", "problem"),
    [
        (b"", "line 4: no element found"),
        (b"<url><loc>https://h/2</lo", "line 4: unclosed token"),
        (b"<url><loc>https://h/2</url>", "line 4: mismatched tag"),
        (b"<url><loc>https://h/?a&b</loc></url>", "line 4: not well-formed (invalid token)"),
        (b"<url><loc>&nbsp;</loc></url>", "line 4: undefined entity"),
    ],
)
def test_broken_xml_keeps_what_stands_before_the_break_and_names_the_line(
    tail: bytes, problem: str
) -> None:
    whole = urlset("1")
    sitemap = parse_sitemap(whole[: whole.index(b"</urlset>")] + tail)
    assert urls_of(sitemap) == ["https://h/1"]
    assert sitemap.problem == problem


def test_a_torn_gzip_stream_keeps_what_could_be_decoded() -> None:
    sitemap = parse_sitemap(gzip.compress(urlset("1", "2"))[:-6])
    assert urls_of(sitemap) == ["https://h/1", "https://h/2"]
    assert sitemap.problem == "gzip: the stream ends early"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        *((body, "neither XML nor a list of URLs") for body in (b"", b" \n", b"Not found")),
        (b"<html></html>", "line 1: the root element is html, not urlset or sitemapindex"),
        (b"<rss/>", "line 1: the root element is rss, not urlset or sitemapindex"),
    ],
)
def test_what_is_no_sitemap_is_said_to_be_none(body: bytes, problem: str) -> None:
    sitemap = parse_sitemap(body)
    assert (sitemap.kind, sitemap.entries, sitemap.problem) == ("unknown", (), problem)


def test_entities_that_grow_are_refused_with_their_declaration() -> None:
    body = b'<!DOCTYPE u [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    sitemap = parse_sitemap(body + b"<urlset><url><loc>https://h/&b;</loc></url></urlset>")
    assert sitemap.entries == ()
    assert sitemap.problem == "line 1: a document type declaration, which is not allowed"


def test_entries_beyond_the_limit_are_left_out_and_missed() -> None:
    body = urlset("1", "2", "3")
    assert parse_sitemap(body, SitemapLimits(max_entries=3)).truncated is False
    short = parse_sitemap(body, SitemapLimits(max_entries=2))
    assert (urls_of(short), short.truncated) == (["https://h/1", "https://h/2"], True)


@pytest.mark.parametrize("body", [urlset("1", "2"), b"https://h/1\nhttps://h/2\n"])
def test_bytes_beyond_the_limit_are_not_read(body: bytes) -> None:
    sitemap = parse_sitemap(gzip.compress(body), SitemapLimits(max_bytes=body.index(b"/2")))
    assert (urls_of(sitemap), sitemap.truncated) == (["https://h/1"], True)
    assert parse_sitemap(body, SitemapLimits(max_bytes=len(body))).truncated is False


@pytest.mark.parametrize("body", ["<urlset><url><loc>{}</loc></url></urlset>", "{}\nhttps://h/2"])
def test_a_url_longer_than_the_limit_is_rejected(body: str) -> None:
    limits = SitemapLimits(max_url_length=100)
    longest = "https://h/" + "a" * 90
    assert longest in urls_of(parse_sitemap(body.format(longest).encode(), limits))
    for too_long in (longest + "a", longest * 10_000):
        sitemap = parse_sitemap(body.format(too_long).encode(), limits)
        assert too_long not in urls_of(sitemap)
        assert sitemap.rejected == 1


def test_an_entry_without_an_absolute_http_url_is_rejected() -> None:
    for loc in ("", "/relative", "ftp://h/1", "javascript:alert(1)", "https://"):
        sitemap = parse_sitemap(f"<urlset><url><loc>{loc}</loc></url></urlset>".encode())
        assert (sitemap.entries, sitemap.rejected) == ((), 1)


def endless(beginning: bytes) -> Iterator[bytes]:
    yield beginning
    while True:
        yield b"y" * 100_000


def with_peak(body: bytes | Iterator[bytes], limits: SitemapLimits) -> tuple[Sitemap, int]:
    """What is read, and the most memory that reading it took."""
    tracemalloc.start()
    try:
        return parse_sitemap(body, limits), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("beginning", [b"<urlset x='", b"y", b"<urlset><url><loc>"])
def test_a_body_without_end_takes_little_memory(beginning: bytes) -> None:
    sitemap, peak = with_peak(endless(beginning), SitemapLimits(max_bytes=20_000_000))
    assert sitemap.truncated or sitemap.problem == "line 1: a tag or comment without end"
    assert peak < 5_000_000


@pytest.mark.parametrize("levels", [50, 10_000_000])
def test_nested_tags_are_read_to_a_bound_and_take_no_memory(levels: int) -> None:
    bomb = gzip.compress(urlset("1")[:-10] + b"<a>" * levels, 1)
    sitemap, peak = with_peak(bomb, SitemapLimits())
    assert urls_of(sitemap) == ["https://h/1"]
    why = "no element found" if levels < 64 else "more than 64 elements inside each other"
    assert sitemap.problem == f"line 4: {why}"
    assert peak < 5_000_000


def test_a_list_of_what_is_no_url_ends_at_the_limit() -> None:
    sitemap = parse_sitemap(b"x\n" * 25_000_000)
    assert (sitemap.truncated, sitemap.rejected) == (True, 50_001)


SITEMAPS = [
    b"<urlset>",
    b"\xef\xbb\xbf\n<?xml version='1.0'?>\n<!-- made by x --><sitemapindex\n",
    b"<?xml-stylesheet href='x.xsl'?><s:urlset xmlns:s='x'>",
    gzip.compress(b"<urlset>" + b" " * 9_000, mtime=0),
    "<?xml version='1.0'?><urlset>".encode("utf-16"),
]
FEEDS = [
    b"<rss version='2.0'>", b"<rdf:RDF xmlns='http://purl.org/rss/1.0/'>",
    b"<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom'>",
    b"<!DOCTYPE rss PUBLIC '-//Netscape Communications//DTD RSS 0.91//EN' 'x'><rss>",
]  # fmt: skip
OTHERS = [
    b"", b"urlset", b"<html><urlset>", b"<!-- <urlset> ", b"\x1f\x8b\x00broken", b"<!---->" * 900
]  # fmt: skip


@pytest.mark.parametrize(
    ("bodies", "is_sitemap", "is_feed"),
    [(SITEMAPS, True, False), (FEEDS, False, True), (OTHERS, False, False)],
)
def test_sitemaps_and_feeds_are_known_by_their_root_element(
    bodies: list[bytes], is_sitemap: bool, is_feed: bool
) -> None:
    for body in bodies:
        assert (looks_like_sitemap(body), looks_like_feed(body)) == (is_sitemap, is_feed), body


@pytest.mark.parametrize(
    ("entry", "naming", "expected"),
    [
        ("https://h.example/x", [], True),
        ("http://www.h.example/x", [], True),
        ("https://news.h.example/x", [], False),
        ("https://other.example/x", [], False),
        ("https://other.example/x", ["https://other.example"], True),
        ("http://www.other.example/x", ["https://third.example", "https://other.example"], True),
        ("https://h.example:8443/x", [], False),
        ("https://h.example:8443/x", ["https://h.example:8443"], True),
        ("/x", ["https://h.example"], False),
    ],
)
def test_a_sitemap_speaks_for_its_own_site_and_for_those_that_name_it(
    entry: str, naming: list[str], expected: bool
) -> None:
    assert entry_allowed(entry, "https://h.example/sitemap.xml", naming) == expected


@given(st.binary(max_size=200))
def test_no_body_is_an_error(body: bytes) -> None:
    for beginning in (b"", b"<urlset>", b"\x1f\x8b", urlset("1")[:-12]):
        sitemap = parse_sitemap(beginning + body)
        assert sitemap.problem or sitemap.entries or sitemap.kind != "unknown"
        assert not (looks_like_sitemap(body) and looks_like_feed(body))
