"""Tables of sites: what they match, and what they say of pages."""

import re
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.config import ConfigError
from freshet.config.loading import load
from freshet.config.settings import SiteSettings
from freshet.config.sites import Sites, pattern
from freshet.crawler.run.importance import terms
from freshet.crawler.urls import canonical

URLS = ["https://a.example/", "https://a.example/tag/x", "http://b.example/shop/tag/1?page=2"]


AREAS = np.zeros(3, np.intp)


def rule(match: str, **said: object) -> SiteSettings:
    return SiteSettings.model_validate({"match": match, **said})


def test_a_path_holds_on_every_host_and_a_star_is_anything() -> None:
    found = terms(
        URLS, AREAS, np.ones(3), Sites([rule("/tag/*", never=True), rule("/*page=*", least_days=3)])
    )
    assert found.never.tolist() == [False, True, False]
    assert found.least_days.tolist() == [0.0, 0.0, 3.0]
    assert found.most_days.tolist() == [inf] * 3


def test_the_nearest_table_that_says_something_counts_for_each_term() -> None:
    tables = [
        rule("/*", importance=2, most_days=9, never=False),
        rule("/*tag*", importance=7, most_days=1, never=True),
        rule("https://a.example/*", importance=5),
    ]
    found = terms(URLS, AREAS, np.ones(3), Sites(tables))
    assert found.importance.tolist() == [5.0, 5.0, 7.0]
    assert found.most_days.tolist() == [9.0, 1.0, 1.0]
    assert found.never.tolist() == [False, True, True]


def test_a_rule_declares_ephemeral_sources_or_says_that_there_is_none() -> None:
    rules = [
        rule("/tag/*", ephemeral=True),
        rule("http://b.example/*", half_life_hours=12),
        rule("/*", ephemeral=False),
    ]
    assert terms(URLS, AREAS, np.ones(3), Sites(rules)).half_life_days.tolist() == [0.0, inf, 0.5]
    # What the site list says of how fast things fade holds where a rule says no other time.
    listed = np.array([np.nan, 0.25, 0.25])
    assert terms(URLS, AREAS, np.ones(3), Sites(rules[:2]), listed).half_life_days.tolist()[1:] == [
        0.25,
        0.5,
    ]
    assert np.isnan(terms(URLS, AREAS, np.ones(3), Sites(), None).half_life_days).all()


def test_marks_of_patterns_are_no_patterns() -> None:
    sites = Sites([rule("/x.*", never=True)])
    assert not terms(["https://a.example/xhtml"], AREAS[:1], np.ones(1), sites).never.any()


@pytest.mark.parametrize(
    "wrong",
    [[{"match": ""}], [{"match": "a b"}], [{"match": "ftp://a/"}], [{"match": "/*", "often": True}],
     [{"match": "/*", "least_days": 3, "most_days": 2}], [{"match": "/*", "importance": -1}],
     [{"match": "/*", "half_life_hours": 0}], [{"match": "a.example/*", "delay_s": 2}],
     [{"match": "/*", "ephemeral": False, "half_life_hours": 2}]],
)  # fmt: skip
def test_wrong_rules_are_told_in_one_line(wrong: list[dict[str, object]]) -> None:
    with pytest.raises(ConfigError, match="sites") as caught:
        load(None, {"sites": wrong})
    assert "\n" not in str(caught.value)


@given(st.text("ab*/", max_size=8), st.text("ab/", max_size=10), st.booleans())
def test_stars_stand_for_anything_however_many_they_are(match: str, path: str, on: bool) -> None:
    url = f"h://{path}" if on else path
    plain = ".*".join(map(re.escape, match.split("*")))
    plain = f"[a-z]+://[^/]+{plain}" if match.startswith("/") else plain
    assert bool(pattern(match).fullmatch(url)) == bool(re.fullmatch(plain, url))
    # This would take longer than anybody waits if all ways were tried.
    assert pattern("*a" * 30 + "b").fullmatch("a" * 2_000) is None


@pytest.mark.parametrize(
    ("match", "url", "expected"),
    [
        ("a.example", "https://www.a.example:8443/x", True),
        ("a.example", "https://b.a.example/", False),
        ("a.example:8080", "http://a.example:8080/", True),
        ("a.example:443", "https://a.example/", True),
        ("a.example:8080", "http://a.example/", False),
        ("http://a.example", "https://a.example/", False),
        ("*.a.example", "https://c.b.a.example/x", True),
        ("*.a.example", "https://xa.example/", False),
        ("A.Example/Docs/*", "https://a.example/Docs/1", True),
        ("a.example/docs/*", "https://a.example/docs", False),
        ("*.a.example/docs", "https://b.a.example/docs", True),
        ("[::1]:8080", "http://[::1]:8080/x", True),
        ("/tag/*", "http://[::1]:8080/tag/2", True),
    ],
)
def test_a_table_matches_hosts_domains_urls_and_paths(match: str, url: str, expected: bool) -> None:
    assert bool(Sites([rule(match)]).matching(url)) == expected


@pytest.mark.parametrize(
    ("match", "path"),
    [
        ("/~joe/*", "/%7Ejoe/x"), ("/%7ejoe/*", "/~joe/x"), ("/%7Ejoe/*", "/%7ejoe/x"),
        ("/%e3%81%82/*", "/%E3%81%82/x"), ("/%E3%81%82/*", "/%e3%81%82/x"),
        ("/あ/*", "/%E3%81%82/x"),
        ("a.example/%61/*", "/a/x"), ("https://a.example/*%2d1", "/a-1"),
        ("/*?q=%c3%bc", "/?q=%C3%BC"),
        ("/a%2fb", "/a%2Fb"), ("/новости*", "/%d0%bd%d0%be%d0%b2%d0%be%d1%81%d1%82%d0%b8/"),
    ],
)  # fmt: skip
def test_a_pattern_and_a_url_may_spell_one_page_otherwise(match: str, path: str) -> None:
    url = f"https://a.example{path}"
    assert Sites([rule(match)]).matching(url)
    if not match.startswith("a."):
        assert pattern(match).fullmatch(canonical(url))


@pytest.mark.parametrize(
    ("match", "path"), [("/a%2Fb", "/a/b"), ("/a%2Ab", "/axb"), ("/%41", "/a")]
)
def test_a_pattern_tells_apart_what_may_be_two_pages(match: str, path: str) -> None:
    assert not Sites([rule(match)]).matching(f"https://a.example{path}")


def test_a_host_is_nearer_than_a_domain_and_a_longer_path_than_a_shorter_one() -> None:
    near = ["b.a.example/docs/*", "b.a.example", "*.b.a.example", "*.a.example/docs/*",
            "*.a.example", "/docs/*", "/*"]  # fmt: skip
    for order in (near, near[::-1]):
        found = Sites([rule(match) for match in order]).matching("https://b.a.example/docs/1")
        assert [each.match for each in found] == near
    twice = Sites([rule("a.example", importance=1), rule("www.a.example", importance=2)])
    assert twice.at("https://a.example/").importance == 1
    assert Sites().at("https://a.example/").importance is None
