"""HTML: as it came."""

from typing import Final

from freshet.crawler.reduce.charset import utf8_of
from freshet.crawler.reduce.formats.form import Body, Format


def read(body: bytes, content_type: str | None) -> Body:
    """Return a body as HTML."""
    html, encoding = utf8_of(body, content_type)
    return Body(encoding, html)


FORMAT: Final = Format("text/html", read)
