"""A part that scripts build on a page with a site's frame makes the page doubtful at most."""

import pytest

from freshet.crawler.compare.not_content.host import HostJudge
from tests.crawler.compare.not_content.facts import facts_of

MENU = "".join(
    f"<nav><ul><li><a href=/{n}.html>Chapter {n} of the handbook</a></ul></nav>" for n in range(9)
)
PROGRAM = "<script src=/static/js/main.js></script>"
NOTICE = "Please activate JavaScript to use this."
#: Parts of pages that search, draw or list what a script fetches.
PARTS = {
    "results": f"<div id=search-results></div><noscript><p>{NOTICE}</p></noscript>",
    "notice": f"<noscript><div id=fallback><p>{NOTICE}</p></div></noscript>",
    "empty box": "<div id=box></div>",
    "map": f"<div id=map></div><noscript>{NOTICE}</noscript>",
    "chart": f"<div id=chart class=plot></div><noscript><p>{NOTICE}</p></noscript>",
    "tree": f"<ul id=tree></ul><noscript>{NOTICE}</noscript>",
    "comments": f"<section id=thread></section><noscript>{NOTICE}</noscript>",
    "calendar": f"<div id=calendar></div><noscript><b>{NOTICE}</b></noscript>",
    "player": f"<div id=player></div><noscript>{NOTICE}</noscript>",
    "form": f"<div id=form></div><noscript><p>{NOTICE}</p></noscript>",
}
#: Elements into which frameworks build whole pages.
ROOTS = ("root", "app", "__next", "__nuxt", "gatsby-focus-wrapper")


def page(part: str, frame: str = MENU) -> str:
    return f"{frame}<main>{part}</main>{PROGRAM}"


@pytest.mark.parametrize("part", PARTS)
def test_a_page_with_a_frame_is_not_refused(part: str) -> None:
    found = HostJudge().judge(facts_of(page(PARTS[part]), title="Search"), 0.0)
    assert found is None or not found.is_refused


@pytest.mark.parametrize("root", ROOTS)
def test_what_a_framework_builds_whole_is_refused_without_a_frame(root: str) -> None:
    found = HostJudge().judge(facts_of(f"<div id={root}></div>{PROGRAM}", title="App"), 0.0)
    assert found is not None
    assert found.is_refused
