"""JSON documents as blocks."""

import json

from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce.other_formats import is_json, json_text
from freshet.crawler.reduce.page import parse

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


def test_values_are_blocks_with_their_keys_in_the_order_of_the_keys() -> None:
    found = json_text('{"b": [1, 2.50], "a": {"x": "two  words", "y": null}}')
    assert found is not None
    assert found.texts == ("x: two words", "y: null", "b: 1", "b: 2.5")
    assert len(set(found.places)) == 3
    assert found.places[2] == found.places[3]


def test_white_space_and_the_order_of_keys_are_no_difference() -> None:
    assert json_text('{"a":1,"b":2}') == json_text('{ "b": 2,\n "a": 1 }')


def test_what_is_no_json_or_says_nothing_is_left_to_others() -> None:
    assert json_text("{broken") is None
    assert json_text("[]") is None
    assert json_text("[" * 100_000) is None
    assert json_text(json.dumps(list(range(30_000)))) is None


def test_a_json_answer_is_parsed_by_its_values_and_a_broken_one_by_its_paragraphs() -> None:
    url, mime = "https://example.org/data", "application/ld+json; charset=utf-8"
    assert parse(b'{"n": 1}', url, mime).blocks.texts == ("n: 1",)
    assert parse(b"{n: 1}", url, mime).blocks.texts == ("{n: 1}",)


def test_json_is_known_by_its_media_type() -> None:
    assert is_json("application/json")
    assert is_json("application/FEED+JSON; charset=utf-8")
    assert not is_json("text/html")
    assert not is_json(None)


@given(VALUES)
def test_any_document_can_be_read(value: object) -> None:
    found = json_text(json.dumps(value))
    assert found is None or len(found.texts) == len(found.places) == len(found.kinds)
