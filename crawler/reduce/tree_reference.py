"""Trees of pages by selectolax's public interface: slower than :mod:`.tree_parser`.

This module defines the meaning of a tree's columns, runs if the compiled core cannot, and is the
reference of the core's tests.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from itertools import islice
from typing import cast

from selectolax.lexbor import LexborHTMLParser, LexborNode

from freshet.crawler.reduce.tree import (
    ACTS,
    ALT,
    ALTERNATIVES,
    ANCHOR,
    BREAKS,
    CONTROL,
    FIRST,
    KNOWN,
    LASTING,
    LEADS_BY,
    LEVELS,
    LINK,
    MEANINGS,
    MEDIUM,
    NOTHING,
    NUMBERS,
    PICTURE,
    PREFERRED,
    RAW,
    REL,
    SAID_COLUMNS,
    UNSEEN,
    Tree,
    collapsed,
    meaning_of,
    tree_from,
)
from freshet.crawler.urls import reference_head


def reference(parser: LexborHTMLParser, links: int = 0) -> Tree:
    """Return the tree of a page that selectolax has parsed, with at most ``most_links`` links.

    Raises:
        MemoryError: Lexbor has not even made the elements that every page has.
    """
    if parser.root is None:
        raise MemoryError("Lexbor gave up a page: it has no root")
    builder = _Builder()
    builder.add(parser.root)
    return builder.tree(links)


def _walk(root: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Yield all nodes in document order, true where one begins and false where it ends."""
    node, depth = root, 0
    while True:
        yield node, True
        if (child := node.first_child) is not None:
            node, depth = child, depth + 1
            continue
        yield node, False
        while depth and node.next is None:
            node, depth = cast(LexborNode, node.parent), depth - 1
            yield node, False
        if not depth:
            return
        node = cast(LexborNode, node.next)


@dataclass(slots=True)
class Node:
    """A row of a tree's columns."""

    parent: int
    end: int
    name: int
    place: int
    trait: int
    holds: int
    chars: int
    linked: int
    text_at: int
    text_end: int
    said_at: int
    said_end: int


@dataclass(slots=True)
class _Link:
    """An element that leads elsewhere, its contents, and its attributes."""

    node: int
    last: int
    said: Mapping[str, str]


@dataclass(slots=True)
class _Deep:
    """The open elements that are too deep for a row.

    They are ``count``, ``muted`` of these in an invisible one. ``lasting`` is the row of one that
    has a row nevertheless; ``lasting_at`` elements were open with it, 0 without one.
    """

    count: int = 0
    muted: int = 0
    lasting: int = 0
    lasting_at: int = 0


