"""The sketch of a page: digests, and MinHash values of its main text's shingles.

The compared sets have the 4-word shingles of the main text as one stream of words.
Of each set the sketch keeps the minima of 128 permutations (A. Broder, "On the resemblance
and containment of documents", 1997): the share of minima in which two sketches agree
estimates the resemblance, |A and B| / |A or B|. It never decides whether a page changed; the
digests do that exactly.

Sketches are stored and compared over years, so every hash is fixed by this module and the
version byte, independent of Python's ``hash``, the platform and the defaults of libraries.
"""

from __future__ import annotations

import ctypes
import math
import re
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from ctypes import c_bool, c_char_p, c_int64, c_size_t, c_void_p
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import zstandard

from freshet.compiled import function

if TYPE_CHECKING:
    from datasketch import MinHash

# -- word hashes -------------------------------------------------------------
# A word is a polynomial in its bytes (R. Karp, M. Rabin, "Efficient randomized pattern-matching
# algorithms", 1987), here modulo 2**64, and then mixed.

Words32: TypeAlias = npt.NDArray[np.uint32]
Words64: TypeAlias = npt.NDArray[np.uint64]

_unclassed: Final = function("unclassed", [c_char_p, c_size_t, c_void_p, c_void_p], c_size_t)
_word_hashes: Final = function(
    "word_hashes", [c_char_p, c_size_t, c_bool, c_void_p, c_size_t, c_void_p], c_int64
)
_shingles: Final = function("shingles", [c_void_p, c_size_t, c_void_p], c_size_t)
_block_digests: Final = function(
    "block_digests", [c_char_p, c_size_t, c_char_p, c_size_t, c_void_p, c_void_p], c_bool
)
_lower_minima: Final = function("lower_minima", [c_void_p, c_size_t, *[c_void_p] * 3])
#: The address of a column that may be written: in a fifth of the time of ``column.ctypes.data``.
_at: Callable[[Any], Any] = (ctypes.c_char * 0).from_buffer

#: A character beyond ASCII is another in lower case.
_CASED: Final = -2

#: A text is cut after this many characters, even in a word: stored hashes depend on it.
SLICE: Final = 1 << 14

# Scripts that are written without spaces between words: a character is a token. Thai, Lao,
# Tibetan, Myanmar, Khmer; kana, CJK ideographs and their extensions.
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff]"
)


def _class(character: str) -> int:
    """Return a character's class: 1 between words, 2 in a word, 3 a word; 4 more if cased."""
    is_part = character.isalnum() or character == "_"
    kind = 3 if _UNSPACED.match(character) else 2 if is_part else 1
    return kind + 4 * (character.lower() != character)


#: The classes of all characters; 0: not computed yet, because all of them would take a second.
CLASSES: Final = (ctypes.c_uint8 * (sys.maxunicode + 1))(*map(_class, map(chr, range(128))))


def word_hashes(blocks: Iterable[str]) -> Words32:
    """Return a hash for each word of the text, lower-case, in order; (n,). Blocks divide words."""
    return _hashed("\n".join(blocks).encode("utf-8", "replace"))


def _hashed(octets: bytes) -> Words32:
    lowered = False
    while True:
        hashes = np.empty(len(octets), np.uint32)
        into = _at(hashes)
        count = _word_hashes(*(octets, len(octets)), lowered, CLASSES, SLICE, into)
        if count >= 0:
            return hashes[:count]
        if count == _CASED:
            octets, lowered = octets.decode().lower().encode(), True
            continue
        asked = _unclassed(octets, len(octets), CLASSES, into)
        classify(hashes[:asked].tolist())


def classify(codes: Iterable[int]) -> None:
    """Note the classes of characters."""
    for each in set(codes):
        CLASSES[each] = _class(chr(each))


#: The version in the store: the core's version packed by Zstandard; older stores have the core's
#: version. The hashes are the same. Versions before the first release, 1 and 2, are not read.
VERSION: Final = 4
PLAIN_VERSION: Final = 3
PERMUTATIONS: Final = 128
_SEED: Final = 1

_HEADER: Final = struct.Struct("<BII16s")
_TEXT_DIGEST: Final = 16
_EMPTY_MINIMUM: Final = 0xFFFFFFFF


class _Packing(threading.local):
    """Packs and unpacks in one thread; making both takes as long as their work."""

    def __init__(self) -> None:
        self.pack = zstandard.ZstdCompressor(level=1).compress
        self.unpack = zstandard.ZstdDecompressor().decompress


_packing: Final = _Packing()


