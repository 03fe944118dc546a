"""Dates as they stand on the web, and what time they leave open."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.signals.dates import Span, believed, span_of

HOUR_S = 3_600.0
DAY_S = 86_400.0
EAST_S, WEST_S = 14 * HOUR_S, 12 * HOUR_S
NOW = 1_800_000_000.0


def at(*parts: int) -> float:
    return datetime(*parts, tzinfo=UTC).timestamp()  # type: ignore[misc,arg-type]


def anywhere(since: float, until: float) -> Span:
    return (since - EAST_S, until + WEST_S)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("2024", anywhere(at(2024, 1, 1), at(2025, 1, 1))),
        ("2024-02", anywhere(at(2024, 2, 1), at(2024, 3, 1))),
        ("2024-02-29", anywhere(at(2024, 2, 29), at(2024, 3, 1))),
        (" 2024/02/29\n", anywhere(at(2024, 2, 29), at(2024, 3, 1))),
        ("20240229", anywhere(at(2024, 2, 29), at(2024, 3, 1))),
        ("2024-02-29T10:00Z", (at(2024, 2, 29, 10), at(2024, 2, 29, 10, 1))),
        ("2024-02-29T10+02", (at(2024, 2, 29, 8), at(2024, 2, 29, 9))),
    ],
)
def test_what_is_not_said_is_left_open(text: str, span: Span) -> None:
    assert span_of(text) == span


@pytest.mark.parametrize(
    "text",
    [
        "2024-02-29T10:00:01Z", "2024-02-29T10:00:01+00:00", "2024-02-29t10:00:01z",
        "2024-02-29T12:00:01+02:00", "2024-02-29T12:00:01+0200", "2024-02-29 12:00:01 +02:00",
        "2024-02-29T05:00:01\N{MINUS SIGN}05:00", "2024-02-29 10:00:01 UTC",
        "20240229T100001Z", "Thu, 29 Feb 2024 10:00:01 GMT", "Thu, 29 Feb 2024 12:00:01 +0200",
        "29 Feb 2024 05:00:01 EST", "Thursday, 29-Feb-24 10:00:01 GMT",
    ],
)  # fmt: skip
def test_a_moment_is_a_moment_in_any_spelling(text: str) -> None:
    moment = at(2024, 2, 29, 10, 0, 1)
    assert span_of(text) == (moment, moment)


@pytest.mark.parametrize(
    "text",
    [
        "2024-02-29T10:00:01", "2024-02-29 10:00:01", "2024-02-29T10:00:01+99:00",
        "2024-02-29T10:00:01+23:59", "Thu, 29 Feb 2024 10:00:01", "Thu, 29 Feb 2024 10:00:01 CET",
    ],
)  # fmt: skip
def test_without_a_zone_that_is_known_it_may_be_any(text: str) -> None:
    moment = at(2024, 2, 29, 10, 0, 1)
    assert span_of(text) == anywhere(moment, moment)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "yesterday", "0", "1700000000", "2023-02-29", "2024-13-01", "2024-00-10",
        "0000-00-00", "2024-02-29T", "2024-02-29T25:00Z", "2024-02-29T10:61Z",
        "Thu, 99 Nov 1994 08:49:37 GMT", "9" * 5_000, "2024-02-29T10:00:01Z and more", "\0",
    ],
)  # fmt: skip
def test_what_is_no_date_means_no_time(text: str) -> None:
    assert span_of(text) is None
    assert believed(span_of(text), NOW) == "it is not a date"


def test_nothing_is_older_than_the_web_or_has_changed_in_the_future() -> None:
    for text in ("1970-01-01", "1970-01-01T00:00:00Z", "1990-11-29", "0001"):
        assert believed(span_of(text), NOW) == "it is from before the web"
    for text in ("9999-12-31", "9999-12-31T23:59:59-12:00", "2100"):
        assert believed(span_of(text), NOW) == "it lies in the future"
    this_day = span_of(datetime.fromtimestamp(NOW, UTC).strftime("%Y-%m-%d"))
    assert believed(this_day, NOW) == this_day
    # A clock an hour fast is allowed for once it is known.
    said = (NOW + HOUR_S, NOW + HOUR_S)
    assert believed(said, NOW) == "it lies in the future"
    assert believed(said, NOW, skew_s=HOUR_S) == said


MOMENTS = st.datetimes(datetime(1991, 1, 1), datetime(2100, 1, 1))  # noqa: DTZ001
OFFSETS = st.integers(-12 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m)))


@given(MOMENTS, OFFSETS)
def test_the_moment_lies_in_every_shorter_form_of_it(local: datetime, zone: timezone) -> None:
    moment = local.replace(tzinfo=zone)
    text = moment.isoformat()
    exact = span_of(text)
    assert exact is not None
    assert exact[0] == exact[1] == pytest.approx(moment.timestamp(), abs=1e-3)
    for cut in (4, 7, 10, 13, 16, 19):
        wider = span_of(text[:cut])
        assert wider is not None
        # A second that is cut off its fraction is still a moment.
        assert wider[0] <= exact[0] < wider[1] + 1


LIKE_DATES = st.from_regex(r"\A\d{1,4}[-/]?\d{0,2}[-/]?\d{0,2}[T ]?[\d:.,Z+ -]{0,20}\Z")


@given(st.text(max_size=80) | LIKE_DATES)
def test_no_text_is_an_error(text: str) -> None:
    found = span_of(text)
    assert found is None or found[0] <= found[1]
