"""A document cut into tags and texts is the tree that was written."""

from collections.abc import Iterator, Sequence
from html import escape
from math import inf
from unicodedata import normalize

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser, LexborNode

from freshet.crawler.reduce.blocks import compared
from freshet.crawler.reduce.boilerplate import _CONTROL, _COUNT, _STAMP, is_control, is_stamp
from freshet.crawler.reduce.content import text_of
from freshet.crawler.reduce.document import taken_apart
from freshet.crawler.reduce.markup import CONTROL, HIDDEN, NAMED, STAMP, SelectorHints, _shown, read
from freshet.crawler.reduce.page import parse, written
from freshet.crawler.reduce.tree import PARSER_OPTIONS
from tests.crawler.reduce.reference import markup as reference
from tests.crawler.reduce.test_text_version import ARTICLE, SHOP

PIECES = (
    "<div> </div> <p> </p> <b> </b> <a/href=x> <table> <td> <ul> <li> <br> <img/alt='<'> text "
    "&amp; &lt; &nbsp; <!-- <i> --> <!--> <?x> <script>a<b</script> </script> <style>a>b</style> "
    "<script><!--<script></script>--> <xmp><b></xmp> <iframe><p></iframe> <noscript> </noscript> "
    '<title> </title> <textarea> </textarea> <select> <option> <a<b> <a"b> <p/a<b=1> <p/"=2> '
    "<template> </template> </body> <style/> <scripts> > < é ’"
)
# Without drawings, in which a script may have elements, and without ``plaintext``, which may
# hold raw text and elements side by side: of either some markup may be taken for text.
SOUP = st.lists(st.sampled_from(PIECES.split()), max_size=30).map(" ".join)


def markup(source: str) -> reference.Markup:
    return reference.read(LexborHTMLParser(source).html or "")


def outline(found: reference.Markup) -> list[tuple[str, bool, str]]:
    """Each tag, and the text up to the next; what is no element is passed over."""
    told: list[tuple[str, bool, str]] = []
    for tag, text in zip(found.tags, found.texts, strict=True):
        if tag.name[0] not in "!?":
            told.append((tag.name, tag.ends, reference.plain(text)))
        elif told:
            told[-1] = (*told[-1][:2], told[-1][2] + reference.plain(text))
    return told


def nodes(source: str) -> list[tuple[str, bool, str]]:
    """The same from the nodes of the tree: slow, and without a doubt."""
    told: list[list[object]] = []
    root = LexborHTMLParser(source).root
    for event in _events(root) if root is not None else ():
        if isinstance(event, str):
            if told:
                told[-1][2] = f"{told[-1][2]}{event}"
        else:
            told.append([*event, ""])
    return [(str(name), bool(ends), str(text)) for name, ends, text in told]


RAW = {"script", "style", "iframe", "noembed", "noframes", "template"}
VOID = {"br", "img", "input", "hr", "wbr"}


def _events(node: LexborNode) -> Iterator[str | tuple[str, bool]]:
    if node.tag == "-text":
        yield node.text_content or ""
    elif node.tag is not None and not node.tag.startswith("-"):
        yield node.tag, False
        for child in node.iter(include_text=True) if node.tag not in RAW else ():
            yield from _events(child)
        if node.tag not in VOID:
            yield node.tag, True


@given(SOUP)
def test_tags_and_texts_are_those_of_the_tree(source: str) -> None:
    assert outline(markup(source)) == nodes(source)


def test_references_are_resolved_once() -> None:
    found = markup("<p title='&amp;lt; &quot; &nbsp;'>&amp;lt; &lt;b&gt; &nbsp;</p>")
    p = next(i for i, tag in enumerate(found.tags) if tag.name == "p")
    assert found.tags[p].remembered.attributes == {"title": '&lt; " \xa0'}
    assert found.text(p) == "&lt; <b> \xa0"


@pytest.mark.parametrize(
    ("source", "name", "text"),
    [("<p>a<b>b</b>c</p>d", "p", "abc"), ("<div>a<div>b</div>c</div>d", "div", "abc"),
     ("<p>a<br>b", "br", ""), ("<p>one", "body", "one")],
)  # fmt: skip
def test_an_element_ends_at_its_own_end_tag(source: str, name: str, text: str) -> None:
    found = markup(source)
    assert found.text(next(i for i, t in enumerate(found.tags) if t.name == name)) == text


@pytest.mark.parametrize("source", ["<svg><script>a<b</script></svg>", "<i><plaintext>a<b>c"])
def test_what_is_both_raw_text_and_elements_is_read_somehow(source: str) -> None:
    assert markup(source).tags[-1].name == "html"


