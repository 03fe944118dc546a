"""A shop whose lists, calendars and directories never end."""

from __future__ import annotations

import pytest

from freshet.crawler.synthetic_web.content import Place
from freshet.crawler.synthetic_web.site import Trap
from freshet.crawler.synthetic_web.traps import ENTRANCES
from freshet.crawler.synthetic_web.web import START_AT, WebSpec, endless
from tests.crawler.synthetic_web.browsing import get, hrefs, responder_for

SPEC = WebSpec(1, 60, span_days=30.0)
WEB = endless(SPEC)
DAY_S = 86_400.0


def links(target: str, at: float = START_AT) -> list[str]:
    return hrefs(get(responder_for(WEB), Place("bazaar", target), at).body)


def test_there_are_as_many_ordinary_pages_as_asked_for_and_more_come() -> None:
    before, after = WEB.crawlable(START_AT), WEB.crawlable(WEB.end_at)
    assert len(before) == 60
    assert len(after - before) > 20
    assert endless(SPEC, traps=False).crawlable(WEB.end_at) == after


def test_the_newest_ware_stands_on_the_start_page_and_the_others_behind_it() -> None:
    wares = [t for t in links("/", WEB.end_at) if t.startswith("/ware/")]
    assert len(wares) == 20
    assert "/all/2" in links("/", WEB.end_at)
    numbers = [int(t.rpartition("/")[2]) for t in wares]
    assert numbers == sorted(numbers, reverse=True)


@pytest.mark.parametrize("trap", list(Trap))
def test_every_trap_leads_to_more_of_its_pages_at_any_depth(trap: Trap) -> None:
    responder, seen, target = responder_for(WEB), set[str](), ENTRANCES[trap]
    for _ in range(12):
        answer = get(responder, Place("bazaar", target), START_AT)
        assert answer.status == 200
        found = [t if t.startswith("/") else target + t for t in hrefs(answer.body)]
        new = [t for t in found if t.startswith(trap) and t not in seen]
        assert new
        seen.update(found)
        target = new[-1]


def test_a_list_shows_wares_that_others_show_too() -> None:
    known = {t for t in links("/wares?sort=name") if t.startswith("/ware/")}
    for page in range(2, 9):
        known |= {t for t in links(f"/wares?page={page}&sort=name") if t.startswith("/ware/")}
    assert len(known) == 57
    for target in ("/wares?colour=red&page=7&size=small", "/shelves/red/wool", "/shelves/wool/red"):
        wares = [t for t in links(target) if t.startswith("/ware/")]
        assert wares
        assert set(wares) <= known


@pytest.mark.parametrize(
    "target", ["/wares?colour=pink", "/wares?page=x", "/shelves/pink", "/deeper/sideways/",
               "/calendar/2026/1", "/dates?month=2026"],
)  # fmt: skip
def test_what_no_list_names_is_not_there(target: str) -> None:
    assert get(responder_for(WEB), Place("bazaar", target), START_AT).status == 404
