"""Lines of JSON (NDJSON, RFC 7464): the values of each line."""

import json
from itertools import islice
from typing import Final

from freshet.crawler.reduce.charset import decode
from freshet.crawler.reduce.formats.form import MOST_VALUES, Body, Format
from freshet.crawler.reduce.formats.leaves import leaves
from freshet.crawler.reduce.formats.plain import of_text

#: Longer ones are read out of the event loop's process: the worst of so many bytes take 100 ms.
_MOST_INLINE: Final = 256 * 1024
#: It may stand before each text (RFC 7464, section 2.2).
_SEPARATOR: Final = "\x1e"


def read(body: bytes, content_type: str | None) -> Body:
    """Return the values of all lines; a line that is no JSON is a value, too."""
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


FORMAT: Final = Format(
    r"(?:application|text)/(?:x-)?(?:ndjson|jsonl|json-?lines|json-seq)",
    read,
    most_inline=_MOST_INLINE,
)
