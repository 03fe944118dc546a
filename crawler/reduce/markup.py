"""A parsed document as two columns: its tags, and the text after each of them.

Serialising a tree costs less than a tenth of walking over its nodes, gives well-formed markup
whatever the page was, and two calls cut it into tags and texts.

Lexbor writes "<" and ">" as references in texts and attribute values, so each one belongs to a
tag. Exceptions are comments and raw text (HTML, section 13.3), which are taken out, and names
that contain a "<".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from html import escape, unescape
from sys import intern
from typing import Final, Literal, NamedTuple, TypeAlias

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from freshet.crawler.reduce.boilerplate import (
    FRAME_TAGS,
    INVISIBLE_TAGS,
    PAGE_EDGE_TAGS,
    is_frame_name,
    is_frame_role,
    is_hidden,
)
from freshet.crawler.reduce.nesting import NAMES
from freshet.crawler.urls import origin, reference_head

# -- blocks ------------------------------------------------------------------
# A place is a hash of the path of block-level elements above a block, each by its tag and its
# meaningful id and classes. Ordinals are no part of it: the rows of a table share a place,
# and a row that is added moves none of the others. Places are stored and compared over years;
# nothing here depends on Python's ``hash`` or the platform.

#: Version of the main text of given bytes. Raise it with every change that alters the text or the
#: blocks of some page: texts of two versions are never compared.
TEXT_VERSION: Final = "4"


#: The kind of a block according to its markup.
BlockKind: TypeAlias = Literal["heading", "paragraph", "item", "cell", "text"]


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


#: The place of the body element itself; 0 stands for "not known" in old sketches.
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


def named(tag: str, element_id: str | None, classes: str | None) -> int:
    """Return 64 bits for an element's name: its tag and its meaningful id and classes."""
    tokens = {t for t in classes.split() if _tells(t)} - _PASSING if classes else ()
    own_id = element_id if element_id and tag not in _LEAVES and _tells(element_id) else ""
    return _hashed(f"{tag}#{own_id}.{'.'.join(sorted(tokens))}")


@lru_cache(maxsize=4096)
def _hashed(name: str) -> int:
    return int.from_bytes(
        blake2b(name.encode("utf-8", "replace"), digest_size=8).digest(), "little"
    )


def _tells(token: str) -> bool:
    """Return whether a person chose the name; one with digits counts, or a tool made it."""
    return _DIGIT.search(token) is None


# -- selectors ---------------------------------------------------------------

#: The attribute that marks selected elements in the tree, and its values.
MARK: Final = "data-freshet"
INCLUDED: Final = "included"
IGNORED: Final = "ignored"


@dataclass(frozen=True, slots=True)
class SelectorHints:
    """CSS selectors for the pages of one site; ValueError names one that is not valid.

    ``include``: on a page that has such elements, they are the whole main text. ``ignore``:
    such elements and their descendants are never part of it.
    """

    include: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for selector in (*self.include, *self.ignore):
            try:
                LexborHTMLParser("<p>").css(selector)
            except SelectolaxError as error:
                raise ValueError(f"{selector!r} is not a valid CSS selector") from error

    def mark(self, tree: LexborHTMLParser) -> bool:
        """Mark each element that a selector matches; return whether one matches ``include``."""
        found = False
        for verdict, selectors in ((INCLUDED, self.include), (IGNORED, self.ignore)):
            for node in tree.css(", ".join(selectors)) if selectors else ():
                node.attrs[MARK] = verdict
                found = found or verdict == INCLUDED
        return found


NO_HINTS: Final = SelectorHints()


def site_hints(
    include: Mapping[str, tuple[str, ...]], ignore: Mapping[str, tuple[str, ...]]
) -> dict[str, SelectorHints]:
    """Return the hints by host name, given the user's lists of selectors by host name.

    Raises:
        ValueError: a selector is not valid; it is named with its site.
    """
    wanted, unwanted = ({n.lower(): each for n, each in of.items()} for of in (include, ignore))
    found = {}
    for name in wanted | unwanted:
        try:
            found[name] = SelectorHints(wanted.get(name, ()), unwanted.get(name, ()))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return found


