"""The keys of an index are those by which other programs look pages up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.archive.cdxj import surt


@pytest.mark.parametrize(
    ("url", "key"),
    # As the Internet Archive's own program (surt 0.3.1) makes them.
    [
        ("http://www.Example.com/", "com,example)/"),
        ("http://example.org", "org,example)/"),
        ("https://example.com:443/A/b/?b=2&a=1", "com,example)/a/b?a=1&b=2"),
        ("http://example.org:8080/a//b/../c/", "org,example:8080)/a/c"),
        ("http://example.org/../a/./b/..", "org,example)/../a"),
        ("http://a.www.example.com/", "com,example,www,a)/"),
        ("http://www2.example.org/x.html?PHPSESSID=0123456789abcdef0123456789abcdef&z=1",
         "org,example)/x.html?z=1"),
        ("http://news.localhost:8000/p/%C3%A4%20b?q=a%2Fb+c#frag",
         "localhost,news:8000)/p/%c3%a4%20b?q=a/b+c"),
        ("http://example.org/%7Efoo/%2541", "org,example)/~foo/a"),
        ("http://example.org/a?b&a=&c=%26", "org,example)/a?&a=&b&c="),
        ("http://example.org/(A(abcdefghijklmnopqrstuvwx))/p.aspx", "org,example)/p.aspx"),
        ("http://127.0.0.1:8000/a?", "1,0,0,127:8000)/a"),
        ("http://[::1]:8080/x", "::1:8080)/x"),
        ("dns:example.org", "dns:example.org"),
    ],
)  # fmt: skip
def test_keys_are_those_of_the_internet_archive(url: str, key: str) -> None:
    assert surt(url) == key


@given(st.text(max_size=40))
def test_any_path_has_a_key_of_one_line_without_blanks(path: str) -> None:
    key = surt(f"http://example.org/{path}")
    assert key.startswith("org,example)/")
    assert key.isascii()
    assert not set(key) & set(" \r\n\t")
