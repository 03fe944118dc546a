"""The parts of a URL that may select no content."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.storage.identity import variants, without

TOKEN = "0123456789abcdef0123"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://h.example/", []),
        ("https://h.example", []),
        ("https://h.example/a?b", [("?b", "", "https://h.example/a")]),
        ("https://h.example/a?b=1", [("?b", "1", "https://h.example/a")]),
        ("https://h.example/a?b=1&c=2", [("?b", "1", "https://h.example/a?c=2"),
                                         ("?c", "2", "https://h.example/a?b=1")]),
        ("https://h.example/a?b=1&b=2", [("?b", "1&2", "https://h.example/a")]),
        ("https://h.example/a;v=1/c?d", [("?d", "", "https://h.example/a;v=1/c"),
                                         (";v", "1", "https://h.example/a/c?d")]),
        (f"https://h.example/{TOKEN}/c", [("/#1", TOKEN, "https://h.example/c")]),
        (f"https://h.example/c/sid-{TOKEN}", [("/#2", f"sid-{TOKEN}", "https://h.example/c")]),
        ("https://h.example/abcdefghijklmnopqrstuvwxyz/c", []),
        ("https://h.example/print/a/b", [("/print", "", "https://h.example/a/b")]),
        ("https://h.example/a/b/Printable", [("/Printable", "", "https://h.example/a/b")]),
        ("https://h.example/a/amp/?b", [("?b", "", "https://h.example/a/amp/"),
                                        ("/amp", "", "https://h.example/a/?b")]),
        ("https://h.example/printer-friendly/a", [("/printer-friendly", "", "https://h.example/a")]),
        ("https://h.example/prints/a", []),
        ("https://h.example/3.11/a", []),
        ("https://h.example/de/a", []),
        ("https://h.example/a?" + "&".join(f"p{n}" for n in range(9)), []),
    ],
)  # fmt: skip
def test_each_part_has_a_name_a_value_and_the_rest(
    url: str, expected: list[tuple[str, str, str]]
) -> None:
    assert list(variants(url)) == expected


def test_parts_are_left_out_by_name_or_with_their_value() -> None:
    url = f"https://h.example/{TOKEN}/a?page=1&sid=2"
    assert without(url, []) == (url, None)
    assert without(url, ["?sid"]) == (f"https://h.example/{TOKEN}/a?page=1", "?sid")
    assert without(url, ["?page=1", "/#1", "?sid"]) == ("https://h.example/a", "?page=1")
    assert without(url, ["?page=2", "?si", ";sid"]) == (url, None)
    assert without("https://h.example/print/a", ["/print"]) == ("https://h.example/a", "/print")


NAMES = st.sampled_from(["a", "b", "sid"])
URLS = st.builds(
    lambda path, query: "https://h.example/" + "/".join(path) + ("?" * bool(query)) + query,
    st.lists(st.sampled_from(["a", "b;v=1", TOKEN]), max_size=4),
    st.lists(st.builds("{}={}".format, NAMES, NAMES), max_size=4).map("&".join),
)


@given(URLS, st.sets(st.sampled_from(["?a", "?b=a", "?sid", ";v", "/#1", "/#2"])))
def test_what_is_left_has_none_of_the_parts(url: str, keys: set[str]) -> None:
    rest, first = without(url, keys)
    assert without(rest, keys) == (rest, None)
    assert (first is None) == (rest == url)
    assert not any(it.name in keys or it.key in keys for it in variants(rest))
