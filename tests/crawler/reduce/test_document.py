"""Documents: metadata, Markdown, clean HTML and text of a page."""

from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce.document import Document, document
from freshet.crawler.reduce.parser_process import Parser, Unparsable

URL = "https://h.example/a/b/"


def read(html: str) -> Document:
    return document(html.encode(), URL, "text/html; charset=utf-8")


def test_headings_have_levels_and_no_permalinks() -> None:
    found = read("<main><h1>Top <a href=#top>¶</a></h1><p>x<h3>Low <em>er</em></h3><p>y</main>")
    assert found.blocks == ("# Top", "x", "### Low *er*", "y")
    assert found.headings == ((1, "Top"), (3, "Low er"))
    assert found.html.splitlines()[2] == "<h3>Low <em>er</em></h3>"


def test_links_and_images_are_absolute() -> None:
    found = read(
        '<p><a href="../y?a=1&amp;b=(2)">a [link]</a>, <a href="javascript:x()">none</a>, '
        '<img src="data:x" data-src="/i.png" alt="An image"></p>'
    )
    assert found.blocks == (
        "[a \\[link\\]](https://h.example/a/y?a=1&b=%282%29), none, ![An image](https://h.example/i.png)",
    )
    assert (
        '<a href="https://h.example/a/y?a=1&amp;b=(2)">a [link]</a>, none, <img src' in found.html
    )


def test_the_base_element_moves_references() -> None:
    found = read('<base href="https://other.example/x/"><p><a href="y">z</a></p>')
    assert found.blocks == ("[z](https://other.example/x/y)",)


def test_lists_nest_and_count() -> None:
    found = read(
        "<ul><li>a<ul><li>b<ol start=3><li>c<li>d</ol></ul><li><p>para</p><pre>x\n\n  y</pre></ul>"
    )
    lines = [
        "- a",
        "  - b",
        "    3. c",
        "    4. d",
        "- para",
        "",
        "  ```",
        "  x",
        "",
        "    y",
        "  ```",
    ]
    assert found.blocks == ("\n".join(lines),)
    assert found.html.startswith(
        "<ul><li>a<ul><li>b<ol><li>c</li><li>d</li></ol></li></ul></li><li>"
    )
    assert found.text == "a\nb\nc\nd\n\npara\n\nx\n\n  y"


def test_code_blocks_keep_lines_and_name_their_language() -> None:
    found = read('<pre><code class="language-python">if x:\n    y()  # `` ``` \n</code></pre>')
    assert found.blocks == ("````python\nif x:\n    y()  # `` ```\n````",)
    found = read("<div class=highlight-rst><pre>a<br>b<span>\n c</span></pre></div>")
    assert found.blocks == ("```rst\na\nb\n c\n```",)
    assert read("<p>Call <code>a`b</code>.").blocks == ("Call ``a`b``.",)


def test_tables_of_data_are_tables_and_those_of_layout_are_not() -> None:
    found = read("<table><tr><th>A<th>B<tr><td>1|2<td>x <b>y</b><tr><td colspan=2>z</table>")
    assert found.blocks == ("| A | B |\n| --- | --- |\n| 1\\|2 | x **y** |\n| z |  |",)
    assert '<td colspan="2">z</td>' in found.html
    assert read("<table><tr><td><h1>T</h1><td><p>x</table>").blocks == ("# T", "x")


def test_quotes_breaks_and_marks() -> None:
    found = read(
        "<blockquote><p>q1</p><p>q2</p></blockquote><p>a<br>b<br><br>1. c *d* _e_ f_g</p><p># h</p>"
    )
    assert found.blocks == ("> q1\n>\n> q2", "a  \nb", "1\\. c \\*d\\* \\_e\\_ f_g", "\\# h")
    assert read("<p><b>bold </b>x<i></i>").blocks == ("**bold** x",)


def test_the_page_says_who_wrote_it_and_when() -> None:
    found = read(
        '<html lang=en_GB><head><title>T &amp; U - Site</title><link rel=canonical href="/c#x">'
        '<meta name=description content=" a  b "><meta name=author content="Someone Else">'
        '<meta property="article:modified_time" content="2026-03-02 10:00">'
        '<script type="application/ld+json">{"@graph": [{"@type": "NewsArticle", "headline": '
        '"Head&amp;line", "datePublished": "2026-03-01T10:00:00Z", "author": [{"@id": "#p"}, '
        '"Cee"]}, {"@type": "WebPage", "headline": "Page"}]}</script><p>x'
    )
    assert found.title == "Head&line"
    assert found.description == "a b"
    assert found.language == "en-GB"
    assert found.author == "Cee"
    assert found.published_at == "2026-03-01T10:00:00Z"
    assert found.modified_at == "2026-03-02T10:00"
    assert found.canonical_url == "https://h.example/c"


def test_an_author_may_be_named_elsewhere_in_the_data() -> None:
    said = (
        '{"@graph": [{"@type": "Article", "author": {"@id": "#p"}},'
        '{"@type": "Person", "@id": "#p", "name": "Ann Bee"}]}'
    )
    found = read(f'<script type="application/ld+json">{said}</script><title>T</title>')
    assert (found.author, found.title) == ("Ann Bee", "T")


def test_nonsense_is_not_metadata() -> None:
    found = read(
        "<html lang='not a tag'><meta name=date content=2026-99-99><meta name=author "
        "content=https://h.example/me><script type=application/ld+json>{</script>"
        "<script type=application/ld+json>" + "[" * 100_000 + "</script>"
    )
    assert found == Document()


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


async def test_hostile_pages_end_like_those_that_are_parsed() -> None:
    parser = Parser(time_limit_s=0.5)
    body = b"<title>T</title><p>x</p>"
    assert await parser.document(body, URL, None) == document(body, URL, None)
    slow = await parser.document(
        b"<p " + b"".join(b"a%d " % i for i in range(300_000)) + b">", URL, None
    )
    assert slow == Unparsable("parsing took more than 0.5 s of processor time")
    deep = await parser.document(b"<div>" * 100_000, URL, None)
    assert deep == Unparsable("RecursionError: elements nested 100,000 deep")
    await parser.close()


@given(st.binary(), st.sampled_from([None, "text/html", "text/plain", "application/json", "x/xml"]))
def test_any_bytes_give_a_document(body: bytes, content_type: str | None) -> None:
    found = document(body, URL, content_type)
    assert isinstance(found, Document)
    assert all(found.blocks)


TAGS = "p b a li ul ol h2 pre br td tr table blockquote img dl dt dd code div".split()


@given(
    st.lists(
        st.sampled_from([f"<{t}>" for t in TAGS] + [f"</{t}>" for t in TAGS] + ["x*", " ", "`"])
    )
)
def test_any_markup_gives_a_document_with_balanced_html(parts: list[str]) -> None:
    found = read("".join(parts))
    again = document(f"<body>{found.html}".encode(), URL, "text/html; charset=utf-8")
    assert "".join(again.text.split()) == "".join(found.text.split())