def hints_of(url: str, by_name: Mapping[str, SelectorHints]) -> SelectorHints:
    """Return the hints of a page's host, or of its nearest parent domain."""
    name = origin(url).host if by_name else ""
    while name and name not in by_name:
        name = name.partition(".")[2]
    return by_name.get(name, NO_HINTS)


# -- references --------------------------------------------------------------

#: Relations by which a page or a feed names its hub, and itself as the hub knows it.
HUB_RELATIONS: Final = frozenset({"hub", "self"})
_PAGE_TYPES: Final = frozenset({"", "text/html", "application/xhtml+xml"})
#: The attribute of each linking element that holds the reference.
_LEADING: Final = {"a": "href", "area": "href", "link": "href", "iframe": "src", "frame": "src"}


def relations(attributes: Mapping[str, str]) -> list[str]:
    """Return the distinct tokens of a rel attribute, lower-case and sorted."""
    return sorted(set(attributes.get("rel", "").lower().split()))


def is_feed(attributes: Mapping[str, str]) -> bool:
    """Return whether a ``link`` element names a feed (RSS autodiscovery, Atom, JSON Feed)."""
    tokens = relations(attributes)
    return "feed" in tokens or (
        "alternate" in tokens and _media_type(attributes) in NAMES["feed_types"]
    )


