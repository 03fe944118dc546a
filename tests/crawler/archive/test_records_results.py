"""Archived exchanges become what the fetcher gives: known of our own, judged of others."""

import gzip
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.archive.reader import accept_of, fetch_result, is_ours
from freshet.crawler.archive.records import (
    ArchivedExchange,
    CaptureKind,
    ExchangeMetadata,
    facts_of,
    header_lines,
    unchunked,
    warc_time,
)
from freshet.crawler.fetch.client import Accept
from freshet.crawler.fetch.responses import RawHeaders
from freshet.storage.entries import Outcome
from freshet.storage.records import FetchResult

HTML = ((b"Content-Type", b"text/html"),)
MAX_BYTES = 10_000


def exchange(
    status: int | None = 200,
    headers: RawHeaders = HTML,
    body: bytes = b"<p>x",
    *,
    url: str = "http://a.test/x",
    kind: CaptureKind = "response",
    facts: ExchangeMetadata | None = None,
    asked: RawHeaders = (),
    truncated: str | None = None,
) -> ArchivedExchange:
    return ArchivedExchange(
        "a.warc", kind, url, 1000.0, 1000.5, status=status, headers=headers, wire_body=body,
        request_headers=asked, truncated=truncated, facts=facts or ExchangeMetadata(),
    )  # fmt: skip


def result(found: ArchivedExchange) -> FetchResult:
    return fetch_result(found, MAX_BYTES)


def ending(found: ArchivedExchange) -> tuple[Outcome, str | None]:
    ended = result(found)
    assert ended.outcome == "fetched" or not ended.body
    return ended.outcome, ended.reason


ENCODED = (*HTML, (b"Content-Encoding", b"gzip"))


@pytest.mark.parametrize(
    ("found", "outcome", "reason"),
    [
        (exchange(), "fetched", None),
        (exchange(404), "gone", "http_404"),
        (exchange(503), "failed", "http_503"),
        (exchange(206), "failed", "http_206"),
        (exchange(301), "failed", "bad_redirect"),
        (exchange(304, asked=((b"If-None-Match", b"x"),)), "not_modified", None),
        (exchange(304), "not_modified", None),
        (exchange(304, asked=((b"Host", b"a.test"),)), "failed", "http_304"),
        (exchange(304, kind="not_modified"), "not_modified", None),
        (exchange(headers=((b"Content-Type", b"image/png"),)), "skipped", "content_type"),
        (exchange(headers=(), body=b"\0\1\2"), "skipped", "content_type"),
        (exchange(body=b"x" * 10_001), "failed", "too_large"),
        (exchange(headers=ENCODED, body=gzip.compress(bytes(10_001))), "failed", "too_large"),
        (exchange(headers=ENCODED, body=b"no gzip"), "fetched", None),
        (exchange(headers=ENCODED, body=b"no gzip\0"), "failed", "encoding"),
        (exchange(headers=ENCODED, body=gzip.compress(b"x")[:-9]), "failed", "cut_short"),
        (exchange(headers=(*HTML, (b"Content-Length", b"9"))), "failed", "cut_short"),
        (exchange(truncated="length"), "failed", "too_large"),
        (exchange(truncated="disconnect"), "failed", "cut_short"),
    ],
)  # fmt: skip
def test_a_foreign_exchange_is_judged_as_a_fetch_is(
    found: ArchivedExchange, outcome: Outcome, reason: str | None
) -> None:
    assert ending(found) == (outcome, reason)


def test_a_body_is_decoded_and_kept_as_it_came() -> None:
    wire = gzip.compress(b"<p>x")
    fetched = result(exchange(headers=ENCODED, body=wire))
    assert (fetched.wire_body, fetched.body) == (wire, b"<p>x")


def test_a_redirect_leads_to_its_target() -> None:
    moved = result(exchange(302, ((b"Location", b"../y"),)))
    assert (moved.outcome, moved.location) == ("redirected", "http://a.test/y")


def test_what_an_archive_of_ours_says_is_not_judged_again() -> None:
    facts = ExchangeMetadata(
        0.5, "failed", "http_503", "the server answered 503", 120.0, None, "sitemap"
    )
    ended = result(exchange(503, facts=facts))
    assert (ended.outcome, ended.reason, ended.detail) == (
        "failed", "http_503", "the server answered 503",
    )  # fmt: skip
    assert (ended.duration_s, ended.retry_after_s) == (0.5, 120.0)
    assert is_ours(exchange(facts=facts))
    assert not is_ours(exchange(facts=ExchangeMetadata(0.5)))


