"""Words of a text, each as 32 bits: all at once, without an object for any of them.

A word is a polynomial in its bytes (R. Karp, M. Rabin, "Efficient randomized pattern-matching
algorithms", 1987), here modulo 2**64: of sums over all bytes so far the difference at a word's
end and start, shifted back to position 0, and then mixed. The values are stored in
sketches for years: nothing here may change without a new version of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Words32: TypeAlias = npt.NDArray[np.uint32]
Words64: TypeAlias = npt.NDArray[np.uint64]

#: Characters whose words are taken at once, which bounds the memory for them.
_SLICE: Final = 1 << 14
#: Bytes that these become at most: four for a character in UTF-8, and two blanks around it.
_LONGEST: Final = 6 * _SLICE
_FACTOR: Final = 0x9E3779B97F4A7C15
_SPREAD: Final = 0xD6E8FEB86659FD93

# Scripts that are written without spaces between words: a character is a token. Thai, Lao,
# Tibetan, Myanmar, Khmer; kana, CJK ideographs and their extensions.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
_UNSPACED_CHARACTER: Final = re.compile(f"[{_UNSPACED}]")
_WORD: Final = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_ASCII: Final = bytes(range(128))
_BLANK: Final = ord(" ")
#: Translates UTF-8: what no word of ASCII holds becomes a blank, all other bytes stay.
_BLANKED: Final = bytes(
    byte if byte >= len(_ASCII) or chr(byte).isalnum() or byte == ord("_") else _BLANK
    for byte in range(256)
)
#: A text with more different marks than this beyond ASCII is not blanked one by one.
_MANY_MARKS: Final = 32


def word_hashes(blocks: Iterable[str]) -> Words32:
    """A hash for each word of the text, lower-case, in order; (n,). Blocks divide words."""
    parts = [_hashes(_blanked(text)) for text in _slices(blocks)]
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def _slices(blocks: Iterable[str]) -> Iterator[str]:
    """The text of the blocks, line by line, in slices of bounded size that end with words."""
    text = "\n".join(blocks).lower()
    start = 0
    while len(text) - start > _SLICE:
        end = text.rfind(" ", start, start + _SLICE) + 1 or start + _SLICE
        yield text[start:end]
        start = end
    yield text[start:]


def _blanked(text: str) -> bytes:
    """UTF-8 with a blank for every byte that belongs to no word, and between any two words."""
    octets = text.encode("utf-8", "replace")
    if octets.isascii():
        return octets.translate(_BLANKED)
    beyond_ascii = set(octets.translate(None, _ASCII).decode())
    marks = [character for character in beyond_ascii if not character.isalnum()]
    if len(marks) > _MANY_MARKS or any(map(_UNSPACED_CHARACTER.match, beyond_ascii)):
        return " ".join(_WORD.findall(text)).encode("utf-8", "replace")
    for mark in marks:
        octets = octets.replace(mark.encode(), b" ")
    return octets.translate(_BLANKED)


def _hashes(octets: bytes) -> Words32:
    values = np.frombuffer(octets, np.uint8)
    inside = np.zeros(len(values) + 2, np.bool_)
    np.not_equal(values, _BLANK, out=inside[1:-1])
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    starts, ends = edges[0::2], edges[1::2]
    powers, inverses = _powers()
    sums = np.zeros(len(values) + 1, np.uint64)
    np.cumsum(values * powers[: len(values)], out=sums[1:])
    hashes: Words64 = (sums[ends] - sums[starts]) * inverses[starts]
    # The upper half of a sum of few bytes says nothing, the lower half of many little.
    hashes ^= hashes >> np.uint64(32)
    hashes *= np.uint64(_SPREAD)
    return (hashes >> np.uint64(32)).astype(np.uint32)


@cache
def _powers() -> tuple[Words64, Words64]:
    """The powers of the factor, and of its inverse modulo 2**64."""
    factors = np.full((2, _LONGEST), 1, np.uint64)
    factors[0, 1:] = _FACTOR
    factors[1, 1:] = pow(_FACTOR, -1, 1 << 64)
    powers = np.cumprod(factors, axis=1, dtype=np.uint64)
    return powers[0], powers[1]
