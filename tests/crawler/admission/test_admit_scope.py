"""Scope: what belongs to a crawl, by kind, and how it moves with a seed's redirect."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.admission.admit import Scope, ScopeKind
from freshet.crawler.run.rules import room_of
from tests.integration.quick import quick

SEED = "https://www.example.org/docs/start.html"
PAGES = st.sampled_from(
    [
        f"{scheme}://{host}{path}"
        for scheme in ("http", "https")
        for host in ("example.org", "www.example.org", "a.example.org", "example.net:8443")
        for path in ("/", "/docs/", "/docs/a?x=1", "/docs/deep/b", "/other")
    ]
)


@pytest.mark.parametrize(
    ("kind", "url", "inside"),
    [
        ("host", "http://example.org/elsewhere", True),
        ("host", "https://news.example.org/", False),
        ("host", "https://example.org:8443/", False),
        ("domain", "https://news.example.org:8443/", True),
        ("domain", "https://example.net/", False),
        ("prefix", "http://example.org/docs/", True),
        ("prefix", "https://example.org/docs/a/b?c", True),
        ("prefix", "https://example.org/docs", False),
        ("prefix", "https://example.org/docs-old/a", False),
        ("prefix", "https://example.org/?x=/docs/a", False),
        ("prefix", "https://example.net/docs/a", False),
        ("list", f"{SEED}?utm_source=mail#part", True),
        ("list", "https://www.example.org/docs/", False),
        ("list", "https://example.org/docs/start.html", False),
    ],
)
def test_each_kind_of_scope_reaches_so_far(kind: ScopeKind, url: str, inside: bool) -> None:
    assert Scope(kind, [SEED]).contains(url) is inside


def test_a_prefix_without_a_closing_slash_is_the_directory_that_holds_it() -> None:
    scope = Scope("prefix", ["https://example.org/docs"])
    assert scope.contains("https://example.org/anything")


@pytest.mark.parametrize("kind", get_args(ScopeKind))
def test_a_moved_seed_takes_its_scope_along(kind: ScopeKind) -> None:
    scope = Scope(kind, ["https://example.org/"])
    scope.move_seed("https://example.org/", "https://example.net/home/")
    assert scope.contains("https://example.net/home/")
    assert not scope.contains("https://example.org/")
    assert scope.roots() == ["https://example.net/home/"]


@pytest.mark.parametrize("kind", get_args(ScopeKind))
def test_a_site_stays_in_scope_while_another_seed_is_on_it(kind: ScopeKind) -> None:
    scope = Scope(kind, ["https://example.org/a", "https://example.org/b"])
    scope.move_seed("https://example.org/a", "https://example.net/")
    assert scope.contains("https://example.org/b")
    assert scope.contains("https://example.net/")


def test_a_seed_that_moves_to_another_name_of_itself_stays() -> None:
    scope = Scope("list", ["https://example.org/"])
    scope.move_seed("https://example.org/", "https://example.org/#top")
    assert scope.roots() == ["https://example.org/"]
    assert scope.contains("https://example.org/")


def test_a_move_told_twice_is_one_move_and_one_to_no_url_is_none() -> None:
    scope = Scope("host", ["https://a.test/", "https://a.test/b"])
    with pytest.raises(ValueError, match="not an absolute"):
        scope.move_seed("https://a.test/", "mailto:me@a.test")
    assert scope.roots() == ["https://a.test/", "https://a.test/b"]
    for _ in range(2):
        scope.move_seed("https://a.test/", "https://c.test/")
    assert scope.roots() == ["https://a.test/b", "https://c.test/"]
    assert scope.contains("https://a.test/")


def test_a_scope_without_seeds_holds_nothing() -> None:
    assert not Scope("domain").contains("https://example.org/")


@given(
    st.sampled_from(get_args(ScopeKind)),
    st.lists(PAGES, min_size=1, max_size=4),
    st.lists(st.tuples(PAGES, PAGES), max_size=4),
    PAGES,
)
def test_a_scope_is_its_kind_and_roots_however_they_came(
    kind: ScopeKind, seeds: list[str], moves: list[tuple[str, str]], page: str
) -> None:
    scope = Scope(kind, seeds)
    for old, new in moves:
        scope.move_seed(old, new)
    again = Scope(kind, scope.roots())
    assert again.roots() == scope.roots()
    assert again.contains(page) is scope.contains(page)
    assert all(scope.contains(root) for root in scope.roots())


@given(st.lists(PAGES, min_size=1, max_size=3), PAGES)
def test_the_kinds_are_nested_from_list_to_domain(seeds: list[str], page: str) -> None:
    kinds: tuple[ScopeKind, ...] = ("list", "prefix", "host", "domain")
    inside = [Scope(kind, seeds).contains(page) for kind in kinds]
    assert inside == sorted(inside)


def test_hosts_of_a_seeds_domain_that_no_seed_names_share_what_is_left() -> None:
    scope = Scope("domain", ["http://a.example.com/", "http://www.b.example.org/"])
    assert scope.share_of("https://b.example.org", 100) is None
    assert scope.share_of("http://s1.example.com", 100) == ("example.com", 44)
    assert scope.share_of("http://b.example.org:81", 100) == ("example.org", 44)
    assert scope.share_of("http://c.example", 100) == ("", 12)


def test_each_seed_has_the_scope_of_its_own_table() -> None:
    kinds: dict[str, ScopeKind] = {"a.example.org": "prefix", "example.org": "list"}
    scope = Scope(
        lambda root: kinds.get(root.split("/")[2], "host"),
        ["https://a.example.org/x/", "https://example.org/", "https://example.net/"],
    )
    for url, inside in [
        ("https://a.example.org/x/1", True), ("https://a.example.org/y", False),
        ("https://example.org/", True), ("https://example.org/1", False),
        ("https://b.example.org/", False), ("https://example.net/1", True),
    ]:  # fmt: skip
        assert scope.contains(url) is inside, url
    # A root goes with the kind that it came with.
    scope.kind_at = lambda _root: "domain"
    scope.move_seed("https://a.example.org/x/", "https://c.example.com/")
    assert not scope.contains("https://a.example.org/x/1")
    assert scope.contains("https://www.example.com/")


def test_a_site_has_room_for_so_many_pages_and_for_its_seeds() -> None:
    has_room = room_of(quick(sites=[{"match": "*.a.example", "max_pages": 2}]))
    assert has_room is not None
    asked = [
        ("https://x.a.example/1", 1), ("http://www.x.a.example/2", 1), ("https://x.a.example/3", 1),
        ("https://x.a.example/1", 4), ("https://y.a.example/1", 1), ("https://x.a.example/4", 0),
        *((f"https://b.example/{n}", 1) for n in range(3)),
    ]  # fmt: skip
    assert [has_room(*each) for each in asked] == [True, True, False, *[True] * 6]


def test_only_short_urls_of_a_scope_are_remembered() -> None:
    scope = Scope("host", ["https://example.org/"])
    long = ["https://example.org/" + "x" * 1_900, "https://elsewhere.example/" + "x" * 1_900]
    for url, is_inside in zip(long * 2, [True, False] * 2, strict=True):
        assert scope.contains(url) is is_inside
    assert scope.contains("https://example.org/short")
    assert scope.inside == {"https://example.org/short"}
    assert not scope._outside
