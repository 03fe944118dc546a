"""Markdown: CommonMark with tables and deleted text, written as HTML.

Text between lines of ``---`` or ``+++`` at the beginning is metadata: its title is read, and it is
not shown. Without a title there, the first heading of level one is the title.
"""

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from itertools import pairwise
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from freshet.crawler.reduce.charset import decode
from freshet.crawler.reduce.formats import Body
from freshet.crawler.reduce.formats.plain import of_text

#: A longer text is shown unchanged: this length takes four seconds.
_MOST_CHARS: Final = 1 << 20
#: Front matter of Jekyll (YAML) and Hugo (YAML or TOML), up to this number of characters. It
#: begins with a key: text between two rules is text.
_MOST_MATTER: Final = 1 << 16
_MATTER: Final = re.compile(
    r"(---|\+\+\+)[ \t]*+\r?\n(?=\w[\w.-]*+[ \t]*+[:=])(.*?)(?<=\n)"
    r"(?:\1|\.\.\.)[ \t]*+(?:\r?\n|\Z)",
    re.DOTALL,
)
#: Tokens of a heading with visible text.
_SHOWN: Final = frozenset({"text", "code_inline"})
_TITLE: Final = re.compile(r"^title[ \t]*+[:=][ \t]*+([^\r\n]+)", re.MULTILINE)


def read(body: bytes, content_type: str | None) -> Body:
    """Return a text as a page with all of it in its main element."""
    text, encoding = decode(body, content_type)
    text = text.removeprefix("\ufeff")
    if len(text) > _MOST_CHARS:
        return of_text(text, encoding, by_line=False)
    matter = _MATTER.match(text, 0, _MOST_MATTER)
    parser = _parser()
    tokens = parser.parse(text if matter is None else text[matter.end() :])
    title = _stated(matter[2] if matter else "") or _first_heading(tokens)
    html = parser.renderer.render(tokens, parser.options, {})
    page = f"<!DOCTYPE html><title>{escape(title)}</title><main>{html}</main>"
    return Body(encoding, page.encode("utf-8", "replace"))


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def _stated(matter: str) -> str:
    """Return the title that front matter states, or ""."""
    found = _TITLE.search(matter)
    text = found[1].strip() if found else ""
    quote = text[:1]
    return text[1:-1] if quote in ("'", '"') and len(text) > 1 and text[-1] == quote else text


def _first_heading(tokens: Sequence[Token]) -> str:
    """Return the text of the first heading of level one, or ""."""
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and opening.tag == "h1":
            shown = (it.content for it in inline.children or () if it.type in _SHOWN)
            return "".join(shown)
    return ""
