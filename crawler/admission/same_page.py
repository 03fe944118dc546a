"""Pages that show the same, though their main texts differ in what was chosen as such.

A word that is marked, or a menu that a view for printers leaves out, can move the border between
main text and frame by a block. What one page has in its main text then stands on the other one
all the same, outside of that. A version with a sentence of its own does not pass.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape
from typing import Final
from urllib.parse import urlsplit

from freshet.crawler.reduce.page import markup_of

_WORD: Final = re.compile(r"\w+")
_UNSEEN: Final = re.compile(
    r"<(script|style|template)\b.*?(?:</\1\s*>|$)|<!--.*?(?:-->|$)", re.IGNORECASE | re.DOTALL
)
#: Elements inside of a line: their tags may stand in the middle of a word.
_INLINE: Final = re.compile(
    r"</?(?:a|abbr|b|bdi|bdo|big|cite|code|dfn|em|font|i|kbd|mark|q|s|samp|small|span|strong|sub"
    r"|sup|tt|u|var|wbr)\b[^<>]*>",
    re.IGNORECASE,
)
_TAG: Final = re.compile(r"<[^<>]*>")
#: Words of a line that names the page's own address, as print views have one.
_LINE: Final = 40


@dataclass(frozen=True, slots=True)
class Shown:
    """A page that was read: its URL, the texts of its main blocks, its bytes and their type."""

    url: str
    texts: Sequence[str]
    body: bytes
    content_type: str | None


def show_the_same(one: Shown, other: Shown) -> bool:
    """Return whether each page has, somewhere, all of the other one's main text."""
    return _has(one, other) and _has(other, one)


def _has(page: Shown, other: Shown) -> bool:
    """Return whether the main text of the ``other`` page stands on a page."""
    missing = set(other.texts).difference(page.texts)
    if not missing:
        return True
    host, there = urlsplit(other.url).netloc, _all_words(page)
    texts = (text for text in missing if not _is_address(text, host))
    return all(words in there for text in texts if (words := _words(text)).strip())


def _is_address(text: str, host: str) -> bool:
    return f"://{host}/" in text and len(_WORD.findall(text)) <= _LINE


def _all_words(page: Shown) -> str:
    html = markup_of(page.body, page.content_type).decode("utf-8", "replace")
    return _words(unescape(_TAG.sub(" ", _INLINE.sub("", _UNSEEN.sub(" ", html)))))


def _words(text: str) -> str:
    """Return the words of a text, each between two spaces."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "
