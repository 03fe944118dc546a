"""Pings: what is one, and by which status the others are refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.errors import Refused
from freshet.crawler.extensions.push.indexnow import MAX_URLS, KeyPlace, from_json, from_query

KEY = "0a1b2c3d-4E"
HOME = "https://www.a.example"


def said(**changes: object) -> bytes:
    plain = {"host": "www.a.example", "key": KEY, "urlList": [f"{HOME}/x", f"{HOME}/y?z=1"]}
    return json.dumps({k: v for k, v in (plain | changes).items() if v is not None}).encode()


def test_one_url_in_a_query() -> None:
    place, urls = from_query({"url": f"{HOME}/x", "key": KEY})
    assert place == KeyPlace(HOME, KEY, f"{HOME}/{KEY}.txt")
    assert urls == (f"{HOME}/x",)
    assert place.authority == f"{HOME}/"


def test_a_list_in_json() -> None:
    assert from_json(said())[1] == (f"{HOME}/x", f"{HOME}/y?z=1")
    assert from_json(said(host="www.a.example:443", urlList=[f"{HOME}:443/x"]))[0].origin == HOME


def test_a_key_in_a_directory_speaks_for_that_directory() -> None:
    place = f"{HOME}/shop/{KEY}.txt"
    held_at, _ = from_json(said(keyLocation=place, urlList=[f"{HOME}/shop/x"]))
    assert held_at.authority == f"{HOME}/shop/"
    with pytest.raises(Refused, match="outside the key's directory") as refused:
        from_json(said(keyLocation=place, urlList=[f"{HOME}/shop/x", f"{HOME}/news"]))
    assert refused.value.status == 422


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"key": None}, 400), ({"host": None}, 400), ({"urlList": None}, 400),
        ({"urlList": []}, 400), ({"urlList": [1]}, 400), ({"urlList": "x"}, 400),
        ({"host": 7}, 400), ({"urlList": [f"{HOME}/x"] * (MAX_URLS + 1)}, 400),
        ({"key": "short"}, 422), ({"key": "a" * 129}, 422), ({"key": "0a1b2c3d/../x"}, 422),
        ({"host": "b.example"}, 422), ({"urlList": [f"{HOME}/x", "https://b.example/"]}, 422),
        ({"urlList": ["ftp://www.a.example/"]}, 422), ({"urlList": ["", f"{HOME}/x"]}, 422),
        ({"keyLocation": "https://b.example/k.txt"}, 422),
        ({"keyLocation": f"{HOME}/logout"}, 422), ({"keyLocation": f"{HOME}/x?a=.txt"}, 422),
        ({"keyLocation": f"{HOME}@b.example/k.txt"}, 422),
        ({"urlList": ["https://www.a.example@b.example/"]}, 422),
        ({"urlList": [f"{HOME}/{'x' * 5_000}"]}, 422),
        ({"urlList": [f"{HOME}/x", f"{HOME}/\udcff"]}, 422),
        ({"keyLocation": f"{HOME}/\udcff.txt"}, 422),
    ],
)  # fmt: skip
def test_what_is_no_ping_is_refused_by_its_status(changes: dict[str, object], status: int) -> None:
    with pytest.raises(Refused) as refused:
        from_json(said(**changes))
    assert refused.value.status == status


def test_what_is_no_json_and_a_query_without_a_key_are_refused() -> None:
    for body in (b"", b"[", b"[]", b"7", b"\xff", b"[" * 100_000):
        with pytest.raises(Refused) as refused:
            from_json(body)
        assert refused.value.status == 400
    with pytest.raises(Refused, match="no url or no key"):
        from_query({"url": HOME})


@given(st.binary() | st.recursive(
    st.none() | st.text() | st.integers(), lambda inner: st.lists(inner)
    | st.dictionaries(st.sampled_from(["host", "key", "urlList", "keyLocation"]), inner)
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_nothing_but_a_ping_or_a_refusal_comes_of_any_body(body: bytes) -> None:
    try:
        _, urls = from_json(body)
    except Refused as refused:
        status = refused.status
    else:
        status = 200 if urls else 0
    assert status in {200, 400, 422}
