"""Robots directives of pages: ``meta`` robots and the X-Robots-Tag header.

There is no standard; the words and their grammar are those that the large crawlers
document (developers.google.com/search/docs/crawling-indexing/robots-meta-tag): words
between commas, a few with a value after a colon, and in the header a crawler's name with
a colon before the words that are for that crawler alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
# Blanks and names are matched possessively: no value makes the match go back over them.
_ITEM = re.compile(
    rf"\s*+(?:[^,:]*+:\s*+)?unavailable_after\s*+:\s*+(?:{_WEEKDAY}\s*+,)?[^,]*+|[^,]++",
    re.IGNORECASE,
)
_UNAVAILABLE_AFTER = "unavailable_after"
_WITH_VALUE = frozenset(
    {_UNAVAILABLE_AFTER, "max-snippet", "max-image-preview", "max-video-preview"}
)
_EVERYBODY = frozenset({"*", "robots"})


@dataclass(frozen=True, slots=True)
class Directives:
    """Directives of a page; ``unavailable_after`` is a date as the page wrote it."""

    nofollow: bool = False
    noindex: bool = False
    noarchive: bool = False
    unavailable_after: str | None = None


def parse_directives(
    values: Iterable[str], user_agent_token: str, *, is_header: bool
) -> Directives:
    """Return the directives for this crawler, those for everybody included.

    ``values`` are the contents of the ``meta`` elements for everybody or for this crawler,
    or (``is_header``) the X-Robots-Tag fields, in which a crawler's name holds from its place
    to the next name or the end of the field. A permission never revokes a prohibition.
    """
    words: set[str] = set()
    dates: list[str] = []
    for value in values:
        addressed = _for_agent(value, user_agent_token) if is_header else _items(value)
        for item in addressed:
            key, _, date = item.partition(":")
            if key.strip().lower() == _UNAVAILABLE_AFTER:
                dates.append(date.strip())
            else:
                words.update(re.split(r"[\s;]+", item.lower()))
    return Directives(
        nofollow=not words.isdisjoint({"nofollow", "none"}),
        noindex=not words.isdisjoint({"noindex", "none"}),
        noarchive=not words.isdisjoint({"noarchive", "nocache"}),
        unavailable_after=next(filter(None, dates), None),
    )


def _items(value: str) -> Iterator[str]:
    """Return the parts between commas; a date keeps the comma after its day of the week."""
    return (item.strip() for item in _ITEM.findall(value))


def _for_agent(value: str, token: str) -> Iterator[str]:
    ours = True
    for item in _items(value):
        name, colon, rest = item.partition(":")
        if colon and _is_name(name.strip().lower(), rest.strip()):
            ours = name.strip().lower() in _EVERYBODY | {token.lower()}
            yield from (rest.strip(),) if ours else ()
        elif ours:
            yield item


def _is_name(word: str, rest: str) -> bool:
    """Return whether a word before a colon names a crawler, not a directive that takes a value.

    A value of an unknown directive is usually a number: then the words after it are not lost.
    """
    return word not in _WITH_VALUE and rest[:1].isalpha()
