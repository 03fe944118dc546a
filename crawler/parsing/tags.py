"""What a tag says, understood once for every different tag.

The pages of a site repeat each other's tags by the thousand. What a start tag means for the
links, the head and the main text of a page depends on nothing but its own text, and so it is
worked out at its first sight and remembered by that text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from sys import intern
from typing import Final, NamedTuple

from freshet.crawler.parsing.blocks import BlockKind, kind_of, named
from freshet.crawler.parsing.boilerplate import (
    FRAME_TAGS,
    INVISIBLE_TAGS,
    PAGE_EDGE_TAGS,
    is_frame_name,
    is_frame_role,
    is_hidden,
)
from freshet.crawler.parsing.references import reference
from freshet.crawler.parsing.selectors import IGNORED, MARK
from freshet.crawler.urls import reference_head

# What the walk for the main text does at a tag; 0 is nothing.
PASS: Final = 0
OPEN: Final = 1
CLOSE: Final = 2
#: Blocks end at a void element of their level, such as ``br``.
BREAK: Final = 3
#: Leave the element out.
SKIP: Final = 4
#: Leave it out unless it holds the main text; ``EDGE``: or stands in it.
NAMED: Final = 5
EDGE: Final = 6

# Zones: where a block stands. Bits, so that they are inherited by a single "or".
IN_MAIN: Final = 1
IN_ARTICLE: Final = 2
IN_LINK: Final = 4
IN_LIST: Final = 8
IN_TABLE: Final = 16
_ZONES: Final[dict[str, int]] = {
    "main": IN_MAIN,
    "article": IN_ARTICLE,
    **dict.fromkeys(("ul", "ol"), IN_LIST),
    # What a table, a definition or a sentence says is content, even where it is linked.
    **dict.fromkeys(("td", "th", "dt", "dd", "p", "pre"), IN_TABLE),
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), IN_TABLE),
}

#: Void elements (HTML, section 13.1.2 and, for the old ones, 13.3): they have no end tag.
_VOID: Final = frozenset(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source "
    "track wbr".split()
)
_INLINE: Final = frozenset(
    {
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn"),
        *("em", "font", "i", "img", "ins", "kbd", "mark", "nobr", "q", "rb", "rp", "rt", "rtc"),
        *("ruby", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt"),
        *("u", "var", "wbr"),
    }
)
_MAIN_IDS: Final = frozenset({"main", "main-content", "maincontent", "content"})
#: Elements that say something about the whole page; of the last two the ends do, too.
_PAGE_TAGS: Final = frozenset({"html", "body", "title", "svg", "noscript"})
_ENCLOSING: Final = frozenset({"svg", "noscript"})

_ATTRIBUTE: Final = re.compile(r'\s(\S[^\s=]*)="([^"]*)"')
#: Without one of these in its tag an inline element is nothing but text, or a link.
_TELLING: Final = ("hidden", "role=", MARK)
_NO_ATTRIBUTES: Final[Mapping[str, str]] = {}
#: Tags are remembered up to this number, at some 300 bytes each.
_REMEMBERED: Final = 20_000


class Tag(NamedTuple):
    """A start tag, or an end tag (``ends``) with the name of its element.

    ``step`` is what the walk for the main text does here, ``spared`` what it does where the
    frame counts; ``kind``, ``zone`` and ``place`` (as :func:`freshet.crawler.parsing.blocks.named`
    says) are those of an element at block level; ``holds_main`` says that it is by its own
    words the main element; ``tells`` that it says something about the page; ``link`` is what
    :func:`freshet.crawler.parsing.references.reference` says. The ``attributes`` are not kept of
    elements of which nothing else is asked.
    """

    name: str
    ends: bool = False
    step: int = PASS
    spared: int = PASS
    kind: BlockKind = BlockKind.TEXT
    zone: int = 0
    place: int = 0
    holds_main: bool = False
    tells: bool = False
    link: tuple[str, str] | None = None
    attributes: Mapping[str, str] = _NO_ATTRIBUTES

    @property
    def is_void(self) -> bool:
        """Whether the element has no content, and no end tag."""
        return self.name in _VOID


_ANCHOR: Final = Tag("a")
_WORDS_ONLY: Final = {name: Tag(intern(name)) for name in _INLINE - {"a", "img"}}


class _Tags(dict[str, Tag]):
    """Tags by their text between the brackets."""

    def __missing__(self, text: str) -> Tag:
        name = text.partition(" ")[0]
        if name in _INLINE and not any(word in text for word in _TELLING):
            tag = _WORDS_ONLY.get(name) or _inline(name, text)
        else:
            tag = _end(text[1:]) if text.startswith("/") else _start(name, text)
        self[text] = tag
        return tag


_TAGS: Final = _Tags()


def understood(texts: list[str]) -> list[Tag]:
    """The tags of a document, given as what stands between their brackets."""
    if len(_TAGS) > _REMEMBERED:
        _TAGS.clear()
    return list(map(_TAGS.__getitem__, texts))


def _end(name: str) -> Tag:
    name = intern(name)
    step = PASS if name in _INLINE or name in INVISIBLE_TAGS else CLOSE
    return Tag(name, ends=True, step=step, spared=step, tells=name in _ENCLOSING)


def _inline(name: str, text: str) -> Tag:
    """A link or an image; most of all different tags are links."""
    if name == "img":
        return Tag("img", attributes=_attributes(name, text))
    _, leads, rest = text.partition(' href="')
    if not leads:
        return _ANCHOR
    target = rest[: rest.index('"')]
    if "&" in target:
        target = unescape(target)
    if " rel=" in text:
        link = reference("a", {**_attributes(name, text), "href": target})
    else:
        link = reference_head(target), ""
    return Tag("a", False, PASS, PASS, BlockKind.TEXT, 0, 0, False, True, link)


def _attributes(name: str, text: str) -> Mapping[str, str]:
    if len(text) == len(name):
        return _NO_ATTRIBUTES
    found = dict(_ATTRIBUTE.findall(text, len(name)))
    return _unescaped(found) if "&" in text else found


def _unescaped(attributes: Mapping[str, str]) -> dict[str, str]:
    return {key: unescape(value) for key, value in attributes.items()}


def _start(name: str, text: str) -> Tag:
    name = intern(name)
    attributes = _attributes(name, text)
    link = reference(name, attributes)
    inline = name in _INLINE
    holds_main = not inline and (name in {"main", "article"} or _is_named_main(attributes))
    spared = _spared(name, attributes)
    return Tag(
        name,
        step=spared if spared in {PASS, SKIP} else _step(name, attributes, spared, holds_main),
        spared=spared,
        kind=kind_of(name),
        zone=_ZONES.get(name, 0) | (IN_MAIN if _is_named_main(attributes) else 0),
        place=0 if inline else named(name, attributes.get("id"), attributes.get("class")),
        holds_main=holds_main,
        tells=link is not None or name in _PAGE_TAGS or _is_of_head(name, attributes),
        link=link,
        attributes=attributes,
    )


def _is_of_head(name: str, attributes: Mapping[str, str]) -> bool:
    return (name in {"base", "link"} and "href" in attributes) or (
        name == "meta" and "content" in attributes
    )


def _is_named_main(attributes: Mapping[str, str]) -> bool:
    return attributes.get("role") == "main" or attributes.get("id") in _MAIN_IDS


def _spared(name: str, attributes: Mapping[str, str]) -> int:
    """The step where the frame is spared: only what no reader sees is left out."""
    if name in INVISIBLE_TAGS or is_hidden(attributes) or attributes.get(MARK) == IGNORED:
        return PASS if name in _VOID else SKIP
    if name in _INLINE or name[:1] in {"!", "?"}:
        return PASS
    return BREAK if name in _VOID else OPEN


def _step(name: str, attributes: Mapping[str, str], spared: int, holds_main: bool) -> int:
    if spared == BREAK:
        return spared
    if name in FRAME_TAGS or is_frame_role(attributes):
        return SKIP
    # Not of a word in a sentence, such as a link that is styled as one of the menu.
    if holds_main or name in _INLINE:
        return spared
    if is_frame_name(attributes.get("id"), attributes.get("class")):
        return NAMED
    return EDGE if name in PAGE_EDGE_TAGS else spared
