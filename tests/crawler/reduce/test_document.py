"""Documents: the choice of the main content, and what a page says of itself."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.reduce.channels import channels
from freshet.crawler.reduce.content import text_of
from freshet.crawler.reduce.document import Document, content_of, document
from freshet.crawler.reduce.page import chosen_lately, parse
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.reduce.tree import NO_HINTS, SelectorHints
from tests.crawler.reduce.pages import pieces_in

URL = "https://h.example/a/b/"
SENTENCE = "The committee met on Tuesday, heard both sides, and put the question off once more. "


def read(html: str) -> Document:
    return document(html.encode(), URL, "text/html; charset=utf-8")


def links(*names: str) -> str:
    return "<ul>" + "".join(f"<li><a href=/{name}>{name}</a></li>" for name in names) + "</ul>"


ARTICLE = f"""<title>A long question – The Paper</title><body>
<header class=site-header><nav class=menu>{links("News", "Sport", "Weather")}</nav></header>
<main><article class=post><h1>A long question</h1><div class=entry-content>
<p>{SENTENCE * 4}</p><h2>What follows</h2><p>{SENTENCE * 3}</p>
<p>{SENTENCE * 2}<a href="../report">The report</a> has more.</p></div>
<div class="share-buttons">{links("Facebook", "Mail")}</div></article></main>
<aside class="sidebar related"><h3>More stories</h3>{links("Storm at sea", "A new bridge")}</aside>
<footer class=site-footer><p>© 2026 The Paper. All rights reserved.</p></footer>"""


def test_the_main_content_is_chosen_and_the_frame_left_out() -> None:
    found = read(ARTICLE)
    assert found.title == "A long question"
    assert found.headings[-1] == (2, "What follows")
    assert found.blocks[-3:] == (
        "## What follows",
        (SENTENCE * 3).strip(),
        f"{SENTENCE * 2}[The report](https://h.example/a/report) has more.",
    )
    for frame in ("Weather", "Facebook", "More stories", "bridge", "rights"):
        assert frame not in found.text
    assert found.markdown == "\n\n".join(found.blocks)


def test_a_page_that_is_nothing_but_links_keeps_them() -> None:
    names = [f"Course number {i} of the autumn" for i in range(40)]
    found = read(f"<title>Courses</title><h1>Courses</h1><main>{links(*names)}</main>")
    assert "number 39" in found.text


def test_the_base_element_moves_references() -> None:
    found = read(f'<base href="https://other.example/x/"><p>{SENTENCE}<a href="y">z</a></p>')
    assert found.blocks == (f"{SENTENCE}[z](https://other.example/x/y)",)


def test_the_page_says_who_wrote_it_and_when() -> None:
    found = read(
        '<html lang=en_GB><head><title>T &amp; U - Site</title><link rel=canonical href="/c#x">'
        '<meta name=description content=" a  b "><meta name=author content="Someone Else">'
        '<meta property="article:modified_time" content="2026-03-02 10:00">'
        '<script type="application/ld+json">{"@graph": [{"@type": "NewsArticle", "headline": '
        '"Head&amp;line", "datePublished": "2026-03-01T10:00:00Z", "author": [{"@id": "#p"}, '
        '"Cee"]}, {"@type": "WebPage", "headline": "Page"}]}</script><p>x'
    )
    assert (found.title, found.description) == ("Head&line", "a b")
    assert (found.language, found.author) == ("en-GB", "Cee")
    assert (found.published_at, found.modified_at) == ("2026-03-01T10:00:00Z", "2026-03-02T10:00")
    assert found.canonical_url == "https://h.example/c"


def test_an_author_may_be_named_elsewhere_in_the_data() -> None:
    said = (
        '{"@graph": [{"@type": "Article", "author": {"@id": "#p"}},'
        '{"@type": "Person", "@id": "#p", "name": "Ann Bee"}]}'
    )
    found = read(f'<script type="application/ld+json">{said}</script><title>T</title>')
    assert (found.author, found.title) == ("Ann Bee", "T")


def test_elements_of_the_page_say_what_its_head_does_not() -> None:
    found = read(
        "<title>Us</title><h1>A heading</h1><p>By <span itemprop=author>Ann Bee</span>, "
        "<time itemprop=dateModified datetime=2026-03-02>2 March</time> "
        "<article><time datetime='2026-03-01T08:00+01:00'>1 March</time></article>"
    )
    assert (found.title, found.author) == ("Us", "Ann Bee")
    assert (found.published_at, found.modified_at) == ("2026-03-01T08:00+01:00", "2026-03-02")
    assert read("<title>A heading | Us</title><h1>A heading</h1>").title == "A heading"
    assert read("<h1>A heading</h1>").title == "A heading"


def test_nonsense_is_not_metadata() -> None:
    found = read(
        "<html lang='not a tag'><meta name=date content=2026-99-99><meta name=author "
        "content=https://h.example/me><script type=application/ld+json>{</script>"
        "<script type=application/ld+json>" + "[" * 100_000 + "</script>"
    )
    assert found == Document()
    half = '<script type="application/ld+json">{"@type":"Report","headline":"a\\ud800b"}</script>'
    assert read(half).title == "a?b"


def test_text_and_json_are_documents_too() -> None:
    found = document(b"One\ntwo\n\nthree <b>", URL, "text/plain")
    assert found.blocks == ("One\ntwo", "three <b>")
    assert found.text == "One\ntwo\n\nthree <b>"
    assert document(b'{"a":\n 1}', URL, "application/json").blocks == ('```json\n{"a":\n 1}\n```',)


def test_hostile_nesting_gives_a_document_of_the_same_size() -> None:
    for tags in ("<ul><li>", "<blockquote>", "<div>", "<b><i>", "<table><tr><td>", "<dl><dd>"):
        found = read(tags * 3_000 + "<p>deep</p>" + tags * 100)
        assert "deep" in found.text
        assert len(found.markdown) + len(found.html) < 20_000
    spans = "<table>" + "<tr><td colspan=99999999>x<td>y" * 100 + "</table>"
    assert len(read(spans).markdown) < 40_000


@pytest.mark.parametrize(
    ("end", "shown"),
    [("<p><b><plaintext>a & b", "a & b"), ("<p><b><plaintext><i>a</i>", "<i>a</i>"),
     ("<p><a href=l><plaintext>a < b", "a < b"), ("<p><i><plaintext></b>", "</b>"),
     ("<p><u><plaintext>&amp;", "&amp;"), ("<p><nobr><plaintext><li>", "<li>"),
     ("<p><em><plaintext></plaintext>", "</plaintext>"), ("<p><b><i><plaintext>>", ">"),
     ("<p><code><plaintext><p>a", "<p>a"), ("<p><tt><plaintext>a>b", "a>b"),
     ("<math><xmp>&lt;b", "<b"), ("<math><xmp>&lt;/xmp>", "</xmp>"),
     ("<plaintext>a & b", "a & b"), ("<xmp>a & b", "a & b"), ("<p x<!--y=1>a", "a")],
)  # fmt: skip
def test_text_that_looks_like_markup_is_text(end: str, shown: str) -> None:
    tree, pieces = pieces_in(f"<p>Before it.</p>{end}".encode())
    assert [text_of(tree, piece) for piece in pieces] == ["Before it.", shown]


async def test_hostile_pages_end_like_those_that_are_parsed() -> None:
    parser = Parser(time_limit_s=0.5)
    body = b"<title>T</title><p>x</p>"
    assert await parser.document(body, URL, None) == document(body, URL, None)
    attributes = b"".join(b"a%d " % i for i in range(300_000))
    slow = await parser.document(b"<p " + attributes + b">", URL, None)
    assert slow == Unparsable("parsing took more than 0.5 s of processor time", is_lack=True)
    deep = await parser.document(b"<div>" * 100_000, URL, None)
    assert deep == Unparsable("RecursionError: elements nested 100,000 deep")
    await parser.close()


@given(st.binary(), st.sampled_from([None, "text/html", "text/plain", "application/json", "x/xml"]))
def test_any_bytes_give_a_document(body: bytes, content_type: str | None) -> None:
    found = document(body, URL, content_type)
    assert isinstance(found, Document)
    assert all(found.blocks)


# -- selectors of a site ---------------------------------------------------------

SELECTED = """<title>T</title><body><nav><a href=/>Home</a></nav>
<div class=price><p>12.50 EUR</p><p class=seen>Seen by 12</p></div>
<main><h1>Main</h1><p>Some words of the main element, long enough to be content.</p>
<p class=seen>and Seen by 12 more</p><ul><li>One</li><li class=seen>Two</li></ul></main>
<div class=price><span>13.00</span></div><footer>Foot</footer></body>"""


@pytest.mark.parametrize(
    "hints",
    [
        SelectorHints((".price",)), SelectorHints((".price",), (".seen",)),
        SelectorHints(("main", "p.seen")), SelectorHints(("nav",)), SelectorHints(("footer",)),
        SelectorHints(("body",)), SelectorHints(("html",)), SelectorHints(("li", "body")),
        SelectorHints(("title",)), SelectorHints(("p.seen",), ("div", "main")),
        SelectorHints(("ul",), (".seen",)), SelectorHints(("li",)), SelectorHints(("nav", "h1")),
        SelectorHints((".price > span", "a")), SelectorHints(("main",), ("main > *",)),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_site_includes_is_the_document_as_it_is_the_compared_text(
    hints: SelectorHints,
) -> None:
    found = document(SELECTED.encode(), URL, "text/html", hints=hints)
    compared = parse(SELECTED.encode(), URL, "text/html", hints=hints).blocks.texts
    assert found.text.split() == " ".join(compared).split()
    assert found.title == "T"


@pytest.mark.parametrize(
    "ignore",
    [(".seen",), ("li",), ("ul",), ("h1",), ("main p",), ("main",), ("body",), ("p", "ul"), ("*",),
     ("[class]",)],
    ids=str,
)  # fmt: skip
def test_what_a_site_ignores_is_in_no_document(ignore: tuple[str, ...]) -> None:
    found = document(SELECTED.encode(), URL, "text/html", hints=SelectorHints(ignore=ignore))
    tree = LexborHTMLParser(SELECTED)
    for node in tree.css(", ".join(ignore)):
        assert node.text().strip() not in found.text.split("\n") or not node.text().strip()


def test_where_nothing_is_included_the_document_is_as_without() -> None:
    plain = document(SELECTED.encode(), URL, "text/html")
    for include in (("#none",), ("template",), ("main#other",)):
        hints = SelectorHints(include=include)
        assert document(SELECTED.encode(), URL, "text/html", hints=hints) == plain
    both = SelectorHints(("main",), ("main",))
    ignored = SelectorHints(ignore=("main",))
    assert document(SELECTED.encode(), URL, None, hints=both) == document(
        SELECTED.encode(), URL, None, hints=ignored
    )


def test_an_image_that_is_included_is_in_the_document() -> None:
    body = b"<main><p>Words.</p></main><img src=a.png alt=A>"
    found = document(body, URL, "text/html", hints=SelectorHints(("img",)))
    assert found.blocks == ("![A](https://h.example/a/b/a.png)",)


def test_a_manual_keeps_the_lists_and_tables_that_are_its_content() -> None:
    options = "".join(f"<li><a href={n}>Option {n}</a></li>" for n in range(12))
    rows = "".join(f"<tr><td>size-{n}</td><td>{n} kB</td></tr>" for n in range(6))
    page = f"""<title>Options of the server</title><nav><a href=/>Home</a> <a href=/up>Up</a></nav>
    <div role=main><h1>Options of the server</h1><p>All options can be set in its file.</p>
    <ul>{options}</ul><h2>Sizes</h2><table>{rows}</table><pre>server --option 1</pre></div>"""
    found = read(page)
    for text in ("Option 11", "size-5", "server --option 1"):
        assert text in found.text


def test_headings_are_texts_without_markup() -> None:
    found = read(f"<main><h1>10<sup>2</sup> &lt; <b>x</b></h1><p>{SENTENCE * 3}</p></main>")
    assert found.headings == ((1, "10^2 < x"),)


@pytest.mark.parametrize("hints", [NO_HINTS, SelectorHints(ignore=("p.no",))])
def test_a_document_is_made_of_what_was_parsed_a_moment_ago(
    hints: SelectorHints, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = b"<title>T</title><main><h1>T</h1><p>One two three.<p class=no>Four five six."
    read = partial(content_of, body, "https://h.example/", "text/html", hints=hints)
    expected = read().document
    parse(body, "https://h.example/", "text/html", hints=hints)
    with monkeypatch.context() as patched:
        patched.setattr("freshet.crawler.reduce.document.tree_shown", None)
        assert read().document == expected
        # Other selectors choose anew.
        with pytest.raises(TypeError):
            content_of(body, "https://h.example/", "text/html", hints=SelectorHints(strict=True))


def test_pages_are_kept_up_to_their_bytes_in_all() -> None:
    url, kind = "https://h.example/", "text/html"
    bodies = [b"<title>%d</title><p>" % n + b"word " * 100_000 for n in range(6)]
    for body in bodies:
        parse(body, url, kind)
    kept = [chosen_lately(body, kind, NO_HINTS) is not None for body in bodies]
    assert kept == [False, False, True, True, True, True]
    huge = b"<p>" + b"word " * 500_000
    parse(huge, url, kind)
    assert chosen_lately(huge, kind, NO_HINTS) is None


@pytest.mark.parametrize("words", [100, 20_000, 90_000])
async def test_kinds_of_change_are_found_without_a_second_parse(
    words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = b"<title>T</title><main><h1>T</h1><p>" + b"word " * words
    parser = Parser()
    try:
        await parser.parse(body, "https://h.example/", "text/html")
        with monkeypatch.context() as patched:
            patched.setattr("freshet.crawler.reduce.document.tree_shown", None)
            found = await parser.channels(body, "https://h.example/", "text/html")
        assert found == channels(body, "https://h.example/", "text/html")
        assert parser._first._process is None
    finally:
        await parser.close()
