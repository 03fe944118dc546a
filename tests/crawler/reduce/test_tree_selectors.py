"""What a user's selectors do to the main text."""

import pytest

from freshet.config.settings import SiteSettings
from freshet.crawler.errors import UsageError
from freshet.crawler.reduce.tree import NO_HINTS, SelectorHints
from freshet.crawler.run.network import selector_hints
from tests.crawler.reduce.pages import blocks_of
from tests.integration.quick import quick

PAGE = """<div class=price><p>12.50 EUR</p><p class=seen>Seen by 12</p></div>
<main><p>Some words of the main element.</p><p class=seen>and Seen by 12 more</p></main>
<div class=price><span>13.00</span></div>"""


def texts(markup: str, hints: SelectorHints) -> tuple[str, ...]:
    return blocks_of(markup, hints).texts


def test_included_elements_are_the_whole_main_text_in_document_order() -> None:
    hints = SelectorHints(include=(".price",))
    assert texts(PAGE, hints) == ("12.50 EUR", "Seen by 12", "13.00")


def test_ignored_elements_are_dropped_with_all_below_them() -> None:
    (text,) = texts(PAGE, SelectorHints(ignore=(".seen", "div")))
    assert text == "Some words of the main element."
    assert texts(PAGE, SelectorHints((".price",), (".seen",))) == ("12.50 EUR", "13.00")


def test_an_included_element_within_another_counts_once() -> None:
    assert texts(PAGE, SelectorHints(include=("main", "p.seen"))) == (
        "Seen by 12", "Some words of the main element.", "and Seen by 12 more",
    )  # fmt: skip


def test_included_elements_count_even_where_they_look_like_frame_if_there_are_any() -> None:
    page = "<nav><a href=x>Home</a></nav><p>Prose</p>"
    assert texts(page, SelectorHints(include=("nav",))) == ("Home",)
    assert texts(page, SelectorHints(include=("#none",))) == texts(page, NO_HINTS) == ("Prose",)


@pytest.mark.parametrize("selector", ["div[", "", "a >", "div:nope", "..x"])
def test_a_selector_that_is_not_valid_is_named(selector: str) -> None:
    with pytest.raises(ValueError, match="is not a CSS selector") as raised:
        SelectorHints(ignore=(selector,))
    assert repr(selector) in str(raised.value)


def test_the_selectors_of_the_nearest_table_count() -> None:
    sites = [
        {"match": "*.Example.org", "include": ["main"], "ignore": [".ad"]},
        {"match": "news.example.org", "include": ["article"]},
        {"match": "news.example.org/old/*", "ignore": []},
    ]
    hints = selector_hints(quick(sites=sites))
    assert hints("https://www.example.org:8443/a") == SelectorHints(("main",), (".ad",))
    assert hints("https://news.example.org/") == SelectorHints(("article",), (".ad",))
    assert hints("https://news.example.org/old/1") == SelectorHints(("article",))
    assert hints("https://example.com/") == NO_HINTS
    assert hints("https://otherexample.org/") == NO_HINTS


def test_a_wrong_selector_is_told_with_its_site() -> None:
    table = SiteSettings(match="example.org", ignore=("p[",))
    wrong = quick().model_copy(update={"sites": (table,)})
    with pytest.raises(UsageError, match=r"example\.org: 'p\[' is not a CSS selector"):
        selector_hints(wrong)
