"""Site lists: four formats, seeds out, and a problem for each line that is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.admission.site_lists import (
    MAX_BYTES,
    SiteList,
    read_sites,
    seeds_from_arguments,
)
from freshet.crawler.urls import resolve


def read(text: str | bytes, name: str = "sites.txt") -> SiteList:
    return read_sites(text.encode() if isinstance(text, str) else text, name)


def urls(found: SiteList) -> list[str]:
    return [seed.url for seed in found.seeds]


def complaints(found: SiteList) -> list[tuple[int, str]]:
    return [(problem.line, problem.message) for problem in found.problems]


def test_a_text_has_a_site_a_line_with_comments_and_blank_lines() -> None:
    found = read("# my sites\r\n\r\nhttps://a.test/x#part\r\n  b.test  # the second\r\nc.test\n")
    assert [(s.text, s.url) for s in found.seeds] == [
        ("https://a.test/x#part", "https://a.test/x"),
        ("b.test", "https://b.test/"),
        ("c.test", "https://c.test/"),
    ]
    assert {s.importance for s in found.seeds} == {1.0}
    assert found.problems == ()


@pytest.mark.parametrize(
    ("line", "url", "fallback_url"),
    [
        ("example.org", "https://example.org/", "http://example.org/"),
        ("example.org:8080", "https://example.org:8080/", "http://example.org:8080/"),
        ("example.org:80/a", "https://example.org:80/a", "http://example.org/a"),
        ("example.org/a?b=c:d", "https://example.org/a?b=c:d", "http://example.org/a?b=c:d"),
        ("localhost", "https://localhost/", "http://localhost/"),
        ("192.0.2.1", "https://192.0.2.1/", "http://192.0.2.1/"),
        ("192.0.2.1:8000", "https://192.0.2.1:8000/", "http://192.0.2.1:8000/"),
        ("[2001:db8::1]:81", "https://[2001:db8::1]:81/", "http://[2001:db8::1]:81/"),
        ("bücher.example", "https://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"),
        ("http://example.org", "http://example.org/", None),
        ("HTTPS://Example.org/A", "https://example.org/A", None),
    ],
)
def test_a_line_without_a_scheme_is_https_and_falls_back_to_http(
    line: str, url: str, fallback_url: str | None
) -> None:
    (seed,) = read(line).seeds
    assert (seed.url, seed.fallback_url) == (url, fallback_url)


@pytest.mark.parametrize(
    "host",
    ["-a.example.org", "a-.example.org", "-a-.example.org", "--a.example.org", "a--.example.org",
     "www.-a.example.org", "www.a-.example.org", "-1.example.org", "_a-.example.org",
     "-a.b-.c-.test", "xn---a.test", "-localhost", "a-"],
)  # fmt: skip
def test_a_label_that_begins_or_ends_with_a_hyphen_is_taken_as_in_a_link(host: str) -> None:
    for line in (host, f"http://{host}/page", f"{host}:8080/"):
        found = read(line)
        assert (len(found.seeds), found.problems) == (1, ())
    assert urls(read(host)) == [resolve("", f"https://{host}")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ftp://example.org/", "the scheme 'ftp' is neither http nor https"),
        ("mailto:me@example.org", "the scheme 'mailto' is neither http nor https"),
        ("https://exa mple.org/", "more than a URL or host"),
        ("example.org 2", "more than a URL or host"),
        ("example.org,2", "not a URL or host name"),
        ("http://", "not a URL or host name"),
        ("https:example.org", "not a URL or host name"),
        ("/etc/sites.txt", "not a URL or host name"),
        ("example.org:99999", "not a URL or host name"),
        ("2001:db8::1", "not a URL or host name"),
        ("[::1", "not a URL or host name"),
        ("---", "not a URL or host name"),
        ("-.example.org", "not a URL or host name"),
        ("ignore_connection_errors: true", ""),
        ("?", "not a URL or host name"),
    ],
)
def test_a_bad_line_is_a_problem_with_its_number_and_costs_no_other(
    line: str, message: str
) -> None:
    found = read(f"a.test\n{line}\nb.test")
    assert urls(found) == ["https://a.test/", "https://b.test/"]
    (problem,) = found.problems
    assert (problem.line, problem.text) == (2, line)
    assert problem.message.startswith(message)


def test_bytes_that_are_not_utf_8_cost_only_their_line() -> None:
    found = read(b"a.test\nb\xfc.test\nc.test\n")
    assert urls(found) == ["https://a.test/", "https://c.test/"]
    assert complaints(found) == [(2, "not UTF-8")]
    assert found.problems[0].text == "b\N{REPLACEMENT CHARACTER}.test"


def test_a_byte_order_mark_and_every_line_end_are_understood() -> None:
    # A plain list may be named .csv.
    for name in ("sites.txt", "sites.csv"):
        found = read(b"\xef\xbb\xbfa.test\rb.test\r\nc.test\n", name)
        assert urls(found) == ["https://a.test/", "https://b.test/", "https://c.test/"]


def test_duplicates_are_merged_by_canonical_url_into_the_first() -> None:
    found = read("a.test\nhttps://A.test:443/?utm_source=mail\nhttp://a.test\na.test/#x\n")
    assert urls(found) == ["https://a.test/", "http://a.test/"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_is_known_by_its_header_and_other_columns_are_ignored(delimiter: str) -> None:
    rows = [
        ["Name", "URL", "importance"], ["A", "a.test", "2.5"], ["B", "https://b.test/x", ""],
        ["C", "c.test"],
    ]  # fmt: skip
    found = read("\n".join(delimiter.join(row) for row in rows), "sites.csv")
    assert [(s.url, s.importance) for s in found.seeds] == [
        ("https://a.test/", 2.5), ("https://b.test/x", 1.0), ("https://c.test/", 1.0),
    ]  # fmt: skip


def test_the_column_of_urls_has_several_names() -> None:
    for name in ("url", "Site", "HOST", "link"):
        assert urls(read(f"{name}\nhttps://a.test/?x=1,2;3\n")) == ["https://a.test/?x=1,2;3"]


def test_merged_rows_keep_the_higher_importance() -> None:
    found = read("url,importance\na.test,1\nb.test,1\nhttps://a.test/,3\na.test,2\n")
    assert [s.importance for s in found.seeds] == [3.0, 1.0]


def test_a_half_life_makes_an_ephemeral_source() -> None:
    found = read("url,half_life_hours,importance\na.test,1.5,\nb.test,,2\na.test,9,\nb.test,3,1\n")
    assert [(s.half_life_hours, s.importance) for s in found.seeds] == [(1.5, 1.0), (3.0, 2.0)]


@pytest.mark.parametrize(
    ("column", "least", "bounds", "wrong"),
    [("half_life_hours", 0.1, "above 0", ["nan", "inf", "0", "-1", "soon"]),
     ("importance", 0, "of at least 0", ["nan", "inf", "-1", "high", "0x1"])],
)  # fmt: skip
def test_half_life_and_importance_are_finite_numbers(
    column: str, least: float, bounds: str, wrong: list[str]
) -> None:
    for said in wrong:
        found = read(f"url,{column}\na.test,{said}\nb.test,{least}\n")
        assert urls(found) == ["https://b.test/"]
        assert complaints(found) == [(2, f"{column} {said!r} is not a number {bounds}")]


def test_csv_rows_are_named_by_their_first_line_and_comments_and_blanks_skipped() -> None:
    found = read('url,note\n\n#off.test,x\na.test,"two\nlines"\n,no url\nb.test\n')
    assert urls(found) == ["https://a.test/", "https://b.test/"]
    assert complaints(found) == [(6, "no URL")]


def test_a_list_that_breaks_off_keeps_what_came_before() -> None:
    found = read('url,note\na.test,x\nb.test,"open\nc.test,y\n')
    assert urls(found) == ["https://a.test/"]
    assert complaints(found) == [(3, "not CSV: unexpected end of data")]
    found = read("<urlset>\n<url><loc>https://a.test/</loc></url>\n<url><loc>https://b.t")
    assert urls(found) == ["https://a.test/"]
    assert complaints(found) == [(3, "not well-formed XML: no element found")]


def test_a_row_that_is_no_csv_costs_no_other() -> None:
    found = read('url,note\n"a.test"x,1\nb.test,"' + "x" * 200_000 + '"\nc.test,1\n')
    assert urls(found) == ["https://c.test/"]
    assert [p.line for p in found.problems] == [2, 3]
    assert all(len(p.text) <= 200 for p in found.problems)


def test_a_file_that_is_no_list_as_a_whole_is_one_problem() -> None:
    for data, message in (
        (b"address,weight\na.test,1\n", "no column url or site or host or link"),
        (bytes(4096), "not a site list: binary data (a text must be in UTF-8)"),
        (b"a.test\n" * (MAX_BYTES // 7 + 1), "larger than 50 MiB: split the list"),
    ):
        found = read(data, "sites.csv")
        assert (found.seeds, complaints(found)) == ((), [(1, message)])


OPML = """<?xml version="1.0" encoding="UTF-8"?>
<opml version="2.0"><head><title>Feeds</title></head><body>
<outline text="News">
<outline text="A" type="rss" xmlUrl="https://a.test/feed" htmlUrl="https://a.test/?x=1&amp;y=2"/>
<outline text="B" type="rss" xmlUrl="https://b.test/feed"/>
<outline text="C" xmlUrl="https://c.test/feed" htmlUrl=""/>
<outline text="D" htmlUrl="gopher://d.test/"/>
</outline></body></opml>
"""


def test_opml_gives_the_page_of_each_outline_or_else_its_feed() -> None:
    found = read(OPML, "feeds.opml")
    assert urls(found) == ["https://a.test/?x=1&y=2", "https://b.test/feed", "https://c.test/feed"]
    assert complaints(found) == [(7, "the scheme 'gopher' is neither http nor https")]


def test_a_sitemap_gives_its_pages_and_not_their_images() -> None:
    found = read(
        """\N{BYTE ORDER MARK}<?xml version="1.0"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
        xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
