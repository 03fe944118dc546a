"""The sketch of a page: digests, and MinHash values of its main text's shingles.

The set compared is that of the 4-word shingles of the main text as one stream of words.
Of each set the sketch keeps the minima of 128 permutations (A. Broder, "On the resemblance
and containment of documents", 1997): the share of minima in which two sketches agree
estimates the resemblance, |A and B| / |A or B|. Whether a page changed is never asked here; the
digests say that exactly.

Sketches are stored and compared over years, so every hash is fixed by this module and the
version byte: nothing depends on Python's ``hash``, the platform or a library's default. The
permutations are those of datasketch's scheme ``affine32`` with seed 1, value for value.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Final

import numpy as np

from freshet.crawler.detection.word_hashes import Words32, Words64, word_hashes

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
    """What is kept of a main text to compare it with later ones.

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
        """Version, counts, text digest, minima, block digests and places, little-endian."""
        header = _HEADER.pack(
            VERSION, self.shingle_count, len(self.block_digests), self.text_digest
        )
        return (
            header
            + self.minima.astype("<u4").tobytes()
            + self.block_digests.astype("<u8").tobytes()
            + self.block_places.astype("<u8").tobytes()
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Sketch:
        """The sketch that :meth:`to_bytes` wrote.

        Raises:
            ValueError: for an unknown version, or bytes too few or too many.
        """
        if data and data[0] != VERSION:
            raise ValueError(f"sketch of version {data[0]}; this program reads {VERSION}")
        if len(data) < _HEADER.size:
            raise ValueError(f"sketch of {len(data)} bytes is cut short")
        _, shingle_count, blocks, digest = _HEADER.unpack_from(data)
        minima_end = _HEADER.size + 4 * PERMUTATIONS
        places_start = minima_end + 8 * blocks
        length = places_start + 8 * blocks
        if len(data) != length:
            raise ValueError(f"sketch of {len(data)} bytes should have {length}")
        minima = np.frombuffer(data, "<u4", PERMUTATIONS, _HEADER.size)
        digests = np.frombuffer(data, "<u8", blocks, minima_end)
        places = np.frombuffer(data, "<u8", blocks, places_start)
        return cls(shingle_count, minima, digests, places, digest)


@dataclass(frozen=True, slots=True)
class Resemblance:
    """An estimate of |A and B| / |A or B|, and the standard error of that estimate."""

    value: float
    standard_error: float


def body_digest(body: bytes) -> bytes:
    """16 bytes of BLAKE2b over a body as decoded from its content coding."""
    return blake2b(body, digest_size=16).digest()


def text_digest(blocks: Iterable[str]) -> bytes:
    """16 bytes of BLAKE2b over the main text, as one line: where blocks end is no matter."""
    return blake2b(" ".join(blocks).encode("utf-8", "replace"), digest_size=16).digest()


def sketch(blocks: Sequence[str], places: Sequence[int] | None = None) -> Sketch:
    """Reduce a main text. A text of fewer than four words is a single shingle.

    ``places`` say where the blocks stand (:mod:`freshet.crawler.parsing.blocks`), if that is known.
    """
    shingles = _distinct(_shingles(word_hashes(blocks)))
    digests = b"".join(map(_block_digest, blocks))
    return Sketch(
        shingle_count=len(shingles),
        minima=minima(shingles),
        block_digests=np.frombuffer(digests, "<u8"),
        block_places=np.array(places or (0,) * len(blocks), "<u8"),
        text_digest=text_digest(blocks),
    )


def _block_digest(block: str) -> bytes:
    return blake2b(block.encode("utf-8", "replace"), digest_size=8).digest()


def _shingles(words: Words32) -> Words32:
    """A 32-bit hash of each run of four words: a polynomial in the mixed word hashes."""
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
    """The set of the values, sorted; ``np.unique`` takes ten times as long on so few."""
    ordered = np.sort(values)
    keep = np.ones(len(ordered), np.bool_)
    keep[1:] = ordered[1:] != ordered[:-1]
    return np.compress(keep, ordered)


def _mix(values: Words32) -> Words32:
    """The finaliser of MurmurHash3 (A. Appleby), a bijection of 32-bit values."""
    values = values ^ (values >> np.uint32(16))
    values = values * np.uint32(0x85EBCA6B)
    values = values ^ (values >> np.uint32(13))
    values = values * np.uint32(0xC2B2AE35)
    return values ^ (values >> np.uint32(16))


@cache
def _permutations() -> tuple[Words32, Words32]:
    """Odd factors and summands, as columns: x -> a x + b (mod 2**32) is a permutation."""
    generator = np.random.RandomState(_SEED)  # datasketch's recipe
    half = generator.randint(0, 1 << 31, PERMUTATIONS, dtype=np.uint32)
    b = generator.randint(0, 1 << 32, PERMUTATIONS, dtype=np.uint32)
    return (half * np.uint32(2) + np.uint32(1))[:, None], b[:, None]


def minima(shingles: Words32) -> Words32:
    """The least value of each permutation over a set of 32-bit hashes; shape (128,).

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


def resemblance(old: Sketch, new: Sketch) -> Resemblance:
    """How much two texts resemble each other, from 0 to 1, with the standard error.

    The error is that of a binomial share, √(R(1 - R)/128). At R = 0 or 1 it is 0, where it
    stands for "not told apart": by the rule of three the resemblance of different texts
    then is below 3/128, or above 1 - 3/128, with 95 % confidence. Two empty texts resemble
    each other wholly, an empty and another one not at all.
    """
    if old.shingle_count == 0 or new.shingle_count == 0:
        return Resemblance(float(old.shingle_count == new.shingle_count), 0.0)
    value = np.count_nonzero(old.minima == new.minima) / PERMUTATIONS
    return Resemblance(value, math.sqrt(value * (1 - value) / PERMUTATIONS))
