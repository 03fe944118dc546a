"""A block is named by a selector that takes it away, and nothing else."""

import re
from html import escape

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.reduce.page import parse, selector_of
from freshet.crawler.reduce.parser_process import Parser
from freshet.crawler.reduce.tree import NO_HINTS, SelectorHints

URL, KIND = "https://a.example/", "text/html; charset=utf-8"
PAGE = "<main><h1>Head</h1><p>One that stays.<p>Two that stays.</p>{}<p>The last one.</p></main>"


def texts(page: str, *ignore: str) -> list[str]:
    return list(parse(page.encode(), URL, KIND, hints=SelectorHints((), ignore)).blocks.texts)


def found(old: str, new: str, gone: str, come: str) -> str:
    sides = [(old.encode(), KIND, gone), (new.encode(), KIND, come)]
    return selector_of(URL, sides, NO_HINTS)["selector"]


@pytest.mark.parametrize(
    ("markup", "selector"),
    [
        ("<p id=seen class=x>{}</p>", "#seen"),
        ("<p id=post-12 class='css-1x2 seen'>{}</p>", "p.seen"),
        ("<div class=box><p>Seen <b>by</b> all: {}</p></div>", "div.box > p"),
        ("<p>{}</p>", "body > main > p:nth-of-type(3)"),
        ('<p id=\'"]}}\\31 /*\' class="md:w \\ a{{}} --">{}</p>', "body > main > p:nth-of-type(3)"),
        ("<nav id=n>{0}</nav><p id=p>{0}</p>", "#p"),
        ("Between others {}", ""),
        ("<x:y>{}</x:y>", ""),
        ("<div id=all>{}" + "<p>a" * 9 + "</div>", ""),
    ],
)
def test_a_name_comes_before_a_place_and_a_place_before_nothing(markup: str, selector: str) -> None:
    old, new = (PAGE.format(markup.format(n)) for n in ("Seen 11", "Seen 12"))
    ((gone, come),) = ((a, b) for a, b in zip(texts(old), texts(new), strict=True) if a != b)
    assert found(old, new, gone, come) == selector
    if selector:
        assert [it for it in texts(new) if it != come] == texts(new, selector)
        assert texts(old, selector) == texts(new, selector)


def test_a_place_that_is_another_block_s_in_the_other_version_is_no_name() -> None:
    old, new = PAGE.format(""), PAGE.format("<p>Seen by 12</p>")
    assert found(old, new, "", "Seen by 12") == found(new, old, "Seen by 12", "") == ""


_ODD = st.text(st.sampled_from("ab-_1 \"'\\]{}:.#>*\0\n\u00e4"), max_size=6).map(escape)
_TAG = st.sampled_from(["p", "li", "td", "h2", "b", "x-y", "q:r", "div", "ul", "table", "article"])


def element(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds('<{0} id="{1}" class="{2}">@ {3}</{0}>'.format, _TAG, _ODD, _ODD, inner)


_PAGES = st.recursive(element(st.just("")), lambda it: element(st.lists(it).map("".join)))


@given(st.lists(_PAGES, min_size=1).map("".join), st.data())
def test_whatever_the_page_a_selector_takes_its_element_and_leaves_all_others(
    page: str, data: st.DataObject
) -> None:
    page = re.sub("@", lambda at: f"words{at.start()}", page)
    before = texts(page)
    assume(len(before) > 1)
    block = data.draw(st.sampled_from(before))
    if selector := found(page, page, block, block):
        (element,) = LexborHTMLParser(page).css(selector)
        inside, left = "".join(element.text().split()), texts(page, selector)
        lost = [it for it in before if it not in left]
        assert block in lost
        assert all("".join(it.split()) in inside for it in lost)
        assert [it for it in before if it not in lost] == left


async def test_a_hostile_page_costs_a_process_and_no_more() -> None:
    parser, deep = Parser(time_limit_s=0.5), b"<div>" * 30_000 + b"seen"
    told = await parser.selector(URL, [(deep, KIND, "seen")] * 2, NO_HINTS)
    assert "nested" in getattr(told, "reason", "")
    await parser.close()
