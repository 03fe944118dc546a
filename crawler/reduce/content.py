"""The choice of the pieces of a page that are its main content.

Each piece is described by a row of numbers (:mod:`.features`): about its text, the elements around
it, their names, its neighbours and the page. Boosted trees, fitted on pages with a known
main text (``scripts/fit content``, ADR 0008), give its probability of being content. Chosen are
the pieces with the greatest expected F score of words: on a clear page the pieces above one half,
on an unclear page also less probable ones. Some rules follow, of prose beside
them, of long texts, short pages, menus, controls and images.

The compiled core chooses (``freshet/compiled/choice.c``); the tests have the same in Python
(``tests/crawler/reduce/reference/content.py``), with the purpose of each rule.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int64, c_size_t, c_void_p
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate, chain
from types import MappingProxyType, SimpleNamespace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from selectolax.lexbor import LexborHTMLParser

from freshet.compiled import function, numeric
from freshet.compiled.numeric import CONSTANTS
from freshet.crawler.errors import TreeLimit
from freshet.crawler.reduce.boilerplate import (
    FRAME_WORDS,
    LAYOUT_WORDS,
    STATES,
    SURE_WORDS,
    are_controls,
    is_frame_name,
    is_hidden,
)
from freshet.crawler.reduce.pieces import (
    CHARACTERS,
    HEADINGS,
    KINDS,
    Piece,
    Pieces,
    checked,
    columns_of,
    know,
)
from freshet.crawler.reduce.tree import (
    CONTROL,
    LINK,
    NO_HINTS,
    NUMBERS,
    PARSER_OPTIONS,
    PLACES,
    TRAITS,
    UNSEEN,
    SelectorHints,
    Tree,
)
from freshet.crawler.reduce.tree_parser import marked

#: Elements with a place among the numbers.
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
#: Characters of a heading that is too short for a title.
_SHORT: Final = 5
#: Seconds of a processor for the pieces of one page.
SECONDS: Final = 60.0


# -- names of elements ---------------------------------------------------------


@lru_cache(maxsize=4096)
def words_of(name: str) -> frozenset[str]:
    """Return the words of a name, in small letters."""
    return frozenset(found[0].lower() for found in _WORD.finditer(name[:300]))


def names_in(values: Mapping[str, str]) -> frozenset[str]:
    """Return the words of the names that the attributes of an element have."""
    return frozenset().union(*(words_of(values[n]) for n in _NAMING if n in values))


def is_shown(values: Mapping[str, str]) -> bool:
    """Return whether an element is visible by its attributes."""
    style = values.get("style", "").replace(" ", "").lower()
    return not is_hidden(values) and "display:none" not in style


def has_comments(names: frozenset[str]) -> bool:
    """Return whether a name is one of comments."""
    return not _COMMENTS.isdisjoint(names)


class Vocabulary:
    """Words in names of elements, and those in labels of frames.

    ``odds`` and ``label_odds`` are their log odds of content.
    """

    def __init__(
        self, odds: Mapping[str, float], label_odds: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        self.odds, self.label_odds = odds, label_odds
        known = {
            "FRAME_WORD": FRAME_WORDS, "KNOWN_WORD": FRAME_WORDS | LAYOUT_WORDS,
            "SURE_WORD": SURE_WORDS, "STATE_WORD": STATES, "COMMENT_WORD": _COMMENTS,
            "ODDS_WORD": odds.keys(), "LABEL_WORD": label_odds.keys(),
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
            label_odds=np.array([label_odds.get(word, 0.0) for word in flags]),
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
        if _begin_vocabulary(self.address):
            raise ValueError("the core refused the words in names of elements")

    def answer(self, values: Mapping[str, str]) -> tuple[int, list[float]]:
        """Return the bits of an element's attributes, and the log odds of its names."""
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


_begin_vocabulary: Final = function("vocabulary_begin", [c_void_p], c_int64)
_read: Final = function("content_read", [c_void_p, c_void_p, c_void_p], c_int64)
_questions: Final = function("content_questions", [c_void_p] * 3)
_judged: Final = function("content_judged", [c_void_p, c_void_p, POINTER(_Answers)], c_int64)
_found: Final = function("content_found", [c_void_p] * 3)
_drop_judged: Final = function("content_drop", [c_void_p])
_TOO_SLOW: Final = -4


