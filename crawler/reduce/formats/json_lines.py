"""Lines of JSON (NDJSON, RFC 7464): the values of each line."""

import json
from itertools import islice
from typing import Final

from freshet.crawler.reduce.charset import decode
from freshet.crawler.reduce.formats import MOST_VALUES, Body
from freshet.crawler.reduce.formats.plain import of_text
from freshet.crawler.reduce.formats.values import leaves

#: It may precede each text (RFC 7464, section 2.2).
_SEPARATOR: Final = "\x1e"


def read(body: bytes, content_type: str | None) -> Body:
    """Return the values of all lines; a line that is not JSON is a value itself."""
    text, encoding = decode(body, content_type)
    lines = (line for each in text.split("\n") if (line := each.strip(f"{_SEPARATOR} \t\r")))
    values = list(map(_value, islice(lines, MOST_VALUES + 1)))
    blocks = leaves(values) if any(isinstance(each, dict | list) for each in values) else None
    return of_text(text, encoding) if blocks is None else Body(encoding, blocks=blocks)


def _value(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line
