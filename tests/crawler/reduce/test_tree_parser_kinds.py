"""What pages show by attributes, controls, notes, places and formatting is in their documents."""

import pytest
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.reduce.document import document
from freshet.crawler.reduce.main_text import WrittenPieces, written
from freshet.crawler.reduce.tree_parser import as_scripts_leave, with_shadow_roots
from tests.crawler.reduce.kinds import KINDS, SHELLS, Case, lacks, page
from tests.crawler.reduce.pages import pieces_in

URL = "https://h.example/a/b/"
CASES = [
    pytest.param(case, id=f"{kind}-{name}")
    for kind, cases in KINDS.items()
    for name, case in cases.items()
]
#: Short ones with the name of a frame, which the choice leaves out of some pages.
UNSURE = {"names-block", "names-widget", "names-modal verbs"}


def pieces_written(html: str) -> WrittenPieces:
    """Return all pieces of a page in both forms, whatever its main content is."""
    return written(*pieces_in(html.encode()), URL)


@pytest.mark.parametrize("case", CASES)
def test_pieces_have_what_a_reader_sees(case: Case) -> None:
    _, *forms = pieces_written(f"<body>{case.html}")
    markdown, html = map("\n\n".join, forms)
    assert lacks(case, markdown, "", html, is_text_read=False) == []


@pytest.mark.parametrize("is_big", [False, True], ids=["small", "big"])
@pytest.mark.parametrize("shell", SHELLS)
def test_documents_have_what_a_reader_sees(shell: str, is_big: bool) -> None:
    found = {}
    for kind, cases in KINDS.items():
        for name, case in cases.items():
            html = page(shell, case.html, is_big=is_big)
            made = document(html.encode(), URL, "text/html")
            if missing := lacks(case, made.markdown, made.text, made.html):
                found[f"{kind}-{name}"] = missing
    assert {name: it for name, it in found.items() if name not in UNSURE} == {}


# -- CommonMark renders what the page showed -----------------------------------------


COMMONMARK = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def words_in(html: str) -> str:
    """Return what is emphasised, linked, struck out, in code, in lists and in cells."""
    tree = LexborHTMLParser(f"<body>{html}")
    tags = {"s": "del"}
    found = []
    for node in tree.css("strong, em, del, s, a, code, li, td, th, sup, sub"):
        text = "".join(node.text().split())
        href = node.attributes.get("href")
        found.append(f"{tags.get(node.tag or '', node.tag)} {href or ''} {text}")
    return "\n".join(found)


@pytest.mark.parametrize(
    "html",
    [
        "これは<b>「強調」</b>です。", "これは<i>強調。</i>です", "<b>「a」</b>b<i>(c)</i>d",
        "x<b>a</b>y<i>b</i>z", "<b>Note:</b>this", "foo<i>(bar)</i>baz", "<b><i>x</i> y</b> z",
        "<i><b>x</b> y</i> z", "<b>x <i>y</i></b> z", "a<s>b</s>c", "a<del><b>x</b></del>b",
        "<b>a</b><i>b</i><b>c</b>", "<b>a</b><b>b</b>", "<b>*</b>x", "<b>a*b</b>c", "<i>a_b_</i>c",
        "<b>€5</b>each", "5<b>%</b>more", "<b><a href='https://h.example/x_(y)'>x</a></b>z",
        "a<b><code>x</code></b>b", "<a href='https://h.example/A(b'>x</a>",
        "1<sup><b>st</b></sup>x",
        "<a href='https://h.example/A%28b%29'>x</a>", "<b>a<br>b</b>", "<b> a </b>b", "é<b>ñ</b>é",
        "<a href='https://h.example/?a=1&amp;lt;=2'>x</a>", "<i>a</i>, <i>b</i>.<b>c</b>",
        "<b>a<i>b</i></b>c", "<i>a<b>b</b>c</i>", "<b>“</b>x<b>”</b>", "a<i>b<s>c</s></i>d",
        "Look!<a href='https://h.example/b'>x</a>", "<b>!</b><a href='https://h.example/b'>x</a>",
    ],
)  # fmt: skip
def test_emphasis_and_links_render_as_the_page_did(html: str) -> None:
    _, [markdown], [clean] = pieces_written(f"<body><p>{html}</p>")
    assert words_in(COMMONMARK.render(markdown)) == words_in(clean)


