"""Cookies within a chain of redirects: RFC 6265, without domains."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.fetch.cookies import after, header

NOON = 1_800_000_000.0
PAGE = "https://a.example/dir/page"


def sent(url: str, *set_cookie: str, by: str = PAGE) -> str:
    return header(after((), set_cookie, by, NOON), url)


@pytest.mark.parametrize(
    ("set_cookie", "expected"),
    [
        ("a=1", "a=1"),
        ("a=1; Path=/; HttpOnly; SameSite=Lax", "a=1"),
        (" a = 1 ;path=/", "a=1"),
        ('a="x y"; path=/', 'a="x y"'),
        ("a=b=c", "a=b=c"),
        ("a=", "a="),
        ("a", "a"),
        ("a=1; Secure", "a=1"),
        ("a=1; Domain=a.example", "a=1"),
        ("a=1; Domain=.A.Example", "a=1"),
        ("a=1; Domain=", "a=1"),
        ("a=1; Path=relative", "a=1"),
        ("a=1; Path=/dir", "a=1"),
        ("a=1; Path=/dir/", "a=1"),
        ("a=1; Max-Age=60", "a=1"),
        ("a=1; Max-Age=soon", "a=1"),
        ("a=1; Expires=Wed, 21 Oct 2099 07:28:00 GMT", "a=1"),
        ("a=1; Expires=Wed, 21-Oct-2099 07:28:00 GMT", "a=1"),
        ("a=1; Expires=never", "a=1"),
        ("a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "a=1"),
        # Not sent back:
        ("", ""),
        ("=", ""),
        ("a=1; Domain=b.example", ""),
        ("a=1; Domain=sub.a.example", ""),
        ("a=1; Path=/other", ""),
        ("a=1; Path=/di", ""),
        ("a=1; Max-Age=0", ""),
        ("a=1; Max-Age=-1", ""),
        ("a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", ""),
        ("a=1; Expires=Thursday, 01-Jan-70 00:00:00 GMT", ""),
        ("a=\x01", ""),
        ("a=caf\xe9", ""),
    ],
)
def test_a_cookie_goes_back_to_the_page_that_set_it(set_cookie: str, expected: str) -> None:
    assert sent(PAGE, set_cookie) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.example/dir/other?q", "a=1"),
        ("https://a.example/dir", "a=1"),
        ("https://a.example/dir/deeper/page", "a=1"),
        ("http://a.example/dir/page", ""),
        ("https://a.example:8443/dir/page", ""),
        ("http://a.example:443/dir/page", ""),
        ("https://a.example:443/dir/page", "a=1"),
        ("https://a.example/directory", ""),
        ("https://a.example/", ""),
        ("https://www.a.example/dir/page", ""),
        ("https://example/dir/page", ""),
        ("https://b.example/dir/page", ""),
    ],
)
def test_a_cookie_goes_to_its_host_and_below_its_path(url: str, expected: str) -> None:
    assert sent(url, "a=1") == expected


def test_a_secure_cookie_is_sent_over_tls_only() -> None:
    plain = "http://a.example/dir/x"
    assert sent(plain, "a=1; Secure", "b=2", by=plain) == "b=2"


@pytest.mark.parametrize(
    ("by", "url", "expected"),
    [
        ("http://a.example/", "https://a.example/", "a=1"),
        ("http://a.example:80/", "https://a.example:443/", "a=1"),
        ("http://a.example/", "http://a.example/", "a=1"),
        ("http://a.example:8080/", "http://a.example:8080/", "a=1"),
        ("http://a.example:8080/", "https://a.example/", ""),
        ("http://a.example/", "https://a.example:8443/", ""),
        ("http://a.example:8080/", "http://a.example/", ""),
        ("http://a.example/", "http://a.example:8080/", ""),
        ("https://a.example/", "http://a.example/", ""),
        ("https://a.example:8443/", "https://a.example/", ""),
        ("https://a.example/", "http://a.example:443/", ""),
        ("http://a.example/", "https://www.a.example/", ""),
    ],
)
def test_a_cookie_goes_to_no_other_port_and_from_tls_to_tls_alone(
    by: str, url: str, expected: str
) -> None:
    assert sent(url, "a=1; Path=/", by=by) == expected


def test_a_later_cookie_replaces_one_of_the_same_name_and_path() -> None:
    assert sent(PAGE, "a=1", "a=2") == "a=2"
    assert sent(PAGE, "a=1; Path=/", "a=2; Path=/dir") == "a=2; a=1"
    assert sent(PAGE, "a=1", "b=2", "a=; Max-Age=0") == "b=2"


def test_a_host_can_make_a_chain_carry_only_so_much() -> None:
    many = [f"n{number}=1" for number in range(1_000)]
    assert sent(PAGE, *many).count(";") == 49
    assert sent(PAGE, *(f"n{number}={'x' * 1_000}" for number in range(50))) == ""


@given(st.lists(st.text(max_size=40), max_size=5))
def test_whatever_is_set_what_is_sent_is_a_header(set_cookie: Sequence[str]) -> None:
    text = sent(PAGE, *set_cookie)
    assert text.isascii()
    assert text.isprintable()
