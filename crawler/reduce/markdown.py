"""Elements as Markdown and as clean HTML: one recursion gives both.

:func:`body_of` builds a light tree of a parsed page, :func:`pieces_of` cuts it into pieces (a
paragraph, a heading, a list, a table, a code block, a quote, an image), and
:class:`MarkdownWriter` writes a piece. Markdown is CommonMark 0.31 with the tables and the
strikethrough of GitHub.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final, TypeAlias

from freshet.crawler.reduce.boilerplate import INVISIBLE_TAGS
from freshet.crawler.reduce.markup import (
    IGNORED,
    INCLUDED,
    MARK,
    VOID_TAGS,
    attributes_of,
    cut,
    plain,
)
from freshet.crawler.reduce.nesting import NAMES
from freshet.crawler.urls import resolve

#: Bounds recursion: what stands deeper is part of the element at this level.
_LEVELS: Final = 100
#: Lists and quotes deeper than this in each other are written at this level.
_INDENTS: Final = 8
_MOST_COLUMNS: Final = 100
_MOST_ROWS: Final = 1_000
#: Blocks of an item of a list, and characters of a cell of a table; beyond it is a layout.
_PARTS: Final = 6
_LONGEST_CELL: Final = 1_000
#: Characters of an item on the average; beyond it the list is one of comments or articles.
_LONGEST_ITEM: Final = 600

HEADINGS: Final = NAMES["headings"]
_LISTS: Final = NAMES["lists"]
_ITEMS: Final = NAMES["items"]
_BLOCKS: Final = NAMES["blocks"].union(HEADINGS, _LISTS, _ITEMS)
_LARGE: Final = NAMES["layouts"] | HEADINGS
_EMPHASIS: Final = {
    **dict.fromkeys(("b", "strong"), ("strong", "**")),
    **dict.fromkeys(("cite", "dfn", "em", "i", "var"), ("em", "*")),
    **dict.fromkeys(("del", "s", "strike"), ("del", "~~")),
}


@dataclass(slots=True, eq=False)
class Element:
    """An element with its texts and elements in order.

    ``chars`` counts the characters of its text without white space around runs, ``linked`` those
    of them in anchors; ``tags`` are the names of all elements in it.
    """

    tag: str
    attributes: Mapping[str, str]
    parent: Element | None
    children: list[Element | str] = field(default_factory=list)
    chars: int = 0
    linked: int = 0
    tags: set[str] = field(default_factory=set)

    @property
    def elements(self) -> list[Element]:
        """The elements directly in it."""
        return [child for child in self.children if isinstance(child, Element)]

    @property
    def is_block(self) -> bool:
        """True if it ends a run of text."""
        return self.tag in _BLOCKS or not self.tags.isdisjoint(_BLOCKS)


Node: TypeAlias = Element | str
#: Markdown and HTML of the same content.
Written: TypeAlias = tuple[str, str]


def body_of(html: str, *, selected: bool = False) -> Element:
    """Return the body of a document that Lexbor wrote, without what a reader never sees.

    Elements that are marked as ignored are left out. ``selected``: only those that are marked as
    included stay, also where they stand in ignored ones, as in the text that is compared.
    """
    tree = _Tree(selected)
    columns = iter(cut(html)[1:])
    for tag, text in zip(columns, columns, strict=True):
        name = tag.partition(" ")[0]
        if tag.startswith("/"):
            tree.end(tag[1:])
        elif name == "body":
            tree.start_body(attributes_of(name, tag))
        elif name[:1] not in {"!", "?"}:
            tree.start(name, attributes_of(name, tag))
        if text and not tree.dropped:
            shown = plain(text)
            tree.opened[-1].children.append(shown)
            tree.opened[-1].chars += len(shown.strip())
    while len(tree.opened) > 1:
        _close(tree.opened.pop(), tree.opened[-1])
    return tree.opened[0]


class _Tree:
    """The open elements of a body that is built; ``dropped`` counts the last ones, if left out.

    Of the included element that is open, ``_around`` counts those around it (-1 of the body), and
    ``_outside`` how many of them are left out.
    """

    def __init__(self, selected: bool) -> None:
        self._selected = selected
        self.opened, self._names = [Element("body", {}, None)], ["body"]
        self.dropped = int(selected)
        self._around = self._outside = 0

    def _is_included(self, attributes: Mapping[str, str]) -> bool:
        return self._selected and not self._around and attributes.get(MARK) == INCLUDED

    def start_body(self, attributes: Mapping[str, str]) -> None:
        # In the head there is no content but what is included.
        body = self.opened[0] if self._selected else Element("body", {}, None)
        body.attributes = attributes
        self.opened, self._names = [body], ["body"]
        self._around = -1 if self._around or self._is_included(attributes) else 0
        self.dropped = int(self._selected and not self._around)

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        node, is_root = self.opened[-1], self._is_included(attributes)
        hides = name in INVISIBLE_TAGS and not (name == "button" and node.tag in HEADINGS)
        hides = not is_root and (hides or attributes.get(MARK) == IGNORED)
        if is_root:
            # Words of two that are included are not one.
            node = Element("div", {}, self.opened[0])
            self.opened[0].children.append(node)
            if name not in VOID_TAGS:
                self._around, self._outside = len(self.opened), self.dropped
                self.dropped = 0
        if is_root or not (self.dropped or hides or len(self.opened) > _LEVELS):
            child = Element(name, attributes, node)
            node.children.append(child)
            node.tags.add(name)
            node = child
        if name not in VOID_TAGS:
            self.opened.append(node)
            self._names.append(name)
            self.dropped += self.dropped > 0 or hides

    def end(self, name: str) -> None:
        if len(self._names) > 1 and self._names[-1] == name:
            _close(self.opened.pop(), self.opened[-1])
            self._names.pop()
            self.dropped -= self.dropped > 0
            if self._around == len(self.opened):
                self._around, self.dropped = 0, self._outside


def _close(node: Element, parent: Element) -> None:
    """Add what an element holds to its parent, unless they are one (below the last level)."""
    if node is not parent:
        parent.chars += node.chars
        parent.linked += node.chars if node.tag == "a" else node.linked
        parent.tags |= node.tags


# -- pieces ------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Piece:
    """A run of text, or one element, that is kept or left out as a whole.

    ``kind`` is the tag of what is written, ``p`` for any run of text; ``holder`` is the element, or
    the block in which the run stands.
    """

    kind: str
    nodes: Sequence[Node]
    holder: Element
    link: str | None = None


def pieces_of(node: Element, link: str | None = None) -> Iterator[Piece]:
    """Yield the pieces in a block, in order."""
    if node.tag == "a":
        link = node.attributes.get("href") or link
    run: list[Node] = []
    for child in (*node.children, None):
        is_block = isinstance(child, Element) and child.is_block
        if child is not None and not is_block and not _breaks_twice(child, run):
            run.append(child)
            continue
        if run:
            if any(map(_shows, run)):
                yield Piece("p", run, node, link)
            run = []
        if isinstance(child, Element) and is_block:
            yield from _of_block(child, link)


def _of_block(node: Element, link: str | None) -> Iterator[Piece]:
    tag = node.tag
    is_whole = tag == "pre" or tag in HEADINGS
    if _LARGE.isdisjoint(node.tags):
        is_whole |= tag == "blockquote" or (tag == "table" and _is_table(node))
        is_whole |= tag in _LISTS and _is_list(node)
    if not is_whole:
        yield from pieces_of(node, link)
    elif _shows(node):
        yield Piece("list" if tag in _LISTS else tag, [node], node, link)


def _shows(node: Node) -> bool:
    if isinstance(node, str):
        return not node.isspace()
    return node.chars > 0 or node.tag == "img" or "img" in node.tags


def _breaks_twice(node: Node, run: list[Node]) -> bool:
    """Return whether the node is a line break after another one: they part paragraphs."""
    if isinstance(node, str) or node.tag != "br":
        return False
    last = next((n for n in reversed(run) if not isinstance(n, str) or not n.isspace()), None)
    return isinstance(last, Element) and last.tag == "br"


def _is_list(node: Element) -> bool:
    """Return whether a list is one to a reader: its items are no parts of the page's layout."""
    items = node.elements
    return node.chars <= _LONGEST_ITEM * len(items) and all(
        sum(part.is_block for part in item.elements) <= _PARTS for item in items
    )


