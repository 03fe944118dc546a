"""Likeness of short pages, whatever URL, number, id or time is printed on them.

A print is a bottom-k sketch (E. Cohen, 1997) of a page's set of words and pairs of words:
the least 48 of their hashes, which for a text of up to some 25 words are all there are. What
the URL names is masked, and what holds a digit.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit
from zlib import crc32

from freshet.crawler.detection.walls.look import PageLook
from freshet.crawler.detection.walls.words import bigrams, folded, title_parts

#: The hashes that are kept of a page, of 4 bytes each.
KEPT: Final = 48
#: Prints of fewer words than this are like too many others.
FEW_WORDS: Final = 6

_FORM: Final = struct.Struct("<BHI")
_PART: Final = re.compile(r"[\W_]+")
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_MASK: Final = "#"


@dataclass(frozen=True, slots=True)
class Print:
    """``hashes`` ascend, ``words`` is the number of words, ``title`` a hash of the title."""

    hashes: tuple[int, ...] = ()
    words: int = 0
    title: int = 0

    def to_bytes(self) -> bytes:
        """Counts, title and hashes, little-endian."""
        count = len(self.hashes)
        return _FORM.pack(count, self.words, self.title) + struct.pack(f"<{count}I", *self.hashes)

    @classmethod
    def read(cls, data: bytes, offset: int) -> tuple[Print, int]:
        """A print at an offset, and where it ends.

        Raises:
            struct.error: the data are cut short.
        """
        count, words, title = _FORM.unpack_from(data, offset)
        start = offset + _FORM.size
        hashes = struct.unpack_from(f"<{count}I", data, start)
        return cls(hashes, words, title), start + 4 * count


def print_of(look: PageLook) -> Print:
    """The print of a page's own part: headings, text and controls, not links and frame."""
    masked = _names(look.url)
    signs = look.signs
    said = signs.headings + signs.texts + signs.controls + (signs.noscript,)
    words = _masked_words(said or look.blocks.texts, masked)
    # Not what the URL names: the titles of two empty categories differ by just that.
    parts = title_parts(_unplaced(look.title or "", look.url))
    title = " ".join(_masked_words(parts, frozenset()))
    kept = sorted({_hash(each) for each in (*words, *bigrams(words))})[:KEPT]
    return Print(tuple(kept), min(len(words), 0xFFFF), _hash(title))


def likeness(first: Print, second: Print) -> float:
    """The resemblance of the sets, 0 to 1: exact if both were kept whole, else estimated."""
    if not first.hashes or not second.hashes:
        return float(first == second)
    mine, others = set(first.hashes), set(second.hashes)
    union = sorted(mine | others)
    if max(len(mine), len(others)) >= KEPT:
        union = union[:KEPT]
    return sum(each in mine and each in others for each in union) / len(union)


def _unplaced(title: str, url: str) -> str:
    """A title without the URL or path that some servers print there."""
    parts = urlsplit(url)
    title = title.replace(url, "").replace(parts.netloc, "") if parts.netloc else title
    return title.replace(unquote(parts.path), "") if len(parts.path) > 1 else title


def _hash(text: str) -> int:
    return crc32(text.encode("utf-8", "replace"))


def _names(url: str) -> frozenset[str]:
    """The words of a URL, of which a page may tell again."""
    return frozenset(word for word in _PART.split(folded(url)) if len(word) > 2)


def _masked_words(texts: Iterable[str], masked: frozenset[str]) -> list[str]:
    return [
        _MASK if word in masked or any(map(str.isdigit, word)) or len(word) > 24 else word
        for text in texts
        for word in _split(folded(text))
    ]


def _split(text: str) -> list[str]:
    """Words; of scripts without blanks, characters."""
    if _UNSPACED.search(text):
        text = _UNSPACED.sub(lambda match: f" {match[0]} ", text)
    return [word for word in text.split() if word != "?"]
