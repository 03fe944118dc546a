"""Text of any other kind: its paragraphs, or the lines where these are records."""

from typing import Final

from freshet.crawler.fetch.responses import media_type
from freshet.crawler.reduce.charset import decode
from freshet.crawler.reduce.formats import Body
from freshet.crawler.reduce.main_text import plain_text

#: Types of text with records as lines.
_LINED: Final = frozenset(
    {"text/csv", "text/tab-separated-values", "text/vcard", "text/uri-list"}
)  # fmt: skip


def read(body: bytes, content_type: str | None) -> Body:
    """Return a text as paragraphs or lines."""
    return of_text(*decode(body, content_type), by_line=media_type(content_type or "") in _LINED)


def of_text(text: str, encoding: str, *, by_line: bool = True, code: str | None = None) -> Body:
    """Return a text as lines or paragraphs; the document shows it unchanged."""
    return Body(encoding, blocks=plain_text(text, by_line=by_line), shown=text, code=code)
