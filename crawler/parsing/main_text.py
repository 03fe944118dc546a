"""The main text of a page, in blocks, with the frame set aside.

One walk over the tree gathers blocks of running text (headings, paragraphs, list items,
table cells, runs of text between block elements) outside the frame; a second look at the
columns of blocks picks those of the main element, or else sets aside lists of links.

Blocks are compared version by version, so stability comes before taste: no rule weighs the
words of one block against the rest of the page except the two thresholds named here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final
from unicodedata import normalize

from selectolax.lexbor import LexborNode

from crawler.parsing.blocks import ROOT, BlockKind, Blocks, below, kind_of
from crawler.parsing.boilerplate import (
    FRAME_TAGS,
    INVISIBLE_TAGS,
    PAGE_EDGE_TAGS,
    is_frame_name,
    is_frame_role,
    is_hidden,
    is_stamp,
)
from crawler.parsing.selectors import NO_HINTS, SelectorHints

_INLINE_TAGS: Final = frozenset(
    {
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn"),
        *("em", "font", "i", "img", "ins", "kbd", "mark", "nobr", "q", "rb", "rp", "rt", "rtc"),
        *("ruby", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt"),
        *("u", "var", "wbr"),
    }
)
_UNREAD: Final = INVISIBLE_TAGS | {"-comment", "-doctype"}
_FRAME_OR_EDGE: Final = FRAME_TAGS | PAGE_EDGE_TAGS
#: The attributes that can set an element aside, or make it the main one.
_TELLING: Final = frozenset({"id", "class", "role", "hidden", "aria-hidden"})
_MAIN_IDS: Final = frozenset({"main", "main-content", "maincontent", "content"})
_PRINCIPAL: Final = "main, article, [role=main], #main, #main-content, #maincontent, #content"

#: The share of the page's text that the main element, or else the articles, must hold to be
#: taken for the whole of the main text.
_MAIN_SHARE: Final = 0.25
_ARTICLE_SHARE: Final = 0.5
#: A block is a link where more than this share of its characters stands in anchors, and so
#: many links in a row are a list of links.
_LINK_SHARE: Final = 0.7
_LINK_LIST: Final = 3

_BLANK_LINE: Final = re.compile(r"(?>\r\n?|\n)[^\S\r\n]*(?>\r\n?|\n)")

# Zones: where a block stands. Bits, so that they are inherited by a single "or".
_IN_MAIN: Final = 1
_IN_ARTICLE: Final = 2
_IN_LINK: Final = 4
_IN_LIST: Final = 8
_IN_TABLE: Final = 16
_TAG_ZONES: Final[dict[str | None, int]] = {
    "main": _IN_MAIN,
    "article": _IN_ARTICLE,
    "a": _IN_LINK,
    **dict.fromkeys(("ul", "ol"), _IN_LIST),
    # What a table, a definition or a sentence says is content, even where it is linked.
    **dict.fromkeys(("td", "th", "dt", "dd", "p", "pre"), _IN_TABLE),
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _IN_TABLE),
}


@dataclass(slots=True)
class _Blocks:
    """Blocks in document order, as columns of equal length; ``pending`` is the open one."""

    texts: list[str] = field(default_factory=list)
    kinds: list[BlockKind] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    zones: list[int] = field(default_factory=list)
    links: list[bool] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    pending_linked: int = 0

    def add(self, text: str, zone: int) -> None:
        if zone & _IN_LINK:
            self.pending_linked += len(text.strip())
        if self.pending or not text.isspace():
            self.pending.append(text)

    def end_block(self, kind: BlockKind, place: int, zone: int) -> None:
        if not self.pending:
            return
        text = " ".join("".join(self.pending).split())
        self.texts.append(text if text.isascii() else normalize("NFC", text))
        self.kinds.append(kind)
        self.places.append(place)
        self.zones.append(zone)
        self.links.append(
            self.pending_linked > _LINK_SHARE * len(text)
            and zone & (_IN_LIST | _IN_TABLE) != _IN_TABLE
        )
        self.pending.clear()
        self.pending_linked = 0

    def chosen(self, numbers: Iterable[int]) -> Blocks:
        """Those of the blocks that are no stamps."""
        kept = [i for i in numbers if not is_stamp(self.texts[i])]
        return Blocks(
            tuple([self.texts[i] for i in kept]),
            tuple([self.kinds[i] for i in kept]),
            tuple([self.places[i] for i in kept]),
        )


def main_text(body: LexborNode, hints: SelectorHints = NO_HINTS) -> Blocks:
    """The blocks of main text below ``body``: NFC, white space collapsed, none empty.

    A page that is nothing but frame (a menu, a list of links) is its own content: there
    only stamps and what no reader sees are left out. With ``hints`` that include elements
    of this page, these are the main text whatever they look like. Reads the tree without
    changing it.
    """
    ignored = hints.ignored(body)
    if included := hints.included(body):
        blocks = _gathered(included, ignored, spare_frame=True)
        return blocks.chosen(range(len(blocks.texts)))
    selected = _selected(_gathered([body], ignored, spare_frame=False))
    if selected:
        return selected
    blocks = _gathered([body], ignored, spare_frame=True)
    return blocks.chosen(range(len(blocks.texts)))


def plain_text(text: str) -> Blocks:
    """The paragraphs of a text without markup, as blocks."""
    paragraphs = (" ".join(p.split()) for p in _BLANK_LINE.split(text))
    texts = tuple(t for p in paragraphs if p and not is_stamp(t := normalize("NFC", p)))
    place = below(ROOT, "p")
    return Blocks(texts, (BlockKind.PARAGRAPH,) * len(texts), (place,) * len(texts))


def _gathered(
    roots: Sequence[LexborNode], ignored: frozenset[int], *, spare_frame: bool
) -> _Blocks:
    """All blocks below the roots and outside the frame."""
    blocks = _Blocks()
    for root in roots:
        _gather(blocks, root, ignored, spare_frame=spare_frame)
    return blocks


def _gather(
    blocks: _Blocks, root: LexborNode, ignored: frozenset[int], *, spare_frame: bool
) -> None:
    """Add the blocks below a root. Iterative: the depth of the tree costs no stack."""
    above: list[tuple[LexborNode | None, BlockKind, int, int, bool]] = []
    node, kind, place, zone = root.first_child, kind_of(root.tag), ROOT, 0
    while node is not None or above:
        if node is None:
            if above[-1][-1]:
                blocks.end_block(kind, place, zone)
            node, kind, place, zone, _ = above.pop()
            continue
        tag = node.tag
        if tag == "-text":
            blocks.add(node.text_content or "", zone)
        elif tag is not None and tag not in _UNREAD and not (ignored and node.mem_id in ignored):
            attributes = node.attributes
            inner = _zone_within(node, tag, attributes, zone, spare_frame)
            if inner is not None:
                is_block = tag not in _INLINE_TAGS
                above.append((node.next, kind, place, zone, is_block))
                if is_block:
                    blocks.end_block(kind, place, zone)
                    kind = kind_of(tag)
                    place = (
                        below(place, tag, attributes.get("id"), attributes.get("class"))
                        if attributes
                        else below(place, tag)
                    )
                node, zone = node.first_child, inner
                continue
        node = node.next
    blocks.end_block(kind, place, zone)


def _zone_within(
    node: LexborNode,
    tag: str,
    attributes: Mapping[str, str | None],
    zone: int,
    spare_frame: bool,
) -> int | None:
    """The zone of an element's children; None where the element is set aside."""
    zone |= _TAG_ZONES.get(tag, 0)
    if _TELLING.isdisjoint(attributes):
        if spare_frame or tag not in _FRAME_OR_EDGE:
            return zone
    elif is_hidden(attributes):
        return None
    elif attributes.get("role") == "main" or attributes.get("id") in _MAIN_IDS:
        zone |= _IN_MAIN
    return zone if spare_frame or not _is_frame(node, tag, attributes, zone) else None