<url><loc>
  https://a.test/1?x&amp;y </loc>
  <image:image><image:loc>https://a.test/1.png</image:loc></image:image></url>
<url><loc><![CDATA[https://a.test/2]]></loc><priority>0.3</priority></url>
<url><loc/></url>
</urlset>"""
    )
    assert urls(found) == ["https://a.test/1?x&y", "https://a.test/2"]
    assert complaints(found) == [(8, "no URL")]
    index = "<sitemapindex><sitemap><loc>https://a.test/s.xml</loc></sitemap></sitemapindex>"
    assert urls(read(index)) == ["https://a.test/s.xml"]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            '<!DOCTYPE opml [<!ENTITY a "x">]><opml><outline xmlUrl="&a;"/></opml>', 1,
            "not read: XML with a document type declaration (opml)",
        ),
        ("<feed/>", 1, "not read: XML, but neither OPML nor a sitemap: <feed>"),
        ("<opml>\n<outline>\n</opml>", 3, "not well-formed XML: mismatched tag"),
        ("<opml>&who;</opml>", 1, "not well-formed XML: undefined entity"),
        ("<?xml version='1.0' encoding='big5'?><opml/>", 1, "not read: multi-byte encodings"),
        ("<?xml version='1.0' encoding='none'?><opml/>", 1, "not read: unknown encoding: none"),
    ],
)  # fmt: skip
def test_xml_that_cannot_be_read_is_one_problem(text: str, line: int, message: str) -> None:
    found = read(text)
    (problem,) = found.problems
    assert (found.seeds, problem.line) == ((), line)
    assert problem.message.startswith(message)


@pytest.mark.parametrize("data", [b"", b"\n\n", b"# nothing yet\n", b"\xef\xbb\xbf", b"url\n"])
def test_an_empty_list_is_no_problem(data: bytes) -> None:
    assert read(data) == SiteList((), ())


def test_arguments_are_seeds_with_their_position() -> None:
    found = seeds_from_arguments(["a.test", "ftp://b.test", "http://c.test", "A.test", "\udcff"])
    assert urls(found) == ["https://a.test/", "http://c.test/"]
    assert [p.line for p in found.problems] == [2, 5]


FRAGMENTS = st.sampled_from(
    [
        *(b"url", b"a.test", b"https://", b",", b";", b'"', b"\n", b"\r", b"#", b" ", b"[", b":"),
        *(b"<opml>", b"<urlset>", b"<url>", b"<loc>", b"</loc>", b"</url>", b"<!DOCTYPE x", b"&"),
        *(b"\xff", b"\x1c"),
    ]
)


@given(st.one_of(st.binary(max_size=60), st.lists(FRAGMENTS, max_size=12).map(b"".join)))
def test_any_bytes_give_a_list_and_never_an_exception(data: bytes) -> None:
    for name in ("sites.txt", "sites.csv"):
        found = read(data, name)
        assert all(problem.line >= 1 and problem.message for problem in found.problems)
        assert all(str(p.text).encode() is not None for p in found.problems)
        assert len(set(urls(found))) == len(found.seeds)
