"""What is read from the markup of a short page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.compare.not_content.cues import MOST_BYTES
from freshet.crawler.compare.not_content.host import HostJudge
from freshet.crawler.compare.not_content.page import PageFacts, PageSigns, read_signs
from freshet.crawler.reduce.blocks import Blocks
from freshet.crawler.reduce.sketch import sketch
from tests.crawler.compare.not_content.facts import facts_of


def test_the_frame_is_told_apart_from_the_main_part() -> None:
    signs = facts_of(
        "<nav><a href='/'>Home of all</a></nav><main><h1>Gone</h1><p>Nothing here.</p></main>"
        "<footer>Our address</footer>"
    ).signs
    assert (signs.headings, signs.texts) == (["Gone"], ["Nothing here."])
    assert signs.frame_words == 5


def test_a_page_that_is_all_frame_is_read_as_it_is() -> None:
    assert facts_of("<footer>Request blocked</footer>").signs.texts == ["Request blocked"]


def test_a_form_in_the_header_is_none_of_the_page() -> None:
    form = "<form action='/login'><input name=u><input type=password></form>"
    assert facts_of(f"<header>{form}</header><p>Text</p>").signs.passwords == 0
    assert facts_of(f"<main>{form}</main>").signs.passwords == 1


def test_scripts_meta_elements_and_hidden_fields_are_facts() -> None:
    signs = facts_of(
        "<meta name=robots content='NOINDEX'><meta http-equiv=refresh content='5'>"
        "<script>x = {'statusCode': 503}</script><script src='/challenge.js'></script>"
        "<form action='/go'><input type=hidden name=next value='/a/b'></form>"
    ).signs
    assert signs.noindex
    assert signs.refresh_s == 5
    assert signs.statuses == {503}
    assert signs.addresses == ["/challenge.js", "/go"]
    assert signs.hidden == ["next=/a/b"]


def test_a_preview_of_none_is_no_note_to_search_engines() -> None:
    assert not facts_of("<meta name=robots content='max-image-preview: none'>").signs.noindex


def test_hostile_bodies_cost_no_more_than_their_beginning() -> None:
    assert read_signs(b"<div>" * 100_000, "text/html") == PageSigns()
    signs = read_signs(b"<p>" + b"word " * 100_000, "text/html")
    assert sum(map(len, signs.texts)) <= MOST_BYTES


@given(
    st.binary(max_size=400) | st.text(alphabet="<>/ abdfhimnoprt=\"'", max_size=400).map(str.encode)
)
def test_no_body_is_too_odd_to_be_judged(body: bytes) -> None:
    facts = PageFacts("https://h.example/a", None, Blocks(), sketch(()), body, "text/html")
    HostJudge().judge(facts, 0.0)


@pytest.mark.parametrize(
    "name",
    ["main-nav", "side-nav", "nav-tree", "site-header", "page_footer", "sidebar", "toc",
     "search-results", "cookie-banner", "cart", "comments", "modal-root", "chat-widget", "ads"],
)  # fmt: skip
def test_what_is_filled_beside_the_content_is_no_place_where_scripts_build_the_page(
    name: str,
) -> None:
    facts = facts_of(f"<div id={name}></div><p>Words</p><script src=/a.js></script>")
    assert facts.signs.roots == {}


@pytest.mark.parametrize("name", ["app", "root", "content", "page-content", "navigator-app"])
def test_other_empty_elements_may_be_where_scripts_build_the_page(name: str) -> None:
    facts = facts_of(f"<div id={name}></div><script src=/a.js></script>")
    assert facts.signs.roots == {f"#{name}": True}
