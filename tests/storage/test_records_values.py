"""Values of which every page makes some: as frozen dataclasses, but for assignments."""

from dataclasses import dataclass, field, replace

import pytest

from freshet.storage import value
from freshet.storage.records import FetchResult


@value(frozen=True, slots=True)
class Quick:
    name: str
    count: int = 1
    seen: dict[str, int] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Frozen:
    name: str
    count: int = 1
    seen: dict[str, int] = field(default_factory=dict, compare=False)


def test_values_compare_and_hash_as_frozen_ones_do() -> None:
    assert Quick("a") == Quick("a", 1, {"b": 2}) != Quick("a", 2)
    assert hash(Quick("a")) == hash(Quick("a", 1, {"b": 2})) == hash(Frozen("a"))
    assert replace(Quick("a"), count=3) == Quick("a", 3)
    assert not hasattr(Quick("a"), "__dict__")


@pytest.mark.parametrize(
    ("headers", "name", "values"),
    [
        ((), "ETag", []),
        (((b"ETag", b"1"),), "etag", ["1"]),
        (((b"LINK", b"1"), (b"x", b""), (b"Link", b"2")), "Link", ["1", "2"]),
        (((b"Link", b"a\nb"), (b"X", b"c")), "Link", ["a\nb"]),
        (((b"A\nLink", b"a"), (b"Link", b"b\n")), "Link", ["b\n"]),
        (((b"A\nLink", b"a"), (b"X", b"\n")), "a\nlink", ["a"]),
        (((b"", b""),), "", [""]),
        (((b"", b"\n"), (b"", b"2")), "", ["\n", "2"]),
        (((b"N\xc4me", b"\xff"),), "n\xe4me", ["\xff"]),
        (((b"A", b"1"), (b"B", b"2"), (b"a", b"3")), "A", ["1", "3"]),
    ],
)
def test_headers_are_found_by_any_case_in_their_order(
    headers: tuple[tuple[bytes, bytes], ...], name: str, values: list[str]
) -> None:
    result = FetchResult("http://h.example/", "fetched", 0.0, 1.0, headers=headers)
    for _ in range(2):
        assert list(result.header_values(name)) == values
        assert result.header(name) == (values[0] if values else None)
