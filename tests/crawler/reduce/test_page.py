"""What is read from a page."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce.main_text import plain_text
from freshet.crawler.reduce.page import ParsedPage, parse, standing
from freshet.crawler.reduce.sketch import block_digest
from freshet.crawler.reduce.tree import SelectorHints

URL = "https://h.example/docs/page.html"


def page(markup: str | bytes, content_type: str | None = "text/html") -> ParsedPage:
    body = markup if isinstance(markup, bytes) else markup.encode()
    return parse(body, URL, content_type)


def test_a_page_is_read_as_a_whole() -> None:
    found = page("""<!doctype html><html lang="en-GB"><head><meta charset=utf-8>
        <title> A
        title </title><link rel=canonical href="/canonical#x"></head>
        <body><main><h1>Head</h1><p>Text with <a href=next>a link</a>.</p></main></body></html>""")
    assert (found.title, found.language, found.encoding) == ("A title", "en-GB", "utf-8")
    assert (found.canonical, found.base_url) == ("https://h.example/canonical", URL)
    assert found.links.urls == ("https://h.example/canonical", "https://h.example/docs/next")
    assert found.blocks.texts == ("Head", "Text with a link.")
    assert found.remark is None


def test_the_first_base_with_an_href_counts_for_everything() -> None:
    found = page("""<base target=x><base href="../other/#f"><base href="https://evil.example/">
        <a href=p>x</a><link rel=canonical href=c><meta http-equiv=refresh content="0;url=r">""")
    assert found.base_url == "https://h.example/other/"
    assert found.links.urls == ("https://h.example/other/p", "https://h.example/other/c")
    assert found.canonical == "https://h.example/other/c"
    assert found.meta_refresh == (0.0, "https://h.example/other/r")


@pytest.mark.parametrize("base", ["data:text/html,x", "http://[", ""])
def test_a_base_that_cannot_be_one_is_ignored(base: str) -> None:
    assert page(f'<base href="{base}">').base_url == URL


def test_feeds_are_found_once_each_and_are_no_links() -> None:
    found = page("""<link rel=alternate type="application/rss+xml" href="/feed">
        <link rel="ALTERNATE" type="Application/Atom+XML; charset=utf-8" href="atom.xml#x">
        <link rel=alternate type="application/rss+xml" href="/feed">
        <link rel=feed href="plain"><link rel=alternate type="application/json" href="/api">""")
    expected = ("feed", "docs/atom.xml", "docs/plain")
    assert found.feeds == tuple(f"https://h.example/{path}" for path in expected)
    assert len(found.links) == 0


@pytest.mark.parametrize(
    ("content", "delay_s", "path"),
    [("5; url=/x", 5, "/x"), ("0;URL='/x'", 0, "/x"), ('0 ; url = "/x" trailing', 0, "/x"),
     (" 3,url=/x", 3, "/x"), ("5;/x", 5, "/x"), ("5 /x", 5, "/x"), (".5;/x", 0, "/x"),
     ("5.9.9; /x", 5, "/x"), ("0; url=/x y", 0, "/x%20y"), ("99999999999999999999; /x", 1e9, "/x"),
     ("5; url", 5, "/docs/url")],
)  # fmt: skip
def test_a_meta_refresh_is_read_as_browsers_read_it(
    content: str, delay_s: float, path: str
) -> None:
    markup = f"<meta http-equiv=Refresh content='{content}'>".replace("'/x'", "&#39;/x&#39;")
    assert page(markup).meta_refresh == (delay_s, f"https://h.example{path}")


@pytest.mark.parametrize(
    "content", ["5", "5;", "5; url=", "a; /x", "5/x", "-1; /x", "", "0; url=javascript:alert(1)"]
)
def test_a_refresh_that_leads_nowhere_is_none(content: str) -> None:
    assert page(f'<meta http-equiv=refresh content="{content}">').meta_refresh is None


def test_the_first_refresh_that_leads_somewhere_counts_but_none_in_noscript() -> None:
    assert page("""<noscript><meta http-equiv=refresh content="0;/no"></noscript>
        <meta http-equiv=refresh content="5"><meta http-equiv=refresh content="1;/a">
        <meta http-equiv=refresh content="2;/b">""").meta_refresh == (1.0, "https://h.example/a")


def test_robots_directives_for_everybody_and_for_us_are_kept_as_written() -> None:
    markup = """<meta name=ROBOTS content="noindex, NoFollow"><meta name=otherbot content=none>
        <meta name=Freshet content=noarchive><meta name=robots>"""
    assert page(markup).robots_meta == ("noindex, NoFollow", "noarchive")
    other = parse(markup.encode(), URL, None, agent_token="OtherBot")
    assert other.robots_meta == ("noindex, NoFollow", "none")


def test_a_noscript_that_closes_the_head_hides_none_of_it() -> None:
    found = page("""<head><noscript><img src=pixel></noscript><title>T</title>
        <link rel=canonical href=/c><meta name=robots content=noindex></head>""")
    assert (found.title, found.canonical) == ("T", "https://h.example/c")
    assert found.robots_meta == ("noindex",)


def test_the_title_of_a_drawing_is_not_that_of_the_page() -> None:
    assert page("<body><svg><title>Icon</title></svg>").title is None
    assert page("<title> </title>").title is None


@pytest.mark.parametrize(
    ("markup", "language"),
    [("<html lang=' de '>", "de"), ("<html xml:lang=fr>", "fr"),
     ("<html lang><meta http-equiv=content-language content=it>", "it"),
     ("<meta http-equiv=Content-Language content='de, fr'>", None), ("<p>x", None)],
)  # fmt: skip
def test_the_language_is_that_of_the_root_or_of_the_pragma(markup: str, language: str) -> None:
    assert page(markup).language == language


def test_plain_text_is_paragraphs_without_links() -> None:
    found = page(b"one <a href=x>\n\ntwo", "Text/Plain; charset=us-ascii")
    assert found == ParsedPage(
        URL, "windows-1252", is_plain=True, blocks=plain_text("one <a href=x>\n\ntwo")
    )


def test_a_table_and_a_calendar_that_are_not_very_long_are_lines() -> None:
    for kind in ("csv", "calendar", "yaml", "x-ndjson"):
        assert page(b"a,1\r\nb, 2\n\nc,3", f"text/{kind}").blocks.texts == ("a,1", "b, 2", "c,3")
    assert len(page(b"a,1\n" * 20_001, "text/csv").blocks) == 1


@pytest.mark.parametrize(
    ("content_type", "plain"),
    [(None, False), ("", False), ("text/html; charset=utf-8", False),
     ("application/xhtml+xml", False), ("text/xml", False), ("text/plain", True),
     ("text/markdown", False), ("application/json", True), ("application/ld+json", True),
     ("application/pdf", True), ("application/toml", True)],
)  # fmt: skip
def test_what_has_no_markup_is_told_by_its_type(content_type: str | None, plain: bool) -> None:
    assert page("<html>Some text", content_type).is_plain is plain


SHOWN = [
    "hidden", "style='display: none'", "class=hidden", "class='stock d-none'", "class='tab active'",
    "class=is-hidden", "class='lg:invisible'", "class=tabPaneActive", "aria-hidden=true",
    "class='panel-collapse'", "id=stock-open", "class='slide current'",
]  # fmt: skip


ALWAYS = [
    "class=stock", "id=sold-out", "style='color: red'", "class='overflow-hidden max-w-none'",
    "class='border-collapse focus-visible:ring'",
]  # fmt: skip


@pytest.mark.parametrize("attribute", [*SHOWN, *ALWAYS])
@pytest.mark.parametrize("inner", [False, True])
def test_a_whole_text_has_the_frame_and_nothing_that_may_not_be_shown(
    attribute: str, inner: bool
) -> None:
    sold = f"<div {attribute}><p>Sold out.</p></div>"
    wrapper = "<div class='fade-enter-active'>{}</div>" if inner else "{}"
    page = wrapper.format(
        f"<nav><a href=/>Home</a></nav><main><p>Green tea.</p>{sold}<p>Leaves.</p></main>"
        "<footer><p>Imprint.</p></footer>"
    )
    body = f"<body class=no-js-hidden>{page}</body>".encode()
    assert standing_in(body, "Leaves.", "Home", "Imprint.") == ("Home", "Leaves.", "Imprint.")
    sold_out = () if attribute in SHOWN else ("Sold out.", "Imprint.")
    assert standing_in(body, "Imprint.", "Sold out.") == sold_out
    assert standing_in(body, "Imprint.", "Black tea.") == ()


def standing_in(body: bytes, *texts: str, content_type: str = "text/html") -> tuple[str, ...]:
    return standing(body, content_type, {*map(block_digest, texts)}).texts


def test_the_whole_of_a_text_without_markup_is_the_text() -> None:
    body = b"One.\n\nTwo.\n\nThree."
    assert standing_in(body, "One.", "Three.", content_type="text/plain") == ("One.", "Three.")
    assert standing_in(body, "One.", "Four.", content_type="text/plain") == ()


def test_the_number_of_links_is_limited() -> None:
    found = parse(b"<a href=1>x</a><a href=2>x</a>", URL, None, max_links=1)
    assert len(found.links) == 1
    assert found.remark == "only its first 1 links were read; raise parse.max_links to read more"


def test_a_selector_that_matches_nothing_is_told() -> None:
    page, hints = b"<main><p>Text.</p></main>", SelectorHints(include=(".article",))
    found = parse(page, URL, None, hints=hints)
    assert found.blocks.texts == ("Text.",)
    assert found.remark == (
        "nothing matches the site's include: its main text was found as without it"
    )
    assert parse(page, URL, None, hints=SelectorHints(include=("p",))).remark is None


def test_many_options_are_no_trouble() -> None:
    # With the parser's mutation events this takes seconds.
    assert page("<select>" + "<option>x" * 30_000 + "</select>").blocks.texts == ("x",)


@pytest.mark.parametrize(
    "body", [b"", b"\0\0", b"<", b"<!--", b"<frameset>", b"\xff\xfe\0", b"</p>"]
)
def test_odd_bodies_are_pages_too(body: bytes) -> None:
    assert page(body).links.urls == ()


@given(st.binary(max_size=300), st.sampled_from([None, "text/html", "text/plain; charset=gbk"]))
def test_no_bytes_raise_and_the_result_can_be_pickled(
    body: bytes, content_type: str | None
) -> None:
    found = parse(body, URL, content_type)
    assert pickle.loads(pickle.dumps(found)) == found


PIECES = (
    '<a href="x"> </a> <base href="//o/"> <meta http-equiv=refresh content="1;/x"> <title> '
    '</title> <svg> <link rel=next href=?a> <html lang=x> <p> text <template> <area href="http://[">'
)


@given(st.lists(st.sampled_from(PIECES.split()), max_size=40))
def test_no_tag_soup_raises(pieces: list[str]) -> None:
    found = page(" ".join(pieces))
    assert len(found.links.rels) == len(found.links.anchors) == len(found.links)
