"""Pieces of a page in numbers, by which trees judge whether each is content.

:data:`COLUMNS` are a piece's own text, the elements in which it stands, their names, its neighbours
and the page. The compiled core works them out and judges them (``freshet/compiled/content.c``); the
tests have the same in Python (``tests/crawler/reduce/reference/features.py``), which says what each
number means. The core reads names in ASCII and characters that it knows; it leaves the others to
the functions here, between its two calls.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int64, c_size_t, c_void_p
from functools import lru_cache
from itertools import accumulate
from types import SimpleNamespace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freshet.compiled import function, numeric
from freshet.compiled.numeric import CONSTANTS
from freshet.crawler.errors import TreeLimit
from freshet.crawler.reduce.boilerplate import (
    FRAME_WORDS,
    LAYOUT_WORDS,
    STATES,
    SURE_WORDS,
    is_frame_name,
    is_hidden,
)
from freshet.crawler.reduce.characters import CHARACTERS, know
from freshet.crawler.reduce.pieces import KINDS, Pieces, checked, columns_of
from freshet.crawler.reduce.tree import LINK, NUMBERS, PLACES

#: Elements whose places are among the numbers.
TAGS: Final = "main article nav aside header footer form table li section p a figcaption dd".split()
_TAG_PLACES: Final = [LINK if tag == "a" else PLACES[tag] for tag in TAGS]
COLUMNS: Final = (
    "kind chars words linked_share ends_sentence commas digits capitals items repeated".split()
    + [f"in_{tag}" for tag in TAGS]
    + "hidden frame_names frame_role depth comments article".split()
    + "names_min names_max names_sum names_bad near_min near_sum".split()
    + "place before after from_title in_best".split()
    + [f"climb_{share}" for share in (0.25, 0.5, 0.8)]
    + [f"above{i}_{what}" for i in range(4) for what in ("linked", "share", "long")]
    + [f"near{i}_{what}" for i in (-2, -1, 1, 2) for what in ("chars", "linked", "heading")]
    + "page_long page_chars page_linked page_pieces best_share".split()
)
#: Attributes with names that people choose.
_NAMING: Final = ("id", "class", "role", "itemprop", "data-testid")
_WORD: Final = re.compile(r"[A-Z]*[^\W\d_A-Z]+|[A-Z]+")
_COMMENTS: Final = frozenset({"comment", "comments", "commentlist", "disqus", "reply", "replies"})
_H1: Final = KINDS.index("h1")
#: Characters of a heading that says too little for a title.
_SHORT: Final = 5
#: Seconds of a processor for the pieces of one page.
SECONDS: Final = 60.0


# -- names of elements ---------------------------------------------------------


@lru_cache(maxsize=4096)
def _words(name: str) -> frozenset[str]:
    return frozenset(found[0].lower() for found in _WORD.finditer(name[:300]))


def names_in(values: Mapping[str, str]) -> frozenset[str]:
    """Return the words of the names that the attributes of an element have."""
    return frozenset().union(*(_words(values[n]) for n in _NAMING if n in values))


def is_shown(values: Mapping[str, str]) -> bool:
    """Return whether an element's attributes let it be seen."""
    style = values.get("style", "").replace(" ", "").lower()
    return not is_hidden(values) and "display:none" not in style


def has_comments(names: frozenset[str]) -> bool:
    """Return whether a name is one of comments."""
    return not _COMMENTS.isdisjoint(names)


class Vocabulary:
    """Words in names of elements; ``odds`` are their log odds of content."""

    def __init__(self, odds: Mapping[str, float]) -> None:
        self.odds = odds
        known = {
            "FRAME_WORD": FRAME_WORDS, "KNOWN_WORD": FRAME_WORDS | LAYOUT_WORDS,
            "SURE_WORD": SURE_WORDS, "STATE_WORD": STATES, "COMMENT_WORD": _COMMENTS,
            "ODDS_WORD": odds.keys(),
        }  # fmt: skip
        flags = dict.fromkeys(sorted(set().union(*known.values())), 0)
        for flag, words in known.items():
            for word in words:
                flags[word] |= int(CONSTANTS[flag])
        encoded = [word.encode() for word in flags]
        letters = np.frombuffer(bytearray().join(encoded), np.uint8)
        slots = 4 << len(flags).bit_length()
        arrays = SimpleNamespace(
            letters=letters,
            ends=np.array([*accumulate(map(len, encoded))], np.int64),
            table=np.empty(slots, np.int64),
            flags=np.array([*flags.values()], np.int64),
            odds=np.array([odds.get(word, 0.0) for word in flags]),
            places=np.array(_TAG_PLACES, np.int64),
            characters=CHARACTERS,
        )
        sought = "article id class role itemprop style hidden".split()
        numbers = {name: NUMBERS[name] for name in sought}
        numbers |= {"testid": NUMBERS["data-testid"], "aria_hidden": NUMBERS["aria-hidden"]}
        bits = "frame nav aside noscript header footer main".split()
        numbers |= {"link": LINK, **{name: PLACES[name] for name in bits}}
        numbers |= {"in_article": PLACES["article"], "caption": PLACES["figcaption"]}
        numbers |= {"octets": len(letters), "words": len(flags), "slots": slots}
        self._structure = numeric.Structure("vocabulary", arrays, **numbers)
        self.address = self._structure.address
        if _begin(self.address):
            raise ValueError("the core refused the words in names of elements")

    def answer(self, values: Mapping[str, str]) -> tuple[int, list[float]]:
        """Return what an element's attributes say, as bits, and the log odds of its names."""
        names = names_in(values)
        bits = (
            not is_shown(values),
            is_frame_name(values.get("id"), values.get("class")),
            has_comments(names),
            is_hidden(values),
        )
        odds = [self.odds[name] for name in sorted(names) if name in self.odds]
        return sum(bit << i for i, bit in enumerate(bits)), odds