#: What stands between two paragraphs, and its own text where a reader sees some.
BETWEEN = {
    "<p x<!--y=1></p>": "",
    "<p <!--></p>": "",
    "<p <!--=1></p>": "",
    "<p a=1<!--b></p>": "",
    '<p a="<!--b"></p>': "",
    "<p a='<!--b'></p>": "",
    '<p "<!--"=1></p>': "",
    "<x<!--y>named</x<!--y>": "named",
    "<b<!--></b<!-->": "",
    "<a href=z x<!-->link</a>": "link",
    "<img alt=i x<!-->": "",
    "<svg><g x<!--y=1></g></svg>": "",
    "<math><mi x<!--y=1>m</mi></math>": "m",
    "<template><p x<!--y=1>t</p></template>": "",
    "<p x<script>a</p>": "a",
    "<p x<style></p>": "",
    "<p x<plaintext>a</p>": "a",
    "<svg><style>&lt;!--</style></svg>": "",
    "<svg><style>&lt;/style>&lt;!-- x</style></svg>": "",
    "<svg><script>&lt;/script>&lt;!--</script></svg>": "",
    "<svg><style>&lt;/style>&lt;plaintext></style></svg>": "",
    "<svg><iframe>&lt;!--</iframe><noembed>&lt;/noembed>&lt;!--</noembed></svg>": "",
    "<svg><style><style>&lt;/style>&lt;!--</style></style></svg>": "",
    "<math><style>&lt;!--</style><xmp>&lt;/xmp>&lt;!--</xmp></math>": "",
    "<math><![CDATA[<!-- <p> ]]></math>": "<!-- <p>",
    "<!-- a -->": "",
    "<!-->": "",
    "<!--->": "",
    "<!--<!-- a -->": "",
    "<!-- a --!>": "",
    "<!-- > -- - -->": "",
    "<!--a--->": "",
    "<!x>": "",
    "<!x -->": "",
    "<!-x->": "",
    "<?php echo '<!--' ?>": "",
    "</ <!-->": "",
    "<![CDATA[<!-- a]]>": "",
    "<!--[if IE]><p>old</p><![endif]-->": "",
    "<![if !IE]>new<![endif]>": "new",
    "<script><!--</script>": "",
    "<script><!--<script></script>--></script>": "",
    "<style><!--</style>": "",
    "<iframe><!--</iframe>": "",
    "<noscript><!-- a --></noscript>": "",
    "<xmp><!--</xmp>": "<!--",
    "<textarea><!--</textarea>": "",
    "<select><option x<!--></select>": "",
    "<!doctype a<!--b>": "",
    "&lt;!--": "<!--",
    "<title><!--</title>": "",
}

#: A browser shows it, too; the compared text is cut from markup, where it may be taken for tags.
ONLY_IN_DOCUMENTS = {
    "<math><style>&lt;!--</style><xmp>&lt;/xmp>&lt;!--</xmp></math>": "</xmp><!--",
    "<textarea><!--</textarea>": "<!--",
}


@pytest.mark.parametrize("between", BETWEEN)
def test_of_comments_and_what_only_looks_like_one_the_text_is_that_of_the_tree(
    between: str,
) -> None:
    body = f"<p>Before it.</p>{between}<p>After it, with <a href=l>a link</a>.</p>".encode()
    page = parse(body, "https://h.example/", "text/html")
    told = [text for text in (BETWEEN[between],) if text]
    assert page.blocks.texts == ("Before it.", *told, "After it, with a link.")
    assert "https://h.example/l" in page.links.urls
    _, tree, pieces, _ = taken_apart(body, "text/html")
    texts = [text_of(tree, piece) for piece in pieces]
    shown = " ".join(texts).replace(ONLY_IN_DOCUMENTS.get(between, " "), " ")
    assert shown.split() == " ".join(page.blocks.texts).split()


@pytest.mark.parametrize(
    "start", ["<!doctype a<!--b>", "<html x<!--y><head x<!--y>", "<body <!-->"]
)
@pytest.mark.parametrize("end", ["", "<!-- never closed", "<plaintext></plaintext><!--"])
def test_a_page_may_begin_and_end_with_what_looks_like_a_comment(start: str, end: str) -> None:
    found = parse(
        f"{start}<title>T</title><p>Before it.</p>{end}".encode(), "http://h/", "text/html"
    )
    assert found.title == "T"
    assert found.blocks.texts[0] == "Before it."
    assert found.blocks.texts[1:] == (("</plaintext><!--",) if "plaintext" in end else ())


