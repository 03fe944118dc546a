from freshet.crawler.admission.traps import TrapKind, TrapLimits, classify
from freshet.crawler.synthetic_web.answers import Responder
from freshet.crawler.synthetic_web.content import Place
from freshet.crawler.synthetic_web.difficult_sites import EVENT_TRAPS, events
from freshet.crawler.synthetic_web.traps import ENTRANCES
from freshet.crawler.synthetic_web.web import START_AT, SyntheticWeb, WebSpec
from tests.crawler.synthetic_web.browsing import get, hrefs, main_text, responder_for

WEB = SyntheticWeb.of(1, [events(WebSpec().plot("events"))], START_AT, START_AT + 1)


def trap_links(responder: Responder, target: str) -> list[str]:
    body = get(responder, Place("events", target), START_AT).body
    return [href for href in hrefs(body) if WEB.is_trap(Place("events", href))]


def test_the_calendar_goes_on_for_ever() -> None:
    responder, target = responder_for(WEB), "/calendar/2026/11"
    seen = [target, *(target := trap_links(responder, target)[-1] for _ in range(30))]
    assert seen[:4] == ["/calendar/2026/11", "/calendar/2026/12", "/calendar/2027/01",
                        "/calendar/2027/02"]  # fmt: skip
    assert len(set(seen)) == 31


def test_every_answer_hands_out_sessions_that_nobody_has_seen() -> None:
    responder, target = responder_for(WEB), "/rooms/1?sid=0"
    links = [link for _ in range(5) for link in trap_links(responder, target)]
    assert len(links) == len(set(links)) == 20


def test_a_room_is_the_same_whatever_the_session() -> None:
    responder = responder_for(WEB)
    first, second = (
        main_text(get(responder, Place("events", f"/rooms/2?sid={sid}"), START_AT).body)
        for sid in ("a", "b")
    )
    assert first == second


def test_the_start_page_leads_into_the_traps_and_crawlers_can_tell() -> None:
    entrances = set(trap_links(responder_for(WEB), "/"))
    assert entrances == {ENTRANCES[trap] for trap in EVENT_TRAPS}
    signs = {classify(f"http://events.localhost{target}", TrapLimits()) for target in entrances}
    assert {sign.kind for sign in signs if sign} == {TrapKind.CALENDAR, TrapKind.SESSION}
