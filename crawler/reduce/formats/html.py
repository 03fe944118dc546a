"""HTML: as it came."""

from typing import Final

from freshet.crawler.reduce.charset import decode
from freshet.crawler.reduce.formats.form import Body, Format


def read(body: bytes, content_type: str | None) -> Body:
    """Return a body as HTML."""
    text, encoding = decode(body, content_type)
    return Body(encoding, text)


FORMAT: Final = Format("text/html", read)