#: Names that hold what steers a scan, raw texts in drawings, and comments of any form.
HOLDING = (
    "<p/x<!--y=1> <!--> --> <b<!--> </b<!--> <svg> </svg> <math> <style> </style> <title> </title> "
    "&lt;/style> &lt;!-- <xmp> </xmp> <i/x<script> <i/x<style=1> <?x> <!y--> </!z> <![CDATA[ ]]> "
    "<!--<!-- --!> <g/<plaintext> <a/href=x/<!-- text <foreignObject> <desc> <td> <table> - -- ! ' "
    '" = <noscript> </noscript> <p/"<!--" <!doctype/a<!--b> <mi> <script> </script> <textarea>'
)


@given(st.lists(st.sampled_from(HOLDING.split()), max_size=30).map(" ".join))
def test_the_text_of_a_page_is_that_of_its_tree(source: str) -> None:
    tree = LexborHTMLParser(source, options=PARSER_OPTIONS)
    shown = _shown(written(tree)).decode("utf-8", "surrogatepass")
    words = reference.plain(reference.TAG.sub("", shown)).split()
    tree.strip_tags(["script", "style", "iframe", "noembed", "noframes", "template"])
    root = tree.root
    assert words == (root.text() if root is not None else "").split()


def test_an_address_that_cloudflare_hides_is_read() -> None:
    coded = "dfbcb0b1abbebcab9fbcb0b9b9babab2babaabacbdbeb8bab3f1bcb0b2"
    hidden = f"<a href=/x><i data-cfemail={coded}>[email&#160;protected]</i></a>"
    shown = "<a href=/x><i data-cfemail>contact@coffeemeetsbagel.com</i></a>"
    assert outline(markup(f"<p>To {hidden}.")) == outline(markup(f"<p>To {shown}."))
    for broken in ("", "df", "dfb", "none"):
        assert "[you]" in markup(f"<i data-cfemail={broken}>[you]</i>").texts


def test_links_in_a_template_are_none() -> None:
    source = "<template><a href=x>t<template>u</template></a></template><a href=y>v</a>"
    told = read(LexborHTMLParser(source).html or "").told
    assert [tag.link for _, tag in told if tag.link] == [("y", "")]


# -- the compiled core -----------------------------------------------------------

#: What steers the walk, and what no parser writes.
STEERING = (
    "<nav> </nav> <aside> <header> </header> <div/hidden> <p/hidden> </div> <main> </main> <h1> "
    "<article> </article> <div/class=sidebar> <div/class=menu/id=main> <section> </section> "
    "<h2/id=related> <li/class=active> <td/role=search> <a/href=y/hidden> <dl> <dt> <dd> "
    "<div/data-freshet=included> <span/data-freshet=included> <p/data-freshet=ignored> </span> "
    "<span/role=menu> <hr> <svg> </svg> <area/href=z/alt=Z> <img/alt=A> <a/href=x/rel=nofollow> "
    "<iframe/src=f/title=F> <base/href=b> <meta/content=c> <link/rel=next/href=n> "
    "<p/aria-hidden=true> \u2003 \x85 \x1f \x00 \x7f e\u0301 \u3000 \u1680 \U0001f600 &nbsp;x "
    "&amp;nbsp; word \xad \u200b \ufe0f \U000e0041 "
    "<time/datetime=2026-01-01> <time/datetime=x> </time> "
    "<i/data-cfemail=dfbcb0>y</i> <noframes>n</noframes> <plaintext>"
).split(" ")
PARTS = st.lists(st.sampled_from((*PIECES.split(), *STEERING, "&nbsp;", " ")), max_size=60)
LONG = "Prose of a good length stands here, and some more words of it. " * 9


def all_told(texts: Sequence[str], phrases: Sequence[int]) -> None:
    """Blocks that the core takes for no stamp or control are none."""
    for text, may_be in zip(texts, phrases, strict=True):
        assert may_be & STAMP or not is_stamp(text)
        assert may_be & CONTROL or not is_control(text)


