import pytest

from freshet.crawler.extensions.lab.synthetic_web.answers import Responder
from freshet.crawler.extensions.lab.synthetic_web.content import DAY_S, SyntheticUrl
from freshet.crawler.extensions.lab.synthetic_web.web import START_AT, showcase
from freshet.storage.records import Validators
from scripts.synthetic_server import plain
from scripts.synthetic_truth import Truth
from tests.crawler.extensions.lab.synthetic_web.browsing import departures, get, responder_for

WEB = showcase()
TRUTH = Truth(WEB)


@pytest.fixture
def responder() -> Responder:
    return responder_for(WEB)


def statuses_of(responder: Responder, target: str, requests: int) -> list[int]:
    place = SyntheticUrl("status", target)
    return [get(responder, place, START_AT).status for _ in range(requests)]


def refetch(responder: Responder, place: SyntheticUrl, first: float, second: float) -> int:
    answer = get(responder, place, first)
    conditions = Validators(answer.header("ETag"), answer.header("Last-Modified"))
    return get(responder, place, second, conditions).status


@pytest.mark.parametrize("host", ["docs", "wiki"])
def test_304_is_answered_exactly_while_neither_content_nor_frame_changed(
    responder: Responder, host: str
) -> None:
    end_at = START_AT + 10 * DAY_S
    edits = TRUTH.edits_between(START_AT, end_at)
    for place in sorted(p for p in WEB.crawlable(START_AT) if p.host == host)[:12]:
        times = [edit.at for edit in edits if edit.place == place]
        for before, after in zip([START_AT, *times], [*times, end_at], strict=True):
            if place not in TRUTH.alive(after):
                break
            assert refetch(responder, place, before, after - 1) == 304
            assert refetch(responder, place, before, after) == (200 if after < end_at else 304)


def test_a_304_has_the_validators_and_no_body(responder: Responder) -> None:
    place = SyntheticUrl("docs", "/")
    first = get(responder, place, START_AT)
    again = get(responder, place, START_AT, Validators(etag=first.header("ETag")))
    assert (again.status, again.body) == (304, b"")
    assert again.header("ETag") == first.header("ETag")
    assert again.header("Last-Modified") == first.header("Last-Modified")


def test_a_tag_of_all_bytes_never_matches_because_of_the_noise(responder: Responder) -> None:
    place = SyntheticUrl("news", "/about")
    assert refetch(responder, place, START_AT, START_AT) == 200
    answer = get(responder, place, START_AT)
    assert (answer.header("ETag") or "").startswith('"')
    assert answer.header("Last-Modified") is None


def test_a_site_without_validators_has_none(responder: Responder) -> None:
    answer = get(responder, SyntheticUrl("shop", "/"), START_AT)
    assert answer.header("ETag") is answer.header("Last-Modified") is None


def test_tags_are_weak_with_noise_and_strong_without(responder: Responder) -> None:
    noisy = get(responder, SyntheticUrl("docs", "/"), START_AT).header("ETag") or ""
    calm = get(responder_for(plain(1, 1)), SyntheticUrl("h1", "/"), START_AT).header("ETag") or ""
    assert noisy.startswith('W/"')
    assert calm.startswith('"')


def test_webs_of_different_seeds_have_different_tags() -> None:
    answers = [
        get(responder_for(plain(1, 1, seed)), SyntheticUrl("h1", "/"), START_AT) for seed in (1, 2)
    ]
    assert answers[0].header("ETag") != answers[1].header("ETag")


def test_a_page_is_404_before_its_birth_and_410_after_its_death(responder: Responder) -> None:
    place, died_at = next((p, at) for p, at, moved_to in departures(WEB) if moved_to is None)
    assert get(responder, place, died_at - 1).status == 200
    assert get(responder, place, died_at).status == 410
    born = max(WEB.lives(), key=lambda life: life.born_at)
    assert get(responder, born.place, born.born_at - 1).status == 404
    assert get(responder, born.place, born.born_at).status == 200


def test_a_page_that_moved_redirects_to_where_its_content_is(responder: Responder) -> None:
    for place, at, moved_to in departures(WEB):
        if moved_to is not None:
            answer = get(responder, place, at)
            assert answer.status == 301
            assert answer.header("Location") == responder.addresses.url(moved_to)
            assert get(responder, moved_to, at).status == 200


def test_faults_strike_as_often_as_they_say(responder: Responder) -> None:
    assert statuses_of(responder, "/broken", 3) == [500, 500, 500]
    assert statuses_of(responder, "/now-and-then", 6) == [500, 200, 200, 200, 500, 200]
    assert statuses_of(responder, "/busy", 3) == [503, 200, 200]
    assert statuses_of(responder, "/too-many", 3) == [429, 200, 200]


def test_retry_after_comes_as_seconds_and_as_a_date(responder: Responder) -> None:
    seconds = get(responder, SyntheticUrl("status", "/busy"), START_AT).header("Retry-After")
    date = get(responder, SyntheticUrl("status", "/too-many"), START_AT).header("Retry-After")
    assert (seconds, date) == ("1", "Thu, 01 Jan 2026 00:00:01 GMT")


@pytest.mark.parametrize(
    ("place", "status"),
    [(SyntheticUrl("nobody", "/"), 421), (SyntheticUrl("docs", "/missing"), 404),
     (SyntheticUrl("notes", "/robots.txt"), 404), (SyntheticUrl("status", "/gone"), 410),
     (SyntheticUrl("status", "/nowhere"), 302), (SyntheticUrl("events", "/calendar/"), 404),
     (SyntheticUrl("shop", "/product?utm_source=x&id=3&utm_medium=y"), 200)],
)  # fmt: skip
def test_every_place_has_an_answer(responder: Responder, place: SyntheticUrl, status: int) -> None:
    assert get(responder, place, START_AT).status == status


def test_a_moved_site_redirects_every_target_to_the_other(responder: Responder) -> None:
    answer = get(responder, SyntheticUrl("old", "/any?thing"), START_AT)
    assert answer.status == 301
    assert answer.header("Location") == "http://docs.localhost/any?thing"


def test_dates_are_those_of_the_web(responder: Responder) -> None:
    answer = get(responder, SyntheticUrl("docs", "/"), START_AT)
    assert answer.header("Date") == "Thu, 01 Jan 2026 00:00:00 GMT"
