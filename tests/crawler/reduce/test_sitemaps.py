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
    looks_like,
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
    ("tail", "urls", "problem"),
    [
        (b"", "1", "line 4: the file ends within <urlset>"),
        (b"<url><loc>https://h/2</lo", "1", "line 4: the file ends within <urlset>"),
        (b"<url><loc>https://h/2</loc><lastm", "12", "line 4: the file ends within <urlset>"),
        (b"<url><loc>https://h/2</url></urlset>", "12", "line 4: <loc> is not closed"),
        (b"</foo><url><loc>https://h/2</loc></url></urlset>", "12",
         "line 4: </foo> closes no element"),
        (b"<url><loc>https://h/2</loc><url><loc>https://h/3</loc></url></urlset>", "123",
         "line 4: <url> is not closed"),
    ],
)  # fmt: skip
def test_damage_costs_the_entry_it_is_in_and_is_named_with_its_line(
    tail: bytes, urls: str, problem: str
) -> None:
    whole = urlset("1")
    sitemap = parse_sitemap(whole[: whole.index(b"</urlset>")] + tail)
    assert urls_of(sitemap) == [f"https://h/{path}" for path in urls]
    assert sitemap.problem == problem


#: An entry, and the URL that is read of it; None where it cannot be known.
DAMAGED_ENTRIES = {
    "control character": (b"<url><loc>https://h/a\x0bb</loc></url>", None),
    "null": (b"<url><loc>https://h/a\x00b</loc></url>", None),
    "latin-1 in UTF-8": (b"<url><loc>https://h/caf\xe9</loc></url>", None),
    "half a character": (b"<url><loc>https://h/\xe2\x82</loc></url>", None),
    "impossible reference": (b"<url><loc>https://h/&#0;x</loc></url>", None),
    "surrogate reference": (b"<url><loc>https://h/&#xD800;x</loc></url>", None),
    "half a tag": (b"<url><loc>https://h/a</loc</url>", None),
    "a tag in a tag": (b"<url <loc>https://h/a</loc></url>", None),
    "no location": (b"<url><lastmod>2030-01-01</lastmod></url>", None),
    "relative": (b"<url><loc>/a</loc></url>", None),
    "bare ampersand": (b"<url><loc>https://h/?a=1&b=2</loc></url>", "https://h/?a=1&b=2"),
    "ampersand that looks like one": (
        b"<url><loc>https://h/?a=1&copy=2</loc></url>", "https://h/?a=1&copy=2"),
    "entity of HTML": (b"<url><loc>https://h/caf&eacute;</loc></url>", "https://h/caf\xe9"),
    "undeclared entity": (b"<url><loc>https://h/?x&foo;y</loc></url>", "https://h/?x&foo;y"),
    "entity in another field": (
        b"<url><loc>https://h/a</loc><title>x&nbsp;y & z</title></url>", "https://h/a"),
    "less-than sign": (b"<url><title>1 < 2</title><loc>https://h/a</loc></url>", "https://h/a"),
    "bad character in another field": (
        b"<url><loc>https://h/a</loc><title>\x1b\xff</title></url>", "https://h/a"),
    "field without end": (b"<url><loc>https://h/a<lastmod>2030</lastmod></url>", "https://h/a"),
    "entry without end": (b"<url><loc>https://h/a</loc>", "https://h/a"),
    "end in another case": (b"<url><loc>https://h/a</LOC></url>", "https://h/a"),
    "end of another element": (b"<url><loc>https://h/a</loc></ur></url>", "https://h/a"),
    "crossed elements": (
        b"<url><a><b></a></b><loc>https://h/a</loc></url>", "https://h/a"),
    "attribute without quotes": (b"<url id=7><loc x>https://h/a</loc></url>", "https://h/a"),
    "attribute twice": (b"<url a='' a=''><loc>https://h/a</loc></url>", "https://h/a"),
    "the end of the file in its middle": (
        b"<url><loc>https://h/a</loc></url></urlset><urlset>", "https://h/a"),
    "a second file behind the first": (
        b"</urlset>\n<?xml version='1.0'?><urlset><url><loc>https://h/a</loc></url>", "https://h/a"),
    "a comment with dashes": (b"<!-- a -- b --><url><loc>https://h/a</loc></url>", "https://h/a"),
    "text between": (b"Warning: x & y <url><loc>https://h/a</loc></url>", "https://h/a"),
}  # fmt: skip


