"""A parsed document as two columns: its tags, and the text after each of them.

A walk over the nodes of a tree costs an object and several calls for each of them. The tree
written out again costs less than a tenth of that, is well-formed whatever the page was, and is
cut into tags and texts by two calls.

Lexbor writes "<" and ">" as references in texts and in the values of attributes. So each one
belongs to a tag, but for comments and raw text (HTML, section 13.3), which are taken out, and
for names that contain a "<".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Final

from freshet.crawler.parsing.tags import Tag, understood

_TAG: Final = re.compile("<([^>]*)>")
_COMMENT: Final = "<!--"
_UNMARKED: Final = re.compile(
    "<!--|<(?:s(?:cript|tyle)|xmp|iframe|no(?:embed|frames)|plaintext)(?=[ >])"
)
_SCRIPT: Final = re.compile(r"<(/?)script[\t\n\f\r />]", re.IGNORECASE)
#: Of these what is read as raw text is shown to readers.
_SHOWN: Final = frozenset({"<xmp", "<plaintext"})


@dataclass(frozen=True, slots=True)
class Markup:
    """Columns of equal length: ``texts[i]`` stands after ``tags[i]``, with references in it."""

    tags: list[Tag]
    texts: list[str]

    def end(self, i: int) -> int:
        """Where the element that begins at ``i`` ends: at its end tag, or, if void, at ``i``."""
        tag = self.tags[i]
        if tag.is_void:
            return i
        if tag.name == "body":
            return self._last_end("body")
        name, depth = tag.name, 1
        for j in range(i + 1, len(self.tags)):
            other = self.tags[j]
            if other.name == name:
                depth += -1 if other.ends else 1
                if depth == 0:
                    return j
        return len(self.tags) - 1

    def _last_end(self, name: str) -> int:
        last = len(self.tags) - 1
        return next(j for j in range(last, -1, -1) if j == 0 or self.tags[j].name == name)

    def text(self, i: int) -> str:
        """All text in the element that begins at ``i``."""
        return plain("".join(self.texts[i : self.end(i)]))


def read(html: str) -> Markup:
    """Cut a document that Lexbor wrote; templates are left empty."""
    html = "".join(_without_raw_text(html))
    pieces = html.replace(">", "<").split("<")
    if 2 * html.count(">") + 1 != len(pieces):
        pieces = _TAG.split(html)
    markup = Markup(understood(pieces[1::2]), pieces[2::2])
    return _without_templates(markup) if "<template" in html else markup


def plain(text: str) -> str:
    """A text without references: Lexbor writes four of them."""
    if "&" not in text:
        return text
    text = text.replace("&nbsp;", "\xa0").replace("&lt;", "<").replace("&gt;", ">")
    return text.replace("&amp;", "&")


def _without_raw_text(html: str) -> Iterator[str]:
    """The pieces of the document between comments and raw texts."""
    kept = 0
    while found := _UNMARKED.search(html, kept):
        start, end = _cut(html, found[0], found.start())
        yield html[kept:start]
        if found[0] in _SHOWN:
            yield escape(html[start:end], quote=False)
        kept = end
    yield html[kept:]


def _cut(html: str, mark: str, at: int) -> tuple[int, int]:
    """What is to go: a whole comment, or the text of an element."""
    if mark == _COMMENT:
        end = html.find("-->", at)
        return at, end + 3 if end >= 0 else len(html)
    start = html.find(">", at) + 1
    end = html.find(f"</{mark[1:]}>", start)
    while mark == "<script" and end >= 0 and _is_inner_script(html[start:end]):
        end = html.find("</script>", end + 1)
    return start, end if end >= 0 else len(html)


def _is_inner_script(before: str) -> bool:
    """Whether an end tag after this text is that of a script in a comment in the script.

    HTML, section 13.2.5.17: script data double escape.
    """
    opened = before.rfind(_COMMENT)
    # The dashes that open a comment may be those that close it.
    if opened < 0 or "-->" in before[opened + 2 :]:
        return False
    ends = [match[1] == "/" for match in _SCRIPT.finditer(before, opened)]
    return bool(2 * sum(ends) < len(ends))


def _without_templates(markup: Markup) -> Markup:
    tags, texts = [], []
    resume = 0
    for i, tag in enumerate(markup.tags):
        if i < resume:
            continue
        if tag.name == "template" and not tag.ends:
            resume = markup.end(i)
        tags.append(tag)
        texts.append("" if resume > i else markup.texts[i])
    return Markup(tags, texts)
