"""What headers say of time, and of hosts that say it."""

import logging
from email.utils import formatdate

import pytest

from freshet.crawler.signals.headers import (
    HostHeaders,
    clock_skew_s,
    etag_moved,
    text_moved,
    wish_s,
)
from freshet.crawler.signals.listings import Complaints, claimed
from freshet.storage.entries import Claim, HeaderSigns, Kind, Role, SourceReport
from freshet.storage.records import DueUrl, FetchResult, Observation, Validators

NOW = 1_800_000_000.0
HOUR_S = 3_600.0
DAY_S = 86_400.0
URL = "https://a.example/p"


def date(at: float) -> str:
    return formatdate(at, usegmt=True)


def answer(**headers: str) -> FetchResult:
    raw = tuple((k.replace("_", "-").encode(), v.encode()) for k, v in headers.items())
    return FetchResult(URL, "fetched", NOW, 0.5, status=200, headers=raw)


def hear(
    headers: HostHeaders, result: FetchResult, kind: Kind = "unchanged", *,
    etag: str | None = None, role: Role = "page",
) -> tuple[HeaderSigns | None, SourceReport | None]:  # fmt: skip
    due = DueUrl(1, URL, URL, 7, NOW, validators=Validators(etag))
    signs, _, said = headers.signals(due, role, Observation(1, NOW, kind, status=200), result)
    return signs, said


@pytest.mark.parametrize(
    ("headers", "skew_s"),
    [
        ({"Date": date(NOW)}, 0.0),
        # An exchange of half a second leaves so much open.
        ({"Date": date(NOW + HOUR_S)}, HOUR_S - 0.5),
        ({"Date": date(NOW - HOUR_S)}, 1 - HOUR_S),
        # A clock that is years off counts as a day.
        ({"Date": date(0)}, -DAY_S),
        # A cache tells how old the date is.
        ({"Date": date(NOW - HOUR_S), "Age": "3600"}, 0.0),
        ({"Date": date(NOW), "Age": "much"}, 0.0),
        ({}, None),
        ({"Date": "now"}, None),
        ({"Date": "Thu, 99 Nov 1994 08:49:37"}, None),
    ],
)
def test_the_clock_of_a_server_is_measured(headers: dict[str, str], skew_s: float | None) -> None:
    assert clock_skew_s(answer(**headers)) == skew_s


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"Cache_Control": "private"}, None),
        ({"Cache_Control": "public, Max-Age=600"}, 600.0),
        ({"Cache_Control": 'max-age="600"', "Expires": date(NOW)}, 600.0),
        ({"Cache_Control": "max-age=600, no-cache"}, 0.0),
        ({"Cache_Control": f"max-age={10**19}"}, 2.0**31),
        ({"Expires": date(NOW + HOUR_S), "Date": date(NOW)}, HOUR_S),
        ({"Expires": date(NOW - HOUR_S), "Date": date(NOW)}, 0.0),
        ({"Expires": "0"}, 0.0),
    ],
)
def test_the_wish_of_a_server_is_how_long_its_answer_should_last(
    headers: dict[str, str], expected: float | None
) -> None:
    assert wish_s(answer(**headers)) == expected


def test_an_etag_is_compared_weakly() -> None:
    assert etag_moved(Validators('"a"'), 'W/"a"') is False
    assert etag_moved(Validators('"a"'), '"b"') is True
    assert etag_moved(Validators(None), '"b"') is None
    assert etag_moved(Validators('"a"'), None) is None


def test_of_a_304_the_text_is_not_known() -> None:
    assert text_moved("unchanged", 304) is None
    told = [text_moved(kind, 200) for kind in ("unchanged", "changed", "new")]
    assert told == [False, True, None]


def test_last_modified_is_a_claim_of_the_host() -> None:
    past = NOW - 30 * DAY_S
    result = answer(Date=date(NOW), Last_Modified=date(past), ETag='"b"')
    signs, said = hear(HostHeaders(Complaints()), result, etag='"a"')
    assert said == SourceReport("last_modified", 7, None, (Claim(URL, past, past),))
    assert signs is not None
    assert (signs.modified_now, signs.etag_moved, signs.text_moved) == (False, True, False)


def test_the_time_of_the_answer_says_nothing_of_the_page() -> None:
    headers = HostHeaders(Complaints())
    fast = NOW + HOUR_S
    signs, said = hear(headers, answer(Date=date(fast), Last_Modified=date(fast - 3)))
    assert signs is not None
    assert (said, signs.modified_now) == (None, True)
    # By a cache an hour later.
    late = answer(Date=date(NOW - HOUR_S), Age="3600", Last_Modified=date(NOW - HOUR_S))
    assert hear(headers, late)[1] is None


def test_a_host_that_makes_its_dates_up_is_not_heard() -> None:
    headers = HostHeaders(Complaints())
    made_up = answer(Date=date(NOW), Last_Modified=date(NOW))
    true = answer(Date=date(NOW), Last_Modified=date(NOW - DAY_S))
    for _ in range(4):
        hear(headers, made_up)
    assert hear(headers, true)[1] is None
    for _ in range(3):
        hear(headers, true)
    assert hear(headers, true)[1] is not None


def test_failures_and_sitemaps_make_no_such_claim() -> None:
    headers = HostHeaders(Complaints())
    said = answer(Date=date(NOW), Last_Modified=date(NOW - DAY_S))
    assert hear(headers, said, "failed") == (None, None)
    assert hear(headers, said, role="sitemap")[1] is None


def test_a_clock_an_hour_off_is_told_once_and_allowed_for(caplog: pytest.LogCaptureFixture) -> None:
    headers = HostHeaders(Complaints())
    fast = NOW + HOUR_S
    with caplog.at_level(logging.INFO):
        *_, (_, said) = [
            hear(headers, answer(Date=date(fast), Last_Modified=date(fast - 60))) for _ in range(3)
        ]
    assert [record.getMessage() for record in caplog.records] == [
        f"{URL}: the host's clock is 3600 s ahead of ours; its dates are corrected by that"
    ]
    assert said is not None
    assert said.claims == (Claim(URL, fast - 60, fast - 60),)
    assert headers.skew_s(7) == pytest.approx(HOUR_S, abs=1)


def test_one_wrong_date_does_not_move_the_clock() -> None:
    headers = HostHeaders(Complaints())
    for ahead_s in (0.0, 0.0, HOUR_S):
        hear(headers, answer(Date=date(NOW + ahead_s)))
    assert headers.skew_s(7) == headers.skew_s(8) == 0.0


def test_dates_that_cannot_be_true_are_counted_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    dates = {"a": "9999-12-31", "b": "1970-01-01", "c": "2025-01-01T00:00:00Z", "d": "soon\n"}
    found = claimed([(f"https://a.example/{k}", v) for k, v in dates.items()], NOW)
    assert [claim.url for claim in found.claims] == ["https://a.example/c"]
    assert found.rejected == 3
    complaints = Complaints()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            complaints.tell("https://a.example/sitemap.xml", found)
    (record,) = caplog.records
    assert record.getMessage() == (
        "https://a.example/sitemap.xml: 3 dates are not believed, such as '9999-12-31' of "
        "https://a.example/a: it lies in the future"
    )


def test_what_claims_no_date_claims_nothing() -> None:
    assert claimed([(URL, None)], NOW).rejected == 0