def _is_frame(node: LexborNode, tag: str, attributes: Mapping[str, str | None], zone: int) -> bool:
    if tag in FRAME_TAGS or is_frame_role(attributes):
        return True
    # Not of a word in a sentence, such as a link that is styled as one of the menu.
    named = tag not in _INLINE_TAGS and is_frame_name(attributes.get("id"), attributes.get("class"))
    edge = tag in PAGE_EDGE_TAGS and not zone & (_IN_MAIN | _IN_ARTICLE)
    # A "menu-page" that holds the very article is not the menu.
    return (named or edge) and not node.css_matches(_PRINCIPAL)


def _selected(blocks: _Blocks) -> Blocks:
    """The blocks of the main element, or all but lists of links; never a stamp."""
    return blocks.chosen(_principal(blocks) or _without_link_lists(blocks))


def _principal(blocks: _Blocks) -> list[int]:
    """The blocks of the main element, or else of the articles, if they hold enough."""
    total = sum(map(len, blocks.texts))
    for zone, share in ((_IN_MAIN, _MAIN_SHARE), (_IN_ARTICLE, _ARTICLE_SHARE)):
        inside = [i for i, z in enumerate(blocks.zones) if z & zone]
        if inside and sum(len(blocks.texts[i]) for i in inside) >= share * total:
            return inside
    return []


def _without_link_lists(blocks: _Blocks) -> list[int]:
    kept: list[int] = []
    for is_link, run in groupby(range(len(blocks.texts)), key=blocks.links.__getitem__):
        stretch = list(run)
        if not is_link or len(stretch) < _LINK_LIST:
            kept += stretch
    return kept if len(kept) * 2 >= len(blocks.texts) else list(range(len(blocks.texts)))
