"""The sketch of a page: digests, and MinHash values of its main text's shingles.

The set compared is that of the 4-word shingles of the main text as one stream of words.
Of each set the sketch keeps the minima of 128 permutations (A. Broder, "On the resemblance
and containment of documents", 1997): the share of minima in which two sketches agree
estimates the resemblance, |A and B| / |A or B|. It never decides whether a page changed; the
digests do that exactly.

Sketches are stored and compared over years, so every hash is fixed by this module and the
version byte: nothing depends on Python's ``hash``, the platform or a library's default.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

# -- word hashes -------------------------------------------------------------
# A word is a polynomial in its bytes (R. Karp, M. Rabin, "Efficient randomized pattern-matching
# algorithms", 1987), here modulo 2**64: the difference of the running sums at a word's end and
# start, shifted back to position 0, and then mixed; all words at once.

Words32: TypeAlias = npt.NDArray[np.uint32]
Words64: TypeAlias = npt.NDArray[np.uint64]

#: Characters whose words are hashed at once, which bounds the memory for them.
_SLICE: Final = 1 << 14
#: The most bytes of these: four for a character in UTF-8, and two blanks around it.
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
#: Translation of UTF-8: a byte that is in no ASCII word becomes a blank, all other bytes stay.
_BLANKED: Final = bytes(
    byte if byte >= len(_ASCII) or chr(byte).isalnum() or byte == ord("_") else _BLANK
    for byte in range(256)
)
#: Texts with more different non-ASCII marks are not blanked one by one.
_MANY_MARKS: Final = 32


def word_hashes(blocks: Iterable[str]) -> Words32:
    """Return a hash for each word of the text, lower-case, in order; (n,). Blocks divide words."""
    parts = [_hashes(_blanked(text)) for text in _slices(blocks)]
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def _slices(blocks: Iterable[str]) -> Iterator[str]:
    """Yield the text of the blocks, line by line, in bounded slices that end with words."""
    text = "\n".join(blocks).lower()
    start = 0
    while len(text) - start > _SLICE:
        end = text.rfind(" ", start, start + _SLICE) + 1 or start + _SLICE
        yield text[start:end]
        start = end
    yield text[start:]


def _blanked(text: str) -> bytes:
    """Return UTF-8 with a blank for each byte outside words, and between any two words."""
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
    """Return the powers of the factor, and of its inverse modulo 2**64."""
    factors = np.full((2, _LONGEST), 1, np.uint64)
    factors[0, 1:] = _FACTOR
    factors[1, 1:] = pow(_FACTOR, -1, 1 << 64)
    powers = np.cumprod(factors, axis=1, dtype=np.uint64)
    return powers[0], powers[1]


#: The version of the format and of every hash in it. Versions before the first release,
#: 1 and 2, are not read.
VERSION: Final = 3
PERMUTATIONS: Final = 128
SHINGLE_WORDS: Final = 4
_SEED: Final = 1

_HEADER: Final = struct.Struct("<BII16s")
_EMPTY_MINIMUM: Final = 0xFFFFFFFF
#: Shingles per step of the permutations: 128 times as many values of 4 bytes stay in cache.
_STEP: Final = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """The kept summary of a main text, compared with later ones.

    ``shingle_count`` is the number of different shingles; ``minima`` are uint32 of shape
    (128,), all 2**32 - 1 for an empty text; ``block_digests`` and ``block_places`` (0: not
    known) are uint64, one for each block in order; ``text_digest`` has 16 bytes.
    """

    shingle_count: int
    minima: Words32
    block_digests: Words64
    block_places: Words64
    text_digest: bytes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sketch) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.text_digest)

    def to_bytes(self) -> bytes:
        """Serialise version, counts, digest, minima, block digests and places, little-endian."""
        header = _HEADER.pack(
            VERSION, self.shingle_count, len(self.block_digests), self.text_digest
        )
        blocks = (
            column.astype("<u8").tobytes() for column in (self.block_digests, self.block_places)
        )
        return b"".join((header, self.minima.astype("<u4").tobytes(), *blocks))

    @classmethod
    def from_bytes(cls, data: bytes) -> Sketch:
        """Read the sketch that :meth:`to_bytes` wrote.

        Raises:
            ValueError: for an unknown version, or bytes too few or too many.
        """
        if data and data[0] != VERSION:
            raise ValueError(f"sketch of version {data[0]}; this program reads {VERSION}")
        if len(data) < _HEADER.size:
            raise ValueError(f"sketch of {len(data)} bytes is cut short")
        _, shingle_count, blocks, digest = _HEADER.unpack_from(data)
        minima_end = _HEADER.size + 4 * PERMUTATIONS
        length = minima_end + 16 * blocks
        if len(data) != length:
            raise ValueError(f"sketch of {len(data)} bytes should have {length}")
        minima = np.frombuffer(data, "<u4", PERMUTATIONS, _HEADER.size)
        digests, places = np.frombuffer(data, "<u8", 2 * blocks, minima_end).reshape(2, blocks)
        return cls(shingle_count, minima, digests, places, digest)


def body_digest(body: bytes) -> bytes:
    """Return 16 bytes of BLAKE2b over a body as decoded from its content coding."""
    return blake2b(body, digest_size=16).digest()


def text_digest(blocks: Iterable[str]) -> bytes:
    """Return 16 bytes of BLAKE2b over the main text as one line, wherever blocks end."""
    return blake2b(" ".join(blocks).encode("utf-8", "replace"), digest_size=16).digest()


def sketch(blocks: Sequence[str], places: Sequence[int] | None = None) -> Sketch:
    """Reduce a main text. A text of fewer than four words is a single shingle.

    ``places`` say where the blocks stand (:mod:`freshet.crawler.reduce.markup`), if that is known.
    """
    shingles = _distinct(_shingles(word_hashes(blocks)))
    digests = b"".join(
        blake2b(block.encode("utf-8", "replace"), digest_size=8).digest() for block in blocks
    )
    return Sketch(
        shingle_count=len(shingles),
        minima=minima(shingles),
        block_digests=np.frombuffer(digests, "<u8"),
        block_places=np.array(places or (0,) * len(blocks), "<u8"),
        text_digest=text_digest(blocks),
    )


def _shingles(words: Words32) -> Words32:
    """Return a 32-bit hash of each run of four words: a polynomial in the mixed word hashes."""
    if len(words) == 0:
        return words
    mixed = _mix(words)
    width = min(SHINGLE_WORDS, len(words))
    count = len(words) - width + 1
    hashes = np.zeros(count, np.uint32)
    for offset in range(width):
        hashes = hashes * np.uint32(0x9E3779B1) + mixed[offset : offset + count]
    return hashes


def _distinct(values: Words32) -> Words32:
    """Return the sorted distinct values; ``np.unique`` takes ten times as long on so few."""
    ordered = np.sort(values)
    keep = np.ones(len(ordered), np.bool_)
    keep[1:] = ordered[1:] != ordered[:-1]
    return np.compress(keep, ordered)


def _mix(values: Words32) -> Words32:
    """Apply the finaliser of MurmurHash3 (A. Appleby), a bijection of 32-bit values."""
    values = values ^ (values >> np.uint32(16))
    values = values * np.uint32(0x85EBCA6B)
    values = values ^ (values >> np.uint32(13))
    values = values * np.uint32(0xC2B2AE35)
    return values ^ (values >> np.uint32(16))


@cache
def _permutations() -> tuple[Words32, Words32]:
    """Return odd factors and summands, as columns: x -> a x + b (mod 2**32) is a permutation."""
    generator = np.random.RandomState(_SEED)  # datasketch's recipe
    half = generator.randint(0, 1 << 31, PERMUTATIONS, dtype=np.uint32)
    b = generator.randint(0, 1 << 32, PERMUTATIONS, dtype=np.uint32)
    return (half * np.uint32(2) + np.uint32(1))[:, None], b[:, None]


def minima(shingles: Words32) -> Words32:
    """Return the least value of each permutation over a set of 32-bit hashes; shape (128,).

    Equal to ``datasketch.MinHash(num_perm=128, seed=1, scheme="affine32")`` updated with
    the same hashes. In steps, so that memory is bounded whatever the size of the set.
    """
    a, b = _permutations()
    least = np.full(PERMUTATIONS, _EMPTY_MINIMUM, np.uint32)
    mixed = _mix(shingles)
    room = np.empty((PERMUTATIONS, min(_STEP, len(mixed))), np.uint32)
    for start in range(0, len(mixed), _STEP):
        step = mixed[start : start + _STEP]
        values = np.multiply(a, step, out=room[:, : len(step)])
        values += b
        np.minimum(least, values.min(axis=1), out=least)
    return least


def resemblance(old: Sketch, new: Sketch) -> tuple[float, float]:
    """Return the resemblance of two texts, |A and B| / |A or B|, and the standard error.

    The error is that of a binomial share, √(R(1 - R)/128). Where it is 0, R is below 3/128, or
    above 1 - 3/128, with 95 % confidence (rule of three). Two empty texts resemble each other
    wholly, an empty and another one not at all.
    """
    if old.shingle_count == 0 or new.shingle_count == 0:
        return float(old.shingle_count == new.shingle_count), 0.0
    value = np.count_nonzero(old.minima == new.minima) / PERMUTATIONS
    return value, math.sqrt(value * (1 - value) / PERMUTATIONS)
