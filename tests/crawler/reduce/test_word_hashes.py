"""The hashes of words are those of the definition, whatever stands between the words."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce import sketch as module
from freshet.crawler.reduce.sketch import word_hashes

FACTOR = 0x9E3779B97F4A7C15
SPREAD = 0xD6E8FEB86659FD93
SPACED = st.text(st.characters(max_codepoint=0xDFF))


def by_definition(word: str) -> int:
    octets = word.lower().encode()
    total = int(sum(byte * FACTOR**i for i, byte in enumerate(octets))) % 2**64
    return (total ^ total >> 32) * SPREAD % 2**64 >> 32


@given(st.lists(SPACED, max_size=4))
def test_each_word_has_the_hash_of_its_definition(blocks: list[str]) -> None:
    words = re.findall(r"\w+", "\n".join(blocks).lower())
    assert word_hashes(blocks).tolist() == [by_definition(word) for word in words]


def test_a_character_is_a_word_where_no_spaces_are_written() -> None:
    hashes = word_hashes(["犬がいる abc"]).tolist()
    assert hashes == [by_definition(word) for word in ("犬", "が", "い", "る", "abc")]


@pytest.mark.parametrize("width", [1, 3, 10, 100])
@given(text=SPACED)
def test_words_are_the_same_in_slices(width: int, text: str) -> None:
    words = " ".join(text.split()[:5])
    expected = word_hashes([words]).tolist()
    longest = max(map(len, words.split()), default=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SLICE", longest + width)
        assert word_hashes([words]).tolist() == expected


def test_a_word_longer_than_a_slice_is_cut_and_nothing_fails() -> None:
    assert len(word_hashes(["x" * (2 * module._SLICE + 1)])) == 3
    assert len(word_hashes(["\U0002f800" * (module._SLICE + 1)])) == module._SLICE + 1


def test_a_text_without_words_has_none() -> None:
    for blocks in ([], [""], ["—", "!?"]):
        assert np.array_equal(word_hashes(blocks), np.empty(0, np.uint32))


def test_no_two_words_of_many_share_a_hash() -> None:
    words = [f"{stem}{n}" for stem in ("a", "zu", "word") for n in range(5_000)]
    # Of 15,000 words 0.03 pairs of equal hashes are to be expected.
    assert len(set(word_hashes(words).tolist())) >= len(words) - 1