class JudgedPieces(NamedTuple):
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
) -> Iterator[JudgedPieces]:
    """Yield the pieces of a page as the core judges them; without trees it has their rows.

    There is at least one piece; ``title`` is the page's.

    Raises:
        TreeLimit: the pieces are too many to judge in time.
        MemoryError: the memory does not suffice.
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
        yield JudgedPieces(core, headline)
    finally:
        _drop_judged(core)


def titles(rows: bytes, texts: bytes, title: str) -> tuple[int, int]:
    """Return the numbers of two headings, -1 for a missing one.

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


_BLOCK: Final = TRAITS["block"]
_APART: Final = TRAITS["apart"]

#: The words of short texts with their log odds of content (``scripts/fit labels``), a line each.
LABEL_WORDS: Final = "label_words.txt"
#: Leaves of a tree, at most.
LEAVES: Final = int(numeric.CONSTANTS["LEAVES"])
_begin: Final = function("trees_begin", [c_void_p], c_int64)
_made: Final = function("choice_made", [c_void_p, c_int64, c_void_p], c_int64)
_settled: Final = function("choice_settled", [c_void_p, c_void_p, c_char_p, c_size_t], c_int64)
_finished: Final = function("choice_finished", [c_void_p, c_char_p, c_size_t], c_int64)
_columns: Final = function("choice_columns", [c_void_p] * 3)
_drop: Final = function("choice_drop", [c_void_p])


@cache
def model() -> tuple[Vocabulary, numeric.Structure]:
    """Return the log odds of words in names, and the fitted trees."""
    folder = files("freshet.crawler.reduce")
    said = json.loads((folder / "content_model.json").read_text(encoding="utf-8"))
    lines = (folder / LABEL_WORDS).read_text(encoding="ascii").splitlines()
    label_odds = {word: float(odds) for word, odds in map(str.split, lines)}
    return Vocabulary(said["words"], label_odds), trees_of(said["trees"], len(COLUMNS))


def trees_of(columns: Mapping[str, Sequence[float]], width: int) -> numeric.Structure:
    """Return boosted trees for rows of ``columns`` numbers, in the form for the core.

    A node sends a row to ``yes`` where the value of its ``column`` is at most ``limit``, else to
    ``no``; a leaf leads to itself, and has a ``value``. The first node of each tree is in
    ``roots``.

    Raises:
        ValueError: a tree has more leaves than the core can judge, or the row is too long.
    """
    yes, no = (np.array(columns[name]).tolist() for name in ("yes", "no"))
    tests = [*zip(map(int, columns["column"]), columns["limit"], strict=True)]
    distinct = {test for node, test in enumerate(tests) if yes[node] != node}
    limits = _limits_by_column(distinct, width)
    ranks = {(i, limit): rank for i, own in enumerate(limits) for rank, limit in enumerate(own)}
    branches: list[tuple[int, int, int]] = []
    ends: list[int] = []
    leaves = np.zeros((len(columns["roots"]), LEAVES))

    def add(node: int, tree: int, count: int) -> int:
        """Add a node of a tree, given the number of leaves so far; return the new number."""
        if yes[node] == node:
            if count == LEAVES:
                raise ValueError(f"tree {tree} has more than {LEAVES} leaves")
            leaves[tree, count] = columns["value"][node]
            return count + 1
        middle = add(yes[node], tree, count)
        struck = (1 << middle) - (1 << count)
        branches.append((tests[node][0], ranks[tests[node]], struck))
        return add(no[node], tree, middle)

    for tree, root in enumerate(columns["roots"]):
        add(int(root), tree, 0)
        ends.append(len(branches))
    arrays = SimpleNamespace(
        limits=np.array([*chain(*limits)]),
        limit_ends=np.array([*accumulate(map(len, limits))]),
        branch=np.array(branches, numeric.record("branch")),
        branch_ends=np.array(ends),
        leaves=leaves,
    )
    numbers = {"columns": width, "count": len(ends), "nodes": len(branches)}
    trees = numeric.Structure("trees", arrays, **numbers, limits_count=len(arrays.limits))
    if _begin(trees.address):
        raise ValueError("the core refused the trees")
    return trees