@pytest.mark.parametrize("size", [7, 1_000_000])
@pytest.mark.parametrize("case", DAMAGED_ENTRIES)
def test_a_damaged_entry_costs_no_other(case: str, size: int) -> None:
    damaged, url = DAMAGED_ENTRIES[case]
    whole = urlset("1", "2", "3").replace(b"<url><loc>https://h/2</loc></url>", damaged)
    pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
    found = urls_of(parse_sitemap(pieces))
    assert found == ["https://h/1", *([] if url is None else [url]), "https://h/3"]


BEGINNINGS = {
    "blank lines": b"\n\n  ",
    "a message of PHP": b"<br />\n<b>Notice</b>: No index: x in <b>/a.php</b> on line 1<br />\n",
    "text": b"Warning: something is wrong in /a.php\n",
    "a mark twice": b"\xef\xbb\xbf\xef\xbb\xbf",
    "a mark behind blanks": b"\n\xef\xbb\xbf",
    "a comment": b"<!-- made by x -->",
    "a style sheet": b"<?xml-stylesheet href='x.xsl'?>",
    "a document type": b"<!DOCTYPE urlset>",
    "a public one": b"<!DOCTYPE urlset PUBLIC '-//X//DTD' 'http://x.example/a.dtd'>",
    "one with declarations": b"<!DOCTYPE urlset [<!ELEMENT urlset (url*)><!ENTITY x 'y'>]>",
    "an unknown encoding": b"<?xml version='1.0' encoding='foo-8'?>",
    "no text encoding": b"<?xml version='1.0' encoding='zlib'?>",
    "UTF-16 that it is not": b"<?xml version='1.0' encoding='UTF-16'?>",
    "an empty encoding": b"<?xml version='1.0' encoding=''?>",
    "no version": b"<?xml?>",
    "version 1.1": b"<?xml version='1.1'?>",
    "two declarations": b"<?xml version='1.0'?><?xml version='1.0'?>",
    "an element around it": b"<data>",
    "a root without end": b"<urlset xmlns='x' ",
}


@pytest.mark.parametrize("case", BEGINNINGS)
def test_what_stands_before_the_entries_costs_none(case: str) -> None:
    entries = urlset("1", "2").partition(b"?>")[2].lstrip()
    assert urls_of(parse_sitemap(BEGINNINGS[case] + entries)) == ["https://h/1", "https://h/2"]


