"""Elements as Markdown and as clean HTML: one recursion gives both.

:func:`pieces_of` cuts the tree of a page into pieces (a paragraph, a heading, a list, a table, a
code block, a quote, an image), and :class:`MarkdownWriter` writes a piece. Markdown is CommonMark
0.31 with the tables and the strikethrough of GitHub.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, TypeAlias

from freshet.crawler.reduce.nesting import NAMES
from freshet.crawler.reduce.tree import TRAITS, UNSEEN, Tree
from freshet.crawler.urls import resolve

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
_CODE: Final = NAMES["code"]
_LINES: Final = NAMES["lines"]
_BLOCK: Final = TRAITS["block"]
_LARGE: Final = TRAITS["large"]
_IMAGE: Final = TRAITS["image"]
_EMPHASIS: Final = {
    **dict.fromkeys(("b", "strong"), ("strong", "**")),
    **dict.fromkeys(("cite", "dfn", "em", "i", "var"), ("em", "*")),
    **dict.fromkeys(("del", "s", "strike"), ("del", "~~")),
}


#: Markdown and HTML of the same content.
Written: TypeAlias = tuple[str, str]


# -- pieces ------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Piece:
    """A run of text, or one element, that is kept or left out as a whole: its nodes in a tree.

    ``kind`` is the tag of what is written, ``p`` for any run of text; ``holder`` is the element, or
    the block in which the run stands.
    """

    kind: str
    nodes: Sequence[int]
    holder: int
    link: str | None = None


def pieces_of(tree: Tree, node: int) -> list[Piece]:
    """Return the pieces in a block, in order."""
    found: list[Piece] = []
    _cut(tree, tree.children(node), node, None, found)
    return found


def pieces_at(tree: Tree, node: int) -> list[Piece]:
    """Return the piece that a node is, or the pieces in it, in order."""
    found: list[Piece] = []
    _cut(tree, [node], tree.body, None, found)
    return found


def _cut(
    tree: Tree, nodes: Iterable[int], holder: int, link: str | None, found: list[Piece]
) -> None:
    """Add the pieces of these nodes, which are in a block."""
    if tree.tag(holder) == "a":
        link = tree.attribute_of(holder, "href") or link
    trait, holds = tree.trait, tree.holds
    run: list[int] = []
    for node in nodes:
        is_block = (trait[node] | holds[node]) & _BLOCK
        if not is_block and not _breaks_twice(tree, node, run):
            run.append(node)
            continue
        if any(shows(tree, each) for each in run):
            found.append(Piece("p", run, holder, link))
        run = []
        if is_block and shows(tree, node):
            _cut_block(tree, node, link, found)
    if any(shows(tree, each) for each in run):
        found.append(Piece("p", run, holder, link))


def _cut_block(tree: Tree, node: int, link: str | None, found: list[Piece]) -> None:
    tag = tree.tag(node)
    is_whole = tag == "pre" or tag in HEADINGS
    if not is_whole and not tree.holds[node] & _LARGE:
        is_whole = (
            tag == "blockquote"
            or (tag == "table" and _is_table(tree, node))
            or (tag in _LISTS and _is_list(tree, node))
        )
    if is_whole:
        found.append(Piece("list" if tag in _LISTS else tag, [node], node, link))
    else:
        _cut(tree, tree.children(node), node, link, found)


def shows(tree: Tree, node: int) -> bool:
    """Return whether there is a word or an image in a node."""
    return tree.chars[node] > 0 or bool((tree.trait[node] | tree.holds[node]) & _IMAGE)


def _breaks_twice(tree: Tree, node: int, run: list[int]) -> bool:
    """Return whether the node is a line break after another one: they part paragraphs."""
    if not run or tree.tag(node) != "br":
        return False
    last = next((each for each in reversed(run) if tree.name[each] or tree.chars[each]), None)
    return last is not None and tree.tag(last) == "br"


def _is_list(tree: Tree, node: int) -> bool:
    """Return whether a list is one to a reader: its items are no parts of the page's layout."""
    items, trait, holds = tree.elements(node), tree.trait, tree.holds
    return tree.chars[node] <= _LONGEST_ITEM * len(items) and all(
        sum(bool((trait[part] | holds[part]) & _BLOCK) for part in tree.children(item)) <= _PARTS
        for item in items
    )


