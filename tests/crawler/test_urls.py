"""URLs: resolution by the WHATWG standard, and one canonical form a page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.urls import (
    Base,
    Origin,
    canonical,
    canonical_of_resolved,
    is_http,
    origin,
    registrable_domain,
    resolve,
    resolve_all,
    robots_url,
    site_key,
    without_fragment,
)
from freshet.storage.identity import TRACKING_PARAMETERS

BASE = "https://example.org/docs/guide/page.html?v=2#top"

#: What URLs are made of, and what breaks parsers: delimiters, blanks, escapes, dots.
PIECES = st.sampled_from(
    [
        *"/?#&=.:;@[]\\ %+~|\t\n",
        *("..", "//", "%2e", "%41", "http:", "https://", "javascript:", "mailto:", "tel:"),
        *("a", "b.html", "utm_source=x", "gclid=1", "q=", "example.org", "www.", ":443", ":8080"),
        *("user:pw@", "é", "日本", "ß", "\x00", "\x1f", "127.1", "[::1]"),
        *(
            "%7e",
            "%e3",
            "%2f",
            "%3A",
            "%75tm_x",
            "4",
            "/(S(a1))",
            "%28S%28b%29%29",
            ";jsessionid=1",
        ),
    ]
)
REFERENCES = st.lists(PIECES, max_size=9).map("".join)
BASES = st.sampled_from(
    [BASE, "http://example.org", "https://h.test:8443/a/b/?q", "http://[::1]/x", "https://u:p@h/a/"]
)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("next.html", "https://example.org/docs/guide/next.html"),
        ("../a/./b", "https://example.org/docs/a/b"),
        ("/", "https://example.org/"),
        ("//cdn.example.net/x", "https://cdn.example.net/x"),
        ("?page=2", "https://example.org/docs/guide/page.html?page=2"),
        ("#part", "https://example.org/docs/guide/page.html?v=2#part"),
        ("", "https://example.org/docs/guide/page.html?v=2"),
        ("https:?x", "https://example.org/docs/guide/page.html?x"),
        (" \n next.html\t ", "https://example.org/docs/guide/next.html"),
        ("a b", "https://example.org/docs/guide/a%20b"),
        ("\\windows\\path", "https://example.org/windows/path"),
        ("HTTP://EXAMPLE.org:80/%7Ea", "http://example.org/%7Ea"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("mailto:me@example.org", "mailto:me@example.org"),
    ],
)
def test_a_reference_resolves_as_in_a_browser(reference: str, expected: str) -> None:
    assert resolve(reference, BASE) == expected


@pytest.mark.parametrize("reference", ["http://", "https://a b/", "http://[::1", "http://x:99999/"])
def test_what_a_browser_cannot_parse_resolves_to_none(reference: str) -> None:
    assert resolve(reference, BASE) is None


def test_a_base_that_is_no_url_resolves_nothing() -> None:
    assert resolve("https://example.org/", "no base") is None


def test_a_lone_surrogate_resolves_to_none() -> None:
    assert resolve("/\ud800", BASE) is None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTPS://Example.ORG:443", "https://example.org/"),
        ("https://example.org/a#part", "https://example.org/a"),
        ("https://example.org/a/../b/", "https://example.org/b/"),
        ("https://example.org/?utm_source=x&UTM_Medium=y", "https://example.org/"),
        ("https://example.org/?a=1&gclid=z&b=2", "https://example.org/?a=1&b=2"),
        ("https://example.org/?fbclid=1#?x", "https://example.org/"),
        ("https://example.org/?", "https://example.org/"),
        ("https://user:secret@example.org/a", "https://example.org/a"),
        ("https://u:p%40@example.org:8443/@me", "https://example.org:8443/@me"),
    ],
)
def test_canonical_drops_what_does_not_select_content(url: str, expected: str) -> None:
    assert canonical(url) == expected


@pytest.mark.parametrize(
    "query",
    ["b=2&a=1", "a=1&a=1", "a=&b", "&a=1&", "a=%2F&b=+", "q=utm_source", "utm=1", "gclid2=1", "&"],
)
def test_canonical_keeps_other_parameters_byte_for_byte(query: str) -> None:
    assert canonical(f"https://example.org/p?{query}") == f"https://example.org/p?{query}"


#: Of each page one spelling, and others of the same page (RFC 3986, section 6.2.2).
SPELLINGS = {
    # WordPress writes menus in lower case; what authors paste from a browser is in upper case.
    "/%E6%97%A5%E6%9C%AC%E8%AA%9E/": [
        "/%e6%97%a5%e6%9c%ac%e8%aa%9e/",
        "/日本語/",
        "/%e6%97%A5本語/",
    ],
    "/category/%E3%83%8B%E3%83%A5%E3%83%BC%E3%82%B9/?paged=2": [
        "/category/%e3%83%8b%e3%83%a5%e3%83%bc%e3%82%b9/?paged=2",
        "/category/ニュース/?paged=2",
    ],
    "/%D0%BD%D0%BE%D0%B2%D0%BE%D1%81%D1%82%D0%B8/": [
        "/%d0%bd%d0%be%d0%b2%d0%be%d1%81%d1%82%d0%b8/",
        "/новости/",
    ],
    "/%CE%BD%CE%AD%CE%B1": ["/%ce%bd%ce%ad%ce%b1", "/νέα", "/%ce%BD%CE%aD%cE%B1"],
    "/tag/%D9%85%D8%B5%D8%B1": ["/tag/%d9%85%d8%b5%d8%b1", "/tag/مصر"],
    "/~user/": ["/%7Euser/", "/%7euser/", "/%7e%75ser/", "/~%75%73%65%72/"],
    "/a-b_c.d~e": ["/a%2Db%5Fc%2Ed%7Ee", "/a%2db%5fc%2ed%7ee", "/%61-%62_%63.%64~%65"],
    "/AZaz09": ["/%41%5A%61%7A%30%39", "/%41%5a%61%7a%30%39"],
    "/a%2Fb": ["/a%2fb"],
    "/a%3Fb%23c": ["/a%3fb%23c", "/a%3fb%23%63"],
    "/?q=%C3%BC%26%3D": ["/?q=%c3%bc%26%3d", "/?q=ü%26%3d", "/?%71=%c3%bc%26%3D"],
    "/?q=~&r=%2B": ["/?q=%7E&r=%2b", "/?q=%7e&r=%2B"],
    "/%25e3": ["/%25%653"],
    "/%E9t%E9": ["/%e9t%e9"],
    "/x?a": ["/x?%75tm_source=y&a", "/x?a&%67clid=1"],
}


@pytest.mark.parametrize(
    ("other", "path"), [(other, path) for path, others in SPELLINGS.items() for other in others]
)
def test_spellings_that_rfc_3986_calls_equal_have_one_canonical_url(other: str, path: str) -> None:
    assert canonical(f"https://example.org{path}") == f"https://example.org{path}"
    assert canonical(f"https://example.org{other}") == f"https://example.org{path}"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *((f"/a{chr(code)}b", f"/a%{code:02X}b") for code in b"/;:@&=+$,!*'()"),
        ("/a?b", "/a%3Fb"),
        ("/?a&b", "/?a%26b"),
        ("/?a=b", "/?a%3Db"),
        ("/?a+b", "/?a%2Bb"),
        ("/?a/b", "/?a%2Fb"),
        ("/%2541", "/%41"),
        # Nobody knows where these escapes begin.
        ("/%%34%31", "/%41"),
        ("/%4%31", "/%41"),
        ("/A", "/a"),
        ("/?a=1&b=2", "/?b=2&a=1"),
        ("/%E3%81%82", "/%E3%81%84"),
    ],
)
def test_spellings_that_a_server_may_tell_apart_stay_two_pages(one: str, other: str) -> None:
    assert canonical(f"https://example.org{one}") != canonical(f"https://example.org{other}")


TOKEN = "lit3py55t21z5v55vlm25s55"


@pytest.mark.parametrize(
    ("found", "page"),
    [
        (f"/(S({TOKEN}))/", "/"),
        (f"/(S({TOKEN}))", "/"),
        (f"/(S({TOKEN}))/page.aspx?id=7", "/page.aspx?id=7"),
        (f"/app/(S({TOKEN}))/page.aspx", "/app/page.aspx"),
        (f"/(A(Xk3-_1Ab)S({TOKEN})F(0aF-9_))/page.aspx", "/page.aspx"),
        (f"/(X(1)S({TOKEN}))/page.aspx?AspxAutoDetectCookieSupport=1", "/page.aspx"),
        (f"/(X(1)A(abc)F(def)S({TOKEN}))/", "/"),
        ("/(X(1))/page.aspx", "/page.aspx"),
        ("/(F(QmFzZTY0LXRva2Vu1))/page.aspx", "/page.aspx"),
        (f"/%28S%28{TOKEN}%29%29/page.aspx", "/page.aspx"),
        (f"/%28s%28x%29%29/%28S%28{TOKEN}%29%29/", "/%28s%28x%29%29/"),
        (f"/({TOKEN})/page.aspx", "/page.aspx"),
        (f"/app/(s({TOKEN}))/page.aspx", "/app/page.aspx"),
        (f"/(x(1)a(ab-3_1)s({TOKEN})f(0af9))/page.aspx?id=7", "/page.aspx?id=7"),
        (f"/%28s%28{TOKEN}%29%29/page.aspx", "/page.aspx"),
        (f"/(S({TOKEN}))/a/(S({TOKEN}))/b", "/a/b"),
        ("/shop/cart.do;jsessionid=0A1B2C3D.node1?item=7", "/shop/cart.do?item=7"),
        ("/shop;JSESSIONID=0A1B/cart", "/shop/cart"),
        ("/cart;v=2;jsessionid=0A1B;w=3", "/cart;v=2;w=3"),
    ],
)
def test_a_session_in_the_path_is_no_part_of_the_canonical_url(found: str, page: str) -> None:
    assert canonical(f"https://example.org{found}") == f"https://example.org{page}"


@pytest.mark.parametrize(
    "path",
    ["/(2026)/", "/f(S(x))/", "/(S(x)y)/", "/(S())/", "/(Sx)/", "/S(x)/", "/((S(x)))/", "/(B(x))/",
     "/?next=/(S(x))/", "/(a-page-in-parentheses-1)/", "/(S(x)", "/a;version=2", "/a;jsessionid2=1",
     "/Products(1)/Name", "/(s(x))/", "/(x(1))/", "/(f(abc))/", f"/(b({TOKEN}))/",
     f"/(s({TOKEN}6))/", f"/s({TOKEN})/", f"/(s({TOKEN})n(1))/"],
)  # fmt: skip
def test_what_only_looks_like_a_session_in_the_path_stays(path: str) -> None:
    assert canonical(f"https://example.org{path}") == f"https://example.org{path}"


@pytest.mark.parametrize("name", sorted(TRACKING_PARAMETERS))
def test_each_listed_tracking_parameter_is_dropped_with_or_without_a_value(name: str) -> None:
    assert canonical(f"https://example.org/?{name}=1&x=1&{name}") == "https://example.org/?x=1"


@pytest.mark.parametrize(
    "url", ["", "/a", "example.org", "ftp://example.org/", "http://a b/", "\ud800"]
)
def test_canonical_refuses_what_is_no_absolute_http_url_in_one_line(url: str) -> None:
    with pytest.raises(ValueError, match="not an absolute http or https URL") as caught:
        canonical(url)
    assert "\n" not in str(caught.value)


@given(REFERENCES, BASES)
def test_canonical_accepts_what_resolves_to_http_and_is_idempotent(
    reference: str, base: str
) -> None:
    url = resolve(reference, base)
    if url is None or not is_http(url):
        return
    once = canonical(url)
    assert canonical(once) == once
    assert resolve(once, base) == once
    assert canonical(without_fragment(url)) == once
    assert canonical_of_resolved(without_fragment(url)) == once
    assert origin(once) == origin(url)


@given(REFERENCES, BASES)
def test_resolution_is_stable(reference: str, base: str) -> None:
    url = resolve(reference, base)
    assert url is None or resolve(url, base) == url


@given(st.lists(REFERENCES, max_size=6), BASES)
def test_a_page_resolved_at_once_equals_its_references_resolved_one_by_one(
    references: list[str], base: str
) -> None:
    expected = []
    for reference in references:
        url = resolve(reference, base)
        expected.append(without_fragment(url) if url and is_http(url) else None)
    assert resolve_all(references, base) == expected


#: What may follow in a URL without a change, or nearly.
PARTS = st.lists(
    st.sampled_from(
        "http:// https:// HTTP:// // / . .. a b.c xn--a xn--bcher-kva com org 1 0x1 127.0.0.1 - -- "
        "~ ?x=1 ? # #y :80 :443 :8080 :08 :60000 :65536 10.0.0.255 1.2.3.256 01.2.3.4 "
        "@ % %2e %41 ; é A.com a_b r3---x".split()
    ),
    max_size=8,
).map("".join)


@given(REFERENCES | PARTS | st.text("ab1-_./~?#=&;%+,: é@'2eE", max_size=9), BASES)
def test_a_base_resolves_what_is_relative_to_it(reference: str, base: str) -> None:
    assert Base(base).resolve(reference) == resolve(reference, base)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", ["a.org", "127.0.0.1", "1.2.3.256", "01.2.3.4", "1.2.3", "a.1"])
@pytest.mark.parametrize("port", ["", ":80", ":443", ":8080", ":080", ":65535", ":65536", ":70000"])
def test_a_host_and_a_port_stay_as_they_are_only_where_parsing_keeps_them(
    scheme: str, host: str, port: str
) -> None:
    url = f"{scheme}://{host}{port}/a/b"
    for reference in ("", "c", "/c", f"{url}?x=1"):
        assert Base(url).resolve(reference) == resolve(reference, url)


def test_pages_in_one_directory_share_no_wrong_answer() -> None:
    first = resolve_all(["x", "?q", "", "/x"], "https://example.org/a/one")
    second = resolve_all(["x", "?q", "", "/x"], "https://example.org/a/two?q=1")
    assert first == [f"https://example.org{p}" for p in ("/a/x", "/a/one?q", "/a/one", "/x")]
    assert second == [f"https://example.org{p}" for p in ("/a/x", "/a/two?q", "/a/two?q=1", "/x")]


@pytest.mark.parametrize(
    "href", ["javascript:void(0)", " JavaScript:x", "mailto:a@b", "tel:1", "data:,x"]
)
def test_hrefs_that_lead_to_no_page_give_none(href: str) -> None:
    assert resolve_all([href], BASE) == [None]


def test_a_fragment_protects_the_blank_before_it() -> None:
    assert resolve_all(["a #b", "a "], BASE) == [
        "https://example.org/docs/guide/a%20",
        "https://example.org/docs/guide/a",
    ]


def test_a_base_that_is_no_url_gives_none_for_every_href() -> None:
    assert resolve_all(["a", "https://example.org/", "#x"], "no base") == [None, None, None]


@pytest.mark.parametrize("url", ["https://a/#x#y", "https://a/#", "https://a/"])
def test_the_fragment_starts_at_the_first_number_sign(url: str) -> None:
    assert without_fragment(url) == "https://a/"


@pytest.mark.parametrize(
    ("url", "place", "text"),
    [
        ("http://Example.org", Origin("http", "example.org", 80), "http://example.org"),
        ("https://example.org:443/a", Origin("https", "example.org", 443), "https://example.org"),
        ("http://example.org:443/", Origin("http", "example.org", 443), "http://example.org:443"),
        ("https://u:p@h.test:8443/?#", Origin("https", "h.test", 8443), "https://h.test:8443"),
        ("http://[::1]:8080/", Origin("http", "[::1]", 8080), "http://[::1]:8080"),
        ("https:///example.org/a", Origin("https", "example.org", 443), "https://example.org"),
        ("https://example.org?a/b", Origin("https", "example.org", 443), "https://example.org"),
        ("https:\\\\example.org\\a", Origin("https", "example.org", 443), "https://example.org"),
    ],
)
def test_an_origin_has_its_port_and_prints_without_the_default_one(
    url: str, place: Origin, text: str
) -> None:
    assert origin(url) == place
    assert str(place) == text
    assert robots_url(place) == f"{text}/robots.txt"


@pytest.mark.parametrize("url", ["ftp://example.org/", "//example.org/", "about:blank", ""])
def test_only_http_urls_have_an_origin_here(url: str) -> None:
    with pytest.raises(ValueError, match="not an absolute http or https URL"):
        origin(url)


@pytest.mark.parametrize(
    "url",
    ["http://example.org/", "https://example.org/a", "http://www.example.org:80",
     "https://WWW.example.org"],
)  # fmt: skip
def test_http_https_and_www_count_as_one_site(url: str) -> None:
    assert site_key(url) == "example.org"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://www.example.org:8443/", "example.org:8443"),
        ("http://example.org:443/", "example.org:443"),
        ("https://news.example.org/", "news.example.org"),
        ("https://www.com/", "www.com"),
        ("http://127.0.0.1:8080/", "127.0.0.1:8080"),
    ],
)
def test_other_ports_and_subdomains_are_other_sites(url: str, key: str) -> None:
    assert site_key(url) == key


@pytest.mark.parametrize(
    ("host", "domain"),
    [("www.example.org", "example.org"), ("a.b.example.co.uk", "example.co.uk"),
     ("alice.github.io", "alice.github.io"), ("x.alice.github.io", "alice.github.io"),
     ("www.xn--bcher-kva.example", "xn--bcher-kva.example"), ("127.0.0.1", "127.0.0.1"),
     ("[2001:db8::1]", "[2001:db8::1]"), ("2001:db8::1", "2001:db8::1"),
     ("localhost", "localhost"), ("co.uk", "co.uk")],
)  # fmt: skip
def test_the_registrable_domain_is_one_label_below_the_public_suffix(
    host: str, domain: str
) -> None:
    assert registrable_domain(host) == domain