RSS = b"""<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>T</title>
<link>https://h/</link><atom:link rel="self" href="https://h/feed"/>
%b</channel></rss>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://h/"/>
<updated>2030-01-09</updated>%b</feed>"""
RDF = b"""<rdf:RDF xmlns:rdf="r" xmlns="http://purl.org/rss/1.0/" xmlns:dc="d">
<channel><link>https://h/</link><items><rdf:Seq><rdf:li/></rdf:Seq></items></channel>%b</rdf:RDF>"""
FEED_ENTRIES = {
    "link": (RSS, b"<item><link>https://h/1</link></item>", None),
    "date": (
        RSS,
        b"<item><pubDate>Mon, 07 Jan 2030 00:00:00 GMT</pubDate><link>https://h/1</link></item>",
        "Mon, 07 Jan 2030 00:00:00 GMT",
    ),
    "section": (RSS, b"<item><link><![CDATA[ https://h/1 ]]></link></item>", None),
    "guid": (RSS, b"<item><guid>https://h/1</guid></item>", None),
    "guid that is no link": (
        RSS,
        b"<item><guid isPermaLink='false'>https://h/9</guid><link>https://h/1</link></item>",
        None,
    ),
    "empty link": (RSS, b"<item><link/><guid isPermaLink='true'>https://h/1</guid></item>", None),
    "link of Atom": (RSS, b"<item><atom:link href='https://h/1'/></item>", None),
    "link as HTML has it": (RSS, b"<item><link>https://h/1<pubDate>2030</pubDate></item>", "2030"),
    "pictures": (
        RSS,
        b"<item><media:x><link>https://h/9</link></media:x><link>https://h/1</link></item>",
        None,
    ),
    "content": (
        RSS,
        (b"<item><description><![CDATA[<link>https://h/9</link>]]></description>"
         b"<link>https://h/1</link></item>"),
        None,
    ),
    "relative": (RSS, b"<item><link>/1</link></item>", None),
    "Atom": (
        ATOM,
        (b"<entry><link href='https://h/1'/><published>2030-01-01</published>"
         b"<updated>2030-01-02</updated></entry>"),
        "2030-01-02",
    ),
    "Atom, the second link": (
        ATOM,
        (b"<entry><link rel='edit' href='https://h/9'/>"
         b"<link rel='alternate' href='https://h/1'/></entry>"),
        None,
    ),
    "Atom, escaped": (ATOM, b"<entry><link href='https://h/1?a=1&amp;b=2'></link></entry>", None),
    "Atom, prefixed": (ATOM.replace(b"<", b"<a:").replace(b"<a:/", b"</a:"),
                       b"<a:entry><a:link href='https://h/1'/></a:entry>", None),
    "Atom, source": (
        ATOM,
        (b"<entry><source><link href='https://h/9'/><updated>1</updated></source>"
         b"<link href='https://h/1'/></entry>"),
        None,
    ),
    "RDF": (
        RDF,
        (b"<item rdf:about='https://h/9'><link>https://h/1</link><dc:date>2030-01-01"
         b"</dc:date></item>"),
        "2030-01-01",
    ),
    "RDF, about": (RDF, b"<item rdf:about='https://h/1'><title>x</title></item>", None),
}  # fmt: skip


@pytest.mark.parametrize("case", FEED_ENTRIES)
def test_a_feed_is_a_sitemap_of_its_entries(case: str) -> None:
    feed, entry, date = FEED_ENTRIES[case]
    sitemap = parse_sitemap(feed % entry, url="https://h/feed")
    assert (sitemap.kind, sitemap.problem is None) == ("feed", "HTML" not in case)
    ((url, said),) = sitemap.entries
    assert (url.partition("?")[0], said) == ("https://h/1", date)


def test_an_empty_feed_is_a_sitemap_without_entries() -> None:
    assert parse_sitemap(b"<rss/>") == Sitemap("feed")


def test_a_damaged_feed_is_read_on() -> None:
    titles = (b"a & b", b"\x0b", b"&nbsp;", b"<b>x", b"c")
    item = b"<item><title>%b</title><link>https://h/%d</link></item>"
    items = b"".join(item % (title, i) for i, title in enumerate(titles))
    found = urls_of(parse_sitemap((RSS % items)[: -len(b"</channel></rss>")]))
    assert found == [f"https://h/{i}" for i in range(5)]


def test_a_torn_gzip_stream_keeps_what_could_be_decoded() -> None:
    sitemap = parse_sitemap(gzip.compress(urlset("1", "2"))[:-6])
    assert urls_of(sitemap) == ["https://h/1", "https://h/2"]
    assert sitemap.problem == "gzip: the stream ends early"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        *((body, "neither XML nor a list of URLs") for body in (b"", b" \n", b"Not found")),
        (b"<html></html>", "line 1: the root element is html, neither of a sitemap nor of a feed"),
        (b"<opml/>", "line 1: the root element is opml, neither of a sitemap nor of a feed"),
        (
            b"<html><body><urlset><url><loc>https://h/1</loc></url></urlset></body></html>",
            "line 1: the root element is html, neither of a sitemap nor of a feed",
        ),
    ],
)
def test_what_is_no_sitemap_is_said_to_be_none(body: bytes, problem: str) -> None:
    sitemap = parse_sitemap(body)
    assert (sitemap.kind, sitemap.entries, sitemap.problem) == ("unknown", (), problem)


