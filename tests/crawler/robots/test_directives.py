import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.robots import Directives, parse_directives


def meta(*values: str) -> Directives:
    return parse_directives(values, "freshet", is_header=False)


def header(*values: str) -> Directives:
    return parse_directives(values, "freshet", is_header=True)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", Directives()),
        ("all", Directives()),
        ("index, follow", Directives()),
        ("max-snippet:20, max-image-preview:large", Directives()),
        ("max-image-preview: none, max-image-preview : none", Directives()),
        ("max-image-preview: none noindex", Directives(noindex=True)),
        ("nofollow", Directives(nofollow=True)),
        ("NOINDEX , NoFollow", Directives(nofollow=True, noindex=True)),
        ("none", Directives(nofollow=True, noindex=True)),
        ("noarchive", Directives(noarchive=True)),
        ("nocache", Directives(noarchive=True)),
        ("noindex nofollow", Directives(nofollow=True, noindex=True)),
        ("noindex;noarchive", Directives(noindex=True, noarchive=True)),
        ("notranslate, nosnippet, noindexing", Directives()),
    ],
)
def test_the_words_of_a_meta_element_are_understood(content: str, expected: Directives) -> None:
    assert meta(content) == expected
    assert header(content) == expected


def test_what_one_value_forbids_no_other_permits() -> None:
    assert meta("noindex", "all", "index, follow") == Directives(noindex=True)


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("freshet: noindex", Directives(noindex=True)),
        ("FRESHET : noindex", Directives(noindex=True)),
        ("*: noindex", Directives(noindex=True)),
        ("otherbot: noindex, nofollow", Directives()),
        ("nofollow, otherbot: noindex", Directives(nofollow=True)),
        ("otherbot: noindex, freshet: nofollow", Directives(nofollow=True)),
        ("freshet: max-snippet: 5, noindex", Directives(noindex=True)),
        ("max-video-preview: 3, noindex", Directives(noindex=True)),
        ("max-anything: 3, noindex", Directives(noindex=True)),
    ],
)
def test_a_name_in_the_header_says_for_whom_the_words_after_it_are(
    field: str, expected: Directives
) -> None:
    assert header(field) == expected


def test_a_name_holds_to_the_end_of_its_header_field_only() -> None:
    assert header("otherbot: nofollow", "noindex") == Directives(noindex=True)


@pytest.mark.parametrize(
    "date",
    ["2030-01-31", "25 Jun 2030 15:00:00 PST", "Tuesday, 25-Jun-30 15:00:00 GMT",
     "Tue, 25 Jun 2030 15:00:00 GMT"],
)  # fmt: skip
def test_a_date_ends_behind_its_colons_and_the_comma_after_the_weekday(date: str) -> None:
    expected = Directives(noindex=True)
    assert meta(f"unavailable_after: {date}, noindex") == expected
    assert header(f"noindex, Unavailable_After: {date}") == expected
    assert header(f"freshet: unavailable_after: {date}, noindex") == expected


def test_a_date_for_another_crawler_is_not_ours() -> None:
    assert header("otherbot: unavailable_after: 2030-01-31, noindex") == Directives()


words = st.sampled_from(
    ["noindex", "nofollow", "otherbot:", "freshet:", ",", ":", " ", "none", "x"]
)


@given(st.lists(words).map("".join), st.booleans())
def test_no_value_is_an_error_and_more_values_never_permit_more(
    value: str, is_header: bool
) -> None:
    alone = parse_directives([value], "freshet", is_header=is_header)
    both = parse_directives([value, "all"], "freshet", is_header=is_header)
    assert alone == both


def test_a_long_field_of_blanks_and_names_is_read_without_going_back() -> None:
    assert header(" " * 50_000 + "a:" * 50_000 + " ,noindex") == Directives()
    assert meta(" " * 50_000 + "a " * 50_000 + ",noindex") == Directives(noindex=True)
