"""Data made of maps and lists: each value is a block, its place the path of keys to it."""

import json
from dataclasses import replace

from freshet.crawler.reduce.blocks import ROOT, Blocks, alike, below, compared
from freshet.crawler.reduce.formats import MOST_VALUES


def leaves(document: object) -> Blocks | None:
    """Return the values of a document as blocks ``key: value``, or None if it has none or too many.

    The order of an object's keys does not matter (RFC 8259, section 4).
    """
    found: list[tuple[str, int]] = []
    pending: list[tuple[str, int, object]] = [("", ROOT, document)]
    while pending and len(found) <= MOST_VALUES:
        key, place, value = pending.pop()
        if isinstance(value, dict):
            members = sorted(value.items(), reverse=True)
            pending += [(k, below(place, compared(k)), v) for k, v in members]
        elif isinstance(value, list):
            pending += [(key, below(place, "[]"), v) for v in reversed(value)]
        else:
            shown = value if isinstance(value, str) else json.dumps(value)
            found.append((" ".join(f"{key}: {shown}".split()), place))
    return None if pending else as_blocks(found)


def as_blocks(found: list[tuple[str, int]]) -> Blocks | None:
    """Return texts and places as blocks, or None without any."""
    if not found:
        return None
    texts, places = zip(*found, strict=True)
    return replace(alike(texts, "text", ROOT), places=places)
