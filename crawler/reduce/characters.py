"""The characters as the compiled core reads them: a table that is filled as needed."""

from collections.abc import Iterable
from typing import Final
from unicodedata import category

import numpy as np

from freshet.compiled.numeric import CONSTANTS

#: Characters that are made known together.
_BLOCK: Final = 256
_KNOWN, _UPPER, _DIGIT, _WORD, _PUNCTUATION = (
    int(CONSTANTS[name])
    for name in ("KNOWN_CHARACTER", "UPPER_CASE", "DIGIT", "WORD", "PUNCTUATION")
)
#: Bits of each character, 0 if they are not known yet; threads may write the same ones twice.
CHARACTERS: Final = np.zeros(int(CONSTANTS["CHARACTERS"]), np.uint8)


def know(blocks: Iterable[int]) -> None:
    """Fill in the characters of these blocks of 256."""
    for block in blocks:
        begin = block * _BLOCK
        characters = [*map(chr, range(begin, begin + _BLOCK))]
        bits = zip(
            map(str.isupper, characters),
            map(str.isdecimal, characters),
            map(str.isalnum, characters),
            map(category, characters),
            strict=True,
        )
        CHARACTERS[begin : begin + _BLOCK] = [
            _KNOWN | _UPPER * upper | _DIGIT * digit | _WORD * word
            | _PUNCTUATION * (kind[0] in "PS")
            for upper, digit, word, kind in bits
        ]  # fmt: skip


# Those of ASCII; "_" is part of words.
know([0])
CHARACTERS[ord("_")] |= _WORD