def _is_table(tree: Tree, node: int) -> bool:
    """Return whether a table holds data: rows and columns of short cells."""
    rows = [tree.elements(row) for row in _rows(tree, node)]
    return (
        tree.attribute_of(node, "role") != "presentation"
        and len(rows) > 1
        and max(map(len, rows)) > 1
        and max(tree.chars[cell] for row in rows for cell in row) <= _LONGEST_CELL
    )


def _rows(tree: Tree, node: int) -> Iterator[int]:
    for child in tree.elements(node):
        tag = tree.tag(child)
        if tag == "tr":
            yield child
        elif tag in {"thead", "tbody", "tfoot"}:
            yield from _rows(tree, child)


# -- writing -----------------------------------------------------------------

_SPACES: Final = "\t\n\r\f\xa0"
#: Characters that would be taken for markup. Each is looked for by itself first, which is fast.
_MARKS: Final = re.compile(
    r"[\\`*\[\]_~<&](?:(?<=[\\`*\[\]])|(?<=_)(?:(?<!\w_)|(?!\w))|(?<=~)~|(?<=<)(?=[a-zA-Z/!?])"
    r"|(?<=&)(?=#?\w+;))"
)
#: What a line of text may not begin with.
_STARTS: Final = re.compile(r"#{1,6}(?:\s|$)|[-+](?:\s|$)|>|={2,}|-{2,}")
_NUMBER: Final = re.compile(r"\d{1,9}(?=[.)](?:\s|$))")
_AROUND_BREAK: Final = re.compile(r"[ ]*\n[ ]*")
_AROUND_TAG: Final = re.compile(r" *<br> *")
_PERMALINKS: Final = frozenset({"", "#", "¶", "§", "🔗", "⚓", "\uf0c1"})
_LANGUAGE: Final = re.compile(r"\b(?:language|lang|highlight(?:-source)?|brush:)[-: ]*([\w+#-]+)")
_LAZY: Final = ("data-src", "data-original", "data-lazy-src", "data-hi-res-src")


