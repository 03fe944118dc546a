"""Queries as they are typed, and the parts of texts that results show."""

import re
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.errors import UsageError
from freshet.crawler.extensions.search.searching import Query, SearchTerm, snippet
from freshet.crawler.extensions.search.words import normalised
from freshet.crawler.frontier.clock import moment_of

NOW = 1.8e9


def parsed(typed: str) -> tuple[str, str]:
    query = Query.parse(typed, NOW)
    return " ".join(map(str, query.terms)), " ".join(map(str, query.excluded))


@pytest.mark.parametrize(
    ("typed", "terms", "excluded"),
    [
        ("Dead lock", '"dead" "lock"', ""),
        ('"dead lock" -live', '"dead lock"', '"live"'),
        ('async* "run in ex"* -"of cour"*', '"async"* "run in ex"*', '"of cour"*'),
        ("run_in_executor() same same", '"run in executor" "same"', ""),
        ('"not closed', '"not closed"', ""),
        ("機械学習 東京*", '"機 械 学 習" "東 京"*', ""),
        ("- -- ! word AND OR NOT NEAR(", '"word" "and" "or" "not" "near"', ""),
        ('a"b', '"a" "b"', ""),
        ("e.g. http://x.example/y", '"e g" "http x example y"', ""),
        ("SITE:x.example Changed:>2d a -site:y.example", '"a"', ""),
    ],
)
def test_a_query_is_read_as_it_is_typed(typed: str, terms: str, excluded: str) -> None:
    assert parsed(typed) == (terms, excluded)


@given(st.text('ab -"*:><()^東\0\n\u0301', max_size=20))
def test_any_text_is_a_query_in_the_index_s_syntax_or_is_refused_in_one_line(typed: str) -> None:
    try:
        query = Query.parse(typed, NOW)
    except UsageError as error:
        said = str(error)
    else:
        said = ""
        for term in (*query.terms, *query.excluded):
            assert re.fullmatch(r'"[^"\n]+"\*?', str(term))
            assert normalised(str(term)) == " ".join(term.words)
    assert "\n" not in said


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "'': it names no word to look for"),
        ("-a", "'-a': it names no word to look for"),
        ("a " * 9 + " ".join(f"w{n}" for n in range(32)), "more than 32 words and phrases"),
        ("a site:/docs", "site:/docs: not a host"),
        ("a changed:>never", "changed: never: not a moment; accepted are 90min"),
        ("a changed:>", "changed:>: accepted are changed:>DATE and changed:<DATE"),
    ],
)
def test_what_is_no_query_is_refused(typed: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        Query.parse(typed, NOW)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("typed", "is_admitted"),
    [
        ("a", True),
        ("a site:docs.example", True),
        ("a site:https://docs.example/guide", True),
        ("a site:example", True),
        ("a site:docs.example:8080", True),
        ("a site:docs.example:80", False),
        ("a site:ocs.example", False),
        ("a site:docs.example/blog", False),
        ("a site:other.example site:docs.example", True),
        ("a -site:docs.example/guide", False),
        ("a -site:docs.example/blog", True),
        ("a changed:>1d", True),
        ("a changed:<1d", False),
        ("a changed:>2027-01-01 changed:<2027-01-02", False),
        ("a changed:>=2w changed:<=1min", True),
    ],
)
def test_conditions_admit_pages_by_site_and_time(typed: str, is_admitted: bool) -> None:
    url, origins = (
        "https://docs.example:8080/guide/a",
        ["https://docs.example:8080", "http://o.example"],
    )
    query = Query.parse(typed, NOW)
    wanted, others = (query.beginnings(origins, wanted=each) for each in (True, False))
    is_on = url.startswith(tuple(wanted)) or not query.sites
    is_of_the_time = query.since <= NOW - 3_600 < query.until
    assert (is_on and not url.startswith(tuple(others)) and is_of_the_time) == is_admitted
    assert query.admits_all == (typed == "a")


def test_options_are_further_conditions() -> None:
    query = Query.parse("a changed:<1d site:x.example", NOW, site="Y.example/Docs", since="2d")
    assert query.sites == ("y.example/Docs", "x.example")
    assert (query.since, query.until) == (moment_of("2d", NOW), moment_of("1d", NOW))
    assert Query.parse("a", NOW).until == inf


# -- snippets ----------------------------------------------------------------

TEXTS = ["A first block of text.", "Here the cat\x1b[2J sat, and a DÖG sat by it. " + "x " * 300]


@pytest.mark.parametrize(
    ("terms", "marked"),
    [
        ([("dog",)], ["DÖG"]),
        ([("sat",), ("cat",)], ["cat", "sat", "sat"]),
        ([("a", "dog", "sat")], ["a DÖG sat"]),
        ([("absent",)], []),
    ],
)
def test_a_snippet_shows_and_marks_what_was_found(
    terms: list[tuple[str, ...]], marked: list[str]
) -> None:
    shown = snippet(TEXTS, [SearchTerm(words) for words in terms])
    assert [shown.text[begin:end] for begin, end in shown.marks] == marked
    assert shown.text.isprintable()


@given(
    st.lists(st.text("abé東京ß\u0301\u200b -.\x1b\u202e", max_size=400), max_size=4),
    st.lists(st.text("abe東京s", min_size=1, max_size=3), min_size=1, max_size=3),
    st.booleans(),
)
def test_marks_lie_in_the_snippet_and_show_a_term(
    texts: list[str], words: list[str], is_prefix: bool
) -> None:
    terms = [
        SearchTerm(tuple(found), is_prefix) for word in words if (found := normalised(word).split())
    ]
    shown = snippet(texts, terms)
    assert len(shown.text) <= 250
    assert shown.text.isprintable()
    held = {
        t for text in texts for t in terms if f" {' '.join(t.words)} " in f" {normalised(text)} "
    }
    assert bool(shown.marks) or not held
    last = 0
    for begin, end in shown.marks:
        assert last <= begin < end <= len(shown.text) or begin >= 0
        part = tuple(normalised(shown.text[begin:end]).split())
        assert any(term.matches(part[: len(term.words)]) for term in terms)
