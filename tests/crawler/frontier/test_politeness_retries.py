"""Whether and when a failed URL is asked for again."""

from dataclasses import replace
from random import Random

import pytest

from freshet.crawler.frontier.politeness import PolitenessRules, Retries
from freshet.storage.records import DueUrl

NOON = 1_800_000_000.0
URL = "https://a.example/"
DUE = DueUrl(7, URL, URL, host_id=1, due_at=0.0)


def retry(
    status: int | None, reason: str, due: DueUrl = DUE, attempts: int = 3
) -> tuple[float | None, bool]:
    return Retries(PolitenessRules(), attempts, Random(0)).after(due, status, reason, NOON)


@pytest.mark.parametrize(
    ("status", "reason"),
    [(500, "http_500"), (503, "http_503"), (429, "http_429"), (None, "timeout_headers"),
     (None, "protocol"), (None, "hung_up"), (200, "cut_short"),
     (200, "timeout_body"), (200, "too_slow")],
)  # fmt: skip
def test_what_may_pass_is_tried_again_after_a_back_off_and_charged(
    status: int | None, reason: str
) -> None:
    at, charged = retry(status, reason)
    assert charged
    assert at is not None
    assert 5.0 <= at - NOON <= 6.25


def test_each_try_waits_longer_until_the_last() -> None:
    second, _ = retry(500, "http_500", replace(DUE, attempt=1))
    assert second is not None
    assert 20.0 <= second - NOON <= 25.0
    assert retry(500, "http_500", replace(DUE, attempt=2))[0] is None
    assert retry(500, "http_500", attempts=1)[0] is None


@pytest.mark.parametrize("reason", ["dns", "connect", "timeout_connect", "not_tls"])
def test_a_host_that_is_down_is_the_queues_affair_however_often(reason: str) -> None:
    assert retry(None, reason, replace(DUE, attempt=99)) == (NOON, False)


@pytest.mark.parametrize(
    ("status", "reason"),
    [(400, "http_400"), (401, "http_401"), (403, "http_403"), (451, "http_451"), (None, "tls"),
     (None, "address"), (None, "no_such_host"), (None, "url"), (None, "internal"),
     (200, "too_large"), (None, "headers_too_large"), (200, "encoding"), (301, "bad_redirect")],
)  # fmt: skip
def test_what_will_not_pass_is_final(status: int | None, reason: str) -> None:
    assert retry(status, reason)[0] is None


@pytest.mark.parametrize("reason", ["address", "no_such_host"])
def test_in_a_lasting_run_a_name_without_an_address_waits_with_its_host(reason: str) -> None:
    retries = Retries(PolitenessRules(), 1, Random(0), lasting=True)
    assert retries.after(replace(DUE, attempt=99), None, reason, NOON) == (NOON, False)
