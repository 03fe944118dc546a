"""How hard a body will be on the parser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.reduce.tree import is_calm, max_depth, parser_work, start_tags
from tests.crawler.reduce.reference import nesting as reference

HOSTILE = [
    b"<", b"<!--", b"<!-->", b"<div>", b"<p>", b"<li>", b"<b>", b"</div>", b"<div ", b'<a b="',
    b"<a b=", b"<script>", b"<title><x", b"<![CDATA[", b"<b></i>", b"<svg><p>", b"-", b"&",
]  # fmt: skip


#: The squares of what was not read to its end.
NEVER = 2**64 - 1

#: What bodies of malice and of errors are made of.
PIECES = [
    *HOSTILE, b"</b>", b"<span>", b"</span>", b"<b a='x'>", b"<span b=c>", b"</a>", b"<a>", b">",
    b"=", b"'", b'"', b" ", b"/", b"<I>", b"</I>", b"<TD>", b"<td>", b"</td>", b"<x-long-name>",
    b"</X-long-name>", b"</x-long-namf>", b"<table>", b"<tr>", b"<option>", b"</scripT >", b"<b\0>",
    b"</b\0>", b"\0", b"\xff", b"<nobr>", b"<strong\n>", b"</strong>", b"a", b"-->", b"--!>",
    b"<textarea/x='", b"</textarea", b"<style", b"<xmp ", b"<b b>x</b>", b"<b c=d-e :f>", b"`",
    b"<br", b"</", b"<?", b"<path/>", b"<em>" * 33, b"<i" + b"x" * 9, b"<b c=>", b"<b c=\0>",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=60).map(b"".join) | st.binary(max_size=30))
def test_bodies_of_any_octets_are_read_as_by_regular_expressions(body: bytes) -> None:
    assert max_depth(body) == reference.max_depth(body)
    assert start_tags(body) == reference.start_tags(body)
    found = parser_work(body)
    if found.squares < NEVER:
        assert found == reference.parser_work(body)


@pytest.mark.parametrize(
    ("body", "depth"),
    [(b"", 0), (b"no tags < at all", 0),
     (b"<html><body><div><div>x</div></div><div></div></body></html>", 4),
     (b"<DIV><Div>x</dIV></DIV >", 2), (b"<br><img src=x><hr/><input>", 0),
     (b"<!-- <div><div> --><div></div>", 1),
     (b"<script>if (a<b) '<div><div>'</script><div></div>", 1),
     (b"<style><div></style><title><b><i></title>", 0), (b"<script>never ended <div><div>", 0),
     (b'<a title="<div><div>">x</a>', 1), (b"<a title='\"><div><div>'>x</a>", 1),
     (b"<p>one<p>two<p>three", 1), (b"<ul><li>1<li>2<li>3<ul><li>4</ul></ul>", 4),
     (b"<table><tr><td>1<td>2<tr><td>3<td>4</table>", 3), (b"<dl><dt>a<dd>b<dt>c<dd>d</dl>", 2),
     (b"<select><option>a<option>b</select>", 2), (b"<!DOCTYPE html><!---><div><!--x--!><div>", 2),
     (b"<svg><path d=''/><path d=''/><g></g></svg>", 2), (b"<div></span></div>", 1)],
)  # fmt: skip
def test_the_depth_of_ordinary_markup_is_that_of_its_elements(body: bytes, depth: int) -> None:
    assert max_depth(body) == depth


@pytest.mark.parametrize("count", [1, 300, 20_001])
def test_nested_blocks_are_counted_one_by_one(count: int) -> None:
    assert max_depth(b"<div class='x'>" * count) == count


@pytest.mark.parametrize("unit", HOSTILE)
def test_malice_is_scanned_to_its_end(unit: bytes) -> None:
    # Each of these takes minutes in a scan that is quadratic.
    body = unit * (200_000 // len(unit))
    assert max_depth(body) >= 0
    is_calm(body)


def test_a_long_page_of_well_closed_words_is_calm() -> None:
    row = b'<p>The <code class="c"><span class="pre">open</span></code> of a <b>file</b></p>\n'
    assert is_calm(row * 2_000)
    assert is_calm(b"<!DOCTYPE html><title>t</title><main>" + row * 50 + b"</main>")
    table = b"<table>" + b"<tr><td>A cell<td>of a table</td></tr>" * 3_000 + b"</table>"
    assert not is_calm(table)
    assert is_calm(table.replace(b"cell", b"cell</td>"))
    script = b"<script>" + b"if (i<n && j>m) x = '<p>' + 'a b';" * 500 + b"</script>"
    assert is_calm(script + row * 1_000)
    assert is_calm(b"")
    assert not is_calm(row.replace(b"</code>", b"") * 2_000)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<div>" * 9_000, id="nested blocks"),
        pytest.param(b"<p><b a=%d>" * 1_000, id="formatting elements left open"),
        pytest.param(b"<DIV>" * 3_000 + b"<I >" * 200, id="upper case"),
        pytest.param(b"<b>" * 300 + b"<p>" * 3_000 + b"</b>" * 300, id="closed too late"),
        pytest.param(b"<p " + b"a " * 40_000 + b">", id="a tag of many attributes"),
        pytest.param(b"</b>" * 300 + b"<p>" * 3_000 + b"<b>" * 300, id="closed too early"),
        pytest.param(b'<b x="><span></b>"><p>' * 500 + b"<p>" * 3_000, id="closed in a value"),
        pytest.param(b'<b x=a"><i></b>"><p>' * 500 + b"<p>" * 3_000, id="unquoted quotes"),
        pytest.param(b'<b a" b="><i></b>"><p>' * 500 + b"<p>" * 3_000, id="quotes in names"),
        pytest.param(b'<b ="="><i></b>"><p>' * 500 + b"<p>" * 3_000, id="nameless values"),
        pytest.param(b"<span>" * 4_000 + b"</p>" * 28_000, id="end tags that search"),
        pytest.param(b"<p " + b"<a b " * 9_000 + b">", id="attributes around brackets"),
        pytest.param(b"<p " + b"a='<'" * 9_000 + b">", id="brackets in values"),
        pytest.param(b'<a "' * 9_000, id="tags that end behind all others"),
        pytest.param((b"word " * 8 + b"<td>x</td>") * 9_000, id="texts that are joined"),
        pytest.param(b"<select>" + b"word <div></div>" * 15_000, id="ignored in a choice"),
        pytest.param(b"<frameset>" + b" <div>   </div>" * 15_000 + b" " * 200_000, id="frames"),
        pytest.param(b"".join(b"<a href=%d>" % i for i in range(9_000)), id="links"),
        pytest.param(b"<b><svg><foreignObject>x</foreignObject>" * 4_000, id="foreign elements"),
    ],
)
def test_what_could_make_the_parser_slow_is_not_calm(body: bytes) -> None:
    assert not is_calm(body)


TAGS = ["div", "p", "ul", "li", "table", "tr", "td", "span", "b", "section", "h2"]


@st.composite
def trees(draw: st.DrawFn, depth: int = 4) -> str:
    """Well-formed markup in which every element may stand where it stands."""
    if depth == 0:
        return "x"
    children = "".join(draw(st.lists(trees(depth - 1), max_size=3)))
    tag = draw(st.sampled_from(["div", "section", "blockquote", "span"]))
    return f"<{tag}>{children}</{tag}>" if tag != "span" else f"<div><span>x</span>{children}</div>"


@given(trees())
def test_the_depth_of_well_formed_markup_is_exact(markup: str) -> None:
    assert max_depth(markup.encode()) == _tree_depth(markup)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(TAGS)), max_size=40))
def test_the_depth_is_not_far_below_that_of_any_tag_soup(tags: list[tuple[bool, str]]) -> None:
    markup = "".join(f"</{tag}>" if end else f"<{tag}>" for end, tag in tags)
    # The parser adds tbody and reopens formatting elements: a level for each at most.
    assert 2 * max_depth(markup.encode()) + 2 >= _tree_depth(markup)


def _tree_depth(markup: str) -> int:
    body = LexborHTMLParser(markup).body
    assert body is not None
    level, depth = [body], -1
    while level:
        depth += 1
        level = [child for node in level for child in node.iter()]
    return depth
