"""Blocks: the pieces of a main text, each with its kind and its place in the page.

A place is a hash of the path of block-level elements above a block, each by its tag and by
what its id and classes tell. Numbers are no part of it: the rows of a table share a place,
and a row that is added moves none of the others. Places are stored and compared over years;
nothing here depends on Python's ``hash`` or the platform.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b
from typing import Final


class BlockKind(IntEnum):
    """What the markup says that a block is."""

    HEADING = 1
    PARAGRAPH = 2
    ITEM = 3
    CELL = 4
    TEXT = 5


@dataclass(frozen=True, slots=True)
class Blocks:
    """A main text in document order, as columns of equal length; ``places`` are uint64."""

    texts: tuple[str, ...] = ()
    kinds: tuple[BlockKind, ...] = ()
    places: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.texts)

    def __add__(self, other: Blocks) -> Blocks:
        return Blocks(
            self.texts + other.texts, self.kinds + other.kinds, self.places + other.places
        )


#: The place of the body element itself; 0 stands for "not known" in old sketches.
ROOT: Final = 0x9AE16A3B2F90404F
_MASK: Final = (1 << 64) - 1
_FACTOR: Final = 0x9E3779B97F4A7C15
_DIGIT: Final = re.compile(r"\d")

_KINDS: Final[dict[str | None, BlockKind]] = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), BlockKind.HEADING),
    **dict.fromkeys(("p", "pre", "blockquote"), BlockKind.PARAGRAPH),
    **dict.fromkeys(("li", "dt", "dd"), BlockKind.ITEM),
    **dict.fromkeys(("td", "th"), BlockKind.CELL),
}
#: The id of these is made from their words, or counts them.
_LEAVES: Final = frozenset(_KINDS)
#: Classes that say how an element stands among its like, or what a visitor does to it.
_PASSING: Final = frozenset(
    {"odd", "even", "first", "last", "active", "current", "selected", "open", "closed", "new"}
)


def kind_of(tag: str | None) -> BlockKind:
    """The kind of a block whose innermost block-level element has that tag."""
    return _KINDS.get(tag, BlockKind.TEXT)


def below(place: int, tag: str, element_id: str | None = None, classes: str | None = None) -> int:
    """The place of a block-level element in the element at ``place``."""
    return within(place, named(tag, element_id, classes))


# The places of a template repeat on all of its pages.
@lru_cache(maxsize=4096)
def within(place: int, name: int) -> int:
    """The place of the element of that name (:func:`named`) in the element at ``place``."""
    mixed = (place ^ name) * _FACTOR & _MASK
    return (mixed ^ (mixed >> 29)) or 1


def named(tag: str, element_id: str | None, classes: str | None) -> int:
    """64 bits for the name of an element: its tag and what its id and classes tell."""
    tokens = {t for t in classes.split() if _tells(t)} - _PASSING if classes else ()
    own_id = element_id if element_id and tag not in _LEAVES and _tells(element_id) else ""
    return _hashed(f"{tag}#{own_id}.{'.'.join(sorted(tokens))}")


@lru_cache(maxsize=4096)
def _hashed(name: str) -> int:
    return int.from_bytes(
        blake2b(name.encode("utf-8", "replace"), digest_size=8).digest(), "little"
    )


def _tells(token: str) -> bool:
    """Whether a name was given by a person: one with digits counts, or was made by a tool."""
    return _DIGIT.search(token) is None