def _limits_by_column(tests: Iterable[tuple[int, float]], width: int) -> list[list[float]]:
    """Return the limits that nodes compare each column with, from the least on."""
    limits: list[list[float]] = [[] for _ in range(width)]
    for column, limit in sorted(tests):
        limits[column].append(limit)
    return limits


def choice_of(tree: Tree, html: bytes, hints: SelectorHints) -> tuple[Tree, Sequence[Piece], bool]:
    """Return the chosen pieces of a page, the tree as its site's selectors show it.

    ``html`` is the page. The last value is true if ``hints`` include a part of it, which is then
    the content.
    """
    tree, pieces, has_included = pieces_shown(tree, html, hints)
    if has_included:
        return tree, pieces, True
    return tree, [] if hints.strict else chosen(tree, pieces, title_of(tree)), False


def pieces_shown(
    tree: Tree, html: bytes, hints: SelectorHints
) -> tuple[Tree, Sequence[Piece], bool]:
    """Return the tree as selectors show it, and all pieces that may be content.

    The last value is true if they are what ``hints`` include.
    """
    if hints != NO_HINTS:
        parser = LexborHTMLParser(html, options=PARSER_OPTIONS)
        has_included = hints.mark(parser)
        tree, included = marked(tree, parser)
        if has_included:
            from freshet.crawler.reduce.cutting import pieces_at  # noqa: PLC0415 - few sites have it

            return tree, [it for node in included for it in pieces_at(tree, node)], True
    return tree, Pieces(tree), False


def title_of(tree: Tree) -> str:
    """Return the title in the head of a page, or an empty text."""
    titles = (it for it in tree.named("title") if tree.place[it] & PLACES["page_head"])
    return next((" ".join(tree.text_of(it).split()) for it in titles), "")


def chosen(tree: Tree, pieces: Sequence[Piece], title: str) -> Sequence[Piece]:
    """Return the pieces of the main content; ``title`` is the page's title.

    The model judges by words. It does not see controls, except on a page of controls alone, and
    images have no words: their neighbours decide.
    """
    pieces = Pieces.of(tree, pieces)
    if not pieces:
        return pieces
    core = c_void_p()
    some = pieces.without_controls() or pieces
    with considered(some, title, *model()) as judged:
        try:
            checked(_made(judged.core, judged.headline, byref(core)), tree)
            (texts, _, _) = columns_of(_columns, core, 3)
            said = are_controls(texts)
            checked(_settled(core, pieces.core, said, len(said)), tree)
            (_, _, texts) = columns_of(_columns, core, 3)
            said = are_controls(texts)
            checked(_finished(core, said, len(said)), tree)
            (_, numbers, _) = columns_of(_columns, core, 3)
        finally:
            _drop(core)
    return pieces.only(memoryview(numbers).cast("I"))


def text_of(tree: Tree, piece: Piece, without: int = UNSEEN | CONTROL) -> str:
    """Return the text of a piece on one line, without the texts in these places.

    A heading is read with its controls: it may be a button that opens the section.
    """
    if piece.kind in HEADINGS:
        without &= ~CONTROL
    names, place, trait, holds = tree.name, tree.place, tree.trait, tree.holds
    parts: list[str] = []
    # The ends of elements with words that do not join the words beside them.
    ends = set[int]()
    for top in piece.nodes:
        node, stop = top, tree.end[top]
        while node < stop:
            if node in ends:
                parts.append(" ")
            if place[node] & without:
                node = tree.end[node]
                continue
            if not names[node]:
                parts.append(tree.text_of(node))
            elif trait[node] & _APART:
                parts.append(" ")
                ends.add(tree.end[node])
            elif (trait[node] | holds[node]) & _BLOCK or tree.tag(node) == "br":
                parts.append(" ")
            node += 1
    return " ".join("".join(parts).split())
