"""A look is given back as the exchange that it came of, as far as the store knows it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.fetch.client import Accept
from freshet.crawler.lab.replay_store import outcome_of, played_of, robots_of
from freshet.crawler.robots.directives import parse_directives
from freshet.storage.entries import RobotsRecord
from freshet.storage.queries.replay import Look, LookPage, SeenVersion
from freshet.storage.records import FetchResult, Validators
from freshet.storage.words import Outcome, RobotsStanding, Role

AT = 1_800_000_000.0
PAGE = LookPage("http://a.test/x", "http://a.test/x?utm_source=y", Role.PAGE, 3, 1, "http://a.test")
KEPT = SeenVersion(7, bytes(16), "text/html; charset=x", is_kept=True, directives=())
FAILED = Look(
    AT, "failed", None, 500, "http_500", "the server answered 500", 0.5, False, PAGE, None, None,
    Validators(),
)  # fmt: skip
SEEN = replace(FAILED, kind="new", status=200, reason=None, detail=None, version=KEPT)


def result_of(look: Look, body: bytes = b"") -> FetchResult:
    outcome = outcome_of(look)
    assert outcome is not None
    return played_of(look, outcome, body).result


@pytest.mark.parametrize(
    ("kind", "rung", "outcome"),
    [
        ("new", None, Outcome.FETCHED),
        ("changed", "blocks", Outcome.FETCHED),
        ("unchanged", "body", Outcome.FETCHED),
        ("unchanged", "text", Outcome.FETCHED),
        ("unchanged", "304", Outcome.NOT_MODIFIED),
        ("gone", None, Outcome.GONE),
        ("failed", None, Outcome.FAILED),
        ("refused", None, Outcome.REFUSED),
        ("skipped", None, Outcome.SKIPPED),
        ("redirected", None, Outcome.REDIRECTED),
        ("fetched", None, None),
        ("", None, None),
    ],
)
def test_a_kind_is_an_outcome(kind: str, rung: str | None, outcome: Outcome | None) -> None:
    assert outcome_of(replace(SEEN, kind=kind, rung=rung)) is outcome


@pytest.mark.parametrize("rung", [None, "304", "body"])
def test_what_is_not_kept_is_not_made_up(rung: str | None) -> None:
    for version in (None, replace(KEPT, is_kept=False)):
        assert outcome_of(replace(SEEN, kind="unchanged", rung=rung, version=version)) is None


def test_a_capture_that_was_taken_back_is_a_failure_with_its_reason() -> None:
    look = replace(SEEN, is_taken_back=True, version=None, reason="soft_404", detail="why")
    result = result_of(look)
    assert (result.outcome, result.status, result.reason) == (Outcome.FAILED, 200, "soft_404")


def test_content_comes_with_the_headers_that_are_known() -> None:
    version = replace(KEPT, directives=("noindex", "nofollow"))
    look = replace(SEEN, version=version, validators=Validators('"e"', None))
    result = result_of(look, b"bytes")
    assert (result.url, result.body, result.ended_at) == (PAGE.fetch_url, b"bytes", AT)
    assert result.header("Content-Type") == "text/html; charset=x"
    assert (result.header("ETag"), result.header("Last-Modified")) == ('"e"', None)
    said = parse_directives(result.header_values("X-Robots-Tag"), "anybody", is_header=True)
    assert (said.noindex, said.nofollow, said.noarchive) == (True, True, False)
    assert not result_of(replace(look, kind="unchanged", rung="304")).headers


def test_a_redirect_leads_where_it_led() -> None:
    look = replace(
        SEEN, kind="redirected", status=301, reason="permanent", detail="http://a.test/y"
    )
    assert result_of(look).location == "http://a.test/y"
    assert result_of(replace(look, target="http://a.test/Y")).location == "http://a.test/Y"
    assert result_of(replace(look, detail=None)).location is None


@pytest.mark.parametrize("spelling", ["http://a.test/x", "http://a.test/x?utm_medium=z"])
def test_a_redirect_to_another_spelling_was_asked_for_by_another(spelling: str) -> None:
    look = replace(SEEN, kind="redirected", status=301, reason="respelled", detail=spelling)
    assert result_of(look).url != spelling


def test_what_names_another_page_is_not_asked_for() -> None:
    for wrong in ("http://a.test/z", "http://[", "about:x", ""):
        look = replace(SEEN, page=replace(PAGE, fetch_url=wrong))
        assert result_of(look).url == PAGE.url


def test_nothing_was_sent_where_it_took_no_time_and_had_no_answer() -> None:
    unasked = replace(FAILED, status=None, reason="no_such_host", duration_s=0.0)
    assert played_of(unasked, Outcome.FAILED).is_unasked
    for asked in (FAILED, replace(unasked, duration_s=0.1), replace(unasked, status=500)):
        assert not played_of(asked, Outcome.FAILED).is_unasked


def test_a_page_stands_as_deep_and_as_what_it_stood() -> None:
    for role, accept in (
        (Role.PAGE, Accept.PAGE), (Role.FEED, Accept.PAGE), (Role.SITEMAP, Accept.SITEMAP)
    ):  # fmt: skip
        played = played_of(replace(FAILED, page=replace(PAGE, role=role)), Outcome.FAILED)
        assert (played.role, played.accept, played.depth) == (role, accept, 3)
        assert played.is_ours


@pytest.mark.parametrize(
    ("standing", "outcome", "status"),
    [
        (RobotsStanding.PARSED, Outcome.FETCHED, 200),
        (RobotsStanding.ALLOW_ALL, Outcome.GONE, 404),
        (RobotsStanding.UNREACHABLE, Outcome.FAILED, None),
    ],
)
def test_robots_txt_stands_as_it_stood(
    standing: RobotsStanding, outcome: Outcome, status: int | None
) -> None:
    played = robots_of("http://a.test", RobotsRecord(standing, AT, b"x", "why"), AT)
    assert played.accept is Accept.ROBOTS
    assert played.result.url == "http://a.test/robots.txt"
    assert (played.result.outcome, played.result.status) == (outcome, status)


@given(
    kind=st.sampled_from(["new", "gone", "failed", "refused", "skipped", "redirected", "odd", ""]),
    status=st.none() | st.integers(-1, 2**62),
    words=st.tuples(*[st.none() | st.text(max_size=20)] * 5),
    url=st.text(max_size=20),
    flags=st.tuples(st.booleans(), st.booleans()),
)
def test_no_row_makes_it_fail(
    kind: str,
    status: int | None,
    words: tuple[str | None, ...],
    url: str,
    flags: tuple[bool, bool],
) -> None:
    reason, detail, etag, content_type, target = words
    look = replace(
        SEEN, kind=kind, status=status, reason=reason, detail=detail, target=target,
        is_taken_back=flags[0], page=replace(PAGE, fetch_url=url),
        version=replace(KEPT, content_type=content_type, is_kept=flags[1]),
        validators=Validators(etag, etag),
    )  # fmt: skip
    outcome = outcome_of(look)
    if outcome is not None:
        assert abs(played_of(look, outcome, b"x").result.ended_at - AT) < 1e-6