def _is_table(node: Element) -> bool:
    """Return whether a table holds data: rows and columns of short cells."""
    rows = [row.elements for row in _rows(node)]
    return (
        node.attributes.get("role") != "presentation"
        and len(rows) > 1
        and max(map(len, rows)) > 1
        and max(cell.chars for row in rows for cell in row) <= _LONGEST_CELL
    )


def _rows(node: Element) -> Iterator[Element]:
    for child in node.elements:
        if child.tag == "tr":
            yield child
        elif child.tag in {"thead", "tbody", "tfoot"}:
            yield from _rows(child)


# -- writing -----------------------------------------------------------------

_SPACES: Final = re.compile(r"[ \t\n\r\f\xa0]+")
#: Characters that would be taken for markup, anywhere and at the beginning of a line.
_MARKS: Final = re.compile(r"[\\`*\[\]]|(?<!\w)_|_(?!\w)|~~|<(?=[a-zA-Z/!?])|&(?=#?\w+;)")
_STARTS: Final = re.compile(r"^(?=#{1,6}(?:\s|$)|[-+](?:\s|$)|>|={2,}|-{2,})", re.MULTILINE)
_NUMBER: Final = re.compile(r"^(\d{1,9})(?=[.)](?:\s|$))", re.MULTILINE)
_AROUND_BREAK: Final = re.compile(r"[ ]*\n[ ]*")
_AROUND_TAG: Final = re.compile(r" *<br> *")
_PERMALINKS: Final = frozenset({"", "#", "¶", "§", "🔗", "⚓", "\uf0c1"})
_LANGUAGE: Final = re.compile(r"\b(?:language|lang|highlight(?:-source)?|brush:)[-: ]*([\w+#-]+)")
_LAZY: Final = ("data-src", "data-original", "data-lazy-src", "data-hi-res-src")


