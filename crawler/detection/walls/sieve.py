"""Which pages are weighed at all: nearly every page must pass without costing time.

A wall says little, and something that tells; or it looks like what its host shows for a URL
that cannot exist, or stands where there was content before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from freshet.crawler.detection.walls.words import holds_cue

#: A page of more main text than this says something of its own; where another text stood
#: before, a longer one may still be an error's trace or the small print of a consent.
MOST_CHARACTERS: Final = 1_500
MOST_WHERE_CONTENT_WAS: Final = 12_000
#: What has more blocks is a list or a table.
MOST_BLOCKS: Final = 24
#: Only so much of a body is looked through.
MOST_BYTES: Final = 64 * 1024
#: Words in the markup of forms and scripts that stand in the place of content.
_TELLING_MARKUP: Final = (b"password", b"captcha", b"challenge", b"consent", b"refresh")


def is_short(texts: Sequence[str], *, had_content: bool | None = None) -> bool:
    """Whether a main text (its blocks) is short enough for a wall."""
    if had_content:
        return sum(map(len, texts)) <= MOST_WHERE_CONTENT_WAS
    return len(texts) <= MOST_BLOCKS and sum(map(len, texts)) <= MOST_CHARACTERS


def tells(title: str | None, texts: Sequence[str], body: bytes) -> bool:
    """Whether anything on a short page could be the sign of a wall."""
    # What shows nothing at all may wait for a script, or be one's way to another page.
    if not any(texts) or holds_cue(" . ".join((title or "", *texts))):
        return True
    start = body[:MOST_BYTES].lower()
    return any(word in start for word in _TELLING_MARKUP)
