"""That a page lacks something is claimed only of a page that was read as a whole."""

import pytest

from freshet.crawler.compare.not_content.evidence import weigh
from freshet.crawler.compare.not_content.host import HostJudge, needs_javascript, probability
from tests.crawler.compare.not_content.facts import facts_of

TEXT = (
    "<main><p>The kiln of the village was lit twice a year, in spring for the roof tiles and in "
    "autumn for the jars, and all who had clay to burn came with their carts.</p></main>"
)
#: Beginnings of pages that say nothing, as block pages do.
FRAME = "<meta name=robots content=noindex><iframe src='//guard.example/a'></iframe>"
CHECK = "<meta http-equiv=refresh content='0;/.well-known/captcha/?r=1'>"
COOKIE = "<script>document.cookie='seen=1';location.reload()</script>"
BOX = "<form action=/session><input type=password name=pw></form>"
ROOT = "<div id=root></div><script src=/static/js/main.js></script>"
#: Parts of a page that fill what is read of it.
COMMENT = f"<!-- {'x' * 70_000} -->"
STYLE = f"<style>{'.a { color: red } ' * 4_000}</style>"
SCRIPT = f"<script>{'var a = 1;' * 7_000}</script>"
DRAWING = f"<svg><path d='{'M0 0' * 18_000}'/></svg>"
STATE = f"<script type=application/json>{'[1, 2, 3], ' * 6_500}</script>"
LONG_MENU = f"<nav>{'<a href=/chapter>Chapter of the handbook</a> ' * 700}</nav>"
MANY_ITEMS = f"<nav><ul>{'<li><a href=/c>c</a>' * 2_500}</ul></nav>"
LONG_HEADER = f"<div class=header>{'words of the header ' * 700}</div>"

SAYING_NOTHING = {"frame": FRAME, "check": CHECK, "cookie": COOKIE, "box": BOX}
LONG = {"comment": COMMENT, "style": STYLE, "script": SCRIPT, "drawing": DRAWING, "state": STATE}
FRAMES = {"menu": LONG_MENU, "items": MANY_ITEMS, "header": LONG_HEADER}


@pytest.mark.parametrize("beginning", SAYING_NOTHING)
@pytest.mark.parametrize("filling", LONG)
def test_a_page_whose_text_was_not_reached_is_no_block_page(beginning: str, filling: str) -> None:
    facts = facts_of(SAYING_NOTHING[beginning] + LONG[filling] + TEXT)
    assert not facts.signs.texts
    assert HostJudge().judge(facts, 0.0) is None


@pytest.mark.parametrize("filling", FRAMES)
def test_a_page_whose_text_was_not_reached_does_not_wait_for_scripts(filling: str) -> None:
    assert needs_javascript(facts_of(ROOT + FRAMES[filling] + TEXT)) is None


@pytest.mark.parametrize("beginning", SAYING_NOTHING)
def test_a_page_that_was_read_to_its_end_and_says_nothing_is_a_block_page(beginning: str) -> None:
    assert HostJudge().judge(facts_of(SAYING_NOTHING[beginning]), 0.0) is not None


def test_a_page_that_was_read_to_its_end_and_is_empty_waits_for_scripts() -> None:
    assert needs_javascript(facts_of(ROOT)) is not None


@pytest.mark.parametrize("filling", LONG | {"menu": LONG_MENU, "items": MANY_ITEMS})
def test_what_a_page_says_of_itself_counts_also_where_it_goes_on(filling: str) -> None:
    said = "<h1>Page not found</h1><p>The page that you were looking for does not exist.</p>"
    page = said + (LONG | FRAMES)[filling]
    assert HostJudge().judge(facts_of(page, title="Page not found"), 0.0) is not None


@pytest.mark.parametrize("filling", LONG | FRAMES)
def test_words_that_were_not_reached_count_as_the_page_s_own(filling: str) -> None:
    heading = "<h1>Sign in to read on</h1><p>Please log in.</p>"
    page = heading + (LONG | FRAMES)[filling] + TEXT * 3
    alone, whole, cut = (probability(weigh(facts_of(it)).features) for it in (
        heading, heading + TEXT * 3, page
    ))  # fmt: skip
    assert whole < alone
    assert cut < alone
