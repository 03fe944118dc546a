"""XML: XHTML by XML's own rules, any other file by its values.

XHTML is written as HTML, which is treated like every page. In other XML each text and each
attribute is a block ``name: value``, its place the path of elements to it. Namespaces, comments,
instructions, declarations, white space and the order of attributes do not matter. A page that is
not well-formed is read as HTML, as users expect; in other files stray ampersands and control
characters are mended first.

No document type reaches the parser: it knows the entities of HTML alone, so that entities neither
grow nor are fetched.
"""

import re
from collections.abc import Sequence
from html import escape
from html.entities import html5
from io import BytesIO
from typing import Final
from unicodedata import normalize
from xml.parsers import expat

from freshet.crawler.fetch.responses import media_type
from freshet.crawler.reduce.blocks import ROOT, Blocks, below
from freshet.crawler.reduce.charset import decode
from freshet.crawler.reduce.formats import MOST_VALUES, Body
from freshet.crawler.reduce.formats.plain import of_text
from freshet.crawler.reduce.formats.values import as_blocks
from freshet.crawler.reduce.tree import NAMES

_XHTML_TYPE: Final = "application/xhtml+xml"
_XHTML: Final = "http://www.w3.org/1999/xhtml"
#: Elements of these are written by their names alone; elements without a namespace are XHTML.
_SHOWN: Final = frozenset(
    {"", _XHTML, "http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"}
)

# -- text for the parser -----------------------------------------------------

#: Comments, CDATA and instructions, which are not changed; document types; references to
#: entities; stray ampersands; characters that XML never has. Each alternative is tried
#: once, so that no input makes the match go back.
_TOKENS: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|(<\?xml\s.*?(?:\?>|\Z))|<\?.*?(?:\?>|\Z)"
    r"|(<!DOCTYPE\b[^<>\[]*+(?>(?:\[.*?(?:\]\s*+(?=>)|\Z))?)>?)"
    r"|&([A-Za-z][A-Za-z0-9]*+);|(&)(?!\#(?:[0-9]+|x[0-9A-Fa-f]+);)"
    "|([\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff])",
    re.DOTALL,
)
_OF_XML: Final = frozenset({"amp", "lt", "gt", "quot", "apos"})


def _prepared(text: str, *, mends: bool) -> bytes:
    """Return a text as UTF-8, without declarations, and with characters for HTML's entities."""
    read = _mended if mends else _understood
    return _TOKENS.sub(read, text.lstrip("\ufeff \t\r\n")).encode("utf-8", "replace")


def _understood(token: re.Match[str]) -> str:
    """Return the replacement of a declaration, or of an entity that HTML knows."""
    declaration, doctype, name = token.group(1, 2, 3)
    if declaration or doctype:
        return ""
    if name and name not in _OF_XML and (meant := html5.get(f"{name};")):
        return "".join(f"&#{ord(each)};" for each in meant)
    return token[0]


def _mended(token: re.Match[str]) -> str:
    """Return a token as understood; parts that XML does not allow are escaped or dropped."""
    whole, understood = token[0], _understood(token)
    if understood != whole:
        return understood
    name, ampersand, control = token.group(3, 4, 5)
    if ampersand or (name and name not in _OF_XML):
        return f"&amp;{whole[1:]}"
    return "" if control else whole


# -- readers -----------------------------------------------------------------


class _NoXhtml(Exception):
    """The root element is not an element of XHTML."""


class _TooMany(Exception):
    """The file has more values than are compared."""


class _Values:
    """Gathers the values of a file."""

    def __init__(self) -> None:
        self.found: list[tuple[str, int]] = []
        #: Names and places of the open elements.
        self._opened: list[tuple[str, int]] = [("", ROOT)]
        self._text: list[str] = []
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.ordered_attributes = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text.append
        self.parse = parser.Parse

    def _start(self, name: str, attributes: Sequence[str]) -> None:
        self._close_text()
        name = name.rpartition(":")[2]
        place = below(self._opened[-1][1], name)
        self._opened.append((name, place))
        # Their order has no meaning (XML, section 3.1).
        for key, value in sorted(zip(attributes[::2], attributes[1::2], strict=True)):
            local = key.rpartition(":")[2]
            if not (key.startswith("xmlns") or local in _DECLARING):
                self._add(local, value, below(place, f"@{local}"))

    def _end(self, _name: str) -> None:
        self._close_text()
        self._opened.pop()

    def _close_text(self) -> None:
        if self._text:
            text = "".join(self._text)
            self._text.clear()
            if not text.isspace():
                self._add(self._opened[-1][0], text, self._opened[-1][1])

    def _add(self, name: str, value: str, place: int) -> None:
        if len(self.found) == MOST_VALUES:
            raise _TooMany
        self.found.append((normalize("NFC", " ".join(f"{name}: {value}".split())), place))