class MarkdownWriter:
    """Writer of the pieces of one page, whose references are relative to ``base``."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._urls: dict[str, str | None] = {}

    def piece(self, piece: Piece, level: int = 0) -> Written:
        """Return a piece in both forms, both empty if nothing is left of it."""
        node = piece.nodes[0]
        if isinstance(node, Element):
            match piece.kind:
                case "pre":
                    return _code_block(node)
                case "list":
                    return self._list(node, level)
                case "table":
                    return self._table(node)
                case "blockquote":
                    return self._quote(node, level)
        text, html = self._linked(self.inline(piece.nodes), self.url(piece.link))
        if not text:
            return "", ""
        if piece.kind in HEADINGS:
            return f"{'#' * int(piece.kind[1])} {text}".replace("\n", " "), _in(piece.kind, html)
        text = _NUMBER.sub(r"\1\\", _STARTS.sub(r"\\", text))
        return text.replace("\n", "  \n"), _in("p", html)

    def _blocks(self, node: Element, level: int) -> list[tuple[str, Written]]:
        """Return kind and both forms of each piece in an item, a quote or a cell."""
        found = ((piece.kind, self.piece(piece, level)) for piece in pieces_of(node))
        return [(kind, written) for kind, written in found if written[0]]

    def _quote(self, node: Element, level: int) -> Written:
        blocks = [written for _, written in self._blocks(node, level + 1)]
        text = "\n\n".join(text for text, _ in blocks)
        if level < _INDENTS:
            text = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        return (text, _in("blockquote", "".join(h for _, h in blocks))) if blocks else ("", "")

    def _list(self, node: Element, level: int) -> Written:
        texts, items = [], []
        number = _number(node.attributes.get("start"), 1)
        for item in filter(_shows, node.elements):
            tag = item.tag if item.tag in _ITEMS else "li"
            outer = Element("div", {}, None, [item], tags={"div"}) if item.tag in _LISTS else item
            blocks = self._blocks(outer, level + 1)
            if not blocks:
                continue
            htmls = [html for _, (_, html) in blocks]
            if blocks[0][0] == "p" and all(kind == "list" for kind, _ in blocks[1:]):
                htmls[0] = htmls[0].removeprefix("<p>").removesuffix("</p>")
            items.append(_in(tag, "".join(htmls)))
            mark = f"{number}. " if node.tag == "ol" else "- "
            number += 1
            text = blocks[0][1][0]
            if tag == "dt":
                text = f"**{text}**"
            for kind, (more, _) in blocks[1:]:
                text += f"\n{more}" if kind == "list" else f"\n\n{more}"
            indent = " " * len(mark)
            if tag == "dd":
                mark, indent = "  - ", "    "
            elif item.tag in _LISTS:
                mark = indent
            if level < _INDENTS:
                text = text.replace("\n", f"\n{indent}").replace(f"\n{indent}\n", "\n\n")
            texts.append(mark + text)
        return ("\n".join(texts), _in(node.tag, "".join(items))) if items else ("", "")

    def _table(self, node: Element) -> Written:
        rows, html = [], []
        # By column: how many of the next rows a cell above takes, too.
        taken = Counter[int]()
        for row in _rows(node):
            texts: list[str] = []
            cells = []
            for cell in row.elements:
                _pass_over(taken, texts)
                blocks = [self.inline(piece.nodes) for piece in pieces_of(cell)]
                text = " ".join(" ".join(text for text, _ in blocks).split())
                inner = "<br>".join(html for _, html in blocks if html)
                span = min(_number(cell.attributes.get("colspan"), 1), _MOST_COLUMNS)
                high = max(1, min(_number(cell.attributes.get("rowspan"), 1), _MOST_ROWS))
                columns = range(len(texts), min(len(texts) + span, _MOST_COLUMNS))
                taken.update(dict.fromkeys(columns, high - 1))
                texts += [text.replace("|", "\\|"), *[""] * (span - 1)]
                spans = (("colspan", span), ("rowspan", high))
                size = "".join(f' {name}="{count}"' for name, count in spans if count > 1)
                tag = "th" if cell.tag == "th" else "td"
                cells.append(f"<{tag}{size}>{inner}</{tag}>")
            _pass_over(taken, texts)
            if any(texts):
                rows.append(texts[:_MOST_COLUMNS])
                html.append(_in("tr", "".join(cells)))
        if not rows:
            return "", ""
        rows[0] += [""] * (max(map(len, rows)) - len(rows[0]))
        lines = [f"| {' | '.join(row)} |" for row in rows]
        lines.insert(1, "|" + " --- |" * len(rows[0]))
        for caption in [each for each in node.elements if each.tag == "caption"][:1]:
            text, inner = self.inline(caption.children)
            if text:
                lines[:0] = [text, ""]
                html[:0] = [_in("caption", inner)]
        return "\n".join(lines), _in("table", "".join(html))

    def inline(self, nodes: Iterable[Node]) -> Written:
        """Return a run in both forms, without white space around it."""
        text, html = self._run(nodes)
        text = _AROUND_BREAK.sub("\n", _SPACES.sub(" ", text).replace("\v", "\n"))
        html = _AROUND_TAG.sub("<br>", _SPACES.sub(" ", html)).strip()
        return text.strip(), html.removesuffix("<br>").removeprefix("<br>")

    def _run(self, nodes: Iterable[Node]) -> Written:
        texts, htmls = [], []
        for node in nodes:
            if isinstance(node, str):
                text = _SPACES.sub(" ", node)
                html = escape(text, quote=False)
                text = _MARKS.sub(r"\\\g<0>", text)
            else:
                text, html = self._inner(node)
            texts.append(text)
            htmls.append(html)
        return "".join(texts), "".join(htmls)

    def _inner(self, node: Element) -> Written:
        if node.tag == "br":
            return "\v", "<br>"
        if node.tag == "img":
            return self._image(node)
        if node.tag in NAMES["code"]:
            return _code(node)
        written = self._run(node.children)
        if node.tag == "a":
            url = self.url(node.attributes.get("href"))
            is_permalink = written[0].strip() in _PERMALINKS
            return ("", "") if is_permalink else self._linked(written, url)
        if node.tag in _EMPHASIS:
            tag, mark = _EMPHASIS[node.tag]
            if written[1].lstrip().startswith(f"<{tag}>"):
                return written
            return _wrapped(written, (mark, f"<{tag}>"), (mark, f"</{tag}>"))
        if node.tag in {"sub", "sup"}:
            return written[0], _in(node.tag, written[1])
        # A block in a run, such as one in a heading.
        return (f" {written[0]} ", f" {written[1]} ") if node.tag in _BLOCKS else written

    def _linked(self, written: Written, url: str | None) -> Written:
        # Links do not nest.
        if url is None or "<a " in written[1]:
            return written
        text = written[0].replace("\v", " ").replace("\n", " ")
        opening = f'<a href="{escape(url)}">'
        return _wrapped((text, written[1]), ("[", opening), (f"]({_target(url)})", "</a>"))

    def _image(self, node: Element) -> Written:
        values = node.attributes
        sources = (values.get(name, "") for name in ("src", *_LAZY))
        url = self.url(next((s for s in sources if s and not s.startswith("data:")), None))
        if url is None or min(_number(values.get(side), 99) for side in ("width", "height")) < 3:
            return "", ""
        alt = " ".join(values.get("alt", "").split())
        shown = _MARKS.sub(r"\\\g<0>", alt)
        return f"![{shown}]({_target(url)})", f'<img src="{escape(url)}" alt="{escape(alt)}">'

    def url(self, reference: str | None) -> str | None:
        """Return the absolute URL of a reference that a reader can follow."""
        if reference is not None and reference not in self._urls:
            url = resolve(reference, self._base) or ""
            follows = url.startswith(("http:", "https:", "mailto:", "tel:"))
            self._urls[reference] = url.replace(" ", "%20") if follows else None
        return self._urls[reference] if reference is not None else None


def _in(tag: str, html: str) -> str:
    return f"<{tag}>{html}</{tag}>"


def _target(url: str) -> str:
    return url.replace("(", "%28").replace(")", "%29")


def _pass_over(taken: Counter[int], texts: list[str]) -> None:
    """Add empty cells to a row up to the first column that no cell above takes."""
    while taken[len(texts)]:
        taken[len(texts)] -= 1
        texts.append("")


def _number(text: str | None, default: int) -> int:
    digits = (text or "").strip()[:6]
    return int(digits) if digits.isascii() and digits.isdecimal() else default


def _wrapped(written: Written, before: Written, after: Written) -> Written:
    """Return both forms between marks, which stand at words, not at white space."""
    return tuple(  # type: ignore[return-value]
        f"{text[: len(text) - len(text.lstrip())]}{start}{inner}{end}{text[len(text.rstrip()) :]}"
        if (inner := text.strip())
        else text
        for text, start, end in zip(written, before, after, strict=True)
    )


def _verbatim(node: Element) -> Iterator[str]:
    """Yield the text of code as it stands, with line breaks."""
    for child in node.children:
        if isinstance(child, str):
            yield child
        elif child.tag == "br":
            yield "\n"
        else:
            yield from _verbatim(child)
            if child.tag in NAMES["lines"]:
                yield "\n"


def _fence(text: str, least: int) -> str:
    runs = re.findall("`+", text)
    return "`" * max(least, 1 + max(map(len, runs), default=0))


def _code(node: Element) -> Written:
    text = " ".join("".join(_verbatim(node)).split())
    fence = _fence(text, 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    written = f"{fence}{space}{text}{space}{fence}", _in("code", escape(text, quote=False))
    return written if text else ("", "")


def _code_block(node: Element) -> Written:
    text = "".join(_verbatim(node)).replace("\r\n", "\n").strip("\n").rstrip()
    lines = text.split()
    # The numbers of another block's lines are no code.
    if lines == [str(i + 1) for i in range(len(lines))] and lines != ["1"]:
        return "", ""
    holders = (node, *node.elements, node.parent or node)
    found = (_LANGUAGE.search(each.attributes.get("class", "")) for each in holders)
    language = next((match[1] for match in found if match), "")
    fence = _fence(text, 3)
    return (
        f"{fence}{language}\n{text}\n{fence}",
        f"<pre><code>{escape(text, quote=False)}</code></pre>",
    )