def reference(name: str, attributes: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the URL reference and the relations of an element, if it leads to a page.

    Without the fragment, so that the parts of a page are one link.
    """
    target = attributes.get(_LEADING.get(name, ""))
    if target is None:
        return None
    target = reference_head(target)
    if name in {"iframe", "frame"}:
        return target, ""
    tokens = relations(attributes) if "rel" in attributes else []
    if name == "link" and (
        NAMES["navigable"].isdisjoint(tokens)
        or "stylesheet" in tokens
        or _media_type(attributes) not in _PAGE_TYPES
    ):
        return None
    return target, " ".join(tokens)


def _media_type(attributes: Mapping[str, str]) -> str:
    return attributes.get("type", "").partition(";")[0].strip().lower()


# -- tags --------------------------------------------------------------------
# The pages of a site repeat each other's tags by the thousand: the meaning of a tag is worked out
# once and remembered by its text.

# Actions of the main-text walk at a tag; 0 is nothing.
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
#: Leave it out unless elements that are not shown hold most of the page's text.
HIDDEN: Final = 7

# Zones: where a block stands. Bits, so that they are inherited by a single "or".
IN_MAIN: Final = 1
IN_ARTICLE: Final = 2
IN_LINK: Final = 4
IN_LIST: Final = 8
IN_TABLE: Final = 16
IN_TITLE: Final = 32
_ZONES: Final[dict[str, int]] = {
    "main": IN_MAIN,
    "article": IN_ARTICLE,
    **dict.fromkeys(("ul", "ol"), IN_LIST),
    # A table, a definition or a sentence is content, even where it is linked.
    **dict.fromkeys(("td", "th", "dt", "dd", "p", "pre"), IN_TABLE),
    **dict.fromkeys(("h2", "h3", "h4", "h5", "h6"), IN_TABLE),
    "h1": IN_TABLE | IN_TITLE,
}

VOID_TAGS: Final = NAMES["void"]
_INLINE: Final = NAMES["inline"]
#: Elements about the whole page; for the last two the end tags count, too.
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

    ``step`` is the action of the main-text walk here, ``spared`` its action where frame counts
    as content; ``kind``, ``zone`` and ``place`` (see :func:`named`) are those of a block-level
    element; ``holds_main``: the markup declares it the main element; ``tells``: it says something
    about the page; ``link`` is the result of :func:`reference`. ``attributes`` are kept only where
    a later step reads them.
    """

    name: str
    ends: bool = False
    step: int = PASS
    spared: int = PASS
    kind: BlockKind = "text"
    zone: int = 0
    place: int = 0
    holds_main: bool = False
    tells: bool = False
    link: tuple[str, str] | None = None
    attributes: Mapping[str, str] = _NO_ATTRIBUTES


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


def _end(name: str) -> Tag:
    name = intern(name)
    step = PASS if name in _INLINE or name in INVISIBLE_TAGS else CLOSE
    return Tag(name, ends=True, step=step, spared=step, tells=name in _ENCLOSING)


def _inline(name: str, text: str) -> Tag:
    """Return the tag of a link or an image; most of all distinct tags are links."""
    if name == "img":
        return Tag("img", attributes=attributes_of(name, text))
    _, leads, rest = text.partition(' href="')
    if not leads:
        return _ANCHOR
    target = rest[: rest.index('"')]
    if "&" in target:
        target = unescape(target)
    if " rel=" in text:
        link = reference("a", {**attributes_of(name, text), "href": target})
    else:
        link = reference_head(target), ""
    return Tag("a", tells=True, link=link)


def attributes_of(name: str, text: str) -> Mapping[str, str]:
    """Return the attributes of a start tag, given its name and the text between its brackets."""
    if len(text) == len(name):
        return _NO_ATTRIBUTES
    found = dict(_ATTRIBUTE.findall(text, len(name)))
    return {key: unescape(value) for key, value in found.items()} if "&" in text else found


def _start(name: str, text: str) -> Tag:
    name = intern(name)
    attributes = attributes_of(name, text)
    link = reference(name, attributes)
    inline = name in _INLINE
    is_main = attributes.get("role") == "main" or attributes.get("id") in NAMES["main_ids"]
    holds_main = not inline and (name in {"main", "article"} or is_main)
    is_of_head = (name in {"base", "link"} and "href" in attributes) or (
        name == "meta" and "content" in attributes
    )
    spared = step = _spared(name, attributes)
    # Also of a word in a sentence, such as a link that is styled as one of the menu.
    if spared == OPEN:
        if name in FRAME_TAGS or is_frame_role(attributes):
            step = SKIP
        elif not holds_main and is_frame_name(attributes.get("id"), attributes.get("class")):
            step = NAMED
        elif not holds_main and name in PAGE_EDGE_TAGS:
            step = EDGE
    return Tag(
        name,
        step=step,
        spared=spared,
        kind=kind_of(name),
        zone=_ZONES.get(name, 0) | (IN_MAIN if is_main else 0),
        place=0 if inline else named(name, attributes.get("id"), attributes.get("class")),
        holds_main=holds_main,
        tells=link is not None or name in _PAGE_TAGS or is_of_head,
        link=link,
        attributes=attributes,
    )


def _spared(name: str, attributes: Mapping[str, str]) -> int:
    """Return the step where the frame is spared: only hidden text is left out."""
    if name in INVISIBLE_TAGS or attributes.get(MARK) == IGNORED:
        return PASS if name in VOID_TAGS else SKIP
    if name == "noscript" or is_hidden(attributes):
        return PASS if name in VOID_TAGS else HIDDEN
    if name in _INLINE or name[:1] in {"!", "?"}:
        return PASS
    return BREAK if name in VOID_TAGS else OPEN


_TAG: Final = re.compile("<([^>]*)>")
_COMMENT: Final = "<!--"
_UNMARKED: Final = re.compile(
    "<!--|<(?:s(?:cript|tyle)|xmp|iframe|no(?:embed|frames)|plaintext)(?=[ >])"
)
_SCRIPT: Final = re.compile(r"<(/?)script[\t\n\f\r />]", re.IGNORECASE)
#: An address that Cloudflare hides from machines: its bytes, each combined with the first one.
_HIDDEN_ADDRESS: Final = re.compile(
    r'(<[^<>]*\sdata-cfemail="([0-9a-f]{2})((?:[0-9a-f]{2})+)"[^<>]*>)[^<]*'
)
#: Raw-text elements whose text is shown to readers.
_SHOWN: Final = frozenset({"<xmp", "<plaintext"})


@dataclass(frozen=True, slots=True)
class Markup:
    """Columns of equal length: ``texts[i]`` stands after ``tags[i]``, with references in it."""

    tags: list[Tag]
    texts: list[str]

    def end(self, i: int) -> int:
        """Return the index of the end tag of the element at ``i``, or ``i`` if it is void."""
        name, depth, last = self.tags[i].name, 1, len(self.tags) - 1
        if name in VOID_TAGS:
            return i
        if name == "body":
            return next(j for j in range(last, -1, -1) if j == 0 or self.tags[j].name == name)
        for j in range(i + 1, len(self.tags)):
            other = self.tags[j]
            if other.name == name:
                depth += -1 if other.ends else 1
                if depth == 0:
                    return j
        return last

    def text(self, i: int) -> str:
        """Return all text in the element that begins at ``i``."""
        return plain("".join(self.texts[i : self.end(i)]))


def read(html: str) -> Markup:
    """Cut a document that Lexbor wrote into its columns; templates are left empty."""
    if len(_TAGS) > _REMEMBERED:
        _TAGS.clear()
    pieces = cut(html)
    markup = Markup(list(map(_TAGS.__getitem__, pieces[1::2])), pieces[2::2])
    return _without_templates(markup) if "<template" in html else markup


def cut(html: str) -> list[str]:
    """Return the texts and, between them, what stands between the brackets of the tags."""
    html = "".join(_without_raw_text(html))
    if "data-cfemail" in html:
        html = _HIDDEN_ADDRESS.sub(_with_address, html)
    pieces = html.replace(">", "<").split("<")
    return pieces if 2 * html.count(">") + 1 == len(pieces) else _TAG.split(html)


def _with_address(found: re.Match[str]) -> str:
    """Return the tag and the address that a script would write in place of the text.

    The same page comes with and without this protection, and the text hides which address changed.
    """
    key = int(found[2], 16)
    address = bytes(byte ^ key for byte in bytes.fromhex(found[3]))
    return found[1] + escape(address.decode("utf-8", "replace"), quote=False)


def plain(text: str) -> str:
    """Return a text without references: Lexbor writes four of them."""
    if "&" not in text:
        return text
    text = text.replace("&nbsp;", "\xa0").replace("&lt;", "<").replace("&gt;", ">")
    return text.replace("&amp;", "&")


def _without_raw_text(html: str) -> Iterator[str]:
    """Yield the pieces of the document between comments and raw texts."""
    kept = 0
    while found := _UNMARKED.search(html, kept):
        start, end = _cut(html, found[0], found.start())
        yield html[kept:start]
        if found[0] in _SHOWN:
            yield escape(html[start:end], quote=False)
        kept = end
    yield html[kept:]


def _cut(html: str, mark: str, at: int) -> tuple[int, int]:
    """Return the span to remove: a whole comment, or the text of an element."""
    if mark == _COMMENT:
        end = html.find("-->", at)
        return at, end + 3 if end >= 0 else len(html)
    start = html.find(">", at) + 1
    end = html.find(f"</{mark[1:]}>", start)
    # HTML, section 13.2.5.17: script data double escape.
    while mark == "<script" and end >= 0 and _is_inner_script(html[start:end]):
        end = html.find("</script>", end + 1)
    return start, end if end >= 0 else len(html)


def _is_inner_script(before: str) -> bool:
    """Return whether the end tag after this text closes a script in a comment in the script."""
    opened = before.rfind(_COMMENT)
    # The dashes that open a comment may be those that close it.
    if opened < 0 or "-->" in before[opened + 2 :]:
        return False
    ends = [match[1] == "/" for match in _SCRIPT.finditer(before, opened)]
    return bool(2 * sum(ends) < len(ends))


def _without_templates(markup: Markup) -> Markup:
    left, resume = Markup([], []), 0
    for i, tag in enumerate(markup.tags):
        if i >= resume:
            if tag.name == "template" and not tag.ends:
                resume = markup.end(i)
            left.tags.append(tag)
            left.texts.append("" if resume > i else markup.texts[i])
    return left
