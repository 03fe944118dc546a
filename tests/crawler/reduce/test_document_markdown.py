"""Pieces of a page as Markdown and as clean HTML: the core writes what the reference does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce.document import Document
from freshet.crawler.reduce.main_text import written
from freshet.crawler.reduce.pieces import Pieces
from freshet.crawler.reduce.tree_parser import tree_of
from freshet.crawler.urls import resolve
from tests.crawler.reduce.reference.emphasis import ALL_MARKS
from tests.crawler.reduce.reference.markdown import MarkdownWriter
from tests.crawler.reduce.test_tree import PIECES

URL = "https://h.example/a/b/"


def read(html: str, base: str = URL) -> Document:
    """Return all of a page, whatever its main content is: both write it alike."""
    tree = tree_of(html)
    pieces = Pieces(tree)
    writer = MarkdownWriter(tree, base)
    found = [(it.kind, *both) for it in pieces if (both := writer.piece(it))[0]]
    core = written(tree, pieces, base)
    kinds = [piece.kind for piece in core.pieces]
    assert list(zip(kinds, core.markdown, core.html, strict=True)) == found
    return Document(blocks=tuple(core.markdown), html="\n".join(core.html))


ATTRIBUTES = [
    *["", "", "", " class=lineno", " class='language-c++ x'", " class='highlight-source-rst'"],
    *[" class='lang: é'", " class=language", " class=slang-x", " class='brush: '", " id=x"],
    *[" href=/y", " href='../x?a=1&amp;b=(2'", " href='#'", " href='javascript:x'", " href=''"],
    *[" href='HTTP://é.example/(a)'", " href='mailto:a@b'", " href='https://a.example/b_c'"],
    *[" src=/i.png alt='a_b *c* é'", " src=data:x data-src='i j.png'", " srcset='a.png 2x, b'"],
    *[" src=a width=2", " src=a height=' 3 '", " srcset=' , b'", " src='../../../i?&amp;lt;'"],
    *[" type=a", " type=I start=4", " start=0 reversed", " reversed", " value=7", " value=x"],
    *[" colspan=3", " rowspan=2", " colspan=101 rowspan=1001", " colspan=0", " type=checkbox"],
    *[" datetime=2026-01-02T03:04Z", " datetime='3 hours'", " datetime=' 2026-01-02 '"],
    *[" display=block", " type='math/tex; mode=display'", " encoding='application/x-tex'"],
    *[" role=presentation", " hidden", " checked type=checkbox", " value='☐'", " type=radio"],
]  # fmt: skip
ELEMENTS = [
    *"div p ul ol ol li dl dd dt table table tr tr td td th caption thead tbody h1 h6".split(),
    *"pre code kbd tt textarea blockquote b a a em i strong del s cite span sub sup q".split(),
    *"ruby rt time button label math msup mi annotation script input br img section".split(),
]
TEXTS = [
    *["Some words here.", " ", "\n", "\xa0", "x", "12", "1. a", "1) ", "٣. x", "1234567890. a"],
    *["# a", "####### a", "- a", "-- a", "+", "+a", "= =", "== a", "> a", "a_b", "_a", "é_é", "a_"],
    *["*", "**", "`", "``", "a`", "`a", "~", "~~~", "<!-- x -->", "&lt;a", "&lt;", "&amp;amp;"],
    *["&amp;#12;", "&amp;é;", "&amp; ", "[a](b)", "!", "!", "|", "a | b", "\\", "\x01", "a\x04b"],
    *["so\xadft", "¶", "#", "§", "☐", " ☑ ", "中文", "「強調」", "です", "。", "(a)", ".", "a  b"],
    *["<br>", "<br> <br>", "<img src=i.png>", "<input type=checkbox>", "<input value='a *b'>"],
    *["{\\displaystyle x^2}", "{\\textstyle  }", "x^2 < y", "\u2028", "\x85", "\x0b", "\r\n"],
    *["line one\n\n  line two\n", "\u2003wide\u2003", "word " * 30, "<a href=z>!</a>", "<wbr>"],
]  # fmt: skip
TREES = st.recursive(
    st.sampled_from(TEXTS),
    lambda inner: st.builds(
        "<{0}{1}>{2}</{0}>".format,
        st.sampled_from(ELEMENTS),
        st.sampled_from(ATTRIBUTES),
        st.lists(inner, max_size=6).map("".join),
    ),
    max_leaves=30,
)


@given(st.lists(TREES, max_size=6).map("".join))
def test_any_elements_are_written_as_the_reference_writes_them(html: str) -> None:
    read(html)


@given(st.lists(st.sampled_from([*PIECES, *TEXTS]), max_size=40).map("".join))
def test_broken_markup_is_written_as_the_reference_writes_it(html: str) -> None:
    read(html)


@given(st.text(max_size=80))
def test_any_text_is_written_as_the_reference_writes_it(text: str) -> None:
    read(f"<p>{text}</p><pre>{text}</pre><li>{text}<textarea>{text}</textarea><b>{text}</b>{text}")


@given(
    st.lists(st.sampled_from(["../", "./", "a/", "/", "b", "?c=d", "#e", "..", "http://", ":"]))
    .map("".join),
    st.sampled_from([URL, "https://h.example", "http://h.example/a//b/c?d/e#f", "ftp://h/"]),
)  # fmt: skip
def test_references_are_resolved_as_the_standard_says(reference: str, base: str) -> None:
    found = read(f"<p><a href='{reference}'>x</a>", base).html
    url = resolve(reference, base)
    assert (url is None and found == "<p>x</p>") or f'href="{url}"' in found


def test_headings_have_levels_and_no_permalinks() -> None:
    found = read("<main><h1>Top <a href=#top>¶</a></h1><p>x<h3>Low <em>er</em></h3><p>y</main>")
    assert found.blocks == ("# Top", "x", "### Low *er*", "y")
    assert found.html.splitlines()[2] == "<h3>Low <em>er</em></h3>"


@pytest.mark.parametrize("mark", ALL_MARKS)
@pytest.mark.parametrize(
    "html", ["%s", "<code>%s</code>", "<kbd>%s</kbd>", "<a href=x><tt>%s</tt></a>", "<b>%s</b>"]
)
def test_control_characters_of_a_page_are_no_emphasis(html: str, mark: str) -> None:
    said = html % f"a{mark}b"
    for block in (f"<p>{said}", f"<ul><li>{said}</ul>", f"<h2>{said}</h2>"):
        assert read(block) == read(block.replace(mark, ""))


def test_links_and_images_are_absolute() -> None:
    found = read(
        '<p><a href="../y?a=1&amp;b=(2)">a [link]</a>, <a href="javascript:x()">none</a>, '
        '<img src="data:x" data-src="/i.png" alt="An image"></p>'
    )
    link, image = "[a \\[link\\]](https://h.example/a/y?a=1&b=(2))", "(https://h.example/i.png)"
    assert found.blocks == (f"{link}, none, ![An image]{image}",)
    assert '<a href="https://h.example/a/y?a=1&amp;b=(2)">a [link]</a>, none, <img' in found.html
    found = read('<p><a href="/b"><img src="/i.png" alt=I></a> x')
    assert found.blocks == (f"[![I]{image}](https://h.example/b) x",)


def test_lists_nest_and_count() -> None:
    found = read(
        "<ul><li>a<ul><li>b<ol start=3><li>c<li>d</ol></ul><li><p>para</p><pre>x\n\n  y</pre></ul>"
    )
    block = "- a\n  - b\n    3. c\n    4. d\n- para\n\n  ```\n  x\n\n    y\n  ```"
    assert found.blocks == (block,)
    inner = '<ol start="3"><li>c</li><li>d</li></ol>'
    assert f"<ul><li>a<ul><li>b{inner}</li></ul></li><li>" in found.html
    assert found.text == "a\nb\nc\nd\n\npara\n\nx\n\n  y"


def test_code_blocks_keep_lines_and_name_their_language() -> None:
    found = read('<pre><code class="language-python">if x:\n    y()  # `` ``` \n</code></pre>')
    assert found.blocks == ("````python\nif x:\n    y()  # `` ```\n````",)
    found = read("<div class=highlight-rst><pre>a<br>b<span>\n c</span></pre></div>")
    assert found.blocks == ("```rst\na\nb\n c\n```",)
    assert read("<pre>1\n2\n3</pre><pre>1</pre>").blocks == ("```\n1\n```",)
    assert read("<p>Call <code>a`b</code>.").blocks == ("Call ``a`b``.",)


def test_tables_of_data_are_tables_and_those_of_layout_are_not() -> None:
    found = read("<table><tr><th>A<th>B<tr><td>1|2<td>x <b>y</b><tr><td colspan=2>z</table>")
    assert found.blocks == ("| A | B |\n| --- | --- |\n| 1\\|2 | x **y** |\n| z |  |",)
    assert '<td colspan="2">z</td>' in found.html
    assert read("<table><tr><td><h1>T</h1><td><p>x</table>").blocks == ("# T", "x")


def test_a_cell_of_many_rows_leaves_its_place_empty_in_the_others() -> None:
    found = read(
        "<table><tr><th>A<th>B<th>C<tr><td rowspan=2 colspan=2>x<td>1<br>2<tr><td>3"
        "<tr><td>y<td>4<td rowspan=0>5<tr><td>z<td>6<td>7</table>"
    )
    rows = found.markdown.splitlines()[2:]
    assert rows == ["| x |  | 1 2 |", "|  |  | 3 |", "| y | 4 | 5 |", "| z | 6 | 7 |"]
    assert '<td colspan="2" rowspan="2">x</td>' in found.html
    assert found.text.splitlines()[:2] == ["A\tB\tC", "x\t1 2"]


def test_quotes_breaks_and_marks() -> None:
    found = read(
        "<blockquote><p>q1</p><p>q2</p></blockquote><p>a<br>b<br><br>1. c *d* _e_ f_g</p><p># h</p>"
    )
    assert found.blocks == ("> q1\n>\n> q2", "a  \nb", "1\\. c \\*d\\* \\_e\\_ f_g", "\\# h")
    assert read("<p><b>bold </b>x<i></i>").blocks == ("**bold** x",)
    assert read("<p><b><strong>bold</strong></b> <i><b>x</b></i>").blocks == ("**bold** ***x***",)
    assert read("<p>AT&amp;T &amp;lt; a&lt;b &lt;i&gt;").blocks == ("AT&T \\&lt; a\\<b \\<i>",)


def test_items_may_be_lists_terms_or_paragraphs_in_links() -> None:
    assert read("<ul><li>a</li><ul><li>b</ul></ul>").blocks == ("- a\n  - b",)
    found = read("<dl><dt>term<dd>what it is</dl>")
    assert found.blocks == ("- **term**\n  - what it is",)
    assert found.html == "<dl><dt>term</dt><dd>what it is</dd></dl>"
    found = read('<a href="/c"><h3>Card</h3><p>text</p></a>')
    assert found.blocks == ("### [Card](https://h.example/c)", "[text](https://h.example/c)")


def test_lists_and_tables_that_lay_out_a_page_are_not_written_as_such() -> None:
    cards = "".join(f"<li><h3>Card {i}</h3><p>x</p></li>" for i in range(2))
    assert read(f"<ul>{cards}</ul>").blocks == ("### Card 0", "x", "### Card 1", "x")
    long = "<p>" + "word " * 200
    assert read(f"<ol><li>{long}</li><li>{long}</li></ol>").blocks == (("word " * 200).strip(),) * 2


def test_scripts_and_styles_are_left_out() -> None:
    found = read(
        "<p onclick=x() class=c style=d>a<script>b</script><style>c</style></p><datalist>d"
    )
    assert (found.blocks, found.html) == (("a",), "<p>a</p>")
    assert read("<h2><button>Question?</button></h2>").blocks == ("## Question?",)


TAGS = "p b a li ul ol h2 pre br td tr table blockquote img dl dt dd code div".split()


@given(
    st.lists(
        st.sampled_from([f"<{t}>" for t in TAGS] + [f"</{t}>" for t in TAGS] + ["x*", " ", "`"])
    )
)
def test_any_markup_gives_a_document_with_balanced_html(parts: list[str]) -> None:
    found = read("".join(parts))
    again = read(f"<body>{found.html}")
    assert "".join(again.text.split()) == "".join(found.text.split())
