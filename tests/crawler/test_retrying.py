"""Whether and when a failed URL is asked for again."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from freshet.crawler.politeness import FailureRetries, PolitenessRules
from freshet.storage.records import DueUrl, FetchResult, Visit
from freshet.storage.words import Kind, Outcome, Role

NOON = 1_800_000_000.0
URL = "https://a.example/"
DUE = DueUrl(7, URL, URL, host_id=1, due_at=0.0)


def visit(status: int | None, reason: str, due: DueUrl = DUE, attempts: int = 3) -> Visit:
    result = FetchResult(URL, Outcome.FAILED, NOON - 1, 1.0, status, reason, "in words")
    return FailureRetries(PolitenessRules(), attempts, Random(0)).visit(due, result, NOON)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (500, "http_500"),
        (503, "http_503"),
        (429, "http_429"),
        (None, "timeout_headers"),
        (None, "protocol"),
        (200, "cut_short"),
        (200, "timeout_body"),
        (200, "too_slow"),
    ],
)
def test_what_may_pass_is_tried_again_after_a_back_off_and_charged(
    status: int | None, reason: str
) -> None:
    again = visit(status, reason)
    assert again.charged
    assert again.retry_at is not None
    assert 5.0 <= again.retry_at - NOON <= 6.25


def test_each_try_waits_longer_until_the_last() -> None:
    second = visit(500, "http_500", replace(DUE, attempt=1))
    assert second.retry_at is not None
    assert 20.0 <= second.retry_at - NOON <= 25.0
    assert visit(500, "http_500", replace(DUE, attempt=2)).retry_at is None
    assert visit(500, "http_500", attempts=1).retry_at is None


@pytest.mark.parametrize("reason", ["dns", "connect", "timeout_connect", "not_tls"])
def test_a_host_that_is_down_is_the_lanes_affair_however_often(reason: str) -> None:
    again = visit(None, reason, replace(DUE, attempt=99))
    assert (again.retry_at, again.charged) == (NOON, False)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "http_400"),
        (401, "http_401"),
        (403, "http_403"),
        (451, "http_451"),
        (None, "tls"),
        (None, "address"),
        (None, "no_such_host"),
        (None, "url"),
        (None, "internal"),
        (200, "too_large"),
        (None, "headers_too_large"),
        (200, "encoding"),
        (301, "bad_redirect"),
    ],
)
def test_what_will_not_pass_is_final(status: int | None, reason: str) -> None:
    assert visit(status, reason).retry_at is None


def test_the_observation_says_what_happened() -> None:
    failed = visit(500, "http_500", replace(DUE, role=Role.SITEMAP))
    observation = failed.observation
    assert (observation.page_id, observation.at, observation.kind) == (7, NOON, Kind.FAILED)
    assert (observation.status, observation.reason, observation.detail) == (
        500,
        "http_500",
        "in words",
    )
    assert observation.duration_s == 1.0
    assert failed.role is Role.SITEMAP
