"""The main text from the chosen pieces of a page, as the core makes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final
from unicodedata import normalize

from freshet.crawler.reduce.blocks import ROOT, BlockKind, Blocks, compared, kind_of, named, within
from freshet.crawler.reduce.boilerplate import is_stamp
from freshet.crawler.reduce.main_text import MOMENT, PERMALINKS, UNBOXED
from freshet.crawler.reduce.pieces import Piece
from freshet.crawler.reduce.tree import CONTROL, NAMES, TRAITS, UNSEEN, Tree
from tests.crawler.reduce.reference.markdown import is_line_number, plain_tex

_BLOCK: Final = TRAITS["block"]
_APART: Final = TRAITS["apart"]
_TEX: Final = TRAITS["tex"]
_INLINE: Final = NAMES["inline"]
_CODE: Final = NAMES["code"] | NAMES["verbatim"]
#: What stands before elements whose words do not join those beside them: 10^2 is not 102.
_SIGNS: Final = {"sup": "^", "sub": "_", "rt": " "}


def main_text(tree: Tree, pieces: Iterable[Piece]) -> Blocks:
    """Return the blocks of these pieces: NFC, white space collapsed, none empty, and no stamps."""
    standing = _Standing(tree)
    rows = [
        (text, *standing.at(holder))
        for piece in pieces
        for holder, said in _Runs(tree, piece.holder).of(piece)
        if (text := normalize("NFC", " ".join(compared(said.translate(UNBOXED)).split())))
        and not is_stamp(text)
    ]
    return Blocks(*zip(*rows, strict=True)) if rows else Blocks()


def _one_line(text: str) -> str:
    return normalize("NFC", " ".join(compared(text.translate(UNBOXED)).split()))


@dataclass(slots=True)
class _Runs:
    """The runs of text between block-level elements, and the elements in which they stand."""

    tree: Tree
    holder: int
    parts: list[str] = field(default_factory=list)

    def of(self, piece: Piece) -> Iterator[tuple[int, str]]:
        """Yield each run of a piece with the element in which it stands."""
        for node in piece.nodes:
            yield from self._within(node)
        yield self._run()

    def _run(self) -> tuple[int, str]:
        text = "".join(self.parts)
        self.parts.clear()
        return self.holder, text

    def _within(self, top: int) -> Iterator[tuple[int, str]]:  # noqa: C901, PLR0915 - one walk
        tree, node, stop = self.tree, top, self.tree.end[top]
        #: Where open elements end, what to add there, and where block-level ones stand.
        open_: list[tuple[int, str, int]] = []
        code_end = hidden = 0
        while node < stop or open_:
            if open_ and node >= open_[-1][0]:
                _, behind, holder = open_.pop()
                if holder != self.holder:
                    yield self._run()
                    self.holder = holder
                self.parts.append(behind)
                continue
            tag, trait, place = tree.tag(node), tree.trait[node], tree.place[node]
            if tag in _CODE and node >= code_end:
                # Documents show code without the buttons and the numbers of lines in it.
                code_end, hidden = tree.end[node], CONTROL & ~place
            is_code = node < code_end
            if place & (UNSEEN | (hidden if is_code else 0)) or (
                is_line_number(tree, node) if is_code else is_permalink(tree, node)
            ):
                node = tree.end[node]
                continue
            if not tree.name[node]:
                self.parts.append(tree.text_of(node))
            elif trait & _TEX:
                self.parts.append(f" {plain_tex(tree.text_of(node))} ")
                node = tree.end[node]
                continue
            elif trait & _BLOCK:
                yield self._run()
                open_.append((tree.end[node], "", self.holder))
                self.holder = node
            elif tag == "br":
                yield self._run()
            elif tag in _SIGNS or trait & _APART:
                self.parts.append(_SIGNS.get(tag, " "))
                open_.append((tree.end[node], " ", self.holder))
            elif tag == "time" and MOMENT.fullmatch(
                moment := tree.attribute_of(node, "datetime") or ""
            ):
                self.parts.append(moment)
                node = tree.end[node]
                continue
            node += 1


def is_permalink(tree: Tree, node: int) -> bool:
    """Return whether it is a link to its own heading."""
    is_link = tree.tag(node) == "a" and tree.chars[node] == 1
    return is_link and tree.text_of(node).strip() in PERMALINKS


class _Standing:
    """The kinds and places of a page's elements, each worked out once."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._known: dict[int, tuple[BlockKind, int]] = {tree.body: (kind_of("body"), ROOT)}

    def at(self, node: int) -> tuple[BlockKind, int]:
        """Return the kind and the place of a block directly in an element."""
        path = []
        while node not in self._known and node:
            path.append(node)
            node = self._tree.parent[node]
        found = self._known.get(node, (kind_of("body"), ROOT))
        for element in reversed(path):
            tag = self._tree.tag(element)
            if tag not in _INLINE:
                said = self._tree.attribute_of
                name = named(tag, said(element, "id"), said(element, "class"))
                found = kind_of(tag), within(found[1], name)
            self._known[element] = found
        return found
