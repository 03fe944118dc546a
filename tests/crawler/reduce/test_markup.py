"""A document cut into tags and texts is the tree that was written."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser, LexborNode

from freshet.crawler.reduce.markup import Markup, plain, read

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


def markup(source: str) -> Markup:
    return read(LexborHTMLParser(source).html or "")


def outline(found: Markup) -> list[tuple[str, bool, str]]:
    """Each tag, and the text up to the next; what is no element is passed over."""
    told: list[tuple[str, bool, str]] = []
    for tag, text in zip(found.tags, found.texts, strict=True):
        if tag.name[0] not in "!?":
            told.append((tag.name, tag.ends, plain(text)))
        elif told:
            told[-1] = (*told[-1][:2], told[-1][2] + plain(text))
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
    assert found.tags[p].attributes == {"title": '&lt; " \xa0'}
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


def test_an_address_that_cloudflare_hides_is_read() -> None:
    coded = "dfbcb0b1abbebcab9fbcb0b9b9babab2babaabacbdbeb8bab3f1bcb0b2"
    hidden = f"<a href=/x><i data-cfemail={coded}>[email&#160;protected]</i></a>"
    shown = "<a href=/x><i data-cfemail>contact@coffeemeetsbagel.com</i></a>"
    assert outline(markup(f"<p>To {hidden}.")) == outline(markup(f"<p>To {shown}."))
    for broken in ("", "df", "dfb", "none"):
        assert "[you]" in markup(f"<i data-cfemail={broken}>[you]</i>").texts


def test_links_in_a_template_are_none() -> None:
    found = markup("<template><a href=x>t<template>u</template></a></template><a href=y>v</a>")
    assert [tag.link for tag in found.tags if tag.link] == [("y", "")]
