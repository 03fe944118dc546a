from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.fetch.responses import (
    judge,
    looks_binary,
    media_type,
    parse_date,
    retry_after_s,
)
from freshet.storage.entries import Outcome

URL = "https://example.org/a/b?c"
NOW = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110


@pytest.mark.parametrize(
    ("status", "outcome", "reason"),
    [(200, "fetched", None), (203, "fetched", None),
     (204, "skipped", "http_204"), (205, "skipped", "http_205"),
     (206, "failed", "http_206"), (300, "failed", "http_300"),
     (305, "failed", "http_305"), (401, "failed", "http_401"),
     (403, "failed", "http_403"), (404, "gone", "http_404"),
     (410, "gone", "http_410"), (429, "failed", "http_429"),
     (451, "failed", "http_451"), (500, "failed", "http_500"),
     (503, "failed", "http_503"), (101, "failed", "http_101"),
     (999, "failed", "http_999")],
)  # fmt: skip
def test_a_status_stands_for_an_outcome(status: int, outcome: Outcome, reason: str | None) -> None:
    verdict = judge(status, URL, None, is_conditional=False)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


def test_not_modified_counts_only_where_it_was_asked_for() -> None:
    assert judge(304, URL, None, is_conditional=True).outcome == "not_modified"
    unasked = judge(304, URL, None, is_conditional=False)
    assert (unasked.outcome, unasked.reason) == ("failed", "http_304")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("location", "target"),
    [(b"/new", "https://example.org/new"), (b"new", "https://example.org/a/new"),
     (b"?d", "https://example.org/a/b?d"), (b"//other.example/", "https://other.example/"),
     (b"http://other.example", "http://other.example/"),
     (b"/caf\xc3\xa9", "https://example.org/caf%C3%A9"),
     (b"/caf\xe9", "https://example.org/caf%E9"),
     (b"/\xc3\xa9\xe9", "https://example.org/%C3%A9%E9"),
     (b"?q=caf\xe9", "https://example.org/a/b?q=caf%E9"),
     (b"/a?q=\xff\xfe", "https://example.org/a?q=%FF%FE"),
     (b"/\x93\xfa\x96{", "https://example.org/%93%FA%96%7B"),
     (b"/\xcf\xf0\xe8/\xb3.htm", "https://example.org/%CF%F0%E8/%B3.htm"),
     (b"http://other.example/caf\xe9", "http://other.example/caf%E9"),
     (b"//other.example/\x80", "https://other.example/%80"),
     (b"\xe9t\xe9", "https://example.org/a/%E9t%E9"),
     (b"/%e9\xe9%C3", "https://example.org/%e9%E9%C3"),
     (b"/a#\xe9", "https://example.org/a#%E9"),
     (b"http://m\xc3\xbcnchen.example/\xc3\xbc", "http://xn--mnchen-3ya.example/%C3%BC"),
     (b"http://m\xfcnchen.example/", "http://xn--mnchen-3ya.example/"),
     (b"/with space", "https://example.org/with%20space"),
     (b"http://0x7f.1/", "http://127.0.0.1/"), (b"#part", "https://example.org/a/b?c#part")],
)  # fmt: skip
def test_a_redirect_leads_to_its_resolved_location(
    status: int, location: bytes, target: str
) -> None:
    verdict = judge(status, URL, location, is_conditional=False)
    assert (verdict.outcome, verdict.location) == ("redirected", target)


@pytest.mark.parametrize(
    "location",
    [None, b"", b"  ", b"http://", b"http://[::1", b"javascript:alert(1)", b"ftp://a.example/",
     b"mailto:a@b.example", b"data:text/html,x", b"file:///etc/passwd"],
)  # fmt: skip
def test_a_redirect_to_nowhere_is_a_bad_redirect(location: bytes | None) -> None:
    verdict = judge(302, URL, location, is_conditional=False)
    assert (verdict.outcome, verdict.reason, verdict.location) == ("failed", "bad_redirect", None)


@given(st.integers(100, 999), st.none() | st.binary(max_size=60), st.booleans())
def test_every_answer_has_a_verdict(status: int, location: bytes | None, asked: bool) -> None:
    verdict = judge(status, URL, location, is_conditional=asked)
    assert (verdict.location is not None) == (verdict.outcome == "redirected")
    assert (verdict.reason is None) == (verdict.outcome in ("fetched", "not_modified"))


def waited(value: str) -> float | None:
    return retry_after_s(((b"Retry-After", value.encode("latin-1", "replace")),), NOW)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("120", 120.0), (" 7 ", 7.0), ("0", 0.0), ("Sun, 06 Nov 1994 08:50:37 GMT", 60.0),
     ("Sunday, 06-Nov-94 08:50:37 GMT", 60.0), ("Sun Nov  6 08:50:37 1994", 60.0),
     ("Sun, 06 Nov 1994 08:00:00 GMT", 0.0), ("9" * 400, 2.0**31), ("9" * 5000, 2.0**31)],
)  # fmt: skip
def test_retry_after_is_read_in_both_forms(value: str, seconds: float) -> None:
    assert waited(value) == seconds


@pytest.mark.parametrize("value", ["", "soon", "-5", "1.5", "²", "Sun, 99 Foo 1994 08:49:37 GMT"])
def test_a_retry_after_that_says_nothing_is_none(value: str) -> None:
    assert waited(value) is None


@given(st.text(max_size=60))
def test_no_retry_after_raises_or_is_negative(value: str) -> None:
    seconds = waited(value)
    assert seconds is None or seconds >= 0


@given(st.integers(0, 4_000_000_000))
def test_a_formatted_date_is_read_back(at: int) -> None:
    assert parse_date(formatdate(at, usegmt=True)) == at


@pytest.mark.parametrize(
    ("content_type", "name"),
    [("text/html; charset=utf-8", "text/html"), (" Text/HTML ", "text/html"),
     ("application/xhtml+xml;q=1", "application/xhtml+xml"), ("", None), ("text", None),
     ("*/*", None), ("/", None), (";charset=utf-8", None)],
)  # fmt: skip
def test_the_media_type_is_read_without_its_parameters(content_type: str, name: str | None) -> None:
    assert media_type(content_type) == name


@pytest.mark.parametrize(
    "head",
    [b"", b"<!doctype html>", b"plain text\r\n\twith\x0cform feed", "Grüße".encode(),
     "Grüße".encode("latin-1"), "text".encode("utf-16"), b"\x1b$B ISO-2022-JP \x1b(B"],
)  # fmt: skip
def test_text_does_not_look_binary(head: bytes) -> None:
    assert not looks_binary(head)


@pytest.mark.parametrize(
    "head", [b"\x89PNG\r\n\x1a\n\0\0", b"%PDF-1.7\n\0", b"GIF89a\x01\x00", b"\x1f\x8b\x08\x00"]
)
def test_binary_data_looks_binary(head: bytes) -> None:
    assert looks_binary(head)
