"""The text of clean HTML, as :mod:`.markdown` writes it, for readers and programs without markup.

What markup alone says is written with signs: 10^2, quotation marks, ticked boxes.
"""

import re
from html import unescape
from typing import Final

#: A block without other markup, such as most headings.
_PLAIN: Final = re.compile(r"<(h[1-6]|p)>([^<\n]*)</\1>")
_CELLS: Final = re.compile(r"<t[dh]\b.*?</t[dh]>", re.DOTALL)
_CELL_ENDS: Final = re.compile(r"</t[dh]>(?=<t)")
_ROW_ENDS: Final = re.compile(r"<br>|</(?:li|dt|dd|tr|caption)>|(?<!^)<(?:ul|ol|dl)\b[^>]*>")
_BLOCK_ENDS: Final = re.compile(r"</(?:p|h[1-6]|ul|ol|dl|table|pre|blockquote)>")
_TAGS: Final = re.compile(r"<[^>]*>")
_LINE_ENDS: Final = re.compile(r"[ \t]+\n")
_QUOTES: Final = re.compile(r"<(/?)q>")
_BOXES: Final = re.compile(r'<input type="checkbox"( checked)? disabled> ?')
_FRACTIONS: Final = re.compile(r"(\d?)<sup>(\d+)</sup>\s*[/\u2044\u2215]\s*<sub>(\d+)</sub>(?!\w)")
_SUPERSCRIPTS: Final = re.compile(r"(.?)<sup>((?:(?!</?su[bp]>).)*)</sup>(?=(\w?))", re.DOTALL)
_SUBSCRIPTS: Final = re.compile(r"(.?)<sub>((?:(?!</?su[bp]>).)*)</sub>(?=(\w?))", re.DOTALL)
_BLANKS: Final = re.compile(r"\n{3,}")


def plain_text(html: str) -> str:
    """Return the text of blocks: these are paragraphs, rows are lines, cells end with a tab."""
    if (plain := _PLAIN.fullmatch(html)) is not None:
        return unescape(plain[2]).strip()
    html = _QUOTES.sub(lambda quote: "\u201d" if quote[1] else "\u201c", html)
    html = _BOXES.sub(lambda box: "☑ " if box[1] else "☐ ", html)
    if "<su" in html:
        html = _SUBSCRIPTS.sub(_subscript, _SUPERSCRIPTS.sub(_superscript, _fractions(html)))
    one_line = _CELLS.sub(lambda cell: cell[0].replace("<br>", " "), html)
    lines = _ROW_ENDS.sub("\n", _CELL_ENDS.sub("\t", one_line))
    text = unescape(_TAGS.sub("", _BLOCK_ENDS.sub("\n\n", lines)))
    return _BLANKS.sub("\n\n", _LINE_ENDS.sub("\n", text)).strip()


def _fractions(html: str) -> str:
    """Return markup with "1/2" in the place of fractions made of a superscript and a subscript."""
    return _FRACTIONS.sub(lambda it: f"{it[1]}{' ' if it[1] else ''}{it[2]}/{it[3]}", html)


def _superscript(found: re.Match[str]) -> str:
    """Return a superscript with a sign before it, but for "1st" and for notes that are [1]."""
    before, inner, behind = found.groups()
    text = _TAGS.sub("", inner).strip()
    is_ordinal = before.isdecimal() and text.isalpha() and len(text) < 4
    if not text or is_ordinal or text.startswith("["):
        return f"{before}{inner}"
    return f"{before}^{_joined(text, inner, behind)}"


def _subscript(found: re.Match[str]) -> str:
    """Return a subscript with a sign before it, but for "H2O"."""
    before, inner, behind = found.groups()
    text = _TAGS.sub("", inner).strip()
    if not text or (before.isalpha() and text.isdecimal() and not behind.isdecimal()):
        return f"{before}{inner}"
    return f"{before}_{_joined(text, inner, behind)}"


def _joined(text: str, inner: str, behind: str) -> str:
    """Return a script in brackets, or with a space before a letter behind it."""
    if text.startswith("(") or not text.replace(".", "").replace("-", "").isalnum():
        return inner if text.startswith("(") else f"({inner})"
    return f"{inner} " if behind else inner