@pytest.mark.parametrize(
    "html",
    [
        "<ol><li>a<li value=5>b<li>c</ol>", "<ol start=0><li>a<li>b</ol>",
        "<ol reversed><li>a<li>b</ol>",
        "<ol start=7><li>a</ol>", "<ol><li value=3>a<li value=2>b<li value=1>c<li>d</ol>",
        "<ol reversed start=9><li>a<li value=3>b<li>c</ol>",
    ],
)  # fmt: skip
def test_numbers_of_items_render_as_the_page_did(html: str) -> None:
    _, [markdown], [clean] = pieces_written(f"<body>{html}")
    assert numbers_in(COMMONMARK.render(markdown)) == numbers_in(clean)


def numbers_in(html: str) -> list[tuple[int, str]]:
    found = []
    for ordered in LexborHTMLParser(f"<body>{html}").css("ol"):
        items = ordered.css("li")
        step = -1 if "reversed" in ordered.attributes else 1
        number = int(ordered.attributes.get("start") or (1 if step > 0 else len(items)))
        for item in items:
            number = int(item.attributes.get("value") or number)
            found.append((number, item.text().strip()))
            number += step
    return found


@pytest.mark.parametrize(
    "html",
    [
        "<ul><li>a<table><tr><th>A<th>B<tr><td>1<td>2</table><li>b</ul>",
        "<ol><li>a<table><tr><th>A<th>B<tr><td>1<td>2</table>z<li>b</ol>",
        "<ul><li><table><tr><th>A<th>B<tr><td>1<td>2</table><li>b</ul>",
        "<ul><li>a<ul><li>b<table><tr><th>A<th>B<tr><td>1<td>2</table></ul></ul>",
        "<dl><dt>a<dd><table><tr><th>A<th>B<tr><td>1<td>2</table></dl>",
    ],
)  # fmt: skip
def test_tables_in_items_render_as_tables_in_items(html: str) -> None:
    _, [markdown], _ = pieces_written(f"<body>{html}")
    tree = LexborHTMLParser(COMMONMARK.render(markdown))
    assert [cell.text() for cell in tree.css("li table :is(td, th)")] == ["A", "B", "1", "2"]


@pytest.mark.parametrize(
    "html",
    ["<template shadowrootmode=open>", "<template shadowrootmode=open><p>a</p>", "</template>x",
     "<!-- <template shadowrootmode=open> -->x</template>", "<template>a</template>x",
     "<script>'<template shadowrootmode=open>'</script>x</template>", "<template <template>",
     "<template shadowrootmode=none>a</template>x", "<template-x shadowrootmode=open>a</template>"],
)  # fmt: skip
def test_what_is_no_shadow_root_stays_as_it_is(html: str) -> None:
    assert with_shadow_roots(html.encode()) == html.encode()


PUT = '$RC("B:0","S:0")$RS("S:1","P:1")'


@pytest.mark.parametrize(
    "html",
    [
        "<noscript><img src=a></noscript>x",
        "<noscript><iframe src=a></iframe></noscript>x",
        "<noscript>",
        "<noscript><!-- a --></noscript>x",
        "<noscript><style>a</STYLE></noscript>x",
        "</noscript>x",
        "<noscript><!-- a",
        '<div hidden id="S:0">a</div>x',
        f'<div hidden id="S:0">{PUT}',
        f'<template id="B:0"></template>{PUT}',
        f'<div hidden id="x"></div>{PUT}',
    ],
)
def test_what_scripts_leave_alone_stays_as_it_is(html: str) -> None:
    assert as_scripts_leave(html.encode()) == html.encode()


@pytest.mark.parametrize(
    ("html", "left"),
    [
        ("<noscript><IFRAME /></noscript>x", "<noscript><IFRAME /></iframe></noscript>x"),
        ("<noscript><script></noscript>x", "<noscript><script></script></noscript>x"),
        ("<noscript><!--></noscript>x", "<noscript><!-->--></noscript>x"),
        ('<template id="B:0"></template>a<!--/$-->b<div hidden="" id="S:0"><div>c</div></div>d',
         "<div>c</div>bd"),
        ('<template id="B:0"></template>a<div hidden id="S:0">c</div>d', "cad"),
        ('<template id="P:1"></template>a<!--/$-->b<div hidden id="S:1">c</div>d', "ca<!--/$-->bd"),
        ('a<div hidden id="S:0"><i>c</i></div>d', 'ad<div hidden id="S:0"><i>c</i></div>'),
        ('<template id="B:0"></template><!--$-->e<!--/$-->a<!--/$-->b<div hidden id="S:0">c</div>',
         "cb"),
    ],
)  # fmt: skip
def test_what_scripts_do_to_a_page_is_done(html: str, left: str) -> None:
    found = as_scripts_leave((PUT + html).encode()).decode()
    assert (found.removeprefix(PUT), found[: len(PUT)]) == (left, PUT)
