"""JSON: its values. One that cannot be read is paragraphs."""

import json

from freshet.crawler.reduce.charset import decode
from freshet.crawler.reduce.formats import Body
from freshet.crawler.reduce.formats.plain import of_text
from freshet.crawler.reduce.formats.values import leaves


def read(body: bytes, content_type: str | None) -> Body:
    """Return the values of a document."""
    text, encoding = decode(body, content_type)
    try:
        blocks = leaves(json.loads(text))
    except (ValueError, RecursionError):
        blocks = None
    if blocks is None:
        return of_text(text, encoding, by_line=False, code="json")
    return Body(encoding, blocks=blocks, shown=text, code="json")