#: Attributes that name the schema of a file.
_DECLARING: Final = frozenset({"schemaLocation", "noNamespaceSchemaLocation"})

#: Elements of HTML without elements in them; with contents that are not content; with text that
#: ends only at their end tag; with a first line break that does not count.
_TEXTS: Final = frozenset({"title", "textarea"})
_DROPPED: Final = frozenset({"iframe", "noembed", "noframes"})
_RAW: Final = frozenset({"script", "style"})
_VERBATIM: Final = {"xmp": "pre", "plaintext": "pre", "listing": "pre"}
_LINED: Final = frozenset({"pre", "textarea"})
_TAG: Final = re.compile(r"[A-Za-z][^\s/>]*")


class _Html:
    """Writes XHTML as HTML that has the same elements."""

    def __init__(self, *, is_xhtml: bool) -> None:
        self.is_xhtml = is_xhtml
        # Not a list of texts: of a page of many short ones that takes ten times the memory.
        self.written = BytesIO()
        self._write("<!DOCTYPE html>")
        #: The end tags of the open elements.
        self._ends: list[str] = []
        #: The number of open elements in an element that is skipped, with itself.
        self._inside = 0
        self._is_raw = self._is_dropped = False
        parser = expat.ParserCreate("utf-8", " ")
        parser.namespace_prefixes = True
        parser.buffer_text = True
        parser.ordered_attributes = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        self.parse = parser.Parse

    def _start(self, name: str, attributes: Sequence[str]) -> None:
        if self._inside:
            self._inside += 1
            return
        space, tag = _parts(name)
        if not self.is_xhtml:
            self._take_root(space, tag)
        tag = _VERBATIM.get(tag, tag) if _TAG.fullmatch(tag) else "span"
        pairs = zip(attributes[::2], attributes[1::2], strict=True)
        said = "".join([f' {_parts(key)[1]}="{escape(value)}"' for key, value in pairs])
        self._write(f"<{tag}{said}>" + ("\n" if tag in _LINED else ""))
        self._ends.append("" if tag in NAMES["void"] else f"</{tag}>")
        is_html = space in {"", _XHTML}
        if tag in _RAW or (is_html and tag in _TEXTS | _DROPPED):
            self._pass_over_elements(tag, is_html=is_html)

    def _take_root(self, space: str, tag: str) -> None:
        """Take the root element, which decides whether a file is XHTML."""
        self.is_xhtml = space == _XHTML or (not space and tag.lower() == "html")
        if not self.is_xhtml:
            raise _NoXhtml

    def _pass_over_elements(self, tag: str, *, is_html: bool) -> None:
        """Read an element without elements in HTML: its text, raw or not, or skip it."""
        self._inside = 1
        self._is_raw = is_html and tag in _RAW
        self._is_dropped = tag in _DROPPED or not is_html

    def _end(self, _name: str) -> None:
        if self._inside:
            self._inside -= 1
        if not self._inside:
            self._is_raw = self._is_dropped = False
            self._write(self._ends.pop())

    def _characters(self, text: str) -> None:
        if self._is_dropped:
            return
        # An escape of JSON.
        shown = text.replace("<", "\\u003c") if self._is_raw else escape(text, quote=False)
        self._write(shown)

    def _write(self, text: str) -> None:
        self.written.write(text.encode())


def _parts(name: str) -> tuple[str, str]:
    """Return the namespace of a name, and how HTML has it."""
    space, _, local = name.rpartition(" ")
    if " " in space:
        (space, local), prefix = space.split(" ", 1), local
        return space, local if space in _SHOWN else f"{prefix}:{local}"
    return space, local


# -- format ------------------------------------------------------------------


def read(body: bytes, content_type: str | None) -> Body:
    """Return a body as HTML or as values."""
    text, encoding = decode(body, content_type)
    page = _Html(is_xhtml=media_type(content_type or "") == _XHTML_TYPE)
    prepared = _prepared(text, mends=False)
    try:
        page.parse(prepared, True)
        return Body(encoding, page.written.getvalue())
    except _NoXhtml:
        pass
    except expat.ExpatError:
        if page.is_xhtml:
            return Body(encoding, text.encode())
    try:
        blocks = _values(prepared)
        if blocks is None:
            blocks = _values(_prepared(text, mends=True))
    except _TooMany:
        return of_text(text, encoding)
    return Body(encoding, text.encode()) if blocks is None else Body(encoding, blocks=blocks)


def _values(prepared: bytes) -> Blocks | None:
    """Return the values of a file, None if it is not well-formed.

    Raises:
        _TooMany: it has too many of them.
    """
    values = _Values()
    try:
        values.parse(prepared, True)
    except expat.ExpatError:
        return None
    return as_blocks(values.found) or Blocks()
