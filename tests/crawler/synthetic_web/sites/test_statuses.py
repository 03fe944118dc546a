import pytest

from freshet.crawler.synthetic_web.answers import Responder
from freshet.crawler.synthetic_web.content import Place
from freshet.crawler.synthetic_web.difficult_sites import CHAINS, statuses
from freshet.crawler.synthetic_web.web import START_AT, SyntheticWeb, WebSpec
from tests.crawler.synthetic_web.browsing import get, responder_for

WEB = SyntheticWeb.of(1, [statuses(WebSpec().plot("status"))], START_AT, START_AT + 1)


def follow(responder: Responder, target: str, most: int = 20) -> tuple[int, list[str]]:
    """The last status, and the targets on the way there."""
    way: list[str] = []
    while len(way) < most:
        answer = get(responder, Place("status", target), START_AT)
        location = answer.header("Location")
        if location is None:
            return answer.status, way
        target = location.removeprefix("http://status.localhost")
        way.append(target)
    return 0, way


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_each_kind_of_redirect_leads_to_the_same_page(status: int) -> None:
    responder = responder_for(WEB)
    answer = get(responder, Place("status", f"/moved-{status}"), START_AT)
    assert answer.status == status
    assert follow(responder, f"/moved-{status}") == (200, ["/found"])


@pytest.mark.parametrize(("name", "hops"), CHAINS.items())
def test_a_chain_has_as_many_redirects_as_it_says(name: str, hops: int) -> None:
    status, way = follow(responder_for(WEB), f"/{name}")
    assert (status, len(way), way[-1]) == (200, hops, f"/{name}/end")


@pytest.mark.parametrize("target", ["/loop-a", "/loop-b", "/self"])
def test_a_loop_never_ends(target: str) -> None:
    assert follow(responder_for(WEB), target)[0] == 0


def test_locations_are_absolute_and_relative() -> None:
    responder = responder_for(WEB)
    locations = [
        get(responder, Place("status", f"/moved-{status}"), START_AT).header("Location")
        for status in (301, 302)
    ]
    assert locations == ["http://status.localhost/found", "/found"]
