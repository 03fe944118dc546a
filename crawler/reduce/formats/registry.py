"""The formats that are read, and which of them a body has.

A new format is a module with a ``FORMAT``, and an entry here.
"""

import re
from dataclasses import replace
from functools import lru_cache
from typing import Final

from freshet.crawler.fetch.responses import PACKED_MAGIC, media_type, unpacked
from freshet.crawler.reduce.formats import calendar, html, json, json_lines, pdf, plain, xml, yaml
from freshet.crawler.reduce.formats.form import Format
from freshet.storage.records import FetchResult

#: The first whose media types match is taken, so the general ones come last. Feeds and sitemaps are
#: known by their root element before (:mod:`freshet.crawler.reduce.sitemaps`).
FORMATS: Final[list[Format]] = [
    html.FORMAT,
    xml.FORMAT,
    json.FORMAT,
    json_lines.FORMAT,
    yaml.FORMAT,
    calendar.FORMAT,
    pdf.FORMAT,
    plain.FORMAT,
]


@lru_cache(maxsize=256)
def _named(name: str) -> Format | None:
    return next((each for each in FORMATS if re.fullmatch(each.types, name)), None)


def format_of(content_type: str | None) -> Format:
    """Return the format of a Content-Type; HTML where it is missing, or of no format."""
    name = media_type(content_type or "")
    return (_named(name) if name else None) or html.FORMAT


def no_page_type(content_type: str | None) -> str | None:
    """Return the sentence on a media type that no page has, None for any other and for none."""
    name = media_type(content_type or "")
    return None if name is None or _named(name) else f"the server sent {name[:200]}"


def first_bytes() -> tuple[bytes, ...]:
    """Return the beginnings of bodies that show their format, whatever the label says."""
    return tuple(start for each in FORMATS for start in each.first_bytes)


def is_mislabelled(body: bytes) -> bool:
    """Return whether :func:`as_shown` may have something to do."""
    return body.startswith((*first_bytes(), *PACKED_MAGIC))


def as_shown(result: FetchResult, max_bytes: int) -> FetchResult:
    """Return a response as its first bytes show it, whatever its label says.

    What is packed is unpacked, to ``max_bytes`` at most, and a body whose first bytes are those of
    a format is labelled as one.
    """
    body, headers = unpacked(result.body, max_bytes), result.headers
    shown = next((each for each in FORMATS if body.startswith(each.first_bytes)), None)
    if shown is not None and format_of(result.header("Content-Type")) is not shown:
        others = ((name, value) for name, value in headers if name.lower() != b"content-type")
        headers = (*others, (b"Content-Type", shown.label.encode()))
    if body is result.body and headers is result.headers:
        return result
    return replace(result, body=body, headers=headers)


def versions() -> str:
    """Return the versions of all formats that have one, for the version of documents."""
    return "".join(f"+{each.version}" for each in FORMATS if each.version)