class _Builder:
    """The columns of a tree, built from the first node to the last."""

    def __init__(self) -> None:
        self._numbers = dict(NUMBERS)
        self._nodes: list[Node] = []
        self._said = array("I")
        self._texts = _Text()
        self._values = _Text()
        self._open: list[int] = []
        self._deep = _Deep()
        #: The parts of the text of the last node, which may continue.
        self._text: list[str] = []
        #: All links, and those that are open; alternative texts by node.
        self._links: list[_Link] = []
        self._open_links: list[_Link] = []
        self._pictures: dict[int, str] = {}

    def tree(self, most_links: int) -> Tree:
        """Return the tree."""
        rows = array("I", [number for node in self._nodes for number in astuple(node)])
        text, values = b"".join(self._texts.parts), b"".join(self._values.parts)
        links = list(islice(self._different(), most_links))
        columns = rows, self._said, array("I", [link.node for link in links])
        lines = (
            [BREAKS.sub("", self._reference(it)) for it in links],
            [BREAKS.sub(" ", it.said.get(REL, "")) for it in links],
            self._anchors(links, text, len(text) + len(values)),
        )
        texts = ("".join(f"{line}\n" for line in each) for each in lines)
        octets = [text, values, *(each.encode() for each in texts), b""]
        return tree_from(tuple(self._numbers), [it.tobytes() for it in columns], octets)

    def _reference(self, link: _Link) -> str:
        tag = _tag_of(self._nodes[link.node].name)
        return reference_head(link.said[LEADS_BY[tag]])

    def _different(self) -> Iterator[_Link]:
        met = set[tuple[str, str]]()
        for link in self._links:
            key = (self._reference(link), link.said.get(REL, ""))
            if not self._nodes[link.node].trait & ANCHOR:
                yield link
            elif key not in met:
                met.add(key)
                yield link

    def _is_called(self, text: Node) -> bool:
        """Return whether a text in a link counts for its anchor.

        Raw text and values of hidden controls do not.
        """
        trait = self._nodes[text.parent].trait
        return not trait & RAW and not (trait & ACTS and text.place & UNSEEN)

    def _anchors(self, links: Iterable[_Link], text: bytes, most: int) -> list[str]:
        """Return the anchors of links, without words after this many octets."""
        size, anchors = 0, list[str]()
        for link in links:
            anchors.append("" if size > most else self._anchor(link, text))
            size += len(f"{anchors[-1]}\n".encode())
        return anchors

    def _anchor(self, link: _Link, text: bytes) -> str:
        nodes = self._nodes
        if not nodes[link.node].trait & ANCHOR:
            return ""
        inside = range(link.node + 1, link.last)
        texts = (nodes[it] for it in inside if not nodes[it].name and self._is_called(nodes[it]))
        words = collapsed(b"".join(text[it.text_at : it.text_end] for it in texts).decode())
        pictures = (self._pictures.get(it) for it in (link.node, *inside))
        return words or collapsed(next((alt for alt in pictures if alt is not None), ""))

    def add(self, root: LexborNode) -> None:
        """Add an element with its contents."""
        for node, begins in _walk(root):
            if node.is_text_node and begins and not self._deep.muted:
                self._add_text(node.text_content or "")
            elif node.is_element_node:
                self._end_text()
                if begins:
                    self._begin(node)
                else:
                    self._end()

    def _begin(self, element: LexborNode) -> None:
        tag = element.tag or ""
        if self._deep.count or len(self._open) > LEVELS:
            self._begin_deep(tag, element)
        else:
            self._open.append(self._start(tag, element))
            self._show(tag, element)

    def _begin_deep(self, tag: str, element: LexborNode) -> None:
        """Begin an element that is too deep; lasting ones have rows, which hold no others."""
        deep, means = self._deep, MEANINGS.get(tag, NOTHING)
        deep.count += 1
        if means.trait & LASTING:
            number = self._start(tag, element, is_muted=deep.muted > 0)
            if deep.lasting_at:
                self._end_node(number)
            else:
                deep.lasting, deep.lasting_at = number, deep.count
        deep.muted += bool(deep.muted or means.place & UNSEEN or means.trait & MEDIUM)

    def _end_deep(self) -> None:
        deep = self._deep
        if deep.lasting_at == deep.count:
            self._nodes[deep.lasting].text_end = self._texts.length
            self._end_node(deep.lasting)
            deep.lasting_at = 0
        deep.count -= 1
        deep.muted -= deep.muted > 0

    def _start(self, tag: str, element: LexborNode, *, is_muted: bool = False) -> int:
        """Add the row of an element, and return its number."""
        number, name, said_at = len(self._nodes), self._number(tag), self._said_count()
        attributes = {key: value or "" for key, value in element.attributes.items()}
        for key, value in attributes.items():
            begin, end = self._values.add(value)
            self._said.extend((number, self._number(key), begin, end))
        means = meaning_of(tag, attributes)
        place, trait = means.place | (UNSEEN if is_muted else 0), _trait_of(element, means.trait)
        parent = self._open[-1] if self._open else 0
        if self._open:
            above = self._nodes[parent]
            place |= _place_in(above)
            if self._is_alternative(above, parent, trait):
                place |= UNSEEN
        at = self._texts.length
        row = (place, trait, 0, 0, 0, at, at, said_at, self._said_count())
        self._nodes.append(Node(parent, number + 1, name, *row))
        self._note_use(number, tag, attributes)
        return number

    def _note_use(self, number: int, tag: str, attributes: Mapping[str, str]) -> None:
        """Note the text of a picture, and an element that leads elsewhere."""
        if self._nodes[number].trait & PICTURE and ALT in attributes:
            self._pictures[number] = attributes[ALT]
        if LEADS_BY.get(tag) in attributes:
            self._open_links.append(_Link(number, number + 1, attributes))
            self._links.append(self._open_links[-1])

    def _show(self, tag: str, element: LexborNode) -> None:
        """Add the text that an element shows beside its contents."""
        attributes = element.attributes
        means = meaning_of(tag, attributes)
        if means.shown:
            shown = KNOWN[means.shown]
            if shown not in attributes:
                self._add_text(shown)
            elif element.first_child is None:
                self._add_text(attributes[shown] or "")

    def _is_alternative(self, above: Node, parent: int, trait: int) -> bool:
        """Return whether the next element is not seen in its parent, as another one is."""
        if above.trait & ALTERNATIVES:
            return not trait & PREFERRED
        before = len(self._nodes) - parent - 1
        # A text, such as a line break, may precede the first element.
        return bool(
            above.trait & FIRST and (before > 1 or (before and self._nodes[parent + 1].name))
        )

    def _end(self) -> None:
        if self._deep.count:
            self._end_deep()
            return
        number = self._open.pop()
        node = self._nodes[number]
        node.end, node.text_end = len(self._nodes), self._texts.length
        self._end_node(number)

    def _end_node(self, number: int) -> None:
        if self._open_links and self._open_links[-1].node == number:
            self._open_links.pop().last = len(self._nodes)
        self._add_up(number)

    def _add_text(self, text: str) -> None:
        if not text:
            return
        begin, end = self._texts.add(text)
        if not self._text:
            number, parent, said = len(self._nodes), self._open[-1], self._said_count()
            row = (_place_in(self._nodes[parent]), 0, 0, 0, 0, begin, end, said, said)
            self._nodes.append(Node(parent, number + 1, 0, *row))
        self._nodes[-1].text_end = end
        self._text.append(text)

    def _end_text(self) -> None:
        if self._text:
            self._nodes[-1].chars = len("".join(self._text).strip())
            self._text.clear()
            self._add_up(len(self._nodes) - 1)

    def _add_up(self, number: int) -> None:
        """Add the counts of a node to its parent, unless it is invisible."""
        node = self._nodes[number]
        if not number or node.place & UNSEEN:
            return
        parent = self._nodes[node.parent]
        parent.holds |= node.holds | (node.trait if node.chars else node.trait & ~ACTS)
        if not node.place & ~parent.place & CONTROL:
            is_link = node.place & ~parent.place & LINK
            parent.chars += node.chars
            parent.linked += node.chars if is_link else node.linked

    def _number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def _said_count(self) -> int:
        return len(self._said) // SAID_COLUMNS


