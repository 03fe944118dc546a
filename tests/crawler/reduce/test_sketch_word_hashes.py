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
# Scripts without spaces between words.
UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")
#: Signs of every kind: cased beyond ASCII, longer in lower case, context-dependent, half a pair.
SIGNS = "aZ0_ \n\t-.’éÉßİΣς\u0301\u0e33犬々ｶ\U0002f800\U0001f600\ud800\xa0 "


def by_definition(word: str) -> int:
    octets = word.lower().encode()
    total = int(sum(byte * FACTOR**i for i, byte in enumerate(octets))) % 2**64
    return (total ^ total >> 32) * SPREAD % 2**64 >> 32


@given(st.lists(SPACED, max_size=4))
def test_each_word_has_the_hash_of_its_definition(blocks: list[str]) -> None:
    words = re.findall(r"\w+", "\n".join(blocks).lower())
    assert word_hashes(blocks).tolist() == [by_definition(word) for word in words]


@given(
    st.lists(st.text(st.one_of(st.characters(), st.sampled_from(SIGNS))), max_size=4),
    st.integers(1, 9),
)
def test_words_of_any_script_in_any_slices_are_those_of_the_definition(
    blocks: list[str], width: int
) -> None:
    rest, words = "\n".join(blocks).lower(), []
    while rest:
        end = len(rest)
        if end > width:
            end = rest.rfind(" ", 0, width) + 1 or width
        words += WORD.findall(rest[:end].encode("utf-8", "replace").decode())
        rest = rest[end:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SLICE", width)
        assert word_hashes(blocks).tolist() == [by_definition(word) for word in words]


def test_characters_are_classed_as_words_are_found_in_them() -> None:
    every = [chr(each) for each in range(0x110000) if not 0xD800 <= each < 0xE000]
    classes = list(map(module._class, every[::7]))
    assert [kind & 3 == 1 for kind in classes] == [not WORD.match(each) for each in every[::7]]


def test_a_character_is_a_word_where_no_spaces_are_written() -> None:
    hashes = word_hashes(["犬がいる abc"]).tolist()
    assert hashes == [by_definition(word) for word in ("犬", "が", "い", "る", "abc")]


def test_a_word_longer_than_a_slice_is_cut_and_nothing_fails() -> None:
    assert len(word_hashes(["x" * (2 * module.SLICE + 1)])) == 3
    assert len(word_hashes(["\U0002f800" * (module.SLICE + 1)])) == module.SLICE + 1


def test_a_text_without_words_has_none() -> None:
    for blocks in ([], [""], ["—", "!?"]):
        assert np.array_equal(word_hashes(blocks), np.empty(0, np.uint32))


def test_no_two_words_of_many_share_a_hash() -> None:
    words = [f"{stem}{n}" for stem in ("a", "zu", "word") for n in range(5_000)]
    # Of 15,000 words 0.03 pairs of equal hashes are to be expected.
    assert len(set(word_hashes(words).tolist())) >= len(words) - 1