def agree(html: str) -> None:
    """The core finds in a document what loops find."""
    ours, theirs = read(html), reference.read(html)
    told = [(i, tag.name, tag.link, tag.attributes) for i, tag in ours.told]
    assert told == [(i, tag.name, tag.link, tag.attributes) for i, tag in theirs.told()]
    leading = [(i, tag) for i, tag in ours.told if tag.name in {"a", "area"}]
    texts = ours.texts([i for i, _ in leading], 2_000, 200)
    anchors = [t or reference.collapsed(i.attributes["alt"] if i else "") for t, i in texts]
    assert anchors == [theirs.anchor(i) for i, _ in leading]
    every = [i for i, tag in enumerate(theirs.tags[:200]) if not tag.ends]
    assert [text for text, _ in ours.texts(every)] == [
        " ".join(theirs.text(i).split()) for i in every
    ]
    for selected, spares, bar, shows in (
        (False, False, inf, False), (False, True, inf, False), (True, True, inf, False),
        (False, False, 5.0, True), (False, False, 40.0, False),
    ):  # fmt: skip
        found, zones, links, counts, phrases = ours.walk(
            selected=selected, spares=spares, bar=bar, shows_hidden=shows
        )
        other = reference.Walk(theirs, spares=spares, bar=bar, shows_hidden=shows)
        roots = list(other.selected() if selected else other.body())
        assert (found, tuple(zones), tuple(map(bool, links))) == other.gathered(roots)
        assert (counts[0], counts[HIDDEN], counts[NAMED]) == (
            len(roots), other.left_out[HIDDEN], other.left_out[NAMED],
        )  # fmt: skip
        all_told(found.texts, phrases)


@given(PARTS.map("".join))
def test_the_core_finds_in_any_page_what_loops_find(source: str) -> None:
    agree(LexborHTMLParser(source).html or "")


@given(PARTS.map("".join) | st.text('<>/!-abp &;scriptemlx "=\ud800\u2028é', max_size=60))
def test_the_core_reads_what_no_parser_writes_as_loops_do(html: str) -> None:
    agree(html)
    assert _shown(html).decode("utf-8", "surrogatepass") == reference.unmarked(html)


@given(
    st.sampled_from([ARTICLE, SHOP, ARTICLE.replace("Jahr", LONG), SHOP.replace("Loose", LONG)]),
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 40), PARTS.map("".join)), max_size=5),
)
def test_the_core_reads_pages_that_were_broken_as_loops_do(
    page: str, edits: list[tuple[int, int, str]]
) -> None:
    for start, length, text in edits:
        page = page[:start] + text + page[start + length :]
    tree = LexborHTMLParser(page)
    SelectorHints(include=("p", "li"), ignore=("td",)).mark(tree)
    agree(tree.html or "")


@pytest.mark.parametrize(
    "unit",
    ["<", ">", "<a>", "<a href=x>", "<!--", "<!-->", "<script>", "<script><!--<script>",
     "</script>", "<b></b", "<template>", "</template>", "<nav>x", "&", "&nbsp;",
     "<div class=menu>x", "<main>", "<body>", "</body>", "<plaintext>",
     "<xmp>&<", "<p hidden>x", '<a href="x"><table><td>'],
)  # fmt: skip
def test_malice_is_read_in_linear_time(unit: str) -> None:
    # Each of these takes minutes in a scan that is quadratic.
    html = unit * (300_000 // len(unit))
    found = read(html)
    assert len(found.walk()[0]) >= 0
    assert len(found.texts([i for i, _ in found.told[:5]])) <= 5
    found.walk(bar=1.0, spares=False, shows_hidden=True)
    _shown(html)


def test_texts_are_in_normal_form_c() -> None:
    codes = (code for code in range(0x80, 0x12000) if not 0xD800 <= code < 0xE000)
    texts = [f"e{chr(code)}" for code in codes if not chr(code).isspace()]
    found = read(f"<body>{''.join(f'<p>{text}</p>' for text in texts)}</body>").walk()[0]
    assert list(found.texts) == [normalize("NFC", compared(text)) for text in texts]


PHRASES = st.sampled_from([_CONTROL, _STAMP, _COUNT]).flatmap(st.from_regex)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(PHRASES | st.text("©→’ago thislast_viewed12İ-.,(c)", max_size=40), st.sampled_from("’_(- é"))
def test_no_stamp_or_control_is_passed_over(phrase: str, sign: str) -> None:
    found = read(f"<body><p>{escape(phrase)}</p><p>{sign} {escape(phrase)}</p></body>").walk()
    all_told(found[0].texts, found[4])


def test_few_blocks_of_prose_may_be_a_stamp_or_a_control() -> None:
    found = read(
        "<body><p>No words</p><p>12 apples</p><p>In “quotes”</p><p>Read on</p></body>"
    ).walk()
    assert list(found[4]) == [0, 0, 0, CONTROL]


def test_tags_that_collide_are_told_apart() -> None:
    # Of tags of equal length more than are looked for share their place in any small table.
    html = "".join(f'<a href="{n:05}">{n}</a>' for n in range(20_000)) * 2
    found = read(html)
    assert {tag.link for _, tag in found.told} == {(f"{n:05}", "") for n in range(20_000)}
    assert found.texts([2 * 777])[0] == ("777", None)
