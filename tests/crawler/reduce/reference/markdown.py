"""The reference of :mod:`freshet.crawler.reduce.main_text`: what the core writes, in Python."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import chain
from string import ascii_lowercase
from typing import Final, TypeAlias

from freshet.crawler.reduce.cutting import pieces_at, pieces_of, rows_of, shows
from freshet.crawler.reduce.formulas import tex_of
from freshet.crawler.reduce.main_text import MOMENT, PERMALINKS
from freshet.crawler.reduce.media import medium_of
from freshet.crawler.reduce.pieces import HEADINGS, Piece
from freshet.crawler.reduce.tree import CONTROL, NAMES, TRAITS, UNSEEN, Tree
from freshet.crawler.urls import Base
from tests.crawler.reduce.reference.emphasis import ALL_MARKS, MARKS, emphasised

#: Lists and quotes deeper than this in each other are written at this level.
_INDENTS: Final = 8
_MOST_COLUMNS: Final = 100
_MOST_ROWS: Final = 1_000

_LISTS: Final = NAMES["lists"]
_ITEMS: Final = NAMES["items"]
_CODE: Final = NAMES["code"]
_LINES: Final = NAMES["lines"]
_LINE_NUMBERS: Final = NAMES["line_numbers"]
_BLOCK: Final = TRAITS["block"]
_APART: Final = TRAITS["apart"]
_TEX: Final = TRAITS["tex"]
#: Their elements in HTML.
_EMPHASIS: Final = {
    **dict.fromkeys(("b", "strong"), "strong"),
    **dict.fromkeys(("cite", "dfn", "em", "i", "var"), "em"),
    **dict.fromkeys(("del", "s", "strike"), "del"),
}


#: Markdown and HTML of the same content.
Written: TypeAlias = tuple[str, str]

_SPACES: Final = "\t\n\r\f\xa0"
#: Characters that would be taken for markup. Each is looked for by itself first, which is fast.
_MARKS: Final = re.compile(
    r"[\\`*\[\]_~<&](?:(?<=[\\`*\[\]])|(?<=_)(?:(?<!\w_)|(?!\w))|(?<=~)~|(?<=<)(?=[a-zA-Z/!?])"
    r"|(?<=&)(?=#?\w+;))"
)
#: Without one of these a text is written as it stands.
_SPECIAL: Final = re.compile(rf"[\\`*\[\]_~<>&\t\r\f{ALL_MARKS}]")
#: What a line of text may not begin with.
_STARTS: Final = re.compile(r"#{1,6}(?:\s|$)|[-+](?:\s|$)|>|={2,}|-{2,}")
_NUMBER: Final = re.compile(r"\d{1,9}(?=[.)](?:\s|$))")
_AROUND_BREAK: Final = re.compile(r"[ ]*\n[ ]*")
_AROUND_TAG: Final = re.compile(r" *<br> *")
_LANGUAGE: Final = re.compile(r"\b(?:language|lang|highlight(?:-source)?|brush:)[-: ]*([\w+#-]+)")
_LAZY: Final = ("data-src", "data-original", "data-lazy-src", "data-hi-res-src")
_SOURCE_SETS: Final = ("srcset", "data-srcset", "data-lazy-srcset")
#: URLs that are no place to go to.
_SCRIPTS: Final = ("javascript:", "vbscript:", "data:", "blob:", "about:")
#: What would be taken for a character reference in the target of a link.
_REFERENCE: Final = re.compile(r"&(?=#?\w+;)")
#: What stands around these, in both forms.
_AROUND: Final[Mapping[str, tuple[Written, Written]]] = {
    "q": (("\u201c", "<q>"), ("\u201d", "</q>")),
    "rt": (("(", "<rp>(</rp><rt>"), (")", "</rt><rp>)</rp>")),
    "sub": (("<sub>", "<sub>"), ("</sub>", "</sub>")),
    "sup": (("<sup>", "<sup>"), ("</sup>", "</sup>")),
}
#: Numbers of items that are no digits (HTML, section 4.4.5).
_LETTERS: Final = frozenset("aAiI")
#: No number of a line has so many.
_DIGITS: Final = 8
_MOST_LETTERS: Final = 4_000
_ROMAN: Final = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        "m cm d cd c xc l xl x ix v iv i".split(),
        strict=True,
    )
)
#: Code has no markup.
_SHOWN_IN_CODE: Final = {"br": "\n", "sub": "_", "sup": "^"}
#: Check boxes in both forms.
_BOXES: Final = {
    "☐": ("[ ]", '<input type="checkbox" disabled>'),
    "☑": ("[x]", '<input type="checkbox" checked disabled>'),
}
_ANY_MARK: Final = re.compile(f"[{ALL_MARKS}]")
#: What MediaWiki writes around each formula.
_STYLED: Final = re.compile(r"\{\\(?:display|text)style (.*)\}")
_DISPLAY: Final = re.compile(r"^block$|mode=display")


def plain_tex(tex: str) -> str:
    """Return TeX on one line, without the style that some tools put around all of it."""
    tex = " ".join(tex.split())
    return found[1] if (found := _STYLED.fullmatch(tex)) else tex


class MarkdownWriter:
    """Writer of the pieces of one tree; references of the page are relative to ``base``."""

    def __init__(self, tree: Tree, base: str) -> None:
        self._tree = tree
        self._base = Base(base)
        self._by_tag: dict[str, Callable[[int], Written]] = {
            **dict.fromkeys(_CODE, self._code),
            "a": self._anchor,
            "br": lambda _: ("\v", "<br>"),
            "img": self._image,
            "input": self._input,
            "math": self._formula,
            "ruby": self._ruby,
            **dict.fromkeys(NAMES["media"], self._medium),
            "textarea": self._lines,
            "time": self._time,
        }
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
        text, html = self.inline(piece.nodes)
        if piece.link is not None:
            text, html = self._linked((text, html), self.url(piece.link))
        if not text:
            return "", ""
        if piece.kind in HEADINGS:
            return f"{'#' * int(piece.kind[1])} {text}".replace("\n", " "), _in(piece.kind, html)
        return "  \n".join([_begun(line) for line in text.split("\n")]), _in("p", html)

    def _blocks(self, pieces: Iterable[Piece], level: int) -> list[tuple[str, Written]]:
        """Return kind and both forms of each piece in an item or a quote."""
        return [
            (piece.kind, written) for piece in pieces if (written := self.piece(piece, level))[0]
        ]

    def _quote(self, node: int, level: int) -> Written:
        blocks = [written for _, written in self._blocks(pieces_of(self._tree, node), level + 1)]
        text = "\n\n".join(text for text, _ in blocks)
        if level < _INDENTS:
            text = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        return (text, _in("blockquote", "".join(h for _, h in blocks))) if blocks else ("", "")

    def _list(self, node: int, level: int) -> Written:
        tree, tag = self._tree, self._tree.tag(node)
        elements = tree.elements(node)
        numbers = _numbers(tree, node, elements) if tag == "ol" else []
        said = tree.attribute_of(node, "type") or ""
        letters = said if numbers and said in _LETTERS else ""
        texts: list[str] = []
        htmls: list[str] = []
        last, sign = -1, "."
        for i, item in enumerate(elements):
            # A list in the place of an item.
            is_list = tree.tag(item) in _LISTS
            inner = pieces_at(tree, item) if is_list else pieces_of(tree, item)
            blocks = self._blocks(inner, level + 1) if shows(tree, item) else []
            if not blocks:
                continue
            mark, label = "- ", ""
            if letters:
                # Markdown has no such numbers.
                label = f"{_label(letters, numbers[i])}. "
            elif numbers:
                # Lists in Markdown count up from their first number; another sign begins another.
                if texts and numbers[i] != last + 1:
                    sign = ")" if sign == "." else "."
                last, mark = numbers[i], f"{numbers[i]}{sign} "
            texts.append(_item(tree.tag(item), blocks, mark, label, level))
            htmls.append(self._item(item, blocks))
        html = f"<{_opening(tree, node)}>{''.join(htmls)}</{tag}>"
        return ("\n".join(texts), html) if texts else ("", "")

    def _item(self, item: int, blocks: list[tuple[str, Written]]) -> str:
        """Return an item as HTML."""
        htmls = [html for _, (_, html) in blocks]
        if blocks[0][0] == "p" and all(kind == "list" for kind, _ in blocks[1:]):
            htmls[0] = htmls[0].removeprefix("<p>").removesuffix("</p>")
        tag = self._tree.tag(item)
        tag = tag if tag in _ITEMS else "li"
        value = _number(self._tree.attribute_of(item, "value"), -1)
        opening = f'{tag} value="{value}"' if value >= 0 else tag
        return f"<{opening}>{''.join(htmls)}</{tag}>"

    def _table(self, node: int) -> Written:
        tree, rows, html = self._tree, [], []
        # By column: how many of the next rows a cell above takes, too.
        taken = Counter[int]()
        for row in rows_of(tree, node):
            texts: list[str] = []
            cells = []
            for cell in tree.elements(row):
                _pass_over(taken, texts)
                blocks = [self.inline(piece.nodes) for piece in pieces_of(tree, cell)]
                text = " ".join(" ".join(text for text, _ in blocks).split())
                inner = "<br>".join(html for _, html in blocks if html)
                span = min(_number(tree.attribute_of(cell, "colspan"), 1), _MOST_COLUMNS)
                high = max(1, min(_number(tree.attribute_of(cell, "rowspan"), 1), _MOST_ROWS))
                if high > 1:
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
        if text == html and "\v" not in text:
            # There is no markup but that of HTML.
            text = _collapsed(text).strip()
            return text, text
        text, html = _collapsed(text), _collapsed(html).strip()
        if "\v" in text:
            text = _AROUND_BREAK.sub("\n", text.replace("\v", "\n"))
        text = emphasised(text)
        if "<br>" in html:
            html = _AROUND_TAG.sub("<br>", html).removesuffix("<br>").removeprefix("<br>")
        return text.strip(), html

    def _run(self, nodes: Iterable[int]) -> Written:
        name = self._tree.name
        texts: list[str] = []
        htmls: list[str] = []
        for node in nodes:
            text, html = self._element(node) if name[node] else self._text(node)
            if texts and text[:1] == "[" and texts[-1][-1:] == "!":
                # With a link behind it the sign would begin an image.
                texts[-1] = f"{texts[-1][:-1]}\\!"
            texts.append(text)
            htmls.append(html)
        return "".join(texts), "".join(htmls)

    def _text(self, node: int) -> Written:
        text = self._tree.text_of(node).replace("\n", " ")
        if not text.isascii():
            text = text.replace("\xa0", " ").replace("\xad", "")
        if not _SPECIAL.search(text):
            return text, text
        text = _spaced(_cleaned(text))
        return _escaped(text), escape(text, quote=False)

    def _inside(self, node: int) -> Written:
        """Return what is in an element, most often one text."""
        text = _only_text(self._tree, node)
        return self._text(text) if text else self._run(self._tree.children(node))

    def _element(self, node: int) -> Written:
        tree = self._tree
        name = tree.tag(node)
        if (special := self._by_tag.get(name)) is not None:
            return special(node)
        if tree.trait[node] & _TEX:
            return self._formula(node)
        written = self._inside(node)
        if name in _EMPHASIS:
            return _emphasis(_EMPHASIS[name], written)
        if name in _AROUND:
            return _wrapped(written, *_AROUND[name])
        # A block in a run, such as one in a heading, or a control.
        is_apart = tree.trait[node] & (_BLOCK | _APART)
        return (f" {written[0]} ", f" {written[1]} ") if is_apart else written

    def _anchor(self, node: int) -> Written:
        written = self._inside(node)
        is_permalink = written[0].strip() in PERMALINKS
        url = self.url(self._tree.attribute_of(node, "href"))
        return ("", "") if is_permalink else self._linked(written, url)

    def _ruby(self, node: int) -> Written:
        text, html = self._inside(node)
        return text, _in("ruby", html)

    def _input(self, node: int) -> Written:
        written = self._inside(node)
        text, html = _BOXES.get(written[0].strip(), written)
        return f" {text} ", f" {html} "

    def _lines(self, node: int) -> Written:
        """Return text that breaks its lines itself."""
        lines = [_spaced(line).strip() for line in self._verbatim(node).splitlines()]
        texts = [_escaped(_cleaned(line)) for line in lines if line]
        return "\v".join(texts), "<br>".join(escape(line, quote=False) for line in lines if line)

    def _formula(self, node: int) -> Written:
        """Return a formula as TeX between dollars."""
        tree = self._tree
        if tree.tag(node) == "math" and not tree.holds[node] & _TEX:
            tex = tex_of(tree, node)
        else:
            tex = plain_tex(self._verbatim(node))
        said = tree.attribute_of(node, "display") or tree.attribute_of(node, "type") or ""
        mark = "$$" if _DISPLAY.search(said) else "$"
        shown = f"{mark}{_cleaned(tex)}{mark}"
        return (shown, escape(shown, quote=False)) if tex else ("", "")

    def _time(self, node: int) -> Written:
        """Write a time; HTML has the one that a machine reads, too, which is compared."""
        text, html = self._inside(node)
        moment = self._tree.attribute_of(node, "datetime") or ""
        if html and MOMENT.fullmatch(moment):
            html = f'<time datetime="{escape(_spaced(moment).strip())}">{html}</time>'
        return text, html

    def _linked(self, written: Written, url: str | None) -> Written:
        # Links do not nest.
        if url is None or "<a " in written[1]:
            return written
        text = written[0].replace("\v", " ").replace("\n", " ")
        opening = f'<a href="{escape(url)}">'
        return _wrapped((text, written[1]), ("[", opening), (f"]({_target(url)})", "</a>"))

    def _image(self, node: int) -> Written:
        values = self._tree.attributes(node)
        sources = chain(
            (values.get(name, "") for name in ("src", *_LAZY)),
            (_first_source(values.get(name, "")) for name in _SOURCE_SETS),
        )
        url = self.url(next((s for s in sources if s and not s.startswith("data:")), None))
        if url is None or min(_number(values.get(side), 99) for side in ("width", "height")) < 3:
            return "", ""
        alt = " ".join(_cleaned(values.get("alt", "")).split())
        shown = _escaped(alt)
        return f"![{shown}]({_target(url)})", f'<img src="{escape(url)}" alt="{escape(alt)}">'

    def _medium(self, node: int) -> Written:
        url, label = medium_of(self._tree, node, lambda it: self.url(it) or "")
        label = _spaced(_cleaned(label))
        text, html = self._linked((_escaped(label), escape(label, quote=False)), url or None)
        return (f" {text} ", f" {html} ") if url else ("", "")

    def _verbatim(self, node: int) -> str:
        """Return the text of code as it stands, with line breaks."""
        if text := _only_text(self._tree, node):
            return self._tree.text_of(text)
        parts: list[str] = []
        tree, name, place = self._tree, self._tree.name, self._tree.place
        hides = (UNSEEN | CONTROL) & ~place[node]
        # Where the lines end that are elements.
        ends: list[int] = []
        at, stop = node + 1, tree.end[node]
        while at < stop:
            while ends and ends[-1] <= at:
                ends.pop()
                parts.append("\n")
            if place[at] & hides:
                at = tree.end[at]
            elif not name[at]:
                parts.append(tree.text_of(at))
                at += 1
            elif is_line_number(tree, at):
                at = tree.end[at]
            else:
                tag = tree.tag(at)
                if tag in _LINES:
                    ends.append(tree.end[at])
                elif tag in _SHOWN_IN_CODE:
                    parts.append(_SHOWN_IN_CODE[tag])
                at += 1
        return "".join(parts) + "\n" * len(ends)

    def _code(self, node: int) -> Written:
        text = " ".join(_ANY_MARK.sub("", self._verbatim(node)).split())
        fence = _fence(text, 1)
        space = " " if text.startswith("`") or text.endswith("`") else ""
        written = f"{fence}{space}{text}{space}{fence}", _in("code", escape(text, quote=False))
        return written if text else ("", "")

    def _code_block(self, node: int) -> Written:
        tree = self._tree
        text = self._verbatim(node).replace("\r\n", "\n").strip("\n").rstrip()
        if not text:
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
            url = self._base.resolve(reference) or ""
            follows = ":" in url and not url.startswith(_SCRIPTS)
            self._urls[reference] = url.replace(" ", "%20") if follows else None
        return self._urls[reference] if reference is not None else None


def _only_text(tree: Tree, node: int) -> int:
    """Return the text in an element if it has nothing else, or 0."""
    only = node + 1
    is_one = tree.end[node] == only + 1 and not tree.name[only]
    return only if is_one and tree.place[only] == tree.place[node] else 0


def _item(tag: str, blocks: list[tuple[str, Written]], mark: str, label: str, level: int) -> str:
    """Return an item as Markdown, its text behind a label."""
    text, indent = label + blocks[0][1][0], " " * len(mark)
    if tag == "dt" and "**" not in text:
        text = f"**{text}**"
    for kind, (more, _) in blocks[1:]:
        text += f"\n{more}" if kind == "list" else f"\n\n{more}"
    if tag == "dd":
        mark, indent = "  - ", "    "
    elif tag in _LISTS:
        mark = indent
    if level < _INDENTS and "\n" in text:
        text = text.replace("\n", f"\n{indent}").replace(f"\n{indent}\n", "\n\n")
    return mark + text


def _numbers(tree: Tree, node: int, elements: Sequence[int]) -> list[int]:
    """Return the numbers of the items of a list."""
    step = 1 if tree.attribute_of(node, "reversed") is None else -1
    following = _number(tree.attribute_of(node, "start"), 1 if step > 0 else len(elements))
    found: list[int] = []
    for item in elements:
        number = max(0, _number(tree.attribute_of(item, "value"), following))
        found.append(number)
        following = number + step
    return found


def _label(letters: str, number: int) -> str:
    """Return the number of an item in letters or Roman numerals, as the type of its list says."""
    if not 0 < number < _MOST_LETTERS:
        return str(number)
    found = ""
    if letters in "iI":
        for value, sign in _ROMAN:
            found += sign * (number // value)
            number %= value
    else:
        while number:
            number, digit = divmod(number - 1, 26)
            found = ascii_lowercase[digit] + found
    return found.upper() if letters.isupper() else found


def _opening(tree: Tree, node: int) -> str:
    """Return the tag of a list with what it says of its numbers."""
    said, start = tree.attribute_of(node, "type"), _number(tree.attribute_of(node, "start"), -1)
    says = f' type="{said}"' if said and said in _LETTERS else ""
    says += f' start="{start}"' if start >= 0 else ""
    if tree.attribute_of(node, "reversed") is not None:
        says += " reversed"
    return tree.tag(node) + says


def _escaped(text: str) -> str:
    """Return a text without markup; a function takes a third of the time of a template."""
    return _MARKS.sub(lambda mark: f"\\{mark[0]}", text)


def _cleaned(text: str) -> str:
    """Return a text of the page without soft hyphens and what stands for our marks."""
    return _ANY_MARK.sub("", text).replace("\xad", "")


def _spaced(text: str) -> str:
    """Return a text of the same length with a space in the place of each white space."""
    for space in _SPACES:
        text = text.replace(space, " ")
    return text


def _collapsed(text: str) -> str:
    """Return a text with one space in the place of several."""
    while "  " in text:
        text = text.replace("  ", " ")
    return text


def _begun(line: str) -> str:
    """Return a line of text that is not taken for the beginning of something else."""
    if line[:1].isalpha():
        return line
    if _STARTS.match(line):
        return f"\\{line}"
    if number := _NUMBER.match(line):
        return f"{number[0]}\\{line[number.end() :]}"
    return line


def _in(tag: str, html: str) -> str:
    return f"<{tag}>{html}</{tag}>"


def _target(url: str) -> str:
    """Return a URL as the target of a link in Markdown: parentheses that do not pair end it."""
    if "(" in url or ")" in url:
        depth = lowest = 0
        for character in url:
            depth += (character == "(") - (character == ")")
            lowest = min(lowest, depth)
        if depth or lowest:
            url = url.replace("(", r"\(").replace(")", r"\)")
    return url if "&" not in url else _REFERENCE.sub("&amp;", url)


def _first_source(said: str) -> str:
    """Return the first image of a set of sources."""
    return said.strip().split(",", 1)[0].split(" ", 1)[0]


def is_line_number(tree: Tree, node: int) -> bool:
    """Return whether an element in code is called the number of a line, and is a number."""
    if tree.chars[node] >= _DIGITS:
        return False
    text = tree.text_of(node).strip()
    if not (text.isascii() and text.isdecimal()):
        return False
    classes = (tree.attribute_of(node, "class") or "").lower().split()
    return not _LINE_NUMBERS.isdisjoint(classes)


def _pass_over(taken: Counter[int], texts: list[str]) -> None:
    """Add empty cells to a row up to the first column that no cell above takes."""
    while taken.get(len(texts)):
        taken[len(texts)] -= 1
        texts.append("")


def _number(text: str | None, default: int) -> int:
    digits = (text or "").strip()[:6]
    return int(digits) if digits.isascii() and digits.isdecimal() else default


def _emphasis(tag: str, written: Written) -> Written:
    if written[1].lstrip().startswith(f"<{tag}>"):
        return written
    begin, end = MARKS[tag][0], MARKS[tag][1]
    return _wrapped(written, (begin, f"<{tag}>"), (end, f"</{tag}>"))


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
    if "`" not in text:
        return "`" * least
    runs = re.findall("`+", text)
    return "`" * max(least, 1 + max(map(len, runs), default=0))