def _unpacked(data: bytes) -> bytes:
    """Return the plain sketch in a stored one."""
    try:
        return _packing.unpack(memoryview(data)[1:], allow_extra_data=False)
    except (zstandard.ZstdError, MemoryError) as error:
        raise ValueError(f"sketch of {len(data)} bytes is damaged: {error}") from error


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
    #: What it was read of.
    octets: bytes | None = field(default=None, repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sketch) and self.plain() == other.plain()

    def __hash__(self) -> int:
        return hash(self.text_digest)

    def minhash(self) -> MinHash:
        """Return the minima as datasketch's object, which compares with others of its scheme."""
        from datasketch import MinHash  # noqa: PLC0415 - slow to import

        return MinHash(PERMUTATIONS, _SEED, hashvalues=self.minima, scheme="affine32")

    def to_bytes(self) -> bytes:
        """Serialise for the store: the version, and :meth:`plain` packed.

        Places, and digests of short blocks, repeat within a page.
        """
        return bytes((VERSION,)) + _packing.pack(self.plain())

    def plain(self) -> bytes:
        """Serialise version, counts, digest, minima, block digests and places, little-endian."""
        if self.octets is not None:
            return self.octets
        header = _HEADER.pack(
            PLAIN_VERSION, self.shingle_count, len(self.block_digests), self.text_digest
        )
        blocks = (
            column.astype("<u8").tobytes() for column in (self.block_digests, self.block_places)
        )
        return b"".join((header, self.minima.astype("<u4").tobytes(), *blocks))

    @classmethod
    def from_bytes(cls, data: bytes) -> Sketch:
        """Read the sketch that :meth:`to_bytes` or :meth:`plain` wrote.

        Raises:
            ValueError: for an unknown version, damaged bytes, or too few or too many.
        """
        if data[:1] == bytes((VERSION,)):
            data = _unpacked(data)
        if data and data[0] != PLAIN_VERSION:
            raise ValueError(f"sketch of version {data[0]}; this program reads {VERSION}")
        size = len(data)
        if size < _HEADER.size:
            raise ValueError(f"sketch of {size} bytes is cut short")
        _, shingle_count, blocks, digest = _HEADER.unpack_from(data)
        minima_end = _HEADER.size + 4 * PERMUTATIONS
        length = minima_end + 16 * blocks
        if size != length:
            raise ValueError(f"sketch of {size} bytes should have {length}")
        minima = np.frombuffer(data, "<u4", PERMUTATIONS, _HEADER.size)
        both = np.frombuffer(data, "<u8", 2 * blocks, minima_end)
        return cls(shingle_count, minima, both[:blocks], both[blocks:], digest, octets=data)


def body_digest(body: bytes) -> bytes:
    """Return 16 bytes of BLAKE2b over a body as decoded from its content coding."""
    return blake2b(body, digest_size=16).digest()


def text_digest(blocks: Iterable[str]) -> bytes:
    """Return 16 bytes of BLAKE2b over the main text as one line, ignoring ends of blocks."""
    return body_digest(" ".join(blocks).encode("utf-8", "replace"))


def block_digest(block: str) -> int:
    """Return the digest of a block, 64 bits of BLAKE2b."""
    octets = blake2b(block.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(octets, "little")


def sketch(blocks: Sequence[str], places: Sequence[int] | None = None) -> Sketch:
    """Reduce a main text. A text of fewer than four words is a single shingle.

    ``places`` has the places of the blocks (:mod:`freshet.crawler.reduce.blocks`), if known.
    """
    encoded = _encoded(blocks)
    shingles = _distinct_shingles(_hashed(b"\n".join(encoded)))
    digests, whole = _digests(encoded)
    return Sketch(
        shingle_count=len(shingles),
        minima=minima(shingles),
        block_digests=digests,
        block_places=np.array(places or (0,) * len(blocks), "<u8"),
        text_digest=whole,
    )


def block_digests(blocks: Iterable[str]) -> list[int]:
    """Return :func:`block_digest` of each block."""
    digests, _ = _digests(_encoded(blocks))
    return [*map(int, digests)]


def _encoded(blocks: Iterable[str]) -> list[bytes]:
    try:
        return list(map(str.encode, blocks))
    except UnicodeEncodeError:
        return [block.encode("utf-8", "replace") for block in blocks]


def _digests(encoded: Sequence[bytes]) -> tuple[Words64, bytes]:
    """Return the digests of blocks, and of their text."""
    lengths = np.fromiter(map(len, encoded), np.uint64, len(encoded))
    # A space separates two of them.
    ends = lengths.cumsum(dtype=np.uint64) + np.arange(len(encoded), dtype=np.uint64)
    text, digests = b" ".join(encoded), np.empty(len(encoded), "<u8")
    whole = bytearray(_TEXT_DIGEST)
    columns = ends.tobytes(), len(encoded), _at(digests), _at(whole)
    if not _block_digests(text, len(text), *columns):
        raise ValueError("blocks end outside of their text")
    return digests, bytes(whole)


def _distinct_shingles(words: Words32) -> Words32:
    """Return the sorted distinct hashes of each run of four words, in the memory of ``words``."""
    room = np.empty_like(words)
    count = _shingles(_at(words), len(words), _at(room))
    return words[:count]


@cache
def permutations() -> tuple[Words32, Words32]:
    """Return odd factors and summands: x -> a x + b (mod 2**32) is a permutation."""
    generator = np.random.RandomState(_SEED)  # datasketch's recipe
    half = generator.randint(0, 1 << 31, PERMUTATIONS, dtype=np.uint32)
    b = generator.randint(0, 1 << 32, PERMUTATIONS, dtype=np.uint32)
    return half * np.uint32(2) + np.uint32(1), b


def minima(shingles: Words32) -> Words32:
    """Return the least value of each permutation over a set of 32-bit hashes; shape (128,).

    Equal to ``datasketch.MinHash(num_perm=128, seed=1, scheme="affine32")`` updated with
    the same hashes.
    """
    a, b = permutations()
    least = np.full(PERMUTATIONS, _EMPTY_MINIMUM, np.uint32)
    hashes = np.ascontiguousarray(shingles, np.uint32)
    _lower_minima(*(hashes.ctypes.data, len(hashes)), *(_at(a), _at(b), _at(least)))
    return least


def resemblance(old: Sketch, new: Sketch) -> tuple[float, float]:
    """Return the resemblance of two texts, |A and B| / |A or B|, and the standard error.

    The error is a binomial share's, √(R(1 - R)/128). If it is 0, R is below 3/128, or
    above 1 - 3/128, with 95 % confidence (rule of three). Two empty texts resemble each other
    wholly, an empty and another one not at all.
    """
    if old.shingle_count == 0 or new.shingle_count == 0:
        return float(old.shingle_count == new.shingle_count), 0.0
    value = np.count_nonzero(old.minima == new.minima) / PERMUTATIONS
    return value, math.sqrt(value * (1 - value) / PERMUTATIONS)