# -- the compiled core ---------------------------------------------------------


class _Answers(Structure):
    _fields_ = (
        ("flags", c_char_p), ("ends", c_char_p), ("odds", c_char_p),
        *[(f"count{i}", c_size_t) for i in range(2)],
        ("titled", c_int64), ("seconds", c_double),
    )  # fmt: skip


_begin: Final = function("vocabulary_begin", [c_void_p], c_int64)
_read: Final = function("content_read", [c_void_p, c_void_p, c_void_p], c_int64)
_questions: Final = function("content_questions", [c_void_p] * 3)
_judged: Final = function("content_judged", [c_void_p, c_void_p, POINTER(_Answers)], c_int64)
_found: Final = function("content_found", [c_void_p] * 3)
_drop: Final = function("content_drop", [c_void_p])
_TOO_SLOW: Final = -4


class Judged(NamedTuple):
    """Pieces that the core has judged, and the number of the page's own headline, or -1."""

    core: c_void_p
    headline: int


def judged(
    pieces: Pieces, title: str, vocabulary: Vocabulary, trees: numeric.Structure
) -> NDArray[np.float64]:
    """Return the log odds that each piece of a page is content; arguments as :func:`considered`."""
    with considered(pieces, title, vocabulary, trees) as found:
        odds, _ = columns_of(_found, found.core, 2)
    return np.frombuffer(odds)


def described(pieces: Pieces, title: str, vocabulary: Vocabulary) -> NDArray[np.float64]:
    """Return the row of each piece; raises as :func:`considered`."""
    with considered(pieces, title, vocabulary, None) as found:
        _, rows = columns_of(_found, found.core, 2)
    return np.frombuffer(rows).reshape(len(pieces), len(COLUMNS))


@contextmanager
def considered(
    pieces: Pieces, title: str, vocabulary: Vocabulary, trees: numeric.Structure | None
) -> Iterator[Judged]:
    """Yield the pieces of a page as the core judges them; without trees it has their rows.

    There is at least one piece; ``title`` is the page's.

    Raises:
        TreeLimit: there are so many that it takes too long.
        MemoryError: there is too little memory.
    """
    tree, core = pieces.tree, c_void_p()
    try:
        checked(_read(vocabulary.address, pieces.core, byref(core)), tree)
        blocks, asked, headings, texts = columns_of(_questions, core, 4)
        know(memoryview(blocks).cast("I"))
        said = [vocabulary.answer(tree.attributes(it)) for it in memoryview(asked).cast("I")]
        odds = array("d", [each for _, odds in said for each in odds])
        ends = array("I", accumulate(len(odds) for _, odds in said))
        titled, headline = titles(headings, texts, title)
        answers = _Answers(
            bytes([bits for bits, _ in said]), ends.tobytes(), odds.tobytes(),
            *(len(said), len(odds)), titled, SECONDS,
        )  # fmt: skip
        result = _judged(core, trees and trees.address, answers)
        if result == _TOO_SLOW:
            raise TreeLimit(f"{len(pieces):,} pieces took more than {SECONDS:g} s of a processor")
        checked(result, tree)
        yield Judged(core, headline)
    finally:
        _drop(core)


def titles(rows: bytes, texts: bytes, title: str) -> tuple[int, int]:
    """Return the numbers of two headings, -1 if there is none.

    The first one repeats the page's title, or is the first h1; the second one is the only h1, or
    the first one that is in the title. ``rows`` have the numbers and kinds of the h1 and h2.
    """
    columns = memoryview(rows).cast("I")
    small, folded, whole = title.lower(), title.casefold(), texts.decode()
    said = zip(*(it.split("\n") for it in (whole, whole.lower(), whole.casefold())), strict=True)
    found = [*zip(columns[::2].tolist(), columns[1::2].tolist(), said, strict=False)]
    main = [(number, text) for number, kind, text in found if kind == _H1]
    heads = [(number, text) for number, text in main if text[0]]
    same = [number for number, _, text in found if text[0][_SHORT:] and text[1] in small]
    own = [number for number, text in heads if len(heads) == 1 or text[2] in folded]
    first = [number for number, _ in main]
    return (*same, *first, -1)[0], (*own, -1)[0]