class _Text:
    """A text in UTF-8 that grows by parts."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.length = 0

    def add(self, part: str) -> tuple[int, int]:
        """Add a part, and return where it begins and ends."""
        self.parts.append(part.encode())
        begin, self.length = self.length, self.length + len(self.parts[-1])
        return begin, self.length


def _place_in(element: Node) -> int:
    """Return the place of an element's contents; contents of a medium are invisible."""
    return element.place | (UNSEEN if element.trait & MEDIUM else 0)


def _tag_of(number: int) -> str:
    return KNOWN[number] if number < len(KNOWN) else ""


def _trait_of(element: LexborNode, trait: int) -> int:
    """Return the traits of an element among those of its name and attributes."""
    if not trait & ALTERNATIVES:
        return trait
    return trait & ~FIRST | PREFERRED if _has_preferred(element) else trait & ~ALTERNATIVES


def _has_preferred(element: LexborNode) -> bool:
    """Return whether one is in an element that is seen in place of its siblings.

    It is directly in the element, or in a child with alternatives.
    """
    for child, trait in _traits_in(element):
        if trait & PREFERRED:
            return True
        if trait & ALTERNATIVES and any(its & PREFERRED for _, its in _traits_in(child)):
            return True
    return False


def _traits_in(element: LexborNode) -> Iterator[tuple[LexborNode, int]]:
    """Yield the children of an element, and the traits of their names."""
    child = element.first_child
    while child is not None:
        if child.is_element_node:
            yield child, meaning_of(child.tag or "", child.attributes).trait
        child = child.next
