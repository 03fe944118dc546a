import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.robots import RobotsVerdict, parse, readings

patterns = st.builds(
    lambda start, rest, end: start + rest + end, st.sampled_from(["/", "*"]),
    st.text("/ab*", max_size=6), st.sampled_from(["", "$"]),
)  # fmt: skip
paths = st.text("/ab", max_size=10).map(lambda rest: f"/{rest}")


def verdict(lines: list[tuple[str, bool]], url: str) -> RobotsVerdict:
    rules = "".join(f"{'Allow' if allow else 'Disallow'}: {pattern}\n" for pattern, allow in lines)
    return parse(f"User-agent: *\n{rules}".encode()).verdict("freshet", url)


def matches(pattern: str, url: str) -> bool:
    return verdict([(pattern, False)], url).rule is not None


def matches_by_definition(pattern: str, path: str) -> bool:
    expression = re.escape(pattern.removesuffix("$")).replace(r"\*", ".*")
    return bool(re.match(expression + (r"\Z" if pattern.endswith("$") else ""), path))


@given(patterns, paths)
def test_a_pattern_matches_what_its_definition_says(pattern: str, path: str) -> None:
    assert matches(pattern, f"https://h{path}") == matches_by_definition(pattern, path)


@given(st.lists(st.tuples(patterns, st.booleans()), max_size=8), paths)
def test_the_longest_matching_pattern_decides_and_allow_breaks_ties(
    lines: list[tuple[str, bool]], path: str
) -> None:
    decisive = max(
        ((len(p), allow) for p, allow in lines if matches_by_definition(p, path)), default=None
    )
    others = [(f"/*never{n}*", True) for n in range(60)]
    for rules in (lines, lines + others):
        found = verdict(rules, f"https://h{path}")
        assert (found.rule is None) == (decisive is None)
        assert found.allowed == (decisive is None or decisive[1])


def test_of_thousands_of_patterns_few_are_looked_at() -> None:
    file = parse(b"User-agent: *\n" + b"".join(b"Disallow: /*aab*%d\n" % n for n in range(40_000)))
    assert not file.allows("freshet", "https://h/aab/39999")
    ends = file._rules_for("*")._ends_in("/aab/39999/and/a/long/path/of/a/page/with/some/words")
    assert len(list(ends)) < 40


@given(st.lists(st.tuples(patterns, st.booleans()), max_size=6), paths)
def test_the_order_of_the_lines_does_not_matter(lines: list[tuple[str, bool]], path: str) -> None:
    forward, backward = (verdict(each, f"https://h{path}") for each in (lines, lines[::-1]))
    assert forward.allowed == backward.allowed
    assert len(forward.rule or "") == len(backward.rule or "")


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("/foo/bar?baz=quz", "https://h/foo/bar?baz=quz"),
        ("/foo/bar/ツ", "https://h/foo/bar/%E3%83%84"),
        ("/foo/bar/%e3%83%84", "https://h/foo/bar/%E3%83%84"),
        ("/foo/bar/%62%61%7A", "https://h/foo/bar/baz"),
        ("/foo/bar/baz", "https://h/foo/bar/%62%61%7a"),
        ("/path/file-with-a-%2A.html", "https://h/path/file-with-a-*.html"),
        ("/path/foo-%24", "https://h/path/foo-$"),
        ("/price$list", "https://h/price$list/2"),
        ("/a b", "https://h/a%20b"),
        ("/100%", "https://h/100%25"),
        ("/search|all", "https://h/search%7Call"),
    ],
)
def test_two_spellings_of_one_path_are_equal(pattern: str, url: str) -> None:
    assert matches(pattern, url)


@pytest.mark.parametrize(
    ("pattern", "url"),
    [("/a/b", "https://h/a%2Fb"), ("/Secret", "https://h/secret"), ("/a*b", "https://h/a"),
     ("/x$", "https://h/x?y"), ("/a*aa$", "https://h/aa"), ("/fish", "https://h/?id=/fish")],
)  # fmt: skip
def test_different_paths_stay_different(pattern: str, url: str) -> None:
    assert not matches(pattern, url)


@pytest.mark.parametrize("pattern", ["", "private", "https://h/private", "$", "?x"])
def test_a_pattern_that_begins_with_neither_slash_nor_asterisk_is_no_rule(pattern: str) -> None:
    assert not matches(pattern, "https://h/private?x")


def test_equal_patterns_in_different_spellings_are_equivalent_so_allow_wins() -> None:
    found = verdict([("/%61*", False), ("/a*", True)], "https://h/abc")
    assert (found.allowed, found.rule) == (True, "Allow: /a*")


def test_a_pattern_of_many_asterisks_is_matched_without_going_back() -> None:
    url = "https://h/" + "a" * 20_000
    assert not matches("/" + "*a" * 5_000 + "*b", url)
    assert matches("/" + "*a" * 5_000 + "*$", url)


@pytest.mark.parametrize(
    ("url", "path"),
    [("https://h", "/"), ("https://h?q=1", "/?q=1"), ("https://h/a?q=/b#frag?x", "/a?q=/b"),
     ("https://user:pass@h:8443//a", "//a"), ("https://[::1]:80/a", "/a"), ("/a/b", "/a/b"),
     ("//h/a", "/a"), ("", "/")],
)  # fmt: skip
def test_rules_are_compared_with_path_and_query(url: str, path: str) -> None:
    assert readings(url) == [path]


@given(st.text())
def test_a_normal_path_is_its_own_normal_form(text: str) -> None:
    path = readings(f"https://h/{text}")[0]
    assert readings(f"https://h{path}") == [path]
