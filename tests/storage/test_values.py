"""Values of which every page makes some: as frozen dataclasses, but for assignments."""

from dataclasses import dataclass, field, replace

from freshet.storage import value


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