class MarkdownWriter:
    """Writer of the pieces of one tree; references of the page are relative to ``base``."""

    def __init__(self, tree: Tree, base: str) -> None:
        self._tree = tree
        self._base = base
        self._urls: dict[str, str | None] = {}

    def piece(self, piece: Piece, level: int = 0) -> Written:
        """Return a piece in both forms, both empty if nothing is left of it."""
        node = piece.nodes[0]
        match piece.kind:
            case "pre":
                return self._code_block(node)
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
        return "  \n".join(map(_begun, text.split("\n"))), _in("p", html)

    def _blocks(self, pieces: Iterable[Piece], level: int) -> list[tuple[str, Written]]:
        """Return kind and both forms of each piece in an item or a quote."""
        found = ((piece.kind, self.piece(piece, level)) for piece in pieces)
        return [(kind, written) for kind, written in found if written[0]]

    def _quote(self, node: int, level: int) -> Written:
        blocks = [written for _, written in self._blocks(pieces_of(self._tree, node), level + 1)]
        text = "\n\n".join(text for text, _ in blocks)
        if level < _INDENTS:
            text = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        return (text, _in("blockquote", "".join(h for _, h in blocks))) if blocks else ("", "")

    def _list(self, node: int, level: int) -> Written:
        tree, texts, items = self._tree, [], []
        list_tag = tree.tag(node)
        number = _number(tree.attribute_of(node, "start"), 1)
        for item in tree.elements(node):
            if not shows(tree, item):
                continue
            tag, is_list = tree.tag(item), tree.tag(item) in _LISTS
            # A list in the place of an item.
            inner = pieces_at(tree, item) if is_list else pieces_of(tree, item)
            blocks = self._blocks(inner, level + 1)
            if not blocks:
                continue
            htmls = [html for _, (_, html) in blocks]
            if blocks[0][0] == "p" and all(kind == "list" for kind, _ in blocks[1:]):
                htmls[0] = htmls[0].removeprefix("<p>").removesuffix("</p>")
            items.append(_in(tag if tag in _ITEMS else "li", "".join(htmls)))
            mark = f"{number}. " if list_tag == "ol" else "- "
            number += 1
            text = blocks[0][1][0]
            if tag == "dt":
                text = f"**{text}**"
            for kind, (more, _) in blocks[1:]:
                text += f"\n{more}" if kind == "list" else f"\n\n{more}"
            indent = " " * len(mark)
            if tag == "dd":
                mark, indent = "  - ", "    "
            elif is_list:
                mark = indent
            if level < _INDENTS:
                text = text.replace("\n", f"\n{indent}").replace(f"\n{indent}\n", "\n\n")
            texts.append(mark + text)
        return ("\n".join(texts), _in(list_tag, "".join(items))) if items else ("", "")

    def _table(self, node: int) -> Written:
        tree, rows, html = self._tree, [], []
        # By column: how many of the next rows a cell above takes, too.
        taken = Counter[int]()
        for row in _rows(tree, node):
            texts: list[str] = []
            cells = []
            for cell in tree.elements(row):
                _pass_over(taken, texts)
                blocks = [self.inline(piece.nodes) for piece in pieces_of(tree, cell)]
                text = " ".join(" ".join(text for text, _ in blocks).split())
                inner = "<br>".join(html for _, html in blocks if html)
                span = min(_number(tree.attribute_of(cell, "colspan"), 1), _MOST_COLUMNS)
                high = max(1, min(_number(tree.attribute_of(cell, "rowspan"), 1), _MOST_ROWS))
                columns = range(len(texts), min(len(texts) + span, _MOST_COLUMNS))
                taken.update(dict.fromkeys(columns, high - 1))
                texts += [text.replace("|", "\\|"), *[""] * (span - 1)]
                spans = (("colspan", span), ("rowspan", high))
                size = "".join(f' {name}="{count}"' for name, count in spans if count > 1)
                tag = "th" if tree.tag(cell) == "th" else "td"
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
        for caption in [it for it in tree.elements(node) if tree.tag(it) == "caption"][:1]:
            text, inner = self.inline(tree.children(caption))
            if text:
                lines[:0] = [text, ""]
                html[:0] = [_in("caption", inner)]
        return "\n".join(lines), _in("table", "".join(html))

    def inline(self, nodes: Iterable[int]) -> Written:
        """Return a run in both forms, without white space around it."""
        text, html = self._run(nodes)
        text, html = _spaced(text), _spaced(html).strip()
        if "\v" in text:
            text = _AROUND_BREAK.sub("\n", text.replace("\v", "\n"))
        if "<br>" in html:
            html = _AROUND_TAG.sub("<br>", html).removesuffix("<br>").removeprefix("<br>")
        return text.strip(), html

    def _run(self, nodes: Iterable[int]) -> Written:
        tree, texts, htmls = self._tree, [], []
        for node in nodes:
            if not tree.name[node]:
                text = tree.text_of(node)
                html = escape(text, quote=False)
                text = _MARKS.sub(r"\\\g<0>", text)
            else:
                text, html = self._inner(node)
            texts.append(text)
            htmls.append(html)
        return "".join(texts), "".join(htmls)

    def _inner(self, node: int) -> Written:
        tree = self._tree
        name = tree.tag(node)
        if name == "br":
            return "\v", "<br>"
        if name == "img":
            return self._image(node)
        if name in _CODE:
            return self._code(node)
        written = self._run(tree.children(node))
        if name == "a":
            url = self.url(tree.attribute_of(node, "href"))
            is_permalink = written[0].strip() in _PERMALINKS
            return ("", "") if is_permalink else self._linked(written, url)
        if name in _EMPHASIS:
            tag, mark = _EMPHASIS[name]
            if written[1].lstrip().startswith(f"<{tag}>"):
                return written
            return _wrapped(written, (mark, f"<{tag}>"), (mark, f"</{tag}>"))
        if name in {"sub", "sup"}:
            return written[0], _in(name, written[1])
        # A block in a run, such as one in a heading.
        is_block = tree.trait[node] & _BLOCK
        return (f" {written[0]} ", f" {written[1]} ") if is_block else written

    def _linked(self, written: Written, url: str | None) -> Written:
        # Links do not nest.
        if url is None or "<a " in written[1]:
            return written
        text = written[0].replace("\v", " ").replace("\n", " ")
        opening = f'<a href="{escape(url)}">'
        return _wrapped((text, written[1]), ("[", opening), (f"]({_target(url)})", "</a>"))

    def _image(self, node: int) -> Written:
        values = self._tree.attributes(node)
        sources = (values.get(name, "") for name in ("src", *_LAZY))
        url = self.url(next((s for s in sources if s and not s.startswith("data:")), None))
        if url is None or min(_number(values.get(side), 99) for side in ("width", "height")) < 3:
            return "", ""
        alt = " ".join(values.get("alt", "").split())
        shown = _MARKS.sub(r"\\\g<0>", alt)
        return f"![{shown}]({_target(url)})", f'<img src="{escape(url)}" alt="{escape(alt)}">'

    def _verbatim(self, node: int) -> str:
        """Return the text of code as it stands, with line breaks."""
        tree, parts = self._tree, list[str]()
        # Where the lines end that are elements.
        ends: list[int] = []
        at, stop = node + 1, tree.end[node]
        while at < stop:
            while ends and ends[-1] <= at:
                ends.pop()
                parts.append("\n")
            if tree.place[at] & UNSEEN:
                at = tree.end[at]
                continue
            if not tree.name[at]:
                parts.append(tree.text_of(at))
            elif (tag := tree.tag(at)) == "br":
                parts.append("\n")
            elif tag in _LINES:
                ends.append(tree.end[at])
            at += 1
        return "".join(parts) + "\n" * len(ends)

    def _code(self, node: int) -> Written:
        text = " ".join(self._verbatim(node).split())
        fence = _fence(text, 1)
        space = " " if text.startswith("`") or text.endswith("`") else ""
        written = f"{fence}{space}{text}{space}{fence}", _in("code", escape(text, quote=False))
        return written if text else ("", "")

    def _code_block(self, node: int) -> Written:
        tree = self._tree
        text = self._verbatim(node).replace("\r\n", "\n").strip("\n").rstrip()
        lines = text.split()
        # The numbers of another block's lines are no code.
        if lines == [str(i + 1) for i in range(len(lines))] and lines != ["1"]:
            return "", ""
        holders = (node, *tree.elements(node), tree.parent[node])
        found = (_LANGUAGE.search(tree.attribute_of(each, "class") or "") for each in holders)
        language = next((match[1] for match in found if match), "")
        fence = _fence(text, 3)
        return (
            f"{fence}{language}\n{text}\n{fence}",
            f"<pre><code>{escape(text, quote=False)}</code></pre>",
        )

    def url(self, reference: str | None) -> str | None:
        """Return the absolute URL of a reference that a reader can follow."""
        if reference is not None and reference not in self._urls:
            url = resolve(reference, self._base) or ""
            follows = url.startswith(("http:", "https:", "mailto:", "tel:"))
            self._urls[reference] = url.replace(" ", "%20") if follows else None
        return self._urls[reference] if reference is not None else None


def _spaced(text: str) -> str:
    """Return a text with one space in the place of each white space."""
    for space in _SPACES:
        text = text.replace(space, " ")
    while "  " in text:
        text = text.replace("  ", " ")
    return text


def _begun(line: str) -> str:
    """Return a line of text that is not taken for the beginning of something else."""
    if _STARTS.match(line):
        return f"\\{line}"
    if number := _NUMBER.match(line):
        return f"{number[0]}\\{line[number.end() :]}"
    return line


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
    return (_between(before[0], written[0], after[0]), _between(before[1], written[1], after[1]))


def _between(start: str, text: str, end: str) -> str:
    inner = text.strip()
    if len(inner) == len(text):
        return f"{start}{text}{end}" if text else text
    begin = len(text) - len(text.lstrip())
    behind = begin + len(inner)
    return f"{text[:begin]}{start}{inner}{end}{text[behind:]}" if inner else text


def _fence(text: str, least: int) -> str:
    runs = re.findall("`+", text)
    return "`" * max(least, 1 + max(map(len, runs), default=0))