LAUGHS = b"".join(b"<!ENTITY l%d '%b'>" % (i, b"&l%d;" % (i - 1) * 10) for i in range(1, 30))
BOMBS = {
    "a billion laughs": b"<!DOCTYPE u [<!ENTITY l0 'lol'>" + LAUGHS + b"]>",
    "without quotes in order": b'<!DOCTYPE u [<!ENTITY l29 "]>">' + LAUGHS + b"]>",
    "quadratic": b"<!DOCTYPE u [<!ENTITY l29 '" + b"a" * 100_000 + b"'>]>",
    "of itself": b"<!DOCTYPE u [<!ENTITY l29 '&l29;'>]>",
    "a file": b"<!DOCTYPE u [<!ENTITY l29 SYSTEM 'file:///etc/passwd'>]>",
    "a URL": b"<!DOCTYPE u [<!ENTITY l29 SYSTEM 'http://127.0.0.1:9/x'>]>",
    "a parameter": b"<!DOCTYPE u [<!ENTITY % p SYSTEM 'http://127.0.0.1:9/x.dtd'> %p;]>",
    "a document type elsewhere": b"<!DOCTYPE u SYSTEM 'http://127.0.0.1:9/x.dtd'>",
    "a public one": b"<!DOCTYPE u PUBLIC '-//X' 'http://127.0.0.1:9/x.dtd' [<!ENTITY l29 'a'>]>",
    "with a number": b"<!DOCTYPE u [<!ENTITY l29 '&#60;/loc&#62;'>]>",
}


@pytest.mark.parametrize("case", BOMBS)
def test_what_a_document_type_declares_is_not_read(case: str) -> None:
    """Entities that grow or lead elsewhere stay the text that they are."""
    entries = b"<url><loc>https://h/%b</loc></url>" * 2 % (b"&l29;", b"1")
    sitemap, peak = with_peak(BOMBS[case] + b"<urlset>" + entries + b"</urlset>", SitemapLimits())
    assert urls_of(sitemap) == ["https://h/&l29;", "https://h/1"]
    assert peak < 2_000_000


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
    why = "the file ends within <a>" if levels < 64 else "more than 64 elements inside each other"
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
        shown = looks_like(body)
        assert (shown == "sitemap", shown == "feed") == (is_sitemap, is_feed), body


FEED_ROOTS = [
    b"<rss version='2.0'>", b"<feed xmlns='http://www.w3.org/2005/Atom'>",
    b"<rdf:RDF xmlns:rdf='x'>", b"<?xml version='1.0'?><a:feed xmlns:a='x'>",
]  # fmt: skip


@pytest.mark.parametrize("root", FEED_ROOTS)
@pytest.mark.parametrize(
    "before",
    [b"<br />\n<b>Notice</b>: Undefined index in x.php on line <b>3</b><br />\n", b"1",
     b"Warning: mysql_connect(): no in x.php\n", b"Strict Standards: y & z < a\n",
     b"<script>a</script>"],
)  # fmt: skip
def test_where_a_feed_is_due_other_text_may_stand_before_it(root: bytes, before: bytes) -> None:
    assert looks_like(before + root, is_feed_due=True) == "feed"
    assert looks_like(gzip.compress(before + root), is_feed_due=True) == "feed"
    assert looks_like(before + root) is None


@pytest.mark.parametrize("body", [
    b"<html><rss>", b"<!DOCTYPE html><head><feed >", b"<body><rdf:RDF >", b"<br>the rss of it",
    b"<urlset><rss >", b"", b"<br>", b"{}",
])  # fmt: skip
def test_where_a_feed_is_due_a_page_is_none(body: bytes) -> None:
    assert looks_like(body, is_feed_due=True) == looks_like(body) != "feed"


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
        assert looks_like(body) in {None, "feed", "sitemap"}