def test_headers_that_were_renamed_for_the_archive_have_their_names_again() -> None:
    headers = (*HTML, (b"X-Archive-Orig-Transfer-Encoding", b"chunked"))
    ours = result(exchange(headers=headers, facts=ExchangeMetadata(outcome="fetched")))
    assert ours.headers == (*HTML, (b"Transfer-Encoding", b"chunked"))
    assert ours.body == b"<p>x"
    assert result(exchange(headers=headers)).headers == headers


def test_what_was_wanted_is_said_or_seen() -> None:
    robots = exchange(url="http://a.test/robots.txt", headers=(), body=b"User-agent: *\n" * 90)
    assert accept_of(robots) == "robots"
    assert accept_of(exchange(url="http://a.test/?/robots.txt")) == "page"
    assert accept_of(exchange(url="http://a.test[/robots.txt")) == "page"
    assert accept_of(exchange(facts=ExchangeMetadata(accept="sitemap"))) == "sitemap"
    assert accept_of(exchange(facts=ExchangeMetadata(accept="unheard of"))) == "page"
    packed = ((b"Content-Type", b"application/x-gzip"),)
    assert ending(exchange(headers=packed)) == ("skipped", "content_type")
    sitemap = exchange(headers=packed, facts=ExchangeMetadata(accept="sitemap"))
    assert ending(sitemap) == ("fetched", None)


def test_retry_after_is_read_against_the_end_of_the_exchange() -> None:
    assert result(exchange(429, ((b"Retry-After", b"7"),))).retry_after_s == 7


@given(
    st.integers(0, 999) | st.none(),
    st.lists(
        st.tuples(
            st.sampled_from(
                [b"Location", b"Content-Type", b"Content-Encoding", b"Content-Length",
                 b"Retry-After", b"Date", b"Transfer-Encoding"]
            ),
            st.binary(max_size=12) | st.sampled_from([b"gzip", b"br", b"zstd", b"99999999999999"]),
        ),
        max_size=5,
    ),
    st.binary(max_size=50),
    st.sampled_from([None, *get_args(Accept)]),
    st.sampled_from(get_args(CaptureKind)),
)  # fmt: skip
def test_no_answer_raises(
    status: int | None,
    headers: list[tuple[bytes, bytes]],
    body: bytes,
    accept: Accept | None,
    kind: CaptureKind,
) -> None:
    facts = ExchangeMetadata(accept=None if accept is None else str(accept))
    ended = result(exchange(status, tuple(headers), body, kind=kind, facts=facts))
    assert ended.outcome in get_args(Outcome)


@given(st.binary(max_size=200))
def test_any_bytes_are_some_lines_some_facts_and_some_body(data: bytes) -> None:
    assert all(name for name, _ in header_lines(data))
    assert facts_of(data).duration_s >= 0
    assert len(unchunked(data)) <= len(data)


@given(st.lists(st.binary(min_size=1, max_size=30), max_size=6))
def test_chunked_framing_comes_off_and_only_once(pieces: list[bytes]) -> None:
    framed = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in pieces)
    assert unchunked(framed + b"0\r\n\r\n") == b"".join(pieces)
    assert unchunked(b"<p>" + b"".join(pieces)) == b"<p>" + b"".join(pieces)


def test_dates_are_read_as_the_standard_writes_them() -> None:
    assert warc_time("1970-01-01T00:01:00Z") == 60
    assert warc_time("1970-01-01T00:01:00.000001Z") == 60.000001
    assert warc_time("1970-01-01T00:01:00.000001999Z") == 60.000001
    assert warc_time("1970-01-01") == 0
    assert warc_time("yesterday") is None
    assert warc_time(None) is None


def test_facts_are_lines() -> None:
    facts = facts_of(
        b"fetchTimeMs: 12.345\r\noutcome: failed\r\ndetail: a: b\r\nretryAfter: 5.5\r\n"
    )
    assert facts == ExchangeMetadata(0.012345, "failed", None, "a: b", 5.5)
    assert facts_of(b"fetchTimeMs: nan").duration_s == 0
    assert facts_of(b"fetchTimeMs: 1e300").duration_s == 0
