"""The blocks of a page, which are compared version by version.

A place is a hash of the path of block-level elements above a block, each by its tag and its
meaningful id and classes. Ordinals are not part of it: the rows of a table share a place, and an
added row does not move the others. Places are stored and compared over years, so they are
independent of Python's ``hash`` and the platform.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Final, Literal, TypeAlias
from unicodedata import normalize

from freshet.crawler.reduce.tree import NAMES

#: Version of the main text of given bytes. Raise it with every change that alters the text or the
#: blocks of some page: texts of two versions are never compared.
TEXT_VERSION: Final = "20"


#: The kind of a block according to its markup.
BlockKind: TypeAlias = Literal["heading", "paragraph", "item", "cell", "text"]
#: Kinds by their number in the compiled core.
KINDS: Final[tuple[BlockKind, ...]] = ("text", "heading", "paragraph", "item", "cell")


@dataclass(frozen=True, slots=True)
class Blocks:
    """A main text in document order, as columns of equal length; ``places`` are uint64."""

    texts: tuple[str, ...] = ()
    kinds: tuple[BlockKind, ...] = ()
    places: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.texts)


def alike(texts: tuple[str, ...], kind: BlockKind, place: int) -> Blocks:
    """Return blocks of one kind at one place."""
    return Blocks(texts, (kind,) * len(texts), (place,) * len(texts))


#: Characters that are default-ignorable (Unicode, DerivedCoreProperties.txt), as in the core.
_IGNORABLE: Final = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]+"
)


def compared(text: str) -> str:
    """Return a text without characters that are default-ignorable, such as soft hyphens.

    They vary with the editor of a page. Documents keep them: joiners shape Persian and
    Indic words, and emoji.
    """
    return text if text.isascii() else _IGNORABLE.sub("", text)


def blocks_compared(blocks: Blocks) -> Blocks:
    """Return blocks without ignorable characters, and without those that have no others."""
    if all(map(str.isascii, blocks.texts)):
        return blocks
    texts = (" ".join(normalize("NFC", compared(text)).split()) for text in blocks.texts)
    rows = [row for row in zip(texts, blocks.kinds, blocks.places, strict=True) if row[0]]
    return Blocks(*zip(*rows, strict=True)) if rows else Blocks()


#: The place of the body element itself; 0 means "not known" in old sketches.
ROOT: Final = 0x9AE16A3B2F90404F
_MASK: Final = (1 << 64) - 1
_FACTOR: Final = 0x9E3779B97F4A7C15
_DIGIT: Final = re.compile(r"\d")

_KINDS: Final[dict[str | None, BlockKind]] = {
    **dict.fromkeys(NAMES["headings"], "heading"),
    **dict.fromkeys(("p", "pre", "blockquote"), "paragraph"),
    **dict.fromkeys(NAMES["items"], "item"),
    **dict.fromkeys(("td", "th"), "cell"),
}
#: Ids of these are made from their words, or count them.
_LEAVES: Final = frozenset(_KINDS)
_PASSING: Final = NAMES["passing_classes"]


def kind_of(tag: str | None) -> BlockKind:
    """Return the kind of a block in a block-level element of that tag."""
    return _KINDS.get(tag, "text")


def below(place: int, tag: str, element_id: str | None = None, classes: str | None = None) -> int:
    """Return the place of a block-level element in the element at ``place``."""
    return within(place, named(tag, element_id, classes))


# The places of a template repeat on all of its pages.
@lru_cache(maxsize=4096)
def within(place: int, name: int) -> int:
    """Return the place of the element of that name (:func:`named`) in the element at ``place``."""
    mixed = (place ^ name) * _FACTOR & _MASK
    return (mixed ^ (mixed >> 29)) or 1


# So do the names.
@lru_cache(maxsize=4096)
def named(tag: str, element_id: str | None, classes: str | None) -> int:
    """Return 64 bits for an element's name: its tag and its meaningful id and classes."""
    tokens = {t for t in classes.split() if _tells(t)} - _PASSING if classes else ()
    own_id = element_id if element_id and tag not in _LEAVES and _tells(element_id) else ""
    name = f"{tag}#{own_id}.{'.'.join(sorted(tokens))}"
    digest = blake2b(name.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _tells(token: str) -> bool:
    """Return whether a person chose the name; one with digits counts, or a tool made it."""
    return _DIGIT.search(token) is None
